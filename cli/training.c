#include "training.h"
#include "ranks.h"

#include <math.h>
#include <stdio.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
  stop_signal = number;
}

int cli_stop_signal(void) {
  return stop_signal;
}

const volatile int *cli_stop_flag(void) {
  return &stop_signal;
}

void cli_share_signal(void) {
  stop_signal = dvbf_ranks_largest(cli_ranks(), stop_signal);
}

static bool useless;

void cli_exit_useless(void) {
  useless = true;
}

bool cli_is_useless(void) {
  return useless;
}

/* The first signal ends training with a checkpoint; a second one has its usual effect. */
void cli_training_begin(cli_training *t, bool quiet) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
  *t = (cli_training){.quiet = quiet,
                      .running = true,
                      .progress = cli_progress_new(),
                      .last = {.valid_bound = NAN, .valid_prediction = NAN}};
  dvbf_ranks_hurry(cli_ranks(), &stop_signal);
  sigaction(SIGINT, &action, &t->before[0]);
  sigaction(SIGTERM, &action, &t->before[1]);
}

bool cli_training_progress(const dvbf_progress *progress, void *training) {
  cli_training *t = training;
  t->last = *progress;
  if (!t->quiet) cli_progress_show(&t->progress, progress);
  return !stop_signal;
}

/* An early end is worth a line even to those who want no progress. */
void cli_training_end(cli_training *t, const char *folder) {
  unsigned long long update = t->last.update;
  if (!t->running) return;
  t->running = false;
  sigaction(SIGINT, &t->before[0], NULL);
  sigaction(SIGTERM, &t->before[1], NULL);
  cli_progress_end(&t->progress);
  if (!folder) return;
  if (stop_signal)
    fprintf(stderr,
            "dvbf: stopped by %s after %llu updates; the best model so far is saved in %s; "
            "`dvbf train DATA -o %s --resume` goes on\n",
            stop_signal == SIGINT ? "SIGINT" : "SIGTERM", update, folder, folder);
  else if (!t->quiet)
    fprintf(stderr, "%llu updates in %.1f s; the best model is saved in %s\n", update, t->last.seconds,
            folder);
}
