/* Linear systems whose free runs are nearest to the data. A subspace model forecasts the next frame best, and
 * where noise drives the system that says little about a run of hundreds of steps under inputs alone. So A,
 * B, H, D and the shifts are refined by least squares over free runs from many origins, each from the state
 * that its first frames tell; then, with these as they are, the gain by forecasts one step ahead. */
#ifndef DV_FREE_RUN_H
#define DV_FREE_RUN_H

#include "identify/choose.h"

/* Takes the place of a system that dv_linear_choose has found. With order = 0 its order is chosen anew, by
 * the free runs of refined systems over blocks that they have not seen. Where there is too little data, or
 * all orders have too many parameters to refine, the system stays as it is. */
dvbf_status dv_free_run_refine(dv_system *system, dv_linear_choice *choice, const dv_recordings *r, int order,
                               const volatile int *interrupt, dvbf_error *error);

#endif
