/* Estimates from weighted samples (dv_estimate_particles) and backward simulation of paths through a particle
 * filter (Godsill, Doucet and West 2004; backward_draw). A worker takes a sequence at a time; with fewer
 * sequences than workers all share the loops over particles and paths of one sequence, with the same
 * result. */
#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "infer/estimate.h"
#include "infer/particles.h"
#include "math/algebra.h"
#include "math/portable.h"
#include "math/random.h"

#include <math.h>
#include <string.h>

/* ---- Backward simulation ---- */

/* The last state of a path is a particle of the last step, drawn by weight. Going back, particle i of step t
 * is drawn with probability
 *
 *   W_t^i p(z_{t+1} | z_t^i) / sum_j W_t^j p(z_{t+1} | z_t^j)
 *
 * A transition affine in w has z' = m + C w, with m = f(z, u, 0) and column k of C f(z, u, e_k) - m, so that
 * for a square C the density is N(C^-1 (z' - m); 0, I) / |det C|. If the transition is not affine, w has
 * fewer dimensions than z, or C is nearly singular, a path goes back to the particle's parent. */

/* Paths and particles processed together, so that the data of these particles stay in the cache. */
enum { PATHS = 8, CACHED_PARTICLES = 64 };

typedef struct backward {
  bool dense; /* p(z_{t+1} | z_t) is known: z_{t+1} = m(z_t) + C(z_t) w with a square C */
  dv_particles *particles;
  dv_threads *pool; /* NULL: one worker */
  size_t workers;
  dvbf_program program;
  dv_worker worker;
  size_t paths, t;       /* t: the step to go back to */
  uint32_t *at;          /* [paths] particle where a path stands */
  double *uniform;       /* [paths] what decides where it comes from */
  double *moved;         /* [count][n_z] m */
  double *inverse;       /* [count][n_z][n_z] C, then its inverse */
  double *gain, *offset; /* [n_z][n_z][count] C^-1, [n_z][count] C^-1 m */
  double *log_scale;     /* [count] ln W_t - ln |det C| */
  /* Of each worker, to draw parents and to invert matrices. */
  double *log_weight; /* [workers][PATHS][count] */
  double *weight;     /* [workers][count] */
  double *next;       /* [workers][PATHS][n_z] */
  int *order;         /* [workers][n_z] */
  bool *regular;      /* [workers] the matrices that it inverted */
} backward;

/* ---- Making ---- */

static bool allocate_backward(backward *b, size_t count, size_t n) {
  b->at = dv_calloc(b->paths, sizeof *b->at);
  b->uniform = dv_calloc(b->paths, sizeof *b->uniform);
  b->moved = dv_calloc(count, n * sizeof *b->moved);
  b->inverse = dv_calloc(count, n * n * sizeof *b->inverse);
  b->gain = dv_calloc(count, n * n * sizeof *b->gain);
  b->offset = dv_calloc(count, n * sizeof *b->offset);
  b->log_scale = dv_calloc(count, sizeof *b->log_scale);
  b->log_weight = dv_calloc(b->workers * PATHS, count * sizeof *b->log_weight);
  b->weight = dv_calloc(b->workers, count * sizeof *b->weight);
  b->next = dv_calloc(b->workers * PATHS, n * sizeof *b->next);
  b->order = dv_calloc(b->workers, n * sizeof *b->order);
  b->regular = dv_calloc(b->workers, sizeof *b->regular);
  return b->at && b->uniform && b->moved && b->inverse && b->gain && b->offset && b->log_scale &&
         b->log_weight && b->weight && b->next && b->order && b->regular;
}

/* The loops run on all workers of the pool, which must be idle; NULL: on the caller alone, with the same
 * result. */
