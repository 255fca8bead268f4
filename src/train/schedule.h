/* What changes with the number of updates. */
#ifndef DV_SCHEDULE_H
#define DV_SCHEDULE_H

#include "engine/engine.h"
#include "model/settings.h"

/* The conditions of update i (from 0) for noise of `seed`; `scale` and `noise_free` are the caller's. */
dv_conditions dv_schedule_at(const dv_train_settings *s, uint64_t i, uint64_t seed);
/* The number of update i in its phase, from 0. */
uint64_t dv_phase_update(const dv_train_settings *s, uint64_t i);
/* The update at which the last phase goes over from the gain to the spread. */
uint64_t dv_gain_updates(const dv_train_settings *s);
/* Updates of both phases. */
uint64_t dv_all_updates(const dv_train_settings *s);
double dv_learning_rate_at(const dv_train_settings *s, uint64_t i);

#endif
