/* A model as an object: its class, making one for data (dv_model_new: scaling, first values), committee
 * members and the linear model, descriptions, and access to its linear systems, universal parameters and
 * state range. The numbers are in one vector of parameters; equations are recorded by the model classes, and
 * files are written by model_file.c. */
#include "model/model.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "math/portable.h"
#include "math/random.h"
#include "model/density.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool make_scaling(dv_scaling *s, int n) {
  s->shift = dv_calloc((size_t)n, sizeof *s->shift);
  s->scale = dv_calloc((size_t)n, sizeof *s->scale);
  if (!s->shift || !s->scale) return false;
  for (int i = 0; i < n; i++) s->scale[i] = 1;
  return true;
}

/* ---- The class of a model ---- */

static const dvbf_model_class *const shipped[] = {
#define MODEL(object, name) &dv_model_##object,
#include "model/models.def"
#undef MODEL
};

const dvbf_model_class *dv_model_class_at(size_t index) {
  return index < sizeof shipped / sizeof shipped[0] ? shipped[index] : NULL;
}

const dvbf_model_class *dv_model_class_of(const dv_train_settings *s) {
  return shipped[s->model];
}

typedef enum ability { TIMELESS, FILTERS, TAKES_TRANSITION, READS_FRAME } ability;

/* The first shipped model that has the ability; one exists for each. */
static const dvbf_model_class *model_that(ability what) {
  for (size_t i = 0; i < sizeof shipped / sizeof shipped[0]; i++) {
    const dvbf_model_class *type = shipped[i];
    const bool can[] = {[TIMELESS] = type->timeless,
                        [FILTERS] = type->step || type->online_step,
                        [TAKES_TRANSITION] = type->takes_transition,
                        [READS_FRAME] = type->reads_frame};
    if (can[what]) return type;
  }
  return shipped[0];
}

const dvbf_model_class *dv_model_reading(void) {
  return model_that(READS_FRAME);
}

const char *dv_model_timeless(void) {
  return model_that(TIMELESS)->name;
}

dv_own dv_model_own(const dvbf_model *m) {
  bool type = m->type != dv_model_class_of(m->settings);
  bool transition = m->transition && m->transition != dv_transition_of(m->settings);
  return (dv_own){type ? m->type : NULL, transition ? m->transition : NULL};
}

int dv_model_least_steps(const dvbf_model *m) {
  return m->type->timeless ? 1 : 2;
}

int dv_model_frames_needed(const dvbf_model *m) {
  return m->type->frames_needed ? m->type->frames_needed(m->type, m->settings_object) : 1;
}

int dv_model_start_frames(const dvbf_model *m) {
  return m->type->start_frames ? m->type->start_frames(m->type, m->settings_object) : 0;
}

int dv_model_recognises_from(const dvbf_model *m) {
  int start = m->settings->gain_updates ? dv_model_start_frames(m) : 1;
  return start > 1 ? start : 1;
}

int dv_model_predicts_from(const dvbf_model *m) {
  int most = 0;
  for (int i = 0; i < dv_model_members(m); i++) {
    int needed = dv_model_frames_needed(dv_model_member(m, i));
    if (needed > most) most = needed;
  }
  return most;
}

int dv_model_forecasts_from(const dvbf_model *m) {
  int most = 0;
  for (int i = 0; i < dv_model_members(m); i++) {
    const dvbf_model *member = dv_model_member(m, i);
    int start = dv_model_start_frames(member),
        from = start ? start : dv_settings_predict_from(member->settings);
    if (from > most) most = from;
  }
  return most;
}

bool dv_model_can_filter(const dvbf_model *m) {
  return m->type->online_step || (m->type->start && m->type->step);
}

dvbf_status dv_model_needs_filter(const dvbf_model *m, const char *instead, dvbf_error *error) {
  if (dv_model_can_filter(m)) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT, "the model %s cannot filter: %s; model = %s can%s", m->type->name,
                 m->type->no_filter ? m->type->no_filter : "it does not record single steps",
                 model_that(FILTERS)->name, instead);
}

dvbf_status dv_model_needs_weights(const dvbf_model *m, dvbf_error *error) {
  if (!m->type->no_weights) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "the model %s has no particles: %s; filter and predict work without them", m->type->name,
                 m->type->no_weights);
}

/* ---- Making a model ---- */

/* A contraction that was asked for but is impossible is refused. */
static dvbf_status check_contraction(const dvbf_model *m, dvbf_error *error) {
  dv_systems systems;
  if (!(m->settings->contraction > 0) || dv_model_systems(m, &systems)) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "contraction = %g: %.40s is not made of linear systems; set contraction = 0, and bound the "
                 "state with state-limit",
                 m->settings->contraction, m->transition ? m->transition->name : m->type->name);
}

