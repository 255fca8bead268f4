/* Every op alone: its backward against differences of its forward, and its forward against the plain formula.
 */
#include "gradient.h"
#include "math/portable.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The harness itself must notice a wrong backward ---- */

/* y = x^2, with a backward that is right, wrong by one entry, or writes where it should add. */
enum { RIGHT, ONE_ENTRY_WRONG, WRITES };

static void square_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *x = dvbf_at(run, op->in[0]);
  dvbf_real *y = dvbf_at(run, op->out[0]);
  for (size_t i = 0; i < op->in[0].stride; i++) y[i] = x[i] * x[i];
}

static void square_backward(const dvbf_op *op, dvbf_run *run) {
  int kind = *(const int *)op->data;
  const dvbf_real *x = dvbf_at(run, op->in[0]), *dy = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *dx = dvbf_gradient_at(run, op->in[0]);
  for (size_t i = 0; i < op->in[0].stride; i++) {
    if (kind == WRITES) dx[i] = 0;
    dx[i] += (kind == ONE_ENTRY_WRONG && i == 4 ? 1.99 : 2) * x[i] * dy[i];
  }
}

static double error_of_square(int kind) {
  static const dvbf_op_class class = {"square", square_forward, square_backward, NULL};
  bench b;
  bench_begin(&b, 3);
  dvbf_value x = input(&b, 1, 4), y = dvbf_slab(b.graph, 1, 4);
  dvbf_record(b.graph, &class, 1, &x, 1, &y, &kind, sizeof kind);
  project(&b, y);
  double error = bench_error(&b);
  bench_end(&b);
  return error;
}

static void wrong_backward_is_caught(void **state) {
  (void)state;
  assert_true(error_of_square(RIGHT) <= TOLERANCE);
  assert_true(error_of_square(ONE_ENTRY_WRONG) > 100 * TOLERANCE);
  assert_true(error_of_square(WRITES) > 1e-2);
}

/* ---- Layers ---- */

typedef struct layer_case {
  int rows, steps, n;
  int m[4];           /* columns of the inputs, ends at 0 */
  bool sequential[4]; /* in a layer of steps */
  dvbf_activation activation;
  bool bias, in_steps, per_step, shared; /* per_step, shared: weights are views of a slab */
} layer_case;

/* Weights as parameters, or one behind the other in a slab. */
static void make_layer(bench *b, const layer_case *c, dvbf_layer *l) {
  size_t offset = 0;
  int count = 0;
  for (int i = 0; i < 4; i++) count += c->m[i] * c->n;
  b->positive = c->activation == DVBF_RELU;
  *l = (dvbf_layer){
      .out = dvbf_slab(b->graph, c->steps, c->n), .activation = c->activation, .bias = DVBF_NONE};
  dvbf_value slab = c->per_step || c->shared ? input_shared(b, c->per_step ? c->steps : 1, count) : DVBF_NONE;
  for (; l->n_in < 4 && c->m[l->n_in]; l->n_in++) {
    int m = c->m[l->n_in];
    l->in[l->n_in].x = input(b, c->steps, m);
    l->in[l->n_in].w =
        slab.buffer < 0 ? random_parameter(b, m, c->n, true) : dvbf_matrix(slab, offset, m, c->n);
    l->in[l->n_in].sequential = c->sequential[l->n_in];
    offset += (size_t)m * (size_t)c->n;
  }
  if (c->bias) l->bias = random_parameter(b, 1, c->n, true);
}

static double activated(dvbf_activation a, const double *before, int i, int n) {
  double sum = 0;
  switch (a) {
  case DVBF_RELU: return before[i] > 0 ? before[i] : 0;
  case DVBF_TANH: return tanh(before[i]);
  case DVBF_SIGMOID: return 1 / (1 + exp(-before[i]));
  case DVBF_SOFTMAX:
    for (int j = 0; j < n; j++) sum += exp(before[j] - before[i]);
    return 1 / sum;
  default: return before[i];
  }
}

/* One row of the layer by the formula. */
static void expect_row(const bench *b, const layer_case *c, const dvbf_layer *l, int t, int r) {
  double before[64];
  const dvbf_real *y = dvbf_at(&b->run, dvbf_steps(l->out, t, 1)) + (size_t)r * c->n;
  for (int j = 0; j < c->n; j++) {
    before[j] = c->bias ? dvbf_at(&b->run, l->bias)[j] : 0;
    for (int k = 0; k < l->n_in; k++) {
      const dvbf_real *x = dvbf_at(&b->run, dvbf_steps(l->in[k].x, t, 1)) + (size_t)r * c->m[k];
      const dvbf_real *w = dvbf_at(&b->run, dvbf_steps(l->in[k].w, l->in[k].w.steps > 1 ? t : 0, 1));
      for (int i = 0; i < c->m[k]; i++) before[j] += x[i] * w[i * c->n + j];
    }
  }
  for (int j = 0; j < c->n; j++) assert_true(fabs(y[j] - activated(c->activation, before, j, c->n)) < 1e-12);
}

static void check_layer(const layer_case *c) {
  char what[128];
  snprintf(what, sizeof what, "layer %d x %d x (%d, %d, %d) to %d, activation %d, steps %d, per step %d",
           c->steps, c->rows, c->m[0], c->m[1], c->m[2], c->n, c->activation, c->in_steps, c->per_step);
  bench b;
  bench_begin(&b, c->rows);
  dvbf_layer l;
  make_layer(&b, c, &l);
  if (c->in_steps) {
    dvbf_layer_open(b.graph, &l);
    for (int t = 0; t < c->steps; t++) dvbf_layer_step(b.graph, &l, t);
  } else {
    dvbf_layer_whole(b.graph, &l);
  }
  project(&b, l.out);
  assert_gradients(&b, what);
  dv_run_forward(&b.run);
  for (int t = 0; t < c->steps; t++)
    for (int r = 0; r < c->rows; r++) expect_row(&b, c, &l, t, r);
  bench_end(&b);
}

static void layer_activations(void **state) {
  (void)state;
  for (int a = DVBF_LINEAR; a <= DVBF_SOFTMAX; a++)
    for (int in_steps = 0; in_steps < 2; in_steps++)
      for (int bias = 0; bias < 2; bias++)
        check_layer(&(layer_case){.rows = 3,
                                  .steps = 2,
                                  .n = 5,
                                  .m = {4},
                                  .sequential = {in_steps},
                                  .activation = a,
                                  .bias = bias,
                                  .in_steps = in_steps});
}

static void layer_widths(void **state) {
  (void)state;
  for (int n = 1; n <= 7; n++)
    for (int m = 1; m <= 7; m += 2) {
      check_layer(
          &(layer_case){.rows = 2, .steps = 2, .n = n, .m = {m}, .activation = DVBF_TANH, .bias = true});
      check_layer(&(layer_case){.rows = 2,
                                .steps = 2,
                                .n = n,
                                .m = {m},
                                .sequential = {true},
                                .activation = DVBF_SOFTMAX,
                                .bias = true,
                                .in_steps = true});
    }
  check_layer(
      &(layer_case){.rows = 13, .steps = 1, .n = 11, .m = {9}, .activation = DVBF_TANH, .bias = true});
  check_layer(&(layer_case){.rows = 1, .steps = 7, .n = 17, .m = {19}, .activation = DVBF_SIGMOID});
}

static void layer_inputs(void **state) {
  (void)state;
  for (int in_steps = 0; in_steps < 2; in_steps++) {
    check_layer(&(layer_case){.rows = 3,
                              .steps = 3,
                              .n = 4,
                              .m = {2, 5, 3, 1},
                              .sequential = {false, true, false, true},
                              .activation = DVBF_TANH,
                              .bias = true,
                              .in_steps = in_steps});
    check_layer(&(layer_case){.rows = 3,
                              .steps = 3,
                              .n = 4,
                              .m = {2, 5},
                              .sequential = {true, true},
                              .activation = DVBF_RELU,
                              .in_steps = in_steps});
  }
}

/* More than 16 rows of a sequential weight: steps run back with the weight turned round. */
static void layer_turned(void **state) {
  (void)state;
  for (int per_step = 0; per_step < 2; per_step++)
    check_layer(&(layer_case){.rows = 2,
                              .steps = 3,
                              .n = 3,
                              .m = {17, 20, 5},
                              .sequential = {true, false, true},
                              .activation = DVBF_TANH,
                              .bias = true,
                              .in_steps = true,
                              .per_step = per_step});
}

