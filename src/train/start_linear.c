/* First values of a model from the identified linear system (dv_start_linear), so that training begins with
 * its Kalman filter. Hidden units have no output at first. It suits small steps (0.0005 to 0.002). */

/* The identified system is in innovation form, in which z is known exactly from the past:
 *
 *   z'_{t+1} = A z'_t + B u_t + b + K e_t        x_t = H z'_t + D u_t + c + e_t
 *
 * The state of the model has seen x_t too: z_t = z'_t + L e_t with A L = K, so that A z_t + B u_t + b =
 * z'_{t+1}. In units of its deviation it is S z = z_t, and the model has
 *
 *   A_i = S^-1 A S    B_i = S^-1 B    C_i w = S^-1 L e    x = H S z + D u + c
 *
 * in all its systems: with the weights alpha, which are random, each gets a gradient of its own. w = G e has
 * unit variance, from the singular values of S^-1 L R^(1/2). */
#include "train/start.h"

#include "base/error.h"
#include "base/memory.h"
#include "identify/linear_fit.h"
#include "math/algebra.h"
#include "math/least_squares.h"
#include "math/portable.h"
#include "model/density.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct start {
  dvbf_model *m;
  dv_recordings r; /* in units of the model */
  dv_state_space s;
  double *gain;      /* [n_z][n_x] L, then S^-1 L */
  double *deviation; /* [n_z] */
  double *z;         /* [frames][n_z], in units of their deviation */
} start;

/* ---- Conditions ---- */

static dvbf_status refuse_start(const char *why, dvbf_error *error) {
  return dv_fail(error, DVBF_ARGUMENT, "start = linear: %s; or set start = random", why);
}

static dvbf_status check_linear_start(const dvbf_model *m, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  if (!m->type->takes_transition || m->transition != dv_transition_of(s) ||
      s->transition == DV_MLP_TRANSITION)
    return refuse_start("it needs a transition of linear systems, transition = locally-linear or linear",
                        error);
  if (!m->density->sigma || !m->density->scales(s))
    return refuse_start("it needs likelihood = gaussian or student-t around a mean that is linear", error);
  if (!s->linear_paths || s->recognition_input != DV_INPUT_INNOVATION || !s->affine)
    return refuse_start("it needs linear-paths = on, recognition-input = innovation and affine = on", error);
  if (s->initial != DV_INITIAL_MLP) return refuse_start("it needs initial = mlp", error);
  return DVBF_OK;
}

/* ---- The filter ---- */

/* L, from K = S R^-1 and A L = K by least squares; directions that A shrinks to almost nothing are left
 * out. */
static dvbf_status find_gain(start *p, dvbf_error *error) {
  int n = p->s.n_z, n_x = p->s.n_x;
  size_t z = (size_t)n, x = (size_t)n_x;
  double *r = dv_calloc(x * x + z * x + 2 * z * z, sizeof *r), trace = 0;
  if (!r) return dv_fail_memory(error, "starting from a linear model");
  double *k = r + x * x, *square = k + z * x, *transposed = square + z * z;
  dv_transpose(transposed, p->s.a, n, n);
  memcpy(r, p->s.r, x * x * sizeof *r);
  dv_transpose(k, p->s.s, n, n_x);
  bool regular = dv_solve_definite(r, n_x, k, n);                 /* K' [n_x][n] */
  dv_product_transposed(square, transposed, transposed, n, n, n); /* A'A */
  for (int i = 0; i < n; i++) trace += square[i * (n + 1)];
  for (int i = 0; i < n; i++) square[i * (n + 1)] += 1e-12 * trace + 1e-30;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n_x; j++) p->gain[i * n_x + j] = dv_dot(transposed + i * n, k + j * n, z);
  regular = regular && dv_solve_definite(square, n, p->gain, n_x);
  if (!regular) memset(p->gain, 0, z * x * sizeof *p->gain);
  dv_free(r);
  return DVBF_OK;
}

