#include "comparison.h"

#include "command.h"
#include "results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_trial_clear(cli_trial *t) {
  dvbf_evaluation_free(t->test);
  dvbf_evaluation_free(t->far);
  json_decref(t->test_json);
  json_decref(t->far_json);
  *t = (cli_trial){0};
}

/* ---- Quantities ---- */

static const dvbf_regression *regression_of(const dvbf_evaluation *e, const char *state) {
  for (size_t i = 0; i < e->n_regressions; i++)
    if (!strcmp(e->regressions[i].name, state)) return &e->regressions[i];
  return NULL;
}

/* Mean over frames first to last, which are counted from 1. */
static double error_of(const cli_trial *t, size_t first, size_t last) {
  const dvbf_evaluation *e = last <= t->test->observed + t->test->horizon ? t->test : t->far;
  double sum = 0;
  if (last > e->observed + e->horizon || first <= e->observed) return NAN;
  for (size_t frame = first; frame <= last; frame++) sum += e->mse_mean_path[frame - e->observed - 1];
  return sum / (double)(last - first + 1) / e->pixel_variance;
}

static double steps_ahead(const dvbf_evaluation *e) {
  size_t steps = 0;
  while (steps < e->horizon && e->mse_mean_path[steps] < e->pixel_variance) steps++;
  return (double)steps;
}

/* Others are measured (cli/measure.c) or known from training. */
static bool from_evaluation(cli_kind kind) {
  return kind >= CLI_LIKELIHOOD && kind <= CLI_STEPS_AHEAD && kind != CLI_R2_AWAY;
}

static double value_of(const cli_trial *t, const cli_quantity *q) {
  const dvbf_regression *r = q->state ? regression_of(t->test, q->state) : NULL;
  switch (q->kind) {
  case CLI_LIKELIHOOD: return r ? r->log_likelihood : NAN;
  case CLI_R2: return r ? r->r2 : NAN;
  case CLI_BOUND: return t->test->elbo;
  case CLI_RECONSTRUCTION: return t->test->reconstruction;
  case CLI_KL: return t->test->kl_w + t->test->kl_v;
  case CLI_ERROR: return error_of(t, q->first, q->last);
  case CLI_STEPS_AHEAD: return steps_ahead(t->far);
  default: return NAN;
  }
}

void cli_compare(cli_trial *trial, const cli_experiment *experiment) {
  for (size_t i = 0; i < cli_quantities(experiment); i++) {
    const cli_quantity *q = &experiment->quantity[i];
    if (from_evaluation(q->kind)) trial->values[i] = value_of(trial, q);
  }
}

