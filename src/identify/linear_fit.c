/* The best linear model of data as a model: identification, then EM or prediction-error refinement if the
 * settings ask for it, conversion of units and rounding that keeps A stable (dv_identify_model). Also the
 * linear model inside a trained one (dvbf_model_add_linear) and wide data (dv_reduction_*). */
#include "identify/linear_fit.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/text.h"
#include "identify/identify.h"
#include "math/algebra.h"
#include "math/kalman.h"
#include "math/portable.h"
#include "model/density.h"
#include "model/linear_gaussian.h"

#include <dvbf/dvbf.h>

#include <math.h>
#include <string.h>

enum { EM_ITERATIONS = 200 }; /* at most: it ends where the likelihood hardly rises */

/* ---- Wide data ---- */

enum {
  MANY = 64,           /* columns that are still taken as they are */
  MOST_COMPONENTS = 32 /* components */
};

/* Share of the variance that components may leave out. */
static const double share = 0.01;

/* Frames with gaps are not reduced. `scaling` is a model that scales x. Clear also after a failure. */
static dvbf_status reduce(dv_reduction *out, const dvbf_model *scaling, const dvbf_data *data,
                          dvbf_error *error) {
  dvbf_error inner = {0};
  *out = (dv_reduction){0};
  dvbf_status status =
      dv_components_find(&out->components, &data->train, scaling, share, MOST_COMPONENTS, NULL, &inner);
  if (!status) status = dv_components_project(&out->data, &out->components, data, scaling, &inner);
  if (status == DVBF_ARGUMENT) { /* frames that are seen in part */
    dv_reduction_clear(out);
    return DVBF_OK;
  }
  if (status && error) *error = inner;
  return status;
}

void dv_reduction_clear(dv_reduction *r) {
  dv_components_free(&r->components);
  dvbf_sequences_free(&r->data.train);
  dvbf_sequences_free(&r->data.valid);
  *r = (dv_reduction){0};
}

/* s^2; not 0, as no likelihood has it. */
static double outside(const dv_components *c) {
  double all = c->left_out, least = 1e-8;
  for (int i = 0; i < c->count; i++) all += c->variance[i];
  return fmax(c->left_out, least * all) / (c->n_x - c->count);
}

double dv_reduction_log_p(const dv_reduction *r) {
  const dv_components *c = &r->components;
  double variance = outside(c);
  return -0.5 * ((c->n_x - c->count) * dv_log(6.283185307179586477 * variance) + c->left_out / variance);
}

static double axis(const dv_components *c, int component, int column) {
  return (double)c->axes[(size_t)component * (size_t)c->n_x + (size_t)column];
}

/* out [n_x][n] = P' from [count][n] */
static void lift_rows(double *out, const double *from, const dv_components *c, int n) {
  for (int i = 0; i < c->n_x; i++)
    for (int k = 0; k < c->count; k++)
      for (int j = 0; j < n; j++) out[i * n + j] += axis(c, k, i) * from[k * n + j];
}

/* out [n][n_x] = from [n][count] P */
static void lift_columns(double *out, const double *from, const dv_components *c, int n) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < c->count; k++)
      for (int j = 0; j < c->n_x; j++) out[i * c->n_x + j] += from[i * c->count + k] * axis(c, k, j);
}

/* out [n_x][n_x] = P' R P + s^2 (I - P'P), which is P' (R - s^2 I) P + s^2 I. */
static void lift_noise(double *out, const double *noise, const dv_components *c, double *half) {
  double variance = outside(c);
  for (int k = 0; k < c->count; k++)
    for (int j = 0; j < c->n_x; j++) {
      double sum = -variance * axis(c, k, j);
      for (int l = 0; l < c->count; l++) sum += noise[k * c->count + l] * axis(c, l, j);
      half[k * c->n_x + j] = sum;
    }
  lift_rows(out, half, c, c->n_x);
  for (int i = 0; i < c->n_x; i++) out[i * (c->n_x + 1)] += variance;
}

