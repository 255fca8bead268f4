/* Drawing into the images of simulated systems: Gaussian blobs, rods, boxes and textures with soft edges
 * (dv_raster_*), laid over what is there. */
#include "experiments/raster.h"

#include "math/random.h"

#include <string.h>

/* Lays ink over a pixel with coverage `cover`. */
static void lay(dv_raster *r, size_t i, size_t j, double cover, const dv_ink *ink) {
  const double colour[] = {ink->red, ink->green, ink->blue};
  float *pixel = r->pixel + (i * r->size + j) * r->channels;
  for (size_t c = 0; c < r->channels; c++) {
    double below = pixel[c], above = r->channels == 1 ? ink->grey : colour[c % 3];
    pixel[c] = (float)(below + cover * (above - below));
  }
}

void dv_raster_clear(dv_raster *r) {
  memset(r->pixel, 0, r->size * r->size * r->channels * sizeof *r->pixel);
}

/* profile[i] = exp(-(i - centre)^2 / (2 deviation^2)) */
static void gaussian_profile(double *profile /* [size] */, size_t size, double centre, double deviation) {
  for (size_t i = 0; i < size; i++) {
    double distance = ((double)i - centre) / deviation;
    profile[i] = exp(-0.5 * distance * distance);
  }
}

/* A round blob is the product of its two profiles: 2 size exponentials instead of size^2. */
void dv_raster_blob(dv_raster *r, dv_spot centre, double deviation, dv_ink ink) {
  double vertical[DV_RASTER_MOST], horizontal[DV_RASTER_MOST];
  size_t size = r->size;
  gaussian_profile(vertical, size, centre.row, deviation);
  gaussian_profile(horizontal, size, centre.column, deviation);
  for (size_t i = 0; i < size; i++)
    for (size_t j = 0; j < size; j++) lay(r, i, j, vertical[i] * horizontal[j], &ink);
}

static double share(double value) {
  return value < 0 ? 0 : value > 1 ? 1 : value;
}

void dv_raster_rod(dv_raster *r, dv_spot from, dv_spot to, double radius, dv_ink ink) {
  double down = to.row - from.row, right = to.column - from.column, square = down * down + right * right;
  for (size_t i = 0; i < r->size; i++)
    for (size_t j = 0; j < r->size; j++) {
      double y = (double)i - from.row, x = (double)j - from.column;
      double along = square > 0 ? share((y * down + x * right) / square) : 0;
      double cover = share(radius + 0.5 - hypot(y - along * down, x - along * right));
      if (cover > 0) lay(r, i, j, cover, &ink);
    }
}

void dv_raster_box(dv_raster *r, dv_spot centre, double half_height, double half_width, dv_ink ink) {
  for (size_t i = 0; i < r->size; i++)
    for (size_t j = 0; j < r->size; j++) {
      double cover = share(half_height + 0.5 - fabs((double)i - centre.row)) *
                     share(half_width + 0.5 - fabs((double)j - centre.column));
      if (cover > 0) lay(r, i, j, cover, &ink);
    }
}

void dv_raster_texture(dv_raster *r, dv_spot at, double extent, double contrast) {
  enum { TEXTURE_SEED = 20 };
  dv_random random = dv_random_at(TEXTURE_SEED, DV_STREAM_SIMULATION, 0, 0); /* the same in all data */
  double size = (double)r->size;
  int spots = (int)(14 * extent * extent);
  dv_raster_clear(r);
  for (int k = 0; k < spots; k++) {
    dv_spot spot = {(dv_random_uniform(&random) * extent - at.row) * size,
                    (dv_random_uniform(&random) * extent - at.column) * size};
    double deviation = size * (0.04 + 0.08 * dv_random_uniform(&random)), bright[4];
    for (int c = 0; c < 4; c++) bright[c] = contrast * dv_random_uniform(&random);
    dv_raster_blob(r, spot, deviation, (dv_ink){bright[0], bright[1], bright[2], bright[3]});
  }
}
