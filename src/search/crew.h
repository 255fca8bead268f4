/* Trains candidates, one on each core of each rank. */
#ifndef DV_CREW_H
#define DV_CREW_H

#include "search/shared.h"

typedef struct dv_search {
  const dvbf_settings *settings;
  const dvbf_data *data;
  const dvbf_train_options *options;
  dv_referee referee;
  dv_candidates candidates;
  const char *folder; /* of the candidates' own folders, which all ranks see; NULL: none is wanted */
  const char *file;   /* where all that was tried is written, by the first rank; NULL: nowhere */
  dv_team *team;      /* ranks that share the candidates; NULL: one alone */
  uint64_t planned;   /* updates of all candidates to the end of the search, as far as is known */
  double began;       /* seconds on the clock */
  bool stopped;       /* by the user */
} dv_search;

double dv_search_clock(void);

/* The fold of candidate i (from 0). */
size_t dv_candidate_fold(const dv_search *search, size_t i);

/* Where it trains. */
void dv_candidate_folder(char *out, size_t size, const char *folder, size_t i);

/* Trains every candidate from where it is to its target, and judges it; the first rank then has all models.
 * Ends early where the user stops it. What becomes of a candidate does not depend on the others, nor on the
 * number of threads and ranks. */
dvbf_status dv_crew_run(dv_search *search, dvbf_error *error);

/* Tells the user, from the thread that began the search. `event` may be NULL. */
void dv_search_tell(dv_search *search, const char *event);

#endif
