/* Predictor-based subspace identification (dv_moments_past_*, dv_subspace_*), whose steps (a) to (c) are in
 * identify.h. Growing modes are moved onto the unit circle, and only those (dv_stabilise). */
#include "base/error.h"
#include "base/memory.h"
#include "identify/identify.h"
#include "math/algebra.h"
#include "math/portable.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- Moments ---- */

dvbf_status dv_moments_past_new(dv_moments_past *out, const dv_recordings *r, int past, dvbf_error *error) {
  int size = 1 + (past + 1) * (r->n_x + r->n_u);
  *out = (dv_moments_past){.n_x = r->n_x, .n_u = r->n_u, .past = past, .size = size};
  out->total = dv_calloc((size_t)size, (size_t)size * sizeof *out->total);
  out->some = dv_calloc(DV_AT_ONCE, (size_t)size * sizeof *out->some);
  return out->total && out->some ? DVBF_OK : dv_fail_memory(error, "looking for a linear model");
}

void dv_moments_past_clear(dv_moments_past *m) {
  DV_FREE(m->total, m->some);
  *m = (dv_moments_past){0};
}

void dv_moments_past_combine(dv_moments_past *out, const dv_moments_past *one, double sign,
                             const dv_moments_past *other) {
  size_t all = (size_t)out->size * (size_t)out->size;
  for (size_t i = 0; i < all; i++) out->total[i] = one->total[i] + sign * other->total[i];
  out->rows = one->rows + sign * other->rows;
}

/* y_t, whose frames lie one after the other going back; false if a value is missing. */
static bool gather(double *y, const dv_recordings *r, size_t frame, int past) {
  size_t n_x = (size_t)r->n_x, n_u = (size_t)r->n_u;
  *y++ = 1;
  for (int lag = 0; lag <= past; lag++, frame--) {
    const double *x = dv_frame(r, frame);
    for (size_t i = 0; i < n_x; i++) {
      if (isnan(x[i])) return false;
      *y++ = x[i];
    }
    for (size_t i = 0; i < n_u; i++) *y++ = r->u[frame * n_u + i];
  }
  return true;
}

/* total += y y' of DV_AT_ONCE y, so that total passes through the cache once for all of them. */
static void add_some(dv_moments_past *m) {
  size_t n = (size_t)m->size;
  for (size_t i = 0; i < n; i++) {
    double *row = m->total + i * n;
    for (size_t k = 0; k < DV_AT_ONCE; k += 4) {
      const double *y = m->some + k * n;
      double a = y[i], b = y[n + i], c = y[2 * n + i], d = y[3 * n + i];
      for (size_t j = i; j < n; j++) row[j] += a * y[j] + b * y[n + j] + c * y[2 * n + j] + d * y[3 * n + j];
    }
  }
}

void dv_moments_past_add(dv_moments_past *m, const dv_recordings *r, const dv_piece *piece) {
  size_t n = (size_t)m->size, waiting = 0;
  for (size_t t = (size_t)m->past; t < piece->steps; t++) {
    if (!gather(m->some + waiting * n, r, piece->first + t, m->past)) continue;
    m->rows++;
    if (++waiting < DV_AT_ONCE) continue;
    add_some(m);
    waiting = 0;
  }
  memset(m->some + waiting * n, 0, (DV_AT_ONCE - waiting) * n * sizeof *m->some);
  if (waiting) add_some(m);
}

/* ---- (a) Regression on the past ---- */

typedef struct room {
  double *normal;  /* [k][k] normal equations, k = regressors */
  double *theta;   /* [k][n_x] */
  int *which;      /* [k] their places in y */
  double *rows;    /* [f n_x][p (n_x + n_u)] of (b) */
  double *half;    /* the same times the moments */
  double *gram;    /* [f n_x][f n_x] */
  double *vectors; /* the same */
  double *map;     /* [size of s][size of y] */
} room;

