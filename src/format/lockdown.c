/* What is left to a process that parses a file: reading what is open, its own memory, answering, ending. */
#include "format/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

bool dv_lock_down(size_t bytes) {
  return limit(RLIMIT_AS, bytes) && limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && filter_calls();
}
