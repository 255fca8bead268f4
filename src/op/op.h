/* Ops of the bound: noise, samples with their KL, likelihoods, objective. */
#ifndef DV_OPS_H
#define DV_OPS_H

#include "engine/engine.h"

/* ln sigma of a head, kept inside its limits. */
static inline dvbf_real dv_clamp(dvbf_real x, double low, double high) {
  return x < low ? (dvbf_real)low : x > high ? (dvbf_real)high : x;
}

/* out [steps][rows][cols] = standard normal numbers, keyed by seed, update, sequence, op and step, or
 * shared: the same for all sequences. 0 on the mean path. */
void dv_record_noise(dvbf_graph *g, dvbf_value out, bool shared);

/* use [steps][rows][1] = 1 where q sees an observation (mask = 1) and filter dropout spares it, else 0. */
void dv_record_filter_use(dvbf_graph *g, dvbf_value use, dvbf_value mask);

/* A Gaussian innovation: head [steps][rows][2n] = (mu, ln sigma), ln sigma kept inside [low, high].
 *   w = mu + sigma eps      kl = sum_n (mu^2 + sigma^2 - 1) / 2 - ln sigma
 * and where use = 0, or without a head: w = eps, from the prior, and kl = 0. Step by step, or all steps with
 * t < 0. */
typedef struct dv_innovation {
  dvbf_value w, kl;            /* [steps][rows][n], [steps][rows][1] */
  dvbf_value head, noise, use; /* use may be none: always from q */
  double low, high;
} dv_innovation;
void dv_record_innovation(dvbf_graph *g, const dv_innovation *innovation, int t);

/* A Gaussian state whose prior has a head too, p [steps][rows][2n] = (mu_p, ln sigma_p), beside that of q;
 * every ln sigma is kept inside [low, high].
 *   use = 1:  z = mu_q + sigma_q eps    kl = KL(N(mu_q, sigma_q^2) || N(mu_p, sigma_p^2))
 *   use = 0:  z = mu_p + sigma_p eps    kl = 0 */
typedef struct dv_state {
  dvbf_value z, kl; /* [steps][rows][n], [steps][rows][1] */
  dvbf_value q, p, noise, use;
  int seen; /* q has heads for steps 0 .. seen - 1; later ones come from p, whatever `use` says */
  double low, high;
} dv_state;
/* z of step t; t < 0: z of all steps, from q alone, which needs no p and takes no notice of `use`. */
void dv_record_state_sample(dvbf_graph *g, const dv_state *state, int t);
/* kl of all steps. */
void dv_record_state_kl(dvbf_graph *g, const dv_state *state);

/* ---- Fast dropout (op/moments.c) ---- */

/* out = c x^2, same shape: squared weights, and with c = p / (1 - p) the variance that dropout gives to x. */
void dv_record_square(dvbf_graph *g, dvbf_value out, dvbf_value x, double c);

/* Step t of: mean = E[f(a)] of a ~ N(mu, nu), and dropped = Var[d f(a)] with dropout d of rate p. All are
 * [steps][rows][n]. */
typedef struct dv_moments {
  dvbf_value mean, dropped, mu, nu;
  dvbf_activation activation;
  double p;
} dv_moments;
void dv_record_moments(dvbf_graph *g, const dv_moments *moments, int t);

/* head [steps][rows][2n] = (mean, ln sqrt(variance)), for dv_record_innovation. */
void dv_record_moments_head(dvbf_graph *g, dvbf_value head, dvbf_value mean, dvbf_value variance);

/* Universal parameters: v [1 or steps][1][n] = mu + sigma eps, with KL(q(v) || p(v)) / N in the objective.
 * prior [1][2] = (m, ln s). */
typedef struct dv_universal {
  dvbf_value v, mean, log_sigma, prior, noise;
  dvbf_value weight; /* [1][rows][1] sequences of the shard */
} dv_universal;
void dv_record_universal(dvbf_graph *g, const dv_universal *universal);

/* Dimensions that x had and x here has not, as nothing is in them but a remainder of this squared length. */
typedef struct dv_left_out {
  int count;
  double square;
} dv_left_out;

/* out [steps][rows][1] = ln p(x | ...), 0 where mask = 0. log_sigma is [1][1], [1][n] or a slab. What is
 * left out of x counts nevertheless, and log_sigma is [1][1] then. */
void dv_record_gaussian(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value mean, dvbf_value log_sigma,
                        dvbf_value mask, dv_left_out left_out);
void dv_record_bernoulli(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value logits, dvbf_value mask);

/* Adds `value` [steps][rows][1], weighted by weight [1][rows][1], to a term of the bound, and its sign to the
 * objective that training minimises. */
void dv_record_term(dvbf_graph *g, int term, dvbf_value value, dvbf_value weight);

#endif
