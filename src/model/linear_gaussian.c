/* The linear Gaussian model, identified (src/identify) rather than trained by gradients:
 *
 *   z_1 ~ N(m, P)   z_{t+1} = A z_t + B u_t + b + w_t   x_t = H z_t + D u_t + c + e_t   (w_t, e_t) ~ N(0, L
 * L')
 *
 * The Kalman filter is one op whose "bound" is the likelihood: ln_p is ln p(x_t | x before t), kl is 0.
 * Inference is exact (`exact`, `online_*`): z_t ~ N(z_t | x up to t), and after the last
 * observed frame the system moves on, the only place where state-limit applies. */
#include "model/linear_gaussian.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/algebra.h"
#include "math/kalman.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

/* ---- Parameters (weights transposed, as in layers) ---- */

enum { FROM_Z, FROM_U, SHIFT, TO_X, THROUGH, OFFSET, NOISE, START_MEAN, SPREAD, LINEAR_PARTS };

typedef struct linear_part {
  const char *name;
  int rows, cols;
} linear_part;

static void list_parts(linear_part parts[LINEAR_PARTS], int n_z, int n_u, int n_x) {
  int both = n_x + n_z;
  linear_part all[LINEAR_PARTS] = {
      {"transition.z", n_z, n_z},   {"transition.u", n_u, n_z}, {"transition.bias", 1, n_z},
      {"emission.z", n_z, n_x},     {"emission.u", n_u, n_x},   {"emission.bias", 1, n_x},
      {"noise.factor", both, both}, {"start.mean", 1, n_z},     {"start.factor", n_z, n_z}};
  memcpy(parts, all, sizeof all);
}

static void transpose(double *out, const dvbf_real *from, int rows, int cols) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++) out[j * rows + i] = (double)from[i * cols + j];
}

/* Entry (i, j) of factor factor', for a lower triangular factor [n][n]. */
static double square(const dvbf_real *factor, int n, int i, int j) {
  double sum = 0;
  for (int k = 0; k <= (i < j ? i : j); k++) sum += (double)factor[i * n + k] * (double)factor[j * n + k];
  return sum;
}

static void read_parts(dv_state_space *s, const dvbf_real *const from[LINEAR_PARTS]) {
  int n_z = s->n_z, n_x = s->n_x, both = n_x + n_z;
  transpose(s->a, from[FROM_Z], n_z, n_z);
  transpose(s->h, from[TO_X], n_z, n_x);
  if (s->n_u) transpose(s->b, from[FROM_U], s->n_u, n_z);
  if (s->n_u) transpose(s->d, from[THROUGH], s->n_u, n_x);
  transpose(s->shift_z, from[SHIFT], 1, n_z);
  transpose(s->shift_x, from[OFFSET], 1, n_x);
  transpose(s->mean, from[START_MEAN], 1, n_z);
  for (int i = 0; i < both; i++)
    for (int j = 0; j < both; j++) {
      double value = square(from[NOISE], both, i, j);
      if (i < n_x && j < n_x) s->r[i * n_x + j] = value;
      if (i >= n_x && j < n_x) s->s[(i - n_x) * n_x + j] = value;
      if (i >= n_x && j >= n_x) s->q[(i - n_x) * n_z + j - n_x] = value;
    }
  for (int i = 0; i < n_z; i++)
    for (int j = 0; j < n_z; j++) s->cov[i * n_z + j] = square(from[SPREAD], n_z, i, j);
}

void dv_linear_get(const dvbf_model *m, dv_state_space *out) {
  linear_part parts[LINEAR_PARTS];
  const dvbf_real *from[LINEAR_PARTS];
  list_parts(parts, m->n_z, m->n_u, m->n_x);
  for (int i = 0; i < LINEAR_PARTS; i++) from[i] = dv_model_values(m, parts[i].name);
  read_parts(out, from);
}

static void write(dvbf_real *to, const double *from, int rows, int cols, bool transpose) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++)
      to[i * cols + j] = (dvbf_real)(transpose ? from[j * rows + i] : from[i * cols + j]);
}

