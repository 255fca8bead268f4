/* What the bytes of a model depend on besides its settings and its data: the instructions that the kernels
 * use, and the compiler that made them. */
#ifndef DV_MACHINE_H
#define DV_MACHINE_H

#include <stddef.h>

/* As "v4" and "gcc 12.2.0"; "any" with portable arithmetic. */
const char *dv_machine_instructions(void);
const char *dv_machine_compiler(void);

#endif
