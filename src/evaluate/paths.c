#include "evaluate/paths.h"

#include "base/memory.h"
#include "base/status.h"
#include "infer/weights.h"

dvbf_status dv_paths_new(dv_paths **out, const dvbf_model *m, const dvbf_sequences *s, bool x,
                         dvbf_error *error) {
  dv_paths *p = dv_calloc(1, sizeof *p);
  size_t frames = s->count * s->steps, n_z = (size_t)m->n_z;
  if (!p) return dv_fail_memory(error, "making room for paths");
  *p = (dv_paths){.count = s->count, .steps = s->steps, .n_z = n_z, .n_x = s->n_x};
  p->z = dv_calloc(frames, n_z * sizeof *p->z);
  if (x) p->x = dv_calloc(frames, s->n_x * sizeof *p->x);
  p->log_likelihood = dv_calloc(frames, sizeof *p->log_likelihood);
  p->kl = dv_calloc(frames, sizeof *p->kl);
  if (!p->z || (x && !p->x) || !p->log_likelihood || !p->kl) {
    dv_paths_free(p);
    return dv_fail_memory(error, "making room for paths");
  }
  *out = p;
  return DVBF_OK;
}

void dv_paths_free(dv_paths *p) {
  if (!p) return;
  DV_FREE(p->z, p->x, p->log_likelihood, p->kl, p);
}

typedef struct collection {
  dv_paths *paths;
  double jacobian; /* of a whole frame */
} collection;

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  (void)shard;
  const dvbf_program *p = w->program;
  const dvbf_run *run = &w->run;
  collection *c = user;
  dv_paths *out = c->paths;
  const dvbf_real *z = dvbf_at(run, p->z), *output = dvbf_at(run, p->output), *ln_p = dvbf_at(run, p->ln_p);
  const dvbf_real *kl = dvbf_at(run, p->kl);
  for (int r = 0; r < count; r++)
    for (int t = 0; t < p->steps; t++) {
      size_t to = (first + (size_t)r) * out->steps + (size_t)t, from = (size_t)t * p->rows + r;
      for (size_t i = 0; i < out->n_z; i++) out->z[to * out->n_z + i] = (float)z[from * out->n_z + i];
      if (out->x) dv_model_unscale(w->model, output + from * out->n_x, out->x + to * out->n_x);
      out->log_likelihood[to] = (double)ln_p[from] + dv_frame_jacobian(w, c->jacobian, t, r);
      out->kl[to] = (double)kl[from];
    }
}

dvbf_status dv_paths_draw(dv_paths *paths, dv_pass *pass, const dvbf_sequences *s, uint64_t seed,
                          bool noise_free, dvbf_error *error) {
  collection c = {paths, dv_model_log_jacobian(pass->model)};
  dv_conditions conditions = dv_model_conditions(pass->model, seed);
  conditions.noise_free = noise_free;
  dvbf_status status = dv_pass_run(pass, s, &conditions, collect, &c, error);
  if (status) return status;
  dv_pass_gather(pass, s, paths->z, paths->steps * paths->n_z * sizeof *paths->z);
  dv_pass_gather(pass, s, paths->x, paths->steps * paths->n_x * sizeof *paths->x);
  dv_pass_gather(pass, s, paths->log_likelihood, paths->steps * sizeof *paths->log_likelihood);
  dv_pass_gather(pass, s, paths->kl, paths->steps * sizeof *paths->kl);
  return DVBF_OK;
}

dvbf_status dv_paths_of(dv_paths **out, const dvbf_model *model, const dvbf_sequences *s,
                        const dv_path_options *options, dvbf_error *error) {
  dv_pool *pool = NULL;
  dv_pass pass = {0};
  dv_paths *paths = NULL;
  dvbf_status status = dv_model_takes(model, s, error);
  if (!status) status = dv_pool_new(&pool, options->threads, error);
  if (!status) dv_pool_stop_by(pool, options->interrupt);
  if (!status) status = dv_pass_init(&pass, model, pool, s, (int)options->observe, error);
  if (!status) status = dv_paths_new(&paths, model, s, true, error);
  if (!status) status = dv_paths_draw(paths, &pass, s, options->seed, options->noise_free, error);
  dv_pass_clear(&pass);
  dv_pool_free(pool);
  if (status)
    dv_paths_free(paths);
  else
    *out = paths;
  return status;
}
