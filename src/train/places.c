#include "train/places.h"

#include "base/algebra.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

int dv_places_state(int order) {
  return DV_PLACES_BLOCKS * dv_places_moments(order);
}

int dv_places_moments(int order) {
  return order * (order + 3) / 2;
}

/* ---- What each pixel counts ---- */

/* Coordinates go from -1 to 1 along the longer side. All channels count the same. */
static void fill_ramps(dvbf_real *axes, int order, int height, int width, int channels) {
  double longer = height > width ? height : width;
  size_t at = 0, n_x = (size_t)height * (size_t)width * (size_t)channels;
  for (int row = 0; row < height; row++)
    for (int col = 0; col < width; col++)
      for (int channel = 0; channel < channels; channel++, at++) {
        double y = (2 * row - height + 1) / longer, x = (2 * col - width + 1) / longer;
        dvbf_real *to = axes + at;
        for (int power = 1; power <= order; power++)
          for (int k = 0; k <= power; k++, to += n_x) {
            double value = 1;
            for (int i = 0; i < power; i++) value *= i < k ? y : x;
            *to = (dvbf_real)value;
          }
      }
}

static dvbf_status make_ramps(dv_components *out, int order, size_t n_x, size_t height, size_t width,
                              dvbf_error *error) {
  size_t pixels = height * width;
  if (!height || !width || n_x % pixels)
    return dv_fail(error, DVBF_ARGUMENT,
                   "start = places: x has to be images, with their height and width in the data; or set "
                   "start = random");
  *out = (dv_components){.n_x = (int)n_x, .count = dv_places_moments(order)};
  out->axes = dv_calloc_aligned((size_t)out->count * n_x, sizeof *out->axes);
  if (!out->axes) return dv_fail_memory(error, "looking at places");
  fill_ramps(out->axes, order, (int)height, (int)width, (int)(n_x / pixels));
  return DVBF_OK;
}

dvbf_status dv_places_ramps(dv_components *out, const dvbf_model *whole, const dvbf_data *data,
                            dvbf_error *error) {
  int order = (int)whole->settings->places;
  return make_ramps(out, order ? order : DV_PLACES_HIGHEST, (size_t)whole->n_x, data->image_height,
                    data->image_width, error);
}

static dvbf_status make_inside(dv_places *p, const dv_components *c, dvbf_error *error) {
  p->components = c->count;
  p->inside = dv_calloc_aligned((size_t)p->ramps.count * (size_t)c->count, sizeof *p->inside);
  if (!p->inside) return dv_fail_memory(error, "looking at places");
  dv_kernels_best()->product->nt(p->inside, false, p->ramps.axes, c->axes, p->ramps.count, c->n_x, c->count);
  return DVBF_OK;
}

/* ---- How many moments ---- */

/* Some frames, spread evenly, that are compared with each other. */
typedef struct looks {
  size_t count, n_x;
  float *x;              /* [count][n_x] */
  double *y;             /* [count][DV_PLACES_MOMENTS] all moments, in units of their deviation */
  size_t *sequence, *at; /* [count] where each stands */
  double variance;       /* of a frame */
  double *light;         /* [count] the sum of a frame */
  double moving;         /* how far frames are from their mean, summed over pixels */
} looks;

static double apart(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double d = (double)a[i] - (double)b[i];
    sum += d * d;
  }
  return sum;
}

