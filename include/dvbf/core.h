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
 * untouched on failure, and writes one sentence into `error` (which may be NULL). What a function creates,
 * its first argument receives and the caller frees with the matching dvbf_..._free, which accepts NULL. The
 * library never prints, exits or aborts. Pointers must not be NULL unless it is said that they may be. Arrays
 * are C-ordered; their shape stands beside them.
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
/* The version of the library that is linked, which need not be that of the header. */
DVBF_API const char *dvbf_version(void);

/* What the library can do here. */
typedef struct dvbf_abilities {
  const char *version;
  const char *instructions; /* set that its kernels use: "base", "v3" or "v4" of x86-64 */
  bool tiles;               /* products = bfloat16 and bfloat16x3 work (AMX) */
  unsigned cores;           /* of this process: the threads that `threads = 0` stands for */
} dvbf_abilities;
DVBF_API dvbf_abilities dvbf_describe(void);

/* ---- Failures -------------------------------------------------------------------------------------------
 */

typedef enum dvbf_status {
  DVBF_OK = 0,
  DVBF_ARGUMENT, /* a setting or argument is wrong: the caller can mend it */
  DVBF_FORMAT,   /* a file's content is malformed or does not fit */
  DVBF_IO,       /* the system refused to read or write */
  DVBF_MEMORY,   /* out of memory */
  DVBF_NUMERIC,  /* training diverged and could not be saved */
  DVBF_STOPPED   /* the caller's flag has ended it (dvbf_settings_interrupt) */
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
  const char *users;   /* the models, or the density, that it is for, as "a, b"; NULL: for all */
  bool common;         /* what most people need */
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
/* Worker threads that the setting `threads` stands for: where it is 0 or missing, the cores of the process.
 */
DVBF_API unsigned dvbf_settings_threads(const dvbf_settings *settings);
/* Work that is done with these settings ends soon after *flag has become other than 0, which a signal handler
 * or another thread may do: training as if its callback had stopped it, with the best model so far; all else,
 * and training before there is a model, with DVBF_STOPPED. NULL: it goes on to its end. The flag is the
 * caller's; copies of the settings have none.
 */
DVBF_API void dvbf_settings_interrupt(dvbf_settings *settings, const volatile int *flag);
/* Applies a named preset on top of the current values. Besides "train" it may have values for the table of
 * its system. */
DVBF_API dvbf_status dvbf_settings_preset(dvbf_settings *settings, const char *preset, dvbf_error *error);
/* Applies a file of `name = value` lines (# starts a comment) on top of the current values. */
DVBF_API dvbf_status dvbf_settings_read(dvbf_settings *settings, const char *path, dvbf_error *error);
/* Refuses settings of the table "train" that the chosen model does not use. Those count that were set one by
 * one or by a file of few lines: a preset and the file of a run have all settings. Training asks this too. */
DVBF_API dvbf_status dvbf_settings_check(const dvbf_settings *settings, dvbf_error *error);
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

/* Makes a folder and those above it, and proves by a file that it can be written, before the work is done. */
DVBF_API dvbf_status dvbf_folder_make(const char *path, dvbf_error *error);

/* ---- Ranks ----------------------------------------------------------------------------------------------
 * Processes that mpirun has started and that train one model together: each has read the same data and calls
 * the same functions. The model has the same bytes for any number of ranks and threads. NULL is one rank
 * alone. */

typedef struct dvbf_ranks dvbf_ranks;

/* What the launcher of this process says: its number, and how many there are; 0 and 1 where there is none. */
DVBF_API void dvbf_ranks_told(int *rank, int *count);
/* Joins the other ranks, over MPI, which a plug-in knows (libdvbf-mpi.so). Gives NULL where the launcher has
 * started one process only, or where there is no launcher. */
DVBF_API dvbf_status dvbf_ranks_join(dvbf_ranks **out, dvbf_error *error);
DVBF_API unsigned dvbf_ranks_number(const dvbf_ranks *ranks);
DVBF_API unsigned dvbf_ranks_count(const dvbf_ranks *ranks);
/* The largest of the values that the ranks give; all must call it. */
DVBF_API int dvbf_ranks_largest(dvbf_ranks *ranks, int value);
/* Reading data and training with these settings is shared by the ranks, which must outlive it; copies of the
 * settings have none. Rank 0 alone writes the run folder and decides what depends on the clock. A rank that
 * fails returns as usual; the others wait for it until it calls dvbf_ranks_free. */
DVBF_API void dvbf_settings_ranks(dvbf_settings *settings, dvbf_ranks *ranks);
/* When *flag has become other than 0, as a signal handler may do, this rank waits for others no longer than
 * ten seconds at a time: whoever has sent the signal may have ended them. NULL: none. */
DVBF_API void dvbf_ranks_hurry(dvbf_ranks *ranks, const volatile int *flag);
/* Comes to the end with the status that the process is to exit with, and waits for the others, after a
 * failure no more than two seconds. Returns false where a rank with a lower number has failed too: it is the
 * one to say so. */
DVBF_API bool dvbf_ranks_meet(dvbf_ranks *ranks, int exit_status);
/* Leaves, after dvbf_ranks_meet. Where this rank has failed and others are still at work, it ends them all
 * with this status, and does not return. */
DVBF_API void dvbf_ranks_free(dvbf_ranks *ranks, int exit_status);

/* ---- Sequences ------------------------------------------------------------------------------------------
 */

/* Reads x piece by piece from a file that is larger than memory. */
typedef struct dvbf_source dvbf_source;

/* Where a sequence was in the data that it is a part of, and when it begins. */
typedef struct dvbf_origin {
  uint64_t sequence; /* number of the sequence in its file or split, counted from 0 */
  uint64_t step;     /* of that sequence, at which this one begins */
  double time;       /* of the first step, in seconds; 0 where dvbf_data.sample_time is */
  char name[32];     /* of the sequence in its file, "" where it has none */
} dvbf_origin;

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
  dvbf_origin *origin; /* [count], NULL: sequence i is number i of its file, from its first step */
  unsigned borrowed;   /* arrays that are the caller's, so that nobody frees them: DVBF_BORROWED_... */
} dvbf_sequences;
enum { DVBF_BORROWED_X = 1, DVBF_BORROWED_U = 2, DVBF_BORROWED_STATE = 4 };

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

