/* Errors over rolling origins (dv_rolling_run): forecasts one step ahead of every step, and free runs from
 * the start of each sequence and, in a few long recordings, from later origins, for the model and its
 * baselines on the same values. It calls dv_estimate, so that what is judged is what users get. Also the
 * units of the errors (dv_baseline_of). */
#include "evaluate/rolling.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

/* Free runs begin at up to RUN_ORIGINS places of long recordings. SAMPLES makes the central 50 % and 90 %
 * whole numbers of ranks; WIDE_DATA, such as images, get fewer. MOST_WORK bounds the time, MOST_REALS
 * the memory. */
enum {
  RUN_ORIGINS = 10,
  SAMPLES = 39,
  FEW_SAMPLES = 9,
  WIDE_DATA = 64,
  SHORTEST_RUN = 20,
  MOST_WORK = 1 << 20,
  MOST_REALS = 1 << 25
};
enum { MOST_RANKS = 1 << 22 }; /* counts that are kept by column */

/* ---- Parts to predict ---- */

static size_t samples_for(const dvbf_sequences *s) {
  return s->n_x > WIDE_DATA ? FEW_SAMPLES : SAMPLES;
}

dvbf_status dv_views_choose(dvbf_sequences *out, const dvbf_sequences *s, size_t first, size_t origins,
                            size_t horizon, size_t budget, bool later, dvbf_error *error) {
  size_t longest = horizon && first + horizon < s->steps ? first + horizon : s->steps;
  size_t fit = budget / (longest ? longest : 1);
  size_t most = fit < origins ? origins : fit;
  size_t chosen = s->count < most ? s->count : most, each = chosen && origins > chosen ? origins / chosen : 1;
  *out = *s;
  out->count = out->steps = 0;
  out->origin = NULL;
  out->start = dv_calloc(chosen * each, sizeof *out->start);
  out->length = dv_calloc(chosen * each, sizeof *out->length);
  if (!out->start || !out->length) return dv_fail_memory(error, "choosing origins");
  size_t cap = chosen ? budget / (chosen * each) : budget;
  if (cap > longest) cap = longest;
  if (cap <= first + 1) cap = first + 1;
  for (size_t j = 0; j < chosen; j++) {
    size_t i = j * s->count / chosen, length = dvbf_sequence_length(s, i);
    for (size_t o = later; o < each; o++) {
      size_t offset = o * length / each, rest = length - offset;
      if (rest <= first || (o && rest < first + SHORTEST_RUN)) break;
      size_t steps = rest < cap ? rest : cap;
      out->start[out->count] = dvbf_sequence_start(s, i) + offset;
      out->length[out->count++] = (uint32_t)steps;
      if (steps > out->steps) out->steps = steps;
    }
  }
  return DVBF_OK;
}

/* ---- Predicting ---- */

static dvbf_status predict_views(dv_rolling *r, dvbf_way way, const dvbf_model *m, bool free_run,
                                 const dv_estimate_request *ask, dvbf_error *error) {
  dv_estimate_request request = *ask;
  request.kind = free_run ? DV_PREDICT : DV_FILTER;
  request.forecast = !free_run;
  request.noise = request.x_samples = true;
  request.observe = r->first;
  request.samples = samples_for(&r->views);
  return dv_estimate(&r->by[way], m, &r->views, &request, error);
}

/* Steps that all members of a committee must see before they can predict. */
static size_t needed_by(const dvbf_model *m, bool free_run) {
  return (size_t)(free_run ? dv_model_predicts_from(m) : dv_model_forecasts_from(m));
}

static bool can_predict(const dvbf_model *m, bool free_run) {
  for (int i = 0; i < dv_model_members(m); i++) {
    const dvbf_model *member = dv_model_member(m, i);
    if (member->type->timeless || !(free_run || dv_model_can_filter(member))) return false;
  }
  return true;
}

/* ---- Scoring ---- */

double dv_rank_inside(double below, double n, double share) {
  double tail = (1 - share) / 2 * (n + 1), low = below + 1 - tail, high = n - below + 1 - tail;
  return fmin(fmax(0, fmin(1, low)), fmax(0, fmin(1, high)));
}

