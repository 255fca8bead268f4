/* Runs that go on where something is not what it was: other data, other instructions, another compiler. And
 * data that change while they are used. */
#include "files.h"

#include "data/dataset.h"
#include "engine/kernels.h"
#include "runs.h"

/* ---- The checksum of data ---- */

static uint64_t fingerprint(const dvbf_data *data) {
  uint64_t out = 0;
  assert_int_equal(dv_data_fingerprint(&out, data, NULL), DVBF_OK);
  return out;
}

static void swap(float *a, float *b) {
  float kept = *a;
  *a = *b;
  *b = kept;
}

/* Each of 40,000 frames, changed by the smallest step of its number. */
static void every_frame_counts(void **unused) {
  (void)unused;
  enum { FRAMES = 40000 };
  dvbf_data data = {.train = {.count = 1, .steps = FRAMES, .n_x = 1}};
  float *x = data.train.x = calloc(FRAMES, sizeof *x);
  for (int i = 0; i < FRAMES; i++) x[i] = sinf((float)i);
  uint64_t whole = fingerprint(&data);
  for (int i = 0; i < FRAMES; i += i < 100 ? 1 : 997) {
    float kept = x[i];
    x[i] = nextafterf(kept, 2);
    assert_true(fingerprint(&data) != whole);
    x[i] = kept;
  }
  swap(&x[7], &x[30000]);
  assert_true(fingerprint(&data) != whole);
  swap(&x[7], &x[30000]);
  for (int i = 1000; i < 19100; i++) x[i] += 1; /* many at once */
  assert_true(fingerprint(&data) != whole);
  for (int i = 1000; i < 19100; i++) x[i] = sinf((float)i);
  assert_true(fingerprint(&data) == whole);
  free(x);
}

static void what_is_missing_counts(void **unused) {
  (void)unused;
  dvbf_data data = make_data();
  float *x = data.train.x;
  data.train.gaps = true;
  x[3] = 0.5F, x[33] = NAN; /* of one column */
  uint64_t before = fingerprint(&data);
  swap(&x[3], &x[33]);
  assert_true(fingerprint(&data) != before);
  free_data(&data);
}

/* The same frames, cut into sequences at one other place among many. */
static void every_length_counts(void **unused) {
  (void)unused;
  enum { COUNT = 300001 };
  dvbf_data data = {.train = {.count = COUNT, .steps = 2, .n_x = 1}};
  dvbf_sequences *s = &data.train;
  s->x = calloc(3 * COUNT, sizeof *s->x);
  s->start = calloc(COUNT, sizeof *s->start);
  s->length = calloc(COUNT, sizeof *s->length);
  for (size_t i = 0; i < COUNT; i++) s->start[i] = i + (i + 1) / 2, s->length[i] = i % 2 ? 1 : 2;
  uint64_t before = fingerprint(&data);
  for (size_t i = 2; i + 1 < COUNT; i += 74998) { /* even: of two steps */
    s->length[i] = 1, s->length[i + 1] = 2, s->start[i + 1]--;
    assert_true(fingerprint(&data) != before);
    s->length[i] = 2, s->length[i + 1] = 1, s->start[i + 1]++;
  }
  assert_true(fingerprint(&data) == before);
  free(s->x);
  free(s->start);
  free(s->length);
}

/* ---- Another machine ---- */

typedef struct watch {
  int calls, stop_at;
  bool told; /* that the run goes on elsewhere */
} watch;

static bool on_progress(const dvbf_progress *p, void *user) {
  watch *w = user;
  if (p->event && strstr(p->event, "another instruction set")) w->told = true;
  return !(w->stop_at && ++w->calls >= w->stop_at);
}

static dvbf_status train(const char *more, bool resume, watch *w, dvbf_error *error) {
  dvbf_data data = make_data();
  dvbf_settings *settings = settings_of("train", BRIEF);
  dvbf_model *model = NULL;
  char run[128];
  set_all(settings, more);
  snprintf(run, sizeof run, "%s/run", folder);
  dvbf_train_options options = {
      .folder = run, .resume = resume, .force = !resume, .progress = on_progress, .user_data = w};
  dvbf_status status = dvbf_train(&model, settings, &data, &options, error);
  dvbf_model_free(model);
  dvbf_settings_free(settings);
  free_data(&data);
  return status;
}

/* Replaces text in the checkpoint by other text of the same length. */
static void edit_checkpoint(const char *old, const char *new) {
  char path[160];
  size_t size, length = strlen(old);
  assert_int_equal(strlen(new), length);
  snprintf(path, sizeof path, "%s/run/" DVBF_RUN_CHECKPOINT, folder);
  unsigned char *bytes = read_bytes(path, &size);
  unsigned char *at = memmem(bytes, size, old, length);
  if (at)
    memcpy(at, new, length);
  else
    fail_msg("the checkpoint has no %s", old);
  write_bytes(path, bytes, size);
  free(bytes);
}

static void remove_run(void) {
  char line[160];
  snprintf(line, sizeof line, "rm -rf %s/run", folder);
  assert_int_equal(system(line), 0);
}

