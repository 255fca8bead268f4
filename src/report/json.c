/* Results as JSON through jansson: evaluation, stability and verdict (dvbf_evaluation_json,
 * dvbf_verdict_json). A number that is not finite becomes null. */
#include "report/json.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

#include <dvbf/report.h>

#include <math.h>

json_t *dv_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

/* NULL makes the object that it is put into fail. */
static json_t *whole_or_nothing(json_t *json, bool whole) {
  if (whole) return json;
  json_decref(json);
  return NULL;
}

/* Sets a value and takes it over; false when that fails, as with a key that is not UTF-8 or without memory.
 */
static bool set(json_t *object, const char *key, json_t *value) {
  return !json_object_set_new(object, key, value);
}

json_t *dv_json_numbers(const double *values, size_t count) {
  json_t *array = json_array();
  bool whole = array;
  for (size_t i = 0; i < count; i++) whole &= !json_array_append_new(array, dv_json_number(values[i]));
  return whole_or_nothing(array, whole);
}

/* ---- Stability ---- */

static json_t *member_json(const dvbf_member_stability *m) {
  return json_pack("{s:b, s:b, s:I, s:s, s:o, s:I, s:o, s:o, s:s}", "contracts", m->contracts, "bounded",
                   m->bounded, "systems", (json_int_t)m->systems, "measure", m->measure, "length",
                   dv_json_number(m->length), "draws", (json_int_t)m->draws, "drawn",
                   dv_json_number(m->drawn), "reach",
                   m->reach ? dv_json_numbers(m->reach, m->n_z) : json_null(), "sentence", m->sentence);
}

static json_t *stability_json(const dvbf_stability *s) {
  json_t *members = json_array();
  bool whole = members;
  for (size_t i = 0; i < s->n_members; i++)
    whole &= !json_array_append_new(members, member_json(&s->members[i]));
  return json_pack("{s:b, s:b, s:o, s:s, s:o}", "contracts", s->contracts, "bounded", s->bounded, "length",
                   dv_json_number(s->length), "sentence", s->sentence, "members",
                   whole_or_nothing(members, whole));
}

/* ---- Verdict ---- */

enum { LISTED_COLUMNS = 64 }; /* columns listed one by one; pixels of images are not */

static const char *const ways[DVBF_WAYS] = {"mean", "last", "linear", "learned"};

static json_t *score_json(const dvbf_verdict *v, const dvbf_score *s) {
  if (isnan(s->rmse)) return json_null();
  json_t *columns = json_object();
  bool whole = columns;
  for (size_t k = 0; k < v->n_x && v->n_x <= LISTED_COLUMNS; k++)
    whole &= set(columns, v->names[k],
                 json_pack("{s:o, s:o}", "rmse", dv_json_number(s->rmse_by_column[k]), "fit",
                           dv_json_number(s->fit_by_column[k])));
  return json_pack("{s:o, s:o, s:o}", "rmse", dv_json_number(s->rmse), "fit", dv_json_number(s->fit),
                   "columns", whole_or_nothing(columns, whole));
}

static json_t *rolling_json(const dvbf_verdict *v, const dvbf_rolling *r) {
  json_t *json =
      json_pack("{s:I, s:I, s:{s:o, s:o}}", "origins", (json_int_t)r->origins, "steps", (json_int_t)r->steps,
                "coverage", "50", dv_json_number(r->coverage_50), "90", dv_json_number(r->coverage_90));
  bool whole = json;
  for (int way = 0; way < DVBF_WAYS; way++) whole &= set(json, ways[way], score_json(v, &r->score[way]));
  return whole_or_nothing(json, whole);
}

static json_t *whiteness_json(const dvbf_verdict *v) {
  const dvbf_whiteness *w = &v->whiteness;
  if (isnan(w->band)) return json_null();
  json_t *columns = json_object();
  bool whole = columns;
  for (size_t k = 0; k < v->n_x && v->n_x <= LISTED_COLUMNS; k++)
    whole &= set(columns, v->names[k],
                 json_pack("{s:o, s:o}", "p", dv_json_number(w->p[k]), "autocorrelation",
                           dv_json_numbers(w->autocorrelation[k], DVBF_LAGS)));
  return json_pack("{s:o, s:o, s:o}", "band", dv_json_number(w->band), "outside", dv_json_number(w->outside),
                   "columns", whole_or_nothing(columns, whole));
}

static json_t *nats_json(const dvbf_discrete_likelihood *n) {
  if (isnan(n->learned)) return json_null();
  return json_pack("{s:o, s:o, s:o, s:I}", "mean", dv_json_number(n->mean), "last", dv_json_number(n->last),
                   "learned", dv_json_number(n->learned), "frames", (json_int_t)n->frames);
}

