/* Convolution with stride s and padding p, and its transpose. Images are [height][width][channels]. Between a
 * large image L and a small one S, with weights W [size][size][channels of L][channels of S]:
 *
 *   convolution   S[y][x] = f(b + sum_ij L[s y + i - p][s x + j - p] W[i][j])        0 outside of L
 *   transposed    L = f(b + sum over all y, x, i, j with s y + i - p, s x + j - p inside of L of S[y][x]
 * W[i][j]^T)
 *
 * The patches of L that the places of S see, side by side as rows of a matrix P, make both a product:
 * S = P W, and L = the sum of the patches P = S W^T at their places. Backward, with d for gradients before f:
 *
 *   convolution   dW += P^T dS      dP = dS W^T, added to dL at their places
 *   transposed    dW += P(dL)^T S   dS += P(dL) W
 *
 * No more than a panel of P is in memory at a time: some lines of places. */
#include "engine/engine.h"

#include <string.h>

typedef struct convolution_data {
  dvbf_image large, small;
  int size, stride, padding;
  bool transposed;
  dvbf_activation activation;
  int lines; /* of places in a panel */
} convolution_data;

enum { X, W, BIAS, N_IN };
enum { OUT, PANEL, N_OUT };
enum { PANEL_REALS = 1 << 15 };

/* a b c, or 0 where that is too large for any value. */
static int product_of(int a, int b, int c) {
  const int64_t most = 1 << 30;
  if (a < 1 || b < 1 || c < 1 || (int64_t)a * b > most || (int64_t)a * b * c > most) return 0;
  return a * b * c;
}

static int pixels_of(dvbf_image image) {
  return product_of(image.height, image.width, image.channels);
}

/* Reals of a patch. */
static int patch_of(const convolution_data *d) {
  return product_of(d->size, d->size, d->large.channels);
}

/* Line i of the patch at place x, and what of it lies in the image. */
typedef struct strip {
  size_t in_patch, in_image; /* where it begins */
  size_t count;              /* reals; 0: it lies outside of the image */
} strip;

static strip strip_at(const convolution_data *d, int line, int x, int i) {
  int left = x * d->stride - d->padding, right = left + d->size;
  int from = left < 0 ? -left : 0, to = right > d->large.width ? d->size - (right - d->large.width) : d->size;
  size_t c = (size_t)d->large.channels;
  if (line < 0 || from >= to) return (strip){0};
  return (strip){.in_patch = ((size_t)i * (size_t)d->size + (size_t)from) * c,
                 .in_image = ((size_t)line * (size_t)d->large.width + (size_t)(left + from)) * c,
                 .count = (size_t)(to - from) * c};
}

/* The line of the large image that line i of the patches of line y sees; negative: none. */
static int line_seen(const convolution_data *d, int y, int i) {
  int line = y * d->stride + i - d->padding;
  return line < d->large.height ? line : -1;
}

/* panel = the patches of a line of places. */
static void gather(const convolution_data *d, dvbf_real *panel, const dvbf_real *large, int y) {
  size_t patch = (size_t)patch_of(d), width = (size_t)d->size * (size_t)d->large.channels;
  for (int i = 0; i < d->size; i++) {
    int line = line_seen(d, y, i);
    dvbf_real *to = panel;
    for (int x = 0; x < d->small.width; x++, to += patch) {
      strip s = strip_at(d, line, x, i);
      if (s.count < width) memset(to + (size_t)i * width, 0, width * sizeof *to);
      if (s.count == 4) /* a single channel, which a call would not be worth */
        memcpy(to + s.in_patch, large + s.in_image, 4 * sizeof *to);
      else if (s.count)
        memcpy(to + s.in_patch, large + s.in_image, s.count * sizeof *to);
    }
  }
}

/* Adds the patches of a line of places to the image. */
static void scatter(const convolution_data *d, const dvbf_real *panel, dvbf_real *large, int y) {
  size_t patch = (size_t)patch_of(d);
  for (int i = 0; i < d->size; i++) {
    int line = line_seen(d, y, i);
    const dvbf_real *from = panel;
    for (int x = 0; x < d->small.width && line >= 0; x++, from += patch) {
      strip s = strip_at(d, line, x, i);
      for (size_t k = 0; k < s.count; k++) large[s.in_image + k] += from[s.in_patch + k];
    }
  }
}

/* Some lines of places of one or several images of a step, and what belongs to them. */
typedef struct piece {
  int first, lines; /* counted through all images of the step */
  int places;
} piece;

static piece piece_at(const convolution_data *d, int first, int all) {
  int lines = all - first < d->lines ? all - first : d->lines;
  return (piece){first, lines, lines * d->small.width};
}

static void gather_piece(const convolution_data *d, const piece *p, dvbf_real *panel,
                         const dvbf_real *large) {
  size_t line = (size_t)d->small.width * (size_t)patch_of(d), image = (size_t)pixels_of(d->large);
  for (int l = 0; l < p->lines; l++) {
    int at = p->first + l;
    gather(d, panel + (size_t)l * line, large + (size_t)(at / d->small.height) * image, at % d->small.height);
  }
}

