/* Gradients against differences, in double precision.
 *
 * The first half compares what backward says about a parameter with differences of any objective. The second
 * half is a bench for one op: its inputs are parameters that a small op copies into slabs, and its outputs
 * are projected on fixed random numbers, so that every entry of every output counts. */
#ifndef GRADIENT_H
#define GRADIENT_H

#include "math/random.h"
#include "ops/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOLERANCE 1e-6

/* ---- Differences ---- */

typedef struct gradient_check {
  dv_parameters *parameters;
  const dvbf_real *gradient; /* [parameters] what backward says */
  double (*objective)(void *user);
  void *user;
  double step; /* of the differences */
} gradient_check;

static inline size_t size_of(const dv_parameter *p) {
  return (size_t)p->rows * (size_t)p->cols;
}

/* The objective with the parameter moved by h times `direction`. */
static inline double moved(const gradient_check *c, const dv_parameter *p, const double *direction,
                           double h) {
  size_t n = size_of(p);
  dvbf_real *at = c->parameters->values + p->offset, *kept = malloc(n * sizeof *kept);
  assert_non_null(kept);
  memcpy(kept, at, n * sizeof *kept);
  for (size_t i = 0; i < n; i++) at[i] += (dvbf_real)(h * direction[i]);
  double value = c->objective(c->user);
  memcpy(at, kept, n * sizeof *kept);
  free(kept);
  return value;
}

/* Four values around the point: the error falls with the fourth power of the step, so the step can be large
 * enough for rounding not to matter. */
static inline double derivative(const gradient_check *c, const dv_parameter *p, const double *direction) {
  double h = c->step;
  double near = moved(c, p, direction, h) - moved(c, p, direction, -h);
  double far = moved(c, p, direction, 2 * h) - moved(c, p, direction, -2 * h);
  return (8 * near - far) / (12 * h);
}

