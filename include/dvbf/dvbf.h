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
 * Conventions. Every function that can fail returns a dvbf_status (0 is success), leaves its outputs
 * untouched on failure, and writes one sentence into `error` (which may be NULL). What a function creates,
 * its first argument receives and the caller frees with the matching dvbf_..._free, which accepts NULL. The
 * library never prints, exits or aborts. Arrays are C-ordered; their shape stands beside them.
 */
#ifndef DVBF_DVBF_H
#define DVBF_DVBF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DVBF_API __attribute__((visibility("default")))
#else
#define DVBF_API
#endif

#define DVBF_VERSION "0.1.0"

/* ---- Failures -------------------------------------------------------------------------------------------
 */

typedef enum dvbf_status {
  DVBF_OK = 0,
  DVBF_ARGUMENT, /* a setting or argument is wrong: the caller can mend it */
  DVBF_FORMAT,   /* a file's content is malformed or does not fit */
  DVBF_IO,       /* the system refused to read or write */
  DVBF_MEMORY,   /* out of memory */
  DVBF_NUMERIC   /* training diverged and could not be saved */
} dvbf_status;

typedef struct dvbf_error {
  dvbf_status status;
  char message[512]; /* one sentence: what, where, and the remedy */
} dvbf_error;

/* ---- Settings -------------------------------------------------------------------------------------------
 */

/* Named values of one table: "train", "data", "evaluate", and one for each system (see dvbf_settings_table).
 */
typedef struct dvbf_settings dvbf_settings;

typedef struct dvbf_setting_info {
  const char *name;    /* as in --name */
  const char *group;   /* heading under which help lists it */
  const char *kind;    /* "int", "real", "choice", "switch" or "text" */
  const char *range;   /* "[1, 1024]", "a | b | c", "on | off" or "" */
  const char *initial; /* the default, as text */
  const char *help;    /* one line */
} dvbf_setting_info;

DVBF_API dvbf_status dvbf_settings_new(dvbf_settings **out, const char *table, dvbf_error *error);
DVBF_API dvbf_status dvbf_settings_copy(dvbf_settings **out, const dvbf_settings *from, dvbf_error *error);
DVBF_API void dvbf_settings_free(dvbf_settings *settings);
/* Sets one value from text. An unknown name is refused with the nearest known one. */
DVBF_API dvbf_status dvbf_settings_set(dvbf_settings *settings, const char *name, const char *value,
                                       dvbf_error *error);
/* Writes the value as text into out[size]; numbers are written so that reading them back is exact. */
DVBF_API dvbf_status dvbf_settings_get(const dvbf_settings *settings, const char *name, char *out,
                                       size_t size, dvbf_error *error);
/* Takes over every value that both tables have, but how to run (threads, memory). */
DVBF_API dvbf_status dvbf_settings_take(dvbf_settings *settings, const dvbf_settings *from,
                                        dvbf_error *error);
/* Applies a named preset on top of the current values. Besides "train" it may have values for the table of
 * its system. */
DVBF_API dvbf_status dvbf_settings_preset(dvbf_settings *settings, const char *preset, dvbf_error *error);
/* Applies a file of `name = value` lines (# starts a comment) on top of the current values. */
DVBF_API dvbf_status dvbf_settings_read(dvbf_settings *settings, const char *path, dvbf_error *error);
/* Writes such a file, atomically. */
DVBF_API dvbf_status dvbf_settings_write(const dvbf_settings *settings, const char *path, dvbf_error *error);
/* Fills *info for entry `index` of a table; returns false past its end or for an unknown table. */
DVBF_API bool dvbf_settings_table(const char *table, size_t index, dvbf_setting_info *info);
/* Name of preset `index` and a line about it; NULL past the end. */
DVBF_API const char *dvbf_preset_name(size_t index, const char **help);
/* Name of the system whose data a preset is for; NULL when there is no such preset. */
DVBF_API const char *dvbf_preset_system(const char *preset);

/* Letters to insert, delete, change or swap to turn one name into the other; for "did you mean". */
DVBF_API size_t dvbf_name_distance(const char *a, const char *b);

