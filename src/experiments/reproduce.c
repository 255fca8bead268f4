/* The paper's experiments from data to report (dvbf_reproduce): plans studies, runs their seeds, writes
 * results.json after each study, whatever happens to the next, and report.html at the end. Existing folders
 * are refused before anything is written. */
#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "experiments/paper.h"

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
  size_t m = s->n_models++;
  dvbf_status status = dvbf_settings_new(&s->settings[m], "train", error);
  if (!status) status = dvbf_settings_preset(s->settings[m], preset, error);
  if (!status && !o->preset)
    status = lay_lines(s->settings[m], s->experiment->contender[which].settings, error);
  if (!status && o->settings) status = dv_settings_lay(s->settings[m], o->settings, error);
  if (!status) status = dvbf_settings_get(s->settings[m], "model", model, sizeof model, error);
  if (status) return status;
  const dv_contender *c = s->experiment->contender;
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
  s->outcome[m] = (dv_paper_result){.experiment = s->experiment, .contender = found, .preset = preset};
  return DVBF_OK;
}

/* Models are asked for that are not in the paper's tables. */
static bool beyond_tables(const dvbf_reproduce_options *o) {
  return o->models && strcmp(o->models, "paper") != 0;
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

static bool is_wanted(const dvbf_reproduce_options *o, const char *model) {
  return !beyond_tables(o) || !strcmp(o->models, "all") || lists(o->models, model);
}

static dvbf_status check_names(const dv_study *s, const dvbf_reproduce_options *o, dvbf_error *error) {
  size_t names = 1;
  if (!beyond_tables(o) || !strcmp(o->models, "all")) return DVBF_OK;
  for (const char *at = o->models; *at; at++) names += *at == ',';
  if (names == s->n_models) return DVBF_OK;
  return dv_fail(
      error, DVBF_ARGUMENT,
      "models = %.100s: must be paper, all, or names of models of %s, each once, with commas between",
      o->models, s->experiment->system);
}

static dvbf_status plan_study(dv_study *s, const dvbf_reproduce_options *o, dvbf_error *error) {
  const dv_contender *c = s->experiment->contender;
  const char *for_system = o->preset ? dvbf_preset_system(o->preset) : NULL;
  if (o->preset && beyond_tables(o))
    return dv_fail(error, DVBF_ARGUMENT,
                   "models = %.60s: every model has a preset of its own; leave preset = %s out", o->models,
                   o->preset);
  if (for_system && strcmp(for_system, s->experiment->system) != 0)
    return dv_fail(error, DVBF_ARGUMENT, "preset = %s: it is for %s; name that system to reproduce",
                   o->preset, for_system);
  if (o->preset) return plan_model(s, o, 0, o->preset, error);
  dvbf_status status = DVBF_OK;
  for (int i = 0; !status && i < DV_MODELS && c[i].name; i++)
    if (is_wanted(o, c[i].model)) status = plan_model(s, o, i, c[i].preset, error);
  return status ? status : check_names(s, o, error);
}

static dvbf_status plan(dv_work *w, const char *system, dvbf_error *error) {
  bool all = !strcmp(system, "all");
  dvbf_status status = DVBF_OK;
  for (int i = 0; !status && i < DV_EXPERIMENTS; i++) {
    const dv_experiment *e = &dv_experiments[i];
    if (e->all_models != beyond_tables(w->options) || (!all && strcmp(system, e->system) != 0)) continue;
    dv_study *s = &w->studies[w->n_studies++];
    s->experiment = e;
    if (all)
      dv_join(s->folder, w->folder, e->system);
    else
      snprintf(s->folder, sizeof s->folder, "%s", w->folder);
    status = plan_study(s, w->options, error);
  }
  if (!status && !w->n_studies && beyond_tables(w->options) && !strcmp(system, "two-balls"))
    status = dv_fail(error, DVBF_ARGUMENT,
                     "models = %.60s: two-balls has only the model of the paper; pendulum and ball have more",
                     w->options->models);
  if (!status && !w->n_studies)
    status =
        dv_fail(error, DVBF_ARGUMENT,
                "%.60s: no such system; the known ones are: pendulum, ball, two-balls, all, zoo", system);
  char seed[32] = "1";
  if (!status) status = dvbf_settings_get(w->studies[0].settings[0], "seed", seed, sizeof seed, error);
  w->first_seed = strtoull(seed, NULL, 10);
  return status;
}

static dvbf_status refuse_trial(const dv_work *w, const dv_study *s, uint64_t seed, dvbf_error *error) {
  static const char *const names[] = {"data.h5", "long.h5", "overview.png"};
  dv_path folder, path, run;
  dvbf_status status = DVBF_OK;
  dv_trial_folder(folder, w, s, seed);
  for (size_t j = 0; !status && j < sizeof names / sizeof *names; j++) {
    dv_join(path, folder, names[j]);
    status = dv_refuse_existing(path, w->options->force, error);
  }
  for (size_t j = 0; !status && j < DV_MODELS && s->experiment->contender[j].name; j++) {
    dv_join(run, folder, s->experiment->contender[j].run);
    dv_join(path, run, DVBF_RUN_MODEL);
    status = dv_refuse_existing(path, w->options->force, error);
  }
  return status;
}

/* Checks before anything is written, so that a refusal changes nothing. */
static dvbf_status refuse_former(const dv_work *w, dvbf_error *error) {
  static const char *const results[] = {"results.json", "report.html", "figures"};
  dv_path path;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && i < sizeof results / sizeof *results; i++) {
    dv_join(path, w->folder, results[i]);
    status = dv_refuse_existing(path, w->options->force, error);
  }
  for (size_t k = 0; !status && k < w->n_studies; k++)
    for (size_t i = 0; !status && i < w->n_seeds; i++)
      status = refuse_trial(w, &w->studies[k], w->first_seed + i, error);
  return status;
}

