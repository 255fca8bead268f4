/* Exact inference with the linear model: Kalman filter, smoother, predictions, samples, and the filter in
 * real time. */
#include "model/linear.h"

#include "base/algebra.h"
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"
#include "kalman/draw.h"
#include "kalman/smooth.h"

#include <math.h>
#include <string.h>

/* What one question works with. */
typedef struct work {
  const dvbf_model *m;
  const dvbf_exact *q;
  dv_system system;
  double *memory;
  double *x, *u; /* [steps][n_x], [steps][n_u] scaled, NaN where missing */
  dv_kalman filter;
  dv_noise_factors factors;
  double *factor; /* [n_z][n_z] */
  double *z, *frame, *scratch;
  const dvbf_real *range; /* of z after what is seen, where it has limits */
} work;

/* ---- Making ---- */

static void scale_in(const work *w) {
  const dvbf_exact *q = w->q;
  size_t n_x = (size_t)w->m->n_x, n_u = (size_t)w->m->n_u, steps = (size_t)q->steps;
  for (size_t i = 0; i < steps * n_x; i++) {
    size_t k = i % n_x;
    bool seen = i < (size_t)q->observe * n_x;
    w->x[i] = seen ? ((double)q->x[i] - (double)w->m->x.shift[k]) * (double)w->m->x.scale[k] : (double)NAN;
  }
  for (size_t i = 0; i < steps * n_u; i++)
    w->u[i] = ((double)q->u[i] - (double)w->m->u.shift[i % n_u]) * (double)w->m->u.scale[i % n_u];
}

static dvbf_status begin(work *w, dvbf_error *error) {
  int n_z = w->m->n_z, n_u = w->m->n_u, n_x = w->m->n_x;
  size_t z = (size_t)n_z, x = (size_t)n_x, u = (size_t)n_u, steps = (size_t)w->q->steps, used = 0;
  double *kalman;
  struct {
    double **part;
    size_t size;
  } parts[] = {{&w->x, steps * x},
               {&w->u, steps * u},
               {&kalman, dv_kalman_size(n_z, n_x)},
               {&w->factors.x, x * x},
               {&w->factors.shared, z * x},
               {&w->factors.z, z * z},
               {&w->factor, z * z},
               {&w->z, z},
               {&w->frame, x},
               {&w->scratch, 2 * z + 2 * x}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) used += parts[i].size;
  dvbf_status status = dv_system_new(&w->system, n_z, n_u, n_x, error);
  if (status) return status;
  w->memory = dv_calloc(used, sizeof *w->memory);
  if (!w->memory) return dv_fail_memory(error, "filtering a sequence");
  used = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    *parts[i].part = w->memory + used;
    used += parts[i].size;
  }
  dv_linear_get(w->m, &w->system);
  dv_noise_factors_of(&w->system, &w->factors);
  w->filter = dv_kalman_begin(&w->system, kalman);
  scale_in(w);
  return DVBF_OK;
}

static void end(work *w) {
  dv_system_clear(&w->system);
  dv_free(w->memory);
}

/* ---- Results of one step ---- */

static void unscale(const work *w, const double *x, float *to) {
  for (int i = 0; i < w->m->n_x; i++)
    to[i] = (float)(x[i] / (double)w->m->x.scale[i] + (double)w->m->x.shift[i]);
}

/* Mean and deviation of z_t and x_t. */
static void put_moments(const work *w, int t, const double *mean, const double *cov) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z, n_x = (size_t)w->m->n_x, at = (size_t)(t - q->first);
  for (size_t i = 0; i < n_z; i++) {
    if (q->z_mean) q->z_mean[at * n_z + i] = (float)mean[i];
    if (q->z_deviation) q->z_deviation[at * n_z + i] = (float)sqrt(fmax(0, cov[i * (n_z + 1)]));
  }
  if (q->x_mean) {
    dv_system_emit(&w->system, mean, w->u + (size_t)t * (size_t)w->m->n_u, w->frame);
    unscale(w, w->frame, q->x_mean + at * n_x);
  }
  if (!q->x_deviation) return;
  dv_kalman_x_variance(&w->system, cov, q->noise, w->frame);
  for (size_t i = 0; i < n_x; i++)
    q->x_deviation[at * n_x + i] = (float)(sqrt(w->frame[i]) / (double)w->m->x.scale[i]);
}

