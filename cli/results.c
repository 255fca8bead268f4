#include "results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool json_short;

static void *json_memory(size_t size) {
  void *memory = malloc(size);
  if (!memory) __atomic_store_n(&json_short, true, __ATOMIC_RELAXED);
  return memory;
}

void cli_json_watch(void) {
  json_set_alloc_funcs(json_memory, free);
}

bool cli_json_short(void) {
  return __atomic_load_n(&json_short, __ATOMIC_RELAXED);
}

json_t *cli_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_numbers(const double *values, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(array, cli_number(values[i]));
  return array;
}

void cli_print_json(json_t *json) {
  json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
  printf("\n");
  json_decref(json);
}

bool cli_shown(size_t step, size_t count) {
  enum { SHORT = 25, FIRST = 10 };
  size_t digit = step;
  while (digit >= 10 && digit % 10 == 0) digit /= 10;
  return count <= SHORT || step <= FIRST || step == count || digit == 1 || digit == 2 || digit == 3 ||
         digit == 5;
}
