/* Convolutions: backward against differences of forward, and forward against the plain formula. */
#include "gradient.h"

typedef struct convolution_case {
  int rows, steps;
  dvbf_image large;
  int channels, size, stride, padding;
  bool transposed, bias, by_pixel;
  dvbf_activation activation;
} convolution_case;

static dvbf_convolution make(bench *b, const convolution_case *c) {
  dvbf_image small = dvbf_convolved(c->large, c->size, c->stride, c->padding, c->channels);
  int in_large = c->large.height * c->large.width * c->large.channels,
      in_small = small.height * small.width * small.channels;
  b->positive = c->activation == DVBF_RELU;
  dvbf_convolution v = {.large = c->large,
                        .channels = c->channels,
                        .size = c->size,
                        .stride = c->stride,
                        .padding = c->padding,
                        .transposed = c->transposed,
                        .activation = c->activation,
                        .bias = DVBF_NONE};
  v.x = input(b, c->steps, c->transposed ? in_small : in_large);
  v.out = dvbf_slab(b->graph, c->steps, c->transposed ? in_large : in_small);
  v.w = random_parameter(b, c->size * c->size * c->large.channels, c->channels, true);
  if (c->bias)
    v.bias = random_parameter(b, 1,
                              c->by_pixel     ? v.out.cols
                              : c->transposed ? c->large.channels
                                              : c->channels,
                              true);
  dvbf_convolve(b->graph, &v);
  return v;
}

static double activated(dvbf_activation a, double x) {
  return a == DVBF_RELU ? fmax(x, 0) : a == DVBF_TANH ? tanh(x) : a == DVBF_SIGMOID ? 1 / (1 + exp(-x)) : x;
}

/* One image by the formula: every pair of a pixel of the large image and one of the small. */
static void expect(const bench *b, const convolution_case *c, const dvbf_convolution *v, int t, int row) {
  dvbf_image l = c->large, s = dvbf_convolved(l, c->size, c->stride, c->padding, c->channels);
  dvbf_image to = c->transposed ? l : s;
  const dvbf_real *x = dvbf_at(&b->run, dvbf_steps(v->x, t, 1)) + (size_t)row * (size_t)v->x.cols;
  const dvbf_real *y = dvbf_at(&b->run, dvbf_steps(v->out, t, 1)) + (size_t)row * (size_t)v->out.cols;
  const dvbf_real *w = dvbf_at(&b->run, v->w);
  double *sum = calloc((size_t)v->out.cols, sizeof *sum);
  for (int k = 0; k < v->out.cols && c->bias; k++)
    sum[k] = dvbf_at(&b->run, v->bias)[c->by_pixel ? k : k % to.channels];
  for (int sy = 0; sy < s.height; sy++)
    for (int sx = 0; sx < s.width; sx++)
      for (int i = 0; i < c->size; i++)
        for (int j = 0; j < c->size; j++) {
          int ly = sy * c->stride + i - c->padding, lx = sx * c->stride + j - c->padding;
          if (ly < 0 || lx < 0 || ly >= l.height || lx >= l.width) continue;
          for (int a = 0; a < l.channels; a++)
            for (int d = 0; d < s.channels; d++) {
              int in_l = (ly * l.width + lx) * l.channels + a, in_s = (sy * s.width + sx) * s.channels + d;
              double weight = w[((i * c->size + j) * l.channels + a) * s.channels + d];
              sum[c->transposed ? in_l : in_s] += weight * x[c->transposed ? in_s : in_l];
            }
        }
  for (int k = 0; k < v->out.cols; k++) assert_true(fabs(y[k] - activated(c->activation, sum[k])) < 1e-11);
  free(sum);
}

static void check(const convolution_case *c) {
  char what[128];
  snprintf(what, sizeof what, "convolution of %d x %d x %d, %d channels, size %d, stride %d, padding %d, %s",
           c->large.height, c->large.width, c->large.channels, c->channels, c->size, c->stride, c->padding,
           c->transposed ? "transposed" : "as it is");
  bench b;
  bench_begin(&b, c->rows);
  dvbf_convolution v = make(&b, c);
  dvbf_keep(b.graph, v.x);
  dvbf_keep(b.graph, v.out);
  project(&b, v.out);
  assert_gradients(&b, what);
  dv_run_forward(&b.run);
  for (int t = 0; t < c->steps; t++)
    for (int r = 0; r < c->rows; r++) expect(&b, c, &v, t, r);
  bench_end(&b);
}

static void convolutions(void **state) {
  (void)state;
  static const convolution_case cases[] = {
      {2, 2, {5, 6, 2}, 3, 3, 2, 1, false, true, false, DVBF_TANH},
      {2, 2, {6, 4, 2}, 3, 4, 2, 1, false, false, false, DVBF_LINEAR},
      {1, 1, {7, 7, 1}, 2, 5, 1, 2, false, true, true, DVBF_SIGMOID},
      {3, 1, {4, 4, 3}, 2, 4, 4, 0, false, true, false, DVBF_RELU},
      {1, 2, {3, 3, 1}, 1, 1, 1, 0, false, true, false, DVBF_LINEAR},
      {1, 1, {2, 3, 1}, 2, 5, 3, 4, false, true, false, DVBF_TANH}, /* places that see nothing of the image */
      /* by windows */
      {2, 1, {8, 8, 8}, 8, 4, 2, 1, false, true, false, DVBF_TANH},
      {1, 2, {7, 10, 9}, 11, 4, 2, 1, false, true, true, DVBF_SIGMOID},
      {1, 1, {6, 4, 8}, 9, 4, 2, 0, false, false, false, DVBF_LINEAR},
      {1, 1, {3, 5, 10}, 8, 4, 2, 3, false, true, false, DVBF_RELU},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    convolution_case c = cases[i];
    check(&c);
    c.transposed = true;
    check(&c);
  }
}

/* More lines of places, or windows, than fit into a panel, of several images. */
static void panels(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    convolution_case c = {2, 1, {40, 40, 4}, 4, 7, 1, 3, false, true, false, DVBF_TANH};
    if (i >= 2) c = (convolution_case){2, 1, {38, 36, 16}, 20, 4, 2, 1, false, true, false, DVBF_TANH};
    c.transposed = i % 2;
    bench b;
    bench_begin(&b, c.rows);
    dvbf_convolution v = make(&b, &c);
    dvbf_keep(b.graph, v.x);
    dvbf_keep(b.graph, v.out);
    project(&b, v.out);
    bench_run(&b);
    for (int r = 0; r < c.rows; r++) expect(&b, &c, &v, 0, r);
    bench_end(&b);
  }
}

static void wrong_shapes_are_refused(void **state) {
  (void)state;
  bench b;
  bench_begin(&b, 2);
  dvbf_convolution v = {.large = {4, 4, 1}, .channels = 2, .size = 3, .stride = 1, .bias = DVBF_NONE};
  v.x = input(&b, 1, 16);
  v.out = dvbf_slab(b.graph, 1, 9); /* 2 x 2 x 2 */
  v.w = random_parameter(&b, 9, 2, true);
  dvbf_convolve(b.graph, &v);
  dvbf_error error;
  assert_int_not_equal(dv_graph_plan(b.graph, &error), DVBF_OK);
  assert_non_null(strstr(error.message, "4 x 4 x 1 to 2 x 2 x 2"));
  bench_end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),
      cmocka_unit_test(panels),
      cmocka_unit_test(wrong_shapes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
