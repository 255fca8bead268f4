#include "model/model.h"

#include <math.h>
#include <stdio.h>

dvbf_layer dv_dense(dvbf_graph *g, const char *layer, dvbf_value out, dvbf_activation activation,
                    dvbf_first bias, const dv_dense_in in[4]) {
  char name[64];
  dvbf_layer l = {.out = out, .activation = activation};
  for (int i = 0; i < 4 && in[i].name; i++) {
    if (in[i].x.buffer < 0) continue;
    snprintf(name, sizeof name, "%s.%s", layer, in[i].name);
    l.in[l.n_in].x = in[i].x;
    l.in[l.n_in].w = dvbf_parameter(g, name, in[i].x.cols, out.cols, (dvbf_first){.scale = in[i].scale});
    l.in[l.n_in++].sequential = in[i].sequential;
  }
  snprintf(name, sizeof name, "%s.bias", layer);
  l.bias = dvbf_parameter(g, name, 1, out.cols, bias);
  return l;
}

dvbf_innovation dv_innovation_of(const dvbf_model *m, const dvbf_drawn *drawn, dvbf_value kl) {
  return (dvbf_innovation){.w = drawn->value,
                           .kl = kl,
                           .head = drawn->head,
                           .noise = drawn->noise,
                           .use = drawn->use,
                           .low = m->settings->log_sigma_min,
                           .high = m->settings->log_sigma_max};
}

dvbf_activation dv_hidden_activation(const dv_train_settings *s) {
  static const dvbf_activation of[] = {
      [DV_HIDDEN_RELU] = DVBF_RELU, [DV_HIDDEN_TANH] = DVBF_TANH, [DV_HIDDEN_SIGMOID] = DVBF_SIGMOID};
  return of[s->activation];
}

dvbf_value dv_linear_path(const dvbf_model *m, dvbf_value value) {
  return m->settings->linear_paths ? value : DVBF_NONE;
}

dv_stack dv_hidden(dvbf_graph *g, const dv_train_settings *s, const char *name, int steps, dvbf_first bias,
                   const dv_dense_in in[4]) {
  dv_stack stack = {.count = (int)s->layers};
  bool sequential = false;
  for (int i = 0; i < 4 && in[i].name; i++) sequential |= in[i].sequential;
  for (int i = 0; i < stack.count; i++) {
    char layer[40];
    dv_dense_in below[4] = {{0}};
    if (i) below[0] = (dv_dense_in){"h", stack.layer[i - 1].out, 1 / sqrt((double)s->hidden), sequential};
    snprintf(layer, sizeof layer, i ? "%s.hidden-%d" : "%s.hidden", name, i + 1);
    stack.layer[i] = dv_dense(g, layer, dvbf_slab(g, steps, (int)s->hidden), dv_hidden_activation(s), bias,
                              i ? below : in);
  }
  return stack;
}

dvbf_value dv_stack_top(const dv_stack *stack) {
  return stack->layer[stack->count - 1].out;
}

void dv_stack_whole(dvbf_graph *g, dv_stack *stack) {
  for (int i = 0; i < stack->count; i++) dvbf_layer_whole(g, &stack->layer[i]);
}

void dv_stack_open(dvbf_graph *g, dv_stack *stack) {
  for (int i = 0; i < stack->count; i++) dvbf_layer_open(g, &stack->layer[i]);
}

void dv_stack_step(dvbf_graph *g, const dv_stack *stack, int t) {
  for (int i = 0; i < stack->count; i++) dvbf_layer_step(g, &stack->layer[i], t);
}
