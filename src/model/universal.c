#include "infer/universal.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

typedef struct universal {
  const dvbf_real *mean, *log_sigma; /* [n] */
  const dvbf_real *prior;            /* (m, ln s) */
  size_t n;
} universal;

/* log_sigma and prior are NULL for point estimates, mean too where the transition has no v. */
static universal find(const dvbf_model *m) {
  universal u = {0};
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    const dvbf_real *at = m->parameters.values + p->offset;
    if (!strcmp(p->name, "universal.mean")) u.mean = at, u.n = (size_t)p->cols;
    if (!strcmp(p->name, "universal.log_sigma")) u.log_sigma = at;
    if (!strcmp(p->name, "universal.prior")) u.prior = at;
  }
  return u;
}

double dv_universal_kl(const dvbf_model *m) {
  universal u = find(m);
  if (!u.mean || !u.log_sigma || !u.prior) return 0;
  double kl = 0, precision = exp(-2 * (double)u.prior[1]);
  for (size_t k = 0; k < u.n; k++) {
    double sigma = exp((double)u.log_sigma[k]), apart = (double)(u.mean[k] - u.prior[0]);
    kl += (double)(u.prior[1] - u.log_sigma[k]) + 0.5 * precision * (sigma * sigma + apart * apart) - 0.5;
  }
  return kl / m->sequences;
}

void dv_universal_draw(const dvbf_model *m, uint64_t seed, uint32_t step, dvbf_real *v, size_t n_v) {
  universal u = find(m);
  dv_random random = dv_random_at(seed, DV_STREAM_PARTICLES, 1, step);
  for (size_t k = 0; k < n_v && k < u.n; k++)
    v[k] =
        u.mean[k] + (u.log_sigma ? (dvbf_real)(exp((double)u.log_sigma[k]) * dv_random_normal(&random)) : 0);
}

void dv_universal_mean(const dvbf_model *m, dvbf_real *v, size_t n_v) {
  universal u = find(m);
  if (u.mean) memcpy(v, u.mean, (n_v < u.n ? n_v : u.n) * sizeof *v);
}
