/* Densities p(x | z): the list made from densities.def (dv_density_at), the check of data against a density,
 * and parts that several densities share: output layer, sigma, random words, exported code. */
#include "model/density.h"

#include "base/error.h"
#include "math/portable.h"
#include "math/random.h"
#include "model/networks.h"
#include "ops/emit.h"

#include <math.h>
#include <string.h>

const dv_density *dv_density_at(size_t index, const char **name) {
  static const struct {
    const dv_density *density;
    const char *name;
  } all[] = {
#define DENSITY(object, name) {&dv_##object, name},
#include "model/densities.def"
#undef DENSITY
  };
  if (index >= sizeof all / sizeof *all) return NULL;
  *name = all[index].name;
  return all[index].density;
}

const dv_density *dv_density_of(const dv_train_settings *s) {
  const char *name;
  return dv_density_at((size_t)s->likelihood, &name);
}

static dvbf_status check_frame(void *user, size_t sequence, size_t step, const float *x, dvbf_error *error) {
  const dvbf_model *m = user;
  char name[32] = "";
  int column = m->density->refuses(m, x);
  if (column < 0) return DVBF_OK;
  dvbf_settings_get(m->settings_object, "likelihood", name, sizeof name, NULL);
  return dv_fail(
      error, DVBF_FORMAT,
      "x is %g at sequence %zu, step %zu, column %d (counted from 0), but likelihood = %s needs %s; "
      "correct the data, or choose another likelihood",
      (double)x[column], sequence, step, column, name, m->density->needs);
}

dvbf_status dv_density_check(const dvbf_model *m, const dvbf_sequences *s, dvbf_error *error) {
  const dv_density *d = m->density;
  dv_statistics x;
  dvbf_status status = DVBF_OK;
  bool accepted = !d->refuses;
  if (!accepted && s->source && d->accepts) { /* a file was measured before and need not be read again */
    status = dv_statistics_of_x(&x, s, error);
    if (status) return status;
    accepted = d->accepts(&x);
    dv_statistics_free(&x);
  }
  if (!accepted) status = dv_visit_rows(s, NULL, s->n_x, check_frame, (void *)m, error);
  return status || accepted ? status : dv_sequences_intact(s, error);
}

static dvbf_activation activation_of(const dvbf_model *m) {
  return m->density->activation ? m->density->activation(m->settings) : DVBF_LINEAR;
}

/* scale-picture is small, so that the first images are nearly the mean frame. With larger weights training
 * first undoes them, and by then w encodes each frame: the bad optimum. */
dvbf_layer dv_output_layer(dvbf_graph *g, const dvbf_model *m, dvbf_value out, dvbf_value hidden,
                           dvbf_value z, dvbf_value u) {
  const dv_train_settings *s = m->settings;
  return dv_dense(g, "emission.mean", out, activation_of(m), (dvbf_first){.values = m->first_output},
                  (dv_dense_in[4]){{"h", hidden, DV_SCALE_PICTURE / sqrt((double)s->hidden), true},
                                   {"z", dv_linear_path(m, z), 0, true},
                                   {"u", u, 0, false}});
}

void dv_record_output(dvbf_program *p, const dvbf_model *m, dvbf_value hidden) {
  p->output = dvbf_slab(p->graph, p->steps, m->n_x);
  if (dv_convolves(m)) {
    dv_record_picture(p, m, hidden, activation_of(m));
    return;
  }
  dvbf_layer layer =
      dv_output_layer(p->graph, m, p->output, hidden, p->z, dv_emission_control(p, m, 0, p->steps));
  dvbf_layer_whole(p->graph, &layer);
}

/* Unobserved frames are predicted less well. Without a sigma of their own they would spoil that of the
 * emission, or be fitted at the price of all else. Only training drops steps; programs of single steps have
 * no first frames. */
static dvbf_value with_free_sigma(dvbf_program *p, const dvbf_model *m, dvbf_value own) {
  const dv_train_settings *s = m->settings;
  bool drops = s->dropped == DV_DROPPED_ZERO;
  if (!m->type->takes_transition || !(drops || s->gain_updates) || s->sigma == DV_SIGMA_FIXED) return own;
  dv_free_sigma f = {.own = own, .use = p->later.use};
  f.free = dvbf_parameter(p->graph, "emission.free_log_sigma", 1, s->sigma == DV_SIGMA_GLOBAL ? 1 : m->n_x,
                          (dvbf_first){.mean = 0});
  if (f.use.buffer < 0 || !(s->gain_updates || dv_graph_training(p->graph))) return own;
  int before = (int)(p->mask.offset / p->mask.stride); /* frames of the sequence before these */
  f.out = dvbf_slab(p->graph, p->steps, m->n_x);
  f.first = s->gain_updates ? dv_model_recognises_from(m) - before : 0;
  dv_record_free_sigma(p->graph, &f);
  return f.out;
}