static dvbf_status backward_init(backward *b, dv_particles *p, size_t paths, dv_threads *pool,
                                 dvbf_error *error) {
  const dvbf_model *m = p->model;
  *b = (backward){.paths = paths, .particles = p, .pool = pool, .workers = 1};
  if (pool) b->workers = (size_t)dv_threads_size(pool);
  b->dense = m->type->move && m->transition && m->transition->affine_in_w && m->n_w == m->n_z;
  if (!allocate_backward(b, p->count, (size_t)m->n_z))
    return dv_fail(error, DVBF_MEMORY, "out of memory for %zu paths; use fewer", paths);
  if (!b->dense) return DVBF_OK;
  dvbf_status status = dv_program_record_move(&b->program, m, (int)p->count, 0, error);
  if (!status) status = dv_worker_init(&b->worker, m, &b->program, NULL, error);
  b->worker.run.conditions = &p->by.conditions;
  b->worker.run.sequence = p->by.key;
  return status;
}

static void backward_clear(backward *b) {
  dv_worker_clear(&b->worker);
  dv_program_clear(&b->program);
  DV_FREE(b->at, b->uniform, b->moved, b->inverse, b->gain, b->offset, b->log_scale, b->log_weight, b->weight,
          b->next, b->order, b->regular);
}

/* Runs a loop on all workers; each takes a share of it. */
static void share(backward *b, void (*job)(void *user, int worker)) {
  if (b->pool)
    dv_threads_run(b->pool, job, b);
  else
    job(b, 0);
}

/* ---- The density of the step from t ---- */

/* Row r of the result of a run with w = e_k, or 0 for k < 0, of all particles of step t. */
static const dvbf_real *move_particles(backward *b, int k) {
  dv_particles *p = b->particles;
  const dvbf_program *g = &b->program;
  size_t n_z = (size_t)p->model->n_z, n_w = (size_t)p->model->n_w;
  dvbf_real *w = dvbf_at(&b->worker.run, g->later.noise);
  dvbf_sequences view = dv_view(&p->sequence, b->t, 2);
  memset(w, 0, p->count * n_w * sizeof *w);
  for (size_t r = 0; k >= 0 && r < p->count; r++) w[r * n_w + (size_t)k] = 1;
  memcpy(dvbf_at(&b->worker.run, g->z), p->z + b->t * p->count * n_z, p->count * n_z * sizeof *p->z);
  if (p->v) memcpy(dvbf_at(&b->worker.run, g->v), p->v, p->n_v * sizeof *p->v);
  dv_worker_load(&b->worker, &view, p->by.zeros, g->rows, 0);
  dv_run_forward(&b->worker.run);
  return dvbf_at(&b->worker.run, dvbf_steps(g->z, 1, 1));
}

