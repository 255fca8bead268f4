/* The density student-t: x = mean + sigma t, each value independently, with n degrees of freedom: a Gaussian
 * with outliers. n is one learned number for all of x. */

/* With e = (x - mean) / sigma,
 *
 *   ln p(x)     = c(n) - ln sigma - (n + 1) / 2 ln(1 + e^2 / n)
 *   c(n)        = ln G((n + 1) / 2) - ln G(n / 2) - ln(pi n) / 2
 *   d / d mean  = (n + 1) e / (n + e^2) / sigma        d / d ln sigma = (n + 1) e^2 / (n + e^2) - 1
 *   d / dn      = c'(n) - ln(1 + e^2 / n) / 2 + (n + 1) e^2 / (2 n (n + e^2))
 *
 * ln sigma = max(shape[0], floor). n = 2 + exp(shape[1]), so that x has a variance, sigma^2 n / (n - 2).
 * Beyond their limits neither has a gradient. */
#include "model/density.h"

#include "math/portable.h"
#include "math/random.h"
#include "ops/emit.h"

#include <math.h>

/* ---- Degrees of freedom ---- */

enum { FIRST_FREEDOM = 6 };
#define LOWEST (-7.0)        /* of ln(n - 2): 2.001 */
#define HIGHEST_FREEDOM 14.0 /* a million, which cannot be told from a Gaussian */

static double freedom_of(double parameter) {
  return 2 + dv_exp(fmin(fmax(parameter, LOWEST), HIGHEST_FREEDOM));
}

static double constant_of(double n) {
  return dv_lgamma((n + 1) / 2) - dv_lgamma(n / 2) - 0.5 * dv_log(3.14159265358979323846 * n);
}

/* The derivative of ln G: upwards to where its series holds, with an error of 1e-13. */
static double digamma(double x) {
  double sum = 0;
  while (x < 20) {
    sum -= 1 / x;
    x += 1;
  }
  double r = 1 / (x * x);
  return sum + dv_log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r / 240)));
}

static double constant_slope(double n) {
  return 0.5 * (digamma((n + 1) / 2) - digamma(n / 2) - 1 / n);
}

/* ---- ln p ---- */

/* Inputs of the op. */
typedef struct numbers {
  const dvbf_real *x, *mean, *log_sigma, *mask;
  size_t rows, n;
  double freedom, floor;
} numbers;

/* in: x, mean, ln sigma, ln(n - 2), mask; data: the scalar of the floor. */
static numbers numbers_of(const dvbf_op *op, const dvbf_run *run) {
  return (numbers){dv_at(run, op->in[0]),
                   dv_at(run, op->in[1]),
                   dv_at(run, op->in[2]),
                   dv_at(run, op->in[4]),
                   (size_t)op->in[0].steps * (size_t)op->in[0].rows,
                   (size_t)op->in[0].cols,
                   freedom_of((double)*dv_at(run, op->in[3])),
                   dvbf_scalar_at(run, *(const int *)op->data)};
}

static bool is_seen(const dvbf_op *op, const numbers *v, size_t i) {
  return v->mask[op->in[4].cols == op->in[0].cols ? i : i / v->n] > 0;
}

static void student_forward(const dvbf_op *op, dvbf_run *run) {
  numbers v = numbers_of(op, run);
  double c = constant_of(v.freedom);
  dvbf_real *out = dv_at(run, op->out[0]);
  for (size_t r = 0; r < v.rows; r++) {
    double sum = 0;
    for (size_t i = r * v.n; i < (r + 1) * v.n; i++) {
      if (!is_seen(op, &v, i)) continue;
      double ls = fmax((double)v.log_sigma[dv_entry_at(op->in[2], v.n, i / v.n, i % v.n)], v.floor);
      double e = (double)(v.x[i] - v.mean[i]) * dv_exp(-ls);
      sum += c - ls - 0.5 * (v.freedom + 1) * dv_log1p(e * e / v.freedom);
    }
    out[r] = (dvbf_real)sum;
  }
}

static void student_backward(const dvbf_op *op, dvbf_run *run) {
  numbers v = numbers_of(op, run);
  double n = v.freedom, c = constant_slope(n), d_n = 0, a = (double)*dv_at(run, op->in[3]);
  const dvbf_real *g = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d_mean = dvbf_gradient_at(run, op->in[1]), *d_log_sigma = dvbf_gradient_at(run, op->in[2]);
  dvbf_real *d_freedom = dvbf_gradient_at(run, op->in[3]);
  for (size_t i = 0; i < v.rows * v.n; i++) {
    if (!is_seen(op, &v, i)) continue;
    size_t at = dv_entry_at(op->in[2], v.n, i / v.n, i % v.n);
    double inverse = dv_exp(-fmax((double)v.log_sigma[at], v.floor)), by = (double)g[i / v.n];
    double e = (double)(v.x[i] - v.mean[i]) * inverse, pull = (n + 1) * e / (n + e * e);
    d_mean[i] += (dvbf_real)(by * pull * inverse);
    if (d_log_sigma && (double)v.log_sigma[at] > v.floor) d_log_sigma[at] += (dvbf_real)(by * (pull * e - 1));
    d_n += by * (c - 0.5 * dv_log1p(e * e / n) + 0.5 * pull * e / n);
  }
  if (d_freedom && a > LOWEST && a < HIGHEST_FREEDOM) *d_freedom += (dvbf_real)(d_n * (n - 2));
}

