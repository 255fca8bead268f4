/* Ranks that are threads of one process, for tests without MPI. Include it before cmocka.h. */
#ifndef THREADS_CARRIER_H
#define THREADS_CARRIER_H

#include "base/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16 };

static struct {
  int size, joined;
  pthread_barrier_t barrier;
  void *data[MOST_RANKS]; /* what each rank has at hand in this call */
  const dv_parcel *out[MOST_RANKS];
  size_t n_out[MOST_RANKS];
  int exits[MOST_RANKS];
} shared_room;

typedef struct thread_rank {
  int rank;
} thread_rank;

static dvbf_status threads_open(void **state, int *rank, int *size, dvbf_error *error) {
  (void)error;
  thread_rank *r = calloc(1, sizeof *r);
  if (!r) return DVBF_MEMORY;
  r->rank = __atomic_fetch_add(&shared_room.joined, 1, __ATOMIC_SEQ_CST);
  *state = r;
  *rank = r->rank;
  *size = shared_room.size;
  return DVBF_OK;
}

static void threads_close(void *state) {
  free(state);
}

static void all_here(void) {
  pthread_barrier_wait(&shared_room.barrier);
}

static void threads_broadcast(void *state, void *data, size_t bytes) {
  const thread_rank *r = state;
  shared_room.data[r->rank] = data;
  all_here();
  if (r->rank) memcpy(data, shared_room.data[0], bytes);
  all_here();
}

static void threads_gather(void *state, void *data, size_t unit, const size_t *first) {
  const thread_rank *r = state;
  shared_room.data[r->rank] = data;
  all_here();
  for (int from = 0; from < shared_room.size; from++) {
    size_t at = first[from] * unit, bytes = (first[from + 1] - first[from]) * unit;
    if (from != r->rank && bytes) memcpy((char *)data + at, (char *)shared_room.data[from] + at, bytes);
  }
  all_here();
}

/* Every rank takes the parcels that others have for it, in their order. */
static void threads_exchange(void *state, const dv_parcel *out, size_t n_out, const dv_parcel *in,
                             size_t n_in) {
  const thread_rank *r = state;
  size_t taken[MOST_RANKS] = {0};
  shared_room.out[r->rank] = out;
  shared_room.n_out[r->rank] = n_out;
  all_here();
  for (size_t i = 0; i < n_in; i++) {
    int from = in[i].rank;
    size_t *at = &taken[from];
    while (*at < shared_room.n_out[from] && shared_room.out[from][*at].rank != r->rank) ++*at;
    if (*at == shared_room.n_out[from] || shared_room.out[from][*at].bytes != in[i].bytes) abort();
    memcpy(in[i].data, shared_room.out[from][*at].data, in[i].bytes);
    ++*at;
  }
  all_here();
}

static bool threads_meet(void *state, int mine, int *all, double seconds) {
  (void)seconds;
  const thread_rank *r = state;
  shared_room.exits[r->rank] = mine;
  all_here();
  memcpy(all, shared_room.exits, (size_t)shared_room.size * sizeof *all);
  all_here();
  return true;
}

static void threads_hurry(void *state, const volatile int *flag) {
  (void)state, (void)flag;
}

static void threads_abort(void *state, int status) {
  (void)state;
  exit(status);
}

static const dv_ranks_transport threads_carrier = {.version = DVBF_VERSION,
                                                   .open = threads_open,
                                                   .close = threads_close,
                                                   .broadcast = threads_broadcast,
                                                   .gather = threads_gather,
                                                   .exchange = threads_exchange,
                                                   .meet = threads_meet,
                                                   .hurry = threads_hurry,
                                                   .abort = threads_abort};

typedef struct rank_call {
  void (*work)(dv_ranks *team, void *user);
  void *user;
  bool failed;
} rank_call;

static void *rank_thread(void *argument) {
  rank_call *call = argument;
  dv_ranks *team = NULL;
  call->failed = dv_ranks_new(&team, &threads_carrier, NULL);
  if (call->failed) exit(1); /* the others would wait for ever */
  call->work(team, call->user);
  dvbf_ranks_finish(team, 0);
  dvbf_ranks_free(team, 0);
  return NULL;
}

/* Calls work(team, user) on `size` ranks at once. It must not assert: ranks are threads. */
static inline void run_ranks(int size, void (*work)(dv_ranks *team, void *user), void *user) {
  pthread_t threads[MOST_RANKS];
  rank_call calls[MOST_RANKS];
  shared_room.size = size;
  shared_room.joined = 0;
  pthread_barrier_init(&shared_room.barrier, NULL, (unsigned)size);
  for (int i = 0; i < size; i++) {
    calls[i] = (rank_call){work, user, false};
    if (pthread_create(&threads[i], NULL, rank_thread, &calls[i])) exit(1);
  }
  for (int i = 0; i < size; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&shared_room.barrier);
}

#endif
