/* Least squares where residuals are not linear, by Levenberg and Marquardt with differences for derivatives.
 */
#ifndef DV_LEVENBERG_H
#define DV_LEVENBERG_H

#include <dvbf/core.h>
#include <stdbool.h>

typedef struct dv_levenberg {
  int n;         /* parameters */
  size_t rows;   /* residuals */
  int steps;     /* at most */
  double ridge;  /* adds ridge |theta - first theta|^2 */
  double enough; /* it ends where a step lowers the sum by less than this share */
  void (*residuals)(double *out /* [rows] */, const double *theta, void *user);
  bool (*allowed)(const double *theta, void *user); /* NULL: every theta is */
  const volatile int *interrupt;                    /* ends it with DVBF_STOPPED; may be NULL */
  void *user;
} dv_levenberg;

/* Lowers the sum of squares from theta [n], which must be allowed; *sum, if not NULL, is what is left. */
dvbf_status dv_levenberg_run(double *theta, double *sum, const dv_levenberg *how, dvbf_error *error);

#endif
