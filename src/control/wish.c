#include "control/wish.h"

#include "base/locale.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers with commas between; one stands for all. False where the text is anything else. */
static bool read_list(const char *text, double *out, int count) {
  int found = 0;
  DV_PLAIN_NUMBERS;
  for (const char *at = text; found < count; at++) {
    char *end = NULL;
    out[found++] = strtod(at, &end);
    if (end == at || isnan(out[found - 1])) return false;
    at = end + strspn(end, " ");
    if (!*at) break;
    if (*at != ',' || found == count) return false;
  }
  for (int i = 1; found == 1 && i < count; i++) out[i] = out[0];
  return found == 1 || found == count;
}

static dvbf_status refuse(const char *name, const char *text, int n_u, dvbf_error *error) {
  if (!*text)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "low and high, the limits of the %d controls, are missing: a controller must know what it may "
        "give",
        n_u);
  return dv_fail(error, DVBF_ARGUMENT, "%s = %.60s: must be one number, or %d with commas between", name,
                 text, n_u);
}

dvbf_status dv_limits_read(dv_limits *out, const dv_control_settings *s, int n_u, dvbf_error *error) {
  if (n_u > DV_BOX_SIZE)
    return dv_fail(error, DVBF_ARGUMENT, "a controller has at most %d controls, and this model has %d",
                   DV_BOX_SIZE, n_u);
  if (!read_list(s->low, out->low, n_u)) return refuse("low", s->low, n_u, error);
  if (!read_list(s->high, out->high, n_u)) return refuse("high", s->high, n_u, error);
  if (!read_list(*s->rest ? s->rest : "0", out->rest, n_u)) return refuse("rest", s->rest, n_u, error);
  for (int i = 0; i < n_u; i++) {
    if (!(out->low[i] <= out->high[i]))
      return dv_fail(error, DVBF_ARGUMENT,
                     "low = %g is above high = %g for control %d, so that no value is left", out->low[i],
                     out->high[i], i + 1);
    if (out->low[i] == INFINITY || out->high[i] == -INFINITY || !isfinite(out->rest[i]))
      return dv_fail(error, DVBF_ARGUMENT, "the limits of control %d leave no finite value", i + 1);
  }
  return DVBF_OK;
}

static dvbf_status check_numbers(const char *what, const float *values, size_t count, bool gaps,
                                 dvbf_error *error) {
  size_t seen = 0;
  for (size_t i = 0; values && i < count; i++) {
    if (!isfinite(values[i]) && !(gaps && isnan(values[i])))
      return dv_fail(error, DVBF_ARGUMENT, "%s of the goal is not finite at number %zu", what, i + 1);
    seen += isfinite(values[i]) != 0;
  }
  if (values && !seen) return dv_fail(error, DVBF_ARGUMENT, "%s of the goal has no value at all", what);
  return DVBF_OK;
}

dvbf_status dv_goal_check(const dvbf_goal *goal, const dv_control_settings *s, const dvbf_model *m,
                          dvbf_error *error) {
  bool by_state = s->space == DV_GOAL_STATE;
  if (goal->count < 1 || goal->count > 65536)
    return dv_fail(error, DVBF_ARGUMENT, "%zu goals: must be in [1, 65536]", goal->count);
  if (!goal->x && !goal->z && !(by_state && goal->state))
    return dv_fail(error, DVBF_ARGUMENT, "the goal is empty: it needs an observation x or a latent state z");
  if (s->space == DV_GOAL_X && !goal->x)
    return dv_fail(error, DVBF_ARGUMENT, "goal-in = x needs an observation x as the goal");
  if (by_state && (!goal->state || !goal->map || !goal->n_s))
    return dv_fail(error, DVBF_ARGUMENT, "goal-in = state needs a state as the goal and its regression on z");
  if (by_state && goal->n_s > 65536)
    return dv_fail(error, DVBF_ARGUMENT, "%zu columns of the state: must be in [1, 65536]", goal->n_s);
  size_t n_x = (size_t)m->n_x, n_z = (size_t)m->n_z, n_s = by_state ? goal->n_s : 0;
  size_t n_weights = by_state ? n_s : s->space == DV_GOAL_X ? n_x : n_z;
  dvbf_status status = check_numbers("x", goal->x, goal->count * n_x, true, error);
  if (!status) status = check_numbers("z", goal->z, goal->count * n_z, false, error);
  if (!status && by_state) status = check_numbers("state", goal->state, goal->count * n_s, false, error);
  if (!status && by_state) status = check_numbers("map", goal->map, n_s * (n_z + 1), false, error);
  if (!status) status = check_numbers("weights", goal->weights, n_weights, false, error);
  for (size_t i = 0; !status && goal->weights && i < n_weights; i++)
    if (goal->weights[i] < 0)
      status = dv_fail(error, DVBF_ARGUMENT, "weight %zu of the goal is %g: must be at least 0", i + 1,
                       (double)goal->weights[i]);
  return status;
}
