/* `dvbf reproduce zoo` (dv_zoo_run): every simulated system as video, learned with the settings chosen for
 * its data, for several seeds; results.json and report.html with R^2 of positions and velocities, and errors
 * AHEAD steps ahead. */
#include "experiments/paper.h"

#include "base/error.h"
#include "base/memory.h"
#include "experiments/system.h"
#include "model/train_settings.h"
#include "report/page.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Systems, which are simulated as images of 32 x 32 pixels, otherwise on top of their defaults. */
static const struct {
  const char *name, *system;
  int64_t train, valid;
  bool rod; /* a pendulum is drawn as a rod */
} animals[] = {
    {"pendulum", "pendulum", 500, 100, false},   {"pendulum, rod", "pendulum", 500, 100, true},
    {"ball", "ball", 500, 100, false},           {"two balls", "two-balls", 500, 100, false},
    {"cart-pole", "cart-pole", 500, 100, false}, {"arm", "arm", 500, 100, false},
    {"planar", "planar", 500, 100, false},       {"dot", "dot", 500, 100, false},
    {"dot, 64 sequences", "dot", 56, 8, false},  {"textured dot", "textured-dot", 500, 100, false},
    {"camera", "camera", 500, 100, false},
};
enum { ANIMALS = sizeof animals / sizeof *animals, AHEAD = 10 };

/* Results of one training, on test data. */
enum { ERROR, ERROR_REPEAT, PLACE, VELOCITY, DISTANCE, SECONDS, MEASURES };
static const struct {
  const char *heading, *key;
  int decimals;
} values[MEASURES] = {{"error, 10 ahead", "error_10", 3},     {"last frame", "error_10_repeat", 3},
                      {"R^2 of places", "place_r2", 3},       {"R^2 of velocities", "velocity_r2", 3},
                      {"pixels, 10 ahead", "distance_10", 2}, {"seconds", "seconds", 0}};

typedef struct result {
  size_t animal;
  uint64_t seed;
  double value[MEASURES]; /* NaN: there is none */
} result;

typedef struct zoo {
  const dvbf_reproduce_options *options;
  const char *folder;
  result *results; /* [count] */
  size_t count;
  dvbf_reproduction *out;
} zoo;

/* ---- One training ---- */

static dvbf_status simulate(dvbf_data **out, size_t animal, uint64_t seed, const char *path,
                            dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_status status = dvbf_settings_new(&settings, animals[animal].system, error);
  if (status) return status;
  dv_system_data *d = dv_settings_edit(settings);
  d->train = animals[animal].train;
  d->valid = animals[animal].valid;
  d->test = 100;
  d->steps = 30;
  d->size = 32;
  d->seed = (int64_t)seed;
  if (animals[animal].rod) ((dv_pendulum_settings *)dv_settings_edit(settings))->shape = DV_SHAPE_ROD;
  status = dvbf_simulate(out, settings, error);
  if (!status) status = dvbf_data_write(*out, path, error);
  dvbf_settings_free(settings);
  return status;
}

static bool on_progress(const dvbf_progress *p, void *user) {
  zoo *z = user;
  if (z->options->progress && !z->options->progress(p, z->options->user_data)) z->out->stopped = true;
  return !z->out->stopped;
}

static dvbf_status train(zoo *z, dvbf_model **out, const dvbf_data *data, uint64_t seed, const char *run,
                         dvbf_error *error) {
  dvbf_settings *s = NULL;
  dvbf_train_options o = {.progress = on_progress, .user_data = z, .folder = run, .force = z->options->force};
  dvbf_status status = dvbf_settings_new(&s, "train", error);
  if (!status && z->options->settings) status = dv_settings_lay(s, z->options->settings, error);
  if (!status) ((dv_train_settings *)dv_settings_edit(s))->seed = (int64_t)seed;
  if (!status) status = dvbf_settings_choose(s, data, NULL, NULL, error);
  if (!status) status = dvbf_train(out, s, data, &o, error);
  dvbf_settings_free(s);
  return status;
}

/* The least R^2 of positions and of velocities. */
static void take_regressions(result *r, const dvbf_evaluation *e) {
  for (size_t i = 0; i < e->n_regressions; i++) {
    double *least = &r->value[strstr(e->regressions[i].name, "velocity") ? VELOCITY : PLACE];
    if (!(e->regressions[i].r2 >= *least)) *least = e->regressions[i].r2;
  }
}

static dvbf_status evaluate(result *r, const dvbf_model *model, const dvbf_data *data, dvbf_error *error) {
  dvbf_settings *s = NULL;
  dvbf_evaluation *e = NULL;
  dvbf_status status = dvbf_settings_new(&s, "evaluate", error);
  if (!status) ((dv_evaluate_settings *)dv_settings_edit(s))->verdict = false;
  if (!status) status = dvbf_evaluate(&e, model, data, &data->test, s, error);
  if (!status) {
    take_regressions(r, e);
    if (e->horizon >= AHEAD && e->pixel_variance > 0) {
      r->value[ERROR] = e->mse_mean_path[AHEAD - 1] / e->pixel_variance;
      r->value[ERROR_REPEAT] = e->mse_repeat[AHEAD - 1] / e->pixel_variance;
      if (e->distance) r->value[DISTANCE] = e->distance[AHEAD - 1];
    }
  }
  dvbf_evaluation_free(e);
  dvbf_settings_free(s);
  return status;
}

static void tell(zoo *z, const result *r, dvbf_stage_kind kind, const char *folder) {
  dvbf_stage stage = {.kind = kind, .system = animals[r->animal].name, .seed = r->seed, .folder = folder};
  const dvbf_reproduce_options *o = z->options;
  if (o->stage && !o->stage(&stage, o->user_data)) z->out->stopped = true;
}