static double apart_by(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/* Squared distance in x from frame f to the one that is nearest by its first `moments` moments; 0 moments: by
 * x itself. Frames of the same sequence that are near in time do not count. Negative: there is none. */
static double nearest(const looks *l, size_t f, size_t moments) {
  enum { NEAR = 50 };
  size_t found = l->count;
  double least = INFINITY;
  for (size_t g = 0; g < l->count; g++) {
    size_t between = l->at[f] > l->at[g] ? l->at[f] - l->at[g] : l->at[g] - l->at[f];
    if (l->sequence[f] == l->sequence[g] && between < NEAR) continue;
    double d = moments ? apart_by(l->y + f * DV_PLACES_MOMENTS, l->y + g * DV_PLACES_MOMENTS, moments)
                       : apart(l->x + f * l->n_x, l->x + g * l->n_x, l->n_x);
    if (d < least) least = d, found = g;
  }
  return found < l->count ? apart(l->x + f * l->n_x, l->x + found * l->n_x, l->n_x) : -1;
}

/* Mean of that over some of the frames. */
static double unlike(const looks *l, size_t moments) {
  enum { SOME = 200 };
  double sum = 0, count = 0;
  for (size_t f = 0; f < l->count; f += 1 + l->count / SOME) {
    double d = nearest(l, f, moments);
    if (d >= 0) sum += d, count += 1;
  }
  return count > 0 ? sum / count : 0;
}

static void standardise(double *y, size_t rows, size_t n, size_t k) {
  double sum = 0, squares = 0;
  for (size_t f = 0; f < rows; f++) sum += y[f * n + k], squares += y[f * n + k] * y[f * n + k];
  double mean = sum / (double)rows, variance = squares / (double)rows - mean * mean;
  for (size_t f = 0; f < rows; f++) y[f * n + k] = variance > 0 ? (y[f * n + k] - mean) / sqrt(variance) : 0;
}

/* Takes the frames. What is missing counts as black. */
static dvbf_status gather(looks *l, const dvbf_sequences *s, const dv_components *ramps, dvbf_error *error) {
  size_t all = dv_sequences_frames(s), every = 1 + all / l->count, next = 0, before = 0, f = 0;
  double squares = 0, *mean = dv_calloc(l->n_x, sizeof *mean);
  dvbf_status status = mean ? DVBF_OK : dv_fail_memory(error, "looking at places");
  for (size_t i = 0; i < s->count && !status; before += dvbf_sequence_length(s, i), i++)
    for (; next < before + dvbf_sequence_length(s, i) && f < l->count; next += every, f++) {
      float *x = l->x + f * l->n_x;
      const float *from = dv_sequence_x(s, i, next - before, 1, x);
      l->sequence[f] = i, l->at[f] = next - before;
      for (size_t k = 0; k < l->n_x; k++) x[k] = isnan(from[k]) ? 0 : from[k];
      for (size_t k = 0; k < l->n_x; k++) {
        mean[k] += (double)x[k], squares += (double)x[k] * (double)x[k];
        l->light[f] += (double)x[k];
      }
      for (size_t m = 0; m < DV_PLACES_MOMENTS; m++) {
        const dvbf_real *ramp = ramps->axes + m * l->n_x;
        for (size_t k = 0; k < l->n_x; k++) l->y[f * DV_PLACES_MOMENTS + m] += (double)ramp[k] * (double)x[k];
      }
    }
  l->count = f;
  l->variance = squares / (double)f;
  for (size_t k = 0; k < l->n_x && !status; k++) {
    mean[k] /= (double)f;
    l->variance -= mean[k] * mean[k];
    for (size_t i = 0; i < f; i++) l->moving += fabs((double)l->x[i * l->n_x + k] - mean[k]) / (double)f;
  }
  for (size_t m = 0; m < DV_PLACES_MOMENTS; m++) standardise(l->y, f, DV_PLACES_MOMENTS, m);
  dv_free(mean);
  return status ? status : dv_sequences_intact(s, error);
}

/* Whether the first moments go round a centre, as those of what turns about a point: all are about as far
 * from it. */
static bool goes_round(const looks *l) {
  double sum = 0, squares = 0, n = (double)l->count;
  for (size_t f = 0; f < l->count; f++) {
    double square = apart_by(l->y + f * DV_PLACES_MOMENTS, (double[2]){0}, 2);
    sum += sqrt(square), squares += square;
  }
  double mean = sum / n;
  return squares / n - mean * mean < 0.04 * mean * mean;
}

/* Whether all frames have the same light, so that their first moments are those of what moves: before a
 * texture, or with obstacles, they tell of what is covered too. */
static bool is_steady(const looks *l) {
  double sum = 0, squares = 0, n = (double)l->count;
  for (size_t f = 0; f < l->count; f++) sum += l->light[f], squares += l->light[f] * l->light[f];
  return sqrt(fmax(0, squares / n - sum / n * sum / n)) < 0.015 * l->moving;
}

static int choose_order(const looks *l) {
  double best = unlike(l, 0), one = unlike(l, (size_t)dv_places_moments(1)),
         all = unlike(l, (size_t)dv_places_moments(DV_PLACES_HIGHEST));
  bool told = one <= 2 * best + 0.05 * l->variance;
  if (told && goes_round(l)) return 0;
  if (told && is_steady(l)) return 1;
  return all <= 4 * best + 0.1 * l->variance ? DV_PLACES_HIGHEST : 0;
}

dvbf_status dv_places_order(int *out, const dvbf_sequences *s, size_t height, size_t width,
                            dvbf_error *error) {
  enum { FRAMES = 2000, NUMBERS = 1 << 25 };
  dv_components ramps = {0};
  size_t most = NUMBERS / s->n_x < FRAMES ? NUMBERS / s->n_x : FRAMES;
  looks l = {.count = most > 2 ? most : 2, .n_x = s->n_x};
  dvbf_status status = make_ramps(&ramps, DV_PLACES_HIGHEST, s->n_x, height, width, error);
  l.x = dv_calloc(l.count, l.n_x * sizeof *l.x);
  l.y = dv_calloc(l.count, DV_PLACES_MOMENTS * sizeof *l.y);
  l.sequence = dv_calloc(l.count, sizeof *l.sequence);
  l.at = dv_calloc(l.count, sizeof *l.at);
  l.light = dv_calloc(l.count, sizeof *l.light);
  if (!status && (!l.x || !l.y || !l.sequence || !l.at || !l.light))
    status = dv_fail_memory(error, "looking at places");
  if (!status) status = gather(&l, s, &ramps, error);
  if (!status) *out = choose_order(&l);
  dv_components_free(&ramps);
  DV_FREE(l.x, l.y, l.sequence, l.at, l.light);
  return status;
}

/* ---- Moments ---- */

static dvbf_status find_moments(dv_places *p, const dv_pictures *from, dvbf_error *error) {
  const dvbf_data *data = from->data;
  dvbf_status status =
      make_ramps(&p->ramps, p->order, (size_t)from->whole->n_x, data->image_height, data->image_width, error);
  if (!status) status = dv_components_project(&p->data.train, &p->ramps, &data->train, from->whole, error);
  if (!status && data->valid.count)
    status = dv_components_project(&p->data.valid, &p->ramps, &data->valid, from->whole, error);
  return status;
}

/* Moments of missing frames, on a line between those that are seen. */
static void fill_gaps(dvbf_sequences *y) {
  size_t n = y->n_x;
  for (size_t i = 0; i < y->count && y->gaps; i++)
    for (size_t k = 0; k < n; k++) {
      float *at = y->x + dvbf_sequence_start(y, i) * n + k;
      size_t steps = dvbf_sequence_length(y, i), seen = steps;
      for (size_t t = 0; t <= steps; t++) {
        if (t < steps && isnan(at[t * n])) continue;
        for (size_t g = seen < steps ? seen + 1 : 0; g < t; g++) {
          double after = t < steps ? (double)at[t * n] : NAN,
                 before = seen < steps ? (double)at[seen * n] : after;
          if (isnan(after)) after = before;
          double share = seen < steps ? (double)(g - seen) / (double)(t - seen) : 0;
          at[g * n] = isnan(before) ? 0 : (float)(before + share * (after - before));
        }
        seen = t;
      }
    }
  y->gaps = false;
}

/* Rotates moments to the axes along which they do not go together: powers of the same coordinates do, and
 * then what tells images apart is small beside what does not. `work` is [n]. */
static void rotate(float *y, size_t rows, const double *vectors, double *work, size_t n) {
  for (; rows--; y += n) {
    for (size_t k = 0; k < n; k++) {
      work[k] = 0;
      for (size_t j = 0; j < n; j++) work[k] += vectors[k * n + j] * (double)y[j];
    }
    for (size_t k = 0; k < n; k++) y[k] = (float)work[k];
  }
}

/* Their products, about the means, summed over all frames. */
static void add_up(double *products, double *mean, const dvbf_sequences *y) {
  size_t n = y->n_x;
  double rows = (double)dv_sequences_frames(y);
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < y->count; i++) {
      const float *at = y->x + dvbf_sequence_start(y, i) * n;
      for (size_t t = 0; t < dvbf_sequence_length(y, i); t++, at += n)
        for (size_t k = 0; k < n; k++) {
          if (!round) mean[k] += (double)at[k] / rows;
          for (size_t j = 0; round && j < n; j++)
            products[k * n + j] += ((double)at[k] - mean[k]) * ((double)at[j] - mean[j]);
        }
    }
}

