/* What all models share: inputs, emission, and the bound for sequences of T steps,
 *
 *   sum_t ln p(x_t | z_t) - KL of the first step - sum_t KL of step t [- KL(q(v) || p(v)) / N]
 *
 * A model is one file with a function that records z and these KLs from the inputs. */
#include "model/model.h"

#include "base/status.h"
#include "data/dataset.h"

#include <string.h>

static void record_inputs(dv_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  p->x = p->one_x ? dvbf_slab_shared_constant(g, p->steps, m->n_x) : dvbf_slab_constant(g, p->steps, m->n_x);
  p->u = m->n_u ? dvbf_slab_constant(g, p->steps, m->n_u) : DVBF_NONE;
  p->mask = dvbf_slab_constant(g, p->steps, 1);
  p->seen = DVBF_NONE;
  if (m->n_x == 1)
    p->seen = p->mask;
  else if (p->gaps || m->settings->mask_input == DV_MASK_DIMENSION)
    p->seen = dvbf_slab_constant(g, p->steps, m->n_x);
  p->weight = dvbf_slab_constant(g, 1, 1);
  p->z = dvbf_slab(g, p->steps, m->n_z);
  p->output = p->ln_p = p->kl_first = p->kl = p->noise_first = p->noise = p->noise_v = DVBF_NONE;
  p->v = p->w_first = p->w = p->head_first = p->head = p->prior = p->shape[0] = p->shape[1] = DVBF_NONE;
}

static void keep_all(dvbf_graph *g, const dvbf_value *values, int count) {
  for (int i = 0; i < count; i++) dvbf_keep(g, values[i]);
}

/* What the densities of w and x are made from. */
static void keep_densities(const dv_program *p) {
  keep_all(p->graph, (dvbf_value[]){p->w_first, p->w, p->head_first, p->head, p->prior}, 5);
  keep_all(p->graph, (dvbf_value[]){p->noise_first, p->noise, p->shape[0], p->shape[1]}, 4);
}

typedef void record_fn(dv_program *p, const dvbf_model *m, int observe);

static void record_bound(dv_program *p, const dvbf_model *m, int observe) {
  dvbf_graph *g = p->graph;
  static record_fn *const models[] = {dv_record_dvbf, dv_record_dkf};
  int reconstruction = dvbf_term(g, DVBF_RECONSTRUCTION, -1), kl = dvbf_term(g, DVBF_KL_W, 1);
  record_inputs(p, m);
  models[m->settings->model](p, m, observe);
  dv_record_emission(p, m);
  dvbf_sum(g, reconstruction, p->ln_p, p->weight, dvbf_scalar(g, DVBF_TEMPERATURE, 1));
  dvbf_sum(g, kl, p->kl_first, p->weight, -1); /* the ops behind it anneal it */
  dvbf_sum(g, kl, p->kl, p->weight, -1);
  /* Inputs are written before the first op, noise and results can be read after the last. */
  dvbf_value inputs[] = {p->x, p->u, p->mask, p->seen, p->weight, p->noise_first, p->noise, p->noise_v};
  dvbf_value results[] = {p->z, p->output, p->ln_p, p->kl_first, p->kl};
  keep_all(g, inputs, 8);
  if (!dv_graph_training(g)) keep_all(g, results, 5);
  if (!dv_graph_training(g)) keep_densities(p);
}

dvbf_value dv_mask_input(const dv_program *p, const dvbf_model *m) {
  int64_t kind = m->settings->mask_input;
  return kind == DV_MASK_STEP ? p->mask : kind == DV_MASK_DIMENSION ? p->seen : DVBF_NONE;
}

static dvbf_status begin(dv_program *p, dvbf_model *m, int steps, int rows, int flags, dvbf_error *error) {
  *p = (dv_program){.steps = steps, .rows = rows, .gaps = flags & DV_GAPS};
  p->graph = dv_graph_new(&m->parameters, rows, flags & DV_BACKWARD);
  return p->graph ? DVBF_OK : dv_fail_memory(error, "recording the model");
}

static dvbf_status end(dv_program *p, dvbf_error *error) {
  dvbf_status status = dv_graph_plan(p->graph, error);
  if (status) dv_program_clear(p);
  return status;
}

dvbf_status dv_program_record(dv_program *p, dvbf_model *m, int steps, int rows, int observe, int flags,
                              dvbf_error *error) {
  *p = (dv_program){0};
  if (steps < 2)
    return dv_fail(error, DVBF_FORMAT, "sequences of %d step cannot be modelled; at least 2 are needed",
                   steps);
  dvbf_status status = begin(p, m, steps, rows, flags, error);
  if (status) return status;
  record_bound(p, m, observe);
  return end(p, error);
}

/* The emission of step t alone. */
static void record_emission_at(dv_program *p, const dvbf_model *m, int t) {
  dv_program one = *p;
  one.steps = 1;
  one.z = dvbf_steps(p->z, t, 1);
  one.x = dvbf_steps(p->x, t, 1);
  one.mask = dvbf_steps(p->mask, t, 1);
  one.seen = dvbf_steps(p->seen, t, 1);
  dv_record_emission(&one, m);
  p->output = one.output;
  p->ln_p = one.ln_p;
  memcpy(p->shape, one.shape, sizeof p->shape);
}

/* Ends the recording of a part, of which `t` is the step that has an emission; negative: none has. */
static dvbf_status end_part(dv_program *p, const dvbf_model *m, int t, dvbf_error *error) {
  if (t >= 0) record_emission_at(p, m, t);
  keep_all(p->graph, (dvbf_value[]){p->x, p->u, p->mask, p->seen, p->weight, p->z, p->v, p->output, p->ln_p},
           9);
  if (t >= 0) keep_densities(p);
  return end(p, error);
}

dvbf_status dv_program_record_step(dv_program *p, dvbf_model *m, int rows, int rank, int flags,
                                   dvbf_error *error) {
  dvbf_status status = begin(p, m, 2, rows, flags, error);
  if (status) return status;
  p->given_v = flags & DV_PARTICLES;
  p->one_x = flags & DV_ONE_X;
  p->rank = rank;
  p->mean_v = true; /* a thousand exponentials per step for noise far below that of w are not worth it */
  record_inputs(p, m);
  dv_record_dynamics(p, m);
  return end_part(p, m, flags & DV_PARTICLES ? 1 : -1, error);
}

dvbf_status dv_program_record_start(dv_program *p, dvbf_model *m, int rows, int frames, int flags,
                                    dvbf_error *error) {
  dvbf_status status = begin(p, m, frames, rows, flags, error);
  if (status) return status;
  record_inputs(p, m);
  dv_record_initial(p, m, frames);
  return end_part(p, m, flags & DV_PARTICLES ? 0 : -1, error);
}

dvbf_status dv_program_record_move(dv_program *p, dvbf_model *m, int rows, dvbf_error *error) {
  dvbf_status status = begin(p, m, 2, rows, 0, error);
  if (status) return status;
  p->given_v = true;
  record_inputs(p, m);
  dv_record_move(p, m);
  dvbf_keep(p->graph, p->w);
  return end_part(p, m, -1, error);
}

dvbf_status dv_program_record_emission(dv_program *p, dvbf_model *m, int rows, dvbf_error *error) {
  dvbf_status status = begin(p, m, 1, rows, 0, error);
  if (status) return status;
  record_inputs(p, m);
  return end_part(p, m, 0, error);
}

void dv_program_clear(dv_program *p) {
  dv_graph_free(p->graph);
  *p = (dv_program){0};
}
