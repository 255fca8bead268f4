/* A controller as C (dv_controller_files_write): its task as tables, and templates/control.c.in, which plans
 * by the functions of the exported filter. Its test runs a closed loop of the library's controller with the
 * model itself. */
#include "control/controller.h"

#include "base/error.h"
#include "base/memory.h"
#include "export/c_file.h"
#include "math/random.h"

#include <dvbf/export.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 60, LEAST_STEPS = 12, LOOP_NUMBERS = 20000, GAP = 7, ELITE_SHARE = 8 };

typedef struct writer {
  const dv_export *of;
  const dvbf_model *model;
  const dv_export_settings *settings;
  const dv_control_settings *control;
  const dv_cost *task;
  void *memory;
  dvbf_controller *controller;
  char prefix[80];
  dv_text code, header, test;
  dv_words words;
} writer;

/* ---- Refusals ---- */

static dvbf_status check(const dvbf_model *m, const dv_control_settings *s, dvbf_error *error) {
  if (dv_model_members(m) > 1)
    return dv_fail(error, DVBF_ARGUMENT,
                   "a committee cannot be exported as a controller; member = 1 exports only its best model");
  if (s->deadline)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "deadline = %" PRId64
        ": exported code has no clock; iterations and random plans limit its time, so leave it out",
        s->deadline);
  if (s->delay)
    return dv_fail(error, DVBF_ARGUMENT,
                   "delay = %" PRId64 ": an exported controller answers at once; leave it out", s->delay);
  if (s->risk > 0)
    return dv_fail(error, DVBF_ARGUMENT,
                   "risk = %g: an exported controller plans without noise; leave it out", s->risk);
  if (s->samples > 1)
    return dv_fail(error, DVBF_ARGUMENT,
                   "samples = %" PRId64 ": an exported controller filters without samples; leave it out",
                   s->samples);
  return DVBF_OK;
}

/* ---- Tables ---- */

static void put_table(dv_text *t, const char *type, const char *name, const double *values, size_t n) {
  dv_text_array(t, type, name, (dv_array){.reals = values}, n, strcmp(type, "double") ? 9 : 17);
}

static void put_scaled(dv_text *t, const char *name, const double *values, size_t n, double factor) {
  double *scaled = dv_calloc(n + 1, sizeof *scaled);
  for (size_t i = 0; scaled && i < n; i++) scaled[i] = factor * values[i];
  if (scaled) put_table(t, "double", name, scaled, n);
  t->failed |= !scaled;
  dv_free(scaled);
}

static void put_real_limits(dv_text *t, const dv_cost *task, bool wide) {
  double low[DV_BOX_SIZE], high[DV_BOX_SIZE];
  for (int i = 0; i < task->n_u; i++) {
    low[i] = task->low[i], high[i] = task->high[i];
    if (wide) continue;
    float l = (float)fmax(-FLT_MAX, low[i]), h = (float)fmin(FLT_MAX, high[i]);
    low[i] = (double)((double)l < task->low[i] ? nextafterf(l, INFINITY) : l);
    high[i] = (double)((double)h > task->high[i] ? nextafterf(h, -INFINITY) : h);
  }
  put_table(t, wide ? "double" : "float", "low_real", low, (size_t)task->n_u);
  put_table(t, wide ? "double" : "float", "high_real", high, (size_t)task->n_u);
}

static void put_spread(dv_text *t, const writer *w) {
  double spread[DV_BOX_SIZE];
  for (int i = 0; i < w->task->n_u; i++) {
    double half = 0.5 * (w->task->high[i] - w->task->low[i]);
    spread[i] = w->control->spread * (isfinite(half) ? half : 1);
  }
  put_table(t, "double", "spread", spread, (size_t)w->task->n_u);
}

