#ifndef DV_TINY_H
#define DV_TINY_H

#include "base/arithmetic.h"

/* From here on this thread treats denormal floats as 0: they do not matter, and they are a hundred times
 * slower. Not with portable arithmetic. Returns the mode to restore afterwards. */
static inline unsigned dv_flush_tiny_numbers(void) {
#if defined(__SSE2__)
  unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(dv_portable ? before & ~0x8040u : before | 0x8040);
  return before;
#else
  return 0;
#endif
}

static inline void dv_restore_tiny_numbers(unsigned before) {
#if defined(__SSE2__)
  __builtin_ia32_ldmxcsr(before);
#else
  (void)before;
#endif
}

#endif
