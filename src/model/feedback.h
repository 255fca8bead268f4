/* Models that read their own frames: what they read where a frame was not seen. */
#ifndef DV_FEEDBACK_H
#define DV_FEEDBACK_H

#include "model/density.h"

/* out [1][rows][n_x] = x of step t where it is seen, and elsewhere a draw from p(x_t | z_t) or, in programs
 * with gradients and runs without noise, its mean. z of step t must have been written. unseen: nothing of x
 * is looked at. */
void dv_record_feedback(dvbf_program *p, const dvbf_model *m, dvbf_value out, int t, bool unseen);

/* Whether a program of whole sequences may meet frames that are not seen before its last. (Past the end of a
 * short sequence nothing counts.) */
bool dv_feedback_needed(const dvbf_program *p);
/* The same of a program of a single step: with gradients, it is a step of training on whole sequences. */
bool dv_feedback_of_step(const dvbf_program *p);

#endif
