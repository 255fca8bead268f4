/* Named sets of settings. */
#ifndef DV_PRESETS_H
#define DV_PRESETS_H

/* The preset's `name = value` lines for a table, or NULL when it has nothing to say there. */
const char *dv_preset_lines(const char *preset, const char *table);

#endif
