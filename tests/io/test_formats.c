/* Files of all formats become the same data. */
#include "arrays.h"
#include "data/dataset.h"
#include "io/archive.h"
#include "io/csv.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <pthread.h>

/* ---- Reading ---- */

/* Reads with settings given as name, value, ..., NULL, not split unless they say so. */
static dvbf_status read_with(dvbf_data **out, const char *name, dvbf_error *error, va_list settings) {
  dvbf_settings *how = NULL;
  assert_int_equal(dvbf_settings_new(&how, "data", error), DVBF_OK);
  assert_int_equal(dvbf_settings_set(how, "split-by", "none", error), DVBF_OK);
  for (const char *setting; (setting = va_arg(settings, const char *));)
    if (dvbf_settings_set(how, setting, va_arg(settings, const char *), error))
      fail_msg("%s", error->message);
  dvbf_status status = dvbf_data_read(out, in_folder(name), how, error);
  dvbf_settings_free(how);
  return status;
}

static dvbf_data *read_file(const char *name, ...) {
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  va_list settings;
  va_start(settings, name);
  if (read_with(&data, name, &error, settings)) fail_msg("%s", error.message);
  va_end(settings);
  return data;
}

static void expect_refusal(const char *part, const char *name, ...) {
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  va_list settings;
  va_start(settings, name);
  dvbf_status status = read_with(&data, name, &error, settings);
  va_end(settings);
  assert_int_not_equal(status, DVBF_OK);
  assert_null(data);
  if (!strstr(error.message, part)) fail_msg("\"%s\" lacks \"%s\"", error.message, part);
}

static void assert_sizes(const dvbf_sequences *s, size_t count, size_t steps, size_t n_x, size_t n_u) {
  assert_int_equal(s->count, count);
  assert_int_equal(s->steps, steps);
  assert_int_equal(s->n_x, n_x);
  assert_int_equal(s->n_u, n_u);
}

/* The same values, wherever they are. NaN is the same as NaN. */
static void assert_same(const dvbf_sequences *a, const dvbf_sequences *b) {
  dvbf_sequences p = {0}, q = {0};
  assert_int_equal(dvbf_sequences_copy(&p, a, 0, a->count, NULL), DVBF_OK);
  assert_int_equal(dvbf_sequences_copy(&q, b, 0, b->count, NULL), DVBF_OK);
  assert_sizes(&p, q.count, q.steps, q.n_x, q.n_u);
  size_t frames = p.count * p.steps;
  for (size_t i = 0; i < frames * p.n_x; i++)
    if (p.x[i] != q.x[i] && !(isnan(p.x[i]) && isnan(q.x[i])))
      fail_msg("x[%zu] is %g and %g", i, p.x[i], q.x[i]);
  if (p.n_u) assert_memory_equal(p.u, q.u, frames * p.n_u * sizeof *p.u);
  assert_int_equal(!p.length, !q.length);
  if (p.length) assert_memory_equal(p.length, q.length, p.count * sizeof *p.length);
  dvbf_sequences_free(&p);
  dvbf_sequences_free(&q);
}

/* sin of one number after the other */
static const float *waves(void) {
  enum { COUNT = 65536 };
  static float values[COUNT];
  static bool made;
  for (int i = 0; !made && i < COUNT; i++) values[i] = sinf((float)i);
  made = true;
  return values;
}

static member floats(const char *name, const char *shape, const float *values, size_t count) {
  return (member){name, npy("<f4", false, shape, values, count * sizeof *values)};
}

/* ---- NPY ---- */

