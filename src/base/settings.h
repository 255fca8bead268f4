/* Settings: the tables they are declared in, objects with their values, and presets. A setting is declared
 * once, in settings_*.def; the struct field, default, range check, command-line flag, help, config file,
 * model metadata and manual all come from there. */
#ifndef DV_BASE_SETTINGS_H
#define DV_BASE_SETTINGS_H

#include <dvbf/core.h>

/* Choices that several tables share. */
#define DV_SPLITS                                                                                            \
  OF(DV_SPLIT_TRAIN, "train") OF(DV_SPLIT_VALID, "valid") OF(DV_SPLIT_TEST, "test") OF(DV_SPLIT_ALL, "all")
#define DV_CONTROLS                                                                                          \
  OF(DV_CONTROLS_REFUSE, "refuse")                                                                           \
  OF(DV_CONTROLS_ZERO, "zero") OF(DV_CONTROLS_HOLD, "hold") OF(DV_CONTROLS_RANDOM, "random")
#define DV_PRODUCTS OF(DV_FLOAT, "float") OF(DV_BFLOAT16X3, "bfloat16x3") OF(DV_BFLOAT16, "bfloat16")
#define DV_FROM OF(DV_FROM_START, "start") OF(DV_FROM_END, "end")

/* Names for all choices, in their order. */
#define DV_LINES 1 /* choices */
#include "base/settings_lines.h"
enum { DV_SPLITS };
enum { DV_CONTROLS };
enum { DV_FROM };
enum { DV_PRODUCTS };
#include "control/settings_control.def"
#include "data/settings_data.def"
#include "experiments/settings_systems.def"
#include "export/settings_export.def"

enum { DV_TEXT = 512 }; /* bytes of a text setting */

/* The values of each table. That of "train" is in model/train_settings.h. */
#define DV_LINES 2 /* fields */
#include "base/settings_lines.h"
typedef struct dv_control_settings {
#include "control/settings_control.def"
} dv_control_settings;
typedef struct dv_loop_settings {
#include "experiments/settings_loop.def"
} dv_loop_settings;
typedef struct dv_data_settings {
#include "data/settings_data.def"
} dv_data_settings;
typedef struct dv_evaluate_settings {
#include "evaluate/settings_evaluate.def"
} dv_evaluate_settings;
typedef struct dv_export_settings {
#include "export/settings_export.def"
} dv_export_settings;
typedef struct dv_filter_settings {
#include "infer/settings_filter.def"
} dv_filter_settings;
typedef struct dv_smooth_settings {
#include "infer/settings_smooth.def"
} dv_smooth_settings;
typedef struct dv_predict_settings {
#include "infer/settings_predict.def"
} dv_predict_settings;
typedef struct dv_sample_settings {
#include "infer/settings_sample.def"
} dv_sample_settings;
#include "experiments/settings_systems.def"

#include "base/settings_lines.h"

/* ---- Tables ---- */

typedef enum dv_kind { DV_KIND_INT, DV_KIND_REAL, DV_KIND_CHOICE, DV_KIND_SWITCH, DV_KIND_TEXT } dv_kind;

/* A line of a table. */
typedef struct dv_setting {
  dv_kind kind;
  bool common; /* what most people need: short help lists it */
  const char *name, *initial, *group, *help;
  const char *choices;   /* as "a|b|c", NULL if there are none */
  const char *of, *only; /* set of settings that its file, and that the line itself, names; NULL: none */
  const char *after;     /* name of the setting that it stands behind; NULL: the line before */
  size_t offset;         /* of the value */
  double low, high;
} dv_setting;

typedef struct dv_table {
  const char *name;
  const dv_setting *settings; /* [count] */
  size_t count, size;         /* size of the values */
  size_t data;                /* where the values of the table "data" lie among them; 0: they are no part */
  const char *const *written; /* groups that files always have, up to NULL; others only have what is not the
                                 default. NULL: files have all */
  /* Who uses a set of settings, as "a, b"; NULL: everybody. May be NULL. */
  const char *(*users)(const char *set);
} dv_table;

enum { DV_MOST_SETTINGS = 160 }; /* of a table */