/* ---- Data -----------------------------------------------------------------------------------------------
 */

/* Reads x piece by piece from a file that is larger than memory. */
typedef struct dvbf_source dvbf_source;

/* Sequences, each a run of frames in common arrays. u[t] acts between x[t] and x[t+1]. */
typedef struct dvbf_sequences {
  size_t count, steps; /* number of sequences, and steps of the longest */
  size_t n_x, n_u, n_s;
  float *x;            /* [frames][n_x], NULL where `source` reads it */
  float *u;            /* [frames][n_u], NULL when n_u = 0 */
  float *state;        /* [frames][n_s] ground truth, NULL when n_s = 0 */
  uint64_t *start;     /* [count] frame where each sequence begins, NULL: sequence i begins at i * steps */
  uint32_t *length;    /* [count] steps of each sequence, NULL when all are `steps` long */
  bool gaps;           /* NaN in x or state is a value that is missing; without this it is refused */
  dvbf_source *source; /* NULL: x is in memory */
} dvbf_sequences;

/* Steps of one sequence. */
static inline size_t dvbf_sequence_length(const dvbf_sequences *s, size_t sequence) {
  return s->length ? s->length[sequence] : s->steps;
}

/* Where one sequence begins in the arrays, in frames. */
static inline size_t dvbf_sequence_start(const dvbf_sequences *s, size_t sequence) {
  return s->start ? (size_t)s->start[sequence] : sequence * s->steps;
}

/* A copy of sequences first .. first + count - 1 in memory, [count][steps] with zeros behind an end. */
DVBF_API dvbf_status dvbf_sequences_copy(dvbf_sequences *out, const dvbf_sequences *from, size_t first,
                                         size_t count, dvbf_error *error);
DVBF_API void dvbf_sequences_free(dvbf_sequences *sequences);

/* The splits may share arrays. */
typedef struct dvbf_data {
  dvbf_sequences train, valid, test;
  size_t image_height, image_width; /* 0 when x is not an image */
  char (*state_names)[32];          /* [n_s], NULL when n_s = 0 */
  char (*x_names)[32];              /* [n_x], NULL where the file names no columns; the same of u */
  char (*u_names)[32];              /* [n_u] */
} dvbf_data;

/* Reads HDF5, NPZ, NPY or CSV, known by its content: x [N,T,...] or, for one recording, [T,...]; u, state,
 * mask and length where they are there; whole or in the splits train, valid and test (docs/formats.md). A
 * file without splits is split. `how` has the table "data" or "train", whose group "Data" says where things
 * are and how they are split; NULL: all at their defaults. */
DVBF_API dvbf_status dvbf_data_read(dvbf_data **out, const char *path, const dvbf_settings *how,
                                    dvbf_error *error);
/* Writes the three groups, atomically: a file of that name is replaced only by a complete one. */
DVBF_API dvbf_status dvbf_data_write(const dvbf_data *data, const char *path, dvbf_error *error);
DVBF_API void dvbf_data_free(dvbf_data *data);

/* One column, or several together, over the values that are not missing. */
typedef struct dvbf_column {
  uint64_t seen;                     /* values */
  double low, high, mean, deviation; /* NaN when none is seen */
} dvbf_column;

/* What an array of sequences holds. */
typedef struct dvbf_columns {
  size_t width;
  dvbf_column all;     /* over all columns; width * frames values would be complete */
  dvbf_column *column; /* [width] */
  bool whole;          /* a step lacks all of its values or none */
  bool binary;         /* every value is 0 or 1 */
} dvbf_columns;

typedef struct dvbf_sequences_info {
  uint64_t frames;          /* steps of all sequences */
  size_t shortest, longest; /* steps of a sequence */
  double median;            /* of the steps of a sequence */
  dvbf_columns x, u, state;
} dvbf_sequences_info;

/* Looks at every value once, in the file where x is read piece by piece. */
DVBF_API dvbf_status dvbf_sequences_describe(dvbf_sequences_info **out, const dvbf_sequences *sequences,
                                             dvbf_error *error);
DVBF_API void dvbf_sequences_info_free(dvbf_sequences_info *info);

