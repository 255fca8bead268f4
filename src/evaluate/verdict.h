/* The verdict on a model. */
#ifndef DV_VERDICT_H
#define DV_VERDICT_H

#include "evaluate/nats.h"
#include "evaluate/rolling.h"

/* What decides, besides the scores, and what advice looks at. */
typedef struct dv_evidence {
  dv_blocks one_step, free_run;
  dv_nats nats;
  size_t n_u, frames, updates; /* columns of u, steps of the training data, updates of the model */
  const char *model;           /* name of its class */
  bool timeless;
} dv_evidence;

/* Fills `useful` and `sentence` from the scores. */
void dv_verdict_decide(dvbf_verdict *verdict, const dv_evidence *evidence);

#endif
