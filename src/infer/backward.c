/* Backward simulation (Godsill, Doucet and West 2004). The last state of a path is a particle of the last
 * step, drawn by weight. Then, going back, the particle i of step t is drawn with the probability
 *
 *   W_t^i p(z_{t+1} | z_t^i) / sum_j W_t^j p(z_{t+1} | z_t^j)
 *
 * A transition that is affine in w has z' = m + C w, where m = f(z, u, 0) and column k of C is f(z, u, e_k) -
 * m, so that with a square C the density is N(C^-1 (z' - m); 0, I) / |det C|. Where the density is not known,
 * because the transition does not say that it is affine, w has fewer dimensions than z, or C is all but
 * singular, a path goes back to the particle's parent. */
#include "infer/backward.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "infer/weights.h"

#include <math.h>
#include <string.h>

/* ---- Making ---- */

dvbf_status dv_backward_init(dv_backward *b, const dv_particles *p, size_t paths, dvbf_error *error) {
  const dvbf_model *m = p->model;
  size_t n = (size_t)m->n_z;
  *b = (dv_backward){.paths = paths};
  b->dense = m->type->move && m->transition && m->transition->affine_in_w && m->n_w == m->n_z;
  b->timeless = m->type->timeless;
  b->at = dv_calloc(paths, sizeof *b->at);
  b->moved = dv_calloc(p->count, n * sizeof *b->moved);
  b->inverse = dv_calloc(p->count, n * n * sizeof *b->inverse);
  b->log_scale = dv_calloc(p->count, sizeof *b->log_scale);
  b->log_weight = dv_calloc(p->count, sizeof *b->log_weight);
  b->weight = dv_calloc(p->count, sizeof *b->weight);
  b->apart = dv_calloc(n, sizeof *b->apart);
  b->order = dv_calloc(n, sizeof *b->order);
  if (!b->at || !b->moved || !b->inverse || !b->log_scale || !b->log_weight || !b->weight || !b->apart ||
      !b->order)
    return dv_fail(error, DVBF_MEMORY, "out of memory for %zu paths; fewer need less", paths);
  if (!b->dense) return DVBF_OK;
  dvbf_status status = dv_program_record_move(&b->program, m, (int)p->count, 0, error);
  if (!status) status = dv_worker_init(&b->worker, m, &b->program, NULL, error);
  b->worker.run.conditions = &p->conditions;
  b->worker.run.sequence = p->key;
  return status;
}

void dv_backward_clear(dv_backward *b) {
  dv_worker_clear(&b->worker);
  dv_program_clear(&b->program);
  DV_FREE(b->at, b->moved, b->inverse, b->log_scale, b->log_weight, b->weight, b->apart, b->order);
  *b = (dv_backward){0};
}

/* ---- The density of the step from t ---- */

/* Row r of the result of a run with w = e_k, or 0 for k < 0, of all particles of step t. */
static const dvbf_real *move(dv_backward *b, dv_particles *p, size_t t, int k) {
  const dvbf_program *g = &b->program;
  size_t n_z = (size_t)p->model->n_z, n_w = (size_t)p->model->n_w;
  dvbf_real *w = dvbf_at(&b->worker.run, g->later.noise);
  dvbf_sequences view = dv_view(&p->sequence, t, 2);
  memset(w, 0, p->count * n_w * sizeof *w);
  for (size_t r = 0; k >= 0 && r < p->count; r++) w[r * n_w + (size_t)k] = 1;
  memcpy(dvbf_at(&b->worker.run, g->z), p->z + t * p->count * n_z, p->count * n_z * sizeof *p->z);
  if (p->v) memcpy(dvbf_at(&b->worker.run, g->v), p->v, p->n_v * sizeof *p->v);
  dv_worker_load(&b->worker, &view, p->zeros, g->rows, 0);
  dv_run_forward(&b->worker.run);
  return dvbf_at(&b->worker.run, dvbf_steps(g->z, 1, 1));
}

