/* The interactive latent space: choice of points, and coordinates with 16 bits. */
#include "base/memory.h"
#include "base/status.h"
#include "report/page.h"
#include "report/page_axes.h"
#include "report/page_coded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The points that are shown, side by side. */
typedef struct chosen {
  dvbf_space space; /* finite points, strides of 1 */
  size_t finite;    /* number of finite points, from which these were chosen */
  float *z, *values;
  dvbf_space_column *column;
} chosen;

static void free_chosen(chosen *c) {
  DV_FREE(c->z, c->values, c->column);
}

static bool finite_point(const dvbf_space *s, size_t i) {
  for (size_t j = 0; j < s->n_z; j++)
    if (!isfinite(s->z[i * s->n_z + j])) return false;
  return true;
}

static void copy_point(chosen *c, const dvbf_space *from, size_t i, size_t k) {
  memcpy(c->z + k * from->n_z, from->z + i * from->n_z, from->n_z * sizeof *c->z);
  for (size_t j = 0; j < from->columns; j++) {
    const dvbf_space_column *column = &from->column[j];
    c->values[j * c->space.points + k] = column->values[i * (column->stride ? column->stride : 1)];
  }
}

/* Of n finite points the k-th that is shown is number floor(k n / shown). */
static dvbf_status choose(chosen *c, const dvbf_space *s, dvbf_error *error) {
  for (size_t i = 0; i < s->points; i++) c->finite += finite_point(s, i);
  if (!c->finite)
    return dv_fail(error, DVBF_ARGUMENT, "a latent space of %zu points: none of them is finite", s->points);
  size_t shown = c->finite < DVBF_SPACE_POINTS ? c->finite : DVBF_SPACE_POINTS, taken = 0, seen = 0;
  c->space = *s;
  c->space.points = shown;
  c->space.z = c->z = dv_calloc(shown, s->n_z * sizeof *c->z);
  c->values = dv_calloc(shown, s->columns * sizeof *c->values);
  c->space.column = c->column = dv_calloc(s->columns, sizeof *c->column);
  if (!c->z || !c->values || !c->column)
    return dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  for (size_t j = 0; j < s->columns; j++)
    c->column[j] = (dvbf_space_column){s->column[j].name, c->values + j * shown, 1, s->column[j].cyclic,
                                       s->column[j].group};
  for (size_t i = 0; i < s->points && taken < shown; i++) {
    if (!finite_point(s, i)) continue;
    if (seen++ == taken * c->finite / shown) copy_point(c, s, i, taken++);
  }
  return DVBF_OK;
}

/* ---- Writing ---- */

static void add_axis(dv_markup *m, const chosen *c, const dv_page_axis *axis) {
  json_t *about = json_pack("{s:o, s:o}", "name", dv_markup_json_text(axis->name), "group",
                            dv_markup_json_text(axis->group));
  dv_page_coded(m, about, axis->at, c->space.points, NAN, NAN);
}

/* Angles are brought into [-pi, pi]. */
static void add_column(dv_markup *m, const chosen *c, const dvbf_space_column *column, double *room) {
  json_t *about =
      json_pack("{s:o, s:b, s:o}", "name", dv_markup_json_text(column->name), "cyclic", column->cyclic,
                "group", dv_markup_json_text(column->group ? column->group : "ground truth"));
  for (size_t i = 0; i < c->space.points; i++)
    room[i] = column->cyclic ? remainder(column->values[i], 2 * M_PI) : column->values[i];
  bool cyclic = column->cyclic;
  dv_page_coded(m, about, room, c->space.points, cyclic ? -M_PI : NAN, cyclic ? M_PI : NAN);
}

static void add_caption(dv_markup *m, const dvbf_space *s, const chosen *c) {
  dv_markup_raw(m, "<figcaption>");
  dv_markup_text(m, s->caption);
  if (c->space.points < c->finite)
    dv_markup_format(m, " Shown are %zu of %zu points, evenly chosen.", c->space.points, c->finite);
  if (c->finite < s->points)
    dv_markup_format(m, " %zu points that are not finite are left out.", s->points - c->finite);
  if (s->n_z > DV_PAGE_LATENT_AXES)
    dv_markup_format(m, " Of %zu latent dimensions the first %d can be chosen.", s->n_z, DV_PAGE_LATENT_AXES);
  dv_markup_raw(m, "</figcaption></figure>\n");
}

static void add_space(dv_markup *m, const dvbf_space *s, const chosen *c, const dv_page_axes *axes,
                      double *room) {
  dv_markup_format(m, "<figure class=\"space\"><script type=\"application/json\">{\"points\":%zu,\"axes\":[",
                   c->space.points);
  for (size_t i = 0; i < axes->count; i++) {
    dv_markup_raw(m, i ? ",\n" : "");
    add_axis(m, c, &axes->list[i]);
  }
  dv_markup_raw(m, "],\"columns\":[");
  for (size_t i = 0; i < s->columns; i++) {
    dv_markup_raw(m, i ? ",\n" : "");
    add_column(m, c, &c->column[i], room);
  }
  dv_markup_raw(m, "]}</script>\n");
  add_caption(m, s, c);
}

dvbf_status dvbf_page_space(dvbf_page *page, const dvbf_space *space, dvbf_error *error) {
  if (!space->points || !space->n_z || !space->z)
    return dv_fail(error, DVBF_ARGUMENT, "a latent space of %zu points and %zu dimensions: it needs both",
                   space->points, space->n_z);
  dv_page_mark mark = dv_page_begin(page);
  chosen c = {0};
  dv_page_axes axes = {0};
  double *room = NULL;
  dvbf_status status = choose(&c, space, error);
  if (!status) status = dv_page_axes_make(&axes, &c.space, error);
  if (!status && !(room = dv_calloc(c.space.points, sizeof *room)))
    status = dv_fail(error, DVBF_MEMORY, "out of memory while showing the latent space");
  if (!status) add_space(&page->body, space, &c, &axes, room);
  dv_free(room);
  dv_page_axes_free(&axes);
  free_chosen(&c);
  return dv_page_end(page, mark, status, error);
}
