/* A chapter of a report: one model on one data set. */
#ifndef DV_CHAPTER_H
#define DV_CHAPTER_H

#include "base/file.h"
#include "evaluate/paths.h"
#include "report/points.h"

#include <dvbf/report.h>

typedef struct dv_chapter {
  const char *name; /* the heading */
  const char *key;  /* prefix of the names of its figures; NULL: none */
  const dvbf_model *model;
  const dvbf_data *data;
  const dvbf_sequences *sequences; /* the split of `data` that was evaluated */
  const char *split;               /* its name */
  const dvbf_evaluation *evaluation;
  /* Longer sequences for prediction and video, and their evaluation; NULL: those above. */
  const dvbf_data *long_data;
  const dvbf_sequences *long_sequences;
  const dvbf_evaluation *long_evaluation;
  const char *run;     /* folder with metrics.csv and settings.txt, NULL: none */
  const char *figures; /* folder that receives the figures and exists */
  unsigned threads;
  const volatile int *interrupt; /* NULL, or a flag that ends the work */
  dvbf_note_fn *note;            /* also gets the notes about what is left out; NULL: none */
  void *user_data;               /* handed to it */
} dv_chapter;

/* Refuses figures that exist, unless `force`. Only key and figures are read. */
dvbf_status dv_chapter_refuse(const dv_chapter *chapter, bool force, dvbf_error *error);

/* Adds heading, tables, figures, latent space, video and settings. */
dvbf_status dv_chapter_add(dvbf_page *page, const dv_chapter *chapter, dvbf_error *error);

/* ---- The parts of a chapter ---- */

/* Results that several parts show, computed once. */
typedef struct dv_shown {
  dv_points points;         /* samples of the filter on the evaluated sequences */
  const dvbf_data *data;    /* of the video */
  dvbf_sequences film;      /* copies of the first sequences for prediction */
  dv_paths *reconstruction; /* of `film`, without noise, with every frame observed */
  dv_paths *prediction;     /* from the first frames; NULL when nothing is left to predict */
  size_t observed;          /* by the prediction */
} dv_shown;

/* Adds a note about what is left out and why. */
dvbf_status dv_chapter_left_out(dvbf_page *page, const dv_chapter *c, const char *text, dvbf_error *error);

/* The file figures/key-name with that extension. */
void dv_chapter_figure_path(dv_path out, const dv_chapter *c, const char *name, const char *extension);
/* Embeds a figure; `drawn` is the status of drawing it. If it could not be drawn, a note gives the reason;
 * only a full disk or a lack of memory is returned as a failure. Reads only name, key, figures and note of
 * the chapter. */
dvbf_status dv_chapter_embed(dvbf_page *page, const dv_chapter *c, const char *name, dvbf_status drawn,
                             const char *caption, const char *alternative, dvbf_error *error);

/* The verdict on the model, where the evaluation has one. */
dvbf_status dv_chapter_verdict(dvbf_page *page, const dv_chapter *c, dvbf_error *error);
dvbf_status dv_chapter_tables(dvbf_page *page, const dv_chapter *c, dvbf_error *error);
/* Nothing where the run was no search. */
dvbf_status dv_chapter_search(dvbf_page *page, const dv_chapter *c, dvbf_error *error);
dvbf_status dv_chapter_figures(dvbf_page *page, const dv_chapter *c, const dv_shown *shown,
                               dvbf_error *error);

/* The evaluation whose prediction error is shown, and the length of the training sequences when that is
 * shorter than what is shown, else 0. */
const dvbf_evaluation *dv_chapter_far(const dv_chapter *c);
size_t dv_chapter_training_steps(const dv_chapter *c, const dv_shown *shown);

#endif
