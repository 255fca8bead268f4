/* The linear model with normal noise, which is not trained by gradients but identified (src/identify):
 *
 *   z_1 ~ N(m, P)    z_{t+1} = A z_t + B u_t + b + w_t    x_t = H z_t + D u_t + c + e_t
 *   (w_t, e_t) ~ N(0, L L')
 *
 * The Kalman filter is one op. Its "bound" is the likelihood itself: ln_p is ln p(x_t | x before t), and kl
 * is 0. z_t is drawn from N(z_t | x up to t) and, after the last frame that is seen, step by step from the
 * system; there, and there alone, it keeps to the limits of state-limit. */
#include "model/linear.h"

#include "base/algebra.h"
#include "kalman/draw.h"
#include "kalman/filter.h"

#include <math.h>
#include <string.h>

/* ---- Parameters. Weights are transposed, as layers have them ---- */

enum { FROM_Z, FROM_U, SHIFT, TO_X, THROUGH, OFFSET, NOISE, START, SPREAD, PARTS };

typedef struct part {
  const char *name;
  int rows, cols;
} part;

static void list_parts(part parts[PARTS], int n_z, int n_u, int n_x) {
  int both = n_x + n_z;
  part all[PARTS] = {{"transition.z", n_z, n_z},   {"transition.u", n_u, n_z}, {"transition.bias", 1, n_z},
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

static void read_parts(dv_system *s, const dvbf_real *const from[PARTS]) {
  int n_z = s->n_z, n_x = s->n_x, both = n_x + n_z;
  transpose(s->a, from[FROM_Z], n_z, n_z);
  transpose(s->h, from[TO_X], n_z, n_x);
  if (s->n_u) transpose(s->b, from[FROM_U], s->n_u, n_z);
  if (s->n_u) transpose(s->d, from[THROUGH], s->n_u, n_x);
  transpose(s->shift_z, from[SHIFT], 1, n_z);
  transpose(s->shift_x, from[OFFSET], 1, n_x);
  transpose(s->mean, from[START], 1, n_z);
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

void dv_linear_get(const dvbf_model *m, dv_system *out) {
  part parts[PARTS];
  const dvbf_real *from[PARTS];
  list_parts(parts, m->n_z, m->n_u, m->n_x);
  for (int i = 0; i < PARTS; i++) from[i] = dv_model_values(m, parts[i].name);
  read_parts(out, from);
}

static void write(dvbf_real *to, const double *from, int rows, int cols, bool transpose) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++)
      to[i * cols + j] = (dvbf_real)(transpose ? from[j * rows + i] : from[i * cols + j]);
}

void dv_linear_set(dvbf_model *m, const dv_system *s, double *scratch) {
  part parts[PARTS];
  int n_z = s->n_z, n_x = s->n_x, both = n_x + n_z;
  const double *whole[PARTS] = {s->a, s->b, s->shift_z, s->h, s->d, s->shift_x, NULL, s->mean, NULL};
  list_parts(parts, n_z, s->n_u, n_x);
  for (int i = 0; i < PARTS; i++)
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

enum { X = PARTS, U, MASK, SEEN, NOISES, RANGE, INPUTS };
enum { Z, KL, LN_P, ROOM, OUTPUTS };

/* Doubles of the room of an op: the system, the filter, two factors, and some vectors. */
static size_t room_size(int n_z, int n_u, int n_x) {
  size_t z = (size_t)n_z;
  return dv_system_size(n_z, n_u, n_x) + dv_kalman_size(n_z, n_x) + 2 * z * z + 2 * z + (size_t)n_u +
         (size_t)n_x;
}

/* One sequence on its way through the steps. */
typedef struct walk {
  const dvbf_op *op;
  const dvbf_run *run;
  const filter_data *data;
  dv_system system;
  dv_kalman filter;
  double *noise_factor, *factor, *z, *next, *u, *x;
  const dvbf_real *range; /* of z, where it has limits */
  int row, last;          /* step that is seen last, -1: none */
} walk;

static dvbf_real *at(const walk *w, dvbf_value value, int t) {
  return dvbf_at(w->run, dvbf_steps(value, t, 1)) +
         (size_t)(value.rows > 1 ? w->row : 0) * (size_t)value.cols;
}

static walk begin_walk(const dvbf_op *op, const dvbf_run *run) {
  const filter_data *d = op->data;
  const dvbf_real *from[PARTS];
  walk w = {.op = op, .run = run, .data = d, .range = dvbf_at(run, op->in[RANGE])};
  for (int i = 0; i < PARTS; i++) from[i] = op->in[i].buffer < 0 ? NULL : dvbf_at(run, op->in[i]);
  double *room = (double *)(void *)dvbf_at(run, op->out[ROOM]);
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

static void load(walk *w, int t) {
  const dvbf_real *x = at(w, w->op->in[X], t), *mask = at(w, w->op->in[MASK], t);
  const dvbf_real *seen = w->op->in[SEEN].buffer < 0 ? NULL : at(w, w->op->in[SEEN], t);
  const dvbf_real *u = w->data->n_u ? at(w, w->op->in[U], t) : NULL;
  for (int i = 0; i < w->data->n_u; i++) w->u[i] = (double)u[i];
  for (int i = 0; i < w->data->n_x; i++)
    w->x[i] = mask[0] > 0 && (!seen || seen[i] > 0) ? (double)x[i] : (double)NAN;
}

/* z = mean + factor noise */
static void add_noise(walk *w, const double *mean, const double *factor, int t) {
  const dvbf_real *noise = at(w, w->op->in[NOISES], t);
  size_t n = (size_t)w->data->n_z;
  for (size_t i = 0; i < n; i++) {
    w->z[i] = mean[i];
    for (size_t j = 0; j <= i; j++) w->z[i] += factor[i * n + j] * (double)noise[j];
  }
}

static void put_z(walk *w, int t) {
  dvbf_real *z = at(w, w->op->out[Z], t);
  for (int i = 0; i < w->data->n_z; i++) z[i] = (dvbf_real)w->z[i];
}

static void walk_row(walk *w, int row) {
  const filter_data *d = w->data;
  int steps = w->op->out[Z].steps;
  size_t square_size = (size_t)d->n_z * (size_t)d->n_z;
  dv_kalman *k = &w->filter;
  w->row = row;
  w->last = -1;
  for (int t = 0; t < steps; t++)
    if (*at(w, w->op->in[MASK], t) > 0) w->last = t;
  *k = dv_kalman_begin(&w->system, w->system.a + dv_system_size(d->n_z, d->n_u, d->n_x));
  for (int t = 0; t < steps; t++) {
    bool filters = t <= w->last;
    load(w, t);
    if (filters) dv_kalman_observe(k, w->x, w->u);
    *at(w, w->op->out[KL], t) = 0;
    *at(w, w->op->out[LN_P], t) = filters ? (dvbf_real)k->log_p : 0;
    if (t > w->last + 1) {
      add_noise(w, w->next, w->noise_factor, t);
      dv_range_bend(w->range, w->z, d->n_z);
    } else {
      memcpy(w->factor, filters ? k->filtered_cov : k->cov, square_size * sizeof *w->factor);
      dv_factor(w->factor, d->n_z);
      add_noise(w, filters ? k->filtered : k->mean, w->factor, t);
    }
    put_z(w, t);
    if (filters) dv_kalman_move(k, w->u);
    if (!filters) dv_system_move(&w->system, w->z, w->u, w->next);
  }
}

static void filter_forward(const dvbf_op *op, dvbf_run *run) {
  walk w = begin_walk(op, run);
  for (int r = 0; r < op->out[Z].rows; r++) walk_row(&w, r);
}

static const dvbf_op_class filter_class = {"kalman-filter", filter_forward, NULL, NULL};

/* ---- Recorders ---- */

static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self;
  dvbf_graph *g = p->graph;
  part parts[PARTS];
  dvbf_value in[INPUTS], out[OUTPUTS], noise = dvbf_slab_constant(g, p->steps, m->n_z);
  list_parts(parts, m->n_z, m->n_u, m->n_x);
  for (int i = 0; i < PARTS; i++) {
    in[i] = DVBF_NONE;
    if (parts[i].rows)
      in[i] = dvbf_parameter(g, parts[i].name, parts[i].rows, parts[i].cols, (dvbf_first){0});
  }
  dvbf_noise(g, noise, false);
  size_t room = room_size(m->n_z, m->n_u, m->n_x) * (sizeof(double) / sizeof(dvbf_real));
  p->ln_p = dvbf_slab(g, p->steps, 1);
  in[X] = p->x, in[U] = p->u, in[MASK] = p->mask, in[SEEN] = p->seen, in[NOISES] = noise;
  in[RANGE] = dvbf_state_range(g, m);
  out[Z] = p->z, out[KL] = p->kl, out[LN_P] = p->ln_p, out[ROOM] = dvbf_slab_shared_constant(g, 1, (int)room);
  filter_data data = {m->n_z, m->n_u, m->n_x};
  dvbf_record(g, &filter_class, INPUTS, in, OUTPUTS, out, &data, sizeof data);
}

static void emission(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self;
  p->output = dvbf_slab(p->graph, p->steps, m->n_x);
  dvbf_layer layer = dv_dense(p->graph, "emission", p->output, DVBF_LINEAR, (dvbf_first){0},
                              (dv_dense_in[4]){{"z", p->z, 0, false}, {"u", p->u, 0, false}});
  dvbf_layer_whole(p->graph, &layer);
}

static void move(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self;
  dvbf_value u = m->n_u ? dvbf_steps(p->u, 0, 1) : p->u;
  p->later.noise = dvbf_slab_constant(p->graph, 1, m->n_z);
  dvbf_layer layer = dv_dense(p->graph, "transition", dvbf_steps(p->z, 1, 1), DVBF_LINEAR, (dvbf_first){0},
                              (dv_dense_in[4]){{"z", dvbf_steps(p->z, 0, 1), 0, true}, {"u", u, 0, false}});
  dvbf_layer_open(p->graph, &layer);
  dvbf_layer_step(p->graph, &layer, 0);
  dvbf_saturate(p->graph, dvbf_steps(p->z, 1, 1), dvbf_state_range(p->graph, m));
}

const dvbf_model_class dv_model_linear = {.name = "linear",
                                          .settings = "limits linear",
                                          .system = "transition.z",
                                          .whole = whole,
                                          .move = move,
                                          .emission = emission,
                                          .exact = dv_linear_exact,
                                          .online_size = dv_linear_online_size,
                                          .online_begin = dv_linear_online_begin,
                                          .online_step = dv_linear_online_step,
                                          .online_ahead = dv_linear_online_ahead,
                                          .exact_system = dv_linear_get};
