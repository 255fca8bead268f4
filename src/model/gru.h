/* A gated recurrent unit (Cho et al. 2014):
 *
 *   (r, k) = sigmoid(x W + u U + z V + h R + b)      gates
 *   c = tanh(x W' + u U' + z V' + (r h) R' + b')
 *   h' = h + k (c - h)
 *
 * Parameters are NAME.gates.x, .u, .z, .h, .bias and NAME.candidate.x, .u, .z, .h, .bias. */
#ifndef DV_GRU_H
#define DV_GRU_H

#include "model/model.h"

typedef struct dv_gru {
  const char *name;
  dvbf_value x, u, z;       /* [steps][rows][...] inputs of each step; any may be none */
  bool x_step, z_step;      /* made step by step */
  double scale_x, scale_in; /* standard deviations of the first weights from x, and from u and z */
  dvbf_value h;             /* [steps + 1][rows][n]; step t reads h[t] and writes h[t + 1] */
  dvbf_layer gates, candidate;
  dvbf_value reset;
} dv_gru;

void dv_gru_open(dvbf_graph *g, dv_gru *gru);
void dv_gru_step(dvbf_graph *g, const dv_gru *gru, int t);

#endif
