/* The paper's experiments from data to report (dvbf_reproduce): plans studies, runs their seeds, writes
 * results.json after each study, whatever happens to the next, and report.html at the end. Existing folders
 * are refused before anything is written. */
#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "experiments/paper.h"
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

/* ---- Plan ---- */

static dvbf_status lay_lines(dvbf_settings *settings, const char *lines, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  while (!status && lines && *lines) {
    char name[64] = "", value[64] = "";
    sscanf(lines, "%63s = %63s", name, value);
    status = dvbf_settings_set(settings, name, value, error);
    lines += strcspn(lines, "\n");
    lines += strspn(lines, "\n");
  }
  return status;
}

/* A preset of the user's stands for its model alone; without one all models have ours, and further settings
 * must leave each the model that it is. */
static dvbf_status plan_model(dv_study *s, const dvbf_reproduce_options *o, int which, const char *preset,
                              dvbf_error *error) {
  char model[16] = "";
  const dv_contender *c = s->experiment->contender;
  dv_study_model *m = &s->model[s->n_models++];
  dvbf_status status = dvbf_settings_new(&m->settings, "train", error);
  if (!status) status = dvbf_settings_preset(m->settings, preset, error);
  if (!status && !o->preset) status = lay_lines(m->settings, c[which].settings, error);
  if (!status && o->settings) status = dv_settings_lay(m->settings, o->settings, error);
  if (!status) status = dvbf_settings_get(m->settings, "model", model, sizeof model, error);
  if (status) return status;
  int found = 0;
  while (found < DV_MODELS && c[found].name && strcmp(c[found].model, model) != 0) found++;
  if (found == DV_MODELS || !c[found].name)
    return dv_fail(error, DVBF_ARGUMENT,
                   "model = %s: the paper has no such model for %s; train and evaluate it instead", model,
                   s->experiment->system);
  if (!o->preset && found != which)
    return dv_fail(error, DVBF_ARGUMENT,
                   "model = %s: %s is compared with its rival; choose one with --preset %s or %s", model,
                   s->experiment->system, c[0].preset, c[1].preset);
  m->contender = found;
  m->preset = preset;
  return DVBF_OK;
}

/* Whether a list of names with commas between has that one. */
static bool lists(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; at; at = strchr(at, ',')) {
    at += *at == ',';
    if (!strncmp(at, name, length) && (!at[length] || at[length] == ',')) return true;
  }
  return false;
}

/* Every model, or those that are named. */
static dvbf_status plan_models(dv_study *s, const dvbf_reproduce_options *o, dvbf_error *error) {
  const dv_contender *c = s->experiment->contender;
  bool all = !o->models || !strcmp(o->models, "all");
  size_t names = 1;
  dvbf_status status = DVBF_OK;
  for (int i = 0; !status && i < DV_MODELS && c[i].name; i++)
    if (all || lists(o->models, c[i].model)) status = plan_model(s, o, i, c[i].preset, error);
  if (status || all) return status;
  for (const char *at = o->models; *at; at++) names += *at == ',';
  if (names == s->n_models) return DVBF_OK;
  return dv_fail(
      error, DVBF_ARGUMENT,
      "models = %.100s: must be paper, all, or names of models of %s, each once, separated by commas",
      o->models, s->experiment->system);
}

static dvbf_status plan_study(dv_study *s, const dvbf_reproduce_options *o, dvbf_error *error) {
  const char *for_system = o->preset ? dvbf_preset_system(o->preset) : NULL;
  if (o->preset && o->models)
    return dv_fail(error, DVBF_ARGUMENT,
                   "models = %.60s: every model has its own preset; leave preset = %s out", o->models,
                   o->preset);
  if (for_system && strcmp(for_system, s->experiment->system) != 0)
    return dv_fail(error, DVBF_ARGUMENT, "preset = %s: it is for %s; name that system to reproduce",
                   o->preset, for_system);
  return o->preset ? plan_model(s, o, 0, o->preset, error) : plan_models(s, o, error);
}

