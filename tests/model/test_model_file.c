/* Model files: what is saved is what is loaded, and damaged files are refused. */
#include "files.h"
#include "small_model.h"

#include <math.h>

#include <cmocka.h>

static const char *path, *other;

static int begin_files(void **state) {
  if (make_folder(state)) return -1;
  path = in_folder("model");
  other = in_folder("other");
  return 0;
}

/* Fails when a test leaves any other file behind, such as a temporary one. */
static int end_files(void **state) {
  (void)state;
  unlink(path);
  unlink(other);
  return rmdir(folder);
}

typedef struct bytes {
  unsigned char *at;
  size_t size;
} bytes;

static bytes read_file(const char *name) {
  bytes b;
  b.at = read_bytes(name, &b.size);
  return b;
}

static void saved_models_infer_the_same(void **state) {
  (void)state;
  static const char *const variants[] = {"x-scaling=standardise u-scaling=standardise",
                                         "initial=birnn transition=mlp",
                                         "initial=fast-dropout",
                                         "likelihood=bernoulli transition=linear affine=on",
                                         "model=dkf layers=2 sigma=state",
                                         "model=dkf layers=2 initial=fast-dropout",
                                         "model=vrnn units=7 sigma=dimension",
                                         "model=storn units=7",
                                         "model=svae",
                                         "model=e2c state-limit=3 transition-weight=2"};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    fixture f;
    dvbf_model *loaded = NULL;
    dvbf_error error;
    begin(&f, variants[i]);
    free(trained(&f, 1, 3));
    if (dvbf_model_save(f.model, path, &error)) fail_msg("%s", error.message);
    if (dvbf_model_load(&loaded, path, &error)) fail_msg("%s", error.message);
    dv_paths *paths = infer(f.model, &f.sequences, 1, 5);
    expect_same_paths(paths, infer(loaded, &f.sequences, 1, 5));
    dv_paths_free(paths);
    assert_int_equal(dvbf_model_save(loaded, other, &error), DVBF_OK); /* and once more: the same file */
    assert_true(same_bytes(path, other));
    dvbf_model_free(loaded);
    end(&f);
  }
}

/* A further model of the same data. */
static dvbf_model *another(const char *settings) {
  fixture f;
  begin(&f, settings);
  dvbf_model *m = f.model;
  f.model = NULL;
  end(&f);
  return m;
}

static void give_parts(dvbf_model *m) {
  assert_int_equal(dv_model_add_member(m, another("latent=2 hidden=4"), NULL), DVBF_OK);
  assert_int_equal(dv_model_set_linear(m, another("transition=linear affine=on"), NULL), DVBF_OK);
  assert_int_equal(dv_model_add_member(m, another("model=dkf"), NULL), DVBF_OK);
}

/* Members of any class and size, and the best linear model, are in the one file. */
static void parts_are_saved_too(void **state) {
  (void)state;
  fixture f;
  dvbf_model *loaded = NULL;
  dvbf_error error;
  begin(&f, "");
  give_parts(f.model);
  if (dvbf_model_save(f.model, path, &error)) fail_msg("%s", error.message);
  if (dvbf_model_load(&loaded, path, &error)) fail_msg("%s", error.message);
  assert_int_equal(dv_model_members(loaded), 3);
  assert_non_null(loaded->linear);
  const dvbf_model *saved[] = {f.model, f.model->others[0], f.model->others[1], f.model->linear};
  const dvbf_model *found[] = {loaded, loaded->others[0], loaded->others[1], loaded->linear};
  for (int i = 0; i < 4; i++) {
    dv_paths *paths = infer(saved[i], &f.sequences, 1, 5);
    expect_same_paths(paths, infer(found[i], &f.sequences, 1, 5));
    dv_paths_free(paths);
  }
  assert_int_equal(dvbf_model_save(loaded, other, &error), DVBF_OK);
  assert_true(same_bytes(path, other));
  dvbf_model_free(loaded);
  end(&f);
}

