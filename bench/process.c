#include "process.h"

#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- Starting ---- */

/* posix_spawn, because fork would copy the tables of our memory while the clock runs. */
static int spawn(pid_t *pid, char *const *command, int input, int output) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&how, 0);
  int failed = posix_spawnp(pid, command[0], &files, &how, command, environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

/* Pipes close in every other child, or nobody would see their end. */
bool process_start(process *p, char *const *command) {
  int down[2], up[2];
  *p = (process){0};
  if (pipe2(down, O_CLOEXEC)) return false;
  if (pipe2(up, O_CLOEXEC)) {
    close(down[0]);
    close(down[1]);
    return false;
  }
  int failed = spawn(&p->pid, command, down[0], up[1]);
  close(down[0]);
  close(up[1]);
  p->to = down[1];
  p->from = up[0];
  if (!failed) return true;
  close(p->to);
  close(p->from);
  p->pid = 0;
  return false;
}

/* ---- Talking ---- */

bool process_tell(process *p, const char *line) {
  size_t length = strlen(line);
  while (length) {
    ssize_t n = write(p->to, line, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    line += n;
    length -= (size_t)n;
  }
  return true;
}

/* Reads a piece; false at the end of the output or of patience. */
static bool read_more(process *p, double until) {
  if (p->room - p->used < 4096) {
    char *grown = dv_realloc(p->text, 2 * p->room + 8192, 1);
    if (!grown) return false;
    p->text = grown;
    p->room = 2 * p->room + 8192;
  }
  struct pollfd wait = {.fd = p->from, .events = POLLIN};
  for (;;) {
    double left = until - now();
    int ready = left > 0 ? poll(&wait, 1, (int)(1000 * left) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t n = read(p->from, p->text + p->used, p->room - p->used - 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p->used += (size_t)n;
    return true;
  }
}

char *process_read(process *p, double patience) {
  double until = now() + patience;
  if (p->taken) memmove(p->text, p->text + p->taken, p->used -= p->taken);
  p->taken = 0;
  for (size_t seen = 0;;) {
    char *end = p->used > seen ? memchr(p->text + seen, '\n', p->used - seen) : NULL;
    if (end) {
      *end = 0;
      p->taken = (size_t)(end - p->text) + 1;
      return p->text;
    }
    seen = p->used;
    if (!read_more(p, until)) return NULL;
  }
}

/* ---- Ending ---- */

int process_end(process *p, double patience) {
  int status = 0;
  if (!p->pid) return -1;
  close(p->to);
  close(p->from);
  double until = now() + patience;
  struct timespec nap = {.tv_nsec = 50000}; /* short beside the shortest command that is timed, 1 ms */
  while (waitpid(p->pid, &status, WNOHANG) == 0) {
    if (now() > until) kill(-p->pid, SIGKILL);
    nanosleep(&nap, NULL);
  }
  dv_free(p->text);
  *p = (process){0};
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

command_result command_run(char *const *command, double patience) {
  command_result result = {.status = -1};
  process p;
  double began = now(), until = began + patience;
  if (!process_start(&p, command)) return result;
  for (char *line; (line = process_read(&p, until - now()));)
    snprintf(result.last, sizeof result.last, "%s", line);
  result.status = process_end(&p, until - now());
  result.seconds = now() - began;
  return result;
}
