/* Nothing that a file contains can crash a reader: each is refused with one sentence. Models, too. */
#include "malformed.h"

#include <dvbf/dvbf.h>

/* A file is read and refused as it must be. Every third is also read with gaps and from its file. */
static void read_one(const malformed *file) {
  static int turn;
  dvbf_data *data = NULL;
  dvbf_settings *how = NULL;
  dvbf_error error = {.message = ""};
  assert_int_equal(dvbf_settings_new(&how, "data", &error), DVBF_OK);
  if (!file->part) dvbf_settings_set(how, "split-by", "none", &error);
  if (turn++ % 3 == 0) dvbf_settings_set(how, "memory", "0", &error);
  dvbf_status status = dvbf_data_read(&data, in_folder(file->name), how, &error);
  dvbf_settings_free(how);
  if (!file->part && status) fail_msg("%s", error.message);
  if (file->part && !status) fail_msg("%s was read", file->name);
  if (file->part && (!strstr(error.message, file->name) || !strstr(error.message, file->part)))
    fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.message, file->name, file->part);
  for (const char *c = error.message; *c; c++)
    if ((unsigned char)*c < ' ') fail_msg("%s: an odd character in the message", file->name);
  dvbf_data_free(data);
  unlink(in_folder(file->name));
}

static void test_npy(void **unused) {
  (void)unused;
  each_npy(read_one);
}

static void test_npz(void **unused) {
  (void)unused;
  each_npz(read_one);
}

static void test_csv(void **unused) {
  (void)unused;
  each_csv(read_one);
}

/* A file that is cut short or says to be huge; where libmatio is not there, all are refused. */
static void test_mat(void **unused) {
  (void)unused;
  dvbf_error error = {.message = ""};
  dvbf_data *data = NULL;
  unsigned char file[512];
  write_bytes(in_folder("good.mat"), file, make_mat(file));
  if (dvbf_data_read(&data, in_folder("good.mat"), NULL, &error) && strstr(error.message, "libmatio")) {
    print_message("not tested: %s\n", error.message);
    skip();
  }
  assert_int_equal(data->train.n_x, 3);
  dvbf_data_free(data);
  each_mat(read_one);
}

static void test_hdf5(void **unused) {
  (void)unused;
  each_hdf5(read_one);
}

/* Lengths of sequences that are not those of x. */
static void test_lengths(void **unused) {
  (void)unused;
  static const struct {
    const char *type, *shape;
    int64_t values[3];
    const char *part;
  } cases[] = {{"<i8", "(3,)", {5, 5, 6}, "sum to 16"},
               {"<i8", "(3,)", {5, 5, 4}, "sum to 14"},
               {"<i8", "(3,)", {5, -5, 15}, "is -5 for sequence 1"},
               {"<i8", "(3,)", {INT64_MAX, INT64_MAX, 17}, "whole number"},
               {"<i8", "(3, 1)", {5, 5, 5}, "one integer for each"},
               {"|u1", "(24,)", {5, 5, 5}, "one integer for each"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_zip("length.npz", i % 2, 2,
              (member[]){{"x.npy", npy("<f4", false, "(15, 2)", thirty, sizeof thirty)},
                         {"length.npy", npy(cases[i].type, false, cases[i].shape, cases[i].values, 24)}});
    read_one(&(malformed){"length.npz", cases[i].part});
  }
}

/* Whatever bytes change, a reader ends with data or a sentence. In this process: others crash unseen, and
 * slowly. */
static void change_bytes(const malformed *file) {
  if (file->part) return;
  size_t size;
  unsigned char *all = read_bytes(in_folder(file->name), &size);
  uint64_t random = size;
  dvbf_settings *how = NULL;
  assert_int_equal(dvbf_settings_new(&how, "data", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(how, "sandbox", "off", NULL), DVBF_OK);
  for (int trial = 0; trial < 200; trial++) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    unsigned char *at = all + (random >> 33) % size, kept = *at;
    *at = (unsigned char)(random >> 20);
    write_bytes(in_folder("changed"), all, size);
    *at = kept;
    dvbf_data *data = NULL;
    dvbf_error error = {.message = ""};
    if (dvbf_data_read(&data, in_folder("changed"), how, &error))
      assert_non_null(strstr(error.message, "changed"));
    dvbf_data_free(data);
  }
  dvbf_settings_free(how);
  free(all);
}

static void test_changed_bytes(void **unused) {
  (void)unused;
  each_npy(change_bytes);
  each_npz(change_bytes);
  each_csv(change_bytes);
}

/* ---- Models ---- */

/* A safetensors file of a header and 64 bytes. */
static void refuse_model(const char *header, const char *part) {
  unsigned char file[4096] = {0};
  size_t length = strlen(header);
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)(length >> (8 * i));
  memcpy(file + 8, header, length);
  write_bytes(in_folder("a.safetensors"), file, 8 + length + 64);
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  assert_int_not_equal(dvbf_model_load(&model, in_folder("a.safetensors"), &error), DVBF_OK);
  assert_null(model);
  if (!strstr(error.message, part)) fail_msg("\"%s\" lacks \"%s\"", error.message, part);
}

