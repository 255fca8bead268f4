/* Programs of a model (dv_program_record and its variants): inputs, emission and the bound, which all models
 * share; a model class records z and the KLs between them (dvbf_model_class). Also blocks of long sequences
 * and bounds of several samples (program.h). The bound for sequences of T steps:
 *
 *   sum_t ln p(x_t | z_t) - KL of the first step - sum_t KL of step t [- KL(q(v) || p(v)) / N] */
#include "model/program.h"

#include "base/error.h"
#include "model/density.h"

#include <math.h>
#include <string.h>

static void record_inputs(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  p->x = p->one_x ? dvbf_slab_shared_constant(g, p->steps, m->n_x) : dvbf_slab_constant(g, p->steps, m->n_x);
  p->u = m->n_u ? dvbf_slab_constant(g, p->steps, m->n_u) : DVBF_NONE;
  p->mask = dvbf_slab_constant(g, p->steps, 1);
  p->seen = DVBF_NONE;
  if (m->n_x == 1)
    p->seen = p->mask;
  else if (p->gaps || m->settings->mask_input == DV_MASK_DIMENSION ||
           m->settings->recognition_input == DV_INPUT_INNOVATION)
    p->seen = dvbf_slab_constant(g, p->steps, m->n_x);
  p->weight = dvbf_slab_constant(g, 1, 1);
  p->z = dvbf_slab(g, p->steps, m->n_z);
  p->kl = dvbf_slab(g, p->steps, 1);
}

static void keep_all(dvbf_graph *g, const dvbf_value *values, int count) {
  for (int i = 0; i < count; i++) dvbf_keep(g, values[i]);
}

/* What the densities of w and x are made from. */
static void keep_densities(const dvbf_program *p) {
  const dvbf_drawn *drawn[] = {&p->first, &p->later};
  for (int i = 0; i < 2; i++)
    keep_all(p->graph,
             (dvbf_value[]){drawn[i]->value, drawn[i]->head, drawn[i]->noise, drawn[i]->use, drawn[i]->prior},
             5);
  keep_all(p->graph, p->shape, 2);
}

dvbf_value dv_emission_control(const dvbf_program *p, const dvbf_model *m, int first, int steps) {
  return m->settings->feedthrough && m->n_u ? dvbf_steps(p->u, first, steps) : DVBF_NONE;
}

/* The part of z that the emission sees. */
static dvbf_value emitted(dvbf_program *p, const dvbf_model *m) {
  int n = m->type->emits ? m->type->emits(m->type, m->settings_object) : m->n_z;
  if (n == m->n_z) return p->z;
  dvbf_value part = dvbf_slab(p->graph, p->steps, n);
  dv_record_columns(p->graph, part, p->z, 0);
  return part;
}

/* p(x_t | z_t): hidden layers, to which the density adds its parameters. A state larger than the setting
 * `latent` has smaller first weights. */
static void record_emission(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  if (m->type->emission) {
    m->type->emission(m->type, p, m);
    return;
  }
  dvbf_value state = p->z, z = emitted(p, m);
  double scale = s->scale_emission * sqrt((double)s->latent / (z.cols > s->latent ? z.cols : s->latent));
  p->ln_p = dvbf_slab(g, p->steps, 1);
  dv_stack inner =
      dv_hidden(g, s, "emission", p->steps, (dvbf_first){.scale = 0.5},
                (dv_dense_in[4]){{"z", z, scale, false},
                                 {"u", dv_emission_control(p, m, 0, p->steps), s->scale_emission, false}});
  dv_stack_whole(g, &inner);
  p->z = z; /* densities read it too, with linear paths */
  m->density->record(p, m, dv_stack_top(&inner), p->gaps ? p->seen : p->mask);
  p->z = state;
}

dvbf_program dv_record_emission_of(const dvbf_program *p, const dvbf_model *m, int first, int steps,
                                   dvbf_value z) {
  dvbf_program part = dv_part_of(p, first, steps);
  part.z = z;
  part.later.use = (dvbf_value)DVBF_NONE;
  record_emission(&part, m);
  return part;
}

