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
 * <dvbf/core.h>, which is part of this, states the conventions, and has what a program needs that loads a
 * model and filters.
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
  DVBF_TEXT /* UTF-8; the last dimension counts the bytes of each text, filled up with zeros */
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

/* Writes arrays into one file, atomically: HDF5 where its name ends in .h5 or .hdf5, an archive for NumPy
 * where it ends in .npz, a file for MATLAB and Octave where it ends in .mat. The same arrays give the same
 * bytes. */
DVBF_API dvbf_status dvbf_arrays_write(const char *path, const dvbf_array *arrays, size_t count,
                                       dvbf_error *error);
/* Refuses a name with another ending, for those who want to know before the work is done. */
DVBF_API dvbf_status dvbf_arrays_check_path(const char *path, dvbf_error *error);
/* Reads one array of a file of any format that data may have, whatever its shape and type: *count numbers in
 * C order. NULL and 0 where the file has none of that name. Free *out with dvbf_bytes_free. */
DVBF_API dvbf_status dvbf_numbers_read(float **out, size_t *count, const char *path, const char *name,
                                       dvbf_error *error);

/* ---- Data -----------------------------------------------------------------------------------------------
 */

/* Reads HDF5, NPZ, NPY or CSV, known by its content: x [N,T,...] or, for one recording, [T,...]; u, state,
 * mask and length where they are there; whole or in the splits train, valid and test (docs/formats.md). A
 * file without splits is split. `how` has the table "data" or "train", whose group "Data" says where things
 * are and how they are split; NULL: all at their defaults. */
DVBF_API dvbf_status dvbf_data_read(dvbf_data **out, const char *path, const dvbf_settings *how,
                                    dvbf_error *error);
/* The same of several files, or of all in a folder, or of those whose names match a pattern as data/?.h5; one
 * such path may also be given above. Sequences of all of them are one data set. Files must hold the same
 * arrays, which differ in the number of sequences alone; a file of one recording is one sequence. */
DVBF_API dvbf_status dvbf_data_read_files(dvbf_data **out, const char *const *paths, size_t count,
                                          const dvbf_settings *how, dvbf_error *error);
/* The same from arrays in memory, by the same names: x, u, state, mask and length; train/x and so on; or, for
 * sequences that are arrays of their own, 0/x, 0/u, 1/x, 1/u, ... They must stay as they are while the data
 * are used. Arrays of DVBF_FLOAT32 that hold all sequences are not copied. An x of other numbers, with a mask
 * or in arrays of its own is copied where it needs no more than the setting `memory`, and otherwise read
 * piece by piece. */
DVBF_API dvbf_status dvbf_data_from(dvbf_data **out, const dvbf_array *arrays, size_t count,
                                    const dvbf_settings *how, dvbf_error *error);
/* Writes the three groups, atomically: a file of that name is replaced only by a complete one. */
DVBF_API dvbf_status dvbf_data_write(const dvbf_data *data, const char *path, dvbf_error *error);

/* Writes estimates into one file, atomically, so that they can be used without the data: besides the arrays
 * of *estimates the number, name and split of each sequence in the data, the time of each step, x of the data
 * where it is known (x_true), names and units of columns, and images as images. `work` is what was done:
 * "filter", "smooth", "predict" or "sample". The ending of the name tells the format: .h5, .npz, .mat, or
 * .csv with one row for each step (docs/formats.md). `data` and `sequences`, one of its splits, may be NULL:
 * then nothing is known about them. Estimate i is of sequence i, counted round. */
DVBF_API dvbf_status dvbf_estimates_write(const dvbf_estimates *estimates, const char *work,
                                          const dvbf_data *data, const dvbf_sequences *sequences,
                                          const char *path, dvbf_error *error);
/* Refuses a name with another ending, for those who want to know before the work is done. */
DVBF_API dvbf_status dvbf_estimates_check_path(const char *path, dvbf_error *error);

/* Simulates a system; `settings` is of the table of that name: "pendulum", "ball", "two-balls", "cart-pole",
 * "arm", "planar", "dot", "textured-dot" or "camera". */
DVBF_API dvbf_status dvbf_simulate(dvbf_data **out, const dvbf_settings *settings, dvbf_error *error);

/* ---- Training -------------------------------------------------------------------------------------------
 */

