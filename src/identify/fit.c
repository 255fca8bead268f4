#include "identify/fit.h"
#include "identify/range.h"

#include "base/algebra.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "model/density.h"
#include "model/linear.h"

#include <math.h>
#include <string.h>

/* From the units of the recordings to those of the model, in place: x' = gain x + shift and u = gain u' +
 * shift. */
static void change_units(dv_system *s, const dv_recordings *r, const dvbf_model *m) {
  size_t n_z = (size_t)s->n_z, n_u = (size_t)s->n_u, n_x = (size_t)s->n_x;
  for (size_t k = 0; k < n_u; k++) {
    double gain = 1 / ((double)m->u.scale[k] * r->u_deviation[k]);
    double shift = ((double)m->u.shift[k] - r->u_mean[k]) / r->u_deviation[k];
    for (size_t i = 0; i < n_z; i++) s->shift_z[i] += s->b[i * n_u + k] * shift, s->b[i * n_u + k] *= gain;
    for (size_t i = 0; i < n_x; i++) s->shift_x[i] += s->d[i * n_u + k] * shift, s->d[i * n_u + k] *= gain;
  }
  for (size_t k = 0; k < n_x; k++) {
    double gain = (double)m->x.scale[k] * r->x_deviation[k];
    for (size_t i = 0; i < n_z; i++) s->h[k * n_z + i] *= gain, s->s[i * n_x + k] *= gain;
    for (size_t i = 0; i < n_u; i++) s->d[k * n_u + i] *= gain;
    for (size_t i = 0; i < n_x; i++) s->r[k * n_x + i] *= gain, s->r[i * n_x + k] *= gain;
    s->shift_x[k] = s->shift_x[k] * gain + (r->x_mean[k] - (double)m->x.shift[k]) * (double)m->x.scale[k];
  }
}

/* The settings of the model: those of `like`, with what was found. */
static dvbf_status settle(dvbf_settings **out, const dvbf_settings *like, const dv_linear_choice *c,
                          dvbf_error *error) {
  char text[16];
  dv_print(text, sizeof text, "%d", c->order);
  dvbf_status status = dvbf_settings_copy(out, like, error);
  if (!status) status = dv_settings_choose(*out, "model", dv_model_linear.name, error);
  if (!status) status = dv_settings_choose(*out, "likelihood", "gaussian", error);
  if (!status) status = dv_settings_choose(*out, "mean", "identity", error);
  if (!status) status = dv_settings_choose(*out, "latent", text, error);
  if (!status) status = dv_settings_choose(*out, "feedthrough", c->feedthrough ? "on" : "off", error);
  return status;
}

/* Parameters are saved as floats; A must not explode for it. */
static void round_stably(dv_system *s, double *scratch) {
  size_t all = (size_t)s->n_z * (size_t)s->n_z;
  for (double by = 1e-7; by < 1; by *= 2) {
    for (size_t i = 0; i < all; i++) scratch[i] = (double)(dvbf_real)s->a[i];
    if (dv_spectral_radius(scratch, s->n_z, scratch + all) <= 1) return;
    for (size_t i = 0; i < all; i++) s->a[i] *= 1 - by;
  }
}

static dvbf_status make_model(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data,
                              dv_system *system, const dv_linear_choice *c, const dv_recordings *r,
                              dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_model *m = NULL;
  size_t both = (size_t)system->n_x + (size_t)system->n_z;
  double *scratch = dv_calloc(3 * both, both * sizeof *scratch);
  dvbf_status status = scratch ? settle(&settings, like, c, error) : dv_fail_memory(error, "making a model");
  if (!status) status = dv_model_new(&m, settings, NULL, &data->train, 1, error);
  if (!status) status = dv_linear_measure(m, system, r, error);
  if (!status) {
    change_units(system, r, m);
    round_stably(system, scratch);
    dv_linear_set(m, system, scratch);
    m->updates = 1;
    *out = m;
  }
  if (status) dvbf_model_free(m);
  dvbf_settings_free(settings);
  dv_free(scratch);
  return status;
}

