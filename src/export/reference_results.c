/* Reference results for exported code (dv_reference_step, dv_reference_predict): the library's own online
 * filters, and, since the library has no standard deviations by linearisation, the parts run in double. */
#include "export/test_vectors.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/kalman.h"
#include "model/batches.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

/* An online filter with its memory. */
typedef struct online {
  dvbf_filter *filter;
  void *memory;
  float *z; /* [samples][n_z] of the step before */
} online;

/* The filter without samples, in double: z, its covariance, and the first frames. */
typedef struct spread {
  dv_parts parts;                  /* with derivatives */
  double *z, *cov;                 /* [n_z], [n_z][n_z] */
  double *x, *u, *mask, *seen;     /* of the first frames */
  double *next, *slopes, *scratch; /* slopes have room for those of z and of x */
  double *now, *before;            /* [n_u] scaled controls */
  double *kept_z, *kept_cov;
  double *reals; /* the block of all */
} spread;

struct dv_reference {
  const dvbf_model *m; /* &alone */
  dvbf_model alone;    /* the model without the other members of its committee */
  dv_parts parts;
  int t;                         /* steps so far */
  online quiet, sampled, nudged; /* the last: sampled, on x that differ as by rounding */
  size_t samples;
  dvbf_jacobian *linear;
  spread spread;
  float *before;        /* [n_u] control that came with the step before */
  dvbf_program program; /* a step with emission, for the forecasts of samples */
  dv_worker worker;
  dv_conditions conditions;
  uint32_t *key; /* [samples] */
  /* An exact model. */
  dv_state_space system;
  dv_kalman kalman;
  double *room, *kalman_x, *kalman_u; /* in the block spread.reals */
  bool seen, sound;
};

bool dv_answer_init(dv_answer *a, int n_z, int n_x) {
  const dv_reals reals[] = {
      {&a->z, (size_t)n_z}, {&a->z_std, (size_t)n_z}, {&a->x, (size_t)n_x}, {&a->x_std, (size_t)n_x}};
  *a = (dv_answer){0};
  return (a->reals = dv_calloc_reals(reals, 4)) != NULL;
}

/* ---- Memory ---- */

static bool has_exact_system(const dv_reference *r) {
  return r->m->type->exact_system;
}

static bool through(const dv_reference *r) {
  return dv_model_feeds_through(r->m);
}

static dvbf_status new_online(online *o, const dvbf_model *m, size_t samples, uint64_t seed,
                              dvbf_error *error) {
  size_t size;
  dvbf_status status = dvbf_filter_memsize(&size, m, samples, error);
  if (status) return status;
  o->memory = dv_calloc_aligned(size, 1);
  o->z = dv_calloc(samples * (size_t)m->n_z + (size_t)m->n_x, sizeof *o->z); /* and room for a frame */
  if (!o->memory || !o->z) return dv_fail_memory(error, "exporting a model");
  return dvbf_filter_init(&o->filter, o->memory, size, m, samples, seed, error);
}

static dvbf_status new_spread(dv_reference *r, dvbf_error *error) {
  spread *s = &r->spread;
  const dv_parts *p = &r->parts;
  size_t n_z = (size_t)r->m->n_z, n_x = (size_t)r->m->n_x, n_u = (size_t)r->m->n_u, k = (size_t)p->frames;
  size_t noise =
      n_z + (size_t)r->m->n_w + p->first.slot[DV_SLOT_NOISE].size + p->advance.slot[DV_SLOT_NOISE].size;
  for (int i = 0; i < DV_PARTS; i++) {
    bool of_z = i != DV_EMISSION;
    dv_derivation how = {.quiet = of_z, .by = {[DV_SLOT_Z] = true, [DV_SLOT_NOISE] = of_z}};
    dvbf_status status = dv_code_part_derive(&s->parts.all[i], &p->all[i], &how, error);
    if (status) return status;
  }
  const dv_reals reals[] = {{&s->z, n_z},
                            {&s->cov, n_z * n_z},
                            {&s->x, k * n_x},
                            {&s->u, k * n_u},
                            {&s->mask, k},
                            {&s->seen, k * n_x},
                            {&s->next, n_z},
                            {&s->slopes, (n_z + noise) * (n_z + n_x)},
                            {&s->scratch, n_z * n_z},
                            {&s->now, n_u},
                            {&s->before, n_u},
                            {&s->kept_z, n_z},
                            {&s->kept_cov, n_z * n_z}};
  s->reals = dv_calloc_reals(reals, sizeof reals / sizeof *reals);
  return s->reals ? DVBF_OK : dv_fail_memory(error, "exporting a model");
}

