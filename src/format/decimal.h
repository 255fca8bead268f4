/* Reads decimal numbers exactly, independent of the locale. */
#ifndef DV_DECIMAL_H
#define DV_DECIMAL_H

#include "base/cursor.h"

/* *out = the float nearest to the number; false if the text is not a number. If `comma` is true, a decimal
 * comma is allowed. Empty text, NaN, NA, null or a dash means that the value is missing and gives NaN. */
bool dv_decimal(dv_cursor text, bool comma, float *out);

/* A number whose digits are grouped in threes: 1,234.5 or, with a decimal comma, 1.234,5; blanks and
 * apostrophes may group them too. `decimal` is '.' or ','. */
bool dv_decimal_grouped(dv_cursor text, char decimal, float *out);
/* What the commas and dots of a number can be. */
typedef struct dv_marks {
  bool decimal_comma, decimal_dot; /* it can be nothing but that */
  bool comma, dot;                 /* there is one */
} dv_marks;
dv_marks dv_decimal_marks(dv_cursor text);

#endif
