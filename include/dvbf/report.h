/* Reports, pages and figures; the experiments of the paper; closed loops with simulated systems. */
#ifndef DVBF_REPORT_H
#define DVBF_REPORT_H

#include <dvbf/control.h>
#include <dvbf/dvbf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Figures ---- */

/* Figures of a trained model, fit for a paper: each function takes plain arrays and writes PATH.png and
 * PATH.svg.
 *
 * `path` has no extension. Each file appears whole or not at all. Labels are UTF-8; NULL gives the default
 * label or none. A part whose array is NULL or whose count is 0 is left out, and a figure without any part is
 * refused. Arrays are read during the call only. Text is legible at a figure width of 5.5 inches. SVGs store
 * labels as text, and their ids start with the name of the file, so several fit into one HTML page. */

/* ---- latent: the latent space of a pendulum --------------------------------------------------------------
 *
 * For each model, above: samples on the plane of the directions along which ordinary least squares predicts
 * sin and cos of the angle, coloured by angle; and on the plane of cos and velocity, coloured by velocity.
 * Below: predicted against true sin, cos and velocity with R^2. With n_z = 1 the coordinate is plotted
 * against the true value. Samples and true values that are not finite are refused. */

typedef struct dvbf_latent_model {
  const char *title; /* "DVBF-LL" */
  size_t points, n_z;
  const float *z;        /* [points][n_z] samples */
  const float *angle;    /* [points] in radians, NULL: none */
  const float *velocity; /* [points], NULL: none */
} dvbf_latent_model;

typedef struct dvbf_figure_latent {
  const char *title;
  size_t models;              /* 1 or 2, side by side */
  dvbf_latent_model model[2]; /* colours and axes of the regressions are shared */
  bool narrow;                /* all parts stacked, for a narrow column */
} dvbf_figure_latent;

DVBF_API dvbf_status dvbf_draw_latent(const dvbf_figure_latent *figure, const char *path, dvbf_error *error);

/* ---- walks: where unactuated walks from one latent state end ---------------------------------------------
 *
 * Each walk in two projections with the same axes: those of `latent` when samples with angle and velocity are
 * given, else the principal axes of all walks. The distance between the ends of the first two walks is
 * printed, in units of the latent space and relative to the spread of the samples (or walks). Values that are
 * not finite are refused. */

typedef struct dvbf_walk {
  const char *name; /* "generative", "filtering" */
  size_t steps;
  const float *z; /* [steps][n_z] */
} dvbf_walk;

typedef struct dvbf_figure_walks {
  const char *title;
  size_t n_z, walks; /* 1 to 3 walks */
  dvbf_walk walk[3];
  const float *attractor; /* [n_z] the true state of rest, NULL: unknown */
  /* Samples shown faintly behind the walks, which also give the projections. */
  size_t points;
  const float *z;        /* [points][n_z], NULL: none */
  const float *angle;    /* [points] in radians, NULL: none */
  const float *velocity; /* [points], NULL: none */
} dvbf_figure_walks;

DVBF_API dvbf_status dvbf_draw_walks(const dvbf_figure_walks *figure, const char *path, dvbf_error *error);

/* ---- strips: rows of images ------------------------------------------------------------------------------
 *
 * Frames are wrapped into lines of at most 15; beyond 60 frames every second, third, ... one is shown, with a
 * note in the figure. Grey runs from 0 to 1, or over the range of the first row if that is wider. */

typedef struct dvbf_strip_row {
  const char *label;   /* "ground truth", "reconstruction", "prediction" */
  const float *images; /* [frames][height][width][channels] */
  size_t observed;     /* observed frames: underlined, with a mark at their end; 0: no mark */
} dvbf_strip_row;

typedef struct dvbf_figure_strips {
  const char *title;
  size_t frames, height, width;
  size_t rows; /* 1 to 8 */
  const dvbf_strip_row *row;
  size_t training_steps; /* a red bar marks the length of the training sequences; 0: none */
  size_t channels;       /* 3: colour; 0 or 1: grey */
} dvbf_figure_strips;

DVBF_API dvbf_status dvbf_draw_strips(const dvbf_figure_strips *figure, const char *path, dvbf_error *error);

