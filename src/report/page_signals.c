#include "report/page_signals.h"

#include "base/memory.h"
#include "base/status.h"
#include "report/page_coded.h"

#include <math.h>

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

static void add_scores(const writing *w, const char *key, const double *values) {
  dv_markup_format(w->m, ",\"%s\":[", key);
  for (size_t k = 0; k < w->columns; k++)
    if (isfinite(values[k]))
      dv_markup_format(w->m, "%s%.5g", k ? "," : "", values[k]);
    else
      dv_markup_raw(w->m, k ? ",null" : "null");
  dv_markup_raw(w->m, "]");
}

static void add_use(const writing *w, const dv_signal_use *u, size_t i) {
  size_t n = w->signals->shown.n_x, at = i * u->steps * n, steps = dv_signal_steps(w->signals, u, i);
  dv_markup_format(w->m, "{\"first\":%zu,\"mark\":", u->first);
  dv_markup_json(w->m, dv_markup_json_text(u->mark));
  add_columns(w, "mean", u->mean + at, n, w->columns, steps);
  add_columns(w, "low", u->low + at, n, w->columns, steps);
  add_columns(w, "high", u->high + at, n, w->columns, steps);
  add_scores(w, "rmse", u->rmse + i * n);
  add_scores(w, "fit", u->fit + i * n);
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