static void layer_weights_in_slabs(void **state) {
  (void)state;
  for (int per_step = 0; per_step < 2; per_step++)
    for (int in_steps = 0; in_steps < 2; in_steps++)
      check_layer(&(layer_case){.rows = 3,
                                .steps = 4,
                                .n = 3,
                                .m = {2, 4},
                                .sequential = {true, false},
                                .activation = DVBF_SIGMOID,
                                .bias = true,
                                .in_steps = in_steps,
                                .per_step = per_step,
                                .shared = !per_step});
}

/* h_t = tanh(x_t W + h_before R + b), either way through time; n > 16 turns R round. */
static void check_recurrence(int n, bool reverse) {
  int steps = 3;
  bench b;
  bench_begin(&b, 2);
  dvbf_value states = dvbf_slab(b.graph, steps + 1, n);
  dvbf_zero(b.graph, dvbf_steps(states, reverse ? steps : 0, 1));
  dvbf_layer l = {.out = dvbf_steps(states, reverse ? 0 : 1, steps), .activation = DVBF_TANH, .n_in = 2};
  l.in[0].x = input(&b, steps, 3);
  l.in[0].w = random_parameter(&b, 3, n, true);
  l.in[1].x = dvbf_steps(states, reverse ? 1 : 0, steps);
  l.in[1].w = random_parameter(&b, n, n, true);
  l.in[1].sequential = true;
  l.bias = random_parameter(&b, 1, n, true);
  dvbf_layer_open(b.graph, &l);
  for (int i = 0; i < steps; i++) dvbf_layer_step(b.graph, &l, reverse ? steps - 1 - i : i);
  project(&b, states);
  assert_gradients(&b, reverse ? "recurrence backwards" : "recurrence");
  bench_end(&b);
}

static void layer_recurrence(void **state) {
  (void)state;
  for (int reverse = 0; reverse < 2; reverse++) {
    check_recurrence(5, reverse);
    check_recurrence(18, reverse);
  }
}

/* Inputs of data carry no gradient; whether they are sequential or wide must not matter. */
static void layer_constant_inputs(void **state) {
  (void)state;
  for (int m = 4; m <= 20; m += 16) {
    bench b;
    bench_begin(&b, 2);
    dvbf_layer l = {.out = dvbf_slab(b.graph, 2, 3), .activation = DVBF_TANH, .n_in = 2, .bias = DVBF_NONE};
    for (int i = 0; i < 2; i++) {
      l.in[i].x = constant(&b, 2, m, NULL);
      l.in[i].w = random_parameter(&b, m, 3, true);
      l.in[i].sequential = i;
    }
    dvbf_layer_open(b.graph, &l);
    for (int t = 0; t < 2; t++) dvbf_layer_step(b.graph, &l, t);
    project(&b, l.out);
    assert_gradients(&b, "layer on constants");
    bench_end(&b);
  }
}

/* ---- Mixture of linear systems ---- */

typedef struct mixture_case {
  int n_z, n_u, n_w, n_next, systems;
  bool residual, affine, per_step;
} mixture_case;

enum { MIXTURE_ROWS = 3, MIXTURE_STEPS = 3 };

static dvbf_mixture make_mixture(bench *b, const mixture_case *c) {
  int n_in = c->n_z + c->n_u + c->affine + c->n_w, steps = MIXTURE_STEPS;
  return (dvbf_mixture){.z = input(b, steps, c->n_z),
                        .u = c->n_u ? input(b, steps, c->n_u) : DVBF_NONE,
                        .w = input(b, steps, c->n_w),
                        .alpha = c->systems > 1 ? input(b, steps, c->systems) : DVBF_NONE,
                        .v = input_shared(b, c->per_step ? steps : 1, n_in * c->n_next * c->systems),
                        .next = dvbf_slab(b->graph, steps, c->n_next),
                        .parts = dvbf_slab_constant(b->graph, steps, c->n_next * c->systems),
                        .systems = c->systems,
                        .residual = c->residual,
                        .affine = c->affine};
}

/* next_j of one row by the formula. */
static double mixed(const bench *b, const mixture_case *c, const dvbf_mixture *m, int t, int r, int j) {
  double s[32], next;
  int n = 0, last = c->n_next * c->systems;
  const dvbf_real *z = dvbf_at(&b->run, dvbf_steps(m->z, t, 1)) + r * c->n_z;
  const dvbf_real *v = dvbf_at(&b->run, dvbf_steps(m->v, c->per_step ? t : 0, 1));
  for (int i = 0; i < c->n_z; i++) s[n++] = z[i];
  for (int i = 0; i < c->n_u; i++) s[n++] = dvbf_at(&b->run, dvbf_steps(m->u, t, 1))[r * c->n_u + i];
  if (c->affine) s[n++] = 1;
  for (int i = 0; i < c->n_w; i++) s[n++] = dvbf_at(&b->run, dvbf_steps(m->w, t, 1))[r * c->n_w + i];
  next = c->residual ? z[j] : 0;
  for (int i = 0; i < c->systems; i++) {
    double alpha = c->systems > 1 ? dvbf_at(&b->run, dvbf_steps(m->alpha, t, 1))[r * c->systems + i] : 1;
    for (int k = 0; k < n; k++) next += alpha * s[k] * v[k * last + j * c->systems + i];
  }
  return next;
}

static void check_mixture(const mixture_case *c) {
  char what[128];
  snprintf(what, sizeof what,
           "mixture of %d systems, n_z %d, n_u %d, n_w %d, residual %d, affine %d, per step %d", c->systems,
           c->n_z, c->n_u, c->n_w, c->residual, c->affine, c->per_step);
  bench b;
  bench_begin(&b, MIXTURE_ROWS);
  dvbf_mixture m = make_mixture(&b, c);
  dvbf_mixture_open(b.graph, &m);
  for (int t = 0; t < MIXTURE_STEPS; t++) dvbf_mixture_step(b.graph, &m, t);
  project(&b, m.next);
  assert_gradients(&b, what);
  dv_run_forward(&b.run);
  for (int t = 0; t < MIXTURE_STEPS; t++)
    for (int r = 0; r < MIXTURE_ROWS; r++)
      for (int j = 0; j < c->n_next; j++) {
        double got = dvbf_at(&b.run, dvbf_steps(m.next, t, 1))[r * c->n_next + j];
        assert_true(fabs(got - mixed(&b, c, &m, t, r, j)) < 1e-12);
      }
  bench_end(&b);
}

static void mixtures(void **state) {
  (void)state;
  for (int i = 0; i < 32; i++)
    check_mixture(&(mixture_case){.n_z = 3,
                                  .n_u = i & 1 ? 2 : 0,
                                  .n_w = i & 1 ? 3 : 2,
                                  .n_next = 3,
                                  .systems = i & 2 ? 4 : 1,
                                  .residual = i & 4,
                                  .affine = i & 8,
                                  .per_step = i & 16});
  check_mixture(&(mixture_case){.n_z = 4, .n_u = 1, .n_w = 5, .n_next = 2, .systems = 3});
  check_mixture(&(mixture_case){.n_z = 1, .n_u = 1, .n_w = 1, .n_next = 1, .systems = 17, .residual = true});
}

/* z' is the next step of the slab that z is in, as in a model. */
static void mixture_chain(void **state) {
  (void)state;
  for (int residual = 0; residual < 2; residual++) {
    mixture_case c = {.n_z = 3, .n_u = 2, .n_w = 2, .n_next = 3, .systems = 2, .residual = residual};
    bench b;
    bench_begin(&b, MIXTURE_ROWS);
    dvbf_mixture m = make_mixture(&b, &c);
    dvbf_value z = dvbf_slab(b.graph, MIXTURE_STEPS + 1, c.n_z);
    input_into(&b, dvbf_steps(z, 0, 1));
    m.z = dvbf_steps(z, 0, MIXTURE_STEPS);
    m.next = dvbf_steps(z, 1, MIXTURE_STEPS);
    dvbf_mixture_open(b.graph, &m);
    for (int t = 0; t < MIXTURE_STEPS; t++) dvbf_mixture_step(b.graph, &m, t);
    project(&b, z);
    assert_gradients(&b, "chain of mixtures");
    bench_end(&b);
  }
}

