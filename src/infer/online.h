/* One model of an online filter: the initial network once it has its frames, then one step of the recurrence
 * per observation, for a few samples of z side by side. Its programs are packed into the caller's memory. */
#ifndef DV_ONLINE_H
#define DV_ONLINE_H

#include "model/plane.h"

/* The same walk over the parts counts bytes (at = NULL) and places them. */
typedef struct dv_room {
  unsigned char *at;
  size_t used;
} dv_room;
/* [count] of `size` bytes, aligned to 64; NULL while counting. */
void *dv_room_take(dv_room *room, size_t count, size_t size);

/* A packed program, and a run with its arena behind it. */
typedef struct dv_machine {
  dvbf_program program;
  dvbf_run run;
} dv_machine;
/* Counts, or packs a recorded program, which may be cleared afterwards; parameters, conditions and keys are
 * the caller's to set. One that was recorded with DV_DERIVATIVES can run back, too. */
void dv_machine_place(dv_room *room, dv_machine *machine, const dvbf_program *recorded);

typedef struct dv_online {
  const dvbf_model *model;
  dv_machine start, step, emission;
  int frames;   /* that the initial network sees */
  int seen;     /* frames so far, up to `frames` */
  bool through; /* feedthrough */
  dv_conditions conditions;
  uint32_t *number; /* [samples] keys of the noise */
  float *x, *u;     /* [frames][n_x], [frames][n_u] first observations, and the controls that followed them */
  bool *missing;    /* [frames] */
  float *z, *mean, *deviation; /* [samples][n_z], [n_z], [n_z], one behind the other */
  size_t samples;
  float *before; /* [n_x] the frame before, where the model reads it in a step, and whether it was missing */
  bool before_missing, kept_missing;
  void *exact; /* the filter of a model with exact inference, which needs no programs; else NULL */
  /* While predictions run: what is put back afterwards, and the mean of x of one sample. */
  dv_conditions kept_conditions;
  float *kept, *kept_u, *frame; /* as z, mean and deviation; [n_u]; [n_x] */
  void *kept_exact;
} dv_online;

/* Counts, or places a filter into the room and prepares it; it stays NULL while counting. */
dvbf_status dv_online_place(dv_online **out, dv_room *room, const dvbf_model *model, size_t samples,
                            uint64_t seed, const dv_plane *plane, dvbf_error *error);
/* Forgets all observations. */
void dv_online_reset(dv_online *o);
/* With feedthrough u belongs to the frame that it comes with, else to the frame before. */
bool dv_online_feeds_through(const dv_online *o);
/* x [n_x] or NULL; u [n_u] as the model takes it, or NULL. */
void dv_online_step(dv_online *o, const float *x, const float *u);
/* Whether there is a belief. */
bool dv_online_ready(const dv_online *o);

/* What x of one step ahead is expected to be. */
typedef struct dv_expected_x {
  bool noise;              /* with the noise of the emission */
  double *mean, *variance; /* [n_x] */
  float *samples;          /* [samples][n_x]; NULL: not wanted */
} dv_expected_x;

/* Between begin and end the belief moves on without observations; end puts it back. */
void dv_online_ahead_begin(dv_online *o);
/* The step number t, counted from 0. u is as in dv_online_step. */
void dv_online_ahead(dv_online *o, uint32_t t, const float *u, const dv_expected_x *out);
void dv_online_ahead_end(dv_online *o);

#endif
