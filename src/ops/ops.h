/* Ops that are not public (dvbf/graph.h has the public ones). */
#pragma once

#include "engine/engine.h"

#include <string.h>

/* ln sigma of a head, kept inside its limits. */
static inline dvbf_real dv_clamp(dvbf_real x, double low, double high) {
  return x < low ? (dvbf_real)low : x > high ? (dvbf_real)high : x;
}

/* Rows of all steps, which fit an int (dvbf_slab), and numbers of all rows. */
static inline int dv_rows(dvbf_value v) {
  return v.steps * v.rows;
}
static inline size_t dv_count(dvbf_value v) {
  return (size_t)v.steps * v.stride;
}

/* Row r, counted over all steps, of a contiguous value and of its gradient; NULL if there is none. */
static inline dvbf_real *dv_row(const dvbf_run *run, dvbf_value v, int r) {
#ifndef __clang_analyzer__ /* to which any value might be none */
  if (v.buffer < 0) return NULL;
#endif
  return dv_at(run, v) + (size_t)r * (size_t)v.cols;
}
static inline dvbf_real *dv_row_gradient(const dvbf_run *run, dvbf_value v, int r) {
  dvbf_real *at = dvbf_gradient_at(run, v);
  return at ? at + (size_t)r * (size_t)v.cols : NULL;
}

/* to [count] = copies of from [width], or 0 if there is none. */
static inline void dv_fill(dvbf_real *to, size_t count, const dvbf_real *from, size_t width) {
  if (!from) memset(to, 0, count * sizeof *to);
  for (size_t i = 0; from && i < count; i += width) memcpy(to + i, from, width * sizeof *to);
}

/* Whether what was made from w in the last run can be used again. Only parameters stay as they are: the
 * output of an op changes from run to run even if the weights do not. */
static inline bool dv_is_unchanged(const dvbf_run *run, dvbf_value w) {
  dv_buffer_kind kind = run->buffers[w.buffer].kind;
  return run->same_weights && (kind == DV_BUFFER_PARAMETER || kind == DV_BUFFER_FROZEN);
}

/* Whether a mask [..][1 or n] has an entry for each value of x instead of one for each row. */
static inline bool dv_is_partial(dvbf_value x, dvbf_value mask) {
  return mask.cols == x.cols && x.cols > 1;
}

/* Entry i of row r of [rows][n], from one number for all, one for each column, or one for each entry. */
static inline size_t dv_entry_at(dvbf_value from, size_t n, size_t r, size_t i) {
  return dv_rows(from) > 1 ? r * n + i : from.cols > 1 ? i : 0;
}

/* ---- Contraction (linear_mixture.c) ---- */

/* M linear systems A_i, stored as [n][n][M], whose S_i, which is A_i or, in residual form, I + A_i, is to
 * have no singular value above `most`. */
typedef struct dv_systems {
  int n, count; /* M */
  bool residual;
  double most;
} dv_systems;

/* Doubles of work that a system needs. */
size_t dv_contract_room(int n);
/* S_i as a matrix [n][n]; z' = z S_i. */
void dv_systems_read(const dv_systems *systems, int i, const dvbf_real *from, double *s);
/* System i of `to` becomes the nearest to that of `from` that keeps to the limit; it is the same, bit for
 * bit, if it did already. Both may be the same. Returns how many singular values were above it. */
int dv_contract_system(const dv_systems *systems, int i, const dvbf_real *from, dvbf_real *to, double *room);
/* out = v [1 or steps][1][n_v], which begins with the systems, with these contracted. */
void dv_record_contract(dvbf_graph *g, dvbf_value out, dvbf_value v, const dv_systems *systems);

/* ---- Convolutions of 4 x 4 pixels with stride 2, and their transposes (convolution_winograd.c) ---- */

typedef struct dv_winograd {
  dvbf_image large, small;
  int padding;
  int down, across;  /* windows of an image */
  int panel;         /* windows whose transforms are in memory at a time */
  int room, weights; /* reals of scratch memory, and of transformed weights; 0 if too many */
} dv_winograd;

/* Whether a convolution of this shape is faster this way. */
bool dv_winograd_fits(dvbf_image large, dvbf_image small, int size, int stride);
/* For this many images. */
dv_winograd dv_winograd_of(dvbf_image large, dvbf_image small, int padding, int images);