static double moment(const dv_moments_past *m, int i, int j) {
  return i < j ? m->total[(size_t)i * (size_t)m->size + (size_t)j]
               : m->total[(size_t)j * (size_t)m->size + (size_t)i];
}

/* Coefficients of 1, of u_t with feedthrough, and of the past. Returns the number of the regressors before
 * the past, or -1. */
static int regress(room *o, const dv_moments_past *m, bool feedthrough, double ridge) {
  int k = 0, n_v = m->n_x + m->n_u;
  o->which[k++] = 0;
  for (int i = 0; feedthrough && i < m->n_u; i++) o->which[k++] = 1 + m->n_x + i;
  int before = k;
  for (int i = 1 + n_v; i < m->size; i++) o->which[k++] = i;
  for (int i = 0; i < k; i++) {
    for (int j = i; j < k; j++)
      o->normal[(size_t)i * (size_t)k + (size_t)j] = moment(m, o->which[i], o->which[j]);
    o->normal[(size_t)i * (size_t)(k + 1)] += ridge * m->rows + 1e-9;
    for (int j = 0; j < m->n_x; j++) o->theta[i * m->n_x + j] = moment(m, o->which[i], 1 + j);
  }
  return dv_solve_definite(o->normal, k, o->theta, m->n_x) ? before : -1;
}

/* ---- (b) States ---- */

/* The rows (Theta_{i+1}, Theta_{i+2}, ..., 0), and the mean of Gamma z (Gamma z)' by them. */
static void stack(room *o, const dv_moments_past *m, int before, int future) {
  int n_v = m->n_x + m->n_u, width = m->past * n_v, height = future * m->n_x;
  memset(o->rows, 0, (size_t)height * (size_t)width * sizeof *o->rows);
  for (int i = 0; i < future; i++)
    for (int j = 0; j + i * n_v < width; j++)
      for (int x = 0; x < m->n_x; x++)
        o->rows[(size_t)(i * m->n_x + x) * (size_t)width + (size_t)j] =
            o->theta[(size_t)(before + i * n_v + j) * (size_t)m->n_x + (size_t)x];
  int first = 1 + n_v;
  memset(o->half, 0, (size_t)height * (size_t)width * sizeof *o->half);
  for (int i = 0; i < height; i++)
    for (int k = 0; k < width; k++) {
      double factor = o->rows[(size_t)i * (size_t)width + (size_t)k] / m->rows;
      if (factor == 0) continue;
      double *to = o->half + (size_t)i * (size_t)width;
      for (int j = 0; j < k; j++)
        to[j] += factor * m->total[(size_t)(first + j) * (size_t)m->size + (size_t)(first + k)];
      const double *row = m->total + (size_t)(first + k) * (size_t)m->size + (size_t)first;
      for (int j = k; j < width; j++) to[j] += factor * row[j];
    }
  dv_product_transposed(o->gram, o->half, o->rows, height, width, height);
}

/* Numbers and values of the largest entries of the diagonal of gram [n][n], falling; returns how many are not
 * noise of rounding. */
static int largest(double *gram, int n, int most, int *order, double *value) {
  int count = 0;
  for (; count < most; count++) {
    order[count] = dv_take_largest(gram, n, &value[count]);
    if (!(value[count] > 1e-13 * value[0])) break;
  }
  return count;
}

/* s = map y: 1, x_t and u_t as they are, z_t from the past, and z_{t+1} from what is the past one step later.
 */
static void make_map(room *o, const dv_subspace *s, const dv_moments_past *m, int height, const int *order,
                     const double *variance) {
  int n_v = m->n_x + m->n_u, width = m->past * n_v, first = 1 + n_v;
  size_t size = (size_t)m->size;
  memset(o->map, 0, (size_t)s->size * size * sizeof *o->map);
  for (int i = 0; i < first; i++) o->map[(size_t)i * size + (size_t)i] = 1;
  for (int i = 0; i < s->most; i++) {
    double scale = 1 / sqrt(variance[i]);
    double *now = o->map + (size_t)(first + i) * size, *next = o->map + (size_t)(first + s->most + i) * size;
    dv_product(now + first, o->vectors + (size_t)order[i] * (size_t)height, o->rows, 1, height, width);
    for (int j = 0; j < width; j++) now[first + j] *= scale;
    memcpy(next + 1, now + first, (size_t)width * sizeof *next); /* states have unit variance */
  }
}