static void test_models(void **unused) {
  (void)unused;
  refuse_model("", "header cannot be read");
  refuse_model("{", "header cannot be read");
  refuse_model("[]", "header cannot be read");
  refuse_model("{\"a\":1,\"a\":1}", "duplicate");
  refuse_model("{\"__metadata__\":{\"format\":\"dvbf 1\",\"format\":\"dvbf 1\"}}", "duplicate");
  refuse_model("{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", "no __metadata__");
  refuse_model("{\"__metadata__\":{\"format\":\"pt\"}}", "not a model of dvbf");
  refuse_model("{\"__metadata__\":{\"format\":7}}", "not a model of dvbf");
  refuse_model("{\"__metadata__\":{\"format\":\"dvbf 1\",\"setting.latent\":\"1e99\"}}", "a.safetensors");
}

/* A good model's header, changed in one place. */
static void change_model(const unsigned char *good, size_t size, const char *old, const char *new,
                         const char *part) {
  unsigned char *all = malloc(size + 1);
  memcpy(all, good, size);
  unsigned char *at = memmem(all, size, old, strlen(old));
  if (!at) fail_msg("the model does not hold %s", old);
  assert_int_equal(strlen(old), strlen(new));
  memcpy(at, new, strlen(new));
  write_bytes(in_folder("a.safetensors"), all, size);
  free(all);
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  assert_int_not_equal(dvbf_model_load(&model, in_folder("a.safetensors"), &error), DVBF_OK);
  if (!strstr(error.message, part)) fail_msg("\"%s\" lacks \"%s\"", error.message, part);
}

static void test_tensors(void **unused) {
  (void)unused;
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  float values[30];
  for (size_t i = 0; i < 30; i++) values[i] = (float)i;
  write_npy("x.npy", npy("<f4", false, "(3, 10, 1)", values, sizeof values));
  if (dvbf_settings_new(&settings, "train", &error) || dvbf_settings_set(settings, "updates", "0", &error) ||
      dvbf_data_read(&data, in_folder("x.npy"), settings, &error) ||
      dvbf_train(&model, settings, data, NULL, &error) ||
      dvbf_model_save(model, in_folder("good.safetensors"), &error))
    fail_msg("%s", error.message);
  size_t size;
  unsigned char *good = read_bytes(in_folder("good.safetensors"), &size);
  char first[32], *offsets = memmem(good, size, "\"data_offsets\":[0,", 18);
  assert_non_null(offsets);
  snprintf(first, sizeof first, "%.*s", (int)strcspn(offsets + 16, "]") + 1, offsets + 16);
  int n = (int)strtol(first + 2, NULL, 10);
  char second[32];
  snprintf(second, sizeof second, "[%d,", n); /* where the second tensor begins */
  change_model(good, size, "\"F32\"", "\"F64\"", "is missing or has another shape");
  change_model(good, size, "\"dvbf 1\"", "\"dvbf 9\"", "use a newer dvbf");
  char moved[32];
  snprintf(moved, sizeof moved, "%s", second);
  moved[1] = (char)(moved[1] == '1' ? '2' : '1');
  change_model(good, size, second, moved, "a.safetensors");
  good = realloc(good, size + 3);
  assert_non_null(good);
  memset(good + size, 0, 3);
  change_model(good, size + 3, "\"dvbf 1\"", "\"dvbf 1\"", "3 of its bytes belong to no tensor");
  free(good);
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_npy),           cmocka_unit_test(test_npz),    cmocka_unit_test(test_csv),
      cmocka_unit_test(test_mat),           cmocka_unit_test(test_hdf5),   cmocka_unit_test(test_lengths),
      cmocka_unit_test(test_changed_bytes), cmocka_unit_test(test_models), cmocka_unit_test(test_tensors),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
