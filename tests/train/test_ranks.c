/* Ranks that share the shards of minibatches come to the bytes of one alone, whatever their number and that
 * of their threads. Here ranks are threads of this process; tests/cli/ranks.sh has real ones. */
#include "base/memory.h"
#include "data/checks.h"
#include "given.h"
#include "small_model.h"
#include "threads_carrier.h"
#include "train/trainer.h"
#include "train/updater.h"

#include <math.h>

#include <cmocka.h>

/* ---- Messages ---- */

static void share_things(dv_ranks *team, void *user) {
  bool *wrong = user;
  int rank = dv_ranks_rank(team), size = dv_ranks_size(team);
  int word = rank ? 0 : 42, items[23] = {0};
  dv_ranks_broadcast(team, &word, sizeof word);
  for (size_t i = dv_ranks_first(team, 23, rank); i < dv_ranks_first(team, 23, rank + 1); i++)
    items[i] = (int)i;
  dv_ranks_gather(team, items, sizeof *items, 23);
  *wrong |=
      word != 42 || dvbf_ranks_largest(team, -rank) != 0 || dvbf_ranks_largest(team, 7 + rank) != 6 + size;
  for (int i = 0; i < 23; i++) *wrong |= items[i] != i;
  dvbf_error error = {0};
  *wrong |= dv_ranks_agree(team, 5, "numbers", &error) != DVBF_OK;
  if (size > 1) {
    *wrong |= dv_ranks_agree(team, (uint64_t)rank, "numbers", &error) != DVBF_ARGUMENT;
    *wrong |= strcmp(error.message, "ranks 0 and 1 differ in numbers; start all ranks in the same way") != 0;
  }
}

static void what_is_shared_is_known_to_all(void **state) {
  (void)state;
  bool wrong = false;
  share_things(NULL, &wrong);
  assert_false(wrong);
  for (int size = 1; size <= 8; size++) run_ranks(size, share_things, &wrong);
  assert_false(wrong);
}

/* ---- The sum ---- */

enum { PARAMETERS = 3 * DV_BLOCK + 77 };

typedef struct summing {
  int shards;
  double squares; /* of all blocks */
  dvbf_real sum[PARAMETERS];
  bool wrong;
} summing;

static void sum_once(dv_ranks *team, void *user) {
  summing *wanted = user;
  dv_sums s;
  const dv_kernels *k = dv_kernels_best();
  dvbf_real *all = calloc(PARAMETERS, sizeof *all);
  if (!all || dv_sums_init(&s, team, wanted->shards, PARAMETERS, NULL)) exit(1);
  for (int i = s.first_shard; i < s.last_shard; i++) {
    dv_random r = dv_random_at(3, DV_STREAM_SIMULATION, (uint32_t)i, 0);
    for (size_t j = 0; j < PARAMETERS; j++) s.gradients[i][j] = (dvbf_real)dv_random_normal(&r);
    s.terms[i][1] = i;
  }
  dv_sums_add(&s, k, (dv_span){0, PARAMETERS});
  dv_sums_exchange(&s);
  for (size_t b = s.first_block; b < s.last_block; b++) {
    size_t first = b * DV_BLOCK, count = PARAMETERS - first < DV_BLOCK ? PARAMETERS - first : DV_BLOCK;
    s.squares[b] = dv_sums_complete(&s, k, (dv_span){first, count});
    memcpy(all + first, dv_sums_at(&s, first), count * sizeof *all);
  }
  dv_sums_tell(&s);
  dv_sums_gather(&s, all);
  double squares = 0;
  for (size_t b = 0; b < s.blocks; b++) squares += s.squares[b];
  bool wrong = false;
  for (int i = 0; i < s.shards; i++) wrong |= s.terms[i][1] != i;
  if (!team) { /* the one that others must be like */
    wanted->squares = squares;
    memcpy(wanted->sum, all, sizeof wanted->sum);
  }
  wrong |= squares != wanted->squares || memcmp(all, wanted->sum, sizeof wanted->sum) != 0;
  wrong |= dv_ranks_size(team) == 1 && dv_sums_bytes(&s) != 0;
  if (wrong) wanted->wrong = true;
  dv_sums_clear(&s);
  free(all);
}

/* Also where there are fewer shards or blocks than ranks. */
static void any_ranks_make_the_same_sum(void **state) {
  (void)state;
  summing *wanted = calloc(1, sizeof *wanted);
  assert_non_null(wanted);
  for (wanted->shards = 1; wanted->shards <= 17; wanted->shards++) {
    sum_once(NULL, wanted);
    for (int size = 1; size <= 9; size++) run_ranks(size, sum_once, wanted);
    assert_false(wanted->wrong);
  }
  free(wanted);
}

