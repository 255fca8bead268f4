/* Loaded before a command (LD_PRELOAD), lets one of its allocations fail. FAULT_MEMORY = "CALLER N" or
 * "CALLER N on" says which: CALLER is own (the command itself), libc or foreign (other libraries), and
 * allocations of each are counted from 1 on; with `on` those after it fail too. FAULT_COUNTS names a file
 * that gets three counts, how often one was refused, the library in which a signal ended the process, and for
 * each allocation of the command itself the hash of the stack that it came from. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OWN, LIBC, FOREIGN, CALLERS, STACKS = 1 << 16 };

typedef struct counts {
  uint64_t count[CALLERS], struck;
  char where[64];
  uint64_t stack[STACKS];
} counts;

static counts *shared;
static bool begun; /* main was entered: the loader and what libraries do at their start are not the subject */
static uintptr_t own_from, own_to, libc_from, libc_to, this_from, this_to;
static struct {
  int caller;
  uint64_t at;
  bool on, record;
  int depth; /* frames of the command that make a stack */
} plan = {.caller = CALLERS};
static __thread bool inside __attribute__((tls_model("initial-exec")));

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int find(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size;
  bool *first = user;
  uintptr_t from = UINTPTR_MAX, to = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = begin + info->dlpi_phdr[i].p_memsz;
    if (begin < from) from = begin;
    if (end > to) to = end;
  }
  if (*first) own_from = from, own_to = to;
  if (strstr(info->dlpi_name, "/libc.so.6")) libc_from = from, libc_to = to;
  if ((uintptr_t)&find >= from && (uintptr_t)&find < to) this_from = from, this_to = to;
  *first = false;
  return 0;
}

/* ---- The end by a signal ---- */

/* Tells the innermost library on the stack besides the C library, and lets the signal end the process. */
static void end(int number) {
  void *frames[24];
  Dl_info about;
  (void)number;
  inside = true;
  int depth = backtrace(frames, 24);
  for (int i = 0; shared && i < depth; i++) {
    uintptr_t at = (uintptr_t)frames[i];
    if ((at >= libc_from && at < libc_to) || (at >= this_from && at < this_to)) continue;
    if (!dladdr(frames[i], &about) || !about.dli_fname) continue;
    const char *slash = strrchr(about.dli_fname, '/');
    if (strstr(about.dli_fname, "/libgcc_s.so")) continue; /* backtrace calls it */
    strncpy(shared->where, slash ? slash + 1 : about.dli_fname, sizeof shared->where - 1);
    return;
  }
}

/* On a stack of its own, as that of the process may be full: libhdf5 reports the failure of its reports for
 * ever. */
static void await_end(void) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
  static char room[1 << 16];
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  struct sigaction action = {.sa_handler = end, .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK)};
  sigaltstack(&stack, NULL);
  for (int i = 0; i < 5; i++) sigaction(signals[i], &action, NULL);
}

/* ---- The beginning ---- */

__attribute__((constructor)) static void begin(void) {
  static const char *const names[] = {"own", "libc", "foreign"};
  const char *file = getenv("FAULT_COUNTS"), *what = getenv("FAULT_MEMORY");
  char caller[16] = "", on[8] = "";
  unsigned long long at = 0;
  bool first = true;
  void *frame[1];
  inside = true;
  backtrace(frame, 1); /* loads what it needs */
  dl_iterate_phdr(find, &first);
  await_end();
  if (what) sscanf(what, "%15s %llu %7s", caller, &at, on);
  for (int i = 0; i < CALLERS; i++)
    if (!strcmp(caller, names[i])) plan.caller = i;
  plan.at = at;
  plan.on = !strcmp(on, "on");
  plan.record = !what;
  const char *frames = getenv("FAULT_DEPTH");
  plan.depth = frames ? (int)strtol(frames, NULL, 10) : INT_MAX;
  int descriptor = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
  if (descriptor >= 0 && !ftruncate(descriptor, sizeof(counts))) {
    void *map = mmap(NULL, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (map != MAP_FAILED) shared = map;
  }
  inside = false;
}

static void record(uint64_t number) {
  void *frames[24];
  uint64_t hash = 0;
  if (number > STACKS) return;
  inside = true;
  int depth = backtrace(frames, 24);
  inside = false;
  for (int i = 0, own = 0; i < depth && own < plan.depth; i++)
    if ((uintptr_t)frames[i] >= own_from && (uintptr_t)frames[i] < own_to && own++ < plan.depth)
      hash = (hash ^ ((uintptr_t)frames[i] - own_from)) * 0x9e3779b97f4a7c15u;
  shared->stack[number - 1] = hash;
}

static int caller_at(uintptr_t at) {
  return at >= own_from && at < own_to ? OWN : at >= libc_from && at < libc_to ? LIBC : FOREIGN;
}

/* The C library allocates for others: LIBC is what it does for the command. */
static int caller_of(uintptr_t at) {
  void *frames[24];
  if (caller_at(at) != LIBC) return caller_at(at);
  inside = true;
  int depth = backtrace(frames, 24), found = FOREIGN;
  inside = false;
  for (int i = 0; i < depth; i++) {
    uintptr_t frame = (uintptr_t)frames[i];
    if (caller_at(frame) == LIBC || (frame >= this_from && frame < this_to)) continue;
    found = caller_at(frame);
    break;
  }
  return found == OWN ? LIBC : FOREIGN;
}

static bool fails(const void *from) {
  if (!shared || !begun || inside) return false;
  int caller = caller_of((uintptr_t)from);
  uint64_t number = __atomic_add_fetch(&shared->count[caller], 1, __ATOMIC_RELAXED);
  if (plan.record && caller == OWN) record(number);
  if (caller != plan.caller || (number != plan.at && !(plan.on && number > plan.at))) return false;
  __atomic_add_fetch(&shared->struck, 1, __ATOMIC_RELAXED);
  errno = ENOMEM;
  return true;
}

void *malloc(size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  if (fails(__builtin_return_address(0))) return ENOMEM;
  void *memory = __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}

/* ---- The beginning of main ---- */

typedef int main_function(int count, char **arguments, char **environment);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
                           void *);
int __libc_start_main(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
static main_function *their_main;

static int begin_main(int count, char **arguments, char **environment) {
  begun = true;
  return their_main(count, arguments, environment);
}

int __libc_start_main(main_function *function, int count, char **arguments, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void *end) {
  start_function *real;
  void *found = dlsym(RTLD_NEXT, "__libc_start_main");
  memcpy(&real, &found, sizeof real);
  their_main = function;
  return real(begin_main, count, arguments, init, fini, loader_fini, end);
}
