/* Paths and folders. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include <dvbf/dvbf.h>
#include <limits.h>

typedef char cli_path[PATH_MAX];

/* Writes folder/name. A path that is too long is cut, and then refused when it is used. */
void cli_join(cli_path out, const char *folder, const char *name);

bool cli_exists(const char *path);
bool cli_is_folder(const char *path);

/* Refuses a path that exists, unless `force`. */
dvbf_status cli_refuse_existing(const char *path, bool force, dvbf_error *error);

#endif
