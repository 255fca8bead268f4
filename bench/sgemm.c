#include "sgemm.h"

#include "bench.h"

#include <cblas.h>
#include <pthread.h>
#include <unistd.h>

extern void openblas_set_num_threads(int count);
extern char *openblas_get_corename(void);

void insist_on_fast_blas(char **arguments) {
  openblas_set_num_threads(1);
#if defined(__x86_64__)
  static const char ours[] = "DVBF_BENCH_CHOSE_CORETYPE";
  if (getenv(ours)) { /* it was for us alone: the programs that we start shall choose for themselves */
    unsetenv(ours);
    unsetenv("OPENBLAS_CORETYPE");
    return;
  }
  if (strcmp(openblas_get_corename(), "Prescott") || getenv("OPENBLAS_CORETYPE")) return;
  __builtin_cpu_init();
  const char *core = __builtin_cpu_supports("avx512vl") ? "SKYLAKEX"
                     : __builtin_cpu_supports("avx2")   ? "HASWELL"
                                                        : NULL;
  if (!core) return;
  setenv("OPENBLAS_CORETYPE", core, 1);
  setenv(ours, "1", 1);
  execv("/proc/self/exe", arguments);
#else
  (void)arguments;
#endif
}

enum { M = 500, N = 256, K = 128, THREADS = 2 };

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

double sgemm_rate(int threads) {
  pthread_t id[THREADS];
  double seconds[THREADS], rate = 0;
  for (int i = 0; i < threads; i++) pthread_create(&id[i], NULL, multiply, &seconds[i]);
  for (int i = 0; i < threads; i++) {
    pthread_join(id[i], NULL);
    rate += 2e-9 * M * N * K / seconds[i];
  }
  return rate;
}

const char *sgemm_name(void) {
  static char name[96];
  snprintf(name, sizeof name, "sgemm %dx%dx%d of OpenBLAS (%s)", M, N, K, openblas_get_corename());
  return name;
}
