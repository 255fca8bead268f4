/* Convolutions of 4 x 4 pixels with stride 2, and their transposes, with 9/16 of the multiplications. */
#ifndef DV_OPS_CONVOLUTION_WINOGRAD_H
#define DV_OPS_CONVOLUTION_WINOGRAD_H

#include "engine/engine.h"

typedef struct dv_winograd {
  dvbf_image large, small;
  int padding;
  int down, across; /* windows of an image */
  int panel;        /* windows whose transforms are in memory at a time */
} dv_winograd;

/* Whether a convolution of this shape is faster this way. */
bool dv_winograd_fits(dvbf_image large, dvbf_image small, int size, int stride);
/* For this many images. */
dv_winograd dv_winograd_of(dvbf_image large, dvbf_image small, int padding, int images);
/* Reals of scratch memory, and of transformed weights; 0 if too many. */
int dv_winograd_room(const dv_winograd *w);
int dv_winograd_weights(const dv_winograd *w);

/* One computation, for `images` images side by side. Results are added to the outputs. */
typedef struct dv_winograd_job {
  const dvbf_real *large, *small; /* [images][height][width][channels]; NULL: not needed for what is wanted */
  const dvbf_real *w;             /* [4][4][channels of large][channels of small] */
  dvbf_real *to_small;            /* the convolution of large, or NULL */
  dvbf_real *to_large;            /* the transposed convolution of small, or NULL; not both */
  dvbf_real *dw;                  /* gradient of w from large and small, or NULL */
  dvbf_real *u;                   /* room for transformed weights */
  bool u_is_there;                /* they are in it, from the same job with the same weights */
  int images;
} dv_winograd_job;

void dv_winograd_run(const dv_winograd *w, const dv_winograd_job *job, const dvbf_run *run, dvbf_real *room);

#endif