static void test_types_and_byte_orders(void **unused) {
  (void)unused;
  static const struct {
    const char *type;
    size_t size;
    unsigned char one[8]; /* the number 3 in little-endian order */
    float value;
  } cases[] = {{"f2", 2, {0, 0x42}, 3},
               {"f4", 4, {0, 0, 0x40, 0x40}, 3},
               {"f8", 8, {0, 0, 0, 0, 0, 0, 8, 0x40}, 3},
               {"i1", 1, {0xfd}, -3},
               {"i2", 2, {0xfd, 0xff}, -3},
               {"i4", 4, {0xfd, 0xff, 0xff, 0xff}, -3},
               {"i8", 8, {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -3},
               {"u1", 1, {51}, 51},
               {"u2", 2, {3, 1}, 259},
               {"u4", 4, {3, 0, 1, 0}, 65539},
               {"u8", 8, {3, 0, 0, 0, 1}, 4294967299.0F},
               {"b1", 1, {1}, 1}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int big = 0; big < 2; big++) {
      unsigned char values[2 * 3 * 8] = {0};
      size_t size = cases[c].size;
      for (size_t i = 0; i < size; i++) values[4 * size + (big ? size - 1 - i : i)] = cases[c].one[i];
      char type[8];
      snprintf(type, sizeof type, "%s%s", size == 1 ? "|" : big ? ">" : "<", cases[c].type);
      write_npy("a.npy", npy(type, false, "(1, 6, 1)", values, 6 * size));
      dvbf_data *data = read_file("a.npy", NULL);
      assert_sizes(&data->train, 1, 6, 1, 0);
      for (int i = 0; i < 6; i++)
        if (data->train.x[i] != (i == 4 ? cases[c].value : 0)) fail_msg("%s: %g", type, data->train.x[i]);
      dvbf_data_free(data);
    }
}

/* Bytes of 0 and 1 are binary, whichever split a pixel is in and however x is read. */
static void test_bytes_of_bits(void **unused) {
  (void)unused;
  enum { N = 2 * 3000 };
  static uint8_t bits[N], pixels[N];
  for (size_t i = 0; i < N; i++) bits[i] = pixels[i] = i % 3 == 1;
  pixels[N - 1] = 255;
  for (int far = 0; far < 2; far++) {
    const char *memory = far ? "0" : "256";
    write_npy("a.npy", npy("|u1", false, "(2, 100, 30)", bits, N));
    dvbf_data *data = read_file("a.npy", "memory", memory, "split-by", "none", NULL);
    float buffer[30];
    assert_true(dv_sequence_x(&data->train, 0, 0, 1, buffer)[1] == 1);
    dvbf_data_free(data);
    write_npy("a.npy", npy("|u1", false, "(2, 100, 30)", pixels, N));
    data = read_file("a.npy", "memory", memory, "split-by", "none", NULL);
    assert_true(dv_sequence_x(&data->train, 0, 0, 1, buffer)[1] == 1.0F / 255);
    dvbf_data_free(data);
  }
  write_zip("a.npz", true, 2,
            (member[]){{"train_x.npy", npy("|u1", false, "(2, 100, 30)", bits, N)},
                       {"test_x.npy", npy("|u1", false, "(2, 100, 30)", pixels, N)}});
  dvbf_data *data = read_file("a.npz", NULL);
  assert_true(data->train.x[1] == 1.0F / 255 && data->test.x[N - 1] == 1);
  dvbf_data_free(data);
  /* A few columns of bytes are numbers, as of a counter; the same as a picture is one. */
  write_npy("a.npy", npy("|u1", false, "(2, 1000, 3)", pixels, N));
  data = read_file("a.npy", NULL);
  assert_true(data->train.x[N - 1] == 255 && !data->n_notes);
  dvbf_data_free(data);
  write_npy("a.npy", npy("|u1", false, "(2, 1000, 3, 1)", pixels, N));
  data = read_file("a.npy", NULL);
  assert_true(data->train.x[N - 1] == 1 && data->image_height == 3);
  dvbf_data_free(data);
}

static void test_half_precision(void **unused) {
  (void)unused;
  const uint16_t bits[] = {0x0001, 0x03ff, 0x0400, 0x7bff, 0xc000, 0x3555};
  const float values[] = {0x1p-24F, 0x1.ff8p-15F, 0x1p-14F, 65504, -2, 0x1.554p-2F};
  write_npy("a.npy", npy("<f2", false, "(1, 6, 1)", bits, sizeof bits));
  dvbf_data *data = read_file("a.npy", NULL);
  assert_memory_equal(data->train.x, values, sizeof values);
  dvbf_data_free(data);
}

static void test_versions_and_spellings_of_the_header(void **unused) {
  (void)unused;
  static const char *const headers[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }",
      "{\"shape\":(2,3,4),\"fortran_order\":False,\"descr\":\"<f4\"}   ",
      "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2L , 3L , 4L ) }"};
  for (int version = 1; version <= 3; version++)
    for (int i = 0; i < 3; i++) {
      write_npy("a.npy", npy_with(version, headers[i], waves(), 24 * sizeof(float)));
      dvbf_data *data = read_file("a.npy", NULL);
      assert_sizes(&data->train, 2, 3, 4, 0);
      assert_memory_equal(data->train.x, waves(), 24 * sizeof(float));
      dvbf_data_free(data);
    }
}

static void test_fortran_order(void **unused) {
  (void)unused;
  float values[2 * 3 * 4 * 5];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 4; k++)
        for (int m = 0; m < 5; m++)
          values[i + 2 * (j + 3 * (k + 4 * m))] = waves()[((i * 3 + j) * 4 + k) * 5 + m];
  write_npy("f.npy", npy("<f4", true, "(2, 3, 4, 5)", values, sizeof values));
  dvbf_data *data = read_file("f.npy", "memory", "0", NULL);
  assert_sizes(&data->train, 2, 3, 20, 0);
  assert_int_equal(data->image_height, 4);
  assert_memory_equal(data->train.x, waves(), sizeof values);
  dvbf_data_free(data);
}

/* ---- NPZ and the names of arrays ---- */

static void test_names_of_splits(void **unused) {
  (void)unused;
  static const char *const names[][6] = {
      {"train_x.npy", "val_x.npy", "test_x.npy", "train_u.npy", "val_u.npy", "test_u.npy"},
      {"train/x.npy", "valid/x.npy", "test/x.npy", "train/u.npy", "valid/u.npy", "test/u.npy"},
      {"y_train.npy", "y_validation.npy", "y_test.npy", "u_train.npy", "u_validation.npy", "u_test.npy"},
      {"train/obs/eye", "val/obs/eye", "test/obs/eye", "train/act", "val/act", "test/act"}};
  for (int n = 0; n < 4; n++) {
    member members[6];
    for (int i = 0; i < 6; i++)
      members[i] = floats(names[n][i], i < 3 ? "(3, 5, 2)" : "(3, 5, 1)", waves() + 7 * i, i < 3 ? 30 : 15);
    write_zip("a.npz", n % 2, 6, members);
    dvbf_data *data =
        n < 3 ? read_file("a.npz", NULL) : read_file("a.npz", "x-key", "obs/eye", "u-key", "act", NULL);
    const dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
    for (int i = 0; i < 3; i++) {
      assert_sizes(splits[i], 3, 5, 2, 1);
      assert_memory_equal(splits[i]->x, waves() + 7 * i, 30 * sizeof(float));
      assert_memory_equal(splits[i]->u, waves() + 7 * (i + 3), 15 * sizeof(float));
    }
    dvbf_data_free(data);
  }
}

/* valid is taken from train where it is missing; test stays as it is. */
static void test_missing_valid(void **unused) {
  (void)unused;
  write_zip("a.npz", false, 2,
            (member[]){floats("train_x.npy", "(20, 5, 2)", waves(), 200),
                       floats("test_x.npy", "(3, 5, 2)", waves(), 30)});
  dvbf_data *data = read_file("a.npz", "split-by", "seed", NULL);
  assert_int_equal(data->train.count, 18);
  assert_int_equal(data->valid.count, 2);
  assert_int_equal(data->test.count, 3);
  dvbf_data_free(data);
}

