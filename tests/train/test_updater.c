/* Updates and passes: they allocate nothing, do not depend on threads, and go on from a snapshot. */
#include "base/memory.h"
#include "small_model.h"
#include "train/trainer.h"
#include "variants.h"

#include <math.h>

#include <cmocka.h>

static void loops_do_not_allocate(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  unsigned long before = dv_allocations();
  dv_threads *pool = new_pool(2);
  dv_updater *updater = NULL;
  dv_validator validator;
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, false, NULL), DVBF_OK);
  assert_int_equal(dv_validator_init(&validator, f.model, pool, &f.sequences, 0, NULL), DVBF_OK);
  void *snapshot = malloc(dv_updater_snapshot_size(updater));
  unsigned long ready = dv_allocations();
  assert_true(ready > before);                       /* the counter counts */
  assert_int_equal(dv_updater_run(updater, 25), 25); /* into the fifth epoch */
  dv_scores scores;
  assert_int_equal(dv_validator_run(&scores, &validator, -2, NULL), DVBF_OK);
  dv_updater_save(updater, snapshot);
  dv_updater_restore(updater, snapshot);
  assert_int_equal(dv_updater_run(updater, 3), 3);
  assert_int_equal(dv_allocations(), ready);
  assert_true(isfinite(scores.bound) && isfinite(scores.prediction));
  assert_true(isfinite(dv_updater_bound(updater)));
  free(snapshot);
  dv_validator_clear(&validator);
  dv_updater_free(updater);
  dv_threads_free(pool);
  end(&f);
}

static unsigned long allocations_of_evaluation(fixture *f, const char *samples) {
  dvbf_data data = {.test = f->sequences};
  dvbf_settings *settings = NULL;
  dvbf_evaluation *e = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "evaluate", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "samples", samples, NULL), DVBF_OK);
  unsigned long before = dv_allocations();
  assert_int_equal(dvbf_evaluate(&e, f->model, &data, &data.test, settings, NULL), DVBF_OK);
  unsigned long made = dv_allocations() - before;
  dvbf_evaluation_free(e);
  dvbf_settings_free(settings);
  return made;
}

/* One pass serves all samples. */
static void samples_of_an_evaluation_do_not_allocate(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  assert_int_equal(allocations_of_evaluation(&f, "9"), allocations_of_evaluation(&f, "1"));
  end(&f);
}

/* ---- Threads ---- */

static void expect_same_for_all_threads(const char *settings) {
  fixture f;
  dvbf_real *first = NULL;
  begin(&f, settings);
  dv_paths *paths = infer(f.model, &f.sequences, 1, 5);
  for (unsigned threads = 2; threads <= 5; threads++)
    expect_same_paths(paths, infer(f.model, &f.sequences, threads, 5));
  dv_paths_free(paths);
  end(&f);
  for (unsigned threads = 1; threads <= 5; threads += 2) {
    begin(&f, settings);
    dvbf_real *values = trained(&f, threads, 5);
    if (first) assert_memory_equal(first, values, f.model->parameters.size * sizeof *values);
    if (first) free(values);
    if (!first) first = values;
    end(&f);
  }
  free(first);
}

static void threads_do_not_change_results(void **state) {
  (void)state;
  for (const variant *v = NULL; (v = next_variant(v, THREADS));) expect_same_for_all_threads(v->settings);
}

/* Layers large enough for the tile units. */
#define LARGE "initial=birnn initial-frames=0 hidden=64 batch-size=240 shard-size=60 products="