static void scatter_piece(const convolution_data *d, const piece *p, const dvbf_real *panel,
                          dvbf_real *large) {
  size_t line = (size_t)d->small.width * (size_t)patch_of(d), image = (size_t)pixels_of(d->large);
  for (int l = 0; l < p->lines; l++) {
    int at = p->first + l;
    scatter(d, panel + (size_t)l * line, large + (size_t)(at / d->small.height) * image,
            at % d->small.height);
  }
}

/* Where the piece begins in the small images. */
static size_t in_small(const convolution_data *d, const piece *p) {
  return (size_t)p->first * (size_t)d->small.width * (size_t)d->small.channels;
}

static int lines_of(const convolution_data *d, dvbf_value x) {
  return x.rows * d->small.height;
}

/* Fills y with a bias for each pixel, or with 0 where there is none; false where each channel has one. */
static bool begin_with_bias(const dvbf_op *op, dvbf_run *run, dvbf_value y) {
  const dvbf_real *bias = dv_at(run, op->in[BIAS]);
  size_t width = (size_t)y.cols * sizeof *bias;
  dvbf_real *to = dv_at(run, y);
  if (bias && op->in[BIAS].cols != y.cols) return false;
  for (int r = 0; r < y.rows; r++, to += y.cols) bias ? memcpy(to, bias, width) : memset(to, 0, width);
  return true;
}

/* ---- Convolution ---- */

static void forward_step(const dvbf_op *op, dvbf_run *run, int t) {
  const convolution_data *d = op->data;
  dvbf_value y = dvbf_steps(op->out[OUT], t, 1);
  const dvbf_real *large = dv_at(run, dvbf_steps(op->in[X], t, 1)), *bias = dv_at(run, op->in[BIAS]);
  dvbf_real *small = dv_at(run, y), *panel = dv_at(run, op->out[PANEL]);
  if (begin_with_bias(op, run, y)) bias = NULL;
  for (int l = 0, all = lines_of(d, y); l < all; l += d->lines) {
    piece p = piece_at(d, l, all);
    gather_piece(d, &p, panel, large);
    run->product->nn(small + in_small(d, &p), bias, panel, dv_at(run, op->in[W]), p.places, d->small.channels,
                     patch_of(d));
  }
}

static void backward_step(const dvbf_op *op, dvbf_run *run, int t) {
  const convolution_data *d = op->data;
  dvbf_value x = dvbf_steps(op->in[X], t, 1);
  const dvbf_real *large = dv_at(run, x), *w = dv_at(run, op->in[W]);
  const dvbf_real *d_small = dvbf_gradient_at(run, dvbf_steps(op->out[OUT], t, 1));
  dvbf_real *d_large = dvbf_gradient_at(run, x), *dw = dvbf_gradient_at(run, op->in[W]);
  dvbf_real *panel = dv_at(run, op->out[PANEL]);
  for (int l = 0, all = lines_of(d, x); l < all; l += d->lines) {
    piece p = piece_at(d, l, all);
    const dvbf_real *from = d_small + in_small(d, &p);
    if (dw) {
      gather_piece(d, &p, panel, large);
      run->product->tn(dw, true, panel, from, p.places, d->small.channels, patch_of(d));
    }
    if (!d_large) continue;
    run->product->nt(panel, false, from, w, p.places, d->small.channels, patch_of(d));
    scatter_piece(d, &p, panel, d_large);
  }
}

/* ---- Its transpose ---- */

static void transposed_step(const dvbf_op *op, dvbf_run *run, int t) {
  const convolution_data *d = op->data;
  dvbf_value y = dvbf_steps(op->out[OUT], t, 1);
  const dvbf_real *small = dv_at(run, dvbf_steps(op->in[X], t, 1)), *bias = dv_at(run, op->in[BIAS]);
  dvbf_real *large = dv_at(run, y), *panel = dv_at(run, op->out[PANEL]);
  size_t channels = (size_t)d->large.channels, pixels = (size_t)y.rows * (size_t)y.cols / channels;
  if (!begin_with_bias(op, run, y))
    for (size_t i = 0; i < pixels; i++) memcpy(large + i * channels, bias, channels * sizeof *large);
  for (int l = 0, all = lines_of(d, y); l < all; l += d->lines) {
    piece p = piece_at(d, l, all);
    run->product->nt(panel, false, small + in_small(d, &p), dv_at(run, op->in[W]), p.places,
                     d->small.channels, patch_of(d));
    scatter_piece(d, &p, panel, large);
  }
}

