/* Counts binary frames that recur exactly, with a hash table over the first DV_MOST_DIFFERENT frames;
 * densities with patterns start from the most frequent ones. Entry points dv_recurring_of,
 * dv_recurring_often. */
#include "data/checks.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 2 * DV_MOST_DIFFERENT }; /* of a table with open addresses */

typedef struct table {
  dv_recurring *found;
  uint32_t *place;    /* [PLACES] number of a frame and 1; 0: free */
  unsigned char *row; /* [n] */
} table;

/* The place of the row, or a free one. */
static uint32_t *place_of(const table *t) {
  size_t n = t->found->n, at = (size_t)dv_hash(dv_hash_start, t->row, n) % PLACES;
  while (t->place[at] && memcmp(t->found->x + (t->place[at] - 1) * n, t->row, n) != 0) at = (at + 1) % PLACES;
  return &t->place[at];
}

static dvbf_status count_row(void *user, size_t sequence, size_t step, const float *x, dvbf_error *error) {
  table *t = user;
  dv_recurring *r = t->found;
  for (size_t i = 0; i < r->n; i++) {
    if (isnan(x[i])) return DVBF_OK;
    t->row[i] = x[i] > 0.5F;
  }
  r->frames++;
  uint32_t *place = place_of(t);
  if (!*place && r->count < DV_MOST_DIFFERENT) {
    memcpy(r->x + r->count * r->n, t->row, r->n);
    *place = (uint32_t)++r->count;
  }
  if (*place) r->times[*place - 1]++;
  return DVBF_OK;
}

typedef struct order {
  uint32_t times, number;
} order;

static int by_times(const void *a, const void *b) {
  const order *x = a, *y = b;
  if (x->times != y->times) return x->times < y->times ? 1 : -1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Most frequent first; ties in the order of the data. */
static dvbf_status sort(dv_recurring *r, dvbf_error *error) {
  order *all = dv_calloc(r->count + 1, sizeof *all);
  unsigned char *x = dv_calloc(r->count + 1, r->n);
  dvbf_status status = all && x ? DVBF_OK : dv_fail_memory(error, "counting frames");
  for (size_t i = 0; i < r->count && !status; i++) all[i] = (order){r->times[i], (uint32_t)i};
  if (!status) qsort(all, r->count, sizeof *all, by_times);
  for (size_t i = 0; i < r->count && !status; i++) {
    memcpy(x + i * r->n, r->x + all[i].number * r->n, r->n);
    r->times[i] = all[i].times;
  }
  dv_free(all);
  dv_free(status ? x : r->x);
  if (!status) r->x = x;
  return status;
}

dvbf_status dv_recurring_of(dv_recurring *out, const dvbf_sequences *s, dvbf_error *error) {
  *out = (dv_recurring){.n = s->n_x};
  out->x = dv_calloc(DV_MOST_DIFFERENT, s->n_x);
  out->times = dv_calloc(DV_MOST_DIFFERENT, sizeof *out->times);
  table t = {.found = out};
  t.place = dv_calloc(PLACES, sizeof *t.place);
  t.row = dv_calloc(s->n_x, 1);
  bool there = out->x && out->times && t.place && t.row;
  dvbf_status status =
      there ? dv_visit_rows(s, NULL, s->n_x, count_row, &t, error) : dv_fail_memory(error, "counting frames");
  DV_FREE(t.place, t.row);
  return status ? status : sort(out, error);
}

void dv_recurring_free(dv_recurring *r) {
  DV_FREE(r->x, r->times);
  *r = (dv_recurring){0};
}

size_t dv_recurring_often(const dv_recurring *r, double *share) {
  size_t count = 0, frames = 0;
  for (; count < r->count && r->times[count] >= DV_OFTEN; count++) frames += r->times[count];
  *share = r->frames ? (double)frames / (double)r->frames : 0;
  return count;
}
