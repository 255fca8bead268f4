/* dvbf's core: load a model, then filter, smooth and predict with it. It needs libm, POSIX threads and
 * jansson.
 *
 * A complete program:
 *
 *   #include <dvbf/core.h>
 *   #include <stdio.h>
 *   #include <stdlib.h>
 *
 *   int main(void) {
 *     dvbf_error error;
 *     dvbf_model *model = NULL;
 *     dvbf_filter *filter;
 *     dvbf_belief belief;
 *     void *memory = NULL;
 *     size_t size;
 *     float x[2]; // of a model of two columns without controls
 *     int failed = dvbf_model_load(&model, "model.safetensors", &error) ||
 *                  dvbf_filter_memsize(&size, model, 16, &error) ||
 *                  dvbf_filter_init(&filter, memory = aligned_alloc(64, size), size, model, 16, 1, &error);
 *     while (!failed && scanf("%f %f", &x[0], &x[1]) == 2) {
 *       dvbf_filter_step(filter, x, NULL, &belief);
 *       if (belief.ready) printf("%g\n", belief.mean[0]);
 *     }
 *     if (failed) fprintf(stderr, "%s\n", error.message);
 *     free(memory);
 *     dvbf_model_free(model);
 *     return failed;
 *   }
 *
 * Conventions. Every function that can fail returns a dvbf_status (0 is success), leaves its outputs
 * untouched on failure, and writes one sentence into `error` (which may be NULL). A function that creates an
 * object returns it through its first argument; the caller frees it with the matching dvbf_..._free, which
 * accepts NULL. The library never prints, exits or aborts. Pointers must not be NULL unless the comment
 * allows it. Arrays are C-ordered; comments give their shape.
 */
#ifndef DVBF_CORE_H
#define DVBF_CORE_H

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
/* Version of the linked library; DVBF_VERSION is the version of the header. */
DVBF_API const char *dvbf_version(void);

/* What the library can do here. */
typedef struct dvbf_capabilities {
  const char *version;
  const char *instructions; /* instruction set of the kernels: "base", "v3" or "v4" of x86-64 */
  bool tiles;               /* products = bfloat16 and bfloat16x3 work (AMX) */
  unsigned cores;           /* available to this process: the number of threads for `threads = 0` */
} dvbf_capabilities;
DVBF_API dvbf_capabilities dvbf_get_capabilities(void);

/* ---- Failures -------------------------------------------------------------------------------------------
 */

typedef enum dvbf_status {
  DVBF_OK = 0,
  DVBF_ARGUMENT, /* a setting or argument is wrong: the caller can correct it */
  DVBF_FORMAT,   /* a file's content is malformed or does not fit */
  DVBF_IO,       /* the system refused to read or write */
  DVBF_MEMORY,   /* out of memory */
  DVBF_NUMERIC,  /* training diverged and could not be saved */
  DVBF_STOPPED   /* interrupted by the caller's flag (dvbf_settings_interrupt) */
} dvbf_status;

typedef struct dvbf_error {
  dvbf_status status;
  char message[512]; /* one sentence: what, where, and the remedy */
} dvbf_error;

/* ---- Settings -------------------------------------------------------------------------------------------
 */

/* Named values of one table: "train", "data", "evaluate", and one table for each simulated system (see
 * dvbf_settings_table). */
typedef struct dvbf_settings dvbf_settings;

