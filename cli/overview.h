/* The picture of a trained pendulum. */
#ifndef CLI_OVERVIEW_H
#define CLI_OVERVIEW_H

#include <dvbf/dvbf.h>

/* Draws truth, reconstruction and prediction of the first long test sequence, the latent space of `data`'s
 * test set, and the error curve of `evaluation`, which is that of the long sequences. */
dvbf_status cli_overview(const char *path, const dvbf_model *model, const dvbf_data *data,
                         const dvbf_data *lengthy, const dvbf_evaluation *evaluation, unsigned threads,
                         dvbf_error *error);

#endif