/* z of all frames of a sequence. Missing values have no innovation. */
static void filter(start *p, const dv_piece *piece, double *predicted /* [n_z] */, double *x /* [n_x] */) {
  const dv_state_space *s = &p->s;
  memcpy(predicted, s->mean, (size_t)s->n_z * sizeof *predicted);
  for (size_t t = piece->first; t < piece->first + piece->steps; t++) {
    const double *u = p->r.u + t * (size_t)s->n_u, *seen = p->r.x + t * (size_t)s->n_x;
    double *z = p->z + t * (size_t)s->n_z;
    dv_system_emit(s, predicted, u, x);
    for (int i = 0; i < s->n_x; i++) x[i] = isnan(seen[i]) ? 0 : seen[i] - x[i];
    for (int i = 0; i < s->n_z; i++)
      z[i] = predicted[i] + dv_dot(p->gain + (size_t)i * (size_t)s->n_x, x, (size_t)s->n_x);
    dv_system_move(s, z, u, predicted);
  }
}

/* z in units of its deviation, and the gain too. */
static void scale(start *p) {
  size_t n = (size_t)p->s.n_z;
  for (size_t i = 0; i < n; i++) {
    double sum = 0, squares = 0, frames = (double)p->r.frames;
    for (size_t t = 0; t < p->r.frames; t++)
      sum += p->z[t * n + i], squares += p->z[t * n + i] * p->z[t * n + i];
    double variance = squares / frames - sum / frames * sum / frames;
    p->deviation[i] = variance > 1e-20 ? sqrt(variance) : 1;
    for (size_t t = 0; t < p->r.frames; t++) p->z[t * n + i] /= p->deviation[i];
    for (int j = 0; j < p->s.n_x; j++) p->gain[i * (size_t)p->s.n_x + (size_t)j] /= p->deviation[i];
  }
}

static dvbf_status find_states(start *p, dvbf_error *error) {
  size_t n = (size_t)p->s.n_z, n_x = (size_t)p->s.n_x, size = 0;
  p->gain = dv_calloc(n * n_x, sizeof *p->gain);
  p->deviation = dv_calloc(n, sizeof *p->deviation);
  if (dv_multiply(p->r.frames, n, &size)) p->z = dv_calloc(size + n + n_x, sizeof *p->z);
  if (!p->gain || !p->deviation || !p->z) return dv_fail_memory(error, "starting from a linear model");
  dvbf_status status = find_gain(p, error);
  for (size_t i = 0; i < p->r.count && !status; i++) filter(p, &p->r.whole[i], p->z + size, p->z + size + n);
  if (!status) scale(p);
  return status;
}

/* ---- Parameters ---- */

/* An entry of the systems that is the same in all: input `row`, output j. */
static void set_systems(const start *p, int row, int j, double value) {
  const dvbf_model *m = p->m;
  int systems = dv_model_find(m, "universal.mean")->cols / ((m->n_z + m->n_u + 1 + m->n_w) * m->n_z);
  dvbf_real *v =
      dv_model_values(m, "universal.mean") + ((size_t)row * (size_t)m->n_z + (size_t)j) * (size_t)systems;
  double identity = m->settings->residual && row == j ? 1 : 0;
  for (int i = 0; i < systems; i++) v[i] = (dvbf_real)(value - identity);
}

/* Dimensions that the linear system does not need are driven by the others at random, decay, and have no
 * effect on x yet. */
static void set_transition(const start *p) {
  const dvbf_model *m = p->m;
  const dv_state_space *s = &p->s;
  int n = s->n_z;
  for (int j = 0; j < m->n_z; j++)
    for (int row = 0; row < m->n_z + m->n_u + 1; row++) {
      int u = row - m->n_z;
      double to = j < n ? p->deviation[j] : 1, value = 0;
      if (j >= n && (u < 0 ? row != j : u < m->n_u)) continue;
      if (j >= n) value = row == j ? 0.9 : 0;
      if (j < n && row < n) value = s->a[j * n + row] * p->deviation[row] / to;
      if (j < n && u >= 0) value = (u < m->n_u ? s->b[j * m->n_u + u] : s->shift_z[j]) / to;
      set_systems(p, row, j, value);
    }
  /* So small that drawn systems are close to the one that was found. */
  const dv_parameter *sigma = dv_model_find(m, "universal.log_sigma");
  for (int i = 0; sigma && i < sigma->rows * sigma->cols; i++)
    m->parameters.values[sigma->offset + (size_t)i] = (dvbf_real)-6.5;
}

