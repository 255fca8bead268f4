/* The paper's experiments, each run for all seeds: simulate, train, evaluate, and show the first seed. */
#ifndef DV_STUDY_H
#define DV_STUDY_H

#include "base/file.h"
#include "study/measure.h"
#include "study/outcome.h"

#include <dvbf/report.h>

/* One experiment with the models that are to be trained on it. */
typedef struct dv_study {
  const dv_experiment *experiment;
  dv_path folder;
  size_t n_models;
  dvbf_settings *settings[DV_MODELS]; /* of training; every trial sets its own seed */
  dv_outcome outcome[DV_MODELS];
  size_t n_tables;
  dvbf_table *tables; /* of the outcomes, once all seeds are done */
} dv_study;

/* All that was asked for. */
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
/* Tells the caller what begins, of a model or, where that is DV_MODELS, of none. */
void dv_trial_tell(dv_work *work, const dv_trial *trial, dvbf_stage_kind kind, size_t model);

/* Runs one seed, which counts in the study's outcomes when all its models are evaluated, and not when the
 * caller stops it. */
dvbf_status dv_trial_run(dv_trial *trial, dv_study *study, dv_work *work, dvbf_error *error);
void dv_trial_clear(dv_trial *trial);

/* Adds tables of all seeds, figures and chapters of this one to the page. */
dvbf_status dv_trial_show(const dv_trial *trial, dv_work *work, dvbf_error *error);

/* Which of the paper's models it is. */
static inline const dv_contender *dv_study_contender(const dv_study *s, size_t model) {
  return &s->experiment->contender[s->outcome[model].contender];
}

#endif
