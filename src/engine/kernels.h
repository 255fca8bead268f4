/* Kernels: the inner loops, compiled for several instruction sets and chosen at run time. All arrays are
 * contiguous, row-major; "+=" kernels add to their output. */
#pragma once

#include <dvbf/graph.h>

/* Added to every propagated variance, whose root has no derivative at 0. */
#define DV_VARIANCE_FLOOR 1e-6

/* Products of row-major arrays (matmul.c, matmul_amx.c). */
typedef struct dv_products {
  /* c[m][n] = start[n] + a[m][k] b[k][n] in every row; without start (NULL) it adds to c. */
  void (*nn)(dvbf_real *c, const dvbf_real *start, const dvbf_real *a, const dvbf_real *b, int m, int n,
             int k);
  /* c[m][k] = a[m][n] b[k][n]^T, or c += where `add` is set. */
  void (*nt)(dvbf_real *c, bool add, const dvbf_real *a, const dvbf_real *b, int m, int n, int k);
  /* c[k][n] = a[m][k]^T b[m][n], or c += where `add` is set. */
  void (*tn)(dvbf_real *c, bool add, const dvbf_real *a, const dvbf_real *b, int m, int n, int k);
} dv_products;

/* Transforms of Winograd's convolutions (winograd.c). Their results are `apart` reals from each other. */
typedef struct dv_winograd_kernels {
  /* v[9][4 * channels] from the 6 x 6 pixels `at`, each [channels], and its transpose, which adds to them. */
  void (*see)(dvbf_real *v, size_t apart, const dvbf_real *const at[36], int channels);
  void (*show)(dvbf_real *const at[36], const dvbf_real *v, size_t apart, int channels);
  /* m[9][channels] from the 2 x 2 pixels `at`, and its transpose, which adds to them. */
  void (*spread)(dvbf_real *m, size_t apart, const dvbf_real *const at[4], int channels);
  void (*collect)(dvbf_real *const at[4], const dvbf_real *m, size_t apart, int channels);
  /* u[9][count] from weights w of a phase, pixels `pixel` reals apart, and its transpose, which adds to w. */
  void (*weights)(dvbf_real *u, size_t apart, const dvbf_real *w, size_t pixel, size_t count);
  void (*weights_backward)(dvbf_real *w, size_t pixel, const dvbf_real *u, size_t apart, size_t count);
} dv_winograd_kernels;

