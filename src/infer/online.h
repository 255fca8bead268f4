/* One model of an online filter, with its programs packed into the caller's memory, and low-rank weights of
 * recognition. */
#pragma once

#include "model/model.h"

/* ---- Low-rank weights ---- */

/* Recognition trained on principal components has weights from x of low rank, W = in * out with few columns
 * of `in`: two small products then replace a large one. */

typedef struct dv_low_rank {
  int rank;       /* 0: there is none that would save work */
  dvbf_real *in;  /* [n_x][rank] */
  dvbf_real *out; /* [rank][hidden] */
} dv_low_rank;

/* Exact to a millionth of the length of W. */
dvbf_status dv_low_rank_find(dv_low_rank *plane, const dvbf_model *model, dvbf_error *error);
void dv_low_rank_free(dv_low_rank *plane);

/* ---- Online filter ---- */

/* A filter takes one step of the recurrence per observation, for a few samples of z side by side. */

/* Counts bytes (at = NULL) or places the parts. */
typedef struct dv_workspace {
  unsigned char *at;
  size_t used;
} dv_workspace;
/* [count] of `size` bytes, aligned to 64; NULL while counting. */
void *dv_workspace_take(dv_workspace *room, size_t count, size_t size);

/* A packed program, and a run with its arena behind it. */
typedef struct dv_program_memory {
  dvbf_program program;
  dvbf_run run;
} dv_program_memory;
/* Counts, or packs a recorded program, which may be cleared afterwards, with the model's parameters, and
 * conditions and keys [rows] of the caller. One that was recorded with DV_DERIVATIVES can run back, too. */
void dv_program_memory_lay_out(dv_workspace *room, dv_program_memory *machine, const dvbf_program *recorded,
                               const dvbf_model *model, const dv_conditions *conditions, const uint32_t *key);

typedef struct dv_online {
  const dvbf_model *model;
  dv_program_memory start, step, emission;
  int frames;   /* that the initial network sees */
  int seen;     /* frames so far, up to `frames`: then there is a belief */
  bool through; /* feedthrough */
  dv_conditions conditions;
  uint32_t *number; /* [samples] keys of the noise */
  float *x, *u;     /* [frames][n_x], [frames][n_u] first observations, and the controls that followed them */
  bool *missing;    /* [frames] */
  float *z, *mean, *deviation; /* [samples][n_z], [n_z], [n_z] */
  size_t samples;
  float *before; /* [n_x] the frame before, where the model reads it in a step, and whether it was missing */
  bool before_missing, kept_missing;
  void *exact; /* the filter of a model with exact inference, which needs no programs; else NULL */
  /* During predictions: the belief to restore, and the mean of x of one sample. */
  dv_conditions kept_conditions;
  void *kept; /* [belief] bytes from z on, which u and exact follow */
  size_t belief;
  float *frame; /* [n_x] */
} dv_online;

/* Counts, or places a filter into the room and prepares it; it stays NULL while counting. */
dvbf_status dv_online_lay_out(dv_online **out, dv_workspace *room, const dvbf_model *model, size_t samples,
                              uint64_t seed, const dv_low_rank *plane, dvbf_error *error);
/* Forgets all observations. */
void dv_online_reset(dv_online *o);
/* x [n_x] or NULL; u [n_u] as the model takes it, or NULL. With feedthrough it belongs to the frame that it
 * comes with, else to the frame before. */
void dv_online_step(dv_online *o, const float *x, const float *u);

/* Expected x of one step ahead. */
typedef struct dv_expected_x {
  bool noise;              /* with the noise of the emission */
  double *mean, *variance; /* [n_x] */
  float *samples;          /* [samples][n_x]; NULL: not wanted */
} dv_expected_x;

/* Between begin and end the belief moves on without observations; end puts it back. */
void dv_online_forecast_begin(dv_online *o);
/* The step number t, counted from 0. u is as in dv_online_step. */
void dv_online_forecast(dv_online *o, uint32_t t, const float *u, const dv_expected_x *out);
void dv_online_forecast_end(dv_online *o);

/* The members of a committee side by side. */
struct dvbf_filter {
  const dvbf_model *model;
  int members;
  dv_online **member; /* [members] */
  size_t samples;     /* of each */
  bool same_row;      /* a member has feedthrough: u comes with its own frame */
  bool controlled;    /* `last` is there */
  float *last;        /* [n_u] control that came last */
  /* For predictions. */
  double *mean, *variance; /* [members][n_x] */
  float *x;                /* [members][samples][n_x] */
  const float **rows;      /* [members * samples] where the samples of x begin that take part */
  float *columns;          /* [members * samples][DV_SORTED] scratch */
};
