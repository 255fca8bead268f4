#include "report/page_axes.h"

#include "base/memory.h"
#include "base/status.h"
#include "report/projection.h"

#include <lapacke.h>
#include <math.h>
#include <stdio.h>

void dv_page_axes_free(dv_page_axes *axes) {
  for (size_t i = 0; axes->list && i < axes->count; i++) dv_free(axes->list[i].at);
  dv_free(axes->list);
  *axes = (dv_page_axes){0};
}

/* The next axis, with room for its coordinates; NULL when memory is short. */
static dv_page_axis *next_axis(dv_page_axes *axes, const char *group) {
  dv_page_axis *axis = &axes->list[axes->count];
  axis->group = group;
  axis->at = dv_calloc(axes->points, sizeof *axis->at);
  axes->count += axis->at != NULL;
  return axis->at ? axis : NULL;
}

static dvbf_status add_latent(dv_page_axes *axes, const dvbf_space *s, dvbf_error *error) {
  for (size_t j = 0; j < s->n_z && j < DV_PAGE_LATENT_AXES; j++) {
    dv_page_axis *axis = next_axis(axes, "latent dimensions");
    if (!axis) return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
    snprintf(axis->name, sizeof axis->name, "z%zu", j + 1);
    for (size_t i = 0; i < s->points; i++) axis->at[i] = s->z[i * s->n_z + j];
  }
  return DVBF_OK;
}

static dvbf_status add_principal(dv_page_axes *axes, const dvbf_space *s, dvbf_error *error) {
  if (s->n_z < 3) return DVBF_OK;
  dv_projection projection = {0};
  dvbf_status status = dv_projection_make(&projection, s->z, s->points, s->n_z, error);
  for (size_t k = 0; !status && k < projection.axes; k++) {
    dv_page_axis *axis = next_axis(axes, "principal axes");
    if (!axis)
      status = dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
    else
      snprintf(axis->name, sizeof axis->name, "principal axis %zu (%.0f %%)", k + 1,
               100 * projection.share[k]);
    for (size_t i = 0; axis && i < s->points; i++) axis->at[i] = projection.at[k][i];
  }
  dv_projection_clear(&projection);
  return status;
}

/* ---- Regression: the values of a column as far as they can be read off z linearly ---- */

/* Solves for beta[n_z + 1], whose last entry is the intercept, over the points whose value is finite, with
 * a[points][n_z + 1] and b[points] as room; false when there are too few or no solution was found. gelsd,
 * because latent dimensions that were never used make the columns dependent. */
static bool fit(const dvbf_space *s, const float *values, double *a, double *b, double *singular) {
  size_t width = s->n_z + 1, rows = 0;
  for (size_t i = 0; i < s->points; i++) {
    if (!isfinite(values[i])) continue;
    for (size_t j = 0; j < s->n_z; j++) a[rows * width + j] = s->z[i * s->n_z + j];
    a[rows * width + s->n_z] = 1;
    b[rows++] = values[i];
  }
  lapack_int rank, n = (lapack_int)rows, k = (lapack_int)width;
  return rows > width && !LAPACKE_dgelsd(LAPACK_ROW_MAJOR, n, k, 1, a, k, b, 1, singular, 1e-10, &rank);
}

static dvbf_status add_regression(dv_page_axes *axes, const dvbf_space *s, const dvbf_space_column *column,
                                  double *a, double *b, double *singular, dvbf_error *error) {
  if (column->cyclic || !fit(s, column->values, a, b, singular)) return DVBF_OK;
  dv_page_axis *axis = next_axis(axes, "regression on z");
  if (!axis) return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  snprintf(axis->name, sizeof axis->name, "%.60s read off z", column->name);
  for (size_t i = 0; i < s->points; i++) {
    axis->at[i] = b[s->n_z];
    for (size_t j = 0; j < s->n_z; j++) axis->at[i] += b[j] * s->z[i * s->n_z + j];
  }
  return DVBF_OK;
}

static dvbf_status add_regressions(dv_page_axes *axes, const dvbf_space *s, dvbf_error *error) {
  size_t width = s->n_z + 1, square;
  double *a = dv_multiply(s->points, width, &square) ? dv_calloc(square, sizeof *a) : NULL;
  double *b = dv_calloc(s->points + width, sizeof *b), *singular = dv_calloc(width, sizeof *singular);
  dvbf_status status = a && b && singular
                           ? DVBF_OK
                           : dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  for (size_t i = 0; !status && i < s->columns; i++)
    status = add_regression(axes, s, &s->column[i], a, b, singular, error);
  dv_free(a);
  dv_free(b);
  dv_free(singular);
  return status;
}

dvbf_status dv_page_axes_make(dv_page_axes *out, const dvbf_space *space, dvbf_error *error) {
  *out = (dv_page_axes){.points = space->points};
  out->list = dv_calloc(DV_PAGE_LATENT_AXES + DV_PROJECTION_AXES + space->columns, sizeof *out->list);
  if (!out->list) return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  dvbf_status status = add_latent(out, space, error);
  if (!status) status = add_principal(out, space, error);
  if (!status) status = add_regressions(out, space, error);
  return status;
}
