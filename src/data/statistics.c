/* Statistics of the columns of x, u and state: moments, ranges and checksums, found once and kept with the
 * arrays (dv_facts_*, dv_statistics_*), the description that dvbf_sequences_describe gives to users, and the
 * fingerprint that tells data from other data when a run is resumed. Sums are joined chunk by chunk in order,
 * so that ranks get the same bits. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Sums of a column less its first value, or rounding would destroy the variance of values far from 0. */
typedef struct sums {
  double *shift, *sum, *squares; /* [width] */
} sums;

/* Adds the bits of each value, times a number for its place in time: equal columns have equal checksums,
 * others almost never. 0 and -0 count as equal, and so do all missing values. */
static void add_to_checksums(uint64_t *sum, const float *row, size_t width, uint64_t place) {
  uint64_t factor = (place + 1) * 0x9e3779b97f4a7c15; /* its bits, well mixed */
  factor = (factor ^ factor >> 32) * 0xd6e8feb86659fd93;
  factor = (factor ^ factor >> 32) | 1;
  for (size_t k = 0; k < width; k++) {
    const uint32_t missing = 0x7fc00000;
    float value = row[k] + 0.0F;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    sum[k] += (isnan(row[k]) ? missing : bits) * factor;
  }
}

/* The usual row without missing values, in which every column had a value before. No branches. */
static void add_whole_step(dv_statistics *s, sums *c, const float *row, size_t width) {
  for (size_t k = 0; k < width; k++) {
    double value = (double)row[k], e = value - c->shift[k];
    c->sum[k] += e;
    c->squares[k] += e * e;
    s->least[k] = value < s->least[k] ? value : s->least[k];
    s->most[k] = value > s->most[k] ? value : s->most[k];
    s->seen[k]++;
  }
}

static void add_part_of_step(dv_statistics *s, sums *c, const float *row, size_t width) {
  for (size_t k = 0; k < width; k++) {
    double value = (double)row[k];
    if (isnan(row[k])) continue;
    if (!s->seen[k]) c->shift[k] = s->least[k] = s->most[k] = value;
    double e = value - c->shift[k];
    c->sum[k] += e;
    c->squares[k] += e * e;
    s->least[k] = fmin(value, s->least[k]);
    s->most[k] = fmax(value, s->most[k]);
    s->seen[k]++;
  }
}

/* Whether every column had a value. */
static bool all_known(const dv_statistics *s, size_t width) {
  for (size_t k = 0; k < width; k++)
    if (!s->seen[k]) return false;
  return true;
}

typedef struct measurement {
  dv_statistics *out, part;
  dv_statistics *head; /* of a chunk, before its arrays; its pointers mean nothing to other ranks */
  sums sums;
  size_t width;
  const dvbf_sequences *sequences;
  size_t sequence; /* of the last row */
  uint64_t before; /* rows of the sequences before it */
  bool known;
} measurement;

static dvbf_status add_step(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  measurement *m = user;
  dv_statistics *s = &m->part;
  size_t width = m->width, seen = 0, bits = 0, counts = 0;
  m->known = m->known || all_known(s, width);
  while (m->sequence < sequence) m->before += dvbf_sequence_length(m->sequences, m->sequence++);
  add_to_checksums(s->checksum, row, width, m->before + step);
  for (size_t k = 0; k < width; k++) seen += !isnan(row[k]);
  for (size_t k = 0; s->binary && k < width; k++) bits += row[k] == 0 || row[k] == 1;
  for (size_t k = 0; s->counts && k < width; k++) counts += row[k] >= 0 && row[k] == floorf(row[k]);
  if (seen == width && m->known)
    add_whole_step(s, &m->sums, row, width);
  else
    add_part_of_step(s, &m->sums, row, width);
  s->binary = s->binary && bits == seen;
  s->counts = s->counts && counts == seen;
  s->whole = s->whole && (seen == 0 || seen == width);
  s->frames += seen > 0;
  s->rows++;
  return DVBF_OK;
}

