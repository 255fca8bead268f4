/* One model of an online filter in the caller's memory: the initial network once its frames are there, then
 * one step of the packed program per observation, for a few samples of z side by side (dv_online_step);
 * models with exact inference use their own hooks. Between dv_online_forecast_begin and _end the belief moves
 * on without observations. Derived weights are computed once. */
#include "infer/online.h"

#include "infer/particles.h"
#include "math/random.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

enum { MOST_EMITTED = 32 }; /* samples whose x is made at once */

/* ---- Memory ---- */

void *dv_workspace_take(dv_workspace *room, size_t count, size_t size) {
  void *here = room->at ? room->at + room->used : NULL;
  room->used += (count * size + 63) / 64 * 64;
  return here;
}

void dv_program_memory_lay_out(dv_workspace *room, dv_program_memory *m, const dvbf_program *recorded,
                               const dvbf_model *model, const dv_conditions *conditions,
                               const uint32_t *key) {
  size_t reals = recorded->graph->arena;
  bool back = dv_graph_training(recorded->graph);
  void *graph = dv_workspace_take(room, 1, dv_graph_packed_size(recorded->graph));
  void *arena = dv_workspace_take(room, reals, sizeof(dvbf_real));
  void *begun = back ? dv_workspace_take(room, (size_t)recorded->graph->n_buffers, sizeof(bool)) : NULL;
  if (!room->at) return;
  m->program = *recorded;
  m->program.graph = NULL; /* the heap's copy is freed; runs use the packed one */
  m->run = dv_run_in(dv_graph_pack(recorded->graph, graph), arena);
  m->run.begun = begun;
  m->run.parameters = model->parameters.values;
  m->run.conditions = conditions;
  m->run.sequence = key;
  memset(arena, 0, reals * sizeof(dvbf_real));
}

static void fill(dv_program_memory *m, dvbf_value value, const dvbf_real *from) {
  memcpy(dv_at(&m->run, value), from, (size_t)value.cols * sizeof *from);
}

/* The programs of a model without exact inference: start, step, emission. */
enum { START_PROGRAM, STEP, EMISSION, ONLINE_PROGRAMS };

static dv_online *place(dv_workspace *room, const dv_online *like,
                        const dvbf_program programs[ONLINE_PROGRAMS], const dv_low_rank *plane) {
  const dvbf_model_class *type = like->model->type;
  size_t n_x = (size_t)like->model->n_x, n_u = (size_t)like->model->n_u, n_z = (size_t)like->model->n_z;
  size_t frames = (size_t)like->frames;
  dv_online parts = *like, *o = dv_workspace_take(room, 1, sizeof *o);
  dv_program_memory *machines[ONLINE_PROGRAMS] = {&parts.start, &parts.step, &parts.emission};
  parts.number = dv_workspace_take(room, parts.samples, sizeof *parts.number);
  parts.x = dv_workspace_take(room, frames * n_x, sizeof *parts.x);
  parts.missing = dv_workspace_take(room, frames, sizeof *parts.missing);
  parts.frame = dv_workspace_take(room, n_x, sizeof *parts.frame);
  if (type->reads_frame) parts.before = dv_workspace_take(room, n_x, sizeof *parts.before);
  size_t begin = room->used;
  parts.z = dv_workspace_take(room, parts.samples * n_z, sizeof *parts.z);
  parts.mean = dv_workspace_take(room, n_z, sizeof *parts.mean);
  parts.deviation = dv_workspace_take(room, n_z, sizeof *parts.deviation);
  parts.u = dv_workspace_take(room, frames * n_u, sizeof *parts.u);
  if (type->online_step) parts.exact = dv_workspace_take(room, 1, type->online_size(type, like->model));
  parts.belief = room->used - begin;
  parts.kept = dv_workspace_take(room, 1, parts.belief);
  for (int i = 0; i < ONLINE_PROGRAMS && programs[i].graph; i++)
    dv_program_memory_lay_out(room, machines[i], &programs[i], like->model, o ? &o->conditions : NULL,
                              parts.number);
  if (!o) return NULL;
  if (plane->rank) fill(&parts.step, programs[STEP].plane_in, plane->in);
  if (plane->rank) fill(&parts.step, programs[STEP].plane_out, plane->out);
  for (size_t i = 0; i < parts.samples; i++) parts.number[i] = (uint32_t)i;
  *o = parts;
  dv_online_reset(o);
  return o;
}

