#include "loop/judge.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dvbf_loop_outcome_free(dvbf_loop_outcome *outcome) {
  if (!outcome) return;
  DV_FREE(outcome->share_of, outcome->value_of);
  dv_free(outcome);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static dvbf_status judge_time(dvbf_loop_outcome *out, const dv_episodes *e, dvbf_error *error) {
  size_t all = e->count * e->steps;
  double *sorted = dv_calloc(all, sizeof *sorted);
  if (!sorted) return dv_fail_memory(error, "judging closed loops");
  memcpy(sorted, e->time, all * sizeof *sorted);
  qsort(sorted, all, sizeof *sorted, compare);
  out->median = sorted[all / 2];
  out->late = sorted[(size_t)(0.99 * (double)(all - 1))];
  dv_free(sorted);
  return DVBF_OK;
}

/* Steps of a closed loop in the goal region, from `first` on. */
static size_t inside(const dv_episodes *e, size_t number, size_t first) {
  size_t count = 0;
  for (size_t t = first; t < e->steps; t++)
    count += fabs((double)e->distance[number * e->steps + t]) <= e->region;
  return count;
}

static double value_of(const dv_episodes *e, size_t number) {
  double sum = 0;
  for (size_t t = 0; t < e->steps; t++) {
    size_t at = number * e->steps + t;
    double distance = (double)e->distance[at], speed = (double)e->speed[at];
    sum += distance * distance + 0.1 * speed * speed;
    for (size_t i = 0; i < e->n_u; i++)
      sum += 0.001 * (double)e->u[at * e->n_u + i] * (double)e->u[at * e->n_u + i];
  }
  return -sum;
}

dvbf_status dv_loop_judge(dvbf_loop_outcome *out, const dv_episodes *e, dvbf_error *error) {
  size_t half = e->steps / 2, last = e->steps - e->steps / 4;
  out->episodes = e->count;
  out->steps = e->steps;
  out->share_of = dv_calloc(e->count, sizeof *out->share_of);
  out->value_of = dv_calloc(e->count, sizeof *out->value_of);
  if (!out->share_of || !out->value_of) return dv_fail_memory(error, "judging closed loops");
  for (size_t i = 0; i < e->count; i++) {
    size_t count = inside(e, i, 0);
    out->share_of[i] = (double)count / (double)e->steps;
    out->value_of[i] = value_of(e, i);
    out->share += out->share_of[i] / (double)e->count;
    out->value += out->value_of[i] / (double)e->count;
    out->reached += count > 0;
    out->held += inside(e, i, half) == e->steps - half;
    out->recovered += inside(e, i, last) == e->steps - last;
  }
  return judge_time(out, e, error);
}
