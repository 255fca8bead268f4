/* First values of a model whose x is its state (start = state): z_1 = x_1, x = z, and the linear paths of the
 * transition are those of least squares. Its motion alone is trained, so that z stays what it is. */
#ifndef DV_STATE_H
#define DV_STATE_H

#include "model/model.h"

/* Sets the parameters of a new model. Refuses one that cannot have such a state. Dimensions of z beyond those
 * of x begin at 0. */
dvbf_status dv_start_state(dvbf_model *m, const dvbf_sequences *train, dvbf_error *error);

/* The parameters whose names begin with one of these, which end with NULL. */
dvbf_status dv_part_named(dv_part *out, const dvbf_model *m, const char *const *beginnings,
                          dvbf_error *error);

/* Sets a parameter to 0 and returns its values; NULL: there is none of the name. */
dvbf_real *dv_state_clear(const dvbf_model *m, const char *name);
/* z_1 = w_1, whose mean is 0 where nothing is put into initial.output, with that deviation. */
void dv_state_plain_start(const dvbf_model *m, double deviation);
/* First entry of v that is a linear path of the mlp transition, from z, then from u: [n_z + n_u][n_z]. */
size_t dv_state_paths(const dvbf_model *m);

#endif
