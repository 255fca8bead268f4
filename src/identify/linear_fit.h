/* The best linear model of some data, as a model. */
#pragma once

#include "identify/identify.h"
#include "model/model.h"

/* A model of the class linear with the scaling that `like` asks for. Order, window and feedthrough are chosen
 * by blocked cross-validation of one step and free run over training and validation sequences together.
 * `interrupt` as in dv_identify_order. *out, which must be NULL, stays NULL where the data have none. */
dvbf_status dv_identify_model(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data,
                              const volatile int *interrupt, dvbf_error *error);

/* The best linear system of the training data with at most n_z states, and the recordings, both in the
 * model's units; with feedthrough if its setting says so. Clear both, also after a failure. `interrupt` as in
 * dv_identify_order. */
dvbf_status dv_linear_system(dv_state_space *out, dv_recordings *recordings, const dvbf_model *m,
                             const dvbf_data *data, const volatile int *interrupt, dvbf_error *error);
/* Facts about data from a linear model of the first few thousand frames of training. */
typedef struct dv_linear_facts {
  int order;
  bool feedthrough; /* x answers to u at once */
  double sigma;     /* the deviation of its innovations, in units of the deviation of x */
  double free_run;  /* its error in free runs, over that of the mean */
} dv_linear_facts;
dvbf_status dv_identify_summary(dv_linear_facts *out, const dvbf_data *data, const volatile int *interrupt,
                                dvbf_error *error);

/* Name of the class of these models. */
const char *dv_linear_name(void);

/* Called after each of at most `most` iterations with ln p(x) in nats per frame. False stops the fit, which
 * then succeeds with its present result. */
typedef bool dv_fit_watch_fn(int iteration, int most, double log_p, void *user);
typedef struct dv_fit_watch {
  dv_fit_watch_fn *each;
  void *user;
} dv_fit_watch;

/* Makes a model that is not trained by gradients, of the class of the settings. `told` receives a sentence
 * about it. */
typedef dvbf_status dv_fit_fn(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                              dv_fit_watch watch, char *told, size_t size, dvbf_error *error);
/* NULL: models of the class are trained. */
dv_fit_fn *dv_fit_of(const dvbf_model_class *type);
