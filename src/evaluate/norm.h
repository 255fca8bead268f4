/* A norm in which several matrices are short. */
#ifndef DV_NORM_H
#define DV_NORM_H

#include <dvbf/core.h>

/* Searches an invertible T for which the largest singular value of all T^-1 S_i T is small. A row z then has
 * the norm |z T|, and no z S_i is longer than *length times z, nor is any mixture of them. systems is
 * [count][n][n]; t [n][n] becomes T, of which inverse [n][n] is the inverse. Without `search` T stays the
 * identity. */
dvbf_status dv_common_norm(double *length, double *t, double *inverse, const double *systems, int count,
                           int n, bool search, dvbf_error *error);

/* The largest singular value of T^-1 S T; scratch is [5 n n]. */
double dv_length_in(const double *s, const double *t, const double *inverse, int n, double *scratch);

#endif
