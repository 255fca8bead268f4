/* Tracking an object in images, and its distance between two images. */
#pragma once

#include <dvbf/dvbf.h>

#include <stdbool.h>
#include <stddef.h>

/* ---- Centre of an image ---- */

/* Whether dark things are on a bright background: the median of an image [pixels] is nearer to its brightest
 * pixel. room: [pixels]. */
bool dv_track_dark(const float *image, size_t pixels, float *room);

/* Images [pixels][channels] as [pixels]: the mean over the channels. */
void dv_track_grey(float *out, const float *image, size_t pixels, size_t channels);

/* The mean position of what is brighter (or darker) than the median of the image, weighted by the difference,
 * in pixels from the middle of the first one; NaN if there is none. room: [height * width]. */
void dv_track_centre(const float *image, size_t height, size_t width, bool dark, float *room, double *across,
                     double *down);

/* ---- Distance ---- */

/* All zeros: the images show no object with a position. */
typedef struct dv_tracker {
  size_t height, width, channels;
  bool dark; /* the object is darker than the background */
} dv_tracker;

/* Checks in some frames whether what stands out is in one place, or in few close ones. */
dvbf_status dv_tracker_of(dv_tracker *out, const dvbf_data *data, const dvbf_sequences *sequences,
                          dvbf_error *error);

/* Distance in pixels between the centres in two images [height][width][channels]; NaN if one is missing or
 * shows nothing. room: [2][height][width]. */
double dv_tracker_distance(const dv_tracker *t, const float *one, const float *other, float *room);
