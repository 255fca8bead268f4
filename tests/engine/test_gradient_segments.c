/* Sequences of several blocks: the gradient against differences of the bound, and the same bits with and
 * without segments, in less memory. */
#include "given.h"
#include "gradient.h"

#include "data/dataset.h"
#include "model/batches.h"
#include "model/program.h"

enum { N_X = 3, STEPS = 2 * DV_BLOCK_STEPS + 9, COUNT = 2 };

typedef struct segments_case {
  const char *name, *settings;
  int n_u;
  bool gaps, one_step;
  bool emission; /* which alone is recorded in blocks */
} segments_case;

static const segments_case cases[] = {
    {"dvbf", "", 0, false, false, false},
    {"dvbf with gaps, controls, an initial network over all frames",
     "initial=birnn initial-frames=0 mask-input=dimension filter-dropout=0.3 dropped=zero state-limit=4", 1,
     true, false, false},
    {"dvbf with fast dropout and noise of each step",
     "initial=fast-dropout initial-frames=0 universal-noise=step sigma=state layers=2", 1, false, false,
     false},
    {"dvbf that sees innovations",
     "recognition-input=innovation linear-paths=on feedthrough=on contraction=0.9 scale-innovation=0.1", 1,
     true, false, false},
    {"dvbf that sees predictions",
     "recognition-input=prediction linear-paths=all transition=mlp emission-sees=1", 1, true, false, false},
    {"dvbf one step ahead",
     "recognition-input=innovation linear-paths=on contraction=0.9 scale-innovation=0.1", 1, false, true,
     false},
    {"dvbf that looks ahead", "recognition=smoothing contraction=0.9 scale-innovation=0.1", 1, false, false,
     false},
    {"dvbf with a network as transition", "transition=mlp", 1, false, false, false},
    {"dkf", "model=dkf initial=birnn", 1, false, false, false},
    {"dkf with gaps", "model=dkf initial=birnn residual=on state-limit=4", 1, true, false, false},
    {"vae", "model=vae", 0, true, false, false},
    {"vrnn", "model=vrnn units=4", 1, false, false, false},
    {"storn", "model=storn units=4", 1, false, false, false},
    {"svae", "model=svae", 1, true, false, false},
    {"e2c", "model=e2c", 1, false, false, true}};
enum { CASES = sizeof cases / sizeof cases[0] };

static dvbf_sequences make_sequences(const segments_case *c) {
  dvbf_sequences s = {.count = COUNT, .steps = STEPS, .n_x = N_X, .n_u = (size_t)c->n_u};
  dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, 1, 1);
  assert_int_equal(dv_sequences_allocate(&s, true, NULL), DVBF_OK);
  for (size_t i = 0; i < COUNT * STEPS * N_X; i++)
    s.x[i] = (float)(sin(0.1 * (double)(i / N_X) + (double)(i % N_X)) + 0.1 * dv_random_normal(&random));
  for (size_t i = 0; i < COUNT * STEPS * s.n_u; i++) s.u[i] = (float)(0.1 * dv_random_normal(&random));
  for (size_t i = 0; c->gaps && i < COUNT * STEPS * N_X; i += 17) s.x[i] = NAN;
  for (size_t i = 0; c->gaps && i < N_X; i++) s.x[DV_BLOCK_STEPS * N_X + i] = NAN;
  s.gaps = c->gaps;
  s.length[0] = STEPS;
  s.length[1] = STEPS - 5;
  return s;
}

typedef struct fixture {
  dvbf_sequences sequences;
  dvbf_model *model;
  dvbf_program program;
  dv_worker worker;
  dv_conditions conditions;
  dvbf_real *gradient;
  uint32_t index[COUNT];
} fixture;

static void make_model(fixture *f, const segments_case *c, bool segments) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  set_all(settings, "latent=2 systems=2 hidden=4 transition-hidden=4 initial-frames=3 activation=tanh "
                    "filter-dropout=0 filter-dropout-end=0 clip-z=0");
  set_all(settings, c->settings);
  f->sequences = make_sequences(c);
  if (dv_model_new(&f->model, settings, NULL, &f->sequences, 4, &error)) fail_msg("%s", error.message);
  f->model->segments = segments;
  dvbf_settings_free(settings);
  dvbf_real *range = dv_model_range(f->model);
  for (int k = 0; range && k < f->model->n_z; k++) range[k] = 0, range[f->model->n_z + k] = 1;
}

static void begin(fixture *f, const segments_case *c, bool segments) {
  dvbf_error error;
  *f = (fixture){.index = {0, 1}};
  make_model(f, c, segments);
  int flags = DV_BACKWARD | dv_gaps_of(&f->sequences) | (c->one_step ? DV_ONE_STEP : 0);
  if (dv_program_record(&f->program, f->model, STEPS, COUNT, STEPS, flags, &error))
    fail_msg("%s: %s", c->name, error.message);
  assert_int_equal(dv_worker_init(&f->worker, f->model, &f->program, &f->sequences, &error), DVBF_OK);
  f->gradient = calloc(f->model->parameters.size, sizeof *f->gradient);
  assert_non_null(f->gradient);
  f->conditions = (dv_conditions){
      .seed = 8, .stream = DV_STREAM_NOISE, .update = 2, .scale = 1.0 / STEPS, .noise_free = c->one_step};
  dv_conditions_set(&f->conditions, DVBF_TEMPERATURE, 1);
  dv_conditions_set(&f->conditions, DVBF_LOG_SIGMA_FLOOR, -2);
  dv_conditions_set(&f->conditions, DVBF_FILTER_DROPOUT, f->model->settings->filter_dropout);
  dv_conditions_set(&f->conditions, DVBF_FILTER_DROPOUT_ZERO, f->model->settings->dropped == DV_DROPPED_ZERO);
  dv_conditions_set(&f->conditions, DVBF_SEQUENCES, f->model->sequences);
  f->worker.run.gradient = f->gradient;
  f->worker.run.conditions = &f->conditions;
  f->worker.run.sequence = f->index;
  dv_worker_load(&f->worker, &f->sequences, f->index, COUNT, STEPS);
  dv_run_forward(&f->worker.run);
  dv_run_backward(&f->worker.run);
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

static void same_bits(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    fixture without, with;
    begin(&without, &cases[i], false);
    begin(&with, &cases[i], true);
    size_t bytes = with.model->parameters.size * sizeof *with.gradient;
    size_t less = with.program.graph->arena, more = without.program.graph->arena;
    if (memcmp(with.gradient, without.gradient, bytes) != 0) fail_msg("%s: other gradients", cases[i].name);
    if (memcmp(with.worker.run.terms, without.worker.run.terms, sizeof with.worker.run.terms) != 0)
      fail_msg("%s: another bound", cases[i].name);
    if (less > more || (less == more && !cases[i].emission))
      fail_msg("%s: %zu reals with segments, %zu without", cases[i].name, less, more);
    end(&without);
    end(&with);
  }
}

/* One direction of each parameter. */
static void gradients(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    fixture f;
    begin(&f, &cases[i], true);
    dv_parameters *all = &f.model->parameters;
    gradient_check check = {all, f.gradient, bound, &f, 1e-4};
    dv_random random = dv_random_at(7, DV_STREAM_SIMULATION, 0, 0);
    for (size_t k = 0; k < all->count; k++) {
      double error = all->list[k].frozen ? 0 : error_of_direction(&check, &all->list[k], &random);
      if (error > 1e-4) fail_msg("%s, %s: %g off", cases[i].name, all->list[k].name, error);
    }
    end(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
