/* A search over ranks: each trains some of the candidates. The first decides what comes next and has all
 * models; the others follow it. Without ranks these functions do nothing. */
#ifndef DV_SHARED_H
#define DV_SHARED_H

#include "base/team.h"
#include "search/candidates.h"

/* What is to be trained in a round, and by whom. */
typedef struct dv_shares {
  dv_team *team;
  size_t *first;          /* [ranks + 1] of each rank in `reports` */
  struct report *reports; /* [count] */
  size_t count;
} dv_shares;

/* Deals out the candidates that are not at their target. Free with dv_shares_clear, also after a failure. */
dvbf_status dv_shares_deal(dv_shares *s, dv_team *team, const dv_candidates *candidates, dvbf_error *error);
void dv_shares_clear(dv_shares *s);
/* Whether this rank trains candidate i. */
bool dv_shares_mine(const dv_shares *s, size_t i);

/* How far ranks are. All tell each other; called in turns until none is at work. `busy` and `stop` become
 * true where they are for any rank. `candidates` gets what others have come to, and the number of one that
 * has been judged meanwhile is in *judged, else their count. */
typedef struct dv_turn {
  bool busy, stop;
  size_t judged;
} dv_turn;
void dv_shares_note(dv_shares *s, const dv_candidates *candidates);
void dv_shares_tell(dv_shares *s, dv_turn *turn);
void dv_shares_take(const dv_shares *s, dv_candidates *candidates, dv_turn *turn);

/* After a round: the first rank gets the models of all. */
dvbf_status dv_shares_collect(const dv_shares *s, dv_candidates *candidates, dvbf_error *error);

/* The first rank's list and flags become those of all. */
dvbf_status dv_share_list(dv_team *team, dv_candidates *candidates, bool *more, bool *stopped,
                          dvbf_error *error);
/* The first rank's model becomes that of all, a copy. */
dvbf_status dv_share_model(dv_team *team, dvbf_model **model, dvbf_error *error);

#endif