/* Moments, and what each pixel counts in them, along their principal axes. */
static dvbf_status straighten(dv_places *p, dvbf_error *error) {
  size_t n = (size_t)p->ramps.count, n_x = (size_t)p->ramps.n_x;
  double *products = dv_calloc(n, n * sizeof *products), *vectors = dv_calloc(n, n * sizeof *vectors),
         *work = dv_calloc(n, sizeof *work);
  float *column = dv_calloc(n_x, n * sizeof *column);
  if (!products || !vectors || !work || !column) {
    DV_FREE(products, vectors, work, column);
    return dv_fail_memory(error, "looking at places");
  }
  add_up(products, work, &p->data.train);
  dv_diagonalise(products, vectors, (int)n);
  rotate(p->data.train.x, dv_sequences_frames(&p->data.train), vectors, work, n);
  rotate(p->data.valid.x, dv_sequences_frames(&p->data.valid), vectors, work, n);
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < n_x; i++) column[i * n + k] = (float)p->ramps.axes[k * n_x + i];
  rotate(column, n_x, vectors, work, n);
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < n_x; i++) p->ramps.axes[k * n_x + i] = (dvbf_real)column[i * n + k];
  DV_FREE(products, vectors, work, column);
  return DVBF_OK;
}

/* Mean and deviation of moment k, and the deviation of its changes. */
static void measure(dv_places *p, size_t k) {
  const dvbf_sequences *y = &p->data.train;
  double sum = 0, squares = 0, frames = 0, change = 0, changes = 0;
  for (size_t i = 0; i < y->count; i++) {
    const float *at = y->x + dvbf_sequence_start(y, i) * y->n_x + k;
    for (size_t t = 0; t < dvbf_sequence_length(y, i); t++) {
      double v = (double)at[t * y->n_x], d = t ? v - (double)at[(t - 1) * y->n_x] : 0;
      sum += v, squares += v * v, frames += 1;
      change += d * d, changes += t ? 1 : 0;
    }
  }
  double variance = squares / frames - sum / frames * sum / frames;
  p->mean[k] = sum / frames;
  p->deviation[k] = variance > 0 ? sqrt(variance) : 0;
  p->pace[k] = change > 0 ? sqrt(change / changes) : 0;
}