/* C = U Sigma and G' = Sigma^-1 U' S^-1 L, where M M' = U Sigma^2 U' and M = S^-1 L R^(1/2). */
static void put_gain(const start *p, double *square, const double *vectors) {
  const dvbf_model *m = p->m;
  int n = p->s.n_z, n_x = p->s.n_x, cols = dv_model_find(m, "recognition.output.e")->cols;
  int first_w = m->n_z + m->n_u + 1;
  dvbf_real *g = dv_model_values(m, "recognition.output.e"),
            *bias = dv_model_values(m, "recognition.output.bias");
  for (int k = 0; k < m->n_w && k < n; k++) {
    double value;
    const double *vector = vectors + dv_take_largest(square, n, &value) * n;
    if (!(value > 1e-16)) break;
    for (int j = 0; j < n; j++) set_systems(p, first_w + k, j, vector[j] * sqrt(value));
    for (int i = 0; i < n_x; i++)
      for (int j = 0; j < n; j++)
        g[i * cols + k] += (dvbf_real)(vector[j] * p->gain[j * n_x + i] / sqrt(value));
    bias[m->n_w + k] = (dvbf_real)dv_log(0.3);
  }
}

static dvbf_status set_gain(const start *p, dvbf_error *error) {
  const dvbf_model *m = p->m;
  size_t n = (size_t)p->s.n_z, n_x = (size_t)p->s.n_x;
  double *half = dv_calloc(n * n_x + 2 * n * n, sizeof *half);
  if (!half) return dv_fail_memory(error, "starting from a linear model");
  double *square = half + n * n_x;
  dv_state_clear(m, "recognition.output.e");
  dv_state_clear(m, "recognition.output.h");
  dv_state_clear(m, "recognition.output.bias");
  for (int k = 0; k < m->n_w; k++)
    for (int j = 0; j < m->n_z; j++) set_systems(p, m->n_z + m->n_u + 1 + k, j, 0);
  dv_product(half, p->gain, p->s.r, (int)n, (int)n_x, (int)n_x);
  dv_product_transposed(square, half, p->gain, (int)n, (int)n_x, (int)n);
  dv_diagonalise(square, square + n * n, (int)n);
  put_gain(p, square, square + n * n);
  dv_free(half);
  return DVBF_OK;
}

/* Sigma is that of the innovations. */
static void set_emission(const start *p) {
  const dvbf_model *m = p->m;
  const dv_state_space *s = &p->s;
  int n = s->n_z;
  double mean = 0;
  dvbf_real *h = dv_model_values(m, "emission.mean.z"), *d = dv_model_values(m, "emission.mean.u"),
            *c = dv_model_values(m, "emission.mean.bias");
  dv_state_clear(m, "emission.mean.h");
  for (int i = 0; i < s->n_x; i++) {
    c[i] = (dvbf_real)s->shift_x[i];
    for (int j = 0; j < m->n_z; j++)
      h[j * s->n_x + i] = j < n ? (dvbf_real)(s->h[i * n + j] * p->deviation[j]) : 0;
    for (int j = 0; d && j < s->n_u; j++) d[j * s->n_x + i] = (dvbf_real)s->d[i * s->n_u + j];
    mean += s->r[i * (s->n_x + 1)] / s->n_x;
  }
  const dv_parameter *sigma = dv_model_find(m, "emission.log_sigma");
  if (!sigma) sigma = dv_model_find(m, "emission.log_sigma.bias");
  int cols = sigma && m->settings->sigma != DV_SIGMA_FIXED ? sigma->cols : 0;
  dv_state_clear(m, "emission.log_sigma.h");
  for (int i = 0; i < cols; i++)
    m->parameters.values[sigma->offset + (size_t)i] =
        (dvbf_real)(0.5 * dv_log(fmax(cols > 1 ? s->r[i * (s->n_x + 1)] : mean, 1e-12)));
}

/* ---- The initial network: ridge regression of z on the frames that follow, and z_1 = w_1 ---- */

typedef struct initial_regression {
  int frames, n_x, n_u; /* of each frame */
  dv_ridge ridge;       /* 1 + frames (n_x + n_u) inputs, n_z targets */
} initial_regression;

/* (1, x_t, x_{t+1}, ..., u_t, u_{t+1}, ...), missing values are 0, as in programs. */
static void gather(const initial_regression *g, const start *p, size_t t) {
  size_t n_x = (size_t)g->n_x, n_u = (size_t)g->n_u, frames = (size_t)g->frames;
  double *to = g->ridge.row + 1;
  for (size_t i = 0; i < frames * n_x; i++) *to++ = isnan(p->r.x[t * n_x + i]) ? 0 : p->r.x[t * n_x + i];
  for (size_t i = 0; i < frames * n_u; i++) *to++ = p->r.u[t * (size_t)p->s.n_u + i];
}

