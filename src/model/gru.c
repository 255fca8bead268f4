#include "model/gru.h"

#include <math.h>
#include <stdio.h>

static dvbf_layer layer_of(dvbf_graph *g, const dv_gru *u, const char *part, dvbf_value out, dvbf_value h,
                           dvbf_activation activation) {
  char name[40];
  snprintf(name, sizeof name, "%s.%s", u->name, part);
  return dv_dense(g, name, out, activation, (dvbf_first){0},
                  (dv_dense_in[4]){{"x", u->x, u->scale_x, u->x_step},
                                   {"u", u->u, u->scale_in, false},
                                   {"z", u->z, u->scale_in, u->z_step},
                                   {"h", h, 1 / sqrt((double)h.cols), true}});
}

void dv_gru_open(dvbf_graph *g, dv_gru *u) {
  int steps = u->h.steps - 1, n = u->h.cols;
  dvbf_value before = dvbf_steps(u->h, 0, steps);
  u->reset = dvbf_slab(g, steps, n);
  u->gates = layer_of(g, u, "gates", dvbf_slab(g, steps, 2 * n), before, DVBF_SIGMOID);
  u->candidate = layer_of(g, u, "candidate", dvbf_slab(g, steps, n), u->reset, DVBF_TANH);
  dvbf_layer_open(g, &u->gates);
  dvbf_layer_open(g, &u->candidate);
}

void dv_gru_step(dvbf_graph *g, const dv_gru *u, int t) {
  dvbf_value gates = dvbf_steps(u->gates.out, t, 1), h = dvbf_steps(u->h, t, 1);
  dvbf_layer_step(g, &u->gates, t);
  dv_record_reset(g, dvbf_steps(u->reset, t, 1), gates, h);
  dvbf_layer_step(g, &u->candidate, t);
  dv_record_blend(g, dvbf_steps(u->h, t + 1, 1), gates, h, dvbf_steps(u->candidate.out, t, 1));
}
