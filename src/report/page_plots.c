/* Interactive diagrams of a page: line plots (dv_plot_*), signals by sequence and column (dv_page_signals),
 * and the latent space with its choice of axes (dvbf_page_space). They are data that page_plot.js draws as
 * SVG for the window at hand, so text keeps its size on a telephone, in the dark and on paper, and the reader
 * can choose among 64 columns. */
#include "base/error.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "report/page.h"
#include "report/plots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Numbers in 16 bits ---- */

enum { CODE_STEPS = 65534, MISSING = 65535 }; /* steps from the lowest to the highest value */

static json_t *number(double value) {
  return value == rint(value) && fabs(value) < 1e9 ? json_integer((json_int_t)value) : json_real(value);
}

/* Adds the JSON object `about`, which it takes over, with "low", "high" and "values": base64 of 16 bits for
 * each value v, low byte first, round(65534 (v - low) / (high - low)), or 65535 where v is not finite. If low
 * is NaN, both are the extremes of the values. */
static void add_coded(dv_markup *m, json_t *about, const double *values, size_t count, double low,
                      double high) {
  unsigned char *coded = dv_calloc(count + 1, 2);
  if (isnan(low)) {
    low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++)
      if (isfinite(values[i])) low = fmin(low, values[i]), high = fmax(high, values[i]);
    if (low > high) low = high = 0;
  }
  double unit = high > low ? CODE_STEPS / (high - low) : 0;
  for (size_t i = 0; coded && i < count; i++) { /* low byte first on every machine */
    long code = isfinite(values[i]) ? lround((values[i] - low) * unit) : MISSING;
    coded[2 * i] = code & 255, coded[2 * i + 1] = (unsigned char)(code >> 8);
  }
  bool added = coded && !json_object_set_new(about, "low", number(low)) &&
               !json_object_set_new(about, "high", number(high)) &&
               !json_object_set_new(about, "values", dv_markup_json_bytes(coded, 2 * count));
  if (!added) json_decref(about);
  dv_markup_json(m, added ? about : NULL);
  dv_free(coded);
}

/* ---- Line plots ---- */

static const char *truth(bool value) {
  return value ? "true" : "false";
}

dv_plot dv_plot_begin(dvbf_page *page, const char *about, const char *chooser, bool stacked) {
  dv_plot plot = {.page = page, .mark = dv_page_begin(page)};
  dv_markup *m = &page->body;
  dv_markup_raw(m, "<figure class=\"plot\" data-about=\"");
  dv_markup_text(m, about);
  dv_markup_format(m, "\"><script type=\"application/json\">{\"stack\":%s", truth(stacked));
  dv_markup_string(m, ",\"chooser\":", chooser);
  dv_markup_raw(m, ",\"views\":[");
  return plot;
}

static void end_view(const dv_plot *plot) {
  if (plot->views) dv_markup_raw(&plot->page->body, "]}");
}

