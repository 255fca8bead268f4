/* Training of models that are fitted and not found by gradients (dv_train_fitted), with the same run folder
 * and reports as gradient training (trainer.c), and checks of data against a model before training
 * (dv_check_*). The public functions are in search.c. */
#include "base/error.h"
#include "base/settings.h"
#include "train/run_folder.h"
#include "train/trainer.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* ---- Fitted models ---- */

typedef struct fitted_run {
  const dvbf_train_options *options;
  dv_run_folder folder;
  dvbf_progress report;
  double began;
  bool stopped;
  const volatile int *interrupt;
} fitted_run;

double dv_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void tell(fitted_run *f, const char *event) {
  f->report.event = event;
  f->report.seconds = dv_clock() - f->began;
  if (f->options->progress && !f->options->progress(&f->report, f->options->user_data)) f->stopped = true;
  if (dv_interrupted(f->interrupt)) f->stopped = true;
  f->report.event = NULL;
}

static bool watch(int iteration, int most, double log_p, void *user) {
  fitted_run *f = user;
  dvbf_progress *r = &f->report;
  double seconds = dv_clock() - f->began;
  *r = (dvbf_progress){.update = (uint64_t)iteration,
                       .updates = (uint64_t)most,
                       .start = 1,
                       .starts = 1,
                       .begun = 1,
                       .seconds_left = iteration ? seconds / iteration * (most - iteration) : (double)NAN,
                       .bound = log_p,
                       .valid_bound = (double)NAN,
                       .valid_prediction = (double)NAN,
                       .temperature = 1};
  tell(f, NULL);
  return !f->stopped;
}

/* Scores on the validation sequences, or on those of training if there are none. */
static dvbf_status score(fitted_run *f, dvbf_model *m, const dvbf_data *data, dvbf_error *error) {
  dv_threads *pool = NULL;
  dv_validator validator;
  dv_scores scores;
  dvbf_progress *r = &f->report;
  dvbf_status status = dv_threads_new(&pool, (unsigned)m->settings->threads, error);
  if (status) return status;
  status = dv_validator_init(&validator, m, pool, data->valid.count ? &data->valid : &data->train, 0, error);
  if (!status) {
    status = dv_validator_run(&scores, &validator, m->log_sigma_floor, error);
    dv_validator_clear(&validator);
  }
  dv_threads_free(pool);
  if (status) return status;
  r->update = r->updates = m->updates;
  r->start = r->starts = r->begun = 1;
  r->seconds = dv_clock() - f->began;
  r->validated = true;
  r->bound = r->valid_bound = scores.bound;
  r->valid_reconstruction = scores.reconstruction;
  r->valid_kl_w = scores.kl_w;
  r->valid_kl_v = scores.kl_v;
  r->valid_prediction = scores.prediction;
  r->valid_one_step = scores.one_step;
  r->phase = 1;
  r->temperature = 1;
  r->seconds_left = 0;
  return DVBF_OK;
}

static dvbf_status run_fit(fitted_run *f, dvbf_model **m, dv_fit_fn *fit, const dvbf_settings *settings,
                           const dvbf_data *data, dvbf_error *error) {
  char told[400] = "";
  bool folder = f->options->folder;
  if (folder && f->options->resume && dv_exists(f->folder.model) && !dv_exists(f->folder.checkpoint)) {
    dvbf_status status = dvbf_model_load(m, f->folder.model, error);
    if (!status) tell(f, "this run is finished: nothing is left to do");
    return status;
  }
  dvbf_status status = folder ? dv_run_folder_begin(&f->folder, settings, error) : DVBF_OK;
  if (!status) status = fit(m, settings, data, (dv_fit_watch){watch, f}, told, sizeof told, error);
  if (!status) status = score(f, *m, data, error);
  if (!status && folder) status = dv_run_folder_add(&f->folder, &f->report, error);
  if (!status && folder) status = dv_run_folder_sync(&f->folder, error);
  /* A stopped fit leaves a checkpoint, which marks its model as unfinished. A fit takes so little time that
   * it then begins anew. */
  if (!status && folder && f->stopped) status = dvbf_model_save(*m, f->folder.checkpoint, error);
  if (!status && folder) status = dvbf_model_save(*m, f->folder.model, error);
  if (!status) {
    (*m)->seconds = dv_clock() - f->began;
    tell(f, told);
  }
  return status;
}

dvbf_status dv_train_fitted(dvbf_model **out, dv_fit_fn *fit, const dvbf_settings *settings,
                            const dvbf_data *data, const dvbf_train_options *options, dvbf_error *error) {
  dvbf_train_options alone = *options; /* ranks fit alike, and the first alone writes */
  if (dv_ranks_rank(dv_settings_ranks(settings))) alone.folder = NULL;
  options = &alone;
  fitted_run f = {.options = options,
                  .folder = DV_NO_RUN_FOLDER,
                  .began = dv_clock(),
                  .interrupt = dv_settings_interrupt(settings)};
  dvbf_settings *open = NULL;
  dvbf_model *m = NULL;
  dvbf_status status = dvbf_settings_copy(&open, settings, error);
  if (!status) dvbf_settings_interrupt(open, f.interrupt);
  if (!status) dv_settings_leave_open(open, "latent");
  if (!status) dv_settings_leave_open(open, "feedthrough");
  if (!status && options->folder) status = dv_run_folder_open(&f.folder, options, open, error);
  if (!status) status = run_fit(&f, &m, fit, open, data, error);
  if (options->folder) dv_run_folder_close(&f.folder);
  dvbf_settings_free(open);
  return dv_model_give(out, m, status);
}

/* ---- Checks ---- */

dvbf_status dv_check_varies(const dv_statistics *x, size_t n_x, dvbf_error *error) {
  for (size_t k = 0; k < n_x; k++)
    if (dv_statistics_vary(x, k)) return DVBF_OK;
  if (!x->frames)
    return dv_fail(error, DVBF_FORMAT,
                   "data: all of x is missing in the training sequences; correct the file");
  return dv_fail(
      error, DVBF_FORMAT,
      "data: every column of x is constant in the training sequences (column 0 is always %g), so there "
      "is nothing to learn; choose other columns, or other data",
      x->mean[0]);
}

dvbf_status dv_check_length(const dvbf_model_class *type, const dvbf_settings *settings, size_t steps,
                            const char *which, dvbf_error *error) {
  int needed = type->frames_needed ? type->frames_needed(type, settings) : 1;
  bool validates = !strcmp(which, "validation");
  if ((size_t)needed <= steps) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "initial-frames = %d: the %s sequences have only %zu step%s, so the model cannot begin; use "
                 "initial-frames = %zu or fewer%s",
                 needed, which, steps, steps == 1 ? "" : "s", steps > 1 ? steps - 1 : 1,
                 validates ? ", or a larger valid-share, or valid-share = 0"
                           : ", or longer sequences or windows");
}
