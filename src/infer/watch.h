/* Tells how far a long computation is, now and then, on the thread that began it. */
#ifndef DV_WATCH_H
#define DV_WATCH_H

#include <dvbf/core.h>

#include <pthread.h>

/* Units of work: of a step of the particle filter, and of a step back of the smoother, which takes longer. */
enum { DV_WATCH_FORTH = 1, DV_WATCH_BACK = 3 };

typedef struct dv_watch {
  dvbf_share_fn *tell;
  void *user;
  double first, part; /* what was done before, and the part of all that is watched now */
  uint64_t all, done; /* units of that part */
  pthread_t teller;   /* the thread that tells */
  double told;        /* seconds on the clock */
} dv_watch;

/* Begins a part of `all` units. The watch may be NULL here and below. */
void dv_watch_begin(dv_watch *watch, uint64_t all);
/* Adds what is done, on any thread. The one that began tells of it. */
void dv_watch_add(dv_watch *watch, uint64_t units);

#endif