/* Simulates a system; `settings` is of the table of that name: "pendulum", "ball" or "two-balls". */
DVBF_API dvbf_status dvbf_simulate(dvbf_data **out, const dvbf_settings *settings, dvbf_error *error);

/* ---- Arrays in files ------------------------------------------------------------------------------------
 */

typedef enum dvbf_type { DVBF_FLOAT32, DVBF_FLOAT64, DVBF_UINT32, DVBF_INT64 } dvbf_type;

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
 * where it ends in .npz. The same arrays give the same bytes. */
DVBF_API dvbf_status dvbf_arrays_write(const char *path, const dvbf_array *arrays, size_t count,
                                       dvbf_error *error);
/* Refuses a name with another ending, for those who want to know before the work is done. */
DVBF_API dvbf_status dvbf_arrays_check_path(const char *path, dvbf_error *error);

/* ---- Training -------------------------------------------------------------------------------------------
 */

typedef struct dvbf_model dvbf_model;

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
  const char *event; /* NULL, or a sentence about a restart, a recovery or going on from a checkpoint */
} dvbf_progress;

/* Told of each value that was chosen, and why; `was` is the value before. */
typedef void dvbf_choice_fn(const char *name, const char *value, const char *was, const char *why,
                            void *user_data);

/* Chooses values that suit the data for whatever nobody has chosen (by dvbf_settings_set, _preset or _read):
 * likelihood, scaling, latent dimension, windows, network sizes, number of updates, and the schedules that
 * go with them. `each` may be NULL. */
DVBF_API dvbf_status dvbf_settings_suit(dvbf_settings *settings, const dvbf_data *data, dvbf_choice_fn *each,
                                        void *user_data, dvbf_error *error);

/* Called a few times a second and at every validation; returning false stops training cleanly. */
typedef bool dvbf_progress_fn(const dvbf_progress *progress, void *user_data);

/* Files of a run folder. */
#define DVBF_RUN_SETTINGS "settings.txt"             /* as dvbf_settings_write writes them */
#define DVBF_RUN_METRICS "metrics.csv"               /* a row for each validation */
#define DVBF_RUN_MODEL "model.safetensors"           /* the best model so far */
#define DVBF_RUN_CHECKPOINT "checkpoint.safetensors" /* all that it takes to go on */

