/* Requests for estimates: from the settings of filter, smooth, predict or sample (dv_estimate_request_of),
 * and worked out for the sequences at hand (dv_request_make): frames to observe, steps to report, and frames
 * past the end of the data with their controls, which must be chosen by the user. */
#include "infer/estimate.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"
#include "math/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Settings ---- */

/* "0.05, 0.5" or "none". */
static dvbf_status read_quantiles(dv_estimate_request *ask, const char *text, dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  dv_cursor list = dv_cursor_of(text), item;
  if (!strcmp(text, "none")) return DVBF_OK;
  do {
    char number[32] = "", *end = number;
    bool there = dv_cursor_item(&list, &item) && dv_cursor_copy(item, number, sizeof number);
    double value = strtod(number, &end);
    if (!there || end == number || *end || !(value > 0 && value < 1) || ask->n_quantiles == DV_MOST_QUANTILES)
      return dv_fail(error, DVBF_ARGUMENT,
                     "quantiles = %.60s: must be at most %d numbers in (0, 1) separated by commas, or none; "
                     "the default is 0.05,0.5,0.95",
                     text, DV_MOST_QUANTILES);
    ask->quantiles[ask->n_quantiles++] = value;
  } while (dv_cursor_left(&list));
  return DVBF_OK;
}

/* What all tables have. */
#define BASIC(o)                                                                                             \
  .samples = (size_t)(o)->samples, .seed = (uint64_t)(o)->seed, .threads = (unsigned)(o)->threads

dvbf_status dv_estimate_request_of(dv_estimate_request *out, const dvbf_settings *settings,
                                   dvbf_error *error) {
  const char *table = settings ? dv_settings_table_name(settings) : "none";
  dvbf_status status = DVBF_OK;
  if (!strcmp(table, "filter")) {
    const dv_filter_settings *o = dv_settings_filter(settings, error);
    *out = (dv_estimate_request){.kind = DV_FILTER,
                                 BASIC(o),
                                 .particles = (size_t)o->particles,
                                 .forecast = o->forecast,
                                 .x_samples = o->keep_x};
  } else if (!strcmp(table, "smooth")) {
    const dv_smooth_settings *o = dv_settings_smooth(settings, error);
    *out = (dv_estimate_request){.kind = DV_SMOOTH, BASIC(o), .particles = (size_t)o->particles};
  } else if (!strcmp(table, "predict")) {
    const dv_predict_settings *o = dv_settings_predict(settings, error);
    *out = (dv_estimate_request){.kind = DV_PREDICT,
                                 BASIC(o),
                                 .from_end = o->from == DV_FROM_END,
                                 .noise = o->noise,
                                 .x_samples = o->keep_x,
                                 .controls = o->controls,
                                 .observe = dv_settings_given(settings, "observe") ? (size_t)o->observe : 0,
                                 .steps = (size_t)o->steps};
    status = read_quantiles(out, o->quantiles, error);
  } else if (!strcmp(table, "sample")) {
    const dv_sample_settings *o = dv_settings_sample(settings, error);
    *out = (dv_estimate_request){.kind = DV_SAMPLE,
                                 .samples = 1,
                                 .seed = (uint64_t)o->seed,
                                 .threads = (unsigned)o->threads,
                                 .noise = o->noise,
                                 .x_samples = true,
                                 .controls = o->controls,
                                 .observe = dv_settings_given(settings, "observe") ? (size_t)o->observe : 0,
                                 .steps = (size_t)o->steps,
                                 .count = (size_t)o->count};
  } else {
    return dv_fail(error, DVBF_ARGUMENT,
                   "settings of the table \"filter\", \"smooth\", \"predict\" or \"sample\" are needed here, "
                   "not \"%.40s\"",
                   table);
  }
  out->interrupt = dv_settings_interrupt(settings);
  out->ranks = dv_settings_ranks(settings);
  return status;
}

/* ---- Frames past the end of the data ---- */

/* Leading steps of sequence i that are not used. */
static size_t left_out(const dv_request *q, size_t i) {
  return q->begin ? q->begin[i] - (size_t)q->observe : 0;
}

/* Refuses sequences with fewer steps than are observed, or with fewer controls than are needed where none are
 * made up. The control of the last step has no effect on the result, without feedthrough. */
static dvbf_status check_lengths(const dv_request *q, const dvbf_sequences *s, dvbf_error *error) {
  size_t observe = (size_t)q->observe, idle = q->model->settings->feedthrough ? 0 : 1, known = 0;
  size_t needed = observe + (size_t)q->window - idle;
  bool refuse = q->model->n_u && q->ask.controls == DV_CONTROLS_REFUSE;
  for (size_t i = 0; s && i < s->count; i++) {
    known = dvbf_sequence_length(s, i) - left_out(q, i);
    if (known < observe)
      return dv_fail(error, DVBF_ARGUMENT,
                     "observe = %zu: sequence %zu (counted from 0) has only %zu steps; observe fewer",
                     observe, i, known);
    if (known < needed && refuse) break;
    known = needed;
  }
  if (!refuse || known >= needed) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "controls are needed for %zu steps but the data have them for %zu: ask for at most %zu "
                 "steps after the observed ones, or choose what follows with controls = zero, hold or random",
                 needed, known, known < observe ? 0 : known + idle - observe);
}

