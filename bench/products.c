/* Time of an update with each choice of the setting `products`, measured in turn in the same run, because the
 * machine may be shared: medians, and medians of the ratio to float in the same round. Usage: bench_products
 * [ROUNDS] */
#include "bench.h"

enum { BATCHES = 2, THREADS = 2, CHOICES = 3 };
static const int batches[BATCHES] = {50, 500}, updates_per_round[BATCHES] = {40, 4};
static const char *const choices[CHOICES] = {"float", "bfloat16x3", "bfloat16"};

typedef struct entrant {
  contender ours;
  sample seconds, ratio;
} entrant;

static void measure(entrant e[CHOICES], int updates) {
  double base = 0;
  for (int i = 0; i < CHOICES; i++) {
    double seconds = contender_time(&e[i].ours, updates);
    if (i == 0) base = seconds;
    put(&e[i].seconds, seconds);
    put(&e[i].ratio, seconds / base);
  }
}

static void report(const entrant e[CHOICES], int batch, int threads) {
  for (int i = 0; i < CHOICES; i++)
    printf("%5d %7d %11s %13.2f %8.2f (%.2f .. %.2f)\n", batch, threads, choices[i],
           1e3 * quantile(&e[i].seconds, 0.5), quantile(&e[i].ratio, 0.5), quantile(&e[i].ratio, 0.1),
           quantile(&e[i].ratio, 0.9));
}

int main(int count, char **arguments) {
  static entrant all[BATCHES][THREADS][CHOICES];
  int rounds = count > 1 ? atoi(arguments[1]) : 15;
  if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
  dvbf_sequences data = bench_data(500, 15, 256);
  for (int b = 0; b < BATCHES; b++)
    for (int n = 0; n < THREADS; n++)
      for (int i = 0; i < CHOICES; i++) {
        const char *const more[] = {"products", choices[i], NULL};
        all[b][n][i].ours = contender_new(&data, batches[b], n + 1, more);
      }
  for (int r = 0; r < rounds; r++)
    for (int b = 0; b < BATCHES; b++)
      for (int n = 0; n < THREADS; n++) measure(all[b][n], updates_per_round[b]);
  printf("batch threads    products ms per update  of float (10 %% .. 90 %%)\n");
  for (int b = 0; b < BATCHES; b++)
    for (int n = 0; n < THREADS; n++) report(all[b][n], batches[b], n + 1);
  return 0;
}
