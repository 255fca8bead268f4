/* The paper's experiments: systems, models and the paper's numbers; their measurements, tables, and the
 * course of a study. */
#pragma once

#include "base/file.h"
#include "evaluate/evaluate.h"
#include "report/json.h"
#include "report/plots.h"

#include <dvbf/dvbf.h>
#include <dvbf/report.h>

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

/* ---- Measurements ---- */

/* Quantities that an evaluation does not hold. */

/* The model and data to measure. */
typedef struct dv_subject {
  const dvbf_model *model;
  const dvbf_data *data, *long_data; /* test sets: as in training, and of 45 frames */
  const char *preset;                /* that both were simulated with */
  size_t observed;                   /* frames seen before prediction starts */
  uint64_t seed;
  unsigned threads;
} dv_subject;

/* ---- Positions of objects in predictions ---- */

typedef struct dv_centres {
  double valid,
      close;        /* steps ahead until the error is half of the variance; until centres are a pixel apart */
  double near, far; /* mean distance of the centres over the first ten steps ahead, and over all */
} dv_centres;
/* From x [count][steps][n_x], predicted for the test set of `data` from this many frames. */
void dv_centres_measure(dv_centres *out, const dvbf_data *data, const float *x, size_t observed);

/* ---- Walks of an undriven pendulum to rest ---- */

typedef struct dv_walks {
  dv_paths *generative, *filtering; /* of the same sequences; the first sees their first frames only */
} dv_walks;

/* Simulates a few sequences of 100 steps and infers both. Free with dv_walks_free, also after a failure. */
dvbf_status dv_walks_take(dv_walks *out, const dv_subject *subject, dvbf_error *error);
void dv_walks_free(dv_walks *walks);

/* Draws the walks of the first sequence before the samples, as PATH.png and PATH.svg. */
dvbf_status dv_walks_draw(const dv_walks *walks, const dv_points *samples, const char *title,
                          const char *path, dvbf_error *error);

/* ---- Results ---- */

/* Our numbers and the paper's, as tables and as JSON. */

/* Results of one seed and model. */
typedef struct dv_result {
  uint64_t seed;
  double values[DV_QUANTITIES];
  dvbf_evaluation *test, *far; /* on the test set, and on sequences three times as long */
  json_t *test_json, *far_json;
} dv_result;

void dv_result_clear(dv_result *result);
/* Fills the quantities that come from the two evaluations. */
void dv_result_compare(dv_result *result, const dv_experiment *experiment);

/* Results of all seeds for one model. */
typedef struct dv_paper_result {
  const dv_experiment *experiment;
  int contender;      /* which column of the paper's numbers */
  const char *preset; /* that was used */
  dv_result *results;
  size_t count; /* seeds that are done */
} dv_paper_result;

/* Tables of all models of one experiment, under each other. Free with dv_paper_tables_free. */
dvbf_status dv_paper_tables(dvbf_table **out, size_t *n_tables, const dv_paper_result *outcomes, size_t count,
                            dvbf_error *error);
void dv_paper_tables_free(dvbf_table *tables, size_t count);

json_t *dv_paper_result_json(const dv_paper_result *outcome);

/* ---- Study ---- */

/* Each experiment runs for all seeds: simulate, train, evaluate, and show the first seed. */

/* One experiment with its models. */
typedef struct dv_study {
  const dv_experiment *experiment;
  dv_path folder;
  size_t n_models;
  dvbf_settings *settings[DV_MODELS]; /* of training; every trial sets its own seed */
  dv_paper_result outcome[DV_MODELS];
  size_t n_tables;
  dvbf_table *tables; /* of the outcomes, once all seeds are done */
} dv_study;

/* The whole request. */
typedef struct dv_work {
  const dvbf_reproduce_options *options;
  const char *folder;
  size_t n_studies, n_seeds;
  dv_study studies[DV_EXPERIMENTS];
  uint64_t first_seed;
  bool stopped; /* by the caller */
  dvbf_page *page;
  dv_path figures;
} dv_work;

/* One seed of one experiment while it runs. */
typedef struct dv_trial {
  const dv_study *study;
  uint64_t seed;
  dv_path folder;
  dvbf_settings *evaluation;
  dvbf_data *data, *long_data;
  dvbf_model *model[DV_MODELS];
} dv_trial;

/* The folder of one seed: the study's own when there is but one. */
void dv_trial_folder(dv_path out, const dv_work *work, const dv_study *study, uint64_t seed);
/* The run folder of one of its models. */
void dv_trial_run_folder(dv_path out, const dv_trial *trial, size_t model);
dv_subject dv_trial_subject(const dv_trial *trial, size_t model, const dv_result *result);
/* Reports a stage to the caller, of a model or, with DV_MODELS, of none. */
void dv_trial_report(dv_work *work, const dv_trial *trial, dvbf_stage_kind kind, size_t model);

/* Runs one seed. It counts in the study's results if all its models are evaluated, and not if the caller
 * stops it. */
dvbf_status dv_trial_run(dv_trial *trial, dv_study *study, dv_work *work, dvbf_error *error);
void dv_trial_clear(dv_trial *trial);

/* Adds tables of all seeds, and figures and sections of this one, to the page. */
dvbf_status dv_trial_show(const dv_trial *trial, dv_work *work, dvbf_error *error);

/* Which of the paper's models it is. */
static inline const dv_contender *dv_study_contender(const dv_study *s, size_t model) {
  return &s->experiment->contender[s->outcome[model].contender];
}

/* ---- All systems ---- */

/* dvbf_reproduce of "zoo": a folder with data.h5 and run/ for each system and seed, results.json,
 * report.html. */
dvbf_status dv_zoo_run(dvbf_reproduction **out, const char *folder, const dvbf_reproduce_options *options,
                       dvbf_error *error);
