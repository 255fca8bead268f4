/* The kernels: activations, fast dropout, mixtures, distributions and optimisers. Compiled twice per
 * instruction set with DV_ISA set, the second time with DV_PORTABLE. Loops are written so that the compiler
 * vectorises them; exp, log and sine are polynomials because calls into libm would not be. Accuracy:
 * tests/engine/test_kernels.c.
 *
 * Portable kernels give the same bits whatever the instruction set (math/portable.h): the compiler may
 * neither reorder nor fuse operations there, and a sum over many numbers is SUM below. */
#include "engine/kernels.h"

#include "math/portable.h"

#include <math.h>
#include <string.h>

typedef dvbf_real real;

/* ---- Functions of one number ---- */

#ifdef DV_DOUBLE

#ifdef DV_PORTABLE
#define LIBM(name) dv_portable_##name
#else
#define LIBM(name) name
#endif

static inline real exp1(real x) {
  return LIBM(exp)(x);
}
static inline real log1(real x) {
  return LIBM(log)(x);
}
static inline real sqrt1(real x) {
  return sqrt(x);
}
static inline void sincos_turn(real turn, real *s, real *c) {
  *s = LIBM(sin)(6.283185307179586477 * turn);
  *c = LIBM(cos)(6.283185307179586477 * turn);
}
static inline real uniform1(uint32_t word) {
  return (word + 0.5) * (1.0 / 4294967296.0);
}
/* Phi(-a) from phi = phi(a), a >= 0. */
static inline real tail1(real a, real phi) {
  return 0.5 * LIBM(erfc)(a * 0.70710678118654752440);
}

#else

/* x - n ln 2 with one rounding of the size of the result. Sums in this file may be reordered, which would
 * undo a difference in two steps, unless it is fused or, in code that is not vectorised, behind a barrier. */
#if defined(FP_FAST_FMAF) && !defined(DV_PORTABLE)
static inline float less_ln2(float x, float n) {
  return fmaf(n, -0.693147182f, x);
}
#elif __GNUC__ >= 12 && !defined(__clang__) && !defined(DV_PORTABLE)
static inline float less_ln2(float x, float n) {
  return __builtin_assoc_barrier(x - n * 0.693359375f) + n * 2.12194440e-4f;
}
#else
static inline float less_ln2(float x, float n) {
  return x - n * 0.693359375f + n * 2.12194440e-4f;
}
#endif

static inline float sqrt1(float x) {
  return sqrtf(x);
}

/* The nearest whole number. Portable kernels may not reorder sums, so two of them round for |x| < 2^22, also
 * on processors without a rounding instruction. */
static inline float whole(float x) {
#ifdef DV_PORTABLE
  return (x + 12582912.0f) - 12582912.0f;
#else
  return rintf(x);
#endif
}

static inline float bits_float(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint32_t float_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* exp(x) = 2^n exp(r), |r| <= ln 2 / 2, by its series to r^6. Saturates outside [-87, 88]; NaN stays. */
static inline float exp1(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  float n = whole(x * 1.44269504f);
  float r = less_ln2(x, n);
  float p = 1.0f / 720 * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  /* 1.5 2^23 + n has n in its low bits; this is defined for NaN too, and p is NaN then. */
  return p * bits_float((float_bits(n + 12582912.0f) - 0x4b400000u + 127u) << 23);
}

/* ln of a positive normal number: x = 2^e m, m in [sqrt 1/2, sqrt 2); ln m = 2 atanh((m - 1) / (m + 1)). */
static inline float log1(float x) {
  uint32_t shifted = float_bits(x) - 0x3f3504f3u;
  float e = (float)((int32_t)shifted >> 23);
  float m = bits_float((shifted & 0x007fffffu) + 0x3f3504f3u);
  float s = (m - 1.0f) / (m + 1.0f), q = s * s;
  float p = 2.0f / 9 * q + 2.0f / 7;
  p = p * q + 2.0f / 5;
  p = p * q + 2.0f / 3;
  p = p * q + 2.0f;
  return e * 0.693147181f + s * p;
}

/* Sine and cosine of `turn` full turns, turn in [0, 1]: the nearest eighth is taken off exactly. */
static inline void sincos_turn(float turn, float *s, float *c) {
  float quarter = whole(turn * 4.0f);
  float a = (turn - quarter * 0.25f) * 6.28318531f, q = a * a;
  float sine = a * (1.0f + q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362880)))));
  float cosine = 1.0f + q * (-0.5f + q * (1.0f / 24 + q * (-1.0f / 720 + q * (1.0f / 40320))));
  int k = (int)quarter & 3;
  float x = k & 1 ? sine : cosine, y = k & 1 ? cosine : sine;
  *c = k == 1 || k == 2 ? -x : x;
  *s = k >= 2 ? -y : y;
}

