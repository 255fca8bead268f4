/* The engine around the equations: memory, plans, refusals, model files, threads, snapshots. */
#include "base/memory.h"
#include "base/random.h"
#include "data/dataset.h"
#include "model/model.h"
#include "train/schedule.h"
#include "train/updater.h"
#include "train/validate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- A small model on small data ---- */

enum { N_X = 6, N_U = 2, STEPS = 8, COUNT = 120 };

static const char common[] =
    "latent=3 systems=4 hidden=9 initial-frames=3 predict-from=4 batch-size=20 shard-size=6 "
    "warm-up=0 sigma-floor-updates=0 filter-dropout=0.3 mixing-hidden=5";

typedef struct fixture {
  dvbf_sequences sequences;
  dvbf_model *model;
} fixture;

static dvbf_settings *make_settings(const char *text) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  char line[512], *rest = line;
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  snprintf(line, sizeof line, "%s %s", common, text);
  for (char *word; (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value++ = 0;
    if (dvbf_settings_set(settings, word, value, &error)) fail_msg("%s", error.message);
  }
  return settings;
}

static void begin(fixture *f, const char *text) {
  dvbf_error error;
  dvbf_settings *settings = make_settings(text);
  dv_random random = dv_random_at(2, DV_STREAM_SIMULATION, 0, 0);
  *f = (fixture){.sequences = {.count = COUNT, .steps = STEPS, .n_x = N_X, .n_u = N_U}};
  assert_int_equal(dv_sequences_allocate(&f->sequences, true, &error), DVBF_OK);
  for (size_t i = 0; i < COUNT * STEPS * N_X; i++) f->sequences.x[i] = (float)dv_random_uniform(&random);
  for (size_t i = 0; i < COUNT * STEPS * N_U; i++) f->sequences.u[i] = (float)dv_random_normal(&random);
  for (size_t i = 0; i < COUNT; i++) f->sequences.length[i] = STEPS - (uint32_t)(i % 3);
  if (dv_model_new(&f->model, settings, NULL, &f->sequences, 6, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(settings);
}

static void end(fixture *f) {
  dvbf_model_free(f->model);
  dvbf_sequences_free(&f->sequences);
}

static dv_pool *new_pool(unsigned threads) {
  dv_pool *pool = NULL;
  assert_int_equal(dv_pool_new(&pool, threads, NULL), DVBF_OK);
  return pool;
}

/* The parameters of the model after some updates, on that many threads. The caller frees. */
static dvbf_real *trained(fixture *f, unsigned threads, uint64_t updates) {
  dv_pool *pool = new_pool(threads);
  dv_updater *updater = NULL;
  assert_int_equal(dv_updater_new(&updater, f->model, pool, &f->sequences, NULL), DVBF_OK);
  assert_int_equal(dv_updater_run(updater, updates), updates);
  size_t bytes = f->model->parameters.size * sizeof(dvbf_real);
  dvbf_real *copy = malloc(bytes);
  assert_non_null(copy);
  memcpy(copy, f->model->parameters.values, bytes);
  dv_updater_free(updater);
  dv_pool_free(pool);
  return copy;
}

/* ---- Set-up allocates, loops never do ---- */

static void loops_do_not_allocate(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  unsigned long before = dv_allocations();
  dv_pool *pool = new_pool(2);
  dv_updater *updater = NULL;
  dv_validator validator;
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, NULL), DVBF_OK);
  assert_int_equal(dv_validator_init(&validator, f.model, pool, &f.sequences, NULL), DVBF_OK);
  void *snapshot = malloc(dv_updater_snapshot_size(updater));
  unsigned long ready = dv_allocations();
  assert_true(ready > before);                       /* the counter counts */
  assert_int_equal(dv_updater_run(updater, 25), 25); /* into the fifth epoch */
  dv_scores scores = dv_validator_run(&validator, -2);
  dv_updater_save(updater, snapshot);
  dv_updater_restore(updater, snapshot);
  assert_int_equal(dv_updater_run(updater, 3), 3);
  assert_int_equal(dv_allocations(), ready);
  assert_true(isfinite(scores.bound) && isfinite(scores.prediction));
  assert_true(isfinite(dv_updater_bound(updater)));
  free(snapshot);
  dv_validator_clear(&validator);
  dv_updater_free(updater);
  dv_pool_free(pool);
  end(&f);
}