typedef struct dvbf_setting_info {
  const char *name;    /* as in --name */
  const char *group;   /* heading under which help lists it */
  const char *kind;    /* "int", "real", "choice", "switch" or "text" */
  const char *range;   /* "[1, 1024]", "a | b | c", "on | off" or "" */
  const char *initial; /* the default, as text */
  const char *help;    /* one line */
  const char *users;   /* models or density that use it, as "a, b"; NULL: all */
  bool common;         /* shown in the short help */
  bool recipe;         /* for presets and configuration files: help does not show it */
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
/* Copies every value that both tables have, except those about how to run (threads, memory). */
DVBF_API dvbf_status dvbf_settings_inherit(dvbf_settings *settings, const dvbf_settings *from,
                                           dvbf_error *error);
/* Number of worker threads: the setting `threads`, or the cores of the process if it is 0 or missing. */
DVBF_API unsigned dvbf_settings_threads(const dvbf_settings *settings);
/* Interrupts work that uses these settings soon after *flag becomes nonzero; a signal handler or another
 * thread may set it. Training then returns the best model so far, as if its callback had stopped it.
 * Everything else, and training before there is a model, returns DVBF_STOPPED. NULL: no flag. The caller
 * keeps the flag; copies of the settings do not inherit it. */
DVBF_API void dvbf_settings_interrupt(dvbf_settings *settings, const volatile int *flag);
/* Applies a named preset on top of the current values. A preset has values for "train" and may have some for
 * the table of its system. */
DVBF_API dvbf_status dvbf_settings_preset(dvbf_settings *settings, const char *preset, dvbf_error *error);
/* Applies a file of `name = value` lines (# starts a comment) on top of the current values. */
DVBF_API dvbf_status dvbf_settings_read(dvbf_settings *settings, const char *path, dvbf_error *error);
/* Refuses settings of the table "train" that the chosen model does not use. Only settings that were set one
 * by one or by a short file count: presets and the file of a run contain all settings. Training checks this
 * too. */
DVBF_API dvbf_status dvbf_settings_check(const dvbf_settings *settings, dvbf_error *error);
/* Writes such a file, atomically. */
DVBF_API dvbf_status dvbf_settings_write(const dvbf_settings *settings, const char *path, dvbf_error *error);
/* Fills *info for entry `index` of a table; returns false past its end or for an unknown table. */
DVBF_API bool dvbf_settings_table(const char *table, size_t index, dvbf_setting_info *info);
/* Name of preset `index` and a one-line description; NULL past the end. */
DVBF_API const char *dvbf_preset_name(size_t index, const char **help);
/* Name of the system that a preset is for; NULL if there is no such preset. */
DVBF_API const char *dvbf_preset_system(const char *preset);

/* Number of letters to insert, delete, change or swap to turn one name into the other; for "did you mean". */
DVBF_API size_t dvbf_name_distance(const char *a, const char *b);

/* Creates a folder and its parents, and checks that files can be written there, before any work is done. */
DVBF_API dvbf_status dvbf_folder_make(const char *path, dvbf_error *error);

/* ---- Ranks ----------------------------------------------------------------------------------------------
 * Processes started by mpirun that train one model together: each reads the same data and calls the same
 * functions. The model file is identical for any number of ranks and threads. NULL stands for a single rank.
 */

typedef struct dvbf_ranks dvbf_ranks;

/* Rank and number of ranks as set by the launcher of this process; 0 and 1 without a launcher. */
DVBF_API void dvbf_ranks_from_launcher(int *rank, int *count);
/* Joins the other ranks over MPI, through the plug-in libdvbf-mpi.so. Gives NULL if the launcher started
 * only one process, or if there is no launcher. */
DVBF_API dvbf_status dvbf_ranks_join(dvbf_ranks **out, dvbf_error *error);
DVBF_API unsigned dvbf_ranks_number(const dvbf_ranks *ranks);
DVBF_API unsigned dvbf_ranks_count(const dvbf_ranks *ranks);
/* The largest of the values given by all ranks; every rank must call it. */
DVBF_API int dvbf_ranks_largest(dvbf_ranks *ranks, int value);
/* Shares reading and training with these settings between the ranks, which must outlive the settings; copies
 * of the settings do not inherit them. Only rank 0 writes the run folder and decides what depends on the
 * clock. A rank that fails returns as usual; the others wait until it calls dvbf_ranks_free. */
DVBF_API void dvbf_settings_ranks(dvbf_settings *settings, dvbf_ranks *ranks);
/* After *flag becomes nonzero, which a signal handler may do, waits for other ranks time out after ten
 * seconds, since they may have been killed too. NULL: no flag. */
DVBF_API void dvbf_ranks_set_interrupt(dvbf_ranks *ranks, const volatile int *flag);
/* Announces the status that this process will exit with and waits for the others, after a failure for at
 * most two seconds. Returns false if a rank with a lower number has failed too: that rank reports the
 * failure. */
DVBF_API bool dvbf_ranks_finish(dvbf_ranks *ranks, int exit_status);
/* Leaves, after dvbf_ranks_finish. If this rank has failed while others are still working, it ends all of
 * them with this status and does not return. */
DVBF_API void dvbf_ranks_free(dvbf_ranks *ranks, int exit_status);

/* ---- Sequences ------------------------------------------------------------------------------------------
 */

/* Reads x piece by piece from a file that is larger than memory. */
typedef struct dvbf_source dvbf_source;
/* What is known about sequences. */
typedef struct dvbf_facts dvbf_facts;

/* Origin of a sequence: its place in the data that it was taken from. */
typedef struct dvbf_origin {
  uint64_t sequence; /* number of the sequence in its file or split, counted from 0 */
  uint64_t step;     /* of that sequence at which this one begins */
  double time;       /* of the first step, in seconds; 0 if dvbf_data.sample_time is 0 */
  char name[32];     /* of the sequence in its file; "" if it has none */
} dvbf_origin;

/* Sequences, each a run of frames in common arrays. u[t] acts between x[t] and x[t+1]. */
typedef struct dvbf_sequences {
  size_t count, steps; /* number of sequences, and steps of the longest */
  size_t n_x, n_u, n_s;
  float *x;            /* [frames][n_x], NULL if `source` reads it */
  float *u;            /* [frames][n_u], NULL when n_u = 0 */
  float *state;        /* [frames][n_s] ground truth, NULL when n_s = 0 */
  uint64_t *start;     /* [count] first frame of each sequence, NULL: sequence i begins at i * steps */
  uint32_t *length;    /* [count] steps of each sequence, NULL if all are `steps` long */
  bool gaps;           /* NaN in x or state marks a missing value; without gaps NaN is refused */
  dvbf_source *source; /* NULL: x is in memory */
  dvbf_origin *origin; /* [count], NULL: sequence i is number i of its file, from its first step */
  dvbf_facts *facts;   /* what is known about the arrays, so that it is found once; NULL: nothing is kept */
  unsigned borrowed;   /* arrays owned by the caller, which are not freed: DVBF_BORROWED_... */
} dvbf_sequences;
enum { DVBF_BORROWED_X = 1, DVBF_BORROWED_U = 2, DVBF_BORROWED_STATE = 4 };

/* Steps of one sequence. */
static inline size_t dvbf_sequence_length(const dvbf_sequences *s, size_t sequence) {
  return s->length ? s->length[sequence] : s->steps;
}

/* First frame of one sequence in the arrays. */
static inline size_t dvbf_sequence_start(const dvbf_sequences *s, size_t sequence) {
  return s->start ? (size_t)s->start[sequence] : sequence * s->steps;
}

/* Copies sequences first .. first + count - 1 into memory, [count][steps], padded with zeros. */
DVBF_API dvbf_status dvbf_sequences_copy(dvbf_sequences *out, const dvbf_sequences *from, size_t first,
                                         size_t count, dvbf_error *error);
DVBF_API void dvbf_sequences_free(dvbf_sequences *sequences);

/* How an array or a column of a file is used, or why it is not used. */
typedef struct dvbf_use {
  char name[64];
  char role[128]; /* for example "time", or "not used: it holds text" */
} dvbf_use;

/* The splits may share arrays. */
typedef struct dvbf_data {
  dvbf_sequences train, valid, test;
  size_t image_height, image_width; /* 0 when x is not an image */
  size_t image_channels;            /* 3 in colour: x is [height][width][3]; 0 or 1: grey */
  char (*state_names)[32];          /* [n_s], NULL when n_s = 0 */
  char (*x_names)[32];              /* [n_x], NULL if the file names no columns; so is u_names */
  char (*u_names)[32];              /* [n_u] */
  char (*x_units)[16];              /* [n_x] for example "mm", "" if unknown; NULL: no unit is known */
  char (*u_units)[16];              /* [n_u] */
  double sample_time;               /* seconds from step to step, 0: unknown */
  bool dates;         /* times count from 1970-01-01 00:00 UTC, not from the start of the recording */
  char (*notes)[256]; /* [n_notes] changes made while reading, one sentence each */
  size_t n_notes;
  dvbf_use *uses; /* [n_uses] use of each array or column of the file */
  size_t n_uses;
  char question[256]; /* to be answered before training, such as which columns are inputs; "": none */
} dvbf_data;

DVBF_API void dvbf_data_free(dvbf_data *data);
/* Names a column of "x", "u" or "state", counted from 0, with at most 31 bytes. Unnamed columns are called
 * x0, x1, ... */
DVBF_API dvbf_status dvbf_data_name(dvbf_data *data, const char *array, size_t column, const char *name,
                                    dvbf_error *error);

/* The split named by the setting `split`; owned by the data. "all" means all data if they were not split. An
 * empty split is refused. */
DVBF_API dvbf_status dvbf_data_split(const dvbf_sequences **out, const dvbf_data *data,
                                     const dvbf_settings *settings, dvbf_error *error);

/* Statistics of one column, or of several together, over the values that are not missing. */
typedef struct dvbf_column {
  uint64_t seen;                     /* values */
  double low, high, mean, deviation; /* NaN without any value */
} dvbf_column;

/* Statistics of an array of sequences. */
typedef struct dvbf_columns {
  size_t width;
  dvbf_column all;     /* over all columns; complete with width * frames values */
  dvbf_column *column; /* [width] */
  bool whole;          /* each step is either complete or missing as a whole */
  bool binary;         /* every value is 0 or 1 */
} dvbf_columns;

typedef struct dvbf_sequences_info {
  uint64_t frames;          /* steps of all sequences */
  size_t shortest, longest; /* steps of a sequence */
  double median;            /* of the steps of a sequence */
  dvbf_columns x, u, state;
} dvbf_sequences_info;

/* Reads every value once, from the file if x is read piece by piece. */
DVBF_API dvbf_status dvbf_sequences_describe(dvbf_sequences_info **out, const dvbf_sequences *sequences,
                                             dvbf_error *error);
DVBF_API void dvbf_sequences_info_free(dvbf_sequences_info *info);

/* Reports what is unusual about the data and what it means for training, one sentence each: changes made
 * while reading; columns of x and u that are constant, equal to another, in an unusual unit or too precise
 * for 32 bits; outliers; too few steps. Images may have constant pixels. */
typedef void dvbf_message_fn(const char *sentence, void *user_data);
DVBF_API dvbf_status dvbf_data_warnings(const dvbf_data *data, dvbf_message_fn *each, void *user_data,
                                        dvbf_error *error);

/* ---- Models ---------------------------------------------------------------------------------------------
 */

typedef struct dvbf_model dvbf_model;

DVBF_API dvbf_status dvbf_model_load(dvbf_model **out, const char *path, dvbf_error *error);
/* Writes safetensors, atomically. Refuses a model with a value that is not finite. */
DVBF_API dvbf_status dvbf_model_save(const dvbf_model *model, const char *path, dvbf_error *error);
DVBF_API void dvbf_model_free(dvbf_model *model);
/* The same for such a file in memory. Free *bytes with dvbf_bytes_free. */
DVBF_API dvbf_status dvbf_model_from_bytes(dvbf_model **out, const void *bytes, size_t size,
                                           dvbf_error *error);
DVBF_API dvbf_status dvbf_model_to_bytes(void **bytes, size_t *size, const dvbf_model *model,
                                         dvbf_error *error);
DVBF_API void dvbf_bytes_free(void *bytes);

typedef struct dvbf_model_info {
  size_t n_x, n_u, n_z, n_w; /* n_w is 0 in a model without innovations */
  size_t parameters;
  uint64_t updates, seed;
  double seconds;   /* of training; 0 for a loaded model */
  size_t members;   /* of a committee; 1: a single model */
  size_t frames;    /* to observe before every member can filter and predict */
  bool feedthrough; /* the online filter takes x and u of the same row (dvbf_filter_step) */
  /* The model sees (x - shift) * scale, and u likewise. Owned by the model. */
  const float *x_shift, *x_scale; /* [n_x] */
  const float *u_shift, *u_scale; /* [n_u] */
} dvbf_model_info;

DVBF_API dvbf_model_info dvbf_model_describe(const dvbf_model *model);

typedef struct dvbf_parameter_info {
  const char *name; /* owned by the model */
  size_t rows, columns;
  bool trained; /* false: it keeps its initial value and is not counted in dvbf_model_info.parameters */
} dvbf_parameter_info;

/* Fills *info for parameter `index`; returns false past the last one. */
DVBF_API bool dvbf_model_parameter(const dvbf_model *model, size_t index, dvbf_parameter_info *info);
/* Copies the values of the parameter of that name into out [size], where size is its rows times columns. */
DVBF_API dvbf_status dvbf_model_weights(const dvbf_model *model, const char *name, float *out, size_t size,
                                        dvbf_error *error);
/* Member `index` of a committee, owned by the model; 0 is the model itself, the best one. NULL past the
 * last. */
DVBF_API const dvbf_model *dvbf_model_member(const dvbf_model *model, size_t index);
/* The best linear model of the same data, owned by the model; NULL if there is none. */
DVBF_API const dvbf_model *dvbf_model_linear(const dvbf_model *model);
/* The model's settings, of the table "train"; owned by the model. */
DVBF_API const dvbf_settings *dvbf_model_settings(const dvbf_model *model);

/* ---- Inference ------------------------------------------------------------------------------------------
 */

/* Samples of z and x for each sequence, with their statistics. In a committee every member draws the same
 * number of samples: x, x_std and x_quantiles are computed from all of them, x_samples are taken from the
 * members in turn, and z is from the best member. */
typedef struct dvbf_estimates {
  size_t count, samples, steps, n_z, n_x, n_u, n_quantiles;
  size_t first;    /* step of the sequences that entry 0 corresponds to: 0, or the number of observed steps */
  uint32_t *begin; /* [count] the same for each sequence, NULL: `first` for all */
  uint32_t *length;   /* [count] valid steps, NULL if all are `steps` long */
  float *z;           /* [count][samples][steps][n_z] */
  float *z_mean;      /* [count][steps][n_z] over the samples */
  float *z_std;       /* the same, their standard deviation */
  float *x;           /* [count][steps][n_x] mean */
  float *x_std;       /* [count][steps][n_x] */
  float *x_quantiles; /* [n_quantiles][count][steps][n_x], NULL if there are none */
  float *x_samples;   /* [count][samples][steps][n_x], NULL unless asked for */
  float *u;           /* [count][steps][n_u] controls used, NULL if n_u = 0 */
  double *quantiles;  /* [n_quantiles] */
} dvbf_estimates;

/* The table of `settings` selects the task.
 *   "filter"   z_t given x_1 .. x_t, except that the initial network sees its frames at once. Refused if
 *              q(z_t) needs frames after t.
 *   "smooth"   z_t given all frames, by a particle smoother; the paths of z are joint samples.
 *   "predict"  z and x of the steps after the observed ones.
 *   "sample"   the same with one sample for each of `count` paths, which start from the sequences in turn or,
 *              if `sequences` is NULL, from the prior. */
DVBF_API dvbf_status dvbf_estimate(dvbf_estimates **out, const dvbf_model *model,
                                   const dvbf_sequences *sequences, const dvbf_settings *settings,
                                   dvbf_error *error);
/* The same; long runs of particles call `tell` about ten times a second with the fraction done, on the
 * thread of the caller. */
typedef void dvbf_fraction_fn(double done, void *user_data);
DVBF_API dvbf_status dvbf_estimate_with(dvbf_estimates **out, const dvbf_model *model,
                                        const dvbf_sequences *sequences, const dvbf_settings *settings,
                                        dvbf_fraction_fn *tell, void *user_data, dvbf_error *error);
DVBF_API void dvbf_estimates_free(dvbf_estimates *estimates);

/* Step of its sequence that the first entry of estimate i corresponds to. */
static inline size_t dvbf_estimates_begin(const dvbf_estimates *estimates, size_t i) {
  return estimates->begin ? estimates->begin[i] : estimates->first;
}

/* The same into arrays of the caller. First the sizes, without any arrays: */
DVBF_API dvbf_status dvbf_estimates_sizes(dvbf_estimates *out, const dvbf_model *model,
                                          const dvbf_sequences *sequences, const dvbf_settings *settings,
                                          dvbf_error *error);
/* Then the work: fills the arrays of *out that are not NULL, including `begin` and `length` if all are
 * equal; x_samples need the setting `x-samples`. After a failure their content is undefined. The library
 * frees nothing of *out. */
DVBF_API dvbf_status dvbf_estimate_into(dvbf_estimates *out, const dvbf_model *model,
                                        const dvbf_sequences *sequences, const dvbf_settings *settings,
                                        dvbf_error *error);

/* Root mean square of (x - truth) over all sequences and steps with a known truth: in total, for each
 * column, and over all columns at each step of the estimates. NaN if nothing is known. */
DVBF_API dvbf_status dvbf_estimates_rmse(double *all, double *by_column /* [n_x] */,
                                         double *by_step /* [steps] */, const dvbf_estimates *estimates,
                                         const dvbf_sequences *truth, dvbf_error *error);

/* ---- Derivatives ----------------------------------------------------------------------------------------
 */

/* A model without noise, z' = f(z, u) and the mean x = h(z), with its derivatives at a point, for planning
 * and for custom filters:
 *
 *   f(z + dz, u + du) ~ next + A dz + B du        h(z + dz) ~ x + H dz
 *
 * u and x are in units of the data; universal parameters are at their mean. */
typedef struct dvbf_jacobian dvbf_jacobian;

typedef struct dvbf_jacobians {
  size_t n_z, n_u, n_x;
  const float *next; /* [n_z] */
  const float *a;    /* [n_z][n_z] */
  const float *b;    /* [n_z][n_u] */
  const float *x;    /* [n_x] */
  const float *h;    /* [n_x][n_z] */
  const float *d;    /* [n_x][n_u], 0 without feedthrough */
} dvbf_jacobians;

/* Refuses a model without a transition. The model must outlive the result. */
DVBF_API dvbf_status dvbf_jacobian_new(dvbf_jacobian **out, const dvbf_model *model, dvbf_error *error);
DVBF_API void dvbf_jacobian_free(dvbf_jacobian *linear);
/* Derivatives at z [n_z] and u [n_u], NULL if n_u = 0. Allocates nothing; the arrays stay valid until the
 * next call. */
DVBF_API void dvbf_jacobian_at(dvbf_jacobian *linear, const float *z, const float *u, dvbf_jacobians *out);

/* ---- Online filter --------------------------------------------------------------------------------------
 */

/* Follows one system in real time: each step takes one observation and gives the belief about z. The filter
 * lives in memory of the caller and neither allocates nor locks after set-up; the same inputs give the same
 * beliefs, bit for bit. A model whose q(z_t) needs frames after t is refused. Universal parameters are at
 * their mean; each sample of z has its own innovations. The members of a committee run side by side; the
 * belief is from the best member, and predictions are pooled. See the program at the top of this header.
 */
typedef struct dvbf_filter dvbf_filter;

typedef struct dvbf_belief {
  bool ready; /* false until the initial networks have seen their frames; the rest is valid only if true */
  size_t samples, n_z;
  const float *mean;      /* [n_z] over the samples */
  const float *deviation; /* [n_z] standard deviation over the samples */
  const float *z;         /* [samples][n_z] */
} dvbf_belief;

/* Bytes needed by a filter with that many samples of z per member: a multiple of 64. */
DVBF_API dvbf_status dvbf_filter_memsize(size_t *out, const dvbf_model *model, size_t samples,
                                         dvbf_error *error);
/* Creates a filter in memory[size], which must be aligned to 64 bytes and, like the model, outlive it. There
 * is nothing to free. */
DVBF_API dvbf_status dvbf_filter_init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model,
                                      size_t samples, uint64_t seed, dvbf_error *error);
