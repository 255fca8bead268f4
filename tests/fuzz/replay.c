/* Gives every file of the folders named on the command line to a fuzzer's function: what once was found stays
 * mended, in builds without a fuzzer too. */
#include "input.h"

#include <dirent.h>
#include <stdlib.h>

enum { LARGEST = 1 << 20 };

static int replay_file(const char *path) {
  static uint8_t bytes[LARGEST];
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  size_t size = fread(bytes, 1, sizeof bytes, file);
  int done = !ferror(file) && !fclose(file);
  /* A copy of the right size, so that sanitizers see what is read behind it. */
  uint8_t *copy = malloc(size + !size);
  for (size_t i = 0; copy && i < size; i++) copy[i] = bytes[i];
  if (done && copy) LLVMFuzzerTestOneInput(copy, size);
  free(copy);
  return done;
}

int main(int count, char **folders) {
  unsigned files = 0;
  for (int i = 1; i < count; i++) {
    DIR *all = opendir(folders[i]);
    if (!all) {
      perror(folders[i]);
      return 1;
    }
    for (const struct dirent *entry; (entry = readdir(all));) {
      char path[4096];
      if (entry->d_name[0] == '.') continue;
      if (snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name) >= (int)sizeof path) continue;
      files += (unsigned)replay_file(path);
    }
    closedir(all);
  }
  printf("%u files\n", files);
  return files ? 0 : 1;
}