static void put_looks(dv_text *t, const writer *w) {
  const dv_cost *task = w->task;
  const dvbf_model *m = w->model;
  size_t n_s = (size_t)task->n_s, n_z = (size_t)task->n_z;
  if (!task->looks) {
    put_table(t, "double", "map", task->map, n_s * (n_z + 1));
    return;
  }
  double *numbers = dv_calloc(2 * n_s, sizeof *numbers);
  for (size_t i = 0; numbers && i < n_s; i++)
    numbers[i] = (double)m->x.shift[i], numbers[n_s + i] = (double)m->x.scale[i];
  if (numbers) put_table(t, "double", "x_shift", numbers, n_s);
  if (numbers) put_table(t, "double", "x_scale", numbers + n_s, n_s);
  t->failed |= !numbers;
  dv_free(numbers);
}

static void put_tables(writer *w) {
  const dv_cost *k = w->task;
  dv_text *t = dv_words_text(&w->words, "tables");
  size_t n_z = (size_t)k->n_z, n_u = (size_t)k->n_u, n_s = (size_t)k->n_s, goals = (size_t)k->goals;
  put_table(t, "double", "low", k->low, n_u);
  put_table(t, "double", "high", k->high, n_u);
  put_real_limits(t, k, w->settings->real == DV_REAL_DOUBLE);
  put_table(t, "double", "rest", k->rest, n_u);
  put_table(t, "double", "control_weight", k->control, n_u);
  put_table(t, "double", "change_weight", k->change, n_u);
  put_table(t, "double", "later", k->later, (size_t)k->steps + 1);
  put_looks(t, w);
  put_scaled(t, "weight", k->weight, n_s, k->goal_weight);
  put_table(t, "double", "target", k->target, goals * n_s);
  put_table(t, "double", "centre", k->centre, goals * n_z);
  put_scaled(t, "terminal", k->p, goals * n_z * n_z, k->terminal_weight);
  if (w->control->random_plans < 2) return;
  put_scaled(t, "linear", k->gain, goals * n_u * n_z, k->steers ? 1 : 0);
  put_spread(t, w);
}

/* ---- Template words ---- */

static void set_number(writer *w, const char *name, uint64_t number) {
  dv_words_set(&w->words, name, "%" PRIu64, number);
}

static void set_real(writer *w, const char *name, double number) {
  dv_words_set(&w->words, name, number == rint(number) ? "%.1f" : "%.17g", number);
}

static void set_random_plans(writer *w) {
  const dv_control_settings *s = w->control;
  uint64_t seed = (uint64_t)s->seed, elites = (uint64_t)s->random_plans / ELITE_SHARE;
  if (s->random_plans < 2) return;
  set_number(w, "random_plans", (uint64_t)s->random_plans);
  set_number(w, "elites", elites > 2 ? elites : 2);
  set_number(w, "rounds", (uint64_t)s->rounds);
  set_number(w, "seed_low", seed & 0xffffffff);
  set_number(w, "seed_high", seed >> 32);
  set_number(w, "stream", DV_STREAM_PLANS);
  set_real(w, "correlation", s->correlation);
  set_real(w, "fresh", sqrt(1 - s->correlation * s->correlation));
}

/* Our own functions, if <math.h> is not wanted, are those of a filter in double. */
static void put_functions(dv_text *t, const writer *w) {
  static const char *const all[] = {"use_double_sqrt", "plain", "wide", "use_log", "use_sin", "cosine_alone"};
  dv_words words = {.prefix = w->prefix};
  for (size_t i = 0; i < (w->control->random_plans > 1 ? sizeof all / sizeof *all : 1); i++)
    dv_words_turn(&words, all[i], true);
  dv_put(t, functions_c_in, &words);
  dv_words_clear(&words);
}