/* Dynamics of observed states: z is data and has no gradient. */
static void mixture_constant_state(void **state) {
  (void)state;
  mixture_case c = {.n_z = 3, .n_w = 2, .n_next = 3, .systems = 2, .residual = true, .affine = true};
  bench b;
  bench_begin(&b, MIXTURE_ROWS);
  dvbf_mixture m = make_mixture(&b, &c);
  m.z = constant(&b, MIXTURE_STEPS, c.n_z, NULL);
  dvbf_mixture_open(b.graph, &m);
  for (int t = 0; t < MIXTURE_STEPS; t++) dvbf_mixture_step(b.graph, &m, t);
  project(&b, m.next);
  assert_gradients(&b, "mixture of constants");
  bench_end(&b);
}

/* ---- Innovations ---- */

static double log_normal(double x, double mean, double sigma) {
  double e = (x - mean) / sigma;
  return -0.5 * e * e - log(sigma) - 0.918938533204672741780;
}

/* E_q[ln q - c ln p] for q = N(mu, sigma^2) and p = N(m, s^2) by the trapezoidal rule, which is exact to
 * rounding for such an integrand. */
static double annealed(double mu, double sigma, double m, double s, double c) {
  double sum = 0, h = sigma / 8;
  for (int i = -96; i <= 96; i++) {
    double x = mu + h * i, ln_q = log_normal(x, mu, sigma);
    sum += h * exp(ln_q) * (ln_q - c * log_normal(x, m, s));
  }
  return sum;
}

typedef struct innovation_case {
  dvbf_innovation i;
  int rows;
  dvbf_value weight;
} innovation_case;

/* The projection of w, and the annealed divergence integrated from what the head holds. */
static double innovation_objective(bench *b) {
  const innovation_case *c = b->extra;
  double sum = 0;
  int n = c->i.w.cols;
  for (int r = 0; r < c->i.w.steps * c->rows; r++) {
    const dvbf_real *head = dvbf_at(&b->run, c->i.head) + (size_t)r * 2 * n;
    if (c->i.use.buffer >= 0 && !(dvbf_at(&b->run, c->i.use)[r] > 0)) continue;
    for (int k = 0; k < n; k++) {
      double ls = fmin(fmax(head[n + k], c->i.low), c->i.high);
      sum += dvbf_at(&b->run, c->weight)[r % c->rows] *
             annealed(head[k], exp(ls), 0, 1, dv_conditions_get(&b->conditions, DVBF_TEMPERATURE));
    }
  }
  return b->run.terms[PROJECTION] + b->conditions.scale * sum;
}

/* Entries of ln sigma keep clear of the two ends, where no difference is right. */
static void avoid_ends(dvbf_real *head, int rows, int n, double low, double high) {
  for (int i = 0; i < rows * 2 * n; i++) {
    if (i % (2 * n) >= n) head[i] *= 2; /* some lie beyond the ends */
    if (fabs(head[i] - low) < 0.01) head[i] += 0.03;
    if (fabs(head[i] - high) < 0.01) head[i] += 0.03;
  }
}

static int count_clamped(const dvbf_real *head, int rows, int n, double low, double high) {
  int count = 0;
  for (int i = 0; i < rows * 2 * n; i++) count += i % (2 * n) >= n && (head[i] < low || head[i] > high);
  return count;
}

static void check_innovation(double temperature, bool with_use, bool by_steps) {
  enum { ROWS = 4, STEPS = 3, N = 3 };
  static const double use[STEPS * ROWS] = {1, 0, 1, 1, -1, 1, 1, 1, 1, 1, 0, 1}, weights[ROWS] = {1, 1, 0, 1};
  bench b;
  bench_begin(&b, ROWS);
  innovation_case c = {.rows = ROWS, .i = {.low = -1, .high = 0.8, .use = DVBF_NONE}};
  c.i.head = input(&b, STEPS, 2 * N);
  avoid_ends(last_values(&b), STEPS * ROWS, N, c.i.low, c.i.high);
  assert_true(count_clamped(last_values(&b), STEPS * ROWS, N, c.i.low, c.i.high) > 3);
  c.i.noise = constant(&b, STEPS, N, NULL);
  if (with_use) c.i.use = constant(&b, STEPS, 1, use);
  c.weight = constant(&b, 1, 1, weights);
  c.i.w = dvbf_slab(b.graph, STEPS, N);
  c.i.kl = dvbf_slab(b.graph, STEPS, 1);
  if (by_steps)
    for (int t = 0; t < STEPS; t++) dvbf_innovation_step(b.graph, &c.i, t);
  else
    dvbf_innovation_step(b.graph, &c.i, -1);
  dvbf_sum(b.graph, KL_W, c.i.kl, c.weight, -1);
  project(&b, c.i.w);
  dv_conditions_set(&b.conditions, DVBF_TEMPERATURE, temperature);
  b.objective = innovation_objective;
  b.extra = &c;
  assert_gradients(&b, "innovation");
  /* The reported KL is the one of temperature 1. */
  dv_conditions_set(&b.conditions, DVBF_TEMPERATURE, 1);
  dv_run_forward(&b.run);
  double kl = (innovation_objective(&b) - b.run.terms[PROJECTION]) / b.conditions.scale;
  assert_true(fabs(kl - b.run.terms[KL_W]) < 1e-9 * kl);
  bench_end(&b);
}

static void innovations(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) check_innovation(i & 1 ? 0.37 : 1, i & 2, i & 4);
}

/* ---- States with a learned prior ---- */

typedef struct state_case {
  dvbf_state s;
  dvbf_value weight;
} state_case;

static bool uses_q(const bench *b, const dvbf_state *s, int row) {
  return row / s->z.rows < s->seen && dvbf_at(&b->run, s->use)[row] > 0;
}

/* The projection of z, and the annealed divergence integrated from what the heads hold. */
static double state_objective(bench *b) {
  const state_case *c = b->extra;
  const dvbf_state *s = &c->s;
  double sum = 0;
  int n = s->z.cols;
  for (int r = 0; r < s->z.steps * s->z.rows; r++) {
    if (!uses_q(b, s, r)) continue;
    const dvbf_real *q = dvbf_at(&b->run, s->q) + (size_t)r * 2 * n;
    const dvbf_real *p = dvbf_at(&b->run, s->p) + (size_t)r * 2 * n;
    for (int k = 0; k < n; k++) {
      double lq = fmin(fmax(q[n + k], s->low), s->high), lp = fmin(fmax(p[n + k], s->low), s->high);
      sum += dvbf_at(&b->run, c->weight)[r % s->z.rows] *
             annealed(q[k], exp(lq), p[k], exp(lp), dv_conditions_get(&b->conditions, DVBF_TEMPERATURE));
    }
  }
  return b->run.terms[PROJECTION] + b->conditions.scale * sum;
}

/* z is a sample of the head that counts. */
static void expect_samples(const bench *b, const dvbf_state *s, bool from_q) {
  int n = s->z.cols;
  for (int r = 0; r < s->z.steps * s->z.rows; r++) {
    const dvbf_real *head = dvbf_at(&b->run, from_q || uses_q(b, s, r) ? s->q : s->p) + (size_t)r * 2 * n;
    for (int k = 0; k < n; k++) {
      double sigma = exp(fmin(fmax(head[n + k], s->low), s->high));
      bool mean = !from_q && dvbf_at(&b->run, s->use)[r] < 0; /* of the prior */
      double z = head[k] + (mean ? 0 : sigma * dvbf_at(&b->run, s->noise)[r * n + k]);
      assert_true(fabs(dvbf_at(&b->run, s->z)[r * n + k] - z) < 1e-12);
    }
    if (!uses_q(b, s, r)) assert_true(dvbf_at(&b->run, s->kl)[r] == 0);
  }
}

