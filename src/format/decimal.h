/* Numbers in text, exactly and in no language but that of C. */
#ifndef DV_DECIMAL_H
#define DV_DECIMAL_H

#include "base/cursor.h"

/* *out = the float nearest to the number that the text is; false when it is none. Where `comma` is true it
 * may stand for the point. Empty text and NaN, NA, null or a dash are a value that is missing: NaN. */
bool dv_decimal(dv_cursor text, bool comma, float *out);

#endif
