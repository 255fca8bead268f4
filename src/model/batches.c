/* Running a model over many sequences: filling the inputs of a program (dv_worker_*), a forward pass over all
 * sequences shard by shard on all threads and ranks (dv_pass_*), and the check that ranks have equal
 * settings, data and instructions (dv_ranks_alike). Shards depend on the batch alone, so results depend on
 * neither threads nor ranks. */
#include "model/batches.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/text.h"
#include "data/dataset.h"
#include "engine/kernels.h"

#include <string.h>

/* ---- Workers ---- */

dvbf_status dv_worker_init(dv_worker *w, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error) {
  *w = (dv_worker){.model = model, .program = program};
  dvbf_status status = dv_run_init(&w->run, program->graph, error);
  w->run.parameters = model->parameters.values;
  return status || !s ? status : dv_sequence_buffer(&w->frames, s, s->steps, error);
}

void dv_worker_clear(dv_worker *w) {
  dv_run_clear(&w->run);
  dv_free(w->frames);
  *w = (dv_worker){0};
}

dvbf_status dv_workers_new(dv_worker **out, int count, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error) {
  dv_worker *workers = dv_calloc((size_t)count, sizeof *workers);
  dvbf_status status = workers ? DVBF_OK : dv_fail_memory(error, "preparing threads");
  for (int i = 0; i < count && !status; i++) status = dv_worker_init(&workers[i], model, program, s, error);
  if (status)
    dv_workers_free(workers, count);
  else
    *out = workers;
  return status;
}

void dv_workers_free(dv_worker *workers, int count) {
  for (int i = 0; workers && i < count; i++) dv_worker_clear(&workers[i]);
  dv_free(workers);
}

/* ---- Filling the inputs ---- */

/* A row of the inputs, for one sequence. */
typedef struct input_row {
  dvbf_real *x, *u, *mask, *seen; /* of step 0; seen is NULL if nobody asks */
} input_row;

static void load_x(const dv_worker *w, input_row to, const float *frames, bool gaps, int seen) {
  const dvbf_program *p = w->program;
  const dvbf_model *m = w->model;
  const dv_kernels *k = w->run.k;
  int n = m->n_x;
  size_t stride = (size_t)p->rows * (size_t)n, all = (size_t)n * sizeof *to.x;
  for (int t = 0; t < p->steps; t++, to.x += stride, frames += n) {
    bool there = t < seen;
    dvbf_real *each = to.seen ? to.seen + (size_t)t * stride : NULL;
    if (!there) {
      memset(to.x, 0, all);
      if (each) memset(each, 0, all);
    } else {
      if (gaps)
        there = k->observe(to.x, each, frames, m->x.shift, m->x.scale, n);
      else
        k->standardise(to.x, frames, m->x.shift, m->x.scale, n);
      if (!gaps && each)
        for (int i = 0; i < n; i++) each[i] = 1;
    }
    to.mask[(size_t)t * p->rows] = there;
  }
}

/* Controls from `known` on are 0. */
static void load_u(const dv_worker *w, dvbf_real *to, const float *from, int known) {
  const dvbf_model *m = w->model;
  size_t n = (size_t)m->n_u, stride = (size_t)w->program->rows * n;
  for (int t = 0; t < w->program->steps; t++, to += stride, from += n) {
    if (t < known)
      w->run.k->standardise(to, from, m->u.shift, m->u.scale, m->n_u);
    else
      memset(to, 0, n * sizeof *to);
  }
}

void dv_worker_load(dv_worker *w, const dvbf_sequences *from, const uint32_t *index, int count, int observe) {
  const dvbf_program *p = w->program;
  const dvbf_model *m = w->model;
  const dvbf_run *run = &w->run;
  input_row first = {dvbf_at(run, p->x), dvbf_at(run, p->u), dvbf_at(run, p->mask), NULL};
  if (p->seen.buffer >= 0 && m->n_x > 1) first.seen = dvbf_at(run, p->seen);
  dvbf_real *weight = dvbf_at(run, p->weight);
  size_t n_x = (size_t)m->n_x, n_u = (size_t)m->n_u;
  for (int r = 0; r < p->rows; r++) {
    uint32_t s = index[r < count ? r : 0];
    size_t whole = dvbf_sequence_length(from, s);
    int length = whole < (size_t)p->steps ? (int)whole : p->steps, seen = observe < length ? observe : length;
    input_row to = {first.x + (size_t)r * n_x, NULL, first.mask + r,
                    first.seen ? first.seen + (size_t)r * n_x : NULL};
    weight[r] = r < count;
    load_x(w, to, dv_sequence_x(from, s, 0, (size_t)seen, w->frames), from->gaps, seen);
    if (n_u) load_u(w, first.u + (size_t)r * n_u, from->u + dvbf_sequence_start(from, s) * n_u, length);
  }
}

/* ---- Passes ---- */

/* Sequences of a shard, rows if each has several, and numbers of x in one of several. */
enum { SHARD_ROWS = 50, ROWS_OF_SAMPLES = 512, SHARD_NUMBERS = 1 << 23 };

/* Fewer rows for large sequences: what is computed of x takes several times the memory of x. */
static int rows_of(const dvbf_sequences *s) {
  size_t rows = s->count < SHARD_ROWS ? s->count : SHARD_ROWS, numbers = s->steps * s->n_x;
  if (numbers * rows <= SHARD_NUMBERS) return (int)rows;
  return numbers < SHARD_NUMBERS ? (int)(SHARD_NUMBERS / numbers) : 1;
}