/* ---- ball: position and velocity of a ball in the latent space -------------------------------------------
 *
 * Left: samples on the plane of the directions that predict the x and the y position, coloured by a
 * checkerboard over the true box. Right, twice: the same samples on the plane of the directions that predict
 * the velocities, coloured by the velocity in x and in y. Values that are not finite are refused. */

typedef struct dvbf_figure_ball {
  const char *title;
  size_t points, n_z;
  const float *z;           /* [points][n_z] */
  const float *position;    /* [points][2], NULL: none */
  const float *velocity;    /* [points][2], NULL: none */
  double box_low, box_high; /* the box in both directions; both 0: the unit box */
  size_t cells;             /* of the checkerboard in each direction; 0: 3 */
  bool narrow;              /* all parts stacked, for a narrow column */
} dvbf_figure_ball;

DVBF_API dvbf_status dvbf_draw_ball(const dvbf_figure_ball *figure, const char *path, dvbf_error *error);

/* ---- curves: learning curves -----------------------------------------------------------------------------
 *
 * Panels against updates: bound (train and validation), prediction error over pixel variance, KL. Values that
 * are not finite leave a gap. The axis of the bound covers the last nine tenths of each run, because the
 * first updates are far below. */

typedef struct dvbf_learning_run {
  const char *name;
  size_t count;
  const double *update;      /* [count] rising */
  const double *train_bound; /* [count] nats per frame; this and the next three may be NULL */
  const double *valid_bound; /* [count] nats per frame */
  const double *prediction;  /* [count] prediction error over pixel variance */
  const double *kl;          /* [count] nats per frame */
} dvbf_learning_run;

typedef struct dvbf_figure_curves {
  const char *title;
  size_t runs;
  const dvbf_learning_run *run; /* [runs] */
  double kept;                  /* update of the model that was kept, marked by a bar; 0: none */
  bool signals;                 /* labels for sensors ("step") instead of images ("frame") */
} dvbf_figure_curves;

DVBF_API dvbf_status dvbf_draw_curves(const dvbf_figure_curves *figure, const char *path, dvbf_error *error);

/* ---- signals: measured and predicted ----------------------------------------------------------------------
 *
 * The columns of one sequence over time, four of them at most, one panel each. A bar marks where observation
 * ends and prediction begins. Missing values leave a gap. */

typedef struct dvbf_figure_signals {
  const char *title;
  size_t steps, columns;
  const float *truth;      /* [steps][columns] */
  const float *prediction; /* [steps][columns] */
  char (*names)[32];       /* [columns], NULL: x0, x1, ... */
  size_t observed;         /* observed steps; 0: no bar */
  const float *low, *high; /* [steps][columns] bounds of an interval around the prediction, NULL: none */
  char (*units)[16];       /* [columns] NULL: none */
  double start;            /* of the axis: seconds or, if sample_time is 0, the number of the first step */
  double sample_time;      /* seconds from step to step; 0: the axis counts steps */
} dvbf_figure_signals;

DVBF_API dvbf_status dvbf_draw_signals(const dvbf_figure_signals *figure, const char *path,
                                       dvbf_error *error);

/* ---- errors: prediction error by horizon -----------------------------------------------------------------
 *
 * Curves of all models against two baselines: persistence (repeating the last observed frame), and the mean
 * image, whose error is the pixel variance, 1. The axis is logarithmic when values spread over more than a
 * factor of ten. Values that are not finite leave a gap. */

typedef struct dvbf_error_curve {
  const char *name;
  size_t horizon;
  const double *mse;           /* [horizon] squared error over pixel variance, of sampled predictions */
  const double *mse_mean_path; /* [horizon] of predictions without noise, dashed; NULL: none */
} dvbf_error_curve;

typedef struct dvbf_figure_errors {
  const char *title;
  size_t models;
  const dvbf_error_curve *model; /* [models] */
  size_t repeat_horizon;
  const double *repeat;  /* [repeat_horizon] of persistence, NULL: none */
  size_t observed;       /* observed frames before the first predicted one; 0: not shown */
  size_t training_steps; /* a red bar marks the length of the training sequences; 0: none */
  bool signals;          /* labels for sensors ("mean") instead of images ("mean image") */
} dvbf_figure_errors;

DVBF_API dvbf_status dvbf_draw_errors(const dvbf_figure_errors *figure, const char *path, dvbf_error *error);