void dv_record_ln_p(const dvbf_program *p, const dvbf_model *m, int first, int steps, dvbf_value z, int term,
                    int scalar) {
  dvbf_graph *g = p->graph;
  for (dv_step_blocks s = dv_blocks_of(g, m, steps); dv_next_block(g, &s);) {
    dvbf_program part = dv_part_of(p, first + s.first, s.steps);
    part.z = dvbf_steps(z, s.first, s.steps);
    /* Of the steps into these frames: the first of all has none. */
    int at = first + s.first;
    part.later.use = dvbf_steps(p->later.use, at ? at - 1 : 0, at ? s.steps : s.steps - 1);
    record_emission(&part, m);
    dvbf_sum(g, term, part.ln_p, p->weight, scalar);
  }
}

/* ---- Bounds ---- */

/* One of whole paths, and one of a particle filter (Maddison et al. 2017, Le et al. 2018, Naesseth et al.
 * 2018),
 *
 *   sum_t ln 1/K sum_k p(x_t | z_t^k) p(w_t^k) / q(w_t^k),
 *
 * in which every step begins at rows resampled by their weights. The latter is recorded as start and steps of
 * the model, as a filter runs them. */

static dvbf_value record_ratio(const dvbf_program *p, const dvbf_drawn *drawn) {
  if (drawn->value.buffer < 0) return DVBF_NONE;
  dvbf_value out = dvbf_slab(p->graph, drawn->value.steps, 1);
  dv_record_ln_ratio(p->graph, out, drawn, DV_LOG_SIGMA_MIN, DV_LOG_SIGMA_MAX);
  return out;
}

static void record_paths(dvbf_program *p, const dvbf_model *m, int samples) {
  dvbf_graph *g = p->graph;
  int term = dvbf_term(g, DVBF_IMPORTANCE, -1);
  if (dv_blocks_of(g, m, p->steps).count > 1)
    dvbf_refuse(g, "importance-samples needs whole sequences: window must be below 512");
  dvbf_value first = record_ratio(p, &p->first), later = record_ratio(p, &p->later);
  dv_record_importance(g, term, samples, p->ln_p, first, later, p->weight);
}

static bool can_resample(dvbf_program *p, const dvbf_model *m) {
  const dv_train_settings *s = m->settings;
  if (!m->type->start || !m->type->step || m->type->no_weights)
    dvbf_refuse(p->graph,
                "resample = on needs a model that can filter, which the model %s cannot; leave it off",
                m->type->name);
  else if (m->type->rows_share && m->type->rows_share(m->type, m->settings_object))
    dvbf_refuse(p->graph, "resample = on needs universal = point, not a distribution");
  else if (s->recognition == DV_SMOOTHING)
    dvbf_refuse(p->graph,
                "resample = on needs recognition = filtering: a particle filter sees no later frames");
  else
    return true;
  return false;
}

/* Adds the term of the weights of rows at step t of the part, and returns the weights. */
static dvbf_value weigh(const dvbf_program *part, const dvbf_model *m, const dvbf_drawn *drawn, int t,
                        int samples) {
  dvbf_graph *g = part->graph;
  dvbf_program one = dv_record_emission_of(part, m, t, 1, dvbf_steps(part->z, t, 1));
  dvbf_value none = DVBF_NONE;
  return dv_record_importance(g, dvbf_term(g, DVBF_IMPORTANCE, -1), samples, one.ln_p,
                              record_ratio(part, drawn), none, part->weight);
}

