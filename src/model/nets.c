#include "model/model.h"

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

dvbf_activation dv_hidden_activation(const dv_train_settings *s) {
  static const dvbf_activation of[] = {DVBF_RELU, DVBF_TANH, DVBF_SIGMOID};
  return of[s->activation];
}
