/* One path through the latent space for each sequence: filtered while x is seen, predicted afterwards. What
 * evaluation and figures look at; dvbf_estimate is for users. */
#ifndef DV_PATHS_H
#define DV_PATHS_H

#include "exec/pass.h"

#include <dvbf/dvbf.h>

typedef struct dv_paths {
  size_t count, steps, n_z, n_x;
  float *z;               /* [count][steps][n_z] */
  float *x;               /* [count][steps][n_x] mean of the emission, in units of the data; may be NULL */
  double *log_likelihood; /* [count][steps] ln p(x_t | z_t), 0 where not observed */
  double *kl;             /* [count][steps] KL of w_t, or of z_t where there is no w; entry 0 belongs to the
                             first step, entry t to the step into t */
} dv_paths;

/* Makes room for paths through these sequences, and for their x if it is wanted. */
dvbf_status dv_paths_new(dv_paths **out, const dvbf_model *model, const dvbf_sequences *sequences, bool x,
                         dvbf_error *error);
void dv_paths_free(dv_paths *paths);

/* Fills them by one run of a pass over the sequences. noise_free: every noise is at its mean, so that w = 0
 * where it is predicted. Allocates nothing. */
dvbf_status dv_paths_draw(dv_paths *paths, dv_pass *pass, const dvbf_sequences *sequences, uint64_t seed,
                          bool noise_free, dvbf_error *error);

typedef struct dv_path_options {
  size_t observe; /* steps whose x is seen; 0: all */
  bool noise_free;
  uint64_t seed;
  unsigned threads;              /* 0: all cores */
  const volatile int *interrupt; /* NULL, or a flag that ends the work */
} dv_path_options;

/* Checks the sequences, makes a pass over them and draws paths, once. Free with dv_paths_free. */
dvbf_status dv_paths_of(dv_paths **out, const dvbf_model *model, const dvbf_sequences *sequences,
                        const dv_path_options *options, dvbf_error *error);

#endif
