#include "export/run.h"

#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

dvbf_status dv_scratch_make(dv_scratch *s, dvbf_error *error) {
  const char *where = getenv("TMPDIR");
  snprintf(s->path, sizeof s->path, "%.900s/dvbf-XXXXXX", where && *where ? where : "/tmp");
  if (mkdtemp(s->path)) return DVBF_OK;
  int reason = errno;
  dvbf_status status = dv_fail(error, DVBF_IO, "%.300s: a folder for the compiler cannot be made: %s",
                               s->path, strerror(reason));
  *s->path = 0;
  return status;
}

void dv_scratch_remove(const dv_scratch *s) {
  DIR *folder = *s->path ? opendir(s->path) : NULL;
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      unlinkat(dirfd(folder), entry->d_name, 0);
  closedir(folder);
  rmdir(s->path);
}

dvbf_status dv_run_program(const char *const *words, const char *log, int *code, dvbf_error *error) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = 0;
  *code = -1;
  if (posix_spawn_file_actions_init(&actions)) return dv_fail_memory(error, "starting a program");
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  int reason = posix_spawnp(&child, words[0], &actions, NULL, (char *const *)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (reason == ENOENT || reason == EACCES) *code = DV_NO_PROGRAM;
  if (reason)
    return dv_fail(error, DVBF_IO, "%.100s: cannot be run: %s; install a C compiler, or name one in CC",
                   words[0], strerror(reason));
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return dv_fail(error, DVBF_IO, "%.100s: was lost: %s", words[0], strerror(errno));
  if (WIFEXITED(status)) *code = WEXITSTATUS(status);
  return DVBF_OK;
}

void dv_first_line(char *out, size_t size, const char *path) {
  FILE *file = fopen(path, "r");
  *out = 0;
  if (file && !fgets(out, (int)size, file)) *out = 0;
  if (file) fclose(file);
  out[strcspn(out, "\r\n")] = 0;
  for (char *at = out; *at; at++)
    if ((unsigned char)*at < 32) *at = '.';
}

dvbf_status dv_compiler_exists(bool *exists, dvbf_error *error) {
  const char *given = getenv("CC");
  char first[256];
  int code;
  snprintf(first, sizeof first, "%s", given && *given ? given : "cc");
  first[strcspn(first, " ")] = 0;
  dvbf_status status =
      dv_run_program((const char *const[]){first, "--version", NULL}, "/dev/null", &code, error);
  *exists = !status && !code;
  if (status && code == DV_NO_PROGRAM) return DVBF_OK;
  if (!status && code)
    status =
        dv_fail(error, DVBF_IO, "the C compiler (%.60s) fails: mend it, or name another one in CC", first);
  return status;
}

dvbf_status dv_run_compiler(const char *const *words, const dv_scratch *scratch, dvbf_error *error) {
  enum { MOST = 64 };
  const char *all[MOST], *given = getenv("CC");
  char compiler[256], log[1100], line[256], *rest = compiler;
  int n = 0, code;
  snprintf(compiler, sizeof compiler, "%s", given && *given ? given : "cc");
  for (char *word; n < 16 && (word = strsep(&rest, " "));)
    if (*word) all[n++] = word;
  if (!n) all[n++] = "cc"; /* CC was blank */
  for (; *words && n + 1 < MOST; words++) all[n++] = *words;
  all[n] = NULL;
  snprintf(log, sizeof log, "%s/log", scratch->path);
  dvbf_status status = dv_run_program(all, log, &code, error);
  if (status || !code) return status;
  dv_first_line(line, sizeof line, log);
  return dv_fail(error, DVBF_IO, "the C compiler (%.60s) fails: %s", all[0],
                 *line ? line : "it says nothing");
}
