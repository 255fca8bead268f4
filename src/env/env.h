/* Simulated systems with known states. A new system is a file with a dv_simulate_fn, its own settings_*.def
 * and one line in simulate.c. */
#ifndef DV_ENV_H
#define DV_ENV_H

#include "base/random.h"

#include <dvbf/dvbf.h>

/* Fills *data, which is zeroed before. The caller frees it, also after a failure. */
typedef dvbf_status dv_simulate_fn(dvbf_data *data, const dvbf_settings *settings, dvbf_error *error);

dv_simulate_fn dv_simulate_pendulum, dv_simulate_ball, dv_simulate_two_balls;

/* Describes a system: it simulates one sequence, and dv_simulate_splits does the rest. */
typedef struct dv_simulation {
  int64_t train, valid, test, steps, size, seed;
  double missing; /* share of the frames that are missing */
  size_t n_u, n_s;
  const char (*state_names)[32]; /* [n_s] */
  const void *settings;          /* handed to `sequence` */
  /* Writes x [steps][size][size], u [steps][n_u] and state [steps][n_s] with numbers from `random`; scratch
   * is [2][size]. Returns false if the state is not finite. */
  bool (*sequence)(const void *settings, dv_random *random, double *scratch, float *x, float *u,
                   float *state);
} dv_simulation;

/* The settings that all systems share. */
#define DV_SIMULATION_OF(p)                                                                                  \
  .train = (p)->train, .valid = (p)->valid, .test = (p)->test, .steps = (p)->steps, .size = (p)->size,       \
  .seed = (p)->seed, .missing = (p)->missing, .settings = (p)

dvbf_status dv_simulate_splits(dvbf_data *data, const dv_simulation *simulation, dvbf_error *error);

/* image [size][size] = a round Gaussian blob of height 1 around (row, column). */
void dv_draw_blob(float *image, size_t size, double row, double column, double deviation,
                  double *scratch /* [2][size] */);

/* Uniform in plus or minus `limit`. */
static inline double dv_random_symmetric(dv_random *random, double limit) {
  return limit * (2 * dv_random_uniform(random) - 1);
}

#endif
