/* The layout of data in a file: which arrays are x, u, state, mask and length, and what is known about
 * them. */
#pragma once

#include "data/dataset.h"
#include "io/archive.h"
#include "io/frames.h"

#include <dvbf/dvbf.h>

enum { DV_MOST_KEYS = 64 };

/* The file and the findings about it. */
typedef struct dv_layout {
  dv_archive *archive;
  const dv_data_settings *how;
  dvbf_data *data;
  dv_ranks *team; /* ranks that open it together; NULL: one alone */
  dvbf_error *error;
  bool bits;          /* x of bytes holds nothing but 0 and 1, in all splits */
  const char **taken; /* [arrays of the archive] what each was taken for; NULL: nothing */
} dv_layout;

/* A failure of the file. */
#define dv_layout_fail(l, ...) dv_fail_file((l)->error, (l)->archive->path, __VA_ARGS__)
/* Records the use of an array. */
void dv_layout_mark_used(const dv_layout *l, const dv_named_array *array, const char *as);

/* Arrays whose columns together make one role. */
typedef struct dv_group {
  const dv_named_array *arrays[DV_MOST_KEYS];
  size_t count;
} dv_group;

/* The names that the setting of a role gives; may be empty. */
typedef struct dv_keys {
  char names[DV_MOST_KEYS][DV_TEXT];
  size_t count;
} dv_keys;
dvbf_status dv_layout_keys(const dv_layout *l, dv_role role, dv_keys *out);

/* Refuses an array that cannot be used. */
dvbf_status dv_layout_check(const dv_layout *l, const dv_named_array *array);
/* A failure whose message begins with a problem and lists the arrays of the file, or those below `prefix`. */
dvbf_status dv_layout_unclear(const dv_layout *l, const char *prefix, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records an array as a part of a role in a block. Its leading dimensions must be [steps] or, if `lead` is 2,
 * [count, steps]. Its width must be the same as in the blocks before. */
dvbf_status dv_layout_take(const dv_layout *l, dv_frames *f, size_t block, dv_role role, size_t part,
                           const dv_named_array *array, int lead);
/* After all arrays are recorded: sets the widths, the size of images and the names of state, and loads. */
dvbf_status dv_layout_finish(const dv_layout *l, dv_frames *f, int lead, dvbf_sequences *s,
                             const char *prefix);
/* Sets start, length, count and steps of *s for sequences that follow each other. */
dvbf_status dv_layout_follow(const dv_layout *l, dvbf_sequences *s, const size_t *lengths, size_t count);

/* Origins of the sequences of *s, from the file's description of the array x. */
dvbf_status dv_layout_origins(const dv_layout *l, dvbf_sequences *s, const dv_named_array *x);
/* Sets the sample time and the begin of sequences by arrays such as dt, fs and time. */
dvbf_status dv_layout_time(const dv_layout *l);
/* Lengths of sequences that follow each other in x, by arrays that mark ends (terminals, timeouts) or name
 * the sequence of a row (episode_id), and by ends of files; *out stays NULL without any. */
dvbf_status dv_layout_ends(const dv_layout *l, const dv_named_array *x, size_t **out, size_t *count);
/* Hands notes and uses over to the data. */
dvbf_status dv_layout_report_usage(const dv_layout *l);

/* Reads sequences from numbered groups such as data/demo_7/obs. *found = whether there are any. */
dvbf_status dv_layout_episodes(dv_layout *l, bool *found);

/* Checks the sequences and splits them; `prefix` is "", or "train/" for those of that split. The data own
 * *all afterwards; it is freed after a failure. */
dvbf_status dv_layout_split(const dv_layout *l, dvbf_sequences *all, const char *prefix);
/* For files with splits: takes valid from train if it is missing, and checks them. */
dvbf_status dv_layout_complete(const dv_layout *l);
