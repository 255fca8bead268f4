/* Winograd's algorithm for convolutions of 4 x 4 pixels with stride 2 and their transposes (Lavin and Gray
 * 2016, F(2x2, 2x2)): 9/16 of the multiplications, rounding about that of a plain sum. Entry point
 * dv_winograd_run; the transforms are kernels (engine/winograd.c). */

/* Such a convolution is the sum of four with 2 x 2 pixels and stride 1, of the images that every other pixel
 * in every other line makes (phases). Two neighbouring results of a convolution along one line,
 *
 *   y0 = d0 g0 + d1 g1,   y1 = d1 g0 + d2 g1,
 *
 * take three products: y0 = m0 + m1, y1 = m1 + m2 with m0 = (d0 - d1) g0, m1 = d1 (g0 + g1), m2 = (d2 - d1)
 * g1. In both directions, and summed over phases and channels, 2 x 2 results from a window of 6 x 6 pixels
 * take nine products of matrices where 16 were:
 *
 *   V = B' d B   U = G g G'   M_k = V_k U_k, k = 1 .. 9   y = A' M A
 *
 * with B' = (1 -1 0; 0 1 0; 0 -1 1) and A = G = (1 0; 1 1; 0 1). V_k is [windows][4 channels of the large
 * image], U_k [4 channels][channels of the small one]. All that is computed is linear in d, g or y, and the
 * transposed convolution and the gradients are the transposes of these steps:
 *
 *   transposed   M = A y A'   V_k = M_k U_k'   d = B V B'        gradient   dU_k = V_k' M_k   dg = G' dU G */
#include "ops/ops.h"

#include <string.h>

enum { WINDOW_REALS = 1 << 16, FEWEST = 32, CHANNELS = 8 };

bool dv_winograd_fits(dvbf_image large, dvbf_image small, int size, int stride) {
  return size == 4 && stride == 2 && large.channels >= CHANNELS && small.channels >= CHANNELS;
}

/* Reals of one of the nine matrices. */
static size_t seen_of(const dv_winograd *w) {
  return (size_t)w->panel * 4 * (size_t)w->large.channels;
}

static size_t made_of(const dv_winograd *w) {
  return (size_t)w->panel * (size_t)w->small.channels;
}

static size_t weights_of(const dv_winograd *w) {
  return 4 * (size_t)w->large.channels * (size_t)w->small.channels;
}

/* Where the parts of the scratch memory begin. */
typedef struct scratch_parts {
  dvbf_real *v, *m;   /* [9][panel][4 channels of large], [9][panel][channels of small] */
  dvbf_real *u, *du;  /* [9][4 channels of large][channels of small], and their gradient */
  dvbf_real *zeros;   /* [4 channels of large or those of small] */
  dvbf_real *nothing; /* as long; stands for a pixel outside of an image */
} scratch_parts;

static size_t widest_of(const dv_winograd *w) {
  return (size_t)(4 * w->large.channels > w->small.channels ? 4 * w->large.channels : w->small.channels);
}

dv_winograd dv_winograd_of(dvbf_image large, dvbf_image small, int padding, int images) {
  dv_winograd w = {large, small, padding, (small.height + 1) / 2, (small.width + 1) / 2, 0, 0, 0};
  int64_t all = (int64_t)images * w.down * w.across,
          fit = WINDOW_REALS / (9 * (4 * large.channels + small.channels));
  if (fit < FEWEST) fit = FEWEST;
  w.panel = (int)(all < fit ? all : fit);
  size_t weights = 9 * weights_of(&w), room = 9 * (seen_of(&w) + made_of(&w)) + weights + 2 * widest_of(&w);
  w.room = room > 1 << 30 ? 0 : (int)room;
  w.weights = weights > 1 << 30 ? 0 : (int)weights;
  return w;
}

static scratch_parts parts_of(const dv_winograd *w, dvbf_real *room, dvbf_real *u) {
  scratch_parts p = {.v = room};
  p.m = p.v + 9 * seen_of(w);
  p.u = u;
  p.du = p.m + 9 * made_of(w);
  p.zeros = p.du + 9 * weights_of(w);
  p.nothing = p.zeros + widest_of(w);
  memset(p.zeros, 0, widest_of(w) * sizeof *p.zeros);
  return p;
}

/* ---- Pixels of a tile ---- */

/* at[side][side] = the pixels of an image from (y, x) on, `nothing` if these are outside of it. */
static void point_at(dvbf_real **at, int side, dvbf_image image, dvbf_real *pixels, int y, int x,
                     dvbf_real *nothing) {
  size_t channels = (size_t)image.channels;
  for (int i = 0; i < side; i++) {
    bool line = y + i >= 0 && y + i < image.height;
    dvbf_real *first = line ? pixels + (size_t)(y + i) * (size_t)image.width * channels : NULL;
    for (int j = 0; j < side; j++, at++)
      *at = line && x + j >= 0 && x + j < image.width ? first + (size_t)(x + j) * channels : nothing;
  }
}

/* ---- Transforms of the windows first .. first + count - 1 ---- */

typedef struct panel {
  const dv_winograd *w;
  const dv_winograd_kernels *k;
  scratch_parts room;
  size_t first;
  int count;
} panel;

typedef enum window_transform { SEE, SHOW, SPREAD_PIXELS, COLLECT } window_transform;

