/* Time of one step of the online filter on a pendulum-sized model. Usage: bench_filter [STEPS] [SAMPLES] */
#include "bench.h"

int main(int count, char **arguments) {
  int steps = count > 1 ? atoi(arguments[1]) : 100000;
  size_t samples = count > 2 ? (size_t)atoi(arguments[2]) : 1, size;
  dvbf_error error;
  dvbf_sequences data = bench_data(100, 15, 256);
  const char *const more[] = {"initial", "mlp", "initial-frames", "5", NULL};
  dvbf_model *model = bench_model(&data, 50, more);
  must(dvbf_filter_memsize(&size, model, samples, &error), &error);
  void *memory = dv_calloc_aligned(size, 1);
  dvbf_filter *filter;
  dvbf_belief belief;
  must(dvbf_filter_init(&filter, memory, size, model, samples, 1, &error), &error);
  double *seconds = dv_calloc((size_t)steps, sizeof *seconds);
  for (int i = 0; i < steps; i++) {
    size_t frame = (size_t)(i % 1500);
    if (i % 200 == 0) dvbf_filter_reset(filter);
    double began = now();
    dvbf_filter_step(filter, data.x + frame * 256, data.u + frame, &belief);
    seconds[i] = now() - began;
    if (i % 200 < 5) seconds[i] = 0; /* the start of a sequence is another matter */
  }
  qsort(seconds, (size_t)steps, sizeof *seconds, by_value);
  int skip = (steps + 199) / 200 * 5, n = steps - skip;
  double *s = seconds + skip;
  printf("{\"samples\": %zu, \"bytes\": %zu, \"median_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.3f}\n",
         samples, size, 1e6 * s[n / 2], 1e6 * s[(int)(0.99 * n)], 1e6 * s[n - 1]);
  return 0;
}
