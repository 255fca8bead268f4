/* Trains a while on noise, alone in its process: what a twin does when it is asked, for its memory. Usage:
 * bench_train INITIAL BATCH THREADS UPDATES [SETTING VALUE]... */
#include "bench.h"

int main(int count, char **arguments) {
  if (count < 5 || count % 2 == 0) {
    fprintf(stderr, "usage: bench_train INITIAL BATCH THREADS UPDATES [SETTING VALUE]...\n");
    return 2;
  }
  int batch = atoi(arguments[2]), threads = atoi(arguments[3]), updates = atoi(arguments[4]);
  if (threads < 1 || updates < 1) {
    fprintf(stderr, "bench_train: THREADS and UPDATES must be at least 1\n");
    return 2;
  }
  dvbf_sequences data = bench_data(500, 15, 256);
  contender c = contender_new(&data, arguments[1], batch, threads, (const char *const *)arguments + 5);
  double seconds = contender_time(&c, updates);
  printf("{\"seconds\": %.6f, \"peak_mib\": %.1f}\n", seconds, peak_mib());
  contender_free(&c);
  dvbf_sequences_free(&data);
  return 0;
}