static dvbf_status new_sampled(dv_reference *r, size_t samples, uint64_t seed, dvbf_error *error) {
  const dvbf_model *m = r->m;
  dvbf_status status = new_online(&r->sampled, m, samples, seed, error);
  if (!status) status = new_online(&r->nudged, m, samples, seed, error);
  if (status || !m->type->move) return status;
  r->key = dv_calloc(samples, sizeof *r->key);
  if (!r->key) return dv_fail_memory(error, "exporting a model");
  for (size_t i = 0; i < samples; i++) r->key[i] = (uint32_t)i;
  status = dv_program_record_step(&r->program, m, (int)samples, 0, DV_PARTICLES, error);
  if (!status) status = dv_worker_init(&r->worker, m, &r->program, NULL, error);
  if (status) return status;
  r->conditions = dv_model_conditions(m, seed);
  r->worker.run.conditions = &r->conditions;
  r->worker.run.sequence = r->key;
  dvbf_value v = r->program.v;
  if (v.buffer >= 0) dv_universal_mean(m, dvbf_at(&r->worker.run, v), (size_t)v.cols);
  return DVBF_OK;
}

static dvbf_status new_exact(dv_reference *r, dvbf_error *error) {
  const dvbf_model *m = r->m;
  dvbf_status status = dv_exact_system_new(&r->system, m, error);
  if (status) return status;
  const dv_reals reals[] = {{&r->room, dv_kalman_size(m->n_z, m->n_x)},
                            {&r->kalman_x, (size_t)m->n_x},
                            {&r->kalman_u, (size_t)m->n_u}};
  r->spread.reals = dv_calloc_reals(reals, sizeof reals / sizeof *reals);
  if (!r->spread.reals) return dv_fail_memory(error, "exporting a model");
  r->kalman = dv_kalman_begin(&r->system, r->room);
  return DVBF_OK;
}

dvbf_status dv_reference_new(dv_reference **out, const dvbf_model *m, size_t samples, uint64_t seed,
                             dvbf_error *error) {
  dv_reference *r = dv_calloc(1, sizeof *r);
  if (!r) return dv_fail_memory(error, "exporting a model");
  r->alone = *m;
  r->alone.others = NULL;
  r->alone.n_others = 0;
  r->m = m = &r->alone;
  r->samples = m->type->exact_system ? 0 : samples;
  r->before = dv_calloc((size_t)m->n_u + 1, sizeof *r->before);
  dvbf_status status = r->before ? DVBF_OK : dv_fail_memory(error, "exporting a model");
  if (!status) status = dv_parts_init(&r->parts, m, false, error);
  if (!status) status = new_online(&r->quiet, m, 1, seed, error);
  if (!status) dvbf_filter_quiet(r->quiet.filter, true);
  if (!status && m->type->move) status = dvbf_jacobian_new(&r->linear, m, error);
  if (!status) status = has_exact_system(r) ? new_exact(r, error) : new_spread(r, error);
  if (!status && r->samples) status = new_sampled(r, samples, seed, error);
  if (status)
    dv_reference_free(r);
  else
    *out = r;
  return status;
}

void dv_reference_free(dv_reference *r) {
  if (!r) return;
  spread *s = &r->spread;
  DV_FREE(r->before, r->quiet.memory, r->quiet.z, r->sampled.memory, r->sampled.z, r->nudged.memory,
          r->nudged.z, r->key, s->reals);
  dv_parts_clear(&s->parts);
  dv_parts_clear(&r->parts);
  dvbf_jacobian_free(r->linear);
  dv_worker_clear(&r->worker);
  dv_program_clear(&r->program);
  dv_system_clear(&r->system);
  dv_free(r);
}

