/* Worker threads that run one function together, with a barrier inside (dv_threads_run, dv_threads_barrier),
 * and loops over items that threads and ranks share (dv_threads_each). Results never depend on the number of
 * threads: callers reduce in the order of items. */
#include "engine/threads.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "math/portable.h"

#include <pthread.h>
#include <stdatomic.h>

/* Turns that a wait spins before it sleeps: a barrier takes microseconds, waking a thread takes more. */
enum { SPINS = 2000 };

typedef struct gate {
  _Alignas(64) atomic_uint arrived;
  _Alignas(64) atomic_uint turn;
  atomic_uint sleepers;
  pthread_mutex_t lock;
  pthread_cond_t opened;
} gate;

struct dv_threads {
  gate gate; /* of the barrier; starting and ending a job passes it too */
  int size, started;
  void (*job)(void *user, int worker);
  void *user;
  bool portable; /* arithmetic of the job, that of the caller */
  bool leaving;
  const volatile int *interrupt;
  dv_ranks *team;
  struct worker {
    struct dv_threads *pool;
    int number;
    pthread_t thread;
  } workers[]; /* [size - 1] */
};

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

void dv_threads_barrier(dv_threads *pool) {
  gate *g = &pool->gate;
  if (pool->size == 1) return;
  unsigned turn = atomic_load_explicit(&g->turn, memory_order_acquire);
  if (atomic_fetch_add_explicit(&g->arrived, 1, memory_order_acq_rel) + 1 == (unsigned)pool->size) {
    atomic_store_explicit(&g->arrived, 0, memory_order_relaxed);
    atomic_store(&g->turn, turn + 1);
    if (atomic_load(&g->sleepers)) {
      pthread_mutex_lock(&g->lock);
      pthread_cond_broadcast(&g->opened);
      pthread_mutex_unlock(&g->lock);
    }
    return;
  }
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(&g->turn, memory_order_acquire) != turn) return;
    relax();
  }
  pthread_mutex_lock(&g->lock);
  atomic_fetch_add(&g->sleepers, 1);
  while (atomic_load(&g->turn) == turn) pthread_cond_wait(&g->opened, &g->lock);
  atomic_fetch_sub(&g->sleepers, 1);
  pthread_mutex_unlock(&g->lock);
}

static void *work(void *argument) {
  struct worker *w = argument;
  dv_threads *pool = w->pool;
  for (;;) {
    dv_threads_barrier(pool);
    if (pool->leaving) return NULL;
    dv_portable = pool->portable;
    dv_flush_denormals();
    pool->job(pool->user, w->number);
    dv_threads_barrier(pool);
  }
}

void dv_threads_run(dv_threads *pool, void (*job)(void *user, int worker), void *user) {
  pool->job = job;
  pool->user = user;
  pool->portable = dv_portable;
  dv_threads_barrier(pool);
  unsigned before = dv_flush_denormals();
  job(user, 0);
  dv_restore_denormals(before);
  dv_threads_barrier(pool);
}

dvbf_status dv_threads_new(dv_threads **out, unsigned threads, dvbf_error *error) {
  int size = threads ? (int)threads : dv_cores();
  size_t bytes = sizeof(dv_threads) + (size_t)size * sizeof(struct worker);
  dv_threads *pool = size > 0 ? dv_calloc_aligned(1, bytes) : NULL;
  if (!pool) return dv_fail_memory(error, "starting threads");
  pool->size = size;
  pthread_mutex_init(&pool->gate.lock, NULL);
  pthread_cond_init(&pool->gate.opened, NULL);
  for (; pool->started + 1 < size; pool->started++) {
    struct worker *w = &pool->workers[pool->started];
    *w = (struct worker){.pool = pool, .number = pool->started + 1};
    if (pthread_create(&w->thread, NULL, work, w)) break;
  }
  if (pool->started + 1 < size) {
    int got = pool->started + 1;
    dv_threads_free(pool);
    return dv_fail(error, DVBF_MEMORY, "threads = %d: the system allows no more than %d; use fewer", size,
                   got);
  }
  *out = pool;
  return DVBF_OK;
}

void dv_threads_free(dv_threads *pool) {
  if (!pool) return;
  pool->leaving = true;
  if (pool->size > 1) {
    /* Stands in at the gate for threads that were not started. */
    for (int missing = pool->started + 1; missing < pool->size; missing++)
      atomic_fetch_add(&pool->gate.arrived, 1);
    dv_threads_barrier(pool);
    for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
  }
  pthread_mutex_destroy(&pool->gate.lock);
  pthread_cond_destroy(&pool->gate.opened);
  dv_free(pool);
}

int dv_threads_size(const dv_threads *pool) {
  return pool->size;
}

void dv_threads_stop_by(dv_threads *pool, const volatile int *interrupt) {
  pool->interrupt = interrupt;
}

const volatile int *dv_threads_interrupt(const dv_threads *pool) {
  return pool->interrupt;
}

void dv_threads_join(dv_threads *pool, dv_ranks *team) {
  pool->team = team;
}

dv_ranks *dv_threads_ranks(const dv_threads *pool) {
  return pool->team;
}

typedef struct items {
  const dv_each *work;
  unsigned char *own;          /* [workers][size] */
  size_t workers, first, last; /* items of this rank */
  void *user;
  const volatile int *interrupt;
} items;

static void run_items(void *user, int worker) {
  const items *all = user;
  void *own = all->own + (size_t)worker * all->work->size;
  for (size_t i = all->first + (size_t)worker; i < all->last && !dv_interrupted(all->interrupt);
       i += all->workers)
    all->work->run(own, all->user, i);
}

dvbf_status dv_threads_each(dv_threads *pool, const dv_each *work, size_t count, void *user,
                            dvbf_error *error) {
  items all = {.work = work,
               .workers = (size_t)dv_threads_size(pool),
               .first = dv_ranks_first(pool->team, count, dv_ranks_rank(pool->team)),
               .last = dv_ranks_first(pool->team, count, dv_ranks_rank(pool->team) + 1),
               .user = user,
               .interrupt = pool->interrupt};
  all.own = dv_calloc(all.workers, work->size);
  if (!all.own) return dv_fail_memory(error, "starting threads");
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < all.workers && !status; i++)
    status = work->init(all.own + i * work->size, user, error);
  if (!status) dv_threads_run(pool, run_items, &all);
  if (!status && dv_interrupted(pool->interrupt)) status = dv_fail_stopped(error);
  for (size_t i = 0; i < all.workers; i++) work->clear(all.own + i * work->size);
  dv_free(all.own);
  return status;
}
