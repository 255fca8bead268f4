#include "control/moves.h"

#include "base/status.h"
#include "base/tiny.h"

#include <string.h>

enum { WALK, CROWD, SLOPE, PROGRAMS };
enum { MOST_ROWS = 256 }; /* of a run for derivatives, unless one point needs more */

/* ---- Making ---- */

static dvbf_status check(const dvbf_model *m, dvbf_error *error) {
  if (!m->type->move)
    return dv_fail(error, DVBF_ARGUMENT, "a %s has no transition from z to the next: it cannot plan",
                   m->type->name);
  if (!m->n_u)
    return dv_fail(error, DVBF_ARGUMENT,
                   "this model has no controls, so there is nothing to plan: train with recorded inputs (u)");
  return DVBF_OK;
}

static dvbf_status record(dvbf_program programs[PROGRAMS], const dv_moves *like, dvbf_error *error) {
  const int rows[PROGRAMS] = {like->few, like->many, like->points * like->model->n_z};
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < PROGRAMS && !status; i++)
    status = dv_program_record_move(&programs[i], like->model, rows[i], DV_DERIVATIVES, error);
  return status;
}

static dv_moves *place(dv_room *room, const dv_moves *like, const dvbf_program programs[PROGRAMS]) {
  dv_moves *moves = dv_room_take(room, 1, sizeof *moves), parts = *like;
  size_t n_z = (size_t)like->model->n_z, rows = (size_t)like->points * n_z;
  dv_machine *machines[PROGRAMS] = {&parts.walk, &parts.crowd, &parts.slope};
  size_t keys = rows > (size_t)like->many ? rows : (size_t)like->many;
  parts.key = dv_room_take(room, keys, sizeof *parts.key);
  parts.seed = dv_room_take(room, rows * n_z, sizeof *parts.seed);
  for (int i = 0; i < PROGRAMS; i++) dv_machine_place(room, machines[i], &programs[i]);
  if (!moves) return NULL;
  for (size_t i = 0; i < keys; i++) parts.key[i] = (uint32_t)i;
  memset(parts.seed, 0, rows * n_z * sizeof *parts.seed);
  for (size_t i = 0; i < rows; i++) parts.seed[i * n_z + i % n_z] = 1;
  *moves = parts;
  return moves;
}

static void prepare(dv_moves *m) {
  dv_machine *machines[PROGRAMS] = {&m->walk, &m->crowd, &m->slope};
  m->conditions = dv_model_conditions(m->model, 0);
  m->conditions.scale = 0; /* the objective has no part in it */
  for (int i = 0; i < PROGRAMS; i++) {
    machines[i]->run.parameters = m->model->parameters.values;
    machines[i]->run.conditions = &m->conditions;
    machines[i]->run.sequence = m->key;
  }
}

dvbf_status dv_moves_place(dv_moves **out, dv_room *room, const dvbf_model *model, int few, int many,
                           int steps, int *n_w, dvbf_error *error) {
  dvbf_program programs[PROGRAMS] = {{0}};
  dvbf_status status = check(model, error);
  if (status) return status;
  int points = MOST_ROWS / model->n_z < steps ? MOST_ROWS / model->n_z : steps;
  dv_moves like = {.model = model, .few = few, .many = many, .points = points > 0 ? points : 1};
  status = record(programs, &like, error);
  *n_w = like.n_w = status ? 0 : programs[WALK].later.noise.cols;
  dv_moves *m = status ? NULL : place(room, &like, programs);
  for (int i = 0; i < PROGRAMS; i++) dv_program_clear(&programs[i]);
  if (m) prepare(m);
  *out = m;
  return status;
}

/* ---- Running ---- */

/* Rows `first` and on of the inputs; each point takes `copies` rows. */
static void fill(const dv_moves *m, dv_machine *machine, int count, int copies, const double *z,
                 const double *u, int stride) {
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
static void set_noise(const dv_moves *m, dv_machine *machine, int rows, const double *noise) {
  dvbf_real *to = dv_at(&machine->run, machine->program.later.noise);
  for (int i = 0; i < rows * m->n_w; i++) to[i] = noise ? (dvbf_real)noise[i] : 0;
}

void dv_moves_stir(dv_moves *m, int rows, const double *z, const double *u, const double *noise, double *next,
                   int stride) {
  dv_machine *machine = rows <= m->few ? &m->walk : &m->crowd;
  set_noise(m, machine, rows, noise);
  dv_moves_go(m, rows, z, u, next, stride);
  set_noise(m, machine, rows, NULL);
}

void dv_moves_go(dv_moves *m, int rows, const double *z, const double *u, double *next, int stride) {
  dv_machine *machine = rows <= m->few ? &m->walk : &m->crowd;
  unsigned before = dv_flush_tiny_numbers();
  fill(m, machine, rows, 1, z, u, stride);
  dv_run_forward(&machine->run);
  machine->run.same_weights = true;
  dv_restore_tiny_numbers(before);
  const dvbf_real *from = dv_at(&machine->run, dvbf_steps(machine->program.z, 1, 1));
  for (int r = 0; r < rows; r++, next += stride)
    for (int i = 0; i < m->model->n_z; i++) next[i] = (double)*from++;
}

/* Derivatives at `count` points, which a run has. */
static void derive_some(dv_moves *m, int count, const double *z, const double *u, double *a, double *b,
                        int stride) {
  dv_machine *s = &m->slope;
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

void dv_moves_derive(dv_moves *m, int steps, const double *z, const double *u, double *a, double *b,
                     int stride) {
  int n_u = m->model->n_u;
  unsigned before = dv_flush_tiny_numbers();
  for (int t = 0, count; t < steps; t += count) {
    count = steps - t < m->points ? steps - t : m->points;
    derive_some(m, count, z + (size_t)t * (size_t)stride, u + (size_t)t * (size_t)n_u,
                a + (size_t)t * (size_t)stride * (size_t)stride, b + (size_t)t * (size_t)stride * (size_t)n_u,
                stride);
  }
  dv_restore_tiny_numbers(before);
}

static void go(void *user, int rows, const double *z, const double *u, double *next, int stride) {
  dv_moves_go(user, rows, z, u, next, stride);
}

static void stir(void *user, int rows, const double *z, const double *u, const double *noise, double *next,
                 int stride) {
  dv_moves_stir(user, rows, z, u, noise, next, stride);
}

static void derive(void *user, int steps, const double *z, const double *u, double *a, double *b,
                   int stride) {
  dv_moves_derive(user, steps, z, u, a, b, stride);
}

dv_motion dv_moves_motion(dv_moves *moves) {
  return (dv_motion){.user = moves, .go = go, .derive = derive, .stir = stir};
}