/* ---- Pages ---- */

/* dvbf/page: a report as one HTML file that opens in any browser and needs no network.
 *
 *   dvbf_page *page = NULL;
 *   int failed = dvbf_page_new(&page, "Pendulum", &error) ||
 *                dvbf_page_heading(page, 1, "Results", &error) ||
 *                dvbf_page_text(page, "Trained for nine seconds.", &error) ||
 *                dvbf_page_picture(page, "errors.svg", "Error by horizon", "A rising line", &error) ||
 *                dvbf_page_write(page, "report.html", &error);
 *   dvbf_page_free(page);
 *
 * Everything is copied into the page when it is added and appears in that order. Text is UTF-8 and is shown
 * literally; it may contain < and &. A call that fails adds nothing. */

typedef struct dvbf_page dvbf_page;

DVBF_API dvbf_status dvbf_page_new(dvbf_page **out, const char *title, dvbf_error *error);
DVBF_API void dvbf_page_free(dvbf_page *page);

/* Level 1 begins a section listed in the contents; levels 2 and 3 are inside it. */
DVBF_API dvbf_status dvbf_page_heading(dvbf_page *page, unsigned level, const char *text, dvbf_error *error);
/* Paragraphs, separated by empty lines. */
DVBF_API dvbf_status dvbf_page_text(dvbf_page *page, const char *text, dvbf_error *error);
/* A highlighted note, such as what was left out and why. */
DVBF_API dvbf_status dvbf_page_note(dvbf_page *page, const char *text, dvbf_error *error);

/* ---- Tables ---- */

typedef struct dvbf_table {
  const char *caption; /* NULL: none */
  size_t rows, columns;
  const char *const *cells; /* [rows][columns]; row 0 and column 0 are headings; NULL: an empty cell */
  const char
      *emphasis; /* rows whose first cell starts with this are highlighted, for example "paper"; NULL: none */
} dvbf_table;

DVBF_API dvbf_status dvbf_page_table(dvbf_page *page, const dvbf_table *table, dvbf_error *error);

/* All settings of a run with their help, folded; those that differ from the default are highlighted. */
DVBF_API dvbf_status dvbf_page_settings(dvbf_page *page, const char *caption, const dvbf_settings *settings,
                                        dvbf_error *error);

/* ---- Pictures ---- */

/* Embeds a file whose name ends in .svg or .png. `alternative` describes it for readers who cannot see it. */
DVBF_API dvbf_status dvbf_page_picture(dvbf_page *page, const char *path, const char *caption,
                                       const char *alternative, dvbf_error *error);

/* ---- An interactive latent space ---- */

enum { DVBF_SPACE_POINTS = 4000 }; /* more points are thinned evenly, with a note in the caption */

/* A quantity that the points can be coloured by. */
typedef struct dvbf_space_column {
  const char *name;
  const float *values; /* the value of point i is values[i * stride]; grey if not finite */
  size_t stride;       /* 0 counts as 1 */
  bool cyclic;         /* an angle in radians: the colours close at 2 pi */
  const char *group;   /* heading in lists, for example "inputs"; NULL: "ground truth" */
} dvbf_space_column;

/* The reader chooses the colours, and three axes from the latent dimensions, the principal axes, the columns
 * and, for the first eight that are not cyclic, their regressions on z. */
typedef struct dvbf_space {
  const char *caption;
  size_t points, n_z;
  const float *z; /* [points][n_z]; points that are not finite are left out */
  size_t columns;
  const dvbf_space_column *column; /* [columns] */
} dvbf_space;

DVBF_API dvbf_status dvbf_page_space(dvbf_page *page, const dvbf_space *space, dvbf_error *error);

/* ---- A video of image sequences ---- */

typedef struct dvbf_film_row {
  const char *label;   /* "ground truth", "reconstruction", "prediction" */
  const float *images; /* [sequences][frames][height][width][channels], finite */
  size_t observed;     /* observed frames, which are marked; 0: no mark */
} dvbf_film_row;

