/* Colours of figures: two maps, and the few plain colours that every figure shares. */
#ifndef DV_COLOUR_H
#define DV_COLOUR_H

#include <cairo.h>

typedef struct dv_colour {
  double red, green, blue; /* sRGB, 0 to 1 */
} dv_colour;

/* A colour for `t`; a value that is not finite gives dv_colour_missing. */
typedef dv_colour dv_colour_map(double t);

/* From dark violet over teal to yellow for t in [0, 1], clamped. CIE L* rises linearly, so that it reads in
 * grey. */
dv_colour dv_colour_sequential(double t);

/* Once around for t in [0, 1), periodic. Equal steps of t look equally large. */
dv_colour dv_colour_cyclic(double t);

extern const dv_colour dv_colour_ink, dv_colour_faint, dv_colour_missing;
extern const dv_colour dv_colour_bar;     /* the end of the training length */
extern const dv_colour dv_colour_observe; /* the end of observation */
enum { DV_COLOUR_LINES = 6 };
extern const dv_colour dv_colour_lines[DV_COLOUR_LINES];

void dv_colour_set(cairo_t *cr, dv_colour colour);

#endif
