/* What the columns of x, u and state are like. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <math.h>
#include <string.h>

enum { PIECE = 64 }; /* steps read at once */

/* Sums of a column, shifted by its first value: moments of values far from 0 would lose the variance. */
typedef struct sums {
  double *shift, *sum, *squares; /* [width] */
} sums;

/* The usual row: every value is there, and every column has been seen before. Nothing branches. */
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

static void add_step(dv_statistics *s, sums *c, const float *row, size_t width, bool known) {
  size_t seen = 0, bits = 0;
  for (size_t k = 0; k < width; k++) seen += !isnan(row[k]);
  for (size_t k = 0; s->binary && k < width; k++) bits += row[k] == 0 || row[k] == 1;
  if (seen == width && known)
    add_whole_step(s, c, row, width);
  else
    add_part_of_step(s, c, row, width);
  s->binary = s->binary && bits == seen;
  s->whole = s->whole && (seen == 0 || seen == width);
  s->frames += seen > 0;
}

/* Every column has been seen. */
static bool all_known(const dv_statistics *s, size_t width) {
  for (size_t k = 0; k < width; k++)
    if (!s->seen[k]) return false;
  return true;
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

/* `values` [frames][width]; NULL: x, wherever it is. */
static dvbf_status measure(dv_statistics *out, const dvbf_sequences *s, const float *values, size_t width,
                           dvbf_error *error) {
  *out = (dv_statistics){.low = INFINITY, .high = -INFINITY, .whole = true, .binary = true};
  double *columns = dv_calloc(width + 1, 3 * sizeof *columns);
  sums c = {columns, columns ? columns + width : NULL, columns ? columns + 2 * width : NULL};
  float *buffer = NULL;
  bool known = false;
  dvbf_status status = values ? DVBF_OK : dv_sequence_buffer(&buffer, s, PIECE, error);
  out->mean = dv_calloc(width, sizeof *out->mean);
  out->variance = dv_calloc(width, sizeof *out->variance);
  out->least = dv_calloc(width, sizeof *out->least);
  out->most = dv_calloc(width, sizeof *out->most);
  out->seen = dv_calloc(width, sizeof *out->seen);
  if (!columns || !out->mean || !out->variance || !out->least || !out->most || !out->seen)
    status = dv_fail_memory(error, "measuring the data");
  for (size_t i = 0; i < s->count && !status; i++)
    for (size_t t = 0, length = dvbf_sequence_length(s, i); t < length; t += PIECE) {
      size_t steps = length - t < PIECE ? length - t : PIECE;
      const float *rows =
          values ? values + (dvbf_sequence_start(s, i) + t) * width : dv_sequence_x(s, i, t, steps, buffer);
      for (size_t k = 0; k < steps; k++) {
        known = known || all_known(out, width);
        add_step(out, &c, rows + k * width, width, known);
      }
    }
  if (!status && !values) status = dv_sequences_intact(s, error);
  if (status)
    dv_statistics_free(out);
  else
    finish(out, &c, width);
  dv_free(columns);
  dv_free(buffer);
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

void dv_statistics_free(dv_statistics *s) {
  dv_free(s->mean);
  dv_free(s->variance);
  dv_free(s->least);
  dv_free(s->most);
  dv_free(s->seen);
  *s = (dv_statistics){0};
}