/* ---- Results ---- */

/* {"pendulum": [a model's outcome, ...], ...} */
static dvbf_status results_text(char **out, const dv_work *w, dvbf_error *error) {
  json_t *all = json_object();
  for (size_t k = 0; k < w->n_studies; k++) {
    const dv_study *s = &w->studies[k];
    if (!s->outcome[0].count) continue;
    json_t *models = json_array();
    for (size_t m = 0; m < s->n_models; m++)
      json_array_append_new(models, dv_paper_result_json(&s->outcome[m]));
    json_object_set_new(all, s->experiment->system, models);
  }
  return dv_json_text(out, all, error);
}

static dvbf_status write_results(const dv_work *w, dvbf_error *error) {
  dv_path path;
  char *text = NULL;
  dv_join(path, w->folder, "results.json");
  dvbf_status status = results_text(&text, w, error);
  if (!status) status = dv_json_write(path, text, error);
  dvbf_text_free(text);
  return status;
}

static dvbf_status make_reproduction(dvbf_reproduction **out, dv_work *w, dvbf_error *error) {
  dvbf_reproduction *r = dv_calloc(1, sizeof *r);
  if (r) r->experiments = dv_calloc(w->n_studies, sizeof *r->experiments);
  dvbf_status status = r && r->experiments ? results_text(&r->json, w, error)
                                           : dv_fail(error, DVBF_MEMORY, "out of memory for the results");
  if (status) {
    dvbf_reproduction_free(r);
    return status;
  }
  r->stopped = w->stopped;
  for (size_t k = 0; k < w->n_studies; k++) {
    dv_study *s = &w->studies[k];
    if (!s->n_tables) continue;
    r->experiments[r->n_experiments++] = (dvbf_experiment_results){.system = s->experiment->system,
                                                                   .title = s->experiment->title,
                                                                   .remark = s->experiment->remark,
                                                                   .n_tables = s->n_tables,
                                                                   .tables = s->tables};
    s->tables = NULL;
  }
  *out = r;
  return DVBF_OK;
}

