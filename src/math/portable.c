/* Portable arithmetic: exp, log, sine, tanh, pow, erfc and lgamma made of + - * / sqrt alone, which IEEE 754
 * rounds in one way, so that every machine and compiler gets the same bits; and the thread's flag that
 * chooses them (dv_arithmetic_enter). portable.h has the error bounds. */
#include "math/portable.h"

_Thread_local bool dv_portable;

bool dv_arithmetic_enter(bool portable) {
  bool before = dv_portable;
  dv_portable = portable;
  return before;
}

void dv_arithmetic_leave(const bool *before) {
  dv_portable = *before;
}

/* ln 2 and pi / 2 in parts: multiples of the first parts by a number below 2^20 are exact. */
static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
static const double quarter_high = 0x1.921fb54400000p+0, quarter_middle = 0x1.0b4611a600000p-34,
                    quarter_low = 0x1.3198a2e037073p-69;

/* a[0] + a[1] x + .. + a[n - 1] x^(n - 1) */
static double polynomial(const double *a, int n, double x) {
  double sum = a[n - 1];
  for (int i = n - 2; i >= 0; i--) sum = sum * x + a[i];
  return sum;
}

/* (exp(r) - 1 - r) / r^2 for |r| <= 1/2, by its series. */
static double exp_rest(double r) {
  static const double a[] = {
      1. / 2,         1. / 6,          1. / 24,          1. / 120,          1. / 720,
      1. / 5040,      1. / 40320,      1. / 362880,      1. / 3628800,      1. / 39916800,
      1. / 479001600, 1. / 6227020800, 1. / 87178291200, 1. / 1307674368000};
  return polynomial(a, sizeof a / sizeof *a, r);
}

/* 2^n exp(r) with |r| <= ln 2 / 2. */
double dv_portable_exp(double x) {
  if (isnan(x)) return x;
  if (x > 710) return INFINITY;
  if (x < -746) return 0;
  double n = rint(x * 1.44269504088896340736), r = (x - n * ln2_high) - n * ln2_low;
  return ldexp(1 + (r + r * r * exp_rest(r)), (int)n);
}

double dv_portable_expm1(double x) {
  return fabs(x) <= 0.5 ? x + x * x * exp_rest(x) : dv_portable_exp(x) - 1;
}

/* x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2). With s = f / (2 + f),
 *   ln(1 + f) = 2 atanh(s) = 2 s + s R = f - s (f - R),   R = 2 s^2 / 3 + 2 s^4 / 5 + .. */
double dv_portable_log(double x) {
  static const double a[] = {2. / 3,  2. / 5,  2. / 7,  2. / 9,  2. / 11,
                             2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21};
  if (x < 0) return NAN;
  if (x == 0) return -INFINITY;
  if (!isfinite(x)) return x;
  int e;
  double m = frexp(x, &e);
  if (m < 0.70710678118654752440) {
    m *= 2;
    e--;
  }
  double f = m - 1, s = f / (2 + f), q = s * s;
  double rest = q * polynomial(a, sizeof a / sizeof *a, q);
  return e * ln2_high + (f - (s * (f - rest) - e * ln2_low));
}

/* ln(1 + x) = ln y + (rounding error of y = 1 + x) / y */
double dv_portable_log1p(double x) {
  double y = 1 + x;
  if (x <= -1 || !isfinite(y)) return dv_portable_log(y);
  return dv_portable_log(y) + (x - (y - 1)) / y;
}

/* x = n pi / 2 + rest with |rest| <= pi / 4; returns n modulo 4. */
static int reduce_angle(double x, double *rest) {
  if (fabs(x) > 0x1p20) x = fmod(x, 6.28318530717958647693);
  double n = rint(x * 0.63661977236758134308);
  *rest = ((x - n * quarter_high) - n * quarter_middle) - n * quarter_low;
  return (int)n & 3;
}

/* By their series, |x| <= pi / 4. */
static double small_sin(double x) {
  static const double a[] = {-1. / 6,        1. / 120,        -1. / 5040,          1. / 362880,
                             -1. / 39916800, 1. / 6227020800, -1. / 1307674368000, 1. / 355687428096000};
  double q = x * x;
  return x + x * q * polynomial(a, sizeof a / sizeof *a, q);
}

static double small_cos(double x) {
  static const double a[] = {-1. / 2,       1. / 24,        -1. / 720,         1. / 40320,
                             -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000};
  double q = x * x;
  return 1 + q * polynomial(a, sizeof a / sizeof *a, q);
}

double dv_portable_sin(double x) {
  if (!isfinite(x)) return NAN;
  double rest;
  int n = reduce_angle(x, &rest);
  double size = n & 1 ? small_cos(rest) : small_sin(rest);
  return n & 2 ? -size : size;
}

double dv_portable_cos(double x) {
  if (!isfinite(x)) return NAN;
  double rest;
  int n = reduce_angle(x, &rest);
  double size = n & 1 ? small_sin(rest) : small_cos(rest);
  return n == 1 || n == 2 ? -size : size;
}

/* tanh |x| = e / (e + 2), e = exp(2 |x|) - 1 */
double dv_portable_tanh(double x) {
  if (isnan(x)) return x;
  double e = fabs(x) > 20 ? INFINITY : dv_portable_expm1(2 * fabs(x));
  return copysign(isinf(e) ? 1 : e / (e + 2), x);
}

/* x^n by squaring. */
static double whole_power(double x, unsigned n) {
  double result = 1;
  for (; n; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

/* exp(y ln x), and products for whole y up to 64. */
double dv_portable_pow(double x, double y) {
  double size = fabs(y);
  if (y == 0 || x == 1) return 1;
  if (isnan(x) || isnan(y)) return NAN;
  if (size <= 64 && size == rint(size))
    return y < 0 ? 1 / whole_power(x, (unsigned)size) : whole_power(x, (unsigned)size);
  if (x < 0 && isfinite(x) && isfinite(y) && y != rint(y)) return NAN;
  double power = dv_portable_exp(y * dv_portable_log(fabs(x)));
  return x < 0 && isfinite(y) && fmod(y, 2) != 0 ? -power : power;
}

/* Below 2, 1 - erf with erf(x) = 2 x exp(-x^2) / sqrt(pi) sum_k (2 x^2)^k / (1 3 5 .. (2 k + 1)); above, the
 * continued fraction exp(-x^2) / sqrt(pi) / (x + 1/2 / (x + 2/2 / (x + 3/2 / ..))). */
double dv_portable_erfc(double x) {
  if (isnan(x)) return x;
  if (x < -6) return 2;
  if (x > 27.5) return 0;
  double square = x * x, scale = dv_portable_exp(-square) / 1.77245385090551602730;
  if (x < 2) {
    if (x < -2) return 2 - dv_portable_erfc(-x);
    double term = 2 * x, sum = term;
    for (int k = 1; k < 60; k++) sum += term *= 2 * square / (2 * k + 1);
    return 1 - scale * sum;
  }
  double below = x;
  for (int k = 120; k > 0; k--) below = x + 0.5 * k / below;
  return scale / below;
}

/* Stirling's series at y = x + k >= 12, less ln(x (x + 1) .. (x + k - 1)). */
double dv_portable_lgamma(double x) {
  static const double a[] = {1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156};
  if (isnan(x) || x == INFINITY) return x;
  if (x <= 0) return NAN;
  double product = 1;
  while (x < 12) product *= x++;
  double series = polynomial(a, sizeof a / sizeof *a, 1 / (x * x)) / x;
  return (x - 0.5) * dv_portable_log(x) - x + 0.91893853320467274178 + series - dv_portable_log(product);
}
