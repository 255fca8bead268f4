/* Sequences in memory: making, copying, naming, reading x from memory or from a file, validating, and
 * visiting all rows in an order that threads and ranks do not change (dv_visit_rows, dv_survey_rows), of
 * large data those of a sample, so that no caller can read them whole by mistake. */
#include "data/dataset.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Memory ---- */

void dvbf_sequences_free(dvbf_sequences *s) {
  if (!(s->borrowed & DVBF_BORROWED_X)) dv_free(s->x);
  if (!(s->borrowed & DVBF_BORROWED_U)) dv_free(s->u);
  if (!(s->borrowed & DVBF_BORROWED_STATE)) dv_free(s->state);
  DV_FREE(s->start, s->length, s->origin, s->source ? s->source->limits : NULL);
  if (s->source) s->source->free(s->source);
  dv_facts_free(s->facts);
  *s = (dvbf_sequences){0};
}

/* Drops the arrays shared with `other`, which will free them. */
static void forget_shared(dvbf_sequences *s, const dvbf_sequences *other) {
  if (s->x == other->x) s->x = NULL;
  if (s->u == other->u) s->u = NULL;
  if (s->state == other->state) s->state = NULL;
  if (s->source == other->source) s->source = NULL;
  if (s->facts == other->facts) s->facts = NULL;
}

void dvbf_data_free(dvbf_data *data) {
  if (!data) return;
  forget_shared(&data->test, &data->valid);
  forget_shared(&data->test, &data->train);
  forget_shared(&data->valid, &data->train);
  dvbf_sequences_free(&data->train);
  dvbf_sequences_free(&data->valid);
  dvbf_sequences_free(&data->test);
  DV_FREE(data->x_names, data->u_names, data->x_units, data->u_units, data->state_names, data->notes,
          data->uses, data);
}

/* ---- Names ---- */

dvbf_status dvbf_data_name(dvbf_data *data, const char *array, size_t column, const char *name,
                           dvbf_error *error) {
  bool x = !strcmp(array, "x"), u = !strcmp(array, "u"), state = !strcmp(array, "state");
  size_t count = x ? data->train.n_x : u ? data->train.n_u : state ? data->train.n_s : 0;
  char(**names)[32] = x ? &data->x_names : u ? &data->u_names : &data->state_names;
  if (column >= count)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.20s has %zu columns, so there is no column %zu (counted from 0) to name", array, count,
                   column);
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

/* *out = zeroed [count][steps][width], unless width is 0; false when memory is short. */
static bool allocate_array(float **out, const dvbf_sequences *s, size_t width) {
  size_t size;
  if (width && dv_multiply(s->count, s->steps, &size) && dv_multiply(size, width, &size))
    *out = dv_calloc(size, sizeof **out);
  return *out || !width;
}

