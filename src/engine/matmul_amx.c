/* Matrix products of float arrays on the tile units (AMX) of newer Intel processors, for gradient updates
 * only (`products = bfloat16x3` or `bfloat16`). Validation, evaluation and the online filter always use
 * float, so a model gives the same results wherever it was trained. Not the default, because trained models
 * would depend on the machine. */

/* The units multiply 16-bit numbers (bfloat16: a float with 8 bits of mantissa) and add in float. So every
 * operand is split, x = hi + lo + rest with |lo| <= 2^-8 |x| and |rest| <= 2^-17 |x|, and
 *
 *   bfloat16x3:  a b ~ hi(a) lo(b) + hi(a) hi(b) + lo(a) hi(b)      error <= 2^-15 |a b|
 *   bfloat16:    a b ~ hi(a) hi(b)                                  error <= 2^-7 |a b|
 *
 * for a term of a sum; over a sum, errors mostly cancel. Numbers beyond 3.39e38 become infinite.
 *
 * A tile has 16 rows of 64 bytes. One instruction adds to a tile c [16][16 floats] the product of
 *   a [16 rows of c][32 summed]   as 16 pairs of bfloat16 in a row, and
 *   b [32 summed][16 columns]     as [16 pairs][16 columns]: both numbers of a pair stand side by side.
 * If the summed index runs along the rows of an array, 16 of its rows make [16][16 pairs]; if it runs down,
 * 32 rows make [16 pairs][16]. Each suits an operand, transposed in 32-bit numbers the other. Edges are 0. */
#include "engine/kernels.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline)) /* so that `low` is a constant */

enum {
  SIDE = 16,       /* rows of a tile; also columns of c, and pairs */
  TILE_DEPTH = 32, /* summed entries of a tile */
  CHUNK = 8,       /* tiles in depth that are packed at once */
  COLUMNS = 16, /* tiles of b side by side that are packed at once: a chunk of 256 KB, for the second cache */
};

typedef struct tile {
  _Alignas(64) __m512i row[SIDE];
} tile;

typedef struct split {
  tile hi, lo;
} split;

/* An operand: entry (i, d) is at[i * line + d * step], i a row or column of c, d summed; one of both is 1. */
typedef struct strided {
  const float *at;
  size_t line, step;
} strided;

/* ---- Packing ---- */

/* Pairs (x[0], x[1]), ... of 32 numbers in a row, and what rounding has left. */
static inline __m512i pairs_along(__m512 *x, __m512 *y) {
  __m512i hi = (__m512i)_mm512_cvtne2ps_pbh(*y, *x);
  *x -= (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(hi)), 16);
  *y -= (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(hi, 1)), 16);
  return hi;
}

/* Pairs (x[i], y[i]) of two rows, and what rounding has left. */
static inline __m512i pairs_down(__m512 *x, __m512 *y) {
  const __m512i ramp = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i second = _mm512_add_epi32(ramp, _mm512_set1_epi32(16));
  const __m512i weave = ramp | _mm512_slli_epi32(second, 16); /* 0, 16, 1, 17, .. in numbers of 16 bits */
  __m512i hi = _mm512_permutexvar_epi16(weave, (__m512i)_mm512_cvtne2ps_pbh(*y, *x));
  *x -= (__m512)_mm512_slli_epi32(hi, 16);
  *y -= (__m512)_mm512_and_epi32(hi, _mm512_set1_epi32(-65536));
  return hi;
}

/* The first n of 16 numbers, zeros behind. */
static inline __m512 load(const float *x, int n) {
  return n >= SIDE ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(n > 0 ? (__mmask16)((1u << n) - 1) : 0, x);
}

