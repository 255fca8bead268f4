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
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "infer/weights.h"

#include <math.h>
#include <string.h>

/* Paths and particles that are dealt with at once, so that what is needed of these particles stays near the
 * processor. */
enum { PATHS = 8, CHUNK = 64 };

/* ---- Making ---- */

/* Of one worker: what it needs to invert matrices and to draw parents. */
struct dv_drawing {
  double *log_weight; /* [PATHS][count] */
  double *weight;     /* [count] */
  double *next;       /* [PATHS][n_z] */
  int *order;         /* [n_z] */
  bool regular;       /* the matrices that it inverted */
};

static bool allocate_drawing(struct dv_drawing *d, size_t count, size_t n) {
  d->log_weight = dv_calloc(count, PATHS * sizeof *d->log_weight);
  d->weight = dv_calloc(count, sizeof *d->weight);
  d->next = dv_calloc(n, PATHS * sizeof *d->next);
  d->order = dv_calloc(n, sizeof *d->order);
  return d->log_weight && d->weight && d->next && d->order;
}

static bool allocate(dv_backward *b, size_t count, size_t n) {
  bool room = true;
  b->at = dv_calloc(b->paths, sizeof *b->at);
  b->uniform = dv_calloc(b->paths, sizeof *b->uniform);
  b->moved = dv_calloc(count, n * sizeof *b->moved);
  b->inverse = dv_calloc(count, n * n * sizeof *b->inverse);
  b->gain = dv_calloc(count, n * n * sizeof *b->gain);
  b->offset = dv_calloc(count, n * sizeof *b->offset);
  b->log_scale = dv_calloc(count, sizeof *b->log_scale);
  b->drawing = dv_calloc((size_t)b->workers, sizeof *b->drawing);
  for (int i = 0; b->drawing && i < b->workers; i++)
    room = allocate_drawing(&b->drawing[i], count, n) && room;
  return room && b->at && b->uniform && b->moved && b->inverse && b->gain && b->offset && b->log_scale &&
         b->drawing;
}

dvbf_status dv_backward_init(dv_backward *b, dv_particles *p, size_t paths, dv_pool *pool,
                             dvbf_error *error) {
  const dvbf_model *m = p->model;
  *b = (dv_backward){.paths = paths, .particles = p, .pool = pool, .workers = pool ? dv_pool_size(pool) : 1};
  b->dense = m->type->move && m->transition && m->transition->affine_in_w && m->n_w == m->n_z;
  b->timeless = m->type->timeless;
  if (!allocate(b, p->count, (size_t)m->n_z))
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
  DV_FREE(b->at, b->uniform, b->moved, b->inverse, b->gain, b->offset, b->log_scale);
  for (int i = 0; b->drawing && i < b->workers; i++)
    DV_FREE(b->drawing[i].log_weight, b->drawing[i].weight, b->drawing[i].next, b->drawing[i].order);
  dv_free(b->drawing);
  *b = (dv_backward){0};
}

/* Runs a loop on all workers; each takes a share of it. */
static void share(dv_backward *b, void (*job)(void *user, int worker)) {
  if (b->pool)
    dv_pool_run(b->pool, job, b);
  else
    job(b, 0);
}

/* ---- The density of the step from t ---- */

/* Row r of the result of a run with w = e_k, or 0 for k < 0, of all particles of step t. */
static const dvbf_real *move(dv_backward *b, int k) {
  dv_particles *p = b->particles;
  const dvbf_program *g = &b->program;
  size_t n_z = (size_t)p->model->n_z, n_w = (size_t)p->model->n_w;
  dvbf_real *w = dvbf_at(&b->worker.run, g->later.noise);
  dvbf_sequences view = dv_view(&p->sequence, b->t, 2);
  memset(w, 0, p->count * n_w * sizeof *w);
  for (size_t r = 0; k >= 0 && r < p->count; r++) w[r * n_w + (size_t)k] = 1;
  memcpy(dvbf_at(&b->worker.run, g->z), p->z + b->t * p->count * n_z, p->count * n_z * sizeof *p->z);
  if (p->v) memcpy(dvbf_at(&b->worker.run, g->v), p->v, p->n_v * sizeof *p->v);
  dv_worker_load(&b->worker, &view, p->zeros, g->rows, 0);
  dv_run_forward(&b->worker.run);
  return dvbf_at(&b->worker.run, dvbf_steps(g->z, 1, 1));
}

/* C^-1 and C^-1 m of particle r, side by side with those of the others, from C and m. */
static void invert_one(dv_backward *b, struct dv_drawing *d, size_t r) {
  const double least = 1e-5;
  size_t n = (size_t)b->particles->model->n_z, count = b->particles->count;
  double weight = b->particles->weight[b->t * count + r], *inverse = b->inverse + r * n * n;
  double log_det = dv_invert(inverse, (int)n, least, d->order);
  d->regular = d->regular && (!isnan(log_det) || !(weight > 0));
  b->log_scale[r] = isnan(log_det) ? -INFINITY : dv_log(weight) - log_det;
  for (size_t i = 0; i < n; i++) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
      b->gain[(i * n + k) * count + r] = inverse[i * n + k];
      sum += inverse[i * n + k] * b->moved[r * n + k];
    }
    b->offset[i * count + r] = sum;
  }
}

