/* Paths, folders, and files that appear whole or not at all. */
#pragma once

#include <dvbf/core.h>
#include <stdio.h>

typedef char dv_path[4096];

/* Writes folder/name. A path that is too long is cut; using it then fails. */
void dv_join(dv_path out, const char *folder, const char *name);

bool dv_exists(const char *path);
/* Refuses a path that exists, unless `force`. */
dvbf_status dv_refuse_existing(const char *path, bool force, dvbf_error *error);

/* Makes the folder and those above it. */
dvbf_status dv_make_folder(const char *path, dvbf_error *error);

/* Opens a regular file for reading; NULL with a sentence if it is a folder, a pipe or a device. */
FILE *dv_open_file(const char *path, dvbf_error *error);

/* ---- Files that appear whole or not at all ---- */

/* Where a file is made: its folder, held open as paths may be renamed, its name, and an unguessable one. */
typedef struct dv_new_file {
  int folder; /* descriptor, -1: none */
  char name[256], temporary[288];
} dv_new_file;

/* Opens every new file: it must not exist, no link is followed. Returns the descriptor, or -1 with errno. */
int dv_create_at(int folder, const char *name);

typedef struct dv_atomic_file {
  FILE *stream;
  int descriptor; /* of the stream */
  dv_new_file place;
  dv_path path;
} dv_atomic_file;

/* A temporary file in the folder of `path`: write to ->stream, then commit (sync, rename) or abandon it. */
dvbf_status dv_atomic_open(dv_atomic_file *file, const char *path, dvbf_error *error);
dvbf_status dv_atomic_commit(dv_atomic_file *file, dvbf_error *error);
void dv_atomic_abandon(dv_atomic_file *file);

/* A temporary name for `path`, for libraries that open files themselves; dv_publish syncs and renames it. */
dvbf_status dv_temporary_name(char *out, size_t size, const char *path, dvbf_error *error);
dvbf_status dv_publish(const char *temporary, const char *path, dvbf_error *error);

/* Syncs a file or folder to the disk. Returns 0, or -1 with errno. */
int dv_sync(const char *path);
