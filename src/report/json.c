#include "report/json.h"

#include "base/memory.h"
#include "base/status.h"

#include <dvbf/report.h>
#include <math.h>

json_t *dv_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

/* NULL becomes the failure of what it is packed into. */
static json_t *whole_or_nothing(json_t *json, bool whole) {
  if (whole) return json;
  json_decref(json);
  return NULL;
}

json_t *dv_json_numbers(const double *values, size_t count) {
  json_t *array = json_array();
  bool whole = array;
  for (size_t i = 0; i < count; i++) whole &= !json_array_append_new(array, dv_json_number(values[i]));
  return whole_or_nothing(array, whole);
}

static json_t *regressions(const dvbf_evaluation *e) {
  json_t *object = json_object();
  for (size_t i = 0; i < e->n_regressions; i++) {
    const dvbf_regression *r = &e->regressions[i];
    json_t *entry = json_pack("{s:o, s:o}", "r2", dv_json_number(r->r2), "log_likelihood",
                              dv_json_number(r->log_likelihood));
    if (json_object_set_new(object, r->name, entry)) return whole_or_nothing(object, false);
  }
  return object;
}

static json_t *bound(const dvbf_evaluation *e) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "elbo", dv_json_number(e->elbo),
                   "elbo_deviation", dv_json_number(e->elbo_deviation), "reconstruction",
                   dv_json_number(e->reconstruction), "kl_w", dv_json_number(e->kl_w), "kl_v",
                   dv_json_number(e->kl_v), "particles", (json_int_t)e->particles, "importance",
                   dv_json_number(e->importance_bound), "particle_filter", dv_json_number(e->particle_bound));
}

static json_t *prediction(const dvbf_evaluation *e) {
  json_t *horizon = json_array();
  bool whole = horizon;
  for (size_t i = 0; i < e->horizon; i++)
    whole &= !json_array_append_new(horizon, json_integer((json_int_t)i + 1));
  json_t *out = json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "observed", (json_int_t)e->observed, "horizon",
                          whole_or_nothing(horizon, whole), "mse", dv_json_numbers(e->mse, e->horizon),
                          "mse_mean_path", dv_json_numbers(e->mse_mean_path, e->horizon), "mse_repeat",
                          dv_json_numbers(e->mse_repeat, e->horizon), "pixel_variance",
                          dv_json_number(e->pixel_variance));
  if (!out || !e->distance) return out;
  return whole_or_nothing(
      out,
      !json_object_set_new(out, "distance", dv_json_numbers(e->distance, e->horizon)) &&
          !json_object_set_new(out, "distance_repeat", dv_json_numbers(e->distance_repeat, e->horizon)) &&
          !json_object_set_new(out, "steps_near", dv_json_number(e->steps_near)));
}

json_t *dv_json_evaluation(const dvbf_evaluation *evaluation, const dvbf_model *model, double seconds,
                           unsigned threads) {
  dvbf_model_info info = dvbf_model_describe(model);
  json_t *json =
      json_pack("{s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I}", "regression", regressions(evaluation), "bound",
                bound(evaluation), "prediction", prediction(evaluation), "updates", (json_int_t)info.updates,
                "seconds", dv_json_number(seconds), "parameters", (json_int_t)info.parameters, "seed",
                (json_int_t)info.seed, "threads", (json_int_t)threads);
  bool good = json && (!evaluation->stability || dv_json_stability(json, evaluation->stability)) &&
              (!evaluation->verdict || dv_json_verdict(json, evaluation->verdict));
  if (good) return json;
  json_decref(json);
  return NULL;
}

dvbf_status dv_json_text(char **out, json_t *json, dvbf_error *error) {
  size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(10),
         length = json ? json_dumpb(json, NULL, 0, flags) : 0;
  char *text = length ? dv_calloc(length + 1, 1) : NULL;
  if (text && json_dumpb(json, text, length, flags) != length) {
    dv_free(text);
    text = NULL;
  }
  json_decref(json);
  if (!text)
    return dv_fail(error, length ? DVBF_MEMORY : DVBF_FORMAT,
                   "the results cannot be written as JSON; is the name of a column not UTF-8?");
  *out = text;
  return DVBF_OK;
}

dvbf_status dvbf_evaluation_json(char **out, const dvbf_evaluation *evaluation, const dvbf_model *model,
                                 const dvbf_settings *settings, double seconds, dvbf_error *error) {
  return dv_json_text(out, dv_json_evaluation(evaluation, model, seconds, dvbf_settings_threads(settings)),
                      error);
}

void dvbf_text_free(char *text) {
  dv_free(text);
}