/* Rows of images that play simultaneously, one sequence at a time. Pixels are stored with 8 bits. */
typedef struct dvbf_film {
  const char *caption;
  size_t sequences, frames, height, width;
  size_t rows;
  const dvbf_film_row *row; /* [rows] */
  const uint32_t *length;   /* [sequences] frames of each; NULL: all are `frames` long */
  size_t training_steps;    /* marks the length of the training sequences; 0: no mark */
  float black, white;       /* values shown as black and white; if both are 0, the extremes of row 0 */
  const char *const *names; /* [sequences] in the list; NULL: 1, 2, ... */
  size_t channels;          /* 3: colour; 0 or 1: grey */
} dvbf_film;

DVBF_API dvbf_status dvbf_page_film(dvbf_page *page, const dvbf_film *film, dvbf_error *error);

/* ---- The file ---- */

/* Writes it atomically: a file of that name is replaced only by a complete one. */
DVBF_API dvbf_status dvbf_page_write(const dvbf_page *page, const char *path, dvbf_error *error);

/* ---- Reports and the paper's experiments ---- */

/* dvbf/report: a report of a trained model as one HTML file, and the paper's experiments from data to report.
 *
 *   dvbf_report_options options = {.run = "run"};
 *   int failed = dvbf_model_load(&model, "run/" DVBF_RUN_MODEL, &error) ||
 *                dvbf_data_read(&data, "pendulum.h5", dvbf_model_settings(model), &error) ||
 *                dvbf_settings_new(&settings, "evaluate", &error) ||
 *                dvbf_report_write("report.html", model, data, settings, &options, &error); */

/* ---- The report of a model -------------------------------------------------------------------------------
 */

/* Called with what the section `name` leaves out and why, which the page states too. */
typedef void dvbf_note_fn(const char *name, const char *text, void *user_data);

typedef struct dvbf_report_options {
  const char *title;  /* of the page; NULL: "Report" */
  const char *name;   /* heading of its only section; NULL: "Model" */
  const char *run;    /* run folder, for learning curves and settings; NULL: none */
  bool force;         /* replaces existing files, which are refused otherwise */
  dvbf_note_fn *note; /* NULL: none */
  void *user_data;    /* passed to it */
} dvbf_report_options;

/* Evaluates the model on a split of the data and writes the page, and its figures into the folder "figures"
 * next to it; folders are created. `settings` is of the table "evaluate" and names the split; options may be
 * NULL. */
DVBF_API dvbf_status dvbf_report_write(const char *path, const dvbf_model *model, const dvbf_data *data,
                                       const dvbf_settings *settings, const dvbf_report_options *options,
                                       dvbf_error *error);

/* An evaluation as JSON: {"regression", "bound", "prediction", "updates", "seconds", "parameters", "seed",
 * "threads"}, "stability" with the fields of dvbf_stability and, if it has a verdict, the content of
 * dvbf_verdict_json. `settings` are those used for the evaluation, `seconds` is the time it took. Free with
 * dvbf_text_free. */
DVBF_API dvbf_status dvbf_evaluation_json(char **out, const dvbf_evaluation *evaluation,
                                          const dvbf_model *model, const dvbf_settings *settings,
                                          double seconds, dvbf_error *error);
/* A verdict as JSON: {"verdict": {"useful", "sentence", "split"}, "one_step", "free_run", "nats_per_frame"}.
 * "one_step" and "free_run" have "origins", "steps", "coverage" and "mean", "last", "linear" and "learned",
 * each null if it cannot predict or else {"rmse", "fit", "columns"}; "one_step" has "whiteness" too.
 * "columns" is by name, for at most 64 columns. */
DVBF_API dvbf_status dvbf_verdict_json(char **out, const dvbf_verdict *verdict, dvbf_error *error);
DVBF_API void dvbf_text_free(char *text);

/* The learning curves in the file DVBF_RUN_METRICS of a run: one for each start, "start 1". */
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

/* A stage of the work. */
typedef struct dvbf_stage {
  dvbf_stage_kind kind;
  const char *system; /* "pendulum" */
  uint64_t seed;
  const char *model;  /* "DVBF-LL"; NULL if the stage concerns no model */
  const char *folder; /* of its run; NULL likewise */
} dvbf_stage;

/* Called when a stage begins; returning false stops the work cleanly. */
typedef bool dvbf_stage_fn(const dvbf_stage *stage, void *user_data);

