#include "train/range.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <math.h>
#include <string.h>

enum {
  MOST_WINDOWS = 256, /* are filtered: enough to see the range, and little work beside the updates */
  PASSES = 4,         /* over these windows, each with noise of its own */
  ROOM = 10           /* while training, limits are this many times wider */
};

dvbf_status dv_range_init(dv_range *r, const dvbf_model *model, dv_pool *pool, const dvbf_sequences *train,
                          size_t window, dvbf_error *error) {
  *r = (dv_range){0};
  if (!dv_model_range(model)) return DVBF_OK;
  dvbf_status status = dv_windows_cut(&r->sequences, train, window, window, error);
  if (status) return status;
  size_t every = (r->sequences.count + MOST_WINDOWS - 1) / MOST_WINDOWS, kept = 0;
  for (size_t i = 0; i < r->sequences.count; i += every, kept++) {
    r->sequences.start[kept] = r->sequences.start[i];
    if (r->sequences.length) r->sequences.length[kept] = r->sequences.length[i];
  }
  r->sequences.count = kept;
  status = dv_pass_init(&r->pass, model, pool, &r->sequences, 0, error);
  if (status) return status;
  size_t n = dv_pass_shards(&r->pass, &r->sequences) * (size_t)model->n_z;
  r->low = dv_calloc(n, sizeof *r->low);
  r->high = dv_calloc(n, sizeof *r->high);
  return r->low && r->high ? DVBF_OK : dv_fail_memory(error, "preparing to measure states");
}

void dv_range_clear(dv_range *r) {
  dv_pass_clear(&r->pass);
  dv_windows_free(&r->sequences);
  DV_FREE(r->low, r->high);
  *r = (dv_range){0};
}

static void widen(dvbf_real *low, dvbf_real *high, const dvbf_real *z, int n) {
  for (int k = 0; k < n; k++) {
    low[k] = z[k] < low[k] ? z[k] : low[k];
    high[k] = z[k] > high[k] ? z[k] : high[k];
  }
}

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  dv_range *r = user;
  int n = w->model->n_z;
  dvbf_real *low = r->low + shard * (size_t)n, *high = r->high + shard * (size_t)n;
  for (int i = 0; i < count; i++)
    for (size_t t = 0; t < dvbf_sequence_length(&r->sequences, first + (size_t)i); t++)
      widen(low, high, dvbf_at(&w->run, dvbf_steps(w->program->z, (int)t, 1)) + (size_t)i * (size_t)n, n);
}

dvbf_status dv_range_measure(dv_range *r, dvbf_model *m, dvbf_error *error) {
  if (!r->low) return DVBF_OK;
  dvbf_status status = DVBF_OK;
  size_t shards = dv_pass_shards(&r->pass, &r->sequences), n = (size_t)m->n_z;
  for (size_t i = 0; i < shards * n; i++) r->low[i] = (dvbf_real)INFINITY, r->high[i] = (dvbf_real)-INFINITY;
  for (uint64_t k = 0; k < PASSES && !status; k++) {
    dv_conditions conditions = dv_model_conditions(m, (uint64_t)m->settings->seed + k);
    status = dv_pass_run(&r->pass, &r->sequences, &conditions, collect, r, error);
  }
  dv_team_gather(dv_pool_team(r->pass.pool), r->low, n * sizeof *r->low, shards);
  dv_team_gather(dv_pool_team(r->pass.pool), r->high, n * sizeof *r->high, shards);
  for (size_t i = 1; i < shards; i++) {
    widen(r->low, r->high, r->low + i * n, m->n_z);
    widen(r->low, r->high, r->high + i * n, m->n_z);
  }
  if (!status) dv_model_set_range(m, r->low, r->high, m->settings->state_limit);
  return status;
}

void dv_range_widen(dvbf_model *m) {
  dvbf_real *range = dv_model_range(m);
  for (int k = 0; range && k < m->n_z; k++) range[m->n_z + k] *= ROOM;
}
