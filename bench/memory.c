/* Peak resident memory of a process that trains at batch 500 with 2 threads: ours (bench_train) and a fresh
 * process of every twin. */
#include "section.h"

static const char *const initials[] = {"birnn", "mlp"};
enum { INITIALS = 2 };

static double peak_of_ours(const bench *b, const char *initial) {
  char *command[] = {"bench/bench_train", (char *)initial, "500", "2", b->quick ? "1" : "10", NULL};
  command_result r = command_run(command, 300);
  json_t *answer = json_loads(r.last, 0, NULL);
  double peak = r.status ? (double)NAN : json_number_value(json_object_get(answer, "peak_mib"));
  json_decref(answer);
  return peak;
}

static double peak_of_twin(twin *t, const char *initial) {
  twin fresh = *t;
  fresh.process = (process){0};
  progress("memory of %s", t->name);
  char *answer = isnan(twin_update(&fresh, initial, 500, 2, 10)) ? NULL : twin_ask(&fresh, "memory\n");
  double peak = answer ? atof(answer) : (double)NAN;
  t->lost |= fresh.lost;
  twin_end(&fresh);
  progress_end();
  return peak;
}

static void report(json_t *list, const char *who, const char *key, const char *initial, double peak,
                   double ours) {
  printf("%-22s %-8s %8.0f", who, initial, peak);
  printf(peak == ours ? "\n" : " %10.0fx\n", peak / ours);
  json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f}", "who", key, "initial", initial, "peak_mib",
                                        peak, "of_dvbf", peak / ours));
}

json_t *section_memory(bench *b) {
  json_t *list = json_array();
  printf("Twins keep freed memory for the next update, as in all sections, which makes them faster.\n\n");
  printf("%-22s %-8s %8s %11s\n", "", "initial", "peak MiB", "of dvbf");
  for (int k = 0; k < (b->quick ? 1 : INITIALS); k++) {
    double ours = peak_of_ours(b, initials[k]);
    if (isnan(ours)) {
      fprintf(stderr, "bench: bench/bench_train failed\n");
      continue;
    }
    report(list, "dvbf", "dvbf", initials[k], ours, ours);
    for (int i = 0; i < TWINS; i++) {
      double peak = twin_there(&b->twins[i]) ? peak_of_twin(&b->twins[i], initials[k]) : (double)NAN;
      if (!isnan(peak)) report(list, b->twins[i].name, b->twins[i].key, initials[k], peak, ours);
    }
  }
  return list;
}
