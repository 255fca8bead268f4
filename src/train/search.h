/* The search: folds of the data, scores of candidates, the list of candidates, and their training on threads
 * and ranks. */
#pragma once

#include "base/file.h"
#include "base/ranks.h"
#include "evaluate/rolling.h"
#include "model/model.h"
#include "train/choose_settings.h"

#include <dvbf/core.h>

/* ---- Folds ---- */

typedef struct dv_fold {
  dvbf_data data;      /* a view: train is all but `part`; valid is all, with `part` twice */
  dvbf_sequences part; /* what training does not see */
} dv_fold;

/* The error on one block of a recording says almost nothing about the rest. So training and validation
 * sequences are joined and each fold leaves out another part: whole sequences if there are enough, otherwise
 * a block of each. A committee from different folds has seen all data. Validation sequences from another
 * file, or many, make one fold with the data as they are. */
typedef struct dv_folds {
  dv_fold *list; /* [count + 1]: the last one leaves out nothing */
  size_t count;
  bool cut; /* the folds are views with arrays of their own */
} dv_folds;

/* Free with dv_folds_free, also after a failure. */
dvbf_status dv_folds_make(dv_folds *out, const dvbf_data *data, dvbf_error *error);
void dv_folds_free(dv_folds *folds);

/* ---- Scores ---- */

/* Errors over the whole recording, of which a fold has left out a part: root mean squares over the columns,
 * each in units of its own deviation, over those of the best linear model that does not know the part either.
 * Without a linear model, in units of the deviation. */
typedef struct dv_score {
  double free_run, one_step;
  double total; /* what decides: smaller is better, and that of the linear model is 0 */
} dv_score;

/* Units of the scores. */
typedef struct dv_scorer {
  dv_folds folds;
  size_t n_x;
  dv_baseline baseline;
  dv_estimate_request ask; /* on one thread */
  struct {
    double free_run, one_step;
    double unseen; /* of the free run over the part that the fold leaves out */
  } * linear;      /* [folds + 1] errors of the linear models in these units; 1 if there is none */
} dv_scorer;

/* Fits a linear model to each fold, with the scaling of these settings. Free with dv_scorer_clear, also
 * after a failure. */
dvbf_status dv_scorer_init(dv_scorer *r, const dvbf_settings *settings, const dvbf_data *data,
                           dvbf_error *error);
void dv_scorer_clear(dv_scorer *r);

/* Whether errors are over those of linear models, and not in units of the deviation. */
bool dv_scorer_has_linear(const dv_scorer *r);

/* What errors over those of the linear model come to. */
double dv_scorer_total(double free_run, double one_step);

/* Judges a model that was trained on a fold. One that predicts numbers that are not finite has infinite
 * errors. Runs on one thread. */
dvbf_status dv_scorer_score(dv_score *out, const dv_scorer *r, size_t fold, const dvbf_model *model,
                            dvbf_error *error);

/* The error of its free runs over the fold's unseen part, in units of the deviation; 0 for the fold that
 * leaves out nothing. A model that memorised its part of a short recording has a good score and bad
 * predictions. */
dvbf_status dv_scorer_unseen(double *out, const dv_scorer *r, size_t fold, const dvbf_model *model,
                             dvbf_error *error);

/* A learned filter may fail in states that the data never reached; a linear one does not. So learned filters
 * forecast one step ahead only if the best of them has less than this share of the linear model's error. With
 * more frames fewer such states remain, and the share rises towards 1. */
double dv_scorer_clearly(uint64_t frames);

/* ---- Candidates ---- */

enum { DV_MOST_CANDIDATES = 1000 + 64 }; /* with a final for each member */

typedef struct dv_candidate {
  char name[32];
  char changes[1024];   /* settings that differ from those of the run, as "name=value name=value" */
  uint64_t first, last; /* updates after which it is judged: at first, and at the end */
  uint64_t target;      /* updates that it is to be trained for; 0: the linear model, which needs none */
  uint64_t updates;     /* after which it was judged last; 0: never */
  dv_score score;       /* then */
  bool final;           /* trained like one of the best, on all data */
  int rank;             /* 1 for the best of those that are kept; 0: not kept */
  dvbf_model *model;    /* as it was judged; NULL: not in memory */
  uint64_t done;        /* updates of the training that runs now */
} dv_candidate;

