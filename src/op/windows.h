/* Convolutions of 4 x 4 pixels with stride 2, and their transposes, with 9/16 of the multiplications. */
#ifndef DV_WINDOWS_H
#define DV_WINDOWS_H

#include "engine/engine.h"

typedef struct dv_windows {
  dvbf_image large, small;
  int padding;
  int down, across; /* windows of an image */
  int panel;        /* windows whose transforms are in memory at a time */
} dv_windows;

/* Whether a convolution of this shape is faster this way. */
bool dv_windows_suit(dvbf_image large, dvbf_image small, int size, int stride);
/* For so many images. */
dv_windows dv_windows_of(dvbf_image large, dvbf_image small, int padding, int images);
/* Reals of scratch memory, and of transformed weights; 0 where that is too much. */
int dv_windows_room(const dv_windows *w);
int dv_windows_weights(const dv_windows *w);

/* What is computed, for `images` images side by side. Results are added to what is there. */
typedef struct dv_windows_job {
  const dvbf_real *large, *small; /* [images][height][width][channels]; NULL: not needed for what is wanted */
  const dvbf_real *w;             /* [4][4][channels of large][channels of small] */
  dvbf_real *to_small;            /* the convolution of large, or NULL */
  dvbf_real *to_large;            /* the transposed convolution of small, or NULL; not both */
  dvbf_real *dw;                  /* gradient of w from large and small, or NULL */
  dvbf_real *u;                   /* room for transformed weights */
  bool u_is_there;                /* they are in it, from the same job with the same weights */
  int images;
} dv_windows_job;

void dv_windows_run(const dv_windows *w, const dv_windows_job *job, const dvbf_run *run, dvbf_real *room);

#endif
