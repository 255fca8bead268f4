#include "points.h"

#include "command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_points_free(cli_points *p) {
  for (size_t i = 0; p->columns && i < p->n_columns; i++) free(p->columns[i].values);
  free(p->columns);
  free(p->z);
  *p = (cli_points){0};
}

const cli_column *cli_points_column(const cli_points *p, const char *prefix) {
  for (size_t i = 0; i < p->n_columns; i++)
    if (!strncmp(p->columns[i].name, prefix, strlen(prefix))) return &p->columns[i];
  return NULL;
}

const cli_column *cli_points_named(const cli_points *p, const char *name) {
  for (size_t i = 0; i < p->n_columns; i++)
    if (!strcmp(p->columns[i].name, name)) return &p->columns[i];
  return NULL;
}

/* Adds a column for atan2(state[sine], state[cosine]), or for state[sine] itself when cosine is negative, or
 * for the number of the frame, from 1, when both are. */
static bool add_column(cli_points *p, const dvbf_sequences *s, const char *name, int sine, int cosine) {
  cli_column *column = &p->columns[p->n_columns];
  column->values = malloc((p->count + 1) * sizeof *column->values);
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
static bool add_angles(cli_points *p, const dvbf_data *data, const dvbf_sequences *s) {
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

static void gather_z(cli_points *p, const dvbf_sequences *s, const dvbf_paths *paths) {
  size_t n = 0;
  for (size_t i = 0; i < s->count; i++) {
    size_t length = dvbf_sequence_length(s, i), width = paths->n_z;
    memcpy(p->z + n * width, paths->z + i * s->steps * width, length * width * sizeof *p->z);
    n += length;
  }
}

dvbf_status cli_points_gather(cli_points *p, const dvbf_data *data, const dvbf_sequences *s,
                              const dvbf_paths *paths, dvbf_error *error) {
  *p = (cli_points){.n_z = paths->n_z};
  for (size_t i = 0; i < s->count; i++) p->count += dvbf_sequence_length(s, i);
  p->z = malloc((p->count * p->n_z + 1) * sizeof *p->z);
  p->columns = calloc(s->n_s * s->n_s + s->n_s + 1, sizeof *p->columns);
  bool done = p->z && p->columns && add_angles(p, data, s);
  for (size_t i = 0; done && i < s->n_s; i++) done = add_column(p, s, data->state_names[i], (int)i, -1);
  if (done) done = add_column(p, s, "frame", -1, -1);
  if (!done) return cli_fail(error, DVBF_MEMORY, "out of memory for %zu latent samples", p->count);
  gather_z(p, s, paths);
  return DVBF_OK;
}
