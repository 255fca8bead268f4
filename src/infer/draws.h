/* The samples of one sequence, and the moments and quantiles that are reported of them. */
#ifndef DV_DRAWS_H
#define DV_DRAWS_H

#include "infer/request.h"

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

/* The number below which a standard normal variable lies with that probability. */
double dv_normal_quantile(double share);

/* Free with dv_draws_clear, also after a failure. */
dvbf_status dv_draws_init(dv_draws *draws, const dv_request *request, dvbf_error *error);
void dv_draws_clear(dv_draws *draws);

/* Begins a sequence, of which draws->steps are asked for; what is past its end stays 0. */
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

/* Ends a sequence: fills what is reported of it. */
void dv_draws_end(dv_draws *draws, const dv_request *request, dvbf_estimates *out, size_t sequence);

#endif