void dv_reference_reset(dv_reference *r) {
  dvbf_filter_reset(r->quiet.filter);
  if (r->sampled.filter) dvbf_filter_reset(r->sampled.filter);
  if (r->nudged.filter) dvbf_filter_reset(r->nudged.filter);
  if (has_exact_system(r)) r->kalman = dv_kalman_begin(&r->system, r->room);
  r->seen = false;
  r->t = 0;
}

/* ---- Without samples, in double ---- */

/* cov = f' cov f + g' g; slopes are f [n_z][n], if there are any, and then g [count][n]. */
static void move_cov(const dv_reference *r, double *cov, const double *slopes, bool f, int count) {
  int n = r->m->n_z;
  const double *g = slopes + (f ? n * n : 0);
  double *half = r->spread.scratch;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      half[i * n + j] = 0;
      for (int k = 0; f && k < n; k++) half[i * n + j] += cov[i * n + k] * slopes[k * n + j];
    }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; f && k < n; k++) sum += slopes[k * n + i] * half[k * n + j];
      for (int k = 0; k < count; k++) sum += g[k * n + i] * g[k * n + j];
      cov[i * n + j] = sum;
    }
}

/* z and its covariance through `part`: the step to a frame, or past an unobserved one. */
static dvbf_status carry(dv_reference *r, const dv_code_part *part, const double *const in[DV_INPUTS],
                         dvbf_error *error) {
  spread *s = &r->spread;
  bool f = part != &s->parts.first;
  dvbf_status status = dv_code_part_run(part, in, s->next, NULL, s->slopes, error);
  if (status) return status;
  move_cov(r, s->cov, s->slopes, f, (int)part->slot[DV_SLOT_NOISE].size);
  memcpy(s->z, s->next, (size_t)r->m->n_z * sizeof *s->z);
  return DVBF_OK;
}

/* Scaled x of step t with its mask, and u of the step that it belongs to. */
static void keep_frame(dv_reference *r, int t, const float *x, const float *u) {
  spread *s = &r->spread;
  const dvbf_model *m = r->m;
  s->mask[t] = 0;
  for (int i = 0; i < m->n_x; i++) {
    bool there = !isnan(x[i]);
    s->seen[t * m->n_x + i] = there;
    s->x[t * m->n_x + i] = there ? ((double)x[i] - (double)m->x.shift[i]) * (double)m->x.scale[i] : 0;
    if (there) s->mask[t] = 1;
  }
  int at = through(r) ? t : t - 1;
  for (int i = 0; i < m->n_u; i++) {
    s->u[t * m->n_u + i] = -(double)m->u.shift[i] * (double)m->u.scale[i];
    if (at >= 0) s->u[at * m->n_u + i] = ((double)u[i] - (double)m->u.shift[i]) * (double)m->u.scale[i];
  }
}

/* Takes in frame `to` of the first frames, under the controls `before` it and `now`; with `waits` it is
 * ignored. */
static dvbf_status carry_to(dv_reference *r, int to, bool waits, const double *before, const double *now,
                            dvbf_error *error) {
  spread *s = &r->spread;
  const double none = 0;
  int n_x = r->m->n_x;
  const double *in[DV_INPUTS] = {[DV_SLOT_Z] = s->z,
                                 [DV_SLOT_U] = before,
                                 [DV_SLOT_NOW] = now,
                                 [DV_SLOT_X] = s->x + to * n_x,
                                 [DV_SLOT_MASK] = waits ? &none : s->mask + to,
                                 [DV_SLOT_SEEN] = s->seen + to * n_x};
  return carry(r, &s->parts.advance, in, error);
}

static dvbf_status begin_spread(dv_reference *r, dvbf_error *error) {
  spread *s = &r->spread;
  int n_u = r->m->n_u;
  const double *in[DV_INPUTS] = {
      [DV_SLOT_U] = s->u, [DV_SLOT_X] = s->x, [DV_SLOT_MASK] = s->mask, [DV_SLOT_SEEN] = s->seen};
  dvbf_status status = carry(r, &s->parts.first, in, error);
  for (int t = 1; t < r->parts.frames && !status; t++)
    status = carry_to(r, t, t < dv_model_recognises_from(r->m), s->u + (t - 1) * n_u, s->u + t * n_u, error);
  return status;
}

