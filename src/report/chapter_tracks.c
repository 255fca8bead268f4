/* Where what moves in a video is: the centre of its brightness, measured and predicted. */
#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "evaluate/track.h"
#include "report/chapter.h"
#include "report/page_plot.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 3 }; /* ground truth, reconstruction, prediction */

/* Tracks of all rows: [ROWS][2][sequences][frames]. */
typedef struct tracks {
  const dv_shown *shown;
  size_t rows, frames;
  double *at, *distance; /* distance: [sequences][frames] of the last row from the first */
} tracks;

static double *track_of(const tracks *t, size_t row, size_t axis, size_t sequence) {
  return t->at + ((row * 2 + axis) * t->shown->film.count + sequence) * t->frames;
}

/* Whether most frames of the film say so. room: [2][pixels]. */
static bool is_dark(const dv_shown *s, float *room) {
  size_t pixels = s->data->image_height * s->data->image_width, frames = s->film.count * s->film.steps;
  size_t dark = 0;
  for (size_t f = 0; f < frames; f++) {
    dv_track_grey(room + pixels, s->film.x + f * s->film.n_x, pixels, s->film.n_x / pixels);
    dark += dv_track_dark(room + pixels, 1, pixels, room);
  }
  return 2 * dark > frames;
}

static dvbf_status follow(tracks *t, dvbf_error *error) {
  const dv_shown *s = t->shown;
  size_t height = s->data->image_height, width = s->data->image_width, count = s->film.count;
  const float *rows[ROWS] = {s->film.x, s->reconstruction->x, s->prediction ? s->prediction->x : NULL};
  size_t pixels = height * width, channels = s->film.n_x / pixels;
  t->at = dv_calloc(ROWS * 2 * count, t->frames * sizeof *t->at);
  t->distance = dv_calloc(count, t->frames * sizeof *t->distance);
  float *room = dv_calloc(2 * pixels, sizeof *room), *grey = room + pixels;
  dvbf_status status = t->at && t->distance && room ? DVBF_OK : dv_fail_memory(error, "following what moves");
  bool dark = !status && is_dark(s, room);
  for (size_t r = 0; r < t->rows && !status; r++)
    for (size_t i = 0; i < count; i++)
      for (size_t f = 0; f < t->frames; f++) {
        double *across = track_of(t, r, 0, i) + f, *down = track_of(t, r, 1, i) + f;
        *across = *down = NAN;
        if (f >= dvbf_sequence_length(&s->film, i)) continue;
        dv_track_grey(grey, rows[r] + (i * t->frames + f) * pixels * channels, pixels, channels);
        dv_track_centre(grey, height, width, dark, room, across, down);
      }
  for (size_t i = 0; i < count && !status; i++)
    for (size_t f = 0; f < t->frames; f++)
      t->distance[i * t->frames + f] = hypot(track_of(t, t->rows - 1, 0, i)[f] - track_of(t, 0, 0, i)[f],
                                             track_of(t, t->rows - 1, 1, i)[f] - track_of(t, 0, 1, i)[f]);
  dv_free(room);
  return status;
}

static void add_view(dv_plot *plot, const tracks *t, size_t i) {
  static const char *const names[ROWS] = {"measured", "reconstructed", "predicted"};
  static const int colours[ROWS] = {DV_PLOT_MEASURED, DV_PLOT_LAST, DV_PLOT_LEARNED};
  static const char *const axes[] = {"centre, from the left (pixels)", "centre, from above (pixels)"};
  size_t observed = t->shown->observed;
  const dv_plot_mark mark = {"end of observation", (double)observed + 0.5, false, DV_PLOT_BOUNDARY};
  dv_series series[ROWS];
  dv_panel panel = {.across = "frame", .series = series, .marks = &mark, .n_marks = t->rows == ROWS};
  dv_plot_view(plot, t->shown->names[i], NULL);
  for (size_t axis = 0; axis < 2; axis++) {
    panel.up = axes[axis];
    panel.n_series = 0;
    for (size_t r = 0; r < t->rows; r++)
      series[panel.n_series++] = (dv_series){.name = names[r],
                                             .kind = r == 1 ? DV_SERIES_DASHED : DV_SERIES_LINE,
                                             .colour = colours[r],
                                             .count = t->frames,
                                             .y = track_of(t, r, axis, i),
                                             .first = 1};
    dv_plot_panel(plot, &panel);
  }
  panel.up = "distance of the centres (pixels)";
  panel.zero = true;
  panel.n_series = 1;
  series[0] = (dv_series){.name = t->rows == ROWS ? "predicted" : "reconstructed",
                          .colour = t->rows == ROWS ? DV_PLOT_LEARNED : DV_PLOT_LAST,
                          .count = t->frames,
                          .y = t->distance + i * t->frames,
                          .first = 1};
  dv_plot_panel(plot, &panel);
}

/* The mean distance over all that is predicted (DST), and the mean number of frames until it is above a pixel
 * (VPD). */
static void describe(char *out, size_t size, const tracks *t) {
  double sum = 0, count = 0, steps = 0;
  const dvbf_sequences *film = &t->shown->film;
  for (size_t i = 0; i < film->count; i++) {
    bool near = true;
    for (size_t f = t->shown->observed; f < dvbf_sequence_length(film, i); f++) {
      double d = t->distance[i * t->frames + f];
      if (isnan(d)) continue;
      sum += d, count += 1;
      near = near && d <= 1;
      steps += near;
    }
  }
  int n =
      snprintf(out, size, "Centre of what is brighter than the background, or darker where that is rare.");
  if (t->rows == ROWS && count > 0)
    dv_print(
        out + n, size - (size_t)n,
        " Over the %zu sequence%s shown the predicted centre is on average %.2f pixels from the measured one "
        "(DST), and within one pixel for the first %.1f predicted frames (VPD).",
        film->count, film->count == 1 ? "" : "s", sum / count, steps / (double)film->count);
}

dvbf_status dv_chapter_tracks(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                              dvbf_error *error) {
  tracks t = {.shown = shown, .rows = shown->prediction ? ROWS : 2, .frames = shown->film.steps};
  char caption[480];
  if (!c->data->image_height || !shown->film.count || shown->film.gaps) return DVBF_OK;
  dvbf_status status = follow(&t, error);
  if (!status) status = dvbf_page_heading(page, 2, "Tracks", error);
  if (!status) {
    dv_plot plot = dv_plot_begin(page, "by frame", "Sequence", false);
    for (size_t i = 0; i < shown->film.count; i++) add_view(&plot, &t, i);
    describe(caption, sizeof caption, &t);
    status = dv_plot_end(&plot, caption, error);
  }
  DV_FREE(t.at, t.distance);
  return status;
}
