#include "train/schedule.h"

#include "base/arithmetic.h"
#include "base/random.h"
#include "model/density.h"

#include <math.h>

/* Whether update i belongs to the last phase, which trains the filter alone. */
static bool in_filter_phase(const dv_train_settings *s, uint64_t i) {
  return s->filter_updates > 0 && i >= (uint64_t)s->updates;
}

/* A quarter of the last phase is enough for the spread, which has few parameters. */
uint64_t dv_gain_updates(const dv_train_settings *s) {
  return dv_all_updates(s) - (uint64_t)s->filter_updates / 4;
}

uint64_t dv_phase_update(const dv_train_settings *s, uint64_t i) {
  if (!in_filter_phase(s, i)) return i;
  return i < dv_gain_updates(s) ? i - (uint64_t)s->updates : i - dv_gain_updates(s);
}

uint64_t dv_all_updates(const dv_train_settings *s) {
  return (uint64_t)s->updates + (uint64_t)s->filter_updates;
}

/* From 0 to 1 over `updates` updates. */
static double ramp(uint64_t i, int64_t updates) {
  return updates > 0 && i < (uint64_t)updates ? (double)i / (double)updates : 1;
}

/* c = min(1, c_0 + i / T_A), changed every `temperature-every` updates. */
static double temperature(const dv_train_settings *s, uint64_t i) {
  if (!s->temperature_updates) return 1;
  uint64_t held = i - i % (uint64_t)s->temperature_every;
  return fmin(1, s->temperature_start + (double)held / (double)s->temperature_updates);
}

/* The logarithm of the floor falls linearly. A fixed sigma has no floor. */
static double log_sigma_floor(const dv_train_settings *s, uint64_t i) {
  if (s->sigma == DV_SIGMA_FIXED || !dv_density_of(s)->sigma) return -1000;
  double share = ramp(i, s->sigma_floor_updates), end = dv_log(s->sigma_floor);
  double start = s->sigma_floor_updates ? fmax(dv_log(s->sigma_start), end) : end;
  if (in_filter_phase(s, i)) return end - dv_log(16); /* nothing is left that a small sigma could mislead */
  return start + share * (end - start);
}

static double filter_dropout(const dv_train_settings *s, uint64_t i) {
  uint64_t hold = (uint64_t)s->filter_dropout_hold;
  double share = i < hold ? 0 : ramp(i - hold, s->filter_dropout_updates);
  return s->filter_dropout + share * (s->filter_dropout_end - s->filter_dropout);
}

dv_conditions dv_schedule_at(const dv_train_settings *s, uint64_t i, uint64_t seed) {
  dv_conditions c = {.seed = seed, .stream = DV_STREAM_NOISE, .update = (uint32_t)i};
  dv_conditions_set(&c, DVBF_TEMPERATURE, temperature(s, i));
  dv_conditions_set(&c, DVBF_LOG_SIGMA_FLOOR, log_sigma_floor(s, i));
  dv_conditions_set(&c, DVBF_FILTER_DROPOUT, in_filter_phase(s, i) ? 0 : filter_dropout(s, i));
  dv_conditions_set(&c, DVBF_LOOK_AHEAD_DROPOUT, s->look_ahead_dropout);
  dv_conditions_set(&c, DVBF_FILTER_DROPOUT_RUN, s->filter_dropout_run);
  dv_conditions_set(&c, DVBF_FILTER_DROPOUT_ZERO, s->dropped == DV_DROPPED_ZERO);
  return c;
}

/* The share of the rate at update i of `updates`, the first `warm_up` of which are slower. */
static double rate_share(const dv_train_settings *s, uint64_t i, int64_t updates, int64_t warm_up) {
  double warm = warm_up > 0 && i < (uint64_t)warm_up ? (double)(i + 1) / (double)warm_up : 1;
  double rest = (double)(updates - warm_up), share = 1;
  if (s->decay == DV_DECAY_COSINE && rest > 0 && i >= (uint64_t)warm_up) {
    double done = fmin(1, (double)(i - (uint64_t)warm_up) / rest);
    share =
        s->learning_rate_end + (1 - s->learning_rate_end) * 0.5 * (1 + dv_cos(3.14159265358979323846 * done));
  }
  return warm * share;
}

double dv_learning_rate_at(const dv_train_settings *s, uint64_t i) {
  if (!in_filter_phase(s, i)) return s->learning_rate * rate_share(s, i, s->updates, s->warm_up);
  uint64_t gain = dv_gain_updates(s), first = i < gain ? (uint64_t)s->updates : gain;
  int64_t updates = (int64_t)((i < gain ? gain : dv_all_updates(s)) - first);
  int64_t warm_up = s->warm_up < updates / 10 ? s->warm_up : updates / 10;
  return s->filter_rate * rate_share(s, i - first, updates, warm_up);
}
