#include "report/page_axes.h"

#include "base/memory.h"
#include "base/status.h"
#include "evaluate/regression.h"
#include "report/cloud.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
  dv_cloud cloud = {0};
  dvbf_status status = dv_cloud_make(&cloud, s->z, s->points, s->n_z, error);
  for (size_t k = 0; !status && k < cloud.axes; k++) {
    dv_page_axis *axis = next_axis(axes, "principal axes");
    if (!axis)
      status = dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
    else
      snprintf(axis->name, sizeof axis->name, "principal axis %zu (%.0f %%)", k + 1, 100 * cloud.share[k]);
    for (size_t i = 0; axis && i < s->points; i++) axis->at[i] = cloud.at[k][i];
  }
  dv_cloud_clear(&cloud);
  return status;
}

/* ---- Regression: the values of a column as far as they can be read off z linearly ---- */

/* The room that one regression needs. */
typedef struct fit_room {
  float *z, *y; /* [points][n_z], [points] */
  double *beta; /* [n_z + 1], the intercept last */
} fit_room;

/* Fills room->beta from the points whose value is finite. DVBF_FORMAT: they are too few. */
static dvbf_status fit(const dvbf_space *s, const float *values, fit_room *room, dvbf_error *error) {
  size_t n = 0;
  double r2, likelihood;
  for (size_t i = 0; i < s->points; i++) {
    if (!isfinite(values[i])) continue;
    memcpy(room->z + n * s->n_z, s->z + i * s->n_z, s->n_z * sizeof *room->z);
    room->y[n++] = values[i];
  }
  return dv_regress(room->z, n, s->n_z, room->y, 1, &r2, &likelihood, room->beta, error);
}

static dvbf_status add_regression(dv_page_axes *axes, const dvbf_space *s, const dvbf_space_column *column,
                                  fit_room *room, dvbf_error *error) {
  if (column->cyclic) return DVBF_OK;
  dvbf_status status = fit(s, column->values, room, error);
  if (status) return status == DVBF_FORMAT ? DVBF_OK : status;
  dv_page_axis *axis = next_axis(axes, "regression on z");
  if (!axis) return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  snprintf(axis->name, sizeof axis->name, "%.60s read off z", column->name);
  for (size_t i = 0; i < s->points; i++) {
    axis->at[i] = room->beta[s->n_z];
    for (size_t j = 0; j < s->n_z; j++) axis->at[i] += room->beta[j] * s->z[i * s->n_z + j];
  }
  return DVBF_OK;
}

enum { MOST_REGRESSIONS = 8 };

static dvbf_status add_regressions(dv_page_axes *axes, const dvbf_space *s, dvbf_error *error) {
  size_t before = axes->count;
  fit_room room = {.z = dv_calloc(s->points, s->n_z * sizeof *room.z),
                   .y = dv_calloc(s->points, sizeof *room.y),
                   .beta = dv_calloc(s->n_z + 1, sizeof *room.beta)};
  dvbf_status status = room.z && room.y && room.beta
                           ? DVBF_OK
                           : dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  for (size_t i = 0; !status && i < s->columns && axes->count < before + MOST_REGRESSIONS; i++)
    status = add_regression(axes, s, &s->column[i], &room, error);
  DV_FREE(room.z, room.y, room.beta);
  return status;
}

dvbf_status dv_page_axes_make(dv_page_axes *out, const dvbf_space *space, dvbf_error *error) {
  *out = (dv_page_axes){.points = space->points};
  out->list = dv_calloc(DV_PAGE_LATENT_AXES + DV_CLOUD_AXES + space->columns, sizeof *out->list);
  if (!out->list) return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  dvbf_status status = add_latent(out, space, error);
  if (!status) status = add_principal(out, space, error);
  if (!status) status = add_regressions(out, space, error);
  return status;
}
