/* dvbf: learn a latent state-space model from raw sequences, then filter and predict with it.
 *
 * A complete program:
 *
 *   #include <dvbf/dvbf.h>
 *   #include <stdio.h>
 *
 *   int main(void) {
 *     dvbf_error error;
 *     dvbf_settings *settings = NULL;
 *     dvbf_data *data = NULL;
 *     dvbf_model *model = NULL;
 *     int failed = dvbf_settings_new(&settings, "train", &error) ||
 *                  dvbf_settings_preset(settings, "pendulum", &error) ||
 *                  dvbf_data_read(&data, "pendulum.h5", settings, &error) ||
 *                  dvbf_train(&model, settings, data, NULL, &error) ||
 *                  dvbf_model_save(model, "model.safetensors", &error);
 *     if (failed) fprintf(stderr, "%s\n", error.message);
 *     dvbf_model_free(model);
 *     dvbf_data_free(data);
 *     dvbf_settings_free(settings);
 *     return failed;
 *   }
 *
 * <dvbf/core.h>, which this header includes, states the conventions and contains what a program needs to
 * load a model and filter.
 */
#ifndef DVBF_DVBF_H
#define DVBF_DVBF_H

#include <dvbf/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrays ---------------------------------------------------------------------------------------------
 */

typedef enum dvbf_type {
  DVBF_FLOAT32,
  DVBF_FLOAT64,
  DVBF_UINT32,
  DVBF_INT64,
  DVBF_UINT8,
  DVBF_TEXT /* UTF-8; the last dimension is the number of bytes of each text, padded with zeros */
} dvbf_type;

enum { DVBF_MAX_RANK = 8 };

/* A named array in C order. */
typedef struct dvbf_array {
  const char *name;
  dvbf_type type;
  int rank;
  size_t dims[DVBF_MAX_RANK]; /* [rank] */
  const void *values;
} dvbf_array;

/* The formats that are read, as "NPZ, HDF5 or CSV", or the endings of the files that are written, as ".csv,
 * .h5 or .npz". Returns `out`. */
enum { DVBF_FORMATS = 128 };
DVBF_API const char *dvbf_formats(bool written, char out[DVBF_FORMATS]);

/* Writes arrays into one file, atomically: HDF5 if its name ends in .h5 or .hdf5, a NumPy archive if it ends
 * in .npz, a file for MATLAB and Octave if it ends in .mat. The same arrays give an identical file. */
DVBF_API dvbf_status dvbf_arrays_write(const char *path, const dvbf_array *arrays, size_t count,
                                       dvbf_error *error);
/* Refuses a name with another ending, before any work is done. */
DVBF_API dvbf_status dvbf_arrays_check_path(const char *path, dvbf_error *error);
/* Reads one array, of any shape and type, from a file of any data format: *count numbers in C order. NULL
 * and 0 if the file has no array of that name. Free *out with dvbf_bytes_free. */
DVBF_API dvbf_status dvbf_numbers_read(float **out, size_t *count, const char *path, const char *name,
                                       dvbf_error *error);

/* ---- Data -----------------------------------------------------------------------------------------------
 */

/* Reads HDF5, NPZ, NPY, MATLAB or CSV, recognised by content: x [N,T,...] or, for one recording, [T,...]; u,
 * state, mask and length if present; as a whole or in the splits train, valid and test
 * (docs/data-formats.md). A file without splits is split. `how` has the table "data" or "train"; its group
 * "Data" names the arrays and how to split them. NULL: all defaults. */
DVBF_API dvbf_status dvbf_data_read(dvbf_data **out, const char *path, const dvbf_settings *how,
                                    dvbf_error *error);
/* The same for several files, for all files of a folder, or for those whose names match a pattern such as
 * data/?.h5; one such path is also accepted above. The sequences of all files form one data set. Files must
 * contain the same arrays and may differ only in the number of sequences; a file with one recording is one
 * sequence. */
DVBF_API dvbf_status dvbf_data_read_files(dvbf_data **out, const char *const *paths, size_t count,
                                          const dvbf_settings *how, dvbf_error *error);
