#include "report/overview.h"

#include "base/status.h"
#include "report/canvas.h"
#include "report/legend.h"
#include "report/text.h"

#include <stdio.h>

static const double page_width = 1600, margin = 30, title_height = 64, between = 36;
static const double one_row = 420, two_rows = 640;

/* ---- Plan ---- */

static void plan_strips(const dvbf_picture *p, dv_overview *plan, double y) {
  const dvbf_strip_row rows[] = {{"ground truth", p->truth, 0},
                                 {"reconstruction", p->reconstruction, 0},
                                 {"prediction", p->prediction, p->observed}};
  dv_strips *s = &plan->strips;
  *s = (dv_strips){.frames = p->frames, .height = p->height, .width = p->width, .bar = p->training_steps};
  if (!p->frames || !p->height || !p->width) return;
  for (size_t i = 0; i < 3; i++)
    if (rows[i].images) s->row[s->rows++] = rows[i];
  if (!s->rows) return;
  s->x = margin;
  s->y = y + DV_OVERVIEW_HEADING;
  s->room = page_width - 2 * margin;
  plan->strip_layout = dv_strips_place(s);
  plan->strip_panel = (dv_panel){margin, y, s->room, DV_OVERVIEW_HEADING + plan->strip_layout.height};
}

/* Latent space to the left, errors to the right; either alone takes the whole width. */
static void plan_plots(const dvbf_picture *p, dv_overview *plan, double y) {
  bool latent = p->points && p->n_z && p->z;
  bool errors = p->horizon && (p->mse || p->mse_mean_path || p->mse_repeat);
  bool both_colours = p->angle && p->velocity;
  double width = page_width - 2 * margin, height = latent && p->n_z > 2 && both_colours ? two_rows : one_row;
  double left = p->n_z > 2 ? 0.57 : both_colours ? 0.62 : 0.45;
  if (latent) plan->latent = (dv_panel){margin, y, errors ? left * width : width, height};
  if (!errors) return;
  double x = latent ? margin + left * width + between : margin;
  plan->errors = (dv_panel){x, y, page_width - margin - x, height};
}

static double bottom_of(const dv_panel *panel) {
  return panel->width > 0 ? panel->y + panel->height : 0;
}

dv_overview dv_overview_plan(const dvbf_picture *picture) {
  dv_overview plan = {.width = page_width};
  double y = margin + (picture->title ? title_height : 0);
  plan_strips(picture, &plan, y);
  if (plan.strips.rows) y = bottom_of(&plan.strip_panel) + between;
  plan_plots(picture, &plan, y);
  double bottom = bottom_of(&plan.strip_panel);
  if (bottom_of(&plan.latent) > bottom) bottom = bottom_of(&plan.latent);
  if (bottom_of(&plan.errors) > bottom) bottom = bottom_of(&plan.errors);
  plan.height = (double)(int)(bottom + margin);
  return plan;
}

/* ---- Drawing ---- */

void dv_overview_heading(cairo_t *cr, const dv_panel *panel, const char *text) {
  dv_text(cr, panel->x, panel->y + DV_TEXT_HEADING / 2.0,
          (dv_text_style){.size = DV_TEXT_HEADING, .bold = true, .longest = panel->width}, text);
}

static void draw_strips(cairo_t *cr, const dvbf_picture *p, const dv_overview *plan) {
  const dv_panel *panel = &plan->strip_panel;
  dv_legend_entry marks[2];
  size_t count = 0;
  size_t shown = p->training_steps <= p->frames ? p->training_steps : 0;
  if (shown) marks[count++] = (dv_legend_entry){"end of the training length", {dv_colour_bar, 3.5, 0}, true};
  if (p->prediction && p->observed && p->observed <= p->frames)
    marks[count++] = (dv_legend_entry){"observed by the prediction", {dv_colour_observe, 2, 0}, false};
  char heading[64] = "Image sequence";
  if (plan->strip_layout.every > 1)
    snprintf(heading, sizeof heading, "Image sequence, one frame in %zu", plan->strip_layout.every);
  dv_overview_heading(cr, panel, heading);
  double length = dv_legend_length(cr, marks, count), right = panel->x + panel->width;
  dv_legend_draw(cr, right - length, panel->y + DV_TEXT_HEADING / 2.0, right + 1, marks, count);
  dv_strips_draw(cr, &plan->strips, &plan->strip_layout);
}

static dvbf_status draw_page(cairo_t *cr, const dvbf_picture *picture, const dv_overview *plan,
                             dvbf_error *error) {
  if (picture->title)
    dv_text(cr, page_width / 2, margin + DV_TEXT_TITLE / 2.0,
            (dv_text_style){
                .size = DV_TEXT_TITLE, .across = 0.5, .bold = true, .longest = page_width - 2 * margin},
            picture->title);
  if (plan->strips.rows) draw_strips(cr, picture, plan);
  if (plan->errors.width > 0) dv_overview_errors(cr, picture, &plan->errors);
  return plan->latent.width > 0 ? dv_overview_latent(cr, picture, &plan->latent, error) : DVBF_OK;
}

dvbf_status dvbf_draw(const dvbf_picture *picture, const char *png_path, dvbf_error *error) {
  dv_overview plan = dv_overview_plan(picture);
  if (!plan.strips.rows && plan.latent.width <= 0 && plan.errors.width <= 0)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%s: there is nothing to draw; give images, latent points or prediction errors", png_path);
  dv_canvas canvas;
  dvbf_status status = dv_canvas_open(&canvas, png_path, plan.width, plan.height, error);
  if (status) return status;
  return dv_canvas_close(&canvas, draw_page(canvas.cr, picture, &plan, error), error);
}