static void test_keys(void **unused) {
  (void)unused;
  write_zip("a.npz", true, 4,
            (member[]){floats("pos.npy", "(2, 5, 3)", waves(), 30),
                       floats("vel.npy", "(2, 5)", waves() + 100, 10),
                       floats("data/force.npy", "(2, 4, 1)", waves() + 200, 8),
                       floats("truth.npy", "(2, 5, 2)", waves() + 300, 20)});
  dvbf_data *data =
      read_file("a.npz", "outputs", "pos, vel", "inputs", "data/force", "states", "truth", NULL);
  assert_sizes(&data->train, 2, 5, 4, 1);
  for (size_t t = 0; t < 10; t++) {
    assert_memory_equal(data->train.x + t * 4, waves() + t * 3, 3 * sizeof(float));
    assert_true(data->train.x[t * 4 + 3] == waves()[100 + t]);
  }
  for (size_t i = 0; i < 2; i++) {
    assert_memory_equal(data->train.u + i * 5, waves() + 200 + i * 4, 4 * sizeof(float));
    assert_true(data->train.u[i * 5 + 4] == 0);
  }
  assert_memory_equal(data->train.state, waves() + 300, 20 * sizeof(float));
  assert_string_equal(data->state_names[1], "state1");
  dvbf_data_free(data);
  expect_refusal("x is missing", "a.npz", NULL);
  expect_refusal("pos [2, 5, 3]", "a.npz", NULL);
  expect_refusal("there is no array speed", "a.npz", "outputs", "speed", NULL);
  expect_refusal("names pos and speed", "a.npz", "outputs", "pos,speed", NULL);
  expect_refusal("there is no array force", "a.npz", "outputs", "pos", "inputs", "force", NULL);
}

/* Arrays of one role stand side by side, so that all must have the same steps. A step less is allowed for u,
 * but not for some of its arrays. */
static void test_parts_have_the_same_steps(void **unused) {
  (void)unused;
  write_zip("a.npz", true, 3,
            (member[]){floats("x.npy", "(2, 5, 3)", waves(), 30), floats("a.npy", "(2, 5)", waves(), 10),
                       floats("b.npy", "(2, 4)", waves(), 8)});
  expect_refusal("b has 4 steps but a, also named by inputs, has 5", "a.npz", "inputs", "a,b", NULL);
  expect_refusal("a has 5 steps but b", "a.npz", "inputs", "b,a", NULL);
}

/* No format is asked for elements that an array does not have. */
static void test_reads_stay_inside(void **unused) {
  (void)unused;
  dv_archive *a = NULL;
  dvbf_settings *how = NULL;
  float value;
  write_npy("a.npy", npy("<f4", false, "(4, 3)", waves(), 48));
  assert_int_equal(dvbf_settings_new(&how, "data", NULL), DVBF_OK);
  assert_int_equal(dv_archive_open(&a, in_folder("a.npy"), dv_settings_data(how, NULL), NULL), DVBF_OK);
  assert_null(dv_array_read(a, &a->arrays[0], 11, 1, DV_FLOATS(&value)));
  assert_non_null(dv_array_read(a, &a->arrays[0], 12, 1, DV_FLOATS(&value)));
  assert_non_null(dv_array_read(a, &a->arrays[0], 11, SIZE_MAX, DV_FLOATS(&value)));
  dv_archive_release(a);
  write_zip("a.npz", true, 1, (member[]){floats("x.npy", "(4, 3)", waves(), 12)});
  assert_int_equal(dv_archive_open(&a, in_folder("a.npz"), dv_settings_data(how, NULL), NULL), DVBF_OK);
  assert_null(dv_array_read(a, &a->arrays[0], 11, 1, DV_FLOATS(&value)));
  const char *said = dv_array_read(a, &a->arrays[0], 12, 1, DV_FLOATS(&value));
  assert_true(said && strstr(said, "fewer numbers than needed"));
  dv_archive_release(a);
  dvbf_settings_free(how);
}

/* ---- Layouts ---- */

static void test_recordings_and_stacks(void **unused) {
  (void)unused;
  static const struct {
    const char *x, *u;
    size_t n, n_u, count, steps, n_x, width_u, height;
  } cases[] = {
      {"(120,)", NULL, 120, 0, 1, 120, 1, 0, 0},
      {"(40, 3)", NULL, 120, 0, 1, 40, 3, 0, 0},
      {"(40, 3)", "(40,)", 120, 40, 1, 40, 3, 1, 0},
      {"(40, 3)", "(39, 2)", 120, 78, 1, 40, 3, 2, 0},
      {"(40, 3)", "(40, 3, 1)", 120, 120, 40, 3, 1, 1, 0},
      {"(40, 3)", "(40, 2, 1)", 120, 80, 40, 3, 1, 1, 0},
      {"(10, 4, 3)", NULL, 120, 0, 10, 4, 3, 0, 0},
      {"(10, 4, 3)", "(10, 4)", 120, 40, 10, 4, 3, 1, 0},
      {"(10, 4, 3)", "(10, 2)", 120, 20, 1, 10, 12, 2, 4},
      {"(10, 4, 3)", "(9,)", 120, 9, 1, 10, 12, 1, 4},
      {"(2, 5, 4, 3)", "(2, 4, 1)", 120, 8, 2, 5, 12, 1, 4},
      {"(2, 5, 4, 3, 1)", NULL, 120, 0, 2, 5, 12, 0, 4},
      {"(2, 5, 2, 2, 3)", NULL, 120, 0, 2, 5, 12, 0, 2},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    member members[] = {
        floats("x.npy", cases[c].x, waves(), cases[c].n),
        floats("u.npy", cases[c].u ? cases[c].u : "(1,)", waves() + 500, cases[c].n_u ? cases[c].n_u : 1)};
    write_zip("a.npz", true, cases[c].u ? 2 : 1, members);
    if (!cases[c].u) free(members[1].content.at);
    dvbf_data *data = read_file("a.npz", NULL);
    assert_sizes(&data->train, cases[c].count, cases[c].steps, cases[c].n_x, cases[c].width_u);
    assert_int_equal(data->image_height, cases[c].height);
    assert_memory_equal(data->train.x, waves(), cases[c].n * sizeof(float));
    if (cases[c].u) assert_true(data->train.u[0] == waves()[500]);
    dvbf_data_free(data);
  }
}

