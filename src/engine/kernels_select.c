/* Chooses at run time the instruction set of the kernels and of the matrix products (dv_kernels_best,
 * dv_products_choose), and names them for checkpoints, since other instructions or compilers round
 * differently. */
#include "base/error.h"
#include "engine/kernels.h"
#include "math/portable.h"
#include "settings_tables.h"

#include <stdlib.h>
#include <string.h>

#if defined(DV_TILES) && !defined(DV_DOUBLE)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
extern const dv_products dv_products_bfloat16x3, dv_products_bfloat16;
#else
static const dv_products dv_products_bfloat16x3, dv_products_bfloat16; /* not used */
#endif

/* The kernels of one instruction set, for fast and for portable arithmetic. */
typedef struct pair {
  const dv_kernels *fast, *portable;
} pair;

extern const dv_kernels dv_kernels_base, dv_kernels_portable_base;
static const pair base = {&dv_kernels_base, &dv_kernels_portable_base};
#if defined(__x86_64__)
extern const dv_kernels dv_kernels_v3, dv_kernels_v4, dv_kernels_portable_v3, dv_kernels_portable_v4;
static const pair with_v3 = {&dv_kernels_v3, &dv_kernels_portable_v3};
static const pair with_v4 = {&dv_kernels_v4, &dv_kernels_portable_v4};
#endif

static pair best_pair(void) {
#if defined(__x86_64__)
  const char *asked = getenv("DVBF_ISA");
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512cd");
  if (asked && !strcmp(asked, "base")) return base;
  if (v4 && !(asked && !strcmp(asked, "v3"))) return with_v4;
  if (v3) return with_v3;
#endif
  return base;
}

const dv_kernels *dv_kernels_best(void) {
  return dv_portable ? best_pair().portable : best_pair().fast;
}

dvbf_status dv_kernels_check(dvbf_error *error) {
  const char *asked = getenv("DVBF_ISA");
  if (!asked || !*asked || !strcmp(asked, dv_kernels_best()->name)) return DVBF_OK;
  return dv_fail(
      error, DVBF_ARGUMENT,
      "DVBF_ISA = %.20s: must be base, v3 or v4, and supported by this processor; if it is unset, %s is used",
      asked, dv_kernels_best()->name);
}

/* Why tile units cannot be used, or NULL if this process may use them from now on. */
static const char *missing_for_tiles(void) {
#if defined(DV_TILES) && !defined(DV_DOUBLE)
  enum { BFLOAT16_VECTORS = 1 << 5, BFLOAT16_TILES = 1 << 22, TILES = 1 << 24 };
  enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM of the kernel, and of what */
  unsigned a = 0, b, c, d = 0, a1 = 0, ignored;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !__get_cpuid_count(7, 1, &a1, &b, &c, &ignored) ||
      !(d & TILES) || !(d & BFLOAT16_TILES) || !(a1 & BFLOAT16_VECTORS))
    return "this processor has no tile units for bfloat16 (AMX)";
  if (best_pair().fast != &dv_kernels_v4)
    return "tile units need the instruction set v4, which this processor lacks or DVBF_ISA forbids";
  if (syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA))
    return "the operating system does not allow use of the processor's tile units (Linux does since 5.16)";
  return NULL;
#else
  return "this build of the library does not support tile units (AMX)";
#endif
}

dvbf_capabilities dvbf_get_capabilities(void) {
  return (dvbf_capabilities){.version = DVBF_VERSION,
                             .instructions = dv_kernels_best()->name,
                             .tiles = !missing_for_tiles(),
                             .cores = (unsigned)dv_cores()};
}

dvbf_status dv_products_choose(const dv_products **out, int64_t choice, dvbf_error *error) {
  bool three = choice == DV_BFLOAT16X3;
  const char *name = three ? "bfloat16x3" : "bfloat16", *missing = NULL;
  *out = dv_kernels_best()->product;
  if (choice == DV_FLOAT) return DVBF_OK;
  if (dv_portable)
    return dv_fail(error, DVBF_ARGUMENT,
                   "products = %s: tile units cannot be used with arithmetic = portable, as few machines "
                   "have them; use products = float",
                   name);
  if ((missing = missing_for_tiles()))
    return dv_fail(error, DVBF_ARGUMENT, "products = %s: %s; use products = float", name, missing);
  *out = three ? &dv_products_bfloat16x3 : &dv_products_bfloat16;
  return DVBF_OK;
}

/* ---- Names of instructions and compiler ---- */

const char *dv_build_instructions(void) {
  return dv_portable ? "any" : dv_kernels_best()->name;
}

const char *dv_build_compiler(void) {
  if (dv_portable) return "any";
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}
