#include "evaluate/likelihood.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "infer/importance.h"
#include "infer/particles.h"

typedef struct estimator {
  dv_importance importance;
  dv_particles particles;
} estimator;

typedef struct job {
  const dvbf_model *model;
  const dvbf_sequences *sequences;
  dv_likelihoods *out;
  size_t particles;
  uint64_t seed;
  const volatile int *interrupt;
} job;

static dvbf_status init(void *own, void *user, dvbf_error *error) {
  estimator *w = own;
  const job *j = user;
  const dvbf_sequences *s = j->sequences;
  dvbf_status status = DVBF_OK;
  if (j->out->importance)
    status = dv_importance_init(&w->importance, j->model, s, j->particles, false, error);
  w->importance.worker.run.interrupt = j->interrupt;
  if (status || !j->out->particle) return status;
  status = dv_particles_init(&w->particles, j->model, s, j->particles, (int)s->steps, error);
  w->particles.interrupt = j->interrupt;
  return status;
}

static void run(void *own, void *user, size_t i) {
  estimator *w = own;
  const job *j = user;
  if (j->out->importance) j->out->importance[i] = dv_importance_run(&w->importance, j->sequences, i, j->seed);
  if (!j->out->particle) return;
  dv_particles_run(&w->particles, j->sequences, i, j->seed);
  j->out->particle[i] = w->particles.log_likelihood;
}

static void clear(void *own) {
  estimator *w = own;
  dv_importance_clear(&w->importance);
  dv_particles_clear(&w->particles);
}

dvbf_status dv_likelihoods_of(dv_likelihoods *out, const dvbf_model *m, const dvbf_sequences *s,
                              size_t particles, bool paths, uint64_t seed, dv_pool *pool, dvbf_error *error) {
  static const dv_each work = {sizeof(estimator), init, run, clear};
  bool filter = dv_model_can_filter(m);
  *out = (dv_likelihoods){0};
  dvbf_status status = dv_model_needs_weights(m, error);
  if (status) return status;
  *out = (dv_likelihoods){paths ? dv_calloc(s->count, sizeof *out->importance) : NULL,
                          filter ? dv_calloc(s->count, sizeof *out->particle) : NULL};
  if ((paths && !out->importance) || (filter && !out->particle))
    return dv_fail_memory(error, "measuring likelihoods");
  job j = {m, s, out, particles, seed, dv_pool_interrupt(pool)};
  status = dv_pool_each(pool, &work, s->count, &j, error);
  if (!status) status = dv_sequences_intact(s, error);
  if (status) return status;
  dv_team_gather_blocks(dv_pool_team(pool), out->importance, sizeof *out->importance, s->count, 1);
  dv_team_gather_blocks(dv_pool_team(pool), out->particle, sizeof *out->particle, s->count, 1);
  return DVBF_OK;
}

void dv_likelihoods_free(dv_likelihoods *l) {
  DV_FREE(l->importance, l->particle);
  *l = (dv_likelihoods){0};
}
