/* The list of all tables of settings (dv_table_named). Each table is declared by its owner: settings_*.def in
 * the folder of its subject. A new table: include its file below, twice, and twice in settings_tables.h. */
#include "settings_tables.h"

#include <string.h>

#define DV_LINES 3 /* entries */
#include "base/settings_lines.h"
static const dv_setting data_entries[] = {
#include "data/settings_data.def"
};
#include "control/settings_control.def"
#include "evaluate/settings_evaluate.def"
#include "experiments/settings_loop.def"
#include "experiments/settings_systems.def"
#include "export/settings_export.def"
#include "infer/settings_estimate.def"

#define DV_LINES 4 /* tables */
#include "base/settings_lines.h"
static const dv_table tables[] = {
    {.name = "data",
     .settings = data_entries,
     .count = sizeof data_entries / sizeof *data_entries,
     .size = sizeof(dv_data_settings),
     .former = dv_former_settings},
#include "control/settings_control.def"
#include "evaluate/settings_evaluate.def"
#include "experiments/settings_loop.def"
#define SYSTEM(called, object, type) ALSO(type, called)
#include "experiments/systems.def"
#include "export/settings_export.def"
#include "infer/settings_estimate.def"
};

/* What became of a setting: another name; a value of another setting; a constant, of which other values are
 * ignored or, where they made other models, refused. */
#define RENAMED(name, now) {name, NULL, now, NULL, false},
#define MERGED(name, value, now, as) {name, value, now, as, false},
#define RETIRED(name, value) {name, value, NULL, NULL, false},
#define RETIRED_MODEL(name, value) {name, value, NULL, NULL, true},
const dv_former dv_former_settings[] = {
#include "model/retired.def"
    {0}};

const dv_table *dv_table_named(const char *name) {
  if (!strcmp(dv_train_table.name, name)) return &dv_train_table;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (!strcmp(tables[i].name, name)) return &tables[i];
  return NULL;
}
