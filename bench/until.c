/* Time from the start of a process to R^2 on held-out sequences above all three numbers of the paper's
 * Table 1, per seed: ours (bench_until) and the twins on the same recipe, each in turn. Everything is
 * counted: the start of the interpreter, imports, compiling, reading the data, looking at R^2. The time
 * inside training alone is given beside it. */
#include "section.h"

#include <unistd.h>

/* Ours; the first is the recipe of the twins, to the letter. A further variant is a line here. */
typedef struct variant {
  const char *name, *key;
  const char *products; /* that it needs */
  char *settings[8];    /* name, value, .. */
} variant;
static const variant variants[] = {
    {"dvbf", "dvbf", "float", {NULL}},
    {"(dvbf, bfloat16)", "dvbf_bfloat16", "bfloat16", {"products", "bfloat16", NULL}},
    {"(dvbf, components)", "dvbf_components", "float", {"projection", "1e-6", NULL}},
    {"(dvbf, both)", "dvbf_both", "bfloat16", {"projection", "1e-6", "products", "bfloat16", NULL}},
};
enum { VARIANTS = sizeof variants / sizeof *variants, ENTRANTS = VARIANTS + TWINS };

typedef struct entrant {
  const char *name, *key;
  char *command[TWIN_WORDS];
  int threads;
  bool ours;
  sample total, training, updates; /* by seed; a seed that never passes takes infinitely long */
  int passed, ran;
  json_t *by_seed;
} entrant;

static char data_file[64];

/* ---- Who takes part ---- */

static bool simulate(void) {
  snprintf(data_file, sizeof data_file, "bench-%d.h5", (int)getpid());
  char *command[] = {"./dvbf", "simulate", "pendulum", "-o", data_file, "--force", NULL};
  return command_run(command, 300).status == 0;
}

static int add_ours(entrant *e, char *seed) {
  int n = 0;
  for (int i = 0; i < VARIANTS; i++) {
    if (!can_multiply(variants[i].products)) continue;
    e[n] = (entrant){.name = variants[i].name,
                     .key = variants[i].key,
                     .threads = 2,
                     .ours = true,
                     .command = {"bench/bench_until", data_file, seed}};
    memcpy(e[n].command + 3, variants[i].settings, sizeof variants[i].settings);
    n++;
  }
  return n;
}

/* Each with the number of threads with which it trains faster. */
static int add_twins(bench *b, entrant *e, char *seed) {
  static char threads[TWINS][8];
  int n = 0;
  for (int i = 0; i < TWINS; i++) {
    twin *t = &b->twins[i];
    if (!twin_there(t)) continue;
    progress("%s: finding the number of threads that suits it", t->name);
    int best = twin_best_threads(t, "mlp", 50);
    progress_end();
    if (!twin_there(t)) continue;
    snprintf(threads[i], sizeof threads[i], "%d", best);
    e[n] = (entrant){.name = t->name, .key = t->key, .threads = best};
    twin_command(t, e[n].command,
                 (char *[]){"--until-r2", data_file, "--seed", seed, "--threads", threads[i], NULL});
    n++;
  }
  return n;
}

/* ---- Measuring ---- */

/* Status 1 means that R^2 did not pass, which the answer says too. */
static void run(entrant *e, int seed) {
  command_result r = command_run(e->command, 600);
  json_t *answer = json_loads(r.last, 0, NULL);
  if ((r.status != 0 && r.status != 1) || !answer) {
    fprintf(stderr, "bench: %s failed with seed %d\n", e->name, seed);
    json_decref(answer);
    answer = json_pack("{s:b}", "passed", 0); /* as good as one that never passes */
  }
  bool passed = json_is_true(json_object_get(answer, "passed"));
  double training = json_number_value(json_object_get(answer, "seconds"));
  e->ran++;
  e->passed += passed;
  put(&e->total, passed ? r.seconds : (double)INFINITY);
  put(&e->training, passed ? training : (double)INFINITY);
  put(&e->updates, json_number_value(json_object_get(answer, "updates")));
  json_object_set_new(answer, "seconds_total", json_real(r.seconds));
  json_object_set_new(answer, "seed", json_integer(seed));
  json_array_append_new(e->by_seed, answer);
}