/* The name of the instructions, or of the compiler, is another one in the checkpoint. */
static void other_machines_are_refused(void **unused) {
  (void)unused;
  dvbf_error error = {0};
  char here[32], there[32];
  snprintf(here, sizeof here, "\"instructions\":\"%s\"", dv_kernels_best()->name);
  snprintf(there, sizeof there, "%s", here);
  there[strlen(there) - 2] ^= 1;
  const char *compiler = strstr(dv_build_compiler(), "gcc") ? "\"compiler\":\"g" : "\"compiler\":\"c";
  const char *const changes[][3] = {{here, there, "started with the instruction set"},
                                    {compiler, "\"compiler\":\"x", "started with the compiler"}};
  for (int i = 0; i < 2; i++) {
    watch stop = {.stop_at = 2}, w = {0};
    assert_int_equal(train("", false, &stop, &error), DVBF_OK);
    edit_checkpoint(changes[i][0], changes[i][1]);
    assert_int_equal(train("", true, &w, &error), DVBF_ARGUMENT);
    if (!strstr(error.message, changes[i][2])) fail_msg("%s", error.message);
    assert_non_null(strstr(error.message, "other-machine = on"));
    assert_int_equal(train("other-machine=on", true, &w, &error), DVBF_OK);
    assert_true(w.told);
    remove_run();
  }
}

/* The same with other kernels, where the processor has any. */
static void other_instructions_are_refused(void **unused) {
  (void)unused;
  dvbf_error error = {0};
  watch stop = {.stop_at = 2}, w = {0};
  if (!strcmp(dv_kernels_best()->name, "base")) {
    print_message("not tested: this processor has the base instruction set alone\n");
    skip();
  }
  assert_int_equal(train("", false, &stop, &error), DVBF_OK);
  setenv("DVBF_ISA", "base", 1);
  assert_int_equal(train("", true, &w, &error), DVBF_ARGUMENT);
  unsetenv("DVBF_ISA");
  assert_non_null(strstr(error.message, "here it is base"));
  assert_int_equal(train("", true, &w, &error), DVBF_OK);
  assert_false(w.told);
  remove_run();
}

/* A set that there is not is not taken for another one. */
static void unknown_instructions_are_refused(void **unused) {
  (void)unused;
  dvbf_error error = {0};
  watch w = {0};
  setenv("DVBF_ISA", "v9", 1);
  dvbf_status status = train("", false, &w, &error);
  unsetenv("DVBF_ISA");
  assert_int_equal(status, DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "DVBF_ISA = v9: must be base, v3 or v4"));
  remove_run();
}

static unsigned char *model_bytes(size_t *size) {
  char path[160];
  snprintf(path, sizeof path, "%s/run/" DVBF_RUN_MODEL, folder);
  return read_bytes(path, size);
}

/* With portable arithmetic a run goes on anywhere, to the same bytes. */
static void portable_runs_move(void **unused) {
  (void)unused;
  dvbf_error error = {0};
  watch stop = {.stop_at = 2}, w = {0};
  size_t size, size_moved;
  assert_int_equal(train("arithmetic=portable", false, &w, &error), DVBF_OK);
  unsigned char *there = model_bytes(&size);
  remove_run();
  assert_int_equal(train("arithmetic=portable", false, &stop, &error), DVBF_OK);
  setenv("DVBF_ISA", "base", 1);
  assert_int_equal(train("arithmetic=portable", true, &w, &error), DVBF_OK);
  unsetenv("DVBF_ISA");
  assert_false(w.told);
  unsigned char *moved = model_bytes(&size_moved);
  assert_int_equal(size, size_moved);
  assert_memory_equal(there, moved, size);
  free(there);
  free(moved);
  remove_run();
}

/* ---- Data that change while they are used ---- */

static bool spoil(const dvbf_progress *p, void *user) {
  dvbf_data *data = user;
  if (p->update >= 2)
    for (size_t i = 0; i < 12 * RUN_STEPS * RUN_N_X; i += 7) data->train.x[i] = INFINITY;
  return true;
}

static void infinite_data_are_called_so(void **unused) {
  (void)unused;
  dvbf_data data = make_data();
  dvbf_settings *settings = settings_of("train", BRIEF);
  dvbf_model *model = NULL;
  dvbf_error error = {0};
  dvbf_train_options options = {.progress = spoil, .user_data = &data};
  assert_int_equal(dvbf_train(&model, settings, &data, &options, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "the data changed while the model was trained"));
  assert_non_null(strstr(error.message, "infinite"));
  assert_null(strstr(error.message, "diverged"));
  dvbf_settings_free(settings);
  free_data(&data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_frame_counts),
      cmocka_unit_test(what_is_missing_counts),
      cmocka_unit_test(every_length_counts),
      cmocka_unit_test(other_machines_are_refused),
      cmocka_unit_test(other_instructions_are_refused),
      cmocka_unit_test(unknown_instructions_are_refused),
      cmocka_unit_test(portable_runs_move),
      cmocka_unit_test(infinite_data_are_called_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
