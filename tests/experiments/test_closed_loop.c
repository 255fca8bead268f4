/* Closed loops from data to page, on a model of a moment's training. That control works is measured
 * (docs/control.md); here it is that everything is done, that limits hold, and that it is the same again. */
#include "base/file.h"
#include "experiments/closed_loop.h"
#include "given.h"

#include <dvbf/report.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct asked {
  dvbf_loop loop;
  dvbf_settings *settings[4];
} asked;

static asked ask(const char *system, const char *physics, const char *loop, const char *folder) {
  asked a = {.settings = {settings_of(system, physics),
                          settings_of("train", "updates=20 hidden=8 systems=2 search=off starts=1 threads=1 "
                                               "gain-updates=0"),
                          settings_of("control", "plan=5 random-plans=8"), settings_of("loop", loop)}};
  a.loop = (dvbf_loop){.system = a.settings[0],
                       .train = a.settings[1],
                       .control = a.settings[2],
                       .loop = a.settings[3],
                       .folder = folder,
                       .force = true};
  return a;
}

static void forget(asked *a) {
  for (int i = 0; i < 4; i++) dvbf_settings_free(a->settings[i]);
}

static const char small[] = "train=20 valid=10 test=10 steps=8 size=8";

static void everything_is_written_and_the_same_again(void **state) {
  (void)state;
  char folder[] = "/tmp/dvbf-loop-XXXXXX";
  static const char *const files[] = {"control.json", "control.html",      "control.png", "control.svg",
                                      "control.apng", "model.safetensors", "settings.txt"};
  assert_non_null(mkdtemp(folder));
  asked a = ask("pendulum", small, "trainings=2 collect=3 horizon=20 episodes=3 dropout=0.2 push=1", folder);
  dvbf_loop_result *first = NULL, *second = NULL;
  dvbf_error error;
  if (dvbf_learn_control(&first, &a.loop, &error)) fail_msg("%s", error.message);
  assert_int_equal(first->episodes, 3);
  assert_int_equal(first->steps, 20);
  assert_int_equal(first->sequences, 20 + 3 * (20 / 8));
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    dv_path path;
    dv_join(path, folder, files[i]);
    if (!dv_exists(path)) fail_msg("%s is missing", path);
  }
  a.loop.folder = NULL;
  if (dvbf_learn_control(&second, &a.loop, &error)) fail_msg("%s", error.message);
  assert_memory_equal(first->value_of, second->value_of, 3 * sizeof(double));
  assert_true(first->value < 0 && isfinite(first->value) && first->median > 0 &&
              first->late >= first->median);
  dvbf_loop_result_free(first);
  dvbf_loop_result_free(second);
  forget(&a);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    dv_path path;
    dv_join(path, folder, files[i]);
    unlink(path);
  }
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
}

static bool stop_at_once(const dvbf_progress *progress, void *user_data) {
  (void)progress;
  (void)user_data;
  return false;
}

/* What was stopped in training is not judged. */
static void a_stop_is_the_end(void **state) {
  (void)state;
  dvbf_loop_result *outcome = NULL;
  dvbf_error error;
  volatile int flag = 1;
  asked a = ask("pendulum", small, "horizon=12 episodes=2", NULL);
  a.loop.progress = stop_at_once;
  assert_int_equal(dvbf_learn_control(&outcome, &a.loop, &error), DVBF_STOPPED);
  assert_non_null(strstr(error.message, "stopped in training"));
  assert_null(outcome);
  a.loop.progress = NULL;
  dvbf_settings_interrupt(a.settings[1], &flag);
  assert_int_equal(dvbf_learn_control(&outcome, &a.loop, &error), DVBF_STOPPED);
  assert_null(outcome);
  forget(&a);
}

static void other_systems_and_wrong_ones(void **state) {
  (void)state;
  dvbf_loop_result *outcome = NULL;
  dvbf_error error;
  static const char *const others[] = {"cart-pole", "arm", "planar"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    asked b = ask(others[i], small, "horizon=12 episodes=2 max-trainings=1 push=1", NULL);
    if (dvbf_learn_control(&outcome, &b.loop, &error)) fail_msg("%s: %s", others[i], error.message);
    assert_int_equal(outcome->episodes, 2);
    dvbf_loop_result_free(outcome);
    forget(&b);
  }
  asked a = ask("ball", small, "", NULL);
  assert_int_equal(dvbf_learn_control(&outcome, &a.loop, &error), DVBF_ARGUMENT);
  assert_non_null(
      strstr(error.message, "this system has no goal; those with one are: pendulum, cart-pole, arm, planar"));
  forget(&a);
  a = ask("pendulum", small, "trainings=2 horizon=5", NULL);
  assert_int_equal(dvbf_learn_control(&outcome, &a.loop, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "shorter"));
  forget(&a);
  a = ask("planar", "size=8 near=0.5", "", NULL);
  assert_int_equal(dvbf_learn_control(&outcome, &a.loop, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "near = 0.5"));
  forget(&a);
}

static void keep_sentence(const char *sentence, void *user_data) {
  strncat(user_data, sentence, 2000 - strlen(user_data) - 1);
}

