#include "train/ridge.h"

#include "base/algebra.h"
#include "base/memory.h"

#include <string.h>

dvbf_status dv_ridge_init(dv_ridge *g, size_t inputs, size_t targets, dvbf_error *error) {
  *g = (dv_ridge){.inputs = inputs, .targets = targets};
  g->total = dv_calloc(inputs, inputs * sizeof *g->total);
  g->coefficients = dv_calloc(inputs, targets * sizeof *g->coefficients);
  g->row = dv_calloc(inputs, sizeof *g->row);
  g->target = dv_calloc(targets, sizeof *g->target);
  if (!g->total || !g->coefficients || !g->row || !g->target) return dv_fail_memory(error, "regressing");
  g->row[0] = 1;
  return DVBF_OK;
}

void dv_ridge_clear(dv_ridge *g) {
  DV_FREE(g->total, g->coefficients, g->row, g->target);
  *g = (dv_ridge){0};
}

void dv_ridge_add(dv_ridge *g) {
  for (size_t i = 0; i < g->inputs; i++) {
    for (size_t j = i; j < g->inputs; j++) g->total[i * g->inputs + j] += g->row[i] * g->row[j];
    for (size_t k = 0; k < g->targets; k++) g->coefficients[i * g->targets + k] += g->row[i] * g->target[k];
  }
  g->rows += 1;
}

void dv_ridge_solve(dv_ridge *g, double share) {
  int n = (int)g->inputs, targets = (int)g->targets;
  for (size_t i = 1; i < g->inputs; i++) g->total[i * (g->inputs + 1)] += share * (g->rows + 1);
  g->total[0] += 1e-9;
  if (dv_cholesky(g->total, n)) {
    dv_solve_lower(g->total, n, g->coefficients, targets);
    dv_solve_upper(g->total, n, g->coefficients, targets);
  } else
    memset(g->coefficients, 0, g->inputs * g->targets * sizeof *g->coefficients);
}

double dv_ridge_guess(const dv_ridge *g, size_t k) {
  double guess = 0;
  for (size_t j = 0; j < g->inputs; j++) guess += g->row[j] * g->coefficients[j * g->targets + k];
  return guess;
}