static dvbf_value own_log_sigma(dvbf_program *p, const dvbf_model *m, dvbf_value hidden) {
  const dv_train_settings *s = m->settings;
  bool fixed = s->sigma == DV_SIGMA_FIXED;
  dvbf_first first = {.mean = fixed ? dv_log(s->sigma_floor) : 0, .frozen = fixed};
  if (s->sigma != DV_SIGMA_STATE)
    return dvbf_parameter(p->graph, "emission.log_sigma", 1, s->sigma == DV_SIGMA_DIMENSION ? m->n_x : 1,
                          first);
  dvbf_value out = dvbf_slab(p->graph, p->steps, m->n_x);
  dvbf_layer layer = dv_dense(p->graph, "emission.log_sigma", out, DVBF_LINEAR, first,
                              (dv_dense_in[4]){{"h", hidden, 0.1 / sqrt((double)s->hidden), false}});
  dvbf_layer_whole(p->graph, &layer);
  return out;
}

dvbf_value dv_record_log_sigma(dvbf_program *p, const dvbf_model *m, dvbf_value hidden) {
  return with_free_sigma(p, m, own_log_sigma(p, m, hidden));
}

void dv_density_sigma(const dv_density_frame *f, dvbf_value value, size_t first, size_t n, double *sigma) {
  bool shared = value.steps == 1 && value.rows == 1, one = value.cols == 1; /* by all frames, columns */
  const dvbf_real *log_sigma = dvbf_at(f->run, dvbf_steps(value, shared ? 0 : f->step, 1)) +
                               (shared ? 0 : (size_t)f->row * (size_t)value.cols);
  double floor = f->model->log_sigma_floor, common = dv_exp(fmax((double)log_sigma[0], floor));
  for (size_t i = 0; i < n; i++) {
    double each = one ? common : dv_exp(fmax((double)log_sigma[first + i], floor));
    sigma[i] = each / (double)f->model->x.scale[first + i];
  }
}

size_t dv_density_words(const dv_density_frame *f, size_t first, uint32_t words[DV_DENSITY_CHUNK]) {
  size_t n_x = (size_t)f->model->n_x, n = 0;
  size_t needed = first < n_x && n_x - first < DV_DENSITY_CHUNK ? n_x - first : DV_DENSITY_CHUNK;
  for (; n < needed; n += 4) {
    dv_random_words bits = dv_random_block(f->seed, DV_STREAM_EMISSION | (uint32_t)((first + n) / 4) << 8,
                                           f->sequence, f->sample, f->t);
    memcpy(words + n, bits.word, sizeof bits.word);
  }
  return n;
}

bool dv_density_unscaled(const dv_train_settings *s) {
  return false;
}

void dv_density_bits_variance(const dv_density_frame *f, double *variance) {
  for (int i = 0; i < f->model->n_x; i++) {
    double p = (double)f->mean[i];
    variance[i] += p * (1 - p);
  }
}

dvbf_expr dv_density_emit_square(dvbf_code *code, const dvbf_model *m, dvbf_value s) {
  dvbf_expr log_sigma = s.cols == 1 ? dv_read_one(code, s) : dv_read(code, s);
  dvbf_expr least = dv_number(code, m->log_sigma_floor);
  return dvbf_code_unary(
      code, DVBF_EXP_OF,
      dv_times(code, dv_number(code, 2), dvbf_code_binary(code, DVBF_LARGER, log_sigma, least)));
}

dvbf_expr dv_density_emit_bits(dvbf_code *code, const dvbf_program *p, const dvbf_model *m, dvbf_expr mean) {
  return dv_times(code, mean, dv_minus(code, dv_number(code, 1), mean));
}

double dv_logit(const dv_train_settings *s, double mean) {
  double inside = mean < 0.01 ? 0.01 : mean > 0.99 ? 0.99 : mean;
  return dv_log(inside / (1 - inside));
}

double dv_sigmoid(double logit) {
  return 1 / (1 + dv_exp(-logit));
}
