/* dvbf filter --follow (cli_follow): beliefs and forecasts for a stream of observations. The stream itself,
 * shared with dvbf control: observations line by line as CSV or JSON, and lines of output (cli_stream_*). */
#include "follow.h"

#include "command.h"
#include "inputs.h"
#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Steps ---- */

enum { MOST_QUANTILES = 32 };

typedef struct follower {
  dvbf_model *model;
  dvbf_model_info info;
  bool same_row; /* feedthrough: x depends on u of the same line */
  dvbf_filter *filter;
  void *memory;
  cli_stream stream;
  bool json;       /* what is written */
  size_t step;     /* lines so far */
  float *u;        /* [n_u] the control that acts now, from the last line that had one */
  float *controls; /* [ahead][n_u] of the steps ahead */
  dvbf_forecast_request ahead;
  double quantiles[MOST_QUANTILES];
} follower;

static dvbf_status read_ahead(follower *f, const cli_options *options, dvbf_error *error) {
  const char *text = cli_option(options, "ahead");
  char *end = NULL;
  long steps = text ? strtol(text, &end, 10) : 1;
  if (text && (end == text || *end || steps < 0 || steps > 100000))
    return dv_fail(error, DVBF_ARGUMENT,
                   "--ahead %.40s: must be a whole number in [0, 100000]; the default is 1", text);
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
      return dv_fail(error, DVBF_ARGUMENT,
                     "--quantiles %.60s: must be none, or at most %d numbers in (0, 1) separated by commas",
                     text, MOST_QUANTILES);
    f->quantiles[f->ahead.n_quantiles++] = share;
    if (!*end) break;
    rest = end + 1;
  }
  f->ahead.quantiles = f->quantiles;
  return DVBF_OK;
}

/* Allocates a * b * c floats; clears *done on failure. */
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
  if (!f->memory || !done) return dv_fail(error, DVBF_MEMORY, "out of memory while preparing the filter");
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
  const dvbf_forecast_request *a = &f->ahead;
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

