/* Test vectors for exported code, and the reference results that they contain. */
#pragma once

#include "export/export.h"
#include "export/part.h"
#include "model/model.h"
#include "settings_tables.h"

/* Several zeroed arrays in one block, which is returned to be freed; NULL: memory is short. */
typedef struct dv_reals {
  double **at; /* becomes the array */
  size_t count;
} dv_reals;
double *dv_calloc_reals(const dv_reals *arrays, size_t n);

/* ---- Test vectors ---- */

/* Of a committee x is pooled over the members and z is that of the best. */
typedef struct dv_vectors {
  int steps;
  int n_x, n_u, n_z, samples;
  uint64_t seed;
  bool moves, deviation;
  float *x, *u;           /* [steps][n_x], [steps and those predicted][n_u] */
  unsigned char *missing; /* [steps][n_x] */
  unsigned char *restart; /* [steps] whether filters are reset before, as rounding was carried too far */
  int *ready;             /* [steps] */
  double *reals;          /* the block of the following */
  /* Without samples, and with: [0] and [1]. */
  double *z[2], *z_std[2];  /* [steps][n_z] */
  double *mean[2], *std[2]; /* [steps and those predicted][n_x] */
  double tolerance;         /* of the test: 1e-5, or what rounding in float makes of it */
  /* Derivatives of the best member at z and u of the last step. */
  double *next, *a, *b, *at, *h, *d;
} dv_vectors;

/* x and u come from `sequences` if they are given, else they are like what the model expects. Clear also
 * after a failure. */
dvbf_status dv_vectors_init(dv_vectors *v, const dvbf_model *model, const dv_export_settings *settings,
                            const dvbf_sequences *sequences, dvbf_error *error);
void dv_vectors_clear(dv_vectors *v);
/* The program that compares; `derivatives`: whether it also tries PREFIX_transition and PREFIX_observe. */
void dv_vectors_write(dv_text *text, const dv_vectors *v, const char *prefix, const char *header, bool direct,
                      bool derivatives);

/* ---- Reference results ---- */

/* As PREFIX_step reports it. */
typedef struct dv_answer {
  double rounding;   /* how far rounding has carried z, as the largest share of 1 + size */
  int ready;         /* 0: nothing, 1: z, 2: x too */
  double *z, *z_std; /* [n_z] */
  double *x, *x_std; /* [n_x] */
  double *reals;     /* the block of these */
} dv_answer;

/* Memory of an answer; false if memory is short. Free `reals`. */
bool dv_answer_init(dv_answer *answer, int n_z, int n_x);

typedef struct dv_reference dv_reference;

/* samples = 0: no sampled filter. The model must outlive it. */
dvbf_status dv_reference_new(dv_reference **out, const dvbf_model *model, size_t samples, uint64_t seed,
                             dvbf_error *error);
void dv_reference_free(dv_reference *reference);

/* The next step is a first one. */
void dv_reference_reset(dv_reference *reference);
/* Takes in x [n_x], NaN if missing, and u [n_u] as the model takes it. */
dvbf_status dv_reference_step(dv_reference *reference, const float *x, const float *u, dv_answer *quiet,
                              dv_answer *sampled, dvbf_error *error);
/* Predicts without observations, under u [n][n_u]: x and x_std [n][n_x] of both filters. Nothing can follow
 * it. */
dvbf_status dv_reference_predict(dv_reference *reference, const float *u, int n, dv_answer *quiet,
                                 dv_answer *sampled, dvbf_error *error);
