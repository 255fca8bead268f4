/* Results of the paper's experiments: statistics over seeds, tables that set them against the paper's numbers
 * (dv_paper_tables), JSON, and the part of the report that shows one trial (dv_trial_show). */
#include "base/error.h"
#include "base/memory.h"
#include "experiments/paper.h"
#include "report/figure.h"
#include "report/page.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers of a model ---- */

enum { SMALLEST, MEDIAN, LARGEST, STATISTICS };
static const char *const statistic_names[STATISTICS] = {"min", "median", "max"};

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the values; count is at least 1. */
static double statistic(double *values, size_t count, size_t which) {
  qsort(values, count, sizeof *values, ascending);
  if (which == MEDIAN) return (values[(count - 1) / 2] + values[count / 2]) / 2;
  return values[which == SMALLEST ? 0 : count - 1];
}

/* Of quantity c of table k: row 0 has the paper's numbers, then there is a row for each seed, and then one
 * for each statistic over them. NaN: there is none. */
static double figure_at(const dv_study *s, size_t m, size_t row, size_t k, size_t c) {
  double paper = s->experiment->table[k]->quantity[c].paper[s->model[m].contender], value = NAN;
  if (row == 0) return paper != 0 ? paper : NAN;
  if (row <= s->count) return dv_study_result(s, row - 1, m)->values[k][c];
  double *sorted = dv_calloc(s->count, sizeof *sorted);
  for (size_t i = 0; sorted && i < s->count; i++) sorted[i] = dv_study_result(s, i, m)->values[k][c];
  if (sorted) value = statistic(sorted, s->count, row - s->count - 1);
  dv_free(sorted);
  return value;
}

/* ---- Tables ---- */

static void put_number(dvbf_table *t, size_t row, size_t column, double value, int decimals) {
  if (isfinite(value))
    dv_table_put(t, row, column, fabs(value) < 1e8 ? "%.*f" : "%.*e", decimals, value);
  else
    dv_table_put(t, row, column, "-");
}

static bool has_paper(const dv_study *s, size_t m, size_t k) {
  for (size_t c = 0; c < DV_COLUMNS; c++)
    if (isfinite(figure_at(s, m, 0, k, c))) return true;
  return false;
}

/* Statistics need several seeds. */
static size_t last_row(const dv_study *s) {
  return s->count > 1 ? s->count + STATISTICS : s->count;
}

/* Rows of one model. Returns the next free row. */
static size_t put_rows(dvbf_table *t, size_t at, const dv_study *s, size_t m, size_t k) {
  const dv_quantity *q = s->experiment->table[k]->quantity;
  const char *name = s->n_models > 1 ? dv_study_contender(s, m)->name : "", *space = *name ? " " : "";
  for (size_t row = has_paper(s, m, k) ? 0 : 1; row <= last_row(s); row++, at++) {
    if (row == 0)
      dv_table_put(t, at, 0, "paper%s%s", space, name);
    else if (row <= s->count)
      dv_table_put(t, at, 0, "%s%sseed %llu", name, space,
                   (unsigned long long)dv_study_result(s, row - 1, m)->seed);
    else
      dv_table_put(t, at, 0, "%s%s%s", name, space, statistic_names[row - s->count - 1]);
    for (size_t c = 0; q[c].heading; c++) put_number(t, at, c + 1, figure_at(s, m, row, k, c), q[c].decimals);
  }
  return at;
}

static dvbf_status make_table(dvbf_table *out, const dv_study *s, size_t k, dvbf_error *error) {
  const dv_quantities *q = s->experiment->table[k];
  size_t columns = 1, rows = 1, row = 1;
  while (q->quantity[columns - 1].heading) columns++;
  for (size_t m = 0; m < s->n_models; m++) rows += last_row(s) + has_paper(s, m, k);
  dvbf_status status = dv_table_init(out, q->title, rows, columns, error);
  if (status) return status;
  for (size_t c = 1; c < columns; c++) dv_table_put(out, 0, c, "%s", q->quantity[c - 1].heading);
  for (size_t m = 0; m < s->n_models; m++) row = put_rows(out, row, s, m, k);
  return DVBF_OK;
}

static const size_t horizons[] = {1, 2, 3, 4, 5, 7, 10, 15, 22, 30, 40};
enum { HORIZONS = sizeof horizons / sizeof *horizons, FLOORS = 2 };

static double median_error(const dv_study *s, size_t m, size_t horizon, size_t which) {
  double *sorted = dv_calloc(s->count, sizeof *sorted), median = NAN;
  bool known = sorted;
  for (size_t i = 0; known && i < s->count; i++) {
    const dvbf_evaluation *e = dv_study_result(s, i, m)->far;
    const double *of[] = {e->mse_mean_path, e->mse, e->mse_repeat};
    known = horizon <= e->horizon;
    if (known) sorted[i] = of[which][horizon - 1] / e->pixel_variance;
  }
  if (known) median = statistic(sorted, s->count, MEDIAN);
  dv_free(sorted);
  return median;
}

