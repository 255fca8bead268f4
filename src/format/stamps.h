/* Times as text. */
#ifndef DV_STAMPS_H
#define DV_STAMPS_H

#include "base/cursor.h"

/* A date, as 2024-01-31, 2024/01/31 or 31.01.2024, and perhaps a time of day behind a blank or a T, with
 * Z or +01:00 behind it: seconds since 1970-01-01 00:00, UTC where nothing else is said. */
bool dv_read_date(dv_cursor text, double *seconds);
/* A time of day, as 12:00 or 12:00:00.25: seconds since midnight. */
bool dv_read_clock(dv_cursor text, double *seconds);
/* A number with all digits of a double; false: it is none. `comma`: a decimal comma will do. */
bool dv_read_double(dv_cursor text, bool comma, double *out);

/* Seconds of one unit, as "ms" or "min"; 0: it is no unit of time. */
double dv_seconds_of(const char *unit);
/* Seconds of one unit of numbers that count from 1970, told by their size; 0: they do not. */
double dv_epoch_unit(double value);

#endif