/* ---- Plans ---- */

/* What a run leaves behind. */
typedef struct outcome {
  double terms[DV_TERMS];
  dvbf_real *gradient; /* [parameters] */
  size_t arena;
} outcome;

/* Gives every buffer of a program memory of its own. A new buffer's number tells how many there are. */
static void keep_everything(dvbf_graph *g) {
  int count = dvbf_slab(g, 1, 1).buffer;
  for (int i = 0; i < count; i++) dvbf_keep(g, (dvbf_value){.buffer = i});
  assert_int_equal(dv_graph_plan(g, NULL), DVBF_OK);
}

/* Runs twice over memory full of NaN, so that nothing is read that was not written in this run. */
static outcome run_program(fixture *f, bool training, bool keep) {
  enum { ROWS = 5 };
  static const uint32_t index[ROWS] = {4, 0, 7, 2, 2};
  dv_program p;
  dvbf_run run;
  dv_schedule schedule = {.seed = 3,
                          .stream = DV_STREAM_NOISE,
                          .temperature = 0.8,
                          .log_sigma_floor = -2,
                          .filter_dropout = f->model->settings->filter_dropout,
                          .sequences = COUNT,
                          .scale = 0.1};
  size_t n = f->model->parameters.size;
  outcome o = {.gradient = calloc(n, sizeof *o.gradient)};
  assert_int_equal(dv_program_record(&p, f->model, STEPS, ROWS, STEPS, training, NULL), DVBF_OK);
  if (keep) keep_everything(p.graph);
  assert_int_equal(dv_run_init(&run, p.graph, NULL), DVBF_OK);
  o.arena = dv_graph_arena_size(p.graph);
  run.parameters = f->model->parameters.values;
  run.gradient = o.gradient;
  run.schedule = &schedule;
  run.sequence = index;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < o.arena; i++) run.arena[i] = NAN;
    dv_program_load(&p, &run, f->model, &f->sequences, index, 4, STEPS);
    dv_run_forward(&run);
    if (training) dv_run_backward(&run);
  }
  memcpy(o.terms, run.terms, sizeof o.terms);
  dv_run_clear(&run);
  dv_program_clear(&p);
  return o;
}

/* same_ops: a program without backward has the same ops, and so the same rounding. */
static void expect_same_plans(const char *settings, bool same_ops) {
  fixture f;
  begin(&f, settings);
  size_t bytes = f.model->parameters.size * sizeof(dvbf_real);
  outcome reused = run_program(&f, true, false), kept = run_program(&f, true, true);
  outcome forward = run_program(&f, false, false);
  assert_true(reused.arena < kept.arena); /* memory is used again indeed */
  assert_true(forward.arena < reused.arena);
  for (int i = 0; i < DV_TERMS; i++) assert_true(isfinite(reused.terms[i]));
  assert_memory_equal(reused.terms, kept.terms, sizeof kept.terms);
  if (same_ops) assert_memory_equal(reused.terms, forward.terms, sizeof kept.terms);
  for (int i = 0; i < DV_TERMS; i++)
    assert_true(fabs(reused.terms[i] - forward.terms[i]) <= 1e-6 * fabs(forward.terms[i]));
  assert_memory_equal(reused.gradient, kept.gradient, bytes);
  double sum = 0;
  for (size_t i = 0; i < f.model->parameters.size; i++) sum += fabs((double)reused.gradient[i]);
  assert_true(isfinite(sum) && sum > 0);
  free(reused.gradient);
  free(kept.gradient);
  free(forward.gradient);
  end(&f);
}

static void plans_do_not_change_values(void **state) {
  (void)state;
  expect_same_plans("", true);
  expect_same_plans("initial=birnn hidden=20 universal-noise=step", true);
  expect_same_plans("transition=mlp sigma=state transition-hidden=18", true);
  expect_same_plans("transition=linear likelihood=bernoulli universal=point", true);
  expect_same_plans("initial=fast-dropout hidden=20", true);
  expect_same_plans("model=dkf sigma=state hidden=20", true);
  expect_same_plans("model=dkf layers=2 filter-dropout=0 filter-dropout-end=0", false);
}

/* ---- Refused recordings ---- */

typedef void recording(dvbf_graph *g);