/* The same from arrays in memory, with the same names: x, u, state, mask and length; train/x and so on; or,
 * for sequences in separate arrays, 0/x, 0/u, 1/x, 1/u, ... They must not change while the data are used.
 * Arrays of DVBF_FLOAT32 that contain all sequences are not copied. An x of another type, with a mask or in
 * separate arrays is copied if it needs no more than the setting `memory`, and otherwise read piece by
 * piece. */
DVBF_API dvbf_status dvbf_data_from(dvbf_data **out, const dvbf_array *arrays, size_t count,
                                    const dvbf_settings *how, dvbf_error *error);
/* Writes the three groups, atomically: a file of that name is replaced only by a complete one. */
DVBF_API dvbf_status dvbf_data_write(const dvbf_data *data, const char *path, dvbf_error *error);

/* Writes estimates into one file, atomically, so that they can be used without the data: besides the arrays
 * of *estimates the number, name and split of each sequence in the data, the time of each step, x of the
 * data if known (x_true), names and units of columns, and images as images. `work` is the task: "filter",
 * "smooth", "predict" or "sample". The ending of the name selects the format: .h5, .npz, .mat, or .csv with
 * one row for each step (docs/data-formats.md). `data` and `sequences`, one of its splits, may be NULL if
 * they are unknown. Estimate i belongs to sequence i modulo their number. */
DVBF_API dvbf_status dvbf_estimates_write(const dvbf_estimates *estimates, const char *work,
                                          const dvbf_data *data, const dvbf_sequences *sequences,
                                          const char *path, dvbf_error *error);
/* Refuses a name with another ending, before any work is done. */
DVBF_API dvbf_status dvbf_estimates_check_path(const char *path, dvbf_error *error);

/* A simulated system, whose table of settings has its name. */
typedef struct dvbf_system_info {
  const char *name;     /* "pendulum" */
  const char *settings; /* the first system with the same settings */
  bool has_goal;        /* that closed loops can reach (dvbf_learn_control) */
} dvbf_system_info;

/* System `index`; false past the last. */
DVBF_API bool dvbf_system(size_t index, dvbf_system_info *info);

/* Simulates the system whose table of settings it is. */
DVBF_API dvbf_status dvbf_simulate(dvbf_data **out, const dvbf_settings *settings, dvbf_error *error);

/* ---- Training -------------------------------------------------------------------------------------------
 */

typedef struct dvbf_progress {
  uint64_t update, updates; /* of this start */
  unsigned start, starts;   /* the current one, counted from 1; the largest number allowed */
  unsigned begun;           /* starts so far: training may return to an earlier start */
  double seconds, seconds_left;
  double bound;   /* of the last minibatches, nats per frame */
  bool validated; /* true when the fields below are new */
  double valid_bound, valid_reconstruction, valid_kl_w, valid_kl_v; /* nats per frame */
  double valid_prediction;                                          /* prediction error over pixel variance */
  double learning_rate, temperature, sigma_floor;
  unsigned phase;        /* 1, or 2 while only the filter is trained (gain-updates) */
  double valid_one_step; /* squared error one step ahead over the variance, with gain-updates; else NaN */
  const char *event;     /* NULL, or a sentence about a restart, a recovery or a resumed checkpoint */
} dvbf_progress;

/* Called for each setting that was chosen automatically; `was` is the value before. If both are equal, `why`
 * is a recommendation only. */
typedef void dvbf_choice_fn(const char *name, const char *value, const char *was, const char *why,
                            void *user_data);

/* Chooses, from the data, all values that were not set by dvbf_settings_set, _preset or _read: likelihood,
 * scaling, latent dimension, windows, network sizes, number of updates, and the schedules that depend on
 * them. `each` may be NULL. */
DVBF_API dvbf_status dvbf_settings_choose(dvbf_settings *settings, const dvbf_data *data,
                                          dvbf_choice_fn *each, void *user_data, dvbf_error *error);

/* Called a few times a second and at every validation, on the thread that called dvbf_train; returning false
 * stops training cleanly. */
typedef bool dvbf_progress_fn(const dvbf_progress *progress, void *user_data);