static dvbf_status plan(dv_work *w, const char *system, dvbf_error *error) {
  const char *models = w->options.models;
  bool all = !strcmp(system, "all");
  dvbf_status status = DVBF_OK;
  for (int i = 0; !status && i < DV_EXPERIMENTS; i++) {
    const dv_experiment *e = &dv_experiments[i];
    if (e->all_models != (models != NULL) || (!all && strcmp(system, e->system) != 0)) continue;
    dv_study *s = &w->studies[w->n_studies++];
    s->experiment = e;
    if (all)
      dv_join(s->folder, w->folder, e->system);
    else
      snprintf(s->folder, sizeof s->folder, "%s", w->folder);
    status = plan_study(s, &w->options, error);
  }
  if (!status && !w->n_studies && models && !strcmp(system, "two-balls"))
    status =
        dv_fail(error, DVBF_ARGUMENT,
                "models = %.60s: two-balls has only the model of the paper; use pendulum or ball", models);
  if (!status && !w->n_studies)
    status =
        dv_fail(error, DVBF_ARGUMENT,
                "%.60s: no such system; the known ones are: pendulum, ball, two-balls, all, zoo", system);
  char seed[32] = "1";
  if (!status) status = dvbf_settings_get(w->studies[0].model[0].settings, "seed", seed, sizeof seed, error);
  w->first_seed = strtoull(seed, NULL, 10);
  return status;
}

static dvbf_status refuse(const dv_work *w, const char *folder, const char *name, dvbf_error *error) {
  dv_path path;
  dv_join(path, folder, name);
  return dv_refuse_existing(path, w->options.force, error);
}

static dvbf_status refuse_trial(const dv_work *w, const dv_study *s, uint64_t seed, dvbf_error *error) {
  static const char *const names[] = {"data.h5", "long.h5", "overview.png"};
  const dv_contender *c = s->experiment->contender;
  dv_path folder, run;
  dvbf_status status = DVBF_OK;
  dv_trial_folder(folder, w, s, seed);
  for (size_t j = 0; !status && j < sizeof names / sizeof *names; j++)
    status = refuse(w, folder, names[j], error);
  for (size_t j = 0; !status && j < DV_MODELS && c[j].name; j++) {
    dv_join(run, folder, c[j].run);
    status = refuse(w, run, DVBF_RUN_MODEL, error);
  }
  return status;
}

/* Checks before anything is written, so that a refusal changes nothing. */
static dvbf_status refuse_former(const dv_work *w, dvbf_error *error) {
  static const char *const results[] = {"results.json", "report.html", "figures"};
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && i < sizeof results / sizeof *results; i++)
    status = refuse(w, w->folder, results[i], error);
  for (size_t k = 0; !status && k < w->n_studies; k++)
    for (size_t i = 0; !status && i < w->options.seeds; i++)
      status = refuse_trial(w, &w->studies[k], w->first_seed + i, error);
  return status;
}

/* ---- Work ---- */

/* {"pendulum": [a model's outcome, ...], ...}, as a file too once a seed is done. */
static dvbf_status keep_results(dv_work *w, dvbf_error *error) {
  dv_path path;
  json_t *all = json_object();
  for (size_t k = 0; k < w->n_studies; k++) {
    const dv_study *s = &w->studies[k];
    if (!s->count) continue;
    json_t *models = json_array();
    for (size_t m = 0; m < s->n_models; m++) json_array_append_new(models, dv_paper_json(s, m));
    json_object_set_new(all, s->experiment->system, models);
  }
  dvbf_text_free(w->out->json);
  w->out->json = NULL;
  dvbf_status status = dv_json_text(&w->out->json, all, error);
  dv_join(path, w->folder, "results.json");
  return status || !w->studies[0].count ? status : dv_json_write(path, w->out->json, error);
}

