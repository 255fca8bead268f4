/* The online filter: the initial network once it has its frames, then one step of the recurrence per
 * observation, for a few samples of z side by side. Both are programs packed into the caller's memory. */
#include "base/status.h"
#include "base/tiny.h"
#include "model/plane.h"

#include <math.h>
#include <string.h>

/* A packed program, and a run with its arena behind it. */
typedef struct machine {
  dvbf_program program;
  dvbf_run run;
} machine;

struct dvbf_filter {
  const dvbf_model *model;
  machine start, step;
  int frames; /* that the initial network sees */
  int seen;   /* frames so far, up to `frames` */
  dv_conditions conditions;
  uint32_t *number; /* [samples] keys of the noise */
  float *x, *u;     /* [frames][n_x], [frames][n_u] first observations, and the controls that followed them */
  bool *missing;    /* [frames] */
  float *z, *mean, *deviation; /* [samples][n_z], [n_z], [n_z] */
  size_t samples;
  void *online; /* that of a model with exact inference, which needs no programs; else NULL */
};

/* ---- Making: the same walk over the parts counts bytes (at = NULL) and places them ---- */

typedef struct block {
  unsigned char *at;
  size_t used;
} block;

static void *take(block *b, size_t size) {
  void *here = b->at ? b->at + b->used : NULL;
  b->used += (size + 63) / 64 * 64;
  return here;
}

static void place_machine(block *b, machine *m, const dvbf_program *recorded) {
  void *graph = take(b, dv_graph_packed_size(recorded->graph));
  void *arena = take(b, dv_graph_arena_size(recorded->graph) * sizeof(dvbf_real));
  if (!b->at) return;
  m->program = *recorded;
  m->program.graph = NULL; /* the heap's copy is freed; runs use the packed one */
  m->run = dv_run_in(dv_graph_pack(recorded->graph, graph), arena);
  memset(arena, 0, dv_graph_arena_size(recorded->graph) * sizeof(dvbf_real));
}

static void fill(machine *m, dvbf_value value, const dvbf_real *from) {
  memcpy(dv_at(&m->run, value), from, (size_t)value.cols * sizeof *from);
}

static dvbf_filter *place(block *b, const dvbf_model *m, size_t samples, int frames,
                          const dvbf_program *start, const dvbf_program *step, const dv_plane *plane) {
  dvbf_filter *f = take(b, sizeof *f);
  size_t n_z = (size_t)m->n_z, n = (size_t)frames;
  dvbf_filter parts = {.model = m, .frames = frames, .samples = samples};
  parts.number = take(b, samples * sizeof *parts.number);
  parts.x = take(b, n * (size_t)m->n_x * sizeof *parts.x);
  parts.u = take(b, n * (size_t)m->n_u * sizeof *parts.u);
  parts.missing = take(b, n * sizeof *parts.missing);
  parts.z = take(b, samples * n_z * sizeof *parts.z);
  parts.mean = take(b, n_z * sizeof *parts.mean);
  parts.deviation = take(b, n_z * sizeof *parts.deviation);
  if (m->type->online_step) {
    parts.online = take(b, m->type->online_size(m->type, m));
  } else {
    place_machine(b, &parts.start, start);
    place_machine(b, &parts.step, step);
  }
  if (!f) return NULL;
  if (plane->rank) fill(&parts.step, step->plane_in, plane->in);
  if (plane->rank) fill(&parts.step, step->plane_out, plane->out);
  *f = parts;
  return f;
}

/* Records both programs and walks; `b` tells whether to count or to place. */
static dvbf_status lay_out(dvbf_filter **out, block *b, const dvbf_model *model, size_t samples,
                           const dv_plane *plane, dvbf_error *error) {
  dvbf_program start = {0}, step = {0};
  if (samples < 1 || samples > 65536)
    return dv_fail(error, DVBF_ARGUMENT, "samples = %zu: must be in [1, 65536]; 16 works well", samples);
  dvbf_status status = dv_model_needs_filter(model, "", error);
  if (status) return status;
  int asked = dv_model_start_frames(model), frames = asked ? asked : (int)model->settings->predict_from;
  bool online = model->type->online_step;
  if (!online) status = dv_program_record_start(&start, model, (int)samples, frames, 0, error);
  if (!status && !online)
    status = dv_program_record_step(&step, model, (int)samples, plane->rank, DV_ONE_X, error);
  if (!status) *out = place(b, model, samples, frames, &start, &step, plane);
  dv_program_clear(&start);
  dv_program_clear(&step);
  return status;
}

