/* What a controller is made of, for those who write it down. */
#ifndef DV_CONTROLLER_H
#define DV_CONTROLLER_H

#include "base/settings.h"
#include "control/task.h"

#include <dvbf/control.h>

const dv_task *dv_controller_task(const dvbf_controller *controller);
const dv_control_settings *dv_controller_settings(const dvbf_controller *controller);

/* How strongly the linear controller at a goal answers, in half widths of the limits for a unit of z, at most
 * over goals and controls; infinite where there is none. A large number says that by the model the state at
 * the goal hardly answers to controls while it grows. */
double dv_controller_effort(const dvbf_controller *controller);

#endif
