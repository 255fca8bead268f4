/* Parts of sequences that share their arrays: splits into train, valid and test (dv_data_split,
 * dvbf_data_split), windows for training (dv_windows_cut) and evenly spread samples of large data
 * (dv_sequences_some). Parts own their starts and lengths alone. */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "math/random.h"

#include <math.h>
#include <string.h>

/* An empty part of `all` with room for `count` sequences. */
static dvbf_status part_of(dvbf_sequences *to, const dvbf_sequences *all, size_t count, bool origins,
                           dvbf_error *error) {
  *to = *all;
  to->count = to->steps = 0;
  to->start = dv_calloc(count, sizeof *to->start);
  to->length = dv_calloc(count, sizeof *to->length);
  to->origin = origins ? dv_calloc(count, sizeof *to->origin) : NULL;
  if (to->start && to->length && (to->origin || !origins)) return DVBF_OK;
  dv_windows_free(to);
  return dv_fail_memory(error, "splitting data");
}

/* Adds steps first .. first + steps - 1 of a sequence, which begin first * sample_time later. A single step
 * is left out unless no sequence has more. */
static void add_piece(dvbf_sequences *to, const dvbf_sequences *all, size_t sequence, size_t first,
                      size_t steps, double sample_time) {
  if (steps < 1 || (steps < 2 && all->steps > 1)) return;
  if (to->origin) {
    dvbf_origin *origin = &to->origin[to->count];
    *origin = all->origin ? all->origin[sequence] : (dvbf_origin){.sequence = sequence};
    origin->step += first;
    origin->time += (double)first * sample_time;
  }
  to->start[to->count] = dvbf_sequence_start(all, sequence) + first;
  to->length[to->count++] = (uint32_t)steps;
  if (steps > to->steps) to->steps = steps;
}

/* Drops the lengths if all are equal. An empty part owns and shares nothing. */
static void close_part(dvbf_sequences *to) {
  bool shorter = false;
  for (size_t i = 0; i < to->count; i++) shorter |= to->length[i] < to->steps;
  if (!shorter) {
    dv_free(to->length);
    to->length = NULL;
  }
  if (!to->count) dv_windows_free(to);
}

void dv_windows_free(dvbf_sequences *windows) {
  DV_FREE(windows->start, windows->length, windows->origin);
  *windows = (dvbf_sequences){0};
}

/* ---- Splits ---- */

/* Sizes of valid and test among `n`: a positive share is never empty while enough is left. */
static void shares_of(size_t n, const dv_data_settings *how, size_t least, size_t counts[3]) {
  double shares[] = {how->valid_share, how->test_share};
  for (int i = 0; i < 2; i++) {
    size_t count = (size_t)floor((double)n * shares[i] + 1e-9);
    counts[1 + i] = shares[i] > 0 && count < least ? least : count;
  }
  counts[0] = n > counts[1] + counts[2] ? n - counts[1] - counts[2] : 0;
}

static dvbf_status too_little(const char *before, size_t n, const char *what, const dv_data_settings *how,
                              const char *where, dvbf_error *error) {
  return dv_fail(
      error, DVBF_FORMAT,
      "%.200s: x has %s%zu %s%s, too little for valid-share = %g and test-share = %g; make them smaller or "
      "0, or store train, valid and test",
      where, before, n, what, n == 1 ? "" : "s", how->valid_share, how->test_share);
}

/* Whole sequences, in the order given. */
static dvbf_status split_sequences(dvbf_sequences *parts[3], const dvbf_sequences *all,
                                   const uint32_t *order /* [count] */, const dv_data_settings *how,
                                   const char *where, dvbf_error *error) {
  size_t counts[3], next = 0;
  shares_of(all->count, how, 1, counts);
  if (!counts[0]) return too_little("", all->count, "sequence", how, where, error);
  for (int k = 0; k < 3; k++)
    for (size_t i = 0; i < counts[k]; i++, next++)
      add_piece(parts[k], all, order[next], 0, dvbf_sequence_length(all, order[next]), 0);
  return DVBF_OK;
}

/* The beginning of each sequence trains, its end tests. */
static dvbf_status split_time(dvbf_sequences *parts[3], const dvbf_sequences *all, double sample_time,
                              const dv_data_settings *how, const char *where, dvbf_error *error) {
  for (size_t i = 0; i < all->count; i++) {
    size_t counts[3], length = dvbf_sequence_length(all, i), first = 0;
    shares_of(length, how, 2, counts);
    if (counts[0] < 2) return too_little("a sequence of ", length, "step", how, where, error);
    for (int k = 0; k < 3; k++) {
      add_piece(parts[k], all, i, first, counts[k], sample_time);
      first += counts[k];
    }
  }
  return DVBF_OK;
}

/* By time if there are too few for three splits, or few and long, as each may be the only of its kind. */
static int64_t best_way(const dvbf_sequences *all) {
  enum { TOO_FEW = 3, FEW = 10, LONG = 100 };
  if (all->count < TOO_FEW) return DV_SPLIT_TIME;
  for (size_t i = 0; i < all->count; i++)
    if (all->count >= FEW || dvbf_sequence_length(all, i) < LONG) return DV_SPLIT_SEED;
  return DV_SPLIT_TIME;
}