static void finish(dv_statistics *s, const sums *c, size_t width) {
  for (size_t k = 0; k < width; k++) {
    if (!s->seen[k]) continue;
    double n = (double)s->seen[k], mean = c->sum[k] / n;
    s->mean[k] = c->shift[k] + mean;
    s->variance[k] = fmax(0, c->squares[k] / n - mean * mean);
    s->low = fmin(s->low, s->least[k]);
    s->high = fmax(s->high, s->most[k]);
  }
}

/* Large data were sampled: the rest is assumed to be like the sample. */
static void extrapolate(dv_statistics *s, size_t width, uint64_t rows) {
  double times = s->rows ? (double)rows / (double)s->rows : 1;
  if (s->rows == rows) return;
  for (size_t k = 0; k < width; k++) s->seen[k] = (uint64_t)((double)s->seen[k] * times + 0.5);
  s->frames = (uint64_t)((double)s->frames * times + 0.5);
  s->rows = rows;
}

enum { COLUMN_ARRAYS = 6 }; /* of each column */

/* Sets its arrays, in `room` [COLUMN_ARRAYS][width]. */
static void point(dv_statistics *s, double *room, size_t width) {
  void *counts = room + 4 * width;
  s->mean = room;
  s->variance = room + width;
  s->least = room + 2 * width;
  s->most = room + 3 * width;
  s->seen = counts;
  s->checksum = s->seen + width;
}

/* Of no values yet. */
static dv_statistics arranged(double *room, size_t width) {
  dv_statistics s = {.low = INFINITY, .high = -INFINITY, .whole = true, .binary = true, .counts = true};
  point(&s, room, width);
  return s;
}

static bool allocate(dv_statistics *s, size_t width) {
  double *room = dv_calloc(width ? width : 1, COLUMN_ARRAYS * sizeof *room);
  *s = room ? arranged(room, width) : (dv_statistics){0};
  return room;
}

/* Copies into the existing arrays. */
static void become(dv_statistics *to, const dv_statistics *from, size_t width) {
  double *room = memcpy(to->mean, from->mean, width * COLUMN_ARRAYS * sizeof *to->mean);
  *to = *from;
  point(to, room, width);
}

/* ---- Chunks ---- */

static void begin_chunk(void *user) {
  measurement *m = user;
  memset(m->part.mean, 0, m->width * COLUMN_ARRAYS * sizeof *m->part.mean);
  memset(m->sums.shift, 0, m->width * 3 * sizeof *m->sums.shift);
  m->part = arranged(m->part.mean, m->width);
  m->known = false;
}

static void end_chunk(void *user) {
  measurement *m = user;
  finish(&m->part, &m->sums, m->width);
  *m->head = m->part;
}

static void join_chunk(void *user, const void *part, bool first) {
  measurement *m = user;
  dv_statistics s = *(const dv_statistics *)part;
  point(&s, (double *)((uintptr_t)part + sizeof s), m->width);
  if (first)
    become(m->out, &s, m->width);
  else
    dv_statistics_join(m->out, &s, m->width);
}

/* `values` [frames][width]; NULL: x, in memory or in its file. */
static dvbf_status measure_columns(dv_statistics *out, const dvbf_sequences *s, const float *values,
                                   size_t width, dvbf_error *error) {
  measurement m = {.out = out, .width = width, .sequences = s};
  size_t bytes = sizeof *m.head + width * COLUMN_ARRAYS * sizeof(double);
  double *columns = dv_calloc(width + 1, 3 * sizeof *columns);
  m.head = dv_calloc(1, bytes);
  dvbf_status status =
      allocate(out, width) && columns && m.head ? DVBF_OK : dv_fail_memory(error, "measuring the data");
  if (!status) {
    m.sums = (sums){columns, columns + width, columns + 2 * width};
    m.part = arranged((double *)(m.head + 1), width);
    dv_survey survey = {&m, begin_chunk, add_step, end_chunk, join_chunk, m.head, bytes};
    status = dv_survey_rows(s, values, width, &survey, error);
  }
  if (!status && !values) status = dv_sequences_intact(s, error);
  if (status)
    dv_statistics_free(out);
  else
    extrapolate(out, width, dv_sequences_frames(s));
  DV_FREE(columns, m.head);
  return status;
}

