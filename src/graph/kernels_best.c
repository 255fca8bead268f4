#include "graph/kernels.h"

#include <stdlib.h>
#include <string.h>

extern const dv_kernels dv_kernels_base;
#if defined(__x86_64__)
extern const dv_kernels dv_kernels_v3, dv_kernels_v4;
#endif

const dv_kernels *dv_kernels_best(void) {
#if defined(__x86_64__)
  const char *asked = getenv("DVBF_ISA");
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512cd");
  if (asked && !strcmp(asked, "base")) return &dv_kernels_base;
  if (v4 && !(asked && !strcmp(asked, "v3"))) return &dv_kernels_v4;
  if (v3) return &dv_kernels_v3;
#endif
  return &dv_kernels_base;
}
