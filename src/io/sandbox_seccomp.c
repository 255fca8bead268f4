/* The sandboxed process (sandbox.h): a copy of the program, or a new one that reads before main; it opens the
 * file, gives up all rights (dv_sandbox_enter) and answers requests. The seccomp filter allows reading what
 * is open, its own memory, answering and ending; other calls fail with EPERM. It is a short BPF program by
 * hand instead of a dependency on libseccomp. */
#include "base/error.h"
#include "base/memory.h"
#include "io/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Messages ---- */

bool dv_send(int to, const void *message, size_t size) {
  for (const char *at = message; size;) {
    ssize_t sent = send(to, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= (size_t)sent;
  }
  return true;
}

bool dv_receive(int from, void *message, size_t size, int seconds) {
  for (char *at = message; size;) {
    struct pollfd ready = {.fd = from, .events = POLLIN};
    int known = seconds ? poll(&ready, 1, 1000 * seconds) : 1;
    ssize_t got = known > 0 ? recv(from, at, size, 0) : known;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= (size_t)got;
  }
  return true;
}

/* ---- System calls ---- */

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Allowed whatever their arguments are. */
static const int harmless[] = {SYS_read,     SYS_pread64,     SYS_readv,         SYS_lseek,
                               SYS_close,    SYS_munmap,      SYS_mremap,        SYS_brk,
                               SYS_madvise,  SYS_futex,       SYS_exit,          SYS_exit_group,
                               SYS_fstat,    SYS_getrandom,   SYS_clock_gettime, SYS_rt_sigreturn,
                               SYS_recvfrom, SYS_sched_yield, SYS_gettimeofday};

/* Allowed if one argument is right. */
typedef enum test { IS, HAS_NOT } test;
static const struct {
  int call, argument;
  test test;
  uint32_t value;
} careful[] = {
    {SYS_write, 0, IS, DV_READER_SOCKET},   {SYS_sendto, 0, IS, DV_READER_SOCKET},
    {SYS_mmap, 2, HAS_NOT, PROT_EXEC},      {SYS_mprotect, 2, HAS_NOT, PROT_EXEC},
    {SYS_newfstatat, 3, IS, AT_EMPTY_PATH}, /* fstat of the C library */
};

enum { HARMLESS = sizeof harmless / sizeof *harmless, CAREFUL = sizeof careful / sizeof *careful };
enum { ROOM = 4 + 2 * HARMLESS + 6 * CAREFUL + 1 };

#define FIELD(name) (uint32_t) offsetof(struct seccomp_data, name)
#define ARGUMENT(i) (FIELD(args) + 8 * (uint32_t)(i) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

static const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
static const struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
static const struct sock_filter kill_process = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);

/* Every other call fails with EPERM: libraries try some that they can do without. */
static unsigned short write_filter(struct sock_filter out[ROOM]) {
  unsigned short n = 0;
  out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(arch));
  out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  out[n++] = kill_process;
  out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(nr));
  for (int i = 0; i < HARMLESS; i++) {
    out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)harmless[i], 0, 1);
    out[n++] = allow;
  }
  for (int i = 0; i < CAREFUL; i++) {
    bool is = careful[i].test == IS;
    out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)careful[i].call, 0, 4);
    out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(careful[i].argument));
    out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | (is ? BPF_JEQ : BPF_JSET) | BPF_K, careful[i].value,
                                            is ? 0 : 1, is ? 1 : 0);
    out[n++] = allow;
    out[n++] = refuse;
  }
  out[n++] = refuse;
  return n;
}

static bool filter_calls(void) {
  struct sock_filter filter[ROOM];
  struct sock_fprog program = {.len = write_filter(filter), .filter = filter};
  return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
         !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
static bool filter_calls(void) {
  return false;
}
#endif

static bool limit(int what, rlim_t most) {
  struct rlimit now;
  if (getrlimit(what, &now)) return false;
  if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most) most = now.rlim_max;
  return !setrlimit(what, &(struct rlimit){most, most});
}

/* The limits of a process that reads. `bytes` is the address space. */
static bool lock_down(size_t bytes) {
  return limit(RLIMIT_AS, bytes) && limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && filter_calls();
}

/* ---- Serving ---- */

static struct {
  bool reads; /* this process is one */
  bool locked;
  size_t bytes;
} self;

bool dv_sandbox_enter(void) {
  if (!self.reads || self.locked) return true;
  self.locked = lock_down(self.bytes);
  if (self.locked && dv_reader_probe) dv_reader_probe();
  return self.locked;
}

