/* The sections of the report: each measures, prints its table and gives what it found for the JSON file. */
#ifndef DV_BENCH_SECTION_H
#define DV_BENCH_SECTION_H

#include "bench.h"
#include "twin.h"

#include <jansson.h>

typedef struct bench {
  int rounds;   /* each contender in turn, so often */
  int seeds;    /* of the trainings until R^2 is reached */
  bool quick;   /* fewer shapes: to see that all of it runs */
  double slice; /* seconds that one contender is timed for in a round */
  twin twins[TWINS];
} bench;

json_t *section_updates(bench *b);
json_t *section_memory(bench *b);
json_t *section_growth(bench *b);
json_t *section_until(bench *b);
json_t *section_filter(bench *b);
json_t *section_startup(bench *b);

/* Whether the machine has the units for `products`. */
bool can_multiply(const char *products);

/* {"median", "p10", "p90", "rounds"} of a sample, null when it is empty. */
json_t *json_of(const sample *s);
/* A number, null when it is not finite. */
json_t *json_number(double value);

#endif
