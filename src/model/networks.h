/* Networks that several models share: image encoders and decoders, a gated recurrent unit, and frames that
 * models read back. */
#pragma once

#include "model/density.h"
#include "model/model.h"

/* ---- Images ---- */

bool dv_convolves(const dvbf_model *m);

/* The input of networks from x, `steps` steps from `first` on: x itself, or its convolutional features. */
typedef struct dv_image_encoder {
  const char *name; /* of weights */
  dvbf_value value; /* [steps][rows][...] */
  double spread;    /* its mean squared length, which sets first weights */
} dv_image_encoder;
dv_image_encoder dv_image_encoder_of(dvbf_program *p, const dvbf_model *m, int first, int steps);

/* head[t] of each frame alone, from the step `first` on, by the network "recognition"; with `path` also by a
 * linear path if the settings ask for it. */
void dv_recognise_frames(dvbf_program *p, const dvbf_model *m, dvbf_value head, int first, bool path);

/* p->output from the emission's hidden units by transposed convolutions. */
void dv_record_picture(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_activation activation);

/* ---- Answers of several classes ---- */

/* 1 frame, and the setting `latent`, which is also that of a model. */
int dv_one_frame(const dvbf_model_class *self, const dvbf_settings *settings);
int dv_latent(const dvbf_model_class *self, const dvbf_settings *settings);
static inline int dv_latent_of(const dvbf_model *m) {
  return (int)m->settings->latent;
}
/* Units of the recurrent network. */
static inline int dv_units_of(const dvbf_model *m) {
  return (int)m->settings->units;
}

/* ---- Gated recurrent unit ---- */

/* A gated recurrent unit (Cho et al. 2014):
 *
 *   (r, k) = sigmoid(x W + u U + z V + h R + b)      gates
 *   c = tanh(x W' + u U' + z V' + (r h) R' + b')
 *   h' = h + k (c - h)
 *
 * Parameters are NAME.gates.x, .u, .z, .h, .bias and NAME.candidate.x, .u, .z, .h, .bias. */

typedef struct dv_gru {
  const char *name;
  dvbf_value x, u, z;  /* [steps][rows][...] inputs of each step; any may be none */
  bool x_step, z_step; /* made step by step */
  dvbf_value h;        /* [steps + 1][rows][n]; step t reads h[t] and writes h[t + 1] */
  dvbf_layer gates, candidate;
  dvbf_value reset;
} dv_gru;

void dv_gru_open(dvbf_graph *g, const dvbf_model *m, dv_gru *gru);
void dv_gru_step(dvbf_graph *g, const dv_gru *gru, int t);

/* ---- Imputed frames ---- */

/* out [1][rows][n_x] = x of step t where observed, elsewhere a draw from p(x_t | z_t) or, in programs with
 * gradients and runs without noise, its mean. z of step t must exist. unseen: x counts as unobserved. */
void dv_record_imputation(dvbf_program *p, const dvbf_model *m, dvbf_value out, int t, bool unseen);

/* Whether a program of whole sequences may have unobserved frames before its last. (Past the end of a short
 * sequence nothing counts.) */
bool dv_imputation_needed(const dvbf_program *p);
/* The same of a program of a single step: with gradients, it is a step of training on whole sequences. */
bool dv_imputation_of_step(const dvbf_program *p);
