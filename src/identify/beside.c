/* The best linear model inside a model that was trained without a search, for its verdict. */
#include "base/arithmetic.h"
#include "base/settings.h"
#include "base/status.h"
#include "identify/fit.h"
#include "model/density.h"

#include <dvbf/dvbf.h>

/* Linear models are for real numbers, not for pictures, bits and counts; too many columns take too long. */
static dvbf_status suits(bool *out, const dvbf_model *m, const dvbf_data *data, dvbf_error *error) {
  enum { MANY = 16, WIDE = 256 };
  const dvbf_sequences *s = &data->train;
  dv_statistics x;
  *out = false;
  if (!m->density->scales(m->settings) || data->image_height || s->n_x + s->n_u > WIDE) return DVBF_OK;
  dvbf_status status = dv_statistics_of_x(&x, s, error);
  if (status) return status;
  *out = s->n_x < MANY || x.low < 0 || x.high > 1;
  dv_statistics_free(&x);
  return DVBF_OK;
}

/* The best linear model of the data with the scaling of m. */
static dvbf_status find(dvbf_model **out, const dvbf_model *m, const dvbf_data *data,
                        const dvbf_settings *settings, dvbf_error *error) {
  dvbf_settings *like = NULL;
  dvbf_status status = dvbf_settings_copy(&like, m->settings_object, error);
  if (!status && settings) dvbf_settings_interrupt(like, dv_settings_interrupt(settings));
  if (!status) status = dv_linear_best(out, like, data, error);
  dvbf_settings_free(like);
  return status;
}

dvbf_status dvbf_model_add_linear(bool *added, dvbf_model *m, const dvbf_data *data,
                                  const dvbf_settings *settings, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(m));
  const dvbf_sequences *train = &data->train;
  dvbf_data known = {.train = *train}; /* the data of the verdict stay unseen */
  dvbf_model *linear = NULL;
  dvbf_error inner = {0};
  bool worth = false;
  *added = false;
  if (m->linear || dv_fit_of(m->type)) return DVBF_OK;
  if ((size_t)m->n_x != train->n_x || (size_t)m->n_u != train->n_u)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model has %d columns of x and %d of u, and the data have %zu and %zu; give the data "
                   "that it was trained on",
                   m->n_x, m->n_u, train->n_x, train->n_u);
  dvbf_status status = suits(&worth, m, data, error);
  if (status || !worth) return status;
  status = find(&linear, m, &known, settings, &inner);
  if (!status) status = dv_model_set_linear(m, linear, &inner);
  *added = !status;
  if (!dv_failed_outside(status)) return DVBF_OK; /* not all data have one */
  if (error) *error = inner;
  return status;
}