/* z of one sample at step t, and x where it was made. */
static void put_sample(const work *w, size_t sample, int t, const double *z, const double *x) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z, n_x = (size_t)w->m->n_x, at = sample * q->room + (size_t)(t - q->first);
  for (size_t i = 0; q->z && i < n_z; i++) q->z[at * n_z + i] = (float)z[i];
  if (q->x_samples && x) unscale(w, x, q->x_samples + at * n_x);
}

/* Numbers for one sample, apart from those of other steps. */
static dv_random random_of(const work *w, size_t sample, int t) {
  dv_random random = dv_random_at(w->q->seed, DV_STREAM_INFERENCE, w->q->sequence, (uint32_t)sample);
  random.next = (uint32_t)t * 4 * (uint32_t)(w->m->n_z + w->m->n_x);
  return random;
}

static bool draws(const dvbf_exact *q) {
  return q->samples && (q->z || q->x_samples);
}

/* Each sample for itself, from N(mean, cov). */
static void put_draws(const work *w, int t, const double *mean, const double *cov) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z;
  const double *u = w->u + (size_t)t * (size_t)w->m->n_u;
  memcpy(w->factor, cov, n_z * n_z * sizeof *cov);
  dv_factor(w->factor, (int)n_z);
  for (size_t s = 0; s < q->samples; s++) {
    dv_random random = random_of(w, s, t);
    memcpy(w->z, mean, n_z * sizeof *mean);
    dv_add_noise(w->z, w->factor, (int)n_z, &random, w->scratch);
    dv_system_emit(&w->system, w->z, u, w->frame);
    if (q->noise) dv_add_noise(w->frame, w->factors.x, w->m->n_x, &random, w->scratch);
    put_sample(w, s, t, w->z, w->frame);
  }
}

/* ---- Filter and prediction ---- */

/* Paths of steps observe .. steps - 1, which begin in what the filter knows there. */
static void draw_paths(const work *w) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z;
  memcpy(w->factor, w->filter.cov, n_z * n_z * sizeof *w->factor);
  dv_factor(w->factor, (int)n_z);
  for (size_t s = 0; s < q->samples; s++) {
    dv_random random = random_of(w, s, q->observe);
    memcpy(w->z, w->filter.mean, n_z * sizeof *w->z);
    dv_add_noise(w->z, w->factor, (int)n_z, &random, w->scratch);
    for (int t = q->observe; t < q->steps; t++) {
      const double *u = w->u + (size_t)t * (size_t)w->m->n_u;
      if (t >= q->first) put_sample(w, s, t, w->z, NULL);
      dv_draw_step(&w->system, &w->factors, w->z, u, w->frame, q->noise, &random, w->scratch);
      dv_range_bend(w->range, w->z, w->m->n_z);
      if (t >= q->first && q->x_samples)
        unscale(w, w->frame, q->x_samples + (s * q->room + (size_t)(t - q->first)) * (size_t)w->m->n_x);
    }
  }
}

/* What scaling adds to ln p of what is seen. */
static double log_scale(const work *w) {
  double sum = 0;
  for (int i = 0; i < w->filter.seen; i++) sum += dv_log((double)w->m->x.scale[w->filter.which[i]]);
  return sum;
}

/* What nobody sees may not go further than the limits. */
static void keep_to_limits(dv_kalman *k, const dvbf_real *range) {
  dv_range_bend(range, k->mean, k->system->n_z);
  dv_range_narrow(range, k->cov, k->system->n_z);
}

static bool filter(work *w) {
  const dvbf_exact *q = w->q;
  dv_kalman *k = &w->filter;
  bool after = q->given == DVBF_GIVEN_UP_TO;
  for (int t = 0; t < q->steps; t++) {
    const double *x = w->x + (size_t)t * (size_t)w->m->n_x, *u = w->u + (size_t)t * (size_t)w->m->n_u;
    if (t == q->observe && draws(q)) draw_paths(w);
    if (!dv_kalman_observe(k, t < q->observe ? x : NULL, u)) return false;
    if (t >= q->first) {
      const double *mean = after ? k->filtered : k->mean, *cov = after ? k->filtered_cov : k->cov;
      put_moments(w, t, mean, cov);
      if (q->ln_p) q->ln_p[t - q->first] = k->log_p + log_scale(w);
      if (t < q->observe && draws(q)) put_draws(w, t, mean, cov);
    }
    dv_kalman_move(k, u);
    if (t >= q->observe) keep_to_limits(k, w->range);
  }
  return true;
}

