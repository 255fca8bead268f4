/* Convolution with stride and padding, and its transpose, as products of patches with one matrix of weights
 * (dvbf_convolve). At most a panel of patches is in memory. Patches of 4 x 4 pixels with stride 2 and several
 * channels use the faster convolution_winograd.c. */

/* Convolution with stride s and padding p, and its transpose. Images are [height][width][channels]. Between a
 * large image L and a small one S, with weights W [size][size][channels of L][channels of S]:
 *
 *   convolution   S[y][x] = f(b + sum_ij L[s y + i - p][s x + j - p] W[i][j])        0 outside of L
 *   transposed    L = f(b + sum over all y, x, i, j with s y + i - p, s x + j - p inside of L of S[y][x]
 * W[i][j]^T)
 *
 * The patches of L that the places of S see, side by side as rows of a matrix P, make both a product: S = P
 * W, and L = the sum of the patches P = S W^T at their places. Backward, with d for gradients before f:
 *
 *   convolution   dW += P^T dS      dP = dS W^T, added to dL at their places
 *   transposed    dW += P(dL)^T S   dS += P(dL) W
 *
 * A panel of P holds some lines of places. */
#include "ops/ops.h"

#include <string.h>

typedef struct convolution_data {
  dvbf_image large, small;
  int size, stride, padding;
  bool transposed;
  dvbf_activation activation;
  int lines; /* of places in a panel */
  bool by_windows;
  dv_winograd windows;
} convolution_data;

enum { CONVOLVED, W, BIAS, N_IN };
enum { OUT, PANEL, TRANSFORMED, N_OUT };
enum { PANEL_REALS = 1 << 15 };

/* a b c, or 0 if that is too large for any value. */
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

/* First place whose patch begins inside of a line, and the first one behind it whose patch ends outside. */
static void inner_places(const convolution_data *d, int *first, int *last) {
  int room = d->large.width + d->padding - d->size;
  *first = (d->padding + d->stride - 1) / d->stride;
  *last = room < 0 ? 0 : room / d->stride + 1;
  if (*last > d->small.width) *last = d->small.width;
  if (*first > *last) *first = *last;
}

/* Copies strips of `width` numbers; few of them are not worth a call each. */
static void copy_strips(dvbf_real *to, size_t apart, const dvbf_real *from, size_t step, int count,
                        size_t width) {
  for (int x = 0; x < count && width == 4; x++)
    memcpy(to + (size_t)x * apart, from + (size_t)x * step, 4 * sizeof *to);
  for (int x = 0; x < count && width == 12; x++)
    memcpy(to + (size_t)x * apart, from + (size_t)x * step, 12 * sizeof *to);
  for (int x = 0; x < count && width != 4 && width != 12; x++)
    memcpy(to + (size_t)x * apart, from + (size_t)x * step, width * sizeof *to);
}

/* Adds strips to neighbouring places of an image, which may overlap. */
static void add_strips(dvbf_real *to, size_t step, const dvbf_real *from, size_t apart, int count,
                       size_t width) {
  for (int x = 0; x < count; x++, to += step, from += apart) {
    size_t k = 0;
    for (; k + 4 <= width; k += 4) {
      dvbf_real some[4];
      memcpy(some, to + k, sizeof some);
      for (int i = 0; i < 4; i++) some[i] += from[k + (size_t)i];
      memcpy(to + k, some, sizeof some);
    }
    for (; k < width; k++) to[k] += from[k];
  }
}

/* One line of the large image and line i of the patches that see it: where place x is in both. */
typedef struct sights {
  dvbf_real *patch;   /* of place 0 */
  dvbf_real *image;   /* of the first pixel of the line */
  size_t apart, step; /* of places in the panel, and in the line */
  size_t channels;
} sights;

/* The strip of one place at the edge of the image, copied or added. */
static void edge_place(const convolution_data *d, const sights *s, int x, bool gathers) {
  int left = x * d->stride - d->padding, beyond = left + d->size - d->large.width;
  int from = left < 0 ? -left : 0, to = beyond > 0 ? d->size - beyond : d->size; /* inside of the image */
  size_t width = (size_t)d->size * s->channels, count = (size_t)(to - from) * s->channels;
  dvbf_real *patch = s->patch + (size_t)x * s->apart, *in_patch = patch + (size_t)from * s->channels;
  dvbf_real *in_image = s->image + (ptrdiff_t)(left + from) * (ptrdiff_t)s->channels;
  if (gathers) memset(patch, 0, width * sizeof *patch);
  if (from >= to) return;
  gathers ? copy_strips(in_patch, s->apart, in_image, s->step, 1, count)
          : add_strips(in_image, s->step, in_patch, s->apart, 1, count);
}