static void map_moments(dv_subspace *s, const dv_moments_past *m, const double *map) {
  size_t size = (size_t)m->size;
  double *row = (double *)map + (size_t)s->size * size; /* room for one row behind the map */
  for (int i = 0; i < s->size; i++) {
    const double *from = map + (size_t)i * size;
    memset(row, 0, size * sizeof *row);
    for (size_t k = 0; k < size; k++) {
      double factor = from[k] / m->rows;
      if (factor == 0) continue;
      for (size_t j = 0; j < k; j++) row[j] += factor * m->total[j * size + k];
      for (size_t j = k; j < size; j++) row[j] += factor * m->total[k * size + j];
    }
    dv_apply(s->total + (size_t)i * (size_t)s->size, map, row, s->size, m->size);
  }
}

/* ---- Making the states ---- */

static bool allocate_room(room *o, const dv_moments_past *m, int height, int most) {
  size_t k = (size_t)m->size, high = (size_t)height;
  o->normal = dv_calloc(k, k * sizeof(double));
  o->theta = dv_calloc(k, (size_t)m->n_x * sizeof(double));
  o->which = dv_calloc(k + high, sizeof(int));
  o->rows = dv_calloc(high, k * sizeof(double));
  o->half = dv_calloc(high, k * sizeof(double));
  o->gram = dv_calloc(high, high * sizeof(double));
  o->vectors = dv_calloc(high, high * sizeof(double));
  o->map = dv_calloc((size_t)(1 + m->n_x + m->n_u + 2 * most) + 1, k * sizeof(double));
  return o->normal && o->theta && o->which && o->rows && o->half && o->gram && o->vectors && o->map;
}

/* Steps of Gamma: more add noise, and time for wide x. */
static int future_of(int n_x, int past) {
  enum { ENOUGH = 60 };
  int future = (ENOUGH + n_x - 1) / n_x;
  if (future < 2) future = 2;
  return future < past ? future : past;
}

int dv_subspace_most(int n_x, int past) {
  return n_x * future_of(n_x, past);
}

dvbf_status dv_subspace_new(dv_subspace *out, const dv_moments_past *m, bool feedthrough, double ridge,
                            int most, dvbf_error *error) {
  int future = future_of(m->n_x, m->past), height = future * m->n_x;
  room o = {0};
  if (most > height) most = height;
  *out = (dv_subspace){.n_x = m->n_x, .n_u = m->n_u, .feedthrough = feedthrough && m->n_u, .rows = m->rows};
  bool made = allocate_room(&o, m, height, most);
  int before = made && m->rows > 0 ? regress(&o, m, out->feedthrough, ridge) : -1;
  if (before >= 0) {
    stack(&o, m, before, future);
    dv_diagonalise(o.gram, o.vectors, height);
    int *order = o.which + m->size;
    double *variance = o.half; /* which is not needed any more */
    out->most = largest(o.gram, height, most, order, variance);
    out->size = 1 + m->n_x + m->n_u + 2 * out->most;
    out->total = dv_calloc((size_t)out->size, (size_t)out->size * sizeof *out->total);
    if (out->total) {
      make_map(&o, out, m, height, order, variance);
      map_moments(out, m, o.map);
    }
  }
  DV_FREE(o.normal, o.theta, o.which, o.rows, o.half, o.gram, o.vectors, o.map);
  return made && (before < 0 || out->total) ? DVBF_OK : dv_fail_memory(error, "looking for a linear model");
}

void dv_subspace_clear(dv_subspace *s) {
  dv_free(s->total);
  *s = (dv_subspace){0};
}

/* ---- (c) Regressions on the states ---- */

