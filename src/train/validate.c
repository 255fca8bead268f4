#include "train/validate.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "train/schedule.h"

#include <math.h>
#include <string.h>

/* Total variance of a scaled frame. */
static dvbf_status measure_variance(dv_validator *v, const dvbf_model *m, dvbf_error *error) {
  double *mean = dv_calloc((size_t)m->n_x, sizeof *mean),
         *variance = dv_calloc((size_t)m->n_x, sizeof *variance);
  dvbf_status status = mean && variance ? DVBF_OK : dv_fail_memory(error, "measuring validation data");
  if (!status) {
    dv_sequences_statistics(v->sequences, mean, variance);
    for (int i = 0; i < m->n_x; i++)
      v->variance += variance[i] * (double)m->x.scale[i] * (double)m->x.scale[i];
  }
  dv_free(mean);
  dv_free(variance);
  return status;
}

dvbf_status dv_validator_init(dv_validator *v, dvbf_model *model, dv_pool *pool,
                              const dvbf_sequences *sequences, dvbf_error *error) {
  *v = (dv_validator){.sequences = sequences};
  int steps = (int)sequences->steps, asked = (int)model->settings->predict_from;
  int needed = dv_model_frames_needed(model), observe = asked > needed ? asked : needed;
  dvbf_status status = dv_pass_init(&v->filter, model, pool, steps, 0, error);
  if (!status && observe < steps) status = dv_pass_init(&v->predict, model, pool, steps, observe, error);
  if (!status) status = measure_variance(v, model, error);
  if (!status) {
    size_t shards = dv_pass_shards(&v->filter, sequences);
    v->terms = dv_calloc(shards, sizeof *v->terms);
    v->errors = dv_calloc(shards, sizeof *v->errors);
    if (!v->terms || !v->errors) status = dv_fail_memory(error, "preparing validation");
  }
  if (status) dv_validator_clear(v);
  return status;
}

void dv_validator_clear(dv_validator *v) {
  dv_pass_clear(&v->filter);
  dv_pass_clear(&v->predict);
  dv_free(v->terms);
  dv_free(v->errors);
  *v = (dv_validator){0};
}

static void collect_terms(void *user, const dv_program *p, const dvbf_run *run, size_t shard, size_t first,
                          int count) {
  (void)p, (void)first, (void)count;
  dv_validator *v = user;
  memcpy(v->terms[shard], run->terms, sizeof run->terms);
}

static void collect_errors(void *user, const dv_program *p, const dvbf_run *run, size_t shard, size_t first,
                           int count) {
  dv_validator *v = user;
  const dvbf_model *m = v->predict.model;
  const dvbf_real *mean = dvbf_at(run, p->mean);
  double sum = 0, frames = 0;
  for (int r = 0; r < count; r++) {
    int length = (int)dv_sequence_length(v->sequences, first + (size_t)r);
    for (int t = v->predict.observe; t < length; t++, frames++) {
      const dvbf_real *guess = mean + ((size_t)t * p->rows + r) * m->n_x;
      const float *x = v->sequences->x + ((first + (size_t)r) * v->sequences->steps + (size_t)t) * m->n_x;
      for (int i = 0; i < m->n_x; i++) {
        double mu =
            m->settings->likelihood == DV_BERNOULLI ? 1 / (1 + exp(-(double)guess[i])) : (double)guess[i];
        double e = mu - (double)(x[i] - m->x.shift[i]) * (double)m->x.scale[i];
        sum += e * e;
      }
    }
  }
  v->errors[shard][0] = sum;
  v->errors[shard][1] = frames;
}

dv_scores dv_validator_run(dv_validator *v, double log_sigma_floor) {
  const dvbf_model *m = v->filter.model;
  dv_schedule schedule = dv_schedule_evaluation(log_sigma_floor, m->sequences, (uint64_t)m->settings->seed);
  dv_scores s = {.prediction = NAN};
  double per_frame = 1.0 / (double)dv_sequences_frames(v->sequences);
  size_t shards = dv_pass_shards(&v->filter, v->sequences);
  dv_pass_run(&v->filter, v->sequences, &schedule, collect_terms, v);
  for (size_t i = 0; i < shards; i++) {
    s.reconstruction += v->terms[i][DV_RECONSTRUCTION] * per_frame;
    s.kl_w += v->terms[i][DV_KL_W] * per_frame;
    s.kl_v += v->terms[i][DV_KL_V] * per_frame;
  }
  s.reconstruction += dv_model_log_jacobian(m);
  s.bound = s.reconstruction - s.kl_w - s.kl_v;
  if (v->predict.runs) {
    double sum = 0, frames = 0;
    schedule.mean_path = true;
    dv_pass_run(&v->predict, v->sequences, &schedule, collect_errors, v);
    for (size_t i = 0; i < shards; i++) sum += v->errors[i][0], frames += v->errors[i][1];
    if (frames > 0 && v->variance > 0) s.prediction = sum / frames / v->variance;
  }
  return s;
}
