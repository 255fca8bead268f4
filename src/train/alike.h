/* Whether ranks can train together. */
#ifndef DV_ALIKE_H
#define DV_ALIKE_H

#include "exec/team.h"

#include <dvbf/core.h>

/* Refuses ranks with other settings, data or instruction sets than those of the first: they would come to
 * different models, or wait for each other for ever. */
dvbf_status dv_ranks_alike(dv_team *team, const dvbf_settings *settings, const dvbf_data *data,
                           dvbf_error *error);

#endif
