#include "evaluate/track.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

bool dv_track_dark(const float *images, size_t count, size_t pixels, float *room) {
  double above = 0, below = 0;
  for (size_t i = 0; i < count; i++) {
    memcpy(room, images + i * pixels, pixels * sizeof *room);
    qsort(room, pixels, sizeof *room, compare);
    above += (double)room[pixels - 1] - (double)room[pixels / 2];
    below += (double)room[pixels / 2] - (double)room[0];
  }
  return below > above;
}

void dv_track_grey(float *out, const float *image, size_t pixels, size_t channels) {
  for (size_t i = 0; i < pixels; i++) {
    float sum = 0;
    for (size_t c = 0; c < channels; c++) sum += image[i * channels + c];
    out[i] = sum / (float)channels;
  }
}

/* Half of the largest difference to the median is cut off, so that a background that is not quite even does
 * not pull the centre to the middle. weight = factor * pixel - offset is what is left, where it is positive.
 */
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

double dv_track_spread(const float *image, size_t height, size_t width, bool dark, float *room, double across,
                       double down) {
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
