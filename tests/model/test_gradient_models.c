/* Whole models through time: the gradient that training uses against differences of the bound. */
#include "given.h"
#include "gradient.h"
#include "variants.h"

#include "data/dataset.h"
#include "model/batches.h"

/* ---- Data: a few short sequences ---- */

enum { N_X = 7, STEPS = 5, COUNT = 3 };

/* Small enough that every case takes a blink, with no kinks. */
static const char common[] =
    "latent=3 systems=4 hidden=5 transition-hidden=6 initial-frames=3 activation=tanh "
    "filter-dropout=0 filter-dropout-end=0 clip-z=0";

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

/* Fills a parameter, if the model has it. */
static void fill(const dvbf_model *m, const char *name, double value) {
  const dv_parameter *p = dv_model_find(m, name);
  for (size_t k = 0; p && k < size_of(p); k++) m->parameters.values[p->offset + k] = (dvbf_real)value;
}

static void make_model(fixture *f, const variant *v) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  set_all(settings, common);
  set_all(settings, v->settings);
  f->sequences = make_sequences(v->n_x ? (size_t)v->n_x : N_X, v->n_u, v->flags & RAGGED);
  if (v->flags & GAPS) make_gaps(&f->sequences);
  if (dv_model_new(&f->model, settings, NULL, &f->sequences, 4, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  fill(f->model, "emission.log_sigma", log(0.6));
  fill(f->model, "emission.free_log_sigma", log(0.6));
  fill(f->model, "universal.log_sigma", log(0.1));
  stir(f->model);
  dvbf_real *range = dv_model_range(f->model); /* so narrow that many states are beyond it */
  for (int k = 0; range && k < f->model->n_z; k++) range[k] = 0.05, range[f->model->n_z + k] = 0.1;
}

/* Of a program with `padding` rows of weight 0. */
static void begin(fixture *f, const variant *v, int padding) {
  dvbf_error error;
  *f = (fixture){0};
  make_model(f, v);
  int flags = DV_BACKWARD | dv_gaps_of(&f->sequences) | (v->flags & ONE_STEP ? DV_ONE_STEP : 0);
  if (dv_program_record(&f->program, f->model, STEPS, COUNT + padding, STEPS, flags, &error))
    fail_msg("%s", error.message);
  assert_int_equal(dv_worker_init(&f->worker, f->model, &f->program, &f->sequences, &error), DVBF_OK);
  f->gradient = calloc(f->model->parameters.size, sizeof *f->gradient);
  assert_non_null(f->gradient);
  f->conditions =
      (dv_conditions){.seed = 8, .stream = DV_STREAM_NOISE, .update = 2, .scale = 1.0 / (COUNT * STEPS)};
  dv_conditions_set(&f->conditions, DVBF_TEMPERATURE, v->flags & ANNEALED ? 0.3 : 1);
  dv_conditions_set(&f->conditions, DVBF_LOG_SIGMA_FLOOR, -2);
  dv_conditions_set(&f->conditions, DVBF_LOOK_AHEAD_DROPOUT, strstr(v->name, "some rows") ? 0.4 : 0);
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

static void gradients(void **state) {
  const variant *v = *state;
  fixture f;
  begin(&f, v, v->flags & PADDED ? 1 : 0);
  for (int i = 0; i < 2; i++) { /* what the first time left must not matter */
    bound(&f);
    dv_run_backward(&f.worker.run);
  }
  gradient_check check = {&f.model->parameters, f.gradient, v->flags & ANNEALED ? annealed_dkf : bound, &f,
                          v->step > 0 ? v->step : 1e-3};
  dv_random random = dv_random_at(31, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < f.model->parameters.count; i++) {
    const dv_parameter *p = &f.model->parameters.list[i];
    double size = gradient_size(&check, p);
    if (p->frozen) {
      assert_true(size == 0);
      continue;
    }
    /* A parameter that reaches nothing was forgotten in the equations. One step ahead has one sigma. */
    if (v->flags & ONE_STEP && strstr(p->name, "free_log_sigma")) continue;
    if (!(size > 1e-9)) fail_msg("%s: %s has no gradient", v->name, p->name);
    double error = error_of_tensor(&check, p, &random);
    if (!(error <= TOLERANCE)) fail_msg("%s: the gradient of %s is off by %.3g", v->name, p->name, error);
  }
  end(&f);
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

/* ---- What must be equal, and what must differ ---- */

/* The bound and its gradient. */
static void expect_same(const variant *one, const variant *other, int padding) {
  fixture a, b;
  begin(&a, one, 0);
  begin(&b, other, padding);
  assert_true(fabs(bound(&a) - bound(&b)) < 1e-12);
  dv_run_backward(&a.worker.run);
  dv_run_backward(&b.worker.run);
  for (size_t i = 0; i < a.model->parameters.size; i++)
    assert_true(fabs(a.gradient[i] - b.gradient[i]) < 1e-12);
  end(&a);
  end(&b);
}

/* Without filter dropout all z come from q at once; step by step, which a vanishing share of dropout asks
 * for, gives the same. */
static void dkf_at_once_is_step_by_step(void **state) {
  (void)state;
  expect_same(&(variant){"at once", "model=dkf", .n_u = 2, RAGGED},
              &(variant){"steps", "model=dkf filter-dropout=1e-300", .n_u = 2, RAGGED}, 0);
}

/* Rows without weight. */
static void padding_changes_nothing(void **state) {
  (void)state;
  variant v = {"plain", "universal-noise=step", .n_u = 2};
  expect_same(&v, &v, 3);
}

/* Dropout must have dropped something, and not all, for its case above to mean anything. */
static void dropout_drops(void **state) {
  (void)state;
  fixture f;
  begin(&f, &(variant){"dropout", "filter-dropout=0.5", .n_u = 2}, 0);
  bound(&f);
  int zeros = 0, all = (STEPS - 1) * COUNT;
  for (int i = 0; i < all; i++) zeros += dvbf_at(&f.worker.run, f.program.kl)[i] == 0;
  assert_in_range(zeros, 2, all - 2);
  end(&f);
}

/* A clipped gradient is not the derivative: the check above must see that. */
static void clipping_is_noticed(void **state) {
  (void)state;
  fixture f;
  begin(&f, &(variant){"clipped", "clip-z=0.001", .n_u = 2}, 0);
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

/* A test for each row of variants.h besides those above. */
int main(void) {
  struct CMUnitTest tests[5 + VARIANTS] = {
      cmocka_unit_test(recurrent_networks),      cmocka_unit_test(dkf_at_once_is_step_by_step),
      cmocka_unit_test(padding_changes_nothing), cmocka_unit_test(dropout_drops),
      cmocka_unit_test(clipping_is_noticed),
  };
  size_t count = 5;
  for (const variant *v = NULL; (v = next_variant(v, 0));)
    if (!(v->flags & NO_GRADIENT))
      tests[count++] = (struct CMUnitTest){v->name, gradients, NULL, NULL, (void *)(intptr_t)v};
  return _cmocka_run_group_tests("gradients of models", tests, count, NULL, NULL);
}
