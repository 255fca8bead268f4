/* The search: the same bytes on any number of threads and after any stop, and what it leaves behind. */
#include "data/dataset.h"
#include "files.h"
#include "math/random.h"
#include "model/model.h"
#include "train/search.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STEPS = 60 };
static dvbf_data data;

/* The response to the size of a random input, of which no linear model knows anything. */
static int begin(void **state) {
  dvbf_sequences *s = &data.train;
  if (make_folder(state)) return -1;
  *s = (dvbf_sequences){.count = 2, .steps = STEPS, .n_x = 1, .n_u = 1};
  if (dv_sequences_allocate(s, false, NULL)) return -1;
  for (uint32_t i = 0; i < 2; i++) {
    dv_random random = dv_random_at(3, DV_STREAM_SIMULATION, i, 0);
    double x = 0;
    for (size_t t = i * STEPS; t < (i + 1) * STEPS; t++) {
      s->x[t] = (float)(x + 0.01 * dv_random_normal(&random));
      s->u[t] = (float)dv_random_normal(&random);
      x = fabs((double)s->u[t]);
    }
  }
  return 0;
}

static int end(void **state) {
  dvbf_sequences_free(&data.train);
  static const char *const runs[] = {"one", "two", "stopped", "single", "linear", "wild"};
  for (int i = 0; i < 6; i++) dv_search_folder_remove(in_folder(runs[i]), NULL);
  return remove_folder(state);
}

static dvbf_settings *settings_of(const char *text) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  char line[512], *rest = line;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  snprintf(line, sizeof line,
           "search=on candidates=5 members=2 updates=400 validate-every=100 hidden=8 latent=2 systems=4 "
           "mixing-hidden=8 scale-transition=0.5 window=20 "
           "batch-size=4 gain-updates=40 learning-rate=0.02 initial-frames=3 "
           "x-scaling=standardise %s",
           text);
  for (char *word; (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value++ = 0;
    if (dvbf_settings_set(settings, word, value, &error)) fail_msg("%s", error.message);
  }
  if (dvbf_settings_choose(settings, &data, NULL, NULL, &error)) fail_msg("%s", error.message);
  return settings;
}

/* Counts reports and stops at one of them. */
typedef struct follower {
  int seen, stop; /* 0: never */
  uint64_t updates;
} follower;

static bool follow(const dvbf_progress *p, void *user) {
  follower *f = user;
  assert_true(p->update <= p->updates);
  f->updates = p->update;
  return ++f->seen != f->stop;
}

