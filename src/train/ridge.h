/* Ridge regression of several targets on several inputs, of which the first is 1. */
#ifndef DV_RIDGE_H
#define DV_RIDGE_H

#include "base/status.h"

#include <stddef.h>

/* All zeros: none. */
typedef struct dv_ridge {
  size_t inputs, targets;
  double rows;          /* that were added */
  double *total;        /* [inputs][inputs] */
  double *coefficients; /* [inputs][targets], after dv_ridge_solve */
  double *row;          /* [inputs], for the caller to fill; row[0] stays 1 */
  double *target;       /* [targets], likewise */
} dv_ridge;

/* Call clear also after a failure. */
dvbf_status dv_ridge_init(dv_ridge *out, size_t inputs, size_t targets, dvbf_error *error);
void dv_ridge_clear(dv_ridge *ridge);
/* Counts row and target once. */
void dv_ridge_add(dv_ridge *ridge);
/* `share`: what is added to the mean square of each input but the first. Where that is not enough, all
 * coefficients are 0. */
void dv_ridge_solve(dv_ridge *ridge, double share);
/* What they say of target k of the row that is there. */
double dv_ridge_guess(const dv_ridge *ridge, size_t k);

#endif
