/* Derivatives of a model for planners: z' = f(z, u) for many states at once with its derivatives along a path
 * (dv_transition_batch_*), and the mean x = h(z) with its derivatives (dv_emission_jacobian_*). Each is one
 * run of a program packed into the caller's memory, forward or seeded backward; nothing allocates. */
#include "control/model_derivatives.h"

#include "base/error.h"
#include "math/portable.h"
#include "model/density.h"

#include <string.h>

enum { WALK, CROWD, SLOPE, PROGRAMS };
enum { MOST_ROWS = 256 }; /* of a run for derivatives, unless one point needs more */

/* ---- Transition: memory ---- */

static dv_transition_batch *place(dv_workspace *room, const dv_transition_batch *like,
                                  const dvbf_program programs[PROGRAMS]) {
  dv_transition_batch *moves = dv_workspace_take(room, 1, sizeof *moves), parts = *like;
  size_t n_z = (size_t)like->model->n_z, rows = (size_t)like->points * n_z;
  dv_program_memory *machines[PROGRAMS] = {&parts.walk, &parts.crowd, &parts.slope};
  size_t keys = rows > (size_t)like->many ? rows : (size_t)like->many;
  parts.key = dv_workspace_take(room, keys, sizeof *parts.key);
  parts.seed = dv_workspace_take(room, rows * n_z, sizeof *parts.seed);
  for (int i = 0; i < PROGRAMS; i++)
    dv_program_memory_lay_out(room, machines[i], &programs[i], like->model, moves ? &moves->conditions : NULL,
                              parts.key);
  if (!moves) return NULL;
  for (size_t i = 0; i < keys; i++) parts.key[i] = (uint32_t)i;
  memset(parts.seed, 0, rows * n_z * sizeof *parts.seed);
  for (size_t i = 0; i < rows; i++) parts.seed[i * n_z + i % n_z] = 1;
  *moves = parts;
  return moves;
}

/* The objective has no part in derivatives. */
static dv_conditions conditions_of(const dvbf_model *m) {
  dv_conditions conditions = dv_model_conditions(m, 0);
  conditions.scale = 0;
  return conditions;
}

dvbf_status dv_transition_batch_lay_out(dv_transition_batch **out, dv_workspace *room,
                                        const dvbf_model *model, int few, int many, int steps, int *n_w,
                                        dvbf_error *error) {
  dvbf_program programs[PROGRAMS] = {{0}};
  if (!model->type->move)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model %s has no transition from one z to the next, so it cannot plan",
                   model->type->name);
  if (!model->n_u)
    return dv_fail(error, DVBF_ARGUMENT,
                   "this model has no controls, so there is nothing to plan: train with recorded inputs (u)");
  dvbf_status status = DVBF_OK;
  int points = MOST_ROWS / model->n_z < steps ? MOST_ROWS / model->n_z : steps;
  dv_transition_batch like = {.model = model,
                              .few = few,
                              .many = many,
                              .points = points > 0 ? points : 1,
                              .conditions = conditions_of(model)};
  const int rows[PROGRAMS] = {few, many, like.points * model->n_z};
  for (int i = 0; i < PROGRAMS && !status; i++)
    status = dv_program_record_move(&programs[i], model, rows[i], DV_DERIVATIVES, error);
  *n_w = like.n_w = status ? 0 : programs[WALK].later.noise.cols;
  *out = status ? NULL : place(room, &like, programs);
  for (int i = 0; i < PROGRAMS; i++) dv_program_clear(&programs[i]);
  return status;
}

/* ---- Transition: values and derivatives ---- */

