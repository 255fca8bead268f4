/* Bytes of the fuzzer as a file that has a name. */
#ifndef INPUT_H
#define INPUT_H

#include <dvbf/dvbf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Whether the machine is to fail, which it does from `begin` on. A replay defines it. */
bool input_fault(bool begin) __attribute__((weak));

/* What must be done without fail was done. */
static inline void begin_faults(void) {
  if (input_fault) input_fault(true);
}

static inline bool may_fail(void) {
  return input_fault && input_fault(false);
}

/* The same without the kernel (memory.c), where the fuzzers are built to be fast. */
const char *memory_file(const uint8_t *bytes, size_t size) __attribute__((weak));

/* The name of a file in memory that holds the bytes; it is there until the next call. */
static inline const char *input_file(const uint8_t *bytes, size_t size) {
  if (memory_file) return memory_file(bytes, size);
  static char path[64];
  static int descriptor = -1;
  if (descriptor < 0) descriptor = memfd_create("input", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (ftruncate(descriptor, 0) || pwrite(descriptor, bytes, size, 0) != (ssize_t)size) return NULL;
  begin_faults();
  return path;
}

/* Settings of a table as they are at first; a copy, as finding the defaults takes longer than reading most
 * files. */
static inline dvbf_settings *new_settings(dvbf_settings **first, const char *table) {
  dvbf_settings *copy = NULL;
  if (!*first && dvbf_settings_new(first, table, NULL)) abort();
  if (dvbf_settings_copy(&copy, *first, NULL)) abort();
  return copy;
}

#endif
