/* Rows of small images, one column per frame, with marks along time (dv_strips_*): layout, wrapping into
 * lines, and drawing. */
#include "report/drawing.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static const double gutter = 136, numbers = 22, gap = 5, widest_gap = 12, largest_image = 96,
                    between_lines = 14;
enum { IN_LINE = 15 };

/* ---- Layout ---- */

/* Images are enlarged by whole numbers if they fit, so that all pixels look the same. Large images are
 * shrunk. */
static void fit_image(dv_strip_layout *layout, size_t height, size_t width, double room) {
  size_t larger = height > width ? height : width;
  size_t cell = (size_t)fmax(1, floor(room * DV_CANVAS_SCALE));
  size_t multiple = cell / larger;
  double factor = multiple ? (double)multiple : (double)cell / (double)larger;
  layout->pixel_width = (size_t)fmax(1, floor((double)width * factor));
  layout->pixel_height = (size_t)fmax(1, floor((double)height * factor));
  layout->image_width = (double)layout->pixel_width / DV_CANVAS_SCALE;
  layout->image_height = (double)layout->pixel_height / DV_CANVAS_SCALE;
}

dv_strip_layout dv_strips_place(const dv_strips *strips) {
  dv_strip_layout layout = {.every = (strips->frames - 1) / DV_STRIP_MOST + 1, .left = strips->x + gutter};
  layout.shown = (strips->frames - 1) / layout.every + 1;
  layout.lines = (layout.shown - 1) / IN_LINE + 1;
  layout.columns = (layout.shown - 1) / layout.lines + 1;
  double cell = (strips->room - gutter) / (double)layout.columns;
  fit_image(&layout, strips->height, strips->width, fmin(cell - gap, largest_image));
  double spare = floor((cell - layout.image_width) * DV_CANVAS_SCALE) / DV_CANVAS_SCALE;
  layout.pitch_x = layout.image_width + fmin(fmax(spare, gap), widest_gap);
  /* Text needs its height even when images are flat. */
  layout.pitch_y = fmax(layout.image_height + gap, DV_TEXT_LABEL + 4);
  layout.line_pitch = numbers + (double)strips->rows * layout.pitch_y + between_lines;
  layout.height = (double)layout.lines * layout.line_pitch - between_lines;
  return layout;
}

void dv_strips_corner(const dv_strips *strips, const dv_strip_layout *layout, size_t row, size_t k, double *x,
                      double *y) {
  size_t line = k / layout->columns, column = k % layout->columns;
  *x = layout->left + (double)column * layout->pitch_x;
  *y = strips->y + (double)line * layout->line_pitch + numbers + (double)row * layout->pitch_y;
}

/* Middle of the gap after the first `frames` frames and the line it is in; false when it is not on the page.
 */
static bool find_gap(const dv_strips *strips, const dv_strip_layout *layout, size_t frames, size_t *line,
                     double *x) {
  if (!frames || frames > strips->frames) return false;
  size_t last = (frames - 1) / layout->every; /* the last shown frame before the gap */
  double y;
  dv_strips_corner(strips, layout, 0, last, x, &y);
  *x += (layout->image_width + layout->pitch_x) / 2;
  *line = last / layout->columns;
  return true;
}

/* ---- Images ---- */

/* Values for black and white: 0 and 1, or the range of the first row (the data) if that is larger. */
static void grey_range(const dv_strips *strips, float *black, float *white) {
  const float *values = strips->row[0].images;
  size_t count = strips->frames * strips->height * strips->width * strips->channels;
  *black = 0, *white = 1;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    *black = fminf(*black, values[i]);
    *white = fmaxf(*white, values[i]);
  }
}

/* A part of an image: rows [top, bottom) and columns [left, right). */
typedef struct part {
  size_t top, bottom, left, right;
} part;

static double mean_of(const float *image, const dv_strips *strips, part p, size_t channel) {
  double sum = 0;
  for (size_t i = p.top; i < p.bottom; i++)
    for (size_t j = p.left; j < p.right; j++)
      sum += image[(i * strips->width + j) * strips->channels + channel];
  return sum / (double)((p.bottom - p.top) * (p.right - p.left));
}

static uint32_t pixel_of(const float *image, const dv_strips *strips, part p, double black, double white) {
  uint32_t pixel = 0;
  for (size_t c = 0; c < 3; c++) {
    double value = mean_of(image, strips, p, strips->channels == 3 ? c : 0);
    if (!isfinite(value)) return 0xd943c4; /* a colour no image has: this value is not a number */
    pixel = pixel << 8 | (uint32_t)lrint(255 * fmin(fmax((value - black) / (white - black), 0), 1));
  }
  return pixel;
}

/* Each pixel of the page is the mean of the image pixels that it covers, or the one that covers it. */
static void paint_pixels(cairo_surface_t *surface, const float *image, const dv_strips *strips, float black,
                         float white) {
  size_t rows = (size_t)cairo_image_surface_get_height(surface);
  size_t columns = (size_t)cairo_image_surface_get_width(surface);
  size_t stride = (size_t)cairo_image_surface_get_stride(surface), h = strips->height, w = strips->width;
  unsigned char *bytes = cairo_image_surface_get_data(surface);
  cairo_surface_flush(surface);
  for (size_t i = 0; i < rows; i++) {
    uint32_t *line = (uint32_t *)(void *)(bytes + i * stride);
    size_t top = i * h / rows, bottom = (i + 1) * h / rows;
    for (size_t j = 0; j < columns; j++) {
      size_t left = j * w / columns, right = (j + 1) * w / columns;
      part p = {top, bottom > top ? bottom : top + 1, left, right > left ? right : left + 1};
      line[j] = pixel_of(image, strips, p, black, white);
    }
  }
  cairo_surface_mark_dirty(surface);
}