/* ---- Smoother ---- */

/* A path given all of x (Durbin and Koopman 2002): one is drawn from the system together with its own x,
 * whose smoothed path is taken out and that of the data put in. `other` has room for it. */
static bool draw_smoothed(work *w, const dv_smoothed *data, dv_smoothed *other, double *path, double *made,
                          size_t s) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z, n_x = (size_t)w->m->n_x, n_u = (size_t)w->m->n_u;
  dv_random random = random_of(w, s, 0);
  memcpy(w->z, w->system.mean, n_z * sizeof *w->z);
  memcpy(w->factor, w->system.cov, n_z * n_z * sizeof *w->factor);
  dv_factor(w->factor, (int)n_z);
  dv_add_noise(w->z, w->factor, (int)n_z, &random, w->scratch);
  for (size_t t = 0; t < (size_t)q->steps; t++) {
    memcpy(path + t * n_z, w->z, n_z * sizeof *path);
    dv_draw_step(&w->system, &w->factors, w->z, w->u + t * n_u, made + t * n_x, true, &random, w->scratch);
    for (size_t i = 0; i < n_x; i++)
      if (isnan(w->x[t * n_x + i])) made[t * n_x + i] = (double)NAN;
  }
  if (!dv_smooth(other, &w->system, made, w->u, q->steps)) return false;
  for (size_t t = (size_t)q->first; t < (size_t)q->steps; t++) {
    double *z = path + t * n_z;
    for (size_t i = 0; i < n_z; i++) z[i] += data->mean[t * n_z + i] - other->mean[t * n_z + i];
    dv_system_emit(&w->system, z, w->u + t * n_u, w->frame);
    put_sample(w, s, (int)t, z, w->frame);
  }
  return true;
}

static dvbf_status smooth(work *w, bool *sound, dvbf_error *error) {
  const dvbf_exact *q = w->q;
  size_t n_z = (size_t)w->m->n_z;
  dv_smoothed data = {0}, other = {0};
  double *room = NULL;
  dvbf_status status = dv_smoothed_init(&data, &w->system, q->steps, error);
  if (!status && draws(q)) status = dv_smoothed_init(&other, &w->system, q->steps, error);
  if (!status && draws(q)) {
    room = dv_calloc((size_t)q->steps, (n_z + (size_t)w->m->n_x) * sizeof *room);
    if (!room) status = dv_fail_memory(error, "smoothing a sequence");
  }
  if (!status) *sound = dv_smooth(&data, &w->system, w->x, w->u, q->steps);
  for (int t = q->first; t < q->steps && !status && *sound; t++)
    put_moments(w, t, data.mean + (size_t)t * n_z, data.cov + (size_t)t * n_z * n_z);
  for (size_t s = 0; s < q->samples && draws(q) && !status && *sound; s++)
    *sound = draw_smoothed(w, &data, &other, room, room + (size_t)q->steps * n_z, s);
  dv_free(room);
  dv_smoothed_clear(&data);
  dv_smoothed_clear(&other);
  return status;
}

dvbf_status dv_linear_exact(const dvbf_model_class *self, const dvbf_model *m, const dvbf_exact *asked,
                            dvbf_error *error) {
  (void)self;
  work w = {.m = m, .q = asked, .range = dv_model_range(m)};
  bool sound = false;
  dvbf_status status = begin(&w, error);
  if (!status && asked->given == DVBF_GIVEN_ALL) status = smooth(&w, &sound, error);
  if (!status && asked->given != DVBF_GIVEN_ALL) sound = filter(&w);
  end(&w);
  if (!status && !sound)
    status = dv_fail(error, DVBF_FORMAT,
                     "the noise of this linear model has no positive covariance; identify it anew");
  return status;
}

/* ---- In real time ---- */

typedef struct online {
  dv_system system;
  dv_kalman filter;
  double *x, *u; /* scaled */
  bool through;  /* u comes with its own frame, and is kept for the move to the next */
  bool begun, seen, sound;
  uint64_t seed;
  uint32_t step;
} online;

static size_t online_doubles(const dvbf_model *m) {
  return dv_system_size(m->n_z, m->n_u, m->n_x) + dv_kalman_size(m->n_z, m->n_x) + (size_t)m->n_x +
         (size_t)m->n_u;
}

size_t dv_linear_online_size(const dvbf_model_class *self, const dvbf_model *m) {
  (void)self;
  return (sizeof(online) + 63) / 64 * 64 + online_doubles(m) * sizeof(double);
}

