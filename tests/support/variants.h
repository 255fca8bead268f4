/* The models that tests try, one row each: gradients, threads, plans, what a model may see, export. A new
 * model, density or option of a model is a row here, with the flags of the tests that apply to it. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include <string.h>

/* Who tries a row besides model/test_gradient_models.c, and on what data that does. */
enum {
  NO_GRADIENT = 1,
  THREADS = 2,    /* train/test_updater.c: the same for any number of threads */
  PLAN = 4,       /* engine/test_plan.c: memory that is used again changes no value */
  PLAN_APART = 8, /* the same, of a model whose program without gradients has other ops */
  OBSERVED = 16,  /* model/test_models.c: every observed frame, and no other, changes every state */
  PAST = 32,      /* model/test_models.c: a frame changes no state before it */
  EXPORT = 64,    /* tests/export, tests/peers */
  RAGGED = 128,
  GAPS = 256,
  ONE_STEP = 512,
  PADDED = 1024, /* the program has one row more, of weight 0 */
  ANNEALED = 2048
};

#define IMAGES "network=conv image-height=9 image-width=8 channels=2"

typedef struct variant {
  const char *name;
  const char *settings; /* "name=value name=value", on top of those of the test */
  int n_u;
  unsigned flags;
  int n_x;     /* 0: as the test likes */
  double step; /* of differences; 0: 1e-3 */
} variant;

