/* The axes of a cloud of points along which it varies most. */
#ifndef DV_PROJECTION_H
#define DV_PROJECTION_H

#include <dvbf/dvbf.h>

enum { DV_PROJECTION_AXES = 3 };

typedef struct dv_projection {
  size_t points, axes;              /* axes = min(n, 3) */
  double *at[DV_PROJECTION_AXES];   /* [points] coordinate of each point, NaN when the point is not finite */
  double share[DV_PROJECTION_AXES]; /* of the whole variance */
  bool rotated;                     /* principal axes, rather than the coordinates themselves */
} dv_projection;

/* Principal axes of z [points][n] when n > 2, ordered by variance; for fewer the coordinates themselves. The
 * arrays are freed with dv_projection_clear, also after a failure. */
dvbf_status dv_projection_make(dv_projection *out, const float *z, size_t points, size_t n,
                               dvbf_error *error);
void dv_projection_clear(dv_projection *projection);

#endif