/* The bound of a particle filter, of groups of so many rows. */
static void record_particles(dvbf_program *p, const dvbf_model *m, int samples) {
  dvbf_graph *g = p->graph;
  keep_all(g, (dvbf_value[]){p->x, p->u, p->mask, p->seen, p->weight}, 5);
  if (!can_resample(p, m)) return;
  int asked = dv_model_start_frames(m), frames = asked && asked < p->steps ? asked : p->steps;
  dvbf_program part = dv_part_of(p, 0, frames);
  part.mean_v = true;
  part.observe = frames;
  part.z = dvbf_slab(g, 1, m->n_z);
  m->type->start(m->type, &part, m);
  dvbf_value z = part.z, s = weigh(&part, m, &part.first, 0, samples);
  int streams = g->noise_numbers;
  for (int t = 0; t + 1 < p->steps; t++) {
    part = dv_part_of(p, t, 2);
    part.mean_v = true;
    part.observe = 2;
    part.z = dvbf_slab(g, 2, m->n_z);
    g->noise_numbers = streams, g->noise_step = t;
    dv_record_resample(g, dvbf_steps(part.z, 0, 1), z, s, samples);
    m->type->step(m->type, &part, m);
    z = dvbf_steps(part.z, 1, 1);
    s = weigh(&part, m, &part.later, 1, samples);
  }
  dvbf_scalar(g, DVBF_FILTER_WAIT, dv_model_recognises_from(m) - 1);
}

/* ln p(x_{t+1} | f(z_t, u_t, w = 0)), summed over steps into frames that the initial network has not seen. */
static void record_one_step(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  int term = dvbf_term(g, DVBF_ONE_STEP, -1);
  if (p->predicted.buffer < 0) {
    dvbf_refuse(g, "one-step predictions need recognition-input = innovation");
    return;
  }
  int start = dv_model_start_frames(m), first = start > 1 && start < p->steps ? start : 1,
      steps = p->steps - first;
  dvbf_program ahead = *p;
  ahead.later.use = (dvbf_value)DVBF_NONE;
  dv_record_ln_p(&ahead, m, first, steps, dvbf_steps(p->predicted, first - 1, steps), term, -1);
}

static void record_bound(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  if (dv_graph_training(g) && dv_program_samples(m) > 1) {
    record_emission(p, m);
    record_paths(p, m, dv_program_samples(m));
    return;
  }
  if (dv_graph_training(g) && m->settings->resample)
    dvbf_refuse(g, "resample = on has nothing to choose from with importance-samples = 1, which must be in "
                   "[2, 256]; 8 works well");
  int reconstruction = dvbf_term(g, DVBF_RECONSTRUCTION, -1), kl = dvbf_term(g, DVBF_KL_W, 1);
  if (m->type->emission || dv_blocks_of(g, m, p->steps).count == 1) {
    record_emission(p, m);
    dvbf_sum(g, reconstruction, p->ln_p, p->weight, dvbf_scalar(g, DVBF_TEMPERATURE, 1));
  } else
    dv_record_ln_p(p, m, 0, p->steps, p->z, reconstruction, dvbf_scalar(g, DVBF_TEMPERATURE, 1));
  dvbf_sum(g, kl, p->kl, p->weight, -1); /* the ops behind it anneal it */
}

static void record_whole(dvbf_program *p, const dvbf_model *m, bool one_step) {
  dvbf_graph *g = p->graph;
  m->type->whole(m->type, p, m);
  if (one_step)
    record_one_step(p, m);
  else
    record_bound(p, m);
  /* Inputs are written before the first op, noise and results can be read after the last. */
  dvbf_value inputs[] = {p->x, p->u, p->mask, p->seen, p->weight, p->first.noise, p->later.noise, p->noise_v};
  dvbf_value results[] = {p->z, p->output, p->ln_p, p->kl, p->innovation};
  keep_all(g, inputs, 8);
  if (!dv_graph_training(g)) keep_all(g, results, 5);
  if (!dv_graph_training(g)) keep_densities(p);
}

bool dv_program_resamples(const dvbf_model *m) {
  return m->settings->resample && dv_program_samples(m) > 1;
}

int dv_program_samples(const dvbf_model *m) {
  return dv_model_class_lists(m->type, "samples") ? (int)m->settings->importance_samples : 1;
}