static void set_words(writer *w) {
  const dv_control_settings *s = w->control;
  bool samples_alone = s->planner == DV_PLANNER_SAMPLING;
  w->words.prefix = w->prefix;
  dv_words_set(&w->words, "model", "%s", w->of->result->prefix);
  dv_words_set(&w->words, "header", "%s", w->of->name);
  set_number(w, "n_x", (uint64_t)w->model->n_x);
  set_number(w, "n_u", (uint64_t)w->model->n_u);
  set_number(w, "n_s", (uint64_t)w->task->n_s);
  set_number(w, "goals", (uint64_t)w->task->goals);
  set_number(w, "steps", (uint64_t)s->steps);
  set_number(w, "iterations", samples_alone ? 0 : (uint64_t)s->iterations);
  set_number(w, "blind", (uint64_t)s->blind);
  dv_words_turn(&w->words, "observes", w->task->looks);
  dv_words_turn(&w->words, "hold", s->safe == DV_SAFE_HOLD);
  set_random_plans(w);
  bool plain = !w->settings->libm;
  dv_words_turn(&w->words, "plain", plain);
  dv_words_set(&w->words, "log", plain ? "@_log" : "log");
  dv_words_set(&w->words, "cos", plain ? "@_cos" : "cos");
  dv_words_set(&w->words, "double_sqrt", plain ? "@_double_sqrt" : "sqrt");
  dv_words_set(&w->words, "double_fabs", plain ? "@_double_fabs" : "fabs");
  if (plain) put_functions(dv_words_text(&w->words, "functions"), w);
  put_tables(w);
}

/* ---- Test ---- */

/* A closed loop of the library's controller and the model itself. */
typedef struct closed_loop {
  int steps;
  float *z;                    /* [n_z] of the system */
  float *x, *u;                /* [steps][n_x], [steps][n_u] */
  double *half;                /* [n_u] half the width of the limits */
  float *cost;                 /* [steps] of the plan, 0 if there is none */
  unsigned char *seen, *ready; /* [steps] */
  dvbf_jacobian *linear;
} closed_loop;

static dvbf_status begin_loop(closed_loop *l, const writer *w, dvbf_error *error) {
  const dvbf_model *m = w->model;
  int numbers = LOOP_NUMBERS / m->n_x, frames = dv_model_predicts_from(m) + LEAST_STEPS;
  l->steps = numbers < LEAST_STEPS ? LEAST_STEPS : numbers > MOST_STEPS ? MOST_STEPS : numbers;
  if (l->steps < frames) l->steps = frames;
  size_t steps = (size_t)l->steps;
  l->z = dv_calloc((size_t)m->n_z, sizeof *l->z);
  l->x = dv_calloc(steps * (size_t)m->n_x, sizeof *l->x);
  l->u = dv_calloc(steps * (size_t)m->n_u, sizeof *l->u);
  l->half = dv_calloc((size_t)m->n_u, sizeof *l->half);
  l->cost = dv_calloc(steps, sizeof *l->cost);
  l->seen = dv_calloc(steps, 1);
  l->ready = dv_calloc(steps, 1);
  if (!l->z || !l->x || !l->u || !l->half || !l->cost || !l->seen || !l->ready)
    return dv_fail_memory(error, "exporting a controller");
  dv_random random = dv_random_at((uint64_t)w->settings->seed, DV_STREAM_SIMULATION, 2, 0);
  const float *goal = dvbf_controller_goal(w->controller);
  for (int i = 0; i < m->n_z; i++) l->z[i] = (float)((double)goal[i] + 0.5 * dv_random_normal(&random));
  for (int i = 0; i < m->n_u; i++) {
    double half = 0.5 * (w->task->high[i] - w->task->low[i]);
    l->half[i] = isfinite(half) ? half : 1;
  }
  return dvbf_jacobian_new(&l->linear, m, error);
}

static void run_loop(closed_loop *l, const writer *w) {
  size_t n_x = (size_t)w->model->n_x, n_u = (size_t)w->model->n_u, n_z = (size_t)w->model->n_z;
  dvbf_jacobians at;
  dvbf_control control;
  for (size_t t = 0; t < (size_t)l->steps; t++) {
    float *x = l->x + t * n_x, *u = l->u + t * n_u;
    dvbf_jacobian_at(l->linear, l->z, t ? u - n_u : u, &at);
    memcpy(x, at.x, n_x * sizeof *x);
    l->seen[t] = t % GAP != GAP - 1;
    dvbf_controller_step(w->controller, l->seen[t] ? x : NULL, t ? u - n_u : NULL, &control);
    memcpy(u, control.u, n_u * sizeof *u);
    l->ready[t] = control.ready;
    if (control.ready) l->cost[t] = (float)control.cost;
    dvbf_jacobian_at(l->linear, l->z, u, &at);
    for (size_t i = 0; i < n_z; i++) l->z[i] = at.next[i];
  }
}

