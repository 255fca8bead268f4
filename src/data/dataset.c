#include "data/dataset.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Memory ---- */

static void free_source(dvbf_source *source) {
  if (!source) return;
  dv_free(source->limits);
  dv_source_forget(source);
  source->free(source);
}

void dvbf_sequences_free(dvbf_sequences *s) {
  if (!(s->borrowed & DVBF_BORROWED_X)) dv_free(s->x);
  if (!(s->borrowed & DVBF_BORROWED_U)) dv_free(s->u);
  if (!(s->borrowed & DVBF_BORROWED_STATE)) dv_free(s->state);
  dv_free(s->start);
  dv_free(s->length);
  dv_free(s->origin);
  free_source(s->source);
  *s = (dvbf_sequences){0};
}

/* Forgets the arrays that `s` shares with `other`, which will free them. */
static void forget_shared(dvbf_sequences *s, const dvbf_sequences *other) {
  if (s->x == other->x) s->x = NULL;
  if (s->u == other->u) s->u = NULL;
  if (s->state == other->state) s->state = NULL;
  if (s->source == other->source) s->source = NULL;
}

void dvbf_data_free(dvbf_data *data) {
  if (!data) return;
  forget_shared(&data->test, &data->valid);
  forget_shared(&data->test, &data->train);
  forget_shared(&data->valid, &data->train);
  dvbf_sequences_free(&data->train);
  dvbf_sequences_free(&data->valid);
  dvbf_sequences_free(&data->test);
  dv_free(data->x_names);
  dv_free(data->u_names);
  dv_free(data->x_units);
  dv_free(data->u_units);
  dv_free(data->state_names);
  dv_free(data->notes);
  dv_free(data->uses);
  dv_free(data);
}

/* ---- Names ---- */

dvbf_status dvbf_data_name(dvbf_data *data, const char *array, size_t column, const char *name,
                           dvbf_error *error) {
  bool x = !strcmp(array, "x"), u = !strcmp(array, "u"), state = !strcmp(array, "state");
  size_t count = x ? data->train.n_x : u ? data->train.n_u : state ? data->train.n_s : 0;
  char(**names)[32] = x ? &data->x_names : u ? &data->u_names : &data->state_names;
  if (column >= count)
    return dv_fail(error, DVBF_ARGUMENT, "%.20s has %zu columns, so number %zu (counted from 0) has no name",
                   array, count, column);
  if (!*name || strlen(name) >= sizeof **names)
    return dv_fail(error, DVBF_ARGUMENT, "the name \"%.40s\" of a column must have 1 to 31 bytes", name);
  if (!*names) {
    *names = dv_calloc(count, sizeof **names);
    if (!*names) return dv_fail_memory(error, "naming columns");
    for (size_t i = 0; i < count; i++) snprintf((*names)[i], sizeof **names, "%s%zu", array, i);
  }
  snprintf((*names)[column], sizeof **names, "%s", name);
  return DVBF_OK;
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
  s->start = NULL;
  s->source = NULL;
  s->origin = NULL;
  s->length = with_length ? dv_calloc(s->count, sizeof *s->length) : NULL;
  if ((with_length && !s->length) || !allocate_array(&s->x, s, s->n_x) || !allocate_array(&s->u, s, s->n_u) ||
      !allocate_array(&s->state, s, s->n_s)) {
    dvbf_sequences_free(s);
    return dv_fail_memory(error, "making room for sequences");
  }
  return DVBF_OK;
}

static void clear_padding(const dvbf_sequences *s, float *values /* [count][steps][width] */, size_t width) {
  for (size_t i = 0; width && i < s->count; i++) {
    size_t length = dvbf_sequence_length(s, i);
    size_t end = dvbf_sequence_start(s, i) + length;
    memset(values + end * width, 0, (s->steps - length) * width * sizeof *values);
  }
}

void dv_sequences_clear_padding(dvbf_sequences *s) {
  if (!s->length || s->start) return; /* only padded arrays have room behind an end */
  if (s->x) clear_padding(s, s->x, s->n_x);
  clear_padding(s, s->u, s->n_u);
  clear_padding(s, s->state, s->n_s);
}

/* ---- Copies ---- */

/* Rows of [frames][width] of one sequence into its place in a padded array. */
static void copy_rows(float *to, const float *from, const dvbf_sequences *s, size_t sequence, size_t place,
                      size_t width) {
  if (width)
    memcpy(to + place * s->steps * width, from + dvbf_sequence_start(s, sequence) * width,
           dvbf_sequence_length(s, sequence) * width * sizeof *to);
}

