/* Systems that do not explode. */
#ifndef DV_STABLE_H
#define DV_STABLE_H

#include <stddef.h>

/* Moves the eigenvalues of a [n][n] that lie outside the unit circle into it and leaves the others as they
 * are: modes that grow stop growing, and slow or weakly damped ones keep their time. An integrator, whose
 * eigenvalue is 1, stays one. scratch is [dv_stabilise_scratch(n)]. */
void dv_stabilise(double *a, int n, double *scratch);
size_t dv_stabilise_scratch(int n);

#endif
