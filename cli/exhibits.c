#include "exhibits.h"

#include "chapter_parts.h"
#include "walks.h"

#include <dvbf/figures.h>
#include <stdio.h>

static bool asks_for(const cli_experiment *e, cli_kind kind) {
  for (size_t i = 0; i < cli_quantities(e); i++)
    if (e->quantity[i].kind == kind) return true;
  return false;
}

/* The figures are embedded as those of a chapter. */
static cli_chapter chapter_of(const cli_exhibits *x) {
  return (cli_chapter){
      .name = x->experiment->title, .key = x->experiment->system, .figures = x->folder, .quiet = x->quiet};
}

/* Latent samples of the test set for one model. */
static dvbf_status sample(cli_points *out, const cli_exhibits *x, size_t m, dvbf_error *error) {
  dvbf_paths *paths = NULL;
  const cli_source *from = &x->source[m];
  dvbf_infer_options options = {.seed = from->seed, .threads = from->threads};
  dvbf_status status = dvbf_infer(&paths, from->model, &from->data->test, &options, error);
  if (!status) status = cli_points_gather(out, from->data, &from->data->test, paths, error);
  dvbf_paths_free(paths);
  return status;
}

static dvbf_status add_latent(dvbf_page *page, const cli_exhibits *x, const cli_points *points,
                              dvbf_error *error) {
  dvbf_figure_latent figure = {.models = x->models};
  cli_chapter chapter = chapter_of(x);
  cli_path bare;
  for (size_t m = 0; m < x->models; m++) {
    const cli_column *angle = cli_points_column(&points[m], "angle"),
                     *velocity = cli_points_column(&points[m], "velocity");
    figure.model[m] = (dvbf_latent_model){.title = x->name[m],
                                          .points = points[m].count,
                                          .n_z = points[m].n_z,
                                          .z = points[m].z,
                                          .angle = angle ? angle->values : NULL,
                                          .velocity = velocity ? velocity->values : NULL};
  }
  cli_chapter_figure_path(bare, &chapter, "latent", "");
  dvbf_status drawn = dvbf_draw_latent(&figure, bare, error);
  return cli_chapter_embed(
      page, &chapter, "latent", drawn,
      "Latent samples along the directions that predict the state, coloured by angle and by velocity; "
      "below, what the regressions predict.",
      "Latent spaces side by side with regression scatters", error);
}

static dvbf_status add_walk(dvbf_page *page, const cli_exhibits *x, size_t m, const cli_points *points,
                            dvbf_error *error) {
  cli_walks walks;
  cli_chapter chapter = chapter_of(x);
  cli_path bare;
  char name[64];
  snprintf(name, sizeof name, "walks-%s", x->name[m]);
  cli_chapter_figure_path(bare, &chapter, name, "");
  dvbf_status drawn = cli_walks_take(&walks, &x->source[m], error);
  if (!drawn) drawn = cli_walks_draw(&walks, points, x->name[m], bare, error);
  cli_walks_free(&walks);
  return cli_chapter_embed(
      page, &chapter, name, drawn,
      "Latent walks through one sequence of 100 steps without torque: generated after its first frames, "
      "and inferred with every frame observed.",
      "Two paths in the latent space, in two projections each", error);
}

dvbf_status cli_exhibits_add(dvbf_page *page, const cli_exhibits *x, dvbf_error *error) {
  cli_points points[CLI_MODELS] = {{0}};
  dvbf_status status = DVBF_OK;
  if (!asks_for(x->experiment, CLI_WALK)) return DVBF_OK;
  for (size_t m = 0; !status && m < x->models; m++) status = sample(&points[m], x, m, error);
  if (!status) status = add_latent(page, x, points, error);
  for (size_t m = 0; !status && m < x->models; m++) status = add_walk(page, x, m, &points[m], error);
  for (size_t m = 0; m < CLI_MODELS; m++) cli_points_free(&points[m]);
  return status;
}