static dvbf_status count_bytes(size_t *out, const dvbf_model *model, size_t samples, const dv_plane *plane,
                               dvbf_error *error) {
  block b = {0};
  dvbf_filter *none = NULL;
  dvbf_status status = lay_out(&none, &b, model, samples, plane, error);
  if (!status) *out = b.used;
  return status;
}

dvbf_status dvbf_filter_memsize(size_t *out, const dvbf_model *model, size_t samples, dvbf_error *error) {
  dv_plane plane;
  dvbf_status status = dv_plane_find(&plane, model, error);
  if (!status) status = count_bytes(out, model, samples, &plane, error);
  dv_plane_free(&plane);
  return status;
}

static dvbf_status init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model, size_t samples,
                        uint64_t seed, const dv_plane *plane, dvbf_error *error) {
  size_t needed;
  dvbf_status status = count_bytes(&needed, model, samples, plane, error);
  if (status) return status;
  if (!memory || (uintptr_t)memory % 64 || size < needed)
    return dv_fail(error, DVBF_ARGUMENT,
                   "a filter of %zu samples needs %zu bytes at a multiple of 64, not %zu at %p", samples,
                   needed, size, memory);
  block b = {.at = memory};
  dvbf_filter *f = NULL;
  status = lay_out(&f, &b, model, samples, plane, error);
  if (status || !f) return status;
  f->conditions = dv_model_conditions(model, seed);
  f->conditions.n_scalars = 0; /* no op here asks for one that is set: nothing to look up in each step */
  for (size_t i = 0; i < samples; i++) f->number[i] = (uint32_t)i;
  machine *machines[] = {&f->start, &f->step};
  for (int i = 0; i < 2 && !f->online; i++) {
    machines[i]->run.parameters = model->parameters.values;
    machines[i]->run.conditions = &f->conditions;
    machines[i]->run.sequence = f->number;
  }
  dvbf_filter_reset(f);
  *out = f;
  return DVBF_OK;
}

dvbf_status dvbf_filter_init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model,
                             size_t samples, uint64_t seed, dvbf_error *error) {
  dv_plane plane;
  dvbf_status status = dv_plane_find(&plane, model, error);
  if (!status) status = init(out, memory, size, model, samples, seed, &plane, error);
  dv_plane_free(&plane);
  return status;
}

void dvbf_filter_reset(dvbf_filter *f) {
  const dvbf_model *m = f->model;
  if (f->online) m->type->online_begin(m->type, m, f->online, f->conditions.seed);
  f->seen = 0;
  f->conditions.update = 0;
}

/* ---- Stepping ---- */

/* All rows [n] like the first. */
static void repeat(dvbf_real *first, int rows, int n) {
  for (int r = 1; r < rows; r++) memcpy(first + (size_t)r * (size_t)n, first, (size_t)n * sizeof *first);
}

/* The observation of step t; NULL: missing. */
static void set_x(dvbf_filter *f, machine *m, int t, const float *x) {
  dvbf_value values = dvbf_steps(m->program.x, t, 1);
  int n = values.cols;
  dvbf_real *to = dv_at(&m->run, values), *mask = dv_at(&m->run, dvbf_steps(m->program.mask, t, 1));
  dvbf_real *seen = n > 1 ? dv_at(&m->run, dvbf_steps(m->program.seen, t, 1)) : NULL;
  mask[0] = x && m->run.k->observe(to, seen, x, f->model->x.shift, f->model->x.scale, n);
  if (!x) memset(to, 0, (size_t)n * sizeof *to);
  if (!x && seen) memset(seen, 0, (size_t)n * sizeof *seen);
  repeat(to, values.rows, n);
  repeat(mask, m->program.rows, 1);
  if (seen) repeat(seen, m->program.rows, n);
}

/* The control of step t; NULL: zeros. */
static void set_u(dvbf_filter *f, machine *m, int t, const float *u) {
  if (!f->model->n_u) return;
  dvbf_value values = dvbf_steps(m->program.u, t, 1);
  dvbf_real *to = dv_at(&m->run, values);
  if (u)
    m->run.k->standardise(to, u, f->model->u.shift, f->model->u.scale, values.cols);
  else
    memset(to, 0, (size_t)values.cols * sizeof *to);
  repeat(to, values.rows, values.cols);
}

static void run(machine *m) {
  dv_run_forward(&m->run);
  m->run.same_weights = true;
}

static void copy_z(dvbf_filter *f, const dvbf_real *z) {
  int count = f->step.program.rows * f->model->n_z;
  for (int i = 0; i < count; i++) f->z[i] = (float)z[i];
}

