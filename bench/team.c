/* One rank of a measurement, for bench/ranks/cost. Alone or under mpirun; rank 0 prints one line of JSON:
 * seconds of an update in each round, what a rank sends in one, and what messages between two ranks cost.
 * Usage: bench_team BATCH THREADS ROUNDS [SETTING VALUE]... */
#include "bench.h"

#include "base/ranks.h"

enum { SIZES = 2, REPEATS = 200 };
static const size_t sizes[SIZES] = {8, 4 << 20};

/* Seconds that so many bytes take to a neighbour: half of there and back, at best. */
static double message_time(dv_ranks *team, size_t bytes, char *data) {
  double best = (double)INFINITY;
  int rank = dv_ranks_rank(team), other = rank ^ 1;
  if (other >= dv_ranks_size(team)) return 0;
  dv_parcel parcel = {other, data, bytes};
  for (int i = 0; i < (bytes > 1024 ? REPEATS / 10 : REPEATS); i++) {
    double began = now();
    dv_ranks_exchange(team, &parcel, rank<other, &parcel, rank> other);
    dv_ranks_exchange(team, &parcel, rank > other, &parcel, rank < other);
    best = fmin(best, (now() - began) / 2);
  }
  return best;
}

static void measure_messages(dv_ranks *team, double seconds[SIZES]) {
  char *data = dv_calloc(sizes[SIZES - 1], 1);
  for (int i = 0; i < SIZES; i++) seconds[i] = data ? message_time(team, sizes[i], data) : 0;
  dv_free(data);
}

static void report(const contender *c, const sample *s, const double messages[SIZES]) {
  printf("{\"parameters\": %zu, \"flops\": %.6g, \"bytes\": %.0f, \"latency\": %.4g, \"large\": %.4g, "
         "\"large_bytes\": %zu, \"seconds\": [",
         c->model->parameters.size, dv_updater_flops(c->updater), dv_updater_bytes(c->updater), messages[0],
         messages[SIZES - 1], sizes[SIZES - 1]);
  for (size_t i = 0; i < s->n; i++) printf("%s%.6f", i ? ", " : "", s->value[i]);
  printf("]}\n");
}

int main(int count, char **arguments) {
  if (count < 4 || count % 2) {
    fprintf(stderr, "usage: bench_team BATCH THREADS ROUNDS [SETTING VALUE]...\n");
    return 2;
  }
  int batch = atoi(arguments[1]), threads = atoi(arguments[2]), rounds = atoi(arguments[3]);
  dvbf_error error;
  dv_ranks *team = NULL;
  double messages[SIZES];
  must(dvbf_ranks_join(&team, &error), &error);
  dvbf_sequences data = bench_data((size_t)batch, 15, 256);
  contender c = {.model = bench_model(&data, "birnn", batch, (const char *const *)arguments + 4)};
  must(dv_threads_new(&c.pool, (unsigned)threads, &error), &error);
  dv_threads_join(c.pool, team);
  must(dv_updater_new(&c.updater, c.model, c.pool, &data, false, &error), &error);
  dv_updater_run(c.updater, 2);
  measure_messages(team, messages);
  sample seconds = {0};
  for (int i = 0; i < rounds; i++) put(&seconds, contender_time(&c, 2));
  if (!dv_ranks_rank(team)) report(&c, &seconds, messages);
  sample_free(&seconds);
  contender_free(&c);
  dvbf_sequences_free(&data);
  bool met = dvbf_ranks_finish(team, 0);
  dvbf_ranks_free(team, 0);
  return met ? 0 : 1;
}
