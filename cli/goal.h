/* Goals of controllers, as users give them. */
#ifndef CLI_GOAL_H
#define CLI_GOAL_H

#include "options.h"

#include <dvbf/control.h>

typedef struct cli_goal {
  dvbf_goal goal;
  float *arrays[5]; /* of the goal, to be freed: x, z, state, map, weights */
} cli_goal;

/* `text` is a file, or numbers with commas between. `settings` is of the table "control"; with goal-in =
 * state the regression of the state on z is that of the sequences, which may be NULL, or that of the file.
 * Free with cli_goal_free, also after a failure. */
dvbf_status cli_goal_read(cli_goal *out, const char *text, const dvbf_model *model,
                          const dvbf_settings *settings, const dvbf_sequences *sequences, dvbf_error *error);
void cli_goal_free(cli_goal *goal);

#define CLI_FLAG_GOAL                                                                                        \
  { 0, "goal", "GOAL", "file with the goal, or its numbers with commas between" }

#endif
