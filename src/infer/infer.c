/* One path through the latent space for each sequence: filtered while x is seen, predicted afterwards. */
#include "infer/infer.h"
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <math.h>
#include <string.h>

static dvbf_paths *new_paths(const dvbf_model *m, const dvbf_sequences *s) {
  dvbf_paths *p = dv_calloc(1, sizeof *p);
  size_t frames = s->count * s->steps, n_z = (size_t)m->n_z;
  if (!p) return NULL;
  *p = (dvbf_paths){.count = s->count, .steps = s->steps, .n_z = n_z, .n_x = s->n_x};
  p->z = dv_calloc(frames, n_z * sizeof *p->z);
  p->x = dv_calloc(frames, s->n_x * sizeof *p->x);
  p->log_likelihood = dv_calloc(frames, sizeof *p->log_likelihood);
  p->kl = dv_calloc(frames, sizeof *p->kl);
  if (p->z && p->x && p->log_likelihood && p->kl) return p;
  dvbf_paths_free(p);
  return NULL;
}

void dvbf_paths_free(dvbf_paths *p) {
  if (!p) return;
  dv_free(p->z);
  dv_free(p->x);
  dv_free(p->log_likelihood);
  dv_free(p->kl);
  dv_free(p);
}

typedef struct collection {
  dvbf_paths *paths;
  const dvbf_model *model;
  double jacobian; /* of a whole frame */
} collection;

double dv_frame_jacobian(const dvbf_model *m, double whole, const dv_program *p, const dvbf_run *run, int t,
                         int r) {
  size_t n = (size_t)m->n_x, frame = (size_t)t * (size_t)p->rows + (size_t)r;
  if (!(dvbf_at(run, p->mask)[frame] > 0)) return 0;
  if (!p->gaps || n == 1) return whole;
  const dvbf_real *seen = dvbf_at(run, p->seen) + frame * n;
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    if (seen[i] > 0) sum += log((double)m->x.scale[i]);
  return sum;
}

static void collect(void *user, const dv_program *p, const dvbf_run *run, size_t shard, size_t first,
                    int count) {
  (void)shard;
  collection *c = user;
  dvbf_paths *out = c->paths;
  const dvbf_real *z = dvbf_at(run, p->z), *mean = dvbf_at(run, p->mean), *ln_p = dvbf_at(run, p->ln_p);
  const dvbf_real *kl_first = dvbf_at(run, p->kl_first), *kl = dvbf_at(run, p->kl);
  for (int r = 0; r < count; r++)
    for (int t = 0; t < p->steps; t++) {
      size_t to = (first + (size_t)r) * out->steps + (size_t)t, from = (size_t)t * p->rows + r;
      for (size_t i = 0; i < out->n_z; i++) out->z[to * out->n_z + i] = (float)z[from * out->n_z + i];
      dv_model_unscale(c->model, mean + from * out->n_x, out->x + to * out->n_x);
      out->log_likelihood[to] = (double)ln_p[from] + dv_frame_jacobian(c->model, c->jacobian, p, run, t, r);
      out->kl[to] = t ? (double)kl[from - (size_t)p->rows] : (double)kl_first[r];
    }
}

dvbf_status dv_infer_check(const dvbf_model *m, const dvbf_sequences *s, dvbf_error *error) {
  if (s->n_x != (size_t)m->n_x || s->n_u != (size_t)m->n_u)
    return dv_fail(
        error, DVBF_FORMAT,
        "the model was trained on x of %d columns and u of %d, the data have %zu and %zu; use data of the "
        "same kind",
        m->n_x, m->n_u, s->n_x, s->n_u);
  return dv_sequences_validate(s, "data", "", error);
}

dvbf_status dvbf_infer(dvbf_paths **out, const dvbf_model *model, const dvbf_sequences *s,
                       const dvbf_infer_options *options, dvbf_error *error) {
  dv_pool *pool = NULL;
  dv_pass pass = {0};
  dvbf_status status = dv_infer_check(model, s, error);
  if (status) return status;
  /* A complete model is only read while a program is recorded: its parameters are found by name. */
  dvbf_model *m = (dvbf_model *)model;
  status = dv_pool_new(&pool, options->threads, error);
  if (!status) status = dv_pass_init(&pass, m, pool, s, (int)options->observe, error);
  collection c = {.model = model, .jacobian = dv_model_log_jacobian(model)};
  if (!status && !(c.paths = new_paths(model, s)))
    status = dv_fail_memory(error, "making room for the paths");
  if (!status) {
    dv_conditions conditions = dv_model_conditions(model, options->seed);
    conditions.noise_free = options->mean_path;
    dv_pass_run(&pass, s, &conditions, collect, &c);
    status = dv_sequences_intact(s, error); /* what could not be read looks missing */
  }
  if (status)
    dvbf_paths_free(c.paths);
  else
    *out = c.paths;
  if (pass.pool) dv_pass_clear(&pass);
  dv_pool_free(pool);
  return status;
}