static void test_lengths(void **unused) {
  (void)unused;
  const int64_t follow[] = {4, 2, 6}, padded[] = {3, 4, 2, 4, 1, 4}, equal[] = {4, 4, 4}, over[] = {4, 2, 7};
  write_zip("a.npz", false, 3,
            (member[]){floats("x.npy", "(12, 2)", waves(), 24),
                       floats("u.npy", "(12, 1)", waves() + 50, 12),
                       {"length.npy", npy("<i8", false, "(3,)", follow, sizeof follow)}});
  dvbf_data *data = read_file("a.npz", NULL);
  assert_sizes(&data->train, 3, 6, 2, 1);
  const size_t starts[] = {0, 4, 6};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(dvbf_sequence_start(&data->train, i), starts[i]);
    assert_int_equal(dvbf_sequence_length(&data->train, i), follow[i]);
  }
  dvbf_data_free(data);
  write_zip("a.npz", false, 2,
            (member[]){floats("x.npy", "(6, 4)", waves(), 24),
                       {"length.npy", npy("<i8", false, "(6,)", padded, sizeof padded)}});
  data = read_file("a.npz", "split-by", "none", NULL);
  assert_int_equal(data->train.count, 5); /* one has a single step */
  assert_sizes(&data->train, 5, 4, 1, 0);
  assert_int_equal(data->train.length[0], 3);
  dvbf_data_free(data);
  write_zip("a.npz", false, 2,
            (member[]){floats("x.npy", "(12, 2)", waves(), 24),
                       {"length.npy", npy("<i8", false, "(3,)", equal, sizeof equal)}});
  data = read_file("a.npz", NULL);
  assert_sizes(&data->train, 3, 4, 2, 0);
  assert_null(data->train.length);
  dvbf_data_free(data);
  write_zip("a.npz", false, 2,
            (member[]){floats("x.npy", "(12, 2)", waves(), 24),
                       {"length.npy", npy("<i8", false, "(3,)", over, sizeof over)}});
  expect_refusal("3 that sum to 13", "a.npz", NULL);
}

/* ---- What is missing ---- */

static void test_masks(void **unused) {
  (void)unused;
  static const char *const shapes[] = {"(2, 3)", "(2, 3, 4)"};
  for (int whole = 0; whole < 2; whole++) {
    uint8_t mask[24];
    size_t n = whole ? 24 : 6;
    for (size_t i = 0; i < n; i++) mask[i] = i % 5 != 2;
    write_zip("a.npz", true, 2,
              (member[]){floats("x.npy", "(2, 3, 4)", waves(), 24),
                         {"mask.npy", npy("|b1", false, shapes[whole], mask, n)}});
    dvbf_data *data = read_file("a.npz", NULL);
    assert_true(data->train.gaps);
    for (size_t i = 0; i < 24; i++) {
      bool seen = (whole ? i : i / 4) % 5 != 2;
      assert_true(seen ? data->train.x[i] == waves()[i] : isnan(data->train.x[i]));
    }
    dvbf_data_free(data);
  }
  uint8_t mask[6] = {0};
  write_zip("a.npz", true, 2,
            (member[]){floats("x.npy", "(2, 3, 4)", waves(), 24),
                       {"mask.npy", npy("|b1", false, "(2, 3, 1)", mask, 6)}});
  dvbf_data_free(read_file("a.npz", NULL));
  write_zip("a.npz", true, 2,
            (member[]){floats("x.npy", "(2, 2, 3)", waves(), 12),
                       {"mask.npy", npy("|b1", false, "(3, 2)", mask, 6)}});
  expect_refusal("mask has the shape [3, 2]", "a.npz", NULL);
}

static void test_nan_is_missing_only_when_told(void **unused) {
  (void)unused;
  float x[24];
  memcpy(x, waves(), sizeof x);
  x[7] = NAN;
  write_npy("a.npy", npy("<f4", false, "(2, 3, 4)", x, sizeof x));
  expect_refusal("missing = nan", "a.npy", NULL);
  dvbf_data *data = read_file("a.npy", "missing", "nan", NULL);
  assert_true(data->train.gaps && isnan(data->train.x[7]) && data->train.x[8] == x[8]);
  dvbf_data_free(data);
  x[8] = INFINITY;
  write_npy("a.npy", npy("<f4", false, "(2, 3, 4)", x, sizeof x));
  expect_refusal("finite", "a.npy", "missing", "nan", NULL);
}

/* ---- CSV ---- */

static void write_text(const char *name, const char *text) {
  write_bytes(in_folder(name), text, strlen(text));
}

static void test_spellings_of_a_table(void **unused) {
  (void)unused;
  static const char *const texts[] = {
      "x,u\n1.5,-2\n3,4\n-5e-1,+6\n",
      "x;u\r\n1,5;-2\r\n3;4\r\n-0,5;6\r\n",
      "\xef\xbb\xbf\"x\"\t\"u\"\n\n1.5\t-2\n# remark\n3\t4.0\n  -.5 \t 6.\n\n",
      "x u\n1.5 -2\n  3   4  \n-0.5\t6\n",
      "\"x\",\"u\",\n\"1.5\", -2 ,\n3,4,\n-0.5,6e0,",
      "# made by hand\nTime,x0,u_0,remark\n0,1.5,-2,\"a, b \"\"c\"\"\"\n1,3,4,\n2,-0.5,6,z\n",
  };
  const float x[] = {1.5F, 3, -0.5F}, u[] = {-2, 4, 6};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    write_text("a.csv", texts[i]);
    dvbf_data *data = read_file("a.csv", NULL);
    assert_sizes(&data->train, 1, 3, 1, 1);
    assert_memory_equal(data->train.x, x, sizeof x);
    assert_memory_equal(data->train.u, u, sizeof u);
    dvbf_data_free(data);
  }
}

