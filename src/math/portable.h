/* Arithmetic of a thread: fast functions or portable ones (setting `arithmetic`), and flushing of denormal
 * numbers. */
#pragma once

#include <math.h>
#include <stdbool.h>

/* The setting `arithmetic`: which functions and kernels a thread computes with.
 *
 * fast: exp, log and so on of the C library, and the kernels for this processor. Their last digits depend on
 * the processor, the compiler and the version of the C library.
 * portable: the functions below and kernels whose sums have one order. They use nothing but operations that
 * IEEE 754 rounds in one way (+ - * / sqrt), and no file is compiled with contracted products, so that every
 * machine and compiler gets the same bits. Denormal numbers are kept, because processors differ in how they
 * flush them. */

/* Of this thread. Functions of the public headers enter the arithmetic of their model or settings and leave
 * it again; threads that the library starts take over that of their starter. */
extern _Thread_local bool dv_portable;

/* Returns the previous setting. */
bool dv_arithmetic_enter(bool portable);
void dv_arithmetic_leave(const bool *before);

/* Until the end of the block this thread computes so. */
#define DV_COMPUTE(portable)                                                                                 \
  __attribute__((unused, cleanup(dv_arithmetic_leave))) const bool dv_arithmetic_before =                    \
      dv_arithmetic_enter(portable)

/* Errors are below 2 units in the last place, of pow below 2 + |y ln x|, of erfc and lgamma below 1e-13
 * relative to the result, or 1e-14 where lgamma is near 0. lgamma is for x > 0; the others take any
 * number. Angles beyond 2^20 are reduced by the double nearest to 2 pi. */
double dv_portable_pow(double x, double y);
double dv_portable_lgamma(double x);
#define DV_OF_ARITHMETIC(name)                                                                               \
  double dv_portable_##name(double x);                                                                       \
  static inline double dv_##name(double x) {                                                                 \
    return dv_portable ? dv_portable_##name(x) : name(x);                                                    \
  }

/* The functions that all code but the kernels calls: dv_exp and so on. */
DV_OF_ARITHMETIC(exp)
DV_OF_ARITHMETIC(expm1)
DV_OF_ARITHMETIC(log)
DV_OF_ARITHMETIC(log1p)
DV_OF_ARITHMETIC(sin)
DV_OF_ARITHMETIC(cos)
DV_OF_ARITHMETIC(tanh)
DV_OF_ARITHMETIC(erfc)
static inline double dv_pow(double x, double y) {
  return dv_portable ? dv_portable_pow(x, y) : pow(x, y);
}
static inline double dv_hypot(double x, double y) {
  return dv_portable ? sqrt(x * x + y * y) : hypot(x, y);
}
/* x > 0 */
static inline double dv_lgamma(double x) {
  int sign;
  return dv_portable ? dv_portable_lgamma(x) : lgamma_r(x, &sign);
}

/* ---- Denormal numbers ---- */

/* From here on this thread treats denormal floats as 0: they do not matter and are a hundred times slower.
 * Not with portable arithmetic. Returns the mode to restore afterwards. */
static inline unsigned dv_flush_denormals(void) {
#if defined(__SSE2__)
  unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(dv_portable ? before & ~0x8040u : before | 0x8040);
  return before;
#else
  return 0;
#endif
}

static inline void dv_restore_denormals(unsigned before) {
#if defined(__SSE2__)
  __builtin_ia32_ldmxcsr(before);
#endif
}
