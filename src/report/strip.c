/* Rows of small images, one column per frame, with marks along time (dvbf_draw_strips): layout, wrapping into
 * lines, and drawing. */
#include "base/error.h"
#include "report/figure.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static const double gutter = 136, numbers = 22, gap = 5, widest_gap = 12, largest_image = 96,
                    between_lines = 14, head = 34;
enum { IN_LINE = 15 };

/* ---- Layout ---- */

static bool has_bar(const dvbf_figure_strips *f) {
  return f->training_steps && f->training_steps <= f->frames;
}

static bool observes(const dv_strips *s) {
  for (size_t i = 0; i < s->rows; i++)
    if (s->row[i].observed && s->row[i].observed <= s->figure->frames) return true;
  return false;
}

/* Images are enlarged by whole numbers if they fit, so that all pixels look the same. Large images are
 * shrunk. */
static void fit_image(dv_strips *s, double room) {
  size_t height = s->figure->height, width = s->figure->width, larger = height > width ? height : width;
  size_t cell = (size_t)fmax(1, floor(room * DV_CANVAS_SCALE));
  size_t multiple = cell / larger;
  double factor = multiple ? (double)multiple : (double)cell / (double)larger;
  s->pixel_width = (size_t)fmax(1, floor((double)width * factor));
  s->pixel_height = (size_t)fmax(1, floor((double)height * factor));
  s->image_width = (double)s->pixel_width / DV_CANVAS_SCALE;
  s->image_height = (double)s->pixel_height / DV_CANVAS_SCALE;
}

dv_strips dv_strips_of(const dvbf_figure_strips *f) {
  dv_strips s = {.figure = f,
                 .channels = f->channels == 3 ? 3 : 1,
                 .every = (f->frames - 1) / DV_STRIP_MOST + 1,
                 .left = DV_FIGURE_MARGIN + gutter};
  for (size_t i = 0; i < f->rows; i++)
    if (f->row[i].images) s.row[s.rows++] = f->row[i];
  s.shown = (f->frames - 1) / s.every + 1;
  s.lines = (s.shown - 1) / IN_LINE + 1;
  s.columns = (s.shown - 1) / s.lines + 1;
  double cell = (DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - gutter) / (double)s.columns;
  fit_image(&s, fmin(cell - gap, largest_image));
  double spare = floor((cell - s.image_width) * DV_CANVAS_SCALE) / DV_CANVAS_SCALE;
  s.pitch_x = s.image_width + fmin(fmax(spare, gap), widest_gap);
  /* Text needs its height even when images are flat. */
  s.pitch_y = fmax(s.image_height + gap, DV_TEXT_LABEL + 4);
  s.line_pitch = numbers + (double)s.rows * s.pitch_y + between_lines;
  /* Above the images: what the marks mean, and that frames are left out. */
  bool headed = observes(&s) || has_bar(f) || s.every > 1;
  s.top = DV_FIGURE_MARGIN + dv_figure_title_height(f->title) + (headed ? head : 0);
  return s;
}

void dv_strips_corner(const dv_strips *s, size_t row, size_t k, double *x, double *y) {
  *x = s->left + (double)(k % s->columns) * s->pitch_x;
  size_t line = k / s->columns;
  *y = s->top + (double)line * s->line_pitch + numbers + (double)row * s->pitch_y;
}

/* Middle of the gap after the first `frames` frames and the line it is in; false when it is not on the page.
 */
static bool find_gap(const dv_strips *s, size_t frames, size_t *line, double *x) {
  if (!frames || frames > s->figure->frames) return false;
  size_t last = (frames - 1) / s->every; /* the last shown frame before the gap */
  double y;
  dv_strips_corner(s, 0, last, x, &y);
  *x += (s->image_width + s->pitch_x) / 2;
  *line = last / s->columns;
  return true;
}

/* ---- Images ---- */

/* Values for black and white: 0 and 1, or the range of the first row (the data) if that is larger. */
static void grey_range(const dv_strips *s, float *black, float *white) {
  const float *values = s->row[0].images;
  size_t count = s->figure->frames * s->figure->height * s->figure->width * s->channels;
  *black = 0, *white = 1;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    *black = fminf(*black, values[i]);
    *white = fmaxf(*white, values[i]);
  }
}

/* A part of an image: rows [top, bottom) and columns [left, right). */
typedef struct image_part {
  size_t top, bottom, left, right;
} image_part;

