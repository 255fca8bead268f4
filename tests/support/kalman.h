/* A small linear-Gaussian system and its exact likelihood, in double precision and without the library:
 *
 *   z_1 ~ N(0, I)    z_{t+1} = A z_t + B u_t + C w_t    x_t = H z_t + sigma e_t    w_t ~ N(0, I), e_t ~ N(0,
 * I)
 */
#ifndef KALMAN_H
#define KALMAN_H

#include <math.h>
#include <string.h>

enum { K_Z = 2, K_U = 1, K_X = 4, K_STEPS = 10, K_NOISES = K_STEPS * (K_Z + K_X), K_ALL = K_STEPS * K_X };

typedef struct kalman_system {
  double a[K_Z][K_Z], b[K_Z][K_U], c[K_Z][K_Z], h[K_X][K_Z], sigma;
} kalman_system;

static const double kalman_log_2pi = 1.837877066409345483560659472811;

/* A z + B u */
static inline void kalman_move(const kalman_system *s, const double *z, const double *u, double *out) {
  for (int i = 0; i < K_Z; i++) {
    out[i] = 0;
    for (int j = 0; j < K_Z; j++) out[i] += s->a[i][j] * z[j];
    for (int j = 0; j < K_U; j++) out[i] += s->b[i][j] * u[j];
  }
}

/* x [K_STEPS][K_X] from noise [K_STEPS][K_Z + K_X]; the first K_Z of a step's noise give z_1 or w of the step
 * into it, the others e. */
static inline void kalman_simulate(const kalman_system *s, const double *u, const double *noise, double *x) {
  double z[K_Z], moved[K_Z] = {0};
  for (int t = 0; t < K_STEPS; t++, noise += K_Z + K_X, x += K_X) {
    for (int i = 0; i < K_Z; i++) {
      z[i] = t ? moved[i] : noise[i];
      for (int j = 0; t && j < K_Z; j++) z[i] += s->c[i][j] * noise[j];
    }
    for (int i = 0; i < K_X; i++) {
      x[i] = s->sigma * noise[K_Z + i];
      for (int j = 0; j < K_Z; j++) x[i] += s->h[i][j] * z[j];
    }
    kalman_move(s, z, u + t * K_U, moved);
  }
}

/* ---- Kalman's recursions ---- */

typedef struct kalman_belief {
  double mean[K_Z], cov[K_Z][K_Z];
} kalman_belief;

/* Takes in x_t one number at a time, as their noises are independent: no inverse is needed. NaN is not there.
 * Returns ln p(x_t | past). */
static inline double kalman_observe(const kalman_system *s, kalman_belief *b, const double *x) {
  double log_p = 0;
  for (int i = 0; i < K_X; i++) {
    double cov_h[K_Z] = {0}, variance = s->sigma * s->sigma, apart = x[i];
    if (isnan(x[i])) continue;
    for (int j = 0; j < K_Z; j++)
      for (int k = 0; k < K_Z; k++) cov_h[j] += b->cov[j][k] * s->h[i][k];
    for (int j = 0; j < K_Z; j++) {
      variance += s->h[i][j] * cov_h[j];
      apart -= s->h[i][j] * b->mean[j];
    }
    log_p -= 0.5 * (kalman_log_2pi + log(variance) + apart * apart / variance);
    for (int j = 0; j < K_Z; j++) {
      b->mean[j] += cov_h[j] * apart / variance;
      for (int k = 0; k < K_Z; k++) b->cov[j][k] -= cov_h[j] * cov_h[k] / variance;
    }
  }
  return log_p;
}

/* mean = A mean + B u, cov = A cov A^T + C C^T */
static inline void kalman_predict(const kalman_system *s, kalman_belief *b, const double *u) {
  kalman_belief next;
  kalman_move(s, b->mean, u, next.mean);
  for (int i = 0; i < K_Z; i++)
    for (int j = 0; j < K_Z; j++) {
      next.cov[i][j] = 0;
      for (int k = 0; k < K_Z; k++) {
        next.cov[i][j] += s->c[i][k] * s->c[j][k];
        for (int l = 0; l < K_Z; l++) next.cov[i][j] += s->a[i][k] * b->cov[k][l] * s->a[j][l];
      }
    }
  *b = next;
}

