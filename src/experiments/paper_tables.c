/* Results of the paper's experiments: quantities of a trial (dv_result_compare), statistics over seeds,
 * tables that set them against the paper's numbers (dv_paper_tables), JSON, and the part of the report that
 * shows one trial (dv_trial_show). */
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

void dv_result_clear(dv_result *t) {
  dvbf_evaluation_free(t->test);
  dvbf_evaluation_free(t->far);
  json_decref(t->test_json);
  json_decref(t->far_json);
  *t = (dv_result){0};
}

/* ---- Quantities ---- */

static const dvbf_regression *regression_of(const dvbf_evaluation *e, const char *state) {
  for (size_t i = 0; i < e->n_regressions; i++)
    if (!strcmp(e->regressions[i].name, state)) return &e->regressions[i];
  return NULL;
}

/* Mean over frames first to last, which are counted from 1. */
static double error_of(const dv_result *t, size_t first, size_t last) {
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

/* Others are measured (paper_trial.c) or known from training. */
static bool from_evaluation(dv_quantity_kind kind) {
  return (kind >= DV_OF_LIKELIHOOD && kind <= DV_OF_STEPS_AHEAD && kind != DV_OF_R2_AWAY) ||
         kind == DV_OF_PARTICLES;
}

static double value_of(const dv_result *t, const dv_quantity *q) {
  const dvbf_regression *r = q->state ? regression_of(t->test, q->state) : NULL;
  switch (q->kind) {
  case DV_OF_LIKELIHOOD: return r ? r->log_likelihood : NAN;
  case DV_OF_R2: return r ? r->r2 : NAN;
  case DV_OF_BOUND: return t->test->elbo;
  case DV_OF_RECONSTRUCTION: return t->test->reconstruction;
  case DV_OF_KL: return t->test->kl_w + t->test->kl_v;
  case DV_OF_ERROR: return error_of(t, q->first, q->last);
  case DV_OF_STEPS_AHEAD: return steps_ahead(t->far);
  case DV_OF_PARTICLES: return fmax(t->test->importance_bound, t->test->particle_bound);
  default: return NAN;
  }
}

void dv_result_compare(dv_result *result, const dv_experiment *experiment) {
  for (size_t i = 0; i < dv_quantities(experiment); i++) {
    const dv_quantity *q = &experiment->quantity[i];
    if (from_evaluation(q->kind)) result->values[i] = value_of(result, q);
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

static void statistics(double out[STATISTICS], const dv_paper_result *o, size_t quantity) {
  double *sorted = dv_calloc(o->count, sizeof *sorted);
  for (int s = 0; s < STATISTICS; s++) out[s] = NAN;
  if (!sorted) return;
  for (size_t i = 0; i < o->count; i++) sorted[i] = o->results[i].values[quantity];
  out[MEDIAN] = median_of(sorted, o->count);
  out[SMALLEST] = sorted[0];
  out[LARGEST] = sorted[o->count - 1];
  dv_free(sorted);
}

/* ---- Tables ---- */

static void put_number(dvbf_table *t, size_t row, size_t column, double value, int decimals) {
  if (isfinite(value))
    dv_table_put(t, row, column, fabs(value) < 1e8 ? "%.*f" : "%.*e", decimals, value);
  else
    dv_table_put(t, row, column, "-");
}

static bool has_paper(const dv_paper_result *o, size_t first, size_t count) {
  for (size_t c = first; c < first + count; c++)
    if (o->experiment->quantity[c].paper[o->contender] != 0) return true;
  return false;
}

/* Rows of one model: the paper's, the seeds', and their statistics. Returns the next free row. */
static size_t put_rows(dvbf_table *t, size_t row, const dv_paper_result *o, size_t first, bool named) {
  const dv_quantity *q = o->experiment->quantity + first;
  size_t count = t->columns - 1;
  const char *name = named ? o->experiment->contender[o->contender].name : "", *space = named ? " " : "";
  if (has_paper(o, first, count)) {
    dv_table_put(t, row, 0, "paper%s%s", space, name);
    for (size_t c = 0; c < count; c++) {
      double value = q[c].paper[o->contender];
      put_number(t, row, c + 1, value != 0 ? value : NAN, q[c].decimals);
    }
    row++;
  }
  for (size_t i = 0; i < o->count; i++, row++) {
    dv_table_put(t, row, 0, "%s%sseed %llu", name, space, (unsigned long long)o->results[i].seed);
    for (size_t c = 0; c < count; c++)
      put_number(t, row, c + 1, o->results[i].values[first + c], q[c].decimals);
  }
  for (int s = 0; o->count > 1 && s < STATISTICS; s++, row++) {
    dv_table_put(t, row, 0, "%s%s%s", name, space, statistic_names[s]);
    for (size_t c = 0; c < count; c++) {
      double values[STATISTICS];
      statistics(values, o, first + c);
      put_number(t, row, c + 1, values[s], q[c].decimals);
    }
  }
  return row;
}

static dvbf_status make_table(dvbf_table *out, const dv_paper_result *outcomes, size_t count, size_t title,
                              dvbf_error *error) {
  const dv_experiment *e = outcomes[0].experiment;
  size_t quantities = dv_quantities(e), first = title + 1, last = first, rows = 1;
  while (last < quantities && !e->quantity[last].table) last++;
  for (size_t i = 0; i < count; i++)
    rows += outcomes[i].count + (outcomes[i].count > 1 ? STATISTICS : 0) +
            (has_paper(&outcomes[i], first, last - first) ? 1 : 0);
  dvbf_status status = dv_table_init(out, e->quantity[title].table, rows, last - first + 1, error);
  if (status) return status;
  for (size_t c = first; c < last; c++) dv_table_put(out, 0, c - first + 1, "%s", e->quantity[c].heading);
  size_t row = 1;
  for (size_t i = 0; i < count; i++) row = put_rows(out, row, &outcomes[i], first, count > 1);
  return DVBF_OK;
}

static const size_t horizons[] = {1, 2, 3, 4, 5, 7, 10, 15, 22, 30, 40};
enum { HORIZONS = sizeof horizons / sizeof *horizons, FLOORS = 2 };

static double median_error(const dv_paper_result *o, size_t horizon, size_t which) {
  double *sorted = dv_calloc(o->count, sizeof *sorted), median = NAN;
  bool known = true;
  for (size_t i = 0; sorted && i < o->count; i++) {
    const dvbf_evaluation *e = o->results[i].far;
    const double *of[] = {e->mse_mean_path, e->mse, e->mse_repeat};
    known = known && horizon <= e->horizon;
    sorted[i] = known ? of[which][horizon - 1] / e->pixel_variance : NAN;
  }
  if (sorted && known) median = median_of(sorted, o->count);
  dv_free(sorted);
  return median;
}

/* Error by horizon of all models and of two baselines: persistence, and the mean image. */
static dvbf_status make_horizon_table(dvbf_table *out, const dv_paper_result *outcomes, size_t count,
                                      dvbf_error *error) {
  static const char *const which[] = {"noise-free", "sampled"};
  dvbf_status status = dv_table_init(
      out, "Prediction error by steps ahead, over pixel variance, sequences of 45 frames, median",
      1 + 2 * count + FLOORS, HORIZONS + 1, error);
  if (status) return status;
  for (size_t h = 0; h < HORIZONS; h++) {
    dv_table_put(out, 0, h + 1, "%zu", horizons[h]);
    for (size_t i = 0; i < 2 * count; i++)
      put_number(out, 1 + i, h + 1, median_error(&outcomes[i / 2], horizons[h], i % 2), 4);
    put_number(out, 1 + 2 * count, h + 1, median_error(&outcomes[0], horizons[h], 2), 4);
    put_number(out, 2 + 2 * count, h + 1, 1, 4);
  }
  for (size_t i = 0; i < 2 * count; i++)
    dv_table_put(out, 1 + i, 0, "%s %s",
                 outcomes[i / 2].experiment->contender[outcomes[i / 2].contender].name, which[i % 2]);
  dv_table_put(out, 1 + 2 * count, 0, "persistence");
  dv_table_put(out, 2 + 2 * count, 0, "mean image");
  return DVBF_OK;
}

void dv_paper_tables_free(dvbf_table *tables, size_t count) {
  for (size_t i = 0; tables && i < count; i++) dv_table_clear(&tables[i]);
  dv_free(tables);
}

dvbf_status dv_paper_tables(dvbf_table **out, size_t *n_tables, const dv_paper_result *outcomes, size_t count,
                            dvbf_error *error) {
  const dv_experiment *e = outcomes[0].experiment;
  size_t quantities = dv_quantities(e), n = 0;
  dvbf_table *tables = dv_calloc(quantities + 1, sizeof *tables);
  dvbf_status status = tables ? DVBF_OK : dv_fail(error, DVBF_MEMORY, "out of memory for the tables");
  for (size_t i = 0; !status && i <= quantities; i++) {
    if (i < quantities && !e->quantity[i].table) continue;
    status = i < quantities ? make_table(&tables[n++], outcomes, count, i, error)
                            : make_horizon_table(&tables[n++], outcomes, count, error);
    tables[n - 1].emphasis = "paper";
  }
  if (status) {
    dv_paper_tables_free(tables, n);
    return status;
  }
  *out = tables;
  *n_tables = n;
  return DVBF_OK;
}

/* ---- JSON ---- */

static json_t *row(const dv_experiment *e, const double *values) {
  json_t *object = json_object();
  for (size_t i = 0; i < dv_quantities(e); i++)
    if (e->quantity[i].key) json_object_set_new(object, e->quantity[i].key, dv_json_number(values[i]));
  return object;
}

json_t *dv_paper_result_json(const dv_paper_result *o) {
  const dv_experiment *e = o->experiment;
  json_t *seeds = json_array(), *object = json_object();
  double paper[DV_QUANTITIES] = {0};
  for (size_t i = 0; i < dv_quantities(e); i++) {
    double value = e->quantity[i].paper[o->contender];
    paper[i] = value != 0 ? value : NAN;
  }
  for (size_t i = 0; i < o->count; i++)
    json_array_append_new(seeds, json_pack("{s:I, s:o, s:O, s:O}", "seed", (json_int_t)o->results[i].seed,
                                           "summary", row(e, o->results[i].values), "test",
                                           o->results[i].test_json, "long", o->results[i].far_json));
  json_object_set_new(object, "model", json_string(e->contender[o->contender].name));
  json_object_set_new(object, "preset", json_string(o->preset));
  json_object_set_new(object, "paper", row(e, paper));
  json_object_set_new(object, "seeds", seeds);
  for (int s = 0; s < STATISTICS; s++) {
    double values[DV_QUANTITIES] = {0}, all[STATISTICS];
    for (size_t i = 0; i < dv_quantities(e); i++) {
      statistics(all, o, i);
      values[i] = all[s];
    }
    json_object_set_new(object, statistic_names[s], row(e, values));
  }
  return object;
}

/* ---- Comparison of models ---- */

static dv_section shared_chapter(const dv_study *s, const dv_work *w) {
  return (dv_section){.name = s->experiment->title,
                      .key = s->experiment->system,
                      .figures = w->figures,
                      .note = w->options->note,
                      .user_data = w->options->user_data};
}

/* Of models first and first + 1, if they exist. */
static dvbf_status add_latent(dv_work *w, const dv_study *s, const dv_points *points, size_t first,
                              dvbf_error *error) {
  size_t models = s->n_models - first < 2 ? s->n_models - first : 2;
  dvbf_figure_latent figure = {.models = models};
  dv_section chapter = shared_chapter(s, w);
  dv_path bare;
  char name[32] = "latent";
  if (first) snprintf(name, sizeof name, "latent-%zu", first / 2 + 1);
  points += first;
  for (size_t m = 0; m < models; m++) {
    const dv_column *angle = dv_points_column(&points[m], "angle"),
                    *velocity = dv_points_column(&points[m], "velocity");
    figure.model[m] = (dvbf_latent_model){.title = dv_study_contender(s, first + m)->name,
                                          .points = points[m].count,
                                          .n_z = points[m].n_z,
                                          .z = points[m].z,
                                          .angle = angle ? angle->values : NULL,
                                          .velocity = velocity ? velocity->values : NULL};
  }
  dv_section_figure_path(bare, &chapter, name, "");
  dvbf_status drawn = dvbf_draw_latent(&figure, bare, error);
  return dv_section_embed(
      w->page, &chapter, name, drawn, false,
      "Latent samples along the directions that predict the state, coloured by angle and by velocity; "
      "below, what the regressions predict.",
      "Latent spaces side by side with regression scatters", error);
}

static dvbf_status add_walk(dv_work *w, const dv_study *s, const dv_subject *subject, const char *model,
                            const dv_points *points, dvbf_error *error) {
  dv_walks walks;
  dv_section chapter = shared_chapter(s, w);
  dv_path bare;
  char name[64];
  snprintf(name, sizeof name, "walks-%s", model);
  dv_section_figure_path(bare, &chapter, name, "");
  dvbf_status drawn = dv_walks_take(&walks, subject, error);
  if (!drawn) drawn = dv_walks_draw(&walks, points, model, bare, error);
  dv_walks_free(&walks);
  return dv_section_embed(
      w->page, &chapter, name, drawn, false,
      "Latent walks through one sequence of 100 steps without torque: generated after its first frames, "
      "and inferred with every frame observed.",
      "Two paths in the latent space, in two projections each", error);
}

static dvbf_status add_comparison(const dv_trial *t, dv_work *w, dvbf_error *error) {
  const dv_study *s = t->study;
  dv_points points[DV_MODELS] = {{0}};
  dv_subject subject[DV_MODELS];
  dvbf_status status = DVBF_OK;
  for (size_t m = 0; !status && m < s->n_models; m++) {
    subject[m] = dv_trial_subject(t, m, &s->outcome[m].results[0]);
    dv_path_options sample = {.seed = t->seed, .threads = subject[m].threads};
    status = dv_points_sample(&points[m], t->model[m], t->data, &t->data->test, &sample, error);
  }
  for (size_t m = 0; !status && m < s->n_models; m += 2) status = add_latent(w, s, points, m, error);
  for (size_t m = 0; !status && m < s->n_models; m++)
    status = add_walk(w, s, &subject[m], dv_study_contender(s, m)->name, &points[m], error);
  for (size_t m = 0; m < DV_MODELS; m++) dv_points_free(&points[m]);
  return status;
}

/* ---- Sections ---- */

static dv_section chapter_of(const dv_trial *t, size_t m, const dv_work *w) {
  const dv_result *result = &t->study->outcome[m].results[0];
  return (dv_section){.model = t->model[m],
                      .data = t->data,
                      .sequences = &t->data->test,
                      .split = "test",
                      .evaluation = result->test,
                      .long_data = t->long_data,
                      .long_sequences = &t->long_data->test,
                      .long_evaluation = result->far,
                      .settings = t->evaluation,
                      .figures = w->figures,
                      .threads = dvbf_settings_threads(t->evaluation),
                      .note = w->options->note,
                      .user_data = w->options->user_data};
}

static dvbf_status draw_overview(const dv_study *s, const dv_section *chapter, dvbf_error *error) {
  static const char *const names[] = {"strips", "latent", "errors"};
  enum { PARTS = sizeof names / sizeof *names };
  dv_path path, parts[PARTS];
  dv_join(path, s->folder, "overview.png");
  for (size_t i = 0; i < PARTS; i++) dv_section_figure_path(parts[i], chapter, names[i], ".png");
  return dv_figure_collect(path, PARTS, parts, error);
}

static dvbf_status add_chapter(const dv_trial *t, size_t m, dv_work *w, bool overview, dvbf_error *error) {
  const dv_study *s = t->study;
  char name[128], key[128];
  dv_path run;
  dv_section chapter = chapter_of(t, m, w);
  dv_trial_run_folder(run, t, m);
  snprintf(name, sizeof name, "%s: %s", s->experiment->title, dv_study_contender(s, m)->name);
  snprintf(key, sizeof key, "%s-%s", s->experiment->system, dv_study_contender(s, m)->run);
  chapter.name = name;
  chapter.key = key;
  chapter.run = run;
  dvbf_status status = dv_section_add(w->page, &chapter, error);
  return status || !overview ? status : draw_overview(s, &chapter, error);
}

dvbf_status dv_trial_show(const dv_trial *t, dv_work *w, dvbf_error *error) {
  const dv_study *s = t->study;
  bool pendulum = dv_quantity_of(s->experiment, DV_OF_WALK) < DV_QUANTITIES;
  dv_trial_report(w, t, DVBF_DRAWING, DV_MODELS);
  dvbf_status status = dvbf_page_heading(w->page, 1, s->experiment->title, error);
  if (!status) status = dvbf_page_text(w->page, s->experiment->remark, error);
  for (size_t i = 0; !status && i < s->n_tables; i++) status = dvbf_page_table(w->page, &s->tables[i], error);
  if (!status && pendulum) status = add_comparison(t, w, error);
  /* `dvbf report` shows a single model in full; eight sections would hide the comparison. */
  for (size_t m = 0; !status && !s->experiment->all_models && m < s->n_models; m++)
    status = add_chapter(t, m, w, pendulum && !m, error);
  return status;
}
