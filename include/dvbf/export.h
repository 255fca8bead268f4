/* dvbf/export: a trained filter or controller as code for a robot, a simulator or another tool.
 *
 *   int failed = dvbf_model_load(&model, "run/" DVBF_RUN_MODEL, &error) ||
 *                dvbf_settings_new(&settings, "export", &error) ||
 *                dvbf_export("pendulum.c", model, settings, NULL, NULL, &error);
 */
#ifndef DVBF_EXPORT_H
#define DVBF_EXPORT_H

#include <dvbf/control.h>
#include <dvbf/dvbf.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Further information about a model; all of it may be left out. */
typedef struct dvbf_export_options {
  const char *run;       /* run folder; its checkpoint has the fingerprint of the data */
  const dvbf_data *data; /* for column names, inputs of the test, and the loss from rounded weights */
  const dvbf_sequences *sequences; /* the split to use */
  const char *data_path;           /* file of the data; a text file may have a time column */
  const dvbf_goal *goal;           /* for the controller of dvbf/control.h, too, with this goal and */
  const dvbf_settings *control;    /* these settings, of the table "control" */
  bool force;                      /* replaces existing files, which are refused otherwise */
} dvbf_export_options;

/* What was written. */
typedef struct dvbf_export_result {
  char prefix[64];                                 /* of the symbols */
  size_t constant_bytes, state_bytes, stack_bytes; /* weights and scaling; the struct; intermediate results */
  double multiplications;                          /* of one step, without forecast and samples */
  size_t vectors;                                  /* steps of the test */
  double tolerance; /* of the test, relative to 1 + |value|: 1e-5, or more if the model amplifies rounding
                       errors */
  /* One-step errors on the data, of the model and with rounded weights: root mean squares in units of the
   * standard deviation of each column; NaN if not measured. */
  double rmse, rmse_rounded;
  double sample_time; /* of an FMU, in seconds */
  bool binary;        /* the FMU contains a binary for this machine, not only sources */
  char summary[512];  /* the same as a sentence */
} dvbf_export_result;

/* What the ending of a file's name stands for: ".c", ".fmu", ...; NULL past the last. *help, unless `help` is
 * NULL, becomes a description. */
DVBF_API const char *dvbf_export_target(size_t index, const char **help);

/* Writes PATH, whose ending selects the target. `settings` is of the table "export"; options and result may
 * be NULL. The same model and settings give identical files. A model that cannot filter is refused, and so is
 * one with an op that has no `emit`.
 *
 * - .c: also writes NAME.h and the test NAME_test.c; with a goal also NAME_control.c, its header and its
 *   test, for which a deadline, samples of z and a committee are refused (the setting `member` selects one
 *   model).
 * - .fmu: FMI 2.0 for Co-Simulation, with sources and, if there is a C compiler (CC, or cc), a binary for
 *   Linux; it computes in double. The setting `as` selects the filter or the system itself.
 * - .py: z' = f(z, u) and x = g(z) without noise as CasADi functions; from a committee the best member, or
 *   the one named by the setting `member`.
 * - .onnx: a filter step without samples, with its state as input and output (opset 13), and NAME_start.onnx,
 *   which computes the initial state from the first frames; an exact model starts from zeros. From a
 *   committee as for .py. */
DVBF_API dvbf_status dvbf_export(const char *path, const dvbf_model *model, const dvbf_settings *settings,
                                 const dvbf_export_options *options, dvbf_export_result *result,
                                 dvbf_error *error);

/* Compiles the C file PATH that dvbf_export has written, in a temporary folder, with the compiler named by
 * the environment variable CC or with cc, and runs its test, and that of NAME_control.c if it exists. Fails
 * with their output. */
DVBF_API dvbf_status dvbf_export_check(const char *path, dvbf_error *error);

/* ---- Former names ---- */

/* They are removed in the next release. */
#define dvbf_export_c dvbf_export
#define dvbf_export_fmu dvbf_export
#define dvbf_export_casadi dvbf_export
#define dvbf_export_onnx dvbf_export
static inline dvbf_status dvbf_export_controller(const char *path, const dvbf_model *model,
                                                 const dvbf_goal *goal, const dvbf_settings *control,
                                                 const dvbf_settings *settings,
                                                 const dvbf_export_options *options,
                                                 dvbf_export_result *result, dvbf_error *error) {
  dvbf_export_options all;
  memset(&all, 0, sizeof all);
  if (options) all = *options;
  all.goal = goal;
  all.control = control;
  return dvbf_export(path, model, settings, &all, result, error);
}

#ifdef __cplusplus
}
#endif
#endif
