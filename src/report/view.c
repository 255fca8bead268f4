#include "report/view.h"

#include "base/memory.h"
#include "base/status.h"
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void label(char *out, size_t size, dv_named_reading r, const char *coordinate) {
  bool read = r.reading && r.reading->fitted;
  snprintf(out, size, "%s%s", read ? "z along " : coordinate, read ? r.name : "");
}

static void against_truth(dv_view *out, const float *z, dv_named_reading up) {
  for (size_t i = 0; i < out->points; i++) {
    out->across[i] = z[i];
    out->up[i] = up.reading ? up.reading->truth[i] : (double)i + 1;
  }
  snprintf(out->across_label, sizeof out->across_label, "z");
  snprintf(out->up_label, sizeof out->up_label, "%s", up.reading ? up.name : "sample");
}

dvbf_status dv_view_make(dv_view *out, const float *z, size_t points, size_t n_z, dv_named_reading across,
                         dv_named_reading up, dvbf_error *error) {
  *out = (dv_view){
      .points = points, .across = dv_calloc(points, sizeof(double)), .up = dv_calloc(points, sizeof(double))};
  if (!out->across || !out->up) return dv_fail_memory(error, "projecting latent samples");
  if (n_z == 1) {
    against_truth(out, z, up);
    return DVBF_OK;
  }
  dv_view_plane plane;
  dvbf_status status = dv_view_plane_make(&plane, n_z, up.reading, across.reading, error);
  if (!status) {
    dv_view_plane_project(out->up, plane.first, z, points, n_z);
    dv_view_plane_project(out->across, plane.second, z, points, n_z);
    label(out->across_label, sizeof out->across_label, across,
          up.reading && up.reading->fitted ? "z, orthogonal" : "z₂");
    label(out->up_label, sizeof out->up_label, up, "z₁");
  }
  dv_view_plane_clear(&plane);
  return status;
}

void dv_view_clear(dv_view *view) {
  DV_FREE(view->across, view->up);
  memset(view, 0, sizeof *view);
}

void dv_view_draw(cairo_t *cr, const dv_view *view, double x, double y, double width, double height) {
  dv_axes axes = {.x = x,
                  .y = y,
                  .width = width,
                  .height = height,
                  .across = dv_figure_scale(view->across, view->points),
                  .up = dv_figure_scale(view->up, view->points),
                  .across_label = view->across_label,
                  .up_label = view->up_label,
                  .up_room = DV_VIEW_LEFT - 12,
                  .ticks = (size_t)fmax(3, fmin(width, height) / 36)};
  dv_axes_draw_back(cr, &axes);
  dv_scatter_draw(cr, &axes, view->across, view->up, view->values, view->points, &view->hue);
  dv_axes_draw_frame(cr, &axes);
}
