#include "base/file.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Paths and folders ---- */

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
                 "%.300s: exists already and is left as it is; choose another name or add --force", path);
}

dvbf_status dv_make_folder(const char *path, dvbf_error *error) {
  dv_path part;
  if (!*path || strlen(path) + 64 > sizeof part)
    return dv_fail(error, DVBF_ARGUMENT, "the path \"%.64s\" of a folder must have 1 to %zu characters", path,
                   sizeof part - 64);
  strcpy(part, path);
  for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(part, 0777); /* whatever is wrong with a folder above shows at the last one */
    *slash = '/';
  }
  if (mkdir(part, 0777) && errno != EEXIST)
    return dv_fail(error, DVBF_IO, "%.300s: the folder cannot be made: %s", path, strerror(errno));
  return DVBF_OK;
}

dvbf_status dvbf_folder_make(const char *path, dvbf_error *error) {
  dv_path probe;
  char name[64];
  dvbf_status status = dv_make_folder(path, error);
  if (status) return status;
  snprintf(name, sizeof name, ".dvbf-probe-%ld", (long)getpid());
  dv_join(probe, path, name);
  int descriptor = open(probe, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0 || write(descriptor, "", 1) != 1)
    status = dv_fail(error, DVBF_IO, "%.300s: the folder cannot be written: %s", path, strerror(errno));
  if (descriptor >= 0) close(descriptor), unlink(probe);
  return status;
}

/* ---- Files ---- */

dvbf_status dv_temporary_name(char *out, size_t size, const char *path, dvbf_error *error) {
  int length = snprintf(out, size, "%s.tmp-%ld", path, (long)getpid());
  if (length < 0 || (size_t)length >= size)
    return dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is longer than %zu characters", path, size);
  return DVBF_OK;
}

int dv_sync(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  int failed = fsync(descriptor), reason = errno;
  close(descriptor);
  errno = reason;
  return failed;
}

static void sync_folder_of(const char *path) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (!slash)
    snprintf(folder, sizeof folder, ".");
  else
    slash[slash == folder] = 0;
  dv_sync(folder); /* some file systems refuse to sync a folder: the rename itself stays atomic */
}

dvbf_status dv_publish(const char *temporary, const char *path, dvbf_error *error) {
  if (dv_sync(temporary) || rename(temporary, path)) {
    int reason = errno;
    unlink(temporary);
    return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %s; what was there before is unchanged", path,
                   strerror(reason));
  }
  sync_folder_of(path);
  return DVBF_OK;
}

dvbf_status dv_atomic_open(dv_atomic_file *file, const char *path, dvbf_error *error) {
  file->stream = NULL;
  if (strlen(path) >= sizeof file->path)
    return dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is longer than %zu characters", path,
                   sizeof file->path);
  strcpy(file->path, path);
  dvbf_status status = dv_temporary_name(file->temporary, sizeof file->temporary, path, error);
  if (status) return status;
  file->stream = fopen(file->temporary, "wb");
  if (!file->stream) return dv_fail(error, DVBF_IO, "%.200s: cannot be created: %s", path, strerror(errno));
  return DVBF_OK;
}

dvbf_status dv_atomic_commit(dv_atomic_file *file, dvbf_error *error) {
  /* errno may still tell why an earlier write failed. */
  bool known = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  int reason = !ferror(file->stream) ? 0 : known ? errno : EIO;
  if (fflush(file->stream)) reason = errno;
  if (fclose(file->stream) && !reason) reason = errno;
  file->stream = NULL;
  if (reason) {
    unlink(file->temporary);
    return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %s; what was there before is unchanged",
                   file->path, strerror(reason));
  }
  return dv_publish(file->temporary, file->path, error);
}

void dv_atomic_abandon(dv_atomic_file *file) {
  if (!file->stream) return;
  fclose(file->stream);
  file->stream = NULL;
  unlink(file->temporary);
}
