#include "control/looks.h"

#include "base/status.h"
#include "base/tiny.h"
#include "model/density.h"

#include <string.h>

enum { MOST_ROWS = 64 };

/* ---- Making ---- */

static dv_looks *place(dv_room *room, const dv_looks *like, const dvbf_program programs[2]) {
  dv_looks *looks = dv_room_take(room, 1, sizeof *looks), parts = *like;
  size_t rows = (size_t)like->rows, n_x = (size_t)like->model->n_x;
  parts.key = dv_room_take(room, rows, sizeof *parts.key);
  parts.seed = dv_room_take(room, rows * n_x, sizeof *parts.seed);
  dv_machine_place(room, &parts.one, &programs[0]);
  dv_machine_place(room, &parts.slope, &programs[1]);
  if (!looks) return NULL;
  for (size_t i = 0; i < rows; i++) parts.key[i] = (uint32_t)i;
  *looks = parts;
  return looks;
}

dvbf_status dv_looks_place(dv_looks **out, dv_room *room, const dvbf_model *model, dvbf_error *error) {
  dvbf_program programs[2] = {{0}};
  if (model->density->joint)
    return dv_fail(error, DVBF_ARGUMENT,
                   "goal-in = x does not work where values of x depend on each other, as "
                   "categories do; goal-in = z does");
  dv_looks like = {.model = model, .rows = model->n_x < MOST_ROWS ? model->n_x : MOST_ROWS};
  dvbf_status status = dv_program_record_emission(&programs[0], model, 1, DV_DERIVATIVES, error);
  if (!status) status = dv_program_record_emission(&programs[1], model, like.rows, DV_DERIVATIVES, error);
  dv_looks *l = status ? NULL : place(room, &like, programs);
  for (int i = 0; i < 2; i++) dv_program_clear(&programs[i]);
  *out = l;
  if (!l) return status;
  l->conditions = dv_model_conditions(model, 0);
  l->conditions.scale = 0; /* the objective has no part in it */
  dv_machine *machines[] = {&l->one, &l->slope};
  for (int i = 0; i < 2; i++) {
    machines[i]->run.parameters = model->parameters.values;
    machines[i]->run.conditions = &l->conditions;
    machines[i]->run.sequence = l->key;
  }
  return DVBF_OK;
}

/* ---- Running ---- */

static void run(dv_machine *m, int rows, int n_z, const double *z) {
  dvbf_real *to = dv_at(&m->run, m->program.z);
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < n_z; i++) *to++ = (dvbf_real)z[i];
  dv_run_forward(&m->run);
}

/* The mean in the units of the model. A density whose data are not scaled has a mean of its own. */
static double mean_of(const dvbf_model *m, double output) {
  return dv_density_mean(m->density, output);
}

/* Derivative of the mean by the output; every density's is smooth, and differences are exact to 1e-9. */
static double slope_of(const dvbf_model *m, double output) {
  const double step = 1e-4;
  return (mean_of(m, output + step) - mean_of(m, output - step)) / (2 * step);
}

void dv_looks_at(dv_looks *l, const double *z, double *x) {
  const dvbf_model *m = l->model;
  unsigned before = dv_flush_tiny_numbers();
  run(&l->one, 1, m->n_z, z);
  dv_restore_tiny_numbers(before);
  const dvbf_real *output = dv_at(&l->one.run, l->one.program.output);
  for (int i = 0; i < m->n_x; i++) x[i] = mean_of(m, (double)output[i]);
}

void dv_looks_derive(dv_looks *l, const double *z, double *x, double *h) {
  const dvbf_model *m = l->model;
  dv_machine *s = &l->slope;
  int n_x = m->n_x, n_z = m->n_z;
  unsigned before = dv_flush_tiny_numbers();
  dv_looks_at(l, z, x);
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
            slope_of(m, (double)output[first + r]) * (double)*dz++;
  }
  dv_restore_tiny_numbers(before);
}
