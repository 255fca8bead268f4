/* The centre of what stands out from the background of an image. */
#ifndef DV_TRACK_H
#define DV_TRACK_H

#include <stdbool.h>
#include <stddef.h>

/* Whether dark things are on a bright background: the median of an image is nearer to its brightest pixel,
 * over images [count][pixels] together. room: [pixels]. */
bool dv_track_dark(const float *images, size_t count, size_t pixels, float *room);

/* Images [pixels][channels] as [pixels]: the mean over the channels. */
void dv_track_grey(float *out, const float *image, size_t pixels, size_t channels);

/* The mean place of what is brighter (or darker) than the median of the image, weighted by how much, in
 * pixels from the middle of the first one; NaN where nothing is. room: [height * width]. */
void dv_track_centre(const float *image, size_t height, size_t width, bool dark, float *room, double *across,
                     double *down);
/* How far that is from its centre: the root of the mean squared distance, with the same weights. */
double dv_track_spread(const float *image, size_t height, size_t width, bool dark, float *room, double across,
                       double down);

#endif
