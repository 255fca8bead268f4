#include "files.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_join(cli_path out, const char *folder, const char *name) {
  size_t length = strlen(folder);
  const char *slash = length && folder[length - 1] == '/' ? "" : "/";
  if (snprintf(out, sizeof(cli_path), "%s%s%s", folder, slash, name) < 0) out[0] = 0;
}

bool cli_exists(const char *path) {
  struct stat info;
  return !lstat(path, &info);
}

bool cli_is_folder(const char *path) {
  struct stat info;
  return !stat(path, &info) && S_ISDIR(info.st_mode);
}

dvbf_status cli_refuse_existing(const char *path, bool force, dvbf_error *error) {
  if (force || !cli_exists(path)) return DVBF_OK;
  return cli_fail(error, DVBF_IO,
                  "%.300s: exists already and is left as it is; choose another name or add --force", path);
}

dvbf_status cli_make_folder(const char *path, dvbf_error *error) {
  cli_path part, probe;
  if (strlen(path) + 64 > sizeof part)
    return cli_fail(error, DVBF_ARGUMENT, "%.64s...: the path is longer than %zu characters", path,
                    sizeof part - 64);
  strcpy(part, path);
  for (char *slash = part + 1; *part && (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(part, 0777); /* whatever is wrong with a folder above shows at the last one */
    *slash = '/';
  }
  if (mkdir(part, 0777) && errno != EEXIST)
    return cli_fail(error, DVBF_IO, "%.300s: the folder cannot be made: %s", path, strerror(errno));
  char name[64];
  snprintf(name, sizeof name, ".dvbf-probe-%ld", (long)getpid());
  cli_join(probe, path, name);
  int descriptor = open(probe, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0 || write(descriptor, "", 1) != 1) {
    int reason = errno;
    if (descriptor >= 0) close(descriptor), unlink(probe);
    return cli_fail(error, DVBF_IO, "%.300s: the folder cannot be written: %s", path, strerror(reason));
  }
  close(descriptor);
  unlink(probe);
  return DVBF_OK;
}
