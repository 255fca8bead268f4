/* Failures inside the library: one sentence into a dvbf_error, and the status to return. */
#ifndef DV_STATUS_H
#define DV_STATUS_H

#include <dvbf/dvbf.h>

/* Fills *error (may be NULL) and returns `status`, so that a failing function ends in `return dv_fail(...)`. */
dvbf_status dv_fail(dvbf_error *error, dvbf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a lack of memory while doing `what`. */
dvbf_status dv_fail_memory(dvbf_error *error, const char *what);

#endif