static inline float uniform1(uint32_t word) {
  return ((float)(int32_t)(word >> 8) + 0.5f) * (1.0f / 16777216.0f);
}

/* Phi(-a) from phi = phi(a), 0 <= a <= 12: their ratio, fitted to the least relative error, 8.3e-8. */
static inline float tail1(float a, float phi) {
  float t = 1.0f / (1.0f + 0.3f * a);
  float p = 0.09215355f * t - 0.40549537f;
  p = p * t + 0.53712347f;
  p = p * t - 0.15302804f;
  p = p * t + 0.33213873f;
  p = p * t + 0.24740773f;
  p = p * t + 0.3031808f;
  p = p * t + 0.29983316f;
  return p * t * phi;
}

#endif

/* total += the sum of `term`, which the statements make of i < n. Portable: SUM_LANES, joined in halves. */
#ifdef DV_PORTABLE
enum { SUM_LANES = 16 };
#define SUM(type, total, n, ...)                                                                             \
  do {                                                                                                       \
    type lanes_[SUM_LANES] = {0};                                                                            \
    __typeof__(n) at_ = 0;                                                                                   \
    for (; at_ + SUM_LANES <= (n); at_ += SUM_LANES)                                                         \
      for (int l_ = 0; l_ < SUM_LANES; l_++) {                                                               \
        __typeof__(n) i = at_ + l_;                                                                          \
        type term;                                                                                           \
        __VA_ARGS__                                                                                          \
        lanes_[l_] += term;                                                                                  \
      }                                                                                                      \
    for (__typeof__(n) i = at_; i < (n); i++) {                                                              \
      type term;                                                                                             \
      __VA_ARGS__                                                                                            \
      lanes_[i - at_] += term;                                                                               \
    }                                                                                                        \
    for (int half_ = SUM_LANES / 2; half_; half_ /= 2)                                                       \
      for (int l_ = 0; l_ < half_; l_++) lanes_[l_] += lanes_[l_ + half_];                                   \
    (total) += lanes_[0];                                                                                    \
  } while (0)
#else
#define SUM(type, total, n, ...)                                                                             \
  for (__typeof__(n) i = 0; i < (n); i++) {                                                                  \
    type term;                                                                                               \
    __VA_ARGS__(total) += term;                                                                              \
  }
#endif

static inline real sigmoid1(real x) {
  return 1 / (1 + exp1(-x));
}

/* ---- Layers ---- */

static void softmax_row(real *y, int n) {
  real top = y[0], sum = 0;
  for (int i = 0; i < n; i++) top = y[i] > top ? y[i] : top;
  for (int i = 0; i < n; i++) sum += y[i] = exp1(y[i] - top);
  real scale = 1 / sum;
  for (int i = 0; i < n; i++) y[i] *= scale;
}

static void activate(dvbf_activation a, real *y, int rows, int n) {
  size_t count = (size_t)rows * (size_t)n;
  if (a == DVBF_RELU)
    for (size_t i = 0; i < count; i++) y[i] = y[i] < 0 ? 0 : y[i]; /* this way round NaN stays NaN */
  else if (a == DVBF_TANH)
    for (size_t i = 0; i < count; i++) y[i] = 2 * sigmoid1(2 * y[i]) - 1;
  else if (a == DVBF_SIGMOID)
    for (size_t i = 0; i < count; i++) y[i] = sigmoid1(y[i]);
  else if (a == DVBF_SOFTMAX)
    for (int r = 0; r < rows; r++) softmax_row(y + (size_t)r * n, n);
}

static void softmax_row_backward(real *d, const real *y, int n) {
  real dot = 0;
  for (int i = 0; i < n; i++) dot += d[i] * y[i];
  for (int i = 0; i < n; i++) d[i] = y[i] * (d[i] - dot);
}

static void activate_backward(dvbf_activation a, real *d, const real *y, int rows, int n) {
  size_t count = (size_t)rows * (size_t)n;
  if (a == DVBF_RELU)
    for (size_t i = 0; i < count; i++) d[i] = y[i] <= 0 ? 0 : d[i];
  else if (a == DVBF_TANH)
    for (size_t i = 0; i < count; i++) d[i] *= 1 - y[i] * y[i];
  else if (a == DVBF_SIGMOID)
    for (size_t i = 0; i < count; i++) d[i] *= y[i] * (1 - y[i]);
  else if (a == DVBF_SOFTMAX)
    for (int r = 0; r < rows; r++) softmax_row_backward(d + (size_t)r * n, y + (size_t)r * n, n);
}