/* The table "train": the settings of all models and of their training (model/train_settings.c). */
extern const dv_table dv_train_table;

/* ---- Values ---- */

/* The values, or NULL and a message if `settings` is of another table. */
const void *dv_settings_values(const dvbf_settings *settings, const char *table, dvbf_error *error);
/* The values of the table "data", or of the same part of "train". */
const dv_data_settings *dv_settings_data(const dvbf_settings *settings, dvbf_error *error);
#define DV_ACCESS(type, table)                                                                               \
  static inline const dv_##type##_settings *dv_settings_##type(const dvbf_settings *s, dvbf_error *error) {  \
    return (const dv_##type##_settings *)dv_settings_values(s, table, error);                                \
  }
DV_ACCESS(control, "control")
DV_ACCESS(loop, "loop")
DV_ACCESS(evaluate, "evaluate")
DV_ACCESS(export, "export")
DV_ACCESS(filter, "filter")
DV_ACCESS(smooth, "smooth")
DV_ACCESS(predict, "predict")
DV_ACCESS(sample, "sample")

/* Whether the user has chosen a value: by name, by a preset (all values) or by a file. */
bool dv_settings_given(const dvbf_settings *settings, const char *name);
bool dv_settings_all_given(const dvbf_settings *settings);
/* The same, but not for a value that the file of a run leaves to training (dv_settings_write). */
bool dv_settings_fixed(const dvbf_settings *settings, const char *name);
/* Finds the first setting that the user has named (directly or in a file with few settings) and whose set
 * `uses` rejects; NULL if there is none. */
typedef bool dv_uses_fn(const char *set, const void *user);
const dv_setting *dv_settings_unused(const dvbf_settings *settings, dv_uses_fn *uses, const void *user);
/* Sets a value as part of a complete set, such as that of a model file: it counts as chosen by the user, but
 * not as named. */
dvbf_status dv_settings_give(dvbf_settings *settings, const char *name, const char *value, dvbf_error *error);
/* Sets a value without marking it as chosen by the user. */
dvbf_status dv_settings_set_chosen(dvbf_settings *settings, const char *name, const char *value,
                                   dvbf_error *error);

/* Writes the file of a run. `changes`, ending with NULL, are the settings that training may change unless the
 * user has given them; the file marks them, so that a resumed run does the same. */
dvbf_status dv_settings_write(const dvbf_settings *settings, const char *path, const char *const *changes,
                              dvbf_error *error);

/* The caller's flag that ends work with these settings; NULL: none. */
const volatile int *dv_settings_interrupt(const dvbf_settings *settings);
static inline bool dv_interrupted(const volatile int *flag) {
  return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* The ranks that share work with these settings; NULL: none. */
dvbf_ranks *dv_settings_ranks(const dvbf_settings *settings);

/* A value that training finds: files leave it out, so that a new run with these settings finds it again. */
void dv_settings_leave_open(dvbf_settings *settings, const char *name);
/* From now on the value counts as not given. */
void dv_settings_ungive(dvbf_settings *settings, const char *name);

/* Copies the values that the user has chosen in `over`, which must belong to the same table. */
dvbf_status dv_settings_lay(dvbf_settings *settings, const dvbf_settings *over, dvbf_error *error);

/* Name of the table. */
const char *dv_settings_table_name(const dvbf_settings *settings);

/* Calls `each` with name and text of every setting that a model file holds (all but group "Running"). */
dvbf_status dv_settings_each(const dvbf_settings *settings,
                             dvbf_status (*each)(const char *name, const char *value, void *user),
                             void *user);

/* Finds the first such setting that differs between two of the same table, except the one of that name, which
 * may be NULL; false if there is none. */
typedef struct dv_setting_change {
  const char *name;
  char one[DV_TEXT], other[DV_TEXT]; /* the values as text */
} dv_setting_change;
bool dv_settings_differ(const dvbf_settings *one, const dvbf_settings *other, const char *besides,
                        dv_setting_change *out);

/* ---- Presets ---- */

/* Named sets of settings. */
/* The preset's `name = value` lines for a table; NULL if it sets nothing there. */
const char *dv_preset_lines(const char *preset, const char *table);

#endif