void dv_linear_set(dvbf_model *m, const dv_state_space *s, double *scratch) {
  linear_part parts[LINEAR_PARTS];
  int n_z = s->n_z, n_x = s->n_x, both = n_x + n_z;
  const double *whole[LINEAR_PARTS] = {s->a, s->b, s->shift_z, s->h, s->d, s->shift_x, NULL, s->mean, NULL};
  list_parts(parts, n_z, s->n_u, n_x);
  for (int i = 0; i < LINEAR_PARTS; i++)
    if (whole[i] && parts[i].rows)
      write(dv_model_values(m, parts[i].name), whole[i], parts[i].rows, parts[i].cols, true);
  dv_noise_factors f = {scratch, scratch + n_x * n_x, scratch + n_x * n_x + n_z * n_x};
  dv_noise_factors_of(s, &f);
  dvbf_real *noise = dv_model_values(m, "noise.factor");
  memset(noise, 0, (size_t)both * (size_t)both * sizeof *noise);
  for (int i = 0; i < n_x; i++) write(noise + i * both, f.x + i * n_x, 1, n_x, false);
  for (int i = 0; i < n_z; i++) {
    write(noise + (n_x + i) * both, f.shared + i * n_x, 1, n_x, false);
    write(noise + (n_x + i) * both + n_x, f.z + i * n_z, 1, n_z, false);
  }
  memcpy(scratch, s->cov, (size_t)n_z * (size_t)n_z * sizeof *scratch);
  dv_factor(scratch, n_z);
  write(dv_model_values(m, "start.factor"), scratch, n_z, n_z, false);
}

/* ---- The filter as an op ---- */

typedef struct filter_data {
  int n_z, n_u, n_x;
} filter_data;

enum { FILTER_X = LINEAR_PARTS, U, MASK, FILTER_SEEN, NOISES, RANGE, INPUTS };
enum { FILTER_Z, FILTER_KL, LN_P, FILTER_ROOM, OUTPUTS };

/* Doubles of an op's memory: the system, the filter, two factors, and some vectors. */
static size_t room_size(int n_z, int n_u, int n_x) {
  size_t z = (size_t)n_z;
  return dv_system_size(n_z, n_u, n_x) + dv_kalman_size(n_z, n_x) + 2 * z * z + 2 * z + (size_t)n_u +
         (size_t)n_x;
}

/* One sequence on its way through the steps. */
typedef struct filter_walk {
  const dvbf_op *op;
  const dvbf_run *run;
  const filter_data *data;
  dv_state_space system;
  dv_kalman filter;
  double *noise_factor, *factor, *z, *next, *u, *x;
  const dvbf_real *range; /* of z, if it has limits */
  int row, last;          /* step that is seen last, -1: none */
} filter_walk;

static dvbf_real *at(const filter_walk *w, dvbf_value value, int t) {
  return dvbf_at(w->run, dvbf_steps(value, t, 1)) +
         (size_t)(value.rows > 1 ? w->row : 0) * (size_t)value.cols;
}

static filter_walk begin_walk(const dvbf_op *op, const dvbf_run *run) {
  const filter_data *d = op->data;
  const dvbf_real *from[LINEAR_PARTS];
  filter_walk w = {.op = op, .run = run, .data = d, .range = dvbf_at(run, op->in[RANGE])};
  for (int i = 0; i < LINEAR_PARTS; i++) from[i] = op->in[i].buffer < 0 ? NULL : dvbf_at(run, op->in[i]);
  double *room = (double *)(void *)dvbf_at(run, op->out[FILTER_ROOM]);
  w.system = dv_system_at(room, d->n_z, d->n_u, d->n_x);
  read_parts(&w.system, from);
  size_t square_size = (size_t)d->n_z * (size_t)d->n_z;
  w.noise_factor = room + dv_system_size(d->n_z, d->n_u, d->n_x) + dv_kalman_size(d->n_z, d->n_x);
  w.factor = w.noise_factor + square_size;
  w.z = w.factor + square_size;
  w.next = w.z + d->n_z;
  w.u = w.next + d->n_z;
  w.x = w.u + d->n_u;
  memcpy(w.noise_factor, w.system.q, square_size * sizeof(double));
  dv_factor(w.noise_factor, d->n_z);
  return w;
}

