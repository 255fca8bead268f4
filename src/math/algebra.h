/* Small dense linear algebra on row-major arrays of double. */
#pragma once

#include <stdbool.h>
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
/* Index of the largest value on the diagonal of a matrix [n][n]; *value, if not NULL, is that value, which is
 * replaced by the smallest one, so that the next call finds the next. */
int dv_take_largest(double *matrix, int n, double *value);

/* a [n][n] becomes its inverse by Gauss and Jordan with pivots, whose rows go into order [n]; returns ln |det
 * a|, NaN if a pivot is below `least`. */
double dv_invert(double *a, int n, double least, int *order);

/* out [n][m] = a [n][k] b [k][m], and the same with b transposed, b [m][k]; out is none of the others. */
void dv_product(double *out, const double *a, const double *b, int n, int k, int m);
void dv_product_transposed(double *out, const double *a, const double *b, int n, int k, int m);

/* out [cols][rows] = a [rows][cols] transposed. */
void dv_transpose(double *out, const double *a, int rows, int cols);

/* out [n] += a [n][k] v [k]. Each sum is that of dv_dot, to the last bit. */
void dv_apply(double *out, const double *a, const double *v, int n, int k);

/* a [n][n], symmetric by its upper half, becomes U with a = U'U; false if it is not positive definite. */
bool dv_cholesky(double *a, int n);
/* a [n][n], symmetric and positive semidefinite up to rounding, becomes L with a = L L'. */
void dv_factor(double *a, int n);
/* b [n][m] becomes the solution of U' y = b, and of U y = b. */
void dv_solve_lower(const double *u, int n, double *b, int m);
void dv_solve_upper(const double *u, int n, double *b, int m);
/* Both: a becomes U, and b the solution of a y = b; false, and b as it was, if a is not positive definite. */
bool dv_solve_definite(double *a, int n, double *b, int m);

/* a [n][n] = sum_k s_k u_k v_k' by Jacobi's one-sided method: s [n] becomes its singular values, the largest
 * first, and the rows of u and v [n][n] become the u_k and v_k. */
void dv_singular_values(const double *a, int n, double *u, double *s, double *v);
/* Whether no singular value of a [n][n] is above `most`; scratch is [n n]. */
bool dv_norm_within(const double *a, int n, double most, double *scratch);

/* x [k] of least norm among those with the least |a x - b|^2, a [n][k] with n >= k, b [n]: by Householder and
 * singular values, of which those below `share` of the largest count as 0. a and b are destroyed; b begins
 * with x afterwards. scratch is [3 k k + 2 k]. */
void dv_least_squares(double *a, double *b, size_t n, int k, double share, double *scratch);

/* Largest absolute value of the eigenvalues of any a [n][n], by repeated squaring; scratch is [2 n n]. */
double dv_spectral_radius(const double *a, int n, double *scratch);