/* ---- Facts kept with the arrays ---- */

struct fact {
  const void *kind;
  uint64_t key;
  void *what;
  void (*free)(void *what);
  struct fact *next;
};

struct dvbf_facts {
  pthread_mutex_t lock; /* of the list */
  struct fact *first;
  size_t count;
};

dvbf_status dv_facts_begin(dvbf_sequences *s, dvbf_error *error) {
  s->facts = dv_calloc(1, sizeof *s->facts);
  if (!s->facts) return dv_fail_memory(error, "looking at the data");
  pthread_mutex_init(&s->facts->lock, NULL);
  return DVBF_OK;
}

void dv_facts_forget(dvbf_facts *facts) {
  for (struct fact *f = facts ? facts->first : NULL, *next; f; f = next) {
    next = f->next;
    f->free(f->what);
    dv_free(f);
  }
  if (facts) facts->first = NULL, facts->count = 0;
}

void dv_facts_free(dvbf_facts *facts) {
  dv_facts_forget(facts);
  if (facts) pthread_mutex_destroy(&facts->lock);
  dv_free(facts);
}

const void *dv_facts_find(const dvbf_sequences *s, const void *kind, uint64_t key) {
  pthread_mutex_lock(&s->facts->lock);
  const struct fact *f = s->facts->first;
  while (f && (f->kind != kind || f->key != key)) f = f->next;
  pthread_mutex_unlock(&s->facts->lock);
  return f ? f->what : NULL;
}

void dv_facts_keep(const dvbf_sequences *s, const void *kind, uint64_t key, void *fact,
                   void (*free)(void *)) {
  enum { MOST_FACTS = 256 };
  struct fact *f = dv_calloc(1, sizeof *f);
  pthread_mutex_lock(&s->facts->lock);
  bool room = f && s->facts->count < MOST_FACTS;
  if (room) {
    *f = (struct fact){kind, key, fact, free, s->facts->first};
    s->facts->first = f;
    s->facts->count++;
  }
  pthread_mutex_unlock(&s->facts->lock);
  if (room) return;
  free(fact);
  dv_free(f);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0xd6e8feb86659fd93;
  return hash ^ hash >> 32;
}

/* The bits of values, in four lanes, as fast as memory is read. */
static uint64_t mix_values(uint64_t hash, const float *values, size_t count) {
  enum { LANES = 4, BLOCK = LANES * sizeof(uint64_t) / sizeof(float) };
  uint64_t lanes[LANES] = {hash, 1, 2, 3}, words[LANES];
  for (; count >= BLOCK; count -= BLOCK, values += BLOCK) {
    memcpy(words, values, sizeof words);
    for (int i = 0; i < LANES; i++) lanes[i] = mix(lanes[i], words[i]);
  }
  memset(words, 0, sizeof words);
  if (count) memcpy(words, values, count * sizeof *values);
  for (int i = 0; i < LANES; i++) hash = mix(mix(hash, lanes[i]), words[i]);
  return hash;
}

/* Where sequences begin, how long they are and, unless they are NULL, the values [frames][width]. */
static uint64_t key_of(const dvbf_sequences *s, const float *values, size_t width) {
  uint64_t hash = mix(1, s->count);
  for (size_t i = 0; i < s->count; i++) {
    size_t start = dvbf_sequence_start(s, i), length = dvbf_sequence_length(s, i);
    hash = mix(mix(hash, start), length);
    if (values) hash = mix_values(hash, values + start * width, length * width);
  }
  return hash;
}

/* Large data in memory would take long to compare. */
static bool keeps_facts(const dvbf_sequences *s) {
  return s->facts && (s->source || dv_sequences_thinned(s) == 1);
}

bool dv_facts_key(uint64_t *out, const dvbf_sequences *s) {
  if (!keeps_facts(s)) return false;
  *out = mix(key_of(s, s->x, s->n_x), s->n_u ? key_of(s, s->u, s->n_u) : 0);
  return true;
}

/* ---- Statistics, found once ---- */

static void free_statistics(void *statistics) {
  dv_statistics_free(statistics);
  dv_free(statistics);
}

