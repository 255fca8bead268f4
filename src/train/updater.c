/* Gradient updates (dv_updater_run): shards of a minibatch on all threads, sums in a fixed order, one
 * optimiser step, with a barrier after each; also schedules (dv_schedule_at) and snapshots. Updates allocate
 * nothing. */
#include "train/updater.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "math/portable.h"
#include "math/random.h"
#include "model/batches.h"
#include "model/density.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Memories and smallest divisors of Adam (Kingma and Ba 2015) and Adadelta (Zeiler 2012); the last rate as a
 * share of the first; the rate of the phase that trains the gain; and the share of sequences whose q(w) sees
 * no later frames where recognition = smoothing. */
#define BETA1 0.9
#define BETA2 0.999
#define ADAM_EPSILON 1e-8
#define ADADELTA_RHO 0.95
#define ADADELTA_EPSILON 1e-4
#define RATE_END 0.05
#define GAIN_RATE 0.03
#define LOOK_AHEAD_DROPOUT 0.5

/* ---- Schedules ---- */

/* Whether update i belongs to the last phase, which trains the filter alone. */
static bool in_filter_phase(const dv_train_settings *s, uint64_t i) {
  return s->gain_updates > 0 && i >= (uint64_t)s->updates;
}

/* A quarter of the last phase is enough for the spread, which has few parameters. */
uint64_t dv_filter_gain_updates(const dv_train_settings *s) {
  return dv_all_updates(s) - (uint64_t)s->gain_updates / 4;
}

/* The number of update i in its phase, from 0. */
static uint64_t phase_update(const dv_train_settings *s, uint64_t i) {
  if (!in_filter_phase(s, i)) return i;
  return i < dv_filter_gain_updates(s) ? i - (uint64_t)s->updates : i - dv_filter_gain_updates(s);
}

uint64_t dv_all_updates(const dv_train_settings *s) {
  return (uint64_t)s->updates + (uint64_t)s->gain_updates;
}

/* The updates that a schedule takes: a share of all, or, above 1, their number. */
static double updates_until(const dv_train_settings *s, double until) {
  return floor(until > 1 ? until : until * (double)s->updates + 0.5);
}

/* From 0 to 1 over `updates` updates. */
static double ramp(uint64_t i, double updates) {
  return (double)i < updates ? (double)i / updates : 1;
}

/* c = min(1, c_0 + i / T_A), changed every `temperature-every` updates (the paper prints max). The reported
 * bound is never annealed. */
static double temperature(const dv_train_settings *s, uint64_t i) {
  double until = updates_until(s, s->temperature_until);
  if (!(until > 0)) return 1;
  uint64_t held = i - i % (uint64_t)s->temperature_every;
  return fmin(1, s->temperature_start + (double)held / until);
}

/* The logarithm of the floor falls linearly, from a sigma of 1. A fixed sigma has no floor. */
static double log_sigma_floor(const dv_train_settings *s, uint64_t i) {
  if (s->sigma == DV_SIGMA_FIXED || !dv_density_of(s)->sigma) return -1000;
  double until = updates_until(s, s->sigma_floor_until), share = ramp(i, until), end = dv_log(s->sigma_floor);
  double start = until > 0 ? fmax(0, end) : end;
  if (in_filter_phase(s, i)) return end - dv_log(16); /* nothing is left that a small sigma could mislead */
  return start + share * (end - start);
}

static double filter_dropout(const dv_train_settings *s, uint64_t i) {
  double share = ramp(i, updates_until(s, s->filter_dropout_until));
  return s->filter_dropout + share * (s->filter_dropout_end - s->filter_dropout);
}

