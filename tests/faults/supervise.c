/* Runs a command and lets one of its system calls fail.
 *
 *   supervise --tell FILE [--fail CLASS N [--on]] [--kill N] [--space BYTES] [--log FILE]
 *             [--environment NAME=VALUE]... COMMAND ...
 *
 * The kernel asks this process before each call that the filter below names (seccomp, user notification).
 * Only calls that concern files in the folder where it was started are counted, those of a class from 1 on;
 * the loader's are not.
 * --fail refuses call N of a class, --on also those after it; --kill ends the command before the N-th call
 * that changes a file; --space lets BYTES be written in all and then reports a full disk. --log tells what
 * reaches the disk, for a replay. FILE gets the number of calls of each class, how often one was refused, and
 * how the command ended. Exit status 77: the kernel does not offer this. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, LONGEST = 4096 };
enum class {
  OPEN,
  READ,
  WRITE,
  SYNC,
  RENAME,
  REMOVE,
  TRUNCATE,
  MKDIR,
  LIST,
  LOCK,
  CLOSE,
  MAP,
  THREAD,
  CHILD,
  PRINT,
  CLASSES
};

static const struct {
  const char *name;
  int reason; /* errno of a call that fails */
} classes[CLASSES] = {
    [OPEN] = {"open", EMFILE},      [READ] = {"read", EIO},        [WRITE] = {"write", ENOSPC},
    [SYNC] = {"sync", EIO},         [RENAME] = {"rename", ENOSPC}, [REMOVE] = {"remove", EACCES},
    [TRUNCATE] = {"truncate", EIO}, [MKDIR] = {"mkdir", ENOSPC},   [LIST] = {"list", EIO},
    [LOCK] = {"lock", ENOLCK},      [CLOSE] = {"close", EIO},      [MAP] = {"map", ENOMEM},
    [THREAD] = {"thread", EAGAIN},  [CHILD] = {"child", EAGAIN},   [PRINT] = {"print", ENOSPC}};

/* How a call names its file: by the descriptor in argument 0, by the path in `path`, relative to the
 * descriptor in `folder` (-1: to the working directory). A rename has a second pair. */
typedef struct call {
  int number;
  enum class class;
  int path, folder; /* indices of arguments; path = -1: a descriptor */
} call;

