/* Files and folders: paths, opening for reading, and files that appear whole or not at all. A file is written
 * under an unguessable temporary name in the folder it goes to, synced, and renamed (dv_atomic_open,
 * dv_atomic_commit; dv_temporary_name and dv_publish for libraries that open files themselves). */
#include "base/file.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Paths ---- */

void dv_join(dv_path out, const char *folder, const char *name) {
  size_t length = strlen(folder);
  const char *slash = length && folder[length - 1] == '/' ? "" : "/";
  if (snprintf(out, sizeof(dv_path), "%s%s%s", folder, slash, name) < 0) out[0] = 0;
}

bool dv_exists(const char *path) {
  struct stat info;
  return !lstat(path, &info);
}

dvbf_status dv_refuse_existing(const char *path, bool force, dvbf_error *error) {
  if (force || !dv_exists(path)) return DVBF_OK;
  return dv_fail(error, DVBF_IO,
                 "%.300s: already exists and was not changed; choose another name or add --force", path);
}

/* ---- New files ---- */

/* An unguessable name. */
static void choose_temporary(dv_new_file *place) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* another file of that name is refused all the same */
    number = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid();
  }
  snprintf(place->temporary, sizeof place->temporary, "%s.tmp-%016llx", place->name,
           (unsigned long long)number);
}