static void column_sum(real *sum, const real *x, int rows, int n) {
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < n; i++) sum[i] += x[(size_t)r * n + i];
}

static void log_normals(double *restrict out, const double *restrict scale, const double *restrict gain,
                        const double *restrict offset, const double *restrict z, int n, size_t apart,
                        int rows) {
  double w[64], sum[64] = {0};
  for (int i = 0; i < n; i++) {
    for (int r = 0; r < rows; r++) w[r] = -offset[r];
    for (int k = 0; k < n; k++, gain += apart)
      for (int r = 0; r < rows; r++) w[r] += gain[r] * z[k];
    for (int r = 0; r < rows; r++) sum[r] += w[r] * w[r];
    offset += apart;
  }
  for (int r = 0; r < rows; r++) out[r] = scale[r] - 0.5 * sum[r];
}

static void standardise(real *restrict y, const float *restrict x, const float *restrict shift,
                        const float *restrict scale, int n) {
  for (int i = 0; i < n; i++) y[i] = (real)((x[i] - shift[i]) * scale[i]);
}

static bool observe(real *restrict y, real *restrict seen, const float *restrict x,
                    const float *restrict shift, const float *restrict scale, int n) {
  int there = 0;
  for (int i = 0; i < n; i++) {
    y[i] = isnan(x[i]) ? 0 : (real)((x[i] - shift[i]) * scale[i]);
    there += !isnan(x[i]);
  }
  for (int i = 0; seen && i < n; i++) seen[i] = isnan(x[i]) ? 0 : 1;
  return there > 0;
}

static void add(real *y, const real *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += x[i];
}

/* ---- Fast dropout: moments m, s of an activation of N(mu, nu), and slopes (ops/fast_dropout.c) ---- */

typedef struct moments1 {
  real m, s;
} moments1;

typedef struct slopes1 {
  real m_mu, m_nu, s_mu, s_nu;
} slopes1;

/* Standard normal density and distribution at mu / sigma. Beyond 12 the density is below 1e-31. */
typedef struct gauss1 {
  real sigma, alpha, phi, below, tail; /* below = Phi(alpha), tail = Phi(-|alpha|) */
} gauss1;

static inline gauss1 gauss_at(real mu, real nu) {
  gauss1 g;
  g.sigma = sqrt1(nu);
  g.alpha = mu / g.sigma;
  g.alpha = g.alpha < -12 ? -12 : g.alpha;
  g.alpha = g.alpha > 12 ? 12 : g.alpha;
  g.phi = (real)0.398942280401432677940 * exp1(-(real)0.5 * g.alpha * g.alpha);
  g.tail = tail1(g.alpha < 0 ? -g.alpha : g.alpha, g.phi);
  g.below = g.alpha > 0 ? 1 - g.tail : g.tail;
  return g;
}

static inline moments1 relu_moments(real mu, real nu) {
  gauss1 g = gauss_at(mu, nu);
  real size = g.alpha < 0 ? -g.alpha : g.alpha;
  real m = mu * g.below + g.sigma * g.phi;
  real s = g.below + size * (size * g.tail * (1 - g.tail) - g.phi * (1 - 2 * g.tail)) - g.phi * g.phi;
  return (moments1){m < 0 ? 0 : m, s < 0 ? 0 : nu * s};
}

static inline slopes1 relu_slopes(real mu, real nu) {
  gauss1 g = gauss_at(mu, nu);
  real density = g.phi / g.sigma, m = mu * g.below + g.sigma * g.phi;
  m = m < 0 ? 0 : m;
  return (slopes1){g.below, (real)0.5 * density, 2 * m * (g.alpha > 0 ? g.tail : 1 - g.tail),
                   g.below - m * density};
}

#define PI_8 ((real)0.392699081698724154808) /* pi / 8 */
#define C_1 ((real)-0.136619772367581343076) /* 1/2 - 2/pi */
#define C_2 ((real)0.04)

/* What the sigmoid's moments and slopes share: m, q = m (1 - m), kappa, r and G of ops/fast_dropout.c. */
typedef struct probit1 {
  real kappa, r, m, q, g;
} probit1;

