/* Interactive diagrams of a page: line plots (dv_plot_*), signals by sequence and column (dv_page_signals),
 * and the latent space with its choice of axes (dvbf_page_space). They are data that page_plot.js draws as
 * SVG for the window at hand, so text keeps its size on a telephone, in the dark and on paper, and the reader
 * can choose among 64 columns. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "evaluate/evaluate.h"
#include "report/page.h"
#include "report/plots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Line plots ---- */

static const char *truth(bool value) {
  return value ? "true" : "false";
}

dv_plot dv_plot_begin(dvbf_page *page, const char *about, const char *chooser, bool stacked) {
  dv_plot plot = {.page = page, .mark = dv_page_begin(page)};
  dv_markup *m = &page->body;
  dv_markup_raw(m, "<figure class=\"plot\" data-about=\"");
  dv_markup_text(m, about);
  dv_markup_format(m, "\"><script type=\"application/json\">{\"stack\":%s,\"chooser\":", truth(stacked));
  dv_markup_json(m, dv_markup_json_text(chooser));
  dv_markup_raw(m, ",\"views\":[");
  return plot;
}

static void end_view(const dv_plot *plot) {
  if (plot->views) dv_markup_raw(&plot->page->body, "]}");
}

void dv_plot_view(dv_plot *plot, const char *name, const char *text) {
  dv_markup *m = &plot->page->body;
  end_view(plot);
  dv_markup_raw(m, plot->views++ ? ",\n{\"name\":" : "{\"name\":");
  dv_markup_json(m, dv_markup_json_text(name));
  dv_markup_raw(m, ",\"text\":");
  dv_markup_json(m, dv_markup_json_text(text));
  dv_markup_raw(m, ",\"panels\":[");
  plot->panels = 0;
}

/* Five digits are more than the eye sees. */
static void add_numbers(dv_markup *m, const char *key, const double *values, size_t count) {
  dv_markup_format(m, ",\"%s\":[", key);
  for (size_t i = 0; i < count; i++)
    if (isfinite(values[i]))
      dv_markup_format(m, i ? ",%.5g" : "%.5g", values[i]);
    else
      dv_markup_raw(m, i ? ",null" : "null");
  dv_markup_raw(m, "]");
}

static void add_series(dv_markup *m, const dv_series *s) {
  static const char *const kinds[] = {"line", "dashed", "bars", "bars"};
  dv_markup_raw(m, "{\"name\":");
  dv_markup_json(m, dv_markup_json_text(s->name));
  dv_markup_format(m, ",\"kind\":\"%s\",\"thin\":%s,\"colour\":%d,\"first\":%.9g,\"step\":%.9g",
                   kinds[s->kind], truth(s->kind == DV_SERIES_STEMS), s->colour, s->first,
                   s->step > 0 ? s->step : 1);
  if (s->x) add_numbers(m, "x", s->x, s->count);
  add_numbers(m, "y", s->y, s->count);
  dv_markup_raw(m, "}");
}

static void add_mark(dv_markup *m, const dv_plot_mark *mark) {
  dv_markup_raw(m, "{\"name\":");
  dv_markup_json(m, dv_markup_json_text(mark->name));
  dv_markup_format(m, ",\"at\":%.9g,\"level\":%s,\"colour\":%d}", mark->at, truth(mark->level), mark->colour);
}

void dv_plot_panel(dv_plot *plot, const dv_panel *p) {
  dv_markup *m = &plot->page->body;
  dv_markup_raw(m, plot->panels++ ? ",{\"up\":" : "{\"up\":");
  dv_markup_json(m, dv_markup_json_text(p->up));
  dv_markup_raw(m, ",\"across\":");
  dv_markup_json(m, dv_markup_json_text(p->across));
  dv_markup_format(m, ",\"log\":%s,\"zero\":%s,\"robust\":%s,\"time\":\"%s\",\"series\":[",
                   truth(p->logarithmic), truth(p->zero), truth(p->robust), p->seconds ? "s" : "");
  for (size_t i = 0; i < p->n_series; i++) {
    dv_markup_raw(m, i ? "," : "");
    add_series(m, &p->series[i]);
  }
  dv_markup_raw(m, "],\"marks\":[");
  for (size_t i = 0; i < p->n_marks; i++) {
    dv_markup_raw(m, i ? "," : "");
    add_mark(m, &p->marks[i]);
  }
  dv_markup_raw(m, "]}");
}