void dv_linear_online_begin(const dvbf_model_class *self, const dvbf_model *m, void *memory, uint64_t seed) {
  (void)self;
  online *o = memory;
  double *room = (double *)(void *)((unsigned char *)memory + (sizeof *o + 63) / 64 * 64);
  *o = (online){.system = dv_system_at(room, m->n_z, m->n_u, m->n_x),
                .through = dv_model_feeds_through(m),
                .seed = seed};
  dv_linear_get(m, &o->system);
  room += dv_system_size(m->n_z, m->n_u, m->n_x);
  o->filter = dv_kalman_begin(&o->system, room);
  o->x = room + dv_kalman_size(m->n_z, m->n_x);
  o->u = o->x + m->n_x;
}

/* Samples of N(filtered), and their factor in the scratch of the filter, which has done its step. */
static void draw_online(online *o, size_t samples, float *z) {
  dv_kalman *k = &o->filter;
  int n = o->system.n_z;
  double *factor = k->scratch, *normal = factor + (size_t)n * (size_t)n;
  memcpy(factor, k->filtered_cov, (size_t)n * (size_t)n * sizeof *factor);
  dv_factor(factor, n);
  for (size_t s = 0; s < samples; s++, z += n) {
    dv_random random = dv_random_at(o->seed, DV_STREAM_INFERENCE, o->step, (uint32_t)s);
    for (int i = 0; i < n; i++) normal[i] = dv_random_normal(&random);
    for (int i = 0; i < n; i++)
      z[i] = (float)(k->filtered[i] + dv_dot(factor + (size_t)i * (size_t)n, normal, (size_t)n));
  }
}

static void set_u(online *o, const dvbf_model *m, const float *u) {
  for (int i = 0; i < m->n_u; i++)
    o->u[i] = u ? ((double)u[i] - (double)m->u.shift[i]) * (double)m->u.scale[i] : 0;
}

/* To the next step. u [n_u] is the control since the step before or, with feedthrough, that of this step. */
static void advance(online *o, const dvbf_model *m, const float *u) {
  dv_kalman *k = &o->filter;
  if (!o->through) set_u(o, m, o->begun ? u : NULL);
  if (o->begun && o->sound) dv_kalman_move(k, o->u);
  if (o->begun && !o->seen) keep_to_limits(k, dv_model_range(m));
  if (o->through) set_u(o, m, u);
  o->begun = true;
}

/* x [n_x] scaled; NULL: missing. */
static void observe(online *o, const double *x) {
  o->seen = x;
  o->sound = dv_kalman_observe(&o->filter, x, o->u);
}

void dv_linear_online_step(const dvbf_model_class *self, const dvbf_model *m, void *memory, const float *x,
                           const float *u, size_t samples, float *mean, float *deviation, float *z) {
  (void)self;
  online *o = memory;
  dv_kalman *k = &o->filter;
  advance(o, m, u);
  for (int i = 0; x && i < m->n_x; i++)
    o->x[i] = ((double)x[i] - (double)m->x.shift[i]) * (double)m->x.scale[i];
  observe(o, x ? o->x : NULL);
  for (int i = 0; i < m->n_z; i++) {
    mean[i] = (float)k->filtered[i];
    deviation[i] = (float)sqrt(fmax(0, k->filtered_cov[i * (m->n_z + 1)]));
  }
  draw_online(o, samples, z);
  o->step++;
}

void dv_linear_online_ahead(const dvbf_model_class *self, const dvbf_model *m, void *memory, const float *u,
                            bool noise, float *mean, float *deviation, double *x_mean, double *x_variance) {
  (void)self;
  online *o = memory;
  dv_kalman *k = &o->filter;
  advance(o, m, u);
  observe(o, NULL);
  for (int i = 0; i < m->n_z; i++) {
    mean[i] = (float)k->mean[i];
    deviation[i] = (float)sqrt(fmax(0, k->cov[i * (m->n_z + 1)]));
  }
  dv_system_emit(&o->system, k->mean, o->u, x_mean);
  dv_kalman_x_variance(&o->system, k->cov, noise, x_variance);
  for (int i = 0; i < m->n_x; i++) {
    double scale = (double)m->x.scale[i];
    x_mean[i] = x_mean[i] / scale + (double)m->x.shift[i];
    x_variance[i] /= scale * scale;
  }
}