static void threads_do_not_change_tiles(void **state) {
  (void)state;
  static const char *const settings[] = {LARGE "bfloat16x3", LARGE "bfloat16"};
  const dv_products *product;
  dvbf_error error;
  if (dv_products_choose(&product, DV_BFLOAT16X3, &error)) {
    print_message("not tested: %s\n", error.message);
    skip();
  }
  fixture f;
  for (int i = 0; i < 2; i++) {
    begin(&f, LARGE "float");
    size_t size = f.model->parameters.size * sizeof(dvbf_real);
    dvbf_real *plain = trained(&f, 2, 3), *first = NULL;
    end(&f);
    for (unsigned threads = 1; threads <= 4; threads++) {
      begin(&f, settings[i]);
      dvbf_real *values = trained(&f, threads, 3);
      end(&f);
      if (first) assert_memory_equal(first, values, size);
      if (first) free(values);
      if (!first) first = values;
    }
    assert_memory_not_equal(plain, first, size); /* the tile units were at work */
    free(plain);
    free(first);
  }
}

/* As on a machine without tile units: the value, what is missing and the remedy. Evaluation does not mind. */
static void missing_tiles_are_refused(void **state) {
  (void)state;
  fixture f;
  dvbf_error error = {0};
  dv_threads *pool = new_pool(1);
  dv_updater *updater = NULL;
  begin(&f, "products=bfloat16x3");
  setenv("DVBF_ISA", "base", 1);
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, false, &error), DVBF_ARGUMENT);
  dv_paths_free(infer(f.model, &f.sequences, 1, 5));
  unsetenv("DVBF_ISA");
  assert_non_null(strstr(error.message, "products = bfloat16x3: "));
  assert_non_null(strstr(error.message, "; use products = float"));
  dv_threads_free(pool);
  end(&f);
}

/* ---- Snapshots and starts ---- */

static void snapshots_continue_the_same(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dv_threads *pool = new_pool(2);
  dv_updater *updater = NULL;
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, false, NULL), DVBF_OK);
  size_t size = dv_updater_snapshot_size(updater);
  unsigned char *middle = malloc(size), *once = malloc(size), *again = malloc(size);
  dv_updater_run(updater, 5);
  dv_updater_save(updater, middle);
  dv_updater_run(updater, 9); /* past the end of an epoch, which is after 6 */
  dv_updater_save(updater, once);
  assert_memory_not_equal(middle, once, size);
  dv_updater_restore(updater, middle);
  assert_int_equal(dv_updater_updates(updater), 5);
  dv_updater_run(updater, 4); /* the same in other portions */
  dv_updater_run(updater, 5);
  dv_updater_save(updater, again);
  assert_memory_equal(once, again, size);
  free(middle);
  free(once);
  free(again);
  dv_updater_free(updater);
  dv_threads_free(pool);
  end(&f);
}

/* Another start has another order, also when the last one ended in the same epoch: it ends as in an updater
 * that has seen no other. The same holds for the way back to a snapshot of another start. */
static void starts_do_not_mix(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dv_threads *pool = new_pool(1);
  dv_updater *used = NULL, *fresh = NULL;
  assert_int_equal(dv_updater_new(&used, f.model, pool, &f.sequences, false, NULL), DVBF_OK);
  assert_int_equal(dv_updater_new(&fresh, f.model, pool, &f.sequences, false, NULL), DVBF_OK);
  size_t size = dv_updater_snapshot_size(used);
  unsigned char *zero = malloc(size), *a = malloc(size), *b = malloc(size);
  dv_updater_save(used, zero);
  dv_updater_run(used, 2);
  dv_updater_restore(used, zero);
  dv_updater_reset(used, 8);
  dv_updater_run(used, 3);
  dv_updater_save(used, a);
  dv_updater_restore(fresh, zero);
  dv_updater_reset(fresh, 8);
  dv_updater_run(fresh, 3);
  dv_updater_save(fresh, b);
  assert_memory_equal(a, b, size);
  dv_updater_run(fresh, 2);
  dv_updater_save(fresh, b);
  dv_updater_restore(used, zero);
  dv_updater_run(used, 2);
  dv_updater_restore(used, a);
  dv_updater_run(used, 2);
  dv_updater_save(used, a);
  assert_memory_equal(a, b, size);
  free(zero);
  free(a);
  free(b);
  dv_updater_free(used);
  dv_updater_free(fresh);
  dv_threads_free(pool);
  end(&f);
}

/* ---- Divergence and clipping ---- */

