#include "report/canvas.h"

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <string.h>

/* The outlines of letters are left as they are: rounding them to pixels would tear words at small sizes. */
static void set_fonts(cairo_t *cr) {
  cairo_font_options_t *options = cairo_font_options_create();
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_set_font_options(cr, options);
  cairo_font_options_destroy(options);
}

static bool ends_in_svg(const char *path) {
  size_t length = strlen(path);
  return length > 4 && !strcmp(path + length - 4, ".svg");
}

/* cairo says only that writing failed; errno, when it is set, says why. */
static dvbf_status refuse(const dv_canvas *canvas, cairo_status_t status, int reason, dvbf_error *error) {
  if (status == CAIRO_STATUS_NO_MEMORY) return dv_fail_memory(error, "drawing a picture");
  bool writing = status == CAIRO_STATUS_WRITE_ERROR,
       asked = status == CAIRO_STATUS_INVALID_SIZE || status == CAIRO_STATUS_INVALID_STRING;
  return dv_fail(error, asked ? DVBF_ARGUMENT : DVBF_IO, "%s: the picture cannot be %s: %s", canvas->path,
                 writing ? "written" : "drawn",
                 writing && reason ? strerror(reason) : cairo_status_to_string(status));
}

static void release(dv_canvas *canvas) {
  cairo_destroy(canvas->cr);
  cairo_surface_destroy(canvas->surface);
  if (canvas->vector) dv_svg_free(&canvas->svg);
}

dvbf_status dv_canvas_open(dv_canvas *canvas, const char *path, double width, double height,
                           dvbf_error *error) {
  canvas->path = path;
  canvas->vector = ends_in_svg(path);
  errno = 0;
  if (canvas->vector)
    canvas->surface = dv_svg_surface(&canvas->svg, width, height);
  else
    canvas->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * DV_CANVAS_SCALE),
                                                 (int)(height * DV_CANVAS_SCALE));
  int reason = errno;
  canvas->cr = cairo_create(canvas->surface);
  if (cairo_status(canvas->cr)) {
    dvbf_status failed = refuse(canvas, cairo_status(canvas->cr), reason, error);
    release(canvas);
    return failed;
  }
  if (canvas->vector)
    dv_svg_attach(&canvas->svg, canvas->cr);
  else
    cairo_scale(canvas->cr, DV_CANVAS_SCALE, DV_CANVAS_SCALE);
  set_fonts(canvas->cr);
  cairo_set_source_rgb(canvas->cr, 1, 1, 1);
  cairo_paint(canvas->cr);
  return DVBF_OK;
}

static cairo_status_t write_piece(void *stream, const unsigned char *bytes, unsigned length) {
  return fwrite(bytes, 1, length, stream) == length ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static dvbf_status write_png(dv_canvas *canvas, dvbf_error *error) {
  dv_atomic_file file;
  dvbf_status failed = dv_atomic_open(&file, canvas->path, error);
  if (failed) return failed;
  errno = 0;
  cairo_status_t status = cairo_surface_write_to_png_stream(canvas->surface, write_piece, file.stream);
  if (!status) return dv_atomic_commit(&file, error);
  failed = refuse(canvas, status, errno, error);
  dv_atomic_abandon(&file);
  return failed;
}

dvbf_status dv_canvas_close(dv_canvas *canvas, dvbf_error *error) {
  cairo_status_t status = cairo_status(canvas->cr);
  dvbf_status failed = DVBF_OK;
  if (!status && !canvas->vector) failed = write_png(canvas, error);
  cairo_surface_finish(canvas->surface);
  if (!status && canvas->vector) status = cairo_surface_status(canvas->surface);
  if (status)
    failed = refuse(canvas, status, 0, error);
  else if (canvas->vector)
    failed = dv_svg_write(&canvas->svg, canvas->path, error);
  release(canvas);
  return failed;
}