static void load_step(filter_walk *w, int t) {
  const dvbf_real *x = at(w, w->op->in[FILTER_X], t), *mask = at(w, w->op->in[MASK], t);
  const dvbf_real *seen = w->op->in[FILTER_SEEN].buffer < 0 ? NULL : at(w, w->op->in[FILTER_SEEN], t);
  const dvbf_real *u = w->data->n_u ? at(w, w->op->in[U], t) : NULL;
  for (int i = 0; i < w->data->n_u; i++) w->u[i] = (double)u[i];
  for (int i = 0; i < w->data->n_x; i++)
    w->x[i] = mask[0] > 0 && (!seen || seen[i] > 0) ? (double)x[i] : (double)NAN;
}

/* z = mean + factor noise */
static void add_noise(filter_walk *w, const double *mean, const double *factor, int t) {
  const dvbf_real *noise = at(w, w->op->in[NOISES], t);
  size_t n = (size_t)w->data->n_z;
  for (size_t i = 0; i < n; i++) {
    w->z[i] = mean[i];
    for (size_t j = 0; j <= i; j++) w->z[i] += factor[i * n + j] * (double)noise[j];
  }
}

static void walk_row(filter_walk *w, int row) {
  const filter_data *d = w->data;
  int steps = w->op->out[FILTER_Z].steps;
  size_t square_size = (size_t)d->n_z * (size_t)d->n_z;
  dv_kalman *k = &w->filter;
  w->row = row;
  w->last = -1;
  for (int t = 0; t < steps; t++)
    if (*at(w, w->op->in[MASK], t) > 0) w->last = t;
  *k = dv_kalman_begin(&w->system, w->system.a + dv_system_size(d->n_z, d->n_u, d->n_x));
  for (int t = 0; t < steps; t++) {
    bool filters = t <= w->last;
    load_step(w, t);
    if (filters) dv_kalman_observe(k, w->x, w->u);
    *at(w, w->op->out[FILTER_KL], t) = 0;
    *at(w, w->op->out[LN_P], t) = filters ? (dvbf_real)k->log_p : 0;
    if (t > w->last + 1) {
      add_noise(w, w->next, w->noise_factor, t);
      dv_range_bend(w->range, w->z, d->n_z);
    } else {
      memcpy(w->factor, filters ? k->filtered_cov : k->cov, square_size * sizeof *w->factor);
      dv_factor(w->factor, d->n_z);
      add_noise(w, filters ? k->filtered : k->mean, w->factor, t);
    }
    dvbf_real *z = at(w, w->op->out[FILTER_Z], t);
    for (int i = 0; i < d->n_z; i++) z[i] = (dvbf_real)w->z[i];
    if (filters) dv_kalman_move(k, w->u);
    if (!filters) dv_system_move(&w->system, w->z, w->u, w->next);
  }
}

static void filter_forward(const dvbf_op *op, dvbf_run *run) {
  filter_walk w = begin_walk(op, run);
  for (int r = 0; r < op->out[FILTER_Z].rows; r++) walk_row(&w, r);
}

static const dvbf_op_class filter_class = {"kalman-filter", filter_forward, NULL, NULL};

/* ---- Recorders ---- */