static void test_choice_of_columns(void **unused) {
  (void)unused;
  static const char text[] = "uEst,uVal,yEst,yVal,Ts,\n1,2,3,4,9,\n5,6,7,8,,\n9,10,11,12,,\n";
  write_text("a.csv", text);
  dvbf_data *data = read_file("a.csv", "inputs", "uEst", "outputs", "yEst", NULL);
  assert_sizes(&data->train, 1, 3, 1, 1);
  assert_true(data->train.x[1] == 7 && data->train.u[2] == 9);
  dvbf_data_free(data);
  data = read_file("a.csv", NULL); /* all but Ts */
  assert_sizes(&data->train, 1, 3, 4, 0);
  dvbf_data_free(data);
  data = read_file("a.csv", "outputs", "2-4", "inputs", "1", "states", "YVAL, uVal", NULL);
  assert_sizes(&data->train, 1, 3, 3, 1);
  assert_true(data->train.x[3] == 6 && data->train.state[0] == 4 && data->train.state[1] == 2);
  assert_string_equal(data->state_names[0], "yVal");
  assert_string_equal(data->x_names[1], "yEst");
  assert_string_equal(data->u_names[0], "uEst");
  dvbf_data_free(data);
  expect_refusal("no column speed", "a.csv", "outputs", "speed", NULL);
  expect_refusal("uEst, uVal, yEst", "a.csv", "outputs", "0", NULL);
  expect_refusal("no column 6", "a.csv", "outputs", "6", NULL);
  expect_refusal("no column 4-2", "a.csv", "outputs", "4-2", NULL);
  expect_refusal("nan", "a.csv", "outputs", "Ts", NULL);
  write_text("a.csv", " 1 2\n 3 4\n 5 6\n");
  data = read_file("a.csv", "inputs", "1", "outputs", "2", NULL);
  assert_true(data->train.x[2] == 6 && data->train.u[2] == 5);
  assert_true(!data->x_names && !data->u_names);
  dvbf_data_free(data);
  write_text("a.csv", "x1,x2,state_angle,stateB\n1,2,3,4\n5,6,7,8\n");
  data = read_file("a.csv", NULL);
  assert_int_equal(data->train.n_s, 2);
  assert_string_equal(data->state_names[0], "state_angle");
  dvbf_data_free(data);
}

static void test_sequences_and_splits_of_a_table(void **unused) {
  (void)unused;
  write_text("a.csv",
             "sequence,split,x\na,train,1\na,train,2\nb,train,3\nb,train,4\nb,train,5\nc,valid,6\nc,valid,7\n"
             "d,test,8\nd,test,9\n");
  dvbf_data *data = read_file("a.csv", NULL);
  assert_sizes(&data->train, 2, 3, 1, 0);
  assert_int_equal(data->train.length[0], 2);
  assert_true(data->train.x[dvbf_sequence_start(&data->train, 1)] == 3);
  assert_true(data->valid.x[0] == 6 && data->test.x[1] == 9);
  dvbf_data_free(data);
  write_text("a.csv", "sequence,x\n1,1\n2,2\n3,3\n");
  expect_refusal("every row", "a.csv", NULL);
  write_text("a.csv", "split,x\ntrain,1\ntrian,2\n");
  expect_refusal("line 3, column split: \"trian\"", "a.csv", NULL);
}

static void test_missing_fields(void **unused) {
  (void)unused;
  write_text("a.csv", "x0,x1\n1,2\n,3\nNaN,NA\n4,5\n");
  expect_refusal("missing = nan", "a.csv", NULL);
  dvbf_data *data = read_file("a.csv", "missing", "nan", NULL);
  const float *x = data->train.x;
  assert_true(isnan(x[2]) && x[3] == 3 && isnan(x[4]) && isnan(x[5]) && x[7] == 5);
  dvbf_data_free(data);
}

/* The C library in its own language is the judge. */
static void test_decimals_are_exact(void **unused) {
  (void)unused;
  static const char *const formats[] = {"%.9g", "%.17g", "%.6g", "%.25g", "%.8f", "%.3e"};
  uint64_t random = 7;
  for (int i = 0; i < 400000; i++) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    uint32_t bits = (uint32_t)(random >> 32);
    float value, next, read;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    next = nextafterf(value, INFINITY);
    double number = i % 3 == 0   ? value
                    : i % 3 == 1 ? ((double)value + (double)next) / 2
                                 : (double)value * 1.1;
    if (i % 5 == 0) number = ldexp((double)(random >> 40), -12);
    char text[128];
    snprintf(text, sizeof text, formats[i % 6], number);
    if (strlen(text) > 100) continue;
    assert_true(dv_decimal(dv_cursor_of(text), false, &read));
    float expected = strtof(text, NULL);
    if (memcmp(&read, &expected, sizeof read)) fail_msg("%s: %.9g, not %.9g", text, read, expected);
  }
  static const char *const wrong[] = {"1.2.3", "1e",  "e5", "--1", "0x10", "1 2",
                                      "1,5",   "abc", ".",  "+",   "1e+",  "12a"};
  float read;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (dv_decimal(dv_cursor_of(wrong[i]), false, &read)) fail_msg("%s is a number", wrong[i]);
  static const char middle[] = "1.00000005960464477539062500000000000000000000000000000000000000001";
  assert_true(dv_decimal(dv_cursor_of(middle), false, &read) && read == 0x1.000002p0F);
}

/* ---- Episodes ---- */

static void put_floats(hid_t file, const char *name, int rank, const hsize_t *dims, hid_t type) {
  static double values[4096];
  size_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  for (size_t i = 0; i < n; i++) values[i] = (double)((i * 7 + strlen(name)) % 200);
  put(file, name, type, rank, dims, values);
}