/* Returns 0, or -1 with errno. Leave it in any case. */
static int find_place(dv_new_file *place, const char *path) {
  dv_path folder;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t before = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
  place->folder = -1;
  if (before >= sizeof folder || strlen(name) >= sizeof place->name) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(folder, path, before);
  folder[before] = 0;
  strcpy(place->name, name);
  choose_temporary(place);
  place->folder = open(before ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return place->folder < 0 ? -1 : 0;
}

int dv_create_at(int folder, const char *name) {
  return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

/* A new file under the temporary name. */
static int create(dv_new_file *place) {
  enum { TRIES = 8 };
  int descriptor = -1;
  for (int i = 0; i < TRIES && descriptor < 0; i++) {
    if (i) choose_temporary(place);
    descriptor = dv_create_at(place->folder, place->temporary);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  return descriptor;
}

static void leave(dv_new_file *place) {
  int reason = errno;
  if (place->folder >= 0) close(place->folder);
  place->folder = -1;
  errno = reason;
}

/* ---- Folders ---- */

/* The entry of a new folder is on the disk when the folder above it is. Some file systems cannot sync one;
 * files renamed in it are whole nevertheless. */
static bool make_one(const char *path) {
  dv_new_file place;
  if (mkdir(path, 0777)) return false;
  if (!find_place(&place, path)) fsync(place.folder);
  leave(&place);
  return true;
}

dvbf_status dv_make_folder(const char *path, dvbf_error *error) {
  dv_path part;
  size_t length = strlen(path);
  if (!length || length + 64 > sizeof part)
    return dv_fail(error, DVBF_ARGUMENT, "the folder path \"%.64s\" must have 1 to %zu characters", path,
                   sizeof part - 64);
  strcpy(part, path);
  while (length > 1 && part[length - 1] == '/') part[--length] = 0;
  for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    make_one(part); /* an error in a parent folder shows at the last one */
    *slash = '/';
  }
  if (!make_one(part) && errno != EEXIST)
    return dv_fail(error, DVBF_IO, "%.300s: the folder cannot be created: %s", path, strerror(errno));
  return DVBF_OK;
}

dvbf_status dvbf_folder_make(const char *path, dvbf_error *error) {
  dv_path name;
  dv_atomic_file probe;
  dvbf_status status = dv_make_folder(path, error);
  if (status) return status;
  dv_join(name, path, ".dvbf-probe");
  bool open = !dv_atomic_open(&probe, name, NULL);
  if (!open || putc(0, probe.stream) == EOF || fflush(probe.stream))
    status = dv_fail(error, DVBF_IO, "%.300s: the folder cannot be written: %s", path, strerror(errno));
  if (open) dv_atomic_abandon(&probe);
  return status;
}

/* ---- Reading ---- */

/* A pipe would wait for a writer that may never come. */
FILE *dv_open_file(const char *path, dvbf_error *error) {
  struct stat about;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool there = descriptor >= 0 && !fstat(descriptor, &about), regular = there && S_ISREG(about.st_mode);
  FILE *file = regular ? fdopen(descriptor, "rb") : NULL;
  if (file) return file;
  if (there && !regular)
    dv_report(error, DVBF_IO, "%.300s: is not a file, but a folder, a pipe or a device", path);
  else
    dv_report(error, DVBF_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  if (descriptor >= 0) close(descriptor);
  return NULL;
}

/* Renames the written file to its name and syncs it. */
static dvbf_status publish(const dv_new_file *place, const char *path, int reason, dvbf_error *error) {
  if (!reason && renameat(place->folder, place->temporary, place->folder, place->name)) reason = errno;
  if (!reason) {
    fsync(place->folder); /* some file systems refuse it: the rename itself stays atomic */
    return DVBF_OK;
  }
  unlinkat(place->folder, place->temporary, 0);
  return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %s; any earlier file is unchanged", path,
                 strerror(reason));
}

/* ---- Temporary names for other libraries ---- */

dvbf_status dv_temporary_name(char *out, size_t size, const char *path, dvbf_error *error) {
  dv_new_file place;
  dvbf_status status = DVBF_OK;
  const char *slash = strrchr(path, '/');
  int before = slash ? (int)(slash - path) + 1 : 0, length = -1;
  if (!find_place(&place, path)) length = snprintf(out, size, "%.*s%s", before, path, place.temporary);
  if (place.folder < 0)
    status = dv_fail(error, DVBF_IO, "%.200s: cannot be created: %s", path, strerror(errno));
  else if (length < 0 || (size_t)length >= size)
    status = dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is longer than %zu characters", path, size);
  leave(&place);
  return status;
}

dvbf_status dv_publish(const char *temporary, const char *path, dvbf_error *error) {
  dv_new_file place;
  const char *slash = strrchr(temporary, '/');
  if (find_place(&place, path)) {
    int refused = errno;
    unlink(temporary);
    return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %s", path, strerror(refused));
  }
  snprintf(place.temporary, sizeof place.temporary, "%s", slash ? slash + 1 : temporary);
  int descriptor = openat(place.folder, place.temporary, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  int reason = descriptor < 0 || fsync(descriptor) ? errno : 0;
  if (descriptor >= 0) close(descriptor);
  dvbf_status status = publish(&place, path, reason, error);
  leave(&place);
  return status;
}

int dv_sync(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  int failed = fsync(descriptor), reason = errno;
  close(descriptor);
  errno = reason;
  return failed;
}

/* ---- Files that appear whole or not at all ---- */

dvbf_status dv_atomic_open(dv_atomic_file *file, const char *path, dvbf_error *error) {
  file->stream = NULL;
  if (strlen(path) >= sizeof file->path)
    return dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is longer than %zu characters", path,
                   sizeof file->path);
  strcpy(file->path, path);
  file->descriptor = find_place(&file->place, path) ? -1 : create(&file->place);
  if (file->descriptor >= 0) file->stream = fdopen(file->descriptor, "wb");
  if (file->stream) return DVBF_OK;
  int reason = errno;
  if (file->descriptor >= 0) {
    close(file->descriptor);
    unlinkat(file->place.folder, file->place.temporary, 0);
  }
  leave(&file->place);
  return dv_fail(error, DVBF_IO, "%.200s: cannot be created: %s", path, strerror(reason));
}

dvbf_status dv_atomic_commit(dv_atomic_file *file, dvbf_error *error) {
  /* errno may still tell why an earlier write failed. */
  bool known = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  int reason = !ferror(file->stream) ? 0 : known ? errno : EIO;
  if (fflush(file->stream)) reason = errno;
  if (!reason && fsync(file->descriptor)) reason = errno;
  if (fclose(file->stream) && !reason) reason = errno;
  file->stream = NULL;
  dvbf_status status = publish(&file->place, file->path, reason, error);
  leave(&file->place);
  return status;
}

void dv_atomic_abandon(dv_atomic_file *file) {
  if (!file->stream) return;
  fclose(file->stream);
  file->stream = NULL;
  unlinkat(file->place.folder, file->place.temporary, 0);
  leave(&file->place);
}