static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  linear_part parts[LINEAR_PARTS];
  dvbf_value in[INPUTS], out[OUTPUTS], noise = dvbf_slab_constant(g, p->steps, m->n_z);
  list_parts(parts, m->n_z, m->n_u, m->n_x);
  for (int i = 0; i < LINEAR_PARTS; i++) {
    in[i] = DVBF_NONE;
    if (parts[i].rows)
      in[i] = dvbf_parameter(g, parts[i].name, parts[i].rows, parts[i].cols, (dvbf_first){0});
  }
  dvbf_noise(g, noise, false);
  size_t room = room_size(m->n_z, m->n_u, m->n_x) * (sizeof(double) / sizeof(dvbf_real));
  p->ln_p = dvbf_slab(g, p->steps, 1);
  in[FILTER_X] = p->x, in[U] = p->u, in[MASK] = p->mask, in[FILTER_SEEN] = p->seen, in[NOISES] = noise;
  in[RANGE] = dvbf_state_range(g, m);
  out[FILTER_Z] = p->z, out[FILTER_KL] = p->kl, out[LN_P] = p->ln_p,
  out[FILTER_ROOM] = dvbf_slab_shared_constant(g, 1, (int)room);
  filter_data data = {m->n_z, m->n_u, m->n_x};
  dvbf_record(g, &filter_class, INPUTS, in, OUTPUTS, out, &data, sizeof data);
}

static void emission(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  p->output = dvbf_slab(p->graph, p->steps, m->n_x);
  dvbf_layer layer = dv_dense(p->graph, "emission", p->output, DVBF_LINEAR, (dvbf_first){0},
                              (dv_dense_in[4]){{"z", p->z, 0, false}, {"u", p->u, 0, false}});
  dvbf_layer_whole(p->graph, &layer);
}

static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  dvbf_value u = dvbf_steps(p->u, 0, 1);
  p->later.noise = dvbf_slab_constant(p->graph, 1, m->n_z);
  dvbf_layer layer = dv_dense(p->graph, "transition", dvbf_steps(p->z, 1, 1), DVBF_LINEAR, (dvbf_first){0},
                              (dv_dense_in[4]){{"z", dvbf_steps(p->z, 0, 1), 0, true}, {"u", u, 0, false}});
  dvbf_layer_open(p->graph, &layer);
  dvbf_layer_step(p->graph, &layer, 0);
  dvbf_saturate(p->graph, dvbf_steps(p->z, 1, 1), dvbf_state_range(p->graph, m));
}

/* ---- Exact inference ---- */

/* Memory of one request. */
typedef struct work {
  const dvbf_model *m;
  const dvbf_exact *q;
  dv_state_space system;
  double *memory;
  double *x, *u; /* [steps][n_x], [steps][n_u] scaled, NaN if missing */
  dv_kalman filter;
  dv_noise_factors factors;
  double *factor; /* [n_z][n_z] */
  double *z, *frame, *scratch;
  const dvbf_real *range; /* of z after what is seen, if it has limits */
} work;

static void scale_in(const work *w) {
  const dvbf_exact *q = w->q;
  size_t n_x = (size_t)w->m->n_x, n_u = (size_t)w->m->n_u, steps = (size_t)q->steps;
  for (size_t i = 0; i < steps * n_x; i++) {
    size_t k = i % n_x;
    bool seen = i < (size_t)q->observe * n_x;
    w->x[i] = seen ? ((double)q->x[i] - (double)w->m->x.shift[k]) * (double)w->m->x.scale[k] : (double)NAN;
  }
  for (size_t i = 0; i < steps * n_u; i++)
    w->u[i] = ((double)q->u[i] - (double)w->m->u.shift[i % n_u]) * (double)w->m->u.scale[i % n_u];
}