static void wrong_layer(dvbf_graph *g) {
  dvbf_layer l = {.out = dvbf_slab(g, 2, 3), .bias = DVBF_NONE, .n_in = 1};
  l.in[0].x = dvbf_slab(g, 2, 4);
  l.in[0].w = dvbf_parameter(g, "w", 5, 3, (dvbf_first){0});
  dvbf_layer_whole(g, &l);
}

/* Training would have to learn from an input that all rows share. */
static void shared_input(dvbf_graph *g) {
  dvbf_layer l = {.out = dvbf_slab(g, 2, 3), .n_in = 1};
  l.bias = dvbf_parameter(g, "b", 1, 3, (dvbf_first){0});
  l.in[0].x = dvbf_slab_shared_constant(g, 2, 5);
  l.in[0].w = dvbf_parameter(g, "w", 5, 3, (dvbf_first){0});
  dvbf_layer_whole(g, &l);
}

static void layer_without_inputs(dvbf_graph *g) {
  dvbf_layer l = {.out = dvbf_slab(g, 2, 3), .bias = DVBF_NONE};
  dvbf_layer_open(g, &l);
}

static void wrong_mixture(dvbf_graph *g) {
  dvbf_mixture m = {.z = dvbf_slab(g, 2, 3),
                    .u = DVBF_NONE,
                    .w = dvbf_slab(g, 2, 3),
                    .alpha = DVBF_NONE,
                    .v = dvbf_slab_shared(g, 1, 17),
                    .next = dvbf_slab(g, 2, 3),
                    .systems = 1,
                    .parts = dvbf_slab_constant(g, 2, 3)};
  dvbf_mixture_open(g, &m);
}

static void wrong_innovation(dvbf_graph *g) {
  dv_innovation i = {.w = dvbf_slab(g, 1, 3),
                     .kl = dvbf_slab(g, 1, 1),
                     .head = dvbf_slab(g, 1, 5),
                     .noise = dvbf_slab_constant(g, 1, 3),
                     .use = DVBF_NONE};
  dv_record_innovation(g, &i, -1);
}

static void wrong_state(dvbf_graph *g) {
  dv_state s = {.z = dvbf_slab(g, 2, 3),
                .kl = dvbf_slab(g, 2, 1),
                .q = dvbf_slab(g, 2, 6),
                .p = dvbf_slab(g, 2, 5),
                .noise = dvbf_slab_constant(g, 2, 3),
                .use = dvbf_slab_constant(g, 2, 1),
                .seen = 2};
  dv_record_state_kl(g, &s);
}

static void state_not_seen(dvbf_graph *g) {
  dv_state s = {.z = dvbf_slab(g, 2, 3),
                .kl = dvbf_slab(g, 2, 1),
                .q = dvbf_slab(g, 1, 6),
                .p = dvbf_slab(g, 2, 6),
                .noise = dvbf_slab_constant(g, 2, 3),
                .use = dvbf_slab_constant(g, 2, 1),
                .seen = 1};
  dv_record_state_sample(g, &s, -1);
}

static void wrong_sum(dvbf_graph *g) {
  dvbf_add(g, dvbf_slab(g, 2, 3), dvbf_slab(g, 2, 3), dvbf_slab(g, 2, 4));
}

static void wrong_sides(dvbf_graph *g) {
  dvbf_side_by_side(g, dvbf_slab(g, 1, 5), dvbf_slab(g, 2, 3));
}

static void wrong_parameter(dvbf_graph *g) {
  dvbf_parameter(g, "w", 2, 3, (dvbf_first){0});
  dvbf_parameter(g, "w", 3, 2, (dvbf_first){0});
}

static void empty_slab(dvbf_graph *g) {
  dvbf_slab(g, 2, 0);
}

static void too_many_inputs(dvbf_graph *g) {
  static const dvbf_op_class class = {"greedy", NULL, NULL};
  dvbf_value in[DVBF_MAX_IN + 1];
  for (int i = 0; i <= DVBF_MAX_IN; i++) in[i] = DVBF_NONE;
  dvbf_record(g, &class, DVBF_MAX_IN + 1, in, 0, NULL, NULL, 0);
}

static void two_refusals(dvbf_graph *g) {
  dvbf_refuse(g, "the first of %d", 2);
  dvbf_refuse(g, "the second");
}

