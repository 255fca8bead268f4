/* Reads decimal numbers exactly, independent of the locale. */
#ifndef DV_DECIMAL_H
#define DV_DECIMAL_H

#include "base/cursor.h"

/* *out = the float nearest to the number; false if the text is not a number. If `comma` is true, a decimal
 * comma is allowed. Empty text, NaN, NA, null or a dash means that the value is missing and gives NaN. */
bool dv_decimal(dv_cursor text, bool comma, float *out);

#endif
