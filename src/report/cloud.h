/* Principal axes of a cloud of points. */
#ifndef DV_CLOUD_H
#define DV_CLOUD_H

#include <dvbf/dvbf.h>

enum { DV_CLOUD_AXES = 3 };

typedef struct dv_cloud {
  size_t points, axes;         /* axes = min(n, 3) */
  double *at[DV_CLOUD_AXES];   /* [points] coordinate of each point, NaN when the point is not finite */
  double share[DV_CLOUD_AXES]; /* of the whole variance */
  bool rotated;                /* principal axes, rather than the coordinates themselves */
} dv_cloud;

/* Principal axes of z [points][n] when n > 2, ordered by variance; for fewer the coordinates themselves. The
 * arrays are freed with dv_cloud_clear, also after a failure. */
dvbf_status dv_cloud_make(dv_cloud *out, const float *z, size_t points, size_t n, dvbf_error *error);
void dv_cloud_clear(dv_cloud *cloud);

#endif
