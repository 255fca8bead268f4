/* Failures inside the library: one sentence into a dvbf_error, and the status to return. */
#pragma once

#include <dvbf/core.h>

/* Fills *error (may be NULL). */
void dv_report(dvbf_error *error, dvbf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with the value `status`, so that a failing function ends in `return dv_fail(...)`. */
#define dv_fail(error, status, ...) (dv_report((error), (status), __VA_ARGS__), (status))

/* A lack of memory while doing `what`. */
#define dv_fail_memory(error, what)                                                                          \
  dv_fail(error, DVBF_MEMORY, "out of memory while %s; use a smaller batch-size or data set", what)

/* Whether it failed for lack of memory, because of a file or by the caller's flag, not by the data. */
static inline bool dv_failed_outside(dvbf_status status) {
  return status == DVBF_MEMORY || status == DVBF_IO || status == DVBF_STOPPED;
}

/* Work that the caller's flag has ended. */
#define dv_fail_stopped(error) dv_fail(error, DVBF_STOPPED, "stopped on request")
