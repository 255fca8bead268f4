/* The range that the state keeps to: its centre and limit per dimension, which training measures and no
 * gradient moves. */
#include "model/model.h"

#include "base/arithmetic.h"

#include <math.h>

static const char NAME[] = "state.range";

/* Before training has seen any z: so wide that it only keeps numbers from overflowing. */
enum { FIRST_LIMIT = 1000 };

dvbf_value dvbf_state_range(dvbf_graph *g, const dvbf_model *m) {
  double first[2 * DV_MOST_LATENT] = {0};
  if (!(m->settings->state_limit > 0)) return DVBF_NONE;
  for (int k = 0; k < m->n_z; k++) first[m->n_z + k] = FIRST_LIMIT;
  return dvbf_parameter(g, NAME, 2, m->n_z, (dvbf_first){.frozen = true, .values = first});
}

dvbf_real *dv_model_range(const dvbf_model *m) {
  return dv_model_values(m, NAME);
}

void dv_model_set_range(dvbf_model *m, const dvbf_real *low, const dvbf_real *high, double multiple) {
  dvbf_real *centre = dv_model_range(m), *limit = centre + m->n_z;
  double widest = 0;
  for (int k = 0; k < m->n_z; k++) {
    if (!(low[k] <= high[k])) return; /* nothing was seen, or nothing finite */
    widest = fmax(widest, ((double)high[k] - (double)low[k]) / 2);
  }
  if (!isfinite(widest)) return;
  for (int k = 0; k < m->n_z; k++) {
    double half = ((double)high[k] - (double)low[k]) / 2;
    centre[k] = (dvbf_real)((double)low[k] + half);
    limit[k] = (dvbf_real)(multiple * fmax(half, fmax(0.01 * widest, 1e-6)));
  }
}

void dv_range_bend(const dvbf_real *range, double *z, int n) {
  for (int k = 0; range && k < n; k++) {
    double centre = (double)range[k], limit = (double)range[n + k], far = fabs(z[k] - centre);
    if (far > limit) z[k] = centre + copysign(limit * (1 + dv_tanh(far / limit - 1)), z[k] - centre);
  }
}

void dv_range_narrow(const dvbf_real *range, double *cov, int n) {
  for (int k = 0; range && k < n; k++) {
    double by = (double)range[n + k] / sqrt(cov[k * n + k]);
    for (int i = 0; i < n && by < 1; i++) cov[k * n + i] *= by, cov[i * n + k] *= by;
  }
}
