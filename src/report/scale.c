#include "report/scale.h"

#include "base/locale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