/* Error by horizon of all models and of two baselines: persistence, and the mean image. */
static dvbf_status make_horizon_table(dvbf_table *out, const dv_study *s, dvbf_error *error) {
  static const char *const which[] = {"noise-free", "sampled"};
  size_t rows = 2 * s->n_models;
  dvbf_status status = dv_table_init(
      out, "Prediction error by steps ahead, over pixel variance, sequences of 45 frames, median",
      1 + rows + FLOORS, HORIZONS + 1, error);
  if (status) return status;
  for (size_t h = 0; h < HORIZONS; h++) {
    dv_table_put(out, 0, h + 1, "%zu", horizons[h]);
    for (size_t i = 0; i < rows; i++)
      put_number(out, 1 + i, h + 1, median_error(s, i / 2, horizons[h], i % 2), 4);
    put_number(out, 1 + rows, h + 1, median_error(s, 0, horizons[h], 2), 4);
    put_number(out, 2 + rows, h + 1, 1, 4);
  }
  for (size_t i = 0; i < rows; i++)
    dv_table_put(out, 1 + i, 0, "%s %s", dv_study_contender(s, i / 2)->name, which[i % 2]);
  dv_table_put(out, 1 + rows, 0, "persistence");
  dv_table_put(out, 2 + rows, 0, "mean image");
  return DVBF_OK;
}

dvbf_status dv_paper_tables(dvbf_experiment_results *out, const dv_study *s, dvbf_error *error) {
  const dv_experiment *e = s->experiment;
  *out = (dvbf_experiment_results){.system = e->system,
                                   .title = e->title,
                                   .remark = e->remark,
                                   .tables = dv_calloc(DV_TABLES, sizeof *out->tables)};
  if (!out->tables) return dv_fail(error, DVBF_MEMORY, "out of memory for the tables");
  dvbf_status status = DVBF_OK;
  for (size_t k = 0; !status && e->table[k]; k++)
    status = make_table(&out->tables[out->n_tables++], s, k, error);
  if (!status) status = make_horizon_table(&out->tables[out->n_tables++], s, error);
  for (size_t k = 0; k < out->n_tables; k++) out->tables[k].emphasis = "paper";
  return status;
}

/* ---- JSON ---- */

static json_t *row_of(const dv_study *s, size_t m, size_t row) {
  json_t *object = json_object();
  for (size_t k = 0; s->experiment->table[k]; k++)
    for (size_t c = 0; s->experiment->table[k]->quantity[c].heading; c++)
      json_object_set_new(object, s->experiment->table[k]->quantity[c].key,
                          dv_json_number(figure_at(s, m, row, k, c)));
  return object;
}

json_t *dv_paper_json(const dv_study *s, size_t m) {
  json_t *seeds = json_array();
  for (size_t i = 0; i < s->count; i++) {
    const dv_result *r = dv_study_result(s, i, m);
    json_array_append_new(seeds, json_pack("{s:I, s:o, s:O, s:O}", "seed", (json_int_t)r->seed, "summary",
                                           row_of(s, m, i + 1), "test", r->test_json, "long", r->far_json));
  }
  json_t *object = json_pack("{s:s, s:s, s:o, s:o}", "model", dv_study_contender(s, m)->name, "preset",
                             s->model[m].preset, "paper", row_of(s, m, 0), "seeds", seeds);
  for (size_t i = 0; i < STATISTICS; i++)
    json_object_set_new(object, statistic_names[i], row_of(s, m, s->count + 1 + i));
  return object;
}

/* ---- Comparison of models ---- */

/* Model m and its results; a figure of several models needs the name, key and folder alone. */
static dv_section section_of(const dv_trial *t, size_t m, const dv_work *w) {
  return (dv_section){.name = t->study->experiment->title,
                      .key = t->study->experiment->system,
                      .model = t->model[m],
                      .data = t->data,
                      .sequences = &t->data->test,
                      .split = "test",
                      .evaluation = t->results[m].test,
                      .long_data = t->long_data,
                      .long_sequences = &t->long_data->test,
                      .long_evaluation = t->results[m].far,
                      .settings = t->evaluation,
                      .figures = w->figures,
                      .note = w->options.note,
                      .user_data = w->options.user_data};
}

static const float *values_named(const dv_points *points, const char *name) {
  const dv_column *column = dv_points_column(points, name);
  return column ? column->values : NULL;
}

/* Of models first and first + 1, if they exist. */
static dvbf_status add_latent(const dv_trial *t, dv_work *w, const dv_points *points, size_t first,
                              dvbf_error *error) {
  size_t models = t->study->n_models - first < 2 ? t->study->n_models - first : 2;
  dvbf_figure_latent figure = {.models = models};
  dv_section section = section_of(t, first, w);
  dv_path bare;
  char name[32] = "latent";
  if (first) snprintf(name, sizeof name, "latent-%zu", first / 2 + 1);
  for (size_t m = 0; m < models; m++) {
    const dv_points *p = &points[first + m];
    figure.model[m] = (dvbf_latent_model){.title = dv_study_contender(t->study, first + m)->name,
                                          .points = p->count,
                                          .n_z = p->n_z,
                                          .z = p->z,
                                          .angle = values_named(p, "angle"),
                                          .velocity = values_named(p, "velocity")};
  }
  dv_section_figure_path(bare, &section, name, "");
  dvbf_status drawn = dvbf_draw_latent(&figure, bare, error);
  return dv_section_embed(
      w->page, &section, name, drawn, false,
      "Latent samples along the directions that predict the state, coloured by angle and by velocity; "
      "below, what the regressions predict.",
      "Latent spaces side by side with regression scatters", error);
}