/* A gradient that is not finite stops the run and leaves the parameters alone. */
static void divergence_is_noticed(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dv_threads *pool = new_pool(2);
  dv_updater *updater = NULL;
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, false, NULL), DVBF_OK);
  size_t bytes_of_all = f.model->parameters.size * sizeof(dvbf_real);
  dvbf_real *before = malloc(bytes_of_all),
            *bad = &f.model->parameters.values[f.model->parameters.list[0].offset];
  *bad = NAN;
  memcpy(before, f.model->parameters.values, bytes_of_all);
  assert_int_equal(dv_updater_run(updater, 4), 0);
  assert_int_equal(dv_updater_updates(updater), 0);
  assert_memory_equal(before, f.model->parameters.values, bytes_of_all);
  *bad = 0;
  assert_int_equal(dv_updater_run(updater, 4), 4);
  free(before);
  dv_updater_free(updater);
  dv_threads_free(pool);
  end(&f);
}

/* Whether training with `settings` gives other parameters than without any limit on the gradient. */
static bool clips(const char *settings, uint64_t updates) {
  fixture limited, free_one;
  begin(&limited, settings);
  begin(&free_one, "clip-spike=0");
  size_t size = limited.model->parameters.size * sizeof(dvbf_real);
  dvbf_real *a = trained(&limited, 2, updates), *b = trained(&free_one, 2, updates);
  bool differ = memcmp(a, b, size) != 0;
  free(a);
  free(b);
  end(&limited);
  end(&free_one);
  return differ;
}

/* A spike is judged by the updates before it: the first is never one, and a high multiple never clips. */
static void long_gradients_are_clipped(void **state) {
  (void)state;
  assert_false(clips("clip-spike=1000000", 20));
  assert_false(clips("clip-spike=0.5", 1));
  assert_true(clips("clip-spike=0.5", 3));
  assert_true(clips("clip-spike=0 clip-norm=0.001", 2));
}

/* What is not trained keeps its bytes, whatever the number of threads. */
static void parts_are_trained_alone(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  size_t size = f.model->parameters.size, bytes = size * sizeof(dvbf_real);
  size_t late = f.model->parameters.list[f.model->parameters.count - 2].offset;
  dv_span spans[] = {{3, 5}, {100, 1}, {late, 2}}; /* of several blocks, or parts of one */
  dv_part part = {spans, 3};
  dvbf_real *first = malloc(bytes), *once = malloc(bytes);
  assert_true(first && once);
  memcpy(first, f.model->parameters.values, bytes);
  for (unsigned threads = 1; threads < 4; threads++) {
    dv_threads *pool = new_pool(threads);
    dv_updater *updater = NULL;
    memcpy(f.model->parameters.values, first, bytes);
    assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, false, NULL), DVBF_OK);
    dv_updater_train_only(updater, &part);
    assert_int_equal(dv_updater_run(updater, 6), 6);
    for (size_t i = 0; i < size; i++) {
      bool inside = (i >= 3 && i < 8) || i == 100 || (i >= late && i < late + 2);
      assert_int_equal(f.model->parameters.values[i] == first[i], !inside);
    }
    if (threads == 1) memcpy(once, f.model->parameters.values, bytes);
    assert_memory_equal(f.model->parameters.values, once, bytes);
    dv_updater_free(updater);
    dv_threads_free(pool);
  }
  free(first);
  free(once);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_trained_alone),
      cmocka_unit_test(loops_do_not_allocate),
      cmocka_unit_test(samples_of_an_evaluation_do_not_allocate),
      cmocka_unit_test(threads_do_not_change_results),
      cmocka_unit_test(threads_do_not_change_tiles),
      cmocka_unit_test(missing_tiles_are_refused),
      cmocka_unit_test(snapshots_continue_the_same),
      cmocka_unit_test(starts_do_not_mix),
      cmocka_unit_test(divergence_is_noticed),
      cmocka_unit_test(long_gradients_are_clipped),
  };
  return cmocka_run_group_tests_name("updater", tests, NULL, NULL);
}