static void write_demos(void) {
  hid_t file = new_file();
  for (hsize_t i = 0; i < 12; i++) {
    char name[64];
    hsize_t steps = 4 + i;
    snprintf(name, sizeof name, "data/demo_%d/obs/pos", (int)i);
    put_floats(file, name, SHAPE(steps, 2), H5T_IEEE_F64LE);
    snprintf(name, sizeof name, "data/demo_%d/obs/image", (int)i);
    put_floats(file, name, SHAPE(steps, 2, 3), H5T_STD_U8LE);
    snprintf(name, sizeof name, "data/demo_%d/obs/vel", (int)i);
    put_floats(file, name, SHAPE(steps), H5T_IEEE_F32LE);
    snprintf(name, sizeof name, "data/demo_%d/actions", (int)i);
    put_floats(file, name, SHAPE(steps, 1), H5T_IEEE_F64LE);
  }
  H5Fclose(file);
}

static void add_list(const char *name, size_t count, const char (*names)[8]) {
  hid_t file = H5Fopen(in_folder("a.h5"), H5F_ACC_RDWR, H5P_DEFAULT), links = H5Pcreate(H5P_LINK_CREATE);
  hsize_t size = count;
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &size, NULL);
  H5Tset_size(type, 8);
  H5Pset_create_intermediate_group(links, 1);
  hid_t id = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, names) >= 0);
  H5Dclose(id);
  H5Sclose(space);
  H5Tclose(type);
  H5Pclose(links);
  H5Fclose(file);
}

static void test_demos(void **unused) {
  (void)unused;
  write_demos();
  dvbf_data *data = read_file("a.h5", NULL);
  assert_sizes(&data->train, 12, 15, 3, 1); /* pos and vel, in the order of their names */
  for (size_t i = 0; i < 12; i++) assert_int_equal(data->train.length[i], 4 + i); /* 10 comes behind 9 */
  assert_true(data->train.x[0] == 19 && data->train.x[1] == 26 && data->train.x[2] == 19);
  assert_true(data->train.u[0] == 19);
  dvbf_data_free(data);
  data = read_file("a.h5", "outputs", "image", NULL);
  assert_sizes(&data->train, 12, 15, 6, 1);
  assert_int_equal(data->image_height, 2);
  assert_true(data->train.x[1] == 28.0F / 255);
  dvbf_data_free(data);
  expect_refusal("no array eye", "a.h5", "outputs", "eye", NULL);
  expect_refusal("obs/pos [4, 2]", "a.h5", "outputs", "eye", NULL);
  add_list("mask/train", 3, (const char[][8]){"demo_11", "demo_0", "demo_2"});
  add_list("mask/valid", 2, (const char[][8]){"demo_1", "demo_10"});
  data = read_file("a.h5", "outputs", "vel,pos", NULL);
  assert_sizes(&data->train, 3, 15, 3, 1);
  assert_sizes(&data->valid, 2, 14, 3, 1);
  assert_int_equal(data->test.count, 0);
  assert_int_equal(data->train.length[0], 4);
  dvbf_data_free(data);
  add_list("mask/test", 1, (const char[][8]){"demo_99"});
  expect_refusal("mask/test names demo_99", "a.h5", NULL);
}

/* One pixel in any episode makes bytes pixels in all of them. */
static void test_episodes_of_bits(void **unused) {
  (void)unused;
  for (int pixels = 0; pixels < 2; pixels++) {
    hid_t file = new_file();
    const double first[] = {0, 1, 1, 0}, second[] = {1, 1, pixels ? 9 : 0, 0};
    put(file, "episode_0/observations", H5T_STD_U8LE, SHAPE(2, 1, 2), first);
    put(file, "episode_1/observations", H5T_STD_U8LE, SHAPE(2, 1, 2), second);
    H5Fclose(file);
    dvbf_data *data = read_file("a.h5", "split-by", "none", NULL);
    assert_true(data->train.x[1] == (pixels ? 1.0F / 255 : 1));
    assert_string_equal(data->train.origin[1].name, "episode_1");
    dvbf_data_free(data);
  }
}

