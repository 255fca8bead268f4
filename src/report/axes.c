/* Axes of a figure: scales with round ticks, linear or logarithmic (dv_scale_*), a box with labels
 * (dv_axes_*), and legends (dv_legend_draw). */
#include "base/text.h"
#include "report/drawing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool dv_axes_place(const dv_axes *axes, double across, double up, double *x, double *y) {
  double s = dv_scale_place(&axes->across, across), t = dv_scale_place(&axes->up, up);
  if (!isfinite(s) || !isfinite(t)) return false;
  /* Positions far outside the box are kept near it: cairo's coordinates end at 2^23. */
  *x = axes->x + axes->width * fmin(fmax(s, -50), 50);
  *y = axes->y + axes->height * (1 - fmin(fmax(t, -50), 50));
  return true;
}

static void line(cairo_t *cr, double x0, double y0, double x1, double y1) {
  cairo_move_to(cr, x0, y0);
  cairo_line_to(cr, x1, y1);
  cairo_stroke(cr);
}

static void tick_across(cairo_t *cr, const dv_axes *axes, double value, const char *label) {
  double x = axes->x + axes->width * dv_scale_place(&axes->across, value), bottom = axes->y + axes->height;
  dv_colour_set(cr, dv_colour_faint);
  if (*label) line(cr, x, axes->y, x, bottom);
  dv_colour_set(cr, dv_colour_ink);
  line(cr, x, bottom, x, bottom + (*label ? 6 : 3));
  dv_text(cr, x, bottom + 18, (dv_text_style){.size = DV_TEXT_TICK, .across = 0.5}, label);
}

static void tick_up(cairo_t *cr, const dv_axes *axes, double value, const char *label) {
  double y = axes->y + axes->height * (1 - dv_scale_place(&axes->up, value));
  dv_colour_set(cr, dv_colour_faint);
  if (*label) line(cr, axes->x, y, axes->x + axes->width, y);
  dv_colour_set(cr, dv_colour_ink);
  line(cr, axes->x - (*label ? 6 : 3), y, axes->x, y);
  dv_text(cr, axes->x - 10, y,
          (dv_text_style){
              .size = DV_TEXT_TICK, .across = 1, .longest = axes->up_room > 0 ? axes->up_room - 18 : 50},
          label);
}

static bool have_room(cairo_t *cr, const dv_scale *scale, const dv_ticks *ticks, double length) {
  double end = -INFINITY;
  for (size_t i = 0; i < ticks->count; i++) {
    if (!ticks->at[i].label[0]) continue;
    double half = dv_text_length(cr, (dv_text_style){.size = DV_TEXT_TICK}, ticks->at[i].label) / 2 + 8;
    double at = length * dv_scale_place(scale, ticks->at[i].value);
    if (at - half < end) return false;
    end = at + half;
  }
  return true;
}

dv_ticks dv_axes_ticks(cairo_t *cr, const dv_scale *scale, double length, size_t most) {
  dv_ticks ticks = dv_scale_ticks(scale, most);
  while (most > 2 && !have_room(cr, scale, &ticks, length)) ticks = dv_scale_ticks(scale, --most);
  return ticks;
}

void dv_axes_draw_back(cairo_t *cr, const dv_axes *axes) {
  cairo_set_line_width(cr, 1);
  size_t across = axes->ticks ? axes->ticks : (size_t)fmax(2, fmin(axes->width / 40, 10));
  size_t up = axes->ticks ? axes->ticks : (size_t)fmax(2, axes->height / 45);
  dv_ticks ticks = dv_axes_ticks(cr, &axes->across, axes->width, across);
  for (size_t i = 0; i < ticks.count; i++) tick_across(cr, axes, ticks.at[i].value, ticks.at[i].label);
  ticks = dv_scale_ticks(&axes->up, up);
  for (size_t i = 0; i < ticks.count; i++) tick_up(cr, axes, ticks.at[i].value, ticks.at[i].label);
  dv_text_style style = {.size = DV_TEXT_LABEL, .across = 0.5, .longest = axes->width};
  if (axes->across_label)
    dv_text(cr, axes->x + axes->width / 2, axes->y + axes->height + 43, style, axes->across_label);
  style.upwards = true;
  style.longest = axes->height;
  double room = axes->up_room > 0 ? axes->up_room : 72;
  if (axes->up_label) dv_text(cr, axes->x - room, axes->y + axes->height / 2, style, axes->up_label);
}

void dv_axes_draw_frame(cairo_t *cr, const dv_axes *axes) {
  cairo_set_line_width(cr, 1);
  dv_colour_set(cr, dv_colour_ink);
  cairo_rectangle(cr, axes->x, axes->y, axes->width, axes->height);
  cairo_stroke(cr);
}

/* ---- Scales ---- */

dv_scale dv_scale_empty(bool logarithmic) {
  return (dv_scale){.low = INFINITY, .high = -INFINITY, .logarithmic = logarithmic};
}

void dv_scale_include(dv_scale *scale, double value) {
  if (!isfinite(value) || (scale->logarithmic && value <= 0)) return;
  scale->low = fmin(scale->low, value);
  scale->high = fmax(scale->high, value);
}

