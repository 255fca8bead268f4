/* What moves: z' = f(z, u), for planners that need not know whether it is a model or a system. */
#ifndef DV_MOTION_H
#define DV_MOTION_H

typedef struct dv_motion {
  void *user; /* handed to all of these */
  /* next [rows][n_z] = f(z, u); rows of z and next are `stride` apart and may be the same. */
  void (*go)(void *user, int rows, const double *z, const double *u, double *next, int stride);
  /* Derivatives of f: the first n_z rows and columns of a [steps][stride][stride] and b [steps][stride][n_u]
   * are written. */
  void (*derive)(void *user, int steps, const double *z, const double *u, double *a, double *b, int stride);
  /* As `go`, with noise [rows][n_w]. */
  void (*stir)(void *user, int rows, const double *z, const double *u, const double *noise, double *next,
               int stride);
} dv_motion;

#endif