static void test_episodes(void **unused) {
  (void)unused;
  hid_t file = new_file();
  for (hsize_t i = 0; i < 3; i++) {
    char name[64];
    snprintf(name, sizeof name, "episode_%d/observations", (int)i);
    put_floats(file, name, SHAPE(5 + i, 2), H5T_IEEE_F64LE);
    snprintf(name, sizeof name, "episode_%d/actions", (int)i);
    put_floats(file, name, SHAPE(4 + i, 1), H5T_IEEE_F32LE);
    snprintf(name, sizeof name, "episode_%d/rewards", (int)i);
    put_floats(file, name, SHAPE(4 + i), H5T_IEEE_F32LE);
  }
  H5Fclose(file);
  dvbf_data *data = read_file("a.h5", NULL);
  assert_sizes(&data->train, 3, 7, 2, 1);
  const dvbf_sequences *s = &data->train;
  for (size_t i = 0; i < 3; i++) {
    size_t last = dvbf_sequence_start(s, i) + s->length[i] - 1;
    assert_true(s->u[last] == 0 && s->u[last - 1] != 0);
  }
  dvbf_data_free(data);
  file = H5Fopen(in_folder("a.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, "episode_1/actions", H5P_DEFAULT);
  H5Fclose(file);
  expect_refusal("episode_1 has no actions", "a.h5", NULL);
}

/* h5py stores booleans as an enumeration. */
static void test_booleans_of_hdf5(void **unused) {
  (void)unused;
  hid_t file = new_file(), boolean = H5Tenum_create(H5T_STD_I8LE),
        space = H5Screate_simple(2, (hsize_t[]){2, 3}, NULL);
  int8_t values[] = {0, 1}, mask[] = {1, 0, 1, 1, 1, 0};
  H5Tenum_insert(boolean, "FALSE", &values[0]);
  H5Tenum_insert(boolean, "TRUE", &values[1]);
  put_floats(file, "x", SHAPE(2, 3, 2), H5T_IEEE_F32LE);
  hid_t id = H5Dcreate2(file, "mask", boolean, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Dwrite(id, boolean, H5S_ALL, H5S_ALL, H5P_DEFAULT, mask) >= 0);
  H5Dclose(id);
  H5Sclose(space);
  H5Tclose(boolean);
  H5Fclose(file);
  dvbf_data *data = read_file("a.h5", NULL);
  for (size_t i = 0; i < 12; i++) assert_true(isnan(data->train.x[i]) == !mask[i / 2]);
  dvbf_data_free(data);
}

/* ---- Larger than memory ---- */

/* Files whose x is [30, 40, 25] of different kinds, with u and a mask. */
static const char *const large_names[] = {"big.npy", "doubles.npz", "chunks.h5"};

static void write_large_hdf5(const float *x, const uint8_t *mask) {
  hid_t file = H5Fcreate(in_folder("chunks.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, (hsize_t[]){30, 40, 25}, NULL);
  H5Pset_chunk(creation, 3, (hsize_t[]){7, 9, 11});
  H5Pset_deflate(creation, 1);
  hid_t id = H5Dcreate2(file, "x", H5T_IEEE_F32BE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  assert_true(H5Dwrite(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
  H5Dclose(id);
  id = H5Dcreate2(file, "mask", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  assert_true(H5Dwrite(id, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, mask) >= 0);
  H5Dclose(id);
  H5Sclose(space);
  H5Pclose(creation);
  H5Fclose(file);
}

static void write_large(void) {
  enum { N = 30 * 40 * 25 };
  static uint8_t mask[N];
  static double doubles[N];
  static uint32_t swapped[N];
  for (size_t i = 0; i < N; i++) {
    uint32_t bits;
    memcpy(&bits, &waves()[i], sizeof bits);
    mask[i] = i % 7 != 3;
    doubles[i] = (double)waves()[i];
    swapped[i] = __builtin_bswap32(bits);
  }
  write_npy("big.npy", npy(">f4", false, "(30, 40, 25)", swapped, sizeof swapped));
  write_zip("doubles.npz", false, 2,
            (member[]){{"x.npy", npy("<f8", false, "(30, 40, 25)", doubles, sizeof doubles)},
                       {"mask.npy", npy("|u1", false, "(30, 40, 25)", mask, sizeof mask)}});
  write_large_hdf5(waves(), mask);
}

static void test_sources_give_the_same_floats(void **unused) {
  (void)unused;
  write_large();
  for (size_t i = 0; i < 3; i++) {
    dvbf_data *memory = read_file(large_names[i], NULL),
              *file = read_file(large_names[i], "memory", "0", NULL);
    assert_null(memory->train.source);
    assert_non_null(memory->train.x);
    assert_non_null(file->train.source);
    assert_null(file->train.x);
    assert_int_equal(memory->train.gaps, i > 0);
    assert_same(&memory->train, &file->train);
    uint64_t fingerprints[2];
    assert_int_equal(dv_data_fingerprint(&fingerprints[0], memory, NULL), DVBF_OK);
    assert_int_equal(dv_data_fingerprint(&fingerprints[1], file, NULL), DVBF_OK);
    assert_true(fingerprints[0] == fingerprints[1]);
    memory->train.x[(17 * 40 + 35) * 25 + 24] += 1; /* no value can change unnoticed */
    assert_int_equal(dv_data_fingerprint(&fingerprints[0], memory, NULL), DVBF_OK);
    assert_true(fingerprints[0] != fingerprints[1]);
    float piece[5 * 25], *there = memory->train.x + (17 * 40 + 36) * 25;
    assert_ptr_equal(dv_sequence_x(&file->train, 17, 36, 4, piece), piece);
    for (int k = 0; k < 100; k++) assert_true(piece[k] == there[k] || (isnan(piece[k]) && isnan(there[k])));
    dvbf_data_free(memory);
    dvbf_data_free(file);
  }
  write_demos();
  dvbf_data *memory = read_file("a.h5", NULL), *file = read_file("a.h5", "memory", "0", NULL);
  assert_non_null(file->train.source);
  assert_same(&memory->train, &file->train);
  dvbf_data_free(memory);
  dvbf_data_free(file);
}

/* What cannot be read at any place is read to memory. */
static void test_compressed_archives_are_no_source(void **unused) {
  (void)unused;
  write_zip("a.npz", true, 1, (member[]){floats("x.npy", "(2, 3, 4)", waves(), 24)});
  dvbf_data *data = read_file("a.npz", "memory", "0", NULL);
  assert_null(data->train.source);
  assert_memory_equal(data->train.x, waves(), 24 * sizeof(float));
  dvbf_data_free(data);
}

static void *read_everywhere(void *user) {
  const dvbf_data *data = user;
  float piece[3 * 25];
  for (size_t k = 0; k < 400; k++) {
    size_t sequence = k * 13 % 30, step = k * 7 % 37;
    const float *x = dv_sequence_x(&data->train, sequence, step, 3, piece);
    for (size_t i = 0; i < 75; i++)
      if (!isnan(x[i]) && x[i] != waves()[(sequence * 40 + step) * 25 + i]) return user;
  }
  return NULL;
}

static void test_sources_serve_threads(void **unused) {
  (void)unused;
  waves();
  for (size_t i = 0; i < 3; i++) {
    dvbf_data *data = read_file(large_names[i], "memory", "0", NULL);
    pthread_t threads[4];
    for (int k = 0; k < 4; k++) assert_int_equal(pthread_create(&threads[k], NULL, read_everywhere, data), 0);
    for (int k = 0; k < 4; k++) {
      void *wrong;
      pthread_join(threads[k], &wrong);
      assert_null(wrong);
    }
    assert_int_equal(dv_sequences_intact(&data->train, NULL), DVBF_OK);
    dvbf_data_free(data);
  }
}

static void test_a_file_that_shrinks_is_noticed(void **unused) {
  (void)unused;
  write_large();
  dvbf_data *data = read_file("big.npy", "memory", "0", NULL);
  assert_int_equal(truncate(in_folder("big.npy"), 1000), 0);
  float piece[25];
  assert_true(isnan(dv_sequence_x(&data->train, 20, 0, 1, piece)[0]));
  dvbf_error error = {.message = ""};
  assert_int_equal(dv_sequences_intact(&data->train, &error), DVBF_IO);
  assert_non_null(strstr(error.message, "big.npy"));
  dvbf_data_free(data);
}

/* ---- Models ---- */

static void train_from(const char *name, const char *model_name) {
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  static const char *const values[][2] = {{"updates", "3"}, {"threads", "1"}, {"batch-size", "4"}};
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  for (int i = 0; i < 3; i++)
    assert_int_equal(dvbf_settings_set(settings, values[i][0], values[i][1], &error), DVBF_OK);
  if (dvbf_data_read(&data, in_folder(name), settings, &error) ||
      dvbf_train(&model, settings, data, NULL, &error) ||
      dvbf_model_save(model, in_folder(model_name), &error))
    fail_msg("%s: %s", name, error.message);
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
}

static void write_table(const char *name, const float *x, const float *u) {
  FILE *file = fopen(in_folder(name), "w");
  fprintf(file, "sequence,x0,x1,x2,u\n");
  for (int i = 0; i < 20 * 8; i++)
    fprintf(file, "%d,%.9g,%.9g,%.9g,%.9g\n", i / 8, x[i * 3], x[i * 3 + 1], x[i * 3 + 2], u[i]);
  fclose(file);
}

/* The format leaves no trace in the model. */
static void test_same_model_from_every_format(void **unused) {
  (void)unused;
  const float *x = waves(), *u = waves() + 1000;
  for (int deflated = 0; deflated < 2; deflated++)
    write_zip(deflated ? "d.npz" : "s.npz", deflated, 2,
              (member[]){floats("x.npy", "(20, 8, 3)", x, 480), floats("u.npy", "(20, 8, 1)", u, 160)});
  write_table("t.csv", x, u);
  double doubles[480], doubles_u[160];
  for (int i = 0; i < 480; i++) doubles[i] = (double)x[i];
  for (int i = 0; i < 160; i++) doubles_u[i] = (double)u[i];
  hid_t file = new_file();
  put(file, "x", H5T_IEEE_F32LE, SHAPE(20, 8, 3), doubles);
  put(file, "u", H5T_IEEE_F64BE, SHAPE(20, 8, 1), doubles_u);
  H5Fclose(file);
  static const char *const names[] = {"s.npz", "d.npz", "t.csv", "a.h5"};
  for (int i = 0; i < 4; i++) {
    train_from(names[i], i ? "b.model" : "a.model");
    if (i && !same_bytes(in_folder("a.model"), in_folder("b.model")))
      fail_msg("%s gives another model", names[i]);
  }
}

/* ---- Recordings of others, where they are at hand ---- */

static void test_real_recordings(void **unused) {
  (void)unused;
  const char *from = getenv("DVBF_RECORDINGS");
  if (!from) {
    print_message("not tested: DVBF_RECORDINGS does not name a folder of recordings\n");
    skip();
  }
  char path[512];
  dvbf_settings *how = NULL;
  dvbf_data *table = NULL, *archive = NULL;
  dvbf_error error = {.message = ""};
  assert_int_equal(dvbf_settings_new(&how, "data", &error), DVBF_OK);
  dvbf_settings_set(how, "split-by", "none", &error);
  snprintf(path, sizeof path, "%s/cascaded_tanks/cascaded_tanks.npz", from);
  if (dvbf_data_read(&archive, path, how, &error)) fail_msg("%s", error.message);
  dvbf_settings_set(how, "inputs", "uEst", &error);
  dvbf_settings_set(how, "outputs", "yEst", &error);
  snprintf(path, sizeof path, "%s/cascaded_tanks/dataBenchmark.csv", from);
  if (dvbf_data_read(&table, path, how, &error)) fail_msg("%s", error.message);
  assert_same(&table->train, &archive->train);
  dvbf_data_free(table);
  dvbf_data_free(archive);
  dvbf_settings_free(how);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types_and_byte_orders),
      cmocka_unit_test(test_bytes_of_bits),
      cmocka_unit_test(test_episodes_of_bits),
      cmocka_unit_test(test_half_precision),
      cmocka_unit_test(test_versions_and_spellings_of_the_header),
      cmocka_unit_test(test_fortran_order),
      cmocka_unit_test(test_names_of_splits),
      cmocka_unit_test(test_missing_valid),
      cmocka_unit_test(test_keys),
      cmocka_unit_test(test_parts_have_the_same_steps),
      cmocka_unit_test(test_reads_stay_inside),
      cmocka_unit_test(test_recordings_and_stacks),
      cmocka_unit_test(test_lengths),
      cmocka_unit_test(test_masks),
      cmocka_unit_test(test_nan_is_missing_only_when_told),
      cmocka_unit_test(test_spellings_of_a_table),
      cmocka_unit_test(test_choice_of_columns),
      cmocka_unit_test(test_sequences_and_splits_of_a_table),
      cmocka_unit_test(test_missing_fields),
      cmocka_unit_test(test_decimals_are_exact),
      cmocka_unit_test(test_demos),
      cmocka_unit_test(test_episodes),
      cmocka_unit_test(test_booleans_of_hdf5),
      cmocka_unit_test(test_sources_give_the_same_floats),
      cmocka_unit_test(test_compressed_archives_are_no_source),
      cmocka_unit_test(test_sources_serve_threads),
      cmocka_unit_test(test_a_file_that_shrinks_is_noticed),
      cmocka_unit_test(test_same_model_from_every_format),
      cmocka_unit_test(test_real_recordings),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
