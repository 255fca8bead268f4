/* Ranks: processes that share one piece of work, each with threads of its own. All ranks run the same program
 * and call the functions below in the same order. Nothing here computes: messages are copied, so that results
 * depend on the shards and not on which rank summed them.
 *
 * NULL stands for one rank alone, for which all of this costs nothing. The transport of the messages is a
 * dv_ranks_transport: that of MPI is a plug-in (plugins/mpi.c), so that nothing else depends on MPI. */
#pragma once

#include <dvbf/core.h>

/* Bytes for another rank, or from it. */
typedef struct dv_parcel {
  int rank;
  void *data;
  size_t bytes;
} dv_parcel;

/* The functions block until they are done. A transport that loses a rank, or waits too long for one, reports
 * it on standard error and ends the process: a rank cannot go on without the others. */
typedef struct dv_ranks_transport {
  const char *version; /* DVBF_VERSION that it was built with */
  dvbf_status (*open)(void **state, int *rank, int *size, dvbf_error *error);
  void (*close)(void *state);
  /* From rank 0 to all. */
  void (*broadcast)(void *state, void *data, size_t bytes);
  /* Rank r has units first[r] .. first[r + 1] - 1 of data; then all have all. */
  void (*gather)(void *state, void *data, size_t unit, const size_t *first);
  /* Parcels between the same two ranks arrive in the order in which they are listed. */
  void (*exchange)(void *state, const dv_parcel *out, size_t n_out, const dv_parcel *in, size_t n_in);
  /* all[r] = the value of rank r, -1 for ranks that did not come in time; returns whether all did. seconds =
   * 0: waits for ever. Called once, at the end. */
  bool (*meet)(void *state, int mine, int *all, double seconds);
  /* Waits only briefly once the flag is set; NULL: none. */
  void (*hurry)(void *state, const volatile int *flag);
  /* Ends all ranks at once with this exit status. */
  void (*abort)(void *state, int status);
} dv_ranks_transport;

/* Name of the function in the plug-in that returns its transport. */
#define DV_RANKS_TRANSPORT_SYMBOL "dvbf_ranks_transport"
typedef const dv_ranks_transport *dv_ranks_transport_fn(void);

typedef struct dvbf_ranks dv_ranks;

/* Ranks over this transport. Free with dvbf_ranks_free. */
dvbf_status dv_ranks_new(dv_ranks **out, const dv_ranks_transport *carrier, dvbf_error *error);
int dv_ranks_rank(const dv_ranks *team);
int dv_ranks_size(const dv_ranks *team);

/* The first of `count` items of a rank, of whom each has a contiguous part; for rank = size: count. */
size_t dv_ranks_first(const dv_ranks *team, size_t count, int rank);
/* Afterwards every rank has all items of `unit` bytes, which were divided in this way. */
void dv_ranks_gather(dv_ranks *team, void *data, size_t unit, size_t count);
/* The same for items divided in blocks of `block`. */
void dv_ranks_gather_blocks(dv_ranks *team, void *data, size_t unit, size_t count, size_t block);
/* The same for parts of any sizes; first[size + 1]. */
void dv_ranks_gather_parts(dv_ranks *team, void *data, size_t unit, const size_t *first);
void dv_ranks_broadcast(dv_ranks *team, void *data, size_t bytes);
void dv_ranks_exchange(dv_ranks *team, const dv_parcel *out, size_t n_out, const dv_parcel *in, size_t n_in);
/* Fails unless all ranks have the same value; `what` names it. */
dvbf_status dv_ranks_agree(dv_ranks *team, uint64_t value, const char *what, dvbf_error *error);