static double mean_of(const float *image, const dv_strips *s, image_part p, size_t channel) {
  double sum = 0;
  for (size_t i = p.top; i < p.bottom; i++)
    for (size_t j = p.left; j < p.right; j++)
      sum += image[(i * s->figure->width + j) * s->channels + channel];
  return sum / (double)((p.bottom - p.top) * (p.right - p.left));
}

static uint32_t pixel_of(const float *image, const dv_strips *s, image_part p, double black, double white) {
  uint32_t pixel = 0;
  for (size_t c = 0; c < 3; c++) {
    double value = mean_of(image, s, p, s->channels == 3 ? c : 0);
    if (!isfinite(value)) return 0xd943c4; /* a colour no image has: this value is not a number */
    pixel = pixel << 8 | (uint32_t)lrint(255 * fmin(fmax((value - black) / (white - black), 0), 1));
  }
  return pixel;
}

/* Each pixel of the page is the mean of the image pixels that it covers, or the one that covers it. */
static void paint_pixels(cairo_surface_t *surface, const float *image, const dv_strips *s, float black,
                         float white) {
  size_t rows = (size_t)cairo_image_surface_get_height(surface);
  size_t columns = (size_t)cairo_image_surface_get_width(surface);
  size_t stride = (size_t)cairo_image_surface_get_stride(surface), h = s->figure->height,
         w = s->figure->width;
  unsigned char *bytes = cairo_image_surface_get_data(surface);
  cairo_surface_flush(surface);
  for (size_t i = 0; i < rows; i++) {
    uint32_t *line = (uint32_t *)(void *)(bytes + i * stride);
    size_t top = i * h / rows, bottom = (i + 1) * h / rows;
    for (size_t j = 0; j < columns; j++) {
      size_t left = j * w / columns, right = (j + 1) * w / columns;
      image_part p = {top, bottom > top ? bottom : top + 1, left, right > left ? right : left + 1};
      line[j] = pixel_of(image, s, p, black, white);
    }
  }
  cairo_surface_mark_dirty(surface);
}

static void draw_image(cairo_t *cr, double x, double y, const dv_strips *s, const float *image, float black,
                       float white) {
  cairo_surface_t *surface =
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)s->pixel_width, (int)s->pixel_height);
  if (!cairo_surface_status(surface)) paint_pixels(surface, image, s, black, white);
  cairo_surface_set_device_scale(surface, DV_CANVAS_SCALE, DV_CANVAS_SCALE);
  /* Not cairo_get_source, which leaks once cr has failed. A failed surface makes cr fail, as it should. */
  cairo_pattern_t *pattern = cairo_pattern_create_for_surface(surface);
  cairo_pattern_set_filter(pattern, CAIRO_FILTER_NEAREST);
  cairo_matrix_t shift;
  cairo_matrix_init_translate(&shift, -x, -y);
  cairo_pattern_set_matrix(pattern, &shift);
  cairo_set_source(cr, pattern);
  cairo_rectangle(cr, x, y, s->image_width, s->image_height);
  cairo_fill(cr);
  cairo_pattern_destroy(pattern);
  cairo_surface_destroy(surface);
  /* A hairline outside shows where a white image ends. */
  cairo_set_line_width(cr, 0.5);
  dv_colour_set(cr, dv_colour_missing);
  cairo_rectangle(cr, x - 0.25, y - 0.25, s->image_width + 0.5, s->image_height + 0.5);
  cairo_stroke(cr);
}

static void draw_row(cairo_t *cr, const dv_strips *s, size_t row, float black, float white) {
  size_t size = s->figure->height * s->figure->width * s->channels;
  const char *label = s->row[row].label ? s->row[row].label : "";
  for (size_t k = 0; k < s->shown; k++) {
    double x, y;
    dv_strips_corner(s, row, k, &x, &y);
    draw_image(cr, x, y, s, s->row[row].images + k * s->every * size, black, white);
    if (k % s->columns) continue;
    dv_text_style style = {.size = DV_TEXT_LABEL, .across = 1, .longest = gutter - 8};
    dv_text(cr, s->left - 10, y + s->image_height / 2, style, label);
  }
}

/* ---- Marks ---- */

