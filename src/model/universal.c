/* The universal parameters of a trained model: q(v) = N(mean, sigma^2) per entry, p(v) = N(m, s^2). */
#include "base/arithmetic.h"
#include "base/random.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

bool dv_universal_drawn(const dvbf_model *m) {
  return dv_model_find(m, "universal.log_sigma");
}

bool dv_universal_each_step(const dvbf_model *m) {
  return dv_universal_drawn(m) && m->settings->universal_noise == DV_PER_STEP;
}

double dv_universal_kl(const dvbf_model *m) {
  const dvbf_real *mean = dv_model_values(m, "universal.mean"),
                  *prior = dv_model_values(m, "universal.prior");
  const dvbf_real *log_sigma = dv_model_values(m, "universal.log_sigma");
  if (!mean || !log_sigma || !prior) return 0;
  double kl = 0, precision = dv_exp(-2 * (double)prior[1]);
  for (int k = 0; k < dv_parameters_find(&m->parameters, "universal.mean")->cols; k++) {
    double sigma = dv_exp((double)log_sigma[k]), apart = (double)(mean[k] - prior[0]);
    kl += (double)(prior[1] - log_sigma[k]) + 0.5 * precision * (sigma * sigma + apart * apart) - 0.5;
  }
  return kl / m->sequences;
}

void dv_universal_draw(const dvbf_model *m, uint64_t seed, uint32_t step, dvbf_real *v, size_t n_v) {
  const dvbf_real *mean = dv_model_values(m, "universal.mean");
  const dvbf_real *log_sigma = dv_model_values(m, "universal.log_sigma");
  dv_random random = dv_random_at(seed, DV_STREAM_PARTICLES, 1, step);
  for (size_t k = 0; mean && k < n_v; k++)
    v[k] = mean[k] + (log_sigma ? (dvbf_real)(dv_exp((double)log_sigma[k]) * dv_random_normal(&random)) : 0);
}

void dv_universal_mean(const dvbf_model *m, dvbf_real *v, size_t n_v) {
  const dvbf_real *mean = dv_model_values(m, "universal.mean");
  if (mean) memcpy(v, mean, n_v * sizeof *v);
}
