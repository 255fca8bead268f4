#include "train/innovations.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "exec/pass.h"

#include <string.h>

typedef struct sums {
  const dvbf_sequences *sequences;
  double *squares; /* [shards][n_x][n_x] */
  double *frames;  /* [shards] */
} sums;

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  sums *s = user;
  dvbf_value e = w->program->innovation;
  size_t n = (size_t)e.cols;
  double *to = s->squares + shard * n * n;
  memset(to, 0, n * n * sizeof *to);
  s->frames[shard] = 0;
  for (int r = 0; r < count; r++) {
    int length = (int)dvbf_sequence_length(s->sequences, first + (size_t)r),
        from = dv_model_start_frames(w->model);
    for (int t = from > 1 ? from : 1; t < length; t++) {
      const dvbf_real *at = dvbf_at(&w->run, dvbf_steps(e, t - 1, 1)) + (size_t)r * n;
      for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) to[i * n + j] += (double)at[i] * (double)at[j];
      s->frames[shard] += 1;
    }
  }
}

dvbf_status dv_innovation_moments(double *e, const dvbf_model *m, dv_pool *pool, const dvbf_sequences *train,
                                  dvbf_error *error) {
  dv_pass pass = {0};
  size_t n = (size_t)m->n_x * (size_t)m->n_x;
  dvbf_status status = dv_pass_init(&pass, m, pool, train, 0, error);
  if (status) return status;
  size_t shards = dv_pass_shards(&pass, train);
  sums s = {train, dv_calloc(shards, n * sizeof *s.squares), dv_calloc(shards, sizeof *s.frames)};
  status = s.squares && s.frames ? DVBF_OK : dv_fail_memory(error, "measuring innovations");
  dv_conditions conditions = dv_model_conditions(m, (uint64_t)m->settings->seed);
  conditions.noise_free = true;
  if (!status) status = dv_pass_run(&pass, train, &conditions, collect, &s, error);
  if (!status) {
    dv_team_gather(dv_pool_team(pool), s.squares, n * sizeof *s.squares, shards);
    dv_team_gather(dv_pool_team(pool), s.frames, sizeof *s.frames, shards);
  }
  double frames = 0;
  memset(e, 0, n * sizeof *e);
  for (size_t i = 0; i < shards && !status; i++) {
    frames += s.frames[i];
    for (size_t k = 0; k < n; k++) e[k] += s.squares[i * n + k];
  }
  for (size_t k = 0; k < n && frames > 0; k++) e[k] /= frames;
  dv_free(s.squares);
  dv_free(s.frames);
  dv_pass_clear(&pass);
  return status;
}
