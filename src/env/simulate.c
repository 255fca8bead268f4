/* Data sets of simulated systems, with controls that are random or sweep through frequencies. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "env/env.h"

#include <string.h>

/* Random frames become NaN. The other frames are the same as without missing ones. */
static void lose_frames(dvbf_sequences *s, const dv_system *m, uint32_t split, size_t sequence) {
  dv_random random = dv_random_at((uint64_t)m->seed, DV_STREAM_GAPS, split, (uint32_t)sequence);
  for (size_t t = 0; t < s->steps; t++) {
    float *frame = s->x + (sequence * s->steps + t) * s->n_x;
    if (!(dv_random_uniform(&random) < m->missing)) continue;
    for (size_t k = 0; k < s->n_x; k++) frame[k] = NAN;
  }
}

/* A sine whose frequency rises, or falls, by the same factor from frame to frame, between one swing in a
 * sequence and a period of four frames. */
typedef struct sweep {
  double strength, phase, frequency, factor;
} sweep;

static void begin_sweeps(sweep *out, const dv_system *m, dv_random *random) {
  const double turn = 6.283185307179586477, fastest = 0.25, slowest = 1 / fmax(8, (double)m->steps);
  double factor = dv_pow(fastest / slowest, 1 / (double)m->steps);
  for (int k = 0; k < m->n_u; k++) {
    bool rises = dv_random_uniform(random) < 0.5;
    out[k] = (sweep){.strength = m->limit * (0.3 + 0.7 * dv_random_uniform(random)),
                     .phase = turn * dv_random_uniform(random),
                     .frequency = turn * (rises ? slowest : fastest),
                     .factor = rises ? factor : 1 / factor};
  }
}

static double next_of(sweep *s) {
  double value = s->strength * dv_sin(s->phase);
  s->phase += s->frequency;
  s->frequency *= s->factor;
  return value;
}

/* One sequence. Its motion uses u as it is stored, rounded to float. False: the state is not finite. */
static bool simulate_sequence(dvbf_sequences *s, const dv_system *m, uint32_t split, size_t sequence,
                              double *scratch) {
  dv_random random = dv_random_at((uint64_t)m->seed, DV_STREAM_SIMULATION, split, (uint32_t)sequence);
  dv_random noise = dv_random_at((uint64_t)m->seed, DV_STREAM_PIXELS, split, (uint32_t)sequence);
  double state[DV_MOST_STATES];
  float u[DV_MOST_CONTROLS];
  sweep sweeps[DV_MOST_CONTROLS] = {{0}};
  dv_system_reset(m, &random, state);
  if (m->sweep) begin_sweeps(sweeps, m, &random);
  for (size_t t = 0, row = sequence * s->steps; t < s->steps; t++, row++) {
    dv_raster image = {s->x + row * s->n_x, (size_t)m->size, (size_t)m->channels, scratch};
    dv_system_draw(m, state, &image, &noise);
    m->tell(m, state, s->state + row * s->n_s);
    for (size_t k = 0; k < s->n_s; k++)
      if (!isfinite(s->state[row * s->n_s + k])) return false;
    for (size_t k = 0; k < s->n_u; k++)
      u[k] = (float)(m->sweep ? next_of(&sweeps[k]) : dv_random_symmetric(&random, m->limit));
    if (s->u) memcpy(s->u + row * s->n_u, u, s->n_u * sizeof *u);
    if (!dv_system_step(m, state, u, &noise)) return false;
  }
  return true;
}

/* Each sequence has its own random numbers, so it does not depend on how many others there are. */
static dvbf_status simulate_split(dvbf_sequences *s, const dv_system *m, uint32_t split, int64_t count,
                                  double *scratch, dvbf_error *error) {
  *s = (dvbf_sequences){.count = (size_t)count,
                        .steps = (size_t)m->steps,
                        .n_x = (size_t)(m->size * m->size * m->channels),
                        .n_u = (size_t)m->n_u,
                        .n_s = (size_t)m->n_s};
  dvbf_status status = dv_sequences_allocate(s, false, error);
  s->gaps = m->missing > 0;
  for (size_t i = 0; !status && i < s->count; i++) {
    if (!simulate_sequence(s, m, split, i, scratch))
      status = dv_fail(error, DVBF_ARGUMENT,
                       "the motion grew beyond all numbers in sequence %zu; a smaller dt, more substeps or "
                       "weaker forces follow it",
                       i);
    else if (s->gaps)
      lose_frames(s, m, split, i);
  }
  return status;
}

static dvbf_status simulate_splits(dvbf_data *data, const dv_system *m, dvbf_error *error) {
  double *scratch = dv_calloc(2 * (size_t)m->size, sizeof *scratch);
  data->state_names = dv_calloc((size_t)m->n_s, sizeof *data->state_names);
  dvbf_status status = scratch && data->state_names ? DVBF_OK : dv_fail_memory(error, "simulating");
  data->image_height = data->image_width = (size_t)m->size;
  data->image_channels = (size_t)m->channels;
  if (!status) memcpy(data->state_names, m->state_names, (size_t)m->n_s * sizeof *data->state_names);
  if (!status) status = simulate_split(&data->train, m, DV_SPLIT_TRAIN, m->train, scratch, error);
  if (!status) status = simulate_split(&data->valid, m, DV_SPLIT_VALID, m->valid, scratch, error);
  if (!status) status = simulate_split(&data->test, m, DV_SPLIT_TEST, m->test, scratch, error);
  dv_free(scratch);
  return status;
}

dvbf_status dvbf_simulate(dvbf_data **out, const dvbf_settings *settings, dvbf_error *error) {
  dv_system system;
  dvbf_status status = dv_system_of(&system, settings, error);
  if (status) return status;
  dvbf_data *data = dv_calloc(1, sizeof *data);
  if (!data) return dv_fail_memory(error, "simulating");
  status = simulate_splits(data, &system, error);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}