/* to[i][pair] from `lines` rows of `depth` numbers. */
INLINE void pack_along(split *to, const float *at, size_t line, int lines, int depth, bool low) {
  for (int i = 0; i < SIDE; i++) {
    int n = i < lines ? depth : 0;
    const float *from = n ? at + i * line : at;
    __m512 x = load(from, n), y = load(n > SIDE ? from + SIDE : from, n - SIDE);
    to->hi.row[i] = pairs_along(&x, &y);
    if (low) to->lo.row[i] = pairs_along(&x, &y);
  }
}

/* to[pair][i] from `depth` rows of `lines` numbers. */
INLINE void pack_down(split *to, const float *at, size_t step, int lines, int depth, bool low) {
  for (int d = 0; d < TILE_DEPTH; d += 2) {
    __m512 x = load(d < depth ? at + d * step : at, d < depth ? lines : 0);
    __m512 y = load(d + 1 < depth ? at + (d + 1) * step : at, d + 1 < depth ? lines : 0);
    to->hi.row[d / 2] = pairs_down(&x, &y);
    if (low) to->lo.row[d / 2] = pairs_down(&x, &y);
  }
}

/* Transposes a tile in place: four rounds that exchange blocks of 1, 2, 4 and 8. */
static inline void transpose(tile *t) {
  __m512i a[SIDE], b[SIDE];
  for (int i = 0; i < SIDE; i += 2) {
    a[i] = _mm512_unpacklo_epi32(t->row[i], t->row[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(t->row[i], t->row[i + 1]);
  }
  for (int i = 0; i < SIDE; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  for (int i = 0; i < SIDE; i += 8)
    for (int j = 0; j < 4; j++) {
      a[i + j] = _mm512_shuffle_i32x4(b[i + j], b[i + j + 4], 0x88);
      a[i + j + 4] = _mm512_shuffle_i32x4(b[i + j], b[i + j + 4], 0xdd);
    }
  for (int j = 0; j < 8; j++) {
    t->row[j] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0x88);
    t->row[j + 8] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0xdd);
  }
}

/* Up to 16 lines of an operand, `depth` deep, as tiles behind each other; pairs_inside: as a wants them. */
INLINE void pack(split *to, strided x, int lines, int depth, bool pairs_inside, bool low) {
  for (; depth > 0; depth -= TILE_DEPTH, to++, x.at += TILE_DEPTH * x.step) {
    int deep = depth < TILE_DEPTH ? depth : TILE_DEPTH;
    bool along = x.step == 1;
    if (along)
      pack_along(to, x.at, x.line, lines, deep, low);
    else
      pack_down(to, x.at, x.step, lines, deep, low);
    if (along == pairs_inside) continue;
    transpose(&to->hi);
    if (low) transpose(&to->lo);
  }
}

/* ---- Two by two tiles of c ---- */

/* Where a tile of c is read and written. */
typedef struct corner {
  float *c, *at;      /* in c, and where the tile unit reads and writes: there too, or at an edge in a copy */
  const float *first; /* [16], the row it starts as; NULL: as what c holds */
  size_t ldc, ld;     /* of c and of at */
  int rows, cols;     /* inside c */
} corner;

static void copy(float *to, size_t ld_to, const float *from, size_t ld_from, int rows, int cols) {
  for (int i = 0; i < rows; i++) memcpy(to + i * ld_to, from + i * ld_from, (size_t)cols * sizeof *to);
}

static corner enter(float *c, size_t ldc, const float *first, int rows, int cols, float *edge) {
  corner k = {c, c, first, ldc, ldc, rows, cols};
  if (rows == SIDE && cols == SIDE) return k;
  k.at = edge;
  k.ld = SIDE;
  if (!first) copy(edge, SIDE, c, ldc, rows, cols);
  return k;
}

static void leave(const corner *k) {
  if (k->at != k->c) copy(k->c, k->ldc, k->at, k->ld, k->rows, k->cols);
}

/* Numbers of tiles must be literals: 0 to 3 are c, 4 and 5 of a, 6 and 7 of b. */
#define READ(number, k)                                                                                      \
  _tile_loadd(number, (k).first ? (k).first : (k).at, (k).first ? 0 : (k).ld * sizeof(float))
#define WRITE(number, k) _tile_stored(number, (k).at, (k).ld * sizeof(float))
#define LOAD(number, tile) _tile_loadd(number, &(tile), 64)
#define MULTIPLY                                                                                             \
  do {                                                                                                       \
    _tile_dpbf16ps(0, 4, 6);                                                                                 \
    _tile_dpbf16ps(1, 4, 7);                                                                                 \
    _tile_dpbf16ps(2, 5, 6);                                                                                 \
    _tile_dpbf16ps(3, 5, 7);                                                                                 \
  } while (0)

/* The tile instructions read and write memory that the compiler does not see them touch. */
#define SETTLE __asm__ volatile("" ::: "memory")

/* k = k + a b, where a is two tiles high, b two wide and both `tiles` deep. */
INLINE void block(const corner k[4], split a[2][CHUNK], split b[2][CHUNK], int tiles, bool low) {
  SETTLE;
  READ(0, k[0]);
  READ(1, k[1]);
  READ(2, k[2]);
  READ(3, k[3]);
  for (int d = 0; d < tiles; d++) {
    LOAD(4, a[0][d].hi);
    LOAD(5, a[1][d].hi);
    if (low) {
      LOAD(6, b[0][d].lo);
      LOAD(7, b[1][d].lo);
      MULTIPLY;
    }
    LOAD(6, b[0][d].hi);
    LOAD(7, b[1][d].hi);
    MULTIPLY;
    if (low) {
      LOAD(4, a[0][d].lo);
      LOAD(5, a[1][d].lo);
      MULTIPLY;
    }
  }
  WRITE(0, k[0]);
  WRITE(1, k[1]);
  WRITE(2, k[2]);
  WRITE(3, k[3]);
  SETTLE;
}

/* ---- Whole products ---- */

static int least(int x, int y) {
  return x < y ? x : y;
}

/* How many of a tile's 16 rows or columns from `at` on are inside `all`. */
static int inside(int all, int at) {
  return all < at ? 0 : least(all - at, SIDE);
}

static strided moved(strided x, int lines, int deep) {
  return (strided){x.at + (size_t)lines * x.line + (size_t)deep * x.step, x.line, x.step};
}

/* Two tiles' lines of an operand that has n of them, from `at` on. */
INLINE void pack_two(split to[2][CHUNK], strided x, int n, int at, int depth, bool pairs_inside, bool low) {
  for (int h = 0; h < 2; h++, at += SIDE)
    pack(to[h], moved(x, least(at, n), 0), inside(n, at), depth, pairs_inside, low);
}

/* c[m][n] += a b, at most COLUMNS tiles wide and CHUNK deep; rows of c start as `first` [n, then 0], if any.
 */
INLINE void multiply_chunk(float *c, size_t ldc, const float *first, strided a, strided b, int m, int n,
                           int depth, bool low) {
  split left[2][CHUNK], right[COLUMNS][CHUNK];
  float edge[4][SIDE * SIDE] = {{0}};
  int tiles = (depth + TILE_DEPTH - 1) / TILE_DEPTH;
  for (int j = 0; j < n; j += 2 * SIDE) pack_two(right + j / SIDE, b, n, j, depth, false, low);
  for (int i = 0; i < m; i += 2 * SIDE) {
    pack_two(left, a, m, i, depth, true, low);
    for (int j = 0; j < n; j += 2 * SIDE) {
      corner k[4];
      for (int q = 0; q < 4; q++) {
        int row = least(i + q / 2 * SIDE, m), col = least(j + q % 2 * SIDE, n);
        k[q] = enter(c + (size_t)row * ldc + col, ldc, first ? first + j + q % 2 * SIDE : NULL,
                     inside(m, row), inside(n, col), edge[q]);
      }
      block(k, left, right + j / SIDE, tiles, low);
      for (int q = 0; q < 4; q++) leave(&k[q]);
    }
  }
}

/* All tiles have 16 rows of 64 bytes. Each thread has its own configuration, gone with _tile_release. */
static void configure(void) {
  struct {
    uint8_t palette, start, reserved[14];
    uint16_t width[16];
    uint8_t rows[16];
  } config = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    config.width[i] = 64;
    config.rows[i] = SIDE;
  }
  _tile_loadconfig(&config);
}