/* Copies the parts independent of x. */
static void lift_rest(dv_state_space *out, const dv_state_space *from) {
  size_t z = (size_t)from->n_z, u = (size_t)from->n_u;
  for (size_t i = 0; i < z * z; i++)
    out->a[i] = from->a[i], out->q[i] = from->q[i], out->cov[i] = from->cov[i];
  for (size_t i = 0; i < z * u; i++) out->b[i] = from->b[i];
  for (size_t i = 0; i < z; i++) out->shift_z[i] = from->shift_z[i], out->mean[i] = from->mean[i];
}

dvbf_status dv_reduction_lift(dv_state_space *system, const dv_reduction *r, dvbf_error *error) {
  const dv_components *c = &r->components;
  dv_state_space out = {0};
  double *half = dv_calloc((size_t)c->count, (size_t)c->n_x * sizeof *half);
  dvbf_status status = half ? dv_system_new(&out, system->n_z, system->n_u, c->n_x, error)
                            : dv_fail_memory(error, "making a linear model");
  if (!status) {
    lift_rest(&out, system);
    lift_rows(out.h, system->h, c, system->n_z);
    lift_rows(out.d, system->d, c, system->n_u);
    lift_rows(out.shift_x, system->shift_x, c, 1);
    lift_columns(out.s, system->s, c, system->n_z);
    lift_noise(out.r, system->r, c, half);
    dv_system_clear(system);
    *system = out;
  }
  dv_free(half);
  return status;
}

/* ---- State range ---- */

/* `z` is room for a state. */
static void walk(const dv_state_space *s, const dv_recordings *r, const dv_piece *piece, double *memory,
                 dvbf_real *z, dvbf_real *low, dvbf_real *high) {
  dv_kalman k = dv_kalman_begin(s, memory);
  for (size_t frame = piece->first; frame < piece->first + piece->steps; frame++) {
    const double *u = r->u + frame * (size_t)r->n_u;
    if (!dv_kalman_observe(&k, r->x + frame * (size_t)r->n_x, u)) return;
    for (int i = 0; i < s->n_z; i++) z[i] = (dvbf_real)k.filtered[i];
    dv_model_widen_range(low, high, z, s->n_z);
    dv_kalman_move(&k, u);
  }
}

/* Filters the recordings and sets the model's limits to `state-limit` times the range of z; does nothing if
 * that is 0. The system is in the units of the recordings. */
static dvbf_status set_limits(dvbf_model *m, const dv_state_space *s, const dv_recordings *r,
                              dvbf_error *error) {
  size_t n = (size_t)s->n_z;
  if (!dv_model_range(m)) return DVBF_OK;
  double *memory = dv_calloc(dv_kalman_size(s->n_z, s->n_x), sizeof *memory);
  dvbf_real *low = dv_calloc(3 * n, sizeof *low), *high = low ? low + n : NULL;
  dvbf_status status =
      memory && low ? DVBF_OK : dv_fail_memory(error, "measuring the states of a linear model");
  for (size_t i = 0; !status && i < n; i++) low[i] = (dvbf_real)INFINITY, high[i] = (dvbf_real)-INFINITY;
  for (size_t i = 0; !status && i < r->count; i++) walk(s, r, &r->whole[i], memory, high + n, low, high);
  if (!status) dv_model_set_range(m, low, high, m->settings->state_limit);
  DV_FREE(memory, low);
  return status;
}

/* ---- Making the model ---- */

/* From the units of the recordings to those of the model, in place: x' = gain x + shift and u = gain u' +
 * shift. Without `x` the recordings are of x' already, less the mean of each column. */
