/* Whole models through time: the gradient that training uses against differences of the bound. */
#include "given.h"
#include "gradient.h"

#include "data/dataset.h"
#include "exec/worker.h"

/* ---- Data: a few short sequences ---- */

enum { N_X = 7, STEPS = 5, COUNT = 3 };

typedef struct model_case {
  const char *name;
  const char *settings; /* "name=value name=value", on top of those below */
  int n_u, n_x;         /* columns; N_X where n_x is 0 */
  bool ragged, gaps, one_step;
  int rows;           /* of the program, COUNT when 0; more are padded with rows of weight 0 */
  double temperature; /* 1 when 0 */
  double step;
} model_case;

/* Small enough that every case takes a blink, with no kinks. */
static const char common[] =
    "latent=3 systems=4 hidden=5 transition-hidden=6 initial-frames=3 activation=tanh "
    "filter-dropout=0 filter-dropout-end=0 sigma-start=0.6 universal-sigma=0.1 clip-z=0";

/* A whole frame, the first values of a first frame, and some of a later one are missing. */
static void make_gaps(dvbf_sequences *s) {
  size_t n = s->n_x;
  s->gaps = true;
  for (size_t i = 0; i < n; i++) s->x[2 * n + i] = NAN;
  for (size_t i = 0; i < 3; i++) s->x[STEPS * n + i] = NAN;
  for (size_t i = 1; i < n; i += 2) s->x[(STEPS + 1) * n + i] = NAN;
}

static dvbf_sequences make_sequences(size_t n_x, int n_u, bool ragged) {
  dvbf_sequences s = {.count = COUNT, .steps = STEPS, .n_x = n_x, .n_u = (size_t)n_u};
  dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, 1, 1);
  assert_int_equal(dv_sequences_allocate(&s, ragged, NULL), DVBF_OK);
  /* In (0, 1), so that they are frames for a Bernoulli emission too. */
  for (size_t i = 0; i < COUNT * STEPS * n_x; i++) s.x[i] = (float)dv_random_uniform(&random);
  for (size_t i = 0; i < COUNT * STEPS * s.n_u; i++) s.u[i] = (float)dv_random_normal(&random);
  for (size_t i = 0; ragged && i < COUNT; i++) s.length[i] = STEPS - (uint32_t)i;
  return s;
}

/* ---- A model that runs ---- */

typedef struct fixture {
  dvbf_sequences sequences;
  dvbf_model *model;
  dvbf_program program;
  dv_worker worker;
  dv_conditions conditions;
  dvbf_real *gradient;
  uint32_t index[8];
} fixture;

/* First values hold many zeros; these are moved so that every path through the model counts. */
static void stir(dvbf_model *m) {
  dv_random random = dv_random_at(23, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    for (size_t k = 0; k < size_of(p); k++)
      m->parameters.values[p->offset + k] += (dvbf_real)(0.1 * dv_random_normal(&random));
  }
}

