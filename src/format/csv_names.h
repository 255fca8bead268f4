/* What the name of a column says about it. */
#ifndef DV_CSV_NAMES_H
#define DV_CSV_NAMES_H

#include "base/cursor.h"

typedef enum dv_name_kind {
  DV_NAME_OTHER,
  DV_NAME_X,        /* x, x0, y_2 */
  DV_NAME_U,        /* u, u1, action_0, valve_cmd */
  DV_NAME_STATE,    /* state, state_angle */
  DV_NAME_TIME,     /* time, timestamp, t_ms */
  DV_NAME_STEP,     /* ts, dt: perhaps the time between two rows */
  DV_NAME_COUNTER,  /* index, step, frame */
  DV_NAME_SEQUENCE, /* episode, traj_id, run */
  DV_NAME_SPLIT
} dv_name_kind;

enum { DV_UNIT = 16 };

/* The name without its unit. */
dv_name_kind dv_name_says(const char *name);
/* Whether a name that tells sequences apart may as well be something else, as run or id. */
bool dv_name_is_vague(const char *name);

/* Cuts the unit off a name: "level [mm]" becomes "level", and unit "mm"; false: it has none. */
bool dv_name_cut_unit(char *name, char unit[DV_UNIT]);
/* Seconds of one unit of a time column, by its unit or the end of its name, as time_ms; 0: unknown. */
double dv_name_time_unit(const char *name, const char *unit);

/* Copies text as UTF-8 of fewer than `size` bytes. Bytes that are not UTF-8 are taken as Latin-1; control
 * characters become '?'. */
void dv_name_copy(dv_cursor text, char *out, size_t size);

#endif