/* The user's own transition, which the model must take, or that of the settings. */
static dvbf_status choose_transition(dvbf_model *m, const dv_own *own, dvbf_error *error) {
  const dvbf_transition *given = own ? own->transition : NULL;
  if (given && !m->type->takes_transition)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model %s accepts no custom transition such as \"%.40s\"; model = %s does",
                   m->type->name, given->name, model_that(TAKES_TRANSITION)->name);
  m->transition = given ? given : m->type->takes_transition ? dv_transition_of(m->settings) : NULL;
  return DVBF_OK;
}

dvbf_status dv_model_empty(dvbf_model **out, const dvbf_settings *settings, const dv_own *own, int n_x,
                           int n_u, dvbf_error *error) {
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (!s) return DVBF_ARGUMENT;
  dvbf_model *m = dv_calloc(1, sizeof *m);
  if (!m) return dv_fail_memory(error, "making a model");
  dvbf_status status = dvbf_settings_copy(&m->settings_object, settings, error);
  m->type = own && own->type ? own->type : dv_model_class_of(s);
  m->settings = status ? s : dv_settings_train(m->settings_object, error);
  if (!status) status = choose_transition(m, own, error);
  if (!status) status = check_contraction(m, error);
  m->density = dv_density_of(s);
  m->n_x = n_x;
  m->n_u = n_u;
  m->n_z = m->type->states ? m->type->states(m->type, settings) : (int)s->latent;
  m->n_w = m->type->innovations ? m->type->innovations(m->type, settings) : 0;
  m->x_spread = 1;
  m->sequences = 1;
  m->first_output = dv_calloc((size_t)n_x, sizeof *m->first_output);
  bool made = m->first_output && make_scaling(&m->x, n_x) && make_scaling(&m->u, n_u);
  if (!status && !made) status = dv_fail_memory(error, "making a model");
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  *out = m;
  return DVBF_OK;
}

/* Standardises columns that vary, centres all. */
static void set_scaling(dv_scaling *s, const double *mean, const double *variance, int n, bool centre,
                        bool scale) {
  for (int i = 0; i < n; i++) {
    s->shift[i] = centre ? (float)mean[i] : 0;
    s->scale[i] = scale && dv_varies(mean[i], variance[i]) ? (float)(1 / sqrt(variance[i])) : 1;
  }
}

static void learn_scaling(dvbf_model *m, const dv_measured *data) {
  const dv_train_settings *s = m->settings;
  const dv_statistics *x = &data->x, *u = &data->u;
  double total = 0;
  bool scales = m->density->scales(s);
  set_scaling(&m->x, x->mean, x->variance, m->n_x, scales && s->x_scaling != DV_SCALING_NONE,
              scales && s->x_scaling == DV_SCALING_STANDARDISE);
  for (int i = 0; i < m->n_x; i++) total += x->variance[i] * (double)m->x.scale[i] * (double)m->x.scale[i];
  m->x_spread = total > 1e-74 ? total : 1; /* first weights, one over its root, must be finite */
  for (int i = 0; i < m->n_x; i++) {       /* the emission's first bias gives the mean frame */
    double mean = (x->mean[i] - (double)m->x.shift[i]) * (double)m->x.scale[i];
    m->first_output[i] = m->density->first_output ? m->density->first_output(s, mean) : mean;
  }
  set_scaling(&m->u, u->mean, u->variance, m->n_u, s->u_scaling == DV_U_STANDARDISE,
              s->u_scaling == DV_U_STANDARDISE);
}

dvbf_status dv_model_first_values(dvbf_model *m, size_t steps, uint64_t seed, dvbf_error *error) {
  dvbf_program first = {0};
  m->parameters.seed = seed;
  dvbf_status status = dv_program_record(&first, m, (int)steps, 1, (int)steps, 0, error);
  dv_program_clear(&first);
  m->parameters.complete = !status;
  return status;
}

dvbf_status dv_model_of(dvbf_model **out, const dvbf_settings *settings, const dv_own *own,
                        const dv_measured *data, const dvbf_sequences *train, uint64_t seed,
                        dvbf_error *error) {
  dvbf_model *m = NULL;
  dvbf_status status = dv_model_empty(&m, settings, own, (int)train->n_x, (int)train->n_u, error);
  if (status) return status;
  m->sequences = (double)train->count;
  m->log_sigma_floor = dv_log(m->settings->sigma_floor);
  learn_scaling(m, data);
  if (m->density->look) status = m->density->look(m, train, error);
  if (!status && m->type->settle) status = m->type->settle(m->type, m->settings_object, train->steps, error);
  if (!status) status = dv_model_first_values(m, train->steps, seed, error);
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  *out = m;
  return DVBF_OK;
}