/* What may be wanted besides the model; all of it may be left out. */
typedef struct dvbf_train_options {
  dvbf_progress_fn *progress;
  void *user_data; /* handed to it */
  /* Run folder, made if it is missing (those above it are not). It is kept up to date at every validation,
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

DVBF_API dvbf_status dvbf_model_load(dvbf_model **out, const char *path, dvbf_error *error);
/* Writes safetensors, atomically. Refuses a model that holds a value that is not finite. */
DVBF_API dvbf_status dvbf_model_save(const dvbf_model *model, const char *path, dvbf_error *error);
DVBF_API void dvbf_model_free(dvbf_model *model);

typedef struct dvbf_model_info {
  size_t n_x, n_u, n_z, n_w; /* n_w is 0 in a dkf */
  size_t parameters;
  uint64_t updates, seed;
  double seconds; /* of training; 0 for a loaded model */
  /* The model sees (x - shift) * scale, and u likewise. The model's own. */
  const float *x_shift, *x_scale; /* [n_x] */
  const float *u_shift, *u_scale; /* [n_u] */
} dvbf_model_info;

DVBF_API dvbf_model_info dvbf_model_describe(const dvbf_model *model);

typedef struct dvbf_parameter_info {
  const char *name; /* the model's own */
  size_t rows, columns;
  bool trained; /* false: it keeps its first value, and dvbf_model_info.parameters does not count it */
} dvbf_parameter_info;

/* Fills *info for parameter `index`; returns false past the last one. */
DVBF_API bool dvbf_model_parameter(const dvbf_model *model, size_t index, dvbf_parameter_info *info);
/* Its settings, of the table "train"; the model's own. */
DVBF_API const dvbf_settings *dvbf_model_settings(const dvbf_model *model);

/* ---- Inference ------------------------------------------------------------------------------------------
 */

typedef struct dvbf_infer_options {
  size_t observe; /* steps whose x is seen; later ones are predicted with w (dkf: z) from the prior; 0: all */
  bool mean_path; /* every noise at its mean: w = 0 where predicted, or z the transition's mean */
  uint64_t seed;  /* of the samples */
  unsigned threads; /* 0: all cores */
} dvbf_infer_options;

/* One path through the latent space for each sequence. */
typedef struct dvbf_paths {
  size_t count, steps, n_z, n_x;
  float *z;               /* [count][steps][n_z] */
  float *x;               /* [count][steps][n_x] mean of the emission */
  double *log_likelihood; /* [count][steps] ln p(x_t | z_t), 0 where not observed */
  double *kl;             /* [count][steps] KL of w_t, or of z_t in a dkf; entry 0 belongs to w_1, entry t to
                             the step into t */
} dvbf_paths;

DVBF_API dvbf_status dvbf_infer(dvbf_paths **out, const dvbf_model *model, const dvbf_sequences *sequences,
                                const dvbf_infer_options *options, dvbf_error *error);
DVBF_API void dvbf_paths_free(dvbf_paths *paths);

typedef struct dvbf_regression {
  char name[32];
  double r2, log_likelihood;
} dvbf_regression;

/* Ordinary least squares with intercept of y on z [points][n_z], as in the paper's Table 1; entries of y are
 * `stride` apart. The name stays as it is. */
DVBF_API dvbf_status dvbf_regress(dvbf_regression *out, const float *z, size_t points, size_t n_z,
                                  const float *y, size_t stride, dvbf_error *error);

typedef struct dvbf_evaluation {
  size_t n_regressions;
  dvbf_regression *regressions;             /* [n_regressions] one for each column of state */
  double elbo, reconstruction, kl_w, kl_v;  /* nats per frame; kl_w is the KL of z in a dkf */
  double elbo_deviation;                    /* standard deviation over the samples */
  size_t particles;                         /* of the next two, which are NaN where it is 0 */
  double importance_bound;                  /* nats per frame: bound by as many weighted paths */
  double particle_bound;                    /* the same by a particle filter; NaN for a dkf */
  size_t observed, horizon;                 /* predicted steps observed+1 .. observed+horizon */
  double *mse, *mse_mean_path, *mse_repeat; /* [horizon] per pixel */
  double pixel_variance;                    /* per pixel, of the evaluated sequences */
} dvbf_evaluation;

/* `settings` is of the table "evaluate". `data` names the columns of state; `sequences` is one of its splits.
 */
DVBF_API dvbf_status dvbf_evaluate(dvbf_evaluation **out, const dvbf_model *model, const dvbf_data *data,
                                   const dvbf_sequences *sequences, const dvbf_settings *settings,
                                   dvbf_error *error);
DVBF_API void dvbf_evaluation_free(dvbf_evaluation *evaluation);

/* Samples of z and x for each sequence, and what they say. */
typedef struct dvbf_estimates {
  size_t count, samples, steps, n_z, n_x, n_u, n_quantiles;
  size_t first;       /* step of the sequences that entry 0 belongs to: 0, or the number of observed steps */
  uint32_t *length;   /* [count] valid steps, NULL when all are `steps` long */
  float *z;           /* [count][samples][steps][n_z] */
  float *z_mean;      /* [count][steps][n_z] over the samples */
  float *z_std;       /* the same, their standard deviation */
  float *x;           /* [count][steps][n_x] mean */
  float *x_std;       /* [count][steps][n_x] */
  float *x_quantiles; /* [n_quantiles][count][steps][n_x], NULL when there are none */
  float *x_samples;   /* [count][samples][steps][n_x], NULL unless asked for */
  float *u;           /* [count][steps][n_u] controls that were used, NULL when n_u = 0 */
  double *quantiles;  /* [n_quantiles] */
} dvbf_estimates;

/* The table of `settings` says what is done.
 *   "filter"   z_t given x_1 .. x_t, but that the initial network sees its first frames at once. A dkf is
 *              refused.
 *   "smooth"   z_t given all frames, by a particle smoother; the paths of z are joint samples.
 *   "predict"  z and x of the steps after those that are observed.
 *   "sample"   the same with one sample for each of `count` paths, which begin with the sequences in turn or,
 *              where `sequences` is NULL, with the prior. */
DVBF_API dvbf_status dvbf_estimate(dvbf_estimates **out, const dvbf_model *model,
                                   const dvbf_sequences *sequences, const dvbf_settings *settings,
                                   dvbf_error *error);
DVBF_API void dvbf_estimates_free(dvbf_estimates *estimates);

/* Root mean square of (x - truth) over all sequences and steps where the truth is known: of everything, of
 * each column, and of all columns together at each step of the estimates. NaN where nothing is known. */
DVBF_API dvbf_status dvbf_estimates_rmse(double *all, double *by_column /* [n_x] */,
                                         double *by_step /* [steps] */, const dvbf_estimates *estimates,
                                         const dvbf_sequences *truth, dvbf_error *error);

/* ---- Online filter --------------------------------------------------------------------------------------
 */

/* Follows one system in real time: a step takes one observation and gives the belief about z. It lives in
 * memory of the caller and afterwards neither allocates nor locks, and the same inputs give the same beliefs,
 * bit for bit. A dkf is refused: its q(z_t) needs the frames after t. Universal parameters are at their mean;
 * each sample of z has its own innovations.
 *
 *   size_t size;
 *   dvbf_filter_memsize(&size, model, 16, &error);
 *   void *memory = aligned_alloc(64, size);
 *   dvbf_filter_init(&filter, memory, size, model, 16, 1, &error);
 *   for (;;) { ... dvbf_filter_step(filter, x, u, &belief); ... }
 */
typedef struct dvbf_filter dvbf_filter;

typedef struct dvbf_belief {
  bool ready; /* false until the initial network has seen its frames; then the rest is valid */
  size_t samples, n_z;
  const float *mean;      /* [n_z] over the samples */
  const float *deviation; /* [n_z] standard deviation over the samples */
  const float *z;         /* [samples][n_z] */
} dvbf_belief;

/* Bytes that a filter with that many samples of z needs, a multiple of 64. */
DVBF_API dvbf_status dvbf_filter_memsize(size_t *out, const dvbf_model *model, size_t samples,
                                         dvbf_error *error);
/* Makes a filter in memory[size], which must be aligned to 64 bytes and, like the model, outlive it. Nothing
 * to free. */
DVBF_API dvbf_status dvbf_filter_init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model,
                                      size_t samples, uint64_t seed, dvbf_error *error);
