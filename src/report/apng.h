/* Animated PNG files, which browsers and viewers of pictures play. */
#ifndef DV_APNG_H
#define DV_APNG_H

#include <dvbf/core.h>

/* Image sequences side by side. */
typedef struct dv_video {
  size_t frames, size, channels, columns;
  const float *const *images; /* [columns], each [frames][size][size][channels] in [0, 1] */
  double seconds;             /* that each frame is shown */
} dv_video;

/* Writes it atomically; small images are enlarged. */
dvbf_status dv_apng_write(const char *path, const dv_video *video, dvbf_error *error);

#endif