/* What has parts, or is of other data, is no part. */
static void parts_that_are_refused(void **state) {
  (void)state;
  fixture f;
  dvbf_error error;
  begin(&f, "");
  dvbf_model *committee = another(""), *narrow = NULL;
  give_parts(committee);
  assert_int_equal(dv_model_add_member(f.model, committee, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "3 parts"));
  assert_int_equal(dv_model_empty(&narrow, dvbf_model_settings(f.model), NULL, N_X - 1, N_U, NULL), DVBF_OK);
  assert_int_equal(dv_model_set_linear(f.model, narrow, &error), DVBF_ARGUMENT);
  for (int i = 1; i < DV_MOST_MEMBERS; i++)
    assert_int_equal(dv_model_add_member(f.model, another("latent=1 hidden=1"), NULL), DVBF_OK);
  assert_int_equal(dv_model_add_member(f.model, another("latent=1"), &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "at most 64"));
  end(&f);
}

static void not_finite_is_not_saved(void **state) {
  (void)state;
  fixture f;
  dvbf_error error;
  begin(&f, "");
  assert_int_equal(dvbf_model_save(f.model, path, &error), DVBF_OK);
  bytes before = read_file(path);
  static const float bad[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    f.model->parameters.values[f.model->parameters.list[3].offset + 1] = bad[i];
    assert_int_equal(dvbf_model_save(f.model, path, &error), DVBF_NUMERIC);
    assert_non_null(strstr(error.message, "not finite"));
    assert_non_null(strstr(error.message, f.model->parameters.list[3].name));
  }
  bytes after = read_file(path);
  assert_int_equal(before.size, after.size);
  assert_memory_equal(before.at, after.at, after.size);
  free(before.at);
  free(after.at);
  end(&f);
}

/* ---- Malformed files ---- */

/* Loads what was written to `path`: a good model, or one sentence and nothing else. */
static bool refused(void) {
  dvbf_model *m = NULL;
  dvbf_error error = {0};
  dvbf_status status = dvbf_model_load(&m, path, &error);
  if (!status) {
    assert_non_null(m);
    dvbf_model_free(m);
    return false;
  }
  assert_null(m);
  assert_int_equal(error.status, status);
  assert_true(strlen(error.message) > strlen(path));
  assert_null(strchr(error.message, '\n'));
  return true;
}

/* A saved model, as bytes. */
static bytes good_file(void) {
  fixture f;
  begin(&f, "");
  assert_int_equal(dvbf_model_save(f.model, path, NULL), DVBF_OK);
  end(&f);
  assert_false(refused());
  return read_file(path);
}

static size_t header_size(bytes file) {
  size_t size = 0;
  for (int i = 0; i < 8; i++) size |= (size_t)file.at[i] << (8 * i);
  return size;
}

static void put_size(unsigned char *to, uint64_t size) {
  for (int i = 0; i < 8; i++) to[i] = (unsigned char)(size >> (8 * i));
}

static void truncated_files(void **state) {
  (void)state;
  bytes file = good_file();
  size_t data = 8 + header_size(file);
  for (size_t size = 0; size < file.size; size += size < 16 ? 1 : size < data ? 97 : 211) {
    write_bytes(path, file.at, size);
    if (!refused()) fail_msg("a file cut at %zu of %zu was accepted", size, file.size);
  }
  write_bytes(path, file.at, file.size - 1);
  assert_true(refused());
  free(file.at);
}

/* One to three wrong bits. A number may change unnoticed, the form may not. */
static void flipped_bits(void **state) {
  (void)state;
  bytes file = good_file();
  size_t header = 8 + header_size(file);
  dv_random random = dv_random_at(12, DV_STREAM_SIMULATION, 0, 0);
  int found = 0;
  for (int i = 0; i < 400; i++) {
    unsigned char *copy = malloc(file.size);
    memcpy(copy, file.at, file.size);
    for (int k = 0; k <= i % 3; k++) {
      size_t at = dv_random_word(&random) % (i % 4 ? header : file.size);
      copy[at] ^= (unsigned char)(1 << dv_random_word(&random) % 8);
    }
    write_bytes(path, copy, file.size);
    found += refused();
    free(copy);
  }
  assert_true(found > 200);
  free(file.at);
}