/* The first seed is kept until all are done, because the report shows it below the tables of all. */
static dvbf_status run_seeds(dv_study *s, dv_work *w, dvbf_error *error) {
  dvbf_experiment_results *tables = &w->out->experiments[w->out->n_experiments];
  dv_trial first = {.study = s, .seed = w->first_seed};
  s->results = dv_calloc(w->options.seeds, s->n_models * sizeof *s->results);
  if (!s->results) return dv_fail(error, DVBF_MEMORY, "out of memory for %zu seeds", w->options.seeds);
  dvbf_status status = dv_trial_run(&first, w, error);
  for (size_t i = 1; !status && !w->out->stopped && i < w->options.seeds; i++) {
    dv_trial next = {.study = s, .seed = w->first_seed + i};
    status = dv_trial_run(&next, w, error);
    dv_trial_clear(&next);
  }
  if (!status && s->count) {
    w->out->n_experiments++;
    status = dv_paper_tables(tables, s, error);
  }
  if (!status && !w->out->stopped) status = dv_trial_show(&first, tables, w, error);
  dv_trial_clear(&first);
  return status;
}

/* Keeps the numbers of all seeds that are done, whatever happens to the next. */
static dvbf_status run_study(dv_work *w, size_t index, dvbf_error *error) {
  dvbf_status status = run_seeds(&w->studies[index], w, error);
  dvbf_status kept = keep_results(w, status ? NULL : error);
  return status ? status : kept;
}

static dvbf_status run_work(dv_work *w, dvbf_error *error) {
  dv_path report;
  dv_join(report, w->folder, "report.html");
  dv_join(w->figures, w->folder, "figures");
  dvbf_status status = refuse_former(w, error);
  if (!status) status = dvbf_folder_make(w->figures, error); /* and the folder above it */
  if (!status)
    status = dvbf_page_new(&w->page, "Deep Variational Bayes Filters: the paper's experiments", error);
  for (size_t k = 0; !status && !w->out->stopped && k < w->n_studies; k++) status = run_study(w, k, error);
  if (!status && !w->out->stopped) status = dvbf_page_write(w->page, report, error);
  dvbf_page_free(w->page);
  return status;
}

static void free_study(dv_study *s) {
  for (size_t i = 0; i < s->count * s->n_models; i++) dv_result_clear(&s->results[i]);
  for (size_t m = 0; m < s->n_models; m++) dvbf_settings_free(s->model[m].settings);
  dv_free(s->results);
}

void dvbf_reproduction_free(dvbf_reproduction *r) {
  if (!r) return;
  for (size_t i = 0; i < r->n_experiments; i++) {
    const dvbf_experiment_results *e = &r->experiments[i];
    for (size_t k = 0; k < e->n_tables; k++) dv_table_clear(&e->tables[k]);
    dv_free(e->tables);
  }
  dv_free(r->experiments);
  dvbf_text_free(r->json);
  dv_free(r);
}

dvbf_status dvbf_reproduce(dvbf_reproduction **out, const char *system, const char *folder,
                           const dvbf_reproduce_options *options, dvbf_error *error) {
  dvbf_error own; /* figures that fail are left out, and the report says why */
  if (!error) error = &own;
  dv_work *w = dv_calloc(1, sizeof *w);
  dvbf_reproduction *r = dv_calloc(1, sizeof *r);
  if (r) r->experiments = dv_calloc(DV_EXPERIMENTS, sizeof *r->experiments);
  dvbf_status status =
      w && r && r->experiments ? DVBF_OK : dv_fail(error, DVBF_MEMORY, "out of memory for an experiment");
  if (!status) {
    if (options) w->options = *options;
    if (!w->options.seeds) w->options.seeds = 1;
    if (w->options.models && !strcmp(w->options.models, "paper")) w->options.models = NULL;
    w->folder = folder;
    w->out = r;
    if (!strcmp(system, "zoo")) {
      status = dv_zoo_run(r, folder, &w->options, error);
    } else {
      status = plan(w, system, error);
      if (!status) status = run_work(w, error);
    }
    for (size_t k = 0; k < w->n_studies; k++) free_study(&w->studies[k]);
  }
  dv_free(w);
  if (status)
    dvbf_reproduction_free(r);
  else
    *out = r;
  return status;
}