static void check_states(double temperature, int seen, bool by_steps) {
  enum { ROWS = 4, STEPS = 3, N = 3 };
  static const double use[STEPS * ROWS] = {1, 0, 1, 1, -1, 1, 1, 1, 1, 1, 0, 1}, weights[ROWS] = {1, 1, 0, 1};
  bench b;
  bench_begin(&b, ROWS);
  state_case c = {.s = {.low = -1, .high = 0.8, .seen = seen, .q = DVBF_NONE}};
  dvbf_state *s = &c.s;
  if (seen) s->q = input(&b, seen, 2 * N);
  if (seen) avoid_ends(last_values(&b), seen * ROWS, N, s->low, s->high);
  s->p = input(&b, STEPS, 2 * N);
  avoid_ends(last_values(&b), STEPS * ROWS, N, s->low, s->high);
  assert_true(count_clamped(last_values(&b), STEPS * ROWS, N, s->low, s->high) > 3);
  s->noise = constant(&b, STEPS, N, NULL);
  s->use = constant(&b, STEPS, 1, use);
  c.weight = constant(&b, 1, 1, weights);
  s->z = dvbf_slab(b.graph, STEPS, N);
  s->kl = dvbf_slab(b.graph, STEPS, 1);
  for (int t = by_steps ? 0 : -1; t < (by_steps ? STEPS : 0); t++) dvbf_state_sample(b.graph, s, t);
  dvbf_state_kl(b.graph, s);
  dvbf_sum(b.graph, KL_W, s->kl, c.weight, -1);
  project(&b, s->z);
  dv_conditions_set(&b.conditions, DVBF_TEMPERATURE, temperature);
  b.objective = state_objective;
  b.extra = &c;
  assert_gradients(&b, "state");
  /* The reported KL is the one of temperature 1. */
  dv_conditions_set(&b.conditions, DVBF_TEMPERATURE, 1);
  dv_run_forward(&b.run);
  double kl = (state_objective(&b) - b.run.terms[PROJECTION]) / b.conditions.scale;
  assert_true(seen ? kl > 0 : kl == 0);
  assert_true(fabs(kl - b.run.terms[KL_W]) <= 1e-9 * kl);
  expect_samples(&b, s, !by_steps);
  bench_end(&b);
}

static void states(void **state) {
  (void)state;
  for (int seen = 0; seen <= 3; seen++)
    for (int i = 0; i < 2; i++) check_states(i ? 0.37 : 1, seen, true);
  check_states(1, 3, false);
  check_states(0.37, 3, false);
}

/* Where q is not used, w is the noise itself. */
static void innovation_from_prior(void **state) {
  (void)state;
  static const double use[2] = {0, 1};
  bench b;
  bench_begin(&b, 2);
  dvbf_innovation i = {.low = -8, .high = 2, .head = input(&b, 1, 4), .noise = constant(&b, 1, 2, NULL)};
  i.use = constant(&b, 1, 1, use);
  i.w = dvbf_slab(b.graph, 1, 2);
  i.kl = dvbf_slab(b.graph, 1, 1);
  dvbf_innovation_step(b.graph, &i, 0);
  project(&b, i.w);
  project(&b, i.kl);
  bench_run(&b);
  dv_run_forward(&b.run);
  const dvbf_real *w = dvbf_at(&b.run, i.w), *eps = dvbf_at(&b.run, i.noise), *head = dvbf_at(&b.run, i.head);
  for (int k = 0; k < 2; k++) {
    assert_true(w[k] == eps[k] && b.gradient[k] == 0 && b.gradient[2 + k] == 0);
    assert_true(fabs(w[2 + k] - head[4 + k] - exp(head[6 + k]) * eps[2 + k]) < 1e-14);
  }
  assert_true(dvbf_at(&b.run, i.kl)[0] == 0 && dvbf_at(&b.run, i.kl)[1] > 0);
  bench_end(&b);
}

/* ---- Fast dropout ---- */

/* Moments of activation(N(mu, nu)) by the trapezoidal rule over 10 standard deviations. */
static void integrate(dvbf_activation a, double mu, double nu, double *mean, double *variance) {
  enum { HALF = 20000 };
  double sums[3] = {0};
  for (int i = -HALF; i <= HALF; i++) {
    double x = 10.0 * i / HALF, weight = exp(-0.5 * x * x), before = mu + sqrt(nu) * x,
           y = activated(a, &before, 0, 1);
    sums[0] += weight;
    sums[1] += weight * y;
    sums[2] += weight * y * y;
  }
  *mean = sums[1] / sums[0];
  *variance = sums[2] / sums[0] - *mean * *mean;
}

/* mu and nu from tiny to large: rows of a bench, so that one program has them all. */
static const double some_mu[] = {-30, -4, -0.9, -0.1, 0, 0.3, 1.7, 6, 40};
static const double some_nu[] = {1e-4, 0.01, 0.2, 1, 9};
enum { N_MU = 9, N_NU = 5 };

/* Means, and variances where nothing is dropped: exact for a rectifier, within the bounds of ops_moments.c
 * for sigmoid and tanh. */
static void expect_moments(const bench *b, const dv_moments *m) {
  bool exact = m->activation == DVBF_RELU || m->activation == DVBF_LINEAR;
  double size = m->activation == DVBF_TANH ? 2 : 1, off_mean = exact ? 1e-6 : 0.016 * size,
         off = exact ? 1e-6 : 0.0072 * size * size;
  for (int i = 0; i < N_MU * N_NU; i++) {
    double mean, variance, nu = some_nu[i % N_NU] + DV_VARIANCE_FLOOR;
    integrate(m->activation, some_mu[i / N_NU], nu, &mean, &variance);
    double got = dvbf_at(&b->run, m->mean)[i],
           got_variance = (1 - m->p) * dvbf_at(&b->run, m->dropped)[i] - m->p * got * got;
    if (!(fabs(got - mean) <= off_mean) || !(fabs(got_variance - variance) <= off * fmax(1, nu)))
      fail_msg("activation %d of N(%g, %g): mean %g for %g, variance %g for %g", m->activation,
               some_mu[i / N_NU], nu, got, mean, got_variance, variance);
  }
}

static void check_moments(dvbf_activation a, double p) {
  enum { STEPS = N_MU };
  char what[64];
  snprintf(what, sizeof what, "moments of activation %d with dropout %g", a, p);
  bench b;
  bench_begin(&b, N_NU);
  dv_moments m = {.activation = a, .p = p, .mu = input(&b, STEPS, 1)};
  for (int i = 0; i < N_MU * N_NU; i++) last_values(&b)[i] = some_mu[i / N_NU];
  m.nu = input(&b, STEPS, 1);
  for (int i = 0; i < N_MU * N_NU; i++) last_values(&b)[i] = some_nu[i % N_NU];
  m.mean = dvbf_slab(b.graph, STEPS, 1);
  m.dropped = dvbf_slab(b.graph, STEPS, 1);
  for (int t = 0; t < STEPS; t++) dv_record_moments(b.graph, &m, t);
  project(&b, m.mean);
  project(&b, m.dropped);
  for (int i = 0; i < b.n_inputs; i++) project(&b, b.inputs[i]);
  bench_run(&b);
  gradient_check check = {&b.parameters, b.gradient, bench_objective, &b, 2e-6}; /* below some_nu */
  for (size_t i = 0; i < 2; i++) {
    double error = error_of_entries(&check, &b.parameters.list[i]);
    if (!(error <= TOLERANCE)) fail_msg("%s: the gradient of input %zu is off by %.3g", what, i, error);
  }
  dv_run_forward(&b.run);
  expect_moments(&b, &m);
  bench_end(&b);
}

static void moments(void **state) {
  (void)state;
  for (int a = DVBF_LINEAR; a <= DVBF_SIGMOID; a++) {
    check_moments(a, 0);
    check_moments(a, 0.3);
  }
}

static void square(void **state) {
  (void)state;
  for (int shared = 0; shared < 2; shared++) {
    bench b;
    bench_begin(&b, 3);
    dvbf_value x = shared ? random_parameter(&b, 4, 5, true) : input(&b, 2, 4);
    dvbf_value out = shared ? dvbf_slab_shared(b.graph, 1, 20) : dvbf_slab(b.graph, 2, 4);
    dv_record_square(b.graph, out, x, 0.7);
    project(&b, out);
    assert_gradients(&b, "square");
    dv_run_forward(&b.run);
    for (int i = 0; i < (shared ? 20 : 24); i++)
      assert_true(fabs(dvbf_at(&b.run, out)[i] - 0.7 * pow(dvbf_at(&b.run, x)[i], 2)) < 1e-14);
    bench_end(&b);
  }
}