static void wrong_header_length(void **state) {
  (void)state;
  bytes file = good_file();
  size_t right = header_size(file);
  uint64_t lengths[] = {0,
                        1,
                        right - 1,
                        right - 8,
                        right + 8,
                        file.size - 8,
                        file.size - 7,
                        1u << 24,
                        (1u << 24) + 1,
                        1ull << 40,
                        1ull << 63,
                        UINT64_MAX - 7,
                        UINT64_MAX};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    put_size(file.at, lengths[i]);
    write_bytes(path, file.at, file.size);
    assert_true(refused());
  }
  free(file.at);
}

/* Writes the file with the first `from` in its header replaced by `to`. */
static void write_edited(bytes file, const char *from, const char *to) {
  size_t header = header_size(file), room = header + strlen(to) + 16;
  char *text = calloc(room, 1), *edited = calloc(room + 8 + file.size - header, 1), *at;
  memcpy(text, file.at + 8, header);
  at = strstr(text, from);
  if (!at) fail_msg("the header holds no %s", from);
  int length = snprintf(edited + 8, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  put_size((unsigned char *)edited, (uint64_t)length);
  memcpy(edited + 8 + length, file.at + 8 + header, file.size - 8 - header);
  write_bytes(path, edited, 8 + (size_t)length + file.size - 8 - header);
  free(text);
  free(edited);
}

static void edited_headers(void **state) {
  (void)state;
  static const struct {
    const char *from, *to;
  } cases[] = {
      {"\"n_x\":\"6\"", "\"n_x\":\"6\",\"n_x\":\"6\""}, /* duplicate keys */
      {"\"scaling.x.scale\":", "\"scaling.x.shift\":"},
      {"\"n_x\":\"6\"", "\"n_x\":6"},
      {"\"n_x\":\"6\"", "\"n_x\":\"7\""},
      {"\"n_x\":\"6\"", "\"n_x\":\"0\""},
      {"\"n_x\":\"6\"", "\"n_x\":\"-6\""},
      {"\"n_x\":\"6\"", "\"n_x\":\"nan\""},
      {"\"n_x\":\"6\"", "\"n_x\":\"1e300\""},
      {"\"n_u\":\"2\"", "\"n_u\":\"0\""},
      {"dvbf 1", "dvbf 2"},
      {"\"__metadata__\"", "\"metadata\""},
      {"\"transition\":\"locally-linear\"", "\"transition\":\"else\""},
      {"\"setting.latent\":\"3\"", "\"setting.latent\":\"4\""}, /* other shapes */
      {"\"setting.latent\":\"3\"", "\"setting.latent\":\"-3\""},
      {"\"setting.latent\":\"3\"", "\"setting.latent\":[3]"},
      {"\"setting.latent\":\"3\"", "\"setting.unheard-of\":\"3\""},
      /* settings that ask for far more than the file holds */
      {"\"setting.hidden\":\"9\"", "\"setting.hidden\":\"8192\""},
      {"\"setting.initial-frames\":\"3\"", "\"setting.initial-frames\":\"65536\""},
      {"\"setting.systems\":\"4\"", "\"setting.systems\":\"1024\""},
      {"\"F32\"", "\"F64\""},
      {"\"shape\":[", "\"shape\":[1,"},
      {"\"shape\":[18,9]", "\"shape\":[9,18]"},
      {"\"data_offsets\":[0,", "\"data_offsets\":[4,"},
      {"\"data_offsets\":[0,", "\"data_offsets\":[-8,"},
      {"\"data_offsets\":[0,", "\"data_offsets\":[0,0,"},
      {"\"data_offsets\":[0,", "\"data_offsets\":[9223372036854775807,"},
      {"\"data_offsets\":[0,", "\"data_offsets\":[99999999999999999999,"},
      {"\"data_offsets\":[0,648]", "\"data_offsets\":[1000000000,1000000648]"},
      {"\"data_offsets\":[0,648]", "\"data_offsets\":[4,652]"}, /* over the next one */
      {"\"data_offsets\":[0,648]", "\"data_offsets\":\"0,648\""},
      {"{", "["},
      {"{", "{\"deep\":[[[[[[[[[[[[[[[[[[[["},
  };
  bytes file = good_file();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_edited(file, cases[i].from, cases[i].to);
    if (!refused()) fail_msg("%s in place of %s was accepted", cases[i].to, cases[i].from);
  }
  write_edited(file, "\"n_x\":\"6\"", "\"n_x\":\"6\",\"new\":\"unknown keys are left alone\"");
  assert_false(refused());
  free(file.at);
}