/* Rows `first` and on of the inputs; each point takes `copies` rows. */
static void fill(const dv_transition_batch *m, dv_program_memory *machine, int count, int copies,
                 const double *z, const double *u, int stride) {
  int n_z = m->model->n_z, n_u = m->model->n_u;
  dvbf_real *to_z = dv_at(&machine->run, dvbf_steps(machine->program.z, 0, 1));
  dvbf_real *to_u = dv_at(&machine->run, dvbf_steps(machine->program.u, 0, 1));
  const float *shift = m->model->u.shift, *scale = m->model->u.scale;
  for (int p = 0; p < count; p++, z += stride, u += n_u)
    for (int c = 0; c < copies; c++) {
      for (int i = 0; i < n_z; i++) *to_z++ = (dvbf_real)z[i];
      for (int i = 0; i < n_u; i++) *to_u++ = (dvbf_real)((u[i] - (double)shift[i]) * (double)scale[i]);
    }
}

/* The noise of the first rows; NULL: none, as it was before. */
static void load_noise(const dv_transition_batch *m, dv_program_memory *machine, int rows,
                       const double *noise) {
  dvbf_real *to = dv_at(&machine->run, machine->program.later.noise);
  for (int i = 0; i < rows * m->n_w; i++) to[i] = noise ? (dvbf_real)noise[i] : 0;
}

static void move_rows(void *user, int rows, const double *z, const double *u, const double *noise,
                      double *next, int stride) {
  dv_transition_batch *m = user;
  dv_program_memory *machine = rows <= m->few ? &m->walk : &m->crowd;
  unsigned before = dv_flush_denormals();
  if (noise) load_noise(m, machine, rows, noise);
  fill(m, machine, rows, 1, z, u, stride);
  dv_run_forward(&machine->run);
  machine->run.same_weights = true;
  if (noise) load_noise(m, machine, rows, NULL);
  dv_restore_denormals(before);
  const dvbf_real *from = dv_at(&machine->run, dvbf_steps(machine->program.z, 1, 1));
  for (int r = 0; r < rows; r++, next += stride)
    for (int i = 0; i < m->model->n_z; i++) next[i] = (double)*from++;
}

/* Derivatives at `count` points, as many as one run holds. */
static void derive_some(dv_transition_batch *m, int count, const double *z, const double *u, double *a,
                        double *b, int stride) {
  dv_program_memory *s = &m->slope;
  int n_z = m->model->n_z, n_u = m->model->n_u;
  fill(m, s, count, n_z, z, u, stride);
  dv_run_forward(&s->run);
  dv_run_backward_from(&s->run, &(dv_seed){dvbf_steps(s->program.z, 1, 1), m->seed}, 1);
  const dvbf_real *dz = dvbf_gradient_at(&s->run, dvbf_steps(s->program.z, 0, 1));
  const dvbf_real *du = dvbf_gradient_at(&s->run, dvbf_steps(s->program.u, 0, 1));
  for (int p = 0; p < count; p++, a += stride * stride, b += stride * n_u)
    for (int i = 0; i < n_z; i++) {
      for (int j = 0; j < n_z; j++) a[i * stride + j] = (double)*dz++;
      for (int j = 0; j < n_u; j++) b[i * n_u + j] = (double)*du++ * (double)m->model->u.scale[j];
    }
}

static void derive_points(void *user, int steps, const double *z, const double *u, double *a, double *b,
                          int stride) {
  dv_transition_batch *m = user;
  size_t wide = (size_t)stride, n_u = (size_t)m->model->n_u;
  unsigned before = dv_flush_denormals();
  for (int t = 0, count; t < steps; t += count) {
    size_t at = (size_t)t;
    count = steps - t < m->points ? steps - t : m->points;
    derive_some(m, count, z + at * wide, u + at * n_u, a + at * wide * wide, b + at * wide * n_u, stride);
  }
  dv_restore_denormals(before);
}

dv_dynamics dv_transition_batch_dynamics(dv_transition_batch *moves) {
  return (dv_dynamics){.user = moves, .move = move_rows, .derive = derive_points};
}

enum { MOST_COLUMNS = 64 };

/* ---- Emission: memory ---- */

