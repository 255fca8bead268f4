/* A section of a report: one model on one data set, and the parts of it. */
#pragma once

#include "base/file.h"
#include "evaluate/evaluate.h"
#include "report/plots.h"
#include "report/signals.h"

#include <dvbf/report.h>

typedef struct dv_section {
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
  const dvbf_settings *settings; /* of the table "evaluate", with threads and interrupt */
  const char *run;               /* folder with metrics.csv and settings.txt, NULL: none */
  const char *figures;           /* folder that receives the figures and exists */
  dvbf_note_fn *note;            /* also gets the notes about what is left out; NULL: none */
  void *user_data;               /* handed to it */
} dv_section;

/* Adds heading, verdict, signals or video, errors, latent space, learning curves, tables and settings. Parts
 * for which there are no data are left out. */
dvbf_status dv_section_add(dvbf_page *page, const dv_section *chapter, dvbf_error *error);

/* ---- Parts of a section ---- */

enum { DV_FILM_SEQUENCES = 8 }; /* of a video, at most */

/* Results that several parts show, computed once. */
typedef struct dv_shown {
  dv_points points;      /* samples of the filter on the evaluated sequences */
  dv_signals signals;    /* of data that are no images */
  const dvbf_data *data; /* of the video */
  dvbf_sequences film;   /* copies of the first sequences for prediction */
  char names[DV_FILM_SEQUENCES][96];
  dv_paths *reconstruction; /* of `film`, without noise, with every frame observed */
  dv_paths *prediction;     /* from the first frames; NULL when nothing is left to predict */
  size_t observed;          /* by the prediction */
} dv_shown;

/* The file figures/key-name with that extension. */
void dv_section_figure_path(dv_path out, const dv_section *c, const char *name, const char *extension);
/* Embeds a figure and, with `narrow`, name-narrow for narrow windows; `drawn` is the status of drawing them.
 * If it failed, a note gives the reason; only a full disk or a lack of memory is a failure. Reads only name,
 * key, figures and note of the section. */
dvbf_status dv_section_embed(dvbf_page *page, const dv_section *c, const char *name, dvbf_status drawn,
                             bool narrow, const char *caption, const char *alternative, dvbf_error *error);

/* The same for a figure that is only a file, as the page draws it itself. */
dvbf_status dv_section_drawn(dvbf_page *page, const dv_section *c, const char *name, dvbf_status drawn,
                             dvbf_error *error);

/* Reports that a part is left out without a note in the page. */
void dv_section_message(const dv_section *c, const char *text);

/* Adds a part, or nothing without data for it. */
typedef dvbf_status dv_section_part(dvbf_page *page, const dv_section *c, const dv_shown *shown,
                                    dvbf_error *error);

/* Signals; tracks of what moves in a video; the error by the number of steps ahead; whether errors one step
 * ahead are white and normal, and quantiles right; learning curves; what a search has tried. The last two do
 * not read `shown`. */
dv_section_part dv_section_signals, dv_section_tracks, dv_section_horizon, dv_section_residuals,
    dv_section_curves, dv_section_search;

/* The evaluation whose prediction error is shown, and the length of the training sequences when that is
 * shorter than what is shown, else 0. */
const dvbf_evaluation *dv_section_far(const dv_section *c);
size_t dv_section_training_steps(const dv_section *c, const dv_shown *shown);
