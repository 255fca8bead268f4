#ifndef DV_TINY_H
#define DV_TINY_H

/* Numbers too small for a normal float are taken as 0 from here on: they carry nothing and cost a hundred
 * times as much. Returns what to give back afterwards. */
static inline unsigned dv_flush_tiny_numbers(void) {
#if defined(__SSE2__)
  unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040);
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
