/* Learning to control (dvbf_learn_control): collects data with random controls, trains, runs closed loops,
 * adds them to the data and trains again while that may help; then scores the controller. With a given model,
 * or with the true state, it only scores. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "control/controller.h"
#include "data/dataset.h"
#include "experiments/closed_loop.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct learning {
  const dvbf_loop *asked;
  const dv_loop_settings *settings;
  dv_system system;
  dvbf_settings *control; /* with limits */
  dvbf_data *data;        /* to train with */
  dvbf_model *own;        /* trained here */
  const dvbf_model *model;
  float *goal; /* [n_x] */
  void *memory;
  dvbf_controller *controller;
  dv_true_state *truth; /* in the place of a model; NULL: there is a model */
  dvbf_loop_result *outcome;
  const volatile int *interrupt; /* of the settings for training */
  bool stopped;                  /* by the caller's function */
} learning;

__attribute__((format(printf, 2, 3))) static void tell(const learning *l, const char *format, ...) {
  char text[256];
  va_list list;
  if (!l->asked->tell) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  l->asked->tell(text, l->asked->user_data);
}

/* ---- Data ---- */

/* Copies closed loops, cut into pieces as long as the sequences of training, behind `first` of these. */
static void append(dvbf_sequences *to, size_t first, const dv_episodes *e) {
  size_t frames = e->steps / to->steps * to->steps;
  for (size_t i = 0; i < e->count; i++) {
    size_t at = first * to->steps + i * frames, from = i * e->steps;
    memcpy(to->x + at * to->n_x, e->x + from * e->n_x, frames * e->n_x * sizeof *e->x);
    memcpy(to->u + at * to->n_u, e->u + from * e->n_u, frames * e->n_u * sizeof *e->u);
    memcpy(to->state + at * to->n_s, e->truth + from * e->n_s, frames * e->n_s * sizeof *e->truth);
  }
}

static dvbf_status add_episodes(dvbf_sequences *train, const dv_episodes *e, dvbf_error *error) {
  size_t pieces = e->steps / train->steps;
  dvbf_sequences more = {.count = train->count + e->count * pieces,
                         .steps = train->steps,
                         .n_x = train->n_x,
                         .n_u = train->n_u,
                         .n_s = train->n_s,
                         .gaps = train->gaps};
  if (!pieces)
    return dv_fail(error, DVBF_ARGUMENT,
                   "horizon = %zu: closed loops must not be shorter than the sequences of %zu steps",
                   e->steps, train->steps);
  dvbf_status status = dv_sequences_allocate(&more, false, error);
  if (status) return status;
  memcpy(more.x, train->x, train->count * train->steps * train->n_x * sizeof *more.x);
  memcpy(more.u, train->u, train->count * train->steps * train->n_u * sizeof *more.u);
  memcpy(more.state, train->state, train->count * train->steps * train->n_s * sizeof *more.state);
  append(&more, train->count, e);
  dvbf_sequences_free(train);
  *train = more;
  return DVBF_OK;
}

/* ---- Model and controller ---- */

static bool watch(const dvbf_progress *progress, void *user) {
  learning *l = user;
  if (l->asked->progress && !l->asked->progress(progress, l->asked->user_data)) l->stopped = true;
  return !l->stopped;
}

static dvbf_status train_model(learning *l, bool first, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_train_options how = {
      .progress = watch, .user_data = l, .folder = l->asked->folder, .force = l->asked->force || !first};
  dvbf_model *model = NULL;
  dvbf_status status = dvbf_settings_copy(&settings, l->asked->train, error);
  if (!status) status = dvbf_settings_choose(settings, l->data, NULL, NULL, error);
  if (!status) dvbf_settings_interrupt(settings, l->interrupt);
  if (!status) status = dvbf_train(&model, settings, l->data, &how, error);
  dvbf_settings_free(settings);
  if (status) return status;
  dvbf_model_free(l->own);
  l->model = l->own = model;
  if (l->stopped || dv_interrupted(l->interrupt))
    return dv_fail(error, DVBF_STOPPED, "stopped in training; an unfinished model is not evaluated");
  l->outcome->seconds += dvbf_model_describe(model).seconds;
  l->outcome->sequences = l->data->train.count;
  l->outcome->frames = l->data->train.steps;
  return DVBF_OK;
}

static dv_pilot pilot_of(const learning *l) {
  return l->truth ? dv_true_state_pilot(l->truth) : dv_controller_pilot(l->controller, (size_t)l->model->n_z);
}

static dvbf_status make_controller(learning *l, dvbf_error *error) {
  const dvbf_goal goal = {.count = 1, .x = l->goal};
  size_t size = 0;
  if (l->truth) return DVBF_OK;
  if ((size_t)l->model->n_x != dv_system_pixels(&l->system) || l->model->n_u != l->system.n_u)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model has %d numbers of x and %d of u, and the system %zu and %d; size and channels "
                   "change the images",
                   l->model->n_x, l->model->n_u, dv_system_pixels(&l->system), l->system.n_u);
  dv_free(l->memory);
  l->memory = NULL;
  dvbf_status status = dvbf_controller_memsize(&size, l->model, &goal, l->control, error);
  if (status) return status;
  l->memory = dv_calloc_aligned(size, 1);
  if (!l->memory) return dv_fail_memory(error, "preparing to control");
  return dvbf_controller_init(&l->controller, l->memory, size, l->model, &goal, l->control, error);
}