dvbf_status dv_plot_end(dv_plot *plot, const char *caption, dvbf_error *error) {
  dv_markup *m = &plot->page->body;
  end_view(plot);
  dv_markup_raw(m, "]}</script>\n");
  dv_markup_element(m, "figcaption", caption);
  dv_markup_raw(m, "</figure>\n");
  return dv_page_end(plot->page, plot->mark, DVBF_OK, error);
}

/* ---- Signals ---- */

typedef struct writing {
  dv_markup *m;
  const dv_signals *signals;
  const dvbf_data *data;
  size_t columns, inputs;
  double *room; /* [steps] */
} writing;

static void add_name(const writing *w, bool input, size_t k) {
  char label[64], room[32];
  dv_signal_label(label, w->data, input, k);
  const char *name = dv_signal_name(room, w->data, input, k), *unit = dv_signal_unit(w->data, input, k);
  dv_markup_raw(w->m, k ? "," : "");
  dv_markup_json(w->m, json_pack("{s:o, s:o, s:o}", "name", dv_markup_json_text(name), "unit",
                                 dv_markup_json_text(unit), "label", dv_markup_json_text(label)));
}

/* One column of values [steps][width], of which the first `steps` are there. */
static void add_column(const writing *w, const float *values, size_t width, size_t k, size_t steps) {
  for (size_t t = 0; t < steps; t++) w->room[t] = (double)values[t * width + k];
  dv_markup_raw(w->m, k ? ",\n" : "");
  dv_page_coded(w->m, json_object(), w->room, steps, NAN, NAN);
}

static void add_columns(const writing *w, const char *key, const float *values, size_t width, size_t count,
                        size_t steps) {
  dv_markup_format(w->m, ",\"%s\":[", key);
  for (size_t k = 0; k < count; k++) add_column(w, values, width, k, steps);
  dv_markup_raw(w->m, "]");
}

static void add_use(const writing *w, const dv_signal_use *u, size_t i) {
  size_t n = w->signals->shown.n_x, at = i * u->steps * n, steps = dv_signal_steps(w->signals, u, i);
  dv_markup_format(w->m, "{\"first\":%zu,\"mark\":", u->first);
  dv_markup_json(w->m, dv_markup_json_text(u->mark));
  add_columns(w, "mean", u->mean + at, n, w->columns, steps);
  add_columns(w, "low", u->low + at, n, w->columns, steps);
  add_columns(w, "high", u->high + at, n, w->columns, steps);
  add_numbers(w->m, "rmse", u->rmse + i * n, w->columns);
  add_numbers(w->m, "fit", u->fit + i * n, w->columns);
  dv_markup_raw(w->m, "}");
}

static void add_sequence(const writing *w, size_t i) {
  const dvbf_sequences *s = &w->signals->shown;
  size_t steps = dvbf_sequence_length(s, i), at = i * s->steps;
  char name[96];
  dv_signal_sequence(name, s, i);
  dv_markup_raw(w->m, i ? ",\n{\"name\":" : "{\"name\":");
  dv_markup_json(w->m, dv_markup_json_text(name));
  dv_markup_format(w->m, ",\"start\":%.17g,\"steps\":%zu", dv_signal_start(w->data, s, i), steps);
  add_columns(w, "x", s->x + at * s->n_x, s->n_x, w->columns, steps);
  add_columns(w, "u", s->n_u ? s->u + at * s->n_u : NULL, s->n_u, w->inputs, steps);
  dv_markup_raw(w->m, ",\"uses\":[");
  for (size_t k = 0; k < w->signals->n_uses; k++) {
    dv_markup_raw(w->m, k ? "," : "");
    add_use(w, &w->signals->use[k], i);
  }
  dv_markup_raw(w->m, "]}");
}