/* C^-1 and C^-1 m of particle r, side by side with those of the others, from C and m. */
static void invert_one(backward *b, size_t worker, size_t r) {
  const double least = 1e-5;
  size_t n = (size_t)b->particles->model->n_z, count = b->particles->count;
  double weight = b->particles->weight[b->t * count + r], *inverse = b->inverse + r * n * n;
  double log_det = dv_invert(inverse, (int)n, least, b->order + worker * n);
  if (isnan(log_det) && weight > 0) b->regular[worker] = false;
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

static void invert(void *user, int number) {
  backward *b = user;
  size_t worker = (size_t)number;
  b->regular[worker] = true;
  for (size_t r = worker; r < b->particles->count; r += b->workers) invert_one(b, worker, r);
}

/* m, C^-1 and ln W_t - ln |det C| of all particles of step t; false if any C is nearly singular. z is a
 * float, so what remained of w behind a small C would be rounding. */
static bool find_density(backward *b) {
  const dv_particles *p = b->particles;
  size_t n = (size_t)p->model->n_z;
  const dvbf_real *z = move_particles(b, -1);
  for (size_t i = 0; i < p->count * n; i++) b->moved[i] = (double)z[i];
  for (size_t k = 0; k < n; k++) {
    z = move_particles(b, (int)k);
    for (size_t r = 0; r < p->count; r++)
      for (size_t i = 0; i < n; i++)
        b->inverse[(r * n + i) * n + k] = (double)z[r * n + i] - b->moved[r * n + i];
  }
  share(b, invert);
  bool regular = true;
  for (size_t i = 0; i < b->workers; i++) regular = regular && b->regular[i];
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
static void draw_parents(backward *b, size_t worker, size_t first, size_t paths) {
  const dv_particles *p = b->particles;
  size_t n = (size_t)p->model->n_z, count = p->count;
  double *log_weight = b->log_weight + worker * PATHS * count, *next = b->next + worker * PATHS * n;
  for (size_t i = 0; i < paths; i++)
    for (size_t k = 0; k < n; k++)
      next[i * n + k] = (double)p->z[((b->t + 1) * count + b->at[first + i]) * n + k];
  for (size_t from = 0; from < count; from += CACHED_PARTICLES)
    for (size_t i = 0; i < paths; i++)
      b->worker.run.k->log_normals(log_weight + i * count + from, b->log_scale + from, b->gain + from,
                                   b->offset + from, next + i * n, (int)n, count,
                                   (int)(count - from < CACHED_PARTICLES ? count - from : CACHED_PARTICLES));
  for (size_t i = 0; i < paths; i++)
    b->at[first + i] = draw(log_weight + i * count, b->weight + worker * count, count, b->uniform[first + i]);
}

static void draw_share(void *user, int number) {
  backward *b = user;
  size_t worker = (size_t)number;
  for (size_t first = PATHS * worker; first < b->paths; first += PATHS * b->workers)
    draw_parents(b, worker, first, b->paths - first < PATHS ? b->paths - first : PATHS);
}

static void put(const backward *b, dvbf_real *z) {
  const dv_particles *p = b->particles;
  size_t n = (size_t)p->model->n_z;
  for (size_t i = 0; i < b->paths; i++)
    memcpy(z + (i * p->most + b->t) * n, p->z + (b->t * p->count + b->at[i]) * n, n * sizeof *z);
}

/* The particles of a step by its weights alone. */
static void draw_step(backward *b, double uniform) {
  const dv_particles *p = b->particles;
  dv_resample(p->weight + b->t * p->count, p->count, uniform, b->at, b->paths);
}

static void go_back(backward *b) {
  dv_particles *p = b->particles;
  dv_particles_universal(p, b->t);
  bool dense = b->dense && find_density(b), timeless = p->model->type->timeless;
  dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 3, (uint32_t)b->t);
  if (timeless) {
    draw_step(b, dv_random_uniform(&random));
  } else if (dense) {
    for (size_t i = 0; i < b->paths; i++) b->uniform[i] = dv_random_uniform(&random);
    share(b, draw_share);
  } else {
    for (size_t i = 0; i < b->paths; i++) b->at[i] = p->parent[(b->t + 1) * p->count + b->at[i]];
  }
}

/* z [paths][most][n_z] of the sequence that the filter ran on last; steps past its end stay as they are. */
static void backward_draw(backward *b, dvbf_real *z) {
  const dv_particles *p = b->particles;
  dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 3, (uint32_t)p->steps);
  b->t = p->steps - 1;
  draw_step(b, dv_random_uniform(&random));
  put(b, z);
  while (b->t-- > 0 && !dv_interrupted(p->interrupt)) {
    go_back(b);
    put(b, z);
    dv_estimate_progress_add(p->watch, DV_WATCH_BACK);
  }
}

/* ---- Weighted samples ---- */

/*   filter   at each step, samples of the particles by weight, independently of other steps
 *   smooth   paths drawn backwards from the particles; if the model cannot filter, whole paths by weight */

typedef struct path_sampler {
  dv_particles particles;
  backward backward;
  dv_importance importance; /* instead of both, where the model cannot filter */
  dvbf_program program;     /* the emission, for one step of all samples */
  dv_worker emission;
  dv_draws draws;
  uint32_t *index; /* [samples] */
  dvbf_real *z;    /* [samples][steps][n_z] */
} path_sampler;

