/* Test vectors: inputs, and what the library's own filters make of them. */
#ifndef DV_VECTORS_H
#define DV_VECTORS_H

#include "base/settings.h"
#include "export/text.h"
#include "model/model.h"

/* Of a committee x is pooled over the members and z is that of the best. */
typedef struct dv_vectors {
  int steps, ahead; /* steps, and further steps that are predicted */
  int n_x, n_u, n_z, samples;
  uint64_t seed;
  bool moves, deviation;
  float *x, *u;           /* [steps][n_x], [steps + ahead][n_u] */
  unsigned char *missing; /* [steps][n_x] */
  unsigned char
      *restart; /* [steps] the filters are reset before this step: rounding has been carried too far */
  int *ready;   /* [steps] */
  /* Without samples, and with: [0] and [1]. */
  double *z[2], *z_std[2];  /* [steps][n_z] */
  double *mean[2], *std[2]; /* [steps + ahead][n_x]; the last are predictions */
  double tolerance;         /* of the test: 1e-5, or what rounding in float makes of it */
  /* Derivatives of the best member at z and u of the last step. */
  double *next, *a, *b, *at, *h, *d;
} dv_vectors;

/* x and u come from `sequences` where they are given, else they are like what the model expects. Clear also
 * after a failure. */
dvbf_status dv_vectors_init(dv_vectors *v, const dvbf_model *model, const dv_export_settings *settings,
                            const dvbf_sequences *sequences, dvbf_error *error);
void dv_vectors_clear(dv_vectors *v);
/* The program that compares; `derivatives` tells whether it tries PREFIX_transition and PREFIX_observe too.
 */
void dv_vectors_write(dv_text *text, const dv_vectors *v, const char *prefix, const char *header, bool direct,
                      bool derivatives);

#endif
