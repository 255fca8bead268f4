/* Ranks: processes that do one work together, each with threads of its own. All ranks run the same program
 * and call the functions below in the same order. Nothing here computes: what is sent is copied, so that
 * results depend on the numbers of shards and not on who has summed them.
 *
 * A team that is NULL is one rank alone, for which all of this costs nothing. What carries the messages
 * is a dv_carrier: that of MPI is a plug-in (plugins/mpi.c), so that nothing else depends on MPI. */
#ifndef DV_TEAM_H
#define DV_TEAM_H

#include <dvbf/core.h>

/* Bytes for another rank, or from it. */
typedef struct dv_parcel {
  int rank;
  void *data;
  size_t bytes;
} dv_parcel;

/* The functions block until they are done. A carrier that loses a rank, or waits for one in vain, says so on
 * standard error and ends the process: a rank cannot go on without the others. */
typedef struct dv_carrier {
  const char *version; /* DVBF_VERSION that it was built with */
  dvbf_status (*open)(void **state, int *rank, int *size, dvbf_error *error);
  void (*close)(void *state);
  /* From rank 0 to all. */
  void (*broadcast)(void *state, void *data, size_t bytes);
  /* Rank r has units first[r] .. first[r + 1] - 1 of data; then all have all. */
  void (*gather)(void *state, void *data, size_t unit, const size_t *first);
  /* Parcels between the same two ranks arrive in the order in which they are listed. */
  void (*exchange)(void *state, const dv_parcel *out, size_t n_out, const dv_parcel *in, size_t n_in);
  /* all[r] = what rank r has given, -1 for those that were not here in time; returns whether all were.
   * seconds = 0: waits for ever. Called once, at the end. */
  bool (*meet)(void *state, int mine, int *all, double seconds);
  /* Waits only briefly once the flag is set; NULL: none. */
  void (*hurry)(void *state, const volatile int *flag);
  /* Ends all ranks at once with this exit status. */
  void (*abort)(void *state, int status);
} dv_carrier;

/* The name of a function in the plug-in that returns its carrier. */
#define DV_CARRIER_SYMBOL "dvbf_carrier"
typedef const dv_carrier *dv_carrier_fn(void);

typedef struct dvbf_ranks dv_team;

/* A team over this carrier. Free with dvbf_ranks_free. */
dvbf_status dv_team_new(dv_team **out, const dv_carrier *carrier, dvbf_error *error);
int dv_team_rank(const dv_team *team);
int dv_team_size(const dv_team *team);

/* The first of `count` items of a rank, of whom each has a contiguous part; for rank = size: count. */
size_t dv_team_first(const dv_team *team, size_t count, int rank);
/* Items of `unit` bytes that were shared out so are then known to all. */
void dv_team_gather(dv_team *team, void *data, size_t unit, size_t count);
/* The same where blocks of `block` items were shared out. */
void dv_team_gather_blocks(dv_team *team, void *data, size_t unit, size_t count, size_t block);
/* The same with parts of other sizes; first[size + 1]. */
void dv_team_gather_parts(dv_team *team, void *data, size_t unit, const size_t *first);
void dv_team_broadcast(dv_team *team, void *data, size_t bytes);
void dv_team_exchange(dv_team *team, const dv_parcel *out, size_t n_out, const dv_parcel *in, size_t n_in);
/* The largest of the values that the ranks give. */
int dv_team_largest(dv_team *team, int value);
/* Refuses where ranks have not all the same; `what` names it. */
dvbf_status dv_team_agrees(dv_team *team, uint64_t value, const char *what, dvbf_error *error);

#endif
