/* Signals of a page: the reader chooses sequence, column and kind of prediction. */
#ifndef DV_PAGE_SIGNALS_H
#define DV_PAGE_SIGNALS_H

#include "report/page.h"
#include "report/signals.h"

/* `data` has names, units and times. */
dvbf_status dv_page_signals(dvbf_page *page, const dv_signals *signals, const dvbf_data *data,
                            const char *caption, dvbf_error *error);

#endif