/* NAME or, with several seeds, NAME/seed-N. */
static dvbf_status make_folder(dv_path out, const zoo *z, const result *r, dvbf_error *error) {
  char name[64];
  int n = snprintf(name, sizeof name, "%s", animals[r->animal].name);
  for (int i = 0; i < n; i++)
    if (name[i] == ' ' || name[i] == ',') name[i] = '-';
  if (z->options->seeds > 1)
    snprintf(name + n, sizeof name - (size_t)n, "/seed-%llu", (unsigned long long)r->seed);
  dv_join(out, z->folder, name);
  return dvbf_folder_make(out, error);
}

static dvbf_status run_one(zoo *z, size_t animal, uint64_t seed, dvbf_error *error) {
  result *r = &z->results[z->count];
  dv_path folder, file, run;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  *r = (result){.animal = animal, .seed = seed};
  for (int i = 0; i < MEASURES; i++) r->value[i] = NAN;
  dvbf_status status = make_folder(folder, z, r, error);
  dv_join(file, folder, "data.h5");
  dv_join(run, folder, "run");
  if (!status) tell(z, r, DVBF_SIMULATING, NULL);
  if (!status) status = dv_refuse_existing(file, z->options->force, error);
  if (!status) status = simulate(&data, animal, seed, file, error);
  if (!status) tell(z, r, DVBF_TRAINING, run);
  if (!status && !z->out->stopped) status = train(z, &model, data, seed, run, error);
  if (!status && model && !z->out->stopped) {
    tell(z, r, DVBF_EVALUATING, run);
    r->value[SECONDS] = dvbf_model_describe(model).seconds;
    status = evaluate(r, model, data, error);
    if (!status) z->count++;
  }
  dvbf_model_free(model);
  dvbf_data_free(data);
  return status;
}

/* ---- Results ---- */

static dvbf_status keep_json(const zoo *z, dvbf_error *error) {
  dv_path path;
  json_t *all = json_array();
  for (size_t i = 0; i < z->count; i++) {
    const result *r = &z->results[i];
    json_t *one = json_pack("{s:s, s:I}", "system", animals[r->animal].name, "seed", (json_int_t)r->seed);
    for (int k = 0; k < MEASURES; k++) json_object_set_new(one, values[k].key, dv_json_number(r->value[k]));
    json_array_append_new(all, one);
  }
  dvbf_status status = dv_json_text(&z->out->json, json_pack("{s:o}", "zoo", all), error);
  dv_join(path, z->folder, "results.json");
  return status ? status : dv_json_write(path, z->out->json, error);
}

static dvbf_status fill_table(dvbf_table *t, const zoo *z, dvbf_error *error) {
  dvbf_status status =
      dv_table_init(t, "On test data. Errors are relative to the variance of x: that of the mean image is 1",
                    z->count + 1, MEASURES + 1, error);
  if (status) return status;
  for (size_t k = 0; k < MEASURES; k++) dv_table_put(t, 0, k + 1, "%s", values[k].heading);
  for (size_t i = 0; i < z->count; i++) {
    const result *r = &z->results[i];
    dv_table_put(t, i + 1, 0, "%s, seed %llu", animals[r->animal].name, (unsigned long long)r->seed);
    for (size_t k = 0; k < MEASURES; k++)
      if (isfinite(r->value[k]))
        dv_table_put(t, i + 1, k + 1, "%.*f", values[k].decimals, r->value[k]);
      else
        dv_table_put(t, i + 1, k + 1, "-");
  }
  return DVBF_OK;
}

static dvbf_status write_page(const zoo *z, const dvbf_table *table, dvbf_error *error) {
  dv_path path;
  dvbf_page *page = NULL;
  dv_join(path, z->folder, "report.html");
  dvbf_status status = dvbf_page_new(&page, "Simulated systems as video", error);
  if (!status) status = dvbf_page_table(page, table, error);
  if (!status) status = dvbf_page_write(page, path, error);
  dvbf_page_free(page);
  return status;
}

static dvbf_status finish(const zoo *z, dvbf_error *error) {
  dvbf_table *table = dv_calloc(1, sizeof *table);
  if (!table) return dv_fail(error, DVBF_MEMORY, "out of memory for the results");
  z->out->n_experiments = 1;
  *z->out->experiments =
      (dvbf_experiment_results){.system = "zoo",
                                .title = "Simulated systems as video",
                                .remark = "Images of 32 x 32 pixels, with settings chosen from the data.",
                                .n_tables = 1,
                                .tables = table};
  dvbf_status status = fill_table(table, z, error);
  if (!status) status = keep_json(z, error);
  return status ? status : write_page(z, table, error);
}

dvbf_status dv_zoo_run(dvbf_reproduction *out, const char *folder, const dvbf_reproduce_options *options,
                       dvbf_error *error) {
  char first[32] = "1";
  zoo z = {.options = options, .folder = folder, .out = out};
  if (options->preset)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "preset = %.60s: the zoo is trained with settings chosen from its data; leave the preset out",
        options->preset);
  dvbf_status status =
      options->settings ? dvbf_settings_get(options->settings, "seed", first, sizeof first, error) : DVBF_OK;
  z.results = dv_calloc(options->seeds, ANIMALS * sizeof *z.results);
  if (!status && !z.results)
    status = dv_fail(error, DVBF_MEMORY, "out of memory for %zu seeds", options->seeds);
  for (size_t k = 0; k < ANIMALS && !status && !out->stopped; k++)
    for (size_t i = 0; i < options->seeds && !status && !out->stopped; i++)
      status = run_one(&z, k, strtoull(first, NULL, 10) + i, error);
  if (!status) status = finish(&z, error);
  dv_free(z.results);
  return status;
}