typedef struct dv_kernels {
  const char *name;
  const dv_products *product;
  const dv_winograd_kernels *window;

  /* y[rows][n] = activation(y). */
  void (*activate)(dvbf_activation a, dvbf_real *y, int rows, int n);
  /* d[rows][n] *= activation'(at the output y), in place. */
  void (*activate_backward)(dvbf_activation a, dvbf_real *d, const dvbf_real *y, int rows, int n);
  /* sum[n] += sum over rows of x[rows][n]. */
  void (*column_sum)(dvbf_real *sum, const dvbf_real *x, int rows, int n);
  /* out[r] = scale[r] - sum_i (sum_k gain[i][k][r] z[k] - offset[i][r])^2 / 2 over n dimensions, for up to 64
   * rows r of arrays with `apart` rows: ln N of each row's z, up to its scale. */
  void (*log_normals)(double *out, const double *scale, const double *gain, const double *offset,
                      const double *z, int n, size_t apart, int rows);
  /* y[n] = (x[n] - shift[n]) * scale[n], from data into a program. */
  void (*standardise)(dvbf_real *y, const float *x, const float *shift, const float *scale, int n);
  /* The same where values of x may be missing, NaN: they become 0, the mean, and seen[n], unless it is NULL,
   * marks the observed ones. Returns whether there is any. */
  bool (*observe)(dvbf_real *y, dvbf_real *seen, const float *x, const float *shift, const float *scale,
                  int n);
  /* y[n] += x[n]. */
  void (*add)(dvbf_real *y, const dvbf_real *x, size_t n);

  /* Fast dropout (ops/fast_dropout.c): y[n] = c x[n]^2, and dx[n] += 2 c x[n] dy[n]. */
  void (*square)(dvbf_real *y, const dvbf_real *x, dvbf_real c, size_t n);
  void (*square_backward)(dvbf_real *dx, const dvbf_real *x, const dvbf_real *dy, dvbf_real c, size_t n);
  /* mean[n] of activation(N(mu, nu + DV_VARIANCE_FLOOR)), and dropped[n], its variance after dropout p. */
  void (*moments)(dvbf_activation a, dvbf_real *mean, dvbf_real *dropped, const dvbf_real *mu,
                  const dvbf_real *nu, dvbf_real p, size_t n);
  void (*moments_backward)(dvbf_activation a, dvbf_real *d_mu, dvbf_real *d_nu, const dvbf_real *mu,
                           const dvbf_real *nu, const dvbf_real *d_mean, const dvbf_real *d_dropped,
                           dvbf_real p, size_t n);

  /* Mixture: next[r][j] (+)= sum_i alpha[r][i] parts[r][j][i]; alpha NULL for M = 1. */
  void (*mix)(dvbf_real *next, const dvbf_real *alpha, const dvbf_real *parts, int rows, int n, int systems);
  /* d_alpha[r][i] += sum_j d[r][j] parts[r][j][i]; then parts[r][j][i] = d[r][j] alpha[r][i]. */
  void (*mix_backward)(dvbf_real *d_alpha, dvbf_real *parts, const dvbf_real *d, const dvbf_real *alpha,
                       int rows, int n, int systems);

  /* words[n] random bits → normal numbers out[n], n even, by Box and Muller on pairs. */
  void (*normals)(dvbf_real *out, const uint32_t *words, size_t n);

  /* Gaussian ln p(x | mean, exp(log_sigma)) summed over each row; n_sigma is 1, n or rows * n entries. */
  void (*gaussian)(dvbf_real *out, const dvbf_real *x, const dvbf_real *mean, const dvbf_real *log_sigma,
                   size_t n_sigma, dvbf_real floor, int rows, int n);
  /* d_mean (= unless `add` is set) and d_log_sigma (NULL: fixed) += g[row] times the derivative. */
  void (*gaussian_backward)(dvbf_real *d_mean, bool add, dvbf_real *d_log_sigma, const dvbf_real *g,
                            const dvbf_real *x, const dvbf_real *mean, const dvbf_real *log_sigma,
                            size_t n_sigma, dvbf_real floor, int rows, int n);
  /* Bernoulli ln p(x | logits) summed over each row, and its derivative. */
  void (*bernoulli)(dvbf_real *out, const dvbf_real *x, const dvbf_real *logits, int rows, int n);
  void (*bernoulli_backward)(dvbf_real *d_logits, const dvbf_real *g, const dvbf_real *x,
                             const dvbf_real *logits, int rows, int n);

  /* Optimisers on n parameters. */
  void (*adam)(dvbf_real *p, const dvbf_real *g, dvbf_real *m, dvbf_real *v, size_t n, dvbf_real step,
               dvbf_real beta1, dvbf_real beta2, dvbf_real epsilon, dvbf_real factor);
  void (*adadelta)(dvbf_real *p, const dvbf_real *g, dvbf_real *m, dvbf_real *v, size_t n, dvbf_real step,
                   dvbf_real rho, dvbf_real epsilon, dvbf_real factor);
  /* shards[0][offset ..][n] becomes the sum of all shards, and the sum of its squares is returned. They are
   * added in pairs, as a binary tree over their numbers: ((0 + 1) + (2 + 3)) + ((4 + 5) + 6). So parts of the
   * tree can be summed elsewhere and give the same bits. Other shards are left with sums of parts. */
  double (*reduce)(dvbf_real *const *shards, size_t offset, size_t n, int count);
} dv_kernels;

/* The fastest set that this processor runs, for the arithmetic of this thread (math/portable.h);
 * DVBF_ISA=base|v3|v4 in the environment asks for another. */
const dv_kernels *dv_kernels_best(void);
/* Refuses a DVBF_ISA that is unknown or that this processor lacks. */
dvbf_status dv_kernels_check(dvbf_error *error);

/* The products of the setting `products` (DV_FLOAT, ...), or a sentence if the machine lacks them. */
dvbf_status dv_products_choose(const dv_products **out, int64_t choice, dvbf_error *error);

/* ---- In files that are compiled for each instruction set (DV_ISA), also with portable arithmetic ---- */

#define DV_JOIN_(a, b) a##b
#define DV_JOIN(a, b) DV_JOIN_(a, b)
#ifdef DV_PORTABLE
#define DV_OF_ISA(name) DV_JOIN(name##_portable_, DV_ISA)
#else
#define DV_OF_ISA(name) DV_JOIN(name##_, DV_ISA)
#endif

#if defined(__AVX512F__)
#define DV_VECTOR 64 /* bytes */
#elif defined(__AVX__)
#define DV_VECTOR 32
#else
#define DV_VECTOR 16
#endif
typedef dvbf_real dv_vector __attribute__((vector_size(DV_VECTOR), aligned(sizeof(dvbf_real)), may_alias));

/* ---- Names of instructions and compiler ---- */

/* What a model's bytes also depend on, as "v4" and "gcc 12.2.0"; "any" with portable arithmetic. */
const char *dv_build_instructions(void);
const char *dv_build_compiler(void);
