/* The order of training in runs: every sequence once in an epoch, the same for whoever computes which shards
 * and from wherever it goes on, and few frames are read twice. */
#include "base/memory.h"
#include "small_model.h"
#include "train/updater.h"

#include <cmocka.h>

enum {
  WINDOWS = 400,
  FRAMES = 2 * WINDOWS + 6,
  WIDE = 3,
  BATCH = 20,
  ROWS = 8,
  SHARDS = 3,
  EPOCH = WINDOWS / BATCH
};

/* Windows of 8 steps, 2 apart, of a recording that is read as if from a file. */
typedef struct recording {
  dvbf_source source;
  dvbf_sequences windows;
  uint64_t start[WINDOWS];
  size_t read, reads; /* frames, and calls */
  size_t fails_from;  /* frames from here on cannot be read; 0: none */
  dvbf_settings *settings;
} recording;

static float value_at(uint64_t frame, size_t column) {
  return (float)(frame * 10 + column);
}

static bool read_recording(dvbf_source *source, uint64_t first, size_t frames, float *out) {
  recording *r = (recording *)source;
  r->read += frames;
  r->reads++;
  for (size_t i = 0; i < frames * WIDE; i++) out[i] = value_at(first + i / WIDE, i % WIDE);
  return !r->fails_from || first + frames <= r->fails_from;
}

static void open_recording(recording *r, const char *settings) {
  *r = (recording){.source = {.read = read_recording}};
  r->windows = (dvbf_sequences){.count = WINDOWS, .steps = 8, .n_x = WIDE, .source = &r->source};
  r->windows.start = r->start;
  for (size_t i = 0; i < WINDOWS; i++) r->start[i] = 2 * ((i * 7) % WINDOWS); /* as after a split by seed */
  r->settings = make_settings(settings);
}

static dv_order *order_of(recording *r, int from, int until) {
  dv_order *order = NULL;
  const dv_train_settings *s = dv_settings_train(r->settings, NULL);
  assert_int_equal(dv_order_new(&order, &r->windows, s, ROWS, from, until, NULL), DVBF_OK);
  return order;
}

static int rows_of(int shard) {
  return shard + 1 < SHARDS ? ROWS : BATCH - ROWS * (SHARDS - 1);
}

/* Reads the rows of a shard and counts them. */
static void use(recording *r, dv_order *o, int shard, int *seen) {
  float buffer[8 * WIDE];
  const uint32_t *index = dv_order_shard(o, shard);
  const dvbf_sequences *s = dv_order_sequences(o, shard);
  for (int i = 0; i < rows_of(shard); i++) {
    const float *x = dv_sequence_x(s, index[i], 0, 8, buffer);
    for (size_t k = 0; k < sizeof buffer / sizeof *buffer; k++)
      assert_true(x[k] == value_at(r->start[index[i]] + k / WIDE, k % WIDE));
    seen[index[i]]++;
  }
}

static size_t frames_of_epochs(const char *settings, int epochs) {
  recording r;
  int seen[WINDOWS] = {0};
  open_recording(&r, settings);
  dv_order *o = order_of(&r, 0, SHARDS);
  unsigned long made = dv_allocations();
  for (int u = 0; u < epochs * EPOCH; u++) {
    dv_order_draw(o, 5, (uint64_t)u);
    for (int s = 0; s < SHARDS; s++) use(&r, o, s, seen);
    for (int i = 0; (u + 1) % EPOCH == 0 && i < WINDOWS; i++) assert_int_equal(seen[i], (u + 1) / EPOCH);
  }
  assert_int_equal(dv_allocations(), made);
  dv_order_free(o);
  dvbf_settings_free(r.settings);
  return r.read;
}

static void runs_are_read_once(void **state) {
  (void)state;
  size_t each = frames_of_epochs("read-run=1", 3), runs = frames_of_epochs("read-run=6", 3);
  assert_int_equal(each, 3 * WINDOWS * 8);
  /* 6 windows are 18 frames, of which each would be read for itself 48 times. */
  assert_in_range(runs, 3 * FRAMES, 3 * (WINDOWS / 6 + SHARDS) * 18 * 11 / 10);
  assert_int_equal(frames_of_epochs("read-run=0", 3), each); /* small data */
}

static void shards_do_not_depend_on_others(void **state) {
  (void)state;
  recording r;
  open_recording(&r, "read-run=6");
  dv_order *all = order_of(&r, 0, SHARDS), *one = order_of(&r, 1, 2), *late = order_of(&r, 0, SHARDS);
  for (uint64_t u = 0; u < 3 * EPOCH; u++) {
    dv_order_draw(all, 9, u);
    dv_order_draw(one, 9, u);
    assert_memory_equal(dv_order_shard(all, 1), dv_order_shard(one, 1), ROWS * sizeof(uint32_t));
  }
  dv_order_draw(late, 4, 77); /* another seed, and a later place */
  dv_order_draw(late, 9, 3 * EPOCH - 1);
  for (int s = 0; s < SHARDS; s++)
    assert_memory_equal(dv_order_shard(all, s), dv_order_shard(late, s), ROWS * sizeof(uint32_t));
  dv_order_draw(one, 10, 3 * EPOCH - 1);
  assert_memory_not_equal(dv_order_shard(all, 1), dv_order_shard(one, 1), ROWS * sizeof(uint32_t));
  dv_order_free(all);
  dv_order_free(one);
  dv_order_free(late);
  dvbf_settings_free(r.settings);
}

/* By size alone, so that the order does not depend on where data are or on memory. */
static void large_data_are_in_runs(void **state) {
  (void)state;
  uint64_t usual = dv_large;
  dv_large = FRAMES * WIDE - 20;
  size_t runs = frames_of_epochs("read-run=0", 2);
  dv_large = usual;
  assert_in_range(runs, 1, 2 * WINDOWS * 8 / 2);
}

static void what_cannot_be_read_is_told(void **state) {
  (void)state;
  recording r;
  open_recording(&r, "read-run=6");
  dv_order *o = order_of(&r, 0, SHARDS);
  float buffer[8 * WIDE];
  r.fails_from = 300;
  for (uint64_t u = 0; u < EPOCH; u++) {
    dv_order_draw(o, 5, u);
    for (int s = 0; s < SHARDS; s++)
      for (int i = 0; i < rows_of(s); i++)
        dv_sequence_x(dv_order_sequences(o, s), dv_order_shard(o, s)[i], 0, 8, buffer);
  }
  assert_int_equal(dv_sequences_intact(&r.windows, NULL), DVBF_IO);
  dv_order_free(o);
  dvbf_settings_free(r.settings);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_are_read_once),
      cmocka_unit_test(shards_do_not_depend_on_others),
      cmocka_unit_test(large_data_are_in_runs),
      cmocka_unit_test(what_cannot_be_read_is_told),
  };
  return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
