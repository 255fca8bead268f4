/* The inputs of most commands: model and data (cli_inputs_read), split as in training, so that held-out data
 * stay held out; and goals of controllers, from numbers or files (cli_goal_read). */
#include "inputs.h"

#include "options.h"
#include "progress.h"
#include "ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

dvbf_status cli_load_model(dvbf_model **out, const char *run, dvbf_error *error) {
  dv_path path;
  dvbf_error inner = {0};
  if (!cli_is_folder(run)) {
    dvbf_status status = dvbf_model_load(out, run, &inner);
    if (!status) return DVBF_OK;
    return dv_fail(error, status,
                   status == DVBF_FORMAT
                       ? "%.400s; RUN must be a folder written by `dvbf train -o`, or the model file in it"
                       : "%s",
                   inner.message);
  }
  dv_join(path, run, DVBF_RUN_MODEL);
  if (!dv_exists(path))
    return dv_fail(error, DVBF_IO,
                   "%.300s: contains no %s; RUN must be a folder written by `dvbf train -o`, or a model file",
                   run, DVBF_RUN_MODEL);
  return dvbf_model_load(out, path, error);
}

dvbf_status cli_data_read(dvbf_data **out, const char *path, const cli_options *options,
                          const dvbf_settings *how, dvbf_error *error) {
  const char **paths = calloc(options->n_more + 1, sizeof *paths);
  if (!paths) return dv_fail(error, DVBF_MEMORY, "out of memory while reading data");
  paths[0] = path;
  for (size_t i = 0; i < options->n_more; i++) paths[i + 1] = options->more[i];
  dvbf_status status = dvbf_data_read_files(out, paths, options->n_more + 1, how, error);
  free((void *)paths);
  return status;
}

/* Whether a forecast past the end of the recordings is wanted. */
static bool from_end(const cli_inputs *in, const cli_options *options) {
  char from[16] = "";
  return !strcmp(options->command->name, "predict") &&
         !dvbf_settings_get(in->settings, "from", from, sizeof from, NULL) && !strcmp(from, "end");
}

/* A forecast past the end of a recording uses all of it, and x is missing for planned inputs. */
static dvbf_status read_input(cli_inputs *in, const cli_options *options, const char *path,
                              dvbf_error *error) {
  dvbf_settings *how = NULL;
  dvbf_status status =
      cli_options_settings_over(&how, options, "data", dvbf_model_settings(in->model), NULL, NULL, error);
  char split[16] = "";
  bool end = !status && from_end(in, options);
  if (end && !cli_option(options, "split")) status = dvbf_settings_set(in->settings, "split", "all", error);
  if (!status && end && !cli_option(options, "missing"))
    status = dvbf_settings_set(how, "missing", "nan", error);
  if (!status) status = dvbf_settings_get(in->settings, "split", split, sizeof split, error);
  if (!status && !strcmp(split, "all")) status = dvbf_settings_set(how, "split-by", "none", error);
  if (!status) dvbf_settings_ranks(how, cli_ranks());
  if (!status) status = cli_data_read(&in->data, path, options, how, error);
  if (!status && end && in->data->test.count && !cli_option(options, "split"))
    status = dvbf_settings_set(in->settings, "split", "test", error);
  dvbf_settings_free(how);
  return status;
}

static dvbf_status choose_split(cli_inputs *in, const char *path, dvbf_error *error) {
  dvbf_error inner = {0};
  dvbf_status status = dvbf_data_split(&in->sequences, in->data, in->settings, &inner);
  return status ? dv_fail(error, status, "%.300s: %s", path, inner.message) : DVBF_OK;
}

dvbf_status cli_inputs_read(cli_inputs *in, const cli_options *options, dvbf_error *error) {
  *in = (cli_inputs){0};
  const char *path = options->command->arguments[1] ? options->arguments[1] : cli_option(options, "from");
  if (!path) path = cli_option(options, "data");
  dvbf_status status = cli_options_settings(&in->settings, options, options->command->tables[0], error);
  if (!status) status = cli_load_model(&in->model, options->arguments[0], error);
  if (status) return status;
  in->info = dvbf_model_describe(in->model);
  /* Samples without data get the columns and images of training, if the run knows them. */
  if (!path && !strcmp(options->command->name, "sample") && cli_is_folder(options->arguments[0]))
    status = dvbf_run_data(&in->data, options->arguments[0], error);
  if (!status && in->data && in->data->train.n_x != in->info.n_x) {
    dvbf_data_free(in->data);
    in->data = NULL;
  }
  if (!path || status) return status;
  status = read_input(in, options, path, error);
  if (!status) status = choose_split(in, path, error);
  return status;
}

void cli_inputs_free(cli_inputs *in) {
  dvbf_data_free(in->data);
  dvbf_model_free(in->model);
  dvbf_settings_free(in->settings);
}

/* ---- Goals ---- */

enum { X, Z, STATE, MAP, WEIGHTS };

