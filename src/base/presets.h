/* Named sets of settings. */
#ifndef DV_PRESETS_H
#define DV_PRESETS_H

/* The preset's `name = value` lines for a table; NULL if it sets nothing there. */
const char *dv_preset_lines(const char *preset, const char *table);

#endif
