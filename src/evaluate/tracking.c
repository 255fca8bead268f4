/* Objects in images: the centre and spread of what stands out from the background (dv_track_centre,
 * spread_of), and the distance between an object in a predicted image and in the true one
 * (dv_tracker_distance). */
#include "evaluate/tracking.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "math/portable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

bool dv_track_dark(const float *image, size_t pixels, float *room) {
  memcpy(room, image, pixels * sizeof *room);
  qsort(room, pixels, sizeof *room, compare);
  double median = (double)room[pixels / 2];
  return median - (double)room[0] > (double)room[pixels - 1] - median;
}

void dv_track_grey(float *out, const float *image, size_t pixels, size_t channels) {
  for (size_t i = 0; i < pixels; i++) {
    float sum = 0;
    for (size_t c = 0; c < channels; c++) sum += image[i * channels + c];
    out[i] = sum / (float)channels;
  }
}

/* Half of the largest difference to the median is cut off, so that an uneven background does not pull the
 * centre to the middle. weight = factor * pixel - offset is the remainder if it is positive. */
typedef struct weighing {
  double factor, offset;
} weighing;

static weighing weighing_of(const float *image, size_t pixels, bool dark, float *room) {
  memcpy(room, image, pixels * sizeof *room);
  qsort(room, pixels, sizeof *room, compare);
  double median = (double)room[pixels / 2], most = fabs((double)room[dark ? 0 : pixels - 1] - median);
  return dark ? (weighing){-1, 0.5 * most - median} : (weighing){1, 0.5 * most + median};
}

void dv_track_centre(const float *image, size_t height, size_t width, bool dark, float *room, double *across,
                     double *down) {
  size_t pixels = height * width;
  weighing w = weighing_of(image, pixels, dark, room);
  double sum = 0, x = 0, y = 0;
  for (size_t i = 0; i < pixels; i++) {
    double weight = w.factor * (double)image[i] - w.offset;
    size_t line = i / width, column = i % width;
    if (!(weight > 0)) continue;
    sum += weight;
    x += weight * (double)column;
    y += weight * (double)line;
  }
  *across = sum > 0 ? x / sum : NAN;
  *down = sum > 0 ? y / sum : NAN;
}

/* The root of the mean squared distance from the centre, with the same weights. */
static double spread_of(const float *image, size_t height, size_t width, bool dark, float *room,
                        double across, double down) {
  size_t pixels = height * width;
  weighing w = weighing_of(image, pixels, dark, room);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < pixels; i++) {
    double weight = w.factor * (double)image[i] - w.offset;
    size_t line = i / width, column = i % width;
    double x = (double)column - across, y = (double)line - down;
    if (!(weight > 0)) continue;
    sum += weight;
    squares += weight * (x * x + y * y);
  }
  return sum > 0 ? sqrt(squares / sum) : NAN;
}

/* ---- Distance of two images ---- */

enum { LOOKS = 200 };            /* frames that are looked at */
static const double SMALL = 0.2; /* of the image: what stands out is an object when it spreads less */

static bool seen(const float *image, size_t values) {
  for (size_t i = 0; i < values; i++)
    if (!isfinite(image[i])) return false;
  return true;
}

/* Whether objects are dark, and whether there are any, from frames of all sequences. */
static void look(dv_tracker *t, const dvbf_sequences *s, float *buffer, float *room) {
  size_t pixels = t->height * t->width, looks = 0, objects = 0, dark = 0, frames = dv_sequences_frames(s);
  size_t apart = frames / LOOKS + 1;
  float *grey = room + pixels;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0, f = 0; i < s->count; i++)
      for (size_t k = 0; k < dvbf_sequence_length(s, i); k++, f++) {
        if (f % apart) continue;
        const float *x = dv_sequence_x(s, i, k, 1, buffer);
        double across, down;
        if (!seen(x, s->n_x)) continue;
        dv_track_grey(grey, x, pixels, t->channels);
        if (!pass) {
          looks++;
          dark += dv_track_dark(grey, pixels, room);
        } else {
          dv_track_centre(grey, t->height, t->width, t->dark, room, &across, &down);
          double spread = spread_of(grey, t->height, t->width, t->dark, room, across, down);
          objects += spread < SMALL * (double)(t->height < t->width ? t->height : t->width);
        }
      }
    t->dark = 2 * dark > looks;
  }
  if (10 * objects < 9 * looks || !looks) *t = (dv_tracker){0};
}

dvbf_status dv_tracker_of(dv_tracker *out, const dvbf_data *data, const dvbf_sequences *s,
                          dvbf_error *error) {
  *out = (dv_tracker){data->image_height, data->image_width, dv_image_channels(data), false};
  size_t pixels = out->height * out->width;
  if (!pixels || pixels * out->channels != s->n_x) {
    *out = (dv_tracker){0};
    return DVBF_OK;
  }
  float *room = dv_calloc(2 * pixels, sizeof *room), *buffer = NULL;
  dvbf_status status =
      room ? dv_sequence_buffer(&buffer, s, 1, error) : dv_fail_memory(error, "finding objects");
  if (!status) look(out, s, buffer, room);
  if (!status) status = dv_sequences_intact(s, error);
  DV_FREE(room, buffer);
  return status;
}

double dv_tracker_distance(const dv_tracker *t, const float *one, const float *other, float *room) {
  const float *images[] = {one, other};
  double across[2], down[2];
  size_t pixels = t->height * t->width;
  for (int i = 0; i < 2; i++) {
    if (!seen(images[i], pixels * t->channels)) return NAN;
    dv_track_grey(room + pixels, images[i], pixels, t->channels);
    dv_track_centre(room + pixels, t->height, t->width, t->dark, room, &across[i], &down[i]);
  }
  return dv_hypot(across[0] - across[1], down[0] - down[1]);
}
