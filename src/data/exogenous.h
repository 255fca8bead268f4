/* Columns of x that look like inputs. */
#ifndef DV_EXOGENOUS_H
#define DV_EXOGENOUS_H

#include "base/settings.h"

/* Marks the columns whose next value the past of the others does not help to predict, while their past helps
 * much to predict the others (Granger). Nothing is marked where there are too few steps, or too many
 * columns. */
dvbf_status dv_exogenous(bool *out /* [n_x] */, const dvbf_sequences *s, dvbf_error *error);

#endif