/* ---- Updates and validation ---- */

enum { UPDATES = 7 };

typedef struct updating {
  const char *settings;
  unsigned threads;
  size_t bytes;
  unsigned char *snapshot; /* of one rank alone */
  dv_scores scores;
  bool wrong;
} updating;

static void update_together(dv_ranks *team, void *user) {
  updating *wanted = user;
  fixture f;
  dv_updater *updater = NULL;
  dv_validator validator;
  dv_scores scores;
  begin(&f, wanted->settings);
  dv_threads *pool = new_pool(wanted->threads);
  dv_threads_join(pool, team);
  if (dv_updater_new(&updater, f.model, pool, &f.sequences, false, NULL)) exit(1);
  if (dv_validator_init(&validator, f.model, pool, &f.sequences, 0, NULL)) exit(1);
  size_t bytes = dv_updater_snapshot_size(updater);
  unsigned char *snapshot = calloc(1, bytes);
  bool wrong = dv_updater_run(updater, UPDATES) != UPDATES;
  wrong |= dv_validator_run(&scores, &validator, -2, NULL) != DVBF_OK;
  dv_updater_save(updater, snapshot);
  if (!team) {
    free(wanted->snapshot);
    wanted->snapshot = snapshot;
    wanted->bytes = bytes;
    wanted->scores = scores;
  } else {
    wrong |= memcmp(snapshot, wanted->snapshot, bytes) != 0;
    wrong |= memcmp(&scores, &wanted->scores, sizeof scores) != 0;
    free(snapshot);
  }
  if (wrong) wanted->wrong = true;
  dv_validator_clear(&validator);
  dv_updater_free(updater);
  dv_threads_free(pool);
  end(&f);
}

static void any_ranks_make_the_same_updates(void **state) {
  (void)state;
  static const char *const settings[] = {"clip-norm=1 hidden=70 batch-size=43", "model=dkf batch-size=43",
                                         "optimizer=adadelta batch-size=60 contraction=0.9"};
  updating wanted = {.threads = 1};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    wanted.settings = settings[i];
    update_together(NULL, &wanted);
    for (int size = 1; size <= 8; size = size < 4 ? size + 1 : 2 * size)
      for (wanted.threads = 1; wanted.threads <= 2; wanted.threads++)
        run_ranks(size, update_together, &wanted);
    wanted.threads = 1;
    assert_false(wanted.wrong);
  }
  free(wanted.snapshot);
}

/* ---- Estimates and evaluation ---- */

typedef struct asking {
  const char *model, *table, *settings;
  unsigned threads;
  dvbf_estimates *alone;
  dvbf_evaluation *evaluation;
  bool wrong;
} asking;

static bool same_floats(const float *a, const float *b, size_t count) {
  return !a == !b && (!a || !memcmp(a, b, count * sizeof *a));
}

static bool same_estimates(const dvbf_estimates *a, const dvbf_estimates *b) {
  size_t z = a->count * a->steps * a->n_z, x = a->count * a->steps * a->n_x;
  return a->count == b->count && a->steps == b->steps && same_floats(a->z, b->z, a->samples * z) &&
         same_floats(a->z_mean, b->z_mean, z) && same_floats(a->z_std, b->z_std, z) &&
         same_floats(a->x, b->x, x) && same_floats(a->x_std, b->x_std, x) &&
         same_floats(a->x_samples, b->x_samples, a->samples * x) &&
         same_floats(a->x_quantiles, b->x_quantiles, a->n_quantiles * x);
}

/* Some frames of some sequences are missing. */
static void begin_with_gaps(fixture *f, const char *settings) {
  begin(f, settings);
  f->sequences.gaps = true;
  f->sequences.count = 37;
  for (size_t i = 0; i < 37; i += 2)
    for (size_t k = 0; k < N_X; k++) f->sequences.x[(i * STEPS + 5) * N_X + k] = NAN;
}

static void estimate_together(dv_ranks *team, void *user) {
  asking *a = user;
  fixture f;
  dvbf_estimates *e = NULL;
  dvbf_error error = {0};
  begin_with_gaps(&f, a->model);
  dvbf_settings *settings = settings_of(a->table, a->settings);
  if (dv_settings_give(settings, "threads", a->threads == 1 ? "1" : "2", &error)) exit(1);
  dvbf_settings_ranks(settings, team);
  if (dvbf_estimate(&e, f.model, &f.sequences, settings, &error)) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  if (!team)
    a->alone = e;
  else if (!same_estimates(e, a->alone))
    a->wrong = true;
  if (team) dvbf_estimates_free(e);
  dvbf_settings_free(settings);
  end(&f);
}