/* Reads a list such as "5,0.3"; NULL if the text is anything else. */
static float *numbers_of(const char *text, size_t *count) {
  size_t room = strlen(text) / 2 + 1;
  float *out = calloc(room, sizeof *out);
  *count = 0;
  for (const char *at = text; out && *count < room;) {
    char *end = NULL;
    out[*count] = strtof(at, &end);
    if (end == at || (*end && *end != ',')) break;
    ++*count;
    if (!*end) return out;
    at = end + 1;
  }
  free(out);
  return NULL;
}

/* Reads one array of the goal, [goals][width]. */
static dvbf_status take(cli_goal *g, size_t number, const char *path, const char *name, size_t width,
                        size_t *goals, dvbf_error *error) {
  size_t count = 0;
  dvbf_status status = DVBF_OK;
  if (dv_exists(path))
    status = dvbf_numbers_read(&g->arrays[number], &count, path, name, error);
  else if (!(g->arrays[number] = numbers_of(path, &count)))
    status = dv_fail(error, DVBF_IO, "%.300s: not a list of numbers, and no such file", path);
  if (status || !count) return status;
  if (!width || count % width || (*goals && count / width != *goals))
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: %s of the goal has %zu numbers; it must have %s of %zu",
                   path, name, count,
                   *goals ? "as many goals as the other arrays, each" : "one or several goals", width);
  *goals = count / width;
  return DVBF_OK;
}

/* The linear map from z to the state. */
static dvbf_status regress(cli_goal *g, const char *path, const dvbf_model *model, size_t n_z,
                           const dvbf_sequences *sequences, size_t *columns, dvbf_error *error) {
  if (!sequences) return dv_exists(path) ? take(g, MAP, path, "map", n_z + 1, columns, error) : DVBF_OK;
  *columns = sequences->n_s;
  g->arrays[MAP] = calloc(*columns * (n_z + 1) + 1, sizeof **g->arrays);
  if (!g->arrays[MAP]) return dv_fail(error, DVBF_MEMORY, "out of memory while reading a goal");
  return dvbf_state_map(g->arrays[MAP], NULL, model, sequences, error);
}

/* Columns of a state that are nan in a list have weight 0. */
static dvbf_status leave_out(cli_goal *g, size_t columns, size_t goals, dvbf_error *error) {
  float *state = g->arrays[STATE];
  g->arrays[WEIGHTS] = calloc(columns + 1, sizeof *state);
  if (!g->arrays[WEIGHTS]) return dv_fail(error, DVBF_MEMORY, "out of memory while reading a goal");
  for (size_t i = 0; i < columns; i++) g->arrays[WEIGHTS][i] = 1;
  for (size_t i = 0; i < columns * goals; i++)
    if (isnan(state[i])) state[i] = 0, g->arrays[WEIGHTS][i % columns] = 0;
  return DVBF_OK;
}

static dvbf_status read_state(cli_goal *g, const char *path, const dvbf_model *model, size_t n_z,
                              const dvbf_sequences *sequences, dvbf_error *error) {
  size_t columns = 0, *goals = &g->goal.count;
  dvbf_status status = regress(g, path, model, n_z, sequences, &columns, error);
  if (status || !columns) return status;
  status = take(g, STATE, path, "state", columns, goals, error);
  if (!status && !dv_exists(path)) status = leave_out(g, columns, *goals, error);
  g->goal.n_s = columns;
  return status;
}

dvbf_status cli_goal_read(cli_goal *g, const char *path, const dvbf_model *model,
                          const dvbf_settings *settings, const dvbf_sequences *sequences, dvbf_error *error) {
  dvbf_model_info info = dvbf_model_describe(model);
  size_t n_z = info.n_z, *goals = &g->goal.count, one = 1;
  char space[16] = "";
  *g = (cli_goal){0};
  dvbf_status status = dvbf_settings_get(settings, "goal-space", space, sizeof space, error);
  bool by_state = !strcmp(space, "state"), file = dv_exists(path);
  if (!status && by_state) status = read_state(g, path, model, n_z, sequences, error);
  if (!status && (file || !g->arrays[STATE])) status = take(g, X, path, "x", info.n_x, goals, error);
  if (!status && file) status = take(g, Z, path, "z", n_z, goals, error);
  size_t width = by_state ? g->goal.n_s : !strcmp(space, "x") ? info.n_x : n_z;
  if (!status && file) status = take(g, WEIGHTS, path, "weights", width, &one, error);
  if (status) return status;
  if (!*goals)
    return dv_fail(error, DVBF_FORMAT,
                   "%.300s: contains no array x (an observation) or z (a latent state) as the goal", path);
  g->goal.x = g->arrays[X];
  g->goal.z = g->arrays[Z];
  g->goal.state = g->arrays[STATE];
  g->goal.map = g->arrays[MAP];
  g->goal.weights = g->arrays[WEIGHTS];
  return DVBF_OK;
}

void cli_goal_free(cli_goal *g) {
  for (size_t i = 0; i < sizeof g->arrays / sizeof *g->arrays; i++) dvbf_bytes_free(g->arrays[i]);
  *g = (cli_goal){0};
}
