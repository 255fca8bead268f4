/* Winograd transforms of images and weights for 4 x 4 convolutions with stride 2 (ops/convolution_winograd.c
 * has the method), compiled as kernels.c is. They only add and subtract channel by channel, so every
 * instruction set gives the same bits. */
#include "engine/kernels.h"

typedef dvbf_real real;

typedef dv_vector vec;
enum { CHANNEL_LANES = DV_VECTOR / (int)sizeof(real) };

/* body(type, c) for all channels from c on, as many at once as a vector holds. */
#define EACH_CHANNEL(body)                                                                                   \
  int c = 0;                                                                                                 \
  for (; c + CHANNEL_LANES <= channels; c += CHANNEL_LANES) body(vec);                                       \
  for (; c < channels; c++) body(real);

#define AT(T, pointer) (*(T *)(pointer))
#define IN(T, pointer) (*(const T *)(pointer))

/* Of each of the four images of every other pixel, d[3][3]: v = B' d B, B' = (1 -1 0; 0 1 0; 0 -1 1). */
#define SEE(T)                                                                                               \
  for (int phase = 0; phase < 4; phase++) {                                                                  \
    const real *const *d = at + 6 * (phase / 2) + phase % 2;                                                 \
    real *to = v + phase * channels + c;                                                                     \
    T u[3][3];                                                                                               \
    for (int j = 0; j < 3; j++) {                                                                            \
      u[1][j] = IN(T, d[12 + 2 * j] + c);                                                                    \
      u[0][j] = IN(T, d[2 * j] + c) - u[1][j];                                                               \
      u[2][j] = IN(T, d[24 + 2 * j] + c) - u[1][j];                                                          \
    }                                                                                                        \
    for (int i = 0; i < 3; i++, to += 3 * apart) {                                                           \
      AT(T, to) = u[i][0] - u[i][1];                                                                         \
      AT(T, to + apart) = u[i][1];                                                                           \
      AT(T, to + 2 * apart) = u[i][2] - u[i][1];                                                             \
    }                                                                                                        \
  }

static void see(real *v, size_t apart, const real *const at[36], int channels) {
  EACH_CHANNEL(SEE)
}

/* The transpose: d += B v B'. */
#define SHOW(T)                                                                                              \
  for (int phase = 0; phase < 4; phase++) {                                                                  \
    real *const *d = at + 6 * (phase / 2) + phase % 2;                                                       \
    const real *from = v + phase * channels + c;                                                             \
    T u[3][3];                                                                                               \
    for (int i = 0; i < 3; i++, from += 3 * apart) {                                                         \
      u[i][0] = IN(T, from);                                                                                 \
      u[i][2] = IN(T, from + 2 * apart);                                                                     \
      u[i][1] = IN(T, from + apart) - u[i][0] - u[i][2];                                                     \
    }                                                                                                        \
    for (int j = 0; j < 3; j++) {                                                                            \
      AT(T, d[2 * j] + c) += u[0][j];                                                                        \
      AT(T, d[12 + 2 * j] + c) += u[1][j] - u[0][j] - u[2][j];                                               \
      AT(T, d[24 + 2 * j] + c) += u[2][j];                                                                   \
    }                                                                                                        \
  }

static void show(real *const at[36], const real *v, size_t apart, int channels) {
  EACH_CHANNEL(SHOW)
}

/* m = A s A', A = (1 0; 1 1; 0 1). */
#define SPREAD(T)                                                                                            \
  {                                                                                                          \
    T s[3][2];                                                                                               \
    for (int j = 0; j < 2; j++) {                                                                            \
      s[0][j] = IN(T, at[j] + c);                                                                            \
      s[2][j] = IN(T, at[2 + j] + c);                                                                        \
      s[1][j] = s[0][j] + s[2][j];                                                                           \
    }                                                                                                        \
    real *to = m + c;                                                                                        \
    for (int i = 0; i < 3; i++, to += 3 * apart) {                                                           \
      AT(T, to) = s[i][0];                                                                                   \
      AT(T, to + apart) = s[i][0] + s[i][1];                                                                 \
      AT(T, to + 2 * apart) = s[i][1];                                                                       \
    }                                                                                                        \
  }

static void spread(real *m, size_t apart, const real *const at[4], int channels) {
  EACH_CHANNEL(SPREAD)
}

/* The transpose: s += A' m A. */
#define COLLECT(T)                                                                                           \
  {                                                                                                          \
    T s[3][2];                                                                                               \
    const real *from = m + c;                                                                                \
    for (int i = 0; i < 3; i++, from += 3 * apart) {                                                         \
      s[i][0] = IN(T, from) + IN(T, from + apart);                                                           \
      s[i][1] = IN(T, from + apart) + IN(T, from + 2 * apart);                                               \
    }                                                                                                        \
    for (int j = 0; j < 2; j++) {                                                                            \
      AT(T, at[j] + c) += s[0][j] + s[1][j];                                                                 \
      AT(T, at[2 + j] + c) += s[1][j] + s[2][j];                                                             \
    }                                                                                                        \
  }

static void collect(real *const at[4], const real *m, size_t apart, int channels) {
  EACH_CHANNEL(COLLECT)
}

/* ---- Weights w[4][4][channels of the large image][n], for a pixel (i, j) [count = channels * n] ---- */

/* u = G w G', G = (1 0; 1 1; 0 1), of w at lines i, i + 2 and columns j, j + 2. */
static void weights(real *u, size_t apart, const real *w, size_t pixel, size_t count) {
  const real *const at[4] = {w, w + 2 * pixel, w + 8 * pixel, w + 10 * pixel};
  spread(u, apart, at, (int)count);
}

/* The transpose: w += G' u G. */
static void weights_backward(real *w, size_t pixel, const real *u, size_t apart, size_t count) {
  real *const at[4] = {w, w + 2 * pixel, w + 8 * pixel, w + 10 * pixel};
  collect(at, u, apart, (int)count);
}

#define WINDOWS DV_OF_ISA(dv_window_kernels)
extern const dv_winograd_kernels WINDOWS;
const dv_winograd_kernels WINDOWS = {see, show, spread, collect, weights, weights_backward};
