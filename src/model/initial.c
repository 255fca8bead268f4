/* The initial network q(w_1 | x_1 .. x_K) = N(mu_1, sigma_1^2) and the initial transition z_1(w_1). */
#include "model/picture.h"

#include <math.h>

/* head = (mu_1, ln sigma_1), affine in f(x_1 W_1 + .. + x_K W_K + b). */
static void mlp(dvbf_program *p, const dvbf_model *m, int frames, dvbf_value head) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  dvbf_value hidden = dvbf_slab(g, 1, (int)s->hidden);
  dv_sight sight = dv_sight_of(p, m, 0, frames);
  int width = sight.value.cols;
  if ((int64_t)frames * (width > m->n_u ? width : m->n_u) > INT32_MAX) {
    dvbf_refuse(g, "initial-frames = %d: too many for frames of %d numbers; a birnn takes any number", frames,
                width);
    return;
  }
  bool back = dv_graph_has_gradient(g, sight.value);
  dvbf_value x = back ? dvbf_slab(g, 1, frames * width) : dvbf_slab_constant(g, 1, frames * width);
  dvbf_value u = DVBF_NONE;
  dvbf_side_by_side(g, x, sight.value);
  if (s->initial_control && m->n_u) {
    u = dvbf_slab_constant(g, 1, frames * m->n_u);
    dvbf_side_by_side(g, u, dvbf_steps(p->u, 0, frames));
  }
  dvbf_value told = dv_mask_input(p, m), mask = DVBF_NONE;
  if (told.buffer >= 0) {
    mask = dvbf_slab_constant(g, 1, frames * told.cols);
    dvbf_side_by_side(g, mask, dvbf_steps(told, 0, frames));
  }
  dvbf_layer layer = dv_dense(g, "initial.hidden", hidden, dv_hidden_activation(s), (dvbf_first){0},
                              (dv_dense_in[4]){{sight.name, x, 1 / sqrt(sight.spread * frames), false},
                                               {"u", u, s->scale_recognition / sqrt(frames), false},
                                               {"mask", mask, s->scale_recognition / sqrt(frames), false}});
  dvbf_layer output = dv_dense(g, "initial.output", head, DVBF_LINEAR, (dvbf_first){0},
                               (dv_dense_in[4]){{"h", hidden, 1 / sqrt((double)s->hidden), false},
                                                {"x", dv_linear_path(m, x), 0, false},
                                                {"u", dv_linear_path(m, u), 0, false}});
  dvbf_layer_whole(g, &layer);
  dvbf_layer_whole(g, &output);
}

/* head = (mu_1, ln sigma_1) from the forward state of the last frame and the backward state of the first:
 * both have seen all. */
static void birnn(dvbf_program *p, const dvbf_model *m, int frames, dvbf_value head) {
  dv_birnn net = dv_birnn_on(p, m, "initial", frames, m->settings->initial_control);
  dv_birnn_states all = dv_record_birnn(p->graph, &net);
  dv_birnn_states last = {dvbf_steps(all.forward, frames - 1, 1), dvbf_steps(all.backward, 0, 1),
                          dvbf_steps(all.forward_variance, frames - 1, 1),
                          dvbf_steps(all.backward_variance, 0, 1)};
  dv_record_birnn_output(p->graph, &net, &last, head);
}

static int frames_seen(dvbf_program *p, const dvbf_model *m) {
  int observe = p->observe;
  int64_t asked = m->settings->initial_frames;
  bool fixed = m->settings->initial == DV_INITIAL_MLP && asked > 0;
  if (fixed && asked > observe)
    dvbf_refuse(p->graph,
                "the initial network needs %d frames (initial-frames) but only %d are observed; observe "
                "more, or train "
                "with fewer",
                (int)asked, observe);
  return asked > 0 && asked < observe ? (int)asked : observe;
}

static dvbf_value recognise(dvbf_program *p, const dvbf_model *m, int frames) {
  dvbf_value head = dvbf_slab(p->graph, 1, 2 * m->n_z);
  if (m->settings->initial == DV_INITIAL_MLP)
    mlp(p, m, frames, head);
  else
    birnn(p, m, frames, head);
  return head;
}

void dv_record_initial(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  int n = (int)s->hidden;
  dvbf_value noise = dvbf_slab_constant(g, 1, m->n_z);
  dvbf_value w = dvbf_slab(g, 1, m->n_z), hidden = dvbf_slab(g, 1, n);
  dvbf_value head = p->observe ? recognise(p, m, frames_seen(p, m)) : DVBF_NONE;

  p->first = (dvbf_drawn){.value = w, .head = head, .noise = noise, .use = DVBF_NONE, .prior = DVBF_NONE};
  dvbf_noise(g, noise, false);
  dvbf_innovation first = dv_innovation_of(m, &p->first, dvbf_steps(p->kl, 0, 1));
  dvbf_innovation_step(g, &first, -1);

  dvbf_layer inner = dv_dense(g, "initial-transition.hidden", hidden, dv_hidden_activation(s),
                              (dvbf_first){.scale = 0.5}, (dv_dense_in[4]){{"w", w, 1, false}});
  dvbf_layer outer =
      dv_dense(g, "initial-transition.output", dvbf_steps(p->z, 0, 1), DVBF_LINEAR, (dvbf_first){0},
               (dv_dense_in[4]){{"h", hidden, 1 / sqrt(n), false}, {"w", dv_linear_path(m, w), 0, false}});
  dvbf_layer_whole(g, &inner);
  dvbf_layer_whole(g, &outer);
  dvbf_saturate(g, dvbf_steps(p->z, 0, 1), dvbf_state_range(g, m));
}