static inline probit1 probit_at(real mu, real nu) {
  probit1 p;
  p.kappa = 1 / sqrt1(1 + PI_8 * nu);
  p.m = sigmoid1(p.kappa * mu);
  p.q = p.m * (1 - p.m);
  p.r = PI_8 * nu * p.kappa * p.kappa;
  p.g = p.r * (1 / (1 + p.kappa) - p.kappa * (C_1 + C_2 * p.r)); /* 1 - kappa = r / (1 + kappa) */
  return p;
}

static inline moments1 sigmoid_moments(real mu, real nu) {
  probit1 p = probit_at(mu, nu);
  real s = p.q * p.g * (4 * p.q + (1 - 4 * p.q) * (real)0.5 * p.g * (1 + p.g));
  return (moments1){p.m, s < 0 ? 0 : s};
}

static inline slopes1 sigmoid_slopes(real mu, real nu) {
  probit1 p = probit_at(mu, nu);
  real r = p.r, h = (real)0.5 * p.g * (1 + p.g), h_g = p.g * (1 + (real)1.5 * p.g);
  real kappa_nu = -(real)0.5 * PI_8 * p.kappa * p.kappa * p.kappa;
  real g_kappa = -(1 + r * (C_1 + r * C_2)) + 2 * p.kappa * p.kappa * (C_1 + 2 * C_2 * r);
  real s_q = p.g * (8 * p.q + (1 - 8 * p.q) * h), s_g = p.q * (4 * p.q + (1 - 4 * p.q) * h_g);
  real s_m = s_q * (1 - 2 * p.m);
  return (slopes1){p.kappa * p.q, p.q * mu * kappa_nu, s_m * p.kappa * p.q,
                   (s_m * p.q * mu + s_g * g_kappa) * kappa_nu};
}

/* tanh(x) = 2 sigmoid(2 x) - 1 */
static inline moments1 tanh_moments(real mu, real nu) {
  moments1 of = sigmoid_moments(2 * mu, 4 * nu);
  return (moments1){2 * of.m - 1, 4 * of.s};
}

static inline slopes1 tanh_slopes(real mu, real nu) {
  slopes1 of = sigmoid_slopes(2 * mu, 4 * nu);
  return (slopes1){4 * of.m_mu, 8 * of.m_nu, 8 * of.s_mu, 16 * of.s_nu};
}

static inline moments1 linear_moments(real mu, real nu) {
  return (moments1){mu, nu};
}

static inline slopes1 linear_slopes(real mu, real nu) {
  return (slopes1){1, 0, 0, 1};
}

/* dropped = (s + p m^2) / (1 - p) */
#define MOMENTS(name)                                                                                        \
  static void name##_all(real *restrict mean, real *restrict dropped, const real *restrict mu,               \
                         const real *restrict nu, real p, size_t n) {                                        \
    real by = 1 / (1 - p);                                                                                   \
    for (size_t i = 0; i < n; i++) {                                                                         \
      moments1 of = name##_moments(mu[i], nu[i] + (real)DV_VARIANCE_FLOOR);                                  \
      mean[i] = of.m;                                                                                        \
      dropped[i] = by * (of.s + p * of.m * of.m);                                                            \
    }                                                                                                        \
  }                                                                                                          \
  static void name##_all_backward(real *restrict d_mu, real *restrict d_nu, const real *restrict mu,         \
                                  const real *restrict nu, const real *restrict d_mean,                      \
                                  const real *restrict d_dropped, real p, size_t n) {                        \
    real by = 1 / (1 - p);                                                                                   \
    for (size_t i = 0; i < n; i++) {                                                                         \
      real at = nu[i] + (real)DV_VARIANCE_FLOOR, ds = by * d_dropped[i];                                     \
      moments1 of = name##_moments(mu[i], at);                                                               \
      slopes1 by_input = name##_slopes(mu[i], at);                                                           \
      real dm = d_mean[i] + 2 * p * of.m * ds;                                                               \
      d_mu[i] += dm * by_input.m_mu + ds * by_input.s_mu;                                                    \
      d_nu[i] += dm * by_input.m_nu + ds * by_input.s_nu;                                                    \
    }                                                                                                        \
  }

MOMENTS(relu)
MOMENTS(tanh)
MOMENTS(sigmoid)
MOMENTS(linear)

