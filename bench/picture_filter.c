/* Time of one step of the online filter on images of 64 x 64 pixels, by networks of weights for each pixel,
 * on components, and by convolutions. Steps are timed one by one, kinds in turn. Usage: bench_picture_filter
 * [SIDE [CHANNELS [ROUNDS]]] */
#include "picture_model.h"

enum { SEQUENCE = 200, START = 5, STEPS = 400, KINDS = 2 };
static const char *const names[KINDS] = {"dense", "conv"};

typedef struct kind {
  dvbf_filter *filter;
  void *memory;
  size_t size;
  dvbf_model *model;
  sample seconds;
} kind;

static void make(kind *k, const dvbf_sequences *data, const picture_shape *shape, int which) {
  dvbf_error error;
  picture_settings s;
  picture_set(&s, shape, names[which]);
  k->model = bench_model(data, "mlp", 50, s.list);
  must(dvbf_filter_memsize(&k->size, k->model, 1, &error), &error);
  k->memory = dv_calloc_aligned(k->size, 1);
  must(dvbf_filter_init(&k->filter, k->memory, k->size, k->model, 1, 1, &error), &error);
}

/* The start of a sequence is another matter, and is left out. */
static void run(kind *k, const dvbf_sequences *data) {
  dvbf_belief belief;
  for (int i = 0; i < STEPS; i++) {
    size_t frame = (size_t)i % (data->count * data->steps);
    if (i % SEQUENCE == 0) dvbf_filter_reset(k->filter);
    double began = now();
    dvbf_filter_step(k->filter, data->x + frame * data->n_x, data->u + frame, &belief);
    double spent = now() - began;
    if (i % SEQUENCE >= START) put(&k->seconds, spent);
  }
}

int main(int count, char **arguments) {
  picture_shape shape = {count > 1 ? atoi(arguments[1]) : 64, count > 2 ? atoi(arguments[2]) : 1, 15};
  int rounds = count > 3 ? atoi(arguments[3]) : 20;
  dvbf_sequences data = picture_data(&shape);
  kind kinds[KINDS] = {0};
  for (int i = 0; i < KINDS; i++) make(&kinds[i], &data, &shape, i);
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < KINDS; i++) run(&kinds[i], &data);
  printf("Microseconds of a filter step, images of %d x %d x %d, one sample of z\n\n%-22s %9s %9s %9s %9s\n",
         shape.side, shape.side, shape.channels, "", "least", "median", "99 %", "KiB");
  for (int i = 0; i < KINDS; i++) {
    const sample *s = &kinds[i].seconds;
    printf("%-22s %9.1f %9.1f %9.1f %9.0f\n", names[i], 1e6 * quantile(s, 0), 1e6 * median(s),
           1e6 * quantile(s, 0.99), (double)kinds[i].size / 1024);
    sample_free(&kinds[i].seconds);
    dvbf_model_free(kinds[i].model);
    dv_free(kinds[i].memory);
  }
  dvbf_sequences_free(&data);
  return 0;
}
