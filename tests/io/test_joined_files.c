/* Several files are one data set, and data that are too large are looked at in part. */
#include "data/dataset.h"
#include "files.h"
#include "given.h"
#include "io/frames.h"

#include <dvbf/dvbf.h>
#include <glob.h>
#include <math.h>
#include <sys/stat.h>

enum { COUNT = 12, STEPS = 7, N_X = 3 };

static float x[COUNT][STEPS][N_X], u[COUNT][STEPS];

static void fill(void) {
  for (size_t i = 0; i < COUNT; i++)
    for (size_t t = 0; t < STEPS; t++) {
      u[i][t] = (float)(i + t);
      for (size_t k = 0; k < N_X; k++) x[i][t][k] = (float)(100 * i + 10 * t + k);
    }
}

/* Sequences first .. first + count - 1; `steps` of each. */
static void write_part(const char *name, size_t first, size_t count) {
  float step = 0.5f;
  const dvbf_array arrays[] = {
      {.name = "x", .type = DVBF_FLOAT32, .rank = 3, .dims = {count, STEPS, N_X}, .values = x[first]},
      {.name = "u", .type = DVBF_FLOAT32, .rank = 3, .dims = {count, STEPS, 1}, .values = u[first]},
      {.name = "dt", .type = DVBF_FLOAT32, .rank = 0, .values = &step}};
  dvbf_error error;
  if (dvbf_arrays_write(in_folder(name), arrays, 3, &error)) fail_msg("%s", error.message);
}

static void write_text(const char *name, const char *text) {
  write_bytes(in_folder(name), text, strlen(text));
}

