#include "base/presets.h"

#include <dvbf/dvbf.h>
#include <string.h>

typedef struct preset {
  const char *name, *help, *lines;
} preset;

/* The defaults of the settings table are the preset "pendulum"; it stands here so that it can be named. */
static const preset presets[] = {
    {"pendulum", "ours for the pendulum: the defaults", ""},
    {"paper-pendulum", "the paper's appendix for the pendulum, to the letter where it trains",
     "latent = 3\n"
     "systems = 16\n"
     "hidden = 128\n"
     "mixing-control = off\n"
     "initial = fast-dropout\n"
     "dropout = 0.1\n"
     "initial-variance = propagated\n"
     "initial-frames = 0\n"
     "sigma-floor = 0.01\n"
     "sigma-floor-updates = 0\n"
     "temperature-start = 0.01\n"
     "temperature-updates = 100000\n"
     "temperature-every = 250\n"
     "filter-dropout = 0\n"
     "filter-dropout-end = 0\n"
     "universal-noise = step\n"
     "scale-innovation = 0.1\n"
     "optimizer = adadelta\n"
     "learning-rate = 0.1\n"
     "epsilon = 1e-4\n"
     "warm-up = 0\n"
     "decay = none\n"
     "clip-z = 2\n"
     "clip-spike = 0\n"
     "batch-size = 500\n"
     "updates = 180000\n"
     "validate-every = 250\n"
     "starts = 1\n"},
    {"dkf-pendulum", "ours for a Deep Kalman Filter on the pendulum",
     "model = dkf\n"
     "initial = birnn\n"
     "layers = 2\n"
     "filter-dropout = 0\n"
     "filter-dropout-end = 0\n"
     "starts = 1\n"},
    {"paper-dkf-pendulum",
     "the paper's appendix for the DKF, to the letter; it gives no number of updates, 20000 is our choice",
     "model = dkf\n"
     "latent = 3\n"
     "hidden = 128\n"
     "layers = 2\n"
     "activation = sigmoid\n"
     "residual = off\n"
     "initial = fast-dropout\n"
     "dropout = 0.1\n"
     "initial-variance = propagated\n"
     "sigma = state\n"
     "sigma-floor = 0.01\n"
     "sigma-floor-updates = 0\n"
     "temperature-start = 0.01\n"
     "temperature-updates = 2000\n"
     "temperature-every = 25\n"
     "filter-dropout = 0\n"
     "filter-dropout-end = 0\n"
     "optimizer = adam\n"
     "learning-rate = 0.001\n"
     "warm-up = 0\n"
     "decay = none\n"
     "clip-spike = 0\n"
     "batch-size = 500\n"
     "updates = 20000\n"
     "starts = 1\n"},
};

const char *dv_preset_lines(const char *name) {
  for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
    if (!strcmp(presets[i].name, name)) return presets[i].lines;
  return NULL;
}

const char *dvbf_preset_name(size_t index, const char **help) {
  if (index >= sizeof presets / sizeof *presets) return NULL;
  if (help) *help = presets[index].help;
  return presets[index].name;
}
