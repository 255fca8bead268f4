/* The density gaussian: x ~ N(mean, sigma^2), each value independently. The mean is the output of the
 * emission network, or its sigmoid; shape[0] is ln sigma. */
#include "model/density.h"

static bool squashed(const dv_train_settings *s) {
  return s->mean == DV_MEAN_SIGMOID;
}

static bool scales(const dv_train_settings *s) {
  return !squashed(s);
}

static dvbf_activation activation(const dv_train_settings *s) {
  return squashed(s) ? DVBF_SIGMOID : DVBF_LINEAR;
}

static void record_gaussian(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask) {
  dv_record_output(p, m, hidden);
  p->shape[0] = dv_record_log_sigma(p, m, hidden);
  dvbf_gaussian(p->graph, p->ln_p, p->x, p->output, p->shape[0], mask);
}

static double first_output(const dv_train_settings *s, double x) {
  return squashed(s) ? dv_logit(s, x) : x;
}

static void add_variance(const dv_density_frame *f, double *variance) {
  size_t n_x = (size_t)f->model->n_x;
  double sigma[DV_DENSITY_CHUNK];
  for (size_t first = 0; first < n_x; first += DV_DENSITY_CHUNK) {
    size_t n = n_x - first < DV_DENSITY_CHUNK ? n_x - first : DV_DENSITY_CHUNK;
    dv_density_sigma(f, f->program->shape[0], first, n, sigma);
    for (size_t i = 0; i < n; i++) variance[first + i] += sigma[i] * sigma[i];
  }
}

static void draw_normal(const dv_density_frame *f, float *x) {
  size_t n_x = (size_t)f->model->n_x;
  double sigma[DV_DENSITY_CHUNK];
  uint32_t words[DV_DENSITY_CHUNK];
  dvbf_real normal[DV_DENSITY_CHUNK];
  for (size_t first = 0; first < n_x; first += DV_DENSITY_CHUNK) {
    size_t n = n_x - first < DV_DENSITY_CHUNK ? n_x - first : DV_DENSITY_CHUNK;
    dv_density_sigma(f, f->program->shape[0], first, n, sigma);
    f->run->k->normals(normal, words, dv_density_words(f, first, words));
    for (size_t i = 0; i < n; i++) x[first + i] = f->mean[first + i] + (float)(sigma[i] * (double)normal[i]);
  }
}

static dvbf_expr emit_variance(dvbf_code *code, const dvbf_program *p, const dvbf_model *m, dvbf_expr mean) {
  return dv_density_emit_square(code, m, p->shape[0]);
}

const dv_density dv_gaussian = {.record = record_gaussian,
                                .activation = activation,
                                .first_output = first_output,
                                .emit_variance = emit_variance,
                                .add_variance = add_variance,
                                .draw = draw_normal,
                                .scales = scales,
                                .sigma = true,
                                .normal = true};
