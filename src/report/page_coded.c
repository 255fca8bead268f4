#include "report/page_coded.h"

#include "base/memory.h"

#include <math.h>

enum { STEPS = 65534, MISSING = 65535 }; /* steps from the lowest to the highest value */

static json_t *number(double value) {
  return value == rint(value) && fabs(value) < 1e9 ? json_integer((json_int_t)value) : json_real(value);
}

static void extremes(const double *values, size_t count, double *low, double *high) {
  double least = INFINITY, most = -INFINITY;
  for (size_t i = 0; i < count; i++)
    if (isfinite(values[i])) least = fmin(least, values[i]), most = fmax(most, values[i]);
  *low = least <= most ? least : 0;
  *high = least <= most ? most : 0;
}

void dv_page_coded(dv_markup *m, json_t *about, const double *values, size_t count, double low, double high) {
  unsigned char *coded = dv_calloc(count + 1, 2);
  if (isnan(low)) extremes(values, count, &low, &high);
  double unit = high > low ? STEPS / (high - low) : 0;
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