static void rank(dv_rolling *r, size_t i, size_t t, size_t k, double x) {
  const dvbf_estimates *e = r->by[DVBF_BY_LEARNED];
  double below = 0, n = (double)e->samples;
  for (size_t s = 0; s < e->samples; s++)
    below += (double)e->x_samples[((i * e->samples + s) * e->steps + t - e->first) * e->n_x + k] < x;
  r->inside_50 += dv_rank_inside(below, n, 0.5);
  r->inside_90 += dv_rank_inside(below, n, 0.9);
  r->ranked += 1;
  if (r->rank) r->rank[k * r->n_ranks + (size_t)below] += 1;
}

/* One value by all methods; a prediction that is not finite has an infinite error. */
static void score_value(dv_rolling *r, const dv_baseline *y, size_t i, size_t t, size_t k, double x,
                        double last, size_t block) {
  double unit = y->unit[k] > 0 ? y->unit[k] : INFINITY;
  for (int way = 0; way < DVBF_WAYS; way++) {
    const dvbf_estimates *e = r->by[way];
    if (way >= DVBF_BY_LINEAR && !e) continue;
    double guess = way == DVBF_BY_MEAN   ? y->mean[k]
                   : way == DVBF_BY_LAST ? (isnan(last) ? y->mean[k] : last)
                                         : (double)e->x[(i * e->steps + t - e->first) * e->n_x + k];
    double error = isfinite(guess) ? x - guess : INFINITY;
    r->square[way][k] += error * error;
    if (isfinite(unit)) r->blocks.square[way][block] += error * error / (unit * unit);
  }
  r->count[k] += 1;
}

static void score_view(dv_rolling *r, const dv_baseline *y, size_t i, const float *x, float *last,
                       bool free_run, size_t done, size_t all) {
  size_t n = r->views.n_x;
  for (size_t k = 0; k < n; k++) last[k] = NAN;
  for (size_t t = 0; t < dvbf_sequence_length(&r->views, i); t++, x += n)
    for (size_t k = 0; k < n; k++) {
      if (isnan(x[k])) continue;
      if (t >= r->first)
        score_value(r, y, i, t, k, (double)x[k], (double)last[k], (done + t) * DV_ROLLING_BLOCKS / all);
      if (t >= r->first && r->ranks && y->unit[k] > 0) rank(r, i, t, k, (double)x[k]);
      if (t < r->first || !free_run) last[k] = x[k];
    }
}

static dvbf_status score_all(dv_rolling *r, const dv_baseline *y, bool free_run, dvbf_error *error) {
  const dvbf_sequences *v = &r->views;
  float *buffer = NULL, *last = dv_calloc(v->n_x, sizeof *last);
  size_t done = 0, all = dv_sequences_frames(v);
  dvbf_status status =
      last ? dv_sequence_buffer(&buffer, v, v->steps, error) : dv_fail_memory(error, "scoring predictions");
  for (size_t i = 0; i < v->count && !status; i++) {
    size_t length = dvbf_sequence_length(v, i);
    score_view(r, y, i, dv_sequence_x(v, i, 0, length, buffer), last, free_run, done, all);
    done += length;
  }
  DV_FREE(buffer, last);
  return status ? status : dv_sequences_intact(v, error);
}

/* ---- Rolling errors ---- */

void dv_rolling_clear(dv_rolling *r) {
  for (int way = 0; way < DVBF_WAYS; way++) {
    dvbf_estimates_free(r->by[way]);
    dv_free(r->square[way]);
  }
  DV_FREE(r->count, r->rank);
  dv_windows_free(&r->views);
  *r = (dv_rolling){0};
}

static dvbf_status make_sums(dv_rolling *r, size_t n_x, dvbf_error *error) {
  bool room = (r->count = dv_calloc(n_x, sizeof *r->count));
  for (int way = 0; way < DVBF_WAYS; way++)
    room = (r->square[way] = dv_calloc(n_x, sizeof *r->square[way])) && room;
  if (r->ranks && n_x <= MOST_RANKS / r->n_ranks)
    room = (r->rank = dv_calloc(n_x * r->n_ranks, sizeof *r->rank)) && room;
  return room ? DVBF_OK : dv_fail_memory(error, "scoring predictions");
}

