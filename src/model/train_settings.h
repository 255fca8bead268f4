/* The table "train": the settings of all models and of their training. */
#pragma once

#include "settings_tables.h"

#include <dvbf/graph.h>

/* Choices of models; those of data are in settings_tables.h. */
#define DV_LINES 1 /* choices */
#include "base/settings_lines.h"

#include "model/settings_train.def"

#define DV_LINES 2 /* fields */
#include "base/settings_lines.h"
typedef struct dv_train_settings {
#include "model/settings_train.def"
  dv_data_settings data;
} dv_train_settings;
#include "base/settings_lines.h"
DV_ACCESS(train, "train")

/* Bounds of ln sigma of q(w), of q(z) and of its prior; scales of first weights from z and u to
 * q(w), and from the hidden units of the emission to x, times the root of their number. */
#define DV_LOG_SIGMA_MIN -8
#define DV_LOG_SIGMA_MAX 2.5
#define DV_SCALE_RECOGNITION 0.5
#define DV_SCALE_PICTURE 0.02

/* Frames that a prediction is made from where the model does not say. */
static inline int dv_settings_predict_from(const dv_train_settings *s) {
  return s->initial_frames ? (int)s->initial_frames : 5;
}

/* For DV_COMPUTE. */
static inline bool dv_settings_portable(const dvbf_settings *settings) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  return s && s->arithmetic == DV_ARITHMETIC_PORTABLE;
}

/* Whether models of this class use that set of settings. */
bool dv_model_class_lists(const dvbf_model_class *type, const char *set);

/* Refuses a setting that the user has named but that a model of this class (NULL: that of the settings) or,
 * if the likelihood is final, its density does not use. */
dvbf_status dv_settings_fit_model(const dvbf_settings *settings, const dvbf_model_class *type,
                                  bool with_density, dvbf_error *error);
