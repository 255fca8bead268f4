/* Messages between ranks over MPI. This file alone knows MPI; it is a library of its own that is loaded where
 * mpirun has started the process (src/base/ranks.c).
 *
 * Calls do not block inside MPI, whose waits would keep a core busy and would never end where a network is
 * cut: they are begun, and then asked about until they are done or patience is over. */
#include "base/ranks.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow" /* takes MPICH's MPI_STATUSES_IGNORE for an array */
#endif

typedef struct mpi_state {
  MPI_Comm work, end; /* what happens at the end of a rank does not mix with the work of others */
  int rank, size;
  int *counts, *firsts;  /* [size] of a gather */
  int *room;             /* [size] of a meeting, which may never end */
  MPI_Request *requests; /* [n_requests] */
  size_t n_requests;
  double patience; /* seconds */
  const volatile int *hurry;
} mpi_state;

enum { SPINS = 2000, NAP = 50000 /* ns */, PATIENCE = 600 /* s */, BRIEFLY = 10 /* s */ };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How long this rank waits for others before it takes them for lost. */
static double patience(void) {
  const char *text = getenv("DVBF_PATIENCE");
  double seconds = text ? strtod(text, NULL) : 0;
  return seconds > 0 ? seconds : PATIENCE;
}

static void end_all(void *state, int status) {
  (void)state;
  fflush(NULL);
  MPI_Abort(MPI_COMM_WORLD, status);
  _exit(status);
}

/* False: `seconds` have passed; 0: for ever. After a while it naps between questions, for ranks that share a
 * core. */
static bool wait_for(const mpi_state *s, MPI_Request *requests, size_t count, double seconds) {
  struct timespec nap = {.tv_nsec = NAP};
  double began = 0;
  for (unsigned turn = 0;; turn++) {
    int done = 0;
    MPI_Testall((int)count, requests, &done, MPI_STATUSES_IGNORE);
    if (done) return true;
    if (turn < SPINS) {
      if (turn % 64 == 63) sched_yield();
      continue;
    }
    if (turn == SPINS) began = now();
    double limit = seconds > BRIEFLY && s->hurry && *s->hurry ? BRIEFLY : seconds;
    if (limit > 0 && now() - began > limit) return false;
    nanosleep(&nap, NULL);
  }
}

static void wait_or_end(const mpi_state *s, MPI_Request *requests, size_t count) {
  char host[64] = "?";
  if (wait_for(s, requests, count, s->patience)) return;
  gethostname(host, sizeof host - 1);
  if (s->hurry && *s->hurry)
    fprintf(stderr, "dvbf: rank %d of %d on %s was told to stop, and others are gone; --resume goes on\n",
            s->rank, s->size, host);
  else
    fprintf(stderr,
            "dvbf: rank %d of %d on %s has heard nothing of the others for %g s (DVBF_PATIENCE) and ends; "
            "--resume goes on\n",
            s->rank, s->size, host, s->patience);
  end_all(NULL, 1);
}

static dvbf_status fail(dvbf_error *error, const char *sentence) {
  if (error) {
    error->status = DVBF_MEMORY;
    snprintf(error->message, sizeof error->message, "%s", sentence);
  }
  return DVBF_MEMORY;
}

/* Room for so many requests at once. */
static void make_room(mpi_state *s, size_t count) {
  if (count <= s->n_requests) return;
  free(s->requests);
  s->requests = malloc(count * sizeof(MPI_Request));
  s->n_requests = count;
  if (s->requests) return;
  fprintf(stderr, "dvbf: rank %d: out of memory for messages\n", s->rank);
  end_all(NULL, 1);
}

static void carry_close(void *state) {
  mpi_state *s = state;
  int done = 0;
  MPI_Finalized(&done);
  if (!done) MPI_Finalize();
  free(s->counts);
  free(s->firsts);
  free(s->room);
  free(s->requests);
  free(s);
}

/* ---- Joining ---- */

/* MPI waits for ever for ranks that die before they have joined, and cannot be asked meanwhile. */
typedef struct guard {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t over;
  bool joined, watched;
} guard;

static void *watch(void *user) {
  guard *g = user;
  struct timespec until;
  double limit = patience();
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)limit;
  pthread_mutex_lock(&g->lock);
  while (!g->joined)
    if (pthread_cond_timedwait(&g->over, &g->lock, &until) == ETIMEDOUT && !g->joined) {
      fprintf(stderr,
              "dvbf: the other ranks did not come within %g s (DVBF_PATIENCE), and this one ends; --resume "
              "goes on\n",
              limit);
      fflush(NULL);
      _exit(1);
    }
  pthread_mutex_unlock(&g->lock);
  return NULL;
}

static void join_world(void) {
  guard g = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};
  int given = 0;
  g.watched = !pthread_create(&g.thread, NULL, watch, &g);
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
  pthread_mutex_lock(&g.lock);
  g.joined = true;
  pthread_cond_signal(&g.over);
  pthread_mutex_unlock(&g.lock);
  if (g.watched) pthread_join(g.thread, NULL);
}

