/* Known states from latent ones. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/regression.h"
#include "model/model.h"

#include <dvbf/core.h>
#include <math.h>
#include <string.h>

/* z [points][n_z] and y [points][n_s] of all steps with a belief and a known state. */
typedef struct points {
  float *z, *y;
  size_t count, n_z, n_s;
} points;

static void gather(points *p, const dvbf_estimates *e, const dvbf_sequences *s) {
  for (size_t i = 0; i < e->count; i++) {
    size_t begin = dvbf_estimates_begin(e, i), steps = e->length ? e->length[i] : e->steps;
    const float *state = s->state + dvbf_sequence_start(s, i) * s->n_s;
    for (size_t t = 0; t < steps; t++) {
      const float *z = e->z_mean + (i * e->steps + t) * e->n_z, *y = state + (begin + t) * s->n_s;
      bool known = true;
      for (size_t k = 0; k < p->n_s; k++) known &= isfinite(y[k]) != 0;
      if (!known) continue;
      memcpy(p->z + p->count * p->n_z, z, p->n_z * sizeof *z);
      memcpy(p->y + p->count++ * p->n_s, y, p->n_s * sizeof *y);
    }
  }
}

static dvbf_status filter(dvbf_estimates **out, const dvbf_model *m, const dvbf_sequences *s,
                          dvbf_error *error) {
  dvbf_settings *how = NULL;
  dvbf_status status = dvbf_settings_new(&how, "filter", error);
  if (!status) status = dvbf_estimate(out, m, s, how, error);
  dvbf_settings_free(how);
  return status;
}

dvbf_status dvbf_state_map(float *map, double *r2, const dvbf_model *m, const dvbf_sequences *s,
                           dvbf_error *error) {
  dvbf_estimates *e = NULL;
  points p = {.n_z = (size_t)m->n_z, .n_s = s->n_s};
  if (!s->n_s || !s->state)
    return dv_fail(error, DVBF_ARGUMENT, "these data have no known states to regress on z");
  dvbf_status status = filter(&e, m, s, error);
  double *row = dv_calloc(p.n_z + 1, sizeof *row), likelihood, one;
  if (!status) {
    p.z = dv_calloc(e->count * e->steps * p.n_z + 1, sizeof *p.z);
    p.y = dv_calloc(e->count * e->steps * p.n_s + 1, sizeof *p.y);
    if (!p.z || !p.y || !row) status = dv_fail_memory(error, "regressing the state");
  }
  if (!status) gather(&p, e, s);
  for (size_t k = 0; k < p.n_s && !status; k++) {
    status = dv_regress(p.z, p.count, p.n_z, p.y + k, p.n_s, r2 ? r2 + k : &one, &likelihood, row, error);
    for (size_t i = 0; i <= p.n_z && !status; i++) map[k * (p.n_z + 1) + i] = (float)row[i];
  }
  dvbf_estimates_free(e);
  DV_FREE(p.z, p.y, row);
  return status;
}