dvbf_status dv_model_new(dvbf_model **out, const dvbf_settings *settings, const dv_own *own,
                         const dvbf_sequences *train, uint64_t seed, dvbf_error *error) {
  dv_measured data;
  dvbf_status status = dv_measured_of(&data, train, error);
  if (status) return status;
  status = dv_model_of(out, settings, own, &data, train, seed, error);
  dv_measured_free(&data);
  return status;
}

/* ---- Members and descriptions ---- */

static dvbf_status check_part(const dvbf_model *m, const dvbf_model *part, dvbf_error *error) {
  if (part->n_x == m->n_x && part->n_u == m->n_u && !part->n_others && !part->linear) return DVBF_OK;
  return dv_fail(
      error, DVBF_ARGUMENT,
      "a model with %d columns of x and %d of u, and %d parts, cannot be part of a model with %d and %d",
      part->n_x, part->n_u, part->n_others + (part->linear != NULL), m->n_x, m->n_u);
}

dvbf_status dv_model_add_member(dvbf_model *m, dvbf_model *other, dvbf_error *error) {
  dvbf_status status = check_part(m, other, error);
  if (!status && dv_model_members(m) == DV_MOST_MEMBERS)
    status = dv_fail(error, DVBF_ARGUMENT, "a committee has at most %d members", DV_MOST_MEMBERS);
  dvbf_model **longer = status ? NULL : dv_realloc(m->others, (size_t)m->n_others + 1, sizeof(dvbf_model *));
  if (!status && !longer) status = dv_fail_memory(error, "adding a member");
  if (status) {
    dvbf_model_free(other);
    return status;
  }
  m->others = longer;
  m->others[m->n_others++] = other;
  return DVBF_OK;
}

dvbf_status dv_model_set_linear(dvbf_model *m, dvbf_model *linear, dvbf_error *error) {
  dvbf_status status = check_part(m, linear, error);
  dvbf_model_free(status ? linear : m->linear);
  if (!status) m->linear = linear;
  return status;
}

void dvbf_model_free(dvbf_model *m) {
  if (!m) return;
  for (int i = 0; i < m->n_others; i++) dvbf_model_free(m->others[i]);
  dv_free(m->others);
  dvbf_model_free(m->linear);
  dvbf_settings_free(m->settings_object);
  dv_free(m->x.shift);
  dv_free(m->x.scale);
  dv_free(m->u.shift);
  dv_free(m->u.scale);
  dv_free(m->first_output);
  dv_free(m->first_patterns);
  dv_parameters_free(&m->parameters);
  dv_free(m);
}

dvbf_status dv_model_give(dvbf_model **out, dvbf_model *m, dvbf_status status) {
  if (status) dvbf_model_free(m);
  if (!status) *out = m;
  return status;
}

/* Older files of linear models do not keep the setting, but have the weights. */
bool dv_model_feeds_through(const dvbf_model *m) {
  const dvbf_real *weights = m->type->exact_system && m->n_u ? dv_model_values(m, "emission.u") : NULL;
  bool any = m->settings->feedthrough && m->n_u;
  for (int i = 0; weights && i < m->n_u * m->n_x; i++) any |= weights[i] != 0;
  return any;
}