void dvbf_reproduction_free(dvbf_reproduction *r) {
  if (!r) return;
  for (size_t i = 0; r->experiments && i < r->n_experiments; i++)
    dv_paper_tables_free(r->experiments[i].tables, r->experiments[i].n_tables);
  dv_free(r->experiments);
  dvbf_text_free(r->json);
  dv_free(r);
}

/* ---- Work ---- */

/* The first seed is kept until all are done, because the report shows it below the tables of all. */
static dvbf_status run_seeds(dv_study *s, dv_work *w, dvbf_error *error) {
  dv_trial first = {.study = s, .seed = w->first_seed};
  dvbf_status status = DVBF_OK;
  for (size_t m = 0; !status && m < s->n_models; m++) {
    s->outcome[m].results = dv_calloc(w->n_seeds, sizeof *s->outcome[m].results);
    if (!s->outcome[m].results)
      status = dv_fail(error, DVBF_MEMORY, "out of memory for %zu seeds", w->n_seeds);
  }
  if (!status) status = dv_trial_run(&first, s, w, error);
  for (size_t i = 1; !status && !w->stopped && i < w->n_seeds; i++) {
    dv_trial next = {.study = s, .seed = w->first_seed + i};
    status = dv_trial_run(&next, s, w, error);
    dv_trial_clear(&next);
  }
  if (!status && s->outcome[0].count)
    status = dv_paper_tables(&s->tables, &s->n_tables, s->outcome, s->n_models, error);
  if (!status && !w->stopped) status = dv_trial_show(&first, w, error);
  dv_trial_clear(&first);
  return status;
}

/* Keeps the numbers of all seeds that are done, whatever happens to the next. */
static dvbf_status run_study(dv_work *w, size_t index, dvbf_error *error) {
  dvbf_status status = run_seeds(&w->studies[index], w, error);
  if (!w->studies[0].outcome[0].count) return status;
  dvbf_status written = write_results(w, status ? NULL : error);
  return status ? status : written;
}

static dvbf_status run_work(dv_work *w, dvbf_error *error) {
  dv_path report;
  dv_join(report, w->folder, "report.html");
  dv_join(w->figures, w->folder, "figures");
  dvbf_status status = refuse_former(w, error);
  if (!status) status = dvbf_folder_make(w->figures, error); /* and the folder above it */
  if (!status)
    status = dvbf_page_new(&w->page, "Deep Variational Bayes Filters: the paper's experiments", error);
  for (size_t k = 0; !status && !w->stopped && k < w->n_studies; k++) status = run_study(w, k, error);
  if (!status && !w->stopped) status = dvbf_page_write(w->page, report, error);
  dvbf_page_free(w->page);
  return status;
}

static void free_study(dv_study *s) {
  for (size_t m = 0; m < s->n_models; m++) {
    for (size_t i = 0; s->outcome[m].results && i < s->outcome[m].count; i++)
      dv_result_clear(&s->outcome[m].results[i]);
    dv_free(s->outcome[m].results);
    dvbf_settings_free(s->settings[m]);
  }
  dv_paper_tables_free(s->tables, s->n_tables);
}

dvbf_status dvbf_reproduce(dvbf_reproduction **out, const char *system, const char *folder,
                           const dvbf_reproduce_options *options, dvbf_error *error) {
  static const dvbf_reproduce_options none = {0};
  dvbf_error own; /* figures that fail are left out, and the report says why */
  if (!error) error = &own;
  if (!strcmp(system, "zoo")) return dv_zoo_run(out, folder, options ? options : &none, error);
  dv_work *w = dv_calloc(1, sizeof *w);
  if (!w) return dv_fail(error, DVBF_MEMORY, "out of memory for an experiment");
  w->options = options ? options : &none;
  w->folder = folder;
  w->n_seeds = w->options->seeds ? w->options->seeds : 1;
  dvbf_status status = plan(w, system, error);
  if (!status) status = run_work(w, error);
  if (!status) status = make_reproduction(out, w, error);
  for (size_t k = 0; k < w->n_studies; k++) free_study(&w->studies[k]);
  dv_free(w);
  return status;
}
