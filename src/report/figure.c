/* Figures as files (dv_figure_write: PNG and SVG; dv_figure_collect: several PNGs on one), helpers that all
 * figures share, and strips of images (dvbf_draw_strips). */
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

/* ---- Image strips ---- */

static const double head = 34;

static bool observes(const dvbf_figure_strips *f) {
  for (size_t i = 0; i < f->rows; i++)
    if (f->row[i].images && f->row[i].observed && f->row[i].observed <= f->frames) return true;
  return false;
}

static bool has_bar(const dvbf_figure_strips *f) {
  return f->training_steps && f->training_steps <= f->frames;
}

/* Above the images: what the marks mean, and that frames are left out. */
static double head_of(const dvbf_figure_strips *f) {
  return observes(f) || has_bar(f) || f->frames > DV_STRIP_MOST ? head : 0;
}

static dv_strips plan(const dvbf_figure_strips *f) {
  dv_strips s = {.frames = f->frames,
                 .height = f->height,
                 .width = f->width,
                 .channels = f->channels == 3 ? 3 : 1,
                 .bar = f->training_steps,
                 .x = DV_FIGURE_MARGIN,
                 .y = DV_FIGURE_MARGIN + dv_figure_title_height(f->title) + head_of(f),
                 .room = DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN};
  for (size_t i = 0; i < f->rows; i++) {
    if (!f->row[i].images) continue;
    s.row[s.rows] = f->row[i];
    if (!s.row[s.rows].label) s.row[s.rows].label = "";
    s.rows++;
  }
  return s;
}

static void draw_head(cairo_t *cr, const dvbf_figure_strips *f, const dv_strips *s,
                      const dv_strip_layout *layout) {
  dv_legend_entry entries[2];
  size_t count = 0;
  double y = s->y - head + 10;
  if (has_bar(f))
    entries[count++] = (dv_legend_entry){"end of the training length", {dv_colour_bar, 3.5, 0}, true};
  if (observes(f)) entries[count++] = (dv_legend_entry){"observed", {dv_colour_observe, 2, 0}, false};
  double right = s->x + s->room;
  dv_legend_draw(cr, right - dv_legend_length(cr, entries, count), y, right + 1, entries, count);
  char text[64];
  snprintf(text, sizeof text, "one frame in %zu is shown", layout->every);
  if (layout->every > 1) dv_text(cr, layout->left, y, (dv_text_style){.size = DV_TEXT_TICK}, text);
}

static void draw(cairo_t *cr, const void *figure) {
  const dvbf_figure_strips *f = figure;
  dv_strips s = plan(f);
  dv_strip_layout layout = dv_strips_place(&s);
  dv_figure_title(cr, DV_FIGURE_WIDTH, f->title);
  draw_head(cr, f, &s, &layout);
  dv_strips_draw(cr, &s, &layout);
}

dvbf_status dvbf_draw_strips(const dvbf_figure_strips *figure, const char *path, dvbf_error *error) {
  if (!figure->frames || !figure->height || !figure->width)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: %zu frames of %zu x %zu pixels are nothing to draw", path,
                   figure->frames, figure->height, figure->width);
  if (!figure->row || figure->rows < 1 || figure->rows > DV_STRIP_ROWS)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the figure has %zu rows of images; give 1 to %d", path,
                   figure->rows, DV_STRIP_ROWS);
  dv_strips s = plan(figure);
  if (!s.rows) return dv_fail(error, DVBF_ARGUMENT, "%.200s: no row has images; give at least one", path);
  dv_strip_layout layout = dv_strips_place(&s);
  return dv_figure_write(path, DV_FIGURE_WIDTH, s.y + layout.height + DV_FIGURE_MARGIN, draw, figure, error);
}