dvbf_status dv_rolling_run(dv_rolling *r, const dvbf_model *m, const dvbf_sequences *s, bool free_run,
                           const dv_baseline *y, const dv_estimate_request *ask, dvbf_error *error) {
  const dvbf_model *linear = m->linear;
  *r = (dv_rolling){.first = needed_by(m, free_run), .views.n_x = s->n_x, .ranks = m->density->sigma};
  r->n_ranks = samples_for(s) + 1;
  dvbf_status status = make_sums(r, s->n_x, error);
  if (status || !can_predict(m, free_run)) return status;
  if (linear && needed_by(linear, free_run) > r->first) r->first = needed_by(linear, free_run);
  if (free_run && ask->observe > r->first) r->first = ask->observe;
  size_t samples = samples_for(s), rows = MOST_WORK / samples, room = MOST_REALS / (samples * s->n_x);
  size_t budget = rows < room ? rows : room > 1 ? room : 1; /* steps that may be predicted in all */
  status = dv_views_choose(&r->views, s, r->first, free_run ? RUN_ORIGINS : 1, 0, budget, false, error);
  if (status || !r->views.count) return status;
  status = predict_views(r, DVBF_BY_LEARNED, m, free_run, ask, error);
  if (!status && linear) status = predict_views(r, DVBF_BY_LINEAR, linear, free_run, ask, error);
  return status ? status : score_all(r, y, free_run, error);
}

/* ---- Totals ---- */

/* Over the columns that vary, in units of the baseline. */
static double overall(const dv_rolling *r, const dv_baseline *y, int way) {
  double sum = 0, columns = 0;
  for (size_t k = 0; k < r->views.n_x; k++) {
    if (!(y->unit[k] > 0) || !(r->count[k] > 0)) continue;
    sum += r->square[way][k] / r->count[k] / (y->unit[k] * y->unit[k]);
    columns += 1;
  }
  return columns > 0 ? sqrt(sum / columns) : NAN;
}

static double fit_of(double error, double of_mean) {
  return of_mean > 0 ? 100 * (1 - error / of_mean) : NAN;
}

bool dv_rolling_scores(dvbf_rolling *out, const dv_rolling *r, const dv_baseline *y) {
  size_t n = r->views.n_x;
  *out = (dvbf_rolling){.origins = r->views.count, .coverage_50 = NAN, .coverage_90 = NAN};
  for (size_t i = 0; i < r->views.count; i++) {
    size_t length = dvbf_sequence_length(&r->views, i);
    if (length - r->first > out->steps) out->steps = length - r->first;
  }
  for (int way = 0; way < DVBF_WAYS; way++) {
    dvbf_score *score = &out->score[way];
    *score = (dvbf_score){NAN, NAN, dv_calloc(n + 1, sizeof(double)), dv_calloc(n + 1, sizeof(double))};
    if (!score->rmse_by_column || !score->fit_by_column) return false;
    bool known = r->views.count && (way < DVBF_BY_LINEAR || r->by[way]);
    for (size_t k = 0; k < n; k++) {
      double of_mean = sqrt(r->square[DVBF_BY_MEAN][k] / r->count[k]);
      score->rmse_by_column[k] = known ? sqrt(r->square[way][k] / r->count[k]) : NAN;
      score->fit_by_column[k] = y->unit[k] > 0 ? fit_of(score->rmse_by_column[k], of_mean) : NAN;
    }
    if (!known) continue;
    score->rmse = overall(r, y, way);
    score->fit = fit_of(score->rmse, overall(r, y, DVBF_BY_MEAN));
  }
  if (r->rank && !(out->ranks = dv_calloc(n * r->n_ranks, sizeof *out->ranks))) return false;
  out->n_ranks = out->ranks ? r->n_ranks : 0;
  if (out->ranks) memcpy(out->ranks, r->rank, n * r->n_ranks * sizeof *out->ranks);
  if (r->ranked > 0) out->coverage_50 = r->inside_50 / r->ranked, out->coverage_90 = r->inside_90 / r->ranked;
  return true;
}

/* ---- Baselines ---- */

/* The training mean is the model's own if it has one; the data at hand may be others than it saw. */
dvbf_status dv_baseline_of(dv_baseline *out, const dvbf_model *m, const dvbf_data *data,
                           const dvbf_sequences *sequences, dvbf_error *error) {
  dvbf_status status = dv_baseline_of_x(out, data->train.count ? &data->train : sequences, error);
  bool scales = m->density->scales(m->settings);
  for (int k = 0; k < m->n_x && scales && !status; k++) {
    if (m->settings->x_scaling != DV_SCALING_NONE) out->mean[k] = (double)m->x.shift[k];
    if (m->settings->x_scaling == DV_SCALING_STANDARDISE && out->unit[k] > 0)
      out->unit[k] = 1 / (double)m->x.scale[k];
  }
  return status;
}
