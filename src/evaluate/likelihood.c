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
  const dvbf_sequences *sequences;
  dv_likelihoods *out;
  uint64_t seed;
  int workers;
  estimator *list; /* [workers] */
} job;

static void run_sequences(void *user, int number) {
  job *j = user;
  estimator *w = &j->list[number];
  for (size_t i = (size_t)number; i < j->sequences->count; i += (size_t)j->workers) {
    j->out->importance[i] = dv_importance_run(&w->importance, j->sequences, i, j->seed);
    if (!j->out->particle) continue;
    dv_particles_run(&w->particles, j->sequences, i, j->seed);
    j->out->particle[i] = w->particles.log_likelihood;
  }
}

static dvbf_status run(job *j, const dvbf_model *m, size_t particles, dv_pool *pool, dvbf_error *error) {
  const dvbf_sequences *s = j->sequences;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < j->workers && !status; i++) {
    status = dv_importance_init(&j->list[i].importance, m, s, particles, false, error);
    if (!status && j->out->particle)
      status = dv_particles_init(&j->list[i].particles, m, s, particles, (int)s->steps, error);
  }
  if (!status) dv_pool_run(pool, run_sequences, j);
  return status ? status : dv_sequences_intact(s, error);
}

dvbf_status dv_likelihoods_of(dv_likelihoods *out, const dvbf_model *m, const dvbf_sequences *s,
                              size_t particles, uint64_t seed, dv_pool *pool, dvbf_error *error) {
  bool filter = dv_model_can_filter(m);
  *out = (dv_likelihoods){dv_calloc(s->count, sizeof *out->importance),
                          filter ? dv_calloc(s->count, sizeof *out->particle) : NULL};
  if (!out->importance || (filter && !out->particle)) return dv_fail_memory(error, "measuring likelihoods");
  job j = {.sequences = s, .out = out, .seed = seed, .workers = dv_pool_size(pool)};
  j.list = dv_calloc((size_t)j.workers, sizeof *j.list);
  dvbf_status status =
      j.list ? run(&j, m, particles, pool, error) : dv_fail_memory(error, "measuring likelihoods");
  for (int i = 0; j.list && i < j.workers; i++) {
    dv_importance_clear(&j.list[i].importance);
    dv_particles_clear(&j.list[i].particles);
  }
  dv_free(j.list);
  return status;
}

void dv_likelihoods_free(dv_likelihoods *l) {
  dv_free(l->importance);
  dv_free(l->particle);
  *l = (dv_likelihoods){0};
}
