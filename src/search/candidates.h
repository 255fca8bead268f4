/* What the search tries, and how far it has come: run/search.csv. */
#ifndef DV_CANDIDATES_H
#define DV_CANDIDATES_H

#include "model/model.h"
#include "search/referee.h"
#include "train/suit.h"

enum { DV_MOST_CANDIDATES = 1000 + 64 }; /* with a final for each member */

typedef struct dv_candidate {
  char name[32];
  char changes[1024]; /* settings that differ from those of the run, as "name=value name=value" */
  uint64_t target;    /* updates that it is to be trained for; 0: the linear model, which needs none */
  uint64_t updates;   /* after which it was judged last; 0: never */
  dv_score score;     /* then */
  bool final;         /* trained like one of the best, on all data */
  int rank;           /* 1 for the best of those that are kept; 0: not kept */
  dvbf_model *model;  /* as it was judged; NULL: not in memory */
  uint64_t done;      /* updates of the training that runs now */
} dv_candidate;

typedef struct dv_candidates {
  dv_candidate *list;
  size_t count;
} dv_candidates;

/* `count` candidates for these settings and data; fewer where the user has given the settings in which they
 * would differ; and those that are fitted, where the user has not given the class. The last one is the best
 * linear model, without a target. */
dvbf_status dv_candidates_make(dv_candidates *out, const dvbf_settings *settings, const dv_facts *facts,
                               size_t count, dvbf_error *error);
/* Adds candidate i once more, to be trained on all data to its target. */
void dv_candidates_add_final(dv_candidates *c, size_t i);
/* The one that a final was made from, or NULL. */
dv_candidate *dv_candidate_origin(const dv_candidates *c, const dv_candidate *final);
void dv_candidates_free(dv_candidates *c);
/* Lines of the table, without those that are fitted. */
size_t dv_candidates_lines(void);
/* Whether it is fitted, and not trained by gradients. */
bool dv_candidate_fitted(const dv_candidate *c);

/* The settings of one candidate: those of the run with its changes, for one thread and a single start. */
dvbf_status dv_candidate_settings(dvbf_settings **out, const dv_candidate *c, const dvbf_settings *of_run,
                                  dvbf_error *error);

/* The file lists all candidates, so that a run that goes on has the same; it is replaced as a whole. */
dvbf_status dv_candidates_write(const dv_candidates *c, const char *path, dvbf_error *error);
dvbf_status dv_candidates_read(dv_candidates *out, const char *path, dvbf_error *error);

#endif