static void make_model(fixture *f, const model_case *c) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  set_all(settings, common);
  set_all(settings, c->settings);
  f->sequences = make_sequences(c->n_x ? (size_t)c->n_x : N_X, c->n_u, c->ragged);
  if (c->gaps) make_gaps(&f->sequences);
  if (dv_model_new(&f->model, settings, NULL, &f->sequences, 4, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  stir(f->model);
  dvbf_real *range = dv_model_range(f->model); /* so narrow that many states are beyond it */
  for (int k = 0; range && k < f->model->n_z; k++) range[k] = 0.05, range[f->model->n_z + k] = 0.1;
}

static void begin(fixture *f, const model_case *c) {
  dvbf_error error;
  int rows = c->rows ? c->rows : COUNT;
  *f = (fixture){0};
  make_model(f, c);
  int flags = DV_BACKWARD | dv_gaps_of(&f->sequences) | (c->one_step ? DV_ONE_STEP : 0);
  if (dv_program_record(&f->program, f->model, STEPS, rows, STEPS, flags, &error))
    fail_msg("%s", error.message);
  assert_int_equal(dv_worker_init(&f->worker, f->model, &f->program, &f->sequences, &error), DVBF_OK);
  f->gradient = calloc(f->model->parameters.size, sizeof *f->gradient);
  assert_non_null(f->gradient);
  f->conditions =
      (dv_conditions){.seed = 8, .stream = DV_STREAM_NOISE, .update = 2, .scale = 1.0 / (COUNT * STEPS)};
  dv_conditions_set(&f->conditions, DVBF_TEMPERATURE, c->temperature > 0 ? c->temperature : 1);
  dv_conditions_set(&f->conditions, DVBF_LOG_SIGMA_FLOOR, -2);
  dv_conditions_set(&f->conditions, DVBF_LOOK_AHEAD_DROPOUT, f->model->settings->look_ahead_dropout);
  dv_conditions_set(&f->conditions, DVBF_FILTER_DROPOUT, f->model->settings->filter_dropout);
  dv_conditions_set(&f->conditions, DVBF_FILTER_DROPOUT_ZERO, f->model->settings->dropped == DV_DROPPED_ZERO);
  dv_conditions_set(&f->conditions, DVBF_SEQUENCES, f->model->sequences);
  for (uint32_t i = 0; i < 8; i++) f->index[i] = i < COUNT ? i : 0;
  f->worker.run.gradient = f->gradient;
  f->worker.run.conditions = &f->conditions;
  f->worker.run.sequence = f->index;
  dv_worker_load(&f->worker, &f->sequences, f->index, COUNT, STEPS);
}

static void end(fixture *f) {
  free(f->gradient);
  dv_worker_clear(&f->worker);
  dv_program_clear(&f->program);
  dvbf_model_free(f->model);
  dvbf_sequences_free(&f->sequences);
}

static double bound(void *user) {
  fixture *f = user;
  dv_run_forward(&f->worker.run);
  return -f->conditions.scale * dv_graph_bound(f->program.graph, f->worker.run.terms);
}

static size_t entries(dvbf_value v) {
  return (size_t)v.steps * v.stride;
}

/* Sum of ln sigma of every q(z_t) that a dkf uses. q does not depend on z, so sigma is what the noise moves z
 * by: z - z of the mean path = sigma eps. */
static double sum_of_log_sigma(fixture *f) {
  const dvbf_program *p = &f->program;
  size_t n = (size_t)f->model->n_z, rows = (size_t)p->rows;
  double *mean = calloc(entries(p->z), sizeof *mean), sum = 0;
  assert_non_null(mean);
  f->conditions.noise_free = true;
  dv_run_forward(&f->worker.run);
  memcpy(mean, dvbf_at(&f->worker.run, p->z), entries(p->z) * sizeof *mean);
  f->conditions.noise_free = false;
  dv_run_forward(&f->worker.run);
  for (size_t i = 0; i < entries(p->z); i++) {
    size_t row = i / n; /* counted over the steps */
    double moved = dvbf_at(&f->worker.run, p->z)[i] - mean[i];
    bool first = row < rows, used = first || dvbf_at(&f->worker.run, p->kl)[row] != 0;
    double eps = first ? dvbf_at(&f->worker.run, p->first.noise)[i]
                       : dvbf_at(&f->worker.run, p->later.noise)[i - rows * n];
    if (used && row % rows < COUNT) sum += log(fabs(moved / eps));
  }
  free(mean);
  return sum;
}

/* E_q[ln q - c ln p] = c KL - (1 - c) (entropy of q), whose part that moves is the sum of ln sigma. */
static double annealed_dkf(void *user) {
  fixture *f = user;
  double c = dv_conditions_get(&f->conditions, DVBF_TEMPERATURE), spread = sum_of_log_sigma(f);
  return -f->conditions.scale *
         (c * dv_graph_bound(f->program.graph, f->worker.run.terms) + (1 - c) * spread);
}

/* ---- The check ---- */

/* Three directions and up to six entries of one tensor. */
static double error_of_tensor(const gradient_check *check, const dv_parameter *p, dv_random *random) {
  double worst = 0;
  size_t n = size_of(p);
  for (int i = 0; i < 3; i++) worst = fmax(worst, error_of_direction(check, p, random));
  for (size_t i = 0; i < 6; i++) {
    size_t entry = n <= 6 ? i : dv_random_word(random) % n;
    if (entry < n) worst = fmax(worst, error_of_entry(check, p, entry));
  }
  return worst;
}

static void check_model(const model_case *c) {
  fixture f;
  begin(&f, c);
  for (int i = 0; i < 2; i++) { /* what the first time left must not matter */
    bound(&f);
    dv_run_backward(&f.worker.run);
  }
  gradient_check check = {&f.model->parameters, f.gradient,
                          dv_conditions_get(&f.conditions, DVBF_TEMPERATURE) < 1 ? annealed_dkf : bound, &f,
                          c->step > 0 ? c->step : 1e-3};
  dv_random random = dv_random_at(31, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < f.model->parameters.count; i++) {
    const dv_parameter *p = &f.model->parameters.list[i];
    double size = gradient_size(&check, p);
    if (p->frozen) {
      assert_true(size == 0);
      continue;
    }
    /* A parameter that reaches nothing was forgotten in the equations. One step ahead has one sigma. */
    if (c->one_step && strstr(p->name, "free_log_sigma")) continue;
    if (!(size > 1e-9)) fail_msg("%s: %s has no gradient", c->name, p->name);
    double error = error_of_tensor(&check, p, &random);
    if (!(error <= TOLERANCE)) fail_msg("%s: the gradient of %s is off by %.3g", c->name, p->name, error);
  }
  end(&f);
}

static void check_all(const model_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) check_model(&cases[i]);
}

#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof *(cases))

