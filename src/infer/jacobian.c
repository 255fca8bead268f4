/* Jacobians of a model at a point (dvbf_jacobian_new, dvbf_jacobian_at): dz'/dz, dz'/du and dx/dz by the
 * model's own programs. All rows have the same z and u, and row i seeds entry i of the result, so that one
 * backward run gives a whole Jacobian. */
#include "base/error.h"
#include "base/memory.h"
#include "math/portable.h"
#include "model/batches.h"
#include "model/density.h"

#include <string.h>

enum { MOST_SEEDS = 64 }; /* seeds of one run */

/* A program of which `result` is differentiated. */
typedef struct part {
  dvbf_program program;
  dv_worker worker;
  dvbf_value result;
  dvbf_real *seed; /* as many reals as the result */
} part;

struct dvbf_jacobian {
  const dvbf_model *model;
  part move, emission;
  dv_conditions conditions;
  uint32_t key[MOST_SEEDS];
  float *next, *a, *b, *x, *h, *d; /* as in dvbf_jacobians, in the memory that begins with `next` */
};

/* ---- Memory ---- */

static dvbf_status init_part(part *p, dvbf_jacobian *l, dvbf_value result, dvbf_error *error) {
  p->result = result;
  p->seed = dv_calloc((size_t)result.rows * (size_t)result.cols, sizeof *p->seed);
  if (!p->seed) return dv_fail_memory(error, "preparing derivatives");
  dvbf_status status = dv_worker_init(&p->worker, l->model, &p->program, NULL, error);
  p->worker.run.conditions = &l->conditions;
  p->worker.run.sequence = l->key;
  return status;
}

static int rows_for(int n) {
  return n < MOST_SEEDS ? n : MOST_SEEDS;
}

static dvbf_status init_jacobian(dvbf_jacobian *l, dvbf_error *error) {
  const dvbf_model *m = l->model;
  size_t n_z = (size_t)m->n_z, n_u = (size_t)m->n_u, n_x = (size_t)m->n_x;
  l->conditions = dv_model_conditions(m, 0);
  l->conditions.scale = 0; /* the objective has no part in it */
  l->next = dv_calloc(n_z + n_x, (1 + n_z + n_u) * sizeof *l->next);
  if (!l->next) return dv_fail_memory(error, "preparing derivatives");
  l->a = l->next + n_z;
  l->b = l->a + n_z * n_z;
  l->x = l->b + n_z * n_u;
  l->h = l->x + n_x;
  l->d = l->h + n_x * n_z;
  dvbf_program *move = &l->move.program, *emission = &l->emission.program;
  dvbf_status status = dv_program_record_move(move, m, rows_for(m->n_z), DV_DERIVATIVES, error);
  if (!status) status = init_part(&l->move, l, dvbf_steps(move->z, 1, 1), error);
  if (!status) status = dv_program_record_emission(emission, m, rows_for(m->n_x), DV_DERIVATIVES, error);
  if (!status) status = init_part(&l->emission, l, emission->output, error);
  return status;
}

dvbf_status dvbf_jacobian_new(dvbf_jacobian **out, const dvbf_model *model, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  if (!model->type->move)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model %s has no transition from one z to the next, and so no derivatives of it",
                   model->type->name);
  dvbf_jacobian *l = dv_calloc(1, sizeof *l);
  if (!l) return dv_fail_memory(error, "preparing derivatives");
  l->model = model;
  dvbf_status status = init_jacobian(l, error);
  if (status)
    dvbf_jacobian_free(l);
  else
    *out = l;
  return status;
}

void dvbf_jacobian_free(dvbf_jacobian *l) {
  if (!l) return;
  part *parts[] = {&l->move, &l->emission};
  for (int i = 0; i < 2; i++) {
    dv_worker_clear(&parts[i]->worker);
    dv_program_clear(&parts[i]->program);
    dv_free(parts[i]->seed);
  }
  DV_FREE(l->next, l);
}

/* ---- At a point ---- */

static void fill_rows(part *p, dvbf_value value, const float *from) {
  dvbf_real *to = dv_at(&p->worker.run, value);
  for (int r = 0; r < value.rows; r++)
    for (int i = 0; i < value.cols; i++) *to++ = (dvbf_real)from[i];
}

