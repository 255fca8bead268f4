/* Fast dropout against dropout: propagated means and variances beside those of a plain network whose inputs
 * and states are dropped by many random masks. */
#include "math/random.h"
#include "model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_X = 200, N_U = 2, HIDDEN = 64, OUT = 3, MAX_FRAMES = 4, SAMPLES = 3000 };

/* ---- The network under test ---- */

typedef struct fixture {
  dv_parameters parameters;
  dvbf_graph *graph;
  dvbf_run run;
  dv_conditions conditions;
  dv_birnn net;
  dv_birnn_states states;
  dvbf_value head; /* of all frames */
} fixture;

/* Biases too, which start at 0. */
static void stir(dv_parameters *p) {
  dv_random random = dv_random_at(5, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < p->size; i++) p->values[i] += (dvbf_real)(0.05 * dv_random_normal(&random));
}

static void fill(dvbf_real *at, size_t n, uint32_t key, double scale) {
  dv_random random = dv_random_at(6, DV_STREAM_SIMULATION, key, 0);
  for (size_t i = 0; i < n; i++) at[i] = (dvbf_real)(scale * dv_random_normal(&random));
}

static void begin(fixture *f, int layers, int frames, dvbf_activation activation, double dropout) {
  dvbf_error error;
  *f = (fixture){0};
  f->parameters.seed = 12;
  f->graph = dv_graph_new(&f->parameters, 1, false);
  assert_non_null(f->graph);
  f->net = (dv_birnn){.name = "net",
                      .mask = DVBF_NONE,
                      .x = dvbf_slab_constant(f->graph, frames, N_X),
                      .u = dvbf_slab_constant(f->graph, frames, N_U),
                      .scale_x = 1 / sqrt(N_X),
                      .scale_u = 0.3,
                      .hidden = HIDDEN,
                      .layers = layers,
                      .activation = activation,
                      .fast_dropout = true,
                      .dropout = dropout};
  f->states = dv_record_birnn(f->graph, &f->net);
  f->head = dvbf_slab(f->graph, frames, 2 * OUT);
  dv_record_birnn_output(f->graph, &f->net, &f->states, f->head);
  dvbf_value kept[] = {f->net.x, f->net.u, f->states.forward, f->states.forward_variance, f->head};
  for (int i = 0; i < 5; i++) dvbf_keep(f->graph, kept[i]);
  if (dv_graph_plan(f->graph, &error)) fail_msg("%s", error.message);
  assert_int_equal(dv_run_init(&f->run, f->graph, &error), DVBF_OK);
  stir(&f->parameters);
  f->run.parameters = f->parameters.values;
  f->run.conditions = &f->conditions;
  fill(dvbf_at(&f->run, f->net.x), (size_t)frames * N_X, 1, 1);
  fill(dvbf_at(&f->run, f->net.u), (size_t)frames * N_U, 2, 1);
}

static void end(fixture *f) {
  dv_run_clear(&f->run);
  dv_graph_free(f->graph);
  dv_parameters_free(&f->parameters);
}

/* ---- The same network with masks ---- */

static const dvbf_real *weights(const fixture *f, const char *layer, const char *name) {
  char whole[64];
  snprintf(whole, sizeof whole, "net.%s.%s", layer, name);
  for (size_t i = 0; i < f->parameters.count; i++)
    if (!strcmp(f->parameters.list[i].name, whole))
      return f->parameters.values + f->parameters.list[i].offset;
  fail_msg("no parameter %s", whole);
  return NULL;
}

/* y[n] += (mask * x[m]) W[m][n], a new mask with each call; p = 0 drops nothing. */
static void add_product(float *y, const float *x, const dvbf_real *w, int m, int n, double p,
                        dv_random *random) {
  uint32_t below = (uint32_t)(p * 4294967295.0);
  float keep = (float)(1 / (1 - p));
  for (int i = 0; i < m; i++, w += n) {
    if (p > 0 && dv_random_word(random) < below) continue;
    for (int j = 0; j < n; j++) y[j] += keep * x[i] * (float)w[j];
  }
}

static float activated(dvbf_activation a, float x) {
  if (a == DVBF_RELU) return x > 0 ? x : 0;
  return a == DVBF_TANH ? tanhf(x) : 1 / (1 + expf(-x));
}

typedef float states[MAX_FRAMES * HIDDEN]; /* [frames][hidden] */

/* One direction of one layer for one draw of the masks; in are the two inputs of a layer. */
typedef struct drawn_input {
  const char *name;
  const float *at;
  int n;
  double p;
} drawn_input;

static void draw_direction(const fixture *f, const char *layer, bool reverse, const drawn_input in[2],
                           float *out, dv_random *random) {
  int frames = f->net.x.steps;
  for (int i = 0; i < frames; i++) {
    int t = reverse ? frames - 1 - i : i;
    float *now = out + t * HIDDEN;
    const float *before = i ? out + (reverse ? t + 1 : t - 1) * HIDDEN : NULL;
    memcpy(now, weights(f, layer, "bias"), HIDDEN * sizeof *now);
    for (int k = 0; k < 2; k++)
      add_product(now, in[k].at + t * in[k].n, weights(f, layer, in[k].name), in[k].n, HIDDEN, in[k].p,
                  random);
    if (before) add_product(now, before, weights(f, layer, "h"), HIDDEN, HIDDEN, f->net.dropout, random);
    for (int j = 0; j < HIDDEN; j++) now[j] = activated(f->net.activation, now[j]);
  }
}

