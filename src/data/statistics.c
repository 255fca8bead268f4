/* Statistics of the columns of x, u and state. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <math.h>
#include <string.h>

/* Sums of a column after its first value is subtracted; otherwise rounding would destroy the variance of
 * values far from 0. */
typedef struct sums {
  double *shift, *sum, *squares; /* [width] */
} sums;

/* Adds the bits of each value, times a number that depends on the place in time: columns with the same values
 * have the same checksum, and others all but never. 0 and -0 are the same, and so is all that is missing. */
static void add_to_checksums(uint64_t *sum, const float *row, size_t width, uint64_t place) {
  uint64_t factor = (place + 1) * 0x9e3779b97f4a7c15; /* its bits, well mixed */
  factor = (factor ^ factor >> 32) * 0xd6e8feb86659fd93;
  factor = (factor ^ factor >> 32) | 1;
  for (size_t k = 0; k < width; k++) {
    float value = isnan(row[k]) ? 0.5F : row[k] + 0.0F;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    sum[k] += bits * factor;
  }
}

/* The usual row: no value is missing, and every column had a value before. There are no branches. */
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
  dv_statistics *out;
  sums sums;
  size_t width;
  uint64_t place; /* of the row among all */
  bool known;
} measurement;

static dvbf_status add_step(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  (void)sequence, (void)step, (void)error;
  measurement *m = user;
  dv_statistics *s = m->out;
  size_t width = m->width, seen = 0, bits = 0, counts = 0;
  m->known = m->known || all_known(s, width);
  add_to_checksums(s->checksum, row, width, m->place++);
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

/* `values` [frames][width]; NULL: x, in memory or in its file. */
static dvbf_status measure(dv_statistics *out, const dvbf_sequences *s, const float *values, size_t width,
                           dvbf_error *error) {
  *out = (dv_statistics){.low = INFINITY, .high = -INFINITY, .whole = true, .binary = true, .counts = true};
  double *columns = dv_calloc(width + 1, 3 * sizeof *columns);
  measurement m = {.out = out, .width = width};
  m.sums = (sums){columns, columns ? columns + width : NULL, columns ? columns + 2 * width : NULL};
  dvbf_status status = DVBF_OK;
  out->mean = dv_calloc(width, sizeof *out->mean);
  out->variance = dv_calloc(width, sizeof *out->variance);
  out->least = dv_calloc(width, sizeof *out->least);
  out->most = dv_calloc(width, sizeof *out->most);
  out->seen = dv_calloc(width, sizeof *out->seen);
  out->checksum = dv_calloc(width, sizeof *out->checksum);
  if (!columns || !out->mean || !out->variance || !out->least || !out->most || !out->seen || !out->checksum)
    status = dv_fail_memory(error, "measuring the data");
  if (!status) status = dv_each_row(s, values, width, add_step, &m, error);
  if (!status && !values) status = dv_sequences_intact(s, error);
  if (status)
    dv_statistics_free(out);
  else
    finish(out, &m.sums, width);
  dv_free(columns);
  return status;
}

dvbf_status dv_statistics_of_x(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error) {
  return measure(out, s, NULL, s->n_x, error);
}

dvbf_status dv_statistics_of_u(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error) {
  return measure(out, s, s->u, s->n_u, error);
}

dvbf_status dv_statistics_of_state(dv_statistics *out, const dvbf_sequences *s, dvbf_error *error) {
  return measure(out, s, s->state, s->n_s, error);
}

bool dv_varies(double mean, double variance) {
  const double rounding = 1e-7, least = 1e-37; /* of a float: beside its value, and the smallest */
  return variance > (rounding * mean) * (rounding * mean) && variance > least * least;
}

bool dv_statistics_vary(const dv_statistics *s, size_t column) {
  return s->seen[column] && dv_varies(s->mean[column], s->variance[column]);
}

void dv_statistics_free(dv_statistics *s) {
  dv_free(s->mean);
  dv_free(s->variance);
  dv_free(s->least);
  dv_free(s->most);
  dv_free(s->seen);
  dv_free(s->checksum);
  *s = (dv_statistics){0};
}