static void put_csv_belief(const follower *f, const dvbf_belief *belief) {
  const dvbf_forecast_request *a = &f->ahead;
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

static void put_json_belief(const follower *f, const dvbf_belief *belief) {
  const dvbf_forecast_request *a = &f->ahead;
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

/* The control that acts from now on; a missing value keeps the previous one. */
static void take_control(follower *f) {
  for (size_t i = 0; i < f->info.n_u; i++)
    if (isfinite(f->stream.u[i])) f->u[i] = f->stream.u[i];
}

/* Controls ahead: the one that acts now, unless it belongs to this line; then the announced ones; then the
 * last of these, repeated. */
static void plan_controls(follower *f) {
  size_t n_u = f->info.n_u, now = f->same_row ? 0 : 1;
  for (size_t t = 0; n_u && t < f->ahead.steps; t++) {
    size_t later = t - now; /* if t >= now */
    const float *from = t < now                      ? f->u
                        : later < f->stream.n_future ? f->stream.future + later * n_u
                        : t                          ? f->controls + (t - 1) * n_u
                                                     : f->u;
    memcpy(f->controls + t * n_u, from, n_u * sizeof *from);
  }
}

static dvbf_status filter_line(follower *f, dvbf_error *error) {
  dvbf_belief belief;
  dvbf_status status = DVBF_OK;
  if (f->same_row) take_control(f);
  dvbf_filter_step(f->filter, f->stream.x, f->info.n_u ? f->u : NULL, &belief);
  if (!f->same_row) take_control(f);
  plan_controls(f);
  if (belief.ready && f->ahead.steps) status = dvbf_filter_predict(f->filter, &f->ahead, error);
  if (status) return status;
  (f->json ? put_json_belief : put_csv_belief)(f, &belief);
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

static dvbf_status prepare_filter(follower *f, const cli_options *options, dvbf_settings **settings,
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
  dvbf_status status = prepare_filter(&f, options, &settings, error);
  while (!status && more) {
    status = cli_stream_next(&f.stream, &more, error);
    f.json = f.stream.json || cli_option(options, "json");
    if (!status && more) status = filter_line(&f, error);
  }
  free_follower(&f);
  dvbf_settings_free(settings);
  return status;
}

/* ---- Stream of observations ---- */

#define SEPARATORS ",;\t"

dvbf_status cli_stream_open(cli_stream *s, const dvbf_model *model, size_t n_u, dvbf_error *error) {
  size_t n_x = dvbf_model_describe(model).n_x;
  *s = (cli_stream){.from = stdin, .n_x = n_x, .n_u = n_u};
  const dvbf_settings *settings = dvbf_model_settings(model);
  dvbf_status status = dvbf_settings_get(settings, "outputs", s->outputs, sizeof s->outputs, error);
  if (!status) status = dvbf_settings_get(settings, "inputs", s->inputs, sizeof s->inputs, error);
  if (status) return status;
  s->column = calloc(n_x + n_u, sizeof *s->column);
  s->values = calloc(n_x + n_u, sizeof *s->values);
  s->names = calloc(n_x, sizeof *s->names);
  s->x = calloc(n_x, sizeof *s->x);
  s->u = calloc(n_u + 1, sizeof *s->u);
  if (!s->column || !s->values || !s->names || !s->x || !s->u)
    return dv_fail(error, DVBF_MEMORY, "out of memory while preparing the filter");
  for (size_t i = 0; i < n_x + n_u; i++) s->column[i] = i;
  for (size_t i = 0; i < n_x; i++) snprintf(s->names[i], sizeof s->names[i], "x%zu", i);
  s->fields = n_x + n_u;
  return DVBF_OK;
}

void cli_stream_close(cli_stream *s) {
  free(s->column);
  free(s->values);
  free(s->names);
  free(s->text);
  free(s->x);
  free(s->u);
  free(s->future);
  *s = (cli_stream){0};
}

static dvbf_status malformed(const cli_stream *s, const char *what, dvbf_error *error) {
  return dv_fail(error, DVBF_FORMAT, "standard input, line %zu: %s", s->line, what);
}

/* ---- CSV ---- */

/* A field, without surrounding blanks and quotes. */
typedef struct field {
  const char *at;
  size_t length;
} field;

/* The next field of the line at *rest, which becomes NULL after the last. */
static field next_field(const char **rest) {
  const char *from = *rest;
  size_t length = strcspn(from, SEPARATORS "\r\n");
  *rest = from[length] && strchr(SEPARATORS, from[length]) ? from + length + 1 : NULL;
  while (length && strchr(" \"'", *from)) from++, length--;
  while (length && strchr(" \"'", from[length - 1])) length--;
  return (field){from, length};
}

static bool is_word(field f, const char *word) {
  return f.length == strlen(word) && !strncasecmp(f.at, word, f.length);
}

/* Reads a number, or NaN for a missing value. False: the field is something else. */
static bool number_in(field f, float *out) {
  char *end = NULL;
  *out = NAN;
  if (!f.length || is_word(f, "nan") || is_word(f, "na") || is_word(f, "null")) return true;
  *out = strtof(f.at, &end);
  return end == f.at + f.length && isfinite(*out);
}

static bool is_header(const char *line) {
  float value;
  for (const char *rest = line; rest;)
    if (!number_in(next_field(&rest), &value)) return true;
  return false;
}

/* Index of the field of that name, or -1. */
static long find_field(const char *line, field name) {
  long i = 0;
  for (const char *rest = line; rest; i++) {
    field f = next_field(&rest);
    if (f.length == name.length && !memcmp(f.at, name.at, f.length)) return i;
  }
  return -1;
}

/* Finds the columns that the model was trained on; false unless the header names all of them. */
static bool find_columns(cli_stream *s, const char *line) {
  const char *lists[] = {s->outputs, s->inputs};
  size_t counts[] = {s->n_x, s->n_u}, at = 0;
  for (int k = 0; k < 2; k++) {
    size_t found = 0;
    for (const char *rest = counts[k] ? lists[k] : NULL; rest; found++) {
      long column = find_field(line, next_field(&rest));
      if (column < 0 || found == counts[k]) return false;
      s->column[at++] = (size_t)column;
    }
    if (found != counts[k]) return false;
  }
  return true;
}

/* Bytes of a name cut to 31 without splitting a UTF-8 character. */
static int whole_characters(field f) {
  size_t n = f.length < 31 ? f.length : 31;
  while (n && n < f.length && ((unsigned char)f.at[n] & 0xc0) == 0x80) n--;
  return (int)n;
}

static dvbf_status read_header(cli_stream *s, const char *line, dvbf_error *error) {
  s->fields = 0;
  for (const char *rest = line; rest; s->fields++) next_field(&rest);
  float *values = realloc(s->values, s->fields * sizeof *values);
  if (!values) return dv_fail(error, DVBF_MEMORY, "out of memory while preparing the filter");
  s->values = values;
  if (!find_columns(s, line))
    for (size_t i = 0; i < s->n_x + s->n_u; i++) s->column[i] = i;
  size_t number = 0;
  for (const char *rest = line; rest; number++) {
    field f = next_field(&rest);
    for (size_t i = 0; i < s->n_x; i++)
      if (s->column[i] == number && f.length)
        snprintf(s->names[i], sizeof s->names[i], "%.*s", whole_characters(f), f.at);
  }
  return DVBF_OK;
}

static dvbf_status read_csv(cli_stream *s, dvbf_error *error) {
  size_t number = 0;
  for (const char *rest = s->text; rest; number++) {
    char what[160];
    field f = next_field(&rest);
    float value;
    if (!number_in(f, &value)) {
      snprintf(what, sizeof what, "\"%.*s\" is not a number; leave the field empty if the value is missing",
               (int)(f.length < 40 ? f.length : 40), f.at);
      return malformed(s, what, error);
    }
    if (number < s->fields) s->values[number] = value;
  }
  for (size_t i = 0; number == s->fields && i < s->n_x + s->n_u; i++)
    if (s->column[i] < number) *(i < s->n_x ? s->x + i : s->u + i - s->n_x) = s->values[s->column[i]];
  if (number == s->fields) return DVBF_OK;
  char what[200];
  snprintf(what, sizeof what,
           "has %zu fields instead of %zu: %zu of x, then %zu of u, or those named by the header", number,
           s->fields, s->n_x, s->n_u);
  return malformed(s, what, error);
}

/* ---- JSON ---- */

/* Flattens nested arrays of numbers; null is a missing value. Returns their number; at most `count` are kept.
 */
static size_t flatten(const json_t *value, float *out, size_t count, size_t at) {
  if (json_is_array(value)) {
    for (size_t i = 0; i < json_array_size(value); i++)
      at = flatten(json_array_get(value, i), out, count, at);
    return at;
  }
  if (at < count) out[at] = json_is_number(value) ? (float)json_number_value(value) : NAN;
  return at + 1;
}

static dvbf_status read_values(cli_stream *s, const json_t *line, const char *name, float *out, size_t count,
                               dvbf_error *error) {
  const json_t *value = json_object_get(line, name);
  if (!value || json_is_null(value)) return DVBF_OK; /* all values are missing */
  size_t found = flatten(value, out, count, 0);
  char what[120];
  snprintf(what, sizeof what, "\"%s\" has %zu numbers instead of %zu", name, found, count);
  return found == count ? DVBF_OK : malformed(s, what, error);
}

static dvbf_status read_future(cli_stream *s, const json_t *line, dvbf_error *error) {
  const json_t *value = json_object_get(line, "future");
  size_t found = value && s->n_u ? flatten(value, NULL, 0, 0) : 0;
  if (!found) return DVBF_OK;
  if (found % s->n_u) return malformed(s, "\"future\" must contain all controls of each step", error);
  float *larger = realloc(s->future, found * sizeof *larger);
  if (!larger) return dv_fail(error, DVBF_MEMORY, "out of memory while reading controls");
  s->future = larger;
  s->n_future = found / s->n_u;
  flatten(value, s->future, found, 0);
  for (size_t i = 0; i < found; i++)
    if (!isfinite(s->future[i]))
      return malformed(s, "\"future\" contains a value that is not a number", error);
  return DVBF_OK;
}

static dvbf_status read_json(cli_stream *s, dvbf_error *error) {
  json_error_t trouble;
  json_t *line = json_loads(s->text, 0, &trouble);
  char what[160];
  snprintf(what, sizeof what, "is not an object such as {\"x\": [1, null], \"u\": [0]}%s%.80s",
           line ? "" : ": ", line ? "" : trouble.text);
  dvbf_status status = json_is_object(line) ? DVBF_OK : malformed(s, what, error);
  if (!status) status = read_values(s, line, "x", s->x, s->n_x, error);
  if (!status) status = read_values(s, line, "u", s->u, s->n_u, error);
  if (!status) status = read_future(s, line, error);
  json_decref(line);
  return status;
}

/* ---- Lines ---- */

static bool is_blank(const char *line) {
  return !line[strspn(line, " \r\n")];
}

dvbf_status cli_stream_next(cli_stream *s, bool *more, dvbf_error *error) {
  for (;;) {
    *more = getline(&s->text, &s->room, s->from) >= 0;
    if (!*more && !feof(s->from))
      return dv_fail(error, DVBF_IO, "standard input cannot be read: %s", strerror(errno));
    if (!*more) return DVBF_OK;
    s->line++;
    if (is_blank(s->text)) continue;
    bool first = !s->begun;
    s->begun = true;
    if (first) s->json = s->text[strspn(s->text, " ")] == '{';
    if (!first || s->json || !is_header(s->text)) break;
    dvbf_status status = read_header(s, s->text, error);
    if (status) return status;
  }
  for (size_t i = 0; i < s->n_x; i++) s->x[i] = NAN;
  for (size_t i = 0; i < s->n_u; i++) s->u[i] = NAN;
  s->n_future = 0;
  return s->json ? read_json(s, error) : read_csv(s, error);
}

/* ---- Answers ---- */

/* Nine digits, as many as a float has. */
void cli_put_numbers(const float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (values && isfinite(values[i]))
      printf(",%.9g", (double)values[i]);
    else
      printf(",");
  }
}

json_t *cli_list(const float *values, size_t columns) {
  json_t *list = json_array();
  for (size_t i = 0; i < columns; i++) json_array_append_new(list, cli_number((double)values[i]));
  return list;
}

json_t *cli_table(const float *values, size_t rows, size_t columns) {
  json_t *table = json_array();
  for (size_t t = 0; t < rows; t++) json_array_append_new(table, cli_list(values + t * columns, columns));
  return table;
}

json_t *cli_belief(const dvbf_belief *belief, size_t n_z) {
  return json_pack("{s:o, s:o}", "mean", cli_list(belief->mean, n_z), "std",
                   cli_list(belief->deviation, n_z));
}

void cli_put_line(json_t *line) {
  json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
  printf("\n");
  json_decref(line);
}

dvbf_status cli_answer(dvbf_error *error) {
  if (fflush(stdout)) return dv_fail(error, DVBF_IO, "standard output cannot be written");
  return DVBF_OK;
}
