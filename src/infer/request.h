/* What is asked of a model, made from the settings of any of the commands that estimate states. */
#ifndef DV_REQUEST_H
#define DV_REQUEST_H

#include "exec/pool.h"
#include "infer/watch.h"
#include "model/model.h"

enum { DV_MOST_QUANTILES = 32 };

typedef struct dv_request {
  const dvbf_model *model; /* a member of `all` */
  const dvbf_model *all;
  dvbf_sequences frames; /* what is seen, and the controls of all steps */
  bool owned;            /* frames were made for the request */
  bool forecast;         /* x of a step is what the steps before it let expect */
  bool weighted;         /* a particle filter weighs the samples */
  bool smooth;           /* by what comes after a step too */
  size_t samples;
  int particles;
  int steps;         /* of the recurrence */
  int observe;       /* steps whose x is seen; 0: z_1 comes from the prior */
  int initial;       /* frames that may be seen when z_1 is made */
  int first, window; /* the steps to report: first .. first + window - 1 */
  uint32_t *begin;   /* [frames.count] step of the data that `first` is; NULL: it is `first` */
  bool noise;        /* of the emission */
  bool keep_x;       /* x of every sample */
  bool single;       /* each path stands for itself: nothing is averaged over members of a committee */
  size_t n_quantiles;
  double quantiles[DV_MOST_QUANTILES];
  uint64_t seed;
  unsigned threads;
  const volatile int *interrupt; /* NULL, or a flag that ends the work */
  dv_watch *watch;               /* NULL: nobody wants to know how far it is */
  dv_team *team;                 /* ranks that share the sequences; NULL: one alone */
} dv_request;

/* What is asked of that member of a committee (0: of the model itself). Free with dv_request_clear, also
 * after a failure. `sequences` may be NULL for the table "sample". */
dvbf_status dv_request_make(dv_request *out, const dvbf_model *model, int member,
                            const dvbf_sequences *sequences, const dvbf_settings *settings,
                            dvbf_error *error);
void dv_request_clear(dv_request *request);

#endif