static dvbf_status begin_work(work *w, dvbf_error *error) {
  int n_z = w->m->n_z, n_u = w->m->n_u, n_x = w->m->n_x;
  size_t z = (size_t)n_z, x = (size_t)n_x, u = (size_t)n_u, steps = (size_t)w->q->steps, used = 0;
  double *kalman;
  struct {
    double **part;
    size_t size;
  } parts[] = {{&w->x, steps * x},
               {&w->u, steps * u},
               {&kalman, dv_kalman_size(n_z, n_x)},
               {&w->factors.x, x * x},
               {&w->factors.shared, z * x},
               {&w->factors.z, z * z},
               {&w->factor, z * z},
               {&w->z, z},
               {&w->frame, x},
               {&w->scratch, 2 * z + 2 * x}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) used += parts[i].size;
  dvbf_status status = dv_system_new(&w->system, n_z, n_u, n_x, error);
  if (status) return status;
  w->memory = dv_calloc(used, sizeof *w->memory);
  if (!w->memory) return dv_fail_memory(error, "filtering a sequence");
  used = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    *parts[i].part = w->memory + used;
    used += parts[i].size;
  }
  dv_linear_get(w->m, &w->system);
  dv_noise_factors_of(&w->system, &w->factors);
  w->filter = dv_kalman_begin(&w->system, kalman);
  scale_in(w);
  return DVBF_OK;
}

static void end(work *w) {
  dv_system_clear(&w->system);
  dv_free(w->memory);
}

/* ---- Results of one step ---- */

static void unscale(const work *w, const double *x, float *to) {
  for (int i = 0; i < w->m->n_x; i++)
    to[i] = (float)(x[i] / (double)w->m->x.scale[i] + (double)w->m->x.shift[i]);
}

/* Mean and deviation of z_t and x_t. */
static void put_moments(const work *w, int t, const double *mean, const double *cov) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z, n_x = (size_t)w->m->n_x, at = (size_t)(t - q->first);
  for (size_t i = 0; i < n_z; i++) {
    if (q->z_mean) q->z_mean[at * n_z + i] = (float)mean[i];
    if (q->z_deviation) q->z_deviation[at * n_z + i] = (float)sqrt(fmax(0, cov[i * (n_z + 1)]));
  }
  if (q->x_mean) {
    dv_system_emit(&w->system, mean, w->u + (size_t)t * (size_t)w->m->n_u, w->frame);
    unscale(w, w->frame, q->x_mean + at * n_x);
  }
  if (!q->x_deviation) return;
  dv_kalman_x_variance(&w->system, cov, q->noise, w->frame);
  for (size_t i = 0; i < n_x; i++)
    q->x_deviation[at * n_x + i] = (float)(sqrt(w->frame[i]) / (double)w->m->x.scale[i]);
}

/* z of one sample at step t, and x if it was drawn. */
static void put_sample(const work *w, size_t sample, int t, const double *z, const double *x) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z, n_x = (size_t)w->m->n_x, at = sample * q->room + (size_t)(t - q->first);
  for (size_t i = 0; q->z && i < n_z; i++) q->z[at * n_z + i] = (float)z[i];
  if (q->x_samples && x) unscale(w, x, q->x_samples + at * n_x);
}

/* Numbers for one sample, apart from those of other steps. */
static dv_random random_of(const work *w, size_t sample, int t) {
  dv_random random = dv_random_at(w->q->seed, DV_STREAM_INFERENCE, w->q->sequence, (uint32_t)sample);
  random.next = (uint32_t)t * 4 * (uint32_t)(w->m->n_z + w->m->n_x);
  return random;
}

static bool draws(const dvbf_exact *q) {
  return q->samples && (q->z || q->x_samples);
}

/* Independent samples of N(mean, cov). */
static void put_draws(const work *w, int t, const double *mean, const double *cov) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z;
  const double *u = w->u + (size_t)t * (size_t)w->m->n_u;
  memcpy(w->factor, cov, n_z * n_z * sizeof *cov);
  dv_factor(w->factor, (int)n_z);
  for (size_t s = 0; s < q->samples; s++) {
    dv_random random = random_of(w, s, t);
    memcpy(w->z, mean, n_z * sizeof *mean);
    dv_add_noise(w->z, w->factor, (int)n_z, &random, w->scratch);
    dv_system_emit(&w->system, w->z, u, w->frame);
    if (q->noise) dv_add_noise(w->frame, w->factors.x, w->m->n_x, &random, w->scratch);
    put_sample(w, s, t, w->z, w->frame);
  }
}