static const dvbf_op_class student_class = {"student t", student_forward, student_backward, NULL};

static void record_student(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask) {
  double freedom = m->settings->freedom;
  bool fixed = freedom > 0;
  if (fixed && freedom < 2.001)
    dvbf_refuse(p->graph,
                "degrees-of-freedom = %g: must be 0, to learn them, or at least 2.001, as x has no variance "
                "with fewer; 4 tolerates strong outliers",
                freedom);
  dv_record_output(p, m, hidden);
  p->shape[0] = dv_record_log_sigma(p, m, hidden);
  p->shape[1] =
      dvbf_parameter(p->graph, "emission.log_freedom", 1, 1,
                     (dvbf_first){.mean = dv_log((fixed ? freedom : FIRST_FREEDOM) - 2), .frozen = fixed});
  int floor = dvbf_scalar(p->graph, DVBF_LOG_SIGMA_FLOOR, -1000);
  dvbf_value in[] = {p->x, p->output, p->shape[0], p->shape[1], mask};
  dvbf_record(p->graph, &student_class, 5, in, 1, &p->ln_p, &floor, sizeof floor);
}

/* ---- Mean, variance and samples ---- */

static double freedom_in(const dv_density_frame *f) {
  return freedom_of((double)*dvbf_at(f->run, f->program->shape[1]));
}

static void add_variance(const dv_density_frame *f, double *variance) {
  double n = freedom_in(f), sigma;
  for (size_t i = 0; i < (size_t)f->model->n_x; i++) {
    dv_density_sigma(f, f->program->shape[0], i, 1, &sigma);
    variance[i] += sigma * sigma * n / (n - 2);
  }
}

/* Of two uniform numbers, sqrt(n (u^(-2 / n) - 1)) cos(2 pi v) has the distribution of t (Bailey 1994). */
static void draw_student_t(const dv_density_frame *f, float *x) {
  size_t n_x = (size_t)f->model->n_x, behind = (n_x + DV_DENSITY_CHUNK - 1) / DV_DENSITY_CHUNK;
  double n = freedom_in(f), sigma;
  uint32_t radius[DV_DENSITY_CHUNK], angle[DV_DENSITY_CHUNK];
  for (size_t i = 0; i < n_x; i++) {
    size_t at = i % DV_DENSITY_CHUNK;
    if (!at) dv_density_words(f, i, radius);
    if (!at) dv_density_words(f, behind * DV_DENSITY_CHUNK + i, angle);
    double t = sqrt(n * dv_expm1(-2 / n * dv_log(dv_uniform_of(radius[at])))) *
               dv_cos(6.283185307179586477 * dv_uniform_of(angle[at]));
    dv_density_sigma(f, f->program->shape[0], i, 1, &sigma);
    x[i] = (float)((double)f->mean[i] + sigma * t);
  }
}

/* The degrees of freedom are a parameter. */
static dvbf_expr emit_variance(dvbf_code *code, const dvbf_program *p, const dvbf_model *m, dvbf_expr mean) {
  dvbf_expr apart = dvbf_code_unary(code, DVBF_EXP_OF,
                                    dv_within(code, dv_read_one(code, p->shape[1]), LOWEST, HIGHEST_FREEDOM));
  dvbf_expr ratio = dv_plus(code, dv_number(code, 1), dv_over(code, dv_number(code, 2), apart));
  return dv_times(code, dv_density_emit_square(code, m, p->shape[0]), ratio);
}

static bool scales(const dv_train_settings *s) {
  return true;
}

/* Some value is further from its mean than any of a million Gaussian numbers. */
static const char *suits(const dvbf_sequences *train, const dv_statistics *x) {
  bool outliers = false;
  for (size_t k = 0; k < train->n_x; k++) {
    double far = fmax(x->most[k] - x->mean[k], x->mean[k] - x->least[k]);
    outliers |= x->variance[k] > 0 && far * far > 64 * x->variance[k];
  }
  return outliers && !x->binary ? "x has outliers, more than 8 standard deviations from the mean" : NULL;
}

const dv_density dv_student_t = {.record = record_student,
                                 .emit_variance = emit_variance,
                                 .add_variance = add_variance,
                                 .draw = draw_student_t,
                                 .scales = scales,
                                 .suits = suits,
                                 .on_request = true,
                                 .sigma = true};
