/* Bytes of the fuzzer as a file that has a name. */
#ifndef INPUT_H
#define INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The name of a file in memory that holds the bytes; it is there until the next call. */
static inline const char *input_file(const uint8_t *bytes, size_t size) {
  static char path[64];
  static int descriptor = -1;
  if (descriptor < 0) descriptor = memfd_create("input", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (ftruncate(descriptor, 0) || pwrite(descriptor, bytes, size, 0) != (ssize_t)size) return NULL;
  return path;
}

#endif
