#include "training.h"

#include "command.h"
#include "files.h"
#include "progress.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct training {
  cli_progress *progress; /* NULL: quiet */
  FILE *metrics;
  cli_path metrics_path, written_path; /* the same unless a former file is to be kept for now */
  cli_summary summary;
} training;

/* ---- Signals ---- */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
  stop_signal = number;
}

int cli_stop_signal(void) {
  return stop_signal;
}

/* The first signal ends training cleanly; a second one has its usual effect. */
static void catch_signals(struct sigaction before[2]) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
  sigaction(SIGINT, &action, &before[0]);
  sigaction(SIGTERM, &action, &before[1]);
}

static void release_signals(const struct sigaction before[2]) {
  sigaction(SIGINT, &before[0], NULL);
  sigaction(SIGTERM, &before[1], NULL);
}

/* ---- metrics.csv ---- */

static dvbf_status open_metrics(training *t, const char *folder, dvbf_error *error) {
  cli_join(t->metrics_path, folder, CLI_METRICS);
  cli_join(t->written_path, folder, cli_exists(t->metrics_path) ? CLI_METRICS ".new" : CLI_METRICS);
  t->metrics = fopen(t->written_path, "w");
  if (!t->metrics)
    return cli_fail(error, DVBF_IO, "%.300s: cannot be written: %s", t->written_path, strerror(errno));
  fprintf(t->metrics, "update,start,seconds,bound,valid_bound,valid_reconstruction,valid_kl_w,valid_kl_v,"
                      "valid_prediction,learning_rate,temperature,sigma_floor\n");
  fflush(t->metrics);
  return DVBF_OK;
}

static void write_metrics(FILE *out, const dvbf_progress *p) {
  fprintf(out, "%llu,%u,%.3f,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", (unsigned long long)p->update,
          p->start, p->seconds, p->bound, p->valid_bound, p->valid_reconstruction, p->valid_kl_w,
          p->valid_kl_v, p->valid_prediction, p->learning_rate, p->temperature, p->sigma_floor);
  fflush(out);
}

/* Closes the metrics; they take the place of former ones only if training succeeded. */
static dvbf_status close_metrics(training *t, dvbf_status status, dvbf_error *error) {
  if (!t->metrics) return status;
  bool failed = ferror(t->metrics), moved = strcmp(t->written_path, t->metrics_path) != 0;
  if (fclose(t->metrics)) failed = true;
  if (status) {
    if (moved) unlink(t->written_path);
    return status;
  }
  if (moved && rename(t->written_path, t->metrics_path)) failed = true;
  if (failed)
    return cli_fail(error, DVBF_IO,
                    "%.300s: could not be written completely; the model beside it is complete",
                    t->metrics_path);
  return DVBF_OK;
}

/* ---- The run ---- */

static bool on_progress(const dvbf_progress *p, void *user_data) {
  training *t = user_data;
  t->summary.update = p->update;
  t->summary.seconds = p->seconds;
  if (p->validated) {
    t->summary.bound = p->valid_bound;
    t->summary.prediction = p->valid_prediction;
  }
  if (p->start > t->summary.starts) t->summary.starts = p->start; /* it may go on with an earlier one */
  if (t->progress) cli_progress_show(t->progress, p);
  if (p->validated) write_metrics(t->metrics, p);
  return !stop_signal;
}

static dvbf_status save(const dvbf_model *model, const dvbf_settings *settings, const char *folder,
                        dvbf_error *error) {
  cli_path model_path, settings_path;
  cli_join(model_path, folder, CLI_MODEL);
  cli_join(settings_path, folder, CLI_SETTINGS);
  dvbf_status status = dvbf_model_save(model, model_path, error);
  return status ? status : dvbf_settings_write(settings, settings_path, error);
}

static dvbf_status train(dvbf_model **out, training *t, const dvbf_settings *settings, const dvbf_data *data,
                         dvbf_error *error) {
  struct sigaction before[2];
  catch_signals(before);
  dvbf_status status = dvbf_train(out, settings, data, on_progress, t, error);
  release_signals(before);
  if (t->progress) cli_progress_end(t->progress);
  return status;
}

/* Says where the model is. An early end is worth a line even to those who want no progress. */
static void tell(const training *t, const char *folder, bool quiet) {
  unsigned long long update = t->summary.update;
  if (stop_signal)
    fprintf(stderr, "dvbf: stopped by %s after %llu updates; the best model so far is saved in %s\n",
            stop_signal == SIGINT ? "SIGINT" : "SIGTERM", update, folder);
  else if (!quiet)
    fprintf(stderr, "%llu updates in %.1f s; the best model is saved in %s\n", update, t->summary.seconds,
            folder);
}

dvbf_status cli_training(dvbf_model **out, cli_summary *summary, const char *folder,
                         const dvbf_settings *settings, const dvbf_data *data, bool quiet,
                         dvbf_error *error) {
  cli_progress progress = cli_progress_new();
  training t = {.progress = quiet ? NULL : &progress};
  dvbf_model *model = NULL;
  dvbf_status status = open_metrics(&t, folder, error);
  if (!status) status = train(&model, &t, settings, data, error);
  if (!status) status = save(model, settings, folder, error);
  status = close_metrics(&t, status, error);
  if (status) {
    dvbf_model_free(model);
    return status;
  }
  tell(&t, folder, quiet);
  *summary = t.summary;
  *out = model;
  return DVBF_OK;
}