bool dv_model_same_row(const dvbf_model *m) {
  bool any = false;
  for (int i = 0; i < dv_model_members(m); i++) any |= dv_model_feeds_through(dv_model_member(m, i));
  return any;
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
                           .members = (size_t)dv_model_members(m),
                           .frames = (size_t)dv_model_forecasts_from(m),
                           .feedthrough = dv_model_same_row(m),
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

dvbf_status dvbf_model_weights(const dvbf_model *m, const char *name, float *out, size_t size,
                               dvbf_error *error) {
  const dv_parameter *p = dv_model_find(m, name);
  if (!p) return dv_fail(error, DVBF_ARGUMENT, "the model has no parameter named %.60s", name);
  size_t count = (size_t)p->rows * (size_t)p->cols;
  if (size != count)
    return dv_fail(error, DVBF_ARGUMENT, "the parameter %s has %d x %d values; there is room for %zu", name,
                   p->rows, p->cols, size);
  for (size_t k = 0; k < count; k++) out[k] = (float)m->parameters.values[p->offset + k];
  return DVBF_OK;
}

const dvbf_model *dvbf_model_member(const dvbf_model *m, size_t index) {
  return index < (size_t)dv_model_members(m) ? dv_model_member(m, (int)index) : NULL;
}

const dvbf_model *dvbf_model_linear(const dvbf_model *m) {
  return m->linear;
}

const dvbf_settings *dvbf_model_settings(const dvbf_model *m) {
  return m->settings_object;
}

dvbf_status dv_model_takes(const dvbf_model *m, const dvbf_sequences *s, dvbf_error *error) {
  if (s->n_x != (size_t)m->n_x || s->n_u != (size_t)m->n_u)
    return dv_fail(error, DVBF_FORMAT,
                   "the model was trained on %d columns of x and %d of u, but the data have %zu and %zu; use "
                   "data with the same columns",
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
    x[i] = (float)(dv_density_mean(m->density, (double)output[i]) / (double)m->x.scale[i] +
                   (double)m->x.shift[i]);
}

double dv_model_log_jacobian_of(const dvbf_model *m, const uint64_t *seen) {
  double sum = 0;
  for (int i = 0; i < m->n_x; i++) sum += (seen ? (double)seen[i] : 1) * dv_log((double)m->x.scale[i]);
  return sum;
}

/* ---- Linear systems ---- */

bool dv_model_systems(const dvbf_model *m, dv_systems *out) {
  const dvbf_transition *f = m->transition;
  int count = f && f->systems ? f->systems(f, m->settings_object) : m->type->system ? 1 : 0;
  *out = (dv_systems){m->n_z, count, f && m->settings->residual, m->settings->contraction};
  return count > 0;
}

dvbf_real *dv_model_systems_at(const dvbf_model *m) {
  return dv_model_values(m, m->type->system ? m->type->system : "universal.mean");
}

/* ---- Fingerprint ---- */

uint64_t dv_model_fingerprint(const dvbf_model *m) {
  uint64_t hash = dv_hash_start;
  for (int k = 0; k < dv_model_members(m); k++) {
    const dvbf_model *one = dv_model_member(m, k);
    for (size_t i = 0; i < one->parameters.count; i++) {
      const dv_parameter *p = &one->parameters.list[i];
      hash = dv_hash(hash, one->parameters.values + p->offset,
                     (size_t)p->rows * (size_t)p->cols * sizeof *one->parameters.values);
    }
    hash = dv_hash(hash, one->x.shift, (size_t)one->n_x * sizeof *one->x.shift);
    hash = dv_hash(hash, one->x.scale, (size_t)one->n_x * sizeof *one->x.scale);
  }
  return hash;
}

/* ---- Universal parameters ---- */

/* q(v) = N(mean, sigma^2) per entry, p(v) = N(m, s^2). */

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
  for (int k = 0; k < dv_model_find(m, "universal.mean")->cols; k++) {
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

/* ---- State range ---- */

/* Centre and limit of each dimension of z, which training measures and no gradient moves. */

static const char NAME[] = "state.range";

/* Before training has seen any z: so wide that it only prevents overflow. */
enum { FIRST_LIMIT = 1000 };

dvbf_value dvbf_state_range(dvbf_graph *g, const dvbf_model *m) {
  double first[2 * DV_MOST_LATENT] = {0};
  if (!(m->settings->state_limit > 0)) return DVBF_NONE;
  for (int k = 0; k < m->n_z; k++) first[m->n_z + k] = FIRST_LIMIT;
  return dvbf_parameter(g, NAME, 2, m->n_z, (dvbf_first){.frozen = true, .values = first});
}

dvbf_real *dv_model_range(const dvbf_model *m) {
  return dv_model_values(m, NAME);
}

void dv_model_widen_range(dvbf_real *low, dvbf_real *high, const dvbf_real *z, int n) {
  for (int k = 0; k < n; k++) {
    low[k] = z[k] < low[k] ? z[k] : low[k];
    high[k] = z[k] > high[k] ? z[k] : high[k];
  }
}

void dv_model_set_range(dvbf_model *m, const dvbf_real *low, const dvbf_real *high, double multiple) {
  dvbf_real *centre = dv_model_range(m), *limit = centre + m->n_z;
  double widest = 0;
  for (int k = 0; k < m->n_z; k++) {
    if (!(low[k] <= high[k])) return; /* nothing was seen, or nothing finite */
    widest = fmax(widest, ((double)high[k] - (double)low[k]) / 2);
  }
  if (!isfinite(widest)) return;
  for (int k = 0; k < m->n_z; k++) {
    double half = ((double)high[k] - (double)low[k]) / 2;
    centre[k] = (dvbf_real)((double)low[k] + half);
    limit[k] = (dvbf_real)(multiple * fmax(half, fmax(0.01 * widest, 1e-6)));
  }
}

void dv_range_bend(const dvbf_real *range, double *z, int n) {
  for (int k = 0; range && k < n; k++) {
    double centre = (double)range[k], limit = (double)range[n + k], far = fabs(z[k] - centre);
    if (far > limit) z[k] = centre + copysign(limit * (1 + dv_tanh(far / limit - 1)), z[k] - centre);
  }
}

void dv_range_narrow(const dvbf_real *range, double *cov, int n) {
  for (int k = 0; range && k < n; k++) {
    double by = (double)range[n + k] / sqrt(cov[k * n + k]);
    for (int i = 0; i < n && by < 1; i++) cov[k * n + i] *= by, cov[i * n + k] *= by;
  }
}