static void moments_head(void **state) {
  (void)state;
  enum { STEPS = 2, ROWS = 3, N = 2 };
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value mean = input(&b, STEPS, N), variance = input(&b, STEPS, N);
  for (int i = 0; i < STEPS * ROWS * N; i++) last_values(&b)[i] = 0.2 + fabs(last_values(&b)[i]);
  dvbf_value head = dvbf_slab(b.graph, STEPS, 2 * N);
  dv_record_moments_head(b.graph, head, mean, variance);
  project(&b, head);
  assert_gradients(&b, "head of moments");
  dv_run_forward(&b.run);
  for (int i = 0; i < STEPS * ROWS * N; i++) {
    const dvbf_real *at = dvbf_at(&b.run, head) + i / N * 2 * N + i % N;
    assert_true(at[0] == dvbf_at(&b.run, mean)[i]);
    assert_true(fabs(exp(2 * at[N]) - dvbf_at(&b.run, variance)[i]) < 2 * DV_VARIANCE_FLOOR);
  }
  bench_end(&b);
}

/* ---- Universal parameters ---- */

static void check_universal(int steps) {
  enum { N = 7 };
  static const double weights[] = {1, 1, 0};
  bench b;
  bench_begin(&b, 3);
  dvbf_universal u = {.v = dvbf_slab_shared(b.graph, steps, N), .weight = constant(&b, 1, 1, weights)};
  u.noise = constant_into(&b, dvbf_slab_shared(b.graph, steps, N), NULL);
  u.mean = random_parameter(&b, 1, N, true);
  u.log_sigma = random_parameter(&b, 1, N, true);
  u.prior = random_parameter(&b, 1, 2, true);
  dvbf_universal_sample(b.graph, &u);
  project(&b, u.v);
  dv_conditions_set(&b.conditions, DVBF_TEMPERATURE, 0.37); /* of no effect here */
  assert_gradients(&b, "universal");
  dv_run_forward(&b.run);
  const dvbf_real *mean = dvbf_at(&b.run, u.mean), *ls = dvbf_at(&b.run, u.log_sigma);
  const dvbf_real *prior = dvbf_at(&b.run, u.prior);
  double kl = 0;
  for (int k = 0; k < N; k++) kl += annealed(mean[k], exp(ls[k]), prior[0], exp(prior[1]), 1);
  assert_true(fabs(b.run.terms[KL_V] - kl * 2 / dv_conditions_get(&b.conditions, DVBF_SEQUENCES)) <
              1e-9); /* 2 sequences of 11 */
  for (int i = 0; i < steps * N; i++)
    assert_true(fabs(dvbf_at(&b.run, u.v)[i] - mean[i % N] - exp(ls[i % N]) * dvbf_at(&b.run, u.noise)[i]) <
                1e-14);
  bench_end(&b);
}

static void universal(void **state) {
  (void)state;
  check_universal(1);
  check_universal(4);
}

/* ---- Likelihoods ---- */

enum { SCALAR, DIMENSION, STATE, FIXED };

/* That of the rows or, in part, one entry for each of n values: rows that are seen whole, not at all, and in
 * part. */
static void fill_mask(double *mask, const double *rows_mask, bool part, int rows, int n) {
  for (int r = 0; r < rows; r++)
    for (int i = 0; part && i < n; i++) mask[r * n + i] = r % 3 == 0 || (r % 3 == 2 && i % 2);
  if (!part) memcpy(mask, rows_mask, (size_t)rows * sizeof *mask);
}

static void check_gaussian(int kind, double floor, bool part) {
  enum { ROWS = 3, STEPS = 2, N = 5 };
  static const double rows_mask[STEPS * ROWS] = {1, 0, 1, 1, 1, 0};
  double mask[STEPS * ROWS * N];
  fill_mask(mask, rows_mask, part, STEPS * ROWS, N);
  char what[96];
  snprintf(what, sizeof what, "gaussian, sigma of kind %d, floor %g, part %d", kind, floor, part);
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value x = constant(&b, STEPS, N, NULL), mean = input(&b, STEPS, N),
             m = constant(&b, STEPS, part ? N : 1, mask);
  static const double fixed = -0.3;
  dvbf_value ls = kind == STATE ? input(&b, STEPS, N)
                  : kind == FIXED
                      ? dvbf_parameter(b.graph, "fixed", 1, 1, (dvbf_first){.mean = fixed, .frozen = true})
                      : random_parameter(&b, 1, kind == SCALAR ? 1 : N, true);
  dvbf_value out = dvbf_slab(b.graph, STEPS, 1);
  for (size_t i = 0; i < size_of(&b.parameters.list[b.parameters.count - 1]); i++)
    assert_true(fabs(last_values(&b)[i] - floor) > 0.005); /* the kink */
  dv_conditions_set(&b.conditions, DVBF_LOG_SIGMA_FLOOR, floor);
  dvbf_gaussian(b.graph, out, x, mean, ls, m);
  project(&b, out);
  assert_gradients(&b, what);
  dv_run_forward(&b.run);
  const dvbf_real *at = dvbf_at(&b.run, x), *mu = dvbf_at(&b.run, mean), *s = dvbf_at(&b.run, ls);
  for (int r = 0; r < STEPS * ROWS; r++) {
    double sum = 0;
    for (int i = 0; i < N; i++) {
      double raw = s[kind == STATE ? r * N + i : kind == DIMENSION ? i : 0];
      if (mask[part ? r * N + i : r] > 0)
        sum += log_normal(at[r * N + i], mu[r * N + i], exp(fmax(raw, floor)));
    }
    assert_true(fabs(dvbf_at(&b.run, out)[r] - sum) < 1e-12);
  }
  bench_end(&b);
}

/* The floor is below all entries, in their midst, and above all. */
static void gaussians(void **state) {
  (void)state;
  static const double floors[] = {-20, 0.05, 3};
  for (int f = 0; f < 3; f++)
    for (int kind = SCALAR; kind <= FIXED; kind++)
      for (int part = 0; part < 2; part++) check_gaussian(kind, floors[f], part);
}

static void check_bernoulli(bool part) {
  enum { ROWS = 3, STEPS = 2, N = 5 };
  static const double rows_mask[STEPS * ROWS] = {1, 1, 0, 1, 1, 1};
  double mask[STEPS * ROWS * N];
  fill_mask(mask, rows_mask, part, STEPS * ROWS, N);
  double pixels[STEPS * ROWS * N];
  for (int i = 0; i < STEPS * ROWS * N; i++) pixels[i] = i % 4 / 3.0;
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value x = constant(&b, STEPS, N, pixels), logits = input(&b, STEPS, N),
             m = constant(&b, STEPS, part ? N : 1, mask);
  dvbf_value out = dvbf_slab(b.graph, STEPS, 1);
  dv_record_bernoulli(b.graph, out, x, logits, m);
  project(&b, out);
  assert_gradients(&b, part ? "bernoulli in part" : "bernoulli");
  dv_run_forward(&b.run);
  for (int r = 0; r < STEPS * ROWS; r++) {
    double sum = 0;
    for (int i = r * N; i < (r + 1) * N; i++) {
      double p = 1 / (1 + exp(-dvbf_at(&b.run, logits)[i]));
      if (mask[part ? i : r] > 0) sum += pixels[i] * log(p) + (1 - pixels[i]) * log(1 - p);
    }
    assert_true(fabs(dvbf_at(&b.run, out)[r] - sum) < 1e-12);
  }
  bench_end(&b);
}

static void bernoulli(void **state) {
  (void)state;
  check_bernoulli(false);
  check_bernoulli(true);
}

/* Of 3 frames the first `first` are free, and those whose `use` is negative. */
static void check_free_sigma(int own_kind, bool one_free, int first) {
  enum { FRAMES = 3, ROWS = 4, N = 2 };
  static const double use[(FRAMES - 1) * ROWS] = {1, -1, 0, 1, -1, 1, -1, 0};
  bench b;
  bench_begin(&b, ROWS);
  dv_free_sigma s = {.out = dvbf_slab(b.graph, FRAMES, N), .first = first};
  s.own = own_kind == 2 ? input(&b, FRAMES, N) : input_shared(&b, 1, own_kind ? N : 1);
  s.free = input_shared(&b, 1, one_free ? 1 : N);
  s.use = constant(&b, FRAMES - 1, 1, use);
  dv_record_free_sigma(b.graph, &s);
  project(&b, s.out);
  assert_gradients(&b, "sigma of free frames");
  dv_run_forward(&b.run);
  for (int i = 0; i < FRAMES * ROWS * N; i++) {
    int row = i / N, column = i % N;
    bool free = row < first * ROWS || (row >= ROWS && use[row - ROWS] < 0);
    const dvbf_real *from = dvbf_at(&b.run, free ? s.free : s.own);
    int at = free ? (one_free ? 0 : column) : own_kind == 2 ? i : own_kind ? column : 0;
    assert_true(dvbf_at(&b.run, s.out)[i] == from[at]);
  }
  bench_end(&b);
}