static void initial_networks(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "mlp on 3 frames", .settings = "", .n_u = 2},
      {.name = "mlp on all frames", .settings = "initial-frames=0", .n_u = 2},
      {.name = "mlp with controls", .settings = "initial-control=on", .n_u = 2},
      {.name = "birnn", .settings = "initial=birnn", .n_u = 2},
      {.name = "birnn on all frames", .settings = "initial=birnn initial-frames=0", .n_u = 2},
      {.name = "birnn with controls", .settings = "initial=birnn initial-control=on", .n_u = 2},
      {.name = "birnn of 18 units", .settings = "initial=birnn hidden=18", .n_u = 1},
      {.name = "fast dropout", .settings = "initial=fast-dropout", .n_u = 2},
      {.name = "fast dropout on all frames",
       .settings = "initial=fast-dropout initial-frames=0 dropout=0.5",
       .n_u = 2,
       .ragged = true},
      {.name = "fast dropout with controls",
       .settings = "initial=fast-dropout initial-control=on activation=sigmoid",
       .n_u = 2},
      {.name = "fast dropout of 18 units", .settings = "initial=fast-dropout hidden=18", .n_u = 1},
      {.name = "fast dropout with a head",
       .settings = "initial=fast-dropout initial-variance=head",
       .n_u = 1},
      {.name = "fast dropout of rectifiers",
       .settings = "initial=fast-dropout activation=relu hidden=8",
       .n_u = 1,
       .step = 3e-5},
  };
  CHECK_ALL(cases);
}

/* ---- Recurrent networks alone: the states of every step count ---- */

typedef struct birnn_case {
  int layers, frames;
  bool control, fast_dropout;
  dvbf_activation activation;
} birnn_case;

static void check_birnn(const birnn_case *c) {
  char what[96];
  snprintf(what, sizeof what, "birnn of %d layers on %d frames, activation %d, fast dropout %d", c->layers,
           c->frames, c->activation, c->fast_dropout);
  bench b;
  bench_begin(&b, 2);
  dv_birnn net = {.name = "net",
                  .x = input(&b, c->frames, 4),
                  .u = c->control ? constant(&b, c->frames, 2, NULL) : DVBF_NONE,
                  .mask = c->control ? constant(&b, c->frames, 1, NULL) : DVBF_NONE,
                  .scale_x = 0.5,
                  .scale_u = 0.7,
                  .hidden = 5,
                  .layers = c->layers,
                  .activation = c->activation,
                  .fast_dropout = c->fast_dropout,
                  .propagated = c->fast_dropout,
                  .dropout = 0.2};
  dv_birnn_states states = dv_record_birnn(b.graph, &net);
  project(&b, states.forward);
  project(&b, states.backward);
  if (c->fast_dropout) {
    dvbf_value head = dvbf_slab(b.graph, c->frames, 6);
    dv_record_birnn_output(b.graph, &net, &states, head);
    project(&b, states.forward_variance);
    project(&b, states.backward_variance);
    project(&b, head);
  }
  assert_gradients(&b, what);
  bench_end(&b);
}

static void recurrent_networks(void **state) {
  (void)state;
  for (int layers = 1; layers <= 2; layers++) {
    check_birnn(&(birnn_case){layers, 4, true, false, DVBF_TANH});
    check_birnn(&(birnn_case){layers, 1, false, false, DVBF_TANH});
    for (int a = DVBF_RELU; a <= DVBF_SIGMOID; a++) {
      check_birnn(&(birnn_case){layers, 3, true, true, a});
      check_birnn(&(birnn_case){layers, 1, false, true, a});
    }
  }
}

static void transitions(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "locally linear, affine", .settings = "affine=on", .n_u = 2},
      {.name = "locally linear, not residual", .settings = "residual=off", .n_u = 2},
      {.name = "locally linear, affine, not residual", .settings = "affine=on residual=off", .n_u = 2},
      {.name = "locally linear, hidden mixing", .settings = "mixing-hidden=6", .n_u = 2},
      {.name = "locally linear, wide hidden mixing", .settings = "mixing-hidden=20 systems=3", .n_u = 2},
      {.name = "locally linear, mixing by z alone", .settings = "mixing-control=off", .n_u = 2},
      {.name = "locally linear, hidden mixing by z",
       .settings = "mixing-control=off mixing-hidden=4",
       .n_u = 2},
      {.name = "locally linear, one system", .settings = "systems=1", .n_u = 2},
      {.name = "locally linear, 17 systems", .settings = "systems=17 latent=2", .n_u = 1},
      {.name = "linear", .settings = "transition=linear", .n_u = 2},
      {.name = "linear, affine, not residual",
       .settings = "transition=linear affine=on residual=off",
       .n_u = 2},
      {.name = "mlp", .settings = "transition=mlp", .n_u = 2},
      {.name = "mlp, not residual", .settings = "transition=mlp residual=off", .n_u = 2},
      {.name = "mlp, wide", .settings = "transition=mlp transition-hidden=19 latent=17", .n_u = 2},
  };
  CHECK_ALL(cases);
}