dv_conditions dv_schedule_at(const dv_train_settings *s, uint64_t i, uint64_t seed) {
  dv_conditions c = {.seed = seed, .stream = DV_STREAM_NOISE, .update = (uint32_t)i};
  dv_conditions_set(&c, DVBF_TEMPERATURE, temperature(s, i));
  dv_conditions_set(&c, DVBF_LOG_SIGMA_FLOOR, log_sigma_floor(s, i));
  dv_conditions_set(&c, DVBF_FILTER_DROPOUT, in_filter_phase(s, i) ? 0 : filter_dropout(s, i));
  dv_conditions_set(&c, DVBF_LOOK_AHEAD_DROPOUT, LOOK_AHEAD_DROPOUT);
  dv_conditions_set(&c, DVBF_FILTER_DROPOUT_RUN, s->filter_dropout_run);
  dv_conditions_set(&c, DVBF_FILTER_DROPOUT_ZERO, s->dropped == DV_DROPPED_ZERO);
  return c;
}

/* The share of the rate at update i of `updates`, the first `warm_up` of which are slower. */
static double rate_share(const dv_train_settings *s, uint64_t i, int64_t updates, int64_t warm_up) {
  double warm = warm_up > 0 && i < (uint64_t)warm_up ? (double)(i + 1) / (double)warm_up : 1;
  double rest = (double)(updates - warm_up), share = 1;
  if (s->decay == DV_DECAY_COSINE && rest > 0 && i >= (uint64_t)warm_up) {
    double done = fmin(1, (double)(i - (uint64_t)warm_up) / rest);
    share = RATE_END + (1 - RATE_END) * 0.5 * (1 + dv_cos(3.14159265358979323846 * done));
  }
  return warm * share;
}

static double learning_rate_at(const dv_train_settings *s, uint64_t i) {
  int64_t warm_up = s->decay == DV_DECAY_COSINE ? (int64_t)fmin(100, round(0.1 * (double)s->updates)) : 0;
  if (!in_filter_phase(s, i)) return s->learning_rate * rate_share(s, i, s->updates, warm_up);
  uint64_t gain = dv_filter_gain_updates(s), first = i < gain ? (uint64_t)s->updates : gain;
  int64_t updates = (int64_t)((i < gain ? gain : dv_all_updates(s)) - first);
  if (warm_up > updates / 10) warm_up = updates / 10;
  return GAIN_RATE * rate_share(s, i - first, updates, warm_up);
}

/* ---- The updater ---- */

struct dv_updater {
  dvbf_model *model;
  dv_threads *pool;
  const dvbf_sequences *train;
  dvbf_program program;
  bool one_step; /* the objective: see dv_updater_new */
  int batch, rows, shards;
  int samples;          /* of each sequence: the program has so many times the rows of a shard */
  double frames;        /* valid steps of a sequence, on average */
  dv_worker *workers;   /* one for each of the pool */
  dv_sums sums;         /* of the gradients of the shards */
  dvbf_real *m, *v;     /* [parameters] optimiser state, right where this rank owns the parameters */
  dv_order *order;      /* of the sequences */
  uint32_t *index;      /* [workers][rows][samples] sequences of a shard, each so many times */
  uint32_t *key;        /* [workers][rows][samples] of their noise */
  dv_span all;          /* all parameters */
  const dv_span *spans; /* [n_spans] those that are trained */
  size_t n_spans;
  dv_systems systems; /* that are to contract; none: count = 0 */
  double *room;       /* [workers][dv_contract_room] */
  dv_counters at;
  /* of the running job */
  uint64_t wanted, done;
  double bound_sum;
  dv_conditions conditions;
};

/* ---- Memory ---- */

/* Shards of about 25 to 64 sequences: large enough for fast products, small enough for the cache and for
 * several workers. Convolutions have long products from few sequences, and large images. The size depends
 * only on the settings, not on the machine. */
static int shard_rows(const dv_train_settings *s) {
  int batch = (int)s->batch_size, rows = (int)s->shard_size, least = s->network == DV_NETWORK_CONV ? 13 : 25;
  if (!rows) {
    rows = (batch + 7) / 8;
    rows = rows < least ? least : rows > 64 ? 64 : rows;
    int shards = (batch + rows - 1) / rows;
    rows = (batch + shards - 1) / shards;
  }
  return rows < batch ? rows : batch;
}