static void fill_controls(part *p, const dvbf_model *m, const float *u) {
  if (!m->n_u) return;
  dvbf_value controls = dvbf_steps(p->program.u, 0, 1);
  dvbf_run *run = &p->worker.run;
  dvbf_real *to = dv_at(run, controls);
  size_t n = (size_t)m->n_u;
  run->k->standardise(to, u, m->u.shift, m->u.scale, m->n_u);
  for (int r = 1; r < controls.rows; r++) memcpy(to + (size_t)r * n, to, n * sizeof *to);
}

/* Runs back from entries first .. first + rows - 1 of the result, one in each row; returns how many there
 * are. */
static int run_back(part *p, int first) {
  int rows = p->result.rows, n = p->result.cols, count = n - first < rows ? n - first : rows;
  memset(p->seed, 0, (size_t)rows * (size_t)n * sizeof *p->seed);
  for (int r = 0; r < count; r++) p->seed[(size_t)r * ((size_t)n + 1) + (size_t)first] = 1;
  dv_run_backward_from(&p->worker.run, &(dv_seed){p->result, p->seed}, 1);
  return count;
}

static void move(dvbf_jacobian *l, const float *z, const float *u) {
  const dvbf_model *m = l->model;
  part *p = &l->move;
  dvbf_run *run = &p->worker.run;
  size_t n_z = (size_t)m->n_z, n_u = (size_t)m->n_u;
  fill_rows(p, dvbf_steps(p->program.z, 0, 1), z);
  fill_controls(p, m, u);
  dv_run_forward(run);
  const dvbf_real *next = dv_at(run, p->result);
  for (size_t i = 0; i < n_z; i++) l->next[i] = (float)next[i];
  for (int first = 0, count; first < m->n_z; first += count) {
    if (first) dv_run_forward(run); /* a backward run may have used the memory of values */
    count = run_back(p, first);
    const dvbf_real *dz = dvbf_gradient_at(run, dvbf_steps(p->program.z, 0, 1));
    const dvbf_real *du = n_u ? dvbf_gradient_at(run, dvbf_steps(p->program.u, 0, 1)) : NULL;
    for (size_t i = 0; i < (size_t)count * n_z; i++) l->a[(size_t)first * n_z + i] = (float)dz[i];
    for (size_t i = 0; i < (size_t)count * n_u; i++)
      l->b[(size_t)first * n_u + i] = (float)((double)du[i] * (double)m->u.scale[i % n_u]);
  }
}

static void emit(dvbf_jacobian *l, const float *z, const float *u) {
  const dvbf_model *m = l->model;
  part *p = &l->emission;
  dvbf_run *run = &p->worker.run;
  bool direct =
      m->settings->feedthrough || m->type->emission; /* an emission of its own may see u; else D is 0 */
  size_t n_z = (size_t)m->n_z, n_u = direct ? (size_t)m->n_u : 0;
  fill_rows(p, p->program.z, z);
  fill_controls(p, m, u);
  for (int first = 0, count; first < m->n_x; first += count) {
    dv_run_forward(run);
    if (!first) dv_model_unscale(m, dv_at(run, p->result), l->x);
    count = run_back(p, first);
    const dvbf_real *dz = dvbf_gradient_at(run, p->program.z), *output = dv_at(run, p->result);
    const dvbf_real *du = n_u ? dvbf_gradient_at(run, p->program.u) : NULL;
    for (int r = 0; r < count; r++) {
      size_t i = (size_t)first + (size_t)r;
      double slope = dv_density_slope(m->density, (double)output[i]) / (double)m->x.scale[i];
      for (size_t k = 0; k < n_z; k++) l->h[i * n_z + k] = (float)(slope * (double)dz[(size_t)r * n_z + k]);
      for (size_t k = 0; k < n_u; k++)
        l->d[i * n_u + k] = (float)(slope * (double)du[(size_t)r * n_u + k] * (double)m->u.scale[k]);
    }
  }
}

void dvbf_jacobian_at(dvbf_jacobian *l, const float *z, const float *u, dvbf_jacobians *out) {
  DV_COMPUTE(dv_model_portable(l->model));
  const dvbf_model *m = l->model;
  unsigned before = dv_flush_denormals();
  move(l, z, u);
  emit(l, z, u);
  dv_restore_denormals(before);
  *out = (dvbf_jacobians){.n_z = (size_t)m->n_z,
                          .n_u = (size_t)m->n_u,
                          .n_x = (size_t)m->n_x,
                          .next = l->next,
                          .a = l->a,
                          .b = m->n_u ? l->b : NULL,
                          .x = l->x,
                          .h = l->h,
                          .d = m->n_u ? l->d : NULL};
}
