/* The online filter: the members of a committee side by side. */
#ifndef DV_INFER_FILTER_H
#define DV_INFER_FILTER_H

#include "infer/online.h"

struct dvbf_filter {
  const dvbf_model *model;
  int members;
  dv_online **member; /* [members] */
  size_t samples;     /* of each */
  bool same_row;      /* a member has feedthrough: u comes with its own frame */
  bool controlled;    /* `last` is there */
  float *last;        /* [n_u] control that came last */
  /* For predictions. */
  double *mean, *variance; /* [members][n_x] */
  float *x;                /* [members][samples][n_x] */
  const float **rows;      /* [members * samples] where the samples of x begin that take part */
  float *columns;          /* [members * samples][DV_SORTED] scratch */
};

#endif