static void change_units(dv_state_space *s, const dv_recordings *r, const dvbf_model *m,
                         const dv_scaling *x) {
  size_t n_z = (size_t)s->n_z, n_u = (size_t)s->n_u, n_x = (size_t)s->n_x;
  for (size_t k = 0; k < n_u; k++) {
    double gain = 1 / ((double)m->u.scale[k] * r->u_deviation[k]);
    double shift = ((double)m->u.shift[k] - r->u_mean[k]) / r->u_deviation[k];
    for (size_t i = 0; i < n_z; i++) s->shift_z[i] += s->b[i * n_u + k] * shift, s->b[i * n_u + k] *= gain;
    for (size_t i = 0; i < n_x; i++) s->shift_x[i] += s->d[i * n_u + k] * shift, s->d[i * n_u + k] *= gain;
  }
  for (size_t k = 0; k < n_x; k++) {
    double scale = x ? (double)x->scale[k] : 1, gain = scale * r->x_deviation[k];
    for (size_t i = 0; i < n_z; i++) s->h[k * n_z + i] *= gain, s->s[i * n_x + k] *= gain;
    for (size_t i = 0; i < n_u; i++) s->d[k * n_u + i] *= gain;
    for (size_t i = 0; i < n_x; i++) s->r[k * n_x + i] *= gain, s->r[i * n_x + k] *= gain;
    s->shift_x[k] = s->shift_x[k] * gain + (r->x_mean[k] - (x ? (double)x->shift[k] : 0)) * scale;
  }
}

/* The request and its result. */
typedef struct fitting {
  int order;       /* 0: any */
  int feedthrough; /* -1: either */
  int64_t by;      /* DV_FIT_... */
  dv_fit_watch watch;
  const volatile int *interrupt;
  dv_reduction reduction;
  dv_recordings r; /* of x, or of its components */
  dv_state_space system;
  dv_linear_choice choice;
  double frames; /* with any value */
  double scale;  /* ln p in the units of the data less that in those of the recordings */
  double added;  /* to ln p of a frame, of what is outside of the components */
  dv_em_progress first, last;
} fitting;

/* The settings of the model: those of `like`, with what was found. */
static dvbf_status settle(dvbf_settings **out, const dvbf_settings *like, const fitting *f,
                          dvbf_error *error) {
  static const char *const names[] = {
      [DV_FIT_SUBSPACE] = "subspace", [DV_FIT_EM] = "em", [DV_FIT_FREE_RUN] = "free-run"};
  char text[16];
  dv_print(text, sizeof text, "%d", f->choice.order);
  const char *const values[][2] = {{"model", dv_model_linear.name},
                                   {"likelihood", "gaussian"},
                                   {"mean", "identity"},
                                   {"latent", text},
                                   {"feedthrough", f->choice.feedthrough ? "on" : "off"},
                                   {"linear-fit", names[f->by]}};
  dvbf_status status = dvbf_settings_copy(out, like, error);
  for (size_t i = 0; i < sizeof values / sizeof *values && !status; i++)
    status = dv_settings_set_chosen(*out, values[i][0], values[i][1], error);
  return status;
}

/* Parameters are saved as floats. Rounding must not make A unstable. */
static void round_stably(dv_state_space *s, double *scratch) {
  size_t all = (size_t)s->n_z * (size_t)s->n_z;
  double by = 1e-7;
  for (int k = 0; k < 24; k++, by *= 2) {
    for (size_t i = 0; i < all; i++) scratch[i] = (double)(dvbf_real)s->a[i];
    if (dv_spectral_radius(scratch, s->n_z, scratch + all) <= 1) return;
    for (size_t i = 0; i < all; i++) s->a[i] *= 1 - by;
  }
}

static dvbf_status new_model(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data,
                             const fitting *f, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_status status = settle(&settings, like, f, error);
  if (!status) status = dv_model_new(out, settings, NULL, &data->train, 1, error);
  dvbf_settings_free(settings);
  return status;
}

