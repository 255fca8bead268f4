#include "report/points.h"

#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void dv_points_free(dv_points *p) {
  for (size_t i = 0; p->columns && i < p->n_columns; i++) dv_free(p->columns[i].values);
  DV_FREE(p->columns, p->z);
  *p = (dv_points){0};
}

const dv_column *dv_points_column(const dv_points *p, const char *prefix) {
  for (size_t i = 0; i < p->n_columns; i++)
    if (!strncmp(p->columns[i].name, prefix, strlen(prefix))) return &p->columns[i];
  return NULL;
}

const dv_column *dv_points_named(const dv_points *p, const char *name) {
  for (size_t i = 0; i < p->n_columns; i++)
    if (!strcmp(p->columns[i].name, name)) return &p->columns[i];
  return NULL;
}

/* Adds a column for atan2(state[sine], state[cosine]), or for state[sine] itself when cosine is negative, or
 * for the number of the frame, from 1, when both are. */
static bool add_column(dv_points *p, const dvbf_sequences *s, const char *name, int sine, int cosine) {
  dv_column *column = &p->columns[p->n_columns];
  column->values = dv_calloc(p->count, sizeof *column->values);
  if (!column->values) return false;
  p->n_columns++;
  column->cyclic = cosine >= 0 || (sine >= 0 && !strncmp(name, "angle", 5));
  snprintf(column->name, sizeof column->name, "%.32s", name);
  size_t n = 0;
  for (size_t i = 0; i < s->count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(s, i); t++) {
      const float *state = s->n_s ? s->state + (dvbf_sequence_start(s, i) + t) * s->n_s : NULL;
      column->values[n++] = sine < 0     ? (float)t + 1
                            : cosine < 0 ? state[sine]
                                         : atan2f(state[sine], state[cosine]);
    }
  return true;
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
      if (!add_column(p, s, name, (int)i, (int)j)) return false;
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

static dvbf_status gather(dv_points *p, const dvbf_data *data, const dvbf_sequences *s, const dv_paths *paths,
                          dvbf_error *error) {
  p->n_z = paths->n_z;
  for (size_t i = 0; i < s->count; i++) p->count += dvbf_sequence_length(s, i);
  p->z = dv_calloc(p->count, p->n_z * sizeof *p->z);
  p->columns = dv_calloc(s->n_s * s->n_s + s->n_s + 1, sizeof *p->columns);
  bool done = p->z && p->columns && add_angles(p, data, s);
  for (size_t i = 0; done && i < s->n_s; i++) done = add_column(p, s, data->state_names[i], (int)i, -1);
  if (done) done = add_column(p, s, "frame", -1, -1);
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