/* Controls of steps known .. frames.steps - 1 of path i; random ones are normal with the scaling of
 * training. */
static void make_up_controls(const dv_request *q, float *u /* [steps][n_u] */, size_t known, size_t i) {
  size_t n_u = q->frames.n_u;
  const dv_scaling *scaling = &q->model->u;
  dv_random random = dv_random_at(q->ask.seed, DV_STREAM_CONTROLS, (uint32_t)i, 0);
  for (size_t t = known; t < q->frames.steps; t++)
    for (size_t k = 0; k < n_u; k++) {
      float *to = u + t * n_u + k;
      if (q->ask.controls == DV_CONTROLS_RANDOM)
        *to = (float)(dv_random_normal(&random) / (double)scaling->scale[k] + (double)scaling->shift[k]);
      else
        *to = q->ask.controls == DV_CONTROLS_HOLD && t ? to[-(ptrdiff_t)n_u] : 0;
    }
}

/* Path i of q->frames begins as sequence i of the data, counted round. */
static void fill_path(const dv_request *q, const dvbf_sequences *s, size_t i) {
  const dvbf_sequences *to = &q->frames;
  size_t known = 0, observe = (size_t)q->observe;
  float *x = to->x + i * to->steps * to->n_x, *u = to->n_u ? to->u + i * to->steps * to->n_u : NULL;
  if (s) {
    size_t sequence = i % s->count, first = left_out(q, sequence);
    size_t length = dvbf_sequence_length(s, sequence) - first;
    const float *seen = dv_sequence_x(s, sequence, first, observe, x);
    known = length < to->steps ? length : to->steps;
    if (seen != x) memcpy(x, seen, observe * to->n_x * sizeof *x);
    if (u)
      memcpy(u, s->u + (dvbf_sequence_start(s, sequence) + first) * to->n_u, known * to->n_u * sizeof *u);
  }
  if (u) make_up_controls(q, u, known, i);
}

/* Makes q->frames, `count` paths of the `steps` after those that are observed; `s` may be NULL. */
static dvbf_status extend(dv_request *q, const dvbf_sequences *s, size_t count, int64_t observe,
                          int64_t steps, dvbf_error *error) {
  q->observe = q->initial = q->first = (int)observe;
  q->window = (int)steps;
  q->steps = observe + steps > 2 ? (int)(observe + steps) : 2; /* a program has two steps at least */
  dvbf_status status = check_lengths(q, s, error);
  if (status) return status;
  q->frames = (dvbf_sequences){.count = count,
                               .steps = (size_t)q->steps,
                               .n_x = (size_t)q->model->n_x,
                               .n_u = (size_t)q->model->n_u,
                               .gaps = s && s->gaps};
  status = dv_sequences_allocate(&q->frames, false, error);
  if (status) return status;
  q->owned = true;
  for (size_t i = 0; i < count; i++) fill_path(q, s, i);
  return s ? dv_sequences_intact(s, error) : DVBF_OK;
}

/* ---- Kinds ---- */

/* Forecasts: x of each step from the steps before it. The first steps, which the model needs to begin, have
 * none. */
static dvbf_status make_forecast(dv_request *q, const dvbf_sequences *s, dvbf_error *error) {
  int start = dv_model_start_frames(q->model);
  if (q->ask.particles)
    return dv_fail(error, DVBF_ARGUMENT,
                   "particles = %zu: a forecast does not weight samples; leave out particles or forecast",
                   q->ask.particles);
  if (start && start < q->initial) q->initial = start;
  q->first = q->initial;
  if (q->all->n_others && q->first < dv_model_forecasts_from(q->all))
    q->first = dv_model_forecasts_from(q->all);
  if (q->first >= q->steps)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the sequences have only %zu steps and the model needs %d to begin, so nothing is left to "
                   "forecast; use longer sequences",
                   s->steps, q->first);
  q->ask.noise = true;
  q->window = q->steps - q->first;
  return DVBF_OK;
}

static dvbf_status make_filter(dv_request *q, const dvbf_sequences *s, dvbf_error *error) {
  dvbf_status status = dv_model_needs_filter(q->model, ", and smooth works with any model", error);
  if (status) return status;
  /* A recurrent network would take all frames: the filter gives it as many as prediction starts from. */
  int64_t from = dv_settings_predict_from(q->model->settings);
  if (!dv_model_start_frames(q->model) && from < q->steps) q->initial = (int)from;
  return q->ask.forecast ? make_forecast(q, s, error) : DVBF_OK;
}

enum { OBSERVED = 5, OBSERVED_BEFORE_END = 1000 }; /* steps, where none are asked for */

