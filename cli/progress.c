#include "progress.h"

#include "terminal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 10, LINE = 256 };

cli_progress cli_progress_new(void) {
  return (cli_progress){.terminal = isatty(STDERR_FILENO)};
}

/* Updates per second since this start began, or since training went back to an earlier update or start. */
static double rate(cli_progress *progress, const dvbf_progress *report) {
  if (!progress->start && report->event) { /* a run that goes on counts from there */
    progress->start = report->start;
    progress->from_update = report->update;
    progress->from_seconds = report->seconds;
  }
  if (report->start != progress->start || report->update < progress->last_update) {
    progress->from_update = report->start > progress->start ? 0 : report->update;
    progress->from_seconds = progress->last_seconds;
    progress->start = report->start;
  }
  progress->last_update = report->update;
  progress->last_seconds = report->seconds;
  double seconds = report->seconds - progress->from_seconds;
  return seconds > 0 ? (double)(report->update - progress->from_update) / seconds : 0;
}

static void time_text(double seconds, char *out, size_t size) {
  if (!isfinite(seconds) || seconds < 0 || seconds > 1e8)
    snprintf(out, size, "?");
  else if (seconds < 3600)
    snprintf(out, size, "%d:%02d", (int)seconds / 60, (int)seconds % 60);
  else
    snprintf(out, size, "%d:%02d:%02d", (int)seconds / 3600, (int)seconds / 60 % 60, (int)seconds % 60);
}

static void bar_text(int full, char out[BAR + 1]) {
  for (int i = 0; i < BAR; i++) out[i] = i < full ? '#' : '.';
  out[BAR] = 0;
}

/* The numbers of a line; what is not known yet is left out. */
static void numbers_text(cli_progress *progress, const dvbf_progress *report, char *out, size_t size) {
  char left[32], start[32] = "", valid[96] = "";
  time_text(report->seconds_left, left, sizeof left);
  if (report->start > 1) snprintf(start, sizeof start, "  start %u of %u", report->start, report->starts);
  if (progress->validated && isnan(progress->valid_prediction))
    snprintf(valid, sizeof valid, "  valid %.1f", progress->valid_bound);
  else if (progress->validated)
    snprintf(valid, sizeof valid, "  valid %.1f  prediction error %.3f", progress->valid_bound,
             progress->valid_prediction);
  snprintf(out, size, "%llu/%llu%s  %.0f/s  left %s  bound %.1f%s", (unsigned long long)report->update,
           (unsigned long long)report->updates, start, rate(progress, report), left, report->bound, valid);
}

/* Redraws the line, cut to the terminal's width: a wrapped line could not be redrawn. */
static void draw(int full, const char *numbers) {
  char bar[BAR + 1], line[LINE + BAR + 8];
  struct winsize window;
  int width = 80;
  if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &window) && window.ws_col > 1) width = window.ws_col;
  bar_text(full, bar);
  snprintf(line, sizeof line, "[%s] %s", bar, numbers);
  fprintf(cli_terminal_own(), "\r%.*s\033[K", width - 1, line);
}

void cli_progress_show(cli_progress *progress, const dvbf_progress *report) {
  char numbers[LINE];
  if (report->validated) {
    progress->validated = true;
    progress->valid_bound = report->valid_bound;
    progress->valid_prediction = report->valid_prediction;
  }
  numbers_text(progress, report, numbers, sizeof numbers);
  if (report->event && progress->terminal) fprintf(cli_terminal_own(), "\r\033[K");
  if (report->event) fprintf(stderr, "%s\n", report->event);
  if (progress->terminal) {
    draw(report->updates ? (int)(report->update * BAR / report->updates) : BAR, numbers);
    progress->drawn = true;
  } else if (report->validated) {
    fprintf(stderr, "%s\n", numbers);
  }
}

void cli_progress_end(cli_progress *progress) {
  if (progress->drawn) fprintf(stderr, "\n");
  progress->drawn = false;
}

/* ---- Shares ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

cli_share cli_share_new(void) {
  return (cli_share){.terminal = isatty(STDERR_FILENO), .began = now()};
}

/* What is done in the first second is not worth a line. */
void cli_share_show(double done, void *user) {
  cli_share *share = user;
  double seconds = now() - share->began;
  char left[32], numbers[LINE];
  bool due = share->terminal ? seconds > 1 : seconds > 10 && done >= share->told + 0.1;
  if (!due || !(done > 0)) return;
  time_text(seconds / done * (1 - done), left, sizeof left);
  snprintf(numbers, sizeof numbers, "%.0f %%  left %s", 100 * done, left);
  share->told = done;
  share->drawn = share->terminal;
  if (share->terminal)
    draw((int)(done * BAR), numbers);
  else
    fprintf(stderr, "%s\n", numbers);
}

void cli_share_end(cli_share *share) {
  if (share->drawn) fprintf(cli_terminal_own(), "\r\033[K");
  share->drawn = false;
}