/* ln p(x_1 .. x_T | u), and the beliefs about z_t given x_1 .. x_t. */
static inline double kalman_filter(const kalman_system *s, const double *u, const double *x,
                                   kalman_belief filtered[K_STEPS]) {
  kalman_belief b = {0};
  double log_p = 0;
  for (int i = 0; i < K_Z; i++) b.cov[i][i] = 1;
  for (int t = 0; t < K_STEPS; t++) {
    log_p += kalman_observe(s, &b, x + t * K_X);
    filtered[t] = b;
    kalman_predict(s, &b, u + t * K_U);
  }
  return log_p;
}

static inline double kalman_log_likelihood(const kalman_system *s, const double *u, const double *x) {
  kalman_belief filtered[K_STEPS];
  return kalman_filter(s, u, x, filtered);
}

/* out = P_t A^T (P_{t+1|t})^-1, with the inverse of a matrix of two rows. */
static inline void kalman_gain(const kalman_system *s, const kalman_belief *now, const kalman_belief *next,
                               double out[K_Z][K_Z]) {
  const double(*c)[K_Z] = next->cov;
  double det = c[0][0] * c[1][1] - c[0][1] * c[1][0];
  double inverse[K_Z][K_Z] = {{c[1][1] / det, -c[0][1] / det}, {-c[1][0] / det, c[0][0] / det}};
  for (int i = 0; i < K_Z; i++)
    for (int j = 0; j < K_Z; j++) {
      out[i][j] = 0;
      for (int k = 0; k < K_Z; k++)
        for (int l = 0; l < K_Z; l++) out[i][j] += now->cov[i][k] * s->a[l][k] * inverse[l][j];
    }
}

/* Beliefs about z_t given all of x, from the filtered ones in place (Rauch, Tung and Striebel 1965). */
static inline void kalman_smooth(const kalman_system *s, const double *u, kalman_belief b[K_STEPS]) {
  for (int t = K_STEPS - 2; t >= 0; t--) {
    kalman_belief next = b[t], old = b[t];
    double gain[K_Z][K_Z];
    kalman_predict(s, &next, u + t * K_U);
    kalman_gain(s, &old, &next, gain);
    for (int i = 0; i < K_Z; i++)
      for (int k = 0; k < K_Z; k++) {
        b[t].mean[i] += gain[i][k] * (b[t + 1].mean[k] - next.mean[k]);
        for (int j = 0; j < K_Z; j++)
          for (int l = 0; l < K_Z; l++)
            b[t].cov[i][j] += gain[i][k] * (b[t + 1].cov[k][l] - next.cov[k][l]) * gain[j][l];
      }
  }
}

/* ---- The same from the joint normal distribution of the stacked sequence ---- */

/* lower [n][n], a covariance on entry, becomes its Cholesky factor. */
static inline void kalman_cholesky(double lower[K_ALL][K_ALL]) {
  for (int j = 0; j < K_ALL; j++)
    for (int i = j; i < K_ALL; i++) {
      double sum = lower[i][j];
      for (int k = 0; k < j; k++) sum -= lower[i][k] * lower[j][k];
      lower[i][j] = i == j ? sqrt(sum) : sum / lower[j][j];
    }
}

/* The simulator is affine in its noise: its answers to no noise and to each noise alone give mean and
 * covariance. */
static inline double kalman_joint_log_likelihood(const kalman_system *s, const double *u, const double *x) {
  static double cov[K_ALL][K_ALL];
  double mean[K_ALL], answer[K_ALL], noise[K_NOISES] = {0}, log_p = 0;
  memset(cov, 0, sizeof cov);
  kalman_simulate(s, u, noise, mean);
  for (int n = 0; n < K_NOISES; n++) {
    noise[n] = 1;
    kalman_simulate(s, u, noise, answer);
    noise[n] = 0;
    for (int i = 0; i < K_ALL; i++)
      for (int j = 0; j < K_ALL; j++) cov[i][j] += (answer[i] - mean[i]) * (answer[j] - mean[j]);
  }
  kalman_cholesky(cov);
  for (int i = 0; i < K_ALL; i++) { /* answer = L^-1 (x - mean) */
    answer[i] = x[i] - mean[i];
    for (int j = 0; j < i; j++) answer[i] -= cov[i][j] * answer[j];
    answer[i] /= cov[i][i];
    log_p -= 0.5 * (kalman_log_2pi + answer[i] * answer[i]) + log(cov[i][i]);
  }
  return log_p;
}

#endif