#define OF_ACTIVATION(a, name, ...)                                                                          \
  ((a) == DVBF_RELU      ? relu_##name(__VA_ARGS__)                                                          \
   : (a) == DVBF_TANH    ? tanh_##name(__VA_ARGS__)                                                          \
   : (a) == DVBF_SIGMOID ? sigmoid_##name(__VA_ARGS__)                                                       \
                         : linear_##name(__VA_ARGS__))

static void moments(dvbf_activation a, real *mean, real *dropped, const real *mu, const real *nu, real p,
                    size_t n) {
  OF_ACTIVATION(a, all, mean, dropped, mu, nu, p, n);
}

static void moments_backward(dvbf_activation a, real *d_mu, real *d_nu, const real *mu, const real *nu,
                             const real *d_mean, const real *d_dropped, real p, size_t n) {
  OF_ACTIVATION(a, all_backward, d_mu, d_nu, mu, nu, d_mean, d_dropped, p, n);
}

static void square(real *restrict y, const real *restrict x, real c, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = c * x[i] * x[i];
}

static void square_backward(real *restrict dx, const real *restrict x, const real *restrict dy, real c,
                            size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] += 2 * c * x[i] * dy[i];
}

/* ---- Mixture of linear systems ---- */

static void mix(real *next, const real *alpha, const real *parts, int rows, int n, int systems) {
  if (!alpha) {
    add(next, parts, (size_t)rows * (size_t)n);
    return;
  }
  for (int r = 0; r < rows; r++, alpha += systems)
    for (int j = 0; j < n; j++, parts += systems) {
      real sum = 0;
      for (int i = 0; i < systems; i++) sum += alpha[i] * parts[i];
      next[(size_t)r * n + j] += sum;
    }
}

static void mix_backward(real *d_alpha, real *parts, const real *d, const real *alpha, int rows, int n,
                         int systems) {
  if (!alpha) {
    memcpy(parts, d, (size_t)rows * (size_t)n * sizeof *d);
    return;
  }
  for (int r = 0; r < rows; r++, alpha += systems, d_alpha += systems)
    for (int j = 0; j < n; j++, parts += systems) {
      real dj = d[(size_t)r * n + j];
      for (int i = 0; i < systems; i++) {
        d_alpha[i] += dj * parts[i];
        parts[i] = dj * alpha[i];
      }
    }
}

/* ---- Distributions ---- */

static void normals(real *out, const uint32_t *words, size_t n) {
  for (size_t i = 0; i < n / 2; i++) {
    real radius = sqrt1(-2 * log1(uniform1(words[2 * i]))), s, c;
    sincos_turn(uniform1(words[2 * i + 1]), &s, &c);
    out[2 * i] = radius * c;
    out[2 * i + 1] = radius * s;
  }
}

static inline real at_least(real x, real floor) {
  return x > floor ? x : floor;
}

static const real half_log_2pi = (real)0.918938533204672741780;

static void gaussian(real *out, const real *x, const real *mean, const real *log_sigma, size_t n_sigma,
                     real floor, int rows, int n) {
  if (n_sigma == 1) {
    real ls = at_least(*log_sigma, floor), precision = exp1(-2 * ls);
    for (int r = 0; r < rows; r++, x += n, mean += n) {
      real sum = 0;
      SUM(real, sum, n, term = (x[i] - mean[i]) * (x[i] - mean[i]););
      out[r] = -(real)0.5 * precision * sum - n * (ls + half_log_2pi);
    }
    return;
  }
  for (int r = 0; r < rows; r++, x += n, mean += n) {
    real sum = 0;
    const real *s = n_sigma > (size_t)n ? log_sigma + (size_t)r * n : log_sigma;
    SUM(real, sum, n, real ls = at_least(s[i], floor); real e = (x[i] - mean[i]) * exp1(-ls);
        term = (real)0.5 * e * e + ls;);
    out[r] = -sum - n * half_log_2pi;
  }
}

static void gaussian_backward(real *d_mean, bool add, real *d_log_sigma, const real *g, const real *x,
                              const real *mean, const real *log_sigma, size_t n_sigma, real floor, int rows,
                              int n) {
  if (n_sigma == 1) {
    real precision = exp1(-2 * at_least(*log_sigma, floor)), total = 0;
    for (int r = 0; r < rows; r++, x += n, mean += n, d_mean += n) {
      real sum = 0, gp = g[r] * precision;
      if (!add) memset(d_mean, 0, (size_t)n * sizeof *d_mean);
      SUM(real, sum, n, real e = x[i] - mean[i]; d_mean[i] += gp * e; term = e * e;);
      total += gp * sum - g[r] * n;
    }
    if (d_log_sigma && *log_sigma > floor) *d_log_sigma += total;
    return;
  }
  for (int r = 0; r < rows; r++, x += n, mean += n, d_mean += n) {
    size_t row = n_sigma > (size_t)n ? (size_t)r * n : 0;
    const real *s = log_sigma + row;
    real *ds = d_log_sigma ? d_log_sigma + row : NULL;
    if (!add) memset(d_mean, 0, (size_t)n * sizeof *d_mean);
    for (int i = 0; i < n; i++) {
      real inverse = exp1(-at_least(s[i], floor)), e = (x[i] - mean[i]) * inverse;
      d_mean[i] += g[r] * e * inverse;
      if (ds) ds[i] += s[i] > floor ? g[r] * (e * e - 1) : 0;
    }
  }
}

