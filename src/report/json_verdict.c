/* The verdict on a model as JSON. */
#include "report/json.h"

#include <dvbf/report.h>
#include <math.h>

enum { MOST = 64 }; /* columns that are told one by one: of pictures nobody wants them */

static const char *const ways[DVBF_WAYS] = {"mean", "last", "linear", "learned"};

/* Sets a value and takes it over; false when that fails. */
static bool set(json_t *object, const char *key, json_t *value) {
  return !json_object_set_new(object, key, value);
}

static json_t *score_json(const dvbf_verdict *v, const dvbf_score *s) {
  if (isnan(s->rmse)) return json_null();
  json_t *columns = json_object();
  bool good = columns;
  for (size_t k = 0; good && k < v->n_x && v->n_x <= MOST; k++)
    good = set(columns, v->names[k],
               json_pack("{s:o, s:o}", "rmse", dv_json_number(s->rmse_by_column[k]), "fit",
                         dv_json_number(s->fit_by_column[k])));
  if (good)
    return json_pack("{s:o, s:o, s:o}", "rmse", dv_json_number(s->rmse), "fit", dv_json_number(s->fit),
                     "columns", columns);
  json_decref(columns);
  return NULL;
}

static json_t *rolling_json(const dvbf_verdict *v, const dvbf_rolling *r) {
  json_t *json =
      json_pack("{s:I, s:I, s:{s:o, s:o}}", "origins", (json_int_t)r->origins, "steps", (json_int_t)r->steps,
                "coverage", "50", dv_json_number(r->coverage_50), "90", dv_json_number(r->coverage_90));
  bool good = json;
  for (int way = 0; good && way < DVBF_WAYS; way++)
    good = set(json, ways[way], score_json(v, &r->score[way]));
  if (good) return json;
  json_decref(json);
  return NULL;
}

static json_t *whiteness_json(const dvbf_verdict *v) {
  const dvbf_whiteness *w = &v->whiteness;
  json_t *columns = json_object();
  bool good = columns;
  if (isnan(w->band)) {
    json_decref(columns);
    return json_null();
  }
  for (size_t k = 0; good && k < v->n_x && v->n_x <= MOST; k++)
    good = set(columns, v->names[k],
               json_pack("{s:o, s:o}", "p", dv_json_number(w->p[k]), "autocorrelation",
                         dv_json_numbers(w->autocorrelation[k], DVBF_LAGS)));
  if (good)
    return json_pack("{s:o, s:o, s:o}", "band", dv_json_number(w->band), "outside",
                     dv_json_number(w->outside), "columns", columns);
  json_decref(columns);
  return NULL;
}

static json_t *nats_json(const dvbf_nats *n) {
  if (isnan(n->learned)) return json_null();
  return json_pack("{s:o, s:o, s:o, s:I}", "mean", dv_json_number(n->mean), "last", dv_json_number(n->last),
                   "learned", dv_json_number(n->learned), "frames", (json_int_t)n->frames);
}

bool dv_json_verdict(json_t *json, const dvbf_verdict *v) {
  json_t *one_step = rolling_json(v, &v->one_step);
  bool good = one_step && set(one_step, "whiteness", whiteness_json(v));
  good = set(json, "one_step", one_step) && good;
  good = good && set(json, "free_run", rolling_json(v, &v->free_run));
  good = good && set(json, "nats_per_frame", nats_json(&v->nats));
  return good &&
         set(json, "verdict",
             json_pack("{s:b, s:s, s:s}", "useful", v->useful, "sentence", v->sentence, "split", v->split));
}

dvbf_status dvbf_verdict_json(char **out, const dvbf_verdict *verdict, dvbf_error *error) {
  json_t *json = json_object();
  if (json && !dv_json_verdict(json, verdict)) {
    json_decref(json);
    json = NULL;
  }
  return dv_json_text(out, json, error);
}