/* m, C^-1 and ln W_t - ln |det C| of all particles of step t; false where any C is all but singular. z is a
 * float, so that what is left of w behind a small C would be rounding. */
static bool find_density(dv_backward *b, dv_particles *p, size_t t) {
  size_t n = (size_t)p->model->n_z;
  const double least = 1e-5;
  const dvbf_real *z = move(b, p, t, -1);
  for (size_t i = 0; i < p->count * n; i++) b->moved[i] = (double)z[i];
  for (size_t k = 0; k < n; k++) {
    z = move(b, p, t, (int)k);
    for (size_t r = 0; r < p->count; r++)
      for (size_t i = 0; i < n; i++)
        b->inverse[(r * n + i) * n + k] = (double)z[r * n + i] - b->moved[r * n + i];
  }
  bool regular = true;
  for (size_t r = 0; r < p->count; r++) {
    double log_det = dv_invert(b->inverse + r * n * n, (int)n, least, b->order);
    regular &= !isnan(log_det) || !(p->weight[t * p->count + r] > 0);
    b->log_scale[r] = log(p->weight[t * p->count + r]) - log_det;
  }
  return regular;
}

/* ln W_t^r p(next | particle r), less n/2 ln 2 pi. */
static double log_density(dv_backward *b, const dvbf_real *next, size_t r, size_t n) {
  const double *inverse = b->inverse + r * n * n, *moved = b->moved + r * n;
  double sum = 0;
  for (size_t i = 0; i < n; i++) b->apart[i] = (double)next[i] - moved[i];
  for (size_t i = 0; i < n; i++) {
    double w = 0;
    for (size_t k = 0; k < n; k++) w += inverse[i * n + k] * b->apart[k];
    sum -= 0.5 * w * w;
  }
  return sum + b->log_scale[r];
}

/* ---- Drawing ---- */

/* The particle of step t that a path at particle `at` of step t + 1 comes from. */
static uint32_t draw_parent(dv_backward *b, const dv_particles *p, size_t t, uint32_t at, double uniform) {
  size_t n = (size_t)p->model->n_z;
  const dvbf_real *next = p->z + ((t + 1) * p->count + at) * n;
  uint32_t chosen;
  for (size_t r = 0; r < p->count; r++)
    b->log_weight[r] = b->log_scale[r] > -INFINITY ? log_density(b, next, r, n) : -INFINITY;
  dv_normalise(b->log_weight, b->weight, p->count);
  dv_resample(b->weight, p->count, uniform, &chosen, 1);
  return chosen;
}

static void put(const dv_backward *b, const dv_particles *p, size_t t, dvbf_real *z) {
  size_t n = (size_t)p->model->n_z;
  for (size_t i = 0; i < b->paths; i++)
    memcpy(z + (i * p->most + t) * n, p->z + (t * p->count + b->at[i]) * n, n * sizeof *z);
}

void dv_backward_draw(dv_backward *b, dv_particles *p, dvbf_real *z) {
  dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 3, (uint32_t)p->steps);
  size_t last = p->steps - 1;
  dv_resample(p->weight + last * p->count, p->count, dv_random_uniform(&random), b->at, b->paths);
  put(b, p, last, z);
  for (size_t t = last; t-- > 0;) {
    dv_particles_universal(p, t);
    bool dense = b->dense && find_density(b, p, t);
    random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 3, (uint32_t)t);
    if (b->timeless) {
      dv_resample(p->weight + t * p->count, p->count, dv_random_uniform(&random), b->at, b->paths);
      put(b, p, t, z);
      continue;
    }
    for (size_t i = 0; i < b->paths; i++)
      b->at[i] = dense ? draw_parent(b, p, t, b->at[i], dv_random_uniform(&random))
                       : p->parent[(t + 1) * p->count + b->at[i]];
    put(b, p, t, z);
  }
}
