/* Search: several candidates are trained, judged and dropped by and by; the best few become a committee. */
#ifndef DV_SEARCH_H
#define DV_SEARCH_H

#include <dvbf/dvbf.h>

/* Trains as dvbf_train does, by a search. */
dvbf_status dv_search_train(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                            const dvbf_train_options *options, dvbf_error *error);

#endif