static const call calls[] = {
#ifdef SYS_open
    {SYS_open, OPEN, 0, -1},         {SYS_creat, OPEN, 0, -1},          {SYS_rename, RENAME, 0, -1},
    {SYS_unlink, REMOVE, 0, -1},     {SYS_rmdir, REMOVE, 0, -1},        {SYS_mkdir, MKDIR, 0, -1},
    {SYS_fork, CHILD, -1, -1},       {SYS_vfork, CHILD, -1, -1},
#endif
    {SYS_openat, OPEN, 1, 0},        {SYS_read, READ, -1, -1},          {SYS_pread64, READ, -1, -1},
    {SYS_readv, READ, -1, -1},       {SYS_write, WRITE, -1, -1},        {SYS_pwrite64, WRITE, -1, -1},
    {SYS_writev, WRITE, -1, -1},     {SYS_fsync, SYNC, -1, -1},         {SYS_fdatasync, SYNC, -1, -1},
    {SYS_renameat, RENAME, 1, 0},    {SYS_renameat2, RENAME, 1, 0},     {SYS_unlinkat, REMOVE, 1, 0},
    {SYS_truncate, TRUNCATE, 0, -1}, {SYS_ftruncate, TRUNCATE, -1, -1}, {SYS_mkdirat, MKDIR, 1, 0},
    {SYS_getdents64, LIST, -1, -1},  {SYS_flock, LOCK, -1, -1},         {SYS_close, CLOSE, -1, -1},
    {SYS_mmap, MAP, -1, -1},         {SYS_clone, THREAD, -1, -1},       {SYS_clone3, THREAD, -1, -1},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct {
  enum class fails;
  unsigned long at, kill;
  long long space; /* bytes that may still be written; -1: any number */
  bool on;
  FILE *log;
  const char *tell;
  char *environment[8]; /* of the command alone */
} plan = {.fails = CLASSES, .space = -1};

static struct {
  unsigned long count[CLASSES], struck, changes;
  unsigned long long bytes; /* written */
  bool begun;               /* a file of the folder was touched */
} seen;

static char root[LONGEST];

/* ---- The command ---- */

static int install(void) {
  struct sock_filter filter[CALLS + 3];
  unsigned n = 0;
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned i = 0; i < CALLS; i++)
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number,
                                               (uint8_t)(CALLS - i), 0);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  struct sock_fprog program = {(unsigned short)n, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void send_descriptor(int through, int descriptor) {
  char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  *head =
      (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
  memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  sendmsg(through, &message, 0);
}

static int receive_descriptor(int through) {
  char byte, space[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  int descriptor = -1;
  if (recvmsg(through, &message, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&message))
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

/* Closes its end of the pair before the filter is there and the listener after it was sent, with numbers of
 * calls that are not asked about: nobody would answer yet. */
static pid_t start(char **command, int *listener) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return -1;
  pid_t child = fork();
  if (!child) {
    setpgid(0, 0);
    for (int i = 0; plan.environment[i]; i++) putenv(plan.environment[i]);
    int notify = install();
    if (notify < 0) _exit(SKIPPED);
    send_descriptor(pair[1], notify);
    execv(command[0], command);
    _exit(127);
  }
  close(pair[1]);
  *listener = receive_descriptor(pair[0]);
  close(pair[0]);
  return child;
}

/* ---- What a call is about ---- */

static bool read_memory(pid_t task, uint64_t from, void *to, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", (int)task);
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  bool done = descriptor >= 0 && pread(descriptor, to, size, (off_t)from) == (ssize_t)size;
  if (descriptor >= 0) close(descriptor);
  return done;
}

/* A string ends before its page does, or goes on in the next one. */
static void read_string(pid_t task, uint64_t from, char *to, size_t size) {
  for (size_t i = 0; i + 1 < size;) {
    size_t part = 256 - (size_t)((from + i) % 256);
    if (part > size - 1 - i) part = size - 1 - i;
    to[i] = 0;
    if (!read_memory(task, from + i, to + i, part)) return;
    to[i + part] = 0;
    if (memchr(to + i, 0, part)) return;
    i += part;
  }
}

static void read_link(pid_t task, const char *kind, int descriptor, char *to, size_t size) {
  char path[64];
  if (descriptor < 0)
    snprintf(path, sizeof path, "/proc/%d/%s", (int)task, kind);
  else
    snprintf(path, sizeof path, "/proc/%d/%s/%d", (int)task, kind, descriptor);
  ssize_t length = readlink(path, to, size - 1);
  to[length > 0 ? length : 0] = 0;
}

static void path_of(const struct seccomp_notif *n, int path, int folder, char *to, size_t size) {
  char given[LONGEST / 2] = "";
  if (path < 0) {
    read_link((pid_t)n->pid, "fd", (int)n->data.args[0], to, size);
    return;
  }
  read_string((pid_t)n->pid, n->data.args[path], given, sizeof given);
  int descriptor = folder < 0 ? AT_FDCWD : (int)n->data.args[folder];
  if (given[0] == '/') {
    snprintf(to, size, "%s", given);
    return;
  }
  char base[LONGEST / 2];
  read_link((pid_t)n->pid, descriptor == AT_FDCWD ? "cwd" : "fd", descriptor == AT_FDCWD ? -1 : descriptor,
            base, sizeof base);
  snprintf(to, size, "%s/%s", base, !strncmp(given, "./", 2) ? given + 2 : given);
}

/* The path below the folder, or NULL. */
static const char *inside(const char *path) {
  size_t length = strlen(root);
  if (strncmp(path, root, length) != 0 || (path[length] && path[length] != '/')) return NULL;
  return path[length] ? path + length + 1 : ".";
}

/* ---- The log of what reaches the disk ---- */

/* Where a write goes, and the flags of its file. */
static long long position(const struct seccomp_notif *n, unsigned *flags) {
  char path[64], line[128];
  long long at = 0;
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)n->pid, (int)n->data.args[0]);
  FILE *file = fopen(path, "r");
  *flags = 0;
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "pos: %lld", &at) != 1) sscanf(line, "flags: %o", flags);
  if (file) fclose(file);
  return at;
}

static void log_bytes(const struct seccomp_notif *n, uint64_t from, uint64_t size) {
  unsigned char part[LONGEST];
  for (uint64_t i = 0; i < size;) {
    size_t count = size - i < sizeof part ? size - i : sizeof part;
    if (!read_memory((pid_t)n->pid, from + i, part, count)) break;
    for (size_t k = 0; k < count; k++) fprintf(plan.log, "%02x", part[k]);
    i += count;
  }
}