/* Halving first keeps the difference of two huge values finite. */
static void widen(double *low, double *high, double share) {
  double middle = *low / 2 + *high / 2, half = *high / 2 - *low / 2;
  /* A flat scale shows its one value in the middle, not the rounding around it. */
  double least = fmax(fabs(middle) * 1e-6, 1e-45);
  half = half < least ? fmax(fabs(middle) / 2, 0.5) : half * (1 + 2 * share);
  *low = fmax(middle - half, -1e300);
  *high = fmin(middle + half, 1e300);
}

void dv_scale_finish(dv_scale *scale, double share) {
  if (scale->low > scale->high) scale->low = scale->logarithmic ? 0.1 : 0, scale->high = 1;
  if (!scale->logarithmic) {
    widen(&scale->low, &scale->high, share);
    return;
  }
  double low = log10(scale->low), high = log10(scale->high);
  widen(&low, &high, share);
  scale->low = pow(10, fmax(low, -300));
  scale->high = pow(10, fmin(high, 300));
}

double dv_scale_place(const dv_scale *scale, double value) {
  if (!isfinite(value)) return NAN;
  if (!scale->logarithmic) return (value / 2 - scale->low / 2) / (scale->high / 2 - scale->low / 2);
  if (value <= 0) return NAN;
  return log(value / scale->low) / log(scale->high / scale->low);
}

/* A tick; the minus sign is the typographic one. */
static void add(dv_ticks *ticks, double value, const char *format, int decimals) {
  if (ticks->count == DV_TICKS) return;
  char digits[20] = "";
  if (format) dv_print(digits, sizeof digits, format, decimals, fabs(value));
  ticks->at[ticks->count].value = value;
  snprintf(ticks->at[ticks->count].label, sizeof ticks->at->label, "%s%s", *digits && value < 0 ? "−" : "",
           digits);
  ticks->count++;
}

/* The smallest of 1, 2, 5, 10 times a power of ten that gives at most `wanted` steps. */
static double round_step(double span, size_t wanted) {
  static const double factors[] = {1, 2, 5, 10};
  double raw = span / (double)wanted, power = pow(10, floor(log10(raw)));
  for (size_t i = 0; i < 3; i++)
    if (factors[i] * power >= raw * (1 - 1e-9)) return factors[i] * power;
  return factors[3] * power;
}

static dv_ticks linear_ticks(const dv_scale *scale, size_t wanted) {
  dv_ticks ticks = {0};
  double span = scale->high - scale->low;
  if (!(span > 0) || !isfinite(span)) return ticks;
  double step = round_step(span, wanted);
  if (scale->whole) step = fmax(step, 1);
  double largest = fmax(fabs(scale->low), fabs(scale->high));
  bool plain = largest < (step < 1 ? 1e5 : 1e7) && step > 1e-4;
  int decimals = plain ? (int)fmax(0, -floor(log10(step) + 1e-9)) : 3;
  double first = ceil(scale->low / step - 1e-9);
  for (size_t i = 0; i < DV_TICKS; i++) {
    double value = (first + (double)i) * step;
    if (value > scale->high + step * 1e-9) break;
    if (fabs(value) < step / 2) value = 0; /* no minus zero, no rounding left over */
    add(&ticks, value, plain ? "%.*f" : "%.*g", decimals);
  }
  return ticks;
}

/* Decades; also 2 and 5 of each when there are few. Many decades are labelled every second, third, ... one.
 */
static dv_ticks logarithmic_ticks(const dv_scale *scale, size_t wanted) {
  dv_ticks ticks = {0};
  int low = (int)floor(log10(scale->low)), high = (int)ceil(log10(scale->high));
  double decades = log10(scale->high) - log10(scale->low); /* their ratio may be too large for a number */
  int every = (int)fmax(1, ceil(decades / (double)wanted));
  for (int k = low; k <= high; k++) {
    for (int digit = 1; digit <= 9; digit++) {
      double value = digit * pow(10, k);
      if (value < scale->low * (1 - 1e-9) || value > scale->high * (1 + 1e-9)) continue;
      bool labelled = digit == 1 ? k % every == 0 : decades < 2.2 && (digit == 2 || digit == 5);
      if (labelled)
        add(&ticks, value, "%.*g", 3);
      else if (decades < 4 || digit == 1)
        add(&ticks, value, NULL, 0);
    }
  }
  return ticks;
}

dv_ticks dv_scale_ticks(const dv_scale *scale, size_t wanted) {
  return scale->logarithmic ? logarithmic_ticks(scale, wanted) : linear_ticks(scale, wanted);
}

dv_ticks dv_scale_ticks_angle(void) {
  static const char *const labels[] = {"−π", "−π/2", "0", "π/2", "π"};
  dv_ticks ticks = {.count = 5};
  for (size_t i = 0; i < ticks.count; i++) {
    ticks.at[i].value = ((double)i - 2) * M_PI / 2;
    strcpy(ticks.at[i].label, labels[i]);
  }
  return ticks;
}

/* ---- Legend ---- */

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

size_t dv_legend_draw(cairo_t *cr, double x, double y, double right, const dv_legend_entry *entries,
                      size_t count) {
  double at = x;
  size_t rows = 1;
  for (size_t i = 0; i < count; i++) {
    double length = entry_length(cr, &entries[i]);
    if (at > x && at + length > right) at = x, y += DV_LEGEND_ROW, rows++;
    draw_entry(cr, at, y, &entries[i]);
    at += length + between;
  }
  return rows;
}