static const variant variants[] = {
    /* Initial networks. */
    {"mlp on 3 frames", "", .n_u = 2},
    {"mlp on all frames", "initial-frames=0", .n_u = 2},
    {"mlp with controls", "initial-control=on", .n_u = 2},
    {"birnn", "initial=birnn", .n_u = 2},
    {"birnn on all frames", "initial=birnn initial-frames=0", .n_u = 2},
    {"birnn with controls", "initial=birnn initial-control=on", .n_u = 2},
    {"birnn of 18 units", "initial=birnn hidden=18", .n_u = 1},
    {"fast dropout", "initial=fast-dropout", .n_u = 2},
    {"fast dropout on all frames", "initial=fast-dropout initial-frames=0", .n_u = 2, RAGGED},
    {"fast dropout with controls", "initial=fast-dropout initial-control=on activation=sigmoid", .n_u = 2},
    {"fast dropout of 18 units", "initial=fast-dropout hidden=18", .n_u = 1},
    {"fast dropout of rectifiers", "initial=fast-dropout activation=relu hidden=8", .n_u = 1, .step = 3e-5},
    /* Transitions. */
    {"locally linear, affine", "affine=on", .n_u = 2},
    {"locally linear, not residual", "residual=off", .n_u = 2},
    {"locally linear, affine, not residual", "affine=on residual=off", .n_u = 2},
    {"locally linear, hidden mixing", "mixing-hidden=6", .n_u = 2},
    {"locally linear, wide hidden mixing", "mixing-hidden=20 systems=3", .n_u = 2},
    {"locally linear, mixing by z alone", "mixing-control=off", .n_u = 2},
    {"locally linear, hidden mixing by z", "mixing-control=off mixing-hidden=4", .n_u = 2},
    {"locally linear, one system", "systems=1", .n_u = 2},
    {"locally linear, 17 systems", "systems=17 latent=2", .n_u = 1},
    {"linear", "transition=linear", .n_u = 2},
    {"linear, affine, not residual", "transition=linear affine=on residual=off", .n_u = 2},
    {"mlp", "transition=mlp", .n_u = 2},
    {"mlp, not residual", "transition=mlp residual=off", .n_u = 2},
    {"mlp, wide", "transition=mlp transition-hidden=19 latent=17", .n_u = 2},
    /* Images: 9 x 8 pixels of one and of two channels. */
    {"convolutions", IMAGES, .n_u = 1, .n_x = 72},
    {"convolutions of colours", IMAGES " mean=sigmoid", .n_u = 1, .n_x = 144},
    {"convolutions with gaps", IMAGES " initial=birnn likelihood=bernoulli mask-input=step", .n_u = 0, GAPS,
     .n_x = 72},
    {"dkf with convolutions", IMAGES " model=dkf", .n_u = 1, .n_x = 72, .step = 1e-4},
    {"vae with convolutions", IMAGES " model=vae", .n_u = 0, .n_x = 72},
    /* Emissions and densities. */
    {"mean=identity sigma=fixed", "mean=identity sigma=fixed", .n_u = 1},
    {"mean=identity sigma=global", "mean=identity sigma=global", .n_u = 1},
    {"mean=identity sigma=dimension", "mean=identity sigma=dimension", .n_u = 1},
    {"mean=identity sigma=state", "mean=identity sigma=state", .n_u = 1},
    {"mean=sigmoid sigma=fixed", "mean=sigmoid sigma=fixed", .n_u = 1},
    {"mean=sigmoid sigma=global", "mean=sigmoid sigma=global", .n_u = 1},
    {"mean=sigmoid sigma=dimension", "mean=sigmoid sigma=dimension", .n_u = 1},
    {"mean=sigmoid sigma=state", "mean=sigmoid sigma=state", .n_u = 1},
    {"bernoulli", "likelihood=bernoulli", .n_u = 1},
    {"categorical", "likelihood=categorical categories=3,4", .n_u = 1, GAPS},
    {"patterns", "likelihood=patterns patterns=3", .n_u = 1},
    {"patterns, gaps", "likelihood=patterns patterns=3 model=vrnn units=4", .n_u = 1, GAPS},
    {"poisson", "likelihood=poisson", .n_u = 1, GAPS},
    {"student-t", "likelihood=student-t", .n_u = 1, GAPS},
    {"standardised", "x-scaling=standardise u-scaling=standardise sigma=state", .n_u = 2},
    /* Universal parameters. */
    {"noise of v per step", "universal-noise=step", .n_u = 2},
    {"noise per step, affine", "universal-noise=step affine=on mixing-hidden=4", .n_u = 2},
    {"noise per step, linear", "universal-noise=step transition=linear", .n_u = 2},
    {"noise per step, mlp", "universal-noise=step transition=mlp", .n_u = 2},
    {"noise per step, wide mlp", "universal-noise=step transition=mlp transition-hidden=18 latent=17",
     .n_u = 2},
    {"point", "universal=point", .n_u = 2},
    {"point, mlp", "universal=point transition=mlp", .n_u = 2},
    {"point, linear", "universal=point transition=linear", .n_u = 2},
    /* Shapes. */
    {"no control", "", .n_u = 0},
    {"no control, birnn, mlp", "initial=birnn transition=mlp initial-control=on", .n_u = 0},
    {"no control, hidden mixing", "mixing-hidden=4 universal-noise=step", .n_u = 0},
    {"z and w of 1", "latent=1", .n_u = 1},
    {"hidden layers of 18", "hidden=18", .n_u = 1},
    /* Several samples of one sequence. */
    {"3 samples", "importance-samples=3", .n_u = 2, THREADS},
    {"2 samples, ragged, birnn, padded", "importance-samples=2 initial=birnn", .n_u = 1, RAGGED | PADDED},
    {"3 samples, gaps, dropped",
     "importance-samples=3 filter-dropout=0.4 likelihood=bernoulli x-scaling=none", .n_u = 1, GAPS},
    {"3 samples, dkf", "importance-samples=3 model=dkf", .n_u = 2},
    {"3 samples, vae", "importance-samples=3 model=vae", .n_u = 0},
    {"3 samples, vrnn", "importance-samples=3 model=vrnn units=4", .n_u = 1},
    {"3 samples, storn", "importance-samples=3 model=storn units=4", .n_u = 1},
    /* Particles. Small steps of the differences do not change what is drawn. */
    {"3 particles", "importance-samples=3 resample=on universal=point", .n_u = 2, THREADS, .step = 1e-5},
    {"2 particles, ragged, birnn, padded", "importance-samples=2 resample=on universal=point initial=birnn",
     .n_u = 1, RAGGED | PADDED, .step = 1e-5},
    {"3 particles, gaps, dropped, waiting",
     "importance-samples=3 resample=on universal=point filter-dropout=0.4 likelihood=bernoulli "
     "x-scaling=none gain-updates=1",
     .n_u = 1, GAPS, .step = 1e-5},
    {"3 particles, innovation",
     "importance-samples=3 resample=on universal=point recognition-input=innovation", .n_u = 1, .step = 1e-5},
    {"3 particles, vrnn", "importance-samples=3 resample=on model=vrnn units=4", .n_u = 1, .step = 1e-5},
    {"3 particles, storn", "importance-samples=3 resample=on model=storn units=4", .n_u = 0, .step = 1e-5},
    {"3 particles, vrnn, gaps", "importance-samples=3 resample=on model=vrnn units=4", .n_u = 1, GAPS,
     .step = 1e-5},
    /* Recognition from predictions. */
    {"prediction", "recognition-input=prediction linear-paths=on", .n_u = 2, RAGGED | GAPS},
    {"prediction, network with paths, emission of a part",
     "recognition-input=prediction linear-paths=all transition=mlp emission-sees=2", .n_u = 1},
    {"network with paths, not residual, noise per step",
     "transition=mlp linear-paths=all residual=off universal-noise=step", .n_u = 0},
    /* Linear paths, innovation, smoothing, feedthrough. */
    {"linear paths", "linear-paths=on initial-control=on", .n_u = 2},
    {"linear paths, sigmoid", "linear-paths=on mean=sigmoid", .n_u = 0},
    {"innovation", "recognition-input=innovation", .n_u = 2, RAGGED},
    {"innovation, two layers, not residual", "recognition-input=innovation layers=2 residual=off affine=on",
     .n_u = 1},
    {"innovation, mlp, noise per step", "recognition-input=innovation transition=mlp universal-noise=step",
     .n_u = 2},
    {"innovation, gaps",
     "recognition-input=innovation linear-paths=on mask-input=dimension filter-dropout=0.3", .n_u = 2, GAPS},
    {"innovation, bernoulli", "recognition-input=innovation linear-paths=on likelihood=bernoulli", .n_u = 0},
    {"innovation, poisson, gaps", "recognition-input=innovation likelihood=poisson", .n_u = 1, GAPS},
    {"innovation, squashed", "recognition-input=innovation mean=sigmoid sigma=state", .n_u = 1},
    {"innovation, state limit", "recognition-input=innovation state-limit=2", .n_u = 1},
    {"smoothing", "recognition=smoothing", .n_u = 2, RAGGED},
    {"smoothing of the innovation, birnn",
     "recognition=smoothing recognition-input=innovation initial=birnn initial-frames=0", .n_u = 0},
    {"smoothing, gaps, two layers, some rows without",
     "recognition=smoothing mask-input=step layers=2 filter-dropout=0.3", .n_u = 2, GAPS},
    {"feedthrough", "feedthrough=on", .n_u = 2},
    {"feedthrough, no control", "feedthrough=on", .n_u = 0},
    {"feedthrough, dkf", "feedthrough=on model=dkf", .n_u = 2},
    {"feedthrough and innovation",
     "feedthrough=on recognition-input=innovation linear-paths=on universal=point", .n_u = 2, GAPS},
    /* Dropped steps, waiting recognition, one step ahead. */
    {"dropped steps with w = 0", "filter-dropout=0.5 dropped=zero", .n_u = 2},
    {"the same, sigma of each column",
     "filter-dropout=0.5 dropped=zero sigma=dimension recognition-input=innovation", .n_u = 2, RAGGED},
    {"the same, sigma by state, gaps", "filter-dropout=0.5 dropped=zero sigma=state", .n_u = 2, GAPS},
    {"the same, student-t", "filter-dropout=0.5 dropped=zero likelihood=student-t sigma=dimension", .n_u = 1},
    {"the same, bernoulli", "filter-dropout=0.5 dropped=zero likelihood=bernoulli", .n_u = 1},
    {"the same, dkf", "filter-dropout=0.5 dropped=zero model=dkf", .n_u = 2},
    {"recognition waits", "gain-updates=1", .n_u = 2},
    {"recognition waits, steps dropped",
     "gain-updates=1 filter-dropout=0.5 dropped=zero sigma=state recognition-input=innovation", .n_u = 2},
    {"one step ahead", "recognition-input=innovation linear-paths=on", .n_u = 2, RAGGED | ONE_STEP},
    {"one step ahead, waiting, with feedthrough",
     "recognition-input=innovation linear-paths=on initial-frames=2 gain-updates=1 feedthrough=on "
     "sigma=dimension",
     .n_u = 2, GAPS | ONE_STEP},
    {"one step ahead, mlp, student-t",
     "recognition-input=innovation linear-paths=on transition=mlp likelihood=student-t", .n_u = 1, ONE_STEP},
    /* Gaps, ragged sequences, padding. */
    {"filter dropout", "filter-dropout=0.5", .n_u = 2},
    {"padded rows", "", .n_u = 2, PADDED},
    {"ragged", "", .n_u = 2, RAGGED},
    {"ragged birnn", "initial=birnn initial-frames=0", .n_u = 2, RAGGED},
    {"gaps", "", .n_u = 2, GAPS},
    {"gaps, steps told", "mask-input=step", .n_u = 2, GAPS},
    {"gaps, values told", "mask-input=dimension sigma=dimension", .n_u = 2, GAPS},
    {"gaps, birnn, values told", "mask-input=dimension initial=birnn initial-control=on sigma=state",
     .n_u = 2, RAGGED | GAPS},
    {"gaps, fast dropout, steps told", "mask-input=step initial=fast-dropout likelihood=bernoulli", .n_u = 1,
     GAPS | PADDED},
    {"no gaps, values told", "mask-input=dimension", .n_u = 2, RAGGED},
    {"all of it", "filter-dropout=0.3 universal-noise=step sigma=state mixing-hidden=4 affine=on", .n_u = 2,
     RAGGED | PADDED},
    /* DKF. */
    {"dkf", "model=dkf", .n_u = 2, THREADS | OBSERVED},
    {"dkf without control", "model=dkf", .n_u = 0},
    {"dkf, not residual", "model=dkf residual=off", .n_u = 2},
    {"dkf of 2 layers", "model=dkf layers=2 filter-dropout=0 filter-dropout-end=0", .n_u = 2,
     THREADS | PLAN_APART | OBSERVED},
    {"dkf of 2 layers, dropout", "model=dkf layers=2 filter-dropout=0.4", .n_u = 2},
    {"dkf of 18 units", "model=dkf hidden=18 filter-dropout=0.4 latent=2", .n_u = 1},
    {"dkf, c < 1", "model=dkf", .n_u = 2, ANNEALED},
    {"dkf, c < 1, dropout", "model=dkf filter-dropout=0.4", .n_u = 2, RAGGED | ANNEALED},
    {"dkf, ragged", "model=dkf", .n_u = 2, RAGGED | PADDED},
    {"dkf, gaps", "model=dkf mask-input=dimension layers=2", .n_u = 2, GAPS},
    {"dkf, dropout", "model=dkf filter-dropout=0.5", .n_u = 2},
    {"dkf, sigma by state", "model=dkf sigma=state layers=2", .n_u = 2},
    {"dkf, fast dropout", "model=dkf initial=fast-dropout layers=2", .n_u = 2},
    {"dkf, fast dropout, head", "model=dkf initial=fast-dropout filter-dropout=0.3", .n_u = 2},
    {"dkf, bernoulli", "model=dkf likelihood=bernoulli", .n_u = 1},
    {"dkf, all of it", "model=dkf layers=2 sigma=state filter-dropout=0.3 residual=off activation=sigmoid",
     .n_u = 2, RAGGED | PADDED},
    {"dvbf of 2 layers", "layers=2 sigma=state", .n_u = 2},
    /* State limit. */
    {"saturated", "state-limit=2", .n_u = 2},
    {"saturated, dropout", "state-limit=2 filter-dropout=0.5", .n_u = 2},
    {"saturated, linear", "state-limit=2 transition=linear residual=off", .n_u = 2},
    {"saturated, mlp", "state-limit=2 transition=mlp", .n_u = 2},
    {"saturated, mlp, not residual", "state-limit=2 transition=mlp residual=off universal-noise=step",
     .n_u = 2},
    {"saturated dkf", "state-limit=2 model=dkf", .n_u = 2},
    {"saturated dkf, dropout", "state-limit=2 model=dkf filter-dropout=0.5", .n_u = 2, RAGGED},
    /* Contraction: so tight that every system is beyond it. */
    {"contracting", "contraction=0.8", .n_u = 2},
    {"contracting, not residual", "contraction=0.7 residual=off affine=on", .n_u = 1},
    {"contracting, points", "contraction=0.8 universal=point", .n_u = 2},
    {"contracting, noise per step", "contraction=0.8 universal-noise=step transition=linear", .n_u = 2},
    {"contracting, innovation, saturated",
     "contraction=0.9 recognition-input=innovation state-limit=2 mixing-hidden=4", .n_u = 2, GAPS},
    /* VAE. */
    {"vae", "model=vae", .n_u = 0},
    {"vae of 2 layers, ragged", "model=vae layers=2", .n_u = 0, RAGGED | PADDED},
    {"vae, gaps", "model=vae mask-input=dimension sigma=state", .n_u = 2, GAPS},
    /* VRNN and STORN. With gaps, what is not seen is fed back as its mean. */
    {"vrnn", "model=vrnn units=4", .n_u = 2, THREADS | PAST},
    {"vrnn without controls, ragged", "model=vrnn units=5 sigma=state", .n_u = 0, RAGGED | PADDED},
    {"vrnn of 2 layers", "model=vrnn units=18 layers=2 latent=2", .n_u = 1},
    {"vrnn, linear paths", "model=vrnn units=4 linear-paths=on feedthrough=on", .n_u = 2},
    {"vrnn, gaps", "model=vrnn units=4 mask-input=dimension", .n_u = 2, GAPS},
    {"storn", "model=storn units=4", .n_u = 2, THREADS | PAST},
    {"storn without controls, ragged", "model=storn units=5 layers=2", .n_u = 0, RAGGED | PADDED},
    {"storn, gaps", "model=storn units=4 mask-input=dimension", .n_u = 2, GAPS},
    {"vrnn, gaps, bernoulli", "model=vrnn units=4 likelihood=bernoulli", .n_u = 2, GAPS},
    /* SVAE: messages go through gaps, past the end of short sequences, and without controls. */
    {"svae", "model=svae latent=2", .n_u = 2, THREADS | PLAN},
    {"svae without controls, ragged", "model=svae layers=2 sigma=state", .n_u = 0, RAGGED | PADDED},
    {"svae, gaps, linear paths", "model=svae mask-input=dimension linear-paths=on feedthrough=on", .n_u = 2,
     GAPS},
    /* E2C: its objective has terms of its own. */
    {"e2c", "model=e2c", .n_u = 2, THREADS | PAST},
    {"e2c of two layers, without controls, ragged", "model=e2c layers=2 transition-weight=2", .n_u = 0,
     RAGGED | PADDED},
    {"e2c, gaps", "model=e2c mask-input=dimension", .n_u = 2, GAPS},
    {"saturated e2c", "model=e2c state-limit=2", .n_u = 1, GAPS},
    /* Activations. The step is so small that no unit passes its kink within it. */
    {"relu", "activation=relu hidden=8", .n_u = 2, .step = 3e-5},
    {"relu, mlp and birnn", "activation=relu hidden=8 transition=mlp initial=birnn", .n_u = 2, .step = 3e-5},
    {"sigmoid", "activation=sigmoid", .n_u = 2},
    /* With layers wider than a vector, and what only training knows. */
    {"plain", "", .n_u = 2, NO_GRADIENT | PLAN},
    {"birnn of 20 units, noise per step", "initial=birnn hidden=20 universal-noise=step", .n_u = 2,
     NO_GRADIENT | PLAN},
    {"mlp of 18 units, sigma by state", "transition=mlp sigma=state transition-hidden=18", .n_u = 2,
     NO_GRADIENT | PLAN},
    {"linear, bernoulli, points", "transition=linear likelihood=bernoulli universal=point", .n_u = 2,
     NO_GRADIENT | PLAN},
    {"fast dropout of 20 units", "initial=fast-dropout hidden=20", .n_u = 2, NO_GRADIENT | PLAN},
    {"dkf of 20 units, sigma by state", "model=dkf sigma=state hidden=20", .n_u = 2, NO_GRADIENT | PLAN},
    {"vrnn of 20 units, sigma by state", "model=vrnn units=20 sigma=state", .n_u = 2, NO_GRADIENT | PLAN},
    {"storn of 18 units", "model=storn units=18", .n_u = 2, NO_GRADIENT | PLAN},
    {"adadelta, clipped", "optimizer=adadelta clip-norm=1", .n_u = 2, NO_GRADIENT | THREADS},
    {"dkf, fast dropout, sigmoid", "model=dkf initial=fast-dropout activation=sigmoid", .n_u = 2,
     NO_GRADIENT | OBSERVED},
    /* Exported; the names are those of files. */
    {"locally_linear", "initial-frames=3 sigma=global", .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
    {"linear_transition", "transition=linear affine=on residual=off activation=tanh initial-frames=1",
     .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
    {"network", "transition=mlp transition-hidden=20 layers=2 activation=tanh initial-frames=2 state-limit=1",
     .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
    {"network_plain", "transition=mlp transition-hidden=20 residual=off activation=sigmoid", .n_u = 1,
     NO_GRADIENT | EXPORT, .n_x = 2},
    {"birnn", "initial=birnn initial-frames=3 mask-input=dimension initial-control=on", .n_u = 2,
     NO_GRADIENT | EXPORT, .n_x = 3},
    {"fast_dropout", "initial=fast-dropout initial-frames=3 mask-input=step", .n_u = 2, NO_GRADIENT | EXPORT,
     .n_x = 3},
    {"fast_dropout_tanh", "initial=fast-dropout activation=tanh initial-frames=0", .n_u = 1,
     NO_GRADIENT | EXPORT, .n_x = 3},
    {"innovation",
     "recognition-input=innovation linear-paths=on feedthrough=on state-limit=1 affine=on initial-control=on",
     .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
    {"prediction",
     "recognition-input=prediction linear-paths=all transition=mlp emission-sees=2 "
     "transition-hidden=20 residual=off universal=point activation=tanh",
     .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
    {"limits", "state-limit=0.5 linear-paths=on mixing-hidden=7", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 2},
    {"bernoulli", "likelihood=bernoulli recognition-input=innovation initial-frames=2", .n_u = 1,
     NO_GRADIENT | EXPORT, .n_x = 4},
    {"poisson", "likelihood=poisson recognition-input=innovation", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 3},
    {"categorical", "likelihood=categorical categories=2,3", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 5},
    {"patterns", "likelihood=patterns patterns=3 initial-frames=2", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 4},
    {"student_t", "likelihood=student-t sigma=state", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 3},
    {"squashed", "mean=sigmoid sigma=dimension", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 3},
    {"single", "mask-input=step initial-frames=4", .n_u = 0, NO_GRADIENT | EXPORT, .n_x = 1},
    {"autoencoder", "model=vae", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 3},
    {"kalman", "model=linear feedthrough=on", .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
    {"kalman_alone", "model=linear", .n_u = 0, NO_GRADIENT | EXPORT, .n_x = 1},
    {"kalman_limits", "model=linear state-limit=0.5", .n_u = 1, NO_GRADIENT | EXPORT, .n_x = 2},
    {"contracted", "contraction=0.5 affine=on", .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
    {"contracted_whole", "transition=linear residual=off contraction=0.4 initial-frames=2", .n_u = 1,
     NO_GRADIENT | EXPORT, .n_x = 2},
    {"waits",
     "recognition-input=innovation linear-paths=on feedthrough=on gain-updates=1 dropped=zero "
     "sigma=dimension initial-frames=4",
     .n_u = 2, NO_GRADIENT | EXPORT, .n_x = 3},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* The row after v, or the first one, with all of these flags; NULL at the end. */
static inline const variant *next_variant(const variant *v, unsigned flags) {
  for (v = v ? v + 1 : variants; v < variants + VARIANTS; v++)
    if ((v->flags & flags) == flags) return v;
  return NULL;
}

#endif
