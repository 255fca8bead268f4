/* Worker threads that run the same function at the same time. The caller is worker 0. */
#ifndef DV_POOL_H
#define DV_POOL_H

#include "base/team.h"

typedef struct dv_pool dv_pool;

/* threads = 0: as many as the process may use cores. */
dvbf_status dv_pool_new(dv_pool **out, unsigned threads, dvbf_error *error);
void dv_pool_free(dv_pool *pool);
int dv_pool_size(const dv_pool *pool);

/* Work by this pool ends soon after the caller's flag is set (dvbf_settings_interrupt); NULL, as at first:
 * none. */
void dv_pool_stop_by(dv_pool *pool, const volatile int *interrupt);
const volatile int *dv_pool_interrupt(const dv_pool *pool);

/* The ranks of which each has such a pool and does its share of the work; NULL, as at first: this one alone.
 */
void dv_pool_join(dv_pool *pool, dv_team *team);
dv_team *dv_pool_team(const dv_pool *pool);

/* Calls job(user, worker) on every worker and returns when all are done. */
void dv_pool_run(dv_pool *pool, void (*job)(void *user, int worker), void *user);
/* Work on items 0 .. count - 1 for which every worker has a struct of its own, of `size` bytes that are 0 at
 * first. Where the pool has a team they are shared out as by dv_team_first, and the caller gathers what was
 * made of them; the workers of a rank take turns. Fails with DVBF_STOPPED where the flag was set. */
typedef struct dv_each {
  size_t size;
  dvbf_status (*init)(void *own, void *user, dvbf_error *error);
  void (*run)(void *own, void *user, size_t item);
  void (*clear)(void *own); /* also after a failure */
} dv_each;
dvbf_status dv_pool_each(dv_pool *pool, const dv_each *work, size_t count, void *user, dvbf_error *error);
/* Inside a job: returns when all workers have come here. */
void dv_pool_barrier(dv_pool *pool);

#endif
