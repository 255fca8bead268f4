/* The linear model: its parameters as a system, in the scaled units of the model. */
#pragma once

#include "math/kalman.h"
#include "model/model.h"

/* Fills a system of the model's sizes, and the parameters of a model from such a system. */
void dv_linear_get(const dvbf_model *m, dv_system *out);
void dv_linear_set(dvbf_model *m, const dv_system *from, double *scratch /* [(n_x + n_z)^2] */);

/* The hooks of exact inference (linear_gaussian.c). */
dvbf_status dv_linear_exact(const dvbf_model_class *self, const dvbf_model *m, const dvbf_exact *asked,
                            dvbf_error *error);
size_t dv_linear_online_size(const dvbf_model_class *self, const dvbf_model *m);
void dv_linear_online_begin(const dvbf_model_class *self, const dvbf_model *m, void *memory, uint64_t seed);
void dv_linear_online_step(const dvbf_model_class *self, const dvbf_model *m, void *memory, const float *x,
                           const float *u, size_t samples, float *mean, float *deviation, float *z);
void dv_linear_online_ahead(const dvbf_model_class *self, const dvbf_model *m, void *memory, const float *u,
                            bool noise, float *mean, float *deviation, double *x_mean, double *x_variance);
