/* The joint normal distribution of all z and x of a linear system, from the definition of the system alone,
 * and conditioned by dense algebra: an independent implementation of what the Kalman filter and smoother
 * compute.
 */
#ifndef TEST_JOINT_H
#define TEST_JOINT_H

#include "math/algebra.h"
#include "math/kalman.h"
#include "math/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct joint {
  int n_z, n_x, steps, all; /* z of all steps first, then x of all steps */
  double *mean;             /* [all] */
  double *cov;              /* [all][all] */
} joint;

static inline double *joint_z(const joint *j, double *values, int t) {
  return values + t * j->n_z;
}

static inline double *joint_x(const joint *j, double *values, int t) {
  return values + j->steps * j->n_z + t * j->n_x;
}

/* z and x [all] from z_1 and the noises [steps] of (e_t, w_t); without shifts and u where u is NULL. */
static inline void joint_run(const joint *j, const dv_state_space *s, const double *u, const double *first,
                             const double *noise, double *out) {
  int both = s->n_x + s->n_z;
  for (int i = 0; i < s->n_z; i++) joint_z(j, out, 0)[i] = first[i];
  for (int t = 0; t < j->steps; t++) {
    const double *z = joint_z(j, out, t), *e = noise + t * both, *w = e + s->n_x;
    for (int i = 0; i < s->n_x; i++) {
      double sum = e[i] + (u ? s->shift_x[i] : 0);
      for (int k = 0; k < s->n_z; k++) sum += s->h[i * s->n_z + k] * z[k];
      for (int k = 0; u && k < s->n_u; k++) sum += s->d[i * s->n_u + k] * u[t * s->n_u + k];
      joint_x(j, out, t)[i] = sum;
    }
    for (int i = 0; i < s->n_z && t + 1 < j->steps; i++) {
      double sum = w[i] + (u ? s->shift_z[i] : 0);
      for (int k = 0; k < s->n_z; k++) sum += s->a[i * s->n_z + k] * z[k];
      for (int k = 0; u && k < s->n_u; k++) sum += s->b[i * s->n_u + k] * u[t * s->n_u + k];
      joint_z(j, out, t + 1)[i] = sum;
    }
  }
}

/* Entry (i, k) of the covariance of (e, w). */
static inline double joint_noise(const dv_state_space *s, int i, int k) {
  int n = s->n_x, a = i - n, b = k - n;
  if (i < n && k < n) return s->r[i * n + k];
  if (i < n) return s->s[b * n + i];
  return k < n ? s->s[a * n + k] : s->q[a * s->n_z + b];
}

/* cov += map C map', where map [n][all] has a row for each of n variables with the covariance C. */
static inline void joint_add(joint *j, const double *map, int n, const dv_state_space *s, bool first) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      double c = first ? s->cov[i * n + k] : joint_noise(s, i, k);
      for (int a = 0; a < j->all; a++) {
        double factor = c * map[i * j->all + a];
        for (int b = 0; factor != 0 && b < j->all; b++)
          j->cov[a * j->all + b] += factor * map[k * j->all + b];
      }
    }
}

static inline joint joint_new(const dv_state_space *s, const double *u, int steps) {
  joint j = {.n_z = s->n_z, .n_x = s->n_x, .steps = steps, .all = steps * (s->n_z + s->n_x)};
  int both = s->n_x + s->n_z, most = both > s->n_z ? both : s->n_z;
  size_t all = (size_t)j.all;
  double *zero = calloc((size_t)(steps * both), sizeof *zero), *first = calloc((size_t)most, sizeof *first),
         *map = calloc((size_t)most * all, sizeof *map), none[1] = {0};
  j.mean = calloc(all, sizeof *j.mean);
  j.cov = calloc(all * all, sizeof *j.cov);
  joint_run(&j, s, u ? u : none, s->mean, zero, j.mean);
  for (int i = 0; i < s->n_z; i++) {
    first[i] = 1;
    joint_run(&j, s, NULL, first, zero, map + (size_t)i * all);
    first[i] = 0;
  }
  joint_add(&j, map, s->n_z, s, true);
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < both; i++) {
      zero[t * both + i] = 1;
      joint_run(&j, s, NULL, first, zero, map + (size_t)i * all);
      zero[t * both + i] = 0;
    }
    joint_add(&j, map, both, s, false);
  }
  free(zero);
  free(first);
  free(map);
  return j;
}

