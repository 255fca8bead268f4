/* Time of an update for both initial networks, several batches, 1 and 2 threads; the share of the machine's
 * matrix-product rate that this is; and the time of the twins, with the number of threads that suits each. */
#include "section.h"

#include "sgemm.h"

enum { INITIALS = 2, BATCHES = 3, THREADS = TWIN_THREADS, PRODUCTS = 3 };
static const char *const initials[INITIALS] = {"birnn", "mlp"};
static const char *const initial_text[INITIALS] = {"bidirectional RNN over all 15 frames", "MLP on 5 frames"};
static const int batches[BATCHES] = {50, 100, 500};
static const char *const products[PRODUCTS] = {"float", "bfloat16x3", "bfloat16"};

/* One of ours, or a twin, with 1 to THREADS threads. */
typedef struct entrant {
  contender ours[THREADS];
  int updates[THREADS]; /* in a round */
  sample seconds[THREADS];
} entrant;

/* An initial network and a batch. */
typedef struct cell {
  const char *initial;
  int batch;
  entrant ours[PRODUCTS]; /* those that the machine has not are empty */
  entrant twin[TWINS];
  sample of_sgemm[THREADS]; /* rate of ours in float over that of sgemm in the same round */
} cell;

/* ---- Measuring ---- */

static void prepare_ours(const bench *b, cell *c, const dvbf_sequences *data) {
  for (int p = 0; p < PRODUCTS; p++)
    for (int n = 0; n < THREADS && can_multiply(products[p]); n++) {
      entrant *e = &c->ours[p];
      const char *const more[] = {"products", products[p], NULL};
      e->ours[n] = contender_new(data, c->initial, c->batch, n + 1, more);
      e->updates[n] = updates_in(b->slice, e->ours[n].usual);
    }
}

/* Compiles and warms up, which takes long and is not counted. */
static void prepare_twins(bench *b, cell *c) {
  for (int i = 0; i < TWINS; i++)
    for (int n = 0; n < THREADS && twin_there(&b->twins[i]); n++) {
      progress("%s compiles and warms up: %s, batch %d, %d threads", b->twins[i].name, c->initial, c->batch,
               n + 1);
      double usual = twin_update(&b->twins[i], c->initial, c->batch, n + 1, 2);
      c->twin[i].updates[n] = isnan(usual) ? 0 : updates_in(b->slice, usual);
    }
}

/* One round: sgemm, ours, every twin. */
static void measure(bench *b, cell *c, sample gemm[THREADS]) {
  for (int n = 0; n < THREADS; n++) {
    double rate = sgemm_rate(n + 1);
    put(&gemm[n], rate);
    for (int p = 0; p < PRODUCTS; p++) {
      entrant *e = &c->ours[p];
      if (!e->updates[n]) continue;
      double seconds = contender_time(&e->ours[n], e->updates[n]);
      put(&e->seconds[n], seconds);
      if (!p) put(&c->of_sgemm[n], dv_updater_flops(e->ours[n].updater) / seconds * 1e-9 / rate);
    }
  }
  for (int i = 0; i < TWINS; i++)
    for (int n = 0; n < THREADS; n++)
      if (c->twin[i].updates[n])
        put(&c->twin[i].seconds[n],
            twin_update(&b->twins[i], c->initial, c->batch, n + 1, c->twin[i].updates[n]));
}

/* ---- Reporting ---- */

static int best_threads(const entrant *e) {
  int best = 0;
  for (int n = 1; n < THREADS; n++)
    if (median(&e->seconds[n]) < median(&e->seconds[best])) best = n;
  return best;
}

static void print_time(const char *who, int batch, int threads, const sample *s) {
  printf("%5d  %-22s %7d %9.2f (%6.2f ..%7.2f)", batch, who, threads, 1e3 * median(s), 1e3 * quantile(s, 0.1),
         1e3 * quantile(s, 0.9));
}

static json_t *report_ours(const cell *c, int n) {
  const entrant *e = &c->ours[0];
  double gflops = dv_updater_flops(e->ours[n].updater) / median(&e->seconds[n]) * 1e-9;
  sample speed_up = ratios(&e->seconds[0], &e->seconds[n]);
  print_time("dvbf", c->batch, n + 1, &e->seconds[n]);
  printf(" %8.0f %8.0f%% %8.2fx\n", gflops, 100 * median(&c->of_sgemm[n]), median(&speed_up));
  json_t *row = json_pack("{s:s, s:i, s:i, s:o, s:f, s:o, s:o}", "initial", c->initial, "batch", c->batch,
                          "threads", n + 1, "seconds", json_of(&e->seconds[n]), "gflops", gflops, "of_sgemm",
                          json_of(&c->of_sgemm[n]), "speed_up", json_of(&speed_up));
  sample_free(&speed_up);
  return row;
}

