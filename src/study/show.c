/* What a report shows of an experiment: its tables, figures that set its models side by side, and a chapter
 * for each model. */
#include "report/chapter.h"
#include "report/figure.h"
#include "study/study.h"

#include <stdio.h>

/* ---- Models side by side ---- */

/* The figures are embedded as those of a chapter. */
static dv_chapter shared_chapter(const dv_study *s, const dv_work *w) {
  return (dv_chapter){.name = s->experiment->title,
                      .key = s->experiment->system,
                      .figures = w->figures,
                      .note = w->options->note,
                      .user_data = w->options->user_data};
}

/* Of models first and first + 1, as far as they are there. */
static dvbf_status add_latent(dv_work *w, const dv_study *s, const dv_points *points, size_t first,
                              dvbf_error *error) {
  size_t models = s->n_models - first < 2 ? s->n_models - first : 2;
  dvbf_figure_latent figure = {.models = models};
  dv_chapter chapter = shared_chapter(s, w);
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
  dv_chapter_figure_path(bare, &chapter, name, "");
  dvbf_status drawn = dvbf_draw_latent(&figure, bare, error);
  return dv_chapter_embed(
      w->page, &chapter, name, drawn, false,
      "Latent samples along the directions that predict the state, coloured by angle and by velocity; "
      "below, what the regressions predict.",
      "Latent spaces side by side with regression scatters", error);
}

static dvbf_status add_walk(dv_work *w, const dv_study *s, const dv_subject *subject, const char *model,
                            const dv_points *points, dvbf_error *error) {
  dv_walks walks;
  dv_chapter chapter = shared_chapter(s, w);
  dv_path bare;
  char name[64];
  snprintf(name, sizeof name, "walks-%s", model);
  dv_chapter_figure_path(bare, &chapter, name, "");
  dvbf_status drawn = dv_walks_take(&walks, subject, error);
  if (!drawn) drawn = dv_walks_draw(&walks, points, model, bare, error);
  dv_walks_free(&walks);
  return dv_chapter_embed(
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

/* ---- Chapters ---- */

static dv_chapter chapter_of(const dv_trial *t, size_t m, const dv_work *w) {
  const dv_result *result = &t->study->outcome[m].results[0];
  return (dv_chapter){.model = t->model[m],
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

/* What the first model's chapter has drawn on one picture. */
static dvbf_status draw_overview(const dv_study *s, const dv_chapter *chapter, dvbf_error *error) {
  static const char *const names[] = {"strips", "latent", "errors"};
  enum { PARTS = sizeof names / sizeof *names };
  dv_path path, parts[PARTS];
  dv_join(path, s->folder, "overview.png");
  for (size_t i = 0; i < PARTS; i++) dv_chapter_figure_path(parts[i], chapter, names[i], ".png");
  return dv_figure_collect(path, PARTS, parts, error);
}

static dvbf_status add_chapter(const dv_trial *t, size_t m, dv_work *w, bool overview, dvbf_error *error) {
  const dv_study *s = t->study;
  char name[128], key[128];
  dv_path run;
  dv_chapter chapter = chapter_of(t, m, w);
  dv_trial_run_folder(run, t, m);
  snprintf(name, sizeof name, "%s: %s", s->experiment->title, dv_study_contender(s, m)->name);
  snprintf(key, sizeof key, "%s-%s", s->experiment->system, dv_study_contender(s, m)->run);
  chapter.name = name;
  chapter.key = key;
  chapter.run = run;
  dvbf_status status = dv_chapter_add(w->page, &chapter, error);
  return status || !overview ? status : draw_overview(s, &chapter, error);
}

dvbf_status dv_trial_show(const dv_trial *t, dv_work *w, dvbf_error *error) {
  const dv_study *s = t->study;
  bool pendulum = dv_quantity_of(s->experiment, DV_OF_WALK) < DV_QUANTITIES;
  dv_trial_tell(w, t, DVBF_DRAWING, DV_MODELS);
  dvbf_status status = dvbf_page_heading(w->page, 1, s->experiment->title, error);
  if (!status) status = dvbf_page_text(w->page, s->experiment->remark, error);
  for (size_t i = 0; !status && i < s->n_tables; i++) status = dvbf_page_table(w->page, &s->tables[i], error);
  if (!status && pendulum) status = add_comparison(t, w, error);
  /* `dvbf report` makes the chapter of a single model; eight of them would hide the comparison. */
  for (size_t m = 0; !status && !s->experiment->all_models && m < s->n_models; m++)
    status = add_chapter(t, m, w, pendulum && !m, error);
  return status;
}
