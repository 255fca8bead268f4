#include "follow.h"

#include "inputs.h"
#include "results.h"
#include "stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_QUANTILES = 32 };

typedef struct follower {
  dvbf_model *model;
  dvbf_model_info info;
  bool same_row; /* x depends on u of its own line */
  dvbf_filter *filter;
  void *memory;
  cli_stream stream;
  bool json;       /* what is written */
  size_t step;     /* lines so far */
  float *u;        /* [n_u] the control that acts now: that of the last line which had one */
  float *controls; /* [ahead][n_u] of the steps ahead */
  dvbf_ahead ahead;
  double quantiles[MOST_QUANTILES];
} follower;

/* ---- Making ---- */

static dvbf_status read_ahead(follower *f, const cli_options *options, dvbf_error *error) {
  const char *text = cli_option(options, "ahead");
  char *end = NULL;
  long steps = text ? strtol(text, &end, 10) : 1;
  if (text && (end == text || *end || steps < 0 || steps > 100000))
    return cli_fail(error, DVBF_ARGUMENT, "ahead = %.40s: must be a number of steps in [0, 100000]", text);
  f->ahead.steps = (size_t)steps;
  return DVBF_OK;
}

/* "0.05,0.95" or "none". */
static dvbf_status read_quantiles(follower *f, const cli_options *options, dvbf_error *error) {
  const char *text = cli_option(options, "quantiles"), *rest = text ? text : "0.05,0.5,0.95";
  while (strcmp(rest, "none") != 0) {
    char *end = NULL;
    double share = strtod(rest, &end);
    if (end == rest || (*end && *end != ',') || !(share > 0 && share < 1) ||
        f->ahead.n_quantiles == MOST_QUANTILES)
      return cli_fail(error, DVBF_ARGUMENT,
                      "quantiles = %.60s: must be at most %d numbers in (0, 1) with commas between, or none",
                      text, MOST_QUANTILES);
    f->quantiles[f->ahead.n_quantiles++] = share;
    if (!*end) break;
    rest = end + 1;
  }
  f->ahead.quantiles = f->quantiles;
  return DVBF_OK;
}

/* *out = room for that many floats; a failure shows in `done`. */
static void make_room(float **out, size_t a, size_t b, size_t c, bool *done) {
  *out = calloc(a * b * c + 1, sizeof **out);
  *done = *done && *out;
}

static dvbf_status make_filter(follower *f, size_t samples, uint64_t seed, dvbf_error *error) {
  size_t size = 0, steps = f->ahead.steps;
  bool done = true;
  dvbf_status status = dvbf_filter_memsize(&size, f->model, samples, error);
  if (status) return status;
  f->memory = aligned_alloc(64, size);
  make_room(&f->u, 1, 1, f->info.n_u, &done);
  make_room(&f->controls, 1, steps, f->info.n_u, &done);
  make_room(&f->ahead.x, 1, steps, f->info.n_x, &done);
  make_room(&f->ahead.x_std, 1, steps, f->info.n_x, &done);
  make_room(&f->ahead.x_quantiles, f->ahead.n_quantiles, steps, f->info.n_x, &done);
  if (!f->memory || !done) return cli_fail(error, DVBF_MEMORY, "out of memory while preparing to follow");
  f->ahead.u = f->info.n_u ? f->controls : NULL;
  return dvbf_filter_init(&f->filter, f->memory, size, f->model, samples, seed, error);
}

static void free_follower(follower *f) {
  cli_stream_close(&f->stream);
  free(f->memory);
  free(f->u);
  free(f->controls);
  free(f->ahead.x);
  free(f->ahead.x_std);
  free(f->ahead.x_quantiles);
  dvbf_model_free(f->model);
}

/* ---- Writing ---- */

static void put_header(const follower *f) {
  const dvbf_ahead *a = &f->ahead;
  printf("step");
  for (size_t i = 0; i < f->info.n_z; i++) printf(",z%zu", i);
  for (size_t i = 0; i < f->info.n_z; i++) printf(",z%zu_std", i);
  for (size_t t = 0; t < a->steps; t++) {
    for (size_t i = 0; i < f->info.n_x; i++) printf(",%s+%zu", f->stream.names[i], t + 1);
    for (size_t i = 0; i < f->info.n_x; i++) printf(",%s+%zu_std", f->stream.names[i], t + 1);
    for (size_t q = 0; q < a->n_quantiles; q++)
      for (size_t i = 0; i < f->info.n_x; i++)
        printf(",%s+%zu_q%g", f->stream.names[i], t + 1, a->quantiles[q]);
  }
  printf("\n");
}

