/* Inputs that go on beyond the outputs, as planned ones do: u [.., steps + more, columns] beside x [..,
 * steps, columns]. The sequences become as long as u, and x is missing at their end. */
#ifndef DV_PLANNED_H
#define DV_PLANNED_H

#include "format/frames.h"

enum { DV_MOST_PARTS = 64 };

typedef struct dv_plan {
  size_t steps; /* of u of each sequence; 0: it does not go on beyond x */
  size_t parts;
  const dv_array *arrays[DV_MOST_PARTS];
  size_t widths[DV_MOST_PARTS];
} dv_plan;

/* Looks at the frames before they are loaded. `lead`: dimensions that count frames. */
dv_plan dv_plan_of(const dv_frames *f, int lead);
/* Makes the loaded sequences longer, if there is a plan. */
dvbf_status dv_plan_extend(dvbf_sequences *s, const dv_plan *plan, dv_archive *a, dvbf_error *error);

#endif
