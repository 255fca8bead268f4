/* Parts of a controller, for the export of its code. */
#pragma once

#include "control/planner.h"

#include <dvbf/control.h>

/* Its settings and the task. */
const dv_planner *dv_controller_planner(const dvbf_controller *controller);

/* Largest gain of the linear controller at a goal, in half widths of the limits per unit of z, over goals and
 * controls; infinite if there is none. If it is large, the state at the goal grows in this model and hardly
 * answers to controls. */
double dv_controller_effort(const dvbf_controller *controller);
