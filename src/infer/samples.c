/* Samples of z by running the recurrence: w from q where x is seen, from the prior where not. The rows of the
 * program are samples of several sequences. A worker takes a block of sequences at a time.
 *
 * With Bayesian universal parameters every sample has a v of its own, which the rows of a program share: then
 * its rows are one sample of each sequence of the block. */
#include "base/memory.h"
#include "base/status.h"
#include "exec/worker.h"
#include "infer/draws.h"
#include "infer/estimate.h"

#include <math.h>

enum { MOST_ROWS = 50, BLOCKS = 8 };

typedef struct sampler {
  dv_worker worker;
  size_t block;    /* sequences that it deals with at once */
  dv_draws *draws; /* [block] */
  uint32_t index[MOST_ROWS], key[MOST_ROWS];
} sampler;

typedef struct job {
  const dv_request *request;
  dvbf_estimates *out;
  dvbf_program program;
  size_t block; /* sequences in a block */
} job;

/* ---- Running ---- */

/* Row r of run number `turn` is a sample of a sequence of the block; rows are in the order of samples. */
typedef struct place {
  size_t slot, sample; /* sequence within the block */
} place;

static place place_of(const job *j, size_t turn, int r) {
  size_t row = turn * (size_t)j->program.rows + (size_t)r;
  size_t block = j->block ? j->block : 1;
  return (place){row % block, row / block};
}

static void run_turn(const job *j, sampler *w, size_t turn, size_t first, size_t count) {
  const dv_request *q = j->request;
  dv_conditions conditions = dv_model_conditions(q->model, q->seed);
  conditions.update = (uint32_t)turn;
  for (int r = 0; r < j->program.rows; r++) {
    place at = place_of(j, turn, r);
    size_t sequence = first + (at.slot < count ? at.slot : 0);
    w->index[r] = (uint32_t)sequence;
    w->key[r] = (uint32_t)(sequence * q->samples + at.sample);
  }
  w->worker.run.conditions = &conditions;
  w->worker.run.sequence = w->key;
  dv_worker_load(&w->worker, &q->frames, w->index, j->program.rows, q->observe);
  dv_run_forward(&w->worker.run);
}

static void collect_turn(const job *j, sampler *w, size_t turn, size_t first, size_t count) {
  const dv_request *q = j->request;
  const dvbf_program *p = &j->program;
  for (int r = 0; r < p->rows; r++) {
    place at = place_of(j, turn, r);
    if (at.slot >= count || at.sample >= q->samples) continue;
    dv_draw draw = {
        .sequence = first + at.slot, .sample = at.sample, .program = p, .run = &w->worker.run, .row = r};
    for (draw.t = 0; draw.t < w->draws[at.slot].steps; draw.t++) {
      draw.step = q->first + (int)draw.t;
      draw.z = dvbf_at(&w->worker.run, dvbf_steps(p->z, draw.step, 1)) + (size_t)r * (size_t)q->model->n_z;
      dv_draws_put(&w->draws[at.slot], q, j->out, &draw);
    }
  }
}

static void run_block(void *own, void *user, size_t number) {
  sampler *w = own;
  const job *j = user;
  size_t rows = (size_t)j->program.rows, turns = (j->block * j->request->samples + rows - 1) / rows;
  size_t first = number * j->block, left = j->request->frames.count - first;
  size_t count = left < j->block ? left : j->block;
  for (size_t i = 0; i < count; i++) dv_draws_begin(&w->draws[i], j->request, first + i);
  for (size_t turn = 0; turn < turns && !dv_interrupted(j->request->interrupt); turn++) {
    run_turn(j, w, turn, first, count);
    collect_turn(j, w, turn, first, count);
  }
  for (size_t i = 0; i < count; i++) dv_draws_end(&w->draws[i], j->request, j->out, first + i);
}

/* ---- Making ---- */

/* Sequences of a block: they depend on the request alone, as results must not depend on the threads. */
size_t dv_estimate_samples_block(const dv_request *q) {
  double share = (double)q->frames.count / BLOCKS, most = MOST_ROWS;
  double room = (1 << 22) / ((double)q->samples * (double)q->window * (double)q->model->n_x);
  return (size_t)fmax(1, fmin(most, fmin(share, room)));
}

static int rows_of(const dv_request *q, size_t block) {
  const dvbf_model_class *type = q->model->type;
  bool share = type->rows_share && type->rows_share(type, q->model->settings_object);
  size_t rows = share ? block : block * q->samples;
  return rows < MOST_ROWS ? (int)rows : MOST_ROWS;
}

static dvbf_status init(void *own, void *user, dvbf_error *error) {
  sampler *w = own;
  const job *j = user;
  w->draws = dv_calloc(j->block, sizeof *w->draws);
  if (!w->draws) return dv_fail_memory(error, "starting to sample");
  w->block = j->block;
  dvbf_status status = dv_worker_init(&w->worker, j->request->model, &j->program, &j->request->frames, error);
  w->worker.run.interrupt = j->request->interrupt;
  for (size_t k = 0; k < j->block && !status; k++) status = dv_draws_init(&w->draws[k], j->request, error);
  return status;
}

static void clear(void *own) {
  sampler *w = own;
  dv_worker_clear(&w->worker);
  for (size_t k = 0; k < w->block; k++) dv_draws_clear(&w->draws[k]);
  dv_free(w->draws);
}

dvbf_status dv_estimate_samples(dvbf_estimates *out, const dv_request *q, dv_pool *pool, dvbf_error *error) {
  static const dv_each work = {sizeof(sampler), init, run_block, clear};
  job j = {.request = q, .out = out, .block = dv_estimate_samples_block(q)};
  dvbf_status status = dv_program_record(&j.program, q->model, q->steps, rows_of(q, j.block), q->initial,
                                         dv_gaps_of(&q->frames), error);
  size_t blocks = (q->frames.count + j.block - 1) / j.block;
  if (!status) status = dv_pool_each(pool, &work, blocks, &j, error);
  dv_program_clear(&j.program);
  return status;
}