/* x [n_x] is the new observation, NULL if it is missing, NaN where a value of it is; u [n_u] is the control
 * since the step before (ignored in the first step; NULL when n_u = 0). The belief's arrays stay valid until
 * the next step. */
DVBF_API void dvbf_filter_step(dvbf_filter *filter, const float *x, const float *u, dvbf_belief *belief);
/* Forgets all observations: the next step is a first one. */
DVBF_API void dvbf_filter_reset(dvbf_filter *filter);

/* ---- Pictures -------------------------------------------------------------------------------------------
 */

typedef struct dvbf_picture {
  const char *title;
  /* Strips of images, one row each for truth, reconstruction and prediction. */
  size_t frames, height, width;
  const float *truth, *reconstruction, *prediction; /* [frames][height][width] */
  size_t observed;                                  /* frames the prediction has seen */
  size_t training_steps;                            /* a bar marks the length of the training sequences */
  /* Latent samples and what to colour them by. */
  size_t points, n_z;
  const float *z;        /* [points][n_z] */
  const float *angle;    /* [points] in radians, cyclic colours */
  const float *velocity; /* [points] */
  const char *angle_label, *velocity_label;
  /* Prediction error by horizon. */
  size_t horizon;
  const double *mse, *mse_mean_path, *mse_repeat; /* [horizon] relative to the pixel variance */
} dvbf_picture;

DVBF_API dvbf_status dvbf_draw(const dvbf_picture *picture, const char *png_path, dvbf_error *error);

#ifdef __cplusplus
}
#endif
#endif
