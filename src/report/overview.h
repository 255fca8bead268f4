/* The page that dvbf_draw fills: which panels there are, and where. */
#ifndef DV_OVERVIEW_H
#define DV_OVERVIEW_H

#include "report/strip.h"

#include <dvbf/dvbf.h>

typedef struct dv_panel {
  double x, y, width, height; /* with heading, labels and all; width 0: left out */
} dv_panel;

typedef struct dv_overview {
  double width, height;
  dv_strips strips; /* no rows: left out */
  dv_strip_layout strip_layout;
  dv_panel strip_panel, latent, errors;
} dv_overview;

dv_overview dv_overview_plan(const dvbf_picture *picture);

/* The panels; each is drawn by its own file. */
dvbf_status dv_overview_latent(cairo_t *cr, const dvbf_picture *picture, const dv_panel *panel,
                               dvbf_error *error);
void dv_overview_errors(cairo_t *cr, const dvbf_picture *picture, const dv_panel *panel);

#define DV_OVERVIEW_HEADING 38 /* height of the heading of a panel */

void dv_overview_heading(cairo_t *cr, const dv_panel *panel, const char *text);

#endif
