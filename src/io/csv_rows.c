/* Rows of a table: appending them sequence by sequence (dv_csv_rows_add), the sample time and its regularity
 * (dv_pace_of), and resampling to a grid of equal steps, each the mean of its rows, with a new sequence after
 * a long gap (dv_csv_rows_grid). */
#include "io/csv.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Appending rows ---- */

dvbf_status dv_csv_rows_begin(dv_csv_rows *r, const char *name, double time, dvbf_error *error) {
  if (r->sequences == r->sequences_room) {
    size_t room = r->sequences_room ? 2 * r->sequences_room : 64;
    size_t *lengths = dv_realloc(r->lengths, room, sizeof *lengths);
    if (lengths) r->lengths = lengths;
    dvbf_origin *origins = dv_realloc(r->origins, room, sizeof *origins);
    if (origins) r->origins = origins;
    if (!lengths || !origins) return dv_fail_memory(error, "reading data");
    r->sequences_room = room;
  }
  r->lengths[r->sequences] = 0;
  r->origins[r->sequences] = (dvbf_origin){.sequence = r->sequences, .time = time};
  snprintf(r->origins[r->sequences].name, sizeof r->origins->name, "%s", name);
  r->sequences++;
  return DVBF_OK;
}

dvbf_status dv_csv_rows_add(dv_csv_rows *r, float **values, double time, dvbf_error *error) {
  if (r->count == r->room) {
    size_t room = r->room ? 2 * r->room : 1024, size;
    float *larger = dv_multiply(room, r->width, &size) ? dv_realloc(r->values, size, sizeof *larger) : NULL;
    if (larger) r->values = larger;
    double *times = larger && r->timed ? dv_realloc(r->times, room, sizeof *times) : NULL;
    if (times) r->times = times;
    if (!larger || (r->timed && !times)) return dv_fail_memory(error, "reading data");
    r->room = room;
  }
  if (r->timed) r->times[r->count] = time;
  *values = r->values + r->count++ * r->width;
  r->lengths[r->sequences - 1]++;
  return DVBF_OK;
}

void dv_csv_rows_free(dv_csv_rows *r) {
  DV_FREE(r->values, r->times, r->lengths, r->origins);
  *r = (dv_csv_rows){0};
}

size_t dv_csv_rows_hold(dv_csv_rows *r, size_t first, size_t count) {
  size_t filled = 0, row = 0;
  for (size_t s = 0; s < r->sequences; row += r->lengths[s++])
    for (size_t k = first; k < first + count; k++) {
      size_t length = r->lengths[s], known = length;
      float *column = r->values + row * r->width + k;
      for (size_t i = 0; i < length; i++) {
        float *value = column + i * r->width;
        if (!isnan(*value)) {
          for (size_t j = 0; known == length && j < i; j++, filled++) column[j * r->width] = *value;
          known = i;
        } else if (known < length) {
          *value = column[known * r->width];
          filled++;
        }
      }
    }
  return filled;
}

/* ---- Sample time ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Calls `each` with every step from row to row within a sequence. */
typedef void step_fn(void *user, double step);
static void each_step(const dv_csv_rows *r, step_fn *each, void *user) {
  for (size_t s = 0, row = 0; r->timed && s < r->sequences; row += r->lengths[s++])
    for (size_t i = 1; i < r->lengths[s]; i++) each(user, r->times[row + i] - r->times[row + i - 1]);
}

typedef struct steps {
  double *list; /* [room] every `apart`th step */
  size_t room, count, seen, apart;
  double median, sum; /* of steps within a fifth of the median */
  size_t like, other, odd;
} steps;

static void take(void *user, double step) {
  steps *s = user;
  if (s->seen++ % s->apart == 0 && s->count < s->room) s->list[s->count++] = step;
}

static void judge(void *user, double step) {
  const double jitter = 0.2;
  steps *s = user;
  double times = step / s->median, whole = round(times);
  if (fabs(times - 1) <= jitter) {
    s->sum += step;
    s->like++;
  } else {
    s->other++;
    s->odd += whole < 1 || fabs(times - whole) > jitter;
  }
}

