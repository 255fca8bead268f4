#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "data/dataset.h"
#include "env/env.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name; /* of the system and of its table of settings */
  dv_simulate_fn *simulate;
} systems[] = {
    {"pendulum", dv_simulate_pendulum},
    {"ball", dv_simulate_ball},
    {"two-balls", dv_simulate_two_balls},
};
enum { SYSTEMS = sizeof systems / sizeof *systems };

static dvbf_status find_system(dv_simulate_fn **out, const char *name, dvbf_error *error) {
  char known[128] = "";
  for (size_t i = 0; i < SYSTEMS; i++) {
    if (!strcmp(systems[i].name, name)) {
      *out = systems[i].simulate;
      return DVBF_OK;
    }
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", systems[i].name);
  }
  return dv_fail(error, DVBF_ARGUMENT, "there is no system named %.60s to simulate; the known ones are: %s",
                 name, known);
}

dvbf_status dvbf_simulate(dvbf_data **out, const dvbf_settings *settings, dvbf_error *error) {
  dv_simulate_fn *simulate = NULL;
  dvbf_status status = find_system(&simulate, dv_settings_table_name(settings), error);
  if (status) return status;
  dvbf_data *data = dv_calloc(1, sizeof *data);
  if (!data) return dv_fail_memory(error, "simulating");
  status = simulate(data, settings, error);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}

/* ---- What all systems share ---- */

/* Random frames become NaN. The other frames are the same as without missing ones. */
static void lose_frames(dvbf_sequences *s, const dv_simulation *m, uint32_t split, size_t sequence) {
  dv_random random = dv_random_at((uint64_t)m->seed, DV_STREAM_GAPS, split, (uint32_t)sequence);
  for (size_t t = 0; t < s->steps; t++) {
    float *frame = s->x + (sequence * s->steps + t) * s->n_x;
    if (!(dv_random_uniform(&random) < m->missing)) continue;
    for (size_t k = 0; k < s->n_x; k++) frame[k] = NAN;
  }
}

/* Each sequence has its own random numbers, so it does not depend on how many others there are. */
static dvbf_status simulate_split(dvbf_sequences *s, const dv_simulation *m, uint32_t split, int64_t count,
                                  double *scratch, dvbf_error *error) {
  size_t size = (size_t)m->size;
  *s = (dvbf_sequences){
      .count = (size_t)count, .steps = (size_t)m->steps, .n_x = size * size, .n_u = m->n_u, .n_s = m->n_s};
  dvbf_status status = dv_sequences_allocate(s, false, error);
  s->gaps = m->missing > 0;
  for (size_t i = 0; !status && i < s->count; i++) {
    dv_random random = dv_random_at((uint64_t)m->seed, DV_STREAM_SIMULATION, split, (uint32_t)i);
    size_t first = i * s->steps;
    if (!m->sequence(m->settings, &random, scratch, s->x + first * s->n_x,
                     s->u ? s->u + first * s->n_u : NULL, s->state + first * s->n_s))
      status = dv_fail(error, DVBF_ARGUMENT,
                       "the motion grew beyond all numbers in sequence %zu; a smaller dt, more substeps or "
                       "weaker forces follow it",
                       i);
    else if (s->gaps)
      lose_frames(s, m, split, i);
  }
  return status;
}

dvbf_status dv_simulate_splits(dvbf_data *data, const dv_simulation *m, dvbf_error *error) {
  double *scratch = dv_calloc(2 * (size_t)m->size, sizeof *scratch);
  data->state_names = dv_calloc(m->n_s, sizeof *data->state_names);
  dvbf_status status = scratch && data->state_names ? DVBF_OK : dv_fail_memory(error, "simulating");
  data->image_height = data->image_width = (size_t)m->size;
  if (!status) memcpy(data->state_names, m->state_names, m->n_s * sizeof *data->state_names);
  if (!status) status = simulate_split(&data->train, m, DV_SPLIT_TRAIN, m->train, scratch, error);
  if (!status) status = simulate_split(&data->valid, m, DV_SPLIT_VALID, m->valid, scratch, error);
  if (!status) status = simulate_split(&data->test, m, DV_SPLIT_TEST, m->test, scratch, error);
  dv_free(scratch);
  return status;
}

/* profile[i] = exp(-(i - centre)^2 / (2 deviation^2)) */
static void gaussian_profile(double *profile /* [size] */, size_t size, double centre, double deviation) {
  for (size_t i = 0; i < size; i++) {
    double distance = ((double)i - centre) / deviation;
    profile[i] = exp(-0.5 * distance * distance);
  }
}

/* A round blob is the product of its two profiles: 2 size exponentials instead of size^2. */
void dv_draw_blob(float *image, size_t size, double row, double column, double deviation, double *scratch) {
  double *vertical = scratch, *horizontal = scratch + size;
  gaussian_profile(vertical, size, row, deviation);
  gaussian_profile(horizontal, size, column, deviation);
  for (size_t i = 0; i < size; i++)
    for (size_t j = 0; j < size; j++) image[i * size + j] = (float)(vertical[i] * horizontal[j]);
}
