#include "model/blocks.h"

#include "engine/engine.h"

dv_blocks dv_blocks_of(const dvbf_graph *g, const dvbf_model *m, int steps) {
  int count = dv_graph_training(g) && steps >= 2 * DV_BLOCK_STEPS ? steps / DV_BLOCK_STEPS : 1;
  return (dv_blocks){count, steps, count > 1 && m->settings->segments};
}

static int first_of(const dv_blocks *b, int i) {
  return (int)((int64_t)b->steps * i / b->count);
}

dv_stretch dv_block_at(const dv_blocks *b, int i) {
  int first = first_of(b, i);
  return (dv_stretch){first, first_of(b, i + 1) - first};
}

void dv_block_begin(dvbf_graph *g, const dv_blocks *b) {
  if (b->segments) dv_graph_segment_begin(g);
}

void dv_block_end(dvbf_graph *g, const dv_blocks *b) {
  if (b->segments) dv_graph_segment_end(g);
}

/* Some steps of a value, if there is any. */
static dvbf_value some(dvbf_value value, int first, int steps) {
  return value.buffer < 0 ? value : dvbf_steps(value, first, steps);
}

dvbf_program dv_part_of(const dvbf_program *p, int first, int steps) {
  dvbf_program part = *p;
  part.steps = steps;
  dvbf_value *inputs[] = {&part.x, &part.u, &part.mask, &part.seen, &part.sight, &part.z, &part.kl};
  dvbf_value *moves[] = {&part.later.value, &part.later.head, &part.later.noise,
                         &part.later.use,   &part.predicted,  &part.innovation};
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) *inputs[i] = some(*inputs[i], first, steps);
  for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) *moves[i] = some(*moves[i], first, steps - 1);
  return part;
}
