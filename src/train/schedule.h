/* What changes with the number of updates. */
#ifndef DV_SCHEDULE_H
#define DV_SCHEDULE_H

#include "base/settings.h"
#include "engine/engine.h"

/* The conditions of update i (from 0) for noise of `seed`; scale, sequences and mean_path are the caller's.
 */
dv_conditions dv_schedule_at(const dv_train_settings *s, uint64_t i, uint64_t seed);
double dv_learning_rate_at(const dv_train_settings *s, uint64_t i);

#endif