static dvbf_data *read_paths(const char *const *paths, size_t count, const char *settings) {
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  dvbf_settings *how = settings_of("data", "split-by=none");
  set_all(how, settings);
  if (dvbf_data_read_files(&data, paths, count, how, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(how);
  return data;
}

static dvbf_data *read_path(const char *path, const char *settings) {
  return read_paths(&path, 1, settings);
}

static void expect_refusal(const char *part, const char *path) {
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  assert_int_not_equal(dvbf_data_read(&data, path, NULL, &error), DVBF_OK);
  if (!strstr(error.message, part)) fail_msg("\"%s\" lacks \"%s\"", error.message, part);
}

static void assert_same(const dvbf_sequences *a, const dvbf_sequences *b) {
  dvbf_sequences p = {0}, q = {0};
  assert_int_equal(dvbf_sequences_copy(&p, a, 0, a->count, NULL), DVBF_OK);
  assert_int_equal(dvbf_sequences_copy(&q, b, 0, b->count, NULL), DVBF_OK);
  assert_int_equal(p.count, q.count);
  assert_int_equal(p.steps, q.steps);
  assert_int_equal(p.n_u, q.n_u);
  assert_memory_equal(p.x, q.x, p.count * p.steps * p.n_x * sizeof *p.x);
  if (p.n_u) assert_memory_equal(p.u, q.u, p.count * p.steps * p.n_u * sizeof *p.u);
  for (size_t i = 0; i < p.count; i++)
    assert_int_equal(dvbf_sequence_length(&p, i), dvbf_sequence_length(&q, i));
  dvbf_sequences_free(&p);
  dvbf_sequences_free(&q);
}

/* ---- Stacks of sequences ---- */

static void test_a_folder_is_one_data_set(void **state) {
  (void)state;
  static const char *const endings[] = {"npz", "h5"};
  for (int i = 0; i < 2; i++) {
    char names[3][32], whole[32], pattern[600];
    clear_folder();
    for (int k = 0; k < 3; k++) snprintf(names[k], sizeof names[k], "part_%d.%s", 9 + k, endings[i]);
    snprintf(whole, sizeof whole, "whole.%s", endings[i]);
    write_part(names[0], 0, 2);
    write_part(names[1], 2, 1);
    write_part(names[2], 3, 9);
    dvbf_data *joined = read_path(folder, ""), *large = read_path(folder, "memory=0");
    snprintf(pattern, sizeof pattern, "%s/part_?*.%s", folder, endings[i]);
    dvbf_data *matching = read_path(pattern, "");
    const char *list[] = {strdup(in_folder(names[0])), strdup(in_folder(names[1])),
                          strdup(in_folder(names[2]))};
    dvbf_data *listed = read_paths(list, 3, "");
    for (int k = 0; k < 3; k++) free((void *)(uintptr_t)list[k]);
    clear_folder();
    write_part(whole, 0, COUNT);
    dvbf_data *one = read_path(folder, "");
    assert_non_null(large->train.source);
    assert_same(&joined->train, &one->train);
    assert_same(&matching->train, &one->train);
    assert_same(&listed->train, &one->train);
    assert_true(joined->sample_time == 0.5);
    assert_string_equal(joined->train.origin[2].name, names[1]);
    dvbf_data_free(large);
    dvbf_data_free(joined);
    dvbf_data_free(matching);
    dvbf_data_free(listed);
    dvbf_data_free(one);
  }
}

/* More files than are open at a time, read from their places. */
static void test_many_files_are_read_piece_by_piece(void **state) {
  (void)state;
  enum { FILES = 80 };
  clear_folder();
  for (int i = 0; i < FILES; i++) {
    char name[32];
    snprintf(name, sizeof name, "p%d.npz", i);
    write_part(name, (size_t)i % COUNT, 1);
  }
  dvbf_data *data = read_path(folder, "memory=0 sandbox=off");
  assert_int_equal(data->train.count, FILES);
  assert_non_null(data->train.source);
  for (size_t i = 0; i < FILES; i++) {
    float room[STEPS * N_X];
    dv_sequence_read(&data->train, i * 37 % FILES, STEPS, room);
    assert_memory_equal(room, x[i * 37 % FILES % COUNT], sizeof room);
  }
  unlink(in_folder("p5.npz"));
  for (size_t i = 0; i < FILES; i++) {
    float room[STEPS * N_X];
    dv_sequence_read(&data->train, (i + 6) % FILES, STEPS, room);
  }
  assert_int_equal(dv_sequences_intact(&data->train, NULL), DVBF_IO);
  dvbf_data_free(data);
}

/* ---- Recordings ---- */

static void write_recording(const char *name, size_t first, size_t steps) {
  const dvbf_array arrays[] = {
      {.name = "x", .type = DVBF_FLOAT32, .rank = 2, .dims = {steps, N_X}, .values = x[first]},
      {.name = "u", .type = DVBF_FLOAT32, .rank = 2, .dims = {steps, 1}, .values = u[first]}};
  assert_int_equal(dvbf_arrays_write(in_folder(name), arrays, 2, NULL), DVBF_OK);
}

static void test_each_recording_is_a_sequence(void **state) {
  (void)state;
  clear_folder();
  write_recording("a.npz", 0, STEPS);
  write_recording("b.npz", 1, STEPS + 4);
  dvbf_data *data = read_path(folder, "");
  assert_int_equal(data->train.count, 2);
  assert_int_equal(dvbf_sequence_length(&data->train, 0), STEPS);
  assert_int_equal(dvbf_sequence_length(&data->train, 1), STEPS + 4);
  assert_memory_equal(data->train.x + dvbf_sequence_start(&data->train, 1) * N_X, x[1],
                      (STEPS + 4) * N_X * sizeof(float));
  assert_string_equal(data->train.origin[1].name, "b.npz");
  dvbf_data_free(data);
}

static void test_tables_follow_each_other(void **state) {
  (void)state;
  clear_folder();
  write_text("a.csv", "time,u,y\n0,1,2\n1,3,4\n2,5,6\n");
  write_text("b.csv", "time,u,y\n0,7,8\n1,9,10\n");
  write_text("c.csv", "run,time,u,y\n1,0,1,1\n1,1,2,2\n2,0,3,3\n2,1,4,4\n");
  dvbf_data *data = read_path(folder, "");
  const dvbf_sequences *s = &data->train;
  assert_int_equal(s->count, 4);
  static const uint32_t lengths[] = {3, 2, 2, 2};
  static const float first[] = {2, 8, 1, 3};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(dvbf_sequence_length(s, i), lengths[i]);
    assert_true(s->x[dvbf_sequence_start(s, i)] == first[i]);
  }
  assert_true(data->sample_time == 1);
  assert_string_equal(s->origin[0].name, "a.csv");
  dvbf_data_free(data);
  write_text("c.csv", "time,y,u\n0,1,1\n0.5,2,2\n1,3,3\n");
  expect_refusal("c.csv: a step takes 0.5 s, but 1 s in", folder);
  write_text("c.csv", "time,u,v\n0,1,1\n1,2,2\n2,3,3\n");
  expect_refusal("c.csv: has the column v where", folder);
  write_text("c.csv", "time,y\n0,1\n1,2\n2,3\n");
  expect_refusal("c.csv: has 0 inputs, and", folder);
  write_text("c.csv", "time,split,u,y\n0,train,1,1\n1,train,2,2\n2,train,3,3\n");
  expect_refusal("c.csv: has a column split, unlike", folder);
}

static void test_numbered_sequences_are_counted_on(void **state) {
  (void)state;
  clear_folder();
  for (int file = 0; file < 2; file++) {
    const dvbf_array arrays[] = {
        {.name = "arr_0", .type = DVBF_FLOAT32, .rank = 2, .dims = {STEPS, N_X}, .values = x[2 * file]},
        {.name = "arr_1", .type = DVBF_FLOAT32, .rank = 2, .dims = {STEPS, N_X}, .values = x[2 * file + 1]}};
    assert_int_equal(dvbf_arrays_write(in_folder(file ? "b.npz" : "a.npz"), arrays, 2, NULL), DVBF_OK);
  }
  dvbf_data *data = read_path(folder, "");
  assert_int_equal(data->train.count, 4);
  assert_memory_equal(data->train.x, x, 4 * sizeof x[0]);
  dvbf_data_free(data);
}

/* ---- Refusals ---- */

static void test_the_odd_file_is_named(void **state) {
  (void)state;
  clear_folder();
  write_part("a.npz", 0, 2);
  write_recording("b.npz", 0, STEPS);
  expect_refusal("b.npz", folder);
  const dvbf_array alone = {
      .name = "x", .type = DVBF_FLOAT32, .rank = 3, .dims = {2, STEPS, N_X}, .values = x};
  assert_int_equal(dvbf_arrays_write(in_folder("b.npz"), &alone, 1, NULL), DVBF_OK);
  expect_refusal("u is missing in", folder);
  expect_refusal("b.npz, though", folder);
  write_text("b.npz", "y\n1\n2\n3\n");
  expect_refusal("b.npz: is a table", folder);
  write_text("b.npz", "");
  expect_refusal("b.npz: is empty", folder);
  clear_folder();
  expect_refusal("is a folder without data", folder);
  expect_refusal("no file matches it", in_folder("*.h5"));
  expect_refusal("cannot be read", in_folder("none.h5"));
}

/* ---- What is kept of a file ---- */

enum { WIDE = 1000, FRAMES = 3000 };

typedef struct reading {
  size_t frames; /* read so far */
  bool fails;
} reading;

static bool count_up(void *user, size_t first, size_t count, float *out) {
  reading *r = user;
  r->frames += count;
  for (size_t i = 0; i < count * WIDE; i++) out[i] = (float)(first * WIDE + i);
  return !r->fails && first + count <= FRAMES;
}

static void test_a_cache_gives_what_was_read(void **state) {
  (void)state;
  reading r = {0};
  dv_cache *cache = dv_cache_new(WIDE, FRAMES, FRAMES / 2 * WIDE * sizeof(float));
  float *out = calloc(40 * WIDE, sizeof *out);
  assert_non_null(cache);
  for (size_t turn = 0; turn < 400; turn++) {
    size_t first = turn * 7919 % (FRAMES - 40), count = 1 + turn % 40;
    assert_true(dv_cache_read(cache, first, count, out, count_up, &r));
    for (size_t i = 0; i < count * WIDE; i++) assert_true(out[i] == (float)(first * WIDE + i));
  }
  r.frames = 0;
  assert_true(dv_cache_read(cache, 5, 3, out, count_up, &r) && dv_cache_read(cache, 5, 3, out, count_up, &r));
  assert_true(r.frames <= 16);
  r.fails = true; /* what could not be read is not kept */
  assert_false(dv_cache_read(cache, FRAMES / 2 + 5, 3, out, count_up, &r));
  r.fails = false;
  assert_true(dv_cache_read(cache, FRAMES / 2 + 5, 3, out, count_up, &r));
  assert_true(out[0] == (float)((FRAMES / 2 + 5) * WIDE));
  dv_cache_free(cache);
  assert_null(dv_cache_new(WIDE, FRAMES, 0));
  assert_null(dv_cache_new(WIDE, FRAMES, FRAMES / 10 * WIDE * sizeof(float)));
  free(out);
}

/* ---- Large data ---- */

static void test_large_data_are_looked_at_in_part(void **state) {
  (void)state;
  enum { MANY = 4000, LONG = 50 };
  clear_folder();
  uint64_t before = dv_large;
  float *values = calloc(MANY * LONG, sizeof *values);
  for (size_t i = 0; i < MANY * LONG; i++) values[i] = sinf((float)i);
  const dvbf_array array = {
      .name = "x", .type = DVBF_FLOAT32, .rank = 3, .dims = {MANY, LONG, 1}, .values = values};
  assert_int_equal(dvbf_arrays_write(in_folder("a.npz"), &array, 1, NULL), DVBF_OK);
  dv_large = 80000;
  dvbf_data *source = read_path(folder, "memory=0"), *memory = read_path(folder, "");
  assert_int_equal(dv_sequences_thinned(&source->train), 160);
  assert_int_equal(source->n_notes, 1);
  assert_non_null(strstr(source->notes[0], "one piece in 160"));
  dv_statistics s, m;
  assert_int_equal(dv_statistics_of_x(&s, &source->train, NULL), DVBF_OK);
  assert_int_equal(dv_statistics_of_x(&m, &memory->train, NULL), DVBF_OK);
  assert_int_equal(s.rows, MANY * LONG);
  assert_int_equal(s.seen[0], MANY * LONG);
  assert_true(fabs(s.mean[0]) < 0.1 && fabs(s.variance[0] - 0.5) < 0.1);
  assert_true(s.mean[0] == m.mean[0] && s.checksum[0] == m.checksum[0]);
  dv_statistics_free(&s);
  dv_statistics_free(&m);
  uint64_t one = 0, other = 0;
  assert_int_equal(dv_data_fingerprint(&one, source, NULL), DVBF_OK);
  assert_int_equal(dv_data_fingerprint(&other, memory, NULL), DVBF_OK);
  assert_true(one == other);
  dvbf_sequences some = {0};
  assert_int_equal(dv_sequences_some(&some, &source->train, 8, NULL), DVBF_OK);
  assert_int_equal(some.count, 200);
  dv_windows_free(&some);
  dv_large = before;
  dvbf_data_free(source);
  dvbf_data_free(memory);
  free(values);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_folder_is_one_data_set),
      cmocka_unit_test(test_many_files_are_read_piece_by_piece),
      cmocka_unit_test(test_each_recording_is_a_sequence),
      cmocka_unit_test(test_tables_follow_each_other),
      cmocka_unit_test(test_numbered_sequences_are_counted_on),
      cmocka_unit_test(test_the_odd_file_is_named),
      cmocka_unit_test(test_a_cache_gives_what_was_read),
      cmocka_unit_test(test_large_data_are_looked_at_in_part),
  };
  fill();
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
