/* The table "train": the settings of all models and of their training. */
#ifndef DV_MODEL_SETTINGS_H
#define DV_MODEL_SETTINGS_H

#include "base/settings.h"

#include <dvbf/graph.h>

/* Names for the choices of models; those of training and data are in base/settings.h. */
#define DV_LINES 1 /* choices */
#include "base/setting_lines.h"

#include "model/tables.def"

#define DV_LINES 2 /* fields */
#include "base/setting_lines.h"
typedef struct dv_train_settings {
#include "base/settings_train.def"
#include "model/tables.def"
  dv_data_settings data;
} dv_train_settings;
#include "base/setting_lines.h"
DV_ACCESS(train, "train")

/* For DV_COMPUTE. */
static inline bool dv_settings_portable(const dvbf_settings *settings) {
  const dv_train_settings *s = dv_settings_train(settings, NULL);
  return s && s->arithmetic == DV_ARITHMETIC_PORTABLE;
}

/* Whether a model of this class has said that it uses that set of settings. */
bool dv_model_class_lists(const dvbf_model_class *type, const char *set);

/* Refuses a setting that the user has named although a model of this class (NULL: that of the settings) does
 * not use it or, where the likelihood is chosen for good, although its density does not. */
dvbf_status dv_settings_fit_model(const dvbf_settings *settings, const dvbf_model_class *type,
                                  bool with_density, dvbf_error *error);

#endif