/* States of the last layer and the output of every frame. */
static void draw(const fixture *f, float *forward, float *out, dv_random *random) {
  states first[2], backward;
  double p = f->net.dropout;
  drawn_input data[2] = {{"x", dvbf_at(&f->run, f->net.x), N_X, p},
                         {"u", dvbf_at(&f->run, f->net.u), N_U, 0}};
  drawn_input below[2] = {{"forward", first[0], HIDDEN, p}, {"backward", first[1], HIDDEN, p}};
  bool two = f->net.layers == 2;
  draw_direction(f, "forward", false, data, two ? first[0] : forward, random);
  draw_direction(f, "backward", true, data, two ? first[1] : backward, random);
  if (two) {
    draw_direction(f, "forward-2", false, below, forward, random);
    draw_direction(f, "backward-2", true, below, backward, random);
  }
  for (int t = 0; t < f->net.x.steps; t++, out += OUT) {
    memcpy(out, weights(f, "output", "bias"), OUT * sizeof *out);
    add_product(out, forward + t * HIDDEN, weights(f, "output", "h"), HIDDEN, OUT, p, random);
    add_product(out, backward + t * HIDDEN, weights(f, "output", "h"), HIDDEN, OUT, p, random);
  }
}

/* ---- Comparison ---- */

/* Means and mean squares over all draws, frame after frame. */
typedef struct drawn {
  double state[MAX_FRAMES * HIDDEN], state_2[MAX_FRAMES * HIDDEN];
  double out[MAX_FRAMES * OUT], out_2[MAX_FRAMES * OUT];
} drawn;

static void add_moments(double *mean, double *square, const float *x, int n) {
  for (int i = 0; i < n; i++) {
    mean[i] += (double)x[i] / SAMPLES;
    square[i] += (double)x[i] * (double)x[i] / SAMPLES;
  }
}

static drawn *draw_many(const fixture *f) {
  drawn *d = calloc(1, sizeof *d);
  dv_random random = dv_random_at(7, DV_STREAM_SIMULATION, 0, 0);
  assert_non_null(d);
  for (int s = 0; s < SAMPLES; s++) {
    states forward;
    float out[MAX_FRAMES * OUT];
    draw(f, forward, out, &random);
    add_moments(d->state, d->state_2, forward, f->net.x.steps * HIDDEN);
    add_moments(d->out, d->out_2, out, f->net.x.steps * OUT);
  }
  return d;
}

/* How far apart propagated and drawn moments of many units are: sums over the units. */
typedef struct distance {
  double mean, variance;    /* squares of the differences of means; sizes of those of variances */
  double propagated, drawn; /* variances */
} distance;

static void compare(distance *d, double mean, double variance, double drawn_mean, double drawn_square) {
  double drawn_variance = drawn_square - drawn_mean * drawn_mean;
  assert_true(isfinite(mean) && variance > -1e-6); /* what rounding leaves of a dead rectifier */
  d->mean += (mean - drawn_mean) * (mean - drawn_mean);
  d->variance += fabs(variance - drawn_variance);
  d->propagated += variance;
  d->drawn += drawn_variance;
}

/* Means are within 0.04 of a standard deviation (0.028 at worst here, of which 1 / sqrt(SAMPLES) = 0.018 is
 * chance), sums of variances within 5 % (3.3 %), those of single units within 8 % on average (6.6 %). */
static void expect_close(distance d, const char *what) {
  double mean = sqrt(d.mean / d.drawn), ratio = d.propagated / d.drawn, single = d.variance / d.drawn;
  if (!(mean <= 0.04) || !(fabs(ratio - 1) <= 0.05) || !(single <= 0.08))
    fail_msg("%s: means are %.3f standard deviations from those of masks, the sum of variances is %.3f times "
             "theirs, single ones are %.3f apart",
             what, mean, ratio, single);
}

static void check(int layers, int frames, dvbf_activation activation, double p) {
  char what[96];
  fixture f;
  distance of_states = {0}, of_output = {0};
  begin(&f, layers, frames, activation, p);
  dv_run_forward(&f.run);
  drawn *d = draw_many(&f);
  const dvbf_real *mean = dvbf_at(&f.run, f.states.forward), *head = dvbf_at(&f.run, f.head);
  const dvbf_real *dropped = dvbf_at(&f.run, f.states.forward_variance);
  for (int i = 0; i < frames * HIDDEN; i++) /* dropped = (s + p m^2) / (1 - p) */
    compare(&of_states, mean[i], (1 - p) * dropped[i] - p * mean[i] * mean[i], d->state[i], d->state_2[i]);
  for (int i = 0; i < frames * OUT; i++) {
    const dvbf_real *at = head + i / OUT * 2 * OUT + i % OUT;
    compare(&of_output, at[0], exp(2 * at[OUT]), d->out[i], d->out_2[i]);
  }
  snprintf(what, sizeof what, "states, activation %d, %d layers, %d frames, dropout %g", activation, layers,
           frames, p);
  expect_close(of_states, what);
  memcpy(what, "output", 6);
  expect_close(of_output, what);
  free(d);
  end(&f);
}

/* One step: only the inputs are dropped before the states, and the states before the output. */
static void one_layer(void **state) {
  (void)state;
  for (int a = DVBF_RELU; a <= DVBF_SIGMOID; a++) {
    check(1, 1, a, 0.1);
    check(1, 1, a, 0.5);
  }
}

static void whole_network(void **state) {
  (void)state;
  for (int a = DVBF_RELU; a <= DVBF_SIGMOID; a++) {
    check(1, MAX_FRAMES, a, 0.4);
    check(2, MAX_FRAMES, a, 0.1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_layer),
      cmocka_unit_test(whole_network),
  };
  return cmocka_run_group_tests_name("fast dropout", tests, NULL, NULL);
}
