#include "data/dataset.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

/* ---- Memory ---- */

void dv_sequences_free(dvbf_sequences *s) {
  dv_free(s->x);
  dv_free(s->u);
  dv_free(s->state);
  dv_free(s->length);
  s->x = s->u = s->state = NULL;
  s->length = NULL;
}

void dvbf_data_free(dvbf_data *data) {
  if (!data) return;
  dv_sequences_free(&data->train);
  dv_sequences_free(&data->valid);
  dv_sequences_free(&data->test);
  dv_free(data->state_names);
  dv_free(data);
}

/* *out = zeroed [count][steps][width], or NULL for width 0; false when memory is short. */
static bool allocate_array(float **out, const dvbf_sequences *s, size_t width) {
  size_t size;
  *out = NULL;
  if (!width) return true;
  if (dv_multiply(s->count, s->steps, &size) && dv_multiply(size, width, &size))
    *out = dv_calloc(size, sizeof **out);
  return *out;
}

dvbf_status dv_sequences_allocate(dvbf_sequences *s, bool with_length, dvbf_error *error) {
  s->x = s->u = s->state = NULL;
  s->length = with_length ? dv_calloc(s->count, sizeof *s->length) : NULL;
  if ((with_length && !s->length) || !allocate_array(&s->x, s, s->n_x) || !allocate_array(&s->u, s, s->n_u) ||
      !allocate_array(&s->state, s, s->n_s)) {
    dv_sequences_free(s);
    return dv_fail_memory(error, "making room for sequences");
  }
  return DVBF_OK;
}

static void clear_padding(const dvbf_sequences *s, float *values /* [count][steps][width] */, size_t width) {
  for (size_t i = 0; width && i < s->count; i++) {
    size_t length = dv_sequence_length(s, i);
    memset(values + (i * s->steps + length) * width, 0, (s->steps - length) * width * sizeof *values);
  }
}

void dv_sequences_clear_padding(dvbf_sequences *s) {
  if (!s->length) return;
  clear_padding(s, s->x, s->n_x);
  clear_padding(s, s->u, s->n_u);
  clear_padding(s, s->state, s->n_s);
}

/* ---- Checks ---- */

static dvbf_status check_sizes(const dvbf_sequences *s, const char *where, const char *prefix,
                               dvbf_error *error) {
  if (!s->count || !s->n_x || !s->x)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: %sx is empty; at least one sequence with one column is needed", where, prefix);
  if (s->steps < 2 || s->steps > UINT32_MAX || s->count > UINT32_MAX)
    return dv_fail(
        error, DVBF_FORMAT,
        "%.200s: %sx has %zu sequences of %zu steps; a sequence needs at least 2 steps, and neither "
        "number may pass 4294967295",
        where, prefix, s->count, s->steps);
  if ((s->n_u && !s->u) || (s->n_s && !s->state))
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: %s%s has columns but no values; set its width to 0 or fill it", where, prefix,
                   s->n_u && !s->u ? "u" : "state");
  for (size_t i = 0; s->length && i < s->count; i++)
    if (s->length[i] < 1 || s->length[i] > s->steps)
      return dv_fail(error, DVBF_FORMAT, "%.200s: %slength is %u for sequence %zu; it must be in [1, %zu]",
                     where, prefix, (unsigned)s->length[i], i, s->steps);
  return DVBF_OK;
}

static dvbf_status check_finite(const dvbf_sequences *s, const float *values /* [count][steps][width] */,
                                size_t width, const char *where, const char *prefix, const char *name,
                                dvbf_error *error) {
  for (size_t i = 0; width && i < s->count; i++) {
    const float *row = values + i * s->steps * width;
    size_t size = dv_sequence_length(s, i) * width;
    for (size_t k = 0; k < size; k++)
      if (!isfinite(row[k]))
        return dv_fail(
            error, DVBF_FORMAT,
            "%.200s: %s%s is %g at sequence %zu, step %zu, column %zu (counted from 0); every value "
            "must be finite, so mend or leave out that sequence",
            where, prefix, name, (double)row[k], i, k / width, k % width);
  }
  return DVBF_OK;
}

dvbf_status dv_sequences_validate(const dvbf_sequences *s, const char *where, const char *prefix,
                                  dvbf_error *error) {
  dvbf_status status = check_sizes(s, where, prefix, error);
  if (!status) status = check_finite(s, s->x, s->n_x, where, prefix, "x", error);
  if (!status) status = check_finite(s, s->u, s->n_u, where, prefix, "u", error);
  if (!status) status = check_finite(s, s->state, s->n_s, where, prefix, "state", error);
  return status;
}

static dvbf_status columns_differ(const char *where, const char *prefix, const char *name, size_t found,
                                  size_t needed, dvbf_error *error) {
  return dv_fail(
      error, DVBF_FORMAT,
      "%.200s: %s%s has %zu columns but the %s of an earlier split has %zu; all must have the same", where,
      prefix, name, found, name, needed);
}