static void any_ranks_make_the_same_estimates(void **state) {
  (void)state;
  static const char *const asked[][3] = {
      {"", "filter", "samples=4 x-samples=on"},
      {"", "filter", "samples=4 particles=10"},
      {"", "filter", "samples=4 forecast=on"},
      {"", "smooth", "samples=4 particles=10"},
      {"model=dkf", "smooth", "samples=4 particles=10"},
      {"universal=point", "predict", "samples=4 observe=4 x-samples=on"},
      {"", "sample", "count=11 steps=6"},
  };
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    asking a = {.model = asked[i][0], .table = asked[i][1], .settings = asked[i][2], .threads = 1};
    estimate_together(NULL, &a);
    for (int size = 2; size <= 3; size++) {
      a.threads = (unsigned)size - 1;
      run_ranks(size, estimate_together, &a);
    }
    dvbf_estimates_free(a.alone);
    if (a.wrong) fail_msg("%s %s %s differs", a.model, a.table, a.settings);
  }
}

static bool same_numbers(const double *a, const double *b, size_t count) {
  return !memcmp(a, b, count * sizeof *a);
}

static void evaluate_together(dv_ranks *team, void *user) {
  asking *a = user;
  fixture f;
  dvbf_evaluation *e = NULL;
  dvbf_error error = {0};
  begin_with_gaps(&f, a->model);
  dvbf_data data = {.train = f.sequences, .test = f.sequences};
  dvbf_settings *settings = settings_of("evaluate", "samples=2 particles=8 threads=1");
  dvbf_settings_ranks(settings, team);
  if (dvbf_evaluate(&e, f.model, &data, &data.test, settings, &error)) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  const dvbf_evaluation *w = team ? a->evaluation : e;
  double mine[] = {e->elbo, e->importance_bound, e->verdict->one_step.score[DVBF_BY_LEARNED].rmse,
                   e->verdict->free_run.score[DVBF_BY_LEARNED].rmse};
  double wanted[] = {w->elbo, w->importance_bound, w->verdict->one_step.score[DVBF_BY_LEARNED].rmse,
                     w->verdict->free_run.score[DVBF_BY_LEARNED].rmse};
  if (!same_numbers(mine, wanted, 4) || !same_numbers(e->mse, w->mse, e->horizon) ||
      !same_numbers(e->mse_mean_path, w->mse_mean_path, e->horizon) ||
      !same_numbers(e->mse_repeat, w->mse_repeat, e->horizon))
    a->wrong = true;
  if (team)
    dvbf_evaluation_free(e);
  else
    a->evaluation = e;
  dvbf_settings_free(settings);
  end(&f);
}

static void any_ranks_make_the_same_evaluation(void **state) {
  (void)state;
  asking a = {.model = ""};
  evaluate_together(NULL, &a);
  for (int size = 2; size <= 3; size++) run_ranks(size, evaluate_together, &a);
  dvbf_evaluation_free(a.evaluation);
  assert_false(a.wrong);
}

/* Ranks with another model would otherwise give a mixture of both. */
static void ask_with_others(dv_ranks *team, void *user) {
  asking *a = user;
  fixture f;
  dvbf_estimates *e = NULL;
  dvbf_error error = {0};
  begin(&f, "");
  dvbf_settings *settings = settings_of("filter", "samples=2");
  dvbf_settings_ranks(settings, team);
  if (dv_ranks_rank(team)) f.model->parameters.values[0] += 1;
  if (dvbf_estimate(&e, f.model, &f.sequences, settings, &error) != DVBF_ARGUMENT ||
      !strstr(error.message, "ranks 0 and 1 differ in the model"))
    a->wrong = true;
  dvbf_settings_free(settings);
  end(&f);
}

static void ranks_with_other_models_are_refused(void **state) {
  (void)state;
  asking a = {0};
  run_ranks(2, ask_with_others, &a);
  assert_false(a.wrong);
}

/* ---- Measuring data ---- */

enum { SEQUENCES = 37, LENGTH = 13, WIDTH = 5, PROBED = 16 * LENGTH };

/* Frames that stand in memory, read as if from a file. */
typedef struct counted {
  dvbf_source base;
  const float *x;
  uint64_t frames; /* that were read */
} counted;

static bool read_counted(dvbf_source *source, uint64_t first, size_t frames, float *out) {
  counted *c = (counted *)source;
  memcpy(out, c->x + first * WIDTH, frames * WIDTH * sizeof *out);
  c->frames += frames;
  return true;
}