static void log_write(const struct seccomp_notif *n, const char *path) {
  unsigned flags;
  long long at = position(n, &flags);
  if (n->data.nr == SYS_pwrite64) at = (long long)n->data.args[3];
  fprintf(plan.log, "write %s %lld ", path, flags & O_APPEND ? -1 : at);
  if (n->data.nr == SYS_writev) {
    for (uint64_t i = 0; i < n->data.args[2]; i++) {
      struct iovec part;
      if (read_memory((pid_t)n->pid, n->data.args[1] + i * sizeof part, &part, sizeof part))
        log_bytes(n, (uint64_t)(uintptr_t)part.iov_base, part.iov_len);
    }
  } else {
    log_bytes(n, n->data.args[1], n->data.args[2]);
  }
  fputc('\n', plan.log);
}

static void log_call(const struct seccomp_notif *n, enum class class, const char *path) {
  char other[LONGEST];
  if (class == WRITE) log_write(n, path);
  if (class == SYNC) fprintf(plan.log, "sync %s\n", path);
  if (class == REMOVE) fprintf(plan.log, "remove %s\n", path);
  if (class == MKDIR) fprintf(plan.log, "mkdir %s\n", path);
  if (class == TRUNCATE) fprintf(plan.log, "truncate %s %llu\n", path, (unsigned long long)n->data.args[1]);
  if (class == OPEN) {
    uint64_t flags = n->data.args[n->data.nr == SYS_openat ? 2 : 1];
    fprintf(plan.log, "open %s%s%s\n", path, flags & O_CREAT ? " create" : "",
            flags & O_TRUNC ? " truncate" : "");
  }
  if (class == RENAME) {
    bool at = n->data.nr == SYS_renameat || n->data.nr == SYS_renameat2;
    path_of(n, at ? 3 : 1, at ? 2 : -1, other, sizeof other);
    fprintf(plan.log, "rename %s %s\n", path, inside(other) ? inside(other) : other);
  }
}

/* ---- Deciding ---- */

/* The class of a call that concerns us, and the file's path in the folder; CLASSES: it does not. */
static enum class class_of(const struct seccomp_notif *n, char *path, size_t size) {
  const call *c = calls; while (c->number != n->data.nr) c++; path[0] = 0;
  if (c->class == THREAD || c->class == CHILD){
      uint64_t flags = n->data.nr == SYS_clone ? n->data.args[0] : 0;
      if (n->data.nr == SYS_clone3) read_memory((pid_t)n->pid, n->data.args[0], &flags, sizeof flags);
      return !seen.begun            ? CLASSES
             : flags & CLONE_THREAD ? THREAD
                                    : CHILD;}
if (c->class == MAP && n->data.args[3] & MAP_ANONYMOUS) return seen.begun ? MAP : CLASSES;
char whole[LONGEST];
if (c->class == MAP)
  read_link((pid_t)n->pid, "fd", (int)n->data.args[4], whole, sizeof whole);
else
  path_of(n, c->path, c->folder, whole, sizeof whole);
const char *part = inside(whole);
if (!part) return c->class == WRITE && n->data.args[0] == STDOUT_FILENO ? PRINT : CLASSES;
snprintf(path, size, "%s", part);
seen.begun = true;
return c->class;
}

static bool changes(enum class class) {
  return class == WRITE || class == RENAME || class == REMOVE || class == TRUNCATE || class == MKDIR ||
         class == SYNC;
}

/* Bytes of a write that still fit; a full disk takes part of a write, then none. */
static long long partial(const struct seccomp_notif *n) {
  char path[64];
  unsigned flags;
  long long size = (long long)n->data.args[2], fits = plan.space < size ? plan.space : size;
  plan.space -= fits;
  if (fits == size || !fits || n->data.nr == SYS_writev) return fits == size ? -1 : 0;
  char *bytes = malloc((size_t)fits);
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)n->pid, (int)n->data.args[0]);
  int descriptor = open(path, O_WRONLY | O_CLOEXEC);
  long long at = position(n, &flags);
  if (n->data.nr == SYS_pwrite64) at = (long long)n->data.args[3];
  if (flags & O_APPEND) at = lseek(descriptor, 0, SEEK_END);
  if (bytes && read_memory((pid_t)n->pid, n->data.args[1], bytes, (size_t)fits) &&
      pwrite(descriptor, bytes, (size_t)fits, at) != fits)
    fits = 0;
  free(bytes);
  close(descriptor);
  return fits;
}

