/* Gives every file of the folders named on the command line to a fuzzer's function: what once was found stays
 * mended, in builds without a fuzzer too. With --faults each file is read again and again on a machine that
 * fails: without the memory that it asks for at the n-th time, or unable to open or read at the n-th time. */
#include "faults.h"
#include "input.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

enum { LARGEST = 1 << 20, MOST_FAULTS = 400 };

/* ---- Reads that fail ---- */

ssize_t __real_pread(int descriptor, void *to, size_t size, off_t at);
ssize_t __wrap_pread(int descriptor, void *to, size_t size, off_t at);
int __real_fstat(int descriptor, struct stat *about);
int __wrap_fstat(int descriptor, struct stat *about);

ssize_t __wrap_pread(int descriptor, void *to, size_t size, off_t at) {
  return refused(EIO) ? -1 : __real_pread(descriptor, to, size, at);
}

int __wrap_fstat(int descriptor, struct stat *about) {
  return refused(EIO) ? -1 : __real_fstat(descriptor, about);
}

/* ---- Replay ---- */

/* What fails first, counted from the moment that the file is there. */
static unsigned long memory_at, file_at;

bool input_fault(bool begin) {
  if (begin) fault.memory = memory_at, fault.files = file_at;
  return memory_at || file_at;
}

/* Whether the fault has struck. */
static bool run(const uint8_t *bytes, size_t size, unsigned long memory, unsigned long file) {
  memory_at = memory;
  file_at = file;
  LLVMFuzzerTestOneInput(bytes, size);
  bool struck = !fault.memory && !fault.files;
  memory_at = file_at = fault.memory = fault.files = 0;
  return struck;
}

static int replay_file(const char *path, bool faults) {
  static uint8_t bytes[LARGEST];
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  size_t size = fread(bytes, 1, sizeof bytes, file);
  int done = !ferror(file) && !fclose(file);
  /* A copy of the right size, so that sanitizers see what is read behind it. */
  uint8_t *copy = malloc(size + !size);
  for (size_t i = 0; copy && i < size; i++) copy[i] = bytes[i];
  if (done && copy) run(copy, size, 0, 0);
  for (int kind = 0; faults && done && copy && kind < 2; kind++)
    for (unsigned long n = 1; n < MOST_FAULTS && run(copy, size, kind ? 0 : n, kind ? n : 0);)
      n += 1 + n / 32; /* later ones are mostly of loops */
  free(copy);
  return done;
}

int main(int count, char **folders) {
  unsigned files = 0;
  bool faults = count > 1 && !strcmp(folders[1], "--faults");
  for (int i = 1 + faults; i < count; i++) {
    DIR *all = opendir(folders[i]);
    if (!all) {
      perror(folders[i]);
      return 1;
    }
    for (const struct dirent *entry; (entry = readdir(all));) {
      char path[4096];
      if (entry->d_name[0] == '.') continue;
      if (snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name) >= (int)sizeof path) continue;
      files += (unsigned)replay_file(path, faults);
    }
    closedir(all);
  }
  printf("%u files\n", files);
  return files ? 0 : 1;
}
