/* A linear system with normal noise:
 *
 *   z_1 ~ N(m, P)    z_{t+1} = A z_t + B u_t + b + w_t    x_t = H z_t + D u_t + c + e_t
 *   (w_t, e_t) ~ N(0, [Q S; S' R])
 *
 * The innovation form z' = A z + B u + b + K e is the case Q = K R K', S = K R. */
#ifndef DV_SYSTEM_H
#define DV_SYSTEM_H

#include <dvbf/core.h>

typedef struct dv_system {
  int n_z, n_u, n_x;
  double *a;                 /* [n_z][n_z] */
  double *b;                 /* [n_z][n_u] */
  double *h;                 /* [n_x][n_z] */
  double *d;                 /* [n_x][n_u] */
  double *shift_z, *shift_x; /* b [n_z] and c [n_x] */
  double *q;                 /* [n_z][n_z] */
  double *r;                 /* [n_x][n_x] */
  double *s;                 /* [n_z][n_x] */
  double *mean;              /* m [n_z] */
  double *cov;               /* P [n_z][n_z] */
} dv_system;

/* Numbers of a system, the first of which is a[0]. */
size_t dv_system_size(int n_z, int n_u, int n_x);
/* A system whose numbers are in values [dv_system_size]. */
dv_system dv_system_at(double *values, int n_z, int n_u, int n_x);
/* One of zeros in memory of its own; free it with dv_system_clear. */
dvbf_status dv_system_new(dv_system *out, int n_z, int n_u, int n_x, dvbf_error *error);
dvbf_status dv_system_copy(dv_system *out, const dv_system *from, dvbf_error *error);
void dv_system_clear(dv_system *system);

/* next = A z + B u + b, and x = H z + D u + c; u may be NULL where n_u = 0. */
void dv_system_move(const dv_system *s, const double *z, const double *u, double *next);
void dv_system_emit(const dv_system *s, const double *z, const double *u, double *x);

/* Sets Q, S from the gain K [n_z][n_x] of the innovation form and R. */
void dv_system_set_gain(dv_system *s, const double *k);

#endif
