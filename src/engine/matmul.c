/* Matrix products of row-major arrays, compiled twice per instruction set with DV_ISA set, the second time
 * with DV_PORTABLE. They are our own because OpenBLAS chooses slow kernels on processors it does not know,
 * because the sequential steps have only 1 to 16 columns, and because results must depend on our code
 * alone. */

/* A tile of MR rows by NV vectors of c stays in registers while a and b stream past. Entries of a are
 * broadcast, so its strides are free and a transposed costs nothing; b is read in rows, from a packed panel
 * if its rows cannot be used as they are (b transposed, a ragged edge) or if many rows of a use the panel.
 *
 * Portable products (math/portable.h) add up each entry of c from the first product to the last, so that the
 * shape of tiles and panels does not matter. Only sums along rows (`dots`) have lanes, always as many, chosen
 * by shape alone. */
#include "engine/kernels.h"

#include <string.h>

typedef dvbf_real real;

#if defined(__AVX512F__)
#define WIDE 4
#else
#define WIDE 2
#endif

typedef dv_vector vec;

#ifdef DV_PORTABLE
enum { IN_ORDER = true, DOT_LANES = 8 };
typedef real dot_vec __attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));
#else
enum { IN_ORDER = false, DOT_LANES = DV_VECTOR / (int)sizeof(real) };
typedef vec dot_vec;
#endif

enum {
  VEC_LANES = DV_VECTOR / (int)sizeof(real),
  TILE_ROWS = 6,           /* of a tile */
  COLS = WIDE * VEC_LANES, /* of a tile of many rows */
  TILE_VECTORS = 2 * WIDE, /* vectors of a tile of one row, of which fewer would wait for each other's sums */
  DEPTH = 256 /* of a panel: as much of a and b as caches and page tables hold while all rows pass */
};

/* sum[rows][at .. at + nv - 1] += a[rows] b[nv * VEC_LANES], where entry r of a is a[r * row]. */
static inline __attribute__((always_inline)) void add_line(int rows, int nv, vec sum[TILE_ROWS][TILE_VECTORS],
                                                           int at, const real *a, size_t row, const real *b) {
  vec line[TILE_VECTORS];
  for (int j = 0; j < nv; j++) line[j] = *(const vec *)(b + j * VEC_LANES);
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < nv; j++) sum[r][at + j] += a[r * row] * line[j];
}

/* The first `count` numbers from c on, and zeros where a vector has more. */
static inline __attribute__((always_inline)) vec read_vec(const real *c, int count) {
  if (count >= VEC_LANES) return *(const vec *)c;
  real edge[VEC_LANES] = {0};
  for (int i = 0; i < count; i++) edge[i] = c[i];
  return *(const vec *)edge;
}

/* One tile: c[rows][nv * VEC_LANES] = first + a b over `depth`, where `first` is a row [nv * VEC_LANES], or c
 * itself if that is NULL; entry (r, d) of a is a[r * row + d * step]. Columns from `cols` on are computed but
 * not stored. A narrow tile sums every other line by itself, because a sum can grow only once in the time
 * that an addition takes; not more of them, as there are no two orders in which to add two sums. rows and nv
 * are constants in every call, so all loops unroll. */
