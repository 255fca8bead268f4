/* Legends: rows of entries outside of the plot. */
#ifndef DV_LEGEND_H
#define DV_LEGEND_H

#include "report/colour.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct dv_stroke {
  dv_colour colour;
  double width;
  double dash; /* 0: an unbroken line */
} dv_stroke;

typedef struct dv_legend_entry {
  const char *label;
  dv_stroke stroke;
  bool upright; /* the key is an upright bar, like the mark in the figure */
} dv_legend_entry;

void dv_stroke_set(cairo_t *cr, dv_stroke stroke);

/* Draws the entries from x on, centred at height y. A new row begins where an entry would pass `right`. */
void dv_legend_draw(cairo_t *cr, double x, double y, double right, const dv_legend_entry *entries,
                    size_t count);

/* Number of rows if the width is `room`, and the height of a row. */
#define DV_LEGEND_ROW 24
size_t dv_legend_rows(cairo_t *cr, double room, const dv_legend_entry *entries, size_t count);

/* Width of the entries in one row. */
double dv_legend_length(cairo_t *cr, const dv_legend_entry *entries, size_t count);

#endif
