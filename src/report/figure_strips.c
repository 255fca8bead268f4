/* Sequences of images. */
#include "base/status.h"
#include "report/figure.h"
#include "report/strip.h"

#include <stdio.h>

static const double head = 34;

static bool observes(const dvbf_figure_strips *f) {
  for (size_t i = 0; i < f->rows; i++)
    if (f->row[i].images && f->row[i].observed && f->row[i].observed <= f->frames) return true;
  return false;
}

static bool has_bar(const dvbf_figure_strips *f) {
  return f->training_steps && f->training_steps <= f->frames;
}

/* Above the images: what the marks mean, and that frames are left out. */
static double head_of(const dvbf_figure_strips *f) {
  return observes(f) || has_bar(f) || f->frames > DV_STRIP_MOST ? head : 0;
}

static dv_strips plan(const dvbf_figure_strips *f) {
  dv_strips s = {.frames = f->frames,
                 .height = f->height,
                 .width = f->width,
                 .channels = f->channels == 3 ? 3 : 1,
                 .bar = f->training_steps,
                 .x = DV_FIGURE_MARGIN,
                 .y = DV_FIGURE_MARGIN + dv_figure_title_height(f->title) + head_of(f),
                 .room = DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN};
  for (size_t i = 0; i < f->rows; i++) {
    if (!f->row[i].images) continue;
    s.row[s.rows] = f->row[i];
    if (!s.row[s.rows].label) s.row[s.rows].label = "";
    s.rows++;
  }
  return s;
}

static void draw_head(cairo_t *cr, const dvbf_figure_strips *f, const dv_strips *s,
                      const dv_strip_layout *layout) {
  dv_legend_entry entries[2];
  size_t count = 0;
  double y = s->y - head + 10;
  if (has_bar(f))
    entries[count++] = (dv_legend_entry){"end of the training length", {dv_colour_bar, 3.5, 0}, true};
  if (observes(f)) entries[count++] = (dv_legend_entry){"observed", {dv_colour_observe, 2, 0}, false};
  double right = s->x + s->room;
  dv_legend_draw(cr, right - dv_legend_length(cr, entries, count), y, right + 1, entries, count);
  char text[64];
  snprintf(text, sizeof text, "one frame in %zu is shown", layout->every);
  if (layout->every > 1) dv_text(cr, layout->left, y, (dv_text_style){.size = DV_TEXT_TICK}, text);
}

static void draw(cairo_t *cr, const void *figure) {
  const dvbf_figure_strips *f = figure;
  dv_strips s = plan(f);
  dv_strip_layout layout = dv_strips_place(&s);
  dv_figure_title(cr, DV_FIGURE_WIDTH, f->title);
  draw_head(cr, f, &s, &layout);
  dv_strips_draw(cr, &s, &layout);
}

dvbf_status dvbf_draw_strips(const dvbf_figure_strips *figure, const char *path, dvbf_error *error) {
  if (!figure->frames || !figure->height || !figure->width)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: %zu frames of %zu x %zu pixels are nothing to draw", path,
                   figure->frames, figure->height, figure->width);
  if (!figure->row || figure->rows < 1 || figure->rows > DV_STRIP_ROWS)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the figure has %zu rows of images; give 1 to %d", path,
                   figure->rows, DV_STRIP_ROWS);
  dv_strips s = plan(figure);
  if (!s.rows) return dv_fail(error, DVBF_ARGUMENT, "%.200s: no row has images; give at least one", path);
  dv_strip_layout layout = dv_strips_place(&s);
  return dv_figure_write(path, DV_FIGURE_WIDTH, s.y + layout.height + DV_FIGURE_MARGIN, draw, figure, error);
}