static void add_all(const writing *w, const char *caption) {
  dv_markup_format(w->m,
                   "<figure class=\"signals\" data-about=\"over time, measured and predicted\">"
                   "<script type=\"application/json\">{\"sample_time\":%.17g,\"dates\":%s,\"columns\":[",
                   w->data->sample_time, w->data->dates ? "true" : "false");
  for (size_t k = 0; k < w->columns; k++) add_name(w, false, k);
  dv_markup_raw(w->m, "],\"inputs\":[");
  for (size_t k = 0; k < w->inputs; k++) add_name(w, true, k);
  dv_markup_raw(w->m, "],\"uses\":[");
  for (size_t k = 0; k < w->signals->n_uses; k++) {
    dv_markup_raw(w->m, k ? "," : "");
    dv_markup_json(w->m, dv_markup_json_text(w->signals->use[k].name));
  }
  dv_markup_raw(w->m, "],\"sequences\":[");
  for (size_t i = 0; i < w->signals->shown.count; i++) add_sequence(w, i);
  dv_markup_raw(w->m, "]}</script>\n");
  dv_markup_element(w->m, "figcaption", caption);
  dv_markup_raw(w->m, "</figure>\n");
}

dvbf_status dv_page_signals(dvbf_page *page, const dv_signals *signals, const dvbf_data *data,
                            const char *caption, dvbf_error *error) {
  const dvbf_sequences *s = &signals->shown;
  writing w = {.m = &page->body,
               .signals = signals,
               .data = data,
               .columns = s->n_x < DV_SIGNAL_COLUMNS ? s->n_x : DV_SIGNAL_COLUMNS,
               .inputs = s->n_u < DV_SIGNAL_INPUTS ? s->n_u : DV_SIGNAL_INPUTS,
               .room = dv_calloc(s->steps + 1, sizeof *w.room)};
  dv_page_mark mark = dv_page_begin(page);
  dvbf_status status = w.room ? DVBF_OK : dv_fail_memory(error, "showing signals");
  if (!status) add_all(&w, caption);
  dv_free(w.room);
  return dv_page_end(page, mark, status, error);
}

/* ---- Axes of a latent space ---- */

enum { LATENT_AXES = 12 }; /* further latent dimensions show only in the principal axes */

typedef struct space_axis {
  char name[80];
  const char *group; /* "latent dimensions", "principal axes" or "regression on z" */
  double *at;        /* [points] */
} space_axis;

typedef struct space_axes {
  size_t points, count;
  space_axis *list; /* [count] */
} space_axes;

static void free_axes(space_axes *axes) {
  for (size_t i = 0; axes->list && i < axes->count; i++) dv_free(axes->list[i].at);
  dv_free(axes->list);
  *axes = (space_axes){0};
}

/* The next axis, with room for its coordinates; NULL when memory is short. */
static space_axis *next_axis(space_axes *axes, const char *group) {
  space_axis *axis = &axes->list[axes->count];
  axis->group = group;
  axis->at = dv_calloc(axes->points, sizeof *axis->at);
  axes->count += axis->at != NULL;
  return axis->at ? axis : NULL;
}

static dvbf_status add_latent(space_axes *axes, const dvbf_space *s, dvbf_error *error) {
  for (size_t j = 0; j < s->n_z && j < LATENT_AXES; j++) {
    space_axis *axis = next_axis(axes, "latent dimensions");
    if (!axis) return dv_fail_memory(error, "showing the latent space");
    snprintf(axis->name, sizeof axis->name, "z%zu", j + 1);
    for (size_t i = 0; i < s->points; i++) axis->at[i] = s->z[i * s->n_z + j];
  }
  return DVBF_OK;
}

static dvbf_status add_principal(space_axes *axes, const dvbf_space *s, dvbf_error *error) {
  if (s->n_z < 3) return DVBF_OK;
  dv_cloud cloud = {0};
  dvbf_status status = dv_cloud_make(&cloud, s->z, s->points, s->n_z, error);
  for (size_t k = 0; !status && k < cloud.axes; k++) {
    space_axis *axis = next_axis(axes, "principal axes");
    if (!axis)
      status = dv_fail_memory(error, "showing the latent space");
    else
      snprintf(axis->name, sizeof axis->name, "principal axis %zu (%.0f %%)", k + 1, 100 * cloud.share[k]);
    for (size_t i = 0; axis && i < s->points; i++) axis->at[i] = cloud.at[k][i];
  }
  dv_cloud_clear(&cloud);
  return status;
}

/* ---- Regression axes (a column's linear prediction from z) ---- */

