#include "report/page_plot.h"

#include "base/locale.h"

#include <math.h>

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