dvbf_status dv_data_validate(const dvbf_data *data, const char *where, dvbf_error *error) {
  const dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test}, *train = &data->train;
  static const char *const prefixes[] = {"train/", "valid/", "test/"};
  size_t n_s = 0; /* a split may lack the ground truth, as training does not use it */
  for (size_t i = 0; i < 3; i++) {
    const dvbf_sequences *s = splits[i];
    if (i > 0 && !s->count) continue;
    dvbf_status status = dv_sequences_validate(s, where, prefixes[i], error);
    if (status) return status;
    if (s->n_x != train->n_x) return columns_differ(where, prefixes[i], "x", s->n_x, train->n_x, error);
    if (s->n_u != train->n_u) return columns_differ(where, prefixes[i], "u", s->n_u, train->n_u, error);
    if (s->n_s && !n_s) n_s = s->n_s;
    if (s->n_s && s->n_s != n_s) return columns_differ(where, prefixes[i], "state", s->n_s, n_s, error);
  }
  if (n_s && !data->state_names)
    return dv_fail(error, DVBF_FORMAT, "%.200s: the columns of state have no names; fill state_names", where);
  size_t pixels;
  if ((data->image_height || data->image_width) &&
      (!dv_multiply(data->image_height, data->image_width, &pixels) || pixels != train->n_x))
    return dv_fail(error, DVBF_FORMAT, "%.200s: an image of %zu x %zu does not have %zu pixels", where,
                   data->image_height, data->image_width, train->n_x);
  return DVBF_OK;
}

/* ---- Splitting ---- */

/* Copies the sequences `pick` of `from` into `to`. */
static dvbf_status pick_sequences(dvbf_sequences *to, const dvbf_sequences *from,
                                  const uint32_t *pick /* [count] */, size_t count, dvbf_error *error) {
  *to = (dvbf_sequences){
      .count = count, .steps = from->steps, .n_x = from->n_x, .n_u = from->n_u, .n_s = from->n_s};
  dvbf_status status = dv_sequences_allocate(to, from->length, error);
  if (status) return status;
  size_t x = from->steps * from->n_x, u = from->steps * from->n_u, state = from->steps * from->n_s;
  for (size_t i = 0; i < count; i++) {
    if (x) memcpy(to->x + i * x, from->x + pick[i] * x, x * sizeof *to->x);
    if (u) memcpy(to->u + i * u, from->u + pick[i] * u, u * sizeof *to->u);
    if (state) memcpy(to->state + i * state, from->state + pick[i] * state, state * sizeof *to->state);
    if (from->length) to->length[i] = from->length[pick[i]];
  }
  return DVBF_OK;
}

dvbf_status dv_data_split(dvbf_data *data, const dvbf_sequences *all, uint64_t seed, const char *where,
                          dvbf_error *error) {
  if (all->count < 3)
    return dv_fail(
        error, DVBF_FORMAT,
        "%.200s: x has %zu sequences; at least 3 are needed to split it into train, valid and test", where,
        all->count);
  uint32_t *order = dv_calloc(all->count, sizeof *order);
  if (!order) return dv_fail_memory(error, "splitting data");
  /* Training draws its orders at small counters: the largest one keeps the split apart from them. */
  dv_random random = dv_random_at(seed, DV_STREAM_ORDER, UINT32_MAX, UINT32_MAX);
  dv_random_permutation(&random, order, all->count);
  size_t tenth = all->count < 10 ? 1 : all->count / 10, most = all->count - 2 * tenth;
  dvbf_status status = pick_sequences(&data->train, all, order, most, error);
  if (!status) status = pick_sequences(&data->valid, all, order + most, tenth, error);
  if (!status) status = pick_sequences(&data->test, all, order + most + tenth, tenth, error);
  dv_free(order);
  return status;
}

/* ---- Statistics ---- */

/* sum[k] += values[.][.][k], or its squared distance from mean[k] when mean is not NULL; returns the steps.
 */
static size_t add_steps(const dvbf_sequences *s, const float *values /* [count][steps][width] */,
                        size_t width, const double *mean /* [width] */, double *sum /* [width] */) {
  size_t steps = 0;
  for (size_t i = 0; i < s->count; i++) {
    size_t length = dv_sequence_length(s, i);
    for (size_t t = 0; t < length; t++) {
      const float *row = values + (i * s->steps + t) * width;
      for (size_t k = 0; k < width; k++) sum[k] += mean ? (row[k] - mean[k]) * (row[k] - mean[k]) : row[k];
    }
    steps += length;
  }
  return steps;
}

/* Two passes, as the difference of large moments would lose the variance of a far-off mean. */
static void column_statistics(const dvbf_sequences *s, const float *values /* [count][steps][width] */,
                              size_t width, double *mean /* [width] */, double *variance /* [width] */) {
  if (!width) return;
  memset(mean, 0, width * sizeof *mean);
  memset(variance, 0, width * sizeof *variance);
  size_t steps = add_steps(s, values, width, NULL, mean);
  if (!steps) return;
  for (size_t k = 0; k < width; k++) mean[k] /= (double)steps;
  add_steps(s, values, width, mean, variance);
  for (size_t k = 0; k < width; k++) variance[k] /= (double)steps;
}

void dv_sequences_statistics(const dvbf_sequences *s, double *mean, double *variance) {
  column_statistics(s, s->x, s->n_x, mean, variance);
}

void dv_controls_statistics(const dvbf_sequences *s, double *mean, double *variance) {
  column_statistics(s, s->u, s->n_u, mean, variance);
}
