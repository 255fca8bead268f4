/* The parts of a chapter, one file each. */
#ifndef CLI_CHAPTER_PARTS_H
#define CLI_CHAPTER_PARTS_H

#include "chapter.h"

/* What several parts show, computed once. */
typedef struct cli_shown {
  cli_points points;          /* samples of the filter on the evaluated sequences */
  const dvbf_data *data;      /* of the film */
  dvbf_sequences film;        /* copies of the first sequences for prediction */
  dvbf_paths *reconstruction; /* of `film`, along the mean path, with every frame observed */
  dvbf_paths *prediction;     /* from the first frames; NULL when nothing is left to predict */
  size_t observed;            /* by the prediction */
} cli_shown;

/* Says what is left out and why, on the page and on standard error. */
dvbf_status cli_chapter_left_out(dvbf_page *page, const cli_chapter *c, const char *text, dvbf_error *error);

/* The file figures/key-name with that extension. */
void cli_chapter_figure_path(cli_path out, const cli_chapter *c, const char *name, const char *extension);
/* Embeds a figure that was drawn with `drawn`. What cannot be drawn is left out with the reason, but a full
 * disk or a lack of memory ends all. Of the chapter only name, key, figures and quiet are read. */
dvbf_status cli_chapter_embed(dvbf_page *page, const cli_chapter *c, const char *name, dvbf_status drawn,
                              const char *caption, const char *alternative, dvbf_error *error);

dvbf_status cli_chapter_tables(dvbf_page *page, const cli_chapter *c, dvbf_error *error);
dvbf_status cli_chapter_figures(dvbf_page *page, const cli_chapter *c, const cli_shown *shown,
                                dvbf_error *error);
dvbf_status cli_chapter_views(dvbf_page *page, const cli_chapter *c, const cli_shown *shown,
                              dvbf_error *error);

/* The evaluation whose prediction error is shown, and the length of the training sequences when that is
 * shorter than what is shown, else 0. */
const dvbf_evaluation *cli_chapter_far(const cli_chapter *c);
size_t cli_chapter_training_steps(const cli_chapter *c, const cli_shown *shown);

#endif
