#include "train/fitted.h"

#include "base/status.h"
#include "train/folder.h"
#include "train/validate.h"

#include <math.h>
#include <time.h>

typedef struct fitting {
  const dvbf_train_options *options;
  dv_folder folder;
  dvbf_progress report;
  double began;
} fitting;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void tell(fitting *f, const char *event) {
  f->report.event = event;
  f->report.seconds = now() - f->began;
  if (f->options->progress) f->options->progress(&f->report, f->options->user_data);
  f->report.event = NULL;
}

/* Scores on the validation sequences, or on those of training where there are none. */
static dvbf_status score(fitting *f, dvbf_model *m, const dvbf_data *data, dvbf_error *error) {
  dv_pool *pool = NULL;
  dv_validator validator;
  dv_scores scores;
  dvbf_progress *r = &f->report;
  dvbf_status status = dv_pool_new(&pool, (unsigned)m->settings->threads, error);
  if (status) return status;
  status = dv_validator_init(&validator, m, pool, data->valid.count ? &data->valid : &data->train, 0, error);
  if (!status) {
    status = dv_validator_run(&scores, &validator, m->log_sigma_floor, error);
    dv_validator_clear(&validator);
  }
  dv_pool_free(pool);
  if (status) return status;
  r->update = r->updates = 1;
  r->start = r->starts = r->begun = 1;
  r->seconds = now() - f->began;
  r->validated = true;
  r->bound = r->valid_bound = scores.bound;
  r->valid_reconstruction = scores.reconstruction;
  r->valid_kl_w = scores.kl_w;
  r->valid_kl_v = scores.kl_v;
  r->valid_prediction = scores.prediction;
  r->valid_one_step = scores.one_step;
  r->phase = 1;
  r->temperature = 1;
  return DVBF_OK;
}

static dvbf_status save(fitting *f, const dvbf_model *m, dvbf_error *error) {
  dvbf_status status = dv_folder_add(&f->folder, &f->report, error);
  if (!status) status = dv_folder_sync(&f->folder, error);
  return status ? status : dvbf_model_save(m, f->folder.model, error);
}

dvbf_status dv_train_fitted(dvbf_model **out, dv_fit_fn *fit, const dvbf_settings *settings,
                            const dvbf_data *data, const dvbf_train_options *options, dvbf_error *error) {
  fitting f = {.options = options, .began = now()};
  dvbf_model *m = NULL;
  char told[300] = "";
  f.folder.lock = -1;
  dvbf_status status = options->folder ? dv_folder_open(&f.folder, options, settings, error) : DVBF_OK;
  bool finished = !status && options->folder && options->resume && dv_exists(f.folder.model);
  if (finished) {
    status = dvbf_model_load(&m, f.folder.model, error);
    if (!status) tell(&f, "this run is finished: nothing is left to do");
  }
  if (!status && !finished && options->folder) status = dv_folder_begin(&f.folder, settings, error);
  if (!status && !finished) status = fit(&m, settings, data, told, sizeof told, error);
  if (!status && !finished) status = score(&f, m, data, error);
  if (!status && !finished && options->folder) status = save(&f, m, error);
  if (!status && !finished) {
    m->seconds = now() - f.began;
    tell(&f, told);
  }
  if (options->folder) dv_folder_close(&f.folder);
  if (status)
    dvbf_model_free(m);
  else
    *out = m;
  return status;
}