static void scale_u(const dvbf_model *m, const float *u, double *to) {
  for (int i = 0; i < m->n_u; i++) to[i] = ((double)u[i] - (double)m->u.shift[i]) * (double)m->u.scale[i];
}

/* Scales u of a step and the control that acts before it, which is returned. */
static const float *scale_controls(dv_reference *r, const float *u) {
  const float *before = through(r) ? r->before : u;
  scale_u(r->m, before, r->spread.before);
  scale_u(r->m, u, r->spread.now);
  return before;
}

/* The standard deviation of x one step ahead; z and cov are left there. */
static dvbf_status expect(dv_reference *r, double *x_std, dvbf_error *error) {
  spread *s = &r->spread;
  int n_z = r->m->n_z, n_x = r->m->n_x;
  const double *in[DV_INPUTS] = {[DV_SLOT_Z] = s->z, [DV_SLOT_U] = s->before, [DV_SLOT_NOW] = s->now};
  dvbf_status status = carry(r, &s->parts.move, in, error);
  if (!status) status = dv_code_part_run(&s->parts.emission, in, NULL, x_std, s->slopes, error);
  for (int i = 0; i < n_x && !status; i++) {
    double sum = x_std[i];
    for (int j = 0; j < n_z; j++)
      for (int k = 0; k < n_z; k++)
        sum += s->slopes[j * n_x + i] * s->cov[j * n_z + k] * s->slopes[k * n_x + i];
    x_std[i] = sqrt(fmax(sum, 0));
  }
  return status;
}

/* ---- Forecasts of the library ---- */

/* x one step ahead without noise, from z [n_z], which goes there. */
static void forecast(dv_reference *r, const float *u, const float *now, double *x) {
  float *z = r->quiet.z;
  dvbf_jacobians j;
  dvbf_jacobian_at(r->linear, z, u, &j);
  memcpy(z, j.next, j.n_z * sizeof *z);
  dvbf_jacobian_at(r->linear, z, now, &j);
  for (size_t i = 0; i < j.n_x; i++) x[i] = (double)j.x[i];
}

static void fill(dv_reference *r, dvbf_value value, const float *from, const float *shift,
                 const float *scale) {
  dvbf_real *to = dvbf_at(&r->worker.run, value);
  for (int row = 0; row < value.rows; row++)
    for (int i = 0; i < value.cols; i++) *to++ = (dvbf_real)((from[i] - shift[i]) * scale[i]);
}

/* The same for all samples z [samples][n_z], with the noise of this step. */
static void forecast_samples(dv_reference *r, const float *u, const float *now, dv_answer *out) {
  const dvbf_model *m = r->m;
  float *z = r->sampled.z;
  dvbf_run *run = &r->worker.run;
  size_t n_z = (size_t)m->n_z, n_x = (size_t)m->n_x, n = r->samples;
  dvbf_real *from = dvbf_at(run, r->program.z);
  for (size_t i = 0; i < n * n_z; i++) from[i] = (dvbf_real)z[i];
  if (m->n_u) fill(r, dvbf_steps(r->program.u, 0, 1), u, m->u.shift, m->u.scale);
  if (m->n_u) fill(r, dvbf_steps(r->program.u, 1, 1), now, m->u.shift, m->u.scale);
  memset(dvbf_at(run, r->program.mask), 0, 2 * n * sizeof(dvbf_real));
  r->conditions.update = (uint32_t)r->t;
  dv_run_forward(run);
  const dvbf_real *to = dvbf_at(run, dvbf_steps(r->program.z, 1, 1));
  const dvbf_real *output = dvbf_at(run, r->program.output);
  for (size_t i = 0; i < n * n_z; i++) z[i] = (float)to[i];
  for (size_t i = 0; i < n_x; i++) out->x[i] = out->x_std[i] = 0;
  for (size_t k = 0; k < 2 * n; k++) { /* first the mean, then what is around it */
    size_t row = k % n;
    float *x = z + n * n_z; /* room behind the samples */
    dv_model_unscale(m, output + row * n_x, x);
    for (size_t i = 0; i < n_x && k < n; i++) out->x[i] += (double)x[i] / (double)n;
    if (k < n) continue;
    dv_density_frame frame = {
        .model = m, .program = &r->program, .run = run, .step = 0, .row = (int)row, .mean = x};
    m->density->add_variance(&frame, out->x_std);
    for (size_t i = 0; i < n_x; i++) out->x_std[i] += ((double)x[i] - out->x[i]) * ((double)x[i] - out->x[i]);
  }
  for (size_t i = 0; i < n_x; i++) out->x_std[i] = sqrt(out->x_std[i] / (double)n);
}

