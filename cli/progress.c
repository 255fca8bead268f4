/* Progress on standard error (cli_progress_show, cli_share_show): on a terminal one line that is redrawn,
 * otherwise a line every ten seconds. The signals that end a training (cli_training_*). Protection of the
 * terminal: control characters in names from files are printed as '?' (cli_terminal_protect). */
#include "progress.h"

#include "ranks.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 10, LINE = 256 };
static const double LOG_EVERY = 10; /* seconds between the lines of a log */

cli_progress cli_progress_new(void) {
  return (cli_progress){.terminal = isatty(STDERR_FILENO)};
}

/* Updates per second since this start began, or since training returned to an earlier update or start. */
static double rate(cli_progress *progress, const dvbf_progress *report) {
  if (!progress->start && report->event) { /* a resumed run counts from there */
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

/* Adds "  NAME VALUE"; what is not known yet is left out. */
static void add_number(char *out, const char *name, const char *format, double value) {
  size_t used = strlen(out);
  char number[32];
  if (isnan(value)) return;
  snprintf(number, sizeof number, isfinite(value) ? format : "diverged", value);
  snprintf(out + used, LINE - used, "  %s %s", name, number);
}

/* The numbers of a line. A search has no bound of its own; candidates are reported as events. */
static void numbers_text(cli_progress *progress, const dvbf_progress *report, char out[LINE]) {
  char left[32], start[32] = "";
  time_text(report->seconds_left, left, sizeof left);
  if (report->start > 1) snprintf(start, sizeof start, "  start %u of %u", report->start, report->starts);
  snprintf(out, LINE, "%llu/%llu updates%s  %.0f/s  left %s", (unsigned long long)report->update,
           (unsigned long long)report->updates, start, rate(progress, report), left);
  add_number(out, "bound", "%.1f", report->bound);
  if (!progress->validated) return;
  add_number(out, "valid", "%.1f", progress->valid_bound);
  add_number(out, "prediction error", "%.3f", progress->valid_prediction);
}

static void write_line(cli_progress *progress, double seconds) {
  fprintf(stderr, "%s\n", progress->numbers);
  progress->shown_at = seconds;
  progress->due = false;
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
  if (!*progress->numbers) progress->shown_at = report->seconds; /* a resumed run counts from there */
  if (report->validated) {
    progress->validated = true;
    progress->valid_bound = report->valid_bound;
    progress->valid_prediction = report->valid_prediction;
  }
  numbers_text(progress, report, progress->numbers);
  progress->due = !progress->terminal && (progress->due || report->validated);
  if (report->event && progress->terminal) fprintf(cli_terminal_own(), "\r\033[K");
  if (report->event) fprintf(stderr, "%s\n", report->event);
  if (progress->terminal) {
    draw(report->updates ? (int)(report->update * BAR / report->updates) : BAR, progress->numbers);
    progress->drawn = true;
  } else if (report->seconds >= progress->shown_at + LOG_EVERY) {
    write_line(progress, report->seconds);
  }
}

void cli_progress_end(cli_progress *progress) {
  if (progress->drawn) fprintf(stderr, "\n");
  if (progress->due) write_line(progress, progress->shown_at);
  progress->drawn = false;
}

/* ---- Shares ---- */

double cli_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

cli_share cli_share_new(void) {
  return (cli_share){.terminal = isatty(STDERR_FILENO), .began = cli_seconds()};
}

/* On a terminal, the first line comes after a second. */
void cli_share_show(double done, void *user) {
  cli_share *share = user;
  double seconds = cli_seconds() - share->began;
  char left[32], numbers[LINE];
  bool due = share->terminal ? seconds > 1 : seconds >= share->shown_at + LOG_EVERY;
  if (!due || !(done > 0)) return;
  time_text(seconds / done * (1 - done), left, sizeof left);
  snprintf(numbers, sizeof numbers, "%.0f %%  left %s", 100 * done, left);
  share->shown_at = seconds;
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

/* ---- Training ---- */

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
  dvbf_ranks_set_interrupt(cli_ranks(), &stop_signal);
  sigaction(SIGINT, &action, &t->before[0]);
  sigaction(SIGTERM, &action, &t->before[1]);
}

bool cli_training_progress(const dvbf_progress *progress, void *training) {
  cli_training *t = training;
  t->last = *progress;
  if (!t->quiet) cli_progress_show(&t->progress, progress);
  return !stop_signal;
}

/* An early end is reported even with --quiet. */
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
            "`dvbf train DATA -o %s --resume` continues\n",
            stop_signal == SIGINT ? "SIGINT" : "SIGTERM", update, folder, folder);
  else if (!t->quiet)
    fprintf(stderr, "%llu updates in %.1f s; the best model is saved in %s\n", update, t->last.seconds,
            folder);
}

/* ---- Terminal ---- */

enum { PIECE = 4096 };

/* A stream of text to a descriptor. */
typedef struct channel {
  int descriptor;
  bool after_c2; /* the last byte was 0xc2, with which control characters of two bytes begin */
} channel;

static channel channels[2] = {{STDOUT_FILENO, false}, {STDERR_FILENO, false}};
static FILE *own;

/* 0xc2 0x80 to 0xc2 0x9f are control characters too; 0xc2 0xbf is an inverted question mark. */
static char plain(channel *c, unsigned char byte) {
  bool second = c->after_c2 && byte < 0xa0 && byte >= 0x80;
  c->after_c2 = byte == 0xc2;
  if (second) return (char)0xbf;
  return (byte < ' ' && byte != '\n' && byte != '\t') || byte == 127 ? '?' : (char)byte;
}

static bool write_all(int descriptor, const char *bytes, size_t size) {
  while (size) {
    ssize_t done = write(descriptor, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    size -= (size_t)done;
  }
  return true;
}

static ssize_t write_plain(void *cookie, const char *bytes, size_t size) {
  channel *c = cookie;
  char piece[PIECE];
  for (size_t at = 0; at < size;) {
    size_t n = 0;
    for (; n < PIECE && at + n < size; n++) piece[n] = plain(c, (unsigned char)bytes[at + n]);
    if (!write_all(c->descriptor, piece, n)) return 0;
    at += n;
  }
  return (ssize_t)size;
}

static FILE *stream_to(channel *c, int buffering) {
  FILE *stream = fopencookie(c, "w", (cookie_io_functions_t){.write = write_plain});
  if (stream) setvbuf(stream, NULL, buffering, BUFSIZ);
  return stream;
}

void cli_terminal_protect(void) {
  FILE *out = stream_to(&channels[0], isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
  FILE *messages = stream_to(&channels[1], _IOLBF);
  own = stderr;
  if (out) stdout = out;
  if (messages) stderr = messages;
}

FILE *cli_terminal_own(void) {
  return own ? own : stderr;
}