static void put_test(writer *w, const closed_loop *l) {
  dv_text *t = dv_words_text(&w->words, "arrays");
  size_t steps = (size_t)l->steps, n_u = (size_t)w->model->n_u;
  dv_text_array(t, "double", "x", (dv_array){.floats = l->x}, steps * (size_t)w->model->n_x, 9);
  dv_text_array(t, "double", "u", (dv_array){.floats = l->u}, steps * n_u, 9);
  dv_text_array(t, "double", "half", (dv_array){.reals = l->half}, n_u, 17);
  dv_text_array(t, "double", "cost", (dv_array){.floats = l->cost}, steps, 9);
  dv_text_array(t, "unsigned char", "seen", (dv_array){.bytes = l->seen}, steps, 0);
  dv_text_array(t, "unsigned char", "ready", (dv_array){.bytes = l->ready}, steps, 0);
  set_number(w, "steps", steps);
  dv_put(&w->test, control_test_c_in, &w->words);
}

static dvbf_status write_test(writer *w, dvbf_error *error) {
  closed_loop loop = {0};
  dvbf_status status = begin_loop(&loop, w, error);
  if (!status) {
    run_loop(&loop, w);
    put_test(w, &loop);
  }
  dvbf_jacobian_free(loop.linear);
  DV_FREE(loop.z, loop.x, loop.u, loop.half, loop.cost, loop.seen, loop.ready);
  return status;
}

/* ---- Files ---- */

static dvbf_status make_controller(writer *w, dvbf_error *error) {
  const dvbf_export_options *o = w->of->options;
  size_t size = 0;
  dvbf_status status = dvbf_controller_memsize(&size, w->model, o->goal, o->control, error);
  if (status) return status;
  w->memory = dv_calloc_aligned(size, 1);
  if (!w->memory) return dv_fail_memory(error, "exporting a controller");
  status = dvbf_controller_init(&w->controller, w->memory, size, w->model, o->goal, o->control, error);
  if (status) return status;
  w->task = dv_controller_planner(w->controller)->task;
  w->control = &dv_controller_planner(w->controller)->settings;
  return DVBF_OK;
}

static dvbf_status write_all(writer *w, dvbf_error *error) {
  dv_path code, header, test;
  set_words(w);
  dv_put(&w->code, control_c_in, &w->words);
  dv_put(&w->header, control_h_in, &w->words);
  dvbf_status status = write_test(w, error);
  if (!status) status = dv_export_path(code, w->of, "_control.c", error);
  if (!status) status = dv_export_path(header, w->of, "_control.h", error);
  if (!status) status = dv_export_path(test, w->of, "_control_test.c", error);
  if (!status) status = dv_c_files_write(w->of, error);
  if (!status) status = dv_text_write(&w->code, code, error);
  if (!status) status = dv_text_write(&w->header, header, error);
  return status ? status : dv_text_write(&w->test, test, error);
}

dvbf_status dv_controller_files_write(const dv_export *e, dvbf_error *error) {
  const dv_control_settings *wanted = dv_settings_control(e->options->control, error);
  writer w = {.of = e, .model = e->model, .settings = e->settings};
  if (!wanted) return DVBF_ARGUMENT;
  snprintf(w.prefix, sizeof w.prefix, "%s_control", e->result->prefix);
  dvbf_status status = check(e->model, wanted, error);
  if (!status) status = make_controller(&w, error);
  if (!status) status = write_all(&w, error);
  dv_words_clear(&w.words);
  DV_TEXT_FREE(&w.code, &w.header, &w.test);
  dv_free(w.memory);
  return status;
}