/* 9 x 8 pixels of one and of two channels. */
static void pictures(void **state) {
  (void)state;
#define IMAGES "network=conv image-height=9 image-width=8 channels=2 "
  static const model_case cases[] = {
      {.name = "convolutions", .settings = IMAGES, .n_u = 1, .n_x = 72},
      {.name = "convolutions of colours", .settings = IMAGES "mean=sigmoid", .n_u = 1, .n_x = 144},
      {.name = "convolutions with gaps",
       .settings = IMAGES "initial=birnn likelihood=bernoulli mask-input=step",
       .n_x = 72,
       .gaps = true},
      {.name = "dkf with convolutions", .settings = IMAGES "model=dkf", .n_u = 1, .n_x = 72, .step = 1e-4},
      {.name = "vae with convolutions", .settings = IMAGES "model=vae", .n_x = 72},
  };
#undef IMAGES
  CHECK_ALL(cases);
}

static void emissions(void **state) {
  (void)state;
  static const char *const means[] = {"identity", "sigmoid"}, *const sigmas[] = {"fixed", "global",
                                                                                 "dimension", "state"};
  for (int m = 0; m < 2; m++)
    for (int s = 0; s < 4; s++) {
      char settings[64];
      snprintf(settings, sizeof settings, "mean=%s sigma=%s", means[m], sigmas[s]);
      check_model(&(model_case){.name = settings, .settings = settings, .n_u = 1});
    }
  check_model(&(model_case){.name = "bernoulli", .settings = "likelihood=bernoulli", .n_u = 1});
  check_model(&(model_case){
      .name = "categorical", .settings = "likelihood=categorical categories=3,4", .n_u = 1, .gaps = true});
  check_model(&(model_case){.name = "patterns", .settings = "likelihood=patterns patterns=3", .n_u = 1});
  check_model(&(model_case){.name = "patterns, gaps",
                            .settings = "likelihood=patterns patterns=3 model=vrnn units=4",
                            .n_u = 1,
                            .gaps = true});
  check_model(&(model_case){.name = "poisson", .settings = "likelihood=poisson", .n_u = 1, .gaps = true});
  check_model(&(model_case){.name = "student-t", .settings = "likelihood=student-t", .n_u = 1, .gaps = true});
  check_model(&(model_case){.name = "standardised",
                            .settings = "x-scaling=standardise u-scaling=standardise sigma=state",
                            .n_u = 2});
}

static void universal_parameters(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "noise of v per step", .settings = "universal-noise=step", .n_u = 2},
      {.name = "noise per step, affine",
       .settings = "universal-noise=step affine=on mixing-hidden=4",
       .n_u = 2},
      {.name = "noise per step, linear", .settings = "universal-noise=step transition=linear", .n_u = 2},
      {.name = "noise per step, mlp", .settings = "universal-noise=step transition=mlp", .n_u = 2},
      {.name = "noise per step, wide mlp",
       .settings = "universal-noise=step transition=mlp transition-hidden=18 latent=17",
       .n_u = 2},
      {.name = "point", .settings = "universal=point", .n_u = 2},
      {.name = "point, mlp", .settings = "universal=point transition=mlp", .n_u = 2},
      {.name = "point, linear", .settings = "universal=point transition=linear", .n_u = 2},
  };
  CHECK_ALL(cases);
}

static void shapes(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "w wider than z", .settings = "innovation=4", .n_u = 2},
      {.name = "w narrower than z", .settings = "innovation=1", .n_u = 2},
      {.name = "w narrower than z, mlp", .settings = "innovation=2 transition=mlp", .n_u = 2},
      {.name = "no control", .settings = "", .n_u = 0},
      {.name = "no control, birnn, mlp",
       .settings = "initial=birnn transition=mlp initial-control=on",
       .n_u = 0},
      {.name = "no control, hidden mixing", .settings = "mixing-hidden=4 universal-noise=step", .n_u = 0},
      {.name = "z and w of 1", .settings = "latent=1", .n_u = 1},
      {.name = "hidden layers of 18", .settings = "hidden=18", .n_u = 1},
  };
  CHECK_ALL(cases);
}

/* Groups of rows count as samples of one sequence each, whatever their sequences are. */
static void several_samples(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "3 samples", .settings = "importance-samples=3", .n_u = 2},
      {.name = "2 samples, ragged, birnn, padded",
       .settings = "importance-samples=2 initial=birnn",
       .n_u = 1,
       .ragged = true,
       .rows = 4},
      {.name = "3 samples, gaps, dropped",
       .settings = "importance-samples=3 filter-dropout=0.4 likelihood=bernoulli x-scaling=none",
       .n_u = 1,
       .gaps = true},
      {.name = "3 samples, dkf", .settings = "importance-samples=3 model=dkf", .n_u = 2},
      {.name = "3 samples, vae", .settings = "importance-samples=3 model=vae", .n_u = 0},
      {.name = "3 samples, vrnn", .settings = "importance-samples=3 model=vrnn units=4", .n_u = 1},
      {.name = "3 samples, storn", .settings = "importance-samples=3 model=storn units=4", .n_u = 1},
  };
  CHECK_ALL(cases);
}

