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

/* Where the system should be and stay; with several goals, the nearest one. Each goal is an observation at
 * rest or a latent state. With the setting goal-space = state, a goal is a known state s, which follows from
 * z by the regression s = map (z, 1). Unused arrays are NULL. */
typedef struct dvbf_goal {
  size_t count;         /* goals, at least 1 */
  const float *x;       /* [count][n_x] in units of the data; NaN: an unknown value */
  const float *z;       /* [count][n_z], instead of x */
  size_t n_s;           /* with goal-space = state: columns of the state */
  const float *state;   /* [count][n_s] goals */
  const float *map;     /* [n_s][n_z + 1] regression, intercept last */
  const float *weights; /* [n_s], [n_z] or [n_x] of the squared distance in each column; NULL: all are 1 */
} dvbf_goal;

/* Result of a step. Arrays stay valid until the next step. */
typedef struct dvbf_control {
  bool ready;         /* the belief is ready, and a plan was made from it */
  const char *reason; /* why the safe control is given; NULL: it is the plan's */
  size_t n_u, n_z, steps;
  const float *u;      /* [n_u] the control to apply now, always within its limits */
  const float *plan_u; /* [steps][n_u] the plan, of which u is the first */
  const float *plan_z; /* [steps + 1][n_z] the expected states, starting `delay` steps after x */
  double cost;         /* of the plan; NaN without a plan */
  int iterations;      /* that improved the plan */
  dvbf_belief belief;
} dvbf_control;

/* Bytes needed by a controller, a multiple of 64. `settings` is of the table "control" and must contain
 * limits. Refuses a model without controls or without a transition, one that cannot filter or has
 * feedthrough, goals of the wrong shape, and empty limits. */
DVBF_API dvbf_status dvbf_controller_memsize(size_t *out, const dvbf_model *model, const dvbf_goal *goal,
                                             const dvbf_settings *settings, dvbf_error *error);
/* Creates a controller in memory[size], which must be aligned to 64 bytes and, like the model, outlive it.
 * There is nothing to free. The goal is copied. */
DVBF_API dvbf_status dvbf_controller_init(dvbf_controller **out, void *memory, size_t size,
                                          const dvbf_model *model, const dvbf_goal *goal,
                                          const dvbf_settings *settings, dvbf_error *error);
/* x [n_x] is the new observation, NULL if it is missing; values that are not finite count as missing. u
 * [n_u] is the control that acted between the previous observation and x; NULL: the one that this controller
 * gave for that interval, one step or `delay` steps earlier. Neither allocates nor locks; the same
 * observations give the same controls, bit for bit, unless there is a deadline. */
DVBF_API void dvbf_controller_step(dvbf_controller *controller, const float *x, const float *u,
                                   dvbf_control *out);
/* Forgets all observations and the plan: the next step is treated as the first. */
DVBF_API void dvbf_controller_reset(dvbf_controller *controller);
/* Sets another goal, with the same number of goals and of state columns as the first. Allocates nothing. */
DVBF_API dvbf_status dvbf_controller_aim(dvbf_controller *controller, const dvbf_goal *goal,
                                         dvbf_error *error);
/* z [count][n_z] of the encoded goals. */
DVBF_API const float *dvbf_controller_goal(const dvbf_controller *controller);

#ifdef __cplusplus
}
#endif
#endif