typedef struct dvbf_progress {
  uint64_t update, updates; /* of this start */
  unsigned start, starts;   /* the one in training, from 1; as many as there may be */
  unsigned begun;           /* starts so far: training may go on with an earlier one than the last */
  double seconds, seconds_left;
  double bound;   /* of the last minibatches, nats per frame */
  bool validated; /* true when the fields below are new */
  double valid_bound, valid_reconstruction, valid_kl_w, valid_kl_v; /* nats per frame */
  double valid_prediction;                                          /* prediction error over pixel variance */
  double learning_rate, temperature, sigma_floor;
  unsigned phase;        /* 1, or 2 where the filter alone is trained (filter-updates) */
  double valid_one_step; /* squared error one step ahead over the variance, with filter-updates; else NaN */
  const char *event;     /* NULL, or a sentence about a restart, a recovery or going on from a checkpoint */
} dvbf_progress;

/* Told of each value that was chosen, and why; `was` is the value before. Where both are the same, `why` is
 * advice. */
typedef void dvbf_choice_fn(const char *name, const char *value, const char *was, const char *why,
                            void *user_data);

/* Chooses values that suit the data for whatever nobody has chosen (by dvbf_settings_set, _preset or _read):
 * likelihood, scaling, latent dimension, windows, network sizes, number of updates, and the schedules that
 * go with them. `each` may be NULL. */
DVBF_API dvbf_status dvbf_settings_suit(dvbf_settings *settings, const dvbf_data *data, dvbf_choice_fn *each,
                                        void *user_data, dvbf_error *error);

/* Called a few times a second and at every validation, on the thread that called dvbf_train; returning false
 * stops training cleanly. */
typedef bool dvbf_progress_fn(const dvbf_progress *progress, void *user_data);

/* Files of a run folder. */
#define DVBF_RUN_SETTINGS "settings.txt"             /* as dvbf_settings_write writes them */
#define DVBF_RUN_METRICS "metrics.csv"               /* a row for each validation */
#define DVBF_RUN_MODEL "model.safetensors"           /* the best model so far */
#define DVBF_RUN_CHECKPOINT "checkpoint.safetensors" /* all that it takes to go on */
#define DVBF_RUN_SEARCH "search.csv"                 /* a row for each candidate of a search */

/* What may be wanted besides the model; all of it may be left out. */
typedef struct dvbf_train_options {
  dvbf_progress_fn *progress;
  void *user_data; /* handed to it */
  /* Run folder, made if it is missing, like those above it. It is kept up to date at every validation,
   * every `checkpoint-every` seconds, at the end and when the callback stops training, so that a run can go
   * on after whatever ended it. One process at a time may train in it. */
  const char *folder;
  bool resume; /* goes on with the run in `folder` to the very bytes that it would have come to; settings (but
                  for the group "Running") and data must be the same; begins where there is no checkpoint */
  bool force;  /* replaces a run in `folder`, which is refused otherwise */
} dvbf_train_options;

/* Trains a model; options may be NULL. Interrupted by the callback it still succeeds, with the best model so
 * far. When a file of the run folder cannot be written it fails, and the folder stays as it was at the last
 * checkpoint. */
DVBF_API dvbf_status dvbf_train(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                                const dvbf_train_options *options, dvbf_error *error);
/* What the run in a folder knows of its data: image_height and image_width, names and units of columns,
 * sample_time; train.n_x and train.n_u say how many columns there are, 0 where nothing is known. There are no
 * sequences. Free with dvbf_data_free. */
DVBF_API dvbf_status dvbf_run_data(dvbf_data **out, const char *folder, dvbf_error *error);

/* Trains a model with a transition of one's own, made with <dvbf/graph.h>; models that take none refuse it.
 * It must outlive the model. */
struct dvbf_transition;
DVBF_API dvbf_status dvbf_train_with(dvbf_model **out, const struct dvbf_transition *transition,
                                     const dvbf_settings *settings, const dvbf_data *data,
                                     const dvbf_train_options *options, dvbf_error *error);
/* Trains a model of one's own, in place of that of the setting `model`. It must outlive the model. */
struct dvbf_model_class;
DVBF_API dvbf_status dvbf_train_own(dvbf_model **out, const struct dvbf_model_class *own,
                                    const dvbf_settings *settings, const dvbf_data *data,
                                    const dvbf_train_options *options, dvbf_error *error);

/* ---- Verdict --------------------------------------------------------------------------------------------
 */