static inline __attribute__((always_inline)) void tile(int rows, int nv, real *c, size_t ldc,
                                                       const real *first, const real *a, size_t row,
                                                       size_t step, const real *b, size_t ldb, int depth,
                                                       int cols) {
  vec sum[TILE_ROWS][TILE_VECTORS];
  int lines = 2 * nv <= WIDE && !IN_ORDER ? 2 : 1; /* summed by themselves */
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < lines * nv; j++) {
      sum[r][j] = (vec){0};
      if (first && j < nv) sum[r][j] = *(const vec *)(first + j * VEC_LANES);
      if (IN_ORDER && !first) sum[r][j] = read_vec(c + r * ldc + j * VEC_LANES, cols - j * VEC_LANES);
    }
  for (; depth >= lines; depth -= lines, a += lines * step, b += lines * ldb)
    for (int i = 0; i < lines; i++) add_line(rows, nv, sum, i * nv, a + i * step, row, b + i * ldb);
  for (; depth > 0; depth--, a += step, b += ldb) add_line(rows, nv, sum, 0, a, row, b);
  for (int r = 0; r < rows; r++, c += ldc) {
    for (int j = nv; j < lines * nv; j++) sum[r][j % nv] += sum[r][j];
    if (cols == nv * VEC_LANES) {
      for (int j = 0; j < nv; j++) {
        if (!first && !IN_ORDER) sum[r][j] += *(vec *)(c + j * VEC_LANES);
        *(vec *)(c + j * VEC_LANES) = sum[r][j];
      }
    } else {
      real edge[TILE_VECTORS * VEC_LANES] = {0};
      for (int j = 0; j < nv; j++) *(vec *)(edge + j * VEC_LANES) = sum[r][j];
      for (int i = 0; i < cols; i++) c[i] = first || IN_ORDER ? edge[i] : c[i] + edge[i];
    }
  }
}

typedef struct operand {
  const real *at;
  size_t row, step; /* strides: of rows of the result, and of the summed index */
} operand;

#define TILE(rows, nv)                                                                                       \
  case rows: tile(rows, nv, c, ldc, first, a.at, a.row, a.step, b, ldb, depth, cols); break;

/* All rows of one panel of nv vectors. */
#define PANEL(name, nv)                                                                                      \
  static void name(real *c, size_t ldc, const real *first, operand a, const real *b, size_t ldb, int m,      \
                   int depth, int cols) {                                                                    \
    for (; m >= TILE_ROWS; m -= TILE_ROWS, c += TILE_ROWS * ldc, a.at += TILE_ROWS * a.row)                  \
      tile(TILE_ROWS, nv, c, ldc, first, a.at, a.row, a.step, b, ldb, depth, cols);                          \
    switch (m) { TILE(5, nv) TILE(4, nv) TILE(3, nv) TILE(2, nv) TILE(1, nv) }                               \
  }

PANEL(panel1, 1)
PANEL(panel2, 2)
#if WIDE == 4
PANEL(panel3, 3)
PANEL(panel4, 4)
#endif

static void panel(real *c, size_t ldc, const real *first, operand a, const real *b, size_t ldb, int m,
                  int depth, int cols) {
  switch ((cols + VEC_LANES - 1) / VEC_LANES) {
  case 1: panel1(c, ldc, first, a, b, ldb, m, depth, cols); break;
  case 2: panel2(c, ldc, first, a, b, ldb, m, depth, cols); break;
#if WIDE == 4
  case 3: panel3(c, ldc, first, a, b, ldb, m, depth, cols); break;
  case 4: panel4(c, ldc, first, a, b, ldb, m, depth, cols); break;
#endif
  }
}

/* to[depth][width] = columns of b, zeros from `cols` on; entry (d, i) of b is b[d * step + i * col]. A few
 * rows of a transposed b at a time: more, a power of two apart, would drive each other out of the cache. */
static void pack(real *to, int width, const real *b, size_t step, size_t col, int depth, int cols) {
  if (col == 1) {
    for (int d = 0; d < depth; d++) memcpy(to + d * width, b + d * step, (size_t)cols * sizeof *to);
  } else {
    for (int some = 0; some < cols; some += VEC_LANES)
      for (int d = 0; d < depth; d++)
        for (int i = some; i < cols && i < some + VEC_LANES; i++) to[d * width + i] = b[d * step + i * col];
  }
  for (int d = 0; d < depth && cols < width; d++)
    for (int i = cols; i < width; i++) to[d * width + i] = 0;
}

/* How many rows of b can be read where they are, `width` numbers at a time, without reading past its end. */
static int readable(int depth, size_t step, int at, int width) {
  size_t end = (size_t)depth * step, last = (size_t)(at + width);
  return end < last ? 0 : (int)((end - last) / step) + 1;
}