dvbf_status dv_sequences_allocate(dvbf_sequences *s, bool with_length, dvbf_error *error) {
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
                 "%.200s: could not be read; it was changed or removed while in use, or the disk is failing",
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

typedef struct array {
  const float *values; /* NULL: x */
  size_t width;
  bool gaps;
  const char *where, *prefix, *name;
  dv_measure_fn *measure;
} array;

static dvbf_status check_row(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  const array *a = user;
  for (size_t k = 0; k < a->width; k++) {
    bool missing = isnan(row[k]), is_u = *a->name == 'u'; /* which has no gaps */
    if (isfinite(row[k]) || (a->gaps && missing)) continue;
    /* A larger number of 64 bits is infinite as one of 32. */
    return dv_fail(
        error, DVBF_FORMAT, "%.200s: %s%s is %s at sequence %zu, step %zu, column %zu (counted from 0); %s",
        a->where, a->prefix, a->name,
        missing      ? "nan"
        : row[k] > 0 ? "above 3.4e38, the range of 32-bit numbers (or infinite),"
                     : "below -3.4e38, the range of 32-bit numbers (or infinite),",
        sequence, step, k,
        !missing ? "correct or scale it, or leave out that sequence"
        : is_u   ? "every value must be known, so correct or leave out that sequence"
                 : "missing = nan treats it as missing; otherwise correct or leave out that sequence");
  }
  return DVBF_OK;
}

/* Statistics that are kept, or those of a file, which take no longer, tell whether to check rows. */
static dvbf_status check_array(const dvbf_sequences *s, array *a, bool anew, dvbf_error *error) {
  dv_statistics found;
  bool complete = false;
  if (!a->width) return DVBF_OK;
  if (!anew && (s->facts || (s->source && !a->values))) {
    dvbf_status status = a->measure(&found, s, error);
    if (status) return status;
    complete = dv_statistics_complete(&found, a->width, a->gaps);
    dv_statistics_free(&found);
  }
  return complete ? DVBF_OK : dv_visit_rows(s, a->values, a->width, check_row, a, error);
}

static dvbf_status check_values(const dvbf_sequences *s, const char *where, const char *prefix, bool anew,
                                dvbf_error *error) {
  array x = {NULL, s->n_x, s->gaps, where, prefix, "x", dv_statistics_of_x};
  array u = {s->u, s->n_u, false, where, prefix, "u", dv_statistics_of_u};
  array state = {s->state, s->n_s, s->gaps, where, prefix, "state", dv_statistics_of_state};
  dvbf_status status = check_array(s, &x, anew, error);
  dvbf_status read = dv_sequences_intact(s, error); /* unreadable values look missing */
  if (read) return read;
  if (!status) status = check_array(s, &u, anew, error);
  return status ? status : check_array(s, &state, anew, error);
}

dvbf_status dv_sequences_validate(const dvbf_sequences *s, const char *where, const char *prefix,
                                  dvbf_error *error) {
  dvbf_status status = dv_sequences_check_sizes(s, where, prefix, error);
  return status ? status : check_values(s, where, prefix, false, error);
}

dvbf_status dv_sequences_recheck(const dvbf_sequences *s, const char *where, dvbf_error *error) {
  return check_values(s, where, "", true, error);
}

static dvbf_status columns_differ(const char *where, const char *prefix, const char *name, size_t found,
                                  size_t needed, dvbf_error *error) {
  return dv_fail(error, DVBF_FORMAT,
                 "%.200s: %s%s has %zu columns but the %s of an earlier split has %zu; all splits must have "
                 "the same number",
                 where, prefix, name, found, name, needed);
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

/* ---- Rows ---- */

enum { SLICE = 1 << 16 }; /* numbers looked at between two reads of a source */

uint64_t dv_large = (uint64_t)1 << 31;
uint64_t dv_chunk = (uint64_t)1 << 24;

size_t dv_sequences_thinned(const dvbf_sequences *s) {
  double numbers = (double)dv_sequences_frames(s) * (double)s->n_x;
  return numbers > (double)dv_large ? (size_t)(64 * numbers / (double)dv_large) : 1;
}

/* Whether this piece is read: one in each run of `thinned`, at a place that no rhythm can hide from. */
static bool is_chosen(uint64_t piece, size_t thinned) {
  uint64_t hash = (piece / thinned + 1) * 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
  return thinned < 2 || piece % thinned == (hash ^ hash >> 32) % thinned;
}

/* ---- Visits and surveys ---- */

/* A visit of rows. Chunk c of a survey belongs to rank c % size; ranks exchange findings after a round. */
typedef struct visit {
  const dvbf_sequences *s;
  const float *values; /* [frames][width]; NULL: x */
  size_t width;
  dv_row_fn *each;
  void *user;
  const dv_survey *survey; /* NULL: there is one chunk */
  dv_ranks *team;
  uint64_t rows;  /* of a chunk */
  uint64_t chunk; /* that is open */
  size_t *first;  /* [size + 1] */
  void *other;    /* room for what another rank found */
} visit;

uint64_t dv_rows_in_chunk(const dvbf_sequences *s, size_t width, bool of_x) {
  enum { CHUNKS = 64 };
  if (of_x && dv_sequences_thinned(s) > 1) return (dv_sequences_frames(s) + CHUNKS - 1) / CHUNKS;
  return width < dv_chunk ? dv_chunk / width : 1;
}

static bool is_own(const visit *v) {
  return (int)(v->chunk % (uint64_t)dv_ranks_size(v->team)) == dv_ranks_rank(v->team);
}

/* Joins the findings in chunks from .. from + count - 1, rank after rank. */
static void join_round(const visit *v, uint64_t from, int count) {
  const dv_survey *survey = v->survey;
  int size = dv_ranks_size(v->team);
  for (int rank = 0; rank < count; rank++) {
    void *part = rank == dv_ranks_rank(v->team) ? survey->part : v->other;
    for (int r = 0; r <= size; r++) v->first[r] = r > rank;
    dv_ranks_gather_parts(v->team, part, survey->bytes, v->first);
    survey->join(survey->user, part, from + (uint64_t)rank == 0);
  }
}

/* Ends the open chunk, and its round if it is the last of it. */
static void close_chunk(visit *v, bool last) {
  uint64_t size = (uint64_t)dv_ranks_size(v->team), turn = v->chunk % size;
  if (is_own(v) && v->survey->end) v->survey->end(v->survey->user);
  if (turn + 1 == size || last) join_round(v, v->chunk - turn, (int)turn + 1);
  v->chunk++;
  if (is_own(v) && !last) v->survey->begin(v->survey->user);
}

/* Steps first .. first + count - 1 of a sequence; `buffer` is for x in a file. */
static dvbf_status look(const visit *v, size_t sequence, size_t first, size_t count, float *buffer,
                        dvbf_error *error) {
  const float *rows = v->values ? v->values + (dvbf_sequence_start(v->s, sequence) + first) * v->width
                                : dv_sequence_x(v->s, sequence, first, count, buffer);
  dvbf_status status = DVBF_OK;
  for (size_t k = 0; k < count && !status; k++)
    status = v->each(v->user, sequence, first + k, rows + k * v->width, error);
  return status;
}

/* Looks at the chosen pieces, each within a sequence, that are this rank's own. */
static dvbf_status go(visit *v, dvbf_error *error) {
  const dvbf_sequences *s = v->s;
  size_t thinned = v->values ? 1 : dv_sequences_thinned(s), most = v->width < SLICE ? SLICE / v->width : 1;
  uint64_t number = 0, before = 0; /* of the piece, and rows before it */
  float *buffer = NULL;
  dvbf_status status = v->values ? DVBF_OK : dv_sequence_buffer(&buffer, s, most, error);
  for (size_t i = 0; i < s->count && !status; i++) {
    size_t length = dvbf_sequence_length(s, i), count;
    for (size_t first = 0; first < length && !status; first += most, before += count) {
      count = length - first < most ? length - first : most;
      if (!is_chosen(number++, thinned)) continue;
      while (before / v->rows > v->chunk) close_chunk(v, false);
      if (is_own(v)) status = look(v, i, first, count, buffer, error);
    }
  }
  dv_free(buffer);
  return status;
}

dvbf_status dv_visit_rows(const dvbf_sequences *s, const float *values, size_t width, dv_row_fn *each,
                          void *user, dvbf_error *error) {
  return go(&(visit){s, values, width, each, user, .rows = UINT64_MAX}, error);
}

dvbf_status dv_survey_rows(const dvbf_sequences *s, const float *values, size_t width,
                           const dv_survey *survey, dvbf_error *error) {
  visit v = {
      s, values, width, survey->row, survey->user, survey, .rows = dv_rows_in_chunk(s, width, !values)};
  if (!values && s->source && dv_sequences_frames(s) > v.rows) v.team = s->source->team;
  v.first = dv_calloc((size_t)dv_ranks_size(v.team) + 1, sizeof *v.first);
  v.other = v.team ? dv_calloc(1, survey->bytes) : NULL;
  bool made = v.first && (v.other || !v.team);
  dvbf_status status = made ? DVBF_OK : dv_fail_memory(error, "looking at the data");
  if (!status && is_own(&v)) survey->begin(survey->user);
  if (!status) status = go(&v, error);
  if (!status) close_chunk(&v, true);
  DV_FREE(v.first, v.other);
  return status;
}
