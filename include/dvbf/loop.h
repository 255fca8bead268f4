/* Closed loops: a simulated system, a model that is learned of it from pictures, and a controller on the
 * model.
 */
#ifndef DVBF_LOOP_H
#define DVBF_LOOP_H

#include <dvbf/control.h>
#include <dvbf/dvbf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name of a system whose goal is known, by index: "pendulum", "cart-pole", "arm", "planar"; NULL past the
 * last. */
DVBF_API const char *dvbf_loop_system(size_t index);

/* What is to be done. */
typedef struct dvbf_loop {
  const dvbf_settings *system;  /* of the table of the system, which simulates the first data too */
  const dvbf_settings *train;   /* of the table "train" */
  const dvbf_settings *control; /* of the table "control"; limits that it lacks are those of the system */
  const dvbf_settings *loop;    /* of the table "loop" */
  const dvbf_model *model;      /* one that is there already, so that nothing is trained; NULL: train */
  const char *folder;         /* receives the run of the last training, control.json, control.html, a strip of
                                 pictures and a video; made if it is missing */
  bool force;                 /* replaces what is there */
  dvbf_progress_fn *progress; /* of training; NULL: none */
  dvbf_remark_fn *tell;       /* told what is being done; NULL: nobody is */
  void *user_data;            /* handed to both */
} dvbf_loop;

/* How the closed loops went. */
typedef struct dvbf_loop_outcome {
  size_t episodes, steps;
  size_t sequences; /* that the model was trained on, of `frames` frames each; 0: nothing was trained */
  size_t frames;
  double seconds; /* of all trainings */
  double share;   /* of the steps in the goal region */
  size_t reached,
      held;            /* closed loops that came there, and that were there during all of their second half */
  size_t recovered;    /* with a push: those that were there during the last quarter of their steps */
  double value;        /* mean over closed loops of - sum (distance^2 + 0.1 velocity^2 + 0.001 u^2) */
  double median, late; /* microseconds of a step of the controller: median, and 99 % are below the second */
  double *share_of;    /* [episodes] the same of each closed loop */
  double *value_of;    /* [episodes] */
} dvbf_loop_outcome;

/* Collects data, trains, controls, and judges; with several trainings, each but the first has closed loops of
 * the model before it among its data. One more follows where by the model controls hardly hold it at the
 * goal. The same settings give the same outcome, but for times. Free *out with dvbf_loop_outcome_free. */
DVBF_API dvbf_status dvbf_learn_control(dvbf_loop_outcome **out, const dvbf_loop *asked, dvbf_error *error);
DVBF_API void dvbf_loop_outcome_free(dvbf_loop_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
