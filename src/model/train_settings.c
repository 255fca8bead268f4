/* The table "train", assembled from the settings of data (src/data) and those of training, models and
 * densities, and the rule which model class uses which settings. A setting that the user names but the model
 * does not use is refused (dv_settings_fit_model, dvbf_settings_check). */
#include "model/train_settings.h"

#include "base/error.h"
#include "model/density.h"

#include <stdio.h>
#include <string.h>

#define DV_LINES 3 /* entries */
#include "base/settings_lines.h"

/* Names of all models and of all densities, each after a bar. */
#define MODEL OF
static const char models[] =
#include "model/models.def"
    ;
#define DV_MODELS models

#define DENSITY OF
static const char densities[] =
#include "model/densities.def"
    ;
#define DV_DENSITIES densities

static const dv_setting entries[] = {
#include "model/settings_train.def"
#undef BEGIN
#define BEGIN offsetof(dv_train_settings, data)
#undef SET
#define SET NULL
#include "data/settings_data.def"
};
_Static_assert(sizeof entries / sizeof *entries <= DV_MOST_SETTINGS, "raise DV_MOST_SETTINGS");

/* ---- Users of a setting ---- */

/* Whether a list of words has that one. */
static bool has_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " "))
    if (!strncmp(at, word, length) && strchr(" ", at[length])) return true;
  return false;
}

bool dv_model_class_lists(const dvbf_model_class *type, const char *set) {
  return type->settings && has_word(type->settings, set);
}

static bool takes(const dvbf_model_class *type, const char *set) {
  return !set || !strcmp(set, "all") || !type->settings || has_word(type->settings, set);
}

/* The density that has a set of settings; NULL: it is one of models. */
static const dv_density *density_of_set(const char *set) {
  const char *name;
  const dv_density *d;
  for (size_t i = 0; set && (d = dv_density_at(i, &name)); i++)
    if (!strcmp(name, set)) return d;
  return NULL;
}

/* The density or the models that use a set, as "a, b"; NULL: all. */
static const char *users_of(const char *set) {
  static _Thread_local char text[160];
  const dvbf_model_class *type;
  bool all = true;
  if (density_of_set(set)) return set;
  *text = 0;
  for (size_t i = 0; (type = dv_model_class_at(i)); i++) {
    size_t used = strlen(text);
    if (takes(type, set))
      snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", type->name);
    else
      all = false;
  }
  return all ? NULL : text;
}

/* For help, which need not name all models that are trained by gradients. */
static const char *users(const char *set) {
  return set && !strcmp(set, "training") ? NULL : users_of(set);
}

static const char *const written[] = {"Model",    "Emission", "First values", "Bound",
                                      "Training", "Running",  "Data",         NULL};

const dv_table dv_train_table = {.name = "train",
                                 .settings = entries,
                                 .count = sizeof entries / sizeof *entries,
                                 .size = sizeof(dv_train_settings),
                                 .data = offsetof(dv_train_settings, data),
                                 .written = written,
                                 .former = dv_former_settings,
                                 .users = users};

/* ---- Refusing unused settings ---- */

typedef struct chosen {
  const dvbf_model_class *type;
  const dv_density *density; /* NULL: not yet chosen */
} chosen;

static bool is_used(const char *set, const void *user) {
  const chosen *c = user;
  const dv_density *d = density_of_set(set);
  return d ? !c->density || d == c->density : takes(c->type, set);
}

dvbf_status dv_settings_fit_model(const dvbf_settings *settings, const dvbf_model_class *type,
                                  bool with_density, dvbf_error *error) {
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (!s) return DVBF_ARGUMENT;
  if (!type) type = dv_model_class_of(s);
  chosen c = {type, with_density ? dv_density_of(s) : NULL};
  const dv_setting *unused = dv_settings_unused(settings, is_used, &c);
  if (!unused) return DVBF_OK;
  const char *set = unused->only ? unused->only : unused->of;
  char value[DV_TEXT] = "", likelihood[DV_TEXT] = "";
  dvbf_settings_get(settings, unused->name, value, sizeof value, NULL);
  dvbf_settings_get(settings, "likelihood", likelihood, sizeof likelihood, NULL);
  bool of_density = density_of_set(set);
  return dv_fail(error, DVBF_ARGUMENT,
                 "%s = %.60s: %s = %s does not use this setting, which belongs to %s; leave it out",
                 unused->name, value, of_density ? "likelihood" : "model",
                 of_density ? likelihood : type->name, users_of(set));
}

dvbf_status dvbf_settings_check(const dvbf_settings *settings, dvbf_error *error) {
  return dv_settings_fit_model(settings, NULL, false, error);
}
