/* The program at the top of <dvbf/core.h>, for a model of any shape: follows a system online. Each line of
 * input is an observation, n_x numbers, and the control since the previous one, n_u numbers; nan is a missing
 * value. Each line of output is a belief about the latent state: n_z means and n_z standard deviations. Needs
 * only libdvbf-core.
 *
 *   robot MODEL [SAMPLES] < OBSERVATIONS
 */
#include <dvbf/core.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_numbers(float *out, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (scanf("%f", &out[i]) != 1) return false;
  return true;
}

static void print_belief(const dvbf_belief *belief) {
  for (size_t i = 0; i < belief->n_z; i++) printf("%.6g ", (double)belief->mean[i]);
  for (size_t i = 0; i < belief->n_z; i++)
    printf("%.6g%c", (double)belief->deviation[i], i + 1 < belief->n_z ? ' ' : '\n');
}

/* Until the input ends. */
static dvbf_status follow(const dvbf_model *model, size_t samples, dvbf_error *error) {
  size_t size;
  dvbf_filter *filter;
  dvbf_status status = dvbf_filter_memsize(&size, model, samples, error);
  if (status) return status;
  dvbf_model_info info = dvbf_model_describe(model);
  void *memory = aligned_alloc(64, size);
  float *numbers = (float *)calloc(info.n_x + info.n_u, sizeof *numbers);
  status = dvbf_filter_init(&filter, memory, memory && numbers ? size : 0, model, samples, 1, error);
  while (!status && read_numbers(numbers, info.n_x + info.n_u)) {
    dvbf_belief belief;
    dvbf_filter_step(filter, numbers, numbers + info.n_x, &belief);
    if (belief.ready) print_belief(&belief);
  }
  free(numbers);
  free(memory);
  return status;
}

int main(int argc, char **argv) {
  dvbf_error error;
  dvbf_model *model = NULL;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL [SAMPLES] < OBSERVATIONS\n", argv[0]);
    return 2;
  }
  int failed = dvbf_model_load(&model, argv[1], &error) ||
               follow(model, argc > 2 ? (size_t)atoi(argv[2]) : 16, &error);
  if (failed) fprintf(stderr, "%s\n", error.message);
  dvbf_model_free(model);
  return failed;
}
