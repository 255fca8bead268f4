/* dvbf/report: all about a trained model in one HTML file, and the paper's experiments from data to report.
 *
 *   dvbf_report_options options = {.run = "run"};
 *   int failed = dvbf_model_load(&model, "run/" DVBF_RUN_MODEL, &error) ||
 *                dvbf_data_read(&data, "pendulum.h5", dvbf_model_settings(model), &error) ||
 *                dvbf_settings_new(&settings, "evaluate", &error) ||
 *                dvbf_report_write("report.html", model, data, settings, &options, &error);
 */
#ifndef DVBF_REPORT_H
#define DVBF_REPORT_H

#include <dvbf/figures.h>
#include <dvbf/page.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The report of a model -------------------------------------------------------------------------------
 */

/* Told what the chapter `name` leaves out and why, which the page says too. */
typedef void dvbf_note_fn(const char *name, const char *text, void *user_data);

typedef struct dvbf_report_options {
  const char *title;  /* of the page; NULL: "Report" */
  const char *name;   /* heading of its one chapter; NULL: "Model" */
  const char *run;    /* run folder whose learning curves and settings are shown; NULL: none */
  bool force;         /* replaces files that are there, which are refused otherwise */
  dvbf_note_fn *note; /* NULL: nobody is told */
  void *user_data;    /* handed to it */
} dvbf_report_options;

/* Evaluates the model on a split of the data and writes the page, and its figures into the folder "figures"
 * beside it; folders are made. `settings` is of the table "evaluate" and names the split; options may be
 * NULL. */
DVBF_API dvbf_status dvbf_report_write(const char *path, const dvbf_model *model, const dvbf_data *data,
                                       const dvbf_settings *settings, const dvbf_report_options *options,
                                       dvbf_error *error);

/* An evaluation as JSON: {"regression", "bound", "prediction", "updates", "seconds", "parameters", "seed",
 * "threads"}, "stability" with the fields of dvbf_stability and, where it has a verdict, what
 * dvbf_verdict_json gives. `settings` are those it was made
 * with, `seconds` the time it took. Free with dvbf_text_free. */
DVBF_API dvbf_status dvbf_evaluation_json(char **out, const dvbf_evaluation *evaluation,
                                          const dvbf_model *model, const dvbf_settings *settings,
                                          double seconds, dvbf_error *error);
/* A verdict as JSON: {"verdict": {"useful", "sentence", "split"}, "one_step", "free_run", "nats_per_frame"}.
 * Both uses have "origins", "steps", "coverage" and "mean", "last", "linear" and "learned", each null where
 * it cannot predict or else {"rmse", "fit", "columns"}; "one_step" has "whiteness" too. "columns" is by name,
 * of at most 64 columns. */
DVBF_API dvbf_status dvbf_verdict_json(char **out, const dvbf_verdict *verdict, dvbf_error *error);
DVBF_API void dvbf_text_free(char *text);

/* The learning curves that a run left in its file DVBF_RUN_METRICS: one for each start, "start 1". */
typedef struct dvbf_metrics {
  size_t n_runs;
  dvbf_learning_run *runs; /* [n_runs] */
} dvbf_metrics;

DVBF_API dvbf_status dvbf_metrics_read(dvbf_metrics **out, const char *path, dvbf_error *error);
DVBF_API void dvbf_metrics_free(dvbf_metrics *metrics);

/* ---- The paper's experiments -----------------------------------------------------------------------------
 */

typedef enum dvbf_stage_kind {
  DVBF_SIMULATING,
  DVBF_TRAINING,
  DVBF_TRAINED,
  DVBF_EVALUATING,
  DVBF_DRAWING
} dvbf_stage_kind;

/* What is being done. */
typedef struct dvbf_stage {
  dvbf_stage_kind kind;
  const char *system; /* "pendulum" */
  uint64_t seed;
  const char *model;  /* "DVBF-LL"; NULL where the stage is about no model */
  const char *folder; /* of its run; NULL likewise */
} dvbf_stage;

/* Called when a stage begins; returning false ends the work cleanly. */
typedef bool dvbf_stage_fn(const dvbf_stage *stage, void *user_data);

/* All of it may be left out. */
typedef struct dvbf_reproduce_options {
  const char *preset; /* trains its model alone, on its data; NULL: every model, with our presets */
  const dvbf_settings *settings; /* of the table "train": values that were set go over those of a preset */
  size_t seeds;                  /* from the seed of `settings` on, one after the other; 0 counts as 1 */
  bool force;                    /* replaces results that are there, which are refused otherwise */
  dvbf_progress_fn *progress;    /* of training; returning false ends the work cleanly */
  dvbf_stage_fn *stage;
  dvbf_note_fn *note;
  void *user_data; /* handed to all three */
  /* For pendulum and ball: "all" that the paper names side by side, or names of models with commas between;
   * NULL or "paper": those of its tables. */
  const char *models;
} dvbf_reproduce_options;

typedef struct dvbf_experiment_results {
  const char *system, *title, *remark;
  size_t n_tables;
  dvbf_table *tables; /* our numbers beside the paper's */
} dvbf_experiment_results;

typedef struct dvbf_reproduction {
  bool stopped; /* by a function of the caller: what follows has the seeds that were done */
  size_t n_experiments;
  dvbf_experiment_results *experiments;
  char *json; /* the content of results.json */
} dvbf_reproduction;

/* Simulates "pendulum", "ball", "two-balls" or "all", trains, evaluates, and writes into `folder`
 * report.html, results.json and figures/; for each experiment data.h5, long.h5 (test sequences of 45 frames)
 * and a run folder for each model. "all" gives each experiment a folder of its own, several seeds give each
 * seed its own; figures are of the first. "zoo" learns every simulated system as video of 32 x 32 pixels with
 * the settings that suit its data, and gives one table. */
DVBF_API dvbf_status dvbf_reproduce(dvbf_reproduction **out, const char *system, const char *folder,
                                    const dvbf_reproduce_options *options, dvbf_error *error);
DVBF_API void dvbf_reproduction_free(dvbf_reproduction *reproduction);

#ifdef __cplusplus
}
#endif
#endif