/* Workers for a recorded program, or nothing. */
static dvbf_status begin(dv_pass *pass, const dvbf_sequences *s, dvbf_status status, dvbf_error *error) {
  if (!status)
    status =
        dv_workers_new(&pass->workers, dv_threads_size(pass->pool), pass->model, &pass->program, s, error);
  if (status) dv_pass_clear(pass);
  return status;
}

dvbf_status dv_pass_init(dv_pass *pass, const dvbf_model *model, dv_threads *pool, const dvbf_sequences *s,
                         int observe, dvbf_error *error) {
  int steps = (int)s->steps, rows = rows_of(s);
  observe = observe && observe < steps ? observe : steps;
  *pass = (dv_pass){.model = model, .pool = pool, .observe = observe, .samples = 1};
  dvbf_status status = dv_program_record(&pass->program, model, steps, rows, observe, dv_gaps_of(s), error);
  return begin(pass, s, status, error);
}

dvbf_status dv_pass_init_particles(dv_pass *pass, const dvbf_model *model, dv_threads *pool,
                                   const dvbf_sequences *s, int samples, dvbf_error *error) {
  int steps = (int)s->steps, most = rows_of(s), rows = ROWS_OF_SAMPLES / samples;
  *pass = (dv_pass){.model = model, .pool = pool, .observe = steps, .samples = samples};
  rows = (rows < most ? rows : most) * samples;
  dvbf_status status =
      dv_program_record_particles(&pass->program, model, steps, rows, samples, dv_gaps_of(s), error);
  return begin(pass, s, status, error);
}

void dv_pass_clear(dv_pass *pass) {
  if (pass->workers) dv_workers_free(pass->workers, dv_threads_size(pass->pool));
  dv_program_clear(&pass->program);
  *pass = (dv_pass){0};
}

/* Of a shard. */
static size_t sequences_of(const dv_pass *pass) {
  return (size_t)(pass->program.rows / pass->samples);
}

typedef struct shard_job {
  dv_pass *pass;
  const dvbf_sequences *sequences;
  const dv_conditions *conditions;
  dv_pass_fn *collect;
  void *user;
} shard_job;

/* Puts sequences first .. first + count - 1 into the rows of the program. All samples of a sequence together
 * weigh as much as one. */
static void load(const shard_job *j, dv_worker *w, uint32_t *index, uint32_t *key, size_t first, int count) {
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
  const shard_job *j = argument;
  dv_pass *pass = j->pass;
  dv_worker *w = &pass->workers[worker];
  uint32_t index[ROWS_OF_SAMPLES] = {0}, key[ROWS_OF_SAMPLES];
  const volatile int *interrupt = dv_threads_interrupt(pass->pool);
  w->run.interrupt = interrupt;
  w->run.conditions = j->conditions;
  w->run.sequence = key;
  size_t workers = (size_t)dv_threads_size(pass->pool), rows = sequences_of(pass);
  const dv_ranks *team = dv_threads_ranks(pass->pool);
  size_t shards = dv_pass_shards(pass, j->sequences),
         from = dv_ranks_first(team, shards, dv_ranks_rank(team));
  size_t until = dv_ranks_first(team, shards, dv_ranks_rank(team) + 1);
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
  shard_job j = {pass, sequences, conditions, collect, user};
  dv_threads_run(pass->pool, run_shards, &j);
  if (dv_interrupted(dv_threads_interrupt(pass->pool))) return dv_fail_stopped(error);
  return dv_sequences_intact(sequences, error);
}

size_t dv_pass_shards(const dv_pass *pass, const dvbf_sequences *sequences) {
  size_t rows = sequences_of(pass);
  return (sequences->count + rows - 1) / rows;
}

void dv_pass_gather(const dv_pass *pass, const dvbf_sequences *sequences, void *data, size_t unit) {
  dv_ranks_gather_blocks(dv_threads_ranks(pass->pool), data, unit, sequences->count, sequences_of(pass));
}

/* ---- Agreement of ranks ---- */

/* With a terminator, so that pairs of texts differ. */
static uint64_t mix(uint64_t hash, const char *text) {
  return dv_hash_byte(dv_hash(hash, text, strlen(text)), 255);
}

static dvbf_status mix_setting(const char *name, const char *value, void *user) {
  uint64_t *hash = user;
  *hash = mix(mix(*hash, name), value);
  return DVBF_OK;
}

dvbf_status dv_ranks_alike(dv_ranks *team, const dvbf_settings *settings, uint64_t data, dvbf_error *error) {
  uint64_t given = dv_hash_start;
  if (!team) return DVBF_OK;
  dvbf_status status = dv_settings_each(settings, mix_setting, &given);
  if (!status) status = dv_ranks_agree(team, given, "settings", error);
  if (!status) status = dv_ranks_agree(team, data, "the data", error);
  if (!status)
    status = dv_ranks_agree(team, mix(mix(dv_hash_start, dv_build_instructions()), dv_build_compiler()),
                            "instructions or compiler, on which bytes depend (DVBF_ISA, portable)", error);
  return status;
}

dvbf_status dv_ranks_use_alike(dv_ranks *team, const dvbf_settings *settings, const dvbf_model *model,
                               const dvbf_sequences *sequences, dvbf_error *error) {
  uint64_t data = 0;
  if (!team) return DVBF_OK;
  dvbf_status status = sequences ? dv_sequences_fingerprint(&data, sequences, error) : DVBF_OK;
  if (!status) status = dv_ranks_agree(team, dv_model_fingerprint(model), "the model", error);
  return status ? status : dv_ranks_alike(team, settings, data, error);
}
