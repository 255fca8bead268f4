#include "report/legend.h"

#include "report/text.h"

static const dv_text_style style = {.size = DV_TEXT_TICK};
static const double between = 22;

void dv_stroke_set(cairo_t *cr, dv_stroke stroke) {
  dv_colour_set(cr, stroke.colour);
  cairo_set_line_width(cr, stroke.width);
  cairo_set_dash(cr, &stroke.dash, stroke.dash > 0, 0);
}

static double key_length(const dv_legend_entry *entry) {
  return entry->upright ? 12 : 36;
}

static double entry_length(cairo_t *cr, const dv_legend_entry *entry) {
  return key_length(entry) + dv_text_length(cr, style, entry->label);
}

static void draw_entry(cairo_t *cr, double x, double y, const dv_legend_entry *entry) {
  cairo_save(cr);
  dv_stroke_set(cr, entry->stroke);
  cairo_move_to(cr, entry->upright ? x + 4 : x, entry->upright ? y - 9 : y);
  cairo_line_to(cr, entry->upright ? x + 4 : x + 28, entry->upright ? y + 9 : y);
  cairo_stroke(cr);
  cairo_restore(cr);
  dv_text(cr, x + key_length(entry), y, style, entry->label);
}

double dv_legend_length(cairo_t *cr, const dv_legend_entry *entries, size_t count) {
  double length = 0;
  for (size_t i = 0; i < count; i++) length += entry_length(cr, &entries[i]) + (i ? between : 0);
  return length;
}

void dv_legend_draw(cairo_t *cr, double x, double y, double right, const dv_legend_entry *entries,
                    size_t count) {
  double at = x;
  for (size_t i = 0; i < count; i++) {
    double length = entry_length(cr, &entries[i]);
    if (at > x && at + length > right) at = x, y += DV_LEGEND_ROW;
    draw_entry(cr, at, y, &entries[i]);
    at += length + between;
  }
}

size_t dv_legend_rows(cairo_t *cr, double room, const dv_legend_entry *entries, size_t count) {
  double at = 0;
  size_t rows = 1;
  for (size_t i = 0; i < count; i++) {
    double length = entry_length(cr, &entries[i]);
    if (at > 0 && at + length > room) at = 0, rows++;
    at += length + between;
  }
  return rows;
}
