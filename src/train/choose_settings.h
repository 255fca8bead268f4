/* Settings chosen for the data, and the facts about data that the choices follow from. */
#pragma once

#include "data/dataset.h"

#include <dvbf/dvbf.h>

/* Facts about data, shared by the choices of several settings. */
typedef struct dv_profile dv_profile;

/* The data must stay. `further`: also facts from a linear model. */
dvbf_status dv_profile_new(dv_profile **out, const dvbf_data *data, bool further,
                           const volatile int *interrupt, dvbf_error *error);
void dv_profile_free(dv_profile *facts);

/* Of the longest sequence that trains. */
size_t dv_profile_steps(const dv_profile *facts);

/* As dvbf_settings_choose. */
dvbf_status dv_choose_settings(dvbf_settings *settings, const dv_profile *facts, dvbf_choice_fn *each,
                               void *user_data, dvbf_error *error);