/* Between a line of the image and line i of the patches: copied to the patches, or added to the image. */
static void pass_line(const convolution_data *d, const sights *s, bool gathers) {
  int first, last;
  inner_places(d, &first, &last);
  size_t width = (size_t)d->size * s->channels;
  for (int x = 0; x < first; x++) edge_place(d, s, x, gathers);
  if (first < last) {
    dvbf_real *patch = s->patch + (size_t)first * s->apart;
    dvbf_real *image = s->image + (size_t)(first * d->stride - d->padding) * s->channels;
    gathers ? copy_strips(patch, s->apart, image, s->step, last - first, width)
            : add_strips(image, s->step, patch, s->apart, last - first, width);
  }
  for (int x = last; x < d->small.width; x++) edge_place(d, s, x, gathers);
}

/* The patches of a line of places: gathered into the panel, 0 outside of the image, or added to the image. */
static void pass_patches(const convolution_data *d, dvbf_real *panel, const dvbf_real *large, int y,
                         bool gathers) {
  size_t channels = (size_t)d->large.channels, width = (size_t)d->size * channels;
  for (int i = 0; i < d->size; i++) {
    int line = y * d->stride + i - d->padding;
    bool inside = line >= 0 && line < d->large.height;
    sights s = {.patch = panel + (size_t)i * width,
                .image = (dvbf_real *)large + (size_t)(inside ? line : 0) * (size_t)d->large.width * channels,
                .apart = (size_t)patch_of(d),
                .step = (size_t)d->stride * channels,
                .channels = channels};
    for (int x = 0; x < d->small.width && !inside && gathers; x++)
      memset(s.patch + (size_t)x * s.apart, 0, width * sizeof *panel);
    if (inside) pass_line(d, &s, gathers);
  }
}

/* The same for some lines of places, counted through the images of all steps. */
static void pass_lines(const convolution_data *d, int first, int lines, dvbf_real *panel,
                       const dvbf_real *large, bool gathers) {
  size_t line = (size_t)d->small.width * (size_t)patch_of(d), image = (size_t)pixels_of(d->large);
  for (int at = first; at < first + lines; at++, panel += line)
    pass_patches(d, panel, large + (size_t)(at / d->small.height) * image, at % d->small.height, gathers);
}

/* The weights the other way round, [channels of small][patch]. */
static void transpose(const convolution_data *d, dvbf_real *to, const dvbf_real *w) {
  int patch = patch_of(d), channels = d->small.channels;
  for (int i = 0; i < patch; i++)
    for (int c = 0; c < channels; c++) to[c * patch + i] = w[i * channels + c];
}

/* The same as dv_winograd_run, for any size and stride. */
static void run_patches(const convolution_data *d, const dv_winograd_job *job, dvbf_run *run,
                        dvbf_real *panel) {
  int patch = patch_of(d), channels = d->small.channels, all = job->images * d->small.height;
  dvbf_real *turned = panel + (size_t)d->lines * (size_t)d->small.width * (size_t)patch;
  dvbf_real *zeros = turned + (size_t)patch * (size_t)channels;
  memset(zeros, 0, (size_t)patch * sizeof *zeros);
  if (job->to_large) transpose(d, turned, job->w);
  for (int l = 0; l < all; l += d->lines) {
    int lines = all - l < d->lines ? all - l : d->lines, places = lines * d->small.width;
    size_t at = (size_t)l * (size_t)d->small.width * (size_t)channels;
    if (job->large) pass_lines(d, l, lines, panel, job->large, true);
    if (job->dw) run->product->tn(job->dw, true, panel, job->small + at, places, channels, patch);
    if (job->to_small) run->product->nn(job->to_small + at, NULL, panel, job->w, places, channels, patch);
    if (!job->to_large) continue;
    run->product->nn(panel, zeros, job->small + at, turned, places, patch, channels);
    pass_lines(d, l, lines, panel, job->to_large, false);
  }
}