/* Draws the walks of the first sequence before the samples. */
static dvbf_status draw_walks(const dv_trial *t, size_t m, const dv_points *p, const char *path,
                              dvbf_error *error) {
  dv_walks w;
  dvbf_status status = dv_walks_take(&w, t, m, error);
  if (!status) {
    dvbf_figure_walks figure = {.title = dv_study_contender(t->study, m)->name,
                                .n_z = p->n_z,
                                .walks = 2,
                                .walk = {{"generative", w.generative->steps, w.generative->z},
                                         {"filtering", w.filtering->steps, w.filtering->z}},
                                .points = p->count,
                                .z = p->z,
                                .angle = values_named(p, "angle"),
                                .velocity = values_named(p, "velocity")};
    status = dvbf_draw_walks(&figure, path, error);
  }
  dv_walks_free(&w);
  return status;
}

static dvbf_status add_walk(const dv_trial *t, dv_work *w, const dv_points *points, size_t m,
                            dvbf_error *error) {
  dv_section section = section_of(t, m, w);
  dv_path bare;
  char name[64];
  snprintf(name, sizeof name, "walks-%s", dv_study_contender(t->study, m)->name);
  dv_section_figure_path(bare, &section, name, "");
  return dv_section_embed(
      w->page, &section, name, draw_walks(t, m, &points[m], bare, error), false,
      "Latent walks through one sequence of 100 steps without torque: generated after its first frames, "
      "and inferred with every frame observed.",
      "Two paths in the latent space, in two projections each", error);
}

static dvbf_status add_comparison(const dv_trial *t, dv_work *w, dvbf_error *error) {
  size_t models = t->study->n_models;
  dv_points points[DV_MODELS] = {{0}};
  dv_path_options sample = {.seed = t->seed, .threads = dvbf_settings_threads(t->evaluation)};
  dvbf_status status = DVBF_OK;
  for (size_t m = 0; !status && m < models; m++)
    status = dv_points_sample(&points[m], t->model[m], t->data, &t->data->test, &sample, error);
  for (size_t m = 0; !status && m < models; m += 2) status = add_latent(t, w, points, m, error);
  for (size_t m = 0; !status && m < models; m++) status = add_walk(t, w, points, m, error);
  for (size_t m = 0; m < DV_MODELS; m++) dv_points_free(&points[m]);
  return status;
}

/* ---- Sections ---- */

static dvbf_status draw_overview(const dv_study *s, const dv_section *section, dvbf_error *error) {
  static const char *const names[] = {"strips", "latent", "errors"};
  enum { PARTS = sizeof names / sizeof *names };
  dv_path path, parts[PARTS];
  dv_join(path, s->folder, "overview.png");
  for (size_t i = 0; i < PARTS; i++) dv_section_figure_path(parts[i], section, names[i], ".png");
  return dv_figure_collect(path, PARTS, parts, error);
}

static dvbf_status add_section(const dv_trial *t, size_t m, dv_work *w, bool overview, dvbf_error *error) {
  const dv_study *s = t->study;
  char name[128], key[128];
  dv_path run;
  dv_section section = section_of(t, m, w);
  dv_trial_run_folder(run, t, m);
  snprintf(name, sizeof name, "%s: %s", s->experiment->title, dv_study_contender(s, m)->name);
  snprintf(key, sizeof key, "%s-%s", s->experiment->system, dv_study_contender(s, m)->run);
  section.name = name;
  section.key = key;
  section.run = run;
  dvbf_status status = dv_section_add(w->page, &section, error);
  return status || !overview ? status : draw_overview(s, &section, error);
}

dvbf_status dv_trial_show(const dv_trial *t, const dvbf_experiment_results *tables, dv_work *w,
                          dvbf_error *error) {
  const dv_study *s = t->study;
  bool pendulum = dv_measures(s->experiment, DV_OF_WALK);
  dv_trial_report(w, t, DVBF_DRAWING, DV_MODELS);
  dvbf_status status = dvbf_page_heading(w->page, 1, s->experiment->title, error);
  if (!status) status = dvbf_page_text(w->page, s->experiment->remark, error);
  for (size_t i = 0; !status && i < tables->n_tables; i++)
    status = dvbf_page_table(w->page, &tables->tables[i], error);
  if (!status && pendulum) status = add_comparison(t, w, error);
  /* `dvbf report` shows a single model in full; eight sections would hide the comparison. */
  for (size_t m = 0; !status && !s->experiment->all_models && m < s->n_models; m++)
    status = add_section(t, m, w, pendulum && !m, error);
  return status;
}