/* ---- Filter and prediction ---- */

/* Paths of steps observe .. steps - 1, from the filter's belief there. */
static void draw_paths(const work *w) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z;
  memcpy(w->factor, w->filter.cov, n_z * n_z * sizeof *w->factor);
  dv_factor(w->factor, (int)n_z);
  for (size_t s = 0; s < q->samples; s++) {
    dv_random random = random_of(w, s, q->observe);
    memcpy(w->z, w->filter.mean, n_z * sizeof *w->z);
    dv_add_noise(w->z, w->factor, (int)n_z, &random, w->scratch);
    for (int t = q->observe; t < q->steps; t++) {
      const double *u = w->u + (size_t)t * (size_t)w->m->n_u;
      if (t >= q->first) put_sample(w, s, t, w->z, NULL);
      dv_draw_step(&w->system, &w->factors, w->z, u, w->frame, q->noise, &random, w->scratch);
      dv_range_bend(w->range, w->z, w->m->n_z);
      if (t >= q->first && q->x_samples)
        unscale(w, w->frame, q->x_samples + (s * q->room + (size_t)(t - q->first)) * (size_t)w->m->n_x);
    }
  }
}

/* The scaling term of ln p of the observed values. */
static double log_scale(const work *w) {
  double sum = 0;
  for (int i = 0; i < w->filter.seen; i++) sum += dv_log((double)w->m->x.scale[w->filter.which[i]]);
  return sum;
}

/* Keeps unobserved states within the limits. */
static void keep_to_limits(dv_kalman *k, const dvbf_real *range) {
  dv_range_bend(range, k->mean, k->system->n_z);
  dv_range_narrow(range, k->cov, k->system->n_z);
}

static bool filter(work *w) {
  const dvbf_exact *q = w->q;
  dv_kalman *k = &w->filter;
  bool after = q->given == DVBF_GIVEN_UP_TO;
  for (int t = 0; t < q->steps; t++) {
    const double *x = w->x + (size_t)t * (size_t)w->m->n_x, *u = w->u + (size_t)t * (size_t)w->m->n_u;
    if (t == q->observe && draws(q)) draw_paths(w);
    if (!dv_kalman_observe(k, t < q->observe ? x : NULL, u)) return false;
    if (t >= q->first) {
      const double *mean = after ? k->filtered : k->mean, *cov = after ? k->filtered_cov : k->cov;
      put_moments(w, t, mean, cov);
      if (q->ln_p) q->ln_p[t - q->first] = k->log_p + log_scale(w);
      if (t < q->observe && draws(q)) put_draws(w, t, mean, cov);
    }
    dv_kalman_move(k, u);
    if (t >= q->observe) keep_to_limits(k, w->range);
  }
  return true;
}

/* ---- Smoother ---- */

/* A path given all of x (Durbin and Koopman 2002): one is drawn from the system with its own x; its smoothed
 * path is subtracted and that of the data added. `other` has memory for it. */
static bool draw_smoothed(work *w, const dv_smoothed *data, dv_smoothed *other, double *path, double *made,
                          size_t s) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z, n_x = (size_t)w->m->n_x, n_u = (size_t)w->m->n_u;
  dv_random random = random_of(w, s, 0);
  memcpy(w->z, w->system.mean, n_z * sizeof *w->z);
  memcpy(w->factor, w->system.cov, n_z * n_z * sizeof *w->factor);
  dv_factor(w->factor, (int)n_z);
  dv_add_noise(w->z, w->factor, (int)n_z, &random, w->scratch);
  for (size_t t = 0; t < (size_t)q->steps; t++) {
    memcpy(path + t * n_z, w->z, n_z * sizeof *path);
    dv_draw_step(&w->system, &w->factors, w->z, w->u + t * n_u, made + t * n_x, true, &random, w->scratch);
    for (size_t i = 0; i < n_x; i++)
      if (isnan(w->x[t * n_x + i])) made[t * n_x + i] = (double)NAN;
  }
  if (!dv_smooth(other, &w->system, made, w->u, q->steps)) return false;
  for (size_t t = (size_t)q->first; t < (size_t)q->steps; t++) {
    double *z = path + t * n_z;
    for (size_t i = 0; i < n_z; i++) z[i] += data->mean[t * n_z + i] - other->mean[t * n_z + i];
    dv_system_emit(&w->system, z, w->u + t * n_u, w->frame);
    put_sample(w, s, (int)t, z, w->frame);
  }
  return true;
}