dvbf_status dvbf_sequences_copy(dvbf_sequences *out, const dvbf_sequences *from, size_t first, size_t count,
                                dvbf_error *error) {
  dvbf_sequences to = {.count = count,
                       .steps = from->steps,
                       .n_x = from->n_x,
                       .n_u = from->n_u,
                       .n_s = from->n_s,
                       .gaps = from->gaps};
  if (count > from->count || first > from->count - count)
    return dv_fail(error, DVBF_ARGUMENT, "sequences %zu to %zu: there are only %zu", first, first + count,
                   from->count);
  dvbf_status status = dv_sequences_filled(from, "data", "", error);
  if (!status) status = dv_sequences_allocate(&to, from->length, error);
  if (!status && from->origin) {
    to.origin = dv_calloc(count, sizeof *to.origin);
    if (!to.origin) status = dv_fail_memory(error, "copying sequences");
  }
  for (size_t i = 0; i < count && !status; i++) {
    if (to.origin) to.origin[i] = from->origin[first + i];
    size_t length = dvbf_sequence_length(from, first + i);
    if (to.x) dv_sequence_read(from, first + i, length, to.x + i * to.steps * to.n_x);
    copy_rows(to.u, from->u, from, first + i, i, to.n_u);
    copy_rows(to.state, from->state, from, first + i, i, to.n_s);
    if (to.length) to.length[i] = (uint32_t)length;
  }
  if (!status) status = dv_sequences_intact(from, error);
  if (status)
    dvbf_sequences_free(&to);
  else
    *out = to;
  return status;
}

/* ---- Reading x ---- */

const float *dv_sequence_x(const dvbf_sequences *s, size_t sequence, size_t first, size_t steps,
                           float *buffer) {
  size_t frame = dvbf_sequence_start(s, sequence) + first;
  if (s->x || !s->source) return s->x + frame * s->n_x;
  if (!s->source->read(s->source, frame, steps, buffer)) {
    __atomic_store_n(&s->source->failed, true, __ATOMIC_RELAXED);
    for (size_t k = 0; k < steps * s->n_x; k++) buffer[k] = NAN;
  }
  const float *low = s->source->limits;
  for (size_t t = 0; low && t < steps; t++)
    for (size_t k = 0; k < s->n_x; k++)
      if (!(buffer[t * s->n_x + k] >= low[k] && buffer[t * s->n_x + k] <= low[s->n_x + k]))
        buffer[t * s->n_x + k] = NAN;
  return buffer;
}

void dv_sequence_read(const dvbf_sequences *s, size_t sequence, size_t steps, float *out) {
  const float *there = dv_sequence_x(s, sequence, 0, steps, out);
  if (there != out) memcpy(out, there, steps * s->n_x * sizeof *out);
}

dvbf_status dv_sequence_buffer(float **out, const dvbf_sequences *s, size_t steps, dvbf_error *error) {
  size_t size;
  *out = NULL;
  if (!s->source) return DVBF_OK;
  if (dv_multiply(steps, s->n_x, &size)) *out = dv_calloc(size, sizeof **out);
  return *out ? DVBF_OK : dv_fail_memory(error, "making room for frames");
}

dvbf_status dv_sequences_intact(const dvbf_sequences *s, dvbf_error *error) {
  if (!s->source || !__atomic_load_n(&s->source->failed, __ATOMIC_RELAXED)) return DVBF_OK;
  return dv_fail(error, DVBF_IO,
                 "%.200s: could not be read; it was changed or removed while in use, or the "
                 "disk fails",
                 s->source->path);
}

/* ---- Checks ---- */

dvbf_status dv_sequences_filled(const dvbf_sequences *s, const char *where, const char *prefix,
                                dvbf_error *error) {
  const char *lacking = s->n_x && !s->x && !s->source ? "x"
                        : s->n_u && !s->u             ? "u"
                        : s->n_s && !s->state         ? "state"
                                                      : NULL;
  if (!s->count || !lacking) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT, "%.200s: %s%s has columns but no values; set its width to 0 or fill it",
                 where, prefix, lacking);
}

