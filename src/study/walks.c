#include "study/measure.h"

#include <dvbf/figures.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REST = 10 };

/* Walks have seeds of their own. */
static dvbf_status simulate(dvbf_data **out, const dv_subject *from, dvbf_error *error) {
  static const char *const values[][2] = {
      {"torque", "0"}, {"steps", "100"}, {"train", "1"}, {"valid", "1"}, {"test", "20"}};
  dvbf_settings *settings = NULL;
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)from->seed + 2000000);
  dvbf_status status = dvbf_settings_new(&settings, "pendulum", error);
  if (!status) status = dvbf_settings_preset(settings, from->preset, error);
  for (size_t i = 0; !status && i < sizeof values / sizeof *values; i++)
    status = dvbf_settings_set(settings, values[i][0], values[i][1], error);
  if (!status) status = dvbf_settings_set(settings, "seed", text, error);
  if (!status) status = dvbf_simulate(out, settings, error);
  dvbf_settings_free(settings);
  return status;
}

dvbf_status dv_walks_take(dv_walks *out, const dv_subject *from, dvbf_error *error) {
  dvbf_data *data = NULL;
  dv_path_options options = {.seed = from->seed, .threads = from->threads};
  *out = (dv_walks){0};
  dvbf_status status = simulate(&data, from, error);
  if (!status) status = dv_paths_of(&out->filtering, from->model, &data->test, &options, error);
  options.observe = from->observed;
  if (!status) status = dv_paths_of(&out->generative, from->model, &data->test, &options, error);
  dvbf_data_free(data);
  return status;
}

void dv_walks_free(dv_walks *w) {
  dv_paths_free(w->generative);
  dv_paths_free(w->filtering);
  *w = (dv_walks){0};
}

/* Mean of dimension i over the last steps of a sequence. */
static double rest_of(const dv_paths *p, size_t sequence, size_t i) {
  double sum = 0;
  for (size_t t = p->steps - REST; t < p->steps; t++) sum += p->z[(sequence * p->steps + t) * p->n_z + i];
  return sum / REST;
}

static double spread_of(const dv_paths *p) {
  double total = 0, n = (double)(p->count * p->steps);
  for (size_t i = 0; i < p->n_z; i++) {
    double sum = 0, squares = 0;
    for (size_t k = i; k < p->count * p->steps * p->n_z; k += p->n_z) {
      sum += p->z[k];
      squares += (double)p->z[k] * p->z[k];
    }
    total += squares / n - sum / n * (sum / n);
  }
  return sqrt(total);
}

double dv_walks_distance(const dv_walks *w, const dv_paths *samples) {
  double sum = 0;
  for (size_t s = 0; s < w->filtering->count; s++) {
    double squares = 0;
    for (size_t i = 0; i < w->filtering->n_z; i++) {
      double apart = rest_of(w->filtering, s, i) - rest_of(w->generative, s, i);
      squares += apart * apart;
    }
    sum += sqrt(squares);
  }
  return sum / (double)w->filtering->count / spread_of(samples);
}

dvbf_status dv_walks_draw(const dv_walks *w, const dv_points *samples, const char *title, const char *path,
                          dvbf_error *error) {
  const dv_column *angle = dv_points_column(samples, "angle"),
                  *velocity = dv_points_column(samples, "velocity");
  dvbf_figure_walks figure = {.title = title,
                              .n_z = samples->n_z,
                              .walks = 2,
                              .walk = {{"generative", w->generative->steps, w->generative->z},
                                       {"filtering", w->filtering->steps, w->filtering->z}},
                              .points = samples->count,
                              .z = samples->z,
                              .angle = angle ? angle->values : NULL,
                              .velocity = velocity ? velocity->values : NULL};
  return dvbf_draw_walks(&figure, path, error);
}