static void transposed_backward_step(const dvbf_op *op, dvbf_run *run, int t) {
  const convolution_data *d = op->data;
  dvbf_value x = dvbf_steps(op->in[X], t, 1);
  const dvbf_real *small = dv_at(run, x), *w = dv_at(run, op->in[W]);
  const dvbf_real *d_large = dvbf_gradient_at(run, dvbf_steps(op->out[OUT], t, 1));
  dvbf_real *d_small = dvbf_gradient_at(run, x), *dw = dvbf_gradient_at(run, op->in[W]);
  dvbf_real *panel = dv_at(run, op->out[PANEL]);
  for (int l = 0, all = lines_of(d, x); l < all; l += d->lines) {
    piece p = piece_at(d, l, all);
    gather_piece(d, &p, panel, d_large);
    if (dw)
      run->product->tn(dw, true, panel, small + in_small(d, &p), p.places, d->small.channels, patch_of(d));
    if (d_small)
      run->product->nn(d_small + in_small(d, &p), NULL, panel, w, p.places, d->small.channels, patch_of(d));
  }
}

/* ---- Both ---- */

/* Numbers of pixels of all images of the output, and their channels. */
static int places_of(const convolution_data *d, dvbf_value y) {
  return y.rows * y.cols / (d->transposed ? d->large.channels : d->small.channels);
}

static int channels_of(const convolution_data *d) {
  return d->transposed ? d->large.channels : d->small.channels;
}

static void forward(const dvbf_op *op, dvbf_run *run) {
  const convolution_data *d = op->data;
  for (int t = 0; t < op->out[OUT].steps; t++) {
    dvbf_value y = dvbf_steps(op->out[OUT], t, 1);
    d->transposed ? transposed_step(op, run, t) : forward_step(op, run, t);
    run->k->activate(d->activation, dv_at(run, y), places_of(d, y), channels_of(d));
  }
}

static void backward(const dvbf_op *op, dvbf_run *run) {
  const convolution_data *d = op->data;
  dvbf_real *db = dvbf_gradient_at(run, op->in[BIAS]);
  for (int t = 0; t < op->out[OUT].steps; t++) {
    dvbf_value y = dvbf_steps(op->out[OUT], t, 1);
    dvbf_real *dy = dvbf_gradient_at(run, y);
    run->k->activate_backward(d->activation, dy, dv_at(run, y), places_of(d, y), channels_of(d));
    bool by_pixel = op->in[BIAS].cols == y.cols;
    if (db)
      run->k->column_sum(db, dy, by_pixel ? y.rows : places_of(d, y), by_pixel ? y.cols : channels_of(d));
    d->transposed ? transposed_backward_step(op, run, t) : backward_step(op, run, t);
  }
}

static const dvbf_op_class convolution_class = {"convolution", forward, backward, NULL};

/* Places along one side. */
static int places_along(int large, int size, int stride, int padding) {
  return large + 2 * padding < size ? 0 : (large + 2 * padding - size) / stride + 1;
}

dvbf_image dvbf_convolved(dvbf_image large, int size, int stride, int padding, int channels) {
  return (dvbf_image){places_along(large.height, size, stride, padding),
                      places_along(large.width, size, stride, padding), channels};
}

static bool fits(dvbf_graph *g, const dvbf_convolution *c, const convolution_data *d) {
  dvbf_image from = c->transposed ? d->small : d->large, to = c->transposed ? d->large : d->small;
  if (c->x.cols == pixels_of(from) && c->out.cols == pixels_of(to) && c->w.rows == patch_of(d) &&
      c->w.cols == d->small.channels && c->x.rows == c->out.rows && c->x.steps == c->out.steps &&
      pixels_of(d->small) > 0 &&
      (c->bias.buffer < 0 || c->bias.cols == to.channels || c->bias.cols == pixels_of(to)))
    return true;
  dvbf_refuse(
      g, "a convolution of %d x %d x %d to %d x %d x %d has values of %d and %d columns, weights %d x %d",
      from.height, from.width, from.channels, to.height, to.width, to.channels, c->x.cols, c->out.cols,
      c->w.rows, c->w.cols);
  return false;
}

void dvbf_convolve(dvbf_graph *g, const dvbf_convolution *c) {
  convolution_data d = {.large = c->large,
                        .small = dvbf_convolved(c->large, c->size, c->stride, c->padding, c->channels),
                        .size = c->size,
                        .stride = c->stride,
                        .padding = c->padding,
                        .transposed = c->transposed,
                        .activation = c->activation};
  if (!fits(g, c, &d)) return;
  int line = product_of(d.small.width, patch_of(&d), 1), all = lines_of(&d, c->x);
  if (!line) {
    dvbf_refuse(g, "a convolution of patches of %d numbers at %d places is too large", patch_of(&d),
                d.small.width);
    return;
  }
  d.lines = line > PANEL_REALS ? 1 : PANEL_REALS / line;
  if (d.lines > all) d.lines = all;
  dvbf_value in[N_IN] = {[X] = c->x, [W] = c->w, [BIAS] = c->bias};
  dvbf_value out[N_OUT] = {[OUT] = c->out, [PANEL] = dvbf_slab_shared_constant(g, 1, d.lines * line)};
  double flops = 2.0 * c->x.steps * (double)all * line * c->channels;
  bool back = dv_graph_has_gradient(g, c->x);
  dv_graph_count_flops(g, flops * (dv_graph_training(g) ? 2 + back : 1));
  dvbf_record(g, &convolution_class, N_IN, in, N_OUT, out, &d, sizeof d);
}
