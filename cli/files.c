#include "files.h"

#include "command.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
