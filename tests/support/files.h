/* A folder for the files of a test program, and files made there. Include it before cmocka.h. */
#ifndef FILES_H
#define FILES_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/dvbf-test-XXXXXX";

static inline const char *in_folder(const char *name) {
  static char path[2][512];
  static int turn;
  turn = !turn; /* two paths may be in use at once */
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

/* A file of a run there. */
static inline const char *in_run(const char *run, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", run, name);
  return in_folder(path);
}

/* Removes a run and all of its files. */
static inline void discard_run(const char *run) {
  char command[600];
  snprintf(command, sizeof command, "rm -r '%s'", in_folder(run));
  assert_int_equal(system(command), 0);
}

/* Removes all files; returns how many there were. */
static inline int clear_folder(void) {
  int count = 0;
  DIR *entries = opendir(folder);
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    if (entry->d_name[0] == '.') continue;
    unlink(in_folder(entry->d_name));
    count++;
  }
  if (entries) closedir(entries);
  return count;
}

static inline int make_folder(void **unused) {
  (void)unused;
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **unused) {
  (void)unused;
  clear_folder();
  return rmdir(folder);
}

static inline unsigned char *read_bytes(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*size + 1);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

static inline void write_bytes(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static inline bool same_bytes(const char *a, const char *b) {
  size_t size_a, size_b;
  unsigned char *bytes_a = read_bytes(a, &size_a), *bytes_b = read_bytes(b, &size_b);
  bool same = size_a == size_b && !memcmp(bytes_a, bytes_b, size_a);
  free(bytes_a);
  free(bytes_b);
  return same;
}

#endif