static void put_csv(const follower *f, const dvbf_belief *belief) {
  const dvbf_ahead *a = &f->ahead;
  size_t n_x = f->info.n_x, n_z = f->info.n_z;
  bool ready = belief->ready;
  if (f->step == 0) put_header(f);
  printf("%zu", f->step);
  cli_put_numbers(ready ? belief->mean : NULL, n_z);
  cli_put_numbers(ready ? belief->deviation : NULL, n_z);
  for (size_t t = 0; t < a->steps; t++) {
    cli_put_numbers(ready ? a->x + t * n_x : NULL, n_x);
    cli_put_numbers(ready ? a->x_std + t * n_x : NULL, n_x);
    for (size_t q = 0; q < a->n_quantiles; q++)
      cli_put_numbers(ready ? a->x_quantiles + (q * a->steps + t) * n_x : NULL, n_x);
  }
  printf("\n");
}

static void put_json(const follower *f, const dvbf_belief *belief) {
  const dvbf_ahead *a = &f->ahead;
  size_t n_x = f->info.n_x;
  json_t *line = json_pack("{s:I, s:b}", "step", (json_int_t)f->step, "ready", belief->ready);
  if (belief->ready) {
    json_object_set_new(line, "z", cli_belief(belief, f->info.n_z));
    json_t *quantiles = json_object();
    for (size_t q = 0; q < a->n_quantiles; q++) {
      char name[32];
      snprintf(name, sizeof name, "%g", a->quantiles[q]);
      json_object_set_new(quantiles, name, cli_table(a->x_quantiles + q * a->steps * n_x, a->steps, n_x));
    }
    json_object_set_new(line, "forecast",
                        json_pack("{s:o, s:o, s:o}", "x", cli_table(a->x, a->steps, n_x), "std",
                                  cli_table(a->x_std, a->steps, n_x), "quantiles", quantiles));
  }
  cli_put_line(line);
}

/* ---- Following ---- */

/* The control that acts from now on; one that is missing goes on as it was. */
static void take_control(follower *f) {
  for (size_t i = 0; i < f->info.n_u; i++)
    if (isfinite(f->stream.u[i])) f->u[i] = f->stream.u[i];
}

/* Controls ahead: the one that acts now, unless it belongs to this line, then those that are announced, and
 * the last of them again and again. */
static void plan_controls(follower *f) {
  size_t n_u = f->info.n_u, now = f->same_row ? 0 : 1;
  for (size_t t = 0; n_u && t < f->ahead.steps; t++) {
    size_t later = t - now; /* only where t >= now */
    const float *from = t < now                      ? f->u
                        : later < f->stream.n_future ? f->stream.future + later * n_u
                        : t                          ? f->controls + (t - 1) * n_u
                                                     : f->u;
    memcpy(f->controls + t * n_u, from, n_u * sizeof *from);
  }
}

static dvbf_status follow_line(follower *f, dvbf_error *error) {
  dvbf_belief belief;
  dvbf_status status = DVBF_OK;
  if (f->same_row) take_control(f);
  dvbf_filter_step(f->filter, f->stream.x, f->info.n_u ? f->u : NULL, &belief);
  if (!f->same_row) take_control(f);
  plan_controls(f);
  if (belief.ready && f->ahead.steps) status = dvbf_filter_predict(f->filter, &f->ahead, error);
  if (status) return status;
  (f->json ? put_json : put_csv)(f, &belief);
  f->step++;
  return cli_answer(error);
}

static dvbf_status number_of(const dvbf_settings *settings, const char *name, uint64_t *out,
                             dvbf_error *error) {
  char text[64] = "";
  dvbf_status status = dvbf_settings_get(settings, name, text, sizeof text, error);
  *out = strtoull(text, NULL, 10);
  return status;
}

static dvbf_status prepare(follower *f, const cli_options *options, dvbf_settings **settings,
                           dvbf_error *error) {
  uint64_t samples = 0, seed = 0;
  dvbf_status status = cli_options_settings(settings, options, "filter", error);
  if (!status) status = read_ahead(f, options, error);
  if (!status) status = read_quantiles(f, options, error);
  if (!status) status = cli_load_model(&f->model, options->arguments[0], error);
  if (status) return status;
  f->info = dvbf_model_describe(f->model);
  f->same_row = f->info.feedthrough;
  status = number_of(*settings, "samples", &samples, error);
  if (!status) status = number_of(*settings, "seed", &seed, error);
  if (!status) status = make_filter(f, (size_t)samples, seed, error);
  if (!status) status = cli_stream_open(&f->stream, f->model, f->info.n_u, error);
  return status;
}

dvbf_status cli_follow(const cli_options *options, dvbf_error *error) {
  follower f = {0};
  dvbf_settings *settings = NULL;
  bool more = true;
  dvbf_status status = prepare(&f, options, &settings, error);
  while (!status && more) {
    status = cli_stream_next(&f.stream, &more, error);
    f.json = f.stream.json || cli_option(options, "json");
    if (!status && more) status = follow_line(&f, error);
  }
  free_follower(&f);
  dvbf_settings_free(settings);
  return status;
}