dvbf_value dv_mask_input(const dvbf_program *p, const dvbf_model *m) {
  int64_t kind = m->settings->mask_input;
  return kind == DV_MASK_STEP ? p->mask : kind == DV_MASK_DIMENSION ? p->seen : DVBF_NONE;
}

/* A program with inputs alone. Recording adds parameters only to an incomplete model, so a complete one is
 * only read. */
static dvbf_status begin_recording(dvbf_program *p, const dvbf_model *m, int steps, int rows, int flags,
                                   dvbf_error *error) {
  const dvbf_value none = DVBF_NONE;
  const dvbf_drawn nothing = {none, none, none, none, none};
  *p = (dvbf_program){.steps = steps,
                      .rows = rows,
                      .gaps = flags & DV_GAPS,
                      .one_x = flags & DV_ONE_X,
                      .first = nothing,
                      .later = nothing};
  dvbf_value *all[] = {&p->x,        &p->u,        &p->mask,    &p->seen,      &p->weight,     &p->z,
                       &p->kl,       &p->v,        &p->noise_v, &p->plane_in,  &p->plane_out,  &p->output,
                       &p->shape[0], &p->shape[1], &p->ln_p,    &p->predicted, &p->innovation, &p->sight};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) *all[i] = none;
  p->graph = dv_graph_new((dv_parameters *)&m->parameters, rows, flags & (DV_BACKWARD | DV_DERIVATIVES));
  if (p->graph && flags & DV_DERIVATIVES) p->graph->fixed = true;
  if (!p->graph) return dv_fail_memory(error, "recording the model");
  record_inputs(p, m);
  return DVBF_OK;
}

static dvbf_status end_recording(dvbf_program *p, dvbf_error *error) {
  dvbf_status status = dv_graph_plan(p->graph, error);
  if (status) dv_program_clear(p);
  return status;
}

dvbf_status dv_program_record(dvbf_program *p, const dvbf_model *m, int steps, int rows, int observe,
                              int flags, dvbf_error *error) {
  *p = (dvbf_program){0};
  if (steps < dv_model_least_steps(m))
    return dv_fail(error, DVBF_FORMAT,
                   "sequences of %d step tell the model %s nothing about time: at least 2 steps are needed; "
                   "model = %s takes single frames",
                   steps, m->type->name, dv_model_timeless());
  dvbf_status status = begin_recording(p, m, steps, rows, flags, error);
  if (status) return status;
  p->observe = observe;
  if (flags & DV_BACKWARD && !(flags & DV_ONE_STEP) && dv_program_resamples(m))
    record_particles(p, m, dv_program_samples(m));
  else
    record_whole(p, m, flags & DV_ONE_STEP);
  return end_recording(p, error);
}

dvbf_status dv_program_record_particles(dvbf_program *p, const dvbf_model *m, int steps, int rows,
                                        int samples, int flags, dvbf_error *error) {
  dvbf_status status = begin_recording(p, m, steps, rows, flags, error);
  if (status) return status;
  p->observe = steps;
  record_particles(p, m, samples);
  return end_recording(p, error);
}

/* The emission of step t alone. */
static void record_emission_at(dvbf_program *p, const dvbf_model *m, int t) {
  dvbf_program one = dv_record_emission_of(p, m, t, 1, dvbf_steps(p->z, t, 1));
  p->output = one.output;
  p->ln_p = one.ln_p;
  memcpy(p->shape, one.shape, sizeof p->shape);
}

/* Values that derivatives are taken of and by. */
static void keep_gradients(const dvbf_program *p) {
  dvbf_keep_gradient(p->graph, p->z);
  dvbf_keep_gradient(p->graph, p->u);
  dvbf_keep_gradient(p->graph, p->output);
}

/* Ends the recording of a part, of which `t` is the step that has an emission; negative: none has. */
static dvbf_status end_part(dvbf_program *p, const dvbf_model *m, int t, dvbf_error *error) {
  if (t >= 0) record_emission_at(p, m, t);
  keep_all(p->graph, (dvbf_value[]){p->x, p->u, p->mask, p->seen, p->weight, p->z, p->v, p->output, p->ln_p},
           9);
  if (t >= 0) keep_densities(p);
  return end_recording(p, error);
}