typedef struct smoothing {
  const dv_request *request;
  dvbf_estimates *out;
  dv_conditions conditions;
  dv_threads *team; /* workers that help with each sequence; NULL: each has sequences of its own */
} smoothing;

/* A model that cannot filter weighs whole paths instead. */
static bool whole_paths(const dv_request *q) {
  return !dv_model_can_filter(q->model);
}

/* ---- Samples of one sequence, in w->z ---- */

static void filter(path_sampler *w, const dv_request *q) {
  const dv_particles *p = &w->particles;
  size_t n = (size_t)q->model->n_z;
  for (size_t t = 0; t < p->steps; t++) {
    dv_random random = dv_random_at(p->seed, DV_STREAM_PARTICLES, 4, (uint32_t)t);
    dv_resample(p->weight + t * p->count, p->count, dv_random_uniform(&random), w->index, q->ask.samples);
    for (size_t s = 0; s < q->ask.samples; s++)
      memcpy(w->z + (s * p->most + t) * n, p->z + (t * p->count + w->index[s]) * n, n * sizeof *w->z);
  }
}

static void choose_paths(path_sampler *w, const dv_request *q, uint64_t seed) {
  const dv_importance *m = &w->importance;
  size_t path = m->most * (size_t)q->model->n_z;
  dv_random random = dv_random_at(seed, DV_STREAM_PARTICLES, 4, 0);
  dv_resample(m->weight, m->paths, dv_random_uniform(&random), w->index, q->ask.samples);
  for (size_t s = 0; s < q->ask.samples; s++)
    memcpy(w->z + s * path, m->z + w->index[s] * path, path * sizeof *w->z);
}

static void sample(path_sampler *w, const dv_request *q, size_t i) {
  if (whole_paths(q)) {
    dv_importance_run(&w->importance, &q->frames, i, q->ask.seed);
    choose_paths(w, q, dv_sequence_seed(q->ask.seed, i));
    return;
  }
  dv_particles_run(&w->particles, &q->frames, i, q->ask.seed);
  if (dv_interrupted(q->ask.interrupt)) return;
  if (q->ask.kind == DV_SMOOTH)
    backward_draw(&w->backward, w->z);
  else
    filter(w, q);
}

/* ---- Predicted x ---- */

/* The control of a step, for all rows. */
static void set_control(path_sampler *w, const dv_request *q, size_t sequence, size_t t) {
  const dvbf_model *m = q->model;
  size_t n = (size_t)m->n_u, start = n ? dvbf_sequence_start(&q->frames, sequence) : 0;
  dvbf_real *u = n ? dvbf_at(&w->emission.run, w->program.u) : NULL;
  for (size_t s = 0; u && s < q->ask.samples; s++)
    w->emission.run.k->standardise(u + s * n, q->frames.u + (start + t) * n, m->u.shift, m->u.scale, m->n_u);
}

static void emit_samples(path_sampler *w, const dv_request *q, dvbf_estimates *out, size_t sequence) {
  size_t n = (size_t)q->model->n_z, most = q->frames.steps;
  dvbf_real *z = dvbf_at(&w->emission.run, w->program.z);
  dv_draw draw = {.sequence = sequence, .program = &w->program, .run = &w->emission.run};
  dv_draws_begin(&w->draws, q, sequence);
  for (draw.t = 0; draw.t < w->draws.steps; draw.t++) {
    for (size_t s = 0; s < q->ask.samples; s++)
      memcpy(z + s * n, w->z + (s * most + draw.t) * n, n * sizeof *z);
    set_control(w, q, sequence, draw.t);
    dv_run_forward(&w->emission.run);
    for (draw.sample = 0; draw.sample < q->ask.samples; draw.sample++) {
      draw.row = (int)draw.sample;
      draw.z = w->z + (draw.sample * most + draw.t) * n;
      dv_draws_put(&w->draws, q, out, &draw);
    }
  }
  dv_draws_end(&w->draws, q, out, sequence);
}

