/* Time of one step of the controller on a model of the pendulum: filter, plan of 10 steps, 4 iterations, with
 * and without random plans. Usage: bench_control MODEL */
#include "bench.h"

#include <dvbf/control.h>
#include <dvbf/dvbf.h>

enum { STEPS = 200, ROUNDS = 10, START = 5 };

static void set(dvbf_settings *s, const char *name, const char *value) {
  dvbf_error error;
  must(dvbf_settings_set(s, name, value, &error), &error);
}

/* One long sequence of pictures under random controls. */
static dvbf_data *simulate(void) {
  dvbf_error error;
  dvbf_settings *s = NULL;
  dvbf_data *data = NULL;
  must(dvbf_settings_new(&s, "pendulum", &error), &error);
  set(s, "train", "1");
  set(s, "valid", "1");
  set(s, "test", "1");
  set(s, "steps", "200");
  must(dvbf_simulate(&data, s, &error), &error);
  dvbf_settings_free(s);
  return data;
}

/* Seconds of the processor, which other processes do not disturb. */
static double busy(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(const dvbf_model *model, const dvbf_data *data, const char *plan,
                    const char *random_plans) {
  static double spent[ROUNDS * (STEPS - START)];
  dvbf_error error;
  dvbf_settings *s = NULL;
  dvbf_controller *controller = NULL;
  const dvbf_sequences *d = &data->test;
  const dvbf_goal goal = {.count = 1, .x = d->x};
  size_t size = 0, n = 0, iterations = 0;
  must(dvbf_settings_new(&s, "control", &error), &error);
  set(s, "low", "-2");
  set(s, "high", "2");
  set(s, "plan", plan);
  set(s, "random-plans", random_plans);
  must(dvbf_controller_memsize(&size, model, &goal, s, &error), &error);
  void *memory = dv_calloc_aligned(size, 1);
  must(dvbf_controller_init(&controller, memory, size, model, &goal, s, &error), &error);
  for (int round = 0; round < ROUNDS; round++) {
    dvbf_controller_reset(controller);
    for (size_t t = 0; t < STEPS; t++) {
      dvbf_control c;
      double began = busy();
      dvbf_controller_step(controller, d->x + t * d->n_x, t ? d->u + t - 1 : NULL, &c);
      double seconds = busy() - began;
      if (t >= START) spent[n++] = seconds, iterations += (size_t)c.iterations;
    }
  }
  qsort(spent, n, sizeof *spent, compare);
  printf("%6s %8s %12.0f %10.0f %10.0f %12.1f %10zu\n", plan, random_plans, 1e6 * spent[n / 2],
         1e6 * spent[(size_t)(0.99 * (double)n)], 1e6 * spent[n - 1], (double)iterations / (double)n,
         size / 1024);
  dv_free(memory);
  dvbf_settings_free(s);
}

int main(int count, char **arguments) {
  dvbf_error error;
  dvbf_model *model = NULL;
  if (count != 2) return fprintf(stderr, "usage: bench_control MODEL\n"), 2;
  must(dvbf_model_load(&model, arguments[1], &error), &error);
  dvbf_data *data = simulate();
  if (dvbf_model_describe(model).n_x != data->test.n_x || dvbf_model_describe(model).n_u != 1)
    return fprintf(stderr, "bench: this is no model of the pendulum in 16 x 16 pixels\n"), 1;
  printf("Microseconds of the processor for one step: the filter, and a plan with up to 4 iterations\n\n%6s "
         "%8s %12s %10s %10s "
         "%12s %10s\n",
         "plan", "random", "median", "99 %", "most", "iterations", "KiB");
  measure(model, data, "10", "0");
  measure(model, data, "10", "64");
  measure(model, data, "30", "0");
  measure(model, data, "30", "64");
  dvbf_data_free(data);
  dvbf_model_free(model);
  return 0;
}