/* All that is expected of the step to come, under u. The states are left there. */
static dvbf_status look_ahead(dv_reference *r, const float *u, dv_answer *quiet, dv_answer *sampled,
                              dvbf_error *error) {
  const float *before = scale_controls(r, u);
  forecast(r, before, u, quiet->x);
  if (r->samples) forecast_samples(r, before, u, sampled);
  return expect(r, quiet->x_std, error);
}

/* ---- Exact models (in the order of the online filter) ---- */

static void expect_exact(const dv_reference *r, dv_answer *out) {
  const dvbf_model *m = r->m;
  dv_system_emit(&r->system, r->kalman.mean, r->kalman_u, out->x);
  dv_kalman_x_variance(&r->system, r->kalman.cov, true, out->x_std);
  for (int i = 0; i < m->n_x; i++) {
    out->x[i] = out->x[i] / (double)m->x.scale[i] + (double)m->x.shift[i];
    out->x_std[i] = sqrt(out->x_std[i]) / (double)m->x.scale[i];
  }
}

static void step_exact(dv_reference *r, const float *x, const float *u, dv_answer *out) {
  const dvbf_model *m = r->m;
  const dvbf_real *range = dv_model_range(m);
  if (!through(r)) scale_u(m, u, r->kalman_u);
  if (r->t && r->sound) dv_kalman_move(&r->kalman, r->kalman_u);
  if (r->t && !r->seen) {
    dv_range_bend(range, r->kalman.mean, m->n_z);
    dv_range_narrow(range, r->kalman.cov, m->n_z);
  }
  if (through(r)) scale_u(m, u, r->kalman_u);
  expect_exact(r, out);
  r->seen = x;
  for (int i = 0; x && i < m->n_x; i++)
    r->kalman_x[i] = ((double)x[i] - (double)m->x.shift[i]) * (double)m->x.scale[i];
  r->sound = dv_kalman_observe(&r->kalman, x ? r->kalman_x : NULL, r->kalman_u);
}

/* ---- Steps ---- */

static void put_belief(const dvbf_belief *b, online *o, dv_answer *out) {
  for (size_t i = 0; i < b->n_z; i++) {
    out->z[i] = (double)b->mean[i];
    out->z_std[i] = (double)b->deviation[i];
  }
  memcpy(o->z, b->z, b->samples * b->n_z * sizeof *o->z);
}

/* An exact filter gives the same with and without samples. */
static void copy_answer(dv_answer *to, const dv_answer *from, const dvbf_model *m) {
  to->ready = from->ready;
  memcpy(to->z, from->z, (size_t)m->n_z * sizeof *to->z);
  memcpy(to->z_std, from->z_std, (size_t)m->n_z * sizeof *to->z);
  memcpy(to->x, from->x, (size_t)m->n_x * sizeof *to->x);
  memcpy(to->x_std, from->x_std, (size_t)m->n_x * sizeof *to->x);
}