/* What an array or a column of a file was taken for, or why it was left unused. */
typedef struct dvbf_use {
  char name[64];
  char role[128]; /* as "time", or "not used: it holds text" */
} dvbf_use;

/* The splits may share arrays. */
typedef struct dvbf_data {
  dvbf_sequences train, valid, test;
  size_t image_height, image_width; /* 0 when x is not an image */
  size_t image_channels;            /* 3 in colour: x is [height][width][3]; 0 or 1: grey */
  char (*state_names)[32];          /* [n_s], NULL when n_s = 0 */
  char (*x_names)[32];              /* [n_x], NULL where the file names no columns; the same of u */
  char (*u_names)[32];              /* [n_u] */
  char (*x_units)[16];              /* [n_x] as "mm", "" where unknown; NULL: no unit is known; of u too */
  char (*u_units)[16];              /* [n_u] */
  double sample_time;               /* seconds from step to step, 0: unknown */
  bool dates;                       /* times count from 1970-01-01 00:00 UTC, not from a beginning */
  char (*notes)[256];               /* [n_notes] what reading has changed, a sentence each */
  size_t n_notes;
  dvbf_use *uses; /* [n_uses] what each array or column of the file was taken for */
  size_t n_uses;
  char question[256]; /* what must be answered before training, as which columns are inputs; "": nothing */
} dvbf_data;

DVBF_API void dvbf_data_free(dvbf_data *data);
/* Names a column of "x", "u" or "state", counted from 0; a name has at most 31 bytes. Columns that nobody has
 * named are called x0, x1, ... */
DVBF_API dvbf_status dvbf_data_name(dvbf_data *data, const char *array, size_t column, const char *name,
                                    dvbf_error *error);

/* The split that the setting `split` names; the data's own. "all" stands for the whole of data that were not
 * split. One that is empty is refused. */
DVBF_API dvbf_status dvbf_data_split(const dvbf_sequences **out, const dvbf_data *data,
                                     const dvbf_settings *settings, dvbf_error *error);

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

/* Tells, in a sentence each, what is odd about the data and what that means for training: what reading has
 * changed, columns of x and u that are constant, have the same values as another, are in an unusual unit or
 * lose digits in 32 bits, outliers, and too few steps. Pictures may have constant pixels. */
typedef void dvbf_remark_fn(const char *sentence, void *user_data);
DVBF_API dvbf_status dvbf_data_remarks(const dvbf_data *data, dvbf_remark_fn *each, void *user_data,
                                       dvbf_error *error);

/* ---- Models ---------------------------------------------------------------------------------------------
 */

typedef struct dvbf_model dvbf_model;

