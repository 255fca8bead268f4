/* Worker threads that run the same function at the same time. The caller is worker 0. */
#pragma once

#include "base/ranks.h"

typedef struct dv_threads dv_threads;

/* threads = 0: as many as there are cores. */
dvbf_status dv_threads_new(dv_threads **out, unsigned threads, dvbf_error *error);
void dv_threads_free(dv_threads *pool);
int dv_threads_size(const dv_threads *pool);

/* Their work ends soon after the flag is set (dvbf_settings_interrupt); NULL (at first): no flag. */
void dv_threads_stop_by(dv_threads *pool, const volatile int *interrupt);
const volatile int *dv_threads_interrupt(const dv_threads *pool);

/* Ranks that share the work, each with such threads; NULL (at first): this one alone. */
void dv_threads_join(dv_threads *pool, dv_ranks *team);
dv_ranks *dv_threads_ranks(const dv_threads *pool);

/* Calls job(user, worker) on every worker and returns when all are done. */
void dv_threads_run(dv_threads *pool, void (*job)(void *user, int worker), void *user);
/* Runs items 0 .. count - 1; each worker has a struct of `size` bytes, zero at first. Ranks divide the items
 * as by dv_ranks_first, and the caller gathers the results. DVBF_STOPPED: the flag was set. */
typedef struct dv_each {
  size_t size;
  dvbf_status (*init)(void *own, void *user, dvbf_error *error);
  void (*run)(void *own, void *user, size_t item);
  void (*clear)(void *own); /* also after a failure */
} dv_each;
dvbf_status dv_threads_each(dv_threads *pool, const dv_each *work, size_t count, void *user,
                            dvbf_error *error);
/* Inside a job: returns when all workers have come here. */
void dv_threads_barrier(dv_threads *pool);