/* ---- Reporting ---- */

/* Of ours that pass on as many seeds as the first, by the median. */
static const entrant *fastest(const entrant *e, int n) {
  const entrant *best = e;
  for (int i = 1; i < n; i++)
    if (e[i].ours && e[i].passed >= e->passed && median(&e[i].total) < median(&best->total)) best = &e[i];
  return best;
}

static json_t *report(entrant *e, const entrant *ours, const entrant *best) {
  sample ratio = ratios(&e->total, &ours->total), training = ratios(&e->training, &ours->training);
  sample of_best = ratios(&e->total, &best->total);
  printf("%-22s %7d %9.2f (%6.2f ..%7.2f) %9.2f %8.0f %4d of %-3d", e->name, e->threads, median(&e->total),
         quantile(&e->total, 0.1), quantile(&e->total, 0.9), median(&e->training), median(&e->updates),
         e->passed, e->ran);
  printf(" %7.2fx %8.2fx %9.2fx\n", median(&ratio), median(&training), median(&of_best));
  json_t *row =
      json_pack("{s:s, s:i, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:s, s:O}", "who", e->key, "threads",
                e->threads, "seconds_total", json_of(&e->total), "seconds_training", json_of(&e->training),
                "updates", json_of(&e->updates), "passed", e->passed, "seeds", e->ran, "total_of_dvbf",
                json_of(&ratio), "training_of_dvbf", json_of(&training), "total_of_fastest",
                json_of(&of_best), "fastest", best->key, "by_seed", e->by_seed);
  sample_free(&ratio);
  sample_free(&training);
  sample_free(&of_best);
  return row;
}

static void clear(entrant *e) {
  sample_free(&e->total);
  sample_free(&e->training);
  sample_free(&e->updates);
  json_decref(e->by_seed);
}

json_t *section_until(bench *b) {
  static entrant entrants[ENTRANTS];
  char seed[16];
  if (!simulate()) {
    fprintf(stderr, "bench: ./dvbf simulate failed; the section is left out\n");
    return json_null();
  }
  int n = add_ours(entrants, seed);
  n += add_twins(b, entrants + n, seed);
  for (int i = 0; i < n; i++) entrants[i].by_seed = json_array();
  for (int s = 1; s <= b->seeds; s++)
    for (int i = 0; i < n; i++) {
      snprintf(seed, sizeof seed, "%d", s);
      progress("until: seed %d of %d, %s", s, b->seeds, entrants[i].name);
      run(&entrants[i], s);
    }
  progress_end();
  printf("One recipe for all: batch 50, at most 1300 updates of Adam, R^2 after 300 and every 50 from there; "
         "MLP on 5\n"
         "frames. Medians over seeds 1 to %d of seconds from the start of the process to its end; training "
         "alone is\n"
         "without start-up, compiling, reading and R^2. Rows in brackets are ours too: products in bfloat16, "
         "principal\n"
         "components of x in its place (projection = 1e-6), or both. Ratios are to dvbf and, last, to the "
         "fastest of "
         "ours that passes as often.\n\n",
         b->seeds);
  printf("%-22s %7s %27s %9s %8s %9s %10s %9s %10s\n", "", "threads", "seconds in all", "training", "updates",
         "passed", "of dvbf", "training", "fastest");
  json_t *rows = json_array();
  for (int i = 0; i < n; i++) {
    if (entrants[i].ran)
      json_array_append_new(rows, report(&entrants[i], &entrants[0], fastest(entrants, n)));
  }
  for (int i = 0; i < n; i++) clear(&entrants[i]);
  remove(data_file);
  return rows;
}
