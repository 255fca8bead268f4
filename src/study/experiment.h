/* The paper's experiments: the system, the models trained on its data, and the numbers set side by side. */
#ifndef DV_EXPERIMENT_H
#define DV_EXPERIMENT_H

#include <dvbf/dvbf.h>

enum { DV_EXPERIMENTS = 3, DV_MODELS = 2, DV_QUANTITIES = 24 };

typedef enum dv_quantity_kind {
  DV_OF_TITLE,      /* no quantity: a new table begins */
  DV_OF_LIKELIHOOD, /* of the regression of a state on z */
  DV_OF_R2,         /* of the same */
  DV_OF_R2_AWAY,    /* of the same, on frames away from bounces */
  DV_OF_BOUND,
  DV_OF_RECONSTRUCTION,
  DV_OF_KL,
  DV_OF_ERROR,       /* of the noise-free prediction, frames first to last, over the pixel variance */
  DV_OF_STEPS_AHEAD, /* from the last observed frame on that prediction is better than the mean image */
  DV_OF_WHOLE,       /* share of the generated last frames with exactly `first` bright regions, without noise
                      */
  DV_OF_WHOLE_TRUTH, /* the same of the true last frames */
  DV_OF_WALK,    /* distance between the ends of a generative and a filtering walk, over the spread of z */
  DV_OF_SECONDS, /* of training */
  DV_OF_STARTS
} dv_quantity_kind;

typedef struct dv_quantity {
  const char *table; /* the title, in an entry that begins a table */
  const char *heading, *key;
  int decimals;
  dv_quantity_kind kind;
  const char *state;       /* of a regression */
  size_t first, last;      /* frames of an error, counted from 1; balls */
  double paper[DV_MODELS]; /* 0: it gives none */
} dv_quantity;

typedef struct dv_contender {
  const char *name, *model; /* in the tables, and as the setting */
  const char *preset;
  const char *run; /* its folder */
} dv_contender;

typedef struct dv_experiment {
  const char *system, *title, *remark;
  dv_contender contender[DV_MODELS]; /* the second may be unnamed: none */
  dv_quantity quantity[DV_QUANTITIES];
} dv_experiment;

extern const dv_experiment dv_experiments[DV_EXPERIMENTS];
/* Entries of `quantity`, titles included. */
size_t dv_quantities(const dv_experiment *experiment);
/* The first entry of that kind; DV_QUANTITIES: none. */
size_t dv_quantity_of(const dv_experiment *experiment, dv_quantity_kind kind);

#endif