/* x [n_x] is the new observation, NULL if it is missing, NaN for single missing values; u [n_u] is the
 * control since the previous step (ignored in the first step; NULL if n_u = 0). A model with feedthrough,
 * whose x_t depends on u_t, takes the control that acts from this step on, that is, x and u of the same row
 * of the data; so does a committee with such a member. The belief's arrays stay valid until the next step. */
DVBF_API void dvbf_filter_step(dvbf_filter *filter, const float *x, const float *u, dvbf_belief *belief);
/* Forgets all observations: the next step is treated as the first. */
DVBF_API void dvbf_filter_reset(dvbf_filter *filter);
/* Sets whether every innovation w is at its mean (quiet) or drawn. A quiet filter needs one sample. */
DVBF_API void dvbf_filter_quiet(dvbf_filter *filter, bool quiet);

/* A request for predictions, with arrays for the results. Arrays that are NULL are not computed. */
typedef struct dvbf_forecast_request {
  size_t steps;   /* number to predict */
  const float *u; /* [steps][n_u] the controls, as dvbf_filter_step would take them; NULL when n_u = 0 */
  size_t n_quantiles;
  const double *quantiles; /* [n_quantiles] each in (0, 1) */
  bool noise_free;         /* deviations and quantiles of the mean of x, without its observation noise */
  float *x;                /* [steps][n_x] mean */
  float *x_std;            /* [steps][n_x] */
  float *x_quantiles;      /* [n_quantiles][steps][n_x] */
  float *z_mean, *z_std;   /* [steps][n_z] of the best member */
} dvbf_forecast_request;