/* Files of a run folder. */
#define DVBF_RUN_SETTINGS "settings.txt"             /* as dvbf_settings_write writes them */
#define DVBF_RUN_METRICS "metrics.csv"               /* one row for each validation */
#define DVBF_RUN_MODEL "model.safetensors"           /* the best model so far */
#define DVBF_RUN_CHECKPOINT "checkpoint.safetensors" /* everything needed to resume */
#define DVBF_RUN_SEARCH "search.csv"                 /* one row for each candidate of a search */

/* Options of training; all of them may be left out. */
typedef struct dvbf_train_options {
  dvbf_progress_fn *progress;
  void *user_data; /* passed to it */
  /* Run folder, created with its parents if missing. It is updated at every validation, every
   * `checkpoint-every` seconds, at the end and when the callback stops training, so a run can be resumed
   * whatever ended it. Only one process at a time may train in it. */
  const char *folder;
  bool resume; /* resumes the run in `folder`, with a result identical to that of an uninterrupted run;
                  settings (except the group "Running") and data must be the same; starts from the beginning
                  without a checkpoint */
  bool force;  /* replaces an existing run in `folder`, which is refused otherwise */
} dvbf_train_options;

/* Trains a model; options may be NULL. If the callback stops it, it succeeds with the best model so far. If
 * a file of the run folder cannot be written, it fails, and the folder stays as it was at the last
 * checkpoint. */
DVBF_API dvbf_status dvbf_train(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                                const dvbf_train_options *options, dvbf_error *error);
/* What a run folder records about its data: image_height and image_width, names and units of columns,
 * sample_time; train.n_x and train.n_u give the number of columns, 0 if nothing is known. There are no
 * sequences. Free with dvbf_data_free. */
DVBF_API dvbf_status dvbf_run_data(dvbf_data **out, const char *folder, dvbf_error *error);

/* Trains a model with a custom transition from <dvbf/graph.h>; models without a replaceable transition
 * refuse it. The transition must outlive the model. */
struct dvbf_transition;
DVBF_API dvbf_status dvbf_train_with(dvbf_model **out, const struct dvbf_transition *transition,
                                     const dvbf_settings *settings, const dvbf_data *data,
                                     const dvbf_train_options *options, dvbf_error *error);
/* Trains a custom model class in place of the one named by the setting `model`. The class must outlive the
 * model. */
struct dvbf_model_class;
DVBF_API dvbf_status dvbf_train_own(dvbf_model **out, const struct dvbf_model_class *own,
                                    const dvbf_settings *settings, const dvbf_data *data,
                                    const dvbf_train_options *options, dvbf_error *error);

/* ---- Verdict --------------------------------------------------------------------------------------------
 */

/* Baselines of a model: the mean of the training data, the last value seen, and the best linear model, if
 * the model has one. */
typedef enum dvbf_way { DVBF_BY_MEAN, DVBF_BY_LAST, DVBF_BY_LINEAR, DVBF_BY_LEARNED, DVBF_WAYS } dvbf_way;

/* Error of one way to predict. All values are NaN if it cannot predict. */
typedef struct dvbf_score {
  double rmse;            /* over the columns that vary, in units of their standard deviation in training */
  double fit;             /* in %: 100 (1 - rmse / rmse of the mean) */
  double *rmse_by_column; /* [n_x] root mean square error in units of the column */
  double *fit_by_column;  /* [n_x]; NaN for a column that does not vary */
} dvbf_score;

/* Predictions from many origins, all scored on the same values. */
typedef struct dvbf_rolling {
  size_t origins, steps; /* number of origins, 0: sequences are too short; steps of the longest prediction */
  dvbf_score score[DVBF_WAYS];
  /* Fraction of x inside the central 50 % and 90 % predicted by the learned model; NaN if unknown. */
  double coverage_50, coverage_90;
  /* Rank histogram: number of values that had 0, 1, ... n_ranks - 1 samples of the learned model below them.
   * Flat if its quantiles are right. */
  size_t n_ranks; /* 0: unknown */
  double *ranks;  /* [n_x][n_ranks], NULL: unknown */
} dvbf_rolling;

