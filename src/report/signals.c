/* Signals for a report (dv_signals_*): measured and predicted values of a few sequences, at most 8 and as
 * many steps as keep the page below 3 MB, with mean, band and error of each kind of prediction; and names of
 * columns and sequences. */
#include "report/signals.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "evaluate/rolling.h"
#include "infer/estimate.h"

#include <math.h>
#include <stdio.h>

enum { SEQUENCES = 8, ON_PAGE = 450000, SIGNAL_STEPS = 20000, LEAST_SHOWN = 60, SIGNAL_SAMPLES = 60 };

void dv_signals_clear(dv_signals *s) {
  for (size_t k = 0; k < 2; k++) {
    dv_signal_use *u = &s->use[k];
    dvbf_estimates_free(u->estimates);
    DV_FREE(u->rmse, u->fit);
  }
  dvbf_sequences_free(&s->shown);
  *s = (dv_signals){0};
}

size_t dv_signal_steps(const dv_signals *s, const dv_signal_use *u, size_t sequence) {
  size_t length = dvbf_sequence_length(&s->shown, sequence);
  return length > u->first ? length - u->first : 0;
}

/* ---- Names ---- */

const char *dv_signal_name(char room[32], const dvbf_data *data, bool input, size_t k) {
  char(*names)[32] = input ? data->u_names : data->x_names;
  snprintf(room, 32, "%c%zu", input ? 'u' : 'x', k);
  return names && names[k][0] ? names[k] : room;
}

const char *dv_signal_unit(const dvbf_data *data, bool input, size_t k) {
  char(*units)[16] = input ? data->u_units : data->x_units;
  return units ? units[k] : "";
}

void dv_signal_label(char out[64], const dvbf_data *data, bool input, size_t k) {
  char room[32];
  const char *name = dv_signal_name(room, data, input, k), *unit = dv_signal_unit(data, input, k);
  snprintf(out, 64, *unit ? "%.32s (%.16s)" : "%.32s", name, unit);
}

void dv_signal_sequence(char out[96], const dvbf_sequences *s, size_t i) {
  dvbf_origin none = {.sequence = i};
  const dvbf_origin *o = s->origin ? &s->origin[i] : &none;
  int n = *o->name ? snprintf(out, 96, "%.32s", o->name)
                   : snprintf(out, 96, "number %llu", (unsigned long long)o->sequence);
  if (o->step) snprintf(out + n, 96 - (size_t)n, ", from step %llu", (unsigned long long)o->step);
}

double dv_signal_start(const dvbf_data *data, const dvbf_sequences *s, size_t i) {
  if (!s->origin) return 0;
  return data->sample_time > 0 ? s->origin[i].time : (double)s->origin[i].step;
}

/* ---- Choice of sequences ---- */

/* Copies the first sequences, or their beginnings. */
static dvbf_status choose_sequences(dv_signals *out, const dvbf_sequences *from, dvbf_error *error) {
  size_t count = from->count < SEQUENCES ? from->count : SEQUENCES;
  size_t columns = from->n_x < DV_SIGNAL_COLUMNS ? from->n_x : DV_SIGNAL_COLUMNS;
  size_t inputs = from->n_u < DV_SIGNAL_INPUTS ? from->n_u : DV_SIGNAL_INPUTS;
  size_t all = ON_PAGE / (7 * columns + inputs); /* measured; mean and two quantiles of both predictions */
  if (all > SIGNAL_STEPS) all = SIGNAL_STEPS;
  size_t most = count ? all / count : 0;
  if (most < LEAST_SHOWN) most = LEAST_SHOWN;
  uint64_t start[SEQUENCES];
  uint32_t length[SEQUENCES];
  dvbf_sequences view = *from;
  view.count = count;
  view.steps = 0;
  view.start = start;
  view.length = length;
  for (size_t i = 0; i < count; i++) {
    size_t steps = dvbf_sequence_length(from, i);
    start[i] = dvbf_sequence_start(from, i);
    length[i] = (uint32_t)(steps < most ? steps : most);
    out->cut |= length[i] < steps;
    if (length[i] > view.steps) view.steps = length[i];
  }
  return dvbf_sequences_copy(&out->shown, &view, 0, count, error);
}