/* The same, drawn anew at every step. Small steps of the differences do not change what is drawn. */
static void particles(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "3 particles",
       .step = 1e-5,
       .settings = "importance-samples=3 resample=on universal=point",
       .n_u = 2},
      {.name = "2 particles, ragged, birnn, padded",
       .step = 1e-5,
       .settings = "importance-samples=2 resample=on universal=point initial=birnn",
       .n_u = 1,
       .ragged = true,
       .rows = 4},
      {.name = "3 particles, gaps, dropped, waiting",
       .step = 1e-5,
       .settings = "importance-samples=3 resample=on universal=point filter-dropout=0.4 "
                   "likelihood=bernoulli x-scaling=none recognition-waits=on",
       .n_u = 1,
       .gaps = true},
      {.name = "3 particles, innovation",
       .step = 1e-5,
       .settings = "importance-samples=3 resample=on universal=point recognition-sees=innovation",
       .n_u = 1},
      {.name = "3 particles, vrnn",
       .step = 1e-5,
       .settings = "importance-samples=3 resample=on model=vrnn units=4",
       .n_u = 1},
      {.name = "3 particles, storn",
       .step = 1e-5,
       .settings = "importance-samples=3 resample=on model=storn units=4",
       .n_u = 0},
      {.name = "3 particles, vrnn, gaps",
       .step = 1e-5,
       .settings = "importance-samples=3 resample=on model=vrnn units=4",
       .n_u = 1,
       .gaps = true},
  };
  CHECK_ALL(cases);
}

static void predictions(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "prediction",
       .settings = "recognition-sees=prediction linear-paths=on",
       .n_u = 2,
       .ragged = true,
       .gaps = true},
      {.name = "prediction, network with paths, emission of a part",
       .settings = "recognition-sees=prediction linear-paths=on transition=mlp transition-paths=on "
                   "emission-sees=2",
       .n_u = 1},
      {.name = "network with paths, not residual, noise per step",
       .settings = "transition=mlp transition-paths=on residual=off universal-noise=step",
       .n_u = 0},
  };
  CHECK_ALL(cases);
}

static void paths(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "linear paths", .settings = "linear-paths=on initial-control=on", .n_u = 2},
      {.name = "linear paths, sigmoid", .settings = "linear-paths=on mean=sigmoid", .n_u = 0},
      {.name = "innovation", .settings = "recognition-sees=innovation", .n_u = 2, .ragged = true},
      {.name = "innovation, two layers, not residual",
       .settings = "recognition-sees=innovation layers=2 residual=off affine=on",
       .n_u = 1},
      {.name = "innovation, mlp, noise per step",
       .settings = "recognition-sees=innovation transition=mlp universal-noise=step",
       .n_u = 2},
      {.name = "innovation, gaps",
       .settings = "recognition-sees=innovation linear-paths=on mask-input=dimension filter-dropout=0.3",
       .n_u = 2,
       .gaps = true},
      {.name = "innovation, bernoulli",
       .settings = "recognition-sees=innovation linear-paths=on likelihood=bernoulli",
       .n_u = 0},
      {.name = "innovation, poisson, gaps",
       .settings = "recognition-sees=innovation likelihood=poisson",
       .n_u = 1,
       .gaps = true},
      {.name = "innovation, squashed",
       .settings = "recognition-sees=innovation mean=sigmoid sigma=state",
       .n_u = 1},
      {.name = "innovation, state limit", .settings = "recognition-sees=innovation state-limit=2", .n_u = 1},
      {.name = "smoothing",
       .settings = "recognition=smoothing look-ahead-dropout=0",
       .n_u = 2,
       .ragged = true},
      {.name = "smoothing of the innovation, birnn",
       .settings = "recognition=smoothing look-ahead-dropout=0 recognition-sees=innovation initial=birnn "
                   "initial-frames=0",
       .n_u = 0},
      {.name = "smoothing, gaps, two layers, some rows without",
       .settings = "recognition=smoothing look-ahead-dropout=0.4 mask-input=step layers=2 filter-dropout=0.3",
       .n_u = 2,
       .gaps = true},
      {.name = "feedthrough", .settings = "feedthrough=on", .n_u = 2},
      {.name = "feedthrough, no control", .settings = "feedthrough=on", .n_u = 0},
      {.name = "feedthrough, dkf", .settings = "feedthrough=on model=dkf", .n_u = 2},
      {.name = "feedthrough and innovation",
       .settings = "feedthrough=on recognition-sees=innovation linear-paths=on universal=point",
       .n_u = 2,
       .gaps = true},
  };
  CHECK_ALL(cases);
}

