/* How long a prediction stays valid, and how far the object in it is from where it should be: of noise-free
 * predictions of the long sequences, by their images. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"
#include "study/measure.h"

#include <math.h>

/* Where the brightness of an image is, in pixels; false where it is dark. */
static bool centre_of(double out[2], const float *image, size_t height, size_t width) {
  double sum = 0;
  out[0] = out[1] = 0;
  for (size_t i = 0; i < height; i++)
    for (size_t j = 0; j < width; j++) {
      double value = (double)image[i * width + j];
      if (!(value > 0)) continue;
      sum += value;
      out[0] += value * (double)i;
      out[1] += value * (double)j;
    }
  out[0] /= sum;
  out[1] /= sum;
  return sum > 1e-6;
}

/* Distance of the centres of two images; that of an image without one is the height of the image. */
static double distance_of(const dvbf_data *data, const float *a, const float *b) {
  double p[2] = {0}, q[2] = {0};
  size_t height = data->image_height, width = data->image_width;
  bool seen = centre_of(p, a, height, width) && centre_of(q, b, height, width);
  double apart = dv_hypot(p[0] - q[0], p[1] - q[1]);
  return seen && isfinite(apart) ? apart : (double)height;
}

static double squared_error(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
  return sum;
}

/* Total variance of a frame, which the mean image has as its error. */
static double variance_of(const dvbf_sequences *s) {
  double total = 0, frames = (double)(s->count * s->steps);
  for (size_t i = 0; i < s->n_x; i++) {
    double sum = 0, squares = 0;
    for (size_t k = i; k < s->count * s->steps * s->n_x; k += s->n_x) {
      sum += (double)s->x[k];
      squares += (double)s->x[k] * (double)s->x[k];
    }
    total += squares / frames - sum / frames * (sum / frames);
  }
  return total;
}

void dv_centres_measure(dv_centres *out, const dvbf_data *data, const float *x, size_t observed) {
  const dvbf_sequences *s = &data->test;
  double most = 0.5 * variance_of(s), near = 0, far = 0;
  size_t steps = s->steps - observed, first = steps < 10 ? steps : 10;
  *out = (dv_centres){0};
  for (size_t i = 0; i < s->count; i++) {
    bool valid = true, close = true;
    for (size_t t = observed; t < s->steps; t++) {
      size_t at = (i * s->steps + t) * s->n_x;
      double apart = distance_of(data, x + at, s->x + at);
      valid = valid && squared_error(x + at, s->x + at, s->n_x) <= most;
      close = close && apart <= 1;
      out->valid += valid;
      out->close += close;
      far += apart;
      near += t - observed < first ? apart : 0;
    }
  }
  double count = (double)s->count;
  out->valid /= count;
  out->close /= count;
  out->near = near / count / (double)first;
  out->far = far / count / (double)steps;
}
