/* Estimating states: progress reports, requests made from settings, the ways to estimate, and reported
 * moments and quantiles of samples. */
#pragma once

#include "engine/threads.h"
#include "model/model.h"

#include <dvbf/core.h>

#include <pthread.h>

/* ---- Progress ---- */

/* Reports the progress of a long computation now and then, on the thread that began it. */

/* Units of work: of a step of the particle filter, and of a step back of the smoother, which takes longer. */
enum { DV_WATCH_FORTH = 1, DV_WATCH_BACK = 3 };

typedef struct dv_estimate_progress {
  dvbf_fraction_fn *tell;
  void *user;
  double first, part; /* what was done before, and the part of all that is watched now */
  uint64_t all, done; /* units of that part */
  pthread_t teller;   /* the thread that reports */
  double told;        /* seconds on the clock */
} dv_estimate_progress;

/* Begins a part of `all` units. It may be NULL here and below. */
void dv_estimate_progress_begin(dv_estimate_progress *watch, uint64_t all);
/* Adds finished units, on any thread. The thread that began it reports them. */
void dv_estimate_progress_add(dv_estimate_progress *watch, uint64_t units);

/* ---- Request ---- */

enum { DV_MOST_QUANTILES = 32 };

/* What is asked of a model. Numbers that a kind does not name are not read by it. */
typedef struct dv_estimate_request {
  enum { DV_FILTER = 1, DV_SMOOTH, DV_PREDICT, DV_SAMPLE } kind;
  bool forecast;    /* filter: x of a step is what the steps before it let expect */
  bool from_end;    /* predict: from the last known x of each sequence */
  bool noise;       /* predict, sample: of the emission */
  bool x_samples;   /* x of every sample */
  int64_t controls; /* predict, sample: DV_CONTROLS_... */
  size_t observe;   /* predict, sample: steps; 0: at least what the model needs */
  size_t steps;     /* predict, sample: steps after these; 0: to the end */
  size_t count;     /* sample: sequences */
  size_t samples;
  size_t particles; /* filter, smooth: of the filter that weighs the samples; 0: there is none */
  size_t n_quantiles;
  double quantiles[DV_MOST_QUANTILES];
  uint64_t seed;
  unsigned threads;              /* 0: all cores */
  const volatile int *interrupt; /* NULL, or a flag that ends the work */
  dv_estimate_progress *watch;   /* NULL: no reports */
  dv_ranks *ranks;               /* that share the sequences; NULL: one alone */
} dv_estimate_request;

/* From settings of the table "filter", "smooth", "predict" or "sample". */
dvbf_status dv_estimate_request_of(dv_estimate_request *out, const dvbf_settings *settings,
                                   dvbf_error *error);

/* dvbf_estimate without settings. `sequences` may be NULL for samples. */
dvbf_status dv_estimate(dvbf_estimates **out, const dvbf_model *model, const dvbf_sequences *sequences,
                        const dv_estimate_request *ask, dvbf_error *error);

/* A request on sequences, worked out for one model. */
typedef struct dv_request {
  dv_estimate_request ask; /* with what it implies: forecasts have noise */
  const dvbf_model *model; /* a member of `all` */
  const dvbf_model *all;
  dvbf_sequences frames; /* what is seen, and the controls of all steps */
  bool owned;            /* frames were made for the request */
  int steps;             /* of the recurrence */
  int observe;           /* steps whose x is seen; 0: z_1 comes from the prior */
  int initial;           /* frames that may be seen when z_1 is made */
  int first, window;     /* the steps to report: first .. first + window - 1 */
  uint32_t *begin;       /* [frames.count] step of the data that `first` is; NULL: it is `first` */
} dv_request;

/* The request for one member of a committee (0: the model itself). Free with dv_request_clear, also after a
 * failure. */
dvbf_status dv_request_make(dv_request *out, const dvbf_model *model, int member,
                            const dvbf_sequences *sequences, const dv_estimate_request *ask,
                            dvbf_error *error);
void dv_request_clear(dv_request *request);

/* ---- Ways to estimate ---- */

/* Each fills estimates that have been allocated; those of a committee's members are pooled. With ranks, each
 * fills the estimates of its sequences: blocks (of 1 unless stated) divided as by dv_ranks_first. */

/* Samples of the recognition model if x is seen, else of the prior. */
dvbf_status dv_estimate_samples(dvbf_estimates *out, const dv_request *request, dv_threads *pool,
                                dvbf_error *error);
size_t dv_estimate_samples_block(const dv_request *request);
/* Forecasts of x at each step from the steps before it. */
dvbf_status dv_estimate_forecasts(dvbf_estimates *out, const dv_request *request, dv_threads *pool,
                                  dvbf_error *error);
/* Weighted samples: of a particle filter and smoother, or of whole paths if the model cannot filter. */
dvbf_status dv_estimate_particles(dvbf_estimates *out, const dv_request *request, dv_threads *pool,
                                  dvbf_error *error);
/* Exact means, deviations and quantiles, for a model that has them; samples are drawn from the same
 * distributions. */
dvbf_status dv_estimate_exact(dvbf_estimates *out, const dv_request *request, dv_threads *pool,
                              dvbf_error *error);

/* ---- Moments and quantiles of samples ---- */

typedef struct dv_draws {
  float *x;           /* [samples][window][n_x] mean of the emission, in units of the data */
  float *noisy;       /* [samples][window][n_x] with its noise; the same as x without */
  double *variance;   /* [window][n_x] of that noise, summed over the samples */
  float *columns;     /* [samples][DV_SORTED] scratch */
  const float **rows; /* [samples] where the samples of `noisy` begin */
  size_t steps;       /* of the window that the sequence has */
} dv_draws;

enum { DV_SORTED = 64 }; /* entries that are dealt with at once */

/* Quantile k of each of the first entries over samples, of which sample s begins at rows[s]. It goes to out +
 * k * apart. `columns` is scratch of [samples][DV_SORTED]. */
void dv_quantiles_of(float *out, size_t apart, const double *shares, size_t n_shares,
                     const float *const *rows, size_t samples, size_t entries, float *columns);

/* The quantile of a standard normal variable. */
double dv_normal_quantile(double share);

/* Free with dv_draws_clear, also after a failure. */
dvbf_status dv_draws_init(dv_draws *draws, const dv_request *request, dvbf_error *error);
void dv_draws_clear(dv_draws *draws);

/* Begins a sequence of which draws->steps are wanted; steps past its end stay 0. */
void dv_draws_begin(dv_draws *draws, const dv_request *request, size_t sequence);

/* Where one frame of one sample goes to and comes from. */
typedef struct dv_draw {
  size_t sequence, sample, t;  /* t counts in the window */
  const dvbf_real *z;          /* [n_z] */
  const dvbf_program *program; /* with an emission */
  const dvbf_run *run;
  int step, row; /* of the emission in the program */
} dv_draw;
void dv_draws_put(dv_draws *draws, const dv_request *request, dvbf_estimates *out, const dv_draw *draw);

/* Ends a sequence: fills its reported values. */
void dv_draws_end(dv_draws *draws, const dv_request *request, dvbf_estimates *out, size_t sequence);