/* ---- Over the seeds ---- */

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the values; count is at least 1. */
static double median_of(double *values, size_t count) {
  qsort(values, count, sizeof *values, ascending);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

enum { SMALLEST, MEDIAN, LARGEST, STATISTICS };
static const char *const statistic_names[STATISTICS] = {"min", "median", "max"};

static void statistics(double out[STATISTICS], const cli_outcome *o, size_t quantity) {
  double *sorted = malloc((o->count + 1) * sizeof *sorted);
  for (int s = 0; s < STATISTICS; s++) out[s] = NAN;
  if (!sorted) return;
  for (size_t i = 0; i < o->count; i++) sorted[i] = o->trials[i].values[quantity];
  out[MEDIAN] = median_of(sorted, o->count);
  out[SMALLEST] = sorted[0];
  out[LARGEST] = sorted[o->count - 1];
  free(sorted);
}

/* ---- Tables as cells, for the terminal and for the page ---- */

typedef char cell[32];

typedef struct grid {
  const char *title;
  size_t rows, columns;
  cell *cells; /* [rows][columns] */
} grid;

static char *cell_at(grid *g, size_t row, size_t column) {
  return g->cells[row * g->columns + column];
}

static void write_number(grid *g, size_t row, size_t column, double value, int decimals) {
  if (isfinite(value))
    snprintf(cell_at(g, row, column), sizeof(cell), fabs(value) < 1e8 ? "%.*f" : "%.*e", decimals, value);
  else
    snprintf(cell_at(g, row, column), sizeof(cell), "-");
}

static bool has_paper(const cli_outcome *o, size_t first, size_t count) {
  for (size_t c = first; c < first + count; c++)
    if (o->experiment->quantity[c].paper[o->contender] != 0) return true;
  return false;
}

/* Rows of one model: the paper's, the seeds', and what they have in common. Returns the next free row. */
static size_t write_rows(grid *g, size_t row, const cli_outcome *o, size_t first, bool named) {
  const cli_quantity *q = o->experiment->quantity + first;
  size_t count = g->columns - 1;
  const char *name = named ? o->experiment->contender[o->contender].name : "", *space = named ? " " : "";
  if (has_paper(o, first, count)) {
    snprintf(cell_at(g, row, 0), sizeof(cell), "paper%s%s", space, name);
    for (size_t c = 0; c < count; c++) {
      double value = q[c].paper[o->contender];
      write_number(g, row, c + 1, value != 0 ? value : NAN, q[c].decimals);
    }
    row++;
  }
  for (size_t i = 0; i < o->count; i++, row++) {
    snprintf(cell_at(g, row, 0), sizeof(cell), "%s%sseed %llu", name, space,
             (unsigned long long)o->trials[i].seed);
    for (size_t c = 0; c < count; c++)
      write_number(g, row, c + 1, o->trials[i].values[first + c], q[c].decimals);
  }
  for (int s = 0; o->count > 1 && s < STATISTICS; s++, row++) {
    snprintf(cell_at(g, row, 0), sizeof(cell), "%s%s%s", name, space, statistic_names[s]);
    for (size_t c = 0; c < count; c++) {
      double values[STATISTICS];
      statistics(values, o, first + c);
      write_number(g, row, c + 1, values[s], q[c].decimals);
    }
  }
  return row;
}

/* The table whose title is entry `title`; NULL cells when memory is short. */
static grid make_grid(const cli_outcome *outcomes, size_t count, size_t title) {
  const cli_experiment *e = outcomes[0].experiment;
  size_t quantities = cli_quantities(e), first = title + 1, last = first;
  while (last < quantities && !e->quantity[last].table) last++;
  grid g = {.title = e->quantity[title].table, .rows = 1, .columns = last - first + 1};
  for (size_t i = 0; i < count; i++)
    g.rows += outcomes[i].count + (outcomes[i].count > 1 ? STATISTICS : 0) +
              (has_paper(&outcomes[i], first, last - first) ? 1 : 0);
  g.cells = calloc(g.rows * g.columns, sizeof(cell));
  if (!g.cells) return g;
  for (size_t c = first; c < last; c++)
    snprintf(cell_at(&g, 0, c - first + 1), sizeof(cell), "%s", e->quantity[c].heading);
  size_t row = 1;
  for (size_t i = 0; i < count; i++) row = write_rows(&g, row, &outcomes[i], first, count > 1);
  return g;
}

/* Steps ahead that the table of errors shows. */
static const size_t horizons[] = {1, 2, 3, 4, 5, 7, 10, 15, 22, 30, 40};
enum { HORIZONS = sizeof horizons / sizeof *horizons, FLOORS = 2 };

static double median_error(const cli_outcome *o, size_t horizon, size_t which) {
  double *sorted = malloc(o->count * sizeof *sorted), median = NAN;
  bool known = true;
  for (size_t i = 0; sorted && i < o->count; i++) {
    const dvbf_evaluation *e = o->trials[i].far;
    const double *of[] = {e->mse_mean_path, e->mse, e->mse_repeat};
    known = known && horizon <= e->horizon;
    sorted[i] = known ? of[which][horizon - 1] / e->pixel_variance : NAN;
  }
  if (sorted && known) median = median_of(sorted, o->count);
  free(sorted);
  return median;
}

/* Error by horizon of all models, above the floors: the last frame again, and the mean image. */
static grid make_horizon_grid(const cli_outcome *outcomes, size_t count) {
  static const char *const which[] = {"mean path", "sampled"};
  grid g = {.title = "Prediction error by steps ahead, over pixel variance, sequences of 45 frames, median",
            .rows = 1 + 2 * count + FLOORS,
            .columns = HORIZONS + 1};
  g.cells = calloc(g.rows * g.columns, sizeof(cell));
  if (!g.cells) return g;
  for (size_t h = 0; h < HORIZONS; h++) {
    snprintf(cell_at(&g, 0, h + 1), sizeof(cell), "%zu", horizons[h]);
    for (size_t i = 0; i < 2 * count; i++)
      write_number(&g, 1 + i, h + 1, median_error(&outcomes[i / 2], horizons[h], i % 2), 4);
    write_number(&g, 1 + 2 * count, h + 1, median_error(&outcomes[0], horizons[h], 2), 4);
    write_number(&g, 2 + 2 * count, h + 1, 1, 4);
  }
  for (size_t i = 0; i < 2 * count; i++)
    snprintf(cell_at(&g, 1 + i, 0), sizeof(cell), "%s %s",
             outcomes[i / 2].experiment->contender[outcomes[i / 2].contender].name, which[i % 2]);
  snprintf(cell_at(&g, 1 + 2 * count, 0), sizeof(cell), "repeat the last frame");
  snprintf(cell_at(&g, 2 + 2 * count, 0), sizeof(cell), "mean image");
  return g;
}

/* Calls `show` with every table in turn. */
static dvbf_status each_grid(const cli_outcome *outcomes, size_t count,
                             dvbf_status (*show)(const grid *g, void *user, dvbf_error *error), void *user,
                             dvbf_error *error) {
  const cli_experiment *e = outcomes[0].experiment;
  size_t quantities = cli_quantities(e);
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && i <= quantities; i++) {
    if (i < quantities && !e->quantity[i].table) continue;
    grid g = i < quantities ? make_grid(outcomes, count, i) : make_horizon_grid(outcomes, count);
    status = g.cells ? show(&g, user, error) : cli_fail(error, DVBF_MEMORY, "out of memory for a table");
    free(g.cells);
  }
  return status;
}

