#include "report/text.h"

#include "report/colour.h"
#include "report/svg.h"

static void select_font(cairo_t *cr, dv_text_style style) {
  cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cr, style.size);
}

double dv_text_length(cairo_t *cr, dv_text_style style, const char *text) {
  cairo_text_extents_t extents;
  select_font(cr, style);
  cairo_text_extents(cr, text, &extents);
  return extents.x_advance;
}

/* Writes text whose base line is `drop` below the given point, seen in the direction of writing. */
static void write_words(dv_svg *svg, cairo_t *cr, double x, double y, dv_text_style style, double drop,
                        const char *text) {
  const char *anchor = style.across < 0.25 ? "start" : style.across > 0.75 ? "end" : "middle";
  cairo_user_to_device(cr, &x, &y);
  dv_svg_text(svg, style.upwards ? x + drop : x, style.upwards ? y : y + drop, style.size, style.bold,
              style.upwards, anchor, text);
}

void dv_text(cairo_t *cr, double x, double y, dv_text_style style, const char *text) {
  double length = dv_text_length(cr, style, text);
  if (style.longest > 0 && length > style.longest) {
    style.size *= style.longest / length;
    length = dv_text_length(cr, style, text);
  }
  /* Digits and capitals are about 0.73 of the size high: this centres them, whatever letters the text has. */
  double drop = 0.365 * style.size;
  if (dv_svg_of(cr)) {
    write_words(dv_svg_of(cr), cr, x, y, style, drop, text);
    return;
  }
  cairo_save(cr);
  cairo_translate(cr, x, y);
  if (style.upwards) cairo_rotate(cr, -1.5707963267948966);
  cairo_move_to(cr, -style.across * length, drop);
  dv_colour_set(cr, dv_colour_ink);
  cairo_show_text(cr, text);
  cairo_restore(cr);
  cairo_new_path(cr);
}
