#include "identify/fit.h"
#include "identify/range.h"

#include "base/algebra.h"
#include "base/arithmetic.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "identify/em.h"
#include "identify/free_run.h"
#include "identify/reduce.h"
#include "model/density.h"
#include "model/linear.h"

#include <math.h>
#include <string.h>

/* From the units of the recordings to those of the model, in place: x' = gain x + shift and u = gain u' +
 * shift. Without `x` the recordings are of x' already, but for what was taken out of each column. */
static void change_units(dv_system *s, const dv_recordings *r, const dvbf_model *m, const dv_scaling *x) {
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

/* What is asked for, and what was found. */
typedef struct fitting {
  int order;       /* 0: any */
  int feedthrough; /* -1: either */
  int64_t by;      /* DV_FIT_... */
  int iterations;
  dv_fit_watch watch;
  const volatile int *interrupt;
  dv_reduction reduction;
  dv_recordings r; /* of x, or of its components */
  dv_system system;
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
    status = dv_settings_choose(*out, values[i][0], values[i][1], error);
  return status;
}

/* Parameters are saved as floats. Rounding must not make A unstable. */
static void round_stably(dv_system *s, double *scratch) {
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

/* The system in the units of the model. */
static dvbf_status give_units(fitting *f, const dvbf_model *m, dvbf_error *error) {
  bool reduced = f->reduction.components.count;
  change_units(&f->system, &f->r, m, reduced ? NULL : &m->x);
  return reduced ? dv_reduction_lift(&f->system, &f->reduction, error) : DVBF_OK;
}

static dvbf_status make_model(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data, fitting *f,
                              dvbf_error *error) {
  dvbf_model *m = NULL;
  size_t both = (size_t)data->train.n_x + (size_t)f->system.n_z;
  double *scratch = dv_calloc(3 * both, both * sizeof *scratch);
  dvbf_status status =
      scratch ? new_model(&m, like, data, f, error) : dv_fail_memory(error, "making a model");
  if (!status) status = dv_linear_measure(m, &f->system, &f->r, error);
  if (!status) status = give_units(f, m, error);
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

/* ---- EM ---- */

static double per_frame(const fitting *f, const dv_em_progress *p) {
  return (p->log_p + f->scale) / f->frames + f->added;
}

static bool watch(const dv_em_progress *p, void *user) {
  fitting *f = user;
  if (!p->iteration) f->first = *p;
  return !f->watch.each || f->watch.each(p->iteration, f->iterations, per_frame(f, p), f->watch.user);
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

/* Frames at the beginning of each sequence from which its first state is found; fewer where that would take
 * long. */
static size_t beginning(const fitting *f) {
  const double longest = 200, shortest = 10, budget = 2e8;
  double n = f->system.n_z + f->system.n_x, steps = budget / (n * n * n) / (double)f->r.count;
  return (size_t)fmax(shortest, fmin(longest, steps));
}

/* Finds the distribution of the first state, which the subspace method leaves open, from the beginnings of
 * the sequences. The one it starts from acts like one more sequence. */
static dvbf_status find_start(fitting *f, dvbf_error *error) {
  dv_em_options o = {.iterations = 20, .tolerance = 0.1, .starts = 1, .start_only = true};
  dv_em_progress last;
  dv_recordings r = f->r;
  size_t most = beginning(f);
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
  dv_em_options o = {.iterations = f->iterations,
                     .tolerance = 0.01 + 1e-6 * measure(f), /* less could not be noticed */
                     .floor = DV_NOISE_FLOOR,
                     .starts = 1,
                     .feedthrough = f->choice.feedthrough,
                     .watch = watch,
                     .user = f};
  dvbf_status status = dv_em_begin(&f->system, &f->r, error);
  return status ? status : dv_em(&f->system, &f->r, &o, &f->last, error);
}

/* ---- All of it ---- */

/* What is looked at: x, or its components where there are many columns. */
static dvbf_status look(fitting *f, const dvbf_settings *settings, const dvbf_data *data, dvbf_error *error) {
  dvbf_model *scaling = NULL;
  if (!dv_reduction_helps(data->train.n_x)) return dv_recordings_new(&f->r, data, error);
  f->choice.order = 1;
  dvbf_status status = new_model(&scaling, settings, data, f, error);
  if (!status) status = dv_reduction_init(&f->reduction, scaling, data, error);
  bool reduced = f->reduction.components.count;
  if (!status) status = dv_recordings_new(&f->r, reduced ? &f->reduction.data : data, error);
  if (!status && reduced) f->added = dv_reduction_log_p(&f->reduction) + dv_model_log_jacobian(scaling);
  dvbf_model_free(scaling);
  return status;
}

static void tell(const fitting *f, char *told, size_t size) {
  const dv_linear_choice *c = &f->choice;
  dv_print(
      told, size,
      "linear model of order %d%s from the last %d frames%s; errors in cross-validation over those of the "
      "mean: one step %.3g, free run %.3g",
      c->order, c->order < f->order ? " (these data allow no higher one)" : "", c->past,
      c->feedthrough ? ", with feedthrough" : "", c->errors.one_step, c->errors.free_run);
  size_t used = strlen(told);
  if (f->by == DV_FIT_EM)
    dv_print(told + used, size - used, "; then %d iterations of EM: ln p from %.4g to %.4g nats per frame",
             f->last.iteration, per_frame(f, &f->first), per_frame(f, &f->last));
}

static dvbf_status fit(dvbf_model **out, fitting *f, const dvbf_settings *settings, const dvbf_data *data,
                       char *told, size_t size, dvbf_error *error) {
  dvbf_status status = look(f, settings, data, error);
  if (!status)
    status = dv_linear_choose(&f->system, &f->choice, &f->r, f->order, f->feedthrough, f->interrupt, error);
  if (!status && f->by == DV_FIT_FREE_RUN)
    status = dv_free_run_refine(&f->system, &f->choice, &f->r, f->order, f->interrupt, error);
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

dvbf_status dv_linear_system(dv_system *out, dv_recordings *r, const dvbf_model *m, const dvbf_data *data,
                             const volatile int *interrupt, dvbf_error *error) {
  dv_linear_choice c;
  int feedthrough = m->settings->feedthrough ? -1 : 0; /* allowed, but chosen only where it helps */
  dvbf_data known = {.train = data->train};            /* validation data stay unseen */
  dvbf_status status = dv_recordings_new(r, &known, error);
  if (!status) status = dv_linear_choose(out, &c, r, 0, feedthrough, interrupt, error);
  if (!status && c.order > m->n_z) {
    dv_system_clear(out);
    status = dv_linear_choose(out, &c, r, m->n_z, feedthrough, interrupt, error);
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

dvbf_status dv_linear_best(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data,
                           dvbf_error *error) {
  fitting f = {.feedthrough = -1, .interrupt = dv_settings_interrupt(like)};
  return fit(out, &f, like, data, NULL, 0, error);
}

dvbf_status dv_linear_look(dv_linear_facts *out, const dvbf_data *data, const volatile int *interrupt,
                           dvbf_error *error) {
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
  if (!status) status = dv_linear_choose(&system, &c, &r, 0, -1, interrupt, error);
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
               .iterations = (int)s->em_iterations,
               .watch = watch,
               .interrupt = dv_settings_interrupt(settings)};
  return fit(out, &f, settings, data, told, size, error);
}

dv_fit_fn *dv_fit_of(const dvbf_model_class *type) {
  return type == &dv_model_linear ? fit_linear : NULL;
}