static dvbf_status make_model(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data, fitting *f,
                              dvbf_error *error) {
  dvbf_model *m = NULL;
  bool reduced = f->reduction.components.count;
  size_t both = (size_t)data->train.n_x + (size_t)f->system.n_z;
  double *scratch = dv_calloc(3 * both, both * sizeof *scratch);
  dvbf_status status =
      scratch ? new_model(&m, like, data, f, error) : dv_fail_memory(error, "making a model");
  if (!status) status = set_limits(m, &f->system, &f->r, error);
  if (!status) change_units(&f->system, &f->r, m, reduced ? NULL : &m->x);
  if (!status && reduced) status = dv_reduction_lift(&f->system, &f->reduction, error);
  if (!status) {
    round_stably(&f->system, scratch);
    dv_linear_set(m, &f->system, scratch);
    m->updates = f->last.iteration > 1 ? (uint64_t)f->last.iteration : 1;
    *out = m;
  }
  if (status) dvbf_model_free(m);
  dv_free(scratch);
  return status;
}

/* ---- Expectation maximisation ---- */

static double per_frame(const fitting *f, const dv_em_progress *p) {
  return (p->log_p + f->scale) / f->frames + f->added;
}

static bool watch(const dv_em_progress *p, void *user) {
  fitting *f = user;
  if (!p->iteration) f->first = *p;
  return !f->watch.each || f->watch.each(p->iteration, EM_ITERATIONS, per_frame(f, p), f->watch.user);
}

/* Counts frames and values. */
static double measure(fitting *f) {
  size_t n_x = (size_t)f->r.n_x;
  double values = 0;
  for (size_t t = 0; t < f->r.frames; t++) {
    bool any = false;
    for (size_t i = 0; i < n_x; i++)
      if (!isnan(f->r.x[t * n_x + i])) any = true, values++, f->scale -= dv_log(f->r.x_deviation[i]);
    f->frames += any;
  }
  return values;
}

/* Finds the distribution of the first state, which the subspace method leaves open, from the beginnings of
 * the sequences. The one it starts from acts like one more sequence. */
static dvbf_status find_start(fitting *f, dvbf_error *error) {
  const double longest = 200, shortest = 10, budget = 2e8; /* less of each sequence if it would take long */
  double n = f->system.n_z + f->system.n_x, steps = budget / (n * n * n) / (double)f->r.count;
  size_t most = (size_t)fmax(shortest, fmin(longest, steps));
  dv_em_options o = {.iterations = 20, .tolerance = 0.1, .starts = 1, .start_only = true};
  dv_em_progress last;
  dv_recordings r = f->r;
  r.whole = dv_calloc(r.count, sizeof *r.whole);
  if (!r.whole) return dv_fail_memory(error, "fitting a linear model");
  memcpy(r.whole, f->r.whole, r.count * sizeof *r.whole);
  for (size_t i = 0; i < r.count; i++)
    if (r.whole[i].steps > most) r.whole[i].steps = most;
  for (int i = 0; i < f->system.n_z; i++) f->system.cov[i * (f->system.n_z + 1)] += 1e-6;
  dvbf_error unlikely;
  dvbf_status status = dv_em(&f->system, &r, &o, &last, &unlikely);
  dv_free(r.whole);
  return status == DVBF_MEMORY ? dv_fail(error, status, "%s", unlikely.message) : DVBF_OK;
}

static dvbf_status improve(fitting *f, dvbf_error *error) {
  dv_em_options o = {.iterations = EM_ITERATIONS,
                     .tolerance = 0.01 + 1e-6 * measure(f), /* less could not be noticed */
                     .floor = DV_NOISE_FLOOR,
                     .starts = 1,
                     .feedthrough = f->choice.feedthrough,
                     .watch = watch,
                     .user = f};
  dvbf_status status = dv_em_begin(&f->system, &f->r, error);
  return status ? status : dv_em(&f->system, &f->r, &o, &f->last, error);
}

/* ---- Fitting ---- */