static void refused_recordings_say_why(void **state) {
  (void)state;
  static const struct {
    recording *record;
    const char *sentence; /* a part of it */
  } cases[] = {
      {wrong_layer, "input 0 of a layer is [2][4][4] times [5][3]"},
      {shared_input, "input 0 of a layer is [2][1][5] times [5][3] for an output [2][4][3]"},
      {layer_without_inputs, "1 to 4 inputs, not 0"},
      {wrong_mixture, "mixture of 1 systems do not fit"},
      {wrong_innovation, "a head of 5 outputs cannot give 3 innovations"},
      {wrong_state, "[2][6] and [2][5] cannot give 2 steps of 3 states"},
      {state_not_seen, "q has seen 1 of 2 steps"},
      {wrong_sum, "different shapes cannot be added"},
      {wrong_sides, "2 steps of 3 do not make 5 columns"},
      {wrong_parameter, "parameter w is [2][3] where [3][2] is needed"},
      {empty_slab, "[2][4][0] cannot be recorded"},
      {too_many_inputs, "greedy has more than"},
      {two_refusals, "the first of 2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dv_parameters parameters = {0};
    dvbf_error error = {0};
    dvbf_graph *g = dv_graph_new(&parameters, 4, true);
    cases[i].record(g);
    assert_int_equal(dv_graph_plan(g, &error), DVBF_ARGUMENT);
    if (!strstr(error.message, cases[i].sentence))
      fail_msg("\"%s\" lacks \"%s\"", error.message, cases[i].sentence);
    dv_graph_free(g);
    dv_parameters_free(&parameters);
  }
}

static void refused_programs_say_why(void **state) {
  (void)state;
  fixture f;
  dv_program p = {0};
  dvbf_error error = {0};
  begin(&f, "");
  assert_int_not_equal(dv_program_record(&p, f.model, 1, 4, 1, true, &error), DVBF_OK);
  assert_non_null(strstr(error.message, "at least 2"));
  assert_int_not_equal(dv_program_record(&p, f.model, STEPS, 4, 2, false, &error), DVBF_OK);
  assert_non_null(strstr(error.message, "initial-frames"));
  assert_null(p.graph);
  /* A complete model gets no new parameters. */
  dvbf_graph *g = dv_graph_new(&f.model->parameters, 4, false);
  dvbf_parameter(g, "unheard-of", 1, 1, (dvbf_first){0});
  assert_int_equal(dv_graph_plan(g, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "unheard-of"));
  dv_graph_free(g);
  end(&f);
}

/* ---- Model files ---- */

static char folder[] = "/tmp/dvbf-test-engine-XXXXXX";
static char path[128], other[128];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/model", folder);
  snprintf(other, sizeof other, "%s/other", folder);
  return 0;
}

/* Fails when a test leaves any other file behind, such as a temporary one. */
static int remove_folder(void **state) {
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
  FILE *file = fopen(name, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  bytes b = {.size = (size_t)ftell(file)};
  rewind(file);
  b.at = malloc(b.size);
  assert_int_equal(fread(b.at, 1, b.size, file), b.size);
  fclose(file);
  return b;
}

static void write_file(const char *name, const void *at, size_t size) {
  FILE *file = fopen(name, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(at, 1, size, file), size);
  fclose(file);
}

static dvbf_paths *infer(const dvbf_model *m, const dvbf_sequences *s, unsigned threads, size_t observe) {
  dvbf_paths *paths = NULL;
  dvbf_error error;
  dvbf_infer_options options = {.observe = observe, .seed = 5, .threads = threads};
  if (dvbf_infer(&paths, m, s, &options, &error)) fail_msg("%s", error.message);
  return paths;
}

static void expect_same_paths(dvbf_paths *a, dvbf_paths *b) {
  size_t frames = a->count * a->steps;
  assert_memory_equal(a->z, b->z, frames * a->n_z * sizeof *a->z);
  assert_memory_equal(a->x, b->x, frames * a->n_x * sizeof *a->x);
  assert_memory_equal(a->log_likelihood, b->log_likelihood, frames * sizeof *a->log_likelihood);
  assert_memory_equal(a->kl, b->kl, frames * sizeof *a->kl);
  dvbf_paths_free(b);
}

static void saved_models_infer_the_same(void **state) {
  (void)state;
  static const char *const variants[] = {"x-scaling=standardise u-scaling=standardise",
                                         "initial=birnn transition=mlp",
                                         "initial=fast-dropout dropout=0.3",
                                         "likelihood=bernoulli transition=linear affine=on",
                                         "model=dkf layers=2 sigma=state",
                                         "model=dkf layers=2 initial=fast-dropout"};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    fixture f;
    dvbf_model *loaded = NULL;
    dvbf_error error;
    begin(&f, variants[i]);
    free(trained(&f, 1, 3));
    if (dvbf_model_save(f.model, path, &error)) fail_msg("%s", error.message);
    if (dvbf_model_load(&loaded, path, &error)) fail_msg("%s", error.message);
    dvbf_paths *paths = infer(f.model, &f.sequences, 1, 5);
    expect_same_paths(paths, infer(loaded, &f.sequences, 1, 5));
    dvbf_paths_free(paths);
    assert_int_equal(dvbf_model_save(loaded, other, &error), DVBF_OK); /* and once more: the same file */
    bytes a = read_file(path), b = read_file(other);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.at, b.at, a.size);
    free(a.at);
    free(b.at);
    dvbf_model_free(loaded);
    end(&f);
  }
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