/* What a model is set beside: the mean of the training data, the value that was seen last, and the best
 * linear model, where the model knows one. */
typedef enum dvbf_way { DVBF_BY_MEAN, DVBF_BY_LAST, DVBF_BY_LINEAR, DVBF_BY_LEARNED, DVBF_WAYS } dvbf_way;

/* How far off one way to predict is. All is NaN where it cannot predict. */
typedef struct dvbf_score {
  double rmse; /* over the columns that vary, each in units of its standard deviation in training */
  double fit;  /* in %: 100 (1 - rmse / rmse of the mean) */
  double *rmse_by_column; /* [n_x] root mean square error in units of the column */
  double *fit_by_column;  /* [n_x]; NaN for a column that does not vary */
} dvbf_score;

/* Predictions from many origins, all scored on the same values. */
typedef struct dvbf_rolling {
  size_t origins, steps; /* 0: the sequences are too short to predict; steps of the longest prediction */
  dvbf_score score[DVBF_WAYS];
  /* Shares of x inside the central 50 % and 90 % of what the learned model expects; NaN where unknown. */
  double coverage_50, coverage_90;
  /* How many values had 0, 1, ... n_ranks - 1 samples of the learned model below them: all alike where its
   * quantiles are right. */
  size_t n_ranks; /* 0: unknown */
  double *ranks;  /* [n_x][n_ranks], NULL: unknown */
} dvbf_rolling;

/* What is left to explain in the errors one step ahead: those of a perfect filter are not correlated in time.
 */
enum { DVBF_LAGS = 20, DVBF_BINS = 32 };
typedef struct dvbf_whiteness {
  double band;    /* 95 % of the autocorrelations of white noise are inside -band .. band; NaN: unknown */
  double outside; /* share of all autocorrelations that are not */
  double (*autocorrelation)[DVBF_LAGS]; /* [n_x], of lags 1 .. 20 */
  double *p; /* [n_x] of Ljung and Box's test over these lags: small where the errors are not white */
  /* [n_x] errors over the deviation that the model expects, counted in bins from -4 to 4; the outermost have
   * all that is beyond. Normal with deviation 1 where it expects the right one. */
  double (*histogram)[DVBF_BINS];
} dvbf_whiteness;

/* -ln p of data of 0 and 1, of categories or counts, in nats per frame; all NaN for other data. */
typedef struct dvbf_nats {
  double mean;    /* of columns that are drawn anew at each step, each with its mean in training */
  double last;    /* of a Markov chain for each column, or for each group of categories; NaN: too large */
  double learned; /* at most this: a bound, by a particle filter or weighted paths */
  size_t frames;  /* that it was found from, the same for all */
} dvbf_nats;

typedef struct dvbf_verdict {
  char split[16]; /* of the data that judged: "test", "valid", "train"; "" where they are none of these */
  size_t n_x;
  char (*names)[32];     /* [n_x] of the columns */
  dvbf_rolling one_step; /* x of each step from the steps before it */
  dvbf_rolling free_run; /* from the first steps to the end, under the recorded controls */
  dvbf_whiteness whiteness;
  dvbf_nats nats;
  bool useful;        /* false: no better than the mean */
  char sentence[512]; /* what to think of the model and, where it is not useful, what to try */
} dvbf_verdict;

/* Finds the best linear model of the training sequences and keeps it inside the model, for verdicts;
 * dvbf_model_save saves it too. A search has done so already. *added is false where there is nothing to add:
 * the model has or is such a model, or x is a picture, bits or counts, or has more than 256 columns with u.
 * The flag of `settings`, which may be NULL, ends this (dvbf_settings_interrupt). */
DVBF_API dvbf_status dvbf_model_add_linear(bool *added, dvbf_model *model, const dvbf_data *data,
                                           const dvbf_settings *settings, dvbf_error *error);

/* Sets the model beside what one would do otherwise. `sequences` is a split of `data`, NULL: test, or valid
 * or train where that is empty. `settings` is of the table "evaluate". Parts of large data are judged: at
 * most about a million steps of samples. Free with dvbf_verdict_free. */
DVBF_API dvbf_status dvbf_judge(dvbf_verdict **out, const dvbf_model *model, const dvbf_data *data,
                                const dvbf_sequences *sequences, const dvbf_settings *settings,
                                dvbf_error *error);
