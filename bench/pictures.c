/* Update time and memory of models with convolutions (network = conv) beside their twins in PyTorch and JAX
 * (bench/peers): images of several sizes, batches and lengths. All take turns in the same rounds. Each shape
 * has fresh twins, so that the memory of a process is that of one shape. */
#include "picture_model.h"
#include "twin.h"

#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

static const char help[] =
    "usage: bench_pictures [OPTION]...\n"
    "Update time and peak memory with convolutions, and those of twins in PyTorch and JAX.\n\n"
    "  --side N          images of N x N pixels alone (default 32, 64 and 128)\n"
    "  --frames N        sequences of N frames alone (default 15 and 50)\n"
    "  --batch N         this batch alone (default 16 and 50)\n"
    "  --channels N      of a pixel (default 1)\n"
    "  --rounds N        each contender in turn, so often (default 7)\n"
    "  --threads N       time N threads alone (default 1 and 2)\n"
    "  --processor       processor time of one thread, where others want the cores too\n"
    "  --peers FOLDER    of the twins' scripts\n"
    "  --torch PYTHON    an interpreter that has PyTorch\n"
    "  --jax PYTHON      one that has JAX\n"
    "  --alone           train without twins in this process, and print its peak memory\n";

enum { THREADS = TWIN_THREADS };

typedef struct options {
  int side, frames, batch, channels, rounds, threads;
  const char *peers, *torch_python, *jax_python;
  bool alone, processor;
} options;

/* One shape and batch: ours and the twins. */
typedef struct cell {
  picture_shape shape;
  int batch;
  contender ours[THREADS];
  sample ours_seconds[THREADS], seconds[TWINS][THREADS];
  double usual[TWINS][THREADS]; /* seconds of an update, NaN: it takes no part */
} cell;

static bool wanted(const options *o, int n) {
  return !o->threads || o->threads == n + 1;
}

/* Seconds of an update, by the clock or of the processor. */
static double ask_update(const options *o, twin *t, const cell *c, int threads, int updates) {
  char *answer = twin_ask(t, "update %d %d %d %d %d %d\n", c->shape.side, c->shape.channels, c->shape.frames,
                          c->batch, threads, updates);
  double seconds = answer ? strtod(answer, &answer) : 0;
  if (answer && o->processor) seconds = strtod(answer, NULL);
  return seconds > 0 ? seconds / updates : (double)NAN;
}

static double time_ours(const options *o, contender *c, int updates) {
  double began = clock_seconds(CLOCK_PROCESS_CPUTIME_ID), seconds = contender_time(c, updates);
  return o->processor ? (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - began) / updates : seconds;
}

static contender make_ours(const cell *c, const dvbf_sequences *data, int threads) {
  picture_settings s;
  picture_set(&s, &c->shape, "conv");
  return contender_new(data, "mlp", c->batch, threads, s.list);
}

/* Long enough for a clock, short enough for many turns. */
static int updates_of(double usual) {
  return updates_in(0.3, usual) > 20 ? 20 : updates_in(0.3, usual);
}

static void prepare(const options *o, cell *c, const dvbf_sequences *data, twin *twins) {
  for (int n = 0; n < THREADS; n++) {
    if (!wanted(o, n)) continue;
    c->ours[n] = make_ours(c, data, n + 1);
    for (int i = 0; i < TWINS; i++) {
      if (!twin_there(&twins[i])) continue;
      progress("%s compiles and warms up: side %d, %d frames, batch %d, %d threads", twins[i].name,
               c->shape.side, c->shape.frames, c->batch, n + 1);
      c->usual[i][n] = ask_update(o, &twins[i], c, n + 1, 2);
    }
  }
}

static void measure(const options *o, cell *c, twin *twins) {
  for (int r = 0; r < o->rounds; r++) {
    progress("side %d, %d frames, batch %d: round %d of %d", c->shape.side, c->shape.frames, c->batch, r + 1,
             o->rounds);
    for (int n = 0; n < THREADS; n++) {
      if (!wanted(o, n)) continue;
      put(&c->ours_seconds[n], time_ours(o, &c->ours[n], updates_of(c->ours[n].usual)));
      for (int i = 0; i < TWINS; i++)
        if (twin_there(&twins[i]))
          put(&c->seconds[i][n], ask_update(o, &twins[i], c, n + 1, updates_of(c->usual[i][n])));
    }
  }
  progress_end();
}

/* ---- Reporting ---- */

/* The number of threads with the least time; -1: none was measured. */
static int fastest(const sample *seconds) {
  int best = -1;
  for (int n = 0; n < THREADS; n++)
    if (seconds[n].n && (best < 0 || quantile(&seconds[n], 0) < quantile(&seconds[best], 0))) best = n;
  return best;
}

/* Peak memory of ours in a process of its own. */
static double peak_of_ours(const cell *c) {
  char path[PATH_MAX], numbers[4][16];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  const int values[] = {c->shape.side, c->shape.channels, c->shape.frames, c->batch};
  for (int i = 0; i < 4; i++) snprintf(numbers[i], sizeof numbers[i], "%d", values[i]);
  char *command[] = {path,       "--alone", "--side",   numbers[0],  "--channels", numbers[1], "--frames",
                     numbers[2], "--batch", numbers[3], "--threads", "2",          NULL};
  command_result r = command_run(command, 600);
  return r.status ? (double)NAN : strtod(r.last, NULL);
}

static void print_row(const cell *c, const char *who, int threads, const sample *s, double peak) {
  printf("%4d %6d %5d  %-17s %7d %9.1f %9.1f %8.0f", c->shape.side, c->shape.frames, c->batch, who, threads,
         1e3 * quantile(s, 0), 1e3 * median(s), peak);
}

