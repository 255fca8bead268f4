/* Settings that suit the data. */
#ifndef DV_SUIT_H
#define DV_SUIT_H

#include <dvbf/dvbf.h>

/* What there is to know about data, so that several settings can be made for them. */
typedef struct dv_facts dv_facts;

/* The data must stay. */
dvbf_status dv_facts_new(dv_facts **out, const dvbf_data *data, const volatile int *interrupt,
                         dvbf_error *error);
void dv_facts_free(dv_facts *facts);

/* Of the longest sequence that trains. */
size_t dv_facts_steps(const dv_facts *facts);

/* As dvbf_settings_suit. */
dvbf_status dv_settings_suit(dvbf_settings *settings, const dv_facts *facts, dvbf_choice_fn *each,
                             void *user_data, dvbf_error *error);

#endif