static dvbf_status carry_open(void **state, int *rank, int *size, dvbf_error *error) {
  mpi_state *s = calloc(1, sizeof *s);
  if (!s) return fail(error, "out of memory while joining the other ranks");
  /* A single copy needs rights that containers do not give, and says so. */
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  join_world();
  MPI_Comm_dup(MPI_COMM_WORLD, &s->work);
  MPI_Comm_dup(MPI_COMM_WORLD, &s->end);
  MPI_Comm_rank(s->work, &s->rank);
  MPI_Comm_size(s->work, &s->size);
  s->patience = patience();
  s->counts = calloc((size_t)s->size, sizeof *s->counts);
  s->firsts = calloc((size_t)s->size, sizeof *s->firsts);
  s->room = calloc((size_t)s->size, sizeof *s->room);
  if (!s->counts || !s->firsts || !s->room) {
    carry_close(s);
    return fail(error, "out of memory while joining the other ranks");
  }
  make_room(s, 8 * (size_t)s->size);
  *state = s;
  *rank = s->rank;
  *size = s->size;
  return DVBF_OK;
}

/* MPI counts in int, so that large messages go in pieces. */
enum { PIECE = 1 << 30 };

static void carry_broadcast(void *state, void *data, size_t bytes) {
  mpi_state *s = state;
  for (size_t at = 0; at < bytes; at += PIECE) {
    int piece = (int)(bytes - at < PIECE ? bytes - at : PIECE);
    MPI_Ibcast((char *)data + at, piece, MPI_BYTE, 0, s->work, s->requests);
    wait_or_end(s, s->requests, 1);
  }
}

static size_t pieces_of(size_t bytes) {
  return (bytes + PIECE - 1) / PIECE;
}

/* Begins to send or receive one parcel, and returns how many requests that makes. */
static size_t begin_parcel(mpi_state *s, const dv_parcel *p, bool out, MPI_Request *to) {
  size_t n = 0;
  for (size_t at = 0; at < p->bytes; at += PIECE, n++) {
    int piece = (int)(p->bytes - at < PIECE ? p->bytes - at : PIECE);
    if (out)
      MPI_Isend((char *)p->data + at, piece, MPI_BYTE, p->rank, 0, s->work, &to[n]);
    else
      MPI_Irecv((char *)p->data + at, piece, MPI_BYTE, p->rank, 0, s->work, &to[n]);
  }
  return n;
}

static void carry_exchange(void *state, const dv_parcel *out, size_t n_out, const dv_parcel *in,
                           size_t n_in) {
  mpi_state *s = state;
  size_t needed = 0, n = 0;
  for (size_t i = 0; i < n_in; i++) needed += pieces_of(in[i].bytes);
  for (size_t i = 0; i < n_out; i++) needed += pieces_of(out[i].bytes);
  make_room(s, needed);
  for (size_t i = 0; i < n_in; i++) n += begin_parcel(s, &in[i], false, s->requests + n);
  for (size_t i = 0; i < n_out; i++) n += begin_parcel(s, &out[i], true, s->requests + n);
  wait_or_end(s, s->requests, n);
}

/* Parts that are too large for one call are sent to each of the others. */
static void gather_large(mpi_state *s, char *data, size_t unit, const size_t *first) {
  for (int from = 0; from < s->size; from++) {
    char *part = data + first[from] * unit;
    size_t bytes = (first[from + 1] - first[from]) * unit;
    for (size_t at = 0; at < bytes; at += PIECE) {
      int piece = (int)(bytes - at < PIECE ? bytes - at : PIECE);
      MPI_Ibcast(part + at, piece, MPI_BYTE, from, s->work, s->requests);
      wait_or_end(s, s->requests, 1);
    }
  }
}

static void carry_gather(void *state, void *data, size_t unit, const size_t *first) {
  mpi_state *s = state;
  if (first[s->size] * unit > INT_MAX) {
    gather_large(s, data, unit, first);
    return;
  }
  for (int r = 0; r < s->size; r++) {
    s->firsts[r] = (int)(first[r] * unit);
    s->counts[r] = (int)((first[r + 1] - first[r]) * unit);
  }
  MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, s->counts, s->firsts, MPI_BYTE, s->work,
                  s->requests);
  wait_or_end(s, s->requests, 1);
}

static bool carry_meet(void *state, int mine, int *all, double seconds) {
  mpi_state *s = state;
  for (int r = 0; r < s->size; r++) s->room[r] = -1;
  s->room[s->rank] = mine;
  MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, s->room, 1, MPI_INT, s->end, s->requests);
  bool met = wait_for(s, s->requests, 1, seconds);
  for (int r = 0; r < s->size; r++) all[r] = s->room[r];
  return met;
}

static void carry_hurry(void *state, const volatile int *flag) {
  mpi_state *s = state;
  s->hurry = flag;
}

static const dv_ranks_transport mpi_carrier = {
    .version = DVBF_VERSION,
    .open = carry_open,
    .close = carry_close,
    .broadcast = carry_broadcast,
    .gather = carry_gather,
    .exchange = carry_exchange,
    .meet = carry_meet,
    .hurry = carry_hurry,
    .abort = end_all,
};

DVBF_API const dv_ranks_transport *dvbf_ranks_transport(void);
const dv_ranks_transport *dvbf_ranks_transport(void) {
  return &mpi_carrier;
}
