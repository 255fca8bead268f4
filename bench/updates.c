/* Updates per second of DVBF-LL with a bidirectional initial network over 15 frames, and how close that is to
 * the machine: the rate of OpenBLAS's sgemm on one core per thread, and the time of a PyTorch twin, all
 * measured in turn in the same run, because the machine may be shared. Usage: bench_updates [ROUNDS] [TWIN
 * COMMAND...] */
#include "bench.h"

#include <cblas.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

extern void openblas_set_num_threads(int count);
extern char *openblas_get_corename(void);

enum { BATCHES = 3, THREADS = 2 };
static const int batches[BATCHES] = {50, 100, 500};
static const int updates_per_round[BATCHES] = {40, 20, 6};

/* OpenBLAS of Debian 12 takes processors it does not know for a Prescott, and would be measured five times
 * too slow. The choice is made when it is loaded, so the program starts itself again. */
static void insist_on_fast_blas(char **arguments) {
#if defined(__x86_64__)
  if (strcmp(openblas_get_corename(), "Prescott") || getenv("OPENBLAS_CORETYPE")) return;
  __builtin_cpu_init();
  const char *core = __builtin_cpu_supports("avx512vl") ? "SKYLAKEX"
                     : __builtin_cpu_supports("avx2")   ? "HASWELL"
                                                        : NULL;
  if (!core) return;
  setenv("OPENBLAS_CORETYPE", core, 1);
  execv("/proc/self/exe", arguments);
#else
  (void)arguments;
#endif
}

/* ---- sgemm: one single-threaded product per thread, of the emission's shape ---- */

enum { M = 500, N = 256, K = 128 };

static void *multiply(void *argument) {
  float *a = dv_calloc_aligned(M * K, sizeof *a), *b = dv_calloc_aligned(K * N, sizeof *b);
  float *c = dv_calloc_aligned(M * N, sizeof *c);
  double *seconds = argument, began = 0;
  enum { WARM = 3, COUNT = 60 };
  for (int i = 0; i < WARM + COUNT; i++) {
    if (i == WARM) began = now();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 1, a, K, b, N, 0, c, N);
  }
  *seconds = (now() - began) / COUNT;
  dv_free(a);
  dv_free(b);
  dv_free(c);
  return NULL;
}

/* GFLOP/s over all threads. */
static double sgemm_rate(int threads) {
  pthread_t id[THREADS];
  double seconds[THREADS], rate = 0;
  for (int i = 0; i < threads; i++) pthread_create(&id[i], NULL, multiply, &seconds[i]);
  for (int i = 0; i < threads; i++) {
    pthread_join(id[i], NULL);
    rate += 2e-9 * M * N * K / seconds[i];
  }
  return rate;
}

/* ---- The twin: a process that answers "BATCH THREADS UPDATES" with seconds ---- */

typedef struct twin {
  FILE *to, *from;
} twin;

static twin twin_start(char **command) {
  int down[2], up[2];
  twin t = {0};
  if (!*command || pipe(down) || pipe(up)) return t;
  if (fork() == 0) {
    dup2(down[0], 0);
    dup2(up[1], 1);
    close(down[1]);
    close(up[0]);
    execvp(*command, command);
    _exit(127);
  }
  close(down[0]);
  close(up[1]);
  t.to = fdopen(down[1], "w");
  t.from = fdopen(up[0], "r");
  return t;
}

/* Seconds per update, NaN when there is no twin. */
static double time_twin(twin *t, int batch, int threads, int updates) {
  char line[64];
  if (!t->to) return NAN;
  fprintf(t->to, "%d %d %d\n", batch, threads, updates);
  fflush(t->to);
  if (fgets(line, sizeof line, t->from)) return atof(line) / updates;
  fclose(t->to);
  t->to = NULL;
  return NAN;
}

/* ---- Figures ---- */

typedef struct row {
  contender ours;
  sample seconds, twin, rate;
} row;