/* Steps to observe: the number asked for or, by default, at least what every member needs. */
static int64_t observed(const dv_request *q, int64_t usual) {
  int64_t needed = dv_model_predicts_from(q->all), asked = (int64_t)q->ask.observe;
  return asked ? asked : needed > usual ? needed : usual;
}

/* Steps up to the last one with any known x. */
static size_t known_steps(const dvbf_sequences *s, size_t i, float *buffer /* [n_x] if there is a source */) {
  size_t steps = dvbf_sequence_length(s, i);
  for (; s->gaps && steps; steps--) {
    const float *x = dv_sequence_x(s, i, steps - 1, 1, buffer);
    for (size_t k = 0; k < s->n_x; k++)
      if (!isnan(x[k])) return steps;
  }
  return steps;
}

/* The steps after the last known x of each sequence, as far as the longest plan if none are asked for. */
static dvbf_status from_end(dv_request *q, const dvbf_sequences *s, int64_t *observe, int64_t *steps,
                            dvbf_error *error) {
  size_t shortest = SIZE_MAX, which = 0, plan = 0, asked = q->ask.observe;
  float *buffer = NULL;
  q->begin = dv_calloc(s->count, sizeof *q->begin);
  dvbf_status status =
      q->begin ? dv_sequence_buffer(&buffer, s, 1, error) : dv_fail_memory(error, "predicting");
  for (size_t i = 0; i < s->count && !status; i++) {
    size_t known = known_steps(s, i, buffer), more = dvbf_sequence_length(s, i) - known;
    q->begin[i] = (uint32_t)known;
    if (known < shortest) shortest = known, which = i;
    if (more > plan) plan = more;
  }
  dv_free(buffer);
  if (!status) status = dv_sequences_intact(s, error);
  if (status) return status;
  *observe = observed(q, shortest > OBSERVED_BEFORE_END ? OBSERVED_BEFORE_END : (int64_t)shortest);
  if (!*steps) *steps = (int64_t)plan;
  if (*observe > (int64_t)shortest)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%s%lld: sequence %zu (counted from 0) has only %zu steps whose x is known; %s",
                   asked ? "observe = " : "steps that the model must see: ", (long long)*observe, which,
                   shortest, asked ? "observe fewer" : "give it longer sequences");
  if (*steps < 1)
    return dv_fail(error, DVBF_ARGUMENT,
                   "from = end: the number of steps to forecast is unknown; give it, such as steps = 100, or "
                   "continue u beyond x");
  return DVBF_OK;
}

static dvbf_status make_predict(dv_request *q, const dvbf_sequences *s, dvbf_error *error) {
  int64_t observe = observed(q, OBSERVED), steps = (int64_t)q->ask.steps;
  if (q->ask.from_end) {
    dvbf_status status = from_end(q, s, &observe, &steps, error);
    if (status) return status;
  } else if (!steps) {
    /* Up to the end of the data, also beyond the end of a short sequence, no controls need to be made up. */
    steps = (int64_t)s->steps - observe;
    if (q->ask.controls == DV_CONTROLS_REFUSE) q->ask.controls = DV_CONTROLS_ZERO;
  }
  if (steps < 1)
    return dv_fail(error, DVBF_ARGUMENT,
                   "observe = %lld: the sequences have only %zu steps, so nothing is left to predict; "
                   "observe fewer, or give the number of steps to predict with steps",
                   (long long)observe, s->steps);
  return extend(q, s, s->count, observe, steps, error);
}

dvbf_status dv_request_make(dv_request *q, const dvbf_model *model, int member, const dvbf_sequences *s,
                            const dv_estimate_request *ask, dvbf_error *error) {
  *q = (dv_request){.ask = *ask, .model = dv_model_member(model, member), .all = model};
  if (!s && ask->kind != DV_SAMPLE)
    return dv_fail(error, DVBF_ARGUMENT, "sequences are needed; only sampling starts without any");
  dvbf_status status = s ? dv_model_takes(q->model, s, error) : DVBF_OK;
  if (!status && s && s->steps > 16777216)
    status = dv_fail(error, DVBF_FORMAT, "sequences of %zu steps are too long; cut them into shorter ones",
                     s->steps);
  if (status) return status;
  if (ask->kind == DV_SAMPLE)
    return extend(q, s, ask->count, s ? observed(q, OBSERVED) : 0, (int64_t)ask->steps, error);
  if (ask->kind == DV_PREDICT) return make_predict(q, s, error);
  q->frames = *s; /* all of them, with the lengths that the data have */
  q->steps = q->observe = q->initial = q->window = (int)s->steps;
  if (ask->kind == DV_FILTER) status = make_filter(q, s, error);
  return !status && ask->particles ? dv_model_needs_weights(q->model, error) : status;
}

void dv_request_clear(dv_request *q) {
  if (q->owned) dvbf_sequences_free(&q->frames);
  dv_free(q->begin);
  *q = (dv_request){0};
}
