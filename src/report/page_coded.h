/* Numbers in a page, with 16 bits each. */
#ifndef DV_PAGE_CODED_H
#define DV_PAGE_CODED_H

#include "report/markup.h"

/* Adds the JSON object `about`, which it takes over, with "low", "high" and "values": base64 of 16 bits for
 * each value v, low byte first, round(65534 (v - low) / (high - low)), or 65535 where v is not finite. Where
 * low is NaN both are the extremes of the values. */
void dv_page_coded(dv_markup *markup, json_t *about, const double *values, size_t count, double low,
                   double high);

#endif