static long resident_kilobytes(void) {
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
  if (f) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void measure(row rows[BATCHES][THREADS], sample gemm[THREADS], twin *t, int rounds) {
  for (int r = 0; r < rounds; r++)
    for (int b = 0; b < BATCHES; b++)
      for (int n = 0; n < THREADS; n++) {
        row *at = &rows[b][n];
        double rate = sgemm_rate(n + 1), seconds = contender_time(&at->ours, updates_per_round[b]);
        put(&gemm[n], rate);
        put(&at->seconds, seconds);
        put(&at->rate, dv_updater_flops(at->ours.updater) / seconds * 1e-9 / rate);
        put(&at->twin, time_twin(t, batches[b], n + 1, updates_per_round[b] / 2 + 1));
        fprintf(stderr, "\rround %d of %d", r + 1, rounds);
      }
  fprintf(stderr, "\r                  \r");
}

static double fastest_twin(const row rows[THREADS]) {
  return fmin(quantile(&rows[0].twin, 0.5), quantile(&rows[1].twin, 0.5));
}

static json_t *report(row rows[BATCHES][THREADS], const sample gemm[THREADS]) {
  json_t *list = json_array();
  printf("DVBF-LL, 256 pixels, 15 frames, BiRNN initial network; medians (10 %% .. 90 %%)\n");
  printf("sgemm %dx%dx%d, OpenBLAS %s: %.0f GFLOP/s with 1 thread, %.0f with 2\n\n", M, N, K,
         openblas_get_corename(), quantile(&gemm[0], 0.5), quantile(&gemm[1], 0.5));
  printf("%5s %7s %22s %9s %8s %9s %9s %11s\n", "batch", "threads", "ms per update", "updates/s", "GFLOP/s",
         "of sgemm", "speed-up", "of twin");
  for (int b = 0; b < BATCHES; b++)
    for (int n = 0; n < THREADS; n++) {
      const row *r = &rows[b][n];
      double s = quantile(&r->seconds, 0.5), gflops = dv_updater_flops(r->ours.updater) / s * 1e-9;
      double speed_up = quantile(&rows[b][0].seconds, 0.5) / s, ratio = fastest_twin(rows[b]) / s;
      printf("%5d %7d %8.2f (%5.2f ..%6.2f) %9.1f %8.1f %8.0f%% %8.2fx", batches[b], n + 1, 1e3 * s,
             1e3 * quantile(&r->seconds, 0.1), 1e3 * quantile(&r->seconds, 0.9), 1 / s, gflops,
             100 * quantile(&r->rate, 0.5), speed_up);
      isfinite(ratio) ? printf(" %10.2fx\n", ratio) : printf(" %11s\n", "-");
      json_array_append_new(list, json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "batch", batches[b],
                                            "threads", n + 1, "seconds", s, "gflops", gflops, "of_sgemm",
                                            quantile(&r->rate, 0.5), "speed_up", speed_up, "twin_seconds",
                                            isfinite(ratio) ? ratio * s : -1.0));
    }
  return list;
}

int main(int count, char **arguments) {
  static row rows[BATCHES][THREADS];
  sample gemm[THREADS] = {{{0}, 0}};
  insist_on_fast_blas(arguments);
  openblas_set_num_threads(1);
  int rounds = count > 1 ? atoi(arguments[1]) : 15;
  if (rounds < 1 || rounds * BATCHES > MOST_ROUNDS) rounds = MOST_ROUNDS / BATCHES;
  dvbf_sequences data = bench_data(500, 15, 256);
  long memory = 0;
  for (int b = 0; b < BATCHES; b++)
    for (int n = 0; n < THREADS; n++) {
      long before = resident_kilobytes();
      rows[b][n].ours = contender_new(&data, batches[b], n + 1, NULL);
      memory = resident_kilobytes() - before; /* of the last: batch 500 with 2 threads */
    }
  twin t = twin_start(count > 2 ? arguments + 2 : (char *[]){NULL});
  measure(rows, gemm, &t, rounds);
  json_t *list = report(rows, gemm);
  printf("\nmemory of training at batch 500 with 2 threads: %.0f MB\n", (double)memory / 1024);
  json_t *all = json_pack("{s:o, s:f, s:f, s:f}", "updates", list, "sgemm_1", quantile(&gemm[0], 0.5),
                          "sgemm_2", quantile(&gemm[1], 0.5), "memory_mb", (double)memory / 1024);
  json_dump_file(all, "bench.json", JSON_INDENT(2));
  json_decref(all);
  return 0;
}
