/* A controller: the online filter and a planner in the state space of a model.
 *
 * A complete program, for a model of one column and one control between -1 and 1, which holds x at 5:
 *
 *   #include <dvbf/control.h>
 *   #include <stdio.h>
 *   #include <stdlib.h>
 *
 *   int main(void) {
 *     dvbf_error error;
 *     dvbf_model *model = NULL;
 *     dvbf_settings *settings = NULL;
 *     dvbf_controller *controller;
 *     dvbf_control control = {0};
 *     void *memory = NULL;
 *     size_t size;
 *     float x = 5;
 *     dvbf_goal goal = {.count = 1, .x = &x};
 *     int failed = dvbf_model_load(&model, "model.safetensors", &error) ||
 *                  dvbf_settings_new(&settings, "control", &error) ||
 *                  dvbf_settings_set(settings, "low", "-1", &error) ||
 *                  dvbf_settings_set(settings, "high", "1", &error) ||
 *                  dvbf_controller_memsize(&size, model, &goal, settings, &error) ||
 *                  dvbf_controller_init(&controller, memory = aligned_alloc(64, size), size, model, &goal,
 *                                       settings, &error);
 *     while (!failed && scanf("%f", &x) == 1) {
 *       dvbf_controller_step(controller, &x, NULL, &control);
 *       printf("%g\n", control.u[0]);
 *       fflush(stdout);
 *     }
 *     if (failed) fprintf(stderr, "%s\n", error.message);
 *     free(memory);
 *     dvbf_settings_free(settings);
 *     dvbf_model_free(model);
 *     return failed;
 *   }
 */
#ifndef DVBF_CONTROL_H
#define DVBF_CONTROL_H

#include <dvbf/core.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dvbf_controller dvbf_controller;

/* Where the system is to be and to stay; with several goals, at whichever is nearest. Each is an observation
 * at rest or a latent state. Besides, with the setting goal-in = state, a goal is a known state s, which
 * follows from z as s = map (z, 1): the regression of the state on z. Arrays that are not used are NULL. */
typedef struct dvbf_goal {
  size_t count;         /* goals, at least 1 */
  const float *x;       /* [count][n_x] in units of the data; NaN: a value that is not known */
  const float *z;       /* [count][n_z], in the place of x */
  size_t n_s;           /* with goal-in = state: columns of the state, */
  const float *state;   /* [count][n_s] its goals, */
  const float *map;     /* [n_s][n_z + 1] and the regression, with the intercept last */
  const float *weights; /* [n_s], [n_z] or [n_x] of the squared distance in each column; NULL: all are 1 */
} dvbf_goal;

/* What a step gives. Arrays stay valid until the next step. */
typedef struct dvbf_control {
  bool ready;         /* there is a belief, and a plan was made from it */
  const char *reason; /* why the control is the safe one, NULL: it is the plan's */
  size_t n_u, n_z, steps;
  const float *u;      /* [n_u] the control to give now, always within its limits */
  const float *plan_u; /* [steps][n_u] the plan, of which u is the first */
  const float *plan_z; /* [steps + 1][n_z] where it is expected to lead; it begins `delay` steps after x */
  double cost;         /* of the plan; NaN where there is none */
  int iterations;      /* that improved it */
  dvbf_belief belief;
} dvbf_control;

/* Bytes that a controller needs, a multiple of 64. `settings` is of the table "control"; limits must be given
 * there. Refuses a model without controls or without a transition, one that cannot filter or has feedthrough,
 * goals of another shape, and limits that leave nothing. */
DVBF_API dvbf_status dvbf_controller_memsize(size_t *out, const dvbf_model *model, const dvbf_goal *goal,
                                             const dvbf_settings *settings, dvbf_error *error);
/* Makes a controller in memory[size], which must be aligned to 64 bytes and, like the model, outlive it.
 * Nothing to free. The goal is copied. */
DVBF_API dvbf_status dvbf_controller_init(dvbf_controller **out, void *memory, size_t size,
                                          const dvbf_model *model, const dvbf_goal *goal,
                                          const dvbf_settings *settings, dvbf_error *error);
/* x [n_x] is the new observation, NULL if it is missing; values that are not finite count as missing. u [n_u]
 * is the control that acted between x and the observation before it, NULL: the one that was given for then,
 * at the step before or `delay` steps before that. Neither allocates nor locks; the same
 * observations give the same controls, bit for bit, unless there is a deadline. */
DVBF_API void dvbf_controller_step(dvbf_controller *controller, const float *x, const float *u,
                                   dvbf_control *out);
/* Forgets all observations and the plan: the next step is a first one. */
DVBF_API void dvbf_controller_reset(dvbf_controller *controller);
/* Another goal, with as many goals and columns of the state as the first. Allocates nothing. */
DVBF_API dvbf_status dvbf_controller_aim(dvbf_controller *controller, const dvbf_goal *goal,
                                         dvbf_error *error);
/* z [count][n_z] at the goals, as they were encoded. */
DVBF_API const float *dvbf_controller_goal(const dvbf_controller *controller);

#ifdef __cplusplus
}
#endif
#endif