static void edited_parts(void **state) {
  (void)state;
  static const struct {
    const char *from, *to;
  } cases[] = {
      {"\"members\":\"3\"", "\"members\":\"2\""}, /* its tensors belong to nobody */
      {"\"members\":\"3\"", "\"members\":\"4\""},
      {"\"members\":\"3\"", "\"members\":\"0\""},
      {"\"members\":\"3\"", "\"members\":\"2.5\""},
      {"\"members\":\"3\"", "\"members\":\"65\""},
      {"\"members\":\"3\"", "\"members\":\"1e300\""},
      {"\"linear\":\"1\"", "\"linear\":\"2\""},
      {"\"linear\":\"1\"", "\"nonlinear\":\"1\""},
      {"\"member-2/n_x\":\"6\"", "\"member-2/n_x\":\"5\""},
      {"\"linear/n_u\":\"2\"", "\"linear/n_u\":\"0\""},
      {"\"member-3/updates\"", "\"member-4/updates\""},
      {"\"member-2/setting.latent\":\"2\"", "\"member-2/setting.latent\":\"3\""},
      {"\"member-2/setting.latent\"", "\"member-2/setting.unheard-of\""},
      {"\"member-2/setting.hidden\":\"4\"", "\"member-2/setting.hidden\":\"8192\""},
      {"\"member-2/scaling.x.scale\":", "\"member-2/scaling.x.other\":"},
      {"\"member-2/scaling.x.scale\":", "\"scaling.x.scale\":"},
  };
  fixture f;
  begin(&f, "");
  give_parts(f.model);
  assert_int_equal(dvbf_model_save(f.model, path, NULL), DVBF_OK);
  end(&f);
  bytes file = read_file(path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_edited(file, cases[i].from, cases[i].to);
    if (!refused()) fail_msg("%s in place of %s was accepted", cases[i].to, cases[i].from);
  }
  /* Parts of parts are not looked for. */
  write_edited(file, "\"members\":\"3\"", "\"members\":\"3\",\"member-2/members\":\"3\"");
  assert_false(refused());
  free(file.at);
}

static void not_finite_is_not_loaded(void **state) {
  (void)state;
  static const unsigned char quiet[] = {0, 0, 0xc0, 0x7f}, infinite[] = {0, 0, 0x80, 0xff};
  bytes file = good_file();
  size_t data = 8 + header_size(file), last = file.size - 4, places[] = {data, data + 400, last};
  for (int i = 0; i < 6; i++) {
    unsigned char *at = file.at + places[i / 2], kept[4];
    memcpy(kept, at, 4);
    memcpy(at, i % 2 ? quiet : infinite, 4);
    write_bytes(path, file.at, file.size);
    assert_true(refused());
    memcpy(at, kept, 4);
  }
  write_bytes(path, file.at, file.size);
  assert_false(refused());
  free(file.at);
}

static void what_is_no_file(void **state) {
  (void)state;
  dvbf_model *m = NULL;
  dvbf_error error;
  unlink(path);
  assert_true(refused());
  assert_int_equal(dvbf_model_load(&m, folder, &error), DVBF_IO);
  assert_null(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(saved_models_infer_the_same),
      cmocka_unit_test(parts_are_saved_too),
      cmocka_unit_test(parts_that_are_refused),
      cmocka_unit_test(not_finite_is_not_saved),
      cmocka_unit_test(truncated_files),
      cmocka_unit_test(flipped_bits),
      cmocka_unit_test(wrong_header_length),
      cmocka_unit_test(edited_headers),
      cmocka_unit_test(edited_parts),
      cmocka_unit_test(not_finite_is_not_loaded),
      cmocka_unit_test(what_is_no_file),
  };
  return cmocka_run_group_tests_name("model file", tests, begin_files, end_files);
}