DVBF_API dvbf_status dvbf_model_load(dvbf_model **out, const char *path, dvbf_error *error);
/* Writes safetensors, atomically. Refuses a model that holds a value that is not finite. */
DVBF_API dvbf_status dvbf_model_save(const dvbf_model *model, const char *path, dvbf_error *error);
DVBF_API void dvbf_model_free(dvbf_model *model);
/* The same with the bytes of such a file in memory. Free *bytes with dvbf_bytes_free. */
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
  size_t frames;    /* that must be seen before every member can filter and predict */
  bool feedthrough; /* the online filter takes x and u of the same row (dvbf_filter_step) */
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
/* Copies the values of the parameter of that name into out [size], where size is its rows times columns. */
DVBF_API dvbf_status dvbf_model_weights(const dvbf_model *model, const char *name, float *out, size_t size,
                                        dvbf_error *error);
/* Member `index` of a committee, the model's own; 0 is the model itself, the best one. NULL past the last. */
DVBF_API const dvbf_model *dvbf_model_member(const dvbf_model *model, size_t index);
/* The best linear model of the same data, the model's own; NULL where it knows none. */
DVBF_API const dvbf_model *dvbf_model_linear(const dvbf_model *model);
/* Its settings, of the table "train"; the model's own. */
DVBF_API const dvbf_settings *dvbf_model_settings(const dvbf_model *model);

/* ---- Inference ------------------------------------------------------------------------------------------
 */

/* Samples of z and x for each sequence, and what they say. Of a committee, every member draws as many
 * samples: x, x_std and x_quantiles are over those of all, x_samples are taken from the members in turn, and
 * z is that of the best member. */
typedef struct dvbf_estimates {
  size_t count, samples, steps, n_z, n_x, n_u, n_quantiles;
  size_t first;       /* step of the sequences that entry 0 belongs to: 0, or the number of observed steps */
  uint32_t *begin;    /* [count] the same for each sequence, NULL: it is `first` for all */
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
 *   "filter"   z_t given x_1 .. x_t, but that the initial network sees its first frames at once. Refused
 *              where q(z_t) needs frames after t.
 *   "smooth"   z_t given all frames, by a particle smoother; the paths of z are joint samples.
 *   "predict"  z and x of the steps after those that are observed.
 *   "sample"   the same with one sample for each of `count` paths, which begin with the sequences in turn or,
 *              where `sequences` is NULL, with the prior. */
DVBF_API dvbf_status dvbf_estimate(dvbf_estimates **out, const dvbf_model *model,
                                   const dvbf_sequences *sequences, const dvbf_settings *settings,
                                   dvbf_error *error);
/* The same; where particles take long, `tell` is called about ten times a second with the share that is done,
 * on the thread of the caller. */
typedef void dvbf_share_fn(double done, void *user_data);
DVBF_API dvbf_status dvbf_estimate_with(dvbf_estimates **out, const dvbf_model *model,
                                        const dvbf_sequences *sequences, const dvbf_settings *settings,
                                        dvbf_share_fn *tell, void *user_data, dvbf_error *error);
DVBF_API void dvbf_estimates_free(dvbf_estimates *estimates);

/* Step of its sequence that the first entry of estimate i belongs to. */
static inline size_t dvbf_estimates_begin(const dvbf_estimates *estimates, size_t i) {
  return estimates->begin ? estimates->begin[i] : estimates->first;
}

/* The same into arrays of the caller. First the sizes, without any arrays: */
DVBF_API dvbf_status dvbf_estimates_sizes(dvbf_estimates *out, const dvbf_model *model,
                                          const dvbf_sequences *sequences, const dvbf_settings *settings,
                                          dvbf_error *error);
/* Then the work: those of the arrays of *out are filled that are not NULL, `begin` and `length` too where all
 * are equal, and x_samples with the setting `x-samples` alone. After a failure they hold anything. Nothing of
 * *out is to be freed by the library. */
DVBF_API dvbf_status dvbf_estimate_into(dvbf_estimates *out, const dvbf_model *model,
                                        const dvbf_sequences *sequences, const dvbf_settings *settings,
                                        dvbf_error *error);

/* Root mean square of (x - truth) over all sequences and steps where the truth is known: of everything, of
 * each column, and of all columns together at each step of the estimates. NaN where nothing is known. */
DVBF_API dvbf_status dvbf_estimates_rmse(double *all, double *by_column /* [n_x] */,
                                         double *by_step /* [steps] */, const dvbf_estimates *estimates,
                                         const dvbf_sequences *truth, dvbf_error *error);

/* ---- Derivatives ----------------------------------------------------------------------------------------
 */

/* A model without noise, z' = f(z, u) and the mean x = h(z), with its derivatives at a point, for planning
 * and for filters of one's own:
 *
 *   f(z + dz, u + du) ~ next + A dz + B du        h(z + dz) ~ x + H dz
 *
 * u and x are in units of the data; universal parameters are at their mean. */
typedef struct dvbf_linear dvbf_linear;

typedef struct dvbf_jacobians {
  size_t n_z, n_u, n_x;
  const float *next; /* [n_z] */
  const float *a;    /* [n_z][n_z] */
  const float *b;    /* [n_z][n_u] */
  const float *x;    /* [n_x] */
  const float *h;    /* [n_x][n_z] */
  const float *d;    /* [n_x][n_u], 0 without feedthrough */
} dvbf_jacobians;

/* Refuses a model in which nothing moves z from step to step. The model must outlive it. */
DVBF_API dvbf_status dvbf_linear_new(dvbf_linear **out, const dvbf_model *model, dvbf_error *error);
DVBF_API void dvbf_linear_free(dvbf_linear *linear);
/* At z [n_z] and u [n_u], NULL where n_u = 0. Allocates nothing; the arrays stay valid until the next call.
 */
DVBF_API void dvbf_linear_at(dvbf_linear *linear, const float *z, const float *u, dvbf_jacobians *out);

/* ---- Online filter --------------------------------------------------------------------------------------
 */

/* Follows one system in real time: a step takes one observation and gives the belief about z. It lives in
 * memory of the caller and afterwards neither allocates nor locks, and the same inputs give the same beliefs,
 * bit for bit. A model whose q(z_t) needs frames after t is refused. Universal parameters are at their mean;
 * each sample of z has its own innovations. The members of a committee run side by side; the belief is that
 * of the best one, predictions are pooled. The program at the top of this header has one. */
typedef struct dvbf_filter dvbf_filter;

typedef struct dvbf_belief {
  bool ready; /* false until the initial networks have seen their frames; then the rest is valid */
  size_t samples, n_z;
  const float *mean;      /* [n_z] over the samples */
  const float *deviation; /* [n_z] standard deviation over the samples */
  const float *z;         /* [samples][n_z] */
} dvbf_belief;

/* Bytes that a filter with that many samples of z, of each member, needs: a multiple of 64. */
DVBF_API dvbf_status dvbf_filter_memsize(size_t *out, const dvbf_model *model, size_t samples,
                                         dvbf_error *error);
/* Makes a filter in memory[size], which must be aligned to 64 bytes and, like the model, outlive it. Nothing
 * to free. */
DVBF_API dvbf_status dvbf_filter_init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model,
                                      size_t samples, uint64_t seed, dvbf_error *error);