static inline double norm_of(const double *x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

/* |apart| / size, where sizes too small to be resolved by differences count as that resolution. NaN is far.
 */
static inline double relative_error(double apart, double size) {
  double error = fabs(apart) / fmax(fabs(size), 1e-4);
  return isfinite(error) ? error : INFINITY;
}

/* Distance between gradient and differences over all entries of a parameter, relative to its length. */
static inline double error_of_entries(const gradient_check *c, const dv_parameter *p) {
  size_t n = size_of(p);
  double *direction = calloc(n, sizeof *direction), *found = calloc(n, sizeof *found),
         *apart = calloc(n, sizeof *apart);
  assert_true(direction && found && apart);
  for (size_t i = 0; i < n; i++) {
    direction[i] = 1;
    found[i] = derivative(c, p, direction);
    apart[i] = found[i] - (double)c->gradient[p->offset + i];
    direction[i] = 0;
  }
  double error = relative_error(norm_of(apart, n), norm_of(found, n));
  free(direction);
  free(found);
  free(apart);
  return error;
}

/* Root mean square of the gradient of a parameter, the measure for one entry or one direction of it. */
static inline double gradient_size(const gradient_check *c, const dv_parameter *p) {
  double sum = 0;
  for (size_t i = 0; i < size_of(p); i++)
    sum += (double)c->gradient[p->offset + i] * (double)c->gradient[p->offset + i];
  return sqrt(sum / (double)size_of(p));
}

/* The same along one random direction of length 1. */
static inline double error_of_direction(const gradient_check *c, const dv_parameter *p, dv_random *random) {
  size_t n = size_of(p);
  double *direction = calloc(n, sizeof *direction), expected = 0;
  assert_non_null(direction);
  for (size_t i = 0; i < n; i++) direction[i] = dv_random_normal(random);
  double length = norm_of(direction, n);
  for (size_t i = 0; i < n; i++) {
    direction[i] /= length;
    expected += direction[i] * (double)c->gradient[p->offset + i];
  }
  double error = relative_error(derivative(c, p, direction) - expected, fabs(expected) + gradient_size(c, p));
  free(direction);
  return error;
}

static inline double error_of_entry(const gradient_check *c, const dv_parameter *p, size_t i) {
  double *direction = calloc(size_of(p), sizeof *direction), expected = (double)c->gradient[p->offset + i];
  assert_non_null(direction);
  direction[i] = 1;
  double error = relative_error(derivative(c, p, direction) - expected, fabs(expected) + gradient_size(c, p));
  free(direction);
  return error;
}

/* ---- A bench for one op ---- */

enum { MAX_INPUTS = 12 };
enum { PROJECTION, RECONSTRUCTION, KL_W, KL_V }; /* terms of a bench */

typedef struct bench {
  dv_parameters parameters;
  dvbf_graph *graph;
  dvbf_run run;
  dv_conditions conditions;
  dvbf_real *gradient;
  dvbf_value inputs[MAX_INPUTS];
  int n_inputs;
  uint32_t projections;
  bool positive; /* inputs and weights keep ReLUs away from their kink */
  double (*objective)(struct bench *b);
  const void *extra; /* for the objective */
} bench;

/* What differences are taken of: projections and the terms of the bound that ops add by themselves. */
static inline double plain_objective(bench *b) {
  return b->run.terms[PROJECTION] + b->conditions.scale * (b->run.terms[KL_W] + b->run.terms[KL_V]);
}

/* The graph keeps a pointer into the bench. */
static inline void bench_begin(bench *b, int rows) {
  *b = (bench){.objective = plain_objective};
  b->conditions = (dv_conditions){.scale = 0.7};
  dv_conditions_set(&b->conditions, DVBF_TEMPERATURE, 1);
  dv_conditions_set(&b->conditions, DVBF_LOG_SIGMA_FLOOR, -20);
  dv_conditions_set(&b->conditions, DVBF_SEQUENCES, 11);
  b->graph = dv_graph_new(&b->parameters, rows, true);
  assert_non_null(b->graph);
  static const char *const names[] = {"projection", DVBF_RECONSTRUCTION, DVBF_KL_W, DVBF_KL_V};
  for (int i = 0; i < 4; i++)
    assert_int_equal(dvbf_term(b->graph, names[i], i == RECONSTRUCTION ? -1 : 1), i);
}

static inline void bench_end(bench *b) {
  dv_run_clear(&b->run);
  dv_graph_free(b->graph);
  dv_parameters_free(&b->parameters);
  free(b->gradient);
}

/* Copies a parameter into a slab of the same number of entries. */
static inline void load_forward(const dvbf_op *op, dvbf_run *run) {
  size_t n = (size_t)op->out[0].steps * op->out[0].stride;
  memcpy(dvbf_at(run, op->out[0]), dvbf_at(run, op->in[0]), n * sizeof(dvbf_real));
}

static inline void load_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real *d = dvbf_gradient_at(run, op->in[0]);
  const dvbf_real *from = dvbf_gradient_at(run, op->out[0]);
  if (!d) return;
  for (size_t i = 0; i < (size_t)op->out[0].steps * op->out[0].stride; i++) d[i] += from[i];
}

/* terms[PROJECTION] += sum_i r_i x_i with fixed random r. */
static inline double projection_entry(uint32_t number, uint32_t i) {
  dv_random random = dv_random_at(17, DV_STREAM_SIMULATION, number, i);
  return dv_random_normal(&random);
}

static inline void project_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *x = dvbf_at(run, op->in[0]);
  for (uint32_t i = 0; i < (size_t)op->in[0].steps * op->in[0].stride; i++)
    run->terms[PROJECTION] += projection_entry(*(const uint32_t *)op->data, i) * (double)x[i];
}

static inline void project_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_real *d = dvbf_gradient_at(run, op->in[0]);
  for (uint32_t i = 0; d && i < (size_t)op->in[0].steps * op->in[0].stride; i++)
    d[i] += (dvbf_real)projection_entry(*(const uint32_t *)op->data, i);
}

static const dvbf_op_class load_class = {"load", load_forward, load_backward, NULL};
static const dvbf_op_class project_class = {"project", project_forward, project_backward, NULL};

static inline void project(bench *b, dvbf_value x) {
  dvbf_record(b->graph, &project_class, 1, &x, 0, NULL, &b->projections, sizeof b->projections);
  b->projections++;
}

/* A parameter with random values: normal, or with a sign for each column and no entry near 0. */
static inline dvbf_value random_parameter(bench *b, int rows, int cols, bool weights) {
  char name[32];
  double *values = calloc((size_t)rows * (size_t)cols, sizeof *values);
  dv_random random = dv_random_at(29, DV_STREAM_SIMULATION, (uint32_t)b->parameters.count, 0);
  assert_non_null(values);
  for (int i = 0; i < rows * cols; i++) {
    double sign = weights && i % cols % 3 == 1 ? -1 : 1;
    values[i] =
        b->positive ? sign * (0.2 + 0.5 * dv_random_uniform(&random)) : 0.6 * dv_random_normal(&random);
  }
  snprintf(name, sizeof name, "p%zu", b->parameters.count);
  dvbf_value p = dvbf_parameter(b->graph, name, rows, cols, (dvbf_first){.values = values});
  free(values);
  return p;
}