static dv_emission_jacobian *place_looks(dv_workspace *room, const dv_emission_jacobian *like,
                                         const dvbf_program *programs) {
  dv_emission_jacobian *looks = dv_workspace_take(room, 1, sizeof *looks), parts = *like;
  size_t rows = (size_t)like->rows, n_x = (size_t)like->model->n_x;
  parts.key = dv_workspace_take(room, rows, sizeof *parts.key);
  parts.seed = dv_workspace_take(room, rows * n_x, sizeof *parts.seed);
  const dv_conditions *conditions = looks ? &looks->conditions : NULL;
  dv_program_memory_lay_out(room, &parts.one, &programs[0], like->model, conditions, parts.key);
  dv_program_memory_lay_out(room, &parts.slope, &programs[1], like->model, conditions, parts.key);
  if (!looks) return NULL;
  for (size_t i = 0; i < rows; i++) parts.key[i] = (uint32_t)i;
  *looks = parts;
  return looks;
}

dvbf_status dv_emission_jacobian_lay_out(dv_emission_jacobian **out, dv_workspace *room,
                                         const dvbf_model *model, dvbf_error *error) {
  dvbf_program programs[2] = {{0}};
  if (model->density->joint)
    return dv_fail(error, DVBF_ARGUMENT,
                   "goal-space = x does not work if values of x depend on each other, as categories do; use "
                   "goal-space = z");
  dv_emission_jacobian like = {.model = model,
                               .rows = model->n_x < MOST_COLUMNS ? model->n_x : MOST_COLUMNS,
                               .conditions = conditions_of(model)};
  dvbf_status status = dv_program_record_emission(&programs[0], model, 1, DV_DERIVATIVES, error);
  if (!status) status = dv_program_record_emission(&programs[1], model, like.rows, DV_DERIVATIVES, error);
  *out = status ? NULL : place_looks(room, &like, programs);
  for (int i = 0; i < 2; i++) dv_program_clear(&programs[i]);
  return status;
}

/* ---- Emission: values and derivatives ---- */

static void run(dv_program_memory *m, int rows, int n_z, const double *z) {
  dvbf_real *to = dv_at(&m->run, m->program.z);
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < n_z; i++) *to++ = (dvbf_real)z[i];
  dv_run_forward(&m->run);
}

void dv_emission_jacobian_at(dv_emission_jacobian *l, const double *z, double *x) {
  const dvbf_model *m = l->model;
  unsigned before = dv_flush_denormals();
  run(&l->one, 1, m->n_z, z);
  dv_restore_denormals(before);
  const dvbf_real *output = dv_at(&l->one.run, l->one.program.output);
  for (int i = 0; i < m->n_x; i++) x[i] = dv_density_mean(m->density, (double)output[i]);
}

void dv_emission_jacobian_derive(dv_emission_jacobian *l, const double *z, double *x, double *h) {
  const dvbf_model *m = l->model;
  dv_program_memory *s = &l->slope;
  int n_x = m->n_x, n_z = m->n_z;
  unsigned before = dv_flush_denormals();
  dv_emission_jacobian_at(l, z, x);
  const dvbf_real *output = dv_at(&l->one.run, l->one.program.output);
  for (int first = 0; first < n_x; first += l->rows) {
    int count = n_x - first < l->rows ? n_x - first : l->rows;
    run(s, l->rows, n_z, z);
    memset(l->seed, 0, (size_t)l->rows * (size_t)n_x * sizeof *l->seed);
    for (int r = 0; r < count; r++) l->seed[(size_t)r * (size_t)n_x + (size_t)(first + r)] = 1;
    dv_run_backward_from(&s->run, &(dv_seed){s->program.output, l->seed}, 1);
    const dvbf_real *dz = dvbf_gradient_at(&s->run, s->program.z);
    for (int r = 0; r < count; r++)
      for (int i = 0; i < n_z; i++)
        h[(size_t)(first + r) * (size_t)n_z + (size_t)i] =
            dv_density_slope(m->density, (double)output[first + r]) * (double)*dz++;
  }
  dv_restore_denormals(before);
}
