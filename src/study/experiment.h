/* The paper's experiments: the system, the models trained on its data, and the numbers set side by side. */
#ifndef DV_EXPERIMENT_H
#define DV_EXPERIMENT_H

#include <dvbf/dvbf.h>

enum { DV_EXPERIMENTS = 5, DV_MODELS = 8, DV_QUANTITIES = 32 };

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
  DV_OF_WALK,       /* distance between the ends of a generative and a filtering walk, over the spread of z */
  DV_OF_R2_NETWORK, /* of the regression of a state on z by a small network */
  DV_OF_PARTICLES,  /* a closer bound than the bound: the better of weighted paths and a particle filter */
  DV_OF_VALID,      /* steps ahead until the error of a prediction is half of the variance */
  DV_OF_CLOSE,      /* steps ahead until the object is more than a pixel away from where it should be */
  DV_OF_DISTANCE,   /* of the two centres in pixels, over the first ten steps ahead */
  DV_OF_DISTANCE_FAR, /* the same over all steps ahead */
  DV_OF_SECONDS,      /* of training */
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
  const char *run;      /* its folder */
  const char *settings; /* over those of the preset, as lines of a configuration; NULL: none */
  bool no_particles;    /* paths cannot be weighed, or need not be */
} dv_contender;

typedef struct dv_experiment {
  const char *system, *title, *remark;
  bool all_models;                   /* that dvbf has, not those of the paper's tables alone */
  dv_contender contender[DV_MODELS]; /* ends at the first without a name */
  dv_quantity quantity[DV_QUANTITIES];
} dv_experiment;

extern const dv_experiment dv_experiments[DV_EXPERIMENTS];
/* Entries of `quantity`, titles included. */
size_t dv_quantities(const dv_experiment *experiment);
/* The first entry of that kind; DV_QUANTITIES: none. */
size_t dv_quantity_of(const dv_experiment *experiment, dv_quantity_kind kind);

#endif