/* What hardly varies beside the others is noise, which is not blown up. */
static void limit(dv_places *p, size_t n) {
  const double least = 0.01;
  double most = 0;
  for (size_t k = 0; k < n; k++) most = fmax(most, p->deviation[k]);
  for (size_t k = 0; k < n; k++) {
    p->deviation[k] = fmax(p->deviation[k], most > 0 ? least * most : 1);
    p->pace[k] = fmax(p->pace[k], least * p->deviation[k]);
  }
}

dvbf_status dv_places_init(dv_places *p, const dv_pictures *from, int order, dvbf_error *error) {
  const dvbf_data *data = from->data;
  *p = (dv_places){.order = order, .left_out = from->components->left_out};
  dvbf_status status =
      order ? DVBF_OK
            : dv_places_order(&p->order, &data->train, data->image_height, data->image_width, error);
  if (!p->order) p->order = DV_PLACES_HIGHEST;
  if (!status) status = find_moments(p, from, error);
  if (status) return status;
  fill_gaps(&p->data.train);
  fill_gaps(&p->data.valid);
  status = straighten(p, error);
  if (!status) status = make_inside(p, from->components, error);
  if (status) return status;
  size_t n = (size_t)p->ramps.count;
  p->mean = dv_calloc(3, n * sizeof *p->mean);
  if (!p->mean) return dv_fail_memory(error, "looking at places");
  p->deviation = p->mean + n;
  p->pace = p->deviation + n;
  for (size_t k = 0; k < n; k++) measure(p, k);
  limit(p, n);
  return DVBF_OK;
}

void dv_places_clear(dv_places *p) {
  dv_components_free(&p->ramps);
  dvbf_sequences_free(&p->data.train);
  dvbf_sequences_free(&p->data.valid);
  DV_FREE(p->inside, p->mean);
  *p = (dv_places){0};
}