/* c[m][n] += a b, or c = start + a b where `add` is not set, start a row [n] or NULL for zeros. */
INLINE void multiply(float *c, bool add, const float *start, strided a, strided b, int m, int n, int depth,
                     bool low) {
  enum { WIDE = COLUMNS * SIDE, DEEP = CHUNK * TILE_DEPTH };
  float row[WIDE] = {0};
  configure();
  for (int j = 0; j < n; j += WIDE) {
    int cols = least(n - j, WIDE);
    const float *first = add ? NULL : row;
    if (start) memcpy(row, start + j, (size_t)cols * sizeof *row);
    for (int d = 0; d < depth; d += DEEP, first = NULL)
      multiply_chunk(c + j, (size_t)n, first, moved(a, 0, d), moved(b, j, d), m, cols, least(depth - d, DEEP),
                     low);
  }
  _tile_release();
}

static void bfloat16x3(float *c, bool add, const float *start, strided a, strided b, int m, int n,
                       int depth) {
  multiply(c, add, start, a, b, m, n, depth, true);
}

static void bfloat16(float *c, bool add, const float *start, strided a, strided b, int m, int n, int depth) {
  multiply(c, add, start, a, b, m, n, depth, false);
}

/* The three products. Packing b is paid back by many rows of c, packing a by many columns, access to c by
 * deep sums: where one of them is below `enough`, float is faster (bench/SPEED.md) and is used. */
