/* How far an object in a predicted image is from the same in the true one, in pixels. */
#ifndef DV_DISTANCE_H
#define DV_DISTANCE_H

#include <dvbf/dvbf.h>

/* All zeros: the images show no object whose place could be told. */
typedef struct dv_tracker {
  size_t height, width, channels;
  bool dark; /* the object is darker than the background */
} dv_tracker;

/* Looks at some frames whether what stands out is in one place, or in few that are close. */
dvbf_status dv_tracker_of(dv_tracker *out, const dvbf_data *data, const dvbf_sequences *sequences,
                          dvbf_error *error);

/* Between the centres in two images [height][width][channels]; NaN where one shows nothing, or is not seen.
 * room: [2][height][width]. */
double dv_tracker_distance(const dv_tracker *t, const float *one, const float *other, float *room);

#endif
