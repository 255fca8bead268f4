/* The paper's experiments: systems, models and the paper's numbers; their measurements, tables, and the
 * course of a study. */
#pragma once

#include "base/file.h"
#include "evaluate/evaluate.h"
#include "report/json.h"

#include <dvbf/dvbf.h>
#include <dvbf/report.h>

enum { DV_EXPERIMENTS = 5, DV_MODELS = 8, DV_TABLES = 8, DV_COLUMNS = 7 };

typedef enum dv_quantity_kind {
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
  const char *heading, *key;
  int decimals;
  dv_quantity_kind kind;
  const char *state;       /* of a regression */
  size_t first, last;      /* frames of an error, counted from 1; balls */
  double paper[DV_MODELS]; /* 0: it gives none */
} dv_quantity;

/* A table. */
typedef struct dv_quantities {
  const char *title;
  dv_quantity quantity[DV_COLUMNS]; /* ends at the first without a heading */
} dv_quantities;

typedef struct dv_contender {
  const char *name, *model; /* in the tables, and as the setting */
  const char *preset;
  const char *run;      /* its folder */
  const char *settings; /* over those of the preset, as lines of a configuration; NULL: none */
  bool no_particles;    /* paths cannot be weighed, or need not be */
} dv_contender;

typedef struct dv_experiment {
  const char *system, *title, *remark;
  bool all_models;                       /* that dvbf has, not those of the paper's tables alone */
  dv_contender contender[DV_MODELS];     /* ends at the first without a name */
  const dv_quantities *table[DV_TABLES]; /* ends at NULL */
} dv_experiment;

extern const dv_experiment dv_experiments[DV_EXPERIMENTS];
/* Whether it has a quantity of that kind. */
bool dv_measures(const dv_experiment *experiment, dv_quantity_kind kind);

/* ---- Study ---- */

/* Each experiment runs for all seeds: simulate, train, evaluate, and show the first seed. */

/* Results of one seed and model. */
typedef struct dv_result {
  uint64_t seed;
  double values[DV_TABLES][DV_COLUMNS];
  double seconds, starts;      /* of training */
  dvbf_evaluation *test, *far; /* on the test set, and on sequences three times as long */
  json_t *test_json, *far_json;
} dv_result;

/* A model in an experiment. */
typedef struct dv_study_model {
  int contender;           /* which of the paper's models it is */
  const char *preset;      /* that is used */
  dvbf_settings *settings; /* of training; every trial sets its own seed */
} dv_study_model;

/* One experiment with its models. */
typedef struct dv_study {
  const dv_experiment *experiment;
  dv_path folder;
  size_t n_models;
  dv_study_model model[DV_MODELS];
  size_t count;       /* seeds that are done */
  dv_result *results; /* [seeds][n_models] */
} dv_study;

/* The whole request. */
typedef struct dv_work {
  dvbf_reproduce_options options;
  const char *folder;
  size_t n_studies;
  dv_study studies[DV_EXPERIMENTS];
  uint64_t first_seed;
  dvbf_reproduction *out;
  dvbf_page *page;
  dv_path figures;
} dv_work;

static inline const dv_contender *dv_study_contender(const dv_study *s, size_t model) {
  return &s->experiment->contender[s->model[model].contender];
}

static inline dv_result *dv_study_result(const dv_study *s, size_t seed, size_t model) {
  return &s->results[seed * s->n_models + model];
}

/* Tables of all models, under each other, of the seeds that are done: at least one. */
dvbf_status dv_paper_tables(dvbf_experiment_results *out, const dv_study *study, dvbf_error *error);
json_t *dv_paper_json(const dv_study *study, size_t model);

/* ---- Trials ---- */

/* One seed of one experiment while it runs. */
typedef struct dv_trial {
  dv_study *study;
  uint64_t seed;
  dv_path folder;
  dvbf_settings *system, *evaluation;
  dvbf_data *data, *long_data; /* test sets: as in training, and of 45 frames */
  dvbf_model *model[DV_MODELS];
  dv_result *results; /* [n_models] of this seed */
} dv_trial;

/* The folder of one seed: the study's own when there is but one. */
void dv_trial_folder(dv_path out, const dv_work *work, const dv_study *study, uint64_t seed);
/* The run folder of one of its models. */
void dv_trial_run_folder(dv_path out, const dv_trial *trial, size_t model);
/* Reports a stage to the caller, of a model or, with DV_MODELS, of none. */
void dv_trial_report(dv_work *work, const dv_trial *trial, dvbf_stage_kind kind, size_t model);

/* Runs one seed. It counts in the study's results if all its models are evaluated, and not if the caller
 * stops it. */
dvbf_status dv_trial_run(dv_trial *trial, dv_work *work, dvbf_error *error);
void dv_trial_clear(dv_trial *trial);
void dv_result_clear(dv_result *result);

/* Adds the tables of all seeds, and figures and sections of this one, to the page. */
dvbf_status dv_trial_show(const dv_trial *trial, const dvbf_experiment_results *tables, dv_work *work,
                          dvbf_error *error);

/* ---- Measurements ---- */

typedef struct dv_centres {
  double valid,
      close;        /* steps ahead until the error is half of the variance; until centres are a pixel apart */
  double near, far; /* mean distance of the centres over the first ten steps ahead, and over all */
} dv_centres;
/* From x [count][steps][n_x], predicted for the test set of `data` from this many frames. */
void dv_centres_measure(dv_centres *out, const dvbf_data *data, const float *x, size_t observed);

/* Walks of an undriven pendulum to rest. */
typedef struct dv_walks {
  dv_paths *generative, *filtering; /* of the same sequences; the first sees their first frames only */
} dv_walks;

/* Simulates a few sequences of 100 steps and infers both. Free with dv_walks_free, also after a failure. */
dvbf_status dv_walks_take(dv_walks *out, const dv_trial *trial, size_t model, dvbf_error *error);
void dv_walks_free(dv_walks *walks);

/* ---- All systems ---- */

/* dvbf_reproduce of "zoo": a folder with data.h5 and run/ for each system and seed, results.json,
 * report.html. */
dvbf_status dv_zoo_run(dvbf_reproduction *out, const char *folder, const dvbf_reproduce_options *options,
                       dvbf_error *error);