static bool add_verdict(json_t *json, const dvbf_verdict *v) {
  json_t *one_step = rolling_json(v, &v->one_step);
  bool whole = set(one_step, "whiteness", whiteness_json(v));
  whole &= set(json, "one_step", one_step);
  whole &= set(json, "free_run", rolling_json(v, &v->free_run));
  whole &= set(json, "nats_per_frame", nats_json(&v->nats));
  whole &= set(json, "verdict",
               json_pack("{s:b, s:s, s:s}", "useful", v->useful, "sentence", v->sentence, "split", v->split));
  return whole;
}

/* ---- Evaluation ---- */

static json_t *regressions(const dvbf_evaluation *e) {
  json_t *object = json_object();
  bool whole = object;
  for (size_t i = 0; i < e->n_regressions; i++) {
    const dvbf_regression *r = &e->regressions[i];
    whole &= set(object, r->name,
                 json_pack("{s:o, s:o}", "r2", dv_json_number(r->r2), "log_likelihood",
                           dv_json_number(r->log_likelihood)));
  }
  return whole_or_nothing(object, whole);
}

static json_t *bound(const dvbf_evaluation *e) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "elbo", dv_json_number(e->elbo),
                   "elbo_deviation", dv_json_number(e->elbo_deviation), "reconstruction",
                   dv_json_number(e->reconstruction), "kl_w", dv_json_number(e->kl_w), "kl_v",
                   dv_json_number(e->kl_v), "particles", (json_int_t)e->particles, "importance",
                   dv_json_number(e->importance_bound), "particle_filter", dv_json_number(e->particle_bound));
}

static json_t *prediction(const dvbf_evaluation *e) {
  const struct {
    const char *name;
    const double *values;
  } curves[] = {{"mse", e->mse},
                {"mse_mean_path", e->mse_mean_path},
                {"mse_repeat", e->mse_repeat},
                {"mse_mean", e->mse_mean},
                {"mse_linear", e->mse_linear},
                {"distance", e->distance},
                {"distance_repeat", e->distance_repeat}};
  json_t *horizon = json_array(), *origins = json_array();
  bool whole = horizon && origins;
  for (size_t i = 0; i < e->horizon; i++)
    whole &= !json_array_append_new(horizon, json_integer((json_int_t)i + 1)) &&
             !json_array_append_new(origins, json_integer((json_int_t)e->origins[i]));
  json_t *out = json_pack("{s:I, s:o, s:o, s:o}", "observed", (json_int_t)e->observed, "horizon", horizon,
                          "origins", origins, "pixel_variance", dv_json_number(e->pixel_variance));
  for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
    if (curves[i].values || i < 4)
      whole &= set(out, curves[i].name, dv_json_numbers(curves[i].values, e->horizon));
  if (e->distance) whole &= set(out, "steps_near", dv_json_number(e->steps_near));
  return whole_or_nothing(out, whole);
}

json_t *dv_json_evaluation(const dvbf_evaluation *evaluation, const dvbf_model *model, double seconds,
                           unsigned threads) {
  dvbf_model_info info = dvbf_model_describe(model);
  json_t *json =
      json_pack("{s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I}", "regression", regressions(evaluation), "bound",
                bound(evaluation), "prediction", prediction(evaluation), "updates", (json_int_t)info.updates,
                "seconds", dv_json_number(seconds), "parameters", (json_int_t)info.parameters, "seed",
                (json_int_t)info.seed, "threads", (json_int_t)threads);
  bool whole = json;
  if (evaluation->stability) whole &= set(json, "stability", stability_json(evaluation->stability));
  if (evaluation->verdict) whole &= add_verdict(json, evaluation->verdict);
  return whole_or_nothing(json, whole);
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

dvbf_status dv_json_write(const char *path, const char *text, dvbf_error *error) {
  dv_atomic_file file;
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (status) return status;
  fputs(text, file.stream);
  return dv_atomic_commit(&file, error);
}

dvbf_status dvbf_evaluation_json(char **out, const dvbf_evaluation *evaluation, const dvbf_model *model,
                                 const dvbf_settings *settings, double seconds, dvbf_error *error) {
  return dv_json_text(out, dv_json_evaluation(evaluation, model, seconds, dvbf_settings_threads(settings)),
                      error);
}

void dvbf_text_free(char *text) {
  dv_free(text);
}

dvbf_status dvbf_verdict_json(char **out, const dvbf_verdict *verdict, dvbf_error *error) {
  json_t *json = json_object();
  bool whole = add_verdict(json, verdict);
  return dv_json_text(out, whole_or_nothing(json, whole), error);
}