dvbf_status dv_online_lay_out(dv_online **out, dv_workspace *room, const dvbf_model *model, size_t samples,
                              uint64_t seed, const dv_low_rank *plane, dvbf_error *error) {
  dvbf_program programs[ONLINE_PROGRAMS] = {{0}};
  dvbf_status status = dv_model_needs_filter(model, "", error);
  if (status) return status;
  int rows = (int)samples, emitted = rows < MOST_EMITTED ? rows : MOST_EMITTED;
  int asked = dv_model_start_frames(model),
      frames = asked ? asked : dv_settings_predict_from(model->settings);
  dv_online like = {.model = model,
                    .frames = frames,
                    .samples = samples,
                    .through = dv_model_feeds_through(model),
                    .conditions = dv_model_conditions(model, seed)};
  like.conditions.n_scalars = 0; /* no result depends on one that is set: nothing to look up in each step */
  if (!model->type->online_step) {
    status = dv_program_record_start(&programs[START_PROGRAM], model, rows, frames, 0, error);
    if (!status) status = dv_program_record_step(&programs[STEP], model, rows, plane->rank, DV_ONE_X, error);
    if (!status) status = dv_program_record_emission(&programs[EMISSION], model, emitted, 0, error);
  }
  *out = status ? NULL : place(room, &like, programs, plane);
  for (int i = 0; i < ONLINE_PROGRAMS; i++) dv_program_clear(&programs[i]);
  return status;
}

void dv_online_reset(dv_online *o) {
  const dvbf_model *m = o->model;
  if (o->exact) m->type->online_begin(m->type, m, o->exact, o->conditions.seed);
  o->seen = 0;
  o->conditions.update = 0;
}

/* ---- Stepping ---- */

/* All rows [n] like the first. */
static void repeat(dvbf_real *first, int rows, int n) {
  for (int r = 1; r < rows; r++) memcpy(first + (size_t)r * (size_t)n, first, (size_t)n * sizeof *first);
}

/* The observation of step t; NULL: missing. */
static void set_x(dv_online *o, dv_program_memory *m, int t, const float *x) {
  dvbf_value values = dvbf_steps(m->program.x, t, 1);
  int n = values.cols;
  dvbf_real *to = dv_at(&m->run, values), *mask = dv_at(&m->run, dvbf_steps(m->program.mask, t, 1));
  dvbf_real *seen = n > 1 ? dv_at(&m->run, dvbf_steps(m->program.seen, t, 1)) : NULL;
  mask[0] = x && m->run.k->observe(to, seen, x, o->model->x.shift, o->model->x.scale, n);
  if (!x) memset(to, 0, (size_t)n * sizeof *to);
  if (!x && seen) memset(seen, 0, (size_t)n * sizeof *seen);
  repeat(to, values.rows, n);
  repeat(mask, m->program.rows, 1);
  if (seen) repeat(seen, m->program.rows, n);
}

/* The control of step t; NULL: zeros. */
static void set_u(dv_online *o, dv_program_memory *m, int t, const float *u) {
  if (!o->model->n_u) return;
  dvbf_value values = dvbf_steps(m->program.u, t, 1);
  dvbf_real *to = dv_at(&m->run, values);
  if (u)
    m->run.k->standardise(to, u, o->model->u.shift, o->model->u.scale, values.cols);
  else
    memset(to, 0, (size_t)values.cols * sizeof *to);
  repeat(to, values.rows, values.cols);
}

static void run_machine(dv_program_memory *m) {
  dv_run_forward(&m->run);
  m->run.same_weights = true;
}

static void copy_z(dv_online *o, const dvbf_real *z) {
  int count = o->step.program.rows * o->model->n_z;
  for (int i = 0; i < count; i++) o->z[i] = (float)z[i];
}

/* Keeps a frame for a model that also reads it in the next step. */
static void keep_before(dv_online *o, const float *x) {
  o->before_missing = !x;
  if (x && o->before) memcpy(o->before, x, (size_t)o->model->n_x * sizeof *x);
}

