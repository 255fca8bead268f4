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
  return dv_canvas_draw(name, ceil(width), ceil(height), draw, figure, error);
}

dvbf_status dv_figure_write(const char *path, double width, double height, dv_figure_fn *draw,
                            const void *figure, dvbf_error *error) {
  dvbf_status status = write_one(path, ".png", width, height, draw, figure, error);
  return status ? status : write_one(path, ".svg", width, height, draw, figure, error);
}

/* A picture that cannot be read is a failure; one that is not there is 0 x 0. */
static dvbf_status read_picture(cairo_surface_t **out, const char *path, dvbf_error *error) {
  *out = cairo_image_surface_create_from_png(path);
  cairo_status_t status = cairo_surface_status(*out);
  if (!status || status == CAIRO_STATUS_FILE_NOT_FOUND) return DVBF_OK;
  if (status == CAIRO_STATUS_NO_MEMORY) return dv_fail_memory(error, "reading a picture");
  return dv_fail(error, DVBF_IO, "%.300s: cannot be read: %s", path, cairo_status_to_string(status));
}

enum { MOST_PICTURES = 8 };

typedef struct collage {
  size_t count;
  cairo_surface_t *pictures[MOST_PICTURES];
  double width, below, top; /* of all; of those below the first; height of the first */
} collage;

static void draw_collage(cairo_t *cr, const void *figure) {
  const collage *c = figure;
  double scale = 1.0 / DV_CANVAS_SCALE, x = (c->width - c->below) / 2;
  cairo_scale(cr, scale, scale);
  for (size_t i = 0; i < c->count; i++) {
    double wide = cairo_image_surface_get_width(c->pictures[i]);
    if (cairo_surface_status(c->pictures[i])) continue; /* it is not there */
    cairo_set_source_surface(cr, c->pictures[i], i ? x : (c->width - wide) / 2, i ? c->top : 0);
    cairo_paint(cr);
    if (i) x += wide;
  }
}

dvbf_status dv_figure_collect(const char *path, size_t count, const dv_path *figures, dvbf_error *error) {
  collage c = {.count = count < MOST_PICTURES ? count : MOST_PICTURES};
  double height = 0;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < c.count && !status; i++) {
    status = read_picture(&c.pictures[i], figures[i], error);
    double wide = cairo_image_surface_get_width(c.pictures[i]);
    double high = cairo_image_surface_get_height(c.pictures[i]);
    if (!i) c.width = wide, c.top = high;
    if (i) c.below += wide, height = fmax(height, high);
  }
  c.width = fmax(c.width, c.below);
  double scale = 1.0 / DV_CANVAS_SCALE;
  if (!status)
    status = dv_canvas_draw(path, c.width * scale, (c.top + height) * scale, draw_collage, &c, error);
  for (size_t i = 0; i < c.count; i++) cairo_surface_destroy(c.pictures[i]); /* NULL is none */
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