static bool allocate_updater(dv_updater *u) {
  size_t n = u->model->parameters.size, workers = (size_t)dv_threads_size(u->pool);
  u->m = dv_calloc_aligned(n, sizeof *u->m);
  u->v = dv_calloc_aligned(n, sizeof *u->v);
  u->index = dv_calloc(workers * (size_t)u->rows, (size_t)u->samples * sizeof *u->index);
  u->key = dv_calloc(workers * (size_t)u->rows, (size_t)u->samples * sizeof *u->key);
  if (u->systems.count) u->room = dv_calloc(workers, dv_contract_room(u->systems.n) * sizeof *u->room);
  if (u->systems.count && !u->room) return false;
  return u->m && u->v && u->index && u->key;
}

/* Segments take longer, so they are for programs whose arena exceeds an eighth of the memory. Results do not
 * depend on them. */
static bool is_too_large(const dvbf_program *p) {
  double bytes = (double)p->graph->arena * sizeof(dvbf_real);
  return bytes > (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 8;
}

dvbf_status dv_updater_new(dv_updater **out, dvbf_model *model, dv_threads *pool, const dvbf_sequences *train,
                           bool one_step, dvbf_error *error) {
  dv_updater *u = dv_calloc(1, sizeof *u);
  if (!u) return dv_fail_memory(error, "preparing training");
  u->model = model;
  u->pool = pool;
  u->train = train;
  u->all = (dv_span){0, model->parameters.size};
  dv_updater_train_only(u, NULL);
  u->batch = (int)model->settings->batch_size;
  u->rows = shard_rows(model->settings);
  u->frames = (double)dv_sequences_frames(train) / (double)train->count;
  u->shards = (u->batch + u->rows - 1) / u->rows;
  u->one_step = one_step;
  u->samples = one_step ? 1 : dv_program_samples(model);
  int steps = (int)train->steps, flags = DV_BACKWARD | dv_gaps_of(train) | (one_step ? DV_ONE_STEP : 0);
  if (!(model->settings->contraction > 0) || !dv_model_systems(model, &u->systems)) u->systems.count = 0;
  const dv_products *product = NULL;
  dvbf_status status = dv_products_choose(&product, model->settings->products, error);
  if (!status)
    status = dv_program_record(&u->program, model, steps, u->rows * u->samples, steps, flags, error);
  if (!status && !model->segments && is_too_large(&u->program)) {
    model->segments = true;
    dv_program_clear(&u->program);
    status = dv_program_record(&u->program, model, steps, u->rows * u->samples, steps, flags, error);
  }
  if (!status && !allocate_updater(u)) status = dv_fail_memory(error, "preparing training");
  if (!status)
    status = dv_sums_init(&u->sums, dv_threads_ranks(pool), u->shards, model->parameters.size, error);
  if (!status)
    status = dv_order_new(&u->order, train, model->settings, u->rows, u->sums.first_shard, u->sums.last_shard,
                          error);
  if (!status) status = dv_workers_new(&u->workers, dv_threads_size(pool), model, &u->program, train, error);
  for (int i = 0; i < dv_threads_size(pool) && !status; i++) {
    u->workers[i].run.product = product;
    u->workers[i].run.conditions = &u->conditions;
  }
  if (status) {
    dv_updater_free(u);
    return status;
  }
  dv_updater_reset(u, (uint64_t)model->settings->seed);
  *out = u;
  return DVBF_OK;
}

void dv_updater_free(dv_updater *u) {
  if (!u) return;
  dv_workers_free(u->workers, dv_threads_size(u->pool));
  dv_sums_clear(&u->sums);
  dv_order_free(u->order);
  dv_program_clear(&u->program);
  DV_FREE(u->m, u->v, u->index, u->key, u->room, u);
}

void dv_updater_train_only(dv_updater *u, const dv_part *part) {
  u->spans = part ? part->spans : &u->all;
  u->n_spans = part ? part->count : 1;
}

void dv_updater_forget(dv_updater *u) {
  size_t bytes = u->model->parameters.size * sizeof *u->m;
  memset(u->m, 0, bytes);
  memset(u->v, 0, bytes);
  u->at.usual_norm = 0;
}

void dv_updater_reset(dv_updater *u, uint64_t seed) {
  dv_updater_forget(u);
  u->at = (dv_counters){.seed = seed, .rate_factor = 1};
}

/* ---- One update ---- */

static void begin_update(dv_updater *u) {
  u->conditions = dv_schedule_at(u->model->settings, u->at.update, u->at.seed);
  dv_conditions_set(&u->conditions, DVBF_SEQUENCES, u->model->sequences);
  u->conditions.noise_free = u->one_step;
  u->conditions.scale = 1.0 / ((double)u->batch * u->frames);
  dv_order_draw(u->order, u->at.seed, u->at.update);
}

/* Puts the `count` sequences of a shard, and every sample of them, into the rows of the program. All samples
 * of a sequence together weigh as much as one. */
static void load_shard(dv_updater *u, int worker, int s, int count) {
  dv_worker *w = &u->workers[worker];
  const uint32_t *sequences = dv_order_shard(u->order, s);
  uint32_t k = (uint32_t)u->samples, *index = u->index + (size_t)worker * (size_t)u->program.rows,
           *key = u->key + (size_t)worker * (size_t)u->program.rows;
  for (uint32_t r = 0; r < (uint32_t)u->program.rows; r++) {
    index[r] = sequences[r / k];
    key[r] = sequences[r / k] * k + r % k;
  }
  dv_worker_load(w, dv_order_sequences(u->order, s), index, count * u->samples, u->program.steps);
  w->run.sequence = key;
  dvbf_real *weight = dvbf_at(&w->run, u->program.weight);
  for (int r = 0; r < u->program.rows && k > 1; r++) weight[r] /= (dvbf_real)k;
}

static void shard_phase(dv_updater *u, int worker) {
  dvbf_run *run = &u->workers[worker].run;
  for (int s = u->sums.first_shard + worker; s < u->sums.last_shard; s += dv_threads_size(u->pool)) {
    int left = u->batch - s * u->rows, count = left < u->rows ? left : u->rows;
    run->gradient = u->sums.gradients[s];
    load_shard(u, worker, s, count);
    dv_run_forward(run);
    dv_run_backward(run);
    memcpy(u->sums.terms[s], run->terms, sizeof run->terms);
  }
}

/* The part of a block in a span; its count is 0 if there is none. */
static dv_span common(dv_span span, size_t block) {
  size_t first = block * DV_BLOCK, last = first + DV_BLOCK, end = span.first + span.count;
  if (first < span.first) first = span.first;
  if (last > end) last = end;
  return (dv_span){first, first < last ? last - first : 0};
}

/* First of the blocks from .. until - 1 of a worker; its last is before the first of the next. */
static size_t worker_block(const dv_updater *u, size_t from, size_t until, int worker) {
  return from + (until - from) * (size_t)worker / (size_t)dv_threads_size(u->pool);
}

/* The sums of this rank, to be sent to their owners. */
static void add_phase(dv_updater *u, int worker) {
  const dv_kernels *k = u->workers[worker].run.k;
  size_t blocks = u->sums.blocks;
  for (size_t b = worker_block(u, 0, blocks, worker); b < worker_block(u, 0, blocks, worker + 1); b++)
    for (size_t i = 0; i < u->n_spans; i++) {
      dv_span part = common(u->spans[i], b);
      if (part.count) dv_sums_add(&u->sums, k, part);
    }
}

static void reduce_phase(dv_updater *u, int worker) {
  const dv_kernels *k = u->workers[worker].run.k;
  size_t from = u->sums.first_block, until = u->sums.last_block;
  for (size_t b = worker_block(u, from, until, worker); b < worker_block(u, from, until, worker + 1); b++) {
    u->sums.squares[b] = 0;
    for (size_t i = 0; i < u->n_spans; i++) {
      dv_span part = common(u->spans[i], b);
      if (part.count) u->sums.squares[b] += dv_sums_complete(&u->sums, k, part);
    }
  }
}

/* The sum of all gradients, and its squares, over workers and ranks. Messages are the first worker's. */
static void sum_phase(dv_updater *u, int worker) {
  bool together = dv_ranks_size(u->sums.team) > 1;
  dv_threads_barrier(u->pool);
  if (together) {
    add_phase(u, worker);
    dv_threads_barrier(u->pool);
    if (worker == 0) dv_sums_exchange(&u->sums);
    dv_threads_barrier(u->pool);
  }
  reduce_phase(u, worker);
  dv_threads_barrier(u->pool);
  if (!together) return;
  if (worker == 0) dv_sums_tell(&u->sums);
  dv_threads_barrier(u->pool);
}

/* Every worker sums the same numbers in the same order. */
static double gradient_norm(const dv_updater *u) {
  double sum = 0;
  for (size_t b = 0; b < u->sums.blocks; b++) sum += u->sums.squares[b];
  return sqrt(sum);
}

/* The largest allowed norm of the gradient. A single very large gradient would disturb Adam for many updates.
 */
static double longest_gradient(const dv_train_settings *s, double usual) {
  double longest = s->clip_norm > 0 ? s->clip_norm : INFINITY;
  return s->clip_spike > 0 && usual > 0 ? fmin(longest, s->clip_spike * usual) : longest;
}

double dv_updater_rate(const dv_updater *u, uint64_t update) {
  return learning_rate_at(u->model->settings, update) * u->at.rate_factor;
}

/* One optimiser step of update number `update` on the parameters of a span. */
static void step_span(dv_updater *u, const dv_kernels *k, dv_span span, uint64_t update, double clip) {
  const dv_train_settings *s = u->model->settings;
  double t = (double)phase_update(s, update) + 1;
  double rate = dv_updater_rate(u, update);
  double correction = sqrt(1 - dv_pow(BETA2, t)), step = rate * correction / (1 - dv_pow(BETA1, t));
  dvbf_real *p = u->model->parameters.values + span.first, *m = u->m + span.first, *v = u->v + span.first;
  const dvbf_real *g = dv_sums_at(&u->sums, span.first);
  if (s->optimizer == DV_ADAM)
    k->adam(p, g, m, v, span.count, (dvbf_real)step, (dvbf_real)BETA1, (dvbf_real)BETA2,
            (dvbf_real)(ADAM_EPSILON * correction), (dvbf_real)clip);
  else
    k->adadelta(p, g, m, v, span.count, (dvbf_real)rate, (dvbf_real)ADADELTA_RHO, (dvbf_real)ADADELTA_EPSILON,
                (dvbf_real)clip);
}

/* Each rank steps the parameters that it owns, and then has those of the others. */
static void step_phase(dv_updater *u, int worker, uint64_t update, double clip) {
  const dv_kernels *k = u->workers[worker].run.k;
  size_t from = u->sums.first_block, until = u->sums.last_block;
  for (size_t b = worker_block(u, from, until, worker); b < worker_block(u, from, until, worker + 1); b++)
    for (size_t i = 0; i < u->n_spans; i++) {
      dv_span part = common(u->spans[i], b);
      if (part.count) step_span(u, k, part, update, clip);
    }
  dv_threads_barrier(u->pool);
  if (dv_ranks_size(u->sums.team) == 1) return;
  if (worker == 0) dv_sums_gather(&u->sums, u->model->parameters.values);
  dv_threads_barrier(u->pool);
}

/* Contracts systems that a step led beyond their limit. Gradients cannot, as every singular value above the
 * limit acts like one at it. */
static void contract_phase(dv_updater *u, int worker) {
  double *room = u->room + (size_t)worker * dv_contract_room(u->systems.n);
  dvbf_real *v = dv_model_systems_at(u->model);
  for (int i = worker; i < u->systems.count; i += dv_threads_size(u->pool))
    dv_contract_system(&u->systems, i, v, v, room);
}

static void end_update(dv_updater *u, double usual_norm) {
  double bound = 0;
  u->at.usual_norm = usual_norm;
  for (int s = 0; s < u->shards; s++) bound += dv_graph_bound(u->program.graph, u->sums.terms[s]);
  u->bound_sum += bound * u->conditions.scale;
  u->at.update++;
  u->done++;
}

/* Every worker keeps its own copy of the usual norm. So worker 0 may write the counters while others still
 * update: nobody reads them before the next barrier. */
static void updates_job(void *argument, int worker) {
  dv_updater *u = argument;
  uint64_t first = u->at.update;
  double usual = u->at.usual_norm;
  for (uint64_t i = 0; i < u->wanted; i++) {
    shard_phase(u, worker);
    sum_phase(u, worker);
    double norm = gradient_norm(u), longest = longest_gradient(u->model->settings, usual);
    if (!isfinite(norm)) return; /* all workers see the same norm and leave together */
    double clip = norm > longest ? longest / norm : 1;
    usual = usual > 0 ? 0.98 * usual + 0.02 * clip * norm : norm;
    if (worker == 0) {
      end_update(u, usual);
      if (u->done < u->wanted) begin_update(u);
    }
    step_phase(u, worker, first + i, clip);
    if (!u->systems.count) continue;
    contract_phase(u, worker);
    dv_threads_barrier(u->pool);
  }
}

uint64_t dv_updater_run(dv_updater *u, uint64_t count) {
  u->wanted = count;
  u->done = 0;
  u->bound_sum = 0;
  if (!count) return 0;
  begin_update(u);
  dv_threads_run(u->pool, updates_job, u);
  return u->done;
}

uint64_t dv_updater_updates(const dv_updater *u) {
  return u->at.update;
}

double dv_updater_bound(const dv_updater *u) {
  return u->done ? u->bound_sum / (double)u->done : NAN;
}

void dv_updater_slow_down(dv_updater *u, double factor) {
  u->at.rate_factor = factor;
}

void dv_updater_skip_to(dv_updater *u, uint64_t update) {
  u->at.update = update;
}

double dv_updater_bytes(const dv_updater *u) {
  return dv_sums_bytes(&u->sums);
}

double dv_updater_flops(const dv_updater *u) {
  return u->program.graph->flops * u->shards;
}

/* ---- Snapshots: counters, parameters, m, v ---- */

size_t dv_updater_snapshot_size(const dv_updater *u) {
  return sizeof(dv_counters) + 3 * u->model->parameters.size * sizeof(dvbf_real);
}

void dv_updater_save(const dv_updater *u, void *snapshot) {
  unsigned char *to = snapshot;
  size_t bytes = u->model->parameters.size * sizeof(dvbf_real);
  dv_sums_gather(&u->sums, u->m);
  dv_sums_gather(&u->sums, u->v);
  memcpy(to, &u->at, sizeof u->at);
  memcpy(to + sizeof u->at, u->model->parameters.values, bytes);
  memcpy(to + sizeof u->at + bytes, u->m, bytes);
  memcpy(to + sizeof u->at + 2 * bytes, u->v, bytes);
}

void dv_updater_restore(dv_updater *u, const void *snapshot) {
  const unsigned char *from = snapshot;
  size_t bytes = u->model->parameters.size * sizeof(dvbf_real);
  memcpy(&u->at, from, sizeof u->at);
  memcpy(u->model->parameters.values, from + sizeof u->at, bytes);
  memcpy(u->m, from + sizeof u->at + bytes, bytes);
  memcpy(u->v, from + sizeof u->at + 2 * bytes, bytes);
}

dv_snapshot_parts dv_snapshot_open(void *snapshot, size_t parameters) {
  dv_counters *at = snapshot;
  dvbf_real *first = (dvbf_real *)(at + 1);
  return (dv_snapshot_parts){at, {first, first + parameters, first + 2 * parameters}};
}
