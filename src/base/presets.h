/* Named sets of settings. */
#ifndef DV_PRESETS_H
#define DV_PRESETS_H

/* The preset's `name = value` lines, or NULL. */
const char *dv_preset_lines(const char *preset);

#endif
