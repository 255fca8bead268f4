/* Text on a page, in UTF-8. */
#ifndef DV_TEXT_H
#define DV_TEXT_H

#include <cairo.h>
#include <stdbool.h>

/* Sizes that every figure shares, in units of the page. */
#define DV_TEXT_HEADING 21
#define DV_TEXT_LABEL 18
#define DV_TEXT_TICK 16

typedef struct dv_text_style {
  double size;
  double across; /* which part of the text is at x: 0 its left end, 0.5 its middle, 1 its right end */
  bool bold;
  bool upwards;   /* rotated by 90 degrees to the left; `across` then counts from the lower end */
  double longest; /* longer text is shrunk to this length; 0: never */
} dv_text_style;

/* Writes text whose line is centred at height y (at x when upwards). */
void dv_text(cairo_t *cr, double x, double y, dv_text_style style, const char *text);

/* How long it will be. */
double dv_text_length(cairo_t *cr, dv_text_style style, const char *text);

#endif