/* Limits of a millionth of a control hold nothing, so all trainings that are allowed are made. */
static void models_that_cannot_hold_are_trained_again(void **state) {
  (void)state;
  for (int weak = 0; weak < 2; weak++) {
    dvbf_loop_result *outcome = NULL;
    dvbf_error error;
    char told[2000] = "";
    asked a = ask("pendulum", small, "collect=2 horizon=16 episodes=1 max-trainings=2", NULL);
    a.loop.tell = keep_sentence;
    a.loop.user_data = told;
    const char *limit = weak ? "1e-6" : "1e6", *below = weak ? "-1e-6" : "-1e6";
    assert_int_equal(dvbf_settings_set(a.settings[2], "low", below, &error), DVBF_OK);
    assert_int_equal(dvbf_settings_set(a.settings[2], "high", limit, &error), DVBF_OK);
    if (dvbf_learn_control(&outcome, &a.loop, &error)) fail_msg("%s", error.message);
    assert_int_equal(outcome->sequences, weak ? 20 + 2 * (16 / 8) : 20);
    assert_true((strstr(told, "does not hold the goal") != NULL) == (weak != 0));
    dvbf_loop_result_free(outcome);
    forget(&a);
  }
}

static dvbf_loop_result *on_true_state(const char *system, const char *physics, const char *loop,
                                       const char *folder) {
  dvbf_loop_result *outcome = NULL;
  dvbf_error error;
  char text[256];
  snprintf(text, sizeof text, "true-state=on episodes=2 %s", loop);
  asked a = ask(system, physics, text, folder);
  assert_int_equal(dvbf_settings_set(a.settings[2], "plan", "20", &error), DVBF_OK);
  assert_int_equal(dvbf_settings_set(a.settings[2], "random-plans", "32", &error), DVBF_OK);
  if (dvbf_learn_control(&outcome, &a.loop, &error)) fail_msg("%s: %s", loop, error.message);
  assert_int_equal(outcome->sequences, 0);
  forget(&a);
  return outcome;
}

/* Nothing is learned, so that these closed loops must work. A delay that the controller knows costs little,
 * one that it does not know makes it fall. */
static void the_true_state_brings_it_up(void **state) {
  (void)state;
  static const struct {
    const char *system, *physics, *loop;
    size_t held;
  } cases[] = {
      {"pendulum", "size=8 torque=5", "horizon=120", 2},
      {"pendulum", "size=8 torque=5", "horizon=120 dropout=0.3 loop-seed=3", 2},
      {"pendulum", "size=8 torque=5", "horizon=120 frame-delay=1 control-delay=2", 2},
      {"pendulum", "size=8 torque=5", "horizon=120 frame-delay=1 control-delay=2 known-delay=off", 0},
      {"pendulum", "size=8 torque=5 noise=0.1 disturbance=0.1", "horizon=120 push=2", 2},
      {"cart-pole", "size=8 near=0.2", "horizon=60 first-angle=0.1 first-range=0.05", 2},
      {"arm", "size=8", "horizon=80", 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dvbf_loop_result *o = on_true_state(cases[i].system, cases[i].physics, cases[i].loop, NULL);
    size_t held = strstr(cases[i].loop, "push") ? o->recovered : o->held;
    if (held != cases[i].held)
      fail_msg("%s, %s: %zu closed loops hold, and not %zu", cases[i].system, cases[i].loop, held,
               cases[i].held);
    dvbf_loop_result_free(o);
  }
}

/* Two closed loops of eight steps, whose angles are known. */
static void judgements_are_those_of_the_angles(void **state) {
  (void)state;
  float angle[16] = {3, 2, 1, 0.4F, 0.3F, 0.2F, 0.1F, 0, 3, 0.1F, 3, 0.1F, 2, 2, 0.1F, -0.1F};
  float speed[16] = {0}, u[16] = {0};
  double time[16];
  for (int i = 0; i < 16; i++) time[i] = i;
  speed[1] = 2;
  u[2] = 10;
  dv_episodes e = {.count = 2,
                   .steps = 8,
                   .n_u = 1,
                   .region = 0.5,
                   .distance = angle,
                   .speed = speed,
                   .u = u,
                   .time = time};
  dvbf_loop_result *o = calloc(1, sizeof *o);
  dvbf_error error;
  assert_int_equal(dv_loop_score(o, &e, &error), DVBF_OK);
  assert_true(fabs(o->share - (5 + 4) / 16.0) < 1e-12);
  assert_int_equal(o->reached, 2);
  assert_int_equal(o->held, 1);
  assert_int_equal(o->recovered, 2);
  assert_true(fabs(o->value_of[0] + 9 + 4 + 1 + 0.16 + 0.09 + 0.04 + 0.01 + 0.1 * 4 + 0.001 * 100) < 1e-6);
  assert_true(o->median == 8 && o->late == 14);
  dvbf_loop_result_free(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everything_is_written_and_the_same_again),
      cmocka_unit_test(a_stop_is_the_end),
      cmocka_unit_test(other_systems_and_wrong_ones),
      cmocka_unit_test(models_that_cannot_hold_are_trained_again),
      cmocka_unit_test(the_true_state_brings_it_up),
      cmocka_unit_test(judgements_are_those_of_the_angles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
