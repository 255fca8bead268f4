/* Bidirectional recurrent networks over K frames, one layer or two:
 *
 *   forward   h_t = f(x_t W + u_t U + h_{t-1} R + b)      from h_0     = 0
 *   backward  g_t = f(x_t W' + u_t U' + g_{t+1} R' + b')  from g_{K+1} = 0
 *
 * The second layer has the same form with (h_t, g_t) of the first in the place of (x_t, u_t), so that each
 * of its states has seen all K frames. */
#include "model/model.h"

#include <math.h>
#include <stdio.h>

/* One direction of one layer. Returns the states of all steps. */
static dvbf_value direction(dvbf_graph *g, const dv_birnn *net, const char *name, const dv_dense_in in[2],
                            bool reverse) {
  int n = net->hidden, frames = net->x.steps;
  dvbf_value states = dvbf_slab(g, frames + 1, n); /* the zero state at one end */
  dvbf_value h = dvbf_steps(states, reverse ? 0 : 1, frames),
             before = dvbf_steps(states, reverse ? 1 : 0, frames);
  dvbf_zero(g, dvbf_steps(states, reverse ? frames : 0, 1));
  dvbf_layer layer = dv_dense(g, name, h, net->activation, (dvbf_first){0},
                              (dv_dense_in[4]){in[0], {"h", before, 0.7 / sqrt(n), true}, in[1]});
  dvbf_layer_open(g, &layer);
  dvbf_layer first = layer; /* nothing comes from the zero state, and nothing need go back to it */
  first.in[1].sequential = false;
  dvbf_layer_step(g, &first, reverse ? frames - 1 : 0);
  for (int i = 1; i < frames; i++) dvbf_layer_step(g, &layer, reverse ? frames - 1 - i : i);
  return h;
}

static dv_birnn_states both(dvbf_graph *g, const dv_birnn *net, const char *number, const dv_dense_in in[2]) {
  char forward[64], backward[64];
  snprintf(forward, sizeof forward, "%s.forward%s", net->name, number);
  snprintf(backward, sizeof backward, "%s.backward%s", net->name, number);
  dv_birnn_states states;
  states.forward = direction(g, net, forward, in, false);
  states.backward = direction(g, net, backward, in, true);
  return states;
}

dv_birnn_states dv_record_birnn(dvbf_graph *g, const dv_birnn *net) {
  double scale = 1 / sqrt(2.0 * net->hidden);
  dv_birnn_states s = both(
      g, net, "", (dv_dense_in[2]){{"x", net->x, net->scale_x, false}, {"u", net->u, net->scale_u, false}});
  if (net->layers < 2) return s;
  return both(g, net, "-2",
              (dv_dense_in[2]){{"forward", s.forward, scale, false}, {"backward", s.backward, scale, false}});
}