/* ---- Malformed model files ---- */

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
    write_file(path, file.at, size);
    if (!refused()) fail_msg("a file cut at %zu of %zu was accepted", size, file.size);
  }
  write_file(path, file.at, file.size - 1);
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
    write_file(path, copy, file.size);
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
    write_file(path, file.at, file.size);
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
  write_file(path, edited, 8 + (size_t)length + file.size - 8 - header);
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

static void not_finite_is_not_loaded(void **state) {
  (void)state;
  static const unsigned char quiet[] = {0, 0, 0xc0, 0x7f}, infinite[] = {0, 0, 0x80, 0xff};
  bytes file = good_file();
  size_t data = 8 + header_size(file), last = file.size - 4, places[] = {data, data + 400, last};
  for (int i = 0; i < 6; i++) {
    unsigned char *at = file.at + places[i / 2], kept[4];
    memcpy(kept, at, 4);
    memcpy(at, i % 2 ? quiet : infinite, 4);
    write_file(path, file.at, file.size);
    assert_true(refused());
    memcpy(at, kept, 4);
  }
  write_file(path, file.at, file.size);
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

/* ---- Threads and snapshots ---- */

static void expect_same_for_all_threads(const char *settings) {
  fixture f;
  dvbf_real *first = NULL;
  begin(&f, settings);
  dvbf_paths *paths = infer(f.model, &f.sequences, 1, 5);
  for (unsigned threads = 2; threads <= 5; threads++)
    expect_same_paths(paths, infer(f.model, &f.sequences, threads, 5));
  dvbf_paths_free(paths);
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
  expect_same_for_all_threads("optimizer=adadelta clip-norm=1");
  expect_same_for_all_threads("model=dkf");
  expect_same_for_all_threads("model=dkf layers=2 filter-dropout=0 filter-dropout-end=0");
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
  dv_pool *pool = new_pool(1);
  dv_updater *updater = NULL;
  begin(&f, "products=bfloat16x3");
  setenv("DVBF_ISA", "base", 1);
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, &error), DVBF_ARGUMENT);
  dvbf_paths_free(infer(f.model, &f.sequences, 1, 5));
  unsetenv("DVBF_ISA");
  assert_non_null(strstr(error.message, "products = bfloat16x3: "));
  assert_non_null(strstr(error.message, "; use products = float"));
  dv_pool_free(pool);
  end(&f);
}

static void snapshots_continue_the_same(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dv_pool *pool = new_pool(2);
  dv_updater *updater = NULL;
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, NULL), DVBF_OK);
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
  dv_pool_free(pool);
  end(&f);
}

/* Another start has another order, also when the last one ended in the same epoch: it ends as in an updater
 * that has seen no other. The same holds for the way back to a snapshot of another start. */
static void starts_do_not_mix(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dv_pool *pool = new_pool(1);
  dv_updater *used = NULL, *fresh = NULL;
  assert_int_equal(dv_updater_new(&used, f.model, pool, &f.sequences, NULL), DVBF_OK);
  assert_int_equal(dv_updater_new(&fresh, f.model, pool, &f.sequences, NULL), DVBF_OK);
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
  dv_pool_free(pool);
  end(&f);
}

/* ---- The Deep Kalman Filter ---- */

/* What comes after the observed frames changes nothing, before or after them; one that is observed does, also
 * at the frames before it. */
