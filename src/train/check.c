#include "train/check.h"

#include "base/status.h"

#include <string.h>

dvbf_status dv_check_varies(const dv_statistics *x, size_t n_x, dvbf_error *error) {
  for (size_t k = 0; k < n_x; k++)
    if (dv_statistics_vary(x, k)) return DVBF_OK;
  if (!x->frames)
    return dv_fail(error, DVBF_FORMAT, "data: all of x is missing in the training sequences; mend the file");
  return dv_fail(
      error, DVBF_FORMAT,
      "data: every column of x is constant in the training sequences (column 0 is always %g), so there "
      "is nothing to learn; choose other columns, or other data",
      x->mean[0]);
}

dvbf_status dv_check_length(const dvbf_model_class *type, const dvbf_settings *settings, size_t steps,
                            const char *which, dvbf_error *error) {
  int needed = type->frames_needed ? type->frames_needed(type, settings) : 1;
  bool validates = !strcmp(which, "validation");
  if ((size_t)needed <= steps) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "initial-frames = %d: the %s sequences have only %zu step%s, so the model cannot begin; use "
                 "initial-frames = %zu or fewer%s",
                 needed, which, steps, steps == 1 ? "" : "s", steps > 1 ? steps - 1 : 1,
                 validates ? ", or a larger valid-share, or valid-share = 0"
                           : ", or longer sequences or windows");
}