static dvbf_model *search(const char *run, const char *text, bool resume, follower *f) {
  dvbf_settings *settings = settings_of(text);
  dvbf_train_options how = {
      .progress = follow, .user_data = f, .folder = run ? in_folder(run) : NULL, .resume = resume};
  dvbf_model *m = NULL;
  dvbf_error error;
  if (dvbf_train(&m, settings, &data, &how, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return m;
}

static void expect_same_runs(const char *one, const char *other) {
  static const char *const names[] = {DVBF_RUN_MODEL, DVBF_RUN_SEARCH};
  for (int i = 0; i < 2; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s", in_run(one, names[i]));
    if (!same_bytes(path, in_run(other, names[i]))) fail_msg("%s of %s and %s differ", names[i], one, other);
  }
}

static void threads_do_not_matter(void **state) {
  (void)state;
  follower f = {0};
  dvbf_model *one = search("one", "threads=1", false, &f), *two = search("two", "threads=2", false, &f);
  assert_int_equal(f.updates, 5 * 100 + 2 * 340 + 2 * 440 + 1); /* halving: two of five go on, and are trained
                                                                   on all data; and a fit */
  expect_same_runs("one", "two");
  assert_int_equal(dv_model_members(one), 2);
  assert_non_null(one->linear);
  dv_candidates all = {0};
  assert_int_equal(dv_candidates_read(&all, in_run("one", DVBF_RUN_SEARCH), NULL), DVBF_OK);
  assert_int_equal(all.count, 9); /* with one that is fitted, two finals and the linear model */
  int kept = 0, finished = 0;
  for (size_t i = 0; i < all.count; i++) {
    kept += all.list[i].rank > 0;
    finished += all.list[i].updates == 440;
    assert_true(all.list[i].updates == all.list[i].target);
  }
  assert_int_equal(kept, dv_model_members(one));
  assert_int_equal(finished, 4);
  dv_candidates_free(&all);
  dvbf_model_free(one);
  dvbf_model_free(two);
  assert_int_equal(access(in_run("one", "search"), F_OK), -1); /* candidates' folders are gone */
  assert_int_equal(access(in_run("one", DVBF_RUN_METRICS), F_OK), 0);
}

/* Stopped at every report, and resumed each time. */
static void stops_do_not_matter(void **state) {
  (void)state;
  for (int i = 1;; i++) {
    follower f = {.stop = 1 + i % 3};
    assert_true(i < 200);
    dvbf_model *m = search("stopped", i % 2 ? "threads=1" : "threads=2", true, &f);
    assert_int_equal(dvbf_model_describe(m).n_x, 1);
    dvbf_model_free(m);
    if (access(in_run("stopped", "search"), F_OK)) break;
  }
  expect_same_runs("one", "stopped");
  follower f = {0};
  dvbf_model *again = search("stopped", "", true, &f);
  assert_int_equal(f.seen, 1);
  dvbf_model_free(again);
  expect_same_runs("one", "stopped");
}

/* A search needs no folder, and finds the same without. */
static void no_folder_is_needed(void **state) {
  (void)state;
  follower f = {0};
  dvbf_model *m = search(NULL, "threads=2", false, &f);
  assert_int_equal(dvbf_model_save(m, in_folder("alone"), NULL), DVBF_OK);
  dvbf_model_free(m);
  char path[4096];
  snprintf(path, sizeof path, "%s", in_folder("alone"));
  assert_true(same_bytes(path, in_run("one", DVBF_RUN_MODEL)));
}

static void one_member_is_the_best(void **state) {
  (void)state;
  follower f = {0};
  dvbf_model *m = search("single", "members=1", false, &f);
  assert_int_equal(dv_model_members(m), 1);
  dvbf_model_free(m);
}

/* What the user has given is the same in all candidates; seeds are not. */
static void given_values_stay(void **state) {
  (void)state;
  dv_candidates all = {0};
  dvbf_settings *settings = settings_of("transition=mlp filter-dropout=0.3 filter-dropout-end=0.2 affine=on");
  dv_profile *facts = NULL;
  assert_int_equal(dv_profile_new(&facts, &data, true, NULL, NULL), DVBF_OK);
  assert_int_equal(dv_candidates_make(&all, settings, facts, 4, NULL), DVBF_OK);
  dv_profile_free(facts);
  assert_int_equal(all.count, 6);
  assert_true(dv_candidate_fitted(&all.list[4]));
  for (size_t i = 0; i < 4; i++) {
    dvbf_settings *own = NULL;
    assert_int_equal(dv_candidate_settings(&own, &all.list[i], settings, NULL), DVBF_OK);
    const dv_train_settings *s = dv_settings_train(own, NULL);
    assert_int_equal(s->transition, DV_MLP_TRANSITION);
    assert_int_equal(s->latent, 2);
    assert_true(s->filter_dropout == 0.3);
    assert_false(s->search);
    dvbf_settings_free(own);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(all.list[i].changes, all.list[k].changes);
  }
  dv_candidates_free(&all);
  dvbf_settings_free(settings);
}

/* Windows longer than every sequence make no candidate of their own. */
static void no_candidate_comes_twice(void **state) {
  (void)state;
  dv_candidates all = {0};
  dvbf_settings *settings = NULL;
  dv_profile *facts = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  assert_int_equal(dv_profile_new(&facts, &data, true, NULL, NULL), DVBF_OK);
  assert_int_equal(dv_candidates_make(&all, settings, facts, dv_candidates_lines(), NULL), DVBF_OK);
  dv_profile_free(facts);
  for (size_t i = 0; i < all.count; i++) assert_string_not_equal(all.list[i].name, "long-windows");
  dv_candidates_free(&all);
  dvbf_settings_free(settings);
}

/* On linear data nothing is better than the linear model. Then it is the result, and alone. */
static void the_linear_model_competes(void **state) {
  (void)state;
  follower f = {0};
  for (size_t t = 0; t + 1 < 2 * STEPS; t++)
    if ((t + 1) % STEPS) data.train.x[t + 1] = 0.8f * data.train.x[t] + 0.3f * data.train.u[t];
  dvbf_model *m = search("linear", "", false, &f);
  assert_string_equal(m->type->name, "linear");
  assert_int_equal(dv_model_members(m), 1);
  dvbf_model_free(m);
  m = search("linear", "", true, &f); /* and it is finished */
  assert_string_equal(m->type->name, "linear");
  dvbf_model_free(m);
}

/* Few frames leave doubt about a learned filter, many do not. */
static void doubt_falls_with_frames(void **state) {
  (void)state;
  assert_true(dv_scorer_clearly(0) == 0.5 && dv_scorer_clearly(4000) == 0.5);
  assert_true(dv_scorer_clearly(16000) == 0.75 && dv_scorer_clearly(64000) == 0.875);
  assert_true(dv_scorer_clearly(UINT64_MAX) <= 1);
}

static void damaged_lists_are_refused(void **state) {
  (void)state;
  static const char head[] = "candidate,name,data,target,updates,free_run,one_step,score,rank,settings\n";
  static const char *const rows[] = {"",
                                     "1,a,16,4,1,1,0,0\n",
                                     "2,a,16,4,1,1,0,0,\n",
                                     "1,a,16,4,1,1,0,0,x=1",
                                     "1,a,-16,4,1,1,0,0,\n",
                                     "1,a,16,4,nan,1,0,0,\n",
                                     "1,a,16,4,1,1,0,0,\n1,a,16,4,1,1,0,0,\n"};
  const char *path = in_folder("list.csv");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[512];
    dv_candidates all = {0};
    dvbf_error error = {0};
    int length = snprintf(text, sizeof text, "%s%s", head, rows[i]);
    write_bytes(path, text, (size_t)length);
    assert_int_equal(dv_candidates_read(&all, path, &error), DVBF_FORMAT);
    assert_non_null(strstr(error.message, "start again"));
    dv_candidates_free(&all);
  }
}

/* Candidates that never had a finite model are dropped; the linear one is left, on any number of threads. */
static void diverged_candidates_are_dropped(void **state) {
  (void)state;
  static const char wild[] =
      "learning-rate=1 clip-spike=0 clip-norm=0 decay=none retries=1 "
      "scale-transition=10 scale-innovation=10 contraction=0 state-limit=0 candidates=3";
  follower f = {0};
  dvbf_model *m = search("wild", wild, false, &f);
  dv_candidates all = {0};
  assert_ptr_equal(m->type, &dv_model_linear);
  assert_int_equal(dv_candidates_read(&all, in_run("wild", DVBF_RUN_SEARCH), NULL), DVBF_OK);
  int lost = 0;
  for (size_t i = 0; i + 1 < all.count; i++) lost += !isfinite(all.list[i].score.total);
  assert_true(lost > 0);
  dv_candidates_free(&all);
  dvbf_model_free(m);
}

static void candidates_are_told_in_words(void **state) {
  (void)state;
  dv_candidate list[] = {{.name = "near-identity", .score = {.free_run = 0.2249, .one_step = 1.8}},
                         {.name = "wild", .score = {INFINITY, INFINITY, INFINITY}},
                         {.name = "modes", .score = {.free_run = INFINITY, .one_step = 104}},
                         {.name = "random", .score = {.free_run = 4.79e7, .one_step = NAN}}};
  static const char *const sentences[] = {
      "candidate 1/4 near-identity: free run 0.225, one step 1.8 (linear = 1)",
      "candidate 2/4 wild: diverged", "candidate 3/4 modes: free run diverged, one step 104 (deviation = 1)",
      "candidate 4/4 random: free run over 1000, one step unknown (linear = 1)"};
  dv_candidates all = {list, 4};
  for (size_t i = 0; i < 4; i++) {
    char text[200];
    dv_candidate_sentence(text, sizeof text, &all, i, i != 2);
    assert_string_equal(text, sentences[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_do_not_matter),
      cmocka_unit_test(stops_do_not_matter),
      cmocka_unit_test(no_folder_is_needed),
      cmocka_unit_test(one_member_is_the_best),
      cmocka_unit_test(given_values_stay),
      cmocka_unit_test(the_linear_model_competes),
      cmocka_unit_test(damaged_lists_are_refused),
      cmocka_unit_test(diverged_candidates_are_dropped),
      cmocka_unit_test(doubt_falls_with_frames),
      cmocka_unit_test(no_candidate_comes_twice),
      cmocka_unit_test(candidates_are_told_in_words),
  };
  return cmocka_run_group_tests_name("search", tests, begin, end);
}