static dvbf_status print_grid(const grid *g, void *user, dvbf_error *error) {
  (void)user, (void)error;
  int width = g->columns > 8 ? 8 : 14;
  printf("%s\n", g->title);
  for (size_t r = 0; r < g->rows; r++) {
    printf("  %-22s", g->cells[r * g->columns]);
    for (size_t c = 1; c < g->columns; c++) printf("%*s", width, g->cells[r * g->columns + c]);
    printf("\n");
  }
  printf("\n");
  return DVBF_OK;
}

static dvbf_status page_grid(const grid *g, void *user, dvbf_error *error) {
  const char **cells = malloc(g->rows * g->columns * sizeof *cells);
  if (!cells) return cli_fail(error, DVBF_MEMORY, "out of memory for a table");
  for (size_t i = 0; i < g->rows * g->columns; i++) cells[i] = g->cells[i];
  dvbf_table table = {
      .caption = g->title, .rows = g->rows, .columns = g->columns, .cells = cells, .emphasis = "paper"};
  dvbf_status status = dvbf_page_table(user, &table, error);
  free(cells);
  return status;
}

void cli_print_outcomes(const cli_outcome *outcomes, size_t count) {
  printf("== %s\n%s\n\n", outcomes[0].experiment->title, outcomes[0].experiment->remark);
  each_grid(outcomes, count, print_grid, NULL, &(dvbf_error){0});
}

dvbf_status cli_page_outcomes(dvbf_page *page, const cli_outcome *outcomes, size_t count, dvbf_error *error) {
  return each_grid(outcomes, count, page_grid, page, error);
}

/* ---- JSON ---- */

static json_t *row(const cli_experiment *e, const double *values) {
  json_t *object = json_object();
  for (size_t i = 0; i < cli_quantities(e); i++)
    if (e->quantity[i].key) json_object_set_new(object, e->quantity[i].key, cli_number(values[i]));
  return object;
}

json_t *cli_outcome_json(const cli_outcome *o) {
  const cli_experiment *e = o->experiment;
  json_t *seeds = json_array(), *object = json_object();
  double paper[CLI_QUANTITIES] = {0};
  for (size_t i = 0; i < cli_quantities(e); i++) {
    double value = e->quantity[i].paper[o->contender];
    paper[i] = value != 0 ? value : NAN;
  }
  for (size_t i = 0; i < o->count; i++)
    json_array_append_new(seeds, json_pack("{s:I, s:o, s:O, s:O}", "seed", (json_int_t)o->trials[i].seed,
                                           "summary", row(e, o->trials[i].values), "test",
                                           o->trials[i].test_json, "long", o->trials[i].far_json));
  json_object_set_new(object, "model", json_string(e->contender[o->contender].name));
  json_object_set_new(object, "preset", json_string(o->preset));
  json_object_set_new(object, "paper", row(e, paper));
  json_object_set_new(object, "seeds", seeds);
  for (int s = 0; s < STATISTICS; s++) {
    double values[CLI_QUANTITIES] = {0}, all[STATISTICS];
    for (size_t i = 0; i < cli_quantities(e); i++) {
      statistics(all, o, i);
      values[i] = all[s];
    }
    json_object_set_new(object, statistic_names[s], row(e, values));
  }
  return object;
}
