/* dvbf control: controls as observations come in. */
#include "files.h"
#include "inputs.h"
#include "results.h"
#include "stream.h"

#include <dvbf/control.h>
#include <stdlib.h>
#include <string.h>

typedef struct steering {
  dvbf_model *model;
  dvbf_model_info info;
  dvbf_settings *settings;
  dvbf_goal goal;
  float *arrays[5]; /* of the goal, to be freed: x, z, state, map, weights */
  void *memory;
  dvbf_controller *controller;
  cli_stream stream;
  bool json;
  size_t step; /* lines so far */
} steering;

/* ---- The goal ---- */

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
static dvbf_status take(steering *s, size_t number, const char *path, const char *name, size_t width,
                        size_t *goals, dvbf_error *error) {
  size_t count = 0;
  dvbf_status status = DVBF_OK;
  if (cli_exists(path) || number)
    status = dvbf_numbers_read(&s->arrays[number], &count, path, name, error);
  else if (!(s->arrays[number] = numbers_of(path, &count)))
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

static dvbf_status read_goal(steering *s, const char *path, dvbf_error *error) {
  size_t n_z = s->info.n_z, columns = 0, *goals = &s->goal.count, one = 1;
  char space[16] = "";
  dvbf_status status = dvbf_settings_get(s->settings, "goal-in", space, sizeof space, error);
  bool by_state = !strcmp(space, "state"), file = cli_exists(path);
  if (!status) status = take(s, 0, path, "x", s->info.n_x, goals, error);
  if (!status && file) status = take(s, 1, path, "z", n_z, goals, error);
  if (!status && file && by_state) status = take(s, 3, path, "map", n_z + 1, &columns, error);
  if (!status && file && by_state && columns) status = take(s, 2, path, "state", columns, goals, error);
  size_t width = by_state ? columns : !strcmp(space, "x") ? s->info.n_x : n_z;
  if (!status && file) status = take(s, 4, path, "weights", width, &one, error);
  if (status) return status;
  if (!*goals)
    return cli_fail(error, DVBF_FORMAT, "%.300s: holds no array named x (a goal as an observation) or z",
                    path);
  s->goal.n_s = columns;
  s->goal.x = s->arrays[0];
  s->goal.z = s->arrays[1];
  s->goal.state = s->arrays[2];
  s->goal.map = s->arrays[3];
  s->goal.weights = s->arrays[4];
  return DVBF_OK;
}

/* ---- Making ---- */

static dvbf_status make_controller(steering *s, dvbf_error *error) {
  size_t size = 0;
  dvbf_status status = dvbf_controller_memsize(&size, s->model, &s->goal, s->settings, error);
  if (status) return status;
  s->memory = aligned_alloc(64, size);
  if (!s->memory) return cli_fail(error, DVBF_MEMORY, "out of memory while preparing to control");
  return dvbf_controller_init(&s->controller, s->memory, size, s->model, &s->goal, s->settings, error);
}

static void free_steering(steering *s) {
  cli_stream_close(&s->stream);
  free(s->memory);
  for (size_t i = 0; i < sizeof s->arrays / sizeof *s->arrays; i++) dvbf_bytes_free(s->arrays[i]);
  dvbf_settings_free(s->settings);
  dvbf_model_free(s->model);
}

/* ---- Writing ---- */

static void put_csv(const steering *s, const dvbf_control *c) {
  if (s->step == 0) {
    printf("step");
    for (size_t i = 0; i < c->n_u; i++) printf(",u%zu", i);
    printf(",ready,cost,iterations");
    for (size_t i = 0; i < c->n_z; i++) printf(",z%zu", i);
    for (size_t i = 0; i < c->n_z; i++) printf(",z%zu_std", i);
    printf("\n");
  }
  float cost = (float)c->cost;
  printf("%zu", s->step);
  cli_put_numbers(c->u, c->n_u);
  printf(",%d", c->ready);
  cli_put_numbers(&cost, 1);
  printf(",%d", c->iterations);
  cli_put_numbers(c->belief.ready ? c->belief.mean : NULL, c->n_z);
  cli_put_numbers(c->belief.ready ? c->belief.deviation : NULL, c->n_z);
  printf("\n");
}

static void put_json(const steering *s, const dvbf_control *c) {
  json_t *line = json_pack("{s:I, s:o, s:b}", "step", (json_int_t)s->step, "u", cli_list(c->u, c->n_u),
                           "ready", c->ready);
  if (c->reason) json_object_set_new(line, "reason", json_string(c->reason));
  if (c->belief.ready) json_object_set_new(line, "z", cli_belief(&c->belief, c->n_z));
  if (c->ready)
    json_object_set_new(line, "plan",
                        json_pack("{s:o, s:i, s:o, s:o}", "cost", cli_number(c->cost), "iterations",
                                  c->iterations, "u", cli_table(c->plan_u, c->steps, c->n_u), "z",
                                  cli_table(c->plan_z, c->steps + 1, c->n_z)));
  cli_put_line(line);
}

/* ---- Following ---- */

static dvbf_status follow_line(steering *s, dvbf_error *error) {
  dvbf_control control;
  dvbf_controller_step(s->controller, s->stream.x, s->stream.n_u ? s->stream.u : NULL, &control);
  (s->json ? put_json : put_csv)(s, &control);
  s->step++;
  return cli_answer(error);
}

static dvbf_status prepare(steering *s, const cli_options *options, dvbf_error *error) {
  const char *goal = NULL;
  dvbf_status status = cli_option_needed(&goal, options, "goal", error);
  if (!status && !cli_option(options, "follow"))
    status = cli_fail(error, DVBF_ARGUMENT, "control needs --follow: it answers each line of standard input");
  if (!status) status = cli_options_settings(&s->settings, options, "control", error);
  if (!status) status = cli_load_model(&s->model, options->arguments[0], error);
  if (status) return status;
  s->info = dvbf_model_describe(s->model);
  status = read_goal(s, goal, error);
  if (!status) status = make_controller(s, error);
  size_t n_u = cli_option(options, "applied") ? s->info.n_u : 0;
  if (!status) status = cli_stream_open(&s->stream, s->model, n_u, error);
  return status;
}

static dvbf_status run(const cli_options *options, dvbf_error *error) {
  steering s = {0};
  bool more = true;
  dvbf_status status = prepare(&s, options, error);
  while (!status && more) {
    status = cli_stream_next(&s.stream, &more, error);
    s.json = s.stream.json || cli_option(options, "json");
    if (!status && more) status = follow_line(&s, error);
  }
  free_steering(&s);
  return status;
}

const cli_command cli_control = {
    .name = "control",
    .synopsis = "RUN --goal GOAL --low LIST --high LIST --follow [--SETTING VALUE ...]",
    .help = "bring the system to a goal: a control for each observation that comes in",
    .details =
        "\nRUN is a run folder or a model file of a system with inputs.\n"
        "GOAL is a file with an array x, an observation of the system at rest where it is to be (several "
        "are\n"
        "several goals, of which the nearest counts), or z, a latent state, or the numbers of an "
        "observation\n"
        "with commas between. With --goal-in state it has the arrays state [goals, columns] and map\n"
        "[columns, latent + 1], the regression of the state on z with the intercept last. An array "
        "`weights`\n"
        "says how much each column of the distance counts.\n\n"
        "Each line of standard input is an observation: fields of CSV, or those that the header names as in\n"
        "training; or JSON as {\"x\": [0.5, null]}. An empty field, nan or null is a missing value. With\n"
        "--applied a line also has the control that acted since the line before (u). After each line\n"
        "the control to apply is written and flushed, in the same format, with the cost of the plan and the\n"
        "belief; JSON has the whole plan. The control is the safe one where `ready` is 0.",
    .examples = {{"sensor | dvbf control run --goal goal.npz --low -5 --high 5 --follow",
                  "controls while observations come in"},
                 {"sensor | dvbf control run --goal 0.4 --goal-in x --low 0 --high 10 --follow",
                  "a model of one column: x is to be 0.4"}},
    .arguments = {"RUN"},
    .flags = {{0, "goal", "GOAL", "file with the goal, or its numbers with commas between"},
              {0, "follow", NULL, "read observations from standard input, line by line"},
              {0, "applied", NULL, "lines have the control that acted, too"},
              {0, "json", NULL, "write lines of JSON, also where CSV is read"}},
    .tables = {"control"},
    .run = run,
};
