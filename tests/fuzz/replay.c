/* Gives every file of the archives named on the command line to a fuzzer's function: what once was found
 * stays mended, in builds without a fuzzer too. With --faults each file is read again and again on a machine
 * that fails: without the memory that it asks for at the n-th time, or unable to open or read at the n-th
 * time. */
#include "faults.h"
#include "input.h"

#include <string.h>
#include <sys/stat.h>
#include <zip.h>

enum { MOST_FAULTS = 400 };

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

/* In a block of its size, so that sanitizers see what is read behind it. */
static bool replay_file(zip_t *archive, zip_uint64_t index, bool faults) {
  zip_stat_t about;
  zip_file_t *file = zip_fopen_index(archive, index, 0);
  if (!file || zip_stat_index(archive, index, 0, &about)) return false;
  uint8_t *bytes = malloc(about.size + !about.size);
  bool read = bytes && zip_fread(file, bytes, about.size) == (zip_int64_t)about.size;
  zip_fclose(file);
  if (read) run(bytes, about.size, 0, 0);
  for (int kind = 0; faults && read && kind < 2; kind++)
    for (unsigned long n = 1; n < MOST_FAULTS && run(bytes, about.size, kind ? 0 : n, kind ? n : 0);)
      n += 1 + n / 32; /* later ones are mostly of loops */
  free(bytes);
  return read;
}

int main(int count, char **paths) {
  zip_int64_t files = 0;
  bool faults = count > 1 && !strcmp(paths[1], "--faults");
  for (int i = 1 + faults; i < count; i++) {
    zip_t *archive = zip_open(paths[i], ZIP_RDONLY, NULL);
    zip_int64_t entries = archive ? zip_get_num_entries(archive, 0) : 0;
    for (zip_int64_t k = 0; k < entries; k++, files++)
      if (!replay_file(archive, (zip_uint64_t)k, faults)) entries = 0;
    if (!entries) {
      fprintf(stderr, "%s: is empty or cannot be read\n", paths[i]);
      return 1;
    }
    zip_discard(archive);
  }
  printf("%ld files\n", (long)files);
  return files ? 0 : 1;
}