static dvbf_status copy(dv_statistics *out, const dv_statistics *from, size_t width, dvbf_error *error) {
  if (!allocate(out, width)) return dv_fail_memory(error, "measuring the data");
  become(out, from, width);
  return DVBF_OK;
}

/* Before ranks read a part each, they compare their data: sizes, and some frames that all read. */
static dvbf_status is_shared(const dvbf_sequences *s, uint64_t key, dvbf_error *error) {
  enum { PIECES = 16, NUMBERS = 1 << 14 };
  dv_ranks *team = s->source ? s->source->team : NULL;
  float *buffer = NULL;
  if (!team || dv_sequences_frames(s) <= dv_rows_in_chunk(s, s->n_x, true)) return DVBF_OK;
  size_t most = s->n_x < NUMBERS ? NUMBERS / s->n_x : 1;
  uint64_t hash = mix(mix(key, s->n_x), s->gaps);
  dvbf_status status = dv_sequence_buffer(&buffer, s, most, error);
  for (size_t i = 0; i < PIECES && !status; i++) {
    size_t sequence = s->count * i / PIECES, length = dvbf_sequence_length(s, sequence);
    size_t steps = length < most ? length : most;
    const float *x = dv_sequence_x(s, sequence, (length - steps) * i / PIECES, steps, buffer);
    hash = dv_hash(hash, x, steps * s->n_x * sizeof *x);
  }
  dv_free(buffer);
  if (!status) status = dv_sequences_intact(s, error);
  return status ? status : dv_ranks_agree(team, hash, "the data", error);
}

static const char STATISTICS[] = "statistics"; /* the kind of fact */

/* Those of `values`; NULL: of x in a file. If memory is short, they are measured again the next time. */
static dvbf_status statistics_of(dv_statistics *out, const dvbf_sequences *s, const float *values,
                                 size_t width, dvbf_error *error) {
  bool kept = keeps_facts(s);
  uint64_t key = kept || !values ? mix(key_of(s, values, width), width) : 0;
  const dv_statistics *known = kept ? dv_facts_find(s, STATISTICS, key) : NULL;
  if (known) return copy(out, known, width, error);
  dvbf_status status = values ? DVBF_OK : is_shared(s, key, error);
  if (!status) status = measure_columns(out, s, values == s->x ? NULL : values, width, error);
  dv_statistics *fact = !status && kept ? dv_calloc(1, sizeof *fact) : NULL;
  if (fact && copy(fact, out, width, NULL))
    dv_free(fact);
  else if (fact)
    dv_facts_keep(s, STATISTICS, key, fact, free_statistics);
  return status;
}

dvbf_status dv_statistics_of_x(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error) {
  return statistics_of(out, s, s->x, s->n_x, error);
}

dvbf_status dv_statistics_of_u(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error) {
  return statistics_of(out, s, s->u, s->n_u, error);
}

dvbf_status dv_statistics_of_state(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error) {
  return statistics_of(out, s, s->state, s->n_s, error);
}

dvbf_status dv_statistics_together(dv_statistics *out, const dvbf_sequences *s, dv_ranks *team,
                                   dvbf_error *error) {
  if (!team || !s->source) return dv_statistics_of_x(out, s, error);
  s->source->team = team;
  dvbf_status status = dv_statistics_of_x(out, s, error);
  s->source->team = NULL;
  return status;
}

/* ---- Use ---- */

dvbf_status dv_measured_of(dv_measured *out, const dvbf_sequences *s, dvbf_error *error) {
  *out = (dv_measured){0};
  dvbf_status status = dv_statistics_of_x(&out->x, s, error);
  if (!status && s->n_u) status = dv_statistics_of_u(&out->u, s, error);
  if (status) dv_measured_free(out);
  return status;
}

void dv_measured_free(dv_measured *measured) {
  dv_statistics_free(&measured->x);
  dv_statistics_free(&measured->u);
}