typedef struct measuring {
  float x[SEQUENCES * LENGTH * WIDTH];
  dv_statistics alone;
  dv_outliers outliers;
  uint64_t print, read; /* frames that all ranks together have read */
  int other;            /* rank with other data; -1: none */
  bool wrong;
} measuring;

static dvbf_sequences sequences_of(float *x) {
  return (dvbf_sequences){.count = SEQUENCES, .steps = LENGTH, .n_x = WIDTH, .x = x, .gaps = true};
}

static bool same_statistics(const dv_statistics *a, const dv_statistics *b) {
  return !memcmp(a->mean, b->mean, WIDTH * 6 * sizeof *a->mean) && a->rows == b->rows &&
         a->frames == b->frames && a->low == b->low && a->high == b->high && a->whole == b->whole &&
         a->binary == b->binary && a->counts == b->counts;
}

static void measure_together(dv_ranks *team, void *user) {
  measuring *m = user;
  float own[SEQUENCES * LENGTH * WIDTH];
  memcpy(own, m->x, sizeof own);
  if (dv_ranks_rank(team) == m->other) own[LENGTH * WIDTH * (SEQUENCES * 5 / 16) + 3] = 7;
  counted source = {.base = {.read = read_counted}, .x = own};
  dvbf_sequences s = sequences_of(NULL);
  dv_statistics x = {0};
  dv_outliers found = {0};
  uint64_t print = 0;
  dvbf_error error = {0};
  s.source = &source.base;
  if (dv_facts_begin(&s, &error)) m->wrong = true;
  dvbf_status status = dv_statistics_together(&x, &s, team, &error);
  if (m->other >= 0) {
    if (status != DVBF_ARGUMENT ||
        strcmp(error.message, "ranks 0 and 1 differ in the data; start all ranks in the same way"))
      m->wrong = true;
    dv_facts_free(s.facts);
    return;
  }
  uint64_t size = (uint64_t)dv_ranks_size(team),
           share = SEQUENCES * LENGTH / size + 2 * LENGTH * (1 + 12 / LENGTH);
  if (status || source.frames > share + PROBED || !same_statistics(&x, &m->alone)) m->wrong = true;
  __atomic_fetch_add(&m->read, source.frames, __ATOMIC_SEQ_CST);
  if (dv_sequences_fingerprint(&print, &s, &error) || print != m->print) m->wrong = true; /* reads nothing */
  source.base.team = team;
  if (dv_outliers_find(&found, &s, false, 50, &x, &error) || found.count != m->outliers.count ||
      memcmp(found.list, m->outliers.list, found.count * sizeof *found.list))
    m->wrong = true;
  dv_free(found.list);
  dv_statistics_free(&x);
  dv_facts_free(s.facts);
}

static void any_ranks_measure_the_same(void **state) {
  (void)state;
  measuring m = {.other = -1};
  dvbf_sequences s = sequences_of(m.x);
  uint64_t usual = dv_chunk;
  dv_chunk = 12 * WIDTH;
  for (size_t i = 0; i < SEQUENCES * LENGTH * WIDTH; i++)
    m.x[i] =
        i % 17 == 4 || (i % WIDTH == 2 && i < 600) ? NAN : sinf((float)i) + (i % WIDTH == 1 ? 1000.0F : 0);
  m.x[1003] = 1e6F;
  m.x[2008] = -2e6F;
  assert_return_code(dv_statistics_of_x(&m.alone, &s, NULL), 0);
  assert_return_code(dv_sequences_fingerprint(&m.print, &s, NULL), 0);
  assert_return_code(dv_outliers_find(&m.outliers, &s, false, 50, &m.alone, NULL), 0);
  assert_int_equal(m.outliers.count, 1);
  assert_int_equal(m.outliers.list[0].count, 2);
  for (int size = 2; size <= 8; size++) {
    m.read = 0;
    run_ranks(size, measure_together, &m);
    if (m.wrong || m.read != SEQUENCES * LENGTH + (uint64_t)size * PROBED) fail_msg("%d ranks differ", size);
  }
  m.other = 1;
  run_ranks(2, measure_together, &m);
  assert_false(m.wrong);
  dv_chunk = usual;
  dv_free(m.outliers.list);
  dv_statistics_free(&m.alone);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_ranks_measure_the_same),
      cmocka_unit_test(what_is_shared_is_known_to_all),
      cmocka_unit_test(any_ranks_make_the_same_sum),
      cmocka_unit_test(any_ranks_make_the_same_updates),
      cmocka_unit_test(any_ranks_make_the_same_estimates),
      cmocka_unit_test(any_ranks_make_the_same_evaluation),
      cmocka_unit_test(ranks_with_other_models_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