static void dkf_sees_the_observed_frames_alone(void **state) {
  (void)state;
  static const char *const variants[] = {"model=dkf", "model=dkf layers=2 filter-dropout=0",
                                         "model=dkf initial=fast-dropout activation=sigmoid"};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    for (size_t observe = 1; observe < STEPS; observe += 3) {
      fixture f;
      begin(&f, variants[i]);
      free(trained(&f, 1, 3));
      size_t frame = STEPS * N_X; /* from sequence to sequence */
      dvbf_paths *paths = infer(f.model, &f.sequences, 1, observe);
      for (size_t k = 0; k < COUNT * frame; k++)
        if (k % frame >= observe * N_X) f.sequences.x[k] += 1;
      expect_same_paths(paths, infer(f.model, &f.sequences, 1, observe));
      for (size_t k = 0; k < COUNT; k++) f.sequences.x[k * frame + (observe - 1) * N_X] += 1;
      dvbf_paths *others = infer(f.model, &f.sequences, 1, observe);
      for (size_t t = 0; t < STEPS; t++) {
        size_t at = t * paths->n_z; /* in the first sequence */
        assert_memory_not_equal(paths->z + at, others->z + at, paths->n_z * sizeof *paths->z);
        assert_true((paths->kl[t] != 0) == (t < observe));
        assert_true((paths->log_likelihood[t] != 0) == (t < observe));
      }
      dvbf_paths_free(paths);
      dvbf_paths_free(others);
      end(&f);
    }
}

/* A network on frames cannot be a dkf's recognition: it gets a recurrent one. Nothing is left of w and v. */
static void dkf_settings(void **state) {
  (void)state;
  fixture f;
  char initial[16];
  begin(&f, "model=dkf initial=mlp initial-frames=3");
  assert_int_equal(dvbf_settings_get(f.model->settings_object, "initial", initial, sizeof initial, NULL),
                   DVBF_OK);
  assert_string_equal(initial, "birnn");
  assert_int_equal(dv_model_frames_needed(f.model), 1);
  assert_int_equal(dvbf_model_describe(f.model).n_w, 0);
  for (size_t i = 0; i < f.model->parameters.count; i++)
    assert_null(strstr(f.model->parameters.list[i].name, "universal"));
  end(&f);
}

static void every_preset_makes_a_model(void **state) {
  (void)state;
  for (size_t i = 0; dvbf_preset_name(i, NULL); i++) {
    fixture f;
    dvbf_model *m = NULL;
    dvbf_error error;
    dvbf_settings *settings = make_settings("");
    begin(&f, "");
    if (dvbf_settings_preset(settings, dvbf_preset_name(i, NULL), &error)) fail_msg("%s", error.message);
    if (dv_model_new(&m, settings, NULL, &f.sequences, 1, &error)) fail_msg("%s", error.message);
    assert_int_equal(m->settings->model, strstr(dvbf_preset_name(i, NULL), "dkf") ? DV_DKF : DV_DVBF);
    dvbf_model_free(m);
    dvbf_settings_free(settings);
    end(&f);
  }
}

static void dkf_refusals(void **state) {
  (void)state;
  fixture f;
  dvbf_error error = {0};
  dvbf_model *m = NULL;
  size_t size;
  dvbf_transition own = {.name = "own"};
  begin(&f, "model=dkf");
  dvbf_data data = {.train = f.sequences, .valid = f.sequences, .test = f.sequences};
  assert_int_equal(dvbf_train_with(&m, &own, f.model->settings_object, &data, NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "\"own\"; model = dvbf can"));
  if (dvbf_model_save(f.model, path, &error)) fail_msg("%s", error.message);
  error = (dvbf_error){0};
  assert_int_equal(dvbf_model_load_with(&m, &own, path, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "\"own\"; model = dvbf can"));
  assert_null(m);
  assert_int_equal(dvbf_filter_memsize(&size, f.model, 4, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "frames after t"));
  end(&f);
}

/* ---- Noise ---- */

enum { NOISE_STEPS = 3, NOISE_COLS = 6 };

/* One program of noise: two streams for each sequence, and one that all share. */
typedef struct noise_program {
  dv_parameters parameters;
  dvbf_graph *graph;
  dvbf_value a, b, shared, mask, use;
  dvbf_run run;
  dv_schedule schedule;
} noise_program;

