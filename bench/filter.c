/* Time of one step of the online filter on a model of the pendulum's size with one and sixteen samples of z,
 * and of the same step with one sample in the twins. Steps are timed one by one; what reading the clock
 * costs, the median time between two readings with nothing between them, is taken off each, here and in the
 * twins. */
#include "section.h"

enum {
  SEQUENCE = 200,
  START = 5
}; /* steps until a reset; those in which the initial network sees its frames */

typedef struct ours {
  dvbf_filter *filter;
  void *memory;
  size_t size;
  dvbf_model *model;
  dvbf_sequences data;
} ours;

/* As training on components leaves it: weights from x of few dimensions, here of as many as the pendulum's
 * pictures have. */
static void flatten_weights(dvbf_model *m) {
  enum { RANK = 32 };
  for (size_t k = 0; k < m->parameters.count; k++) {
    const dv_parameter *p = &m->parameters.list[k];
    dvbf_real *w = m->parameters.values + p->offset;
    if (strcmp(p->name, "recognition.hidden.x")) continue;
    for (int r = RANK; r < p->rows; r++)
      for (int i = 0; i < p->cols; i++)
        w[r * p->cols + i] = w[r % RANK * p->cols + i] * (dvbf_real)(r % 7 - 3);
  }
}

static ours make_filter(size_t samples, bool flat) {
  dvbf_error error;
  ours o = {.data = bench_data(100, 15, 256)};
  const char *const more[] = {"projection", "1e-6", NULL};
  o.model = bench_model(&o.data, "mlp", 50, flat ? more : NULL);
  if (flat) flatten_weights(o.model);
  must(dvbf_filter_memsize(&o.size, o.model, samples, &error), &error);
  o.memory = dv_calloc_aligned(o.size, 1);
  must(dvbf_filter_init(&o.filter, o.memory, o.size, o.model, samples, 1, &error), &error);
  return o;
}

static double clock_cost(void) {
  sample s = {0};
  for (int i = 0; i < 1000; i++) {
    double began = now();
    put(&s, now() - began);
  }
  double cost = median(&s);
  sample_free(&s);
  return cost;
}

/* The start of a sequence is another matter, and is left out. */
static void time_ours(ours *o, sample *seconds, int steps, double cost) {
  dvbf_belief belief;
  for (int i = 0; i < steps; i++) {
    size_t frame = (size_t)i % (o->data.count * o->data.steps);
    if (i % SEQUENCE == 0) dvbf_filter_reset(o->filter);
    double began = now();
    dvbf_filter_step(o->filter, o->data.x + frame * o->data.n_x, o->data.u + frame, &belief);
    double spent = now() - began - cost;
    if (i % SEQUENCE >= START) put(seconds, spent);
  }
}

/* Its answer is the microseconds of every step. */
static void time_twin(twin *t, sample *seconds, int steps) {
  char *at = twin_ask(t, "filter %d\n", steps);
  for (char *end; at; at = end) {
    double microseconds = strtod(at, &end);
    if (end == at) return;
    put(seconds, 1e-6 * microseconds);
  }
}

/* `ours_medians` are the medians of dvbf and of dvbf on components. */
static json_t *report(const char *who, const sample *s, const sample *medians, const sample *ours_medians) {
  printf("%-22s %10.2f %10.2f %10.2f", who, 1e6 * median(s), 1e6 * quantile(s, 0.99), 1e6 * quantile(s, 1));
  json_t *row = json_pack("{s:s, s:f, s:f, s:f, s:i}", "who", who, "median_us", 1e6 * median(s), "p99_us",
                          1e6 * quantile(s, 0.99), "max_us", 1e6 * quantile(s, 1), "steps", (int)s->n);
  static const char *const keys[] = {"of_dvbf", "of_dvbf_components"};
  for (int i = 0; i < 2; i++) {
    sample ratio = ratios(medians, &ours_medians[i]);
    printf(" %12.1fx", median(&ratio));
    json_object_set_new(row, keys[i], json_of(&ratio));
    sample_free(&ratio);
  }
  printf("\n");
  return row;
}

static void free_filter(ours *o) {
  dvbf_model_free(o->model);
  dv_free(o->memory);
  dvbf_sequences_free(&o->data);
}

/* Ours with one sample, with weights from training on components, with sixteen samples; and the twins. */
enum { OURS = 3, ENTRANTS = OURS + TWINS };
static const size_t samples[OURS] = {1, 1, 16};
static const char *const names[OURS] = {"dvbf", "dvbf, components", "dvbf, 16 samples of z"};

/* Of every step, and the median of every round. */
static void measure(bench *b, ours *o, sample *times, sample *medians, double cost) {
  for (int r = 0; r < b->rounds; r++) {
    progress("filter: round %d of %d", r + 1, b->rounds);
    for (int i = 0; i < ENTRANTS; i++) {
      sample spent = {0};
      if (i < OURS) time_ours(&o[i], &spent, b->quick ? 2000 : 20000, cost);
      if (i >= OURS) time_twin(&b->twins[i - OURS], &spent, b->quick ? 500 : 2000);
      for (size_t k = 0; k < spent.n; k++) put(&times[i], spent.value[k]);
      put(&medians[i], median(&spent));
      sample_free(&spent);
    }
  }
  progress_end();
}

json_t *section_filter(bench *b) {
  sample times[ENTRANTS] = {{0}}, medians[ENTRANTS] = {{0}};
  ours o[OURS];
  for (int i = 0; i < OURS; i++) o[i] = make_filter(samples[i], i == 1);
  double cost = clock_cost();
  measure(b, o, times, medians, cost);
  printf(
      "Microseconds for one frame of 256 pixels, one sample of z. Reading the clock costs %.0f ns, which is\n"
      "taken off; the filter takes %.0f KiB of the caller's memory. A model that was trained on components\n"
      "(projection = 1e-6) reads a plane of x, 32 dimensions here, which is faster and exact.\n\n",
      1e9 * cost, (double)o[0].size / 1024);
  printf("%-22s %10s %10s %10s %13s %13s\n", "", "median", "99 %", "most", "of dvbf", "of components");
  json_t *rows = json_array();
  for (int i = 0; i < ENTRANTS; i++) {
    const char *who = i < OURS ? names[i] : b->twins[i - OURS].filter_name;
    if (times[i].n) json_array_append_new(rows, report(who, &times[i], &medians[i], medians));
    sample_free(&times[i]);
  }
  for (int i = 0; i < ENTRANTS; i++) sample_free(&medians[i]);
  for (int i = 0; i < OURS; i++) free_filter(&o[i]);
  return json_pack("{s:o, s:f}", "rows", rows, "clock_ns", 1e9 * cost);
}
