#include "model/density.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>

static bool make_scaling(dv_scaling *s, int n) {
  s->shift = dv_calloc((size_t)n, sizeof *s->shift);
  s->scale = dv_calloc((size_t)n, sizeof *s->scale);
  if (!s->shift || !s->scale) return false;
  for (int i = 0; i < n; i++) s->scale[i] = 1;
  return true;
}

dvbf_status dv_model_empty(dvbf_model **out, const dvbf_settings *settings, const dvbf_transition *transition,
                           int n_x, int n_u, dvbf_error *error) {
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (!s) return DVBF_ARGUMENT;
  if (transition && s->model != DV_DVBF)
    return dv_fail(error, DVBF_ARGUMENT,
                   "a dkf has a transition network of its own and cannot take the transition \"%.40s\"; "
                   "model = dvbf can",
                   transition->name);
  dvbf_model *m = dv_calloc(1, sizeof *m);
  if (!m) return dv_fail_memory(error, "making a model");
  dvbf_status status = dvbf_settings_copy(&m->settings_object, settings, error);
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  m->settings = dv_settings_train(m->settings_object, error);
  m->transition = transition ? transition : dv_transition_of(m->settings);
  m->density = dv_density_of(m->settings);
  m->n_x = n_x;
  m->n_u = n_u;
  m->n_z = (int)m->settings->latent;
  if (s->model == DV_DVBF) m->n_w = (int)(s->innovation ? s->innovation : s->latent);
  m->x_spread = 1;
  m->sequences = 1;
  m->first_output = dv_calloc((size_t)n_x, sizeof *m->first_output);
  if (!m->first_output || !make_scaling(&m->x, n_x) || !make_scaling(&m->u, n_u)) {
    dvbf_model_free(m);
    return dv_fail_memory(error, "making a model");
  }
  *out = m;
  return DVBF_OK;
}

/* Standardises columns that vary, centres all. */
static void set_scaling(dv_scaling *s, const double *mean, const double *variance, int n, bool centre,
                        bool scale) {
  for (int i = 0; i < n; i++) {
    s->shift[i] = centre ? (float)mean[i] : 0;
    s->scale[i] = scale && variance[i] > 1e-12 ? (float)(1 / sqrt(variance[i])) : 1;
  }
}

/* The emission's first bias gives the mean frame. */
static void set_first_output(dvbf_model *m, const double *mean) {
  for (int i = 0; i < m->n_x; i++)
    m->first_output[i] =
        m->density->first_output(m->settings, (mean[i] - (double)m->x.shift[i]) * (double)m->x.scale[i]);
}

static dvbf_status learn_scaling(dvbf_model *m, const dvbf_sequences *train, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  dv_statistics x, u;
  double total = 0;
  dvbf_status status = dv_statistics_of_x(&x, train, error);
  if (status) return status;
  bool scales = m->density->scales(s);
  set_scaling(&m->x, x.mean, x.variance, m->n_x, scales && s->x_scaling != DV_SCALING_NONE,
              scales && s->x_scaling == DV_SCALING_STANDARDISE);
  for (int i = 0; i < m->n_x; i++) total += x.variance[i] * (double)m->x.scale[i] * (double)m->x.scale[i];
  m->x_spread = total > 1e-12 ? total : 1;
  set_first_output(m, x.mean);
  dv_statistics_free(&x);
  if (!m->n_u) return DVBF_OK;
  status = dv_statistics_of_u(&u, train, error);
  if (status) return status;
  set_scaling(&m->u, u.mean, u.variance, m->n_u, s->u_scaling == DV_U_STANDARDISE,
              s->u_scaling == DV_U_STANDARDISE);
  dv_statistics_free(&u);
  return DVBF_OK;
}

/* A network on frames has weights for a number of them, so "all" is fixed at the training length. A dkf's
 * network gives a state for each of any number of frames, so it is recurrent. */
static dvbf_status fix_initial(dvbf_model *m, const dvbf_sequences *train, dvbf_error *error) {
  char text[32];
  if (m->settings->model == DV_DKF && m->settings->initial == DV_INITIAL_MLP)
    return dvbf_settings_set(m->settings_object, "initial", "birnn", error);
  if (m->settings->initial != DV_INITIAL_MLP || m->settings->initial_frames) return DVBF_OK;
  snprintf(text, sizeof text, "%zu", train->steps);
  return dvbf_settings_set(m->settings_object, "initial-frames", text, error);
}