static bool describe_all(const dv_archive *a) {
  for (size_t i = 0; i < a->count; i++) {
    const dv_named_array *from = &a->arrays[i];
    dv_reader_array to = {.rank = from->rank,
                          .unpacked = from->unpacked,
                          .plain = from->plain,
                          .real = from->real,
                          .bytes = from->bytes,
                          .text = from->text,
                          .seekable = from->seekable};
    snprintf(to.name, sizeof to.name, "%s", from->name);
    snprintf(to.trouble, sizeof to.trouble, "%s", from->trouble ? from->trouble : "");
    memcpy(to.dims, from->dims, sizeof to.dims);
    if (!dv_send(DV_READER_SOCKET, &to, sizeof to)) return false;
  }
  return true;
}

static void answer(dv_archive *a, const dv_reader_request *r, void *window, dv_reader_answer *out) {
  const dv_named_array *array = &a->arrays[r->array];
  const char *remedy = NULL;
  if (!r->size || r->count > DV_HALF / r->size) return;
  if (r->strings)
    out->found = (uint8_t)dv_array_strings(a, array, r->which, r->count, r->size, window);
  else
    remedy = dv_array_read(a, array, r->first, r->count,
                           r->size == sizeof(float) ? DV_FLOATS(window) : DV_DOUBLES(window));
  if (a->lost) remedy = a->lost;
  out->lost = a->lost != NULL;
  out->done = !remedy;
  snprintf(out->remedy, sizeof out->remedy, "%s", remedy ? remedy : "");
}

static void serve(dv_archive *a, void *window) {
  dv_reader_request request;
  while (dv_receive(DV_READER_SOCKET, &request, sizeof request, 0) && request.array < a->count) {
    dv_reader_answer to = {0};
    answer(a, &request, (char *)window + (request.second ? DV_HALF : 0), &to);
    if (!dv_send(DV_READER_SOCKET, &to, sizeof to)) return;
  }
}

/* The limit includes inherited memory: libraries and, in a copy, that of the program. */
static size_t address_space(void) {
  char text[32] = "";
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  return size > 0 ? strtoull(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static void run(void) {
  dv_reader_order order;
  dv_reader_greeting greeting = {0};
  dvbf_error error = {.message = ""};
  dv_archive *a = NULL;
  void *window = mmap(NULL, DV_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, DV_READER_WINDOW, 0);
  if (window == MAP_FAILED || !dv_receive(DV_READER_SOCKET, &order, sizeof order, 0)) return;
  if (!dv_send(DV_READER_SOCKET, "", 1)) return; /* it is there, and the file comes next */
  self.reads = true;
  self.bytes = order.bytes + address_space();
  order.path[sizeof order.path - 1] = 0;
  greeting.status = (int32_t)dv_format_open(&a, order.format, order.path, DV_READER_FILE, NULL, &error);
  greeting.locked = dv_sandbox_enter(); /* also if it was refused before */
  greeting.count = greeting.status ? 0 : a->count;
  memcpy(greeting.message, error.message, sizeof greeting.message);
  if (dv_send(DV_READER_SOCKET, &greeting, sizeof greeting) && !greeting.status && greeting.locked &&
      describe_all(a))
    serve(a, window);
}

void dv_reader_become(int socket, int window, int file) {
  const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGHUP};
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int descriptors[] = {nothing, nothing, nothing, socket, window, file};
  sigset_t none;
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) signal(crashes[i], SIG_DFL);
  sigemptyset(&none);
  bool done = !setpgid(0, 0) && !sigprocmask(SIG_SETMASK, &none, NULL);
  for (int i = 0; i <= DV_READER_FILE && done; i++) done = dup2(descriptors[i], i) == i;
  if (done && !dv_close_from(DV_READER_FILE + 1)) run();
  _exit(0);
}

int dv_close_from(int first) {
#ifdef SYS_close_range
  return (int)syscall(SYS_close_range, (unsigned)first, ~0U, 0);
#else
  return -1;
#endif
}

/* Closes all inherited files, which are not needed and must not be within reach. */
__attribute__((constructor)) static void read_if_asked(void) {
  if (!dv_sandbox_possible() || !secure_getenv(DV_READER)) return;
  dv_close_from(DV_READER_FILE + 1);
  unsetenv(DV_READER);
  run();
  _exit(0);
}
