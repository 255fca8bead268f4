/* What one thread needs to run a program over sequences. */
#ifndef DV_WORKER_H
#define DV_WORKER_H

#include "exec/shift.h"

typedef struct dv_worker {
  const dvbf_model *model;
  const dvbf_program *program;
  dvbf_run run;  /* with the model's parameters; its conditions and the keys of its noise are the caller's */
  float *frames; /* [steps][n_x] room for x of one sequence where it is read from a file, else NULL */
  const dv_shift *shift; /* moves the images that are loaded; NULL: they stay as they are */
} dv_worker;

/* For a program of `model` and sequences like those of `s`, NULL where none are loaded. All must outlive it.
 * Clear it also after a failure. */
dvbf_status dv_worker_init(dv_worker *worker, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error);
void dv_worker_clear(dv_worker *worker);

/* `count` of them in one array. */
dvbf_status dv_workers_new(dv_worker **out, int count, const dvbf_model *model, const dvbf_program *program,
                           const dvbf_sequences *s, dvbf_error *error);
void dv_workers_free(dv_worker *workers, int count);

/* Fills the inputs with sequences index[0 .. count-1], rows past `count` with weight 0. Steps from `observe`
 * on, and past a sequence's length, are masked, as is NaN; masked values are 0. */
void dv_worker_load(dv_worker *worker, const dvbf_sequences *from, const uint32_t *index, int count,
                    int observe);

#endif