/* x [n_x] is the new observation, NULL if it is missing, NaN where a value of it is; u [n_u] is the control
 * since the step before (ignored in the first step; NULL when n_u = 0). A model with feedthrough, whose x_t
 * depends on u_t, takes the control that acts from this step on: x and u of the same row of the data; so does
 * a committee with such a member. The belief's arrays stay valid until the next step. */
DVBF_API void dvbf_filter_step(dvbf_filter *filter, const float *x, const float *u, dvbf_belief *belief);
/* Forgets all observations: the next step is a first one. */
DVBF_API void dvbf_filter_reset(dvbf_filter *filter);
/* From now on every innovation w is at its mean (quiet), or drawn. A quiet filter needs one sample. */
DVBF_API void dvbf_filter_quiet(dvbf_filter *filter, bool quiet);

/* A question about the steps ahead, and where the answers go. What is NULL is not wanted. */
typedef struct dvbf_ahead {
  size_t steps;   /* to predict */
  const float *u; /* [steps][n_u] the controls, as dvbf_filter_step would take them; NULL when n_u = 0 */
  size_t n_quantiles;
  const double *quantiles; /* [n_quantiles] each in (0, 1) */
  bool noise_free;         /* deviations and quantiles are of the mean of x, without the noise of x itself */
  float *x;                /* [steps][n_x] mean */
  float *x_std;            /* [steps][n_x] */
  float *x_quantiles;      /* [n_quantiles][steps][n_x] */
  float *z_mean, *z_std;   /* [steps][n_z] of the best member */
} dvbf_ahead;

/* Predicts from the belief of the last step, which stays as it is. The same belief gives the same
 * predictions; means and quantiles are over the samples of all members, or exact where a single model knows
 * them. Allocates nothing. Refused before a belief is ready. */
DVBF_API dvbf_status dvbf_filter_predict(dvbf_filter *filter, const dvbf_ahead *ask, dvbf_error *error);

#ifdef __cplusplus
}
#endif
#endif
