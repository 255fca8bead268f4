/* Quantities of an experiment that an evaluation does not hold. */
#ifndef DV_MEASURE_H
#define DV_MEASURE_H

#include "evaluate/paths.h"
#include "report/points.h"
#include "study/experiment.h"

/* What is measured. */
typedef struct dv_subject {
  const dvbf_model *model;
  const dvbf_data *data, *long_data; /* test sets: as in training, and of 45 frames */
  const char *preset;                /* that both were simulated with */
  size_t observed;                   /* frames seen before prediction starts */
  uint64_t seed;
  unsigned threads;
} dv_subject;

/* Fills those entries of values [DV_QUANTITIES]: regressions away from bounces, distances of walks, and
 * shares of images that are whole and places of objects, which are those of the long sequences. */
dvbf_status dv_measure(double *values, const dv_experiment *experiment, const dv_subject *source,
                       dvbf_error *error);

/* ---- Where objects are in predictions (centres.c) ---- */

typedef struct dv_centres {
  double valid,
      close;        /* steps ahead until the error is half of the variance; until centres are a pixel apart */
  double near, far; /* mean distance of the centres over the first ten steps ahead, and over all */
} dv_centres;
/* Of x [count][steps][n_x], predicted for the test set of `data` from so many frames. */
void dv_centres_measure(dv_centres *out, const dvbf_data *data, const float *x, size_t observed);

/* ---- Walks of a pendulum that nothing drives, from one state to rest ---- */

typedef struct dv_walks {
  dv_paths *generative, *filtering; /* of the same sequences; the first sees their first frames only */
} dv_walks;

/* Simulates a few sequences of 100 steps and infers both. Free with dv_walks_free, also after a failure. */
dvbf_status dv_walks_take(dv_walks *out, const dv_subject *subject, dvbf_error *error);
void dv_walks_free(dv_walks *walks);

/* Distance between the places where both walks of a sequence come to rest (means of their last ten steps),
 * averaged over the sequences, over the spread of the samples: the root of their mean squared distance from
 * their mean. */
double dv_walks_distance(const dv_walks *walks, const dv_paths *samples);

/* Draws the walks of the first sequence before the samples, as PATH.png and PATH.svg. */
dvbf_status dv_walks_draw(const dv_walks *walks, const dv_points *samples, const char *title,
                          const char *path, dvbf_error *error);

#endif