dvbf_status dv_program_record_step(dvbf_program *p, const dvbf_model *m, int rows, int rank, int flags,
                                   dvbf_error *error) {
  dvbf_status status = begin_recording(p, m, 2, rows, flags, error);
  if (status) return status;
  p->given_v = flags & DV_PARTICLES;
  p->rank = rank;
  p->mean_v = true; /* a thousand exponentials per step for noise far below that of w are not worth it */
  p->observe = 2;
  m->type->step(m->type, p, m);
  return end_part(p, m, flags & DV_PARTICLES ? 1 : -1, error);
}

dvbf_status dv_program_record_start(dvbf_program *p, const dvbf_model *m, int rows, int frames, int flags,
                                    dvbf_error *error) {
  dvbf_status status = begin_recording(p, m, frames, rows, flags, error);
  if (status) return status;
  p->observe = frames;
  m->type->start(m->type, p, m);
  return end_part(p, m, flags & DV_PARTICLES ? 0 : -1, error);
}

dvbf_status dv_program_record_move(dvbf_program *p, const dvbf_model *m, int rows, int flags,
                                   dvbf_error *error) {
  dvbf_status status = begin_recording(p, m, 2, rows, flags, error);
  if (status) return status;
  p->mean_v = flags & DV_DERIVATIVES;
  p->given_v = !p->mean_v;
  if (m->n_u && flags & DV_DERIVATIVES) p->u = dvbf_slab(p->graph, p->steps, m->n_u);
  m->type->move(m->type, p, m);
  dvbf_keep(p->graph, p->later.noise);
  keep_gradients(p);
  return end_part(p, m, -1, error);
}

dvbf_status dv_program_record_emission(dvbf_program *p, const dvbf_model *m, int rows, int flags,
                                       dvbf_error *error) {
  dvbf_status status = begin_recording(p, m, 1, rows, flags, error);
  if (status) return status;
  if (m->n_u && flags & DV_DERIVATIVES) p->u = dvbf_slab(p->graph, p->steps, m->n_u);
  record_emission_at(p, m, 0);
  keep_densities(p);
  keep_gradients(p);
  return end_part(p, m, -1, error);
}

void dv_program_clear(dvbf_program *p) {
  dv_graph_free(p->graph);
  *p = (dvbf_program){0};
}

/* ---- Blocks of long sequences ---- */

dv_step_blocks dv_blocks_of(const dvbf_graph *g, const dvbf_model *m, int steps) {
  int count = dv_graph_training(g) && steps >= 2 * DV_BLOCK_STEPS ? steps / DV_BLOCK_STEPS : 1;
  return (dv_step_blocks){.count = count, .all = steps, .segments = count > 1 && m->segments};
}

static int first_of(const dv_step_blocks *b, int i) {
  return (int)((int64_t)b->all * i / b->count);
}

bool dv_next_block(dvbf_graph *g, dv_step_blocks *b) {
  if (b->segments && b->begun) dv_graph_segment_end(g);
  if (b->begun == b->count) return false;
  int i = b->reverse ? b->count - 1 - b->begun : b->begun;
  b->first = first_of(b, i);
  b->steps = first_of(b, i + 1) - b->first;
  b->begun++;
  if (b->segments) dv_graph_segment_begin(g);
  return true;
}

dvbf_program dv_part_of(const dvbf_program *p, int first, int steps) {
  dvbf_program part = *p;
  part.steps = steps;
  dvbf_value *inputs[] = {&part.x, &part.u, &part.mask, &part.seen, &part.sight, &part.z, &part.kl};
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
    *inputs[i] = dvbf_steps(*inputs[i], first, steps);
  part.later = dv_drawn_steps(&p->later, first, steps - 1);
  part.predicted = dvbf_steps(p->predicted, first, steps - 1);
  part.innovation = dvbf_steps(p->innovation, first, steps - 1);
  return part;
}