static void begin_noise(noise_program *p, int rows, const uint32_t *sequence) {
  *p = (noise_program){.schedule = {.seed = 1, .stream = DV_STREAM_NOISE}};
  dvbf_graph *g = p->graph = dv_graph_new(&p->parameters, rows, false);
  p->a = dvbf_slab_constant(g, NOISE_STEPS, NOISE_COLS);
  p->b = dvbf_slab_constant(g, NOISE_STEPS, NOISE_COLS);
  p->shared = dvbf_slab_shared(g, NOISE_STEPS, NOISE_COLS);
  p->mask = dvbf_slab_constant(g, NOISE_STEPS, 1);
  p->use = dvbf_slab_constant(g, NOISE_STEPS, 1);
  dv_record_noise(g, p->a, false);
  dv_record_noise(g, p->b, false);
  dv_record_noise(g, p->shared, true);
  dv_record_filter_use(g, p->use, p->mask);
  dvbf_value all[] = {p->a, p->b, p->shared, p->mask, p->use};
  for (int i = 0; i < 5; i++) dvbf_keep(g, all[i]);
  assert_int_equal(dv_graph_plan(g, NULL), DVBF_OK);
  assert_int_equal(dv_run_init(&p->run, g, NULL), DVBF_OK);
  p->run.schedule = &p->schedule;
  p->run.sequence = sequence;
  for (int i = 0; i < NOISE_STEPS * rows; i++) dvbf_at(&p->run, p->mask)[i] = 1;
  dv_run_forward(&p->run);
}

static void end_noise(noise_program *p) {
  dv_run_clear(&p->run);
  dv_graph_free(p->graph);
}

static const dvbf_real *noise_row(const noise_program *p, dvbf_value v, int t, int row) {
  return dvbf_at(&p->run, dvbf_steps(v, t, 1)) + row * NOISE_COLS;
}

/* Whatever the shard and the place in it, a sequence gets the same numbers; and no two uses share any. */
static void noise_depends_on_its_key_alone(void **state) {
  (void)state;
  static const uint32_t first[] = {10, 11, 12}, second[] = {12, 10};
  enum { BYTES = NOISE_COLS * sizeof(dvbf_real) };
  noise_program p, q;
  begin_noise(&p, 3, first);
  begin_noise(&q, 2, second);
  for (int t = 0; t < NOISE_STEPS; t++) {
    const dvbf_real *a = noise_row(&p, p.a, t, 0);
    assert_memory_equal(a, noise_row(&q, q.a, t, 1), BYTES);
    assert_memory_equal(noise_row(&p, p.b, t, 2), noise_row(&q, q.b, t, 0), BYTES);
    assert_memory_equal(noise_row(&p, p.shared, t, 0), noise_row(&q, q.shared, t, 0), BYTES);
    assert_memory_not_equal(a, noise_row(&p, p.a, t, 1), BYTES);
    assert_memory_not_equal(a, noise_row(&p, p.b, t, 0), BYTES);
    assert_memory_not_equal(a, noise_row(&p, p.a, (t + 1) % NOISE_STEPS, 0), BYTES);
  }
  dv_schedule others[] = {p.schedule, p.schedule, p.schedule};
  others[0].seed = 2;
  others[1].update = 1;
  others[2].stream = DV_STREAM_INFERENCE;
  for (int i = 0; i < 3; i++) {
    q.schedule = others[i];
    dv_run_forward(&q.run);
    assert_memory_not_equal(noise_row(&p, p.a, 0, 0), noise_row(&q, q.a, 0, 1), BYTES);
    assert_memory_not_equal(noise_row(&p, p.shared, 0, 0), noise_row(&q, q.shared, 0, 0), BYTES);
  }
  q.schedule.mean_path = true;
  dv_run_forward(&q.run);
  for (int i = 0; i < NOISE_COLS; i++) assert_true(noise_row(&q, q.a, 1, 1)[i] == 0);
  end_noise(&p);
  end_noise(&q);
}

static double share_used(noise_program *p, double dropout) {
  int used = 0, all = NOISE_STEPS * p->use.rows;
  p->schedule.filter_dropout = dropout;
  dv_run_forward(&p->run);
  for (int i = 0; i < all; i++) used += dvbf_at(&p->run, p->use)[i] > 0;
  return (double)used / all;
}

