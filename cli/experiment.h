/* The paper's experiments: the system, the models trained on its data, and the numbers set side by side. */
#ifndef CLI_EXPERIMENT_H
#define CLI_EXPERIMENT_H

#include <dvbf/dvbf.h>

enum { CLI_EXPERIMENTS = 3, CLI_MODELS = 2, CLI_QUANTITIES = 24 };

typedef enum cli_kind {
  CLI_TITLE,      /* no quantity: a new table begins */
  CLI_LIKELIHOOD, /* of the regression of a state on z */
  CLI_R2,         /* of the same */
  CLI_R2_AWAY,    /* of the same, on frames away from bounces */
  CLI_BOUND,
  CLI_RECONSTRUCTION,
  CLI_KL,
  CLI_ERROR,       /* of prediction along the mean path, frames first to last, over the pixel variance */
  CLI_STEPS_AHEAD, /* from the last observed frame on that prediction is better than the mean image */
  CLI_WHOLE, /* share of the generated last frames with exactly `first` bright regions, along the mean path */
  CLI_WHOLE_TRUTH, /* the same of the true last frames */
  CLI_WALK,        /* distance between the ends of a generative and a filtering walk, over the spread of z */
  CLI_SECONDS,     /* of training */
  CLI_STARTS
} cli_kind;

typedef struct cli_quantity {
  const char *table; /* the title, in an entry that begins a table */
  const char *heading, *key;
  int decimals;
  cli_kind kind;
  const char *state;        /* of a regression */
  size_t first, last;       /* frames of an error, counted from 1; balls */
  double paper[CLI_MODELS]; /* 0: it gives none */
} cli_quantity;

typedef struct cli_contender {
  const char *name, *preset;
  const char *run; /* its folder */
} cli_contender;

typedef struct cli_experiment {
  const char *system, *title, *remark;
  cli_contender contender[CLI_MODELS]; /* the second may be unnamed: none */
  cli_quantity quantity[CLI_QUANTITIES];
} cli_experiment;

extern const cli_experiment cli_experiments[CLI_EXPERIMENTS];
/* Entries of `quantity`, titles included. */
size_t cli_quantities(const cli_experiment *experiment);

#endif
