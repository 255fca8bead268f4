/* Worker threads that run the same function at the same time. The caller is worker 0. */
#ifndef DV_POOL_H
#define DV_POOL_H

#include <dvbf/core.h>

typedef struct dv_pool dv_pool;

/* threads = 0: as many as the process may use cores. */
dvbf_status dv_pool_new(dv_pool **out, unsigned threads, dvbf_error *error);
void dv_pool_free(dv_pool *pool);
int dv_pool_size(const dv_pool *pool);

/* Calls job(user, worker) on every worker and returns when all are done. */
void dv_pool_run(dv_pool *pool, void (*job)(void *user, int worker), void *user);
/* Inside a job: returns when all workers have come here. */
void dv_pool_barrier(dv_pool *pool);

#endif
