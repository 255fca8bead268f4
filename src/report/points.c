#include "report/points.h"

#include "base/memory.h"
#include "base/status.h"
#include "report/signals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void dv_points_free(dv_points *p) {
  for (size_t i = 0; p->columns && i < p->n_columns; i++) dv_free(p->columns[i].values);
  DV_FREE(p->columns, p->z);
  *p = (dv_points){0};
}

const dv_column *dv_points_column(const dv_points *p, const char *prefix) {
  for (size_t i = 0; i < p->n_truth; i++)
    if (!strncmp(p->columns[i].name, prefix, strlen(prefix))) return &p->columns[i];
  return NULL;
}

const dv_column *dv_points_named(const dv_points *p, const char *name) {
  for (size_t i = 0; i < p->n_truth; i++)
    if (!strcmp(p->columns[i].name, name)) return &p->columns[i];
  return NULL;
}

/* Adds an empty column; NULL when there is no memory. */
static dv_column *next_column(dv_points *p, const char *group, const char *name) {
  dv_column *column = &p->columns[p->n_columns];
  column->values = dv_calloc(p->count, sizeof *column->values);
  if (!column->values) return NULL;
  p->n_columns++;
  column->group = group;
  snprintf(column->name, sizeof column->name, "%.60s", name);
  return column;
}

/* Adds a column for atan2(state[sine], state[cosine]), or for state[sine] itself when cosine is negative. */
static bool add_truth(dv_points *p, const dvbf_sequences *s, const char *name, int sine, int cosine) {
  dv_column *column = next_column(p, "ground truth", name);
  if (!column) return false;
  column->cyclic = cosine >= 0 || !strncmp(name, "angle", 5);
  p->n_truth = p->n_columns;
  size_t n = 0;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(s, i); t++) {
      const float *state = s->state + (dvbf_sequence_start(s, i) + t) * s->n_s;
      column->values[n++] = cosine < 0 ? state[sine] : atan2f(state[sine], state[cosine]);
    }
  return true;
}

static bool add_inputs(dv_points *p, const dvbf_data *data, const dvbf_sequences *s, size_t width) {
  char label[64];
  for (size_t k = 0; k < width; k++) {
    dv_signal_label(label, data, true, k);
    dv_column *column = next_column(p, "inputs", label);
    if (!column) return false;
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
      for (size_t t = 0; t < dvbf_sequence_length(s, i); t++)
        column->values[n++] = s->u[(dvbf_sequence_start(s, i) + t) * s->n_u + k];
  }
  return true;
}

/* x may have to be read from its file, a sequence at a time. */
static dvbf_status add_signals(dv_points *p, const dvbf_data *data, const dvbf_sequences *s, size_t width,
                               dvbf_error *error) {
  char label[64];
  size_t first = p->n_columns, n = 0;
  dvbf_status status = DVBF_OK;
  for (size_t k = 0; k < width; k++) {
    dv_signal_label(label, data, false, k);
    if (!next_column(p, "signals", label)) return dv_fail_memory(error, "showing the latent space");
  }
  for (size_t i = 0; width && i < s->count && !status; i++) {
    dvbf_sequences one = {0};
    status = dvbf_sequences_copy(&one, s, i, 1, error);
    for (size_t t = 0; !status && t < dvbf_sequence_length(s, i); t++, n++)
      for (size_t k = 0; k < width; k++) p->columns[first + k].values[n] = one.x[t * s->n_x + k];
    dvbf_sequences_free(&one);
  }
  return status;
}

static bool add_steps(dv_points *p, const dvbf_sequences *s, const char *name) {
  dv_column *column = next_column(p, "time", name);
  size_t n = 0;
  for (size_t i = 0; column && i < s->count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(s, i); t++) column->values[n++] = (float)t + 1;
  return column;
}

/* A state "sin..." with a state "cos..." of the same ending is an angle. */
static bool add_angles(dv_points *p, const dvbf_data *data, const dvbf_sequences *s) {
  char name[40];
  for (size_t i = 0; i < s->n_s; i++)
    for (size_t j = 0; j < s->n_s; j++) {
      const char *sine = data->state_names[i], *cosine = data->state_names[j];
      if (strncmp(sine, "sin", 3) != 0 || strncmp(cosine, "cos", 3) != 0 || strcmp(sine + 3, cosine + 3) != 0)
        continue;
      snprintf(name, sizeof name, "angle%s", sine + 3);
      if (!add_truth(p, s, name, (int)i, (int)j)) return false;
    }
  return true;
}

static void gather_z(dv_points *p, const dvbf_sequences *s, const dv_paths *paths) {
  size_t n = 0;
  for (size_t i = 0; i < s->count; i++) {
    size_t length = dvbf_sequence_length(s, i), width = paths->n_z;
    memcpy(p->z + n * width, paths->z + i * s->steps * width, length * width * sizeof *p->z);
    n += length;
  }
}

enum { MOST_VALUES = 1 << 24 }; /* of signals */

static dvbf_status gather(dv_points *p, const dvbf_data *data, const dvbf_sequences *s, const dv_paths *paths,
                          dvbf_error *error) {
  p->n_z = paths->n_z;
  for (size_t i = 0; i < s->count; i++) p->count += dvbf_sequence_length(s, i);
  size_t signals = s->n_x < DV_SIGNAL_COLUMNS ? s->n_x : DV_SIGNAL_COLUMNS;
  size_t inputs = s->n_u < DV_SIGNAL_INPUTS ? s->n_u : DV_SIGNAL_INPUTS;
  if (data->image_height || signals > MOST_VALUES / (p->count + 1)) signals = 0;
  p->z = dv_calloc(p->count, p->n_z * sizeof *p->z);
  p->columns = dv_calloc(s->n_s * s->n_s + s->n_s + signals + inputs + 1, sizeof *p->columns);
  bool done = p->z && p->columns && add_angles(p, data, s);
  for (size_t i = 0; done && i < s->n_s; i++) done = add_truth(p, s, data->state_names[i], (int)i, -1);
  dvbf_status status = done ? add_signals(p, data, s, signals, error) : DVBF_OK;
  done = done && !status && add_inputs(p, data, s, inputs) &&
         add_steps(p, s, data->image_height ? "frame" : "step");
  if (status) return status;
  if (!done) return dv_fail(error, DVBF_MEMORY, "out of memory for %zu latent samples", p->count);
  gather_z(p, s, paths);
  return DVBF_OK;
}

dvbf_status dv_points_sample(dv_points *out, const dvbf_model *model, const dvbf_data *data,
                             const dvbf_sequences *sequences, const dv_path_options *options,
                             dvbf_error *error) {
  dv_paths *paths = NULL;
  *out = (dv_points){0};
  dvbf_status status = dv_paths_of(&paths, model, sequences, options, error);
  if (!status) status = gather(out, data, sequences, paths, error);
  dv_paths_free(paths);
  return status;
}
