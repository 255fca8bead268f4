/* Shared by the paper's figures: writing, titles, legends, scales and strokes. */
#pragma once

#include "base/file.h"
#include "report/drawing.h"

#include <dvbf/report.h>

/* If the page is printed 5.5 inches wide, ticks have 6 points and labels 6.6 points. */
#define DV_FIGURE_WIDTH 1080
#define DV_FIGURE_MARGIN 16
#define DV_FIGURE_TITLE 46 /* height of the title, when there is one */

/* Writes path.png and path.svg. */
dvbf_status dv_figure_write(const char *path, double width, double height, dv_figure_fn *draw,
                            const void *figure, dvbf_error *error);

/* Writes the PNGs of figures that were drawn, those that exist, on one: the first above, the others side by
 * side below it. */
dvbf_status dv_figure_collect(const char *path, size_t count, const dv_path *figures, dvbf_error *error);

/* Draws the title and returns its height; 0 if `title` is NULL. */
double dv_figure_title_height(const char *title);
void dv_figure_title(cairo_t *cr, double width, const char *title);

/* Height of a legend of width `room`, with the space below it; 0 without entries. */
double dv_figure_legend_height(const dv_legend_entry *entries, size_t count, double room);

/* Refuses values[count] if one is not finite; the message calls them `what`. */
dvbf_status dv_figure_check(const float *values, size_t count, const char *what, dvbf_error *error);

/* A scale over all values, with a small margin. */
dv_scale dv_figure_scale(const double *values, size_t count);

/* The stroke of curve k: colours, then the same colours dashed. */
dv_stroke dv_figure_stroke(size_t k);

/* ---- Image strips ---- */

enum { DV_STRIP_ROWS = 8, DV_STRIP_MOST = 60 }; /* rows, and frames that are shown */

/* Positions on the page. Many frames are wrapped into lines, each with all rows; of very many only every n-th
 * is shown. */
typedef struct dv_strips {
  const dvbf_figure_strips *figure;
  size_t rows, channels;
  dvbf_strip_row row[DV_STRIP_ROWS];   /* those with images */
  size_t every, shown, lines, columns; /* every `every`-th frame is shown */
  size_t pixel_width, pixel_height;    /* of an image in the PNG */
  double image_width, image_height;    /* the same on the page */
  double left, top, pitch_x, pitch_y, line_pitch;
} dv_strips;

dv_strips dv_strips_of(const dvbf_figure_strips *figure);

/* Upper left corner of shown frame k (of frame k * every) of a row. */
void dv_strips_corner(const dv_strips *strips, size_t row, size_t k, double *x, double *y);
