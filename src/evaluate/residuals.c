/* Whether errors one step ahead are white (dv_whiteness_of): autocorrelations r_l = sum_t e_t e_{t+l} / sum_t
 * e_t^2 of lags l = 1 .. 20, and Ljung and Box's Q = n (n + 2) sum_l r_l^2 / (n - l), which for white errors
 * has a chi-squared distribution of 20 degrees of freedom. */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "evaluate/rolling.h"
#include "math/portable.h"

#include <math.h>

/* P(chi^2 of 20 degrees of freedom > q) = exp(-q/2) sum_{i < 10} (q/2)^i / i!. */
static double tail(double q) {
  double term = dv_exp(-q / 2), sum = 0;
  for (int i = 0; i < DVBF_LAGS / 2; i++) {
    sum += term;
    term *= q / 2 / (i + 1);
  }
  return fmin(1, sum);
}

/* Sums of one column over all views. */
typedef struct error_sums {
  double n, mean, square, product[DVBF_LAGS];
} error_sums;

/* Errors of a column of one view, NaN if x is missing. */
static void errors_of(const dv_rolling *r, size_t i, size_t k, const float *x, double *error, size_t steps) {
  const dvbf_estimates *e = r->by[DVBF_BY_LEARNED];
  for (size_t t = 0; t < steps; t++) {
    size_t at = i * e->steps + r->first - e->first + t;
    error[t] = (double)x[(r->first + t) * e->n_x + k] - (double)e->x[at * e->n_x + k];
  }
}

static void add_products(error_sums *s, const double *error, size_t steps) {
  for (size_t t = 0; t < steps; t++) {
    double a = error[t] - s->mean / s->n;
    if (isnan(a)) continue;
    s->square += a * a;
    for (size_t l = 1; l <= DVBF_LAGS && t + l < steps; l++) {
      double b = error[t + l] - s->mean / s->n;
      if (!isnan(b)) s->product[l - 1] += a * b;
    }
  }
}

/* Histogram of a column's errors in units of the expected deviation. */
static void count_errors(double bins[DVBF_BINS], const dv_rolling *r, size_t i, size_t k, const double *error,
                         size_t steps) {
  const dvbf_estimates *e = r->by[DVBF_BY_LEARNED];
  for (size_t t = 0; e->x_std && t < steps; t++) {
    double deviation = (double)e->x_std[(i * e->steps + r->first - e->first + t) * e->n_x + k];
    double at = (error[t] / deviation + 4) / 8 * DVBF_BINS;
    if (isfinite(at)) bins[(int)fmin(fmax(at, 0), DVBF_BINS - 1)] += 1;
  }
}

/* Runs over the views twice, since the mean error is subtracted. */
static void add_column(error_sums *s, double bins[DVBF_BINS], const dv_rolling *r, size_t k, float *buffer,
                       double *error) {
  const dvbf_sequences *v = &r->views;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < v->count; i++) {
      size_t length = dvbf_sequence_length(v, i), steps = length - r->first;
      errors_of(r, i, k, dv_sequence_x(v, i, 0, length, buffer), error, steps);
      for (size_t t = 0; t < steps && !pass; t++)
        if (!isnan(error[t])) s->mean += error[t], s->n += 1;
      if (pass) add_products(s, error, steps);
      if (pass) count_errors(bins, r, i, k, error, steps);
    }
}

/* Returns how many of the autocorrelations are outside the band. */
static double close_column(dvbf_whiteness *out, size_t k, const error_sums *s) {
  double q = 0, outside = 0;
  out->p[k] = NAN;
  for (int l = 0; l < DVBF_LAGS; l++) {
    double r = s->square > 0 ? s->product[l] / s->square : NAN;
    out->autocorrelation[k][l] = r;
    outside += fabs(r) > out->band;
    q += s->n * (s->n + 2) * r * r / (s->n - l - 1);
  }
  if (isfinite(q) && s->n > DVBF_LAGS + 1) out->p[k] = tail(q);
  return outside;
}

dvbf_status dv_whiteness_of(dvbf_whiteness *out, const dv_rolling *r, dvbf_error *error) {
  size_t n = r->views.n_x;
  float *buffer = NULL;
  double *errors = dv_calloc(r->views.steps + 1, sizeof *errors), outside = 0, columns = 0;
  *out = (dvbf_whiteness){NAN, NAN, dv_calloc(n + 1, sizeof *out->autocorrelation),
                          dv_calloc(n + 1, sizeof *out->p), dv_calloc(n + 1, sizeof *out->histogram)};
  dvbf_status status = out->autocorrelation && out->p && out->histogram && errors
                           ? DVBF_OK
                           : dv_fail_memory(error, "correlating");
  if (!status && r->by[DVBF_BY_LEARNED]) {
    status = dv_sequence_buffer(&buffer, &r->views, r->views.steps, error);
    for (size_t k = 0; k < n && !status; k++) {
      error_sums s = {0};
      add_column(&s, out->histogram[k], r, k, buffer, errors);
      out->band = 1.96 / sqrt(fmax(1, s.n));
      outside += close_column(out, k, &s);
      columns += s.square > 0;
    }
    if (columns > 0) out->outside = outside / columns / DVBF_LAGS;
  }
  DV_FREE(buffer, errors);
  return status;
}
