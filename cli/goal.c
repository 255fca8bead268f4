#include "goal.h"

#include "files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { X, Z, STATE, MAP, WEIGHTS };

/* "5,0.3": the numbers themselves. NULL where the text is anything else. */
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

/* One array of the goal; its values must be whole goals of `width` numbers. */
static dvbf_status take(cli_goal *g, size_t number, const char *path, const char *name, size_t width,
                        size_t *goals, dvbf_error *error) {
  size_t count = 0;
  dvbf_status status = DVBF_OK;
  if (cli_exists(path))
    status = dvbf_numbers_read(&g->arrays[number], &count, path, name, error);
  else if (!(g->arrays[number] = numbers_of(path, &count)))
    status =
        cli_fail(error, DVBF_IO, "%.300s: there is no such file, and it is no list of numbers either", path);
  if (status || !count) return status;
  if (!width || count % width || (*goals && count / width != *goals))
    return cli_fail(error, DVBF_ARGUMENT,
                    "%.200s: %s of the goal has %zu numbers, which are not %s of %zu, as the model has", path,
                    name, count, *goals ? "as many goals as the others" : "goals", width);
  *goals = count / width;
  return DVBF_OK;
}

/* The regression of the state on z. */
static dvbf_status regress(cli_goal *g, const char *path, const dvbf_model *model, size_t n_z,
                           const dvbf_sequences *sequences, size_t *columns, dvbf_error *error) {
  if (!sequences) return cli_exists(path) ? take(g, MAP, path, "map", n_z + 1, columns, error) : DVBF_OK;
  *columns = sequences->n_s;
  g->arrays[MAP] = calloc(*columns * (n_z + 1) + 1, sizeof **g->arrays);
  if (!g->arrays[MAP]) return cli_fail(error, DVBF_MEMORY, "out of memory while reading a goal");
  return dvbf_state_map(g->arrays[MAP], NULL, model, sequences, error);
}

/* Columns of a state that are nan in a list count nothing. */
static dvbf_status leave_out(cli_goal *g, size_t columns, size_t goals, dvbf_error *error) {
  float *state = g->arrays[STATE];
  g->arrays[WEIGHTS] = calloc(columns + 1, sizeof *state);
  if (!g->arrays[WEIGHTS]) return cli_fail(error, DVBF_MEMORY, "out of memory while reading a goal");
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
  if (!status && !cli_exists(path)) status = leave_out(g, columns, *goals, error);
  g->goal.n_s = columns;
  return status;
}

dvbf_status cli_goal_read(cli_goal *g, const char *path, const dvbf_model *model,
                          const dvbf_settings *settings, const dvbf_sequences *sequences, dvbf_error *error) {
  dvbf_model_info info = dvbf_model_describe(model);
  size_t n_z = info.n_z, *goals = &g->goal.count, one = 1;
  char space[16] = "";
  *g = (cli_goal){0};
  dvbf_status status = dvbf_settings_get(settings, "goal-in", space, sizeof space, error);
  bool by_state = !strcmp(space, "state"), file = cli_exists(path);
  if (!status && by_state) status = read_state(g, path, model, n_z, sequences, error);
  if (!status && (file || !g->arrays[STATE])) status = take(g, X, path, "x", info.n_x, goals, error);
  if (!status && file) status = take(g, Z, path, "z", n_z, goals, error);
  size_t width = by_state ? g->goal.n_s : !strcmp(space, "x") ? info.n_x : n_z;
  if (!status && file) status = take(g, WEIGHTS, path, "weights", width, &one, error);
  if (status) return status;
  if (!*goals)
    return cli_fail(error, DVBF_FORMAT, "%.300s: holds no array named x (a goal as an observation) or z",
                    path);
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