/* c[m][n] += a b over `depth`, or c = start + a b where `add` is not set, start a row [n] or NULL for zeros;
 * b by (step, col) as in pack. */
static void multiply(real *c, bool add, const real *start, operand a, const real *b, size_t step, size_t col,
                     int m, int n, int depth) {
  _Alignas(64) real packed[DEPTH * COLS], row[COLS] = {0};
  for (int at = 0; at < n; at += COLS) {
    int cols = n - at < COLS ? n - at : COLS, width = (cols + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    int direct = col == 1 ? readable(depth, step, at, width) : 0;
    const real *first = add ? NULL : row;
    if (start) memcpy(row, start + at, (size_t)cols * sizeof *row);
    for (int done = 0; done < depth; first = NULL) {
      bool here = done < direct;
      int left = (here ? direct : depth) - done, part = left < DEPTH ? left : DEPTH;
      operand rest = {a.at + done * a.step, a.row, a.step};
      const real *from = b + done * step + at * col;
      if (!here) pack(packed, width, from, step, col, part, cols);
      panel(c + at, (size_t)n, first, rest, here ? from : packed, here ? step : (size_t)width, m, part, cols);
      done += part;
    }
  }
}

/* ---- Few rows of whole vectors: nothing is packed, as there is so little to do ---- */

typedef void few_fn(real *c, const real *start, const real *a, const real *b, int n, int k);

#define FEW(rows, nv)                                                                                        \
  static void few##rows##_##nv(real *c, const real *start, const real *a, const real *b, int n, int k) {     \
    tile(rows, nv, c, (size_t)n, start, a, (size_t)k, 1, b, (size_t)n, k, nv *VEC_LANES);                    \
  }
#define FEW_ROWS(nv) FEW(1, nv) FEW(2, nv) FEW(3, nv) FEW(4, nv) FEW(5, nv)
#define FEW_LIST(nv)                                                                                         \
  { few1_##nv, few2_##nv, few3_##nv, few4_##nv, few5_##nv }

FEW_ROWS(1)
FEW_ROWS(2)
#if WIDE == 4
FEW_ROWS(3)
FEW_ROWS(4)
static few_fn *const few[WIDE][TILE_ROWS - 1] = {FEW_LIST(1), FEW_LIST(2), FEW_LIST(3), FEW_LIST(4)};
#else
static few_fn *const few[WIDE][TILE_ROWS - 1] = {FEW_LIST(1), FEW_LIST(2)};
#endif

/* c[m][n] = start + a[m][k] b[k][n], or c += a b, with m < TILE_ROWS and n a multiple of VEC_LANES. */
static void multiply_few(real *c, const real *start, const real *a, const real *b, int m, int n, int k) {
  int at = 0;
  for (; m == 1 && at + 2 * COLS <= n; at += 2 * COLS)
    tile(1, TILE_VECTORS, c + at, (size_t)n, start ? start + at : NULL, a, (size_t)k, 1, b + at, (size_t)n, k,
         2 * COLS);
  for (; at < n; at += COLS) {
    int vectors = n - at < COLS ? (n - at) / VEC_LANES : WIDE;
    few[vectors - 1][m - 1](c + at, start ? start + at : NULL, a, b + at, n, k);
  }
}

/* ---- Narrow results, c[m][k] += a[m][n] b[k][n]^T with few columns k: sums of products along the rows of
 * both, for which no panel of full vectors exists ---- */

enum { DOT_ROWS = WIDE, DOT_COLS = 6, NARROW = 16 };

static inline __attribute__((always_inline)) void dots(int rows, int cols, real *c, size_t ldc, const real *a,
                                                       const real *b, int n) {
  dot_vec sum[DOT_ROWS][DOT_COLS];
  int whole = n / DOT_LANES * DOT_LANES;
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < cols; j++) sum[r][j] = (dot_vec){0};
  for (int i = 0; i < whole; i += DOT_LANES) {
    dot_vec line[DOT_ROWS];
    for (int r = 0; r < rows; r++) line[r] = *(const dot_vec *)(a + r * (size_t)n + i);
    for (int j = 0; j < cols; j++)
      for (int r = 0; r < rows; r++) sum[r][j] += line[r] * *(const dot_vec *)(b + j * (size_t)n + i);
  }
  real lanes[DOT_ROWS * DOT_COLS][DOT_LANES];
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < cols; j++) *(dot_vec *)lanes[r * cols + j] = sum[r][j];
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < cols; j++) {
      real total = 0;
      for (int l = 0; l < DOT_LANES; l++) total += lanes[r * cols + j][l];
      for (int i = whole; i < n; i++) total += a[r * (size_t)n + i] * b[j * (size_t)n + i];
      c[r * ldc + j] += total;
    }
}

