/* Which linear system: order, window and ridge by blocked cross-validation. */
#ifndef DV_CHOOSE_H
#define DV_CHOOSE_H

#include "identify/recordings.h"
#include "identify/score.h"
#include "kalman/system.h"

typedef struct dv_linear_choice {
  int order, past;
  bool feedthrough;
  double ridge;
  dv_fit_errors errors; /* of cross-validation */
  double judgement;     /* of these */
} dv_linear_choice;

/* order = 0: any. `feedthrough` is -1 for either. Gaps that are filled are filled anew. The system is in the
 * units of the recordings; clear it with dv_system_clear. A flag that is set, where there is one, ends the
 * search with DVBF_STOPPED. */
dvbf_status dv_linear_choose(dv_system *out, dv_linear_choice *choice, dv_recordings *r, int order,
                             int feedthrough, const volatile int *interrupt, dvbf_error *error);

#endif
