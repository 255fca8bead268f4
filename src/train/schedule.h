/* What changes with the number of updates. */
#ifndef DV_SCHEDULE_H
#define DV_SCHEDULE_H

#include "engine/engine.h"
#include "model/settings.h"

/* The conditions of update i (from 0) for noise of `seed`; scale, sequences and mean_path are the caller's.
 */
dv_conditions dv_schedule_at(const dv_train_settings *s, uint64_t i, uint64_t seed);
/* Whether update i belongs to the last phase, which trains the filter alone, and its number in its phase. */
bool dv_filter_phase(const dv_train_settings *s, uint64_t i);
uint64_t dv_phase_update(const dv_train_settings *s, uint64_t i);
/* The update at which the last phase goes over from the gain to the spread. */
uint64_t dv_gain_updates(const dv_train_settings *s);
/* Updates of both phases. */
uint64_t dv_all_updates(const dv_train_settings *s);
double dv_learning_rate_at(const dv_train_settings *s, uint64_t i);

#endif
