/* Bounds of several samples of a sequence, which are groups of rows: one of whole paths, and one of a
 * particle filter (Maddison et al. 2017, Le et al. 2018, Naesseth et al. 2018),
 *
 *   sum_t ln 1/K sum_k p(x_t | z_t^k) p(w_t^k) / q(w_t^k),
 *
 * where every step begins at rows that were drawn anew by their weights in the step before. The latter is
 * recorded as start and steps of the model, as a filter runs them. */
#include "model/weighted.h"

#include "engine/engine.h"
#include "model/blocks.h"
#include "op/op.h"

static dvbf_value record_ratio(const dvbf_program *p, const dvbf_model *m, const dvbf_drawn *drawn) {
  if (drawn->value.buffer < 0) return DVBF_NONE;
  dvbf_value out = dvbf_slab(p->graph, drawn->value.steps, 1);
  dv_record_ln_ratio(p->graph, out, drawn, m->settings->log_sigma_min, m->settings->log_sigma_max);
  return out;
}

void dv_record_paths(dvbf_program *p, const dvbf_model *m, int samples) {
  dvbf_graph *g = p->graph;
  int term = dvbf_term(g, DVBF_IMPORTANCE, -1);
  if (dv_blocks_of(g, m, p->steps).count > 1)
    dvbf_refuse(g, "importance-samples takes sequences whole: segments must be off, or window below 512");
  dvbf_value first = record_ratio(p, m, &p->first), later = record_ratio(p, m, &p->later);
  dv_record_importance(g, term, samples, p->ln_p, first, later, p->weight);
}

static bool can_resample(dvbf_program *p, const dvbf_model *m) {
  const dv_train_settings *s = m->settings;
  if (!m->type->start || !m->type->step || m->type->no_weights)
    dvbf_refuse(p->graph, "resample = on needs a model that can filter, which %s cannot: leave it off",
                m->type->name);
  else if (m->type->rows_share && m->type->rows_share(m->type, m->settings_object))
    dvbf_refuse(p->graph, "resample = on takes universal = point, and not a distribution");
  else if (s->recognition == DV_SMOOTHING)
    dvbf_refuse(p->graph,
                "resample = on takes recognition = filtering: a particle filter sees no later frames");
  else
    return true;
  return false;
}

/* The weights of rows whose step t of the part has been made: their term, and what they are. */
static dvbf_value weigh(const dvbf_program *part, const dvbf_model *m, const dvbf_drawn *drawn, int t,
                        int samples) {
  dvbf_graph *g = part->graph;
  dvbf_program one = dv_record_emission_of(part, m, t, 1, dvbf_steps(part->z, t, 1));
  dvbf_value none = DVBF_NONE;
  return dv_record_importance(g, dvbf_term(g, DVBF_IMPORTANCE, -1), samples, one.ln_p,
                              record_ratio(part, m, drawn), none, part->weight);
}

void dv_record_particles(dvbf_program *p, const dvbf_model *m, int samples) {
  dvbf_graph *g = p->graph;
  if (!can_resample(p, m)) return;
  int asked = dv_model_start_frames(m), frames = asked && asked < p->steps ? asked : p->steps;
  dvbf_program part = dv_part_of(p, 0, frames);
  part.mean_v = true;
  part.observe = frames;
  part.z = dvbf_slab(g, 1, m->n_z);
  m->type->start(m->type, &part, m);
  dvbf_value z = part.z, s = weigh(&part, m, &part.first, 0, samples);
  int streams = dv_graph_noise_count(g);
  for (int t = 0; t + 1 < p->steps; t++) {
    part = dv_part_of(p, t, 2);
    part.mean_v = true;
    part.observe = 2;
    part.z = dvbf_slab(g, 2, m->n_z);
    dv_graph_noise_from(g, streams, t);
    dv_record_resample(g, dvbf_steps(part.z, 0, 1), z, s, samples);
    m->type->step(m->type, &part, m);
    z = dvbf_steps(part.z, 1, 1);
    s = weigh(&part, m, &part.later, 1, samples);
  }
  dvbf_scalar(g, DVBF_FILTER_WAIT, dv_model_recognises_from(m) - 1);
}