/* The controller's settings, with limits of the system that the user has not given, and known delays. */
static dvbf_status set_control(learning *l, dvbf_error *error) {
  dvbf_status status = dvbf_settings_copy(&l->control, l->asked->control, error);
  if (status || !dv_settings_control(l->control, error)) return status ? status : DVBF_ARGUMENT;
  dv_control_settings *c = dv_settings_edit(l->control);
  int64_t delay = l->settings->frame_delay + l->settings->control_delay;
  if (!*c->low) dv_print(c->low, sizeof c->low, "%.17g", -l->system.limit);
  if (!*c->high) dv_print(c->high, sizeof c->high, "%.17g", l->system.limit);
  if (l->settings->known_delay && delay) c->delay = delay;
  return DVBF_OK;
}

/* ---- Rounds ---- */

static dvbf_status collect(learning *l, uint32_t round, dvbf_error *error) {
  dv_episodes episodes;
  dv_running how = {.settings = l->settings, .round = round, .interrupt = l->interrupt};
  dv_pilot pilot = pilot_of(l);
  tell(l, "collecting %lld closed loops", (long long)l->settings->collect);
  dvbf_status status =
      dv_episodes_run(&episodes, (size_t)l->settings->collect, &l->system, &pilot, &how, error);
  if (status) return status;
  status = add_episodes(&l->data->train, &episodes, error);
  dv_episodes_free(&episodes);
  return status;
}

enum { MOST_EFFORT = 100 };

/* Whether to train again. A model may have a direction at the goal that grows and that controls hardly reach,
 * so that a hundredth of a unit of z takes all the control there is. This is an error of the model where it
 * has seen little data, which closed loops provide. */
static bool goes_on(const learning *l, int64_t round) {
  const dv_loop_settings *s = l->settings;
  if (round < s->rounds) return true;
  if (round >= s->most || !s->collect || dv_controller_effort(l->controller) < MOST_EFFORT) return false;
  tell(l, "the controller does not hold the goal with this model; collecting closed-loop data for another "
          "training");
  return true;
}

static dvbf_status keep_data(const learning *l, dvbf_error *error) {
  dv_path path;
  if (!l->settings->keep_data || !l->asked->folder || !l->data) return DVBF_OK;
  dv_join(path, l->asked->folder, "data.h5");
  return dvbf_data_write(l->data, path, error);
}

static dvbf_status learn(learning *l, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  bool more = true;
  if (l->settings->true_state) return dv_true_state_new(&l->truth, &l->system, l->control, error);
  if (l->asked->model) {
    l->model = l->asked->model;
    return DVBF_OK;
  }
  tell(l, "simulating sequences with random controls");
  status = dvbf_simulate(&l->data, l->asked->system, error);
  for (int64_t round = 1; more && !status; round++) {
    if (round > 1 && l->settings->collect) status = collect(l, (uint32_t)round, error);
    if (!status) tell(l, "training %lld, on %zu sequences", (long long)round, l->data->train.count);
    if (!status) status = train_model(l, round == 1, error);
    if (!status) status = make_controller(l, error);
    if (!status) more = goes_on(l, round);
  }
  return status ? status : keep_data(l, error);
}

static dvbf_status judge(learning *l, dvbf_error *error) {
  dv_episodes episodes;
  dv_running how = {.settings = l->settings, .interrupt = l->interrupt};
  tell(l, "running %lld closed loops", (long long)l->settings->episodes);
  dvbf_status status = make_controller(l, error);
  if (status) return status;
  dv_pilot pilot = pilot_of(l);
  status = dv_episodes_run(&episodes, (size_t)l->settings->episodes, &l->system, &pilot, &how, error);
  if (status) return status;
  status = dv_loop_score(l->outcome, &episodes, error);
  if (!status && l->asked->folder)
    status = dv_loop_show(&(dv_loop_shown){l->asked, &l->system, l->model, l->truth, l->control, &episodes,
                                           l->outcome, l->goal},
                          error);
  dv_episodes_free(&episodes);
  return status;
}

/* A system of which a goal is known. */
static dvbf_status system_of(dv_system *out, const dvbf_settings *settings, dvbf_error *error) {
  dvbf_system_info info;
  char known[256] = "";
  dvbf_status status = dv_system_of(out, settings, error);
  if (status || out->goal.measure) return status;
  for (size_t i = 0; dvbf_system(i, &info); i++)
    if (info.has_goal)
      snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "", info.name);
  return dv_fail(error, DVBF_ARGUMENT, "%.60s: this system has no goal; those with one are: %s",
                 dv_settings_table_name(settings), known);
}

static dvbf_status prepare_learning(learning *l, dvbf_error *error) {
  l->settings = dv_settings_loop(l->asked->loop, error);
  if (!l->settings) return DVBF_ARGUMENT;
  dvbf_status status = system_of(&l->system, l->asked->system, error);
  if (!status && l->asked->folder) status = dvbf_folder_make(l->asked->folder, error);
  if (!status) status = set_control(l, error);
  if (status) return status;
  l->goal = dv_calloc(dv_system_pixels(&l->system), sizeof *l->goal);
  l->outcome = dv_calloc(1, sizeof *l->outcome);
  if (!l->goal || !l->outcome) return dv_fail_memory(error, "preparing closed loops");
  dv_system_draw(&l->system, l->system.goal.state, l->goal, NULL);
  return DVBF_OK;
}

dvbf_status dvbf_learn_control(dvbf_loop_result **out, const dvbf_loop *asked, dvbf_error *error) {
  learning l = {.asked = asked, .interrupt = asked->train ? dv_settings_interrupt(asked->train) : NULL};
  dvbf_status status = prepare_learning(&l, error);
  if (!status) status = learn(&l, error);
  if (!status) status = judge(&l, error);
  if (status)
    dvbf_loop_result_free(l.outcome);
  else
    *out = l.outcome;
  dvbf_data_free(l.data);
  dvbf_model_free(l.own);
  dvbf_settings_free(l.control);
  DV_FREE(l.truth, l.goal, l.memory);
  return status;
}
