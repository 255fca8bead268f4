#include "infer/watch.h"

#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void dv_watch_begin(dv_watch *w, uint64_t all) {
  if (!w) return;
  w->all = all;
  w->done = 0;
  w->teller = pthread_self();
  w->told = now();
}

void dv_watch_add(dv_watch *w, uint64_t units) {
  const double pause = 0.1;
  if (!w) return;
  uint64_t done = __atomic_add_fetch(&w->done, units, __ATOMIC_RELAXED);
  if (!pthread_equal(pthread_self(), w->teller) || now() - w->told < pause) return;
  w->told = now();
  w->tell(w->first + w->part * (double)done / (double)w->all, w->user);
}
