#include "exec/pass.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

enum { ROWS = 50 }; /* sequences of a shard, at most */

dvbf_status dv_pass_init(dv_pass *pass, const dvbf_model *model, dv_pool *pool, const dvbf_sequences *s,
                         int observe, dvbf_error *error) {
  int steps = (int)s->steps, rows = s->count < ROWS ? (int)s->count : ROWS;
  observe = observe && observe < steps ? observe : steps;
  *pass = (dv_pass){.model = model, .pool = pool, .observe = observe};
  /* Recording only looks up the parameters of a complete model. */
  dvbf_status status =
      dv_program_record(&pass->program, (dvbf_model *)model, steps, rows, observe, dv_gaps_of(s), error);
  if (status) return status;
  int workers = dv_pool_size(pool);
  pass->runs = dv_calloc((size_t)workers, sizeof *pass->runs);
  if (!pass->runs) status = dv_fail_memory(error, "preparing a pass over the data");
  for (int i = 0; i < workers && !status; i++) {
    status = dv_run_init(&pass->runs[i], pass->program.graph, error);
    if (!status) status = dv_sequence_buffer(&pass->runs[i].buffer, s, s->steps, error);
  }
  if (status) dv_pass_clear(pass);
  return status;
}

void dv_pass_clear(dv_pass *pass) {
  if (pass->runs)
    for (int i = 0; i < dv_pool_size(pass->pool); i++) dv_run_clear(&pass->runs[i]);
  dv_free(pass->runs);
  dv_program_clear(&pass->program);
  *pass = (dv_pass){0};
}

typedef struct job {
  dv_pass *pass;
  const dvbf_sequences *sequences;
  const dv_conditions *conditions;
  dv_pass_fn *collect;
  void *user;
} job;

static void run_shards(void *argument, int worker) {
  const job *j = argument;
  dv_pass *pass = j->pass;
  dvbf_run *run = &pass->runs[worker];
  uint32_t index[ROWS];
  run->parameters = pass->model->parameters.values;
  run->conditions = j->conditions;
  run->sequence = index;
  size_t workers = (size_t)dv_pool_size(pass->pool), rows = (size_t)pass->program.rows;
  for (size_t shard = (size_t)worker; shard < dv_pass_shards(pass, j->sequences); shard += workers) {
    size_t first = shard * rows, left = j->sequences->count - first;
    int count = (int)(left < rows ? left : rows);
    for (int r = 0; r < pass->program.rows; r++) index[r] = (uint32_t)(first + (size_t)(r < count ? r : 0));
    dv_program_load(&pass->program, run, pass->model, j->sequences, index, count, pass->observe);
    dv_run_forward(run);
    j->collect(j->user, &pass->program, run, shard, first, count);
  }
}

dvbf_status dv_pass_run(dv_pass *pass, const dvbf_sequences *sequences, const dv_conditions *conditions,
                        dv_pass_fn *collect, void *user, dvbf_error *error) {
  job j = {pass, sequences, conditions, collect, user};
  dv_pool_run(pass->pool, run_shards, &j);
  return dv_sequences_intact(sequences, error);
}

size_t dv_pass_shards(const dv_pass *pass, const dvbf_sequences *sequences) {
  size_t rows = (size_t)pass->program.rows;
  return (sequences->count + rows - 1) / rows;
}
