/* Drawing with cairo: canvas, text, colours, scales, axes, legends, curves, scatter plots, image strips and
 * animations. */
#pragma once

#include <dvbf/core.h>
#include <dvbf/dvbf.h>
#include <dvbf/report.h>

#include <cairo.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- Canvas ---- */

/* Pixels of a PNG for each unit of the page: text stays sharp in print. */
#define DV_CANVAS_SCALE 2

/* What cairo writes becomes part of a dv_markup: a cairo_write_func_t. */
cairo_status_t dv_cairo_receive(void *markup, const unsigned char *data, unsigned length);

/* Draws `figure`, a structure of include/dvbf/report.h, or what was computed from it. */
typedef void dv_figure_fn(cairo_t *cr, const void *figure);

/* Draws on a white page, in its units, and writes it: as SVG when `path` ends in .svg, as PNG otherwise. The
 * file appears whole or not at all. */
dvbf_status dv_canvas_draw(const char *path, double width, double height, dv_figure_fn *draw,
                           const void *figure, dvbf_error *error);

/* ---- Text ---- */

/* Sizes that every figure shares, in units of the page. */
#define DV_TEXT_HEADING 21
#define DV_TEXT_LABEL 18
#define DV_TEXT_TICK 16

typedef struct dv_text_style {
  double size;
  double across; /* which part of the text is at x: 0 its left end, 0.5 its middle, 1 its right end */
  bool bold;
  bool upwards;   /* rotated by 90 degrees to the left; `across` then counts from the lower end */
  double longest; /* longer text is shrunk to this length; 0: never */
} dv_text_style;

/* Writes text whose line is centred at height y (at x when upwards). */
void dv_text(cairo_t *cr, double x, double y, dv_text_style style, const char *text);

double dv_text_length(cairo_t *cr, dv_text_style style, const char *text);

/* ---- Colours ---- */

typedef struct dv_colour {
  double red, green, blue; /* sRGB, 0 to 1 */
} dv_colour;

/* A colour for `t`; a value that is not finite gives dv_colour_missing. */
typedef dv_colour dv_colour_map(double t);

/* From dark violet over teal to yellow for t in [0, 1], clamped. CIE L* rises linearly, so that it reads in
 * grey. */
dv_colour dv_colour_sequential(double t);

/* Once around for t in [0, 1), periodic. Equal steps of t look equally large. */
dv_colour dv_colour_cyclic(double t);

extern const dv_colour dv_colour_ink, dv_colour_faint, dv_colour_missing;
extern const dv_colour dv_colour_bar;     /* the end of the training length */
extern const dv_colour dv_colour_observe; /* the end of observation */
enum { DV_COLOUR_LINES = 6 };
extern const dv_colour dv_colour_lines[DV_COLOUR_LINES];

void dv_colour_set(cairo_t *cr, dv_colour colour);

/* ---- Scales ---- */

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

/* ---- Axes ---- */

/* Space that the labels of an axis need outside of the box. */
#define DV_AXES_LEFT 84
#define DV_AXES_BELOW 58

typedef struct dv_axes {
  double x, y, width, height; /* the box; y is its upper edge */
  dv_scale across, up;
  const char *across_label, *up_label; /* NULL: none */
  double up_room;                      /* from the box to the middle of the up label; 0: 72 */
  size_t ticks;                        /* most labels along each axis; 0: as many as are easily read */
} dv_axes;

/* Draw in this order: back (grid, ticks, labels), content, frame. */
void dv_axes_draw_back(cairo_t *cr, const dv_axes *axes);
void dv_axes_draw_frame(cairo_t *cr, const dv_axes *axes);

/* Ticks at round numbers: as many as fit side by side along `length`, at most `most`. */
dv_ticks dv_axes_ticks(cairo_t *cr, const dv_scale *scale, double length, size_t most);

/* Position of a pair of values on the page; false if the scales cannot show it. */
bool dv_axes_place(const dv_axes *axes, double across, double up, double *x, double *y);

/* ---- Legends ---- */

/* Rows of entries outside of the plot. */

typedef struct dv_stroke {
  dv_colour colour;
  double width;
  double dash; /* 0: an unbroken line */
} dv_stroke;

typedef struct dv_legend_entry {
  const char *label;
  dv_stroke stroke;
  bool upright; /* the key is an upright bar, like the mark in the figure */
} dv_legend_entry;

void dv_stroke_set(cairo_t *cr, dv_stroke stroke);

/* Draws the entries from x on, centred at height y, and returns the number of rows: a new one begins where an
 * entry would pass `right`. */
#define DV_LEGEND_ROW 24
size_t dv_legend_draw(cairo_t *cr, double x, double y, double right, const dv_legend_entry *entries,
                      size_t count);

/* Width of the entries in one row. */
double dv_legend_length(cairo_t *cr, const dv_legend_entry *entries, size_t count);

/* ---- Curves ---- */

/* Draws values[i] at at[i], or at i + 1 when `at` is NULL. A value that cannot be shown leaves a gap. */
void dv_curve_draw(cairo_t *cr, const dv_axes *axes, const double *at, const double *values, size_t count,
                   dv_stroke stroke);

/* A straight line across the box, if it is inside it: upright, or `level`. */
void dv_curve_mark(cairo_t *cr, const dv_axes *axes, double value, bool level, dv_stroke stroke);

/* ---- Scatter plots ---- */

/* Room that a colour bar needs to the right of its axes. */
#define DV_SCATTER_BAR 104

typedef struct dv_hue {
  dv_colour_map *map; /* NULL: one colour for all points */
  dv_scale scale;     /* its range is mapped to the whole colour map */
  bool angle;         /* in radians: the map and its bar run from -pi to pi */
  const char *label;
} dv_hue;

/* The colouring for `values` by magnitude, and for angles. */
dv_hue dv_hue_values(const float *values, size_t count, const char *label);
dv_hue dv_hue_angle(const char *label);

/* Draws points across[i], up[i] in the colour of values[i] (NULL: all in the first). Points that are not
 * finite are left out, as are those outside the box; those whose colour is not finite are grey. Of more than
 * some thousand points a uniform subset is drawn, a smaller one in SVG files, which must stay small. */
void dv_scatter_draw(cairo_t *cr, const dv_axes *axes, const double *across, const double *up,
                     const float *values, size_t count, const dv_hue *hue);

void dv_scatter_draw_bar(cairo_t *cr, const dv_axes *axes, const dv_hue *hue);

/* Draws it horizontally, with its upper left corner at x, y. */
#define DV_SCATTER_LYING 60 /* height with labels */
void dv_scatter_draw_lying_bar(cairo_t *cr, double x, double y, double length, const dv_hue *hue);

/* ---- Animated PNG ---- */

typedef struct dv_video {
  size_t frames, size, channels, columns;
  const float *const *images; /* [columns], each [frames][size][size][channels] in [0, 1] */
  double seconds;             /* that each frame is shown */
} dv_video;

/* Writes it atomically; small images are enlarged. */
dvbf_status dv_apng_write(const char *path, const dv_video *video, dvbf_error *error);
