/* The best linear model of some data, as a model. */
#ifndef DV_FIT_H
#define DV_FIT_H

#include "identify/choose.h"
#include "model/model.h"

/* A model of the class linear with the scaling that `like` asks for. Order, window and feedthrough are chosen
 * by blocked cross-validation of one step and free run over training and validation sequences together. The
 * flag of `like` ends this with DVBF_STOPPED. */
dvbf_status dv_linear_best(dvbf_model **out, const dvbf_settings *like, const dvbf_data *data,
                           dvbf_error *error);

/* The best linear system of the training data with at most n_z states, and the recordings, both in the units
 * of the model; with feedthrough where its setting says so. Clear both, also after a failure. `interrupt` as
 * in dv_linear_choose. */
dvbf_status dv_linear_system(dv_system *out, dv_recordings *recordings, const dvbf_model *m,
                             const dvbf_data *data, const volatile int *interrupt, dvbf_error *error);
/* What a linear model says about the data, from the first few thousand frames of training. */
typedef struct dv_linear_facts {
  int order;
  bool feedthrough; /* x answers to u at once */
  double sigma;     /* the deviation of its innovations, in units of the deviation of x */
  double free_run;  /* its error in free runs, over that of the mean */
} dv_linear_facts;
dvbf_status dv_linear_look(dv_linear_facts *out, const dvbf_data *data, const volatile int *interrupt,
                           dvbf_error *error);

/* What the class of these models is called. */
const char *dv_linear_name(void);

/* Told how far a fit is: after each of at most `most` iterations, ln p(x) in nats per frame. False stops it;
 * it then succeeds with what it has. */
typedef bool dv_fit_watch_fn(int iteration, int most, double log_p, void *user);
typedef struct dv_fit_watch {
  dv_fit_watch_fn *each;
  void *user;
} dv_fit_watch;

/* How a model that is not trained by gradients is made: one that has the class of the settings. `told`
 * receives a sentence about it. */
typedef dvbf_status dv_fit_fn(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                              dv_fit_watch watch, char *told, size_t size, dvbf_error *error);
/* NULL: models of the class are trained. */
dv_fit_fn *dv_fit_of(const dvbf_model_class *type);

#endif
