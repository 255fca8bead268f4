/* p(x_t | z_t): hidden layers, on which the density puts its parameters. */
#include "model/density.h"

void dv_record_emission(dv_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  p->ln_p = dvbf_slab(g, p->steps, 1);
  dv_stack inner = dv_hidden(g, s, "emission", p->steps, (dvbf_first){.scale = 0.5},
                             (dv_dense_in[4]){{"z", p->z, s->scale_emission, false}});
  dv_stack_whole(g, &inner);
  m->density->record(p, m, dv_stack_top(&inner), p->gaps ? p->seen : p->mask);
}
