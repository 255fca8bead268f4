/* A white page to draw on. Its file appears whole or not at all. */
#ifndef DV_CANVAS_H
#define DV_CANVAS_H

#include "report/svg.h"

#include <cairo.h>
#include <dvbf/dvbf.h>

/* Pixels of a PNG for each unit of the page: text stays sharp in print. */
#define DV_CANVAS_SCALE 2

typedef struct dv_canvas {
  cairo_t *cr; /* draw here, in units of the page */
  cairo_surface_t *surface;
  const char *path; /* of the caller */
  bool vector;
  dv_svg svg; /* when vector */
} dv_canvas;

/* A page for `path`: SVG when that ends in .svg, PNG otherwise. `path` and `canvas` must stay where they are
 * until the page is closed. */
dvbf_status dv_canvas_open(dv_canvas *canvas, const char *path, double width, double height,
                           dvbf_error *error);

/* Writes the file and frees the page. */
dvbf_status dv_canvas_close(dv_canvas *canvas, dvbf_error *error);

#endif