static void report(const cell *c, twin *twins) {
  int best = fastest(c->ours_seconds);
  const sample *ours = &c->ours_seconds[best];
  double ours_peak = peak_of_ours(c), flops = dv_updater_flops(c->ours[best].updater);
  for (int n = 0; n < THREADS; n++) {
    const sample *s = &c->ours_seconds[n];
    if (!s->n) continue;
    print_row(c, "dvbf", n + 1, s, ours_peak);
    printf("   %.0f GFLOP/s\n", flops / quantile(s, 0) * 1e-9);
  }
  for (int i = 0; i < TWINS; i++) {
    int n = fastest(c->seconds[i]);
    if (n < 0) continue;
    char *answer = twin_ask(&twins[i], "memory\n");
    double peak = answer ? strtod(answer, NULL) : (double)NAN;
    sample ratio = ratios(&c->seconds[i][n], ours);
    print_row(c, twins[i].name, n + 1, &c->seconds[i][n], peak);
    printf("   %5.2fx %5.2fx %6.1fx\n", quantile(&c->seconds[i][n], 0) / quantile(ours, 0), median(&ratio),
           peak / ours_peak);
    sample_free(&ratio);
  }
  fflush(stdout);
}

static void clear(const options *o, cell *c) {
  for (int n = 0; n < THREADS; n++) {
    if (wanted(o, n)) contender_free(&c->ours[n]);
    sample_free(&c->ours_seconds[n]);
    for (int i = 0; i < TWINS; i++) sample_free(&c->seconds[i][n]);
  }
}

static void run_cell(const options *o, picture_shape shape, int batch) {
  cell c = {.shape = shape, .batch = batch};
  twin twins[TWINS];
  twins_prepare(twins, o->peers, "pictures", o->torch_python, o->jax_python);
  dvbf_sequences data = picture_data(&shape);
  prepare(o, &c, &data, twins);
  measure(o, &c, twins);
  report(&c, twins);
  clear(o, &c);
  twins_end(twins);
  dvbf_sequences_free(&data);
}

static void run_alone(const options *o) {
  cell c = {.shape = {o->side, o->channels, o->frames}, .batch = o->batch};
  dvbf_sequences data = picture_data(&c.shape);
  contender ours = make_ours(&c, &data, o->threads ? o->threads : THREADS);
  contender_time(&ours, 2);
  printf("%.1f\n", peak_mib());
  contender_free(&ours);
  dvbf_sequences_free(&data);
}

static options parse(int count, char **arguments) {
  options o = {.channels = 1, .rounds = 7, .peers = "."};
  enum { SIDE = 1, FRAMES, BATCH, CHANNELS, ROUNDS, THREAD, PEERS, TORCH, JAX, ALONE, PROCESSOR, HELP };
  static const struct option known[] = {{"side", 1, NULL, SIDE},
                                        {"frames", 1, NULL, FRAMES},
                                        {"batch", 1, NULL, BATCH},
                                        {"channels", 1, NULL, CHANNELS},
                                        {"rounds", 1, NULL, ROUNDS},
                                        {"threads", 1, NULL, THREAD},
                                        {"peers", 1, NULL, PEERS},
                                        {"torch", 1, NULL, TORCH},
                                        {"jax", 1, NULL, JAX},
                                        {"alone", 0, NULL, ALONE},
                                        {"processor", 0, NULL, PROCESSOR},
                                        {"help", 0, NULL, HELP},
                                        {0}};
  int *const numbers[] = {[SIDE] = &o.side,         [FRAMES] = &o.frames, [BATCH] = &o.batch,
                          [CHANNELS] = &o.channels, [ROUNDS] = &o.rounds, [THREAD] = &o.threads};
  for (int which; (which = getopt_long(count, arguments, "", known, NULL)) != -1;) {
    if (which >= SIDE && which <= THREAD) *numbers[which] = atoi(optarg);
    if (which == PEERS) o.peers = optarg;
    if (which == TORCH) o.torch_python = optarg;
    if (which == JAX) o.jax_python = optarg;
    if (which == ALONE) o.alone = true;
    if (which == PROCESSOR) o.processor = true, o.threads = 1;
    if (which == HELP) exit(fputs(help, stdout) < 0);
    if (which == '?') exit(2);
  }
  for (int i = SIDE; i <= THREAD; i++)
    if (*numbers[i] < 0 || *numbers[i] > 1000) exit((fputs("bench_pictures: 1 to 1000\n", stderr), 2));
  return o;
}

int main(int count, char **arguments) {
  static const int sides[] = {32, 64, 128}, frames[] = {15, 50}, batches[] = {16, 50};
  options o = parse(count, arguments);
  signal(SIGPIPE, SIG_IGN); /* a twin that ended is noticed when it does not answer */
  if (o.alone) {
    run_alone(&o);
    return 0;
  }
  printf("Milliseconds of an update; twins with the number of threads that suits them. Ratios: time of the "
         "twin over ours,\nleast over least and median of rounds; memory over ours.\n\n"
         "%4s %6s %5s  %-17s %7s %9s %9s %8s   %s\n",
         "side", "frames", "batch", "", "threads", "least", "median", "peak MiB", "least median memory");
  for (int s = 0; s < 3; s++)
    for (int f = 0; f < 2; f++)
      for (int b = 0; b < 2; b++)
        if ((!o.side || o.side == sides[s]) && (!o.frames || o.frames == frames[f]) &&
            (!o.batch || o.batch == batches[b]))
          run_cell(&o, (picture_shape){sides[s], o.channels, frames[f]}, batches[b]);
  return 0;
}
