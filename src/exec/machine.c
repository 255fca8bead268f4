#include "exec/machine.h"

#include "base/arithmetic.h"
#include "kernel/kernels.h"

const char *dv_machine_instructions(void) {
  return dv_portable ? "any" : dv_kernels_best()->name;
}

const char *dv_machine_compiler(void) {
  if (dv_portable) return "any";
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}