/* Standard deviations and the state in double. */
static dvbf_status step_spread(dv_reference *r, const float *x, const float *u, dv_answer *out,
                               dvbf_error *error) {
  spread *s = &r->spread;
  int n_z = r->m->n_z, last = r->parts.frames - 1;
  dvbf_status status = DVBF_OK;
  keep_frame(r, r->t <= last ? r->t : 0, x, u);
  if (r->t == last) status = begin_spread(r, error);
  if (r->t > last) status = carry_to(r, 0, false, s->before, s->now, error);
  out->rounding = 0;
  for (int i = 0; i < n_z && r->t >= last; i++) {
    out->z_std[i] = sqrt(fmax(s->cov[i * (n_z + 1)], 0));
    out->rounding = fmax(out->rounding, fabs(out->z[i] - s->z[i]) / (1 + fabs(s->z[i])));
  }
  return status;
}

/* The sampled filter has no reference in double. A second one, whose x differ by about the last bit, shows
 * how far rounding carries. */
static void step_sampled(dv_reference *r, const float *x, const float *u, dv_answer *out) {
  const dvbf_model *m = r->m;
  const double bit = 0x1p-23;
  dvbf_belief belief;
  float *nudged = r->nudged.z + r->samples * (size_t)m->n_z;
  for (int i = 0; x && i < m->n_x; i++)
    nudged[i] = (float)((double)x[i] + bit * (fabs((double)x[i]) + 1 / (double)m->x.scale[i]));
  dvbf_filter_step(r->sampled.filter, x, u, &belief);
  put_belief(&belief, &r->sampled, out);
  dvbf_filter_step(r->nudged.filter, x ? nudged : NULL, u, &belief);
  out->rounding = 0;
  for (int i = 0; i < m->n_z && belief.ready; i++)
    out->rounding = fmax(out->rounding, fabs(out->z[i] - (double)belief.mean[i]) / (1 + fabs(out->z[i])));
}

static void end_step(dv_reference *r, const float *u) {
  if (r->m->n_u) memcpy(r->before, u, (size_t)r->m->n_u * sizeof *u);
  r->t++;
}

dvbf_status dv_reference_step(dv_reference *r, const float *x, const float *u, dv_answer *quiet,
                              dv_answer *sampled, dvbf_error *error) {
  const dvbf_model *m = r->m;
  spread *s = &r->spread;
  size_t z_size = (size_t)m->n_z * sizeof *s->z, cov_size = (size_t)m->n_z * z_size;
  bool any = false, ahead = m->type->move && r->t >= r->parts.frames;
  dvbf_belief belief;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < m->n_x; i++) any |= !isnan(x[i]);
  const float *seen = any ? x : NULL;
  if (has_exact_system(r)) {
    step_exact(r, seen, u, quiet);
    dvbf_filter_step(r->quiet.filter, seen, u, &belief);
    put_belief(&belief, &r->quiet, quiet);
    quiet->ready = 2;
    copy_answer(sampled, quiet, m);
    end_step(r, u);
    return DVBF_OK;
  }
  scale_controls(r, u);
  if (ahead) {
    memcpy(s->kept_z, s->z, z_size);
    memcpy(s->kept_cov, s->cov, cov_size);
    status = look_ahead(r, u, quiet, sampled, error);
    memcpy(s->z, s->kept_z, z_size);
    memcpy(s->cov, s->kept_cov, cov_size);
  }
  dvbf_filter_step(r->quiet.filter, seen, u, &belief);
  put_belief(&belief, &r->quiet, quiet);
  if (!status) status = step_spread(r, x, u, quiet, error);
  quiet->ready = !belief.ready ? 0 : ahead ? 2 : 1;
  if (!status && r->samples) {
    step_sampled(r, seen, u, sampled);
    sampled->ready = quiet->ready;
  }
  end_step(r, u);
  return status;
}

dvbf_status dv_reference_predict(dv_reference *r, const float *u, int n, dv_answer *quiet, dv_answer *sampled,
                                 dvbf_error *error) {
  dv_answer q = *quiet, s = *sampled;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < n && !status; i++) {
    if (has_exact_system(r)) {
      step_exact(r, NULL, u, &q);
      copy_answer(&s, &q, r->m);
    } else {
      status = look_ahead(r, u, &q, &s, error);
    }
    end_step(r, u);
    u += r->m->n_u;
    q.x += r->m->n_x, q.x_std += r->m->n_x;
    s.x += r->m->n_x, s.x_std += r->m->n_x;
  }
  return status;
}