size_t dv_subspace_scratch(const dv_subspace *s) {
  size_t size = (size_t)s->size;
  return 4 * size * size;
}

/* Solves the moments of places `from` [k] with places `to` [n]: out [k][n]; false if they are singular. */
static bool solve_places(const dv_subspace *s, const double *total, const int *from, int k, const int *to,
                         int n, double *out, double *scratch) {
  for (int i = 0; i < k; i++) {
    for (int j = 0; j < k; j++)
      scratch[i * k + j] = total[(size_t)from[i] * (size_t)s->size + (size_t)from[j]];
    scratch[i * k + i] += 1e-10 * (1 + scratch[i * k + i]);
    for (int j = 0; j < n; j++) out[i * n + j] = total[(size_t)from[i] * (size_t)s->size + (size_t)to[j]];
  }
  return dv_solve_definite(scratch, k, out, n);
}

/* Puts e = x - (coefficients [k][n_x] of places from [k]) in the place of x in total [size][size]. */
static void take_residual(const dv_subspace *s, double *total, const int *from, int k,
                          const double *coefficients) {
  size_t size = (size_t)s->size;
  for (int side = 0; side < 2; side++) /* rows, then columns */
    for (int x = 0; x < s->n_x; x++)
      for (size_t j = 0; j < size; j++) {
        double sum = 0;
        for (int i = 0; i < k; i++)
          sum += coefficients[i * s->n_x + x] *
                 (side ? total[j * size + (size_t)from[i]] : total[(size_t)from[i] * size + j]);
        *(side ? total + j * size + 1 + x : total + (size_t)(1 + x) * size + j) -= sum;
      }
}

/* Fills the noise: R from the moments of e, K from the coefficients of e, and the start from those of z. */
static void fill_noise(const dv_subspace *s, dv_state_space *out, const double *total, const double *gain) {
  size_t size = (size_t)s->size, first = 1 + (size_t)s->n_x + (size_t)s->n_u;
  for (int i = 0; i < s->n_x; i++)
    for (int j = 0; j < s->n_x; j++)
      out->r[i * s->n_x + j] =
          total[(size_t)(1 + i) * size + (size_t)(1 + j)] + (i == j ? DV_NOISE_FLOOR : 0);
  dv_system_set_gain(out, gain);
  for (int i = 0; i < out->n_z; i++) {
    out->mean[i] = total[first + (size_t)i];
    for (int j = 0; j < out->n_z; j++)
      out->cov[i * out->n_z + j] = total[(first + (size_t)i) * size + first + (size_t)j] -
                                   total[first + (size_t)i] * total[first + (size_t)j];
  }
}

bool dv_subspace_system(const dv_subspace *s, dv_state_space *out, double *scratch) {
  int n = out->n_z, n_x = s->n_x, n_u = s->n_u, first = 1 + n_x + n_u, from[1 + 2 * 1024], to[1024] = {0},
      k = 0;
  size_t square = (size_t)s->size * (size_t)s->size;
  double *total = scratch, *coefficients = scratch + square, *rest = scratch + 2 * square;
  if (n > s->most || first + n > 2048 || n_x > 1024 || n > 1024) return false;
  memcpy(total, s->total, square * sizeof *total);
  for (int i = 0; i < n; i++) from[k++] = first + i;
  from[k++] = 0;
  for (int i = 0; s->feedthrough && i < n_u; i++) from[k++] = 1 + n_x + i;
  for (int i = 0; i < n_x; i++) to[i] = 1 + i;
  if (!solve_places(s, total, from, k, to, n_x, coefficients, rest)) return false;
  for (int x = 0; x < n_x; x++) {
    for (int i = 0; i < n; i++) out->h[x * n + i] = coefficients[i * n_x + x];
    out->shift_x[x] = coefficients[n * n_x + x];
    for (int i = 0; i < n_u; i++)
      out->d[x * n_u + i] = s->feedthrough ? coefficients[(n + 1 + i) * n_x + x] : 0;
  }
  take_residual(s, total, from, k, coefficients);
  for (k = n + 1; k < n + 1 + n_u + n_x; k++)
    from[k] = k - n - 1 < n_u ? 1 + n_x + k - n - 1 : 1 + k - n - 1 - n_u;
  for (int i = 0; i < n; i++) to[i] = first + s->most + i;
  if (!solve_places(s, total, from, k, to, n, coefficients, rest)) return false;
  double *gain = rest;
  for (int z = 0; z < n; z++) {
    for (int i = 0; i < n; i++) out->a[z * n + i] = coefficients[i * n + z];
    out->shift_z[z] = coefficients[n * n + z];
    for (int i = 0; i < n_u; i++) out->b[z * n_u + i] = coefficients[(n + 1 + i) * n + z];
    for (int i = 0; i < n_x; i++) gain[z * n_x + i] = coefficients[(n + 1 + n_u + i) * n + z];
  }
  fill_noise(s, out, total, gain);
  dv_stabilise(out->a, n, coefficients);
  return true;
}

