/* SVG files that fit into an HTML page: labels stay text, and ids start with the name of the file. */
#ifndef DV_SVG_H
#define DV_SVG_H

#include "report/markup.h"

#include <cairo.h>
#include <dvbf/dvbf.h>

typedef struct dv_svg {
  dv_markup drawing; /* what cairo wrote */
  dv_markup words;   /* <text> elements, which go on top of it */
} dv_svg;

/* A surface that writes into `svg`, which must stay where it is and be freed after the surface. */
cairo_surface_t *dv_svg_surface(dv_svg *svg, double width, double height);
void dv_svg_free(dv_svg *svg);

/* From now on dv_text on `cr` adds text elements to `svg`. */
void dv_svg_attach(dv_svg *svg, cairo_t *cr);

/* The SVG that gets the text of `cr`; NULL if `cr` draws pixels. */
dv_svg *dv_svg_of(cairo_t *cr);

/* Adds text at a place of the page; `anchor` is start, middle or end. */
void dv_svg_text(dv_svg *svg, double x, double y, double size, bool bold, bool upwards, const char *anchor,
                 const char *text);

/* Writes the file, atomically, once the surface is finished. */
dvbf_status dv_svg_write(const dv_svg *svg, const char *path, dvbf_error *error);

#endif
