/* Presets: named sets of settings, such as those of the paper's experiments, as text in the form of config
 * files (dv_preset_lines, dvbf_preset_name). A preset may also name a simulated system. */
#include "base/settings.h"

#include <dvbf/core.h>
#include <string.h>

typedef struct preset {
  const char *name, *help;
  const char *train;  /* lines for the table "train" */
  const char *system; /* the system it is for */
  const char *data;   /* lines for the table of that system; NULL: its defaults */
} preset;

/* Common to all of the paper's experiments with DVBF and Adadelta (its appendix). */
#define PAPER_DVBF                                                                                           \
  "systems = 16\n"                                                                                           \
  "hidden = 128\n"                                                                                           \
  "mixing-control = off\n"                                                                                   \
  "initial = fast-dropout\n"                                                                                 \
  "initial-frames = 0\n"                                                                                     \
  "sigma-floor = 0.01\n"                                                                                     \
  "sigma-floor-until = 0\n"                                                                                  \
  "temperature-start = 0.01\n"                                                                               \
  "temperature-until = 100000\n"                                                                             \
  "temperature-every = 250\n"                                                                                \
  "filter-dropout = 0\n"                                                                                     \
  "filter-dropout-end = 0\n"                                                                                 \
  "universal-noise = step\n"                                                                                 \
  "scale-innovation = 0.1\n"                                                                                 \
  "optimizer = adadelta\n"                                                                                   \
  "learning-rate = 0.1\n"                                                                                    \
  "decay = none\n"                                                                                           \
  "clip-z = 2\n"                                                                                             \
  "clip-spike = 0\n"                                                                                         \
  "batch-size = 500\n"                                                                                       \
  "updates = 180000\n"                                                                                       \
  "validate-every = 250\n"                                                                                   \
  "starts = 1\n"

#define OURS_RECURRENT                                                                                       \
  "latent = 6\n"                                                                                             \
  "layers = 2\n"                                                                                             \
  "projection = 1e-4\n"                                                                                      \
  "starts = 1\n"

#define OURS_BALL                                                                                            \
  "sigma-floor = 0.02\n"                                                                                     \
  "sigma-floor-until = 0.5\n"                                                                                \
  "filter-dropout = 0.5\n"                                                                                   \
  "filter-dropout-end = 0.4\n"                                                                               \
  "learning-rate = 0.003\n"                                                                                  \
  "filter-dropout-until = 2000\n"

