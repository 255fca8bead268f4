/* Figures as files (dv_figure_write: PNG and SVG; dv_figure_collect: several PNGs on one), and helpers that
 * all figures share. */
#include "report/figure.h"

#include "base/error.h"
#include "report/drawing.h"

#include <math.h>
#include <stdio.h>

static dvbf_status write_one(const char *path, const char *extension, double width, double height,
                             dv_figure_fn *draw, const void *figure, dvbf_error *error) {
  char name[4096];
  int length = snprintf(name, sizeof name, "%s%s", path, extension);
  if (length < 0 || (size_t)length >= sizeof name)
    return dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is longer than %zu characters", path,
                   sizeof name - 1);
  dv_canvas canvas;
  dvbf_status status = dv_canvas_open(&canvas, name, ceil(width), ceil(height), error);
  if (status) return status;
  draw(canvas.cr, figure);
  return dv_canvas_close(&canvas, error);
}

dvbf_status dv_figure_write(const char *path, double width, double height, dv_figure_fn *draw,
                            const void *figure, dvbf_error *error) {
  dvbf_status status = write_one(path, ".png", width, height, draw, figure, error);
  return status ? status : write_one(path, ".svg", width, height, draw, figure, error);
}

static void paint(cairo_t *cr, cairo_surface_t *picture, double x, double y) {
  if (cairo_surface_status(picture)) return; /* it is not there */
  cairo_set_source_surface(cr, picture, x, y);
  cairo_paint(cr);
}

/* A picture that cannot be read is a failure; one that is not there is 0 x 0. */
static dvbf_status read_picture(cairo_surface_t **out, const char *path, dvbf_error *error) {
  *out = cairo_image_surface_create_from_png(path);
  cairo_status_t status = cairo_surface_status(*out);
  if (!status || status == CAIRO_STATUS_FILE_NOT_FOUND) return DVBF_OK;
  if (status == CAIRO_STATUS_NO_MEMORY) return dv_fail_memory(error, "reading a picture");
  return dv_fail(error, DVBF_IO, "%.300s: cannot be read: %s", path, cairo_status_to_string(status));
}

dvbf_status dv_figure_collect(const char *path, size_t count, const dv_path *figures, dvbf_error *error) {
  enum { MOST = 8 };
  cairo_surface_t *pictures[MOST] = {0};
  double wide[MOST] = {0}, below = 0, top = 0, height = 0;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < count && i < MOST && !status; i++) {
    status = read_picture(&pictures[i], figures[i], error);
    double high = cairo_image_surface_get_height(pictures[i]);
    wide[i] = cairo_image_surface_get_width(pictures[i]);
    if (!i) top = high;
    if (i) below += wide[i], height = fmax(height, high);
  }
  dv_canvas canvas;
  double width = fmax(wide[0], below), scale = 1.0 / DV_CANVAS_SCALE, x = (width - below) / 2;
  if (!status) status = dv_canvas_open(&canvas, path, width * scale, (top + height) * scale, error);
  if (!status) {
    cairo_scale(canvas.cr, scale, scale);
    paint(canvas.cr, pictures[0], (width - wide[0]) / 2, 0);
    for (size_t i = 1; i < count && i < MOST; x += wide[i++]) paint(canvas.cr, pictures[i], x, top);
    status = dv_canvas_close(&canvas, error);
  }
  for (size_t i = 0; i < count && i < MOST; i++) cairo_surface_destroy(pictures[i]); /* NULL is none */
  return status;
}

double dv_figure_title_height(const char *title) {
  return title ? DV_FIGURE_TITLE : 0;
}

void dv_figure_title(cairo_t *cr, double width, const char *title) {
  dv_text_style style = {.size = 24, .across = 0.5, .bold = true, .longest = width - 2 * DV_FIGURE_MARGIN};
  if (title) dv_text(cr, width / 2, DV_FIGURE_MARGIN + 12, style, title);
}

double dv_figure_legend_height(const dv_legend_entry *entries, size_t count, double room) {
  if (!count) return 0;
  cairo_surface_t *scratch = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
  cairo_t *cr = cairo_create(scratch);
  /* Letters here may be a little narrower than on the page. */
  size_t rows = dv_legend_draw(cr, 0, 0, 0.97 * room, entries, count);
  cairo_destroy(cr);
  cairo_surface_destroy(scratch);
  return (double)rows * DV_LEGEND_ROW + 10;
}

dvbf_status dv_figure_check(const float *values, size_t count, const char *what, dvbf_error *error) {
  for (size_t i = 0; values && i < count; i++)
    if (!isfinite(values[i]))
      return dv_fail(
          error, DVBF_ARGUMENT,
          "the %s of the figure must be finite, but number %zu of %zu is %g; leave such points out", what,
          i + 1, count, (double)values[i]);
  return DVBF_OK;
}

dv_scale dv_figure_scale(const double *values, size_t count) {
  dv_scale scale = dv_scale_empty(false);
  for (size_t i = 0; i < count; i++) dv_scale_include(&scale, values[i]);
  dv_scale_finish(&scale, 0.03);
  return scale;
}

dv_stroke dv_figure_stroke(size_t k) {
  return (dv_stroke){dv_colour_lines[k % DV_COLOUR_LINES], 2.5, k / DV_COLOUR_LINES % 2 ? 7 : 0};
}
