/* Time of a step of the exported filter `m` beside dvbf_filter_step without samples. Usage: step MODEL; see
 * run. */
#include <dvbf/core.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "m.h"

enum { STEPS = 2000, WARM = 50, ROUNDS = 40 };

static float x[STEPS][m_N_X], u[STEPS][m_N_U + 1];
static m_state state;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double of_library(dvbf_filter *filter) {
  dvbf_belief belief;
  double begin = 0;
  dvbf_filter_reset(filter);
  for (int i = 0; i < STEPS; i++) {
    if (i == WARM) begin = seconds();
    dvbf_filter_step(filter, x[i], u[i], &belief);
  }
  return seconds() - begin;
}

static double of_export(void) {
  double begin = 0;
  m_reset(&state);
  for (int i = 0; i < STEPS; i++) {
    if (i == WARM) begin = seconds();
    m_step(&state, x[i], u[i], 0, 0);
  }
  return seconds() - begin;
}

int main(int count, char **arguments) {
  dvbf_model *model = NULL;
  dvbf_filter *filter = NULL;
  dvbf_error error;
  size_t size;
  double library = 1e9, exported = 1e9;
  if (count != 2) return 2;
  if (dvbf_model_load(&model, arguments[1], &error) || dvbf_filter_memsize(&size, model, 1, &error) ||
      dvbf_filter_init(&filter, aligned_alloc(64, size), size, model, 1, 1, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  dvbf_filter_quiet(filter, true);
  srand(1);
  for (int i = 0; i < STEPS; i++) {
    for (int k = 0; k < m_N_X; k++) x[i][k] = (float)rand() / (float)RAND_MAX;
    for (int k = 0; k < m_N_U; k++) u[i][k] = (float)rand() / (float)RAND_MAX;
  }
  for (int i = 0; i < ROUNDS; i++) {
    double a = of_library(filter), b = of_export();
    library = a < library ? a : library;
    exported = b < exported ? b : exported;
  }
  double by = 1e6 / (STEPS - WARM);
  printf("library %.2f us, exported %.2f us: %.2f\n", library * by, exported * by, exported / library);
  return 0;
}