static void free_sigma(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; kind++)
    for (int first = 0; first < 3; first++) check_free_sigma(kind, first == 1, first);
}

static double squash(double x) {
  return tanh(x);
}

/* Of one step; x is the same for all rows or each has its own. */
static void check_residual(bool shared, bool part, double (*mean)(double)) {
  enum { ROWS = 3, N = 4 };
  static const double rows_mask[ROWS] = {1, 0, 1};
  double mask[ROWS * N];
  fill_mask(mask, rows_mask, part, ROWS, N);
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value x = constant(&b, 1, N, NULL);
  if (shared) x.rows = 1;
  dvbf_value output = input(&b, 1, N), m = constant(&b, 1, part ? N : 1, mask);
  dvbf_value e = dvbf_slab(b.graph, 1, N);
  dv_record_residual(b.graph, e, x, output, m, mean, NULL);
  project(&b, e);
  assert_gradients(&b, "residual");
  dv_run_forward(&b.run);
  for (int i = 0; i < ROWS * N; i++) {
    double out = dvbf_at(&b.run, output)[i], from = dvbf_at(&b.run, x)[shared ? i % N : i];
    double wanted = mask[part ? i : i / N] > 0 ? from - (mean ? mean(out) : out) : 0;
    assert_true(fabs(dvbf_at(&b.run, e)[i] - wanted) < 1e-12);
  }
  bench_end(&b);
}

static void residual(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) check_residual(i & 1, i & 2, i & 4 ? squash : NULL);
}

/* ---- Small ops ---- */

static void add(void **state) {
  (void)state;
  bench b;
  bench_begin(&b, 3);
  dvbf_value x = input(&b, 2, 3), y = input(&b, 2, 3), c = constant(&b, 2, 3, NULL);
  dvbf_value sum = dvbf_slab(b.graph, 2, 3), shifted = dvbf_slab(b.graph, 2, 3);
  dvbf_add(b.graph, sum, x, y);
  dvbf_add(b.graph, shifted, sum, c); /* the constant has no gradient */
  project(&b, shifted);
  project(&b, sum);
  assert_gradients(&b, "add");
  dv_run_forward(&b.run);
  for (int i = 0; i < 18; i++)
    assert_true(dvbf_at(&b.run, shifted)[i] ==
                dvbf_at(&b.run, x)[i] + dvbf_at(&b.run, y)[i] + dvbf_at(&b.run, c)[i]);
  bench_end(&b);
}

/* z[t+1] = z[t] + o[t] inside one slab, and a value added to itself. */
static void add_within_a_slab(void **state) {
  (void)state;
  bench b;
  bench_begin(&b, 2);
  dvbf_value z = dvbf_slab(b.graph, 4, 3), o = input(&b, 3, 3), twice = dvbf_slab(b.graph, 4, 3);
  input_into(&b, dvbf_steps(z, 0, 1));
  for (int t = 0; t < 3; t++)
    dvbf_add(b.graph, dvbf_steps(z, t + 1, 1), dvbf_steps(z, t, 1), dvbf_steps(o, t, 1));
  dvbf_add(b.graph, twice, z, z);
  project(&b, twice);
  project(&b, z);
  assert_gradients(&b, "add within a slab");
  bench_end(&b);
}

static void side_by_side(void **state) {
  (void)state;
  enum { ROWS = 3, STEPS = 4, N = 2 };
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value x = input(&b, STEPS, N), out = dvbf_slab(b.graph, 1, STEPS * N);
  dvbf_side_by_side(b.graph, out, x);
  project(&b, out);
  assert_gradients(&b, "side by side");
  dv_run_forward(&b.run);
  for (int t = 0; t < STEPS; t++)
    for (int r = 0; r < ROWS; r++)
      for (int i = 0; i < N; i++)
        assert_true(dvbf_at(&b.run, out)[r * STEPS * N + t * N + i] ==
                    dvbf_at(&b.run, x)[(t * ROWS + r) * N + i]);
  bench_end(&b);
}

static void columns(void **state) {
  (void)state;
  enum { ROWS = 3, STEPS = 2, N = 5 };
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value parts[] = {input(&b, STEPS, 2), input(&b, STEPS, 1), input(&b, STEPS, 2)};
  dvbf_value all = dvbf_slab(b.graph, STEPS, N), some = dvbf_slab(b.graph, STEPS, 3);
  dv_record_join(b.graph, all, 3, parts);
  dv_record_columns(b.graph, some, all, 1);
  project(&b, all);
  project(&b, some);
  assert_gradients(&b, "columns");
  dv_run_forward(&b.run);
  for (int r = 0; r < STEPS * ROWS; r++) {
    const dvbf_real *at = dvbf_at(&b.run, all) + r * N;
    assert_true(at[1] == dvbf_at(&b.run, parts[0])[2 * r + 1] && at[2] == dvbf_at(&b.run, parts[1])[r]);
    assert_true(at[4] == dvbf_at(&b.run, parts[2])[2 * r + 1]);
    for (int i = 0; i < 3; i++) assert_true(dvbf_at(&b.run, some)[3 * r + i] == at[1 + i]);
  }
  bench_end(&b);
}

static void columns_refuse(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    bench b;
    bench_begin(&b, 2);
    dvbf_value parts[] = {input(&b, 1, 2), input(&b, 1, 1)}, out = dvbf_slab(b.graph, 1, 2);
    dvbf_error error = {0};
    if (kind)
      dv_record_columns(b.graph, out, parts[0], 1);
    else
      dv_record_join(b.graph, out, 2, parts);
    assert_int_equal(dv_graph_plan(b.graph, &error), DVBF_ARGUMENT);
    assert_non_null(strstr(error.message, "column"));
    bench_end(&b);
  }
}

static void gates(void **state) {
  (void)state;
  enum { ROWS = 3, N = 4 };
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value gates = input(&b, 1, 2 * N), h = input(&b, 1, N), c = input(&b, 1, N);
  dvbf_value reset = dvbf_slab(b.graph, 1, N), next = dvbf_slab(b.graph, 1, N);
  dv_record_reset(b.graph, reset, gates, h);
  dv_record_blend(b.graph, next, gates, h, c);
  project(&b, reset);
  project(&b, next);
  assert_gradients(&b, "gates");
  dv_run_forward(&b.run);
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < N; i++) {
      double k = dvbf_at(&b.run, gates)[r * 2 * N + N + i], was = dvbf_at(&b.run, h)[r * N + i];
      double by = dvbf_at(&b.run, gates)[r * 2 * N + i], to = dvbf_at(&b.run, c)[r * N + i];
      assert_true(fabs(dvbf_at(&b.run, reset)[r * N + i] - by * was) < 1e-12);
      assert_true(fabs(dvbf_at(&b.run, next)[r * N + i] - ((1 - k) * was + k * to)) < 1e-12);
    }
  bench_end(&b);
}

/* KL of two normal distributions of two dimensions, the first with a full covariance, by matrices. */
static double divergence_of(const double *m, double c[2][2], const double *to, const double *log_sigma) {
  double sum = -2 - log(c[0][0] * c[1][1] - c[0][1] * c[1][0]);
  for (int i = 0; i < 2; i++) {
    double square = exp(2 * log_sigma[i]);
    sum += (c[i][i] + (m[i] - to[i]) * (m[i] - to[i])) / square + 2 * log_sigma[i];
  }
  return sum / 2;
}