static void run_sequence(void *own, void *user, size_t i) {
  const smoothing *j = user;
  sample(own, j->request, i);
  if (!dv_interrupted(j->request->ask.interrupt)) emit_samples(own, j->request, j->out, i);
}

/* ---- Making ---- */

static dvbf_status init_sampling(path_sampler *w, const dv_request *q, dv_threads *team, dvbf_error *error) {
  size_t count = q->ask.particles;
  if (whole_paths(q)) return dv_importance_init(&w->importance, q->model, &q->frames, count, true, error);
  dvbf_status status = dv_particles_init(&w->particles, q->model, &q->frames, count, q->initial, error);
  w->particles.interrupt = q->ask.interrupt;
  w->particles.watch = q->ask.watch;
  if (!status && q->ask.kind == DV_SMOOTH)
    status = backward_init(&w->backward, &w->particles, q->ask.samples, team, error);
  return status;
}

static dvbf_status init_smoother(void *own, void *user, dvbf_error *error) {
  path_sampler *w = own;
  const smoothing *j = user;
  const dv_request *q = j->request;
  size_t all;
  w->index = dv_calloc(q->ask.samples, sizeof *w->index);
  if (dv_multiply(q->ask.samples, q->frames.steps, &all))
    w->z = dv_calloc(all, (size_t)q->model->n_z * sizeof *w->z);
  dvbf_status status = w->index && w->z ? DVBF_OK : dv_fail_memory(error, "making room for samples");
  if (!status) status = init_sampling(w, q, j->team, error);
  if (!status) status = dv_program_record_emission(&w->program, q->model, (int)q->ask.samples, 0, error);
  if (!status) status = dv_worker_init(&w->emission, q->model, &w->program, NULL, error);
  if (!status) status = dv_draws_init(&w->draws, q, error);
  w->emission.run.conditions = &j->conditions;
  w->emission.run.sequence = w->index;
  return status;
}

static void clear(void *own) {
  path_sampler *w = own;
  backward_clear(&w->backward);
  dv_particles_clear(&w->particles);
  dv_importance_clear(&w->importance);
  dv_worker_clear(&w->emission);
  dv_program_clear(&w->program);
  dv_draws_clear(&w->draws);
  DV_FREE(w->index, w->z);
}

/* One worker, helped by the others; it computes as they do. */
static dvbf_status run_with_team(smoothing *j, size_t first, size_t last, dvbf_error *error) {
  path_sampler w = {0};
  unsigned before = dv_flush_denormals();
  dvbf_status status = init_smoother(&w, j, error);
  for (size_t i = first; i < last && !status; i++) run_sequence(&w, j, i);
  clear(&w);
  dv_restore_denormals(before);
  return status;
}

dvbf_status dv_estimate_particles(dvbf_estimates *out, const dv_request *q, dv_threads *pool,
                                  dvbf_error *error) {
  static const dv_each work = {sizeof(path_sampler), init_smoother, run_sequence, clear};
  smoothing j = {.request = q, .out = out, .conditions = dv_model_conditions(q->model, q->ask.seed)};
  const dv_ranks *ranks = dv_threads_ranks(pool);
  size_t first = dv_ranks_first(ranks, q->frames.count, dv_ranks_rank(ranks));
  size_t last = dv_ranks_first(ranks, q->frames.count, dv_ranks_rank(ranks) + 1);
  bool together = q->ask.kind == DV_SMOOTH && !whole_paths(q) && last - first < (size_t)dv_threads_size(pool);
  if (together) j.team = pool;
  uint64_t steps = 0; /* of the sequences of this rank */
  for (size_t i = first; i < last; i++) steps += dvbf_sequence_length(&q->frames, i);
  dv_estimate_progress_begin(q->ask.watch,
                             steps * (DV_WATCH_FORTH + (q->ask.kind == DV_SMOOTH ? DV_WATCH_BACK : 0)));
  return together ? run_with_team(&j, first, last, error)
                  : dv_threads_each(pool, &work, q->frames.count, &j, error);
}
