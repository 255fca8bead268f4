/* The density poisson: counts x ~ Poisson(rate), ln rate = output, each value independently.
 *
 *   ln p(x) = x l - exp l - ln x!        d / dl = x - exp l
 *
 * Above l = 30, a rate of 1e13, exp l continues as its tangent, so that nothing overflows. */
#include "model/density.h"

#include "math/portable.h"
#include "math/random.h"
#include "ops/emit.h"

#include <math.h>

#define HIGHEST 30.0

static double rate_of(double output) {
  return dv_exp(fmin(output, HIGHEST));
}

static double ln_p(double x, double l) {
  return x * l - rate_of(l) * (1 + fmax(l - HIGHEST, 0)) - dv_lgamma(x + 1);
}

static double slope(double x, double l) {
  return x - rate_of(l);
}

static void record_poisson(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask) {
  dv_record_output(p, m, hidden);
  dv_record_values(p->graph, p->ln_p, p->x, p->output, mask, (dv_value_density){ln_p, slope});
}

static double ln_value(double x, double mean) {
  return ln_p(x, dv_log(mean));
}

/* A column without a count starts at a small rate. */
static double first_output(const dv_train_settings *s, double mean) {
  return dv_log(fmax(mean, 0.01));
}

static dvbf_expr emit_mean(dvbf_code *code, dvbf_expr output) {
  return dvbf_code_unary(code, DVBF_EXP_OF,
                         dvbf_code_binary(code, DVBF_SMALLER, output, dv_number(code, HIGHEST)));
}

static dvbf_expr emit_variance(dvbf_code *code, const dvbf_program *p, const dvbf_model *m, dvbf_expr mean) {
  return mean;
}

static void add_variance(const dv_density_frame *f, double *variance) {
  for (int i = 0; i < f->model->n_x; i++) variance[i] += (double)f->mean[i];
}

/* A Poisson number from one uniform number u: probabilities are subtracted from u, that of the mode first and
 * then of its neighbours on both sides, until nothing is left. That takes about sqrt(rate) steps; from a
 * million on, a rounded normal number is as good. */
static double count_of(double rate, double u) {
  if (!(rate > 0)) return 0;
  double mode = floor(rate), low = mode, high = mode;
  double p = dv_exp(mode * dv_log(rate) - rate - dv_lgamma(mode + 1)), below = p, above = p;
  for (u -= p; u > 0;) {
    above *= rate / ++high;
    if ((u -= above) <= 0) return high;
    below *= low > 0 ? low-- / rate : 0;
    if ((u -= below) <= 0 && below > 0) return low;
    if (above < 1e-12 && below < 1e-12) break; /* the rest is rounding */
  }
  return mode;
}

static void draw_count(const dv_density_frame *f, float *x) {
  size_t n_x = (size_t)f->model->n_x;
  uint32_t words[DV_DENSITY_CHUNK];
  dvbf_real normal[DV_DENSITY_CHUNK];
  for (size_t i = 0; i < n_x; i++) {
    size_t at = i % DV_DENSITY_CHUNK;
    if (!at) f->run->k->normals(normal, words, dv_density_words(f, i, words));
    double rate = (double)f->mean[i];
    x[i] = (float)(rate < 1e6 ? count_of(rate, dv_uniform_of(words[at]))
                              : rint(rate + sqrt(rate) * (double)normal[at]));
  }
}

/* Whole numbers may also be sensor readings, which are often large or vary less than counts do. */
static const char *suits(const dvbf_sequences *train, const dv_statistics *x) {
  bool counts = x->counts && !x->binary && x->high <= 100;
  for (size_t k = 0; k < train->n_x && counts; k++)
    counts = x->variance[k] >= 0.5 * x->mean[k] || x->variance[k] <= 0;
  return counts ? "x holds counts: small whole numbers, none of them negative" : NULL;
}

static int refuses(const dvbf_model *m, const float *x) {
  for (int i = 0; i < m->n_x; i++)
    if (x[i] < 0 || (!isnan(x[i]) && x[i] != floorf(x[i]))) return i;
  return -1;
}

static bool accepts(const dv_statistics *x) {
  return x->counts;
}

const dv_density dv_poisson = {.record = record_poisson,
                               .mean = rate_of,
                               .first_output = first_output,
                               .emit_mean = emit_mean,
                               .emit_variance = emit_variance,
                               .add_variance = add_variance,
                               .draw = draw_count,
                               .scales = dv_density_unscaled,
                               .suits = suits,
                               .refuses = refuses,
                               .ln_value = ln_value,
                               .accepts = accepts,
                               .needs = "counts: whole numbers from 0 on"};