DVBF_API void dvbf_verdict_free(dvbf_verdict *verdict);

/* ---- Stability ------------------------------------------------------------------------------------------
 */

/* What keeps the states of one model, or of one member of a committee, from growing. */
typedef struct dvbf_member_stability {
  size_t systems; /* linear systems whose mixtures move z; 0: it is not made of such */
  const char
      *measure;   /* of their length: "euclidean" or "quadratic" norm, "spectral radius" of one system, "" */
  double length;  /* of the longest, with v at its mean: factor by which differences of states may grow
                     in a step, whatever the mixture; NaN: there are no systems */
  size_t draws;   /* of v, 0 where it has no distribution */
  double drawn;   /* of the longest over these; NaN where there are none */
  bool contracts; /* neither is above 1 */
  bool bounded;   /* by lengths below 1, by state-limit, or because no time joins its states */
  size_t n_z;
  double *reach; /* [n_z] the largest |z_k| that state-limit allows; NULL: there are no limits */
  char sentence[400];
} dvbf_member_stability;

typedef struct dvbf_stability {
  bool contracts, bounded; /* every member does, and is */
  double length;           /* the largest of all members, draws of v included; NaN where one has none */
  size_t n_members;
  dvbf_member_stability *members; /* [n_members] */
  char sentence[512];
} dvbf_stability;

/* Looks for a certificate that the model cannot explode. Free with dvbf_stability_free. */
DVBF_API dvbf_status dvbf_stability_of(dvbf_stability **out, const dvbf_model *model, dvbf_error *error);
DVBF_API void dvbf_stability_free(dvbf_stability *stability);

/* ---- Evaluation -----------------------------------------------------------------------------------------
 */

typedef struct dvbf_regression {
  char name[32];
  double r2, log_likelihood;
} dvbf_regression;

/* Ordinary least squares with intercept of y on z [points][n_z], as in the paper's Table 1; entries of y are
 * `stride` apart. The name stays as it is. */
DVBF_API dvbf_status dvbf_regress(dvbf_regression *out, const float *z, size_t points, size_t n_z,
                                  const float *y, size_t stride, dvbf_error *error);

/* The same of every column of the known state on what the model's filter believes z to be, as coefficients:
 * state = map (z, 1), map [n_s][n_z + 1]. With it a goal of a controller may be such a state. r2 [n_s] may be
 * NULL. */
DVBF_API dvbf_status dvbf_state_map(float *map, double *r2, const dvbf_model *model,
                                    const dvbf_sequences *sequences, dvbf_error *error);

typedef struct dvbf_evaluation {
  size_t n_regressions;
  dvbf_regression *regressions;            /* [n_regressions] one for each column of state */
  double elbo, reconstruction, kl_w, kl_v; /* nats per frame; kl_w is the KL of z where there is no w */
  double elbo_deviation;                   /* standard deviation over the samples */
  size_t particles;                        /* of the next two, which are NaN where it is 0 */
  double importance_bound;                 /* nats per frame: bound by as many weighted paths */
  double particle_bound;    /* the same by a particle filter; NaN where the model cannot filter */
  size_t observed, horizon; /* predicted steps observed+1 .. observed+horizon */
  /* [horizon] squared error per pixel: of sampled predictions, of the mean prediction (noise off), of
   * persistence (the last frame again) */
  double *mse, *mse_mean_path, *mse_repeat;
  double pixel_variance; /* per pixel, of the evaluated sequences */
  dvbf_stability *stability;
  dvbf_verdict *verdict; /* NULL: the settings leave it out */
  /* Where images show one object, or few that are close: [horizon] distance in pixels of its centre in the
   * mean prediction, and in the last frame again, from the true one; NULL: they do not. */
  double *distance, *distance_repeat;
  double steps_near; /* mean number of predicted frames before the first that is further away than a pixel */
} dvbf_evaluation;

/* `settings` is of the table "evaluate". `data` names the columns of state; `sequences` is one of its splits.
 */
DVBF_API dvbf_status dvbf_evaluate(dvbf_evaluation **out, const dvbf_model *model, const dvbf_data *data,
                                   const dvbf_sequences *sequences, const dvbf_settings *settings,
                                   dvbf_error *error);
DVBF_API void dvbf_evaluation_free(dvbf_evaluation *evaluation);

#ifdef __cplusplus
}
#endif
#endif
