/* Densities p(x | z). A density is one object in a file of its own and one line in densities.def; emission,
 * prediction, validation and the choice of settings use the object and never ask which one it is. */
#pragma once

#include "data/dataset.h"
#include "model/model.h"

/* One frame of a program that has run: where its parameters are, and what keys its random numbers. */
typedef struct dv_density_frame {
  const dvbf_model *model;
  const dvbf_program *program;
  const dvbf_run *run;
  int step, row;     /* of the program */
  const float *mean; /* [n_x] of x, in units of the data */
  uint64_t seed;
  uint32_t sequence, sample, t;
} dv_density_frame;

typedef struct dv_density {
  /* Records the parameters, p->output and p->shape, from the hidden units [T][rows][hidden] of the emission,
   * and p->ln_p. mask [T][rows][1 or n_x] marks observed values. */
  void (*record)(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask);
  /* Activation of the emission's output; NULL: linear. */
  dvbf_activation (*activation)(const dv_train_settings *s);
  /* The mean of one value of x, as the model sees it, from its output (NULL: the output itself); and the
   * output with this mean (NULL: the mean itself), from which the emission's bias starts. */
  double (*mean)(double output);
  double (*first_output)(const dv_train_settings *s, double mean);
  /* Takes further first values from the data; NULL: there are none. */
  dvbf_status (*look)(dvbf_model *m, const dvbf_sequences *train, dvbf_error *error);
  /* For export, in code: that mean, and the variance of each value of x as the model sees it, from its mean
   * and p->shape. emit_mean is NULL if `mean` is. */
  dvbf_expr (*emit_mean)(dvbf_code *code, dvbf_expr output);
  dvbf_expr (*emit_variance)(dvbf_code *code, const dvbf_program *p, const dvbf_model *m, dvbf_expr mean);
  /* Adds the variance of each value of x to variance [n_x], and draws x [n_x], in units of the data. */
  void (*add_variance)(const dv_density_frame *frame, double *variance);
  void (*draw)(const dv_density_frame *frame, float *x);
  /* Whether x may be shifted and scaled by x-scaling. */
  bool (*scales)(const dv_train_settings *s);
  /* Why it suits the data better than the default, in a few words, or NULL if it does not; NULL: it is the
   * default. */
  const char *(*suits)(const dvbf_sequences *train, const dv_statistics *x);
  /* A setting of its own that follows from the data, and the text of its value; NULL: none. */
  const char *setting;
  void (*choose)(const dvbf_sequences *train, const dv_statistics *x, char *value, size_t size);
  /* The column of a frame x [n_x] whose value it cannot have, or -1; NaN is missing and may be anywhere.
   * NULL: x may be anything. `needs` describes valid x, for the message. */
  int (*refuses)(const dvbf_model *m, const float *x);
  const char *needs;
  /* ln p of one value with this mean, for data judged by likelihood; NULL: they are judged by squared
   * errors. */
  double (*ln_value)(double x, double mean);
  /* first [n_x]: the first column of the group that each column belongs to; NULL: each stands alone. */
  void (*groups)(const dvbf_model *m, int *first);
  /* Whether statistics of x suffice to know that no frame is refused; NULL: they never do. */
  bool (*accepts)(const dv_statistics *x);
  bool joint;      /* a mean depends on the outputs of other values too */
  bool notes;      /* it is chosen for columns that noise drives, and no others */
  bool on_request; /* never chosen automatically, only recommended */
  bool sigma;      /* it has a sigma, with a floor, and the settings named sigma */
  bool normal;     /* x is normal, so that its principal components can have it too, and a linear system */
} dv_density;

#define DENSITY(object, name) extern const dv_density dv_##object;
#include "model/densities.def"
#undef DENSITY

static inline double dv_density_mean(const dv_density *density, double output) {
  return density->mean ? density->mean(output) : output;
}

/* Derivative of the mean by the output. Every density's mean is smooth; differences are exact to 1e-9. */
static inline double dv_density_slope(const dv_density *density, double output) {
  const double step = 1e-4;
  return (dv_density_mean(density, output + step) - dv_density_mean(density, output - step)) / (2 * step);
}

const dv_density *dv_density_of(const dv_train_settings *s);
/* That of line `index` with its name, or NULL after the last. */
const dv_density *dv_density_at(size_t index, const char **name);

/* Refuses sequences with a value that the density of the model cannot have. */
dvbf_status dv_density_check(const dvbf_model *model, const dvbf_sequences *s, dvbf_error *error);

/* ---- Parts of densities ---- */

/* p->output [T][rows][n_x] = activation(hidden W + b), plus z H with linear paths and u D with feedthrough.
 */
void dv_record_output(dvbf_program *p, const dvbf_model *m, dvbf_value hidden);
/* That layer, of a slab of its own; its inputs may be made step by step. */
dvbf_layer dv_output_layer(dvbf_graph *g, const dvbf_model *m, dvbf_value out, dvbf_value hidden,
                           dvbf_value z, dvbf_value u);
/* ln sigma as [1][1], [1][n_x] or [T][rows][n_x]; how it is learned is the setting `sigma`. With dropped =
 * zero or gain-updates > 0, frames that the filter has not seen have another one. */
dvbf_value dv_record_log_sigma(dvbf_program *p, const dvbf_model *m, dvbf_value hidden);

enum { DV_DENSITY_CHUNK = 64 }; /* columns that are dealt with at once */
/* sigma [n] of the columns from `first` on, in units of the data, from `log_sigma`, one of the parameters. */
void dv_density_sigma(const dv_density_frame *frame, dvbf_value log_sigma, size_t first, size_t n,
                      double *sigma);
/* A random word for each of the columns from `first`, a multiple of 4, to the last one or the end of the
 * chunk, and up to three more; a whole chunk behind the last column. Returns their number. */
size_t dv_density_words(const dv_density_frame *frame, size_t first, uint32_t words[DV_DENSITY_CHUNK]);

/* The answer `scales` of a density that takes x as it is. */
bool dv_density_unscaled(const dv_train_settings *s);
/* p (1 - p), of values that are 0 or 1. */
void dv_density_bits_variance(const dv_density_frame *frame, double *variance);

/* A first output: the logit of a mean, which is kept away from 0 and 1. */
double dv_logit(const dv_train_settings *s, double mean);
double dv_sigmoid(double logit);

/* Parts of code: sigma^2 from ln sigma, one of the parameters; and p (1 - p). */
dvbf_expr dv_density_emit_square(dvbf_code *code, const dvbf_model *m, dvbf_value log_sigma);
dvbf_expr dv_density_emit_bits(dvbf_code *code, const dvbf_program *p, const dvbf_model *m, dvbf_expr mean);
