/* Exported controllers against the library's own, in closed loops of models of several kinds. */
#include "exported.h"
#include "part.h"

#include <dvbf/control.h>

#include <cmocka.h>

typedef struct trial {
  const char *variant, *control, *settings;
  enum { BY_X, BY_STATE, TWO_GOALS } goal;
} trial;

static const trial trials[] = {
    {"locally_linear", "plan=8", "samples=0", BY_X},
    {"locally_linear", "plan=6 random-plans=0 change-weight=0.3 discount=0.9 safe=hold", "samples=0 libm=off",
     TWO_GOALS},
    {"network", "plan=7 random-plans=16 terminal=weight rest=0.2 max-missing=0",
     "samples=0 libm=off real=double", BY_X},
    {"network_plain", "plan=6 goal-space=x random-plans=8 rounds=2", "samples=0", TWO_GOALS},
    {"kalman_limits", "plan=6 planner=sampling random-plans=20 rounds=3 low=-1e999 high=1e999", "samples=0",
     BY_X},
    {"contracted", "plan=9 goal-space=state terminal=none seed=9007199254740991", "samples=0 weights=int8",
     BY_STATE},
};

static dvbf_settings *control_settings(const char *text) {
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "control", NULL), DVBF_OK);
  set_all(settings, "low=-0.7,-0.4 high=0.5,0.4");
  set_all(settings, text);
  return settings;
}

/* Goals for up to 8 columns of x, or of a state of two columns. */
static dvbf_goal goal_of(const trial *t) {
  static const float x[16] = {0.4F, 0.5F, 0.6F, 0.5F, 0.4F, 0.7F, 0.3F, 0.5F, 0.6F, 0.4F},
                     state[2] = {0.2F, -0.1F}, map[8] = {1, 0.5F, 0, 0.1F, 0, -1, 0.3F, 0},
                     weights[2] = {1, 2};
  if (t->goal != BY_STATE) return (dvbf_goal){.count = t->goal == TWO_GOALS ? 2 : 1, .x = x};
  return (dvbf_goal){.count = 1, .n_s = 2, .state = state, .map = map, .weights = weights};
}

static dvbf_status export_controller(const dvbf_model *model, const trial *t, bool force, dvbf_error *error) {
  dvbf_settings *how = export_settings(t->settings), *control = control_settings(t->control);
  dvbf_goal goal = goal_of(t);
  dvbf_export_options options = {.force = force, .goal = &goal, .control = control};
  if (model->n_u == 1 && !strstr(t->control, "low=")) set_all(control, "low=-0.7 high=0.5");
  dvbf_status status = dvbf_export(in_folder("robot.c"), model, how, &options, NULL, error);
  dvbf_settings_free(control);
  dvbf_settings_free(how);
  return status;
}

/* The test that comes with it, compiled strictly; -1e-9 as the tolerance must fail, so it compares. */
static void controls_agree(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof trials / sizeof *trials; i += PART) {
    dvbf_error error;
    dvbf_model *model = make_variant(variant_named(trials[i].variant));
    if (export_controller(model, &trials[i], false, &error))
      fail_msg("%s: %s", trials[i].variant, error.message);
    run_or_fail("cd %s && gcc -O0 -fsanitize=address,undefined -fno-sanitize-recover=all " STRICT
                " robot.c robot_control.c robot_control_test.c -o robot -lm && ./robot > log || { head -5 "
                "log; false; }",
                folder);
    if (!i)
      run_or_fail("cd %s && gcc -DTOLERANCE=-1e-9 robot.c robot_control.c robot_control_test.c -o robot -lm "
                  "&& ! ./robot "
                  "> log",
                  folder);
    if (have("clang") && i == 3)
      run_or_fail("cd %s && clang -O1 " STRICT " robot.c robot_control.c robot_control_test.c -o robot -lm "
                  "&& ./robot > log || { head -5 log; false; }",
                  folder);
    dvbf_model_free(model);
    clear_folder();
  }
}

/* No call of an allocator, and with libm = off none of the mathematical library. */
static void it_needs_nothing(void **state) {
  (void)state;
  dvbf_error error;
  dvbf_model *model = make_variant(variant_named("locally_linear"));
  if (export_controller(model, &trials[1], false, &error)) fail_msg("%s", error.message);
  run_or_fail(
      "cd %s && gcc -O2 -std=c99 -c robot_control.c && nm -u robot_control.o > log && ! grep -v -w -E "
      "'robot_(reset|step|transition|observe)|mem(cpy|set|move)|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail' log",
      folder);
  if (dvbf_export_check(in_folder("robot.c"), &error)) fail_msg("%s", error.message);
  run_or_fail("cd %s && sed -i 's/0.5 . best/5 * best/' robot_control.c", folder);
  assert_int_equal(dvbf_export_check(in_folder("robot.c"), &error), DVBF_NUMERIC);
  assert_non_null(strstr(error.message, "robot_control.c"));
  dvbf_model_free(model);
  clear_folder();
}

static void refused(const dvbf_model *model, const char *control, const char *settings, const char *words) {
  dvbf_error error = {0};
  trial t = {"", control, settings, BY_X};
  assert_int_not_equal(export_controller(model, &t, false, &error), DVBF_OK);
  if (!strstr(error.message, words)) fail_msg("%s", error.message);
}

static void what_cannot_be_written_is_refused(void **state) {
  (void)state;
  dvbf_error error;
  dvbf_model *model = make_variant(variant_named("locally_linear"));
  refused(model, "deadline=100", "", "clock");
  refused(model, "samples=4", "", "without samples");
  refused(model, "risk=1", "", "without noise");
  refused(model, "low=1,1 high=0,0", "", "swap or correct");
  assert_int_equal(export_controller(model, &trials[0], false, &error), DVBF_OK);
  run_or_fail("cd %s && rm robot.c robot.h robot_test.c && cp robot_control.c kept", folder);
  assert_int_not_equal(export_controller(model, &trials[1], false, &error), DVBF_OK);
  run_or_fail("cd %s && cmp robot_control.c kept && test ! -e robot.c", folder);
  assert_int_equal(export_controller(model, &trials[0], true, &error), DVBF_OK);
  run_or_fail("cd %s && cmp robot_control.c kept", folder);
  assert_int_equal(dv_model_add_member(model, make_variant(variant_named("linear_transition")), NULL),
                   DVBF_OK);
  refused(model, "", "", "member = 1");
  dvbf_model_free(model);
  clear_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(controls_agree),
      cmocka_unit_test(it_needs_nothing),
      cmocka_unit_test(what_cannot_be_written_is_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
