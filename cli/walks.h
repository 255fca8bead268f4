/* Walks of a pendulum that nothing drives, from one state to rest: generated, and corrected by filtering. */
#ifndef CLI_WALKS_H
#define CLI_WALKS_H

#include "measure.h"
#include "points.h"

typedef struct cli_walks {
  dvbf_paths *generative, *filtering; /* of the same sequences; the first sees their first frames only */
} cli_walks;

/* Simulates a few sequences of 100 steps and infers both. Free with cli_walks_free, also after a failure. */
dvbf_status cli_walks_take(cli_walks *out, const cli_source *source, dvbf_error *error);
void cli_walks_free(cli_walks *walks);

/* Distance between the places where both walks of a sequence come to rest (means of their last ten steps),
 * averaged over the sequences, over the spread of the samples: the root of their mean squared distance from
 * their mean. */
double cli_walks_distance(const cli_walks *walks, const dvbf_paths *samples);

/* Draws the walks of the first sequence before the samples, as PATH.png and PATH.svg. */
dvbf_status cli_walks_draw(const cli_walks *walks, const cli_points *samples, const char *title,
                           const char *path, dvbf_error *error);

#endif
