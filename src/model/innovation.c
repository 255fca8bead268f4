/* What recognition may see besides: z as f(z_t, u_t, w = 0) predicts it or, in the place of the frame, the
 * innovation e_t = x_{t+1} - mean of the emission there. With that, the gain of a Kalman filter is a linear
 * function, w = K e; with the former it is one too, where some of z is linear in the frame. */
#include "model/density.h"
#include "model/picture.h"

/* The emission there, and e. */
static void open_innovation(dvbf_program *p, const dvbf_model *m, dv_expected *e) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  int steps = e->values.steps;
  dvbf_value u = dv_emission_control(p, m, 1, steps);
  if (dv_convolves(m))
    dvbf_refuse(g, "recognition-sees = innovation needs network = dense; recognition-sees = frame takes any");
  if (s->emission_sees && s->emission_sees < m->n_z)
    dvbf_refuse(g,
                "emission-sees = %d: recognition-sees = innovation needs all of z, which is 0; "
                "recognition-sees = prediction takes any",
                (int)s->emission_sees);
  if (m->density->joint)
    dvbf_refuse(g, "recognition-sees = innovation needs a likelihood of single values, not of groups; "
                   "recognition-sees = frame takes any");
  e->e = dvbf_slab(g, steps, m->n_x);
  e->hidden = dv_hidden(
      g, s, "emission", steps, (dvbf_first){.scale = 0.5},
      (dv_dense_in[4]){{"z", e->values.next, s->scale_emission, true}, {"u", u, s->scale_emission, false}});
  e->output = dv_output_layer(g, m, dvbf_slab(g, steps, m->n_x), dv_stack_top(&e->hidden), e->values.next, u);
  dv_stack_open(g, &e->hidden);
  dvbf_layer_open(g, &e->output);
}

/* A step of the prediction needs z of that step: all layers are sequential. */
dv_expected dv_expected_open(dvbf_program *p, const dvbf_model *m, const dvbf_transition_values *x) {
  dvbf_graph *g = p->graph;
  dv_expected e = {.values = *x, .e = DVBF_NONE, .range = dvbf_state_range(g, m)};
  e.values.next = p->predicted;
  e.values.w = dvbf_slab_constant(g, x->steps, m->n_w);
  dvbf_zero(g, e.values.w);
  e.memory = m->transition->open(m->transition, g, m->settings_object, &e.values);
  if (m->settings->recognition_sees == DV_SEES_INNOVATION) open_innovation(p, m, &e);
  return e;
}

void dv_expected_step(dvbf_program *p, const dvbf_model *m, const dv_expected *e, int t) {
  dvbf_graph *g = p->graph;
  m->transition->step(m->transition, g, &e->values, e->memory, t);
  dvbf_saturate(g, dvbf_steps(e->values.next, t, 1), e->range);
  if (e->e.buffer < 0) return;
  dv_stack_step(g, &e->hidden, t);
  dvbf_layer_step(g, &e->output, t);
  dv_record_residual(g, dvbf_steps(e->e, t, 1), dvbf_steps(p->x, t + 1, 1), dvbf_steps(e->output.out, t, 1),
                     dvbf_steps(p->seen, t + 1, 1), m->density->mean, m->density->emit_mean);
}
