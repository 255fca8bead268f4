/* How the time of an update grows with the number of frames, the batch, the pixels and the latent dimension:
 * the slope of a straight line through ln time over ln size, by least squares. 1 is linear growth. */
#include "section.h"

enum { SERIES = 4, MOST_POINTS = 5, FRAMES = 0, BATCH, PIXELS, LATENT };

typedef struct series {
  const char *name, *key;
  int n, value[MOST_POINTS];
  contender ours[MOST_POINTS];
  dvbf_sequences data[MOST_POINTS];
  sample seconds[MOST_POINTS];
} series;

/* All else is as here: frames, batch, pixels, latent dimensions. */
static const int usual[SERIES] = {15, 100, 256, 3};

static series all[SERIES] = {
    {.name = "frames", .key = "frames", .n = 4, .value = {15, 30, 60, 120}},
    {.name = "batch", .key = "batch", .n = 5, .value = {50, 100, 200, 400, 800}},
    {.name = "pixels", .key = "pixels", .n = 3, .value = {256, 1024, 4096}},
    {.name = "latent dimensions", .key = "latent", .n = 4, .value = {3, 6, 12, 24}},
};

static void prepare(int which, int i, const char *initial) {
  series *s = &all[which];
  int at[SERIES];
  char latent[16];
  memcpy(at, usual, sizeof at);
  at[which] = s->value[i];
  snprintf(latent, sizeof latent, "%d", at[LATENT]);
  const char *const more[] = {"latent", latent, NULL};
  s->data[i] = bench_data(500, (size_t)at[FRAMES], (size_t)at[PIXELS]);
  s->ours[i] = contender_new(&s->data[i], initial, at[BATCH], 2, more);
}

/* sum (a - mean a) (b - mean b) / sum (a - mean a)^2 with a = ln size, b = ln median time. */
static double exponent(const series *s) {
  double a_mean = 0, b_mean = 0, ab = 0, aa = 0;
  for (int i = 0; i < s->n; i++) {
    a_mean += log(s->value[i]) / s->n;
    b_mean += log(median(&s->seconds[i])) / s->n;
  }
  for (int i = 0; i < s->n; i++) {
    double a = log(s->value[i]) - a_mean;
    ab += a * (log(median(&s->seconds[i])) - b_mean);
    aa += a * a;
  }
  return ab / aa;
}

static json_t *report(const series *s) {
  json_t *points = json_array();
  printf("%-18s", s->name);
  for (int i = 0; i < s->n; i++) {
    double seconds = median(&s->seconds[i]);
    printf(" %5d: %6.2f ms", s->value[i], 1e3 * seconds);
    json_array_append_new(points,
                          json_pack("{s:i, s:o}", "size", s->value[i], "seconds", json_of(&s->seconds[i])));
  }
  printf("%*s time ~ size^%.2f\n", 17 * (MOST_POINTS - s->n), "", exponent(s));
  return json_pack("{s:o, s:f}", "points", points, "exponent", exponent(s));
}

static void clear(series *s) {
  for (int i = 0; i < s->n; i++) {
    contender_free(&s->ours[i]);
    dvbf_sequences_free(&s->data[i]);
    sample_free(&s->seconds[i]);
  }
}

static json_t *with_initial(const bench *b, const char *initial) {
  json_t *result = json_object();
  for (int k = 0; k < SERIES; k++)
    for (int i = 0; i < all[k].n; i++) prepare(k, i, initial);
  for (int r = 0; r < b->rounds; r++) {
    progress("growth, %s: round %d of %d", initial, r + 1, b->rounds);
    for (int k = 0; k < SERIES; k++)
      for (int i = 0; i < all[k].n; i++) {
        contender *c = &all[k].ours[i];
        put(&all[k].seconds[i], contender_time(c, updates_in(b->slice / 2, c->usual)));
      }
  }
  progress_end();
  for (int k = 0; k < SERIES; k++) {
    json_object_set_new(result, all[k].key, report(&all[k]));
    clear(&all[k]);
  }
  return result;
}

json_t *section_growth(bench *b) {
  printf("One size varies, the others stay at %d frames, batch %d, %d pixels, %d latent dimensions.\n",
         usual[0], usual[1], usual[2], usual[3]);
  printf("\nInitial network: bidirectional RNN over all frames\n");
  json_t *birnn = with_initial(b, "birnn");
  printf("\nInitial network: MLP on 5 frames\n");
  return json_pack("{s:o, s:o}", "birnn", birnn, "mlp", with_initial(b, "mlp"));
}