static void phases(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "dropped steps with w = 0", .settings = "filter-dropout=0.5 dropped=zero", .n_u = 2},
      {.name = "the same, sigma of each column",
       .settings = "filter-dropout=0.5 dropped=zero sigma=dimension recognition-sees=innovation",
       .n_u = 2,
       .ragged = true},
      {.name = "the same, sigma by state, gaps",
       .settings = "filter-dropout=0.5 dropped=zero sigma=state",
       .n_u = 2,
       .gaps = true},
      {.name = "the same, student-t",
       .settings = "filter-dropout=0.5 dropped=zero likelihood=student-t sigma=dimension",
       .n_u = 1},
      {.name = "the same, bernoulli",
       .settings = "filter-dropout=0.5 dropped=zero likelihood=bernoulli",
       .n_u = 1},
      {.name = "the same, dkf", .settings = "filter-dropout=0.5 dropped=zero model=dkf", .n_u = 2},
      {.name = "recognition waits", .settings = "recognition-waits=on", .n_u = 2},
      {.name = "recognition waits, steps dropped",
       .settings =
           "recognition-waits=on filter-dropout=0.5 dropped=zero sigma=state recognition-sees=innovation",
       .n_u = 2},
      {.name = "one step ahead",
       .settings = "recognition-sees=innovation linear-paths=on",
       .n_u = 2,
       .ragged = true,
       .one_step = true},
      {.name = "one step ahead, waiting, with feedthrough",
       .settings =
           "recognition-sees=innovation linear-paths=on initial-frames=2 recognition-waits=on feedthrough=on "
           "sigma=dimension",
       .n_u = 2,
       .gaps = true,
       .one_step = true},
      {.name = "one step ahead, mlp, student-t",
       .settings = "recognition-sees=innovation linear-paths=on transition=mlp likelihood=student-t",
       .n_u = 1,
       .one_step = true},
  };
  CHECK_ALL(cases);
}

static void masks(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "filter dropout", .settings = "filter-dropout=0.5", .n_u = 2},
      {.name = "padded rows", .settings = "", .n_u = 2, .rows = COUNT + 2},
      {.name = "ragged", .settings = "", .n_u = 2, .ragged = true},
      {.name = "ragged birnn", .settings = "initial=birnn initial-frames=0", .n_u = 2, .ragged = true},
      {.name = "gaps", .settings = "", .n_u = 2, .gaps = true},
      {.name = "gaps, steps told", .settings = "mask-input=step", .n_u = 2, .gaps = true},
      {.name = "gaps, values told",
       .settings = "mask-input=dimension sigma=dimension",
       .n_u = 2,
       .gaps = true},
      {.name = "gaps, birnn, values told",
       .settings = "mask-input=dimension initial=birnn initial-control=on sigma=state",
       .n_u = 2,
       .gaps = true,
       .ragged = true},
      {.name = "gaps, fast dropout, steps told",
       .settings = "mask-input=step initial=fast-dropout likelihood=bernoulli",
       .n_u = 1,
       .gaps = true,
       .rows = COUNT + 1},
      {.name = "no gaps, values told", .settings = "mask-input=dimension", .n_u = 2, .ragged = true},
      {.name = "all of it",
       .settings = "filter-dropout=0.3 universal-noise=step sigma=state mixing-hidden=4 affine=on",
       .n_u = 2,
       .ragged = true,
       .rows = COUNT + 1},
  };
  CHECK_ALL(cases);
}

static void deep_kalman_filters(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "dkf", .settings = "model=dkf", .n_u = 2},
      {.name = "dkf without control", .settings = "model=dkf", .n_u = 0},
      {.name = "dkf, not residual", .settings = "model=dkf residual=off", .n_u = 2},
      {.name = "dkf of 2 layers", .settings = "model=dkf layers=2", .n_u = 2},
      {.name = "dkf of 2 layers, dropout", .settings = "model=dkf layers=2 filter-dropout=0.4", .n_u = 2},
      {.name = "dkf of 18 units", .settings = "model=dkf hidden=18 filter-dropout=0.4 latent=2", .n_u = 1},
      {.name = "dkf, c < 1", .settings = "model=dkf", .n_u = 2, .temperature = 0.3},
      {.name = "dkf, c < 1, dropout",
       .settings = "model=dkf filter-dropout=0.4",
       .n_u = 2,
       .temperature = 0.3,
       .ragged = true},
      {.name = "dkf, ragged", .settings = "model=dkf", .n_u = 2, .ragged = true, .rows = COUNT + 1},
      {.name = "dkf, gaps", .settings = "model=dkf mask-input=dimension layers=2", .n_u = 2, .gaps = true},
      {.name = "dkf, dropout", .settings = "model=dkf filter-dropout=0.5", .n_u = 2},
      {.name = "dkf, sigma by state", .settings = "model=dkf sigma=state layers=2", .n_u = 2},
      {.name = "dkf, fast dropout", .settings = "model=dkf initial=fast-dropout layers=2", .n_u = 2},
      {.name = "dkf, fast dropout, head",
       .settings = "model=dkf initial=fast-dropout initial-variance=head filter-dropout=0.3",
       .n_u = 2},
      {.name = "dkf, bernoulli", .settings = "model=dkf likelihood=bernoulli", .n_u = 1},
      {.name = "dkf, all of it",
       .settings = "model=dkf layers=2 sigma=state filter-dropout=0.3 residual=off activation=sigmoid",
       .n_u = 2,
       .ragged = true,
       .rows = COUNT + 1},
      {.name = "dvbf of 2 layers", .settings = "layers=2 sigma=state", .n_u = 2},
  };
  CHECK_ALL(cases);
}