static void invert(void *user, int worker) {
  dv_backward *b = user;
  b->drawing[worker].regular = true;
  for (size_t r = (size_t)worker; r < b->particles->count; r += (size_t)b->workers)
    invert_one(b, &b->drawing[worker], r);
}

/* m, C^-1 and ln W_t - ln |det C| of all particles of step t; false where any C is all but singular. z is a
 * float, so that what is left of w behind a small C would be rounding. */
static bool find_density(dv_backward *b) {
  const dv_particles *p = b->particles;
  size_t n = (size_t)p->model->n_z;
  const dvbf_real *z = move(b, -1);
  for (size_t i = 0; i < p->count * n; i++) b->moved[i] = (double)z[i];
  for (size_t k = 0; k < n; k++) {
    z = move(b, (int)k);
    for (size_t r = 0; r < p->count; r++)
      for (size_t i = 0; i < n; i++)
        b->inverse[(r * n + i) * n + k] = (double)z[r * n + i] - b->moved[r * n + i];
  }
  share(b, invert);
  bool regular = true;
  for (int i = 0; i < b->workers; i++) regular = regular && b->drawing[i].regular;
  return regular;
}

/* ---- Drawing ---- */

/* An index by weights whose logarithms [n] are given. Those far below the largest are less than its
 * rounding. */
static uint32_t draw(const double *log_weight, double *weight, size_t n, double uniform) {
  const double least = 50;
  double most = -INFINITY;
  uint32_t chosen;
  for (size_t r = 0; r < n; r++) most = log_weight[r] > most ? log_weight[r] : most;
  for (size_t r = 0; r < n; r++)
    weight[r] = !isfinite(most) ? 1 : log_weight[r] > most - least ? dv_exp(log_weight[r] - most) : 0;
  dv_resample(weight, n, uniform, &chosen, 1);
  return chosen;
}

/* The particles of step t that `paths` paths from `first` on come from. */
static void draw_parents(dv_backward *b, struct dv_drawing *d, size_t first, size_t paths) {
  const dv_particles *p = b->particles;
  size_t n = (size_t)p->model->n_z, count = p->count;
  for (size_t i = 0; i < paths; i++)
    for (size_t k = 0; k < n; k++)
      d->next[i * n + k] = (double)p->z[((b->t + 1) * count + b->at[first + i]) * n + k];
  for (size_t from = 0; from < count; from += CHUNK)
    for (size_t i = 0; i < paths; i++)
      b->worker.run.k->log_normals(d->log_weight + i * count + from, b->log_scale + from, b->gain + from,
                                   b->offset + from, d->next + i * n, (int)n, count,
                                   (int)(count - from < CHUNK ? count - from : CHUNK));
  for (size_t i = 0; i < paths; i++)
    b->at[first + i] = draw(d->log_weight + i * count, d->weight, count, b->uniform[first + i]);
}

static void draw_share(void *user, int worker) {
  dv_backward *b = user;
  for (size_t first = PATHS * (size_t)worker; first < b->paths; first += PATHS * (size_t)b->workers)
    draw_parents(b, &b->drawing[worker], first, b->paths - first < PATHS ? b->paths - first : PATHS);
}

static void put(const dv_backward *b, dvbf_real *z) {
  const dv_particles *p = b->particles;
  size_t n = (size_t)p->model->n_z;
  for (size_t i = 0; i < b->paths; i++)
    memcpy(z + (i * p->most + b->t) * n, p->z + (b->t * p->count + b->at[i]) * n, n * sizeof *z);
}

/* The particles of a step by its weights alone. */
static void draw_step(dv_backward *b, double uniform) {
  const dv_particles *p = b->particles;
  dv_resample(p->weight + b->t * p->count, p->count, uniform, b->at, b->paths);
}

static void go_back(dv_backward *b) {
  dv_particles *p = b->particles;
  dv_particles_universal(p, b->t);
  bool dense = b->dense && find_density(b);
  dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 3, (uint32_t)b->t);
  if (b->timeless) {
    draw_step(b, dv_random_uniform(&random));
  } else if (dense) {
    for (size_t i = 0; i < b->paths; i++) b->uniform[i] = dv_random_uniform(&random);
    share(b, draw_share);
  } else {
    for (size_t i = 0; i < b->paths; i++) b->at[i] = p->parent[(b->t + 1) * p->count + b->at[i]];
  }
}

void dv_backward_draw(dv_backward *b, dvbf_real *z) {
  const dv_particles *p = b->particles;
  dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 3, (uint32_t)p->steps);
  b->t = p->steps - 1;
  draw_step(b, dv_random_uniform(&random));
  put(b, z);
  while (b->t-- > 0 && !dv_interrupted(p->interrupt)) {
    go_back(b);
    put(b, z);
    dv_watch_add(p->watch, DV_WATCH_BACK);
  }
}
