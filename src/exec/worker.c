#include "exec/worker.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

#include <string.h>

dvbf_status dv_worker_init(dv_worker *w, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error) {
  *w = (dv_worker){.model = model, .program = program};
  dvbf_status status = dv_run_init(&w->run, program->graph, error);
  w->run.parameters = model->parameters.values;
  return status || !s ? status : dv_sequence_buffer(&w->frames, s, s->steps, error);
}

void dv_worker_clear(dv_worker *w) {
  dv_run_clear(&w->run);
  dv_free(w->frames);
  *w = (dv_worker){0};
}

dvbf_status dv_workers_new(dv_worker **out, int count, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error) {
  dv_worker *workers = dv_calloc((size_t)count, sizeof *workers);
  dvbf_status status = workers ? DVBF_OK : dv_fail_memory(error, "preparing threads");
  for (int i = 0; i < count && !status; i++) status = dv_worker_init(&workers[i], model, program, s, error);
  if (status)
    dv_workers_free(workers, count);
  else
    *out = workers;
  return status;
}

void dv_workers_free(dv_worker *workers, int count) {
  for (int i = 0; workers && i < count; i++) dv_worker_clear(&workers[i]);
  dv_free(workers);
}

/* ---- Filling the inputs ---- */

/* A row of the inputs: where one sequence goes. */
typedef struct row {
  dvbf_real *x, *u, *mask, *seen; /* of step 0; seen is NULL where nobody asks */
} row;

static void load_x(const dv_worker *w, int number, row to, const float *frames, bool gaps, int seen) {
  const dvbf_program *p = w->program;
  const dvbf_model *m = w->model;
  const dv_kernels *k = w->run.k;
  int n = m->n_x;
  size_t stride = (size_t)p->rows * (size_t)n, all = (size_t)n * sizeof *to.x;
  for (int t = 0; t < p->steps; t++, to.x += stride, frames += n) {
    bool there = t < seen;
    const float *from = there && w->shift ? dv_shifted(w->shift, number, frames) : frames;
    dvbf_real *each = to.seen ? to.seen + (size_t)t * stride : NULL;
    if (!there) {
      memset(to.x, 0, all);
      if (each) memset(each, 0, all);
    } else {
      if (gaps)
        there = k->observe(to.x, each, from, m->x.shift, m->x.scale, n);
      else
        k->standardise(to.x, from, m->x.shift, m->x.scale, n);
      if (!gaps && each)
        for (int i = 0; i < n; i++) each[i] = 1;
    }
    to.mask[(size_t)t * p->rows] = there;
  }
}

/* Controls from `known` on are 0. */
static void load_u(const dv_worker *w, dvbf_real *to, const float *from, int known) {
  const dvbf_model *m = w->model;
  size_t n = (size_t)m->n_u, stride = (size_t)w->program->rows * n;
  for (int t = 0; t < w->program->steps; t++, to += stride, from += n) {
    if (t < known)
      w->run.k->standardise(to, from, m->u.shift, m->u.scale, m->n_u);
    else
      memset(to, 0, n * sizeof *to);
  }
}

void dv_worker_load(dv_worker *w, const dvbf_sequences *from, const uint32_t *index, int count, int observe) {
  const dvbf_program *p = w->program;
  const dvbf_model *m = w->model;
  const dvbf_run *run = &w->run;
  row first = {dvbf_at(run, p->x), dvbf_at(run, p->u), dvbf_at(run, p->mask), NULL};
  if (p->seen.buffer >= 0 && m->n_x > 1) first.seen = dvbf_at(run, p->seen);
  dvbf_real *weight = dvbf_at(run, p->weight);
  size_t n_x = (size_t)m->n_x, n_u = (size_t)m->n_u;
  for (int r = 0; r < p->rows; r++) {
    uint32_t s = index[r < count ? r : 0];
    size_t whole = dvbf_sequence_length(from, s);
    int length = whole < (size_t)p->steps ? (int)whole : p->steps, seen = observe < length ? observe : length;
    row to = {first.x + (size_t)r * n_x, NULL, first.mask + r,
              first.seen ? first.seen + (size_t)r * n_x : NULL};
    weight[r] = r < count;
    load_x(w, r, to, dv_sequence_x(from, s, 0, (size_t)seen, w->frames), from->gaps, seen);
    if (n_u) load_u(w, first.u + (size_t)r * n_u, from->u + dvbf_sequence_start(from, s) * n_u, length);
  }
}
