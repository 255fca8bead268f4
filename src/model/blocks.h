/* Long sequences are recorded in blocks of steps.
 *
 * What a model has at every step alone, such as hidden units, takes as much memory as a sequence is long. In
 * programs with gradients the steps are therefore recorded block by block, each with values of its own, and
 * with the setting `segments` each block is a segment of the program (dv_graph_segment_begin), whose values
 * are computed again on the way back. What the steps hand on, such as z, is there for the whole sequence.
 *
 * Blocks depend on the number of steps alone. So a gradient, which is summed over one block after the other,
 * has the same bits with and without segments. */
#ifndef DV_BLOCKS_H
#define DV_BLOCKS_H

#include "model/model.h"

enum { DV_BLOCK_STEPS = 256 }; /* of a block, at least; fewer than twice as many steps are one block */

typedef struct dv_blocks {
  int count, steps; /* blocks, and steps of all of them */
  bool segments;
} dv_blocks;

dv_blocks dv_blocks_of(const dvbf_graph *g, const dvbf_model *m, int steps);
/* Steps first .. first + steps - 1 of them are block i. */
typedef struct dv_stretch {
  int first, steps;
} dv_stretch;
dv_stretch dv_block_at(const dv_blocks *blocks, int i);
/* Around what is recorded of a block. */
void dv_block_begin(dvbf_graph *g, const dv_blocks *blocks);
void dv_block_end(dvbf_graph *g, const dv_blocks *blocks);

/* Steps first .. first + steps - 1 of a program, as a program. What is drawn later is that of all but the
 * first of them. */
dvbf_program dv_part_of(const dvbf_program *p, int first, int steps);

/* Records the emission of `steps` steps from `first` on, with that z, and adds ln p(x_t | z_t) to a term. In
 * the objective it is multiplied by the scalar of that number; -1: by none. */
void dv_record_ln_p(const dvbf_program *p, const dvbf_model *m, int first, int steps, dvbf_value z, int term,
                    int scalar);

#endif
