/* Scores of candidates (dv_scorer_score): errors of free runs and one step ahead over the whole recording,
 * each relative to the best linear model that does not know the fold's part either. Unseen values count more,
 * so that the part that a fold leaves out weighs as much as the rest. */
#include "train/search.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "identify/linear_fit.h"
#include "math/portable.h"

#include <math.h>

/* Weight of a value that training has not seen. */
static const double UNSEEN = 4;
/* Weight of the error one step ahead; that of the free run has weight 1. */
static const double ONE_STEP_SHARE = 0.15;

typedef struct scored_sums {
  double *square, *count; /* [n_x] */
} scored_sums;

static dvbf_status add_split(scored_sums *to, const dv_scorer *r, const dvbf_model *m,
                             const dvbf_sequences *s, bool free_run, double weight, dvbf_error *error) {
  dv_rolling rolling = {0};
  if (!s->count) return DVBF_OK;
  dvbf_status status = dv_rolling_run(&rolling, m, s, free_run, &r->baseline, &r->ask, error);
  for (size_t k = 0; k < s->n_x && !status; k++) {
    to->square[k] += weight * rolling.square[DVBF_BY_LEARNED][k];
    to->count[k] += weight * rolling.count[k];
  }
  dv_rolling_clear(&rolling);
  return status;
}

/* The root mean square over the columns that vary. */
static double root(const scored_sums *s, const double *unit, size_t n) {
  double sum = 0, columns = 0;
  for (size_t k = 0; k < n; k++) {
    if (!(unit[k] > 0) || !(s->count[k] > 0)) continue;
    sum += s->square[k] / s->count[k] / (unit[k] * unit[k]);
    columns += 1;
  }
  return columns > 0 ? sqrt(sum / columns) : 0;
}

/* The weight of seen values may be 0. */
static dvbf_status measure(double *out, const dv_scorer *r, size_t fold, const dvbf_model *m, bool free_run,
                           double seen, dvbf_error *error) {
  const dv_fold *f = &r->folds.list[fold];
  scored_sums s = {dv_calloc(r->n_x, sizeof *s.square), dv_calloc(r->n_x, sizeof *s.count)};
  dvbf_status status = s.square && s.count ? DVBF_OK : dv_fail_memory(error, "judging a model");
  if (!status && seen > 0) status = add_split(&s, r, m, &f->data.train, free_run, seen, error);
  if (!status) status = add_split(&s, r, m, &f->part, free_run, UNSEEN, error);
  if (!status) *out = root(&s, r->baseline.unit, r->n_x);
  DV_FREE(s.square, s.count);
  return status;
}

dvbf_status dv_scorer_unseen(double *out, const dv_scorer *r, size_t fold, const dvbf_model *m,
                             dvbf_error *error) {
  return measure(out, r, fold, m, true, 0, error);
}

/* Without a linear model, errors are in units of the deviation. */
static dvbf_status measure_linear(dv_scorer *r, size_t fold, const dvbf_settings *settings,
                                  dvbf_error *error) {
  dvbf_model *linear = NULL;
  dvbf_data known = r->folds.list[fold].data;
  known.valid = (dvbf_sequences){0}; /* it holds the part that the linear model must not see */
  r->linear[fold].free_run = r->linear[fold].one_step = r->linear[fold].unseen = 1;
  dvbf_status status = dv_identify_model(&linear, settings, &known, r->ask.interrupt, error);
  if (status || !linear) return status;
  status = measure(&r->linear[fold].free_run, r, fold, linear, true, 1, error);
  if (!status) status = measure(&r->linear[fold].one_step, r, fold, linear, false, 1, error);
  if (!status) status = dv_scorer_unseen(&r->linear[fold].unseen, r, fold, linear, error);
  dvbf_model_free(linear);
  return status;
}

dvbf_status dv_scorer_init(dv_scorer *r, const dvbf_settings *settings, const dvbf_data *data,
                           dvbf_error *error) {
  *r = (dv_scorer){
      .n_x = data->train.n_x,
      .ask = {.observe = 5, .seed = 1, .threads = 1, .interrupt = dv_settings_interrupt(settings)}};
  dvbf_status status = dv_baseline_of_x(&r->baseline, &data->train, error);
  if (!status) status = dv_folds_make(&r->folds, data, error);
  if (status) return status;
  r->linear = dv_calloc(r->folds.count + 1, sizeof *r->linear);
  if (!r->linear) return dv_fail_memory(error, "judging models");
  for (size_t f = 0; f <= r->folds.count && !status; f++) status = measure_linear(r, f, settings, error);
  return status;
}

void dv_scorer_clear(dv_scorer *r) {
  dv_baseline_clear(&r->baseline);
  dv_free(r->linear);
  dv_folds_free(&r->folds);
  *r = (dv_scorer){0};
}

bool dv_scorer_has_linear(const dv_scorer *r) {
  return r->linear[r->folds.count].free_run != 1 || r->linear[r->folds.count].one_step != 1;
}

/* Errors far below all noise count as equal. */
static double ratio(double error, double of_linear) {
  const double least = 1e-6;
  return isfinite(error) ? fmax(error, least) / fmax(of_linear, least) : INFINITY;
}

double dv_scorer_total(double free_run, double one_step) {
  return dv_log(free_run) + ONE_STEP_SHARE * dv_log(one_step);
}

dvbf_status dv_scorer_score(dv_score *out, const dv_scorer *r, size_t fold, const dvbf_model *m,
                            dvbf_error *error) {
  double far = 0, near = 0;
  dvbf_status status = measure(&far, r, fold, m, true, 1, error);
  if (!status) status = measure(&near, r, fold, m, false, 1, error);
  if (status) return status;
  out->free_run = ratio(far, r->linear[fold].free_run);
  out->one_step = ratio(near, r->linear[fold].one_step);
  out->total = dv_scorer_total(out->free_run, out->one_step);
  return DVBF_OK;
}

/* Up to 4000 frames the error must be half that of the linear model; from there on the doubt falls with
 * the square root of their number, as the error of an estimate does. */
double dv_scorer_clearly(uint64_t frames) {
  const double doubt = 0.5, few = 4000;
  return 1 - doubt * sqrt(few / fmax(few, (double)frames));
}