static void run_job(const dvbf_op *op, dvbf_run *run, dv_winograd_job job) {
  const convolution_data *d = op->data;
  dvbf_real *panel = dv_at(run, op->out[PANEL]);
  job.w = dv_at(run, op->in[W]);
  job.u = dv_at(run, op->out[TRANSFORMED]);
  job.u_is_there = dv_is_unchanged(run, op->in[W]);
  job.images = dv_rows(op->in[CONVOLVED]);
  if (d->by_windows)
    dv_winograd_run(&d->windows, &job, run, panel);
  else
    run_patches(d, &job, run, panel);
}

static int channels_of(const convolution_data *d) {
  return d->transposed ? d->large.channels : d->small.channels;
}

static void forward(const dvbf_op *op, dvbf_run *run) {
  const convolution_data *d = op->data;
  dvbf_value y = op->out[OUT];
  dvbf_value b = op->in[BIAS]; /* of each pixel or each channel */
  dv_fill(dv_at(run, y), dv_rows(y) * (size_t)y.cols, dv_at(run, b), (size_t)b.cols);
  const dvbf_real *x = dv_at(run, op->in[CONVOLVED]);
  run_job(op, run,
          d->transposed ? (dv_winograd_job){.small = x, .to_large = dv_at(run, y)}
                        : (dv_winograd_job){.large = x, .to_small = dv_at(run, y)});
  run->k->activate(d->activation, dv_at(run, y), dv_rows(y) * (y.cols / channels_of(d)), channels_of(d));
}

static void backward(const dvbf_op *op, dvbf_run *run) {
  const convolution_data *d = op->data;
  dvbf_value y = op->out[OUT], b = op->in[BIAS];
  dvbf_real *dy = dvbf_gradient_at(run, y), *dx = dvbf_gradient_at(run, op->in[CONVOLVED]);
  dvbf_real *dw = dvbf_gradient_at(run, op->in[W]), *db = dvbf_gradient_at(run, b);
  const dvbf_real *x = dv_at(run, op->in[CONVOLVED]);
  run->k->activate_backward(d->activation, dy, dv_at(run, y), dv_rows(y) * (y.cols / channels_of(d)),
                            channels_of(d));
  if (db) run->k->column_sum(db, dy, dv_rows(y) * (y.cols / b.cols), b.cols);
  if (!dw && !dx) return;
  run_job(op, run,
          d->transposed ? (dv_winograd_job){.large = dy, .small = dw ? x : NULL, .to_small = dx, .dw = dw}
                        : (dv_winograd_job){.large = dw ? x : NULL, .small = dy, .to_large = dx, .dw = dw});
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
  int line = product_of(d.small.width, patch_of(&d), 1), all = dv_rows(c->x) * d.small.height;
  int weights = product_of(patch_of(&d), c->channels + 1, 1);
  if (!line || !weights) {
    dvbf_refuse(g, "a convolution of patches of %d numbers at %d places is too large", patch_of(&d),
                d.small.width);
    return;
  }
  d.by_windows = dv_winograd_fits(d.large, d.small, d.size, d.stride);
  d.windows = dv_winograd_of(d.large, d.small, d.padding, dv_rows(c->x));
  d.lines = line > PANEL_REALS ? 1 : PANEL_REALS / line;
  if (d.lines > all) d.lines = all;
  int room = d.by_windows ? d.windows.room : d.lines * line + weights;
  dvbf_value in[N_IN] = {[CONVOLVED] = c->x, [W] = c->w, [BIAS] = c->bias};
  dvbf_value out[N_OUT] = {
      [OUT] = c->out, [PANEL] = dvbf_slab_shared_constant(g, 1, room), [TRANSFORMED] = DVBF_NONE};
  if (d.by_windows) out[TRANSFORMED] = dvbf_slab_shared_constant(g, 1, d.windows.weights);
  if (d.by_windows && !dv_graph_training(g))
    dvbf_keep(g, out[TRANSFORMED]); /* for runs with the same weights */
  double flops = 2.0 * (double)all * line * c->channels;
  bool back = dv_graph_has_gradient(g, c->x);
  g->flops += flops * (dv_graph_training(g) ? 2 + back : 1);
  dvbf_record(g, &convolution_class, N_IN, in, N_OUT, out, &d, sizeof d);
}