static void saturated_states(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "saturated", .settings = "state-limit=2", .n_u = 2},
      {.name = "saturated, dropout", .settings = "state-limit=2 filter-dropout=0.5", .n_u = 2},
      {.name = "saturated, linear", .settings = "state-limit=2 transition=linear residual=off", .n_u = 2},
      {.name = "saturated, mlp", .settings = "state-limit=2 transition=mlp", .n_u = 2},
      {.name = "saturated, mlp, not residual",
       .settings = "state-limit=2 transition=mlp residual=off universal-noise=step",
       .n_u = 2},
      {.name = "saturated dkf", .settings = "state-limit=2 model=dkf", .n_u = 2},
      {.name = "saturated dkf, dropout",
       .settings = "state-limit=2 model=dkf filter-dropout=0.5",
       .n_u = 2,
       .ragged = true},
  };
  CHECK_ALL(cases);
}

/* So tight that every system is beyond it. */
static void contracting_systems(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "contracting", .settings = "contraction=0.8", .n_u = 2},
      {.name = "contracting, not residual", .settings = "contraction=0.7 residual=off affine=on", .n_u = 1},
      {.name = "contracting, points", .settings = "contraction=0.8 universal=point", .n_u = 2},
      {.name = "contracting, noise per step",
       .settings = "contraction=0.8 universal-noise=step transition=linear",
       .n_u = 2},
      {.name = "contracting, innovation, saturated",
       .settings = "contraction=0.9 recognition-sees=innovation state-limit=2 mixing-hidden=4",
       .n_u = 2,
       .gaps = true},
  };
  CHECK_ALL(cases);
}

static void autoencoders(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "vae", .settings = "model=vae"},
      {.name = "vae of 2 layers, ragged",
       .settings = "model=vae layers=2",
       .ragged = true,
       .rows = COUNT + 1},
      {.name = "vae, gaps", .settings = "model=vae mask-input=dimension sigma=state", .n_u = 2, .gaps = true},
  };
  CHECK_ALL(cases);
}

/* With gaps, what is not seen is fed back as its mean. */
static void variational_recurrent_networks(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "vrnn", .settings = "model=vrnn units=4", .n_u = 2},
      {.name = "vrnn without controls, ragged",
       .settings = "model=vrnn units=5 sigma=state",
       .ragged = true,
       .rows = COUNT + 1},
      {.name = "vrnn of 2 layers", .settings = "model=vrnn units=18 layers=2 latent=2", .n_u = 1},
      {.name = "vrnn, linear paths",
       .settings = "model=vrnn units=4 linear-paths=on feedthrough=on",
       .n_u = 2},
      {.name = "vrnn, gaps", .settings = "model=vrnn units=4 mask-input=dimension", .n_u = 2, .gaps = true},
      {.name = "storn", .settings = "model=storn units=4", .n_u = 2},
      {.name = "storn without controls, ragged",
       .settings = "model=storn units=5 layers=2",
       .ragged = true,
       .rows = COUNT + 1},
      {.name = "storn, gaps", .settings = "model=storn units=4 mask-input=dimension", .n_u = 2, .gaps = true},
      {.name = "vrnn, gaps, bernoulli",
       .settings = "model=vrnn units=4 likelihood=bernoulli",
       .n_u = 2,
       .gaps = true},
  };
  CHECK_ALL(cases);
}

/* Messages go through gaps, past the end of short sequences, and without controls. */
static void structured_autoencoders(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "svae", .settings = "model=svae latent=2", .n_u = 2},
      {.name = "svae without controls, ragged",
       .settings = "model=svae layers=2 sigma=state",
       .ragged = true,
       .rows = COUNT + 1},
      {.name = "svae, gaps, linear paths",
       .settings = "model=svae mask-input=dimension linear-paths=on feedthrough=on",
       .n_u = 2,
       .gaps = true},
  };
  CHECK_ALL(cases);
}

/* Its objective has terms of its own beside those of the bound. */
static void locally_linear_embeddings(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "e2c", .settings = "model=e2c", .n_u = 2},
      {.name = "e2c of single frames, without controls, ragged",
       .settings = "model=e2c stacked=1 layers=2 transition-weight=2",
       .ragged = true,
       .rows = COUNT + 1},
      {.name = "e2c, gaps", .settings = "model=e2c mask-input=dimension", .n_u = 2, .gaps = true},
      {.name = "saturated e2c", .settings = "model=e2c state-limit=2", .n_u = 1, .gaps = true},
  };
  CHECK_ALL(cases);
}