/* The preset "pendulum" is empty because the defaults are its values. It is listed so that it has a name. */
static const preset presets[] = {
    {"pendulum", "ours for the pendulum: the defaults", "", "pendulum", NULL},
    {"innovation-pendulum", "ours for the pendulum with the best bound and predictions; several times slower",
     "linear-paths = on\n"
     "recognition-input = innovation\n"
     "universal = point\n"
     "initial = birnn\n"
     "initial-frames = 0\n"
     "filter-dropout-end = 0\n"
     "filter-dropout-until = 0.375\n",
     "pendulum", NULL},
    {"paper-pendulum", "the paper's appendix for the pendulum, unchanged where that trains",
     PAPER_DVBF "latent = 3\n", "pendulum", NULL},
    {"dkf-pendulum", "ours for a Deep Kalman Filter on the pendulum",
     "model = dkf\n"
     "initial = birnn\n"
     "layers = 2\n"
     "filter-dropout = 0\n"
     "filter-dropout-end = 0\n"
     "starts = 1\n",
     "pendulum", NULL},
    {"vrnn-pendulum", "ours for a variational recurrent network on the pendulum",
     "model = vrnn\n" OURS_RECURRENT, "pendulum", NULL},
    {"storn-pendulum", "ours for a stochastic recurrent network on the pendulum",
     "model = storn\n" OURS_RECURRENT, "pendulum", NULL},
    {"e2c-pendulum", "ours for embed to control on the pendulum",
     "model = e2c\n"
     "transition-weight = 1\n"
     "learning-rate = 0.001\n"
     "state-limit = 2\n"
     "projection = 1e-4\n"
     "keep-by = prediction\n"
     "starts = 1\n",
     "pendulum", NULL},
    {"svae-pendulum", "ours for a structured variational autoencoder on the pendulum",
     "model = svae\n"
     "latent = 8\n"
     "projection = 1e-4\n"
     "starts = 1\n",
     "pendulum", NULL},
    {"paper-dkf-pendulum",
     "the paper's appendix for the DKF, unchanged; the number of updates, 20000, is our choice",
     "model = dkf\n"
     "latent = 3\n"
     "hidden = 128\n"
     "layers = 2\n"
     "activation = sigmoid\n"
     "residual = off\n"
     "initial = fast-dropout\n"
     "sigma = state\n"
     "sigma-floor = 0.01\n"
     "sigma-floor-until = 0\n"
     "temperature-start = 0.01\n"
     "temperature-until = 2000\n"
     "temperature-every = 25\n"
     "filter-dropout = 0\n"
     "filter-dropout-end = 0\n"
     "optimizer = adam\n"
     "learning-rate = 0.001\n"
     "decay = none\n"
     "clip-spike = 0\n"
     "batch-size = 500\n"
     "updates = 20000\n"
     "starts = 1\n",
     "pendulum", NULL},
    {"ball", "ours for the bouncing ball, on more sequences than the paper's 500",
     "latent = 4\n"
     "affine = on\n"
     "mixing-hidden = 64\n"
     "initial-control = on\n" OURS_BALL "updates = 40000\n"
     "validate-every = 1000\n"
     "restart-above = 0.25\n",
     "ball", NULL},
    {"innovation-ball", "ours for the bouncing ball with the best predictions: a network as transition",
     "latent = 6\n"
     "transition = mlp\n"
     "linear-paths = on\n"
     "recognition-input = innovation\n"
     "initial-control = on\n"
     "projection = 1e-4\n" OURS_BALL "updates = 60000\n"
     "validate-every = 1000\n"
     "restart-above = 0.25\n",
     "ball", NULL},
    {"paper-ball", "the paper's appendix for the bouncing ball, on 500 sequences", PAPER_DVBF "latent = 4\n",
     "ball", "train = 500\n"},
    {"cart-pole", "ours for a pole balanced by a cart, from few frames near upright",
     "latent = 16\n"
     "initial-frames = 2\n"
     "universal = point\n"
     "linear-paths = on\n"
     "recognition-input = innovation\n"
     "projection = 1e-4\n"
     "sigma-floor = 0.002\n"
     "sigma-floor-until = 0.25\n"
     "filter-dropout-until = 2000\n"
     "updates = 20000\n"
     "starts = 1\n",
     "cart-pole",
     "near = 0.05\n"
     "thickness = 0.1\n"
     "steps = 10\n"
     "train = 1400\n"},
    {"two-balls", "ours for two bouncing balls, on more sequences than the paper's 2000",
     "latent = 10\n"
     "systems = 64\n"
     "mean = sigmoid\n"
     "affine = on\n"
     "mixing-hidden = 64\n"
     "scale-transition = 0.02\n"
     "sigma-floor = 0.05\n"
     "sigma-floor-until = 0.5\n"
     "filter-dropout = 0.5\n"
     "filter-dropout-end = 0.5\n"
     "filter-dropout-run = 3\n"
     "learning-rate = 0.003\n"
     "filter-dropout-until = 2000\n"
     "updates = 50000\n"
     "validate-every = 1000\n"
     "restart-above = 0.7\n",
     "two-balls", "train = 20000\n"},
    {"paper-two-balls", "the paper's appendix for two bouncing balls",
     "latent = 10\n"
     "systems = 64\n"
     "hidden = 128\n"
     "mean = sigmoid\n"
     "initial = mlp\n"
     "initial-frames = 0\n"
     "sigma-floor = 0.01\n"
     "sigma-floor-until = 0\n"
     "temperature-start = 0.01\n"
     "temperature-until = 200000\n"
     "filter-dropout = 0\n"
     "filter-dropout-end = 0\n"
     "universal-noise = step\n"
     "scale-transition = 0.02\n"
     "scale-innovation = 0.1\n"
     "learning-rate = 0.001\n"
     "decay = none\n"
     "clip-z = 2\n"
     "clip-spike = 0\n"
     "batch-size = 80\n"
     "updates = 200000\n"
     "validate-every = 1000\n"
     "starts = 1\n",
     "two-balls", NULL},
};

static const preset *find(const char *name) {
  for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
    if (!strcmp(presets[i].name, name)) return &presets[i];
  return NULL;
}

const char *dv_preset_lines(const char *name, const char *table) {
  const preset *p = find(name);
  if (!p) return NULL;
  if (!strcmp(table, "train")) return p->train;
  return !strcmp(table, p->system) ? p->data ? p->data : "" : NULL;
}

const char *dvbf_preset_system(const char *name) {
  const preset *p = find(name);
  return p ? p->system : NULL;
}

const char *dvbf_preset_name(size_t index, const char **help) {
  if (index >= sizeof presets / sizeof *presets) return NULL;
  if (help) *help = presets[index].help;
  return presets[index].name;
}
