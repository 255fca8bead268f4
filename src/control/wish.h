/* Settings of a controller as numbers, and goals that fit a model. */
#ifndef DV_WISH_H
#define DV_WISH_H

#include "base/settings.h"
#include "control/box.h"
#include "model/model.h"

#include <dvbf/control.h>

typedef struct dv_limits {
  double low[DV_BOX_SIZE], high[DV_BOX_SIZE], rest[DV_BOX_SIZE];
} dv_limits;

/* Reads the limits of n_u controls; refuses those that are missing or leave nothing. */
dvbf_status dv_limits_read(dv_limits *out, const dv_control_settings *settings, int n_u, dvbf_error *error);
/* Refuses goals of another shape. */
dvbf_status dv_goal_check(const dvbf_goal *goal, const dv_control_settings *settings, const dvbf_model *model,
                          dvbf_error *error);

#endif