static dvbf_status fit(dvbf_model **out, const dvbf_settings *settings, int order, int feedthrough,
                       const dvbf_data *data, char *told, size_t size, dvbf_error *error) {
  dv_recordings r = {0};
  dv_system system = {0};
  dv_linear_choice c;
  dvbf_status status = dv_recordings_new(&r, data, error);
  if (!status) status = dv_linear_choose(&system, &c, &r, order, feedthrough, error);
  if (!status) status = make_model(out, settings, data, &system, &c, &r, error);
  if (!status && told)
    dv_print(told, size,
             "linear model of order %d from the last %d frames%s; errors in cross-validation over those of "
             "the mean: one "
             "step %.3g, free run %.3g",
             c.order, c.past, c.feedthrough ? ", with feedthrough" : "", c.errors.one_step,
             c.errors.free_run);
  dv_system_clear(&system);
  dv_recordings_clear(&r);
  return status;
}

/* From units of deviations to those of the model. */
static void change_recordings(dv_recordings *r, const dvbf_model *m) {
  size_t n_x = (size_t)r->n_x, n_u = (size_t)r->n_u;
  for (size_t t = 0; t < r->frames; t++) {
    for (size_t k = 0; k < n_x; k++) {
      double *x = &r->x[t * n_x + k];
      *x = (*x * r->x_deviation[k] + r->x_mean[k] - (double)m->x.shift[k]) * (double)m->x.scale[k];
    }
    for (size_t k = 0; k < n_u; k++) {
      double *u = &r->u[t * n_u + k];
      *u = (*u * r->u_deviation[k] + r->u_mean[k] - (double)m->u.shift[k]) * (double)m->u.scale[k];
    }
  }
}

dvbf_status dv_linear_system(dv_system *out, dv_recordings *r, const dvbf_model *m, const dvbf_data *data,
                             dvbf_error *error) {
  dv_linear_choice c;
  int feedthrough = m->settings->feedthrough ? -1 : 0; /* it may be without it all the same */
  dvbf_data known = {.train = data->train};            /* what validates must not be known */
  dvbf_status status = dv_recordings_new(r, &known, error);
  if (!status) status = dv_linear_choose(out, &c, r, 0, feedthrough, error);
  if (!status && c.order > m->n_z) {
    dv_system_clear(out);
    status = dv_linear_choose(out, &c, r, m->n_z, feedthrough, error);
  }
  if (status) return status;
  change_units(out, r, m);
  change_recordings(r, m);
  dv_free(r->filled); /* it would still be in units of deviations */
  r->filled = NULL;
  return DVBF_OK;
}

const char *dv_linear_name(void) {
  return dv_model_linear.name;
}

dvbf_status dv_linear_best(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data,
                           dvbf_error *error) {
  return fit(out, like, 0, -1, data, NULL, 0, error);
}

dvbf_status dv_linear_look(dv_linear_facts *out, const dvbf_data *data, dvbf_error *error) {
  enum { FRAMES = 3000 };
  dvbf_data part = {.train = data->train};
  dvbf_sequences *s = &part.train;
  dv_recordings r = {0};
  dv_system system = {0};
  dv_linear_choice c = {0};
  double sum = 0;
  size_t frames = 0, i = 0;
  s->length = dv_calloc(s->count, sizeof *s->length);
  if (!s->length) return dv_fail_memory(error, "looking for a linear model");
  for (; i < s->count && frames < FRAMES; i++) {
    size_t all = dvbf_sequence_length(&data->train, i), left = FRAMES - frames;
    s->length[i] = (uint32_t)(all < left ? all : left);
    frames += s->length[i];
  }
  s->count = i;
  dvbf_status status = dv_recordings_new(&r, &part, error);
  if (!status) status = dv_linear_choose(&system, &c, &r, 0, -1, error);
  for (int k = 0; k < r.n_x && !status; k++) sum += system.r[k * (r.n_x + 1)] / r.n_x;
  *out = (dv_linear_facts){c.order, c.feedthrough, sqrt(sum), c.errors.free_run};
  dv_system_clear(&system);
  dv_recordings_clear(&r);
  dv_free(s->length);
  return status;
}

static dvbf_status fit_linear(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                              char *told, size_t size, dvbf_error *error) {
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (dv_density_of(s) != &dv_gaussian || !dv_gaussian.scales(s))
    return dv_fail(error, DVBF_ARGUMENT,
                   "a linear model has normal noise around a linear mean: likelihood must be gaussian and "
                   "mean identity; "
                   "leave them out");
  int order = dv_settings_given(settings, "latent") ? (int)s->latent : 0;
  int feedthrough = dv_settings_given(settings, "feedthrough") ? (int)s->feedthrough : -1;
  return fit(out, settings, order, feedthrough, data, told, size, error);
}

dv_fit_fn *dv_fit_of(const dvbf_model_class *type) {
  return type == &dv_model_linear ? fit_linear : NULL;
}
