/* Keys to what a figure shows, in a row that never covers it. */
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
  bool upright; /* the key is a bar across the line, as the mark itself is */
} dv_legend_entry;

void dv_stroke_set(cairo_t *cr, dv_stroke stroke);

/* Draws the entries from x on, centred at height y, starting a new row where they would pass `right`. */
void dv_legend_draw(cairo_t *cr, double x, double y, double right, const dv_legend_entry *entries,
                    size_t count);

/* How many rows that takes when there is so much `room`, and how high each is. */
#define DV_LEGEND_ROW 24
size_t dv_legend_rows(cairo_t *cr, double room, const dv_legend_entry *entries, size_t count);

/* How long the entries are in one row. */
double dv_legend_length(cairo_t *cr, const dv_legend_entry *entries, size_t count);

#endif