#define DEFINE_PRODUCTS(name, multiply, enough)                                                              \
  static void nn_##name(float *c, const float *start, const float *a, const float *b, int m, int n, int k) { \
    if (least(m, least(n, k)) < enough)                                                                      \
      dv_products_v4.nn(c, start, a, b, m, n, k);                                                            \
    else                                                                                                     \
      multiply(c, !start, start, (strided){a, (size_t)k, 1}, (strided){b, 1, (size_t)n}, m, n, k);           \
  }                                                                                                          \
  static void nt_##name(float *c, bool add, const float *a, const float *b, int m, int n, int k) {           \
    if (least(m, least(n, k)) < enough)                                                                      \
      dv_products_v4.nt(c, add, a, b, m, n, k);                                                              \
    else                                                                                                     \
      multiply(c, add, NULL, (strided){a, (size_t)n, 1}, (strided){b, (size_t)n, 1}, m, k, n);               \
  }                                                                                                          \
  static void tn_##name(float *c, bool add, const float *a, const float *b, int m, int n, int k) {           \
    if (least(m, least(n, k)) < enough)                                                                      \
      dv_products_v4.tn(c, add, a, b, m, n, k);                                                              \
    else                                                                                                     \
      multiply(c, add, NULL, (strided){a, 1, (size_t)k}, (strided){b, 1, (size_t)n}, k, n, m);               \
  }                                                                                                          \
  const dv_products dv_products_##name = {nn_##name, nt_##name, tn_##name};

extern const dv_products dv_products_v4, dv_products_bfloat16x3, dv_products_bfloat16;
DEFINE_PRODUCTS(bfloat16x3, bfloat16x3, 56)
DEFINE_PRODUCTS(bfloat16, bfloat16, 24)

/* On the tile units whatever the shape, for tests. */
extern const dv_products dv_products_all_bfloat16x3, dv_products_all_bfloat16;
DEFINE_PRODUCTS(all_bfloat16x3, bfloat16x3, 0)
DEFINE_PRODUCTS(all_bfloat16, bfloat16, 0)