dvbf_status dv_pace_of(dv_pace *out, const dv_csv_rows *splits, size_t count, dvbf_error *error) {
  enum { ENOUGH = 1 << 16 };
  steps s = {.room = ENOUGH};
  *out = (dv_pace){0};
  for (size_t i = 0; i < count; i++) s.seen += splits[i].count;
  s.apart = s.seen / ENOUGH + 1;
  s.seen = 0;
  s.list = dv_calloc(ENOUGH, sizeof *s.list);
  if (!s.list) return dv_fail_memory(error, "reading data");
  for (size_t i = 0; i < count; i++) each_step(&splits[i], take, &s);
  qsort(s.list, s.count, sizeof *s.list, compare);
  s.median = s.count ? s.list[s.count / 2] : 0;
  double sum = 0;
  for (size_t i = 0; i < s.count; i++) sum += s.list[i];
  if (s.median <= 0) {
    out->step = s.count ? sum / (double)s.count : 0;
    out->coarse = out->regular = true;
  } else {
    for (size_t i = 0; i < count; i++) each_step(&splits[i], judge, &s);
    out->step = s.like ? s.sum / (double)s.like : s.median;
    out->regular = !s.other;
    out->multiples = !s.odd;
  }
  dv_free(s.list);
  return DVBF_OK;
}

/* ---- Grid ---- */

typedef struct grid {
  dv_csv_rows to;
  unsigned *hits; /* [width] values in the sum of the step that is open */
  double step;
  bool multiples, open;
  dv_gridded done;
} grid;

/* Closes the step that is open: sums become means. */
static void close_step(grid *g) {
  if (!g->open) return;
  g->open = false;
  float *last = g->to.values + (g->to.count - 1) * g->to.width;
  for (size_t k = 0; k < g->to.width; k++) last[k] = g->hits[k] ? last[k] / (float)g->hits[k] : NAN;
  memset(g->hits, 0, g->to.width * sizeof *g->hits);
}

static dvbf_status open_step(grid *g, double time, dvbf_error *error) {
  float *values;
  close_step(g);
  dvbf_status status = dv_csv_rows_add(&g->to, &values, time, error);
  for (size_t k = 0; k < g->to.width && !status; k++) values[k] = 0;
  g->open = !status;
  return status;
}

static void add_values(grid *g, const float *from) {
  float *to = g->to.values + (g->to.count - 1) * g->to.width;
  for (size_t k = 0; k < g->to.width; k++)
    if (!isnan(from[k])) {
      to[k] += from[k];
      g->hits[k]++;
    }
}

/* One sequence; `row` is its first. */
static dvbf_status grid_sequence(grid *g, const dv_csv_rows *r, size_t sequence, size_t row,
                                 dvbf_error *error) {
  const dvbf_origin *origin = &r->origins[sequence];
  double begin = r->times[row], at = 0; /* of this piece, and the step that is open */
  dvbf_status status = dv_csv_rows_begin(&g->to, origin->name, begin, error);
  if (!status) status = open_step(g, begin, error);
  for (size_t i = 0; i < r->lengths[sequence] && !status; i++) {
    const double *time = &r->times[row + i];
    double place = i == 0         ? 0
                   : g->multiples ? at + round((time[0] - time[-1]) / g->step)
                                  : round((*time - begin) / g->step);
    if (place - at > DV_LONGEST_GAP + 1) {
      begin = *time;
      place = at = 0;
      g->done.cut++;
      close_step(g);
      status = dv_csv_rows_begin(&g->to, origin->name, begin, error);
      if (!status) status = open_step(g, begin, error);
    } else {
      g->done.merged += i && place <= at;
      g->done.empty += place > at + 1 ? (size_t)(place - at) - 1 : 0;
    }
    for (; at < place && !status; at++) status = open_step(g, begin + (at + 1) * g->step, error);
    if (!status) add_values(g, r->values + (row + i) * r->width);
  }
  if (!status) close_step(g);
  return status;
}

dvbf_status dv_csv_rows_grid(dv_csv_rows *r, double step, bool multiples, dv_gridded *out,
                             dvbf_error *error) {
  grid g = {.to = {.width = r->width, .timed = true}, .step = step, .multiples = multiples};
  g.hits = dv_calloc(r->width, sizeof *g.hits);
  dvbf_status status = g.hits ? DVBF_OK : dv_fail_memory(error, "reading data");
  for (size_t s = 0, row = 0; s < r->sequences && !status; row += r->lengths[s++])
    status = grid_sequence(&g, r, s, row, error);
  dv_free(g.hits);
  if (status) {
    dv_csv_rows_free(&g.to);
    return status;
  }
  out->empty += g.done.empty;
  out->merged += g.done.merged;
  out->cut += g.done.cut;
  dv_csv_rows_free(r);
  *r = g.to;
  return DVBF_OK;
}