/* x l - ln(1 + e^l), with the exponential of a negative number only. */
static void bernoulli(real *out, const real *x, const real *logits, int rows, int n) {
  for (int r = 0; r < rows; r++, x += n, logits += n) {
    real sum = 0;
    SUM(real, sum, n, real l = logits[i]; real size = l > 0 ? l : -l;
        term = x[i] * l - (l > 0 ? l : 0) - log1(1 + exp1(-size)););
    out[r] = sum;
  }
}

static void bernoulli_backward(real *d_logits, const real *g, const real *x, const real *logits, int rows,
                               int n) {
  for (int r = 0; r < rows; r++, x += n, logits += n, d_logits += n)
    for (int i = 0; i < n; i++) d_logits[i] += g[r] * (x[i] - sigmoid1(logits[i]));
}

/* ---- Optimisers ---- */

/* Parameters about to be written that other cores have just read: asking for all at once is faster. */
static void claim(const real *p, size_t n) {
  for (size_t i = 0; i < n; i += 64 / sizeof *p) __builtin_prefetch(p + i, 1);
}

/* `step` holds the rate and the bias corrections; `factor` is that of the norm clip. */
static void adam(real *p, const real *g, real *m, real *v, size_t n, real step, real beta1, real beta2,
                 real epsilon, real factor) {
  claim(p, n);
  for (size_t i = 0; i < n; i++) {
    real gi = g[i] * factor;
    m[i] = beta1 * m[i] + (1 - beta1) * gi;
    v[i] = beta2 * v[i] + (1 - beta2) * gi * gi;
    p[i] -= step * m[i] / (sqrt1(v[i]) + epsilon);
  }
}

/* Zeiler (2012): v averages squared gradients, m squared steps. */
static void adadelta(real *p, const real *g, real *m, real *v, size_t n, real step, real rho, real epsilon,
                     real factor) {
  claim(p, n);
  for (size_t i = 0; i < n; i++) {
    real gi = g[i] * factor;
    v[i] = rho * v[i] + (1 - rho) * gi * gi;
    real delta = gi * sqrt1((m[i] + epsilon) / (v[i] + epsilon));
    m[i] = rho * m[i] + (1 - rho) * delta * delta;
    p[i] -= step * delta;
  }
}

static double reduce(real *const *shards, size_t offset, size_t n, int count) {
  for (int step = 1; step < count; step *= 2)
    for (int i = 0; i + step < count; i += 2 * step) add(shards[i] + offset, shards[i + step] + offset, n);
  const real *sum = shards[0] + offset;
  double squares = 0;
  SUM(double, squares, n, term = (double)sum[i] * (double)sum[i];);
  return squares;
}

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

#define KERNELS DV_OF_ISA(dv_kernels)
#define PRODUCTS DV_OF_ISA(dv_products)
#define WINDOWS DV_OF_ISA(dv_window_kernels)
extern const dv_products PRODUCTS;
extern const dv_winograd_kernels WINDOWS;
extern const dv_kernels KERNELS;
const dv_kernels KERNELS = {
    .name = TEXT(DV_ISA),
    .product = &PRODUCTS,
    .window = &WINDOWS,
    .activate = activate,
    .activate_backward = activate_backward,
    .column_sum = column_sum,
    .add = add,
    .log_normals = log_normals,
    .standardise = standardise,
    .observe = observe,
    .square = square,
    .square_backward = square_backward,
    .moments = moments,
    .moments_backward = moments_backward,
    .mix = mix,
    .mix_backward = mix_backward,
    .normals = normals,
    .gaussian = gaussian,
    .gaussian_backward = gaussian_backward,
    .bernoulli = bernoulli,
    .bernoulli_backward = bernoulli_backward,
    .adam = adam,
    .adadelta = adadelta,
    .reduce = reduce,
};