typedef struct dv_candidates {
  dv_candidate *list;
  size_t count;
} dv_candidates;

/* `count` candidates for these settings and data, fewer if the user has given the settings in which they
 * would differ; and fitted ones, unless the user has given the class. The last is the best linear model,
 * without a target. */
dvbf_status dv_candidates_make(dv_candidates *out, const dvbf_settings *settings, const dv_profile *facts,
                               size_t count, dvbf_error *error);
void dv_candidates_free(dv_candidates *c);
/* Lines of the table, without those that are fitted. */
size_t dv_candidates_lines(void);
/* Whether it is fitted, and not trained by gradients. */
bool dv_candidate_fitted(const dv_candidate *c);

/* What became of candidate `number`, as "candidate 5/26 near-identity: free run 0.22, one step 1.8 (linear =
 * 1)". Without a linear model errors are in units of the deviation. */
void dv_candidate_sentence(char *out, size_t size, const dv_candidates *c, size_t number, bool linear);

/* The settings of one candidate: those of the run with its changes, for one thread and a single start. */
dvbf_status dv_candidate_settings(dvbf_settings **out, const dv_candidate *c, const dvbf_settings *of_run,
                                  dvbf_error *error);

/* The file lists all candidates, so that a resumed run has the same; it is replaced as a whole. */
dvbf_status dv_candidates_write(const dv_candidates *c, const char *path, dvbf_error *error);
dvbf_status dv_candidates_read(dv_candidates *out, const char *path, dvbf_error *error);

/* ---- Ranks ---- */

/* A search over ranks: each trains some candidates. The first decides what comes next and has all models; the
 * others follow it. Without ranks these functions do nothing. */

/* The first rank's list and flags become those of all. */
dvbf_status dv_search_ranks_list(dv_ranks *team, dv_candidates *candidates, bool *more, bool *stopped,
                                 dvbf_error *error);
/* The first rank's model becomes that of all, a copy. */
dvbf_status dv_search_ranks_model(dv_ranks *team, dvbf_model **model, dvbf_error *error);

/* ---- Training of candidates ---- */

typedef struct dv_search {
  const dvbf_settings *settings;
  const dvbf_data *data;
  const dvbf_train_options *options;
  dv_scorer referee;
  dv_candidates candidates;
  dv_path folder;   /* of the candidates' own folders, which all ranks see; "": none is wanted */
  dv_path file;     /* where all that was tried is written, by the first rank; "": nowhere */
  dv_ranks *team;   /* ranks that share the candidates; NULL: one alone */
  uint64_t planned; /* updates of all candidates to the end of the search, as far as is known */
  double began;     /* seconds on the clock */
  bool stopped;     /* by the user */
} dv_search;

/* The fold of candidate i (from 0). */
size_t dv_candidate_fold(const dv_search *search, size_t i);

/* Folder of its training. */
void dv_candidate_folder(char *out, size_t size, const char *folder, size_t i);

/* Trains every candidate from its present update to its target and judges it; the first rank then has all
 * models. Ends early if the user stops it. Results depend neither on other candidates nor on the number of
 * threads and ranks. */
dvbf_status dv_search_train_all(dv_search *search, dvbf_error *error);

/* Reports to the user, on the thread that began the search. `event` may be NULL. */
void dv_search_report(dv_search *search, const char *event);

/* ---- Folders of candidates ---- */

/* Removes a folder of folders of files, if it is there. */
dvbf_status dv_search_folder_remove(const char *folder, dvbf_error *error);
/* Copies a file from one folder to another, replacing one of that name. */
dvbf_status dv_search_folder_copy(const char *from, const char *to, const char *name, dvbf_error *error);