#define DOTS(cols)                                                                                           \
  case cols:                                                                                                 \
    for (; m >= DOT_ROWS; m -= DOT_ROWS, c += DOT_ROWS * ldc, a += DOT_ROWS * (size_t)n)                     \
      dots(DOT_ROWS, cols, c, ldc, a, b, n);                                                                 \
    for (; m > 0; m--, c += ldc, a += n) dots(1, cols, c, ldc, a, b, n);                                     \
    break;

static void dot_columns(real *c, size_t ldc, const real *a, const real *b, int m, int n, int cols) {
  switch (cols) { DOTS(6) DOTS(5) DOTS(4) DOTS(3) DOTS(2) DOTS(1) }
}

static void dot_all(real *c, const real *a, const real *b, int m, int n, int k) {
  for (int j = 0; j < k; j += DOT_COLS)
    dot_columns(c + j, (size_t)k, a, b + j * (size_t)n, m, n, k - j < DOT_COLS ? k - j : DOT_COLS);
}

/* ---- The three products ---- */

enum { TRANSPOSED = NARROW * 512 }; /* room for a narrow result; wider ones take the general way */

/* c[m][n] = start + a[m][k] b[k][n], or c += a b where start is NULL. */
static void nn(real *c, const real *start, const real *a, const real *b, int m, int n, int k) {
  if (m < TILE_ROWS && n % VEC_LANES == 0)
    multiply_few(c, start, a, b, m, n, k);
  else
    multiply(c, !start, start, (operand){a, (size_t)k, 1}, b, (size_t)n, 1, m, n, k);
}

/* c[m][k] (+)= a[m][n] b[k][n]^T */
static void nt(real *c, bool add, const real *a, const real *b, int m, int n, int k) {
  if (k > NARROW || n < DOT_LANES) {
    multiply(c, add, NULL, (operand){a, (size_t)n, 1}, b, 1, (size_t)n, m, k, n);
    return;
  }
  if (!add) memset(c, 0, (size_t)m * (size_t)k * sizeof *c);
  dot_all(c, a, b, m, n, k);
}

/* c[k][n] (+)= a[m][k]^T b[m][n]; a narrow result is made the other way round, in full vectors. */
static void tn(real *c, bool add, const real *a, const real *b, int m, int n, int k) {
  real transposed[TRANSPOSED];
  if (n > NARROW || k < DOT_LANES || n * k > TRANSPOSED) {
    multiply(c, add, NULL, (operand){a, 1, (size_t)k}, b, (size_t)n, 1, k, n, m);
    return;
  }
  multiply(transposed, false, NULL, (operand){b, 1, (size_t)n}, a, (size_t)k, 1, n, k, m);
  for (int j = 0; j < k; j++)
    for (int i = 0; i < n; i++) c[j * n + i] = (add ? c[j * n + i] : 0) + transposed[i * k + j];
}

#define ISA_PRODUCTS DV_OF_ISA(dv_products)
extern const dv_products ISA_PRODUCTS;
const dv_products ISA_PRODUCTS = {nn, nt, tn};
