/* The linear model: its parameters as a system, in the scaled units of the model. */
#pragma once

#include "math/kalman.h"
#include "model/model.h"

/* Fills a system of the model's sizes, and the parameters of a model from such a system. */
void dv_linear_get(const dvbf_model *m, dv_state_space *out);
void dv_linear_set(dvbf_model *m, const dv_state_space *from, double *scratch /* [(n_x + n_z)^2] */);
