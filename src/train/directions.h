/* How many directions the values of x really have. */
#ifndef DV_DIRECTIONS_H
#define DV_DIRECTIONS_H

#include "data/dataset.h"

/* *out = number of principal components that together hold `share` of the variance of the standardised
 * columns; a value that is missing counts as the mean of its column. Of large data, a few thousand frames are
 * looked at. Of more than DV_DIRECTIONS_MOST columns, all count. */
enum { DV_DIRECTIONS_MOST = 256 };
dvbf_status dv_directions(size_t *out, const dvbf_sequences *s, const dv_statistics *x, double share,
                          dvbf_error *error);

#endif
