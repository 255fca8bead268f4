/* The density bernoulli: x is 1 with probability sigmoid(output), else 0, each value independently. Grey
 * values between 0 and 1 are accepted as probabilities. */
#include "model/density.h"

#include "math/portable.h"
#include "math/random.h"

#include <math.h>

static void record(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask) {
  dv_record_output(p, m, hidden);
  dv_record_bernoulli(p->graph, p->ln_p, p->x, p->output, mask);
}

static dvbf_expr emit_mean(dvbf_code *code, dvbf_expr output) {
  return dvbf_code_unary(code, DVBF_SIGMOID_OF, output);
}

static void draw(const dv_density_frame *f, float *x) {
  size_t n_x = (size_t)f->model->n_x;
  uint32_t words[DV_DENSITY_CHUNK];
  for (size_t i = 0; i < n_x; i++) {
    if (i % DV_DENSITY_CHUNK == 0) dv_density_words(f, i, words);
    x[i] = dv_uniform_of(words[i % DV_DENSITY_CHUNK]) < (double)f->mean[i];
  }
}

static double ln_value(double x, double mean) {
  return x * dv_log(mean) + (1 - x) * dv_log1p(-mean);
}

static const char *suits(const dvbf_sequences *train, const dv_statistics *x) {
  return x->binary ? "every value of x is 0 or 1" : NULL;
}

/* Values between 0 and 1 count as probabilities. */
static int refuses(const dvbf_model *m, const float *x) {
  for (int i = 0; i < m->n_x; i++)
    if (x[i] < 0 || x[i] > 1) return i;
  return -1;
}

static bool accepts(const dv_statistics *x) {
  return x->low >= 0 && x->high <= 1;
}

const dv_density dv_bernoulli = {.record = record,
                                 .mean = dv_sigmoid,
                                 .first_output = dv_logit,
                                 .emit_mean = emit_mean,
                                 .emit_variance = dv_density_emit_bits,
                                 .add_variance = dv_density_bits_variance,
                                 .draw = draw,
                                 .scales = dv_density_unscaled,
                                 .suits = suits,
                                 .refuses = refuses,
                                 .ln_value = ln_value,
                                 .accepts = accepts,
                                 .needs = "values from 0 to 1"};