void dv_plot_view(dv_plot *plot, const char *name, const char *text) {
  dv_markup *m = &plot->page->body;
  end_view(plot);
  dv_markup_string(m, plot->views++ ? ",\n{\"name\":" : "{\"name\":", name);
  dv_markup_string(m, ",\"text\":", text);
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

/* Entry i of a list. */
static void add_series(dv_markup *m, const dv_series *s, size_t i) {
  static const char *const kinds[] = {"line", "dashed", "bars", "bars"};
  dv_markup_string(m, i ? ",{\"name\":" : "{\"name\":", s->name);
  dv_markup_format(m, ",\"kind\":\"%s\",\"thin\":%s,\"colour\":%d,\"first\":%.9g,\"step\":%.9g",
                   kinds[s->kind], truth(s->kind == DV_SERIES_STEMS), s->colour, s->first,
                   s->step > 0 ? s->step : 1);
  if (s->x) add_numbers(m, "x", s->x, s->count);
  add_numbers(m, "y", s->y, s->count);
  dv_markup_raw(m, "}");
}

void dv_plot_panel(dv_plot *plot, const dv_panel *p) {
  dv_markup *m = &plot->page->body;
  dv_markup_string(m, plot->panels++ ? ",{\"up\":" : "{\"up\":", p->up);
  dv_markup_string(m, ",\"across\":", p->across);
  dv_markup_format(m, ",\"log\":%s,\"zero\":%s,\"robust\":%s,\"time\":\"%s\",\"series\":[",
                   truth(p->logarithmic), truth(p->zero), truth(p->robust), p->seconds ? "s" : "");
  for (size_t i = 0; i < p->n_series; i++) add_series(m, &p->series[i], i);
  dv_markup_raw(m, "],\"marks\":[");
  for (size_t i = 0; i < p->n_marks; i++) {
    const dv_plot_mark *mark = &p->marks[i];
    dv_markup_string(m, i ? ",{\"name\":" : "{\"name\":", mark->name);
    dv_markup_format(m, ",\"at\":%.9g,\"level\":%s,\"colour\":%d}", mark->at, truth(mark->level),
                     mark->colour);
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

/* Columns of values [steps][width], of which the first `steps` are there. */
static void add_columns(const writing *w, const char *key, const float *values, size_t width, size_t count,
                        size_t steps) {
  dv_markup_format(w->m, ",\"%s\":[", key);
  for (size_t k = 0; k < count; k++) {
    for (size_t t = 0; t < steps; t++) w->room[t] = (double)values[t * width + k];
    dv_markup_raw(w->m, k ? ",\n" : "");
    add_coded(w->m, json_object(), w->room, steps, NAN, NAN);
  }
  dv_markup_raw(w->m, "]");
}

/* What use k predicts of sequence i. */
static void add_use(const writing *w, size_t k, size_t i) {
  const dv_signal_use *u = &w->signals->use[k];
  size_t n = w->signals->shown.n_x, at = i * u->steps * n, steps = dv_signal_steps(w->signals, u, i);
  dv_markup_format(w->m, "%s{\"first\":%zu", k ? "," : "", u->first);
  dv_markup_string(w->m, ",\"mark\":", u->mark);
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
  dv_markup_string(w->m, i ? ",\n{\"name\":" : "{\"name\":", name);
  dv_markup_format(w->m, ",\"start\":%.17g,\"steps\":%zu", dv_signal_start(w->data, s, i), steps);
  add_columns(w, "x", s->x + at * s->n_x, s->n_x, w->columns, steps);
  add_columns(w, "u", s->n_u ? s->u + at * s->n_u : NULL, s->n_u, w->inputs, steps);
  dv_markup_raw(w->m, ",\"uses\":[");
  for (size_t k = 0; k < w->signals->n_uses; k++) add_use(w, k, i);
  dv_markup_raw(w->m, "]}");
}

static void add_all(const writing *w, const char *caption) {
  dv_markup_format(w->m,
                   "<figure class=\"signals\" data-about=\"over time, measured and predicted\">"
                   "<script type=\"application/json\">{\"sample_time\":%.17g,\"dates\":%s,\"columns\":[",
                   w->data->sample_time, truth(w->data->dates));
  for (size_t k = 0; k < w->columns; k++) add_name(w, false, k);
  dv_markup_raw(w->m, "],\"inputs\":[");
  for (size_t k = 0; k < w->inputs; k++) add_name(w, true, k);
  dv_markup_raw(w->m, "],\"uses\":[");
  for (size_t k = 0; k < w->signals->n_uses; k++)
    dv_markup_string(w->m, k ? "," : "", w->signals->use[k].name);
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

/* ---- Latent space ---- */

/* Further latent dimensions show only in the principal axes. */
enum { LATENT_AXES = 12, MOST_REGRESSIONS = 8 };

/* A latent space that is being added. */
typedef struct space {
  dv_markup *m;
  const dvbf_space *all;
  size_t finite;     /* its finite points, from which those that are shown are chosen */
  size_t points;     /* that are shown */
  float *z, *values; /* [points][n_z], [columns][points] of these */
  double *room;      /* [points] */
  size_t axes;       /* written so far */
} space;

static bool finite_point(const dvbf_space *s, size_t i) {
  for (size_t j = 0; j < s->n_z; j++)
    if (!isfinite(s->z[i * s->n_z + j])) return false;
  return true;
}

static void copy_point(space *s, size_t from, size_t to) {
  const dvbf_space *all = s->all;
  memcpy(s->z + to * all->n_z, all->z + from * all->n_z, all->n_z * sizeof *s->z);
  for (size_t j = 0; j < all->columns; j++) {
    const dvbf_space_column *column = &all->column[j];
    s->values[j * s->points + to] = column->values[from * (column->stride ? column->stride : 1)];
  }
}

/* Of n finite points the k-th that is shown is number floor(k n / shown). */
static dvbf_status choose(space *s, dvbf_error *error) {
  const dvbf_space *all = s->all;
  for (size_t i = 0; i < all->points; i++) s->finite += finite_point(all, i);
  if (!s->finite)
    return dv_fail(error, DVBF_ARGUMENT, "a latent space of %zu points: none of them is finite", all->points);
  s->points = s->finite < DVBF_SPACE_POINTS ? s->finite : DVBF_SPACE_POINTS;
  s->z = dv_calloc(s->points, all->n_z * sizeof *s->z);
  s->values = dv_calloc(s->points, all->columns * sizeof *s->values);
  s->room = dv_calloc(s->points, sizeof *s->room);
  if (!s->z || !s->values || !s->room) return dv_fail_memory(error, "showing the latent space");
  for (size_t i = 0, taken = 0, seen = 0; i < all->points && taken < s->points; i++)
    if (finite_point(all, i) && seen++ == taken * s->finite / s->points) copy_point(s, i, taken++);
  return DVBF_OK;
}

/* at: [points] */
static void add_axis(space *s, const char *group, const char *name, const double *at) {
  json_t *about =
      json_pack("{s:o, s:o}", "name", dv_markup_json_text(name), "group", dv_markup_json_text(group));
  dv_markup_raw(s->m, s->axes++ ? ",\n" : "");
  add_coded(s->m, about, at, s->points, NAN, NAN);
}

static void add_latent(space *s) {
  char name[32];
  size_t n = s->all->n_z;
  for (size_t j = 0; j < n && j < LATENT_AXES; j++) {
    snprintf(name, sizeof name, "z%zu", j + 1);
    for (size_t i = 0; i < s->points; i++) s->room[i] = s->z[i * n + j];
    add_axis(s, "latent dimensions", name, s->room);
  }
}

static dvbf_status add_principal(space *s, dvbf_error *error) {
  char name[80];
  dv_cloud cloud = {0};
  if (s->all->n_z < 3) return DVBF_OK;
  dvbf_status status = dv_cloud_make(&cloud, s->z, s->points, s->all->n_z, error);
  for (size_t k = 0; !status && k < cloud.axes; k++) {
    snprintf(name, sizeof name, "principal axis %zu (%.0f %%)", k + 1, 100 * cloud.share[k]);
    add_axis(s, "principal axes", name, cloud.at[k]);
  }
  dv_cloud_clear(&cloud);
  return status;
}

/* The linear prediction from z of the first columns for which there are enough finite values. */
static dvbf_status add_regressions(space *s, dvbf_error *error) {
  char name[80];
  size_t n = s->all->n_z, most = s->axes + MOST_REGRESSIONS;
  double *beta = dv_calloc(n + 1, sizeof *beta), r2, likelihood; /* the intercept last */
  float *z = dv_calloc(s->points, n * sizeof *z), *y = dv_calloc(s->points, sizeof *y);
  dvbf_status status = beta && z && y ? DVBF_OK : dv_fail_memory(error, "showing the latent space");
  for (size_t k = 0; !status && k < s->all->columns && s->axes < most; k++) {
    const float *values = s->values + k * s->points;
    size_t known = 0;
    if (s->all->column[k].cyclic) continue;
    for (size_t i = 0; i < s->points; i++) {
      if (!isfinite(values[i])) continue;
      memcpy(z + known * n, s->z + i * n, n * sizeof *z);
      y[known++] = values[i];
    }
    status = dv_regress(z, known, n, y, 1, &r2, &likelihood, beta, error);
    for (size_t i = 0; !status && i < s->points; i++) {
      s->room[i] = beta[n];
      for (size_t j = 0; j < n; j++) s->room[i] += beta[j] * s->z[i * n + j];
    }
    snprintf(name, sizeof name, "%.60s read off z", s->all->column[k].name);
    if (!status) add_axis(s, "regression on z", name, s->room);
    if (status == DVBF_FORMAT) status = DVBF_OK; /* too few values */
  }
  DV_FREE(beta, z, y);
  return status;
}

/* Angles are brought into [-pi, pi]. */
static void add_space_column(space *s, size_t k) {
  const dvbf_space_column *column = &s->all->column[k];
  const float *values = s->values + k * s->points;
  bool cyclic = column->cyclic;
  json_t *about = json_pack("{s:o, s:b, s:o}", "name", dv_markup_json_text(column->name), "cyclic", cyclic,
                            "group", dv_markup_json_text(column->group ? column->group : "ground truth"));
  for (size_t i = 0; i < s->points; i++) s->room[i] = cyclic ? remainder(values[i], 2 * M_PI) : values[i];
  dv_markup_raw(s->m, k ? ",\n" : "");
  add_coded(s->m, about, s->room, s->points, cyclic ? -M_PI : NAN, cyclic ? M_PI : NAN);
}

static void add_caption(const space *s) {
  dv_markup_raw(s->m, "<figcaption>");
  dv_markup_text(s->m, s->all->caption);
  if (s->points < s->finite)
    dv_markup_format(s->m, " Shown are %zu of %zu points, evenly chosen.", s->points, s->finite);
  if (s->finite < s->all->points)
    dv_markup_format(s->m, " %zu points that are not finite are left out.", s->all->points - s->finite);
  if (s->all->n_z > LATENT_AXES)
    dv_markup_format(s->m, " Of %zu latent dimensions the first %d can be chosen.", s->all->n_z, LATENT_AXES);
  dv_markup_raw(s->m, "</figcaption></figure>\n");
}

static dvbf_status add_space(space *s, dvbf_error *error) {
  dv_markup_format(s->m,
                   "<figure class=\"space\"><script type=\"application/json\">{\"points\":%zu,\"axes\":[",
                   s->points);
  add_latent(s);
  dvbf_status status = add_principal(s, error);
  if (!status) status = add_regressions(s, error);
  if (status) return status;
  dv_markup_raw(s->m, "],\"columns\":[");
  for (size_t k = 0; k < s->all->columns; k++) add_space_column(s, k);
  dv_markup_raw(s->m, "]}</script>\n");
  add_caption(s);
  return DVBF_OK;
}

dvbf_status dvbf_page_space(dvbf_page *page, const dvbf_space *all, dvbf_error *error) {
  if (!all->points || !all->n_z || !all->z)
    return dv_fail(error, DVBF_ARGUMENT,
                   "a latent space of %zu points and %zu dimensions: both must be at least 1", all->points,
                   all->n_z);
  dv_page_mark mark = dv_page_begin(page);
  space s = {.m = &page->body, .all = all};
  dvbf_status status = choose(&s, error);
  if (!status) status = add_space(&s, error);
  DV_FREE(s.z, s.values, s.room);
  return dv_page_end(page, mark, status, error);
}
