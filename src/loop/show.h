/* What is written about closed loops: control.json, control.html, control.png and .svg, control.apng. */
#ifndef DV_SHOW_H
#define DV_SHOW_H

#include "loop/truth.h"

typedef struct dv_loop_shown {
  const dvbf_loop *asked;
  const dv_plant *plant;
  const dvbf_model *model;      /* NULL: the true state was known, */
  const dv_truth *truth;        /* to this */
  const dvbf_settings *control; /* as it was used */
  const dv_episodes *episodes;
  const dvbf_loop_outcome *outcome;
  const float *goal; /* [n_x] */
} dv_loop_shown;

dvbf_status dv_loop_show(const dv_loop_shown *shown, dvbf_error *error);

#endif
