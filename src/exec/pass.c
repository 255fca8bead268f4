#include "exec/pass.h"

#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "data/dataset.h"

/* Sequences of a shard, rows where each has several, and numbers of x in one of several. */
enum { ROWS = 50, ROWS_OF_SAMPLES = 512, MOST = 1 << 23 };

/* Of large sequences fewer, as what is computed of x takes as much memory as x, several times over. */
static int rows_of(const dvbf_sequences *s) {
  size_t rows = s->count < ROWS ? s->count : ROWS, numbers = s->steps * s->n_x;
  if (numbers * rows <= MOST) return (int)rows;
  return numbers < MOST ? (int)(MOST / numbers) : 1;
}

/* Workers for a program that has been recorded, or nothing. */
static dvbf_status begin(dv_pass *pass, const dvbf_sequences *s, dvbf_status status, dvbf_error *error) {
  if (!status)
    status = dv_workers_new(&pass->workers, dv_pool_size(pass->pool), pass->model, &pass->program, s, error);
  if (status) dv_pass_clear(pass);
  return status;
}

dvbf_status dv_pass_init(dv_pass *pass, const dvbf_model *model, dv_pool *pool, const dvbf_sequences *s,
                         int observe, dvbf_error *error) {
  int steps = (int)s->steps, rows = rows_of(s);
  observe = observe && observe < steps ? observe : steps;
  *pass = (dv_pass){.model = model, .pool = pool, .observe = observe, .samples = 1};
  dvbf_status status = dv_program_record(&pass->program, model, steps, rows, observe, dv_gaps_of(s), error);
  return begin(pass, s, status, error);
}

dvbf_status dv_pass_init_particles(dv_pass *pass, const dvbf_model *model, dv_pool *pool,
                                   const dvbf_sequences *s, int samples, dvbf_error *error) {
  int steps = (int)s->steps, most = rows_of(s), rows = ROWS_OF_SAMPLES / samples;
  *pass = (dv_pass){.model = model, .pool = pool, .observe = steps, .samples = samples};
  rows = (rows < most ? rows : most) * samples;
  dvbf_status status =
      dv_program_record_particles(&pass->program, model, steps, rows, samples, dv_gaps_of(s), error);
  return begin(pass, s, status, error);
}

void dv_pass_clear(dv_pass *pass) {
  if (pass->workers) dv_workers_free(pass->workers, dv_pool_size(pass->pool));
  dv_program_clear(&pass->program);
  *pass = (dv_pass){0};
}

/* Of a shard. */
static size_t sequences_of(const dv_pass *pass) {
  return (size_t)(pass->program.rows / pass->samples);
}

typedef struct job {
  dv_pass *pass;
  const dvbf_sequences *sequences;
  const dv_conditions *conditions;
  dv_pass_fn *collect;
  void *user;
} job;

/* Puts sequences first .. first + count - 1 into the rows of the program. All samples of a sequence together
 * weigh as much as one. */
static void load(const job *j, dv_worker *w, uint32_t *index, uint32_t *key, size_t first, int count) {
  const dv_pass *pass = j->pass;
  int k = pass->samples;
  for (int r = 0; r < pass->program.rows; r++) {
    index[r] = (uint32_t)(first + (size_t)(r < count * k ? r / k : 0));
    key[r] = index[r] * (uint32_t)k + (uint32_t)(r % k);
  }
  dv_worker_load(w, j->sequences, index, count * k, pass->observe);
  dvbf_real *weight = dvbf_at(&w->run, pass->program.weight);
  for (int r = 0; r < pass->program.rows && k > 1; r++) weight[r] /= (dvbf_real)k;
}

static void run_shards(void *argument, int worker) {
  const job *j = argument;
  dv_pass *pass = j->pass;
  dv_worker *w = &pass->workers[worker];
  uint32_t index[ROWS_OF_SAMPLES], key[ROWS_OF_SAMPLES];
  const volatile int *interrupt = dv_pool_interrupt(pass->pool);
  w->run.interrupt = interrupt;
  w->run.conditions = j->conditions;
  w->run.sequence = key;
  size_t workers = (size_t)dv_pool_size(pass->pool), rows = sequences_of(pass);
  const dv_team *team = dv_pool_team(pass->pool);
  size_t shards = dv_pass_shards(pass, j->sequences), from = dv_team_first(team, shards, dv_team_rank(team));
  size_t until = dv_team_first(team, shards, dv_team_rank(team) + 1);
  for (size_t shard = from + (size_t)worker; shard < until; shard += workers) {
    size_t first = shard * rows, left = j->sequences->count - first;
    int count = (int)(left < rows ? left : rows);
    load(j, w, index, key, first, count);
    dv_run_forward(&w->run);
    if (dv_interrupted(interrupt)) return; /* its values mean nothing */
    j->collect(j->user, w, shard, first, count);
  }
}

dvbf_status dv_pass_run(dv_pass *pass, const dvbf_sequences *sequences, const dv_conditions *conditions,
                        dv_pass_fn *collect, void *user, dvbf_error *error) {
  job j = {pass, sequences, conditions, collect, user};
  dv_pool_run(pass->pool, run_shards, &j);
  if (dv_interrupted(dv_pool_interrupt(pass->pool))) return dv_fail_stopped(error);
  return dv_sequences_intact(sequences, error);
}

size_t dv_pass_shards(const dv_pass *pass, const dvbf_sequences *sequences) {
  size_t rows = sequences_of(pass);
  return (sequences->count + rows - 1) / rows;
}

void dv_pass_gather(const dv_pass *pass, const dvbf_sequences *sequences, void *data, size_t unit) {
  dv_team_gather_blocks(dv_pool_team(pass->pool), data, unit, sequences->count, sequences_of(pass));
}