/* Whiteness of the one-step errors: those of a perfect filter are not correlated in time. */
enum { DVBF_LAGS = 20, DVBF_BINS = 32 };
typedef struct dvbf_whiteness {
  double band;    /* 95 % of the autocorrelations of white noise are inside -band .. band; NaN: unknown */
  double outside; /* fraction of all autocorrelations outside of it */
  double (*autocorrelation)[DVBF_LAGS]; /* [n_x], of lags 1 .. 20 */
  double *p; /* [n_x] of the Ljung-Box test over these lags: small if the errors are not white */
  /* [n_x] errors over the predicted standard deviation, counted in bins from -4 to 4; the outermost bins
   * include everything beyond. Standard normal if the predicted deviation is right. */
  double (*histogram)[DVBF_BINS];
} dvbf_whiteness;

/* -ln p of binary, categorical or count data, in nats per frame; all NaN for other data. */
typedef struct dvbf_discrete_likelihood {
  double mean;    /* of independent draws at each step, with each column's mean in training */
  double last;    /* of a Markov chain for each column, or for each group of categories; NaN: too large */
  double learned; /* upper bound, by a particle filter or weighted paths */
  size_t frames;  /* scored, the same for all three */
} dvbf_discrete_likelihood;

typedef struct dvbf_verdict {
  char split[16]; /* of the data used: "test", "valid" or "train"; "" for other data */
  size_t n_x;
  char (*names)[32];     /* [n_x] of the columns */
  dvbf_rolling one_step; /* forecasts of x from all previous steps */
  dvbf_rolling free_run; /* forecasts from the first steps to the end, under the recorded controls */
  dvbf_whiteness whiteness;
  dvbf_discrete_likelihood nats;
  bool useful;        /* false: no better than the mean */
  char sentence[512]; /* the result and, if the model is not useful, what to try */
} dvbf_verdict;

/* Fits the best linear model to the training sequences and stores it in the model, for verdicts;
 * dvbf_model_save saves it too. A search has done so already. *added is false if there is nothing to add:
 * the model is or has such a model, or x consists of images, bits or counts, or has more than 256 columns
 * with u. The flag of `settings`, which may be NULL, interrupts this (dvbf_settings_interrupt). */
DVBF_API dvbf_status dvbf_model_add_linear(bool *added, dvbf_model *model, const dvbf_data *data,
                                           const dvbf_settings *settings, dvbf_error *error);

/* Compares the model with the baselines. `sequences` is a split of `data`; NULL: test, or valid or train if
 * that is empty. `settings` is of the table "evaluate". Of large data a part is used, at most about a
 * million steps of samples. Free with dvbf_verdict_free. */
DVBF_API dvbf_status dvbf_verdict_new(dvbf_verdict **out, const dvbf_model *model, const dvbf_data *data,
                                      const dvbf_sequences *sequences, const dvbf_settings *settings,
                                      dvbf_error *error);
DVBF_API void dvbf_verdict_free(dvbf_verdict *verdict);

/* ---- Stability ------------------------------------------------------------------------------------------
 */

/* What bounds the states of one model, or of one member of a committee. */
typedef struct dvbf_member_stability {
  size_t systems; /* linear systems mixed by the transition; 0: none */
  const char *
      measure; /* of the factor below: "euclidean" or "quadratic" norm, "spectral radius" of one system, "" */
  double length;  /* largest factor by which differences of states may grow in a step, whatever the mixture,
                     with v at its mean; NaN: there are no systems */
  size_t draws;   /* of v, 0 if it has no distribution */
  double drawn;   /* the same factor, largest over these draws; NaN without draws */
  bool contracts; /* neither factor is above 1 */
  bool bounded;   /* by factors below 1, by state-limit, or because the model has no transition */
  size_t n_z;
  double *reach; /* [n_z] the largest |z_k| that state-limit allows; NULL: there are no limits */
  char sentence[400];
} dvbf_member_stability;