static dvbf_status fill_parts(dvbf_sequences *parts[3], const dvbf_sequences *all, double sample_time,
                              const dv_data_settings *how, const char *where, dvbf_error *error) {
  int64_t by = how->split_by == DV_SPLIT_AUTO ? best_way(all) : how->split_by;
  if (by == DV_SPLIT_TIME) return split_time(parts, all, sample_time, how, where, error);
  dv_data_settings none = *how;
  none.valid_share = none.test_share = 0;
  uint32_t *order = dv_calloc(all->count, sizeof *order);
  if (!order) return dv_fail_memory(error, "splitting data");
  for (size_t i = 0; i < all->count; i++) order[i] = (uint32_t)i;
  /* Training draws its orders at small counters, so the split uses the largest one. */
  dv_random random = dv_random_at((uint64_t)how->split_seed, DV_STREAM_ORDER, UINT32_MAX, UINT32_MAX);
  if (by == DV_SPLIT_SEED) dv_random_permutation(&random, order, all->count);
  dvbf_status status = split_sequences(parts, all, order, by == DV_SPLIT_NONE ? &none : how, where, error);
  dv_free(order);
  return status;
}

dvbf_status dv_data_split(dvbf_data *data, const dvbf_sequences *all, const dv_data_settings *how,
                          const char *where, dvbf_error *error) {
  dvbf_sequences split[3] = {0}, *parts[3] = {&split[0], &split[1], &split[2]};
  dvbf_status status = DVBF_OK;
  for (int k = 0; k < 3 && !status; k++) status = part_of(parts[k], all, all->count, true, error);
  if (!status) status = fill_parts(parts, all, data->sample_time, how, where, error);
  if (!status && !split[0].count)
    status = dv_fail(error, DVBF_FORMAT, "%.200s: no sequence has 2 steps", where);
  for (int k = 0; k < 3; k++) status ? dv_windows_free(parts[k]) : close_part(parts[k]);
  if (status) return status;
  data->train = split[0];
  data->valid = split[1];
  data->test = split[2];
  return DVBF_OK;
}

/* ---- Samples of large data ---- */

dvbf_status dv_sequences_some(dvbf_sequences *out, const dvbf_sequences *s, uint64_t divisor,
                              dvbf_error *error) {
  uint64_t most = dv_large / divisor;
  double numbers = (double)dv_sequences_frames(s) * (double)s->n_x, wanted = (double)most;
  size_t count = s->count;
  if (dv_sequences_thinned(s) > 1) count = (size_t)(wanted / numbers * (double)s->count);
  if (!count) count = 1;
  dvbf_status status = part_of(out, s, count, false, error);
  if (status) return status;
  for (size_t k = 0; k < count; k++) {
    size_t i = (size_t)((double)k * (double)s->count / (double)count);
    add_piece(out, s, i, 0, dvbf_sequence_length(s, i), 0);
  }
  close_part(out);
  return DVBF_OK;
}

/* ---- Windows ---- */

/* Windows of one sequence: every `stride`, and one at the end if steps remain. */
static size_t windows_in(size_t length, size_t window, size_t stride) {
  return length <= window ? 1 : (length - window + stride - 1) / stride + 1;
}

dvbf_status dv_windows_cut(dvbf_sequences *out, const dvbf_sequences *s, size_t window, size_t stride,
                           dvbf_error *error) {
  size_t total = 0;
  for (size_t i = 0; i < s->count; i++) {
    size_t more = windows_in(dvbf_sequence_length(s, i), window, stride);
    if (more > UINT32_MAX - total)
      return dv_fail(error, DVBF_ARGUMENT,
                     "window = %zu, stride = %zu: more than 4294967295 windows; a larger "
                     "stride makes fewer",
                     window, stride);
    total += more;
  }
  dvbf_status status = part_of(out, s, total, false, error);
  if (status) return status;
  for (size_t i = 0; i < s->count; i++) {
    size_t length = dvbf_sequence_length(s, i), n = windows_in(length, window, stride);
    for (size_t k = 0; k < n; k++) {
      size_t first = length <= window ? 0 : k * stride < length - window ? k * stride : length - window;
      add_piece(out, s, i, first, length < window ? length : window, 0);
    }
  }
  close_part(out);
  return DVBF_OK;
}

dvbf_status dvbf_data_split(const dvbf_sequences **out, const dvbf_data *data, const dvbf_settings *settings,
                            dvbf_error *error) {
  char name[16] = "";
  dvbf_status status = dvbf_settings_get(settings, "split", name, sizeof name, error);
  if (status) return status;
  bool all = !strcmp(name, "all");
  if (all && data->test.count)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the data are already split, so split = all does not apply; choose train, valid or test");
  const dvbf_sequences *split = all || !strcmp(name, "train") ? &data->train
                                : !strcmp(name, "valid")      ? &data->valid
                                                              : &data->test;
  if (!split->count)
    return dv_fail(error, DVBF_FORMAT, "the split %s is empty; split = all uses the whole file", name);
  *out = split;
  return DVBF_OK;
}