static dvbf_status smooth(work *w, bool *sound, dvbf_error *error) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z;
  dv_smoothed data = {0}, other = {0};
  double *room = NULL;
  dvbf_status status = dv_smoothed_init(&data, &w->system, q->steps, error);
  if (!status && draws(q)) status = dv_smoothed_init(&other, &w->system, q->steps, error);
  if (!status && draws(q)) {
    room = dv_calloc((size_t)q->steps, (n_z + (size_t)w->m->n_x) * sizeof *room);
    if (!room) status = dv_fail_memory(error, "smoothing a sequence");
  }
  if (!status) *sound = dv_smooth(&data, &w->system, w->x, w->u, q->steps);
  for (int t = q->first; t < q->steps && !status && *sound; t++)
    put_moments(w, t, data.mean + (size_t)t * n_z, data.cov + (size_t)t * n_z * n_z);
  for (size_t s = 0; s < q->samples && draws(q) && !status && *sound; s++)
    *sound = draw_smoothed(w, &data, &other, room, room + (size_t)q->steps * n_z, s);
  dv_free(room);
  dv_smoothed_clear(&data);
  dv_smoothed_clear(&other);
  return status;
}

static dvbf_status exact(const dvbf_model_class *self, const dvbf_model *m, const dvbf_exact *asked,
                         dvbf_error *error) {
  work w = {.m = m, .q = asked, .range = dv_model_range(m)};
  bool sound = false;
  dvbf_status status = begin_work(&w, error);
  if (!status && asked->given == DVBF_GIVEN_ALL) status = smooth(&w, &sound, error);
  if (!status && asked->given != DVBF_GIVEN_ALL) sound = filter(&w);
  end(&w);
  if (!status && !sound)
    status = dv_fail(error, DVBF_FORMAT,
                     "the noise of this linear model has no positive covariance; train the model again");
  return status;
}

/* ---- Online filter ---- */

typedef struct online_filter {
  dv_state_space system;
  dv_kalman filter;
  double *x, *u; /* scaled */
  bool through;  /* u comes with its own frame, and is kept for the move to the next */
  bool begun, seen, sound;
  uint64_t seed;
  uint32_t step;
} online_filter;

static size_t online_doubles(const dvbf_model *m) {
  return dv_system_size(m->n_z, m->n_u, m->n_x) + dv_kalman_size(m->n_z, m->n_x) + (size_t)m->n_x +
         (size_t)m->n_u;
}

static size_t online_size(const dvbf_model_class *self, const dvbf_model *m) {
  return (sizeof(online_filter) + 63) / 64 * 64 + online_doubles(m) * sizeof(double);
}

static void online_begin(const dvbf_model_class *self, const dvbf_model *m, void *memory, uint64_t seed) {
  online_filter *o = memory;
  double *room = (double *)(void *)((unsigned char *)memory + (sizeof *o + 63) / 64 * 64);
  *o = (online_filter){.system = dv_system_at(room, m->n_z, m->n_u, m->n_x),
                       .through = dv_model_feeds_through(m),
                       .seed = seed};
  dv_linear_get(m, &o->system);
  room += dv_system_size(m->n_z, m->n_u, m->n_x);
  o->filter = dv_kalman_begin(&o->system, room);
  o->x = room + dv_kalman_size(m->n_z, m->n_x);
  o->u = o->x + m->n_x;
}