/* Without filter dropout all z come from q at once; step by step, which a vanishing share of dropout asks
 * for, gives the same. */
static void dkf_at_once_is_step_by_step(void **state) {
  (void)state;
  model_case whole = {.name = "at once", .settings = "model=dkf", .n_u = 2, .ragged = true};
  model_case steps = whole;
  steps.settings = "model=dkf filter-dropout=1e-300";
  fixture a, b;
  begin(&a, &whole);
  begin(&b, &steps);
  assert_true(fabs(bound(&a) - bound(&b)) < 1e-12);
  dv_run_backward(&a.worker.run);
  dv_run_backward(&b.worker.run);
  for (size_t i = 0; i < a.model->parameters.size; i++)
    assert_true(fabs(a.gradient[i] - b.gradient[i]) < 1e-12);
  end(&a);
  end(&b);
}

/* The step is so small that no unit passes its kink within it. */
static void relu(void **state) {
  (void)state;
  static const model_case cases[] = {
      {.name = "relu", .settings = "activation=relu hidden=8", .n_u = 2, .step = 3e-5},
      {.name = "relu, mlp and birnn",
       .settings = "activation=relu hidden=8 transition=mlp initial=birnn",
       .n_u = 2,
       .step = 3e-5},
      {.name = "sigmoid", .settings = "activation=sigmoid", .n_u = 2},
  };
  CHECK_ALL(cases);
}

/* ---- What rows without weight may not do ---- */

static void padding_changes_nothing(void **state) {
  (void)state;
  model_case plain = {.name = "plain", .settings = "universal-noise=step", .n_u = 2}, padded = plain;
  padded.rows = COUNT + 3;
  fixture a, b;
  begin(&a, &plain);
  begin(&b, &padded);
  assert_true(fabs(bound(&a) - bound(&b)) < 1e-12);
  dv_run_backward(&a.worker.run);
  dv_run_backward(&b.worker.run);
  for (size_t i = 0; i < a.model->parameters.size; i++)
    assert_true(fabs(a.gradient[i] - b.gradient[i]) < 1e-12);
  end(&a);
  end(&b);
}

/* Dropout must have dropped something, and not all, for its case above to mean anything. */
static void dropout_drops(void **state) {
  (void)state;
  model_case c = {.name = "dropout", .settings = "filter-dropout=0.5", .n_u = 2};
  fixture f;
  begin(&f, &c);
  bound(&f);
  int zeros = 0, all = (STEPS - 1) * COUNT;
  for (int i = 0; i < all; i++) zeros += dvbf_at(&f.worker.run, f.program.kl)[i] == 0;
  assert_in_range(zeros, 2, all - 2);
  end(&f);
}

/* A clipped gradient is not the derivative: the check above must see that. */
static void clipping_is_noticed(void **state) {
  (void)state;
  model_case c = {.name = "clipped", .settings = "clip-z=0.001", .n_u = 2};
  fixture f;
  begin(&f, &c);
  bound(&f);
  dv_run_backward(&f.worker.run);
  gradient_check check = {&f.model->parameters, f.gradient, bound, &f, 1e-3};
  double worst = 0;
  for (size_t i = 0; i < f.model->parameters.count; i++) {
    const dv_parameter *p = &f.model->parameters.list[i];
    if (!p->frozen && strstr(p->name, "recognition")) worst = fmax(worst, error_of_entries(&check, p));
  }
  assert_true(worst > 0.01);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(initial_networks),
      cmocka_unit_test(recurrent_networks),
      cmocka_unit_test(transitions),
      cmocka_unit_test(pictures),
      cmocka_unit_test(emissions),
      cmocka_unit_test(universal_parameters),
      cmocka_unit_test(shapes),
      cmocka_unit_test(several_samples),
      cmocka_unit_test(particles),
      cmocka_unit_test(paths),
      cmocka_unit_test(predictions),
      cmocka_unit_test(phases),
      cmocka_unit_test(masks),
      cmocka_unit_test(deep_kalman_filters),
      cmocka_unit_test(saturated_states),
      cmocka_unit_test(contracting_systems),
      cmocka_unit_test(autoencoders),
      cmocka_unit_test(variational_recurrent_networks),
      cmocka_unit_test(structured_autoencoders),
      cmocka_unit_test(locally_linear_embeddings),
      cmocka_unit_test(dkf_at_once_is_step_by_step),
      cmocka_unit_test(relu),
      cmocka_unit_test(padding_changes_nothing),
      cmocka_unit_test(dropout_drops),
      cmocka_unit_test(clipping_is_noticed),
  };
  return cmocka_run_group_tests_name("gradients of models", tests, NULL, NULL);
}