/* ---- Stabilisation ---- */

size_t dv_stabilise_scratch(int n) {
  return 4 * (size_t)n * (size_t)n + (size_t)n;
}

/* s [n][n] becomes its matrix sign by Newton's method, s <- (s + s^-1) / 2, in which eigenvalues become the
 * signs of their real parts. False if they have none. */
static bool find_sign(double *s, int n, double *inverse, int *order) {
  enum { NEWTON_STEPS = 60 };
  size_t all = (size_t)n * (size_t)n;
  double change = INFINITY;
  for (int k = 0; k < NEWTON_STEPS; k++) {
    memcpy(inverse, s, all * sizeof *s);
    double log_det = dv_invert(inverse, n, 1e-300, order);
    if (!isfinite(log_det)) return false;
    double by = change > 0.01 ? dv_exp(-log_det / n) : 1, apart = 0, size = 0;
    for (size_t i = 0; i < all; i++) {
      double value = (by * s[i] + inverse[i] / by) / 2;
      apart += (value - s[i]) * (value - s[i]);
      size += value * value;
      s[i] = value;
    }
    if (!isfinite(size)) return false;
    change = sqrt(apart / size);
    if (change < 1e-11) return true;
  }
  return false;
}

/* The projector (I + sign((A - I) (A + I)^-1)) / 2 on the modes outside the unit circle, which Cayley's map
 * takes to the right half-plane. */
static bool find_projector(const double *a, int n, double *out, double *rest) {
  size_t all = (size_t)n * (size_t)n, step = (size_t)n + 1;
  double *plus = rest, *minus = rest + all;
  int *order = (int *)(void *)(rest + 2 * all);
  memcpy(plus, a, all * sizeof *a);
  memcpy(minus, a, all * sizeof *a);
  for (size_t i = 0; i < all; i += step) plus[i] += 1, minus[i] -= 1;
  if (!isfinite(dv_invert(plus, n, 1e-12, order))) return false;
  dv_product(out, minus, plus, n, n, n);
  if (!find_sign(out, n, rest, order)) return false;
  for (size_t i = 0; i < all; i++) out[i] = (out[i] + (i % step == 0)) / 2;
  return true;
}

void dv_stabilise(double *a, int n, double *scratch) {
  size_t all = (size_t)n * (size_t)n;
  double *projector = scratch, *rest = scratch + all, radius = dv_spectral_radius(a, n, rest);
  if (radius <= 1) return;
  if (isfinite(radius) && find_projector(a, n, projector, rest)) {
    dv_product(rest, projector, a, n, n, n);
    for (size_t i = 0; i < all; i++) projector[i] = a[i] - (1 - 1 / radius) * rest[i];
    double now = dv_spectral_radius(projector, n, rest);
    if (now < radius) memcpy(a, projector, all * sizeof *a), radius = now;
  }
  for (size_t i = 0; i < all && !(radius <= 1); i++) a[i] = isfinite(radius) ? a[i] / radius : 0;
}