/* Between the pixels of the large images and V (see, show), or of the small images and M (spread, collect).
 */
static void transform(const panel *p, const dvbf_real *pixels, window_transform way) {
  const dv_winograd *w = p->w;
  bool large = way == SEE || way == SHOW;
  dvbf_image image = large ? w->large : w->small;
  int side = large ? 6 : 2, step = large ? 4 : 2, padding = large ? w->padding : 0;
  size_t each = (size_t)image.height * (size_t)image.width * (size_t)image.channels;
  size_t apart = large ? seen_of(w) : made_of(w), width = (large ? 4 : 1) * (size_t)image.channels;
  size_t across = (size_t)w->across, windows = (size_t)w->down * across;
  dvbf_real *at[36], *row = large ? p->room.v : p->room.m;
  if (way == SEE || way == SPREAD_PIXELS) memset(p->room.nothing, 0, widest_of(w) * sizeof *row);
  for (int i = 0; i < p->count; i++, row += width) {
    size_t window = p->first + (size_t)i, in_image = window % windows;
    int y = (int)(in_image / across), x = (int)(in_image % across);
    point_at(at, side, image, (dvbf_real *)pixels + window / windows * each, step * y - padding,
             step * x - padding, p->room.nothing);
    switch (way) {
    case SEE: p->k->see(row, apart, (const dvbf_real *const *)at, image.channels); break;
    case SHOW: p->k->show(at, row, apart, image.channels); break;
    case SPREAD_PIXELS: p->k->spread(row, apart, (const dvbf_real *const *)at, image.channels); break;
    case COLLECT: p->k->collect(at, row, apart, image.channels); break;
    }
  }
}

/* ---- Weights ---- */

/* Transforms the weights, or adds their gradient to dw. */
static void pass_weights(const panel *p, const dvbf_real *weights, dvbf_real *dw) {
  size_t apart = weights_of(p->w), pixel = apart / 4;
  for (size_t phase = 0; phase < 4; phase++) {
    size_t at = (4 * (phase / 2) + phase % 2) * pixel;
    if (dw)
      p->k->weights_backward(dw + at, pixel, p->room.du + phase * pixel, apart, pixel);
    else
      p->k->weights(p->room.u + phase * pixel, apart, weights + at, pixel, pixel);
  }
}

/* U_k' in the place of each U_k, some rows at a time, which stay in the cache. Nothing is in du yet. */
static void transpose_weights(const panel *p) {
  enum { SOME = 16 };
  size_t rows = 4 * (size_t)p->w->large.channels, cols = (size_t)p->w->small.channels;
  for (int k = 0; k < 9; k++) {
    dvbf_real *u = p->room.u + (size_t)k * weights_of(p->w);
    memcpy(p->room.du, u, weights_of(p->w) * sizeof *u);
    for (size_t first = 0; first < rows; first += SOME)
      for (size_t c = 0; c < cols; c++)
        for (size_t r = first; r < rows && r < first + SOME; r++) u[c * rows + r] = p->room.du[r * cols + c];
  }
}

/* ---- Products ---- */

static void multiply(const panel *p, const dv_products *product, bool to_small) {
  int large = 4 * p->w->large.channels, small = p->w->small.channels;
  for (size_t k = 0; k < 9; k++) {
    dvbf_real *v = p->room.v + k * seen_of(p->w), *m = p->room.m + k * made_of(p->w);
    const dvbf_real *u = p->room.u + k * weights_of(p->w);
    if (to_small)
      product->nn(m, p->room.zeros, v, u, p->count, small, large);
    else
      product->nn(v, p->room.zeros, m, u, p->count, large, small);
  }
}

static void multiply_back(const panel *p, const dv_products *product) {
  for (size_t k = 0; k < 9; k++)
    product->tn(p->room.du + k * weights_of(p->w), p->first > 0, p->room.v + k * seen_of(p->w),
                p->room.m + k * made_of(p->w), p->count, p->w->small.channels, 4 * p->w->large.channels);
}

/* V and M serve the gradient first, and are then overwritten by results. */
static void run_panel(const panel *p, const dv_winograd_job *job, const dv_products *product) {
  if (job->large) transform(p, job->large, SEE);
  if (job->small) transform(p, job->small, SPREAD_PIXELS);
  if (job->dw) multiply_back(p, product);
  if (job->to_small) {
    multiply(p, product, true);
    transform(p, job->to_small, COLLECT);
  }
  if (job->to_large) {
    multiply(p, product, false);
    transform(p, job->to_large, SHOW);
  }
}

void dv_winograd_run(const dv_winograd *w, const dv_winograd_job *job, const dvbf_run *run, dvbf_real *room) {
  panel p = {.w = w, .k = run->k->window, .room = parts_of(w, room, job->u)};
  size_t all = (size_t)job->images * (size_t)w->down * (size_t)w->across, most = (size_t)w->panel;
  if ((job->to_small || job->to_large) && !job->u_is_there) {
    pass_weights(&p, job->w, NULL);
    if (job->to_large) transpose_weights(&p);
  }
  for (p.first = 0; p.first < all; p.first += most) {
    p.count = (int)(all - p.first < most ? all - p.first : most);
    run_panel(&p, job, run->product);
  }
  if (job->dw) pass_weights(&p, NULL, job->dw);
}
