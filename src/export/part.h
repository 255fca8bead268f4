/* Parts of a model as statements, ready to be written in another language: what they read and write, how they
 * are differentiated, simplified and run. */
#pragma once

#include "engine/statements.h"
#include "math/kalman.h"
#include "model/model.h"

/* Inputs and outputs of a part. U is the control that acts from z to the next z, NOW the one that x of the
 * new step depends on with feedthrough. */
typedef enum dv_slot_name {
  DV_SLOT_Z,
  DV_SLOT_NOISE,
  DV_SLOT_U,
  DV_SLOT_NOW,
  DV_SLOT_X,
  DV_SLOT_MASK,
  DV_SLOT_SEEN,
  DV_SLOT_OUT,      /* z, or the mean of x */
  DV_SLOT_VARIANCE, /* of x given z, besides its mean */
  DV_SLOT_SLOPES,   /* [directions][out] derivatives of OUT by the inputs of a derived part */
  DV_SLOTS
} dv_slot_name;
enum { DV_INPUTS = DV_SLOT_OUT }; /* slots before it are inputs */

/* A run of numbers in a buffer of the part's code; size 0: there is none. */
typedef struct dv_slot {
  int buffer;
  size_t offset, size;
} dv_slot;

/* All numbers of a value of one row. */
static inline dv_slot dv_slot_of(dvbf_value v) {
  if (v.buffer < 0 || !v.steps) return (dv_slot){0};
  return (dv_slot){v.buffer, v.offset, (size_t)v.steps * v.stride};
}

typedef struct dv_code_part {
  const char *name;
  dvbf_code *code; /* NULL: the model has no such part */
  dv_slot slot[DV_SLOTS];
  int noise_number; /* of the stream, if it has noise */
  int directions;   /* of SLOPES */
} dv_code_part;

/* Places of the parts in dv_parts. */
typedef enum dv_part_name { DV_FIRST, DV_ADVANCE, DV_MOVE, DV_EMISSION, DV_PARTS } dv_part_name;

/* x and u are scaled as the model sees them, but the emission's results are in units of the data. */
typedef struct dv_parts {
  const dvbf_model *model;
  int frames; /* that `first` sees */
  union {
    struct {
      dv_code_part first;    /* z_1 from x, u, mask and seen of the first frames */
      dv_code_part advance;  /* the next z from z, u and x */
      dv_code_part move;     /* the next z from z and u; its noise is w */
      dv_code_part emission; /* mean and variance of x from z, with feedthrough from NOW */
    };
    dv_code_part all[DV_PARTS];
  };
} dv_parts;

/* Parts of a model that can filter; with `simulate`, of one with a transition, whose `first` sees no frames.
 * They point to parameters and settings of the model, which must outlive them. Clear also after a failure. */
dvbf_status dv_parts_init(dv_parts *parts, const dvbf_model *model, bool simulate, dvbf_error *error);
void dv_parts_clear(dv_parts *parts);
/* z_1 [n_z] of a model to be simulated, with its noise at 0; refuses numbers that are not finite. */
dvbf_status dv_parts_start(const dv_parts *parts, double *start, dvbf_error *error);

/* The system of a model with exact inference. */
dvbf_status dv_exact_system_new(dv_state_space *out, const dvbf_model *model, dvbf_error *error);
/* Refuses numbers that are not finite, which C and Python cannot write; arrays may get them by division. */
dvbf_status dv_check_finite(const double *values, size_t n, dvbf_error *error);

/* How a part is derived from another. */
typedef struct dv_derivation {
  bool quiet;         /* noise is 0 */
  bool mean_only;     /* without VARIANCE */
  bool rows;          /* derivatives may read rows of weights, which then are there as numbers */
  bool by[DV_INPUTS]; /* inputs by which OUT is differentiated, in the order of the slots */
} dv_derivation;
/* A simpler part that computes the same, with derivatives if wanted. `from` must outlive it. */
dvbf_status dv_code_part_derive(dv_code_part *out, const dv_code_part *from, const dv_derivation *how,
                                dvbf_error *error);
void dv_code_part_clear(dv_code_part *part);

/* Columns that a statement writes. */
static inline int dv_statement_width(const dv_statement *s) {
  return s->kind == DV_EACH || s->kind == DV_PRODUCT ? s->cols : 1;
}

/* Runs a part in double: in[i] are the numbers of input slot i, NULL: zeros; results that are not NULL are
 * written to. For tests, as it allocates and takes its time. */
dvbf_status dv_code_part_run(const dv_code_part *part, const double *const in[DV_INPUTS], double *out,
                             double *variance, double *slopes, dvbf_error *error);

/* Folds statements that depend on constants alone. */
dvbf_status dv_code_part_fold(dv_code_part *part, dvbf_error *error);
/* Removes statements that no output slot needs, and products with weights that are all 0. */
dvbf_status dv_code_part_prune(dv_code_part *part, dvbf_error *error);
/* Whether a statement reads the slot. */
bool dv_code_part_reads(const dv_code_part *part, dv_slot_name slot);
/* Whether a slot lies in the buffer. */
bool dv_code_part_has_slot(const dv_code_part *part, int buffer);
/* The slot that holds number `offset` of a buffer, or -1. */
int dv_code_part_slot_at(const dv_code_part *part, int buffer, size_t offset);
/* Multiplications of one run. */
double dv_code_part_multiplications(const dv_code_part *part);

/* ---- Kalman filter ---- */

/* The Kalman filter of a linear system as a part, for languages without loops over observed values. */

/* Numbers of the state, which is all 0 before the first step: mean and covariance of the next z, how many
 * values of x were seen last, and whether there was a step. Without feedthrough the mean lacks B u. */
static inline size_t dv_kalman_part_state(int n_z) {
  return (size_t)n_z + (size_t)n_z * (size_t)n_z + 2;
}

/* Slots: Z is the state, U the control since the step before or, with feedthrough, that of this step, X and
 * SEEN the observation. OUT is the next state, then mean and variance of z given x, and of x before it was
 * observed, all in the model's units. range [2][n_z] are centres and limits of the states, or NULL. */
dvbf_status dv_kalman_part(dv_code_part *out, const dv_state_space *system, bool feedthrough,
                           const dvbf_real *range, dvbf_error *error);