/* Options; all of them may be left out. */
typedef struct dvbf_reproduce_options {
  const char *preset;            /* trains only its model, on its data; NULL: every model, with our presets */
  const dvbf_settings *settings; /* of the table "train": values that were set override those of a preset */
  size_t seeds;                  /* number of seeds, starting at the seed of `settings`; 0 counts as 1 */
  bool force;                    /* replaces existing results, which are refused otherwise */
  dvbf_progress_fn *progress;    /* of training; returning false stops the work cleanly */
  dvbf_stage_fn *stage;
  dvbf_note_fn *note;
  void *user_data; /* passed to all three */
  /* For pendulum and ball: "all" for every model that the paper names, or names of models separated by
   * commas; NULL or "paper": those of its tables. */
  const char *models;
} dvbf_reproduce_options;

typedef struct dvbf_experiment_results {
  const char *system, *title, *remark;
  size_t n_tables;
  dvbf_table *tables; /* our numbers and the paper's */
} dvbf_experiment_results;

typedef struct dvbf_reproduction {
  bool stopped; /* stopped by a callback: the results contain the seeds completed so far */
  size_t n_experiments;
  dvbf_experiment_results *experiments;
  char *json; /* the content of results.json */
} dvbf_reproduction;

/* Simulates "pendulum", "ball", "two-balls" or "all", trains, evaluates, and writes into `folder`
 * report.html, results.json and figures/; for each experiment data.h5, long.h5 (test sequences of 45 frames)
 * and a run folder for each model. With "all" each experiment has its own folder, with several seeds each
 * seed; figures are of the first seed. "zoo" trains on every simulated system as video of 32 x 32 pixels,
 * with the settings chosen for its data, and gives one table. */
DVBF_API dvbf_status dvbf_reproduce(dvbf_reproduction **out, const char *system, const char *folder,
                                    const dvbf_reproduce_options *options, dvbf_error *error);
DVBF_API void dvbf_reproduction_free(dvbf_reproduction *reproduction);

/* ---- Closed loops ---- */

/* Closed loops: a simulated system, a model trained on images of it, and a controller that uses the model. */

/* A task. */
typedef struct dvbf_loop {
  const dvbf_settings *system;  /* of a system with a goal (dvbf_system), also to simulate the first data */
  const dvbf_settings *train;   /* of the table "train" */
  const dvbf_settings *control; /* of the table "control"; missing limits are those of the system */
  const dvbf_settings *loop;    /* of the table "loop" */
  const dvbf_model *model;      /* an existing model, so that nothing is trained; NULL: train */
  const char *folder; /* receives the run of the last training, control.json, control.html, a strip of images
                         and a video; created if missing */
  bool force;         /* replaces existing files */
  dvbf_progress_fn *progress; /* of training; NULL: none */
  dvbf_message_fn *tell;      /* called with each step of the work; NULL: none */
  void *user_data;            /* passed to both */
} dvbf_loop;

/* Results of the closed loops. */
typedef struct dvbf_loop_result {
  size_t episodes, steps;
  size_t sequences; /* used for training, of `frames` frames each; 0: nothing was trained */
  size_t frames;
  double seconds;       /* of all trainings */
  double share;         /* fraction of the steps in the goal region */
  size_t reached, held; /* closed loops that reached it, and that stayed during all of their second half */
  size_t recovered;     /* with a push: those inside during the last quarter of their steps */
  double value;         /* mean over closed loops of - sum (distance^2 + 0.1 velocity^2 + 0.001 u^2) */
  double median, late;  /* microseconds of a controller step: median and 99 % quantile */
  double *share_of;     /* [episodes] `share` of each closed loop */
  double *value_of;     /* [episodes] `value` of each closed loop */
} dvbf_loop_result;

/* Collects data, trains, runs closed loops and evaluates them; with several trainings, each but the first
 * has closed loops of the previous model among its data. Another training follows if, according to the
 * model, the controller hardly holds the system at the goal. The same settings give the same result, except
 * for times. Free *out with dvbf_loop_result_free. */
DVBF_API dvbf_status dvbf_learn_control(dvbf_loop_result **out, const dvbf_loop *asked, dvbf_error *error);
DVBF_API void dvbf_loop_result_free(dvbf_loop_result *outcome);

#ifdef __cplusplus
}
#endif
#endif
