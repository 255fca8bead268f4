/* Small dense algebra that is our own, because its last digits must depend on nothing but its input: those of
 * LAPACK depend on its number of threads, and then trained models would too; and core does without LAPACK.
 * Matrices are row-major. */
#ifndef DV_ALGEBRA_H
#define DV_ALGEBRA_H

#include <stddef.h>

double dv_dot(const double *a, const double *b, size_t n);

/* rows [count][n], count <= n, become orthonormal with the same span, by Gram and Schmidt, twice because of
 * rounding. A row that depends on those before it is replaced by any other direction. */
void dv_orthonormalise(double *rows, int count, int n);
/* rows [count][n] of normal numbers, always the same. */
void dv_any_directions(double *rows, int count, int n);

/* Jacobi's method: the rows of vectors [n][n] become the eigenvectors of a symmetric matrix [n][n], and the
 * diagonal of the matrix its eigenvalues. */
void dv_diagonalise(double *matrix, double *vectors, int n);

/* a [n][n] becomes its inverse by Gauss and Jordan with pivots, whose rows go into order [n]; returns ln |det
 * a|, NaN where a pivot is below `least`. */
double dv_invert(double *a, int n, double least, int *order);

#endif
