/* Scales map values to lengths on the page; ticks are round numbers along them. */
#ifndef DV_SCALE_H
#define DV_SCALE_H

#include <stdbool.h>
#include <stddef.h>

enum { DV_TICKS = 48 };

typedef struct dv_scale {
  double low, high; /* low < high; both > 0 when logarithmic */
  bool logarithmic;
  bool whole; /* ticks are whole numbers */
} dv_scale;

typedef struct dv_ticks {
  size_t count;
  struct {
    double value;
    char label[24]; /* empty for a small tick */
  } at[DV_TICKS];
} dv_ticks;

/* An empty scale. dv_scale_include widens it and ignores values that it cannot show. */
dv_scale dv_scale_empty(bool logarithmic);
void dv_scale_include(dv_scale *scale, double value);

/* Adds a margin on both sides, `share` of the whole, and makes an empty or flat scale usable. */
void dv_scale_finish(dv_scale *scale, double share);

/* Position of `value`: 0 at low, 1 at high, NaN if the scale cannot show it. */
double dv_scale_place(const dv_scale *scale, double value);

/* Round numbers inside the scale, about `wanted` of them with labels. */
dv_ticks dv_scale_ticks(const dv_scale *scale, size_t wanted);

/* Quarters of the circle from -pi to pi. */
dv_ticks dv_scale_ticks_angle(void);

#endif