/* One computation, for `images` images side by side. Results are added to the outputs. */
typedef struct dv_winograd_job {
  const dvbf_real *large, *small; /* [images][height][width][channels]; NULL: not needed for what is wanted */
  const dvbf_real *w;             /* [4][4][channels of large][channels of small] */
  dvbf_real *to_small;            /* the convolution of large, or NULL */
  dvbf_real *to_large;            /* the transposed convolution of small, or NULL; not both */
  dvbf_real *dw;                  /* gradient of w from large and small, or NULL */
  dvbf_real *u;                   /* room for transformed weights */
  bool u_is_there;                /* they are in it, from the same job with the same weights */
  int images;
} dv_winograd_job;

void dv_winograd_run(const dv_winograd *w, const dv_winograd_job *job, const dvbf_run *run, dvbf_real *room);

/* ---- Columns (elementwise.c) ---- */

/* out [steps][rows][sum of columns] = the parts [steps][rows][...] side by side. */
void dv_record_join(dvbf_graph *g, dvbf_value out, int count, const dvbf_value *parts);
/* out [steps][rows][n] = n columns of x from `first` on. */
void dv_record_columns(dvbf_graph *g, dvbf_value out, dvbf_value x, int first);

/* ---- Gates (gru.c) ---- */

/* Of gates (r, k) [1][rows][2n] of a recurrent unit: out = r h, and next = h + k (c - h). */
void dv_record_reset(dvbf_graph *g, dvbf_value out, dvbf_value gates, dvbf_value h);
void dv_record_blend(dvbf_graph *g, dvbf_value next, dvbf_value gates, dvbf_value h, dvbf_value c);

/* ---- Noise (sampling.c) ---- */

/* out = x, or 0 in all steps of a row with the probability that the scalar has. */
void dv_record_row_dropout(dvbf_graph *g, dvbf_value out, dvbf_value x, const char *scalar);
/* out [steps][rows][1] = numbers in (0, 1), keyed as normal ones are; 1/2 in a run without noise. */
void dv_record_uniform(dvbf_graph *g, dvbf_value out);

/* ---- Locally linear steps (locally_linear.c) ---- */

/* next = A z + B u + o of one step; parts [1][rows][(3 + n_u) n] = (v, r, o, B), A = I + v r'. u may be none.
 */
void dv_record_local(dvbf_graph *g, dvbf_value next, dvbf_value z, dvbf_value u, dvbf_value parts);
/* KL from the q = (mu, ln sigma) that this step predicts to q of the next frame; 0 if either is not used. */
typedef struct dv_divergence {
  dvbf_value kl;            /* [1][rows][1] */
  dvbf_value parts, u;      /* as above */
  dvbf_value q, next;       /* [1][rows][2n] */
  dvbf_value use, next_use; /* [1][rows][1] */
  double low, high;         /* of ln sigma */
} dv_divergence;
void dv_record_divergence(dvbf_graph *g, const dv_divergence *divergence);
/* out = a where use > 0, else b; one step. */
void dv_record_choose(dvbf_graph *g, dvbf_value out, dvbf_value a, dvbf_value b, dvbf_value use);

/* ---- Bounds of several samples (importance.c) ---- */

/* out [steps][rows][1] = ln q - ln p of the draw, 0 if it is from the prior. ln sigma is kept inside [low,
 * high]. */
void dv_record_ln_ratio(dvbf_graph *g, dvbf_value out, const dvbf_drawn *drawn, double low, double high);
/* Adds to the term, for each group of `samples` rows, the logarithm of the mean of their exp(sum of ln_p -
 * sum of ln ratios), times the sum of their weights. `later` may be none. Returns the share of each row in
 * its group, times that sum, [1][rows][1]. */
dvbf_value dv_record_importance(dvbf_graph *g, int term, int samples, dvbf_value ln_p, dvbf_value first,
                                dvbf_value later, dvbf_value weight);
/* out [1][rows][n] = rows of z, each drawn from its group by the weights s [1][rows][1]. */
void dv_record_resample(dvbf_graph *g, dvbf_value out, dvbf_value z, dvbf_value s, int samples);

/* ---- Linear Gaussian systems (message_passing.c) ---- */

/* z_1 = m + L_1 w_1, z_t = A z_{t-1} + c_t + L w_t, and frames as potentials N(mu; z_t, sigma^2). Factors are
 * lower triangular, with logarithms on their diagonals. */
typedef struct dv_messages {
  dvbf_value head;           /* [seen][rows][2n] (mu, ln sigma) of the frames that may be seen; none: none */
  dvbf_value drift;          /* [T - 1][rows][n] c_2 .. c_T; none: 0 */
  dvbf_value from_z, factor; /* [n][n] A, transposed, and L; none if T = 1 */
  dvbf_value start, spread;  /* [1][n] m and [n][n] L_1 */
  dvbf_value noise, use;     /* [T][rows][n] and [T][rows][1], 1 if a frame is seen */
  dvbf_value state;          /* [T][rows][dv_chain_state(n)] z_t, and mean and covariance of q(z_t) */
  dvbf_value kl, w, q;       /* [T][rows][1], w_t [T][rows][n], its mean and -ln diag U [T][rows][2n] */
  double low, high;          /* of ln sigma */
} dv_messages;
void dv_record_messages(dvbf_graph *g, const dv_messages *m);