dvbf_status dv_model_first_values(dvbf_model *m, size_t steps, uint64_t seed, dvbf_error *error) {
  dv_program first = {0};
  m->parameters.seed = seed;
  dvbf_status status = dv_program_record(&first, m, (int)steps, 1, (int)steps, 0, error);
  dv_program_clear(&first);
  m->parameters.complete = !status;
  return status;
}

dvbf_status dv_model_new(dvbf_model **out, const dvbf_settings *settings, const dvbf_transition *transition,
                         const dvbf_sequences *train, uint64_t seed, dvbf_error *error) {
  dvbf_model *m = NULL;
  dvbf_status status = dv_model_empty(&m, settings, transition, (int)train->n_x, (int)train->n_u, error);
  if (status) return status;
  m->sequences = (double)train->count;
  m->log_sigma_floor = log(m->settings->sigma_floor);
  status = learn_scaling(m, train, error);
  if (!status) status = fix_initial(m, train, error);
  if (!status) status = dv_model_first_values(m, train->steps, seed, error);
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  *out = m;
  return DVBF_OK;
}

void dvbf_model_free(dvbf_model *m) {
  if (!m) return;
  dvbf_settings_free(m->settings_object);
  dv_free(m->x.shift);
  dv_free(m->x.scale);
  dv_free(m->u.shift);
  dv_free(m->u.scale);
  dv_free(m->first_output);
  dv_parameters_free(&m->parameters);
  dv_free(m);
}

dvbf_model_info dvbf_model_describe(const dvbf_model *m) {
  size_t count = 0;
  for (size_t i = 0; i < m->parameters.count; i++)
    if (!m->parameters.list[i].frozen)
      count += (size_t)m->parameters.list[i].rows * (size_t)m->parameters.list[i].cols;
  return (dvbf_model_info){.n_x = (size_t)m->n_x,
                           .n_u = (size_t)m->n_u,
                           .n_z = (size_t)m->n_z,
                           .n_w = (size_t)m->n_w,
                           .parameters = count,
                           .updates = m->updates,
                           .seed = (uint64_t)m->settings->seed,
                           .seconds = m->seconds,
                           .x_shift = m->x.shift,
                           .x_scale = m->x.scale,
                           .u_shift = m->u.shift,
                           .u_scale = m->u.scale};
}

bool dvbf_model_parameter(const dvbf_model *m, size_t index, dvbf_parameter_info *info) {
  if (index >= m->parameters.count) return false;
  const dv_parameter *p = &m->parameters.list[index];
  *info = (dvbf_parameter_info){p->name, (size_t)p->rows, (size_t)p->cols, !p->frozen};
  return true;
}

const dvbf_settings *dvbf_model_settings(const dvbf_model *m) {
  return m->settings_object;
}

dvbf_status dv_model_takes(const dvbf_model *m, const dvbf_sequences *s, dvbf_error *error) {
  if (s->n_x != (size_t)m->n_x || s->n_u != (size_t)m->n_u)
    return dv_fail(
        error, DVBF_FORMAT,
        "the model was trained on x of %d columns and u of %d, the data have %zu and %zu; use data of the "
        "same kind",
        m->n_x, m->n_u, s->n_x, s->n_u);
  dvbf_status status = dv_sequences_validate(s, "data", "", error);
  return status ? status : dv_density_check(m, s, error);
}

dv_conditions dv_model_conditions(const dvbf_model *m, uint64_t seed) {
  dv_conditions c = {.seed = seed, .stream = DV_STREAM_INFERENCE, .scale = 1};
  dv_conditions_set(&c, DVBF_LOG_SIGMA_FLOOR, m->log_sigma_floor);
  dv_conditions_set(&c, DVBF_SEQUENCES, m->sequences);
  return c;
}

void dv_model_unscale(const dvbf_model *m, const dvbf_real *output, float *x) {
  for (int i = 0; i < m->n_x; i++)
    x[i] = (float)(m->density->mean((double)output[i]) / (double)m->x.scale[i] + (double)m->x.shift[i]);
}

double dv_model_log_jacobian(const dvbf_model *m) {
  double sum = m->left_out_jacobian;
  for (int i = 0; i < m->n_x; i++) sum += log((double)m->x.scale[i]);
  return sum;
}

double dv_model_log_jacobian_of(const dvbf_model *m, const uint64_t *seen) {
  double sum = m->left_out_jacobian * (double)seen[0];
  for (int i = 0; i < m->n_x; i++) sum += (double)seen[i] * log((double)m->x.scale[i]);
  return sum;
}
