/* Latent samples with the ground truth that belongs to each, in the form that figures and pages want. */
#ifndef CLI_POINTS_H
#define CLI_POINTS_H

#include <dvbf/dvbf.h>

typedef struct cli_column {
  char name[40];
  float *values; /* [count] */
  bool cyclic;   /* an angle in radians */
} cli_column;

/* Columns: angles made of a sine and a cosine, the columns of the state, the number of the frame. */
typedef struct cli_points {
  size_t count, n_z, n_columns;
  float *z; /* [count][n_z] */
  cli_column *columns;
} cli_points;

/* All frames of the sequences without padding; `paths` went through them. Free with cli_points_free, also
 * after a failure. */
dvbf_status cli_points_gather(cli_points *out, const dvbf_data *data, const dvbf_sequences *sequences,
                              const dvbf_paths *paths, dvbf_error *error);
void cli_points_free(cli_points *points);

/* The first column whose name begins so; NULL when there is none. */
const cli_column *cli_points_column(const cli_points *points, const char *prefix);
/* The column of that name; NULL when there is none. */
const cli_column *cli_points_named(const cli_points *points, const char *name);

#endif
