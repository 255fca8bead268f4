/* Rows of small images, grey or in colour, one column per frame, with marks along time. */
#ifndef DV_STRIP_H
#define DV_STRIP_H

#include <cairo.h>
#include <dvbf/figures.h>

enum { DV_STRIP_ROWS = 8, DV_STRIP_MOST = 60 }; /* rows, and frames that are shown */

typedef struct dv_strips {
  size_t rows, frames, height, width, channels;
  dvbf_strip_row row[DV_STRIP_ROWS];
  size_t bar;  /* a red bar through all rows follows this many frames; 0: none */
  double x, y; /* upper left corner */
  double room; /* how wide labels and images may be together */
} dv_strips;

/* Positions on the page. Many frames are wrapped into lines, each with all rows; of very many only every n-th
 * is shown. */
typedef struct dv_strip_layout {
  size_t every, shown, lines, columns; /* every `every`-th frame is shown */
  size_t pixel_width, pixel_height;    /* of an image in the PNG */
  double image_width, image_height;    /* the same on the page */
  double left, pitch_x, pitch_y, line_pitch;
  double height; /* of all */
} dv_strip_layout;

dv_strip_layout dv_strips_place(const dv_strips *strips);

/* Upper left corner of shown frame k (of frame k * every) of a row. */
void dv_strips_corner(const dv_strips *strips, const dv_strip_layout *layout, size_t row, size_t k, double *x,
                      double *y);

void dv_strips_draw(cairo_t *cr, const dv_strips *strips, const dv_strip_layout *layout);

#endif