static void draw_head(cairo_t *cr, const dv_strips *s) {
  dv_legend_entry entries[2];
  size_t count = 0;
  double y = s->top - head + 10, right = DV_FIGURE_WIDTH - DV_FIGURE_MARGIN;
  if (has_bar(s->figure))
    entries[count++] = (dv_legend_entry){"end of the training length", {dv_colour_bar, 3.5, 0}, true};
  if (observes(s)) entries[count++] = (dv_legend_entry){"observed", {dv_colour_observe, 2, 0}, false};
  dv_legend_draw(cr, right - dv_legend_length(cr, entries, count), y, right + 1, entries, count);
  char text[64];
  snprintf(text, sizeof text, "one frame in %zu is shown", s->every);
  if (s->every > 1) dv_text(cr, s->left, y, (dv_text_style){.size = DV_TEXT_TICK}, text);
}

static void draw_numbers(cairo_t *cr, const dv_strips *s) {
  dv_text_style style = {.size = DV_TEXT_TICK - 2, .across = 0.5};
  double x, y;
  for (size_t k = 0; k < s->shown; k++) {
    dv_strips_corner(s, 0, k, &x, &y);
    if (k % s->columns == 0)
      dv_text(cr, s->left - 10, y - 11, (dv_text_style){.size = style.size, .across = 1}, "frame");
    size_t column = k % s->columns; /* the first of a line, and every fifth that is not next to it */
    if (column && ((k + 1) % 5 || column == 1)) continue;
    char number[24];
    snprintf(number, sizeof number, "%zu", k * s->every + 1);
    dv_text(cr, x + s->image_width / 2, y - 11, style, number);
  }
}

static void draw_bar(cairo_t *cr, const dv_strips *s) {
  size_t line;
  double x;
  if (!find_gap(s, s->figure->training_steps, &line, &x)) return;
  double y = s->top + (double)line * s->line_pitch + numbers;
  dv_colour_set(cr, dv_colour_bar);
  cairo_rectangle(cr, x - 1.75, y - 5, 3.5, (double)s->rows * s->pitch_y + 5);
  cairo_fill(cr);
}

/* Also underlines the observed frames, because the red bar may hide the mark. */
static void draw_observed(cairo_t *cr, const dv_strips *s, size_t row) {
  size_t line;
  double x, left, y;
  if (!find_gap(s, s->row[row].observed, &line, &x)) return;
  dv_colour_set(cr, dv_colour_observe);
  for (size_t i = 0; i <= line; i++) {
    size_t first = i * s->columns, last = (i + 1) * s->columns - 1;
    double right = x;
    dv_strips_corner(s, row, first, &left, &y);
    if (i < line) {
      dv_strips_corner(s, row, last, &right, &y);
      right += s->image_width;
    }
    cairo_rectangle(cr, left, y + s->image_height + 1.5, right - left, 2);
  }
  cairo_rectangle(cr, x - 0.75, y, 1.5, s->image_height + 3.5);
  cairo_fill(cr);
}

static void draw(cairo_t *cr, const void *figure) {
  const dv_strips *s = figure;
  float black, white;
  dv_figure_title(cr, DV_FIGURE_WIDTH, s->figure->title);
  draw_head(cr, s);
  grey_range(s, &black, &white);
  draw_numbers(cr, s);
  for (size_t row = 0; row < s->rows; row++) draw_row(cr, s, row, black, white);
  for (size_t row = 0; row < s->rows; row++) draw_observed(cr, s, row);
  draw_bar(cr, s);
}

dvbf_status dvbf_draw_strips(const dvbf_figure_strips *figure, const char *path, dvbf_error *error) {
  if (!figure->frames || !figure->height || !figure->width)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: %zu frames of %zu x %zu pixels cannot be drawn; each number must be at least 1",
                   path, figure->frames, figure->height, figure->width);
  if (!figure->row || figure->rows < 1 || figure->rows > DV_STRIP_ROWS)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the figure has %zu rows of images; give 1 to %d", path,
                   figure->rows, DV_STRIP_ROWS);
  dv_strips s = dv_strips_of(figure);
  if (!s.rows) return dv_fail(error, DVBF_ARGUMENT, "%.200s: no row has images; give at least one", path);
  double height = s.top + ((double)s.lines * s.line_pitch - between_lines) + DV_FIGURE_MARGIN;
  return dv_figure_write(path, DV_FIGURE_WIDTH, height, draw, &s, error);
}