static void local_steps(void **state) {
  (void)state;
  enum { ROWS = 4, N = 2, U = 2 };
  static const double seen[ROWS] = {1, 1, 0, 1}, next_seen[ROWS] = {1, 1, 1, 0};
  bench b;
  bench_begin(&b, ROWS);
  dvbf_value z = input(&b, 1, N), u = input(&b, 1, U), parts = input(&b, 1, (3 + U) * N);
  dvbf_value next = dvbf_slab(b.graph, 1, N), kl = dvbf_slab(b.graph, 1, 1);
  dvbf_value q = input(&b, 1, 2 * N), to = input(&b, 1, 2 * N), chosen = dvbf_slab(b.graph, 1, N);
  dvbf_value use = constant(&b, 1, 1, seen), next_use = constant(&b, 1, 1, next_seen);
  dv_record_local(b.graph, next, z, u, parts);
  dv_record_choose(b.graph, chosen, z, next, next_use);
  dv_record_divergence(b.graph, &(dv_divergence){kl, parts, u, q, to, use, next_use, -8, 3});
  project(&b, next);
  project(&b, chosen);
  project(&b, kl);
  assert_gradients(&b, "locally linear steps");
  dv_run_forward(&b.run);
  for (int r = 0; r < ROWS; r++) {
    const dvbf_real *w = dvbf_at(&b.run, parts) + r * (3 + U) * N, *head = dvbf_at(&b.run, q) + r * 2 * N;
    const dvbf_real *by = dvbf_at(&b.run, u) + r * U, *at = dvbf_at(&b.run, z) + r * N;
    double a[2][2], c[2][2] = {{0}}, m[2], moved[2];
    for (int i = 0; i < N; i++) {
      double shift = w[2 * N + i] + w[3 * N + i * U] * by[0] + w[3 * N + i * U + 1] * by[1];
      for (int k = 0; k < N; k++) a[i][k] = (i == k) + w[i] * w[N + k];
      m[i] = a[i][0] * head[0] + a[i][1] * head[1] + shift;
      moved[i] = a[i][0] * at[0] + a[i][1] * at[1] + shift;
      assert_true(fabs(dvbf_at(&b.run, next)[r * N + i] - moved[i]) < 1e-12);
      assert_true(fabs(dvbf_at(&b.run, chosen)[r * N + i] - (next_seen[r] > 0 ? at[i] : moved[i])) < 1e-12);
    }
    for (int i = 0; i < N; i++)
      for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++) c[i][k] += a[i][j] * exp(2 * head[N + j]) * a[k][j];
    const dvbf_real *after = dvbf_at(&b.run, to) + r * 2 * N;
    double expected = seen[r] > 0 && next_seen[r] > 0 ? divergence_of(m, c, after, after + N) : 0;
    assert_true(fabs(dvbf_at(&b.run, kl)[r] - expected) < 1e-9 * (1 + fabs(expected)));
  }
  bench_end(&b);
}

static void zero(void **state) {
  (void)state;
  bench b;
  bench_begin(&b, 2);
  dvbf_value x = dvbf_slab(b.graph, 3, 4);
  dvbf_zero(b.graph, dvbf_steps(x, 1, 1));
  input_into(&b, dvbf_steps(x, 0, 1));
  input_into(&b, dvbf_steps(x, 2, 1));
  project(&b, x);
  assert_gradients(&b, "zero");
  dv_run_forward(&b.run);
  for (int i = 0; i < 24; i++) assert_true((dvbf_at(&b.run, x)[i] == 0) == (i / 8 == 1));
  bench_end(&b);
}

/* The limit is in units of conditions.scale. Gradients are the numbers of the projection, so they are known.
 */
static int check_clip(double limit) {
  int clipped = 0;
  bench b;
  bench_begin(&b, 4);
  dvbf_value x = input(&b, 2, 5);
  dvbf_clip_gradient(b.graph, x, limit);
  project(&b, x);
  bench_run(&b);
  double top = limit * b.conditions.scale;
  for (uint32_t i = 0; i < 40; i++) {
    double whole = projection_entry(0, i), kept = fmax(-top, fmin(top, whole));
    clipped += kept != whole;
    assert_true(fabs(b.gradient[i] - kept) < 1e-12);
  }
  bench_end(&b);
  return clipped;
}

static void clip_gradient(void **state) {
  (void)state;
  assert_int_equal(check_clip(1e3), 0);
  assert_in_range(check_clip(1), 5, 35);
  assert_int_equal(check_clip(1e-6), 40);
}

/* Values inside and outside of the limits; the last column has none. */
static void saturate(void **state) {
  (void)state;
  static const double range[] = {0.1, -0.2, 0, 0.5, 0.3, 1.5}; /* centres, limits */
  bench b;
  bench_begin(&b, 5);
  dvbf_value x = input(&b, 4, 4);
  dvbf_value limits = dvbf_parameter(b.graph, "range", 2, 3, (dvbf_first){.frozen = true, .values = range});
  dvbf_value before = dvbf_slab(b.graph, 4, 4), none = dvbf_slab(b.graph, 4, 4);
  dvbf_zero(b.graph, none);
  dvbf_add(b.graph, before, x, none);
  dvbf_saturate(b.graph, x, limits);
  dvbf_saturate(b.graph, x, DVBF_NONE);
  project(&b, x);
  assert_gradients(&b, "saturate");
  dv_run_forward(&b.run);
  int bent = 0;
  for (int i = 0; i < 80; i++) {
    dvbf_real z = dvbf_at(&b.run, before)[i], y = dvbf_at(&b.run, x)[i];
    double c = i % 4 < 3 ? range[i % 4] : 0, limit = i % 4 < 3 ? range[3 + i % 4] : INFINITY;
    double far = fabs(z - c), expected = far <= limit ? far : limit + limit * tanh((far - limit) / limit);
    assert_true(far > limit ? fabs(fabs(y - c) - expected) < 1e-12 && (y > c) == (z > c) : y == z);
    bent += far > limit;
  }
  assert_in_range(bent, 15, 65);
  bench_end(&b);
}

static void saturated_values_are_bounded(void **state) {
  (void)state;
  static const double range[] = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2},
                      values[] = {INFINITY, -INFINITY, 1e300, 3.0000001, NAN};
  bench b;
  bench_begin(&b, 1);
  dvbf_value x = constant(&b, 1, 5, values);
  dvbf_saturate(b.graph, x,
                dvbf_parameter(b.graph, "range", 2, 5, (dvbf_first){.frozen = true, .values = range}));
  project(&b, x);
  bench_run(&b);
  dv_run_forward(&b.run);
  const dvbf_real *y = dvbf_at(&b.run, x);
  assert_true(y[0] == 5 && y[1] == -3 && y[2] == 5);
  assert_true(y[3] > 3 && y[3] < 3.0000001 + 1e-15);
  assert_true(isnan(y[4]));
  bench_end(&b);
}

/* ---- Contraction ---- */

/* Systems of 4 states behind which v goes on. */
enum { SYSTEMS = 3, STATES = 4, REST = 5, UNIVERSAL = SYSTEMS * STATES * STATES + REST };

typedef struct contraction {
  bench b;
  dvbf_value v, out;
} contraction;

/* Two draws of v; the entries of the last system of each are made so small that it is left alone. */
static void make_contraction(contraction *c, bool residual, double most) {
  dv_systems systems = {STATES, SYSTEMS, residual, most};
  bench_begin(&c->b, 2);
  c->v = input_shared(&c->b, 2, UNIVERSAL);
  for (int i = 0; i < 2 * UNIVERSAL; i++) {
    int entry = i % UNIVERSAL;
    bool small = entry < UNIVERSAL - REST && entry % SYSTEMS == SYSTEMS - 1;
    bool diagonal = entry / SYSTEMS % (STATES + 1) == 0;
    if (small) last_values(&c->b)[i] *= 0.05;
    if (small && residual && diagonal) last_values(&c->b)[i] -= 0.5;
  }
  c->out = dvbf_slab_shared(c->b.graph, 2, UNIVERSAL);
  dv_record_contract(c->b.graph, c->out, c->v, &systems);
  project(&c->b, c->out);
  dvbf_keep(c->b.graph, c->v);
  dvbf_keep(c->b.graph, c->out);
}

/* |S x| for the S of system i. */
static double stretched(const dvbf_real *v, int i, bool residual, const double x[STATES], double y[STATES]) {
  double squares = 0;
  for (int j = 0; j < STATES; j++) {
    y[j] = residual ? x[j] : 0;
    for (int k = 0; k < STATES; k++) y[j] += x[k] * (double)v[(k * STATES + j) * SYSTEMS + i];
    squares += y[j] * y[j];
  }
  return sqrt(squares);
}

/* The largest stretch of system i over many directions. */
static double longest(const dvbf_real *v, int i, bool residual) {
  dv_random random = dv_random_at(5, DV_STREAM_SIMULATION, 0, 0);
  double most = 0;
  for (int n = 0; n < 4000; n++) {
    double x[STATES], y[STATES], squares = 0;
    for (int k = 0; k < STATES; k++) x[k] = dv_random_normal(&random), squares += x[k] * x[k];
    most = fmax(most, stretched(v, i, residual, x, y) / sqrt(squares));
  }
  return most;
}