/* z <- f(z, u, w), w from q if x is observed and from the prior if not. `now` is the control that x depends
 * on with feedthrough. */
static void advance(dv_online *o, const float *x, const float *u, const float *now) {
  dv_program_memory *m = &o->step;
  int count = m->program.rows * o->model->n_z;
  dvbf_real *z = dv_at(&m->run, m->program.z);
  for (int i = 0; i < count; i++) z[i] = (dvbf_real)o->z[i];
  set_u(o, m, 0, u);
  if (now) set_u(o, m, 1, now);
  if (o->before) set_x(o, m, 0, o->before_missing ? NULL : o->before);
  set_x(o, m, 1, x);
  o->conditions.update++;
  run_machine(m);
  keep_before(o, x);
  copy_z(o, dv_at(&m->run, dvbf_steps(m->program.z, 1, 1)));
}

static const float *first_frame(const dv_online *o, int t) {
  return o->missing[t] ? NULL : o->x + (size_t)t * (size_t)o->model->n_x;
}

/* z_1 from the first frames, then up to the last of them. */
static void begin_filtering(dv_online *o) {
  size_t n_u = (size_t)o->model->n_u;
  for (int t = 0; t < o->frames; t++) {
    set_x(o, &o->start, t, first_frame(o, t));
    set_u(o, &o->start, t, o->u + (size_t)t * n_u);
  }
  run_machine(&o->start);
  copy_z(o, dv_at(&o->start.run, dvbf_steps(o->start.program.z, 0, 1)));
  keep_before(o, first_frame(o, 0));
  for (int t = 1; t < o->frames; t++) {
    if (t < dv_model_recognises_from(o->model)) dv_conditions_set(&o->conditions, DVBF_FILTER_WAIT, 1);
    advance(o, first_frame(o, t), o->u + (size_t)(t - 1) * n_u, o->u + (size_t)t * n_u);
    o->conditions.n_scalars = 0;
  }
}

/* Keeps a frame for the initial network. */
static void collect_frame(dv_online *o, const float *x, const float *u) {
  size_t n_x = (size_t)o->model->n_x, n_u = (size_t)o->model->n_u, t = (size_t)o->seen++;
  o->missing[t] = !x;
  if (x) memcpy(o->x + t * n_x, x, n_x * sizeof *x);
  if (n_u) memset(o->u + t * n_u, 0, n_u * sizeof *u);
  size_t lag = o->through ? 0 : 1;
  if (n_u && u && t >= lag) memcpy(o->u + (t - lag) * n_u, u, n_u * sizeof *u);
}

/* A later frame. With feedthrough, the last place in o->u keeps the control of the frame before. */
static void follow(dv_online *o, const float *x, const float *u) {
  size_t n_u = (size_t)o->model->n_u;
  float *before = o->u + (size_t)(o->frames - 1) * n_u;
  bool now = o->through && u;
  advance(o, x, now ? before : u, now ? u : NULL);
  if (now) memcpy(before, u, n_u * sizeof *u);
}

static void summarise(dv_online *o) {
  int n_z = o->model->n_z, samples = o->step.program.rows;
  for (int i = 0; i < n_z; i++) {
    double sum = 0, squares = 0;
    for (int r = 0; r < samples; r++) sum += (double)o->z[r * n_z + i];
    double mean = sum / samples;
    for (int r = 0; r < samples; r++) {
      double e = (double)o->z[r * n_z + i] - mean;
      squares += e * e;
    }
    o->mean[i] = (float)mean;
    o->deviation[i] = (float)sqrt(squares / samples);
  }
}

void dv_online_step(dv_online *o, const float *x, const float *u) {
  const dvbf_model *m = o->model;
  if (o->exact) {
    m->type->online_step(m->type, m, o->exact, x, u, o->samples, o->mean, o->deviation, o->z);
    o->seen = o->frames;
    o->conditions.update++;
  } else if (o->seen < o->frames) {
    collect_frame(o, x, u);
    if (o->seen == o->frames) begin_filtering(o);
  } else {
    follow(o, x, u);
  }
  if (!o->exact && o->seen == o->frames) summarise(o);
}

