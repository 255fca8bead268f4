/* Whether ranks can work together. */
#ifndef DV_ALIKE_H
#define DV_ALIKE_H

#include "base/team.h"

#include <dvbf/core.h>

/* Refuses ranks with other settings, data (by their fingerprint) or instruction sets than those of the first:
 * they would come to different results, or wait for each other for ever. */
dvbf_status dv_ranks_alike(dv_team *team, const dvbf_settings *settings, uint64_t data, dvbf_error *error);
/* The same for ranks that use a model. */
dvbf_status dv_ranks_use_alike(dv_team *team, const dvbf_settings *settings, const dvbf_model *model,
                               const dvbf_sequences *sequences, dvbf_error *error);

#endif
