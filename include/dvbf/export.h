/* dvbf/export: a trained filter as plain C or as an FMU, for a robot, a controller or a simulator.
 *
 *   int failed = dvbf_model_load(&model, "run/" DVBF_RUN_MODEL, &error) ||
 *                dvbf_settings_new(&settings, "export", &error) ||
 *                dvbf_export_c("pendulum.c", model, settings, NULL, NULL, &error);
 */
#ifndef DVBF_EXPORT_H
#define DVBF_EXPORT_H

#include <dvbf/control.h>
#include <dvbf/dvbf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Further information about a model; all of it may be left out. */
typedef struct dvbf_export_options {
  const char *run;       /* run folder; its checkpoint has the fingerprint of the data */
  const dvbf_data *data; /* for column names, inputs of the test, and the loss from rounded weights */
  const dvbf_sequences *sequences; /* the split to use */
  const char *data_path;           /* file of the data; a text file may have a time column */
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
} dvbf_export_result;

/* Writes PATH, which must end in .c, and next to it the header and the test, NAME.h and NAME_test.c.
 * `settings` is of the table "export"; options and result may be NULL. The same model and settings give
 * identical files. A model that cannot filter is refused, and so is one with an op that has no `emit`. */
DVBF_API dvbf_status dvbf_export_c(const char *path, const dvbf_model *model, const dvbf_settings *settings,
                                   const dvbf_export_options *options, dvbf_export_result *result,
                                   dvbf_error *error);

/* The same, and the controller of dvbf/control.h on that filter, with a fixed goal and fixed limits:
 * NAME_control.c, its header and its test, next to NAME.c, which they need. `control` is of the table
 * "control"; a deadline and samples of z are refused, and so is a committee, from which the setting `member`
 * selects one model. */
DVBF_API dvbf_status dvbf_export_controller(const char *path, const dvbf_model *model, const dvbf_goal *goal,
                                            const dvbf_settings *control, const dvbf_settings *settings,
                                            const dvbf_export_options *options, dvbf_export_result *result,
                                            dvbf_error *error);

/* Writes PATH, which must end in .fmu: an FMU of FMI 2.0 for Co-Simulation, with sources and, if there is a
 * C compiler (CC, or cc), a binary for Linux. The setting `as` selects the filter or the system itself. It
 * computes in double; the settings samples, deviation, real, libm and vectors do not apply. */
DVBF_API dvbf_status dvbf_export_fmu(const char *path, const dvbf_model *model, const dvbf_settings *settings,
                                     const dvbf_export_options *options, dvbf_export_result *result,
                                     dvbf_error *error);

/* Writes PATH, which must end in .py: z' = f(z, u) and x = g(z) without noise as CasADi functions, for
 * planning with symbolic derivatives. From a committee it takes the best member, or the one named by the
 * setting `member`. */
DVBF_API dvbf_status dvbf_export_casadi(const char *path, const dvbf_model *model,
                                        const dvbf_settings *settings, const dvbf_export_options *options,
                                        dvbf_export_result *result, dvbf_error *error);

/* Writes PATH, which must end in .onnx: a filter step without samples, with its state as input and output
 * (opset 13), and next to it NAME_start.onnx, which computes the initial state from the first frames; an
 * exact model starts from zeros. From a committee it takes the best member, or the one named by the setting
 * `member`. */
DVBF_API dvbf_status dvbf_export_onnx(const char *path, const dvbf_model *model,
                                      const dvbf_settings *settings, const dvbf_export_options *options,
                                      dvbf_export_result *result, dvbf_error *error);

/* Compiles what dvbf_export_c has written to PATH, in a temporary folder, with the compiler named by the
 * environment variable CC or with cc, and runs its test, and that of NAME_control.c if it exists. Fails with
 * their output. */
DVBF_API dvbf_status dvbf_export_check(const char *path, dvbf_error *error);

#ifdef __cplusplus
}
#endif
#endif
