/* Blocks of long sequences, and bounds of several samples, for programs of a model. */
#pragma once

#include "model/model.h"

/* ---- Blocks ---- */

/* From 512 steps on, programs with gradients are recorded in blocks. Values of single steps, such as hidden
 * units, belong to a block; z and what else passes between steps to the whole sequence. With the setting
 * `segments` each block is a segment (dv_graph_segment_begin), recomputed in the backward pass, so that all
 * blocks share memory.
 *
 * Blocks depend on the number of steps alone, so a gradient, which is summed block after block, has the same
 * bits with and without segments. */

enum { DV_BLOCK_STEPS = 256 }; /* of a block, at least; fewer than twice as many steps are one block */

typedef struct dv_step_blocks {
  int count, all;   /* blocks, and steps of all of them */
  int begun;        /* blocks */
  int first, steps; /* of the block that is recorded now */
  bool reverse;     /* the last comes first */
  bool segments;
} dv_step_blocks;

dv_step_blocks dv_blocks_of(const dvbf_graph *g, const dvbf_model *m, int steps);
/* Ends the recording of a block and begins that of the next or of the first; false: there are no more. */
bool dv_next_block(dvbf_graph *g, dv_step_blocks *blocks);

/* Steps first .. first + steps - 1 of a program, as a program. `later` has the draws of all but the first of
 * them. */
dvbf_program dv_part_of(const dvbf_program *p, int first, int steps);

/* Records the emission of `steps` steps from `first` on, with that z, and adds ln p(x_t | z_t) to a term. In
 * the objective it is multiplied by the scalar of that number; -1: by none. */
void dv_record_ln_p(const dvbf_program *p, const dvbf_model *m, int first, int steps, dvbf_value z, int term,
                    int scalar);