static void contract(void **state) {
  (void)state;
  for (int residual = 0; residual < 2; residual++) {
    contraction c;
    make_contraction(&c, residual, 0.9);
    assert_gradients(&c.b, residual ? "contract, residual" : "contract");
    dv_run_forward(&c.b.run);
    for (int t = 0; t < 2; t++) {
      const dvbf_real *v = dvbf_at(&c.b.run, dvbf_steps(c.v, t, 1));
      const dvbf_real *to = dvbf_at(&c.b.run, dvbf_steps(c.out, t, 1));
      for (int i = 0; i < SYSTEMS; i++) {
        bool cut = i < SYSTEMS - 1;
        double before = longest(v, i, residual), after = longest(to, i, residual);
        assert_true(cut ? before > 1 && after < 0.9 + 1e-12 && after > 0.85 : before < 0.9);
      }
      for (int k = 0; k < UNIVERSAL; k++)
        if (k >= UNIVERSAL - REST || k % SYSTEMS == SYSTEMS - 1) assert_true(to[k] == v[k]);
    }
    bench_end(&c.b);
  }
}

/* The result is the nearest of all matrices within the limit: from it, every other one lies on the far side
 * of a right angle (v - v')(w - v') <= 0. Contracting it once more changes nothing. */
static void contraction_is_nearest(void **state) {
  (void)state;
  contraction c;
  dv_systems systems = {STATES, SYSTEMS, true, 0.9};
  dv_random random = dv_random_at(6, DV_STREAM_SIMULATION, 0, 0);
  make_contraction(&c, true, 0.9);
  bench_run(&c.b);
  dv_run_forward(&c.b.run);
  const dvbf_real *v = dvbf_at(&c.b.run, c.v), *to = dvbf_at(&c.b.run, c.out);
  double *room = calloc(dv_contract_room(STATES), sizeof *room);
  assert_non_null(room);
  for (int n = 0; n < 200; n++) {
    dvbf_real other[UNIVERSAL];
    for (int k = 0; k < UNIVERSAL; k++) other[k] = to[k] + 0.3 * dv_random_normal(&random);
    for (int i = 0; i < SYSTEMS; i++) {
      double product = 0;
      dv_contract_system(&systems, i, other, other, room);
      for (int k = i; k < UNIVERSAL - REST; k += SYSTEMS) product += (v[k] - to[k]) * (other[k] - to[k]);
      assert_true(product < 1e-12);
    }
  }
  for (int i = 0; i < SYSTEMS; i++) {
    dvbf_real again[UNIVERSAL];
    memcpy(again, to, sizeof again);
    dv_contract_system(&systems, i, again, again, room);
    for (int k = 0; k < UNIVERSAL; k++) assert_true(fabs(again[k] - to[k]) < 1e-14);
  }
  free(room);
  bench_end(&c.b);
}

static void systems_that_do_not_fit_are_refused(void **state) {
  (void)state;
  bench b;
  dvbf_error error;
  bench_begin(&b, 1);
  dvbf_value v = input_shared(&b, 1, 17), out = dvbf_slab_shared(b.graph, 1, 17);
  dv_record_contract(b.graph, out, v, &(dv_systems){3, 2, true, 1});
  assert_int_not_equal(dv_graph_plan(b.graph, &error), DVBF_OK);
  assert_non_null(strstr(error.message, "2 systems of 3 states do not fit into 17 universal parameters"));
  bench_end(&b);
}

static double term_objective(bench *b) {
  const double *t = b->run.terms;
  return b->conditions.scale *
         (-dv_conditions_get(&b->conditions, DVBF_TEMPERATURE) * t[RECONSTRUCTION] + t[KL_W] + t[KL_V]);
}

/* Reconstruction counts against the objective and is annealed here; the KL is annealed by its own op. Nothing
 * is projected, as the terms are the objective. */
static void terms(void **state) {
  (void)state;
  static const double weights[] = {1, 0, 1, 0.5};
  bench b;
  bench_begin(&b, 4);
  dvbf_value rec = input(&b, 3, 1), kl = input(&b, 3, 1), first = input(&b, 1, 1);
  dvbf_value weight = constant(&b, 1, 1, weights);
  dvbf_sum(b.graph, RECONSTRUCTION, rec, weight, dvbf_scalar(b.graph, DVBF_TEMPERATURE, 1));
  dvbf_sum(b.graph, KL_W, first, weight, -1);
  dvbf_sum(b.graph, KL_W, kl, weight, -1);
  b.n_inputs = 0;
  dv_conditions_set(&b.conditions, DVBF_TEMPERATURE, 0.37);
  b.objective = term_objective;
  assert_gradients(&b, "terms");
  dv_run_forward(&b.run);
  double sums[2] = {0};
  for (int i = 0; i < 12; i++) {
    sums[0] += weights[i % 4] * dvbf_at(&b.run, rec)[i];
    sums[1] += weights[i % 4] * (dvbf_at(&b.run, kl)[i] + (i < 4 ? dvbf_at(&b.run, first)[i] : 0));
  }
  assert_true(fabs(sums[0] - b.run.terms[RECONSTRUCTION]) < 1e-12);
  assert_true(fabs(sums[1] - b.run.terms[KL_W]) < 1e-12);
  bench_end(&b);
}

/* ---- The check that an op lists what it touches ---- */

static void stray_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_at(run, op->out[0])[0] = dvbf_at(run, *(const dvbf_value *)op->data)[0];
}

static const dvbf_op_class stray_class = {"stray", stray_forward, NULL, NULL};

/* Runs a program in a process of its own; returns the signal that ended it, 0: none. */
static int signal_of(bool listed) {
  bench b;
  bench_begin(&b, 1);
  dvbf_value from = input(&b, 1, 2), to = dvbf_slab(b.graph, 1, 2);
  dvbf_record(b.graph, &stray_class, listed, &from, 1, &to, &from, sizeof from);
  int status = 0;
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    bench_run(&b);
    _exit(0);
  }
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  dv_graph_free(b.graph);
  dv_parameters_free(&b.parameters);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void an_op_touches_what_it_lists(void **state) {
  (void)state;
  assert_int_equal(signal_of(true), 0);
  assert_int_equal(signal_of(false), SIGABRT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_backward_is_caught),
      cmocka_unit_test(layer_activations),
      cmocka_unit_test(layer_widths),
      cmocka_unit_test(layer_inputs),
      cmocka_unit_test(layer_turned),
      cmocka_unit_test(layer_weights_in_slabs),
      cmocka_unit_test(layer_recurrence),
      cmocka_unit_test(layer_constant_inputs),
      cmocka_unit_test(mixtures),
      cmocka_unit_test(mixture_chain),
      cmocka_unit_test(mixture_constant_state),
      cmocka_unit_test(innovations),
      cmocka_unit_test(states),
      cmocka_unit_test(innovation_from_prior),
      cmocka_unit_test(moments),
      cmocka_unit_test(square),
      cmocka_unit_test(moments_head),
      cmocka_unit_test(universal),
      cmocka_unit_test(gaussians),
      cmocka_unit_test(bernoulli),
      cmocka_unit_test(residual),
      cmocka_unit_test(free_sigma),
      cmocka_unit_test(add),
      cmocka_unit_test(add_within_a_slab),
      cmocka_unit_test(side_by_side),
      cmocka_unit_test(zero),
      cmocka_unit_test(columns),
      cmocka_unit_test(columns_refuse),
      cmocka_unit_test(gates),
      cmocka_unit_test(local_steps),
      cmocka_unit_test(clip_gradient),
      cmocka_unit_test(saturate),
      cmocka_unit_test(saturated_values_are_bounded),
      cmocka_unit_test(contract),
      cmocka_unit_test(contraction_is_nearest),
      cmocka_unit_test(systems_that_do_not_fit_are_refused),
      cmocka_unit_test(an_op_touches_what_it_lists),
      cmocka_unit_test(terms),
  };
  int failed = cmocka_run_group_tests_name("gradients of ops", tests, NULL, NULL);
  dv_portable = true;
  return failed + cmocka_run_group_tests_name("gradients of ops, portable", tests, NULL, NULL);
}