static void draw_image(cairo_t *cr, double x, double y, const dv_strip_layout *layout,
                       const dv_strips *strips, const float *image, float black, float white) {
  cairo_surface_t *surface =
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)layout->pixel_width, (int)layout->pixel_height);
  if (!cairo_surface_status(surface)) paint_pixels(surface, image, strips, black, white);
  cairo_surface_set_device_scale(surface, DV_CANVAS_SCALE, DV_CANVAS_SCALE);
  /* Not cairo_get_source, which leaks once cr has failed. A failed surface makes cr fail, as it should. */
  cairo_pattern_t *pattern = cairo_pattern_create_for_surface(surface);
  cairo_pattern_set_filter(pattern, CAIRO_FILTER_NEAREST);
  cairo_matrix_t shift;
  cairo_matrix_init_translate(&shift, -x, -y);
  cairo_pattern_set_matrix(pattern, &shift);
  cairo_set_source(cr, pattern);
  cairo_rectangle(cr, x, y, layout->image_width, layout->image_height);
  cairo_fill(cr);
  cairo_pattern_destroy(pattern);
  cairo_surface_destroy(surface);
  /* A hairline outside shows where a white image ends. */
  cairo_set_line_width(cr, 0.5);
  dv_colour_set(cr, dv_colour_missing);
  cairo_rectangle(cr, x - 0.25, y - 0.25, layout->image_width + 0.5, layout->image_height + 0.5);
  cairo_stroke(cr);
}

static void draw_row(cairo_t *cr, const dv_strips *strips, const dv_strip_layout *layout, size_t row,
                     float black, float white) {
  size_t size = strips->height * strips->width * strips->channels;
  for (size_t k = 0; k < layout->shown; k++) {
    double x, y;
    dv_strips_corner(strips, layout, row, k, &x, &y);
    draw_image(cr, x, y, layout, strips, strips->row[row].images + k * layout->every * size, black, white);
    if (k % layout->columns) continue;
    dv_text_style style = {.size = DV_TEXT_LABEL, .across = 1, .longest = gutter - 8};
    dv_text(cr, layout->left - 10, y + layout->image_height / 2, style, strips->row[row].label);
  }
}

/* ---- Marks ---- */

static void draw_numbers(cairo_t *cr, const dv_strips *strips, const dv_strip_layout *layout) {
  dv_text_style style = {.size = DV_TEXT_TICK - 2, .across = 0.5};
  double x, y;
  for (size_t k = 0; k < layout->shown; k++) {
    dv_strips_corner(strips, layout, 0, k, &x, &y);
    if (k % layout->columns == 0)
      dv_text(cr, layout->left - 10, y - 11, (dv_text_style){.size = style.size, .across = 1}, "frame");
    size_t column = k % layout->columns; /* the first of a line, and every fifth that is not next to it */
    if (column && ((k + 1) % 5 || column == 1)) continue;
    char number[24];
    snprintf(number, sizeof number, "%zu", k * layout->every + 1);
    dv_text(cr, x + layout->image_width / 2, y - 11, style, number);
  }
}

static void draw_bar(cairo_t *cr, const dv_strips *strips, const dv_strip_layout *layout) {
  size_t line;
  double x;
  if (!find_gap(strips, layout, strips->bar, &line, &x)) return;
  double y = strips->y + (double)line * layout->line_pitch + numbers;
  dv_colour_set(cr, dv_colour_bar);
  cairo_rectangle(cr, x - 1.75, y - 5, 3.5, (double)strips->rows * layout->pitch_y + 5);
  cairo_fill(cr);
}

/* Also underlines the observed frames, because the red bar may hide the mark. */
static void draw_observed(cairo_t *cr, const dv_strips *strips, const dv_strip_layout *layout, size_t row) {
  size_t line;
  double x, left, y;
  if (!find_gap(strips, layout, strips->row[row].observed, &line, &x)) return;
  dv_colour_set(cr, dv_colour_observe);
  for (size_t i = 0; i <= line; i++) {
    size_t first = i * layout->columns, last = (i + 1) * layout->columns - 1;
    double right = x;
    dv_strips_corner(strips, layout, row, first, &left, &y);
    if (i < line) {
      dv_strips_corner(strips, layout, row, last, &right, &y);
      right += layout->image_width;
    }
    cairo_rectangle(cr, left, y + layout->image_height + 1.5, right - left, 2);
  }
  cairo_rectangle(cr, x - 0.75, y, 1.5, layout->image_height + 3.5);
  cairo_fill(cr);
}

void dv_strips_draw(cairo_t *cr, const dv_strips *strips, const dv_strip_layout *layout) {
  float black, white;
  grey_range(strips, &black, &white);
  draw_numbers(cr, strips, layout);
  for (size_t row = 0; row < strips->rows; row++) draw_row(cr, strips, layout, row, black, white);
  for (size_t row = 0; row < strips->rows; row++) draw_observed(cr, strips, layout, row);
  draw_bar(cr, strips, layout);
}