/* A slab filled with random numbers that differences will move. */
static inline dvbf_value input_into(bench *b, dvbf_value slab) {
  dvbf_value from = random_parameter(b, slab.steps * slab.rows, slab.cols, false);
  dvbf_record(b->graph, &load_class, 1, &from, 1, &slab, NULL, 0);
  assert_true(b->n_inputs < MAX_INPUTS);
  return b->inputs[b->n_inputs++] = slab;
}

static inline dvbf_value input(bench *b, int steps, int cols) {
  return input_into(b, dvbf_slab(b->graph, steps, cols));
}

static inline dvbf_value input_shared(bench *b, int steps, int count) {
  return input_into(b, dvbf_slab_shared(b->graph, steps, count));
}

/* A slab without a gradient that holds given values. */
static inline dvbf_value constant_into(bench *b, dvbf_value slab, const double *values) {
  char name[32];
  snprintf(name, sizeof name, "c%zu", b->parameters.count);
  dvbf_value from = dvbf_parameter(b->graph, name, slab.steps * slab.rows, slab.cols,
                                   (dvbf_first){.scale = values ? 0 : 1, .frozen = true, .values = values});
  dvbf_record(b->graph, &load_class, 1, &from, 1, &slab, NULL, 0);
  return slab;
}

/* values NULL: standard normal numbers. */
static inline dvbf_value constant(bench *b, int steps, int cols, const double *values) {
  return constant_into(b, dvbf_slab_constant(b->graph, steps, cols), values);
}

/* The last parameter that was made, to be changed before the bench runs. */
static inline dvbf_real *last_values(bench *b) {
  return b->parameters.values + b->parameters.list[b->parameters.count - 1].offset;
}

static inline double bench_objective(void *user) {
  bench *b = user;
  b->run.parameters = b->parameters.values;
  dv_run_forward(&b->run);
  return b->objective(b);
}

/* Plans the program and runs it once each way. Memory starts as NaN: nothing may be read before it is
 * written. */
static inline void bench_run(bench *b) {
  dvbf_error error = {0};
  if (dv_graph_plan(b->graph, &error)) fail_msg("%s", error.message);
  assert_int_equal(dv_run_init(&b->run, b->graph, &error), DVBF_OK);
  for (size_t i = 0; i < b->graph->arena; i++) b->run.arena[i] = (dvbf_real)NAN;
  b->gradient = malloc(b->parameters.size * sizeof *b->gradient);
  assert_non_null(b->gradient);
  for (size_t i = 0; i < b->parameters.size; i++) b->gradient[i] = (dvbf_real)NAN;
  b->run.parameters = b->parameters.values;
  b->run.gradient = b->gradient;
  b->run.conditions = &b->conditions;
  dv_run_forward(&b->run);
  dv_run_backward(&b->run);
}

/* The largest error over all parameters. Inputs and parameters are projected too, last of all: their
 * gradients are then not 0 when the op under test runs back, and one that writes where it should add is
 * caught. */
static inline double bench_error(bench *b) {
  for (int i = 0; i < b->n_inputs; i++) project(b, b->inputs[i]);
  for (size_t i = 0; i < b->parameters.count; i++) {
    dv_parameter p = b->parameters.list[i];
    if (!p.frozen && b->objective == plain_objective)
      project(b, dvbf_parameter(b->graph, p.name, p.rows, p.cols, (dvbf_first){0}));
  }
  bench_run(b);
  gradient_check check = {&b->parameters, b->gradient, bench_objective, b, 1e-3};
  double worst = 0;
  for (size_t i = 0; i < b->parameters.count; i++)
    if (!b->parameters.list[i].frozen) worst = fmax(worst, error_of_entries(&check, &b->parameters.list[i]));
  return worst;
}

#define assert_gradients(b, what)                                                                            \
  do {                                                                                                       \
    double error_ = bench_error(b);                                                                          \
    if (!(error_ <= TOLERANCE)) fail_msg("%s: the gradient is off by %.3g of its length", what, error_);     \
  } while (0)

#endif