/* Predicts from the belief of the last step, which does not change. The same belief gives the same
 * predictions; means and quantiles are over the samples of all members, or exact if a single model can
 * compute them. Allocates nothing. Refused before the belief is ready. */
DVBF_API dvbf_status dvbf_filter_predict(dvbf_filter *filter, const dvbf_forecast_request *ask,
                                         dvbf_error *error);

/* ---- Former names ---- */

/* They are removed in the next release. */
#define dvbf_abilities dvbf_capabilities
#define dvbf_describe dvbf_get_capabilities
#define dvbf_remark_fn dvbf_message_fn
#define dvbf_data_remarks dvbf_data_warnings
#define dvbf_share_fn dvbf_fraction_fn
#define dvbf_ahead dvbf_forecast_request
#define dvbf_ranks_told dvbf_ranks_from_launcher
#define dvbf_ranks_meet dvbf_ranks_finish
#define dvbf_ranks_hurry dvbf_ranks_set_interrupt
#define dvbf_settings_take dvbf_settings_inherit
#define dvbf_linear dvbf_jacobian
#define dvbf_linear_new dvbf_jacobian_new
#define dvbf_linear_free dvbf_jacobian_free
#define dvbf_linear_at dvbf_jacobian_at

#ifdef __cplusplus
}
#endif
#endif
