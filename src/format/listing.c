#include "format/listing.h"

#include "base/memory.h"
#include "base/status.h"
#include "format/archive.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MOST = 1 << 16 }; /* files of a data set */

void dv_listing_free(dv_listing *l) {
  for (size_t i = 0; i < l->count; i++) dv_free(l->paths[i]);
  dv_free((void *)l->paths);
  *l = (dv_listing){0};
}

static dvbf_status add(dv_listing *l, const char *path, dvbf_error *error) {
  if (l->count == MOST)
    return dv_fail(error, DVBF_FORMAT, "%.200s: is more than the %d files that data may have; join some",
                   path, MOST);
  if (l->count == l->room) {
    size_t room = l->room ? 2 * l->room : 16;
    char **larger = dv_realloc((void *)l->paths, room, sizeof *larger);
    if (!larger) return dv_fail_memory(error, "listing files");
    l->paths = larger;
    l->room = room;
  }
  l->paths[l->count] = dv_strdup(path);
  if (!l->paths[l->count]) return dv_fail_memory(error, "listing files");
  l->count++;
  return DVBF_OK;
}

static int by_name(const void *a, const void *b) {
  return dv_compare_names(*(char *const *)a, *(char *const *)b);
}

static void sort(dv_listing *l, size_t from) {
  if (l->count > from) qsort((void *)(l->paths + from), l->count - from, sizeof *l->paths, by_name);
}

/* A folder may hold other things too. */
static bool is_data(const char *name) {
  static const char *const endings[] = {".h5", ".hdf5", ".npy", ".npz", ".csv", ".tsv", ".mat"};
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; dot && *name != '.' && i < sizeof endings / sizeof *endings; i++)
    if (!strcasecmp(dot, endings[i])) return true;
  return false;
}

static dvbf_status add_folder(dv_listing *l, const char *folder, dvbf_error *error) {
  size_t from = l->count, length = strlen(folder);
  DIR *all = opendir(folder);
  dvbf_status status = DVBF_OK;
  if (!all) return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", folder, strerror(errno));
  for (const struct dirent *entry; !status && (entry = readdir(all));) {
    char path[PATH_MAX];
    if (!is_data(entry->d_name)) continue;
    int n = snprintf(path, sizeof path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/",
                     entry->d_name);
    if (n > 0 && (size_t)n < sizeof path) status = add(l, path, error);
  }
  closedir(all);
  sort(l, from);
  if (!status && l->count == from)
    status = dv_fail(error, DVBF_IO,
                     "%.200s: is a folder without data; name a file, or a folder with files that end in .h5, "
                     ".hdf5, .npy, .npz, .csv, .tsv or .mat",
                     folder);
  return status;
}

static dvbf_status add_pattern(dv_listing *l, const char *pattern, dvbf_error *error) {
  glob_t found = {0};
  size_t from = l->count;
  dvbf_status status = DVBF_OK;
  if (glob(pattern, GLOB_NOSORT, NULL, &found))
    status = dv_fail(error, DVBF_IO, "%.200s: is no file, and no file has such a name", pattern);
  for (size_t i = 0; !status && i < found.gl_pathc; i++) status = add(l, found.gl_pathv[i], error);
  globfree(&found);
  sort(l, from);
  return status;
}

dvbf_status dv_listing_of(dv_listing *l, const char *const *given, size_t count, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  *l = (dv_listing){0};
  for (size_t i = 0; i < count && !status; i++) {
    struct stat about;
    bool there = !stat(given[i], &about);
    if (there && S_ISDIR(about.st_mode))
      status = add_folder(l, given[i], error);
    else if (!there && strpbrk(given[i], "*?["))
      status = add_pattern(l, given[i], error);
    else
      status = add(l, given[i], error);
  }
  return status;
}
