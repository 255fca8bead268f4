/* Small dense linear algebra in double precision, row-major (algebra.h): Gram-Schmidt, Jacobi's eigenvalue
 * and singular value methods, inverse, products, Cholesky, Householder least squares. It is our own and not
 * LAPACK's because results must depend on the input alone, not on a number of threads, and core links no
 * LAPACK. Each sum has one order; nothing allocates. Tests compare with LAPACK. */
#include "math/algebra.h"

#include "math/portable.h"
#include "math/random.h"

#include <math.h>
#include <string.h>

double dv_dot(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void swap(double *a, double *b) {
  double before = *a;
  *a = *b;
  *b = before;
}

/* ---- Orthonormal rows ---- */

static void any_direction(double *row, int n, int number) {
  dv_random r = dv_random_at(1, DV_STREAM_INITIALISE, (uint32_t)number, 0);
  for (int k = 0; k < n; k++) row[k] = dv_random_normal(&r);
}

void dv_any_directions(double *rows, int count, int n) {
  for (int i = 0; i < count; i++) any_direction(rows + (size_t)i * (size_t)n, n, i);
}

/* Removes a row's components along the rows before it. Returns the share of its length that remains. */
static double take_others_out(double *rows, int number, size_t n) {
  double *row = rows + (size_t)number * n, before = dv_dot(row, row, n);
  for (int j = 0; j < number; j++) {
    const double *other = rows + (size_t)j * n;
    double along = dv_dot(row, other, n);
    for (size_t k = 0; k < n; k++) row[k] -= along * other[k];
  }
  return before > 0 ? sqrt(dv_dot(row, row, n) / before) : 0;
}

void dv_orthonormalise(double *rows, int count, int n) {
  size_t width = (size_t)n;
  for (int i = 0; i < count; i++) {
    double *row = rows + (size_t)i * width;
    if (take_others_out(rows, i, width) < 1e-6) {
      any_direction(row, n, i);
      take_others_out(rows, i, width);
    }
    take_others_out(rows, i, width);
    double by = 1 / sqrt(dv_dot(row, row, width));
    for (int k = 0; k < n; k++) row[k] *= by;
  }
}

/* ---- Eigenvectors ---- */

/* Cosine and sine of the smaller angle phi with cot(2 phi) = cot. */
static void find_rotation(double cot, double *c, double *s) {
  double t = 1 / (fabs(cot) + sqrt(cot * cot + 1));
  if (cot < 0) t = -t;
  *c = 1 / sqrt(t * t + 1);
  *s = t * *c;
}

/* Rotates two rows [n]: (a, b) becomes (c a - s b, s a + c b). */
static void rotate_rows(double *a, double *b, size_t n, double c, double s) {
  for (size_t k = 0; k < n; k++) {
    double x = a[k], y = b[k];
    a[k] = c * x - s * y;
    b[k] = s * x + c * y;
  }
}

/* Rotates rows and columns i and j of a symmetric matrix [n][n] so that its entry (i, j) becomes 0, and the
 * same rows of vectors [n][n]; false if it is already. */
static bool rotate(double *matrix, double *vectors, int n, int i, int j) {
  double *a = matrix + (size_t)i * (size_t)n, *b = matrix + (size_t)j * (size_t)n;
  double c, s;
  if (!(a[j] * a[j] > 1e-30 * fabs(a[i] * b[j]))) return false;
  find_rotation((b[j] - a[i]) / (2 * a[j]), &c, &s);
  for (int k = 0; k < n; k++) { /* columns */
    double *row = matrix + (size_t)k * (size_t)n, x = row[i], y = row[j];
    row[i] = c * x - s * y;
    row[j] = s * x + c * y;
  }
  rotate_rows(a, b, (size_t)n, c, s);
  rotate_rows(vectors + (size_t)i * (size_t)n, vectors + (size_t)j * (size_t)n, (size_t)n, c, s);
  return true;
}

void dv_diagonalise(double *matrix, double *vectors, int n) {
  enum { SWEEPS = 30 };
  memset(vectors, 0, (size_t)n * (size_t)n * sizeof *vectors);
  for (int i = 0; i < n; i++) vectors[(size_t)i * (size_t)n + (size_t)i] = 1;
  bool rotated = true;
  for (int sweep = 0; sweep < SWEEPS && rotated; sweep++) {
    rotated = false;
    for (int i = 0; i < n; i++)
      for (int j = i + 1; j < n; j++) rotated |= rotate(matrix, vectors, n, i, j);
  }
}

int dv_take_largest(double *matrix, int n, double *value) {
  size_t best = 0, step = (size_t)n + 1;
  for (size_t i = 1; i < (size_t)n; i++)
    if (matrix[i * step] > matrix[best * step]) best = i;
  if (value) *value = matrix[best * step];
  matrix[best * step] = -INFINITY;
  return (int)best;
}

/* ---- Inverse ---- */

double dv_invert(double *a, int n, double least, int *order) {
  double log_det = 0;
  for (int k = 0; k < n; k++) {
    int best = k;
    for (int i = k + 1; i < n; i++)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
    double pivot = a[best * n + k];
    if (!(fabs(pivot) >= least)) return NAN;
    log_det += dv_log(fabs(pivot));
    order[k] = best;
    for (int j = 0; j < n; j++) swap(&a[k * n + j], &a[best * n + j]);
    a[k * n + k] = 1;
    for (int j = 0; j < n; j++) a[k * n + j] /= pivot;
    for (int i = 0; i < n; i++) {
      double factor = a[i * n + k];
      if (i == k) continue;
      a[i * n + k] = 0;
      for (int j = 0; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  for (int k = n - 1; k >= 0; k--) /* rows were swapped: so must be the columns of the inverse */
    for (int i = 0; i < n; i++) swap(&a[i * n + k], &a[i * n + order[k]]);
  return log_det;
}

/* ---- Products ---- */

void dv_product(double *out, const double *a, const double *b, int n, int k, int m) {
  memset(out, 0, (size_t)n * (size_t)m * sizeof *out);
  for (int i = 0; i < n; i++, out += m)
    for (int l = 0; l < k; l++) {
      double factor = *a++;
      const double *row = b + (size_t)l * (size_t)m;
      for (int j = 0; j < m; j++) out[j] += factor * row[j];
    }
}

void dv_product_transposed(double *out, const double *a, const double *b, int n, int k, int m) {
  for (int i = 0; i < n; i++, a += k)
    for (int j = 0; j < m; j++) *out++ = dv_dot(a, b + (size_t)j * (size_t)k, (size_t)k);
}

void dv_transpose(double *out, const double *a, int rows, int cols) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++) out[(size_t)j * (size_t)rows + (size_t)i] = *a++;
}

/* Four rows at a time, because each sum waits for its last addition. */
void dv_apply(double *out, const double *a, const double *v, int n, int k) {
  int i = 0;
  size_t width = (size_t)k;
  for (; i + 4 <= n; i += 4, a += 4 * width) {
    double sum[4] = {0};
    for (size_t j = 0; j < width; j++)
      for (size_t row = 0; row < 4; row++) sum[row] += a[row * width + j] * v[j];
    for (int row = 0; row < 4; row++) out[i + row] += sum[row];
  }
  for (; i < n; i++, a += width) out[i] += dv_dot(a, v, width);
}

/* ---- Positive definite systems (loops run along rows, so that compilers vectorise them) ---- */

bool dv_cholesky(double *a, int n) {
  for (int k = 0; k < n; k++) {
    double *row = a + (size_t)k * (size_t)n, pivot = row[k];
    if (!(pivot > 0) || isinf(pivot)) return false;
    double by = 1 / sqrt(pivot);
    for (int j = 0; j < k; j++) row[j] = 0;
    for (int j = k; j < n; j++) row[j] *= by;
    for (int i = k + 1; i < n; i++) {
      double *other = a + (size_t)i * (size_t)n, factor = row[i];
      for (int j = i; j < n; j++) other[j] -= factor * row[j];
    }
  }
  return true;
}

/* The same for one column: along rows of U. */
static void solve_column(const double *u, int n, double *b) {
  for (int k = 0; k < n; k++, u += n) {
    b[k] *= 1 / u[k];
    for (int i = k + 1; i < n; i++) b[i] -= u[i] * b[k];
  }
}

void dv_factor(double *a, int n) {
  for (int j = 0; j < n; j++) {
    double pivot = a[j * (n + 1)], least = 1e-14 * pivot; /* columns may have units of their own */
    for (int k = 0; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
    double root = pivot > least ? sqrt(pivot) : 0;
    a[j * (n + 1)] = root;
    for (int i = j + 1; i < n; i++) {
      double sum = a[i * n + j];
      for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = root > 0 ? sum / root : 0;
    }
    for (int i = 0; i < j; i++) a[i * n + j] = 0;
  }
}

void dv_solve_lower(const double *u, int n, double *b, int m) {
  if (m == 1) {
    solve_column(u, n, b);
    return;
  }
  for (int i = 0; i < n; i++) {
    double *row = b + (size_t)i * (size_t)m, by = 1 / u[(size_t)i * (size_t)n + (size_t)i];
    for (int k = 0; k < i; k++) {
      double factor = u[(size_t)k * (size_t)n + (size_t)i];
      const double *other = b + (size_t)k * (size_t)m;
      for (int j = 0; j < m; j++) row[j] -= factor * other[j];
    }
    for (int j = 0; j < m; j++) row[j] *= by;
  }
}

void dv_solve_upper(const double *u, int n, double *b, int m) {
  for (int i = n - 1; i >= 0; i--) {
    const double *from = u + (size_t)i * (size_t)n;
    double *row = b + (size_t)i * (size_t)m, by = 1 / from[i];
    for (int k = i + 1; k < n; k++) {
      const double *other = b + (size_t)k * (size_t)m;
      for (int j = 0; j < m; j++) row[j] -= from[k] * other[j];
    }
    for (int j = 0; j < m; j++) row[j] *= by;
  }
}

bool dv_solve_definite(double *a, int n, double *b, int m) {
  if (!dv_cholesky(a, n)) return false;
  dv_solve_lower(a, n, b, m);
  dv_solve_upper(a, n, b, m);
  return true;
}

/* ---- Singular values ---- */

/* Rotates rows i and j of u [n][n], and of v, so that those of u become orthogonal; false if they are. */
static bool separate(double *u, double *v, size_t n, size_t i, size_t j) {
  double *a = u + i * n, *b = u + j * n, c, s;
  double aa = dv_dot(a, a, n), bb = dv_dot(b, b, n), ab = dv_dot(a, b, n);
  if (!(fabs(ab) > 1e-14 * sqrt(aa * bb))) return false;
  find_rotation((bb - aa) / (2 * ab), &c, &s);
  rotate_rows(a, b, n, c, s);
  rotate_rows(v + i * n, v + j * n, n, c, s);
  return true;
}

/* Sorts the rows s_k u_k of u by their length, with those of v, and makes their lengths 1. */
static void sort_and_scale(double *u, double *s, double *v, size_t n) {
  bool whole = true;
  for (size_t k = 0; k < n; k++) s[k] = sqrt(dv_dot(u + k * n, u + k * n, n));
  for (size_t k = 0; k < n; k++) {
    size_t largest = k;
    for (size_t i = k + 1; i < n; i++)
      if (s[i] > s[largest]) largest = i;
    swap(&s[k], &s[largest]);
    for (size_t i = 0; i < n; i++) {
      swap(&u[k * n + i], &u[largest * n + i]);
      swap(&v[k * n + i], &v[largest * n + i]);
    }
    for (size_t i = 0; i < n && s[k] > 0; i++) u[k * n + i] /= s[k];
    whole = whole && s[k] > 0;
  }
  if (!whole) dv_orthonormalise(u, (int)n, (int)n); /* any direction will do where s_k = 0 */
}

void dv_singular_values(const double *a, int n, double *u, double *s, double *v) {
  enum { SWEEPS = 30 };
  size_t size = (size_t)n;
  for (size_t i = 0; i < size; i++)
    for (size_t k = 0; k < size; k++) {
      u[k * size + i] = a[i * size + k]; /* a v_k, with v_k a unit vector at first */
      v[k * size + i] = i == k;
    }
  bool rotated = true;
  for (int sweep = 0; sweep < SWEEPS && rotated; sweep++) {
    rotated = false;
    for (size_t i = 0; i < size; i++)
      for (size_t j = i + 1; j < size; j++) rotated |= separate(u, v, size, i, j);
  }
  sort_and_scale(u, s, v, size);
}

/* True if most^2 I - a a' is positive definite. */
bool dv_norm_within(const double *a, int n, double most, double *scratch) {
  size_t size = (size_t)n;
  for (size_t i = 0; i < size; i++)
    for (size_t j = i; j < size; j++)
      scratch[i * size + j] = (i == j ? most * most : 0) - dv_dot(a + i * size, a + j * size, size);
  return dv_cholesky(scratch, n);
}

/* ---- Spectral radius ---- */

/* The norm of a^(2^k) grows like radius^(2^k) times a factor whose 2^k-th root goes to 1. */
double dv_spectral_radius(const double *a, int n, double *scratch) {
  enum { SQUARINGS = 24 };
  size_t all = (size_t)n * (size_t)n;
  double *power = scratch, *square = scratch + all, log_scale = 0;
  memcpy(power, a, all * sizeof *a);
  for (int k = 0;; k++) {
    double norm = sqrt(dv_dot(power, power, all));
    if (!(norm > 0) || isinf(norm)) return norm > 0 ? INFINITY : norm;
    log_scale += dv_log(norm) / ldexp(1, k);
    if (k == SQUARINGS) return dv_exp(log_scale);
    for (size_t i = 0; i < all; i++) power[i] /= norm;
    dv_product(square, power, power, n, n, n);
    double *swap = power;
    power = square;
    square = swap;
  }
}

/* ---- Least squares ---- */

/* Reflects rows j .. n - 1 of a and b so that column j of a becomes 0 below its diagonal. */
static void reflect(double *a, double *b, size_t n, size_t k, size_t j) {
  double square = 0, along = a[j * k + j];
  for (size_t i = j; i < n; i++) square += a[i * k + j] * a[i * k + j];
  if (square == 0) return;
  double length = along > 0 ? -sqrt(square) : sqrt(square), first = along - length;
  double scale = 1 / (length * first); /* negative */
  for (size_t c = j + 1; c <= k; c++) {
    double *column = c < k ? a + c : b, sum = 0;
    size_t apart = c < k ? k : 1;
    for (size_t i = j; i < n; i++) sum += (i == j ? first : a[i * k + j]) * column[i * apart];
    for (size_t i = j; i < n; i++) column[i * apart] += scale * sum * (i == j ? first : a[i * k + j]);
  }
  a[j * k + j] = length;
  for (size_t i = j + 1; i < n; i++) a[i * k + j] = 0;
}

void dv_least_squares(double *a, double *b, size_t n, int k, double share, double *scratch) {
  size_t size = (size_t)k;
  double *u = scratch, *v = u + size * size, *s = v + size * size, *x = s + size, *r = x + size;
  for (size_t j = 0; j < size; j++) reflect(a, b, n, size, j);
  memcpy(r, a, size * size * sizeof *r);
  dv_singular_values(r, k, u, s, v);
  for (size_t j = 0; j < size; j++) x[j] = 0;
  for (size_t i = 0; i < size && s[i] > 0 && s[i] >= share * s[0]; i++) {
    double factor = dv_dot(u + i * size, b, size) / s[i];
    for (size_t j = 0; j < size; j++) x[j] += factor * v[i * size + j];
  }
  memcpy(b, x, size * sizeof *b);
}
