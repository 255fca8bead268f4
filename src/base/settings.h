/* Settings: the tables they are declared in, objects with their values, and presets. A setting is declared
 * once, in settings_*.def; the struct field, default, range check, command-line flag, help, config file,
 * model metadata and manual all come from there. */
#pragma once

#include <dvbf/core.h>

enum { DV_TEXT = 512 }; /* bytes of a text setting */

/* ---- Tables ---- */

typedef enum dv_kind { DV_KIND_INT, DV_KIND_REAL, DV_KIND_CHOICE, DV_KIND_SWITCH, DV_KIND_TEXT } dv_kind;

/* A line of a table. */
typedef struct dv_setting {
  dv_kind kind;
  bool common; /* what most people need: short help lists it */
  bool recipe; /* for presets, rules and files: help does not list it */
  const char *name, *initial, *group, *help;
  const char *choices;   /* as "a|b|c", NULL if there are none */
  const char *of, *only; /* set of settings that its file, and that the line itself, names; NULL: none */
  size_t offset;         /* of the value */
  double low, high;
} dv_setting;

/* A name that a setting once had, or a constant that once was a setting (model/retired.def). */
typedef struct dv_former {
  const char *name, *value; /* NULL: any value */
  const char *now, *as; /* the setting that it is now; NULL: it is a constant. Its value; NULL: the same */
  bool model;           /* other values made other models */
} dv_former;

typedef struct dv_table {
  const char *name;
  const dv_setting *settings; /* [count] */
  size_t count, size;         /* size of the values */
  size_t data;                /* where the values of the table "data" lie among them; 0: they are no part */
  const char *const *written; /* groups that files always have, up to NULL; others only have what is not the
                                 default. NULL: files have all */
  const dv_former *former;    /* up to one without a name; NULL: there are none */
  /* Who uses a set of settings, as "a, b"; NULL: everybody. May be NULL. */
  const char *(*users)(const char *set);
} dv_table;

enum { DV_MOST_SETTINGS = 160 }; /* of a table */

/* The table "train": the settings of all models and of their training (model/train_settings.c). */
extern const dv_table dv_train_table;
extern const dv_former dv_former_settings[];
/* The table of that name (settings_tables.c); NULL: there is none. */
const dv_table *dv_table_named(const char *name);

/* ---- Values ---- */

/* The values, or the part of them that is the table "data"; NULL and a message if `settings` have no such. */
const void *dv_settings_values(const dvbf_settings *settings, const char *table, dvbf_error *error);
#define DV_ACCESS(type, table)                                                                               \
  static inline const dv_##type##_settings *dv_settings_##type(const dvbf_settings *s, dvbf_error *error) {  \
    return (const dv_##type##_settings *)dv_settings_values(s, table, error);                                \
  }

/* Where a value comes from, from the least to the strongest. */
typedef enum dv_origin {
  DV_DEFAULT,
  DV_OPEN,    /* training itself finds the value, so that files leave it out */
  DV_CHOSEN,  /* for the data */
  DV_RESUMED, /* by the file of a run, which lets training change it */
  DV_GIVEN,   /* by a complete set: a preset, a model file, the file of a run */
  DV_NAMED,   /* by the user, by name */
} dv_origin;

dv_origin dv_settings_origin(const dvbf_settings *settings, const char *name);
/* Whether the user, or a file or preset of theirs, has chosen the value. */
static inline bool dv_settings_given(const dvbf_settings *settings, const char *name) {
  return dv_settings_origin(settings, name) >= DV_RESUMED;
}
bool dv_settings_all_given(const dvbf_settings *settings);
/* Finds the first setting that the user has named (directly or in a file with few settings) and whose set
 * `uses` rejects; NULL if there is none. */
typedef bool dv_uses_fn(const char *set, const void *user);
const dv_setting *dv_settings_unused(const dvbf_settings *settings, dv_uses_fn *uses, const void *user);
/* Sets a value as part of a complete set, as of a model file: chosen by the user, but not named. */
dvbf_status dv_settings_give(dvbf_settings *settings, const char *name, const char *value, dvbf_error *error);
/* Sets a value without marking it as chosen by the user. */
dvbf_status dv_settings_set_chosen(dvbf_settings *settings, const char *name, const char *value,
                                   dvbf_error *error);

/* The next of "name=value name=value", a text that is cut into its parts meanwhile; false after the last. */
bool dv_next_change(char **rest, char **name, char **value);

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

/* Cores that this process may use. */
int dv_cores(void);

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

/* Finds the first such setting that differs between two of a table, besides that one (NULL: none). */
typedef struct dv_setting_change {
  const char *name;
  char one[DV_TEXT], other[DV_TEXT]; /* the values as text */
} dv_setting_change;
bool dv_settings_differ(const dvbf_settings *one, const dvbf_settings *other, const char *besides,
                        dv_setting_change *out);

/* ---- Presets ---- */

/* The preset's `name = value` lines for a table; NULL if it sets nothing there. */
const char *dv_preset_lines(const char *preset, const char *table);
