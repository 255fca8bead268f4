/* Signals of a chapter: measured and predicted, by column and sequence. */
#include "base/memory.h"
#include "base/status.h"
#include "report/chapter.h"
#include "report/page_signals.h"

#include <math.h>
#include <stdio.h>

/* The first sequence as a figure. */
static dvbf_status draw(dvbf_page *page, const dv_chapter *c, const dv_signals *s, dvbf_error *error) {
  const dv_signal_use *u = &s->use[0];
  dv_path path;
  size_t n = s->shown.n_x, steps = dvbf_sequence_length(&s->shown, 0), values = s->shown.steps * n;
  float *room = dv_calloc(values, 3 * sizeof *room);
  if (!room) return dv_fail_memory(error, "drawing signals");
  for (size_t i = 0; i < steps * n; i++) {
    bool known = i >= u->first * n;
    size_t at = known ? i - u->first * n : 0;
    room[i] = known ? u->mean[at] : NAN;
    room[values + i] = known ? u->low[at] : NAN;
    room[2 * values + i] = known ? u->high[at] : NAN;
  }
  dvbf_figure_signals figure = {.steps = steps,
                                .columns = n,
                                .truth = s->shown.x,
                                .prediction = room,
                                .names = c->data->x_names,
                                .observed = u->first,
                                .low = room + values,
                                .high = room + 2 * values,
                                .units = c->data->x_units,
                                .start = dv_signal_start(c->data, &s->shown, 0),
                                .sample_time = c->data->dates ? 0 : c->data->sample_time};
  if (c->data->dates) figure.start = 0;
  dv_chapter_figure_path(path, c, "signals", "");
  dvbf_status drawn = dvbf_draw_signals(&figure, path, error);
  dv_free(room);
  return dv_chapter_drawn(page, c, "signals", drawn, error);
}

dvbf_status dv_chapter_signals(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                               dvbf_error *error) {
  const dv_signals *s = &shown->signals;
  char caption[720];
  if (c->data->image_height || !s->n_uses || !s->shown.count) return DVBF_OK;
  int n = snprintf(caption, sizeof caption,
                   "Measured, and predicted with the interval that holds 90 %% of what the model expects. ");
  if (shown->observed)
    n += snprintf(caption + n, sizeof caption - (size_t)n,
                  "Free run: from the first %zu steps to the end, from the inputs alone. ", shown->observed);
  n += snprintf(caption + n, sizeof caption - (size_t)n,
                "One step ahead: each step from those before it. Fit: 100 %% (1 − RMSE / RMSE of the mean).");
  if (s->shown.count > 1)
    n += snprintf(caption + n, sizeof caption - (size_t)n,
                  " Sequences without a name have the number that they have in the data, from 0 on.");
  if (s->shown.count < c->sequences->count)
    n += snprintf(caption + n, sizeof caption - (size_t)n, " Shown are %zu of %zu sequences.", s->shown.count,
                  c->sequences->count);
  if (s->cut)
    n += snprintf(caption + n, sizeof caption - (size_t)n,
                  " Of long sequences the first %zu steps are shown.", s->shown.steps);
  if (s->shown.n_x > DV_SIGNAL_COLUMNS)
    snprintf(caption + n, sizeof caption - (size_t)n, " Of %zu columns the first %d can be chosen.",
             s->shown.n_x, DV_SIGNAL_COLUMNS);
  dvbf_status status = dvbf_page_heading(page, 2, "Signals", error);
  if (!status) status = dv_page_signals(page, s, c->data, caption, error);
  return status ? status : draw(page, c, s, error);
}