/* z <- f(z, u, w), w from q where x is seen and from the prior where not. `now` is the control that x depends
 * on with feedthrough. */
static void advance(dvbf_filter *f, const float *x, const float *u, const float *now) {
  machine *m = &f->step;
  int count = m->program.rows * f->model->n_z;
  dvbf_real *z = dv_at(&m->run, m->program.z);
  for (int i = 0; i < count; i++) z[i] = (dvbf_real)f->z[i];
  set_u(f, m, 0, u);
  if (now) set_u(f, m, 1, now);
  set_x(f, m, 1, x);
  f->conditions.update++;
  run(m);
  copy_z(f, dv_at(&m->run, dvbf_steps(m->program.z, 1, 1)));
}

static const float *first_frame(const dvbf_filter *f, int t) {
  return f->missing[t] ? NULL : f->x + (size_t)t * (size_t)f->model->n_x;
}

/* z_1 from the first frames, then up to the last of them. */
static void begin(dvbf_filter *f) {
  size_t n_u = (size_t)f->model->n_u;
  for (int t = 0; t < f->frames; t++) {
    set_x(f, &f->start, t, first_frame(f, t));
    set_u(f, &f->start, t, f->u + (size_t)t * n_u);
  }
  run(&f->start);
  copy_z(f, dv_at(&f->start.run, dvbf_steps(f->start.program.z, 0, 1)));
  for (int t = 1; t < f->frames; t++) {
    if (t < dv_model_recognises_from(f->model)) dv_conditions_set(&f->conditions, DVBF_FILTER_WAIT, 1);
    advance(f, first_frame(f, t), f->u + (size_t)(t - 1) * n_u, f->u + (size_t)t * n_u);
    f->conditions.n_scalars = 0;
  }
}

/* With feedthrough u belongs to the frame that it comes with, else to the frame before. */
static bool feeds_through(const dvbf_filter *f) {
  return f->model->settings->feedthrough;
}

/* Keeps a frame for the initial network. */
static void collect(dvbf_filter *f, const float *x, const float *u) {
  size_t n_x = (size_t)f->model->n_x, n_u = (size_t)f->model->n_u, t = (size_t)f->seen++;
  f->missing[t] = !x;
  if (x) memcpy(f->x + t * n_x, x, n_x * sizeof *x);
  if (n_u) memset(f->u + t * n_u, 0, n_u * sizeof *u);
  size_t lag = feeds_through(f) ? 0 : 1;
  if (n_u && u && t >= lag) memcpy(f->u + (t - lag) * n_u, u, n_u * sizeof *u);
}

/* A later frame. With feedthrough the last place in f->u keeps its control for the next. */
static void follow(dvbf_filter *f, const float *x, const float *u) {
  size_t n_u = (size_t)f->model->n_u;
  float *before = f->u + (size_t)(f->frames - 1) * n_u;
  if (!feeds_through(f) || !u) {
    advance(f, x, u, NULL);
    return;
  }
  advance(f, x, before, u);
  memcpy(before, u, n_u * sizeof *u);
}

static void summarise(dvbf_filter *f) {
  int n_z = f->model->n_z, samples = f->step.program.rows;
  for (int i = 0; i < n_z; i++) {
    double sum = 0, squares = 0;
    for (int r = 0; r < samples; r++) sum += (double)f->z[r * n_z + i];
    double mean = sum / samples;
    for (int r = 0; r < samples; r++) {
      double e = (double)f->z[r * n_z + i] - mean;
      squares += e * e;
    }
    f->mean[i] = (float)mean;
    f->deviation[i] = (float)sqrt(squares / samples);
  }
}

void dvbf_filter_step(dvbf_filter *f, const float *x, const float *u, dvbf_belief *belief) {
  const dvbf_model *m = f->model;
  unsigned before = dv_flush_tiny_numbers();
  if (f->online) {
    m->type->online_step(m->type, m, f->online, x, u, f->samples, f->mean, f->deviation, f->z);
    f->seen = f->frames;
  } else if (f->seen < f->frames) {
    collect(f, x, u);
    if (f->seen == f->frames) begin(f);
  } else {
    follow(f, x, u);
  }
  bool ready = f->seen == f->frames;
  if (ready && !f->online) summarise(f);
  dv_restore_tiny_numbers(before);
  *belief = (dvbf_belief){.ready = ready,
                          .samples = f->samples,
                          .n_z = (size_t)m->n_z,
                          .mean = f->mean,
                          .deviation = f->deviation,
                          .z = f->z};
}
