/* Recovery from divergence: settings, window and rate of the next start after `times` diverged ones
 * (dv_recovery_*; trainer.h). No parameter is added or removed, so snapshots fit all starts. */
#include "train/trainer.h"

#include "base/text.h"
#include "math/portable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

size_t dv_recovery_window(const dvbf_model *m, size_t steps) {
  enum { SPARE_FRAMES = 5 };
  size_t least = (size_t)dv_model_start_frames(m) + SPARE_FRAMES, half = steps / 2;
  size_t window = half > least ? half : least;
  return window < steps ? window : steps;
}

double dv_recovery_rate(uint64_t times) {
  return dv_pow(0.5, (double)times);
}

/* The changed values; a value is that of `base` if there is no reason to change it. */
enum { SCALE, CLIP, CONTRACTION, CHANGES };
const char *const dv_recovery_names[CHANGES + 1] = {"scale-transition", "clip-norm", "contraction", NULL};

static void values_of(double out[CHANGES], const dvbf_model *m, const dvbf_settings *base, uint64_t times) {
  const dv_train_settings *s = dv_settings_train(base, NULL);
  dv_systems systems;
  out[SCALE] = s->scale_transition * dv_pow(0.3, (double)times);
  out[CLIP] = times && !(s->clip_norm > 0) ? 1 : s->clip_norm;
  out[CONTRACTION] = times && !(s->contraction > 0) && dv_model_systems(m, &systems) ? 1 : s->contraction;
}

dvbf_status dv_recovery_settings(dvbf_model *m, const dvbf_settings *base, uint64_t times,
                                 dvbf_error *error) {
  double values[CHANGES];
  dvbf_status status = DVBF_OK;
  values_of(values, m, base, times);
  for (int i = 0; i < CHANGES && !status; i++) {
    char text[32];
    if (dv_settings_origin(base, dv_recovery_names[i]) >= DV_GIVEN) continue;
    dv_print(text, sizeof text, "%.17g", values[i]);
    status = dv_settings_set_chosen(m->settings_object, dv_recovery_names[i], text, error);
  }
  return status;
}

void dv_recovery_describe(const dvbf_model *m, const dvbf_settings *base, uint64_t times, char *out,
                          size_t size) {
  double values[CHANGES], before[CHANGES];
  values_of(values, m, base, times);
  values_of(before, m, base, 0);
  dv_print(out, size, "%g of the learning rate", dv_recovery_rate(times));
  for (int i = 0; i < CHANGES; i++) {
    size_t used = strlen(out);
    if (dv_settings_origin(base, dv_recovery_names[i]) < DV_GIVEN && values[i] != before[i])
      dv_print(out + used, size - used, ", %s = %.3g", dv_recovery_names[i], values[i]);
  }
}
