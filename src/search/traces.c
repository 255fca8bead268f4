#include "search/traces.h"

#include "base/file.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_inner(const struct dirent *entry) {
  return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

/* Removes what is in a folder: files or, one level up, folders of files. Links are removed, not followed. */
static void empty(const char *folder, bool folders) {
  DIR *all = opendir(folder);
  if (!all) return;
  for (const struct dirent *entry; (entry = readdir(all));) {
    dv_path inner;
    if (!is_inner(entry)) continue;
    if (!folders || !unlinkat(dirfd(all), entry->d_name, 0)) {
      unlinkat(dirfd(all), entry->d_name, 0);
      continue;
    }
    dv_join(inner, folder, entry->d_name);
    empty(inner, false);
    rmdir(inner);
  }
  closedir(all);
}

dvbf_status dv_traces_remove(const char *folder, dvbf_error *error) {
  empty(folder, true);
  if (!rmdir(folder) || errno == ENOENT) return DVBF_OK;
  return dv_fail(error, DVBF_IO, "%.300s: cannot be removed: %s", folder, strerror(errno));
}

dvbf_status dv_traces_copy(const char *from, const char *to, const char *name, dvbf_error *error) {
  dv_path source, target;
  dv_atomic_file file = {0};
  char block[4096];
  dv_join(source, from, name);
  dv_join(target, to, name);
  FILE *read = dv_open_file(source, error);
  if (!read) return DVBF_IO;
  dvbf_status status = dv_atomic_open(&file, target, error);
  for (size_t n; !status && (n = fread(block, 1, sizeof block, read));) fwrite(block, 1, n, file.stream);
  bool failed = ferror(read);
  fclose(read);
  if (status) return status;
  if (!failed) return dv_atomic_commit(&file, error);
  dv_atomic_abandon(&file);
  return dv_fail(error, DVBF_IO, "%.300s: cannot be read", source);
}