dvbf_status dv_sequences_check_sizes(const dvbf_sequences *s, const char *where, const char *prefix,
                                     dvbf_error *error) {
  if (!s->count || !s->n_x)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: %sx is empty; at least one sequence with one column is needed", where, prefix);
  if (s->steps < 1 || s->steps > UINT32_MAX || s->count > UINT32_MAX)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: %sx has %zu sequences of %zu steps; both numbers must be in [1, 4294967295]",
                   where, prefix, s->count, s->steps);
  dvbf_status status = dv_sequences_filled(s, where, prefix, error);
  if (status) return status;
  for (size_t i = 0; s->length && i < s->count; i++)
    if (s->length[i] < 1 || s->length[i] > s->steps)
      return dv_fail(error, DVBF_FORMAT, "%.200s: %slength is %u for sequence %zu; it must be in [1, %zu]",
                     where, prefix, (unsigned)s->length[i], i, s->steps);
  return DVBF_OK;
}

/* What is wrong with a value, as the end of a sentence; NULL: nothing. u has no gaps. */
static const char *fault(float value, bool gaps, bool may_have_gaps) {
  if (isfinite(value) || (gaps && isnan(value))) return NULL;
  return isnan(value) && may_have_gaps
             ? "missing = nan takes it for a value that is missing; otherwise mend or leave out that "
               "sequence"
         : isnan(value) ? "every value must be there, so mend or leave out that sequence"
                        : "mend or scale it, or leave out that sequence";
}

typedef struct array {
  size_t width;
  bool gaps;
  const char *where, *prefix, *name;
} array;

static dvbf_status check_row(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  const array *a = user;
  for (size_t k = 0; k < a->width; k++) {
    const char *remedy = fault(row[k], a->gaps, *a->name != 'u');
    /* A larger number of 64 bits is infinite as one of 32. */
    if (remedy)
      return dv_fail(error, DVBF_FORMAT,
                     "%.200s: %s%s is %s at sequence %zu, step %zu, column %zu (counted from 0); %s",
                     a->where, a->prefix, a->name,
                     isnan(row[k]) ? "nan"
                     : row[k] > 0  ? "above 3.4e38, the range of 32-bit numbers (or infinite),"
                                   : "below -3.4e38, the range of 32-bit numbers (or infinite),",
                     sequence, step, k, remedy);
  }
  return DVBF_OK;
}

/* A file is measured when it is checked, as that takes no longer. */
static dvbf_status is_complete(bool *out, const dvbf_sequences *s, dvbf_error *error) {
  dv_statistics x;
  dvbf_status status = dv_statistics_of_x(&x, s, error);
  if (status) return status;
  *out = dv_statistics_complete(&x, s->n_x, s->gaps);
  dv_statistics_free(&x);
  return DVBF_OK;
}

dvbf_status dv_sequences_validate(const dvbf_sequences *s, const char *where, const char *prefix,
                                  dvbf_error *error) {
  array x = {s->n_x, s->gaps, where, prefix, "x"}, u = {s->n_u, false, where, prefix, "u"};
  array state = {s->n_s, s->gaps, where, prefix, "state"};
  dvbf_status status = dv_sequences_check_sizes(s, where, prefix, error);
  bool complete = false;
  if (!status && s->source) status = is_complete(&complete, s, error);
  if (!status && !complete) status = dv_each_row(s, NULL, s->n_x, check_row, &x, error);
  dvbf_status read = dv_sequences_intact(s, error); /* what could not be read looks missing */
  if (read) return read;
  if (!status && s->n_u) status = dv_each_row(s, s->u, s->n_u, check_row, &u, error);
  if (!status && s->n_s) status = dv_each_row(s, s->state, s->n_s, check_row, &state, error);
  return status;
}

dvbf_status dv_sequences_recheck(const dvbf_sequences *s, const char *where, dvbf_error *error) {
  array x = {s->n_x, s->gaps, where, "", "x"}, u = {s->n_u, false, where, "", "u"};
  dvbf_status status = dv_each_row(s, NULL, s->n_x, check_row, &x, error);
  dvbf_status read = dv_sequences_intact(s, error);
  if (read) return read;
  return status || !s->n_u ? status : dv_each_row(s, s->u, s->n_u, check_row, &u, error);
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
  size_t pixels, values;
  if ((data->image_height || data->image_width) &&
      (!dv_multiply(data->image_height, data->image_width, &pixels) ||
       !dv_multiply(pixels, dv_image_channels(data), &values) || values != train->n_x))
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: an image of %zu x %zu with %zu channel%s does not have %zu values", where,
                   data->image_height, data->image_width, dv_image_channels(data),
                   dv_image_channels(data) == 1 ? "" : "s", train->n_x);
  return DVBF_OK;
}