/* One step of the same chain forwards: the state, from that of the step before. If the frame is observed, z
 * is drawn given all frames so far or, with `particles`, given z of the step before. */
typedef struct dv_kalman_step {
  dvbf_value given, state; /* [1][rows][dv_chain_state(n)] */
  dvbf_value head, use; /* of the frame; none: it is not seen, and there are gradients by given and drift */
  dvbf_value drift, from_z, factor, noise;
  dvbf_value w, q; /* [1][rows][n], [1][rows][2n]; none if head is */
  double low, high;
  bool particles;
} dv_kalman_step;
void dv_record_kalman_step(dvbf_graph *g, const dv_kalman_step *step);

/* Columns of a state: z [n], the mean [n] of z, and the lower half [n (n + 1) / 2] of its covariance. */
static inline int dv_chain_state(int n) {
  return 2 * n + n * (n + 1) / 2;
}
/* z, mean and covariance [n][n] from a row of a state. */
void dv_chain_read(const dvbf_real *state, double *z, double *mean, double *cov, int n);
/* The lower triangular factor of a parameter [n][n] whose diagonal holds logarithms; its upper half is
 * ignored. */
void dv_factor_read(double *l, const dvbf_real *from, int n);

/* ---- Fast dropout (fast_dropout.c) ---- */

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

/* head [steps][rows][2n] = (mean, ln sqrt(variance)), for dvbf_innovation_step. */
void dv_record_moments_head(dvbf_graph *g, dvbf_value head, dvbf_value mean, dvbf_value variance);

/* out [steps][rows][1] = ln p(x | ...), 0 where mask = 0, as dvbf_gaussian. */
void dv_record_bernoulli(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value logits, dvbf_value mask);

/* ln sigma of each value: `own`, but `free` in the first frames and in those that filter dropout has taken
 * (`use` < 0). */
typedef struct dv_free_sigma {
  dvbf_value out;  /* [T][rows][n] */
  dvbf_value own;  /* [1][1], [1][n] or [T][rows][n] */
  dvbf_value free; /* [1][1] or [1][n] */
  dvbf_value use;  /* [T][rows][1] of the steps into the frames, or [T - 1] where the first frame has none */
  int first;       /* frames; none if it is below 1 */
} dv_free_sigma;
void dv_record_free_sigma(dvbf_graph *g, const dv_free_sigma *s);

/* The same for a density of single values: out = sum_i ln_p(x_i, parameter_i) over observed values; slope is
 * its derivative by the parameter. */
typedef struct dv_value_density {
  double (*ln_p)(double x, double parameter);
  double (*slope)(double x, double parameter);
} dv_value_density;
void dv_record_values(dvbf_graph *g, dvbf_value out, dvbf_value x, dvbf_value parameter, dvbf_value mask,
                      dv_value_density density);

/* A mixture of a network's own frame and of patterns that all frames share (patterns.c). */
enum { DV_MOST_PATTERNS = 1024, DV_PATTERN_GAIN = 10 };
typedef struct dv_patterns {
  dvbf_value own;      /* [steps][rows][n] logits */
  dvbf_value scores;   /* [steps][rows][1 + M] of the own frame, and of the patterns */
  dvbf_value patterns; /* [n][M] logits over DV_PATTERN_GAIN */
} dv_patterns;
/* out [steps][rows][1] = ln p(x), and out [steps][rows][n] = mean of x. */
void dv_record_patterns(dvbf_graph *g, dvbf_value out, const dv_patterns *p, dvbf_value x, dvbf_value mask);
void dv_record_patterns_mean(dvbf_graph *g, dvbf_value out, const dv_patterns *p);

/* One step of e = x - mean(output) where mask [..][1 or n] is not 0, else 0; mean = NULL: the output is the
 * mean. emit_mean is the same as code. */
void dv_record_residual(dvbf_graph *g, dvbf_value e, dvbf_value x, dvbf_value output, dvbf_value mask,
                        double (*mean)(double output),
                        dvbf_expr (*emit_mean)(dvbf_code *code, dvbf_expr output));
/* mean'(output); every mean is smooth, and differences are exact to 1e-9. */
dvbf_real dv_mean_slope(double (*mean)(double output), double output);
