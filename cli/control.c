/* dvbf control: reads observations line by line and answers each with a control, as CSV or JSON, by a
 * controller on a trained model and a goal. */
#include "follow.h"
#include "inputs.h"
#include "output.h"

#include <dvbf/control.h>
#include <stdlib.h>
#include <string.h>

typedef struct steering {
  cli_inputs in; /* with data for the regression of a state */
  cli_goal goal;
  void *memory;
  dvbf_controller *controller;
  cli_stream stream;
  bool json;
  size_t step; /* lines so far */
} steering;

/* ---- Controller ---- */

static dvbf_status make_controller(steering *s, dvbf_error *error) {
  size_t size = 0;
  dvbf_status status = dvbf_controller_memsize(&size, s->in.model, &s->goal.goal, s->in.settings, error);
  if (status) return status;
  s->memory = aligned_alloc(64, size);
  if (!s->memory) return dv_fail(error, DVBF_MEMORY, "out of memory while preparing to control");
  return dvbf_controller_init(&s->controller, s->memory, size, s->in.model, &s->goal.goal, s->in.settings,
                              error);
}

static void free_steering(steering *s) {
  cli_stream_close(&s->stream);
  free(s->memory);
  cli_goal_free(&s->goal);
  cli_inputs_free(&s->in);
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
    status =
        dv_fail(error, DVBF_ARGUMENT, "control needs --follow, which reads observations from standard input");
  if (!status) status = cli_inputs_read(&s->in, options, error);
  if (!status) status = cli_goal_read(&s->goal, goal, s->in.model, s->in.settings, s->in.sequences, error);
  if (!status) status = make_controller(s, error);
  size_t n_u = cli_option(options, "applied") ? s->in.info.n_u : 0;
  if (!status) status = cli_stream_open(&s->stream, s->in.model, n_u, error);
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
    .help = "control a system online: a control for each incoming observation",
    .details =
        "\nRUN is a run folder or a model file of a system with inputs.\n"
        "GOAL is a list of numbers separated by commas, or a file with an array x, an observation of the\n"
        "system at rest at the goal, or z, a latent state; of several goals the nearest one counts. With\n"
        "--goal-space state it is a known state: an array `state`, or a list with nan for columns that do "
        "not\n"
        "matter. The state is a linear function of z, fitted to --data or given as an array `map`\n"
        "[columns, latent + 1], intercept last. An array `weights` weights the columns of the distance.\n"
        "\n"
        "Each line of standard input is an observation: CSV fields in the order of training, or named by a\n"
        "header line; or JSON such as {\"x\": [0.5, null]}. An empty field, nan or null is a missing value.\n"
        "With --applied each line also contains the control that acted since the previous line (u). For "
        "each\n"
        "line, the control to apply is written and flushed in the same format, with the cost of the plan "
        "and\n"
        "the belief; JSON contains the whole plan. While `ready` is 0 the control is the safe one.",
    .examples =
        {{"sensor | dvbf control run --goal goal.npz --low -5 --high 5 --follow",
          "controls for a stream of observations"},
         {"sensor | dvbf control run --goal 0.4 --goal-space x --low 0 --high 10 --follow",
          "hold the only column of x at 0.4"},
         {"sensor | dvbf control run --goal 0,1,0 --goal-space state --data d.h5 --low -5 --high 5 --follow",
          "hold a pendulum upright: sin, cos and velocity at 0, 1, 0"}},
    .arguments = {"RUN"},
    .flags = {CLI_FLAG_GOAL,
              {0, "data", "DATA", "with --goal-space state: sequences with known states"},
              {0, "follow", NULL, "read observations from standard input, line by line"},
              {0, "applied", NULL, "lines also contain the control that acted"},
              {0, "json", NULL, "write JSON lines even if the input is CSV"}},
    .tables = {"control", "data"},
    .run = run,
};
