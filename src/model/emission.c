/* p(x_t | z_t): hidden layers, then the mean and, where it depends on z, the standard deviation. */
#include "model/model.h"

#include <math.h>

/* ln sigma as [1][1], [1][n_x] or [T][rows][n_x]; how it is learned is the setting `sigma`. */
static dvbf_value log_sigma(dv_program *p, const dvbf_model *m, dvbf_value hidden) {
  const dv_train_settings *s = m->settings;
  dvbf_first first = {.mean = log(s->sigma_start), .frozen = s->sigma == DV_SIGMA_FIXED};
  if (s->sigma != DV_SIGMA_STATE)
    return dvbf_parameter(p->graph, "emission.log_sigma", 1, s->sigma == DV_SIGMA_DIMENSION ? m->n_x : 1,
                          first);
  dvbf_value out = dvbf_slab(p->graph, p->steps, m->n_x);
  dvbf_layer layer = dv_dense(p->graph, "emission.log_sigma", out, DVBF_LINEAR, first,
                              (dv_dense_in[4]){{"h", hidden, 0.1 / sqrt((double)s->hidden), false}});
  dvbf_layer_whole(p->graph, &layer);
  return out;
}

/* scale-picture is small, so that the first pictures are all but the mean frame. With larger weights the
 * first thing to learn is to undo them, and by then w has taken over the encoding of each frame: the bad
 * optimum. */
void dv_record_emission(dv_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  bool sigmoid = s->likelihood == DV_GAUSSIAN && s->mean == DV_MEAN_SIGMOID;
  dvbf_value mask = p->gaps ? p->seen : p->mask;
  p->mean = dvbf_slab(g, p->steps, m->n_x);
  p->ln_p = dvbf_slab(g, p->steps, 1);
  dv_stack inner = dv_hidden(g, s, "emission", p->steps, (dvbf_first){.scale = 0.5},
                             (dv_dense_in[4]){{"z", p->z, s->scale_emission, false}});
  dvbf_value hidden = dv_stack_top(&inner);
  dvbf_layer outer = dv_dense(
      g, "emission.mean", p->mean, sigmoid ? DVBF_SIGMOID : DVBF_LINEAR, (dvbf_first){.values = m->x_mean},
      (dv_dense_in[4]){{"h", hidden, s->scale_picture / sqrt((double)s->hidden), false}});
  dv_stack_whole(g, &inner);
  dvbf_layer_whole(g, &outer);
  if (s->likelihood == DV_BERNOULLI)
    dv_record_bernoulli(g, p->ln_p, p->x, p->mean, mask);
  else
    dv_record_gaussian(g, p->ln_p, p->x, p->mean, p->log_sigma = log_sigma(p, m, hidden), mask, m->left_out);
}
