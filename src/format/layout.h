/* Which arrays of a file are x, u, state, mask and length. */
#ifndef DV_LAYOUT_H
#define DV_LAYOUT_H

#include "data/dataset.h"
#include "format/archive.h"
#include "format/frames.h"

#include <dvbf/dvbf.h>

typedef enum dv_role { DV_ROLE_X, DV_ROLE_U, DV_ROLE_STATE, DV_ROLE_MASK, DV_ROLE_LENGTH, DV_ROLES } dv_role;

enum { DV_MOST_KEYS = 64 };

/* What reading works on, and what it finds out. */
typedef struct dv_layout {
  dv_archive *archive;
  const dv_data_settings *how;
  dvbf_data *data;
  dvbf_error *error;
} dv_layout;

/* Arrays that make one role, side by side. */
typedef struct dv_group {
  const dv_array *arrays[DV_MOST_KEYS];
  size_t count;
} dv_group;

/* The keys of a role as a list: what its setting names, or nothing. */
typedef struct dv_keys {
  char names[DV_MOST_KEYS][DV_TEXT];
  size_t count;
} dv_keys;
dvbf_status dv_layout_keys(const dv_layout *l, dv_role role, dv_keys *out);
/* The setting of a role, as x-key. */
const char *dv_layout_setting(dv_role role);

/* Refuses an array that is in trouble. */
dvbf_status dv_layout_check(const dv_layout *l, const dv_array *array);
/* A failure that lists the arrays of the file, or those below `prefix`; `problem` comes first. */
dvbf_status dv_layout_unclear(const dv_layout *l, const char *prefix, const char *problem);

/* Notes an array as a part of a role in a run: its leading dimensions must be [steps] or, where `lead` is 2,
 * [count, steps]; its width must be that of the part in the runs before. */
dvbf_status dv_layout_take(const dv_layout *l, dv_frames *f, size_t run, dv_role role, size_t part,
                           const dv_array *array, int lead);
/* All is noted: sets the widths, the data's image and names of state, and loads. */
dvbf_status dv_layout_finish(const dv_layout *l, dv_frames *f, int lead, dvbf_sequences *s,
                             const char *prefix);
/* Lengths of sequences that follow each other: sets start, length, count and steps of *s. */
dvbf_status dv_layout_follow(const dv_layout *l, dvbf_sequences *s, const size_t *lengths, size_t count);

/* Sequences as arrays of their own in numbered groups, as data/demo_7/obs. *found = whether there are such.
 */
dvbf_status dv_layout_episodes(const dv_layout *l, bool *found);

/* Checks sequences and splits them into those of the data, whose *all then is; it is freed on failure. */
dvbf_status dv_layout_split(const dv_layout *l, dvbf_sequences *all);
/* The splits were in the file: takes valid from train where it is missing, and checks them. */
dvbf_status dv_layout_complete(const dv_layout *l);

#endif