/* Samples of N(filtered), and their factor in the filter's scratch after its step. */
static void draw_online(online_filter *o, size_t samples, float *z) {
  dv_kalman *k = &o->filter;
  int n = o->system.n_z;
  double *factor = k->scratch, *normal = factor + (size_t)n * (size_t)n;
  memcpy(factor, k->filtered_cov, (size_t)n * (size_t)n * sizeof *factor);
  dv_factor(factor, n);
  for (size_t s = 0; s < samples; s++, z += n) {
    dv_random random = dv_random_at(o->seed, DV_STREAM_INFERENCE, o->step, (uint32_t)s);
    for (int i = 0; i < n; i++) normal[i] = dv_random_normal(&random);
    for (int i = 0; i < n; i++)
      z[i] = (float)(k->filtered[i] + dv_dot(factor + (size_t)i * (size_t)n, normal, (size_t)n));
  }
}

static void set_u(online_filter *o, const dvbf_model *m, const float *u) {
  for (int i = 0; i < m->n_u; i++)
    o->u[i] = u ? ((double)u[i] - (double)m->u.shift[i]) * (double)m->u.scale[i] : 0;
}

/* To the next step. u [n_u] is the control since the step before or, with feedthrough, that of this step. */
static void advance(online_filter *o, const dvbf_model *m, const float *u) {
  dv_kalman *k = &o->filter;
  if (!o->through) set_u(o, m, o->begun ? u : NULL);
  if (o->begun && o->sound) dv_kalman_move(k, o->u);
  if (o->begun && !o->seen) keep_to_limits(k, dv_model_range(m));
  if (o->through) set_u(o, m, u);
  o->begun = true;
}

/* x [n_x] scaled; NULL: missing. */
static void observe(online_filter *o, const double *x) {
  o->seen = x;
  o->sound = dv_kalman_observe(&o->filter, x, o->u);
}

static void online_step(const dvbf_model_class *self, const dvbf_model *m, void *memory, const float *x,
                        const float *u, size_t samples, float *mean, float *deviation, float *z) {
  online_filter *o = memory;
  dv_kalman *k = &o->filter;
  advance(o, m, u);
  for (int i = 0; x && i < m->n_x; i++)
    o->x[i] = ((double)x[i] - (double)m->x.shift[i]) * (double)m->x.scale[i];
  observe(o, x ? o->x : NULL);
  for (int i = 0; i < m->n_z; i++) {
    mean[i] = (float)k->filtered[i];
    deviation[i] = (float)sqrt(fmax(0, k->filtered_cov[i * (m->n_z + 1)]));
  }
  draw_online(o, samples, z);
  o->step++;
}

static void online_ahead(const dvbf_model_class *self, const dvbf_model *m, void *memory, const float *u,
                         bool noise, float *mean, float *deviation, double *x_mean, double *x_variance) {
  online_filter *o = memory;
  dv_kalman *k = &o->filter;
  advance(o, m, u);
  observe(o, NULL);
  for (int i = 0; i < m->n_z; i++) {
    mean[i] = (float)k->mean[i];
    deviation[i] = (float)sqrt(fmax(0, k->cov[i * (m->n_z + 1)]));
  }
  dv_system_emit(&o->system, k->mean, o->u, x_mean);
  dv_kalman_x_variance(&o->system, k->cov, noise, x_variance);
  for (int i = 0; i < m->n_x; i++) {
    double scale = (double)m->x.scale[i];
    x_mean[i] = x_mean[i] / scale + (double)m->x.shift[i];
    x_variance[i] /= scale * scale;
  }
}

const dvbf_model_class dv_model_linear = {.name = "linear",
                                          .settings = "limits linear",
                                          .system = "transition.z",
                                          .whole = whole,
                                          .move = move,
                                          .emission = emission,
                                          .exact = exact,
                                          .online_size = online_size,
                                          .online_begin = online_begin,
                                          .online_step = online_step,
                                          .online_ahead = online_ahead,
                                          .exact_system = dv_linear_get};