/* Identifies the system of x, or of its components if there are many columns. */
static dvbf_status identify(fitting *f, const dvbf_settings *settings, const dvbf_data *data,
                            dvbf_error *error) {
  dvbf_model *scaling = NULL;
  dvbf_status status = DVBF_OK;
  if (data->train.n_x > MANY) {
    f->choice.order = 1;
    status = new_model(&scaling, settings, data, f, error);
    if (!status) status = reduce(&f->reduction, scaling, data, error);
  }
  bool reduced = f->reduction.components.count;
  if (!status && reduced) f->added = dv_reduction_log_p(&f->reduction) + dv_model_log_jacobian(scaling);
  dvbf_model_free(scaling);
  if (status) return status;
  return dv_identify_data(&f->system, &f->choice, &f->r, reduced ? &f->reduction.data : data, f->order,
                          f->feedthrough, f->interrupt, error);
}

static void tell(const fitting *f, char *told, size_t size) {
  const dv_linear_choice *c = &f->choice;
  char near[DV_RESULT], far[DV_RESULT];
  dv_print(
      told, size,
      "linear model of order %d%s from the last %d frames%s; errors in cross-validation over those of the "
      "mean: one step %s, free run %s",
      c->order, c->order < f->order ? " (these data allow no higher one)" : "", c->past,
      c->feedthrough ? ", with feedthrough" : "", dv_result_text(near, "%.3g", c->errors.one_step),
      dv_result_text(far, "%.3g", c->errors.free_run));
  size_t used = strlen(told);
  if (f->by == DV_FIT_EM)
    dv_print(told + used, size - used, "; then %d iterations of EM: ln p from %s to %s nats per frame",
             f->last.iteration, dv_result_text(near, "%.4g", per_frame(f, &f->first)),
             dv_result_text(far, "%.4g", per_frame(f, &f->last)));
}

