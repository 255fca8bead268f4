/* The variational autoencoder of Kingma and Welling (2014), frame by frame; sequences may have a single step.
 *
 *   q(z_t | x_t) = N(mu, sigma^2)        p(z_t) = N(0, I)
 *
 *   bound = sum_t ln p(x_t | z_t) - KL(q(z_t | x_t) || N(0, I))
 *
 * A frame that is not seen has z_t from the prior. It is the shortest class, whose recorders show what the
 * others need as well. */
#include "model/networks.h"

/* z and kl of `steps` steps from `first` on, of which `seen` may be seen. */
static dvbf_drawn encode(dvbf_program *p, const dvbf_model *m, int first, int steps, int seen) {
  dvbf_graph *g = p->graph;
  dvbf_drawn d = dv_drawn_of(p, first, dvbf_steps(p->z, first, steps), DVBF_NONE);
  if (seen) {
    /* Steps past those that may be seen have a head too, which nothing uses. */
    d.head = dvbf_slab(g, steps, 2 * m->n_z);
    dv_recognise_frames(p, m, d.head, first, false);
  }
  dvbf_innovation z = dv_innovation_of(&d, dvbf_steps(p->kl, first, steps));
  dvbf_innovation_step(g, &z, -1);
  return d;
}

/* A whole sequence: all frames are encoded at once. What is drawn at the first step and later, and from which
 * q, stands in the program, so that samples can be weighted. */
static void whole(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  int later = p->steps - 1;
  dvbf_drawn all = encode(p, m, 0, p->steps, p->observe);
  p->first = dv_drawn_steps(&all, 0, 1);
  if (later) p->later = dv_drawn_steps(&all, 1, later);
}

/* z[0] from the first frame, with which a filter begins. */
static void start(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  p->first = encode(p, m, 0, 1, 1);
}

/* z[1] from its frame alone: with neither state nor control there is nothing to move. */
static void step(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  p->later = encode(p, m, 1, 1, 1);
}

const dvbf_model_class dv_model_vae = {.name = "vae",
                                       .settings = "training pictures samples",
                                       .timeless = true,
                                       .start_frames = dv_one_frame,
                                       .whole = whole,
                                       .start = start,
                                       .step = step};