/* ---- Predictions ---- */

/* Root mean square error and fit of each column of each sequence. */
static void score(const dv_signals *s, dv_signal_use *u, const dv_baseline *y) {
  size_t n = s->shown.n_x;
  for (size_t i = 0; i < s->shown.count; i++)
    for (size_t k = 0; k < n; k++) {
      double square = 0, of_mean = 0, count = 0;
      for (size_t t = 0; t < dv_signal_steps(s, u, i); t++) {
        double x = (double)s->shown.x[(i * s->shown.steps + u->first + t) * n + k];
        if (isnan(x)) continue;
        square += pow(x - (double)u->mean[(i * u->steps + t) * n + k], 2);
        of_mean += pow(x - y->mean[k], 2);
        count += 1;
      }
      u->rmse[i * n + k] = count > 0 ? sqrt(square / count) : NAN;
      u->fit[i * n + k] = of_mean > 0 && y->unit[k] > 0 ? 100 * (1 - sqrt(square / of_mean)) : NAN;
    }
}

/* Takes the estimates over. */
static dvbf_status keep(dv_signals *s, dvbf_estimates *e, const dv_baseline *y, bool free_run,
                        dvbf_error *error) {
  dv_signal_use *u = &s->use[s->n_uses++];
  size_t columns = e->count * e->n_x;
  *u = (dv_signal_use){.name = free_run ? "free run" : "one step ahead",
                       .mark = free_run ? "end of observation" : "first prediction",
                       .first = e->first,
                       .steps = e->steps,
                       .estimates = e,
                       .mean = e->x,
                       .low = e->x_quantiles,
                       .high = e->x_quantiles + e->count * e->steps * e->n_x,
                       .rmse = dv_calloc(columns, sizeof *u->rmse),
                       .fit = dv_calloc(columns, sizeof *u->fit)};
  if (!u->rmse || !u->fit) return dv_fail_memory(error, "showing signals");
  score(s, u, y);
  return DVBF_OK;
}

/* A prediction that the model cannot make is no failure. */
static dvbf_status add_signal_use(dv_signals *s, const dvbf_model *model, size_t observed,
                                  const dv_baseline *y, const dvbf_settings *settings, dvbf_error *error) {
  dvbf_estimates *e = NULL;
  const dv_estimate_request ask = {.kind = observed ? DV_PREDICT : DV_FILTER,
                                   .forecast = !observed,
                                   .noise = true,
                                   .observe = observed,
                                   .samples = SIGNAL_SAMPLES,
                                   .n_quantiles = 2,
                                   .quantiles = {0.05, 0.95},
                                   .seed = 1,
                                   .threads = dvbf_settings_threads(settings),
                                   .interrupt = dv_settings_interrupt(settings)};
  dvbf_status status = dv_estimate(&e, model, &s->shown, &ask, error);
  if (!status && e->steps) return keep(s, e, y, observed > 0, error);
  dvbf_estimates_free(e);
  return status == DVBF_ARGUMENT || status == DVBF_FORMAT ? DVBF_OK : status;
}

dvbf_status dv_signals_of(dv_signals *out, const dvbf_model *model, const dvbf_data *data,
                          const dvbf_sequences *sequences, size_t observed, const dvbf_settings *settings,
                          dvbf_error *error) {
  dv_baseline y = {0};
  *out = (dv_signals){0};
  dvbf_status status = choose_sequences(out, sequences, error);
  if (!status) status = dv_baseline_of(&y, model, data, sequences, error);
  if (!status && observed) status = add_signal_use(out, model, observed, &y, settings, error);
  if (!status) status = add_signal_use(out, model, 0, &y, settings, error);
  dv_baseline_clear(&y);
  return status;
}