static void add_rows(initial_regression *g, const start *p, const dv_piece *piece, size_t every) {
  size_t n = (size_t)p->s.n_z;
  size_t warm = piece->steps / 4 < 20 ? piece->steps / 4 : 20; /* until the filter has found the state */
  for (size_t t = warm; t + (size_t)g->frames <= piece->steps; t += every) {
    gather(g, p, piece->first + t);
    memcpy(g->ridge.target, p->z + (piece->first + t) * n, n * sizeof *p->z);
    dv_ridge_add(&g->ridge);
  }
}

/* The remaining error of z, as ln sigma of q(w_1). */
static void set_uncertainty(const start *p, initial_regression *g, dvbf_real *bias) {
  size_t n = (size_t)p->s.n_z;
  for (size_t k = 0; k < n; k++) {
    double squares = 0, rows = 0;
    for (size_t i = 0; i < p->r.count; i++)
      for (size_t t = 0; t + (size_t)g->frames <= p->r.whole[i].steps; t += 1 + p->r.whole[i].steps / 50) {
        gather(g, p, p->r.whole[i].first + t);
        double apart = dv_ridge_guess(&g->ridge, k) - p->z[(p->r.whole[i].first + t) * n + k];
        squares += apart * apart, rows += 1;
      }
    double left = rows > 0 ? sqrt(squares / rows) : 1;
    bias[p->m->n_z + (int)k] = (dvbf_real)dv_log(fmin(1, fmax(left, 1e-3)));
  }
}

static void put_initial(const start *p, initial_regression *g) {
  int n = p->s.n_z, cols = dv_model_find(p->m, "initial.output.x")->cols, size = (int)g->ridge.inputs;
  dvbf_real *x = dv_model_values(p->m, "initial.output.x"), *u = dv_model_values(p->m, "initial.output.u"),
            *bias = dv_model_values(p->m, "initial.output.bias");
  for (int i = 0; i < size; i++)
    for (int k = 0; k < n; k++) {
      dvbf_real value = (dvbf_real)g->ridge.coefficients[i * n + k];
      int at = i - 1, in_x = g->frames * g->n_x;
      if (!i) bias[k] = value;
      if (i && at < in_x) x[at * cols + k] = value;
      if (i && at >= in_x && u) u[(at - in_x) * cols + k] = value;
    }
  set_uncertainty(p, g, bias);
}

static dvbf_status set_initial(const start *p, dvbf_error *error) {
  enum { MOST_INPUTS = 600, REGRESSED_ROWS = 20000 };
  const dvbf_model *m = p->m;
  initial_regression g = {.frames = (int)m->settings->initial_frames, .n_x = m->n_x};
  g.n_u = dv_model_values(m, "initial.output.u") ? m->n_u : 0;
  while (g.frames > 1 && g.frames * (g.n_x + g.n_u) > MOST_INPUTS) g.frames--;
  dv_state_plain_start(m, 1);
  dvbf_status status =
      dv_ridge_init(&g.ridge, 1 + (size_t)(g.frames * (g.n_x + g.n_u)), (size_t)p->s.n_z, error);
  for (size_t i = 0; i < p->r.count && !status; i++)
    add_rows(&g, p, &p->r.whole[i], 1 + p->r.frames / REGRESSED_ROWS);
  if (!status) dv_ridge_solve(&g.ridge, 1e-3);
  if (!status) put_initial(p, &g);
  dv_ridge_clear(&g.ridge);
  return status;
}

dvbf_status dv_start_linear(dvbf_model *m, const dvbf_data *data, const volatile int *interrupt,
                            dvbf_error *error) {
  start p = {.m = m};
  dvbf_status status = check_linear_start(m, error);
  if (!status) status = dv_linear_system(&p.s, &p.r, m, data, interrupt, error);
  if (!status) status = find_states(&p, error);
  if (!status) {
    set_transition(&p);
    set_emission(&p);
    status = set_gain(&p, error);
  }
  if (!status) status = set_initial(&p, error);
  DV_FREE(p.gain, p.deviation, p.z);
  dv_system_clear(&p.s);
  dv_recordings_clear(&p.r);
  return status;
}