/* Share of dropped steps among those that follow a dropped one. */
static double share_that_stays(const noise_program *p) {
  const dvbf_real *use = dvbf_at(&p->run, p->use);
  int rows = p->use.rows, dropped = 0, stay = 0;
  for (int i = 0; i < (NOISE_STEPS - 1) * rows; i++)
    if (use[i] == 0) dropped++, stay += use[i + rows] == 0;
  return (double)stay / dropped;
}

/* Runs of mean length L stay dropped with probability 1 - 1 / L; the share is the same at every step. Runs
 * shorter than chance gives do not exist. */
static void filter_dropout_comes_in_runs(void **state) {
  (void)state;
  enum { ROWS = 20000 };
  static uint32_t sequence[ROWS];
  for (uint32_t i = 0; i < ROWS; i++) sequence[i] = i;
  noise_program p;
  begin_noise(&p, ROWS, sequence);
  static const double runs[] = {1, 4, 10}, stay[] = {0.3, 0.75, 0.9};
  for (int i = 0; i < 3; i++) {
    p.schedule.filter_dropout_run = runs[i];
    share_used(&p, 0.3);
    for (int t = 0; t < NOISE_STEPS; t++) {
      double used = 0;
      for (int r = 0; r < ROWS; r++) used += dvbf_at(&p.run, p.use)[t * ROWS + r] > 0;
      assert_true(fabs(used / ROWS - 0.7) < 0.015);
    }
    assert_true(fabs(share_that_stays(&p) - stay[i]) < 0.02);
  }
  end_noise(&p);
}

static void filter_dropout_drops_its_share(void **state) {
  (void)state;
  enum { ROWS = 1000 };
  uint32_t sequence[ROWS];
  for (uint32_t i = 0; i < ROWS; i++) sequence[i] = i;
  noise_program p;
  begin_noise(&p, ROWS, sequence);
  assert_true(share_used(&p, 0) == 1);
  assert_true(share_used(&p, 1) == 0);
  assert_true(fabs(share_used(&p, 0.3) - 0.7) < 4 * sqrt(0.21 / (NOISE_STEPS * ROWS)));
  for (int i = 0; i < ROWS; i++)
    dvbf_at(&p.run, p.mask)[i] = 0; /* the first of three steps is not observed */
  assert_true(fabs(share_used(&p, 0) - 2.0 / 3) < 1e-12);
  end_noise(&p);
}

/* ---- Divergence ---- */

/* A gradient that is not finite stops the run and leaves the parameters alone. */
static void divergence_is_noticed(void **state) {
  (void)state;
  fixture f;
  begin(&f, "");
  dv_pool *pool = new_pool(2);
  dv_updater *updater = NULL;
  assert_int_equal(dv_updater_new(&updater, f.model, pool, &f.sequences, NULL), DVBF_OK);
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
  dv_pool_free(pool);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_gradients_are_clipped),
      cmocka_unit_test(loops_do_not_allocate),
      cmocka_unit_test(plans_do_not_change_values),
      cmocka_unit_test(refused_recordings_say_why),
      cmocka_unit_test(refused_programs_say_why),
      cmocka_unit_test(saved_models_infer_the_same),
      cmocka_unit_test(not_finite_is_not_saved),
      cmocka_unit_test(truncated_files),
      cmocka_unit_test(flipped_bits),
      cmocka_unit_test(wrong_header_length),
      cmocka_unit_test(edited_headers),
      cmocka_unit_test(not_finite_is_not_loaded),
      cmocka_unit_test(what_is_no_file),
      cmocka_unit_test(threads_do_not_change_results),
      cmocka_unit_test(threads_do_not_change_tiles),
      cmocka_unit_test(missing_tiles_are_refused),
      cmocka_unit_test(snapshots_continue_the_same),
      cmocka_unit_test(dkf_sees_the_observed_frames_alone),
      cmocka_unit_test(dkf_settings),
      cmocka_unit_test(dkf_refusals),
      cmocka_unit_test(every_preset_makes_a_model),
      cmocka_unit_test(starts_do_not_mix),
      cmocka_unit_test(divergence_is_noticed),
      cmocka_unit_test(noise_depends_on_its_key_alone),
      cmocka_unit_test(filter_dropout_drops_its_share),
      cmocka_unit_test(filter_dropout_comes_in_runs),
  };
  return cmocka_run_group_tests_name("engine", tests, make_folder, remove_folder);
}