static inline void joint_free(joint *j) {
  free(j->mean);
  free(j->cov);
}

/* Conditions on the values x [steps][n_x] of steps 0 .. last that are there; returns their ln p. */
static inline double joint_condition(joint *j, const double *x, int last) {
  int *seen = calloc((size_t)(2 * j->all), sizeof *seen), *order = seen + j->all, n = 0,
      offset = j->steps * j->n_z;
  size_t all = (size_t)j->all;
  double *apart = calloc(2 * all, sizeof *apart), *gain = apart + all, log_p = 0,
         *before = calloc(2 * all * all, sizeof *before), *inverse = before + all * all;
  for (int i = 0; i < (last + 1) * j->n_x; i++)
    if (!isnan(x[i])) seen[n] = offset + i, apart[n++] = x[i] - j->mean[offset + i];
  memcpy(before, j->cov, all * all * sizeof *before);
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) inverse[a * n + b] = before[seen[a] * j->all + seen[b]];
  double log_det = dv_invert(inverse, n, 1e-300, order);
  for (int a = 0; a < n; a++) log_p -= 0.5 * apart[a] * dv_dot(inverse + a * n, apart, (size_t)n);
  for (int i = 0; i < j->all; i++) {
    memset(gain, 0, all * sizeof *gain);
    for (int b = 0; b < n; b++)
      for (int a = 0; a < n; a++) gain[a] += before[i * j->all + seen[b]] * inverse[b * n + a];
    j->mean[i] += dv_dot(gain, apart, (size_t)n);
    for (int a = 0; a < n; a++)
      for (int k = 0; k < j->all; k++) j->cov[i * j->all + k] -= gain[a] * before[seen[a] * j->all + k];
  }
  free(seen);
  free(apart);
  free(before);
  return log_p - 0.5 * (log_det + n * log(2 * M_PI));
}

/* ---- Random systems ---- */

static inline double any_normal(uint32_t *next) {
  dv_random r = dv_random_at(3, DV_STREAM_SIMULATION, (*next)++, 0);
  return dv_random_normal(&r);
}

/* A covariance [n][n], n <= 8. */
static inline void any_covariance(double *out, int n, uint32_t *next) {
  double factor[8 * 8];
  for (int i = 0; i < n * n; i++) factor[i] = any_normal(next);
  dv_product_transposed(out, factor, factor, n, n, n);
}

/* Fills a system with noises that belong together. */
static inline void any_system(dv_state_space *s, uint32_t *next) {
  int n_z = s->n_z, n_u = s->n_u, n_x = s->n_x, both = n_x + n_z;
  double noise[8 * 8];
  for (int i = 0; i < n_z * n_z; i++) s->a[i] = 0.4 * any_normal(next);
  for (int i = 0; i < n_z * n_u; i++) s->b[i] = any_normal(next);
  for (int i = 0; i < n_x * n_z; i++) s->h[i] = any_normal(next);
  for (int i = 0; i < n_x * n_u; i++) s->d[i] = any_normal(next);
  for (int i = 0; i < n_z; i++) s->shift_z[i] = any_normal(next), s->mean[i] = any_normal(next);
  for (int i = 0; i < n_x; i++) s->shift_x[i] = any_normal(next);
  any_covariance(s->cov, n_z, next);
  any_covariance(noise, both, next);
  for (int i = 0; i < both; i++)
    for (int k = 0; k < both; k++) {
      double value = noise[i * both + k];
      if (i < n_x && k < n_x) s->r[i * n_x + k] = value;
      if (i >= n_x && k < n_x) s->s[(i - n_x) * n_x + k] = value;
      if (i >= n_x && k >= n_x) s->q[(i - n_x) * n_z + k - n_x] = value;
    }
}

#endif
