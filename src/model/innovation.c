/* What recognition may see in the place of a frame: the innovation e_t = x_{t+1} - mean of the emission at
 * f(z_t, u_t, w = 0). With it, the gain of a Kalman filter is a linear function, w = K e. */
#include "model/density.h"
#include "model/picture.h"

/* A step of the prediction needs z of that step: all layers are sequential. */
dv_expected dv_expected_open(dvbf_program *p, const dvbf_model *m, const dvbf_transition_values *x) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  dvbf_value u = dv_emission_control(p, m, 1, x->steps);
  dv_expected e = {.values = *x, .e = dvbf_slab(g, x->steps, m->n_x), .range = dvbf_state_range(g, m)};
  if (dv_convolves(m))
    dvbf_refuse(g, "recognition-sees = innovation needs network = dense; recognition-sees = frame takes any");
  if (m->density->joint)
    dvbf_refuse(g, "recognition-sees = innovation needs a likelihood of single values, not of groups; "
                   "recognition-sees = frame takes any");
  e.values.next = p->predicted;
  e.values.w = dvbf_slab_constant(g, x->steps, m->n_w);
  dvbf_zero(g, e.values.w);
  e.memory = m->transition->open(m->transition, g, m->settings_object, &e.values);
  e.hidden = dv_hidden(
      g, s, "emission", x->steps, (dvbf_first){.scale = 0.5},
      (dv_dense_in[4]){{"z", e.values.next, s->scale_emission, true}, {"u", u, s->scale_emission, false}});
  e.output = dv_output_layer(g, m, dvbf_slab(g, x->steps, m->n_x), dv_stack_top(&e.hidden), e.values.next, u);
  dv_stack_open(g, &e.hidden);
  dvbf_layer_open(g, &e.output);
  return e;
}

void dv_expected_step(dvbf_program *p, const dvbf_model *m, const dv_expected *e, int t) {
  dvbf_graph *g = p->graph;
  m->transition->step(m->transition, g, &e->values, e->memory, t);
  dvbf_saturate(g, dvbf_steps(e->values.next, t, 1), e->range);
  dv_stack_step(g, &e->hidden, t);
  dvbf_layer_step(g, &e->output, t);
  dv_record_residual(g, dvbf_steps(e->e, t, 1), dvbf_steps(p->x, t + 1, 1), dvbf_steps(e->output.out, t, 1),
                     dvbf_steps(p->seen, t + 1, 1), m->density->mean, m->density->emit_mean);
}
