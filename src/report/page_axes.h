/* The axes that a reader can choose for the view of a latent space. */
#ifndef DV_PAGE_AXES_H
#define DV_PAGE_AXES_H

#include <dvbf/page.h>

enum { DV_PAGE_LATENT_AXES = 12 }; /* further latent dimensions show only in the principal axes */

typedef struct dv_page_axis {
  char name[80];
  const char *group; /* "latent dimensions", "principal axes" or "regression on z" */
  double *at;        /* [points] */
} dv_page_axis;

typedef struct dv_page_axes {
  size_t points, count;
  dv_page_axis *list; /* [count] */
} dv_page_axes;

/* `space` holds finite points only, with strides of 1. Free with dv_page_axes_free, also after a failure. */
dvbf_status dv_page_axes_make(dv_page_axes *out, const dvbf_space *space, dvbf_error *error);
void dv_page_axes_free(dv_page_axes *axes);

#endif
