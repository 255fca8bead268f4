#include "identify/range.h"

#include "base/memory.h"
#include "base/status.h"
#include "kalman/filter.h"

#include <math.h>

static void walk(const dv_system *s, const dv_recordings *r, const dv_piece *piece, double *memory,
                 dvbf_real *low, dvbf_real *high) {
  dv_kalman k = dv_kalman_begin(s, memory);
  for (size_t frame = piece->first; frame < piece->first + piece->steps; frame++) {
    const double *u = r->u + frame * (size_t)r->n_u;
    if (!dv_kalman_observe(&k, r->x + frame * (size_t)r->n_x, u)) return;
    for (int i = 0; i < s->n_z; i++) {
      low[i] = (dvbf_real)fmin((double)low[i], k.filtered[i]);
      high[i] = (dvbf_real)fmax((double)high[i], k.filtered[i]);
    }
    dv_kalman_move(&k, u);
  }
}

dvbf_status dv_linear_measure(dvbf_model *m, const dv_system *s, const dv_recordings *r, dvbf_error *error) {
  size_t n = (size_t)s->n_z;
  if (!dv_model_range(m)) return DVBF_OK;
  double *memory = dv_calloc(dv_kalman_size(s->n_z, s->n_x), sizeof *memory);
  dvbf_real *low = dv_calloc(2 * n, sizeof *low), *high = low ? low + n : NULL;
  dvbf_status status =
      memory && low ? DVBF_OK : dv_fail_memory(error, "measuring the states of a linear model");
  for (size_t i = 0; !status && i < n; i++) low[i] = (dvbf_real)INFINITY, high[i] = (dvbf_real)-INFINITY;
  for (size_t i = 0; !status && i < r->count; i++) walk(s, r, &r->whole[i], memory, low, high);
  if (!status) dv_model_set_range(m, low, high, m->settings->state_limit);
  dv_free(memory);
  dv_free(low);
  return status;
}