void dv_statistics_join(dv_statistics *to, const dv_statistics *from, size_t width) {
  for (size_t k = 0; k < width; k++) {
    double a = (double)to->seen[k], b = (double)from->seen[k], n = a + b;
    to->checksum[k] += from->checksum[k]; /* missing values count in it too */
    if (!from->seen[k]) continue;
    double apart = from->mean[k] - to->mean[k];
    to->least[k] = to->seen[k] ? fmin(to->least[k], from->least[k]) : from->least[k];
    to->most[k] = to->seen[k] ? fmax(to->most[k], from->most[k]) : from->most[k];
    to->variance[k] = (a * to->variance[k] + b * from->variance[k]) / n + a * b * (apart / n) * (apart / n);
    to->mean[k] += b / n * apart;
    to->seen[k] += from->seen[k];
  }
  to->low = fmin(to->low, from->low);
  to->high = fmax(to->high, from->high);
  to->frames += from->frames;
  to->rows += from->rows;
  to->whole = to->whole && from->whole;
  to->binary = to->binary && from->binary;
  to->counts = to->counts && from->counts;
}

bool dv_statistics_complete(const dv_statistics *s, size_t width, bool gaps) {
  for (size_t k = 0; k < width; k++) {
    if (s->seen[k] < s->rows && !gaps) return false;
    if (s->seen[k] && !(isfinite(s->least[k]) && isfinite(s->most[k]))) return false;
  }
  return true;
}

bool dv_varies(double mean, double variance) {
  const double rounding = 1e-7, least = 1e-37; /* of a float: beside its value, and the smallest */
  return variance > (rounding * mean) * (rounding * mean) && variance > least * least;
}

bool dv_statistics_vary(const dv_statistics *s, size_t column) {
  return s->seen[column] && dv_varies(s->mean[column], s->variance[column]);
}

void dv_baseline_clear(dv_baseline *b) {
  DV_FREE(b->mean, b->unit);
  *b = (dv_baseline){0};
}

dvbf_status dv_baseline_of_x(dv_baseline *out, const dvbf_sequences *s, dvbf_error *error) {
  dv_statistics x;
  *out = (dv_baseline){0};
  dvbf_status status = dv_statistics_of_x(&x, s, error);
  if (status) return status;
  *out = (dv_baseline){dv_calloc(s->n_x, sizeof(double)), dv_calloc(s->n_x, sizeof(double))};
  for (size_t k = 0; out->mean && out->unit && k < s->n_x; k++) {
    out->mean[k] = x.mean[k];
    out->unit[k] = dv_statistics_vary(&x, k) ? sqrt(x.variance[k]) : 0;
  }
  dv_statistics_free(&x);
  return out->mean && out->unit ? DVBF_OK : dv_fail_memory(error, "measuring errors");
}

void dv_statistics_free(dv_statistics *s) {
  dv_free(s->mean); /* the first of its arrays, which are one */
  *s = (dv_statistics){0};
}

/* ---- Description for users ---- */

static dvbf_column column_of(const dv_statistics *s, size_t k) {
  if (!s->seen[k]) return (dvbf_column){0, NAN, NAN, NAN, NAN};
  return (dvbf_column){s->seen[k], s->least[k], s->most[k], s->mean[k], sqrt(s->variance[k])};
}

/* The moments of all columns together: the mean of the means and, about it, that of the squares,
 * m = sum_k n_k m_k / n,  v = sum_k n_k (v_k + (m_k - m)^2) / n. */
static dvbf_column together(const dv_statistics *s, size_t width) {
  double n = 0, mean = 0, variance = 0;
  uint64_t seen = 0;
  for (size_t k = 0; k < width; k++) seen += s->seen[k];
  if (!seen) return (dvbf_column){0, NAN, NAN, NAN, NAN};
  n = (double)seen;
  for (size_t k = 0; k < width; k++) mean += (double)s->seen[k] / n * s->mean[k];
  for (size_t k = 0; k < width; k++) {
    double e = s->mean[k] - mean;
    variance += (double)s->seen[k] / n * (s->variance[k] + e * e);
  }
  return (dvbf_column){seen, s->low, s->high, mean, sqrt(variance)};
}

