#include "evaluate/verdict.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/dataset.h"

#include <stdio.h>
#include <string.h>

typedef struct judge {
  const dvbf_model *model;
  const dvbf_data *data;
  const dvbf_sequences *sequences;
  const dvbf_settings *settings; /* of the table "evaluate" */
  dv_yardstick yardstick;
  dv_evidence evidence;
  dvbf_verdict *out;
} judge;

/* ---- Measuring ---- */

static dvbf_status choose_split(judge *j, dvbf_error *error) {
  static const char *const splits[] = {"test", "valid", "train"};
  const dvbf_sequences *all[] = {&j->data->test, &j->data->valid, &j->data->train};
  for (int i = 0; i < 3 && !*j->out->split; i++)
    if (all[i]->count && (!j->sequences || j->sequences == all[i])) {
      j->sequences = all[i];
      snprintf(j->out->split, sizeof j->out->split, "%s", splits[i]);
    }
  return j->sequences && j->sequences->count
             ? dv_model_takes(j->model, j->sequences, error)
             : dv_fail(error, DVBF_FORMAT, "there are no sequences to judge the model by");
}

static dvbf_status name_columns(judge *j, dvbf_error *error) {
  dvbf_verdict *v = j->out;
  v->n_x = (size_t)j->model->n_x;
  v->names = dv_calloc(v->n_x, sizeof *v->names);
  if (!v->names) return dv_fail_memory(error, "judging the model");
  for (size_t k = 0; k < v->n_x; k++)
    if (j->data->x_names)
      memcpy(v->names[k], j->data->x_names[k], sizeof *v->names);
    else
      snprintf(v->names[k], sizeof *v->names, "x%zu", k);
  dv_names_tell_apart((char *)v->names, v->n_x, sizeof *v->names, sizeof *v->names);
  return DVBF_OK;
}

/* Both uses, one after the other, as their samples take memory. */
static dvbf_status roll(judge *j, dv_blocks *blocks, dvbf_rolling *out, bool free_run, dvbf_error *error) {
  dv_rolling r;
  dvbf_status status = dv_rolling_run(&r, j->model, j->sequences, (dv_rolling_plan){.free_run = free_run},
                                      &j->yardstick, j->settings, error);
  if (!status && !dv_rolling_scores(out, &r, &j->yardstick))
    status = dv_fail_memory(error, "judging the model");
  if (!status && !free_run) status = dv_whiteness_of(&j->out->whiteness, &r, error);
  *blocks = r.blocks;
  dv_rolling_clear(&r);
  return status;
}

static void weigh(judge *j) {
  dv_evidence *e = &j->evidence;
  j->out->nats = e->nats.per_frame;
  e->n_u = (size_t)j->model->n_u;
  e->frames = dv_sequences_frames(&j->data->train);
  e->updates = (size_t)j->model->updates;
  e->model = j->model->type->name;
  e->timeless = j->model->type->timeless;
}

static void free_scores(dvbf_rolling *r) {
  for (int way = 0; way < DVBF_WAYS; way++) {
    dv_free(r->score[way].rmse_by_column);
    dv_free(r->score[way].fit_by_column);
  }
  dv_free(r->ranks);
}

void dvbf_verdict_free(dvbf_verdict *v) {
  if (!v) return;
  free_scores(&v->one_step);
  free_scores(&v->free_run);
  dv_free(v->whiteness.autocorrelation);
  dv_free(v->whiteness.p);
  dv_free(v->whiteness.histogram);
  dv_free(v->names);
  dv_free(v);
}

dvbf_status dvbf_judge(dvbf_verdict **out, const dvbf_model *model, const dvbf_data *data,
                       const dvbf_sequences *sequences, const dvbf_settings *settings, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  judge j = {.model = model, .data = data, .sequences = sequences, .settings = settings};
  if (!dv_settings_evaluate(settings, error)) return DVBF_ARGUMENT;
  j.out = dv_calloc(1, sizeof *j.out);
  if (!j.out) return dv_fail_memory(error, "judging the model");
  dvbf_status status = choose_split(&j, error);
  if (!status) status = name_columns(&j, error);
  if (!status) status = dv_yardstick_of(&j.yardstick, model, data, j.sequences, error);
  if (!status) status = roll(&j, &j.evidence.one_step, &j.out->one_step, false, error);
  if (!status) status = roll(&j, &j.evidence.free_run, &j.out->free_run, true, error);
  if (!status)
    status = dv_nats_of(&j.evidence.nats, model, data->train.count ? &data->train : j.sequences, j.sequences,
                        j.settings, error);
  if (!status) {
    weigh(&j);
    dv_verdict_decide(j.out, &j.evidence);
  }
  dv_yardstick_clear(&j.yardstick);
  if (status)
    dvbf_verdict_free(j.out);
  else
    *out = j.out;
  return status;
}
