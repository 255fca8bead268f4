/* What columns are measured by. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/rolling.h"
#include "model/density.h"

#include <math.h>

void dv_yardstick_clear(dv_yardstick *y) {
  DV_FREE(y->mean, y->unit);
  *y = (dv_yardstick){0};
}

/* The training mean is the model's own where it keeps one; the data at hand may be others than it saw. */
dvbf_status dv_yardstick_of(dv_yardstick *out, const dvbf_model *m, const dvbf_data *data,
                            const dvbf_sequences *sequences, dvbf_error *error) {
  size_t n = (size_t)m->n_x;
  dv_statistics x = {0};
  *out = (dv_yardstick){0};
  dvbf_status status = dv_statistics_of_x(&x, data->train.count ? &data->train : sequences, error);
  if (status) return status;
  *out = (dv_yardstick){dv_calloc(n, sizeof(double)), dv_calloc(n, sizeof(double))};
  bool room = out->mean && out->unit, scales = m->density->scales(m->settings);
  for (size_t k = 0; room && k < n; k++) {
    bool centred = scales && m->settings->x_scaling != DV_SCALING_NONE;
    bool scaled = scales && m->settings->x_scaling == DV_SCALING_STANDARDISE;
    out->mean[k] = centred ? (double)m->x.shift[k] : x.mean[k];
    if (!dv_statistics_vary(&x, k)) continue;
    out->unit[k] = scaled ? 1 / (double)m->x.scale[k] : sqrt(x.variance[k]);
  }
  dv_statistics_free(&x);
  return room ? DVBF_OK : dv_fail_memory(error, "judging the model");
}