static dvbf_status fit(dvbf_model **out, fitting *f, const dvbf_settings *settings, const dvbf_data *data,
                       char *told, size_t size, dvbf_error *error) {
  dvbf_status status = identify(f, settings, data, error);
  if (!status && f->by == DV_FIT_FREE_RUN)
    status = dv_prediction_error_refine(&f->system, &f->choice, &f->r, f->order, f->interrupt, error);
  if (!status) status = f->by == DV_FIT_EM ? improve(f, error) : find_start(f, error);
  if (!status) status = make_model(out, settings, data, f, error);
  if (!status && told) tell(f, told, size);
  dv_system_clear(&f->system);
  dv_recordings_clear(&f->r);
  dv_reduction_clear(&f->reduction);
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

dvbf_status dv_linear_system(dv_state_space *out, dv_recordings *r, const dvbf_model *m,
                             const dvbf_data *data, const volatile int *interrupt, dvbf_error *error) {
  dv_linear_choice c;
  int feedthrough = m->settings->feedthrough ? -1 : 0; /* allowed, but chosen only where it helps */
  dvbf_data known = {.train = data->train};            /* validation data stay unseen */
  dvbf_status status = dv_identify_data(out, &c, r, &known, 0, feedthrough, interrupt, error);
  if (!status && c.order > m->n_z) {
    dv_system_clear(out);
    status = dv_identify_order(out, &c, r, m->n_z, feedthrough, interrupt, error);
  }
  if (status) return status;
  change_units(out, r, m, &m->x);
  change_recordings(r, m);
  dv_free(r->filled); /* it would still be in units of deviations */
  r->filled = NULL;
  return DVBF_OK;
}

const char *dv_linear_name(void) {
  return dv_model_linear.name;
}

dvbf_status dv_identify_model(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data,
                              const volatile int *interrupt, dvbf_error *error) {
  fitting f = {.feedthrough = -1, .interrupt = interrupt};
  dvbf_error inner = {0};
  dvbf_status status = fit(out, &f, like, data, NULL, 0, &inner);
  if (!dv_failed_outside(status)) return DVBF_OK;
  if (error) *error = inner;
  return status;
}

dvbf_status dv_identify_summary(dv_linear_facts *out, const dvbf_data *data, const volatile int *interrupt,
                                dvbf_error *error) {
  enum { SUMMARY_FRAMES = 3000 };
  dvbf_data part = {.train = data->train};
  dvbf_sequences *s = &part.train;
  dv_recordings r = {0};
  dv_state_space system = {0};
  dv_linear_choice c = {0};
  double sum = 0;
  size_t frames = 0, i = 0;
  s->length = dv_calloc(s->count, sizeof *s->length);
  if (!s->length) return dv_fail_memory(error, "looking for a linear model");
  for (; i < s->count && frames < SUMMARY_FRAMES; i++) {
    size_t all = dvbf_sequence_length(&data->train, i), left = SUMMARY_FRAMES - frames;
    s->length[i] = (uint32_t)(all < left ? all : left);
    frames += s->length[i];
  }
  s->count = i;
  dvbf_status status = dv_identify_data(&system, &c, &r, &part, 0, -1, interrupt, error);
  for (int k = 0; k < r.n_x && !status; k++) sum += system.r[k * (r.n_x + 1)] / r.n_x;
  *out = (dv_linear_facts){c.order, c.feedthrough, sqrt(sum), c.errors.free_run};
  dv_system_clear(&system);
  dv_recordings_clear(&r);
  dv_free(s->length);
  return status;
}

static dvbf_status fit_linear(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                              dv_fit_watch watch, char *told, size_t size, dvbf_error *error) {
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (!dv_density_of(s)->normal || !dv_density_of(s)->scales(s))
    return dv_fail(error, DVBF_ARGUMENT,
                   "a linear model has normal noise around a linear mean: likelihood must be gaussian and "
                   "mean identity; leave them out");
  fitting f = {.order = dv_settings_given(settings, "latent") ? (int)s->latent : 0,
               .feedthrough = dv_settings_given(settings, "feedthrough") ? (int)s->feedthrough : -1,
               .by = s->linear_fit,
               .watch = watch,
               .interrupt = dv_settings_interrupt(settings)};
  return fit(out, &f, settings, data, told, size, error);
}

dv_fit_fn *dv_fit_of(const dvbf_model_class *type) {
  return type == &dv_model_linear ? fit_linear : NULL;
}

/* ---- The linear model of a trained one ---- */

/* Linear models suit real numbers, not images, bits and counts; too many columns take too long. */
static dvbf_status suits(bool *out, const dvbf_model *m, const dvbf_data *data, dvbf_error *error) {
  enum { PIXELS = 16, WIDEST = 256 };
  const dvbf_sequences *s = &data->train;
  dv_statistics x;
  *out = false;
  if (!m->density->scales(m->settings) || data->image_height || s->n_x + s->n_u > WIDEST) return DVBF_OK;
  dvbf_status status = dv_statistics_of_x(&x, s, error);
  if (status) return status;
  *out = s->n_x < PIXELS || x.low < 0 || x.high > 1;
  dv_statistics_free(&x);
  return DVBF_OK;
}

dvbf_status dvbf_model_add_linear(bool *added, dvbf_model *m, const dvbf_data *data,
                                  const dvbf_settings *settings, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(m));
  const dvbf_sequences *train = &data->train;
  dvbf_data known = {.train = *train}; /* the data of the verdict stay unseen */
  dvbf_model *linear = NULL;
  dvbf_error inner = {0};
  bool worth = false;
  *added = false;
  if (m->linear || dv_fit_of(m->type)) return DVBF_OK;
  if ((size_t)m->n_x != train->n_x || (size_t)m->n_u != train->n_u)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model has %d columns of x and %d of u, and the data have %zu and %zu; give the data "
                   "that it was trained on",
                   m->n_x, m->n_u, train->n_x, train->n_u);
  dvbf_status status = suits(&worth, m, data, error);
  if (status || !worth) return status;
  const volatile int *interrupt = dv_settings_interrupt(settings ? settings : m->settings_object);
  status = dv_identify_model(&linear, m->settings_object, &known, interrupt, error);
  if (status || !linear) return status;
  status = dv_model_set_linear(m, linear, &inner);
  *added = !status;
  if (!dv_failed_outside(status)) return DVBF_OK;
  if (error) *error = inner;
  return status;
}