/* How many times the time of ours in float with 2 threads; at 1, who is as fast. */
static json_t *report_against(const cell *c, const char *who, const entrant *e, int n, bool equal_work) {
  const sample *ours = &c->ours[0].seconds[THREADS - 1];
  sample ratio = ratios(&e->seconds[n], ours);
  print_time(who, c->batch, n + 1, &e->seconds[n]);
  printf(" %8s %9s %9s %8.2fx (%.2f .. %.2f)%s\n", "", "", "", median(&ratio), quantile(&ratio, 0.1),
         quantile(&ratio, 0.9), equal_work ? "" : "  less exact");
  json_t *row = json_pack("{s:s, s:i, s:i, s:o, s:o}", "initial", c->initial, "batch", c->batch, "threads",
                          n + 1, "seconds", json_of(&e->seconds[n]), "of_dvbf", json_of(&ratio));
  sample_free(&ratio);
  return row;
}

/* {"seconds_1", "seconds_2"}: with 1 and with 2 threads. */
static void add_threads(json_t *row, const entrant *e) {
  for (int n = 0; n < THREADS; n++) {
    char key[32];
    snprintf(key, sizeof key, "seconds_%d", n + 1);
    json_object_set_new(row, key, json_of(&e->seconds[n]));
  }
}

static void report_cell(const bench *b, const cell *c, json_t *ours, json_t *others, json_t *inexact) {
  for (int n = 0; n < THREADS; n++) json_array_append_new(ours, report_ours(c, n));
  for (int i = 0; i < TWINS; i++) {
    const entrant *e = &c->twin[i];
    if (!e->seconds[0].n) continue;
    json_t *row = report_against(c, b->twins[i].name, e, best_threads(e), true);
    json_object_set_new(row, "who", json_string(b->twins[i].key));
    add_threads(row, e);
    json_array_append_new(others, row);
  }
  for (int p = 1; p < PRODUCTS; p++) {
    const entrant *e = &c->ours[p];
    if (!e->seconds[0].n) continue;
    char who[64];
    snprintf(who, sizeof who, "(dvbf, %s)", products[p]);
    json_t *row = report_against(c, who, e, THREADS - 1, false);
    json_object_set_new(row, "products", json_string(products[p]));
    add_threads(row, e);
    json_array_append_new(inexact, row);
  }
}

static void print_head(const sample gemm[THREADS]) {
  printf("%s: %.0f GFLOP/s on 1 thread, %.0f on 2\n", sgemm_name(), median(&gemm[0]), median(&gemm[1]));
  printf("Twins with the number of threads that suits them; `of dvbf` is their time over ours with 2 "
         "threads.\n");
  printf("Rows in brackets multiply with fewer bits (setting products), the others all in float.\n");
}

static json_t *report(const bench *b, cell cells[INITIALS][BATCHES], int n_batches,
                      const sample gemm[THREADS]) {
  json_t *ours = json_array(), *others = json_array(), *inexact = json_array();
  print_head(gemm);
  for (int i = 0; i < INITIALS; i++) {
    printf("\nInitial network: %s\n%5s  %-22s %7s %27s %8s %9s %9s %8s\n", initial_text[i], "batch", "",
           "threads", "ms per update", "GFLOP/s", "of sgemm", "speed-up", "of dvbf");
    for (int k = 0; k < n_batches; k++) report_cell(b, &cells[i][k], ours, others, inexact);
  }
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "sgemm_1", json_of(&gemm[0]), "sgemm_2", json_of(&gemm[1]),
                   "dvbf", ours, "twins", others, "dvbf_inexact", inexact);
}

static void clear(cell *c) {
  for (int n = 0; n < THREADS; n++) {
    for (int p = 0; p < PRODUCTS; p++) {
      if (c->ours[p].updates[n]) contender_free(&c->ours[p].ours[n]);
      sample_free(&c->ours[p].seconds[n]);
    }
    for (int i = 0; i < TWINS; i++) sample_free(&c->twin[i].seconds[n]);
    sample_free(&c->of_sgemm[n]);
  }
}

json_t *section_updates(bench *b) {
  static cell cells[INITIALS][BATCHES];
  sample gemm[THREADS] = {{0}};
  int n_batches = b->quick ? 1 : BATCHES;
  dvbf_sequences data = bench_data(500, 15, 256);
  for (int i = 0; i < INITIALS; i++)
    for (int k = 0; k < n_batches; k++) {
      cells[i][k] = (cell){.initial = initials[i], .batch = batches[k]};
      prepare_ours(b, &cells[i][k], &data);
      prepare_twins(b, &cells[i][k]);
    }
  for (int r = 0; r < b->rounds; r++) {
    progress("updates: round %d of %d", r + 1, b->rounds);
    for (int i = 0; i < INITIALS; i++)
      for (int k = 0; k < n_batches; k++) measure(b, &cells[i][k], gemm);
  }
  progress_end();
  json_t *result = report(b, cells, n_batches, gemm);
  for (int i = 0; i < INITIALS; i++)
    for (int k = 0; k < n_batches; k++) clear(&cells[i][k]);
  for (int n = 0; n < THREADS; n++) sample_free(&gemm[n]);
  dvbf_sequences_free(&data);
  return result;
}