/* Memory of one regression. */
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

static dvbf_status add_regression(space_axes *axes, const dvbf_space *s, const dvbf_space_column *column,
                                  fit_room *room, dvbf_error *error) {
  if (column->cyclic) return DVBF_OK;
  dvbf_status status = fit(s, column->values, room, error);
  if (status) return status == DVBF_FORMAT ? DVBF_OK : status;
  space_axis *axis = next_axis(axes, "regression on z");
  if (!axis) return dv_fail_memory(error, "showing the latent space");
  snprintf(axis->name, sizeof axis->name, "%.60s read off z", column->name);
  for (size_t i = 0; i < s->points; i++) {
    axis->at[i] = room->beta[s->n_z];
    for (size_t j = 0; j < s->n_z; j++) axis->at[i] += room->beta[j] * s->z[i * s->n_z + j];
  }
  return DVBF_OK;
}

enum { MOST_REGRESSIONS = 8 };

static dvbf_status add_regressions(space_axes *axes, const dvbf_space *s, dvbf_error *error) {
  size_t before = axes->count;
  fit_room room = {.z = dv_calloc(s->points, s->n_z * sizeof *room.z),
                   .y = dv_calloc(s->points, sizeof *room.y),
                   .beta = dv_calloc(s->n_z + 1, sizeof *room.beta)};
  dvbf_status status =
      room.z && room.y && room.beta ? DVBF_OK : dv_fail_memory(error, "showing the latent space");
  for (size_t i = 0; !status && i < s->columns && axes->count < before + MOST_REGRESSIONS; i++)
    status = add_regression(axes, s, &s->column[i], &room, error);
  DV_FREE(room.z, room.y, room.beta);
  return status;
}

static dvbf_status make_axes(space_axes *out, const dvbf_space *space, dvbf_error *error) {
  *out = (space_axes){.points = space->points};
  out->list = dv_calloc(LATENT_AXES + DV_CLOUD_AXES + space->columns, sizeof *out->list);
  if (!out->list) return dv_fail_memory(error, "showing the latent space");
  dvbf_status status = add_latent(out, space, error);
  if (!status) status = add_principal(out, space, error);
  if (!status) status = add_regressions(out, space, error);
  return status;
}

/* ---- Latent space ---- */

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
  if (!c->z || !c->values || !c->column) return dv_fail_memory(error, "showing the latent space");
  for (size_t j = 0; j < s->columns; j++)
    c->column[j] = (dvbf_space_column){s->column[j].name, c->values + j * shown, 1, s->column[j].cyclic,
                                       s->column[j].group};
  for (size_t i = 0; i < s->points && taken < shown; i++) {
    if (!finite_point(s, i)) continue;
    if (seen++ == taken * c->finite / shown) copy_point(c, s, i, taken++);
  }
  return DVBF_OK;
}

/* ---- Latent space as data ---- */

static void add_axis(dv_markup *m, const chosen *c, const space_axis *axis) {
  json_t *about = json_pack("{s:o, s:o}", "name", dv_markup_json_text(axis->name), "group",
                            dv_markup_json_text(axis->group));
  dv_page_coded(m, about, axis->at, c->space.points, NAN, NAN);
}

/* Angles are brought into [-pi, pi]. */
static void add_space_column(dv_markup *m, const chosen *c, const dvbf_space_column *column, double *room) {
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
  if (s->n_z > LATENT_AXES)
    dv_markup_format(m, " Of %zu latent dimensions the first %d can be chosen.", s->n_z, LATENT_AXES);
  dv_markup_raw(m, "</figcaption></figure>\n");
}

static void add_space(dv_markup *m, const dvbf_space *s, const chosen *c, const space_axes *axes,
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
    add_space_column(m, c, &c->column[i], room);
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
  space_axes axes = {0};
  double *room = NULL;
  dvbf_status status = choose(&c, space, error);
  if (!status) status = make_axes(&axes, &c.space, error);
  if (!status && !(room = dv_calloc(c.space.points, sizeof *room)))
    status = dv_fail_memory(error, "showing the latent space");
  if (!status) add_space(&page->body, space, &c, &axes, room);
  dv_free(room);
  free_axes(&axes);
  free_chosen(&c);
  return dv_page_end(page, mark, status, error);
}