static dvbf_status describe(dvbf_columns *out, const dvbf_sequences *s, size_t width,
                            dv_measure_fn *measured_by, dvbf_error *error) {
  dv_statistics all;
  if (!width) return DVBF_OK;
  dvbf_status status = measured_by(&all, s, error);
  if (status) return status;
  dvbf_column *column = dv_calloc(width, sizeof *column);
  if (column) {
    for (size_t k = 0; k < width; k++) column[k] = column_of(&all, k);
    *out = (dvbf_columns){width, together(&all, width), column, all.whole, false};
    out->binary = all.binary && out->all.seen;
  }
  dv_statistics_free(&all);
  return column ? DVBF_OK : dv_fail_memory(error, "describing the data");
}

static int compare(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static dvbf_status describe_lengths(dvbf_sequences_info *info, const dvbf_sequences *s, dvbf_error *error) {
  size_t n = s->count, *sorted = dv_calloc(n, sizeof *sorted);
  if (!n || !sorted) {
    dv_free(sorted);
    return sorted ? DVBF_OK : dv_fail_memory(error, "describing the data");
  }
  for (size_t i = 0; i < n; i++) sorted[i] = dvbf_sequence_length(s, i);
  qsort(sorted, n, sizeof *sorted, compare);
  info->frames = dv_sequences_frames(s);
  info->shortest = sorted[0];
  info->longest = sorted[n - 1];
  size_t below = sorted[(n - 1) / 2], above = sorted[n / 2]; /* the same if n is odd */
  info->median = ((double)below + (double)above) / 2;
  dv_free(sorted);
  return DVBF_OK;
}

dvbf_status dvbf_sequences_describe(dvbf_sequences_info **out, const dvbf_sequences *s, dvbf_error *error) {
  dvbf_status status = dv_sequences_filled(s, "data", "", error);
  if (status) return status;
  dvbf_sequences_info *info = dv_calloc(1, sizeof *info);
  if (!info) return dv_fail_memory(error, "describing the data");
  status = describe_lengths(info, s, error);
  if (!status) status = describe(&info->x, s, s->n_x, dv_statistics_of_x, error);
  if (!status) status = describe(&info->u, s, s->n_u, dv_statistics_of_u, error);
  if (!status) status = describe(&info->state, s, s->n_s, dv_statistics_of_state, error);
  if (status)
    dvbf_sequences_info_free(info);
  else
    *out = info;
  return status;
}

void dvbf_sequences_info_free(dvbf_sequences_info *info) {
  if (!info) return;
  DV_FREE(info->x.column, info->u.column, info->state.column, info);
}

/* ---- Fingerprint ---- */

/* A checksum of everything that training sees: each value of x and u with its place, and all lengths. It
 * comes from statistics that are measured anyway, so a large file is not read again. */

static uint64_t mix_columns(uint64_t hash, const dv_statistics *s, size_t width) {
  for (size_t k = 0; k < width; k++) hash = dv_hash_number(dv_hash_number(hash, s->checksum[k]), s->seen[k]);
  return hash;
}

static dvbf_status mix_sequences(uint64_t *hash, const dvbf_sequences *s, dvbf_error *error) {
  const uint64_t sizes[] = {s->count, s->steps, s->n_x, s->n_u, s->gaps};
  dv_measured measured;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) *hash = dv_hash_number(*hash, sizes[i]);
  for (size_t i = 0; i < s->count; i++) *hash = dv_hash_number(*hash, dvbf_sequence_length(s, i));
  if (!s->count) return DVBF_OK;
  dvbf_status status = dv_measured_of(&measured, s, error);
  if (status) return status;
  *hash = mix_columns(mix_columns(*hash, &measured.x, s->n_x), &measured.u, s->n_u);
  dv_measured_free(&measured);
  return DVBF_OK;
}

dvbf_status dv_sequences_fingerprint(uint64_t *out, const dvbf_sequences *s, dvbf_error *error) {
  *out = dv_hash_start;
  return mix_sequences(out, s, error);
}

dvbf_status dv_data_fingerprint(uint64_t *out, const dvbf_data *data, dvbf_error *error) {
  uint64_t hash = dv_hash_start;
  dvbf_status status = mix_sequences(&hash, &data->train, error);
  if (!status) status = mix_sequences(&hash, &data->valid, error);
  if (!status) *out = hash;
  return status;
}