/* ---- Predictions ---- */

void dv_online_forecast_begin(dv_online *o) {
  o->kept_conditions = o->conditions;
  o->kept_missing = o->before_missing;
  /* Separate noise for every step that predictions start from. */
  o->conditions.seed = dv_sequence_seed(o->conditions.seed, o->conditions.update);
  o->conditions.update = 0;
  memcpy(o->kept, o->z, o->belief);
}

void dv_online_forecast_end(dv_online *o) {
  o->conditions = o->kept_conditions;
  o->before_missing = o->kept_missing; /* what is before stays as it is while nothing is seen */
  memcpy(o->z, o->kept, o->belief);
}

/* Adds x of the frame in `row` of the emission, which belongs to a sample: `n` samples are there then. */
static void add_sample(dv_online *o, uint32_t t, int row, size_t sample, const dv_expected_x *out) {
  const dvbf_model *m = o->model;
  size_t n_x = (size_t)m->n_x;
  const dvbf_real *output = dv_at(&o->emission.run, o->emission.program.output);
  float *noisy = out->samples ? out->samples + sample * n_x : NULL;
  dv_density_frame frame = {.model = m,
                            .program = &o->emission.program,
                            .run = &o->emission.run,
                            .row = row,
                            .mean = o->frame,
                            .seed = o->conditions.seed,
                            .sample = (uint32_t)sample,
                            .t = t};
  dv_model_unscale(m, output + (size_t)row * n_x, o->frame);
  if (out->noise) m->density->add_variance(&frame, out->variance);
  if (noisy && out->noise) m->density->draw(&frame, noisy);
  if (noisy && !out->noise) memcpy(noisy, o->frame, n_x * sizeof *noisy);
  /* Mean and sum of squares around it, one sample after the other (Welford). */
  for (size_t i = 0; i < n_x; i++) {
    double apart = (double)o->frame[i] - out->mean[i];
    out->mean[i] += apart / (double)(sample + 1);
    out->variance[i] += apart * ((double)o->frame[i] - out->mean[i]);
  }
}

static void expect_x(dv_online *o, uint32_t t, const float *now, const dv_expected_x *out) {
  dv_program_memory *m = &o->emission;
  size_t n_z = (size_t)o->model->n_z, n_x = (size_t)o->model->n_x, rows = (size_t)m->program.rows;
  memset(out->mean, 0, n_x * sizeof *out->mean);
  memset(out->variance, 0, n_x * sizeof *out->variance);
  set_u(o, m, 0, now);
  for (size_t first = 0; first < o->samples; first += rows) {
    size_t count = o->samples - first < rows ? o->samples - first : rows;
    dvbf_real *z = dv_at(&m->run, m->program.z);
    for (size_t i = 0; i < count * n_z; i++) z[i] = (dvbf_real)o->z[first * n_z + i];
    run_machine(m);
    for (size_t r = 0; r < count; r++) add_sample(o, t, (int)r, first + r, out);
  }
  for (size_t i = 0; i < n_x; i++) out->variance[i] /= (double)o->samples;
}

/* Samples are independent from column to column: only what one column does is asked for. */
static void draw_exact(dv_online *o, uint32_t t, const dv_expected_x *out) {
  size_t n_x = (size_t)o->model->n_x;
  for (size_t s = 0; s < o->samples; s++) {
    dv_random random = dv_random_at(o->conditions.seed, DV_STREAM_EMISSION, (uint32_t)s, t);
    for (size_t i = 0; i < n_x; i++)
      out->samples[s * n_x + i] = (float)(out->mean[i] + sqrt(out->variance[i]) * dv_random_normal(&random));
  }
}

void dv_online_forecast(dv_online *o, uint32_t t, const float *u, const dv_expected_x *out) {
  const dvbf_model *m = o->model;
  if (o->exact) {
    m->type->online_ahead(m->type, m, o->exact, u, out->noise, o->mean, o->deviation, out->mean,
                          out->variance);
    if (out->samples) draw_exact(o, t, out);
    return;
  }
  follow(o, NULL, u);
  summarise(o);
  expect_x(o, t, o->through ? u : NULL, out);
}