static void decide(const struct seccomp_notif *n, struct seccomp_notif_resp *answer, pid_t child) {
  char path[LONGEST];
  enum class class = class_of(n, path, sizeof path);
  answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  if (class == CLASSES) return;
  seen.count[class]++;
  if (class == WRITE && n->data.nr != SYS_writev) seen.bytes += n->data.args[2];
  if (changes(class)) seen.changes++;
  if (plan.kill && changes(class) && seen.changes == plan.kill) {
    kill(-child, SIGKILL);
    return;
  }
  bool strikes =
      class == plan.fails && (seen.count[class] == plan.at || (plan.on && seen.count[class] > plan.at));
  if (class == WRITE && plan.space >= 0) {
    long long fits = partial(n);
    /* Part of it was written by this process, at the place where the command would have: the rest of the file
     * follows a refusal, so its position does not matter. */
    if (fits > 0) {
      answer->flags = 0;
      answer->val = fits;
      return;
    }
    strikes = !fits;
  }
  if (strikes) {
    seen.struck++;
    answer->flags = 0;
    answer->error = -classes[class].reason;
  } else if (plan.log) {
    log_call(n, class, path);
  }
}

static void answer_all(int listener, pid_t child, int *status) {
  struct seccomp_notif n;
  struct pollfd poll_for = {.fd = listener, .events = POLLIN};
  for (bool alive = true;;) {
    int ready = poll(&poll_for, 1, 20);
    if (alive && waitpid(child, status, WNOHANG) == child) alive = false, kill(-child, SIGKILL);
    if (ready > 0 && poll_for.revents & POLLIN) {
      memset(&n, 0, sizeof n);
      if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n)) continue;
      struct seccomp_notif_resp answer = {.id = n.id};
      decide(&n, &answer, child);
      ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    } else if (ready > 0) {
      if (alive) waitpid(child, status, 0);
      return;
    }
  }
}

/* ---- Beginning and end ---- */

static int usage(void) {
  fprintf(stderr,
          "usage: supervise --tell FILE [--fail CLASS N [--on]] [--kill N] [--space BYTES] [--log FILE] "
          "[--environment NAME=VALUE] COMMAND ...\n");
  return 2;
}

static int arguments_of(char **argv) {
  int i = 1, names = 0;
  for (; argv[i] && !strncmp(argv[i], "--", 2); i++) {
    const char *name = argv[i];
    if (!strcmp(name, "--on")) {
      plan.on = true;
      continue;
    }
    if (!argv[i + 1]) return 0;
    char *value = argv[++i];
    if (!strcmp(name, "--environment") && names < 7) {
      plan.environment[names++] = value;
    } else if (!strcmp(name, "--tell")) {
      plan.tell = value;
    } else if (!strcmp(name, "--log")) {
      plan.log = fopen(value, "we");
    } else if (!strcmp(name, "--kill")) {
      plan.kill = strtoul(value, NULL, 10);
    } else if (!strcmp(name, "--space")) {
      plan.space = strtoll(value, NULL, 10);
    } else if (!strcmp(name, "--fail") && argv[i + 1]) {
      for (plan.fails = 0; plan.fails < CLASSES && strcmp(classes[plan.fails].name, value) != 0;)
        plan.fails++;
      plan.at = strtoul(argv[++i], NULL, 10);
      if (plan.fails == CLASSES) return 0;
    } else {
      return 0;
    }
  }
  return argv[i] && plan.tell ? i : 0;
}

int main(int argc, char **argv) {
  int first = argc > 1 ? arguments_of(argv) : 0, listener = -1, status = 0;
  if (!first || !getcwd(root, sizeof root)) return usage();
  pid_t child = start(argv + first, &listener);
  if (child < 0) return 1;
  if (listener < 0) return SKIPPED;
  answer_all(listener, child, &status);
  FILE *tell = fopen(plan.tell, "we");
  if (!tell) return 1;
  for (int i = 0; i < CLASSES; i++) fprintf(tell, "%s %lu\n", classes[i].name, seen.count[i]);
  fprintf(tell, "changes %lu\nspace %llu\nstruck %lu\n", seen.changes, seen.bytes, seen.struck);
  if (WIFSIGNALED(status))
    fprintf(tell, "signal %d\n", WTERMSIG(status));
  else
    fprintf(tell, "exit %d\n", WEXITSTATUS(status));
  bool failed = fclose(tell);
  if (plan.log && fclose(plan.log)) failed = true;
  return failed;
}