typedef struct dvbf_stability {
  bool contracts, bounded; /* true if true of every member */
  double length;           /* largest factor of all members, including draws of v; NaN if one has none */
  size_t n_members;
  dvbf_member_stability *members; /* [n_members] */
  char sentence[512];
} dvbf_stability;

/* Searches for a certificate that the model cannot explode. Free with dvbf_stability_free. */
DVBF_API dvbf_status dvbf_stability_of(dvbf_stability **out, const dvbf_model *model, dvbf_error *error);
DVBF_API void dvbf_stability_free(dvbf_stability *stability);

/* ---- Evaluation -----------------------------------------------------------------------------------------
 */

typedef struct dvbf_regression {
  char name[32];
  double r2, log_likelihood;
} dvbf_regression;

/* Ordinary least squares with intercept of y on z [points][n_z], as in the paper's Table 1; entries of y are
 * `stride` apart. The name of *out does not change. */
DVBF_API dvbf_status dvbf_regress(dvbf_regression *out, const float *z, size_t points, size_t n_z,
                                  const float *y, size_t stride, dvbf_error *error);

/* Regression of every column of the known state on the filter's estimate of z, as coefficients: state = map
 * (z, 1), map [n_s][n_z + 1]. It allows such a state as the goal of a controller. r2 [n_s] may be NULL. */
DVBF_API dvbf_status dvbf_state_map(float *map, double *r2, const dvbf_model *model,
                                    const dvbf_sequences *sequences, dvbf_error *error);

typedef struct dvbf_evaluation {
  size_t n_regressions;
  dvbf_regression *regressions;            /* [n_regressions] one for each column of state */
  double elbo, reconstruction, kl_w, kl_v; /* nats per frame; kl_w is the KL of z in models without w */
  double elbo_deviation;                   /* standard deviation over the samples */
  size_t particles;                        /* used for the next two, which are NaN if it is 0 */
  double importance_bound;                 /* nats per frame: bound from that many weighted paths */
  double particle_bound;                   /* the same by a particle filter; NaN if the model cannot filter */
  size_t observed, horizon;                /* predicted steps observed+1 .. observed+horizon */
  size_t columns;                          /* n_x; 0: there are no errors of single columns, as of images */
  size_t *
      origins; /* [horizon] predictions that were scored: of signals in few sequences also from later steps */
  /* [1 + columns][horizon] squared error of all columns together, then of each: of sampled predictions, of
   * the noise-free prediction, of persistence (the last value repeated), of the mean of training, and of the
   * linear model, NULL without one. NaN: unknown. */
  double *mse, *mse_mean_path, *mse_repeat, *mse_mean, *mse_linear;
  double pixel_variance; /* per pixel, of the evaluated sequences */
  dvbf_stability *stability;
  dvbf_verdict *verdict; /* NULL: disabled by the settings */
  /* If images show one object, or a few close ones: [horizon] distance in pixels of its centre from the true
   * one, in the noise-free prediction and with persistence; otherwise NULL. */
  double *distance, *distance_repeat;
  double steps_near; /* mean number of predicted frames before the first more than a pixel away */
} dvbf_evaluation;

/* `settings` is of the table "evaluate". `data` names the columns of state; `sequences` is one of its splits.
 */
DVBF_API dvbf_status dvbf_evaluate(dvbf_evaluation **out, const dvbf_model *model, const dvbf_data *data,
                                   const dvbf_sequences *sequences, const dvbf_settings *settings,
                                   dvbf_error *error);
DVBF_API void dvbf_evaluation_free(dvbf_evaluation *evaluation);

/* ---- Former names ---- */

/* They are removed in the next release. */
#define dvbf_settings_suit dvbf_settings_choose
#define dvbf_nats dvbf_discrete_likelihood
#define dvbf_judge dvbf_verdict_new
#define dvbf_loop_outcome dvbf_loop_result
#define dvbf_loop_outcome_free dvbf_loop_result_free
static inline const char *dvbf_loop_system(size_t index) {
  dvbf_system_info info;
  for (size_t i = 0; dvbf_system(i, &info); i++)
    if (info.has_goal && !index--) return info.name;
  return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
