/* Drawing into the images of simulated systems. Rows count downwards, columns to the right, in pixels from
 * the middle of the first one. Drawing covers what is there. */
#pragma once

#include <stddef.h>

/* An image. */
typedef struct dv_raster {
  float *pixel; /* [size][size][channels] in [0, 1] */
  size_t size, channels;
} dv_raster;
enum { DV_RASTER_MOST = 512 }; /* pixels of a side: the most of the setting `size` */

/* What to draw with; images of one channel take `grey`. */
typedef struct dv_ink {
  double grey, red, green, blue;
} dv_ink;
#define DV_INK_WHITE ((dv_ink){1, 1, 1, 1})
#define DV_INK_RED ((dv_ink){1, 0.95, 0.3, 0.2})
#define DV_INK_BLUE ((dv_ink){0.7, 0.3, 0.6, 1})
#define DV_INK_GREEN ((dv_ink){0.5, 0.3, 0.8, 0.4})

typedef struct dv_spot {
  double row, column;
} dv_spot;

void dv_raster_clear(dv_raster *r);
/* A round Gaussian blob whose centre is opaque. */
void dv_raster_blob(dv_raster *r, dv_spot centre, double deviation, dv_ink ink);
/* A line with round ends, `radius` to each side; both ends in one place are a disc. Its edge is one pixel
 * wide. */
void dv_raster_rod(dv_raster *r, dv_spot from, dv_spot to, double radius, dv_ink ink);
/* A box with sides along rows and columns. */
void dv_raster_box(dv_raster *r, dv_spot centre, double half_height, double half_width, dv_ink ink);
/* Soft spots of many sizes in fixed places of a plane that is `extent` images wide, of which the image shows
 * the part that begins at `at`, in images. */
void dv_raster_texture(dv_raster *r, dv_spot at, double extent, double contrast);
