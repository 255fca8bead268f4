#include "training.h"

#include "progress.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

typedef struct training {
  cli_progress *progress; /* NULL: quiet */
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

/* The first signal ends training with a checkpoint; a second one has its usual effect. */
static void catch_signals(struct sigaction before[2]) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
  sigaction(SIGINT, &action, &before[0]);
  sigaction(SIGTERM, &action, &before[1]);
}

static void release_signals(const struct sigaction before[2]) {
  sigaction(SIGINT, &before[0], NULL);
  sigaction(SIGTERM, &before[1], NULL);
}

/* ---- The run ---- */

static bool on_progress(const dvbf_progress *p, void *user_data) {
  training *t = user_data;
  t->summary = (cli_summary){.update = p->update,
                             .starts = p->begun,
                             .seconds = p->seconds,
                             .bound = p->valid_bound,
                             .prediction = p->valid_prediction};
  if (t->progress) cli_progress_show(t->progress, p);
  return !stop_signal;
}

/* Says where the model is. An early end is worth a line even to those who want no progress. */
static void tell(const training *t, const char *folder, bool quiet) {
  unsigned long long update = t->summary.update;
  if (stop_signal)
    fprintf(stderr,
            "dvbf: stopped by %s after %llu updates; the best model so far is saved in %s; "
            "`dvbf train DATA -o %s --resume` goes on\n",
            stop_signal == SIGINT ? "SIGINT" : "SIGTERM", update, folder, folder);
  else if (!quiet)
    fprintf(stderr, "%llu updates in %.1f s; the best model is saved in %s\n", update, t->summary.seconds,
            folder);
}

dvbf_status cli_training(dvbf_model **out, cli_summary *summary, const cli_run *run,
                         const dvbf_settings *settings, const dvbf_data *data, dvbf_error *error) {
  cli_progress progress = cli_progress_new();
  training t = {.progress = run->quiet ? NULL : &progress, .summary = {.bound = NAN, .prediction = NAN}};
  dvbf_train_options options = {.progress = on_progress,
                                .user_data = &t,
                                .folder = run->folder,
                                .resume = run->resume,
                                .force = run->force};
  struct sigaction before[2];
  catch_signals(before);
  dvbf_status status = dvbf_train(out, settings, data, &options, error);
  release_signals(before);
  cli_progress_end(&progress);
  if (status) return status;
  tell(&t, run->folder, run->quiet);
  *summary = t.summary;
  return DVBF_OK;
}
