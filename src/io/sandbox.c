/* The program's side of the sandbox (dv_sandbox_open; sandbox.h): starts a process that parses a file of
 * unknown origin and offers its arrays as an archive. Nothing the process says is trusted: sizes are checked,
 * texts end, and it is not waited for longer than five minutes. While it reads the next piece into one half
 * of the window, this side copies the other. */
#include "io/sandbox.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/csv.h"
#include "io/npy.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_SECONDS = 300 }; /* for an answer */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

bool dv_sandbox_possible(void) {
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(SANITIZED)
  return true;
#else
  return false;
#endif
}

/* ---- Starting the process ---- */

extern char **environ;

typedef struct proxy {
  dv_archive base;
  pid_t child;
  int socket;
  int file;                    /* for values that need no parser */
  const unsigned char *window; /* [DV_WINDOW] */
  pthread_mutex_t lock;        /* of a request and its answer */
  char remedy[512];            /* of the last failure; base.lost: the process is gone */
} proxy;

/* The environment of the process: ours, the request to read, and the library to preload if the program does
 * not contain it. A list in one piece of memory; NULL if that is short. */
static char **make_environment(void) {
  char self[PATH_MAX] = "", library[PATH_MAX] = "";
  Dl_info about;
  size_t count = 0, room = sizeof "LD_PRELOAD=" + PATH_MAX;
  bool found = dladdr((void *)(uintptr_t)&dv_sandbox_possible, &about) && realpath(about.dli_fname, library);
  bool inside = !found || (realpath("/proc/self/exe", self) && !strcmp(self, library));
  while (environ && environ[count]) count++;
  char **list = dv_calloc(1, (count + 3) * sizeof *list + room),
       *text = list ? (char *)(list + count + 3) : NULL;
  size_t n = 0;
  for (size_t i = 0; list && i < count; i++)
    if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) list[n++] = environ[i];
  if (!list) return NULL;
  list[n++] = DV_READER "=1";
  if (!inside) snprintf(text, room, "LD_PRELOAD=%s", library);
  if (!inside) list[n++] = text;
  return list;
}

/* A descriptor out of the way of those that the process gets. */
static int above(int descriptor) {
  int high = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 16);
  if (descriptor >= 0) close(descriptor);
  return high;
}

static bool spawn(pid_t *child, int their_end, int window, int file) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  char name[] = "dvbf-reader", *words[] = {name, NULL}, **environment = make_environment();
  if (!environment || posix_spawn_file_actions_init(&actions)) return false;
  posix_spawnattr_init(&attributes);
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  /* Ctrl-C is for the program, which then ends the process. */
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  for (int i = 0; i < 3; i++) posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, their_end, DV_READER_SOCKET);
  posix_spawn_file_actions_adddup2(&actions, window, DV_READER_WINDOW);
  posix_spawn_file_actions_adddup2(&actions, file, DV_READER_FILE);
  bool started = !posix_spawn(child, "/proc/self/exe", &actions, &attributes, words, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  dv_free((void *)environment);
  return started;
}

/* A copy of the process is whole if this thread is the only one. It has all open files of this program and
 * must be able to close them. */
static bool copy_self(pid_t *child, int their_end, int window, int file) {
  struct stat tasks; /* a folder for each thread */
  if (stat("/proc/self/task", &tasks) || tasks.st_nlink != 3 || dv_close_from(INT_MAX)) return false;
  *child = fork();
  if (!*child) dv_reader_become(their_end, window, file);
  return *child > 0;
}

/* Memory that both see, and that the process cannot take away. */
static int make_window(const unsigned char **out) {
  int window = above(memfd_create("dvbf-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (window < 0) return -1;
  void *memory = MAP_FAILED;
  if (!ftruncate(window, DV_WINDOW) && !fcntl(window, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    memory = mmap(NULL, DV_WINDOW, PROT_READ, MAP_SHARED, window, 0);
  if (memory != MAP_FAILED) {
    *out = memory;
    return window;
  }
  close(window);
  return -1;
}

static bool start(proxy *p, int descriptor) {
  int ends[2] = {-1, -1}, window = make_window(&p->window);
  bool started = false;
  p->file = above(dup(descriptor));
  if (window >= 0 && p->file >= 0 && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
    ends[1] = above(ends[1]);
    started = ends[1] >= 0 &&
              (copy_self(&p->child, ends[1], window, p->file) || spawn(&p->child, ends[1], window, p->file));
    p->socket = ends[0];
  }
  if (!started) p->child = 0;
  if (ends[1] >= 0) close(ends[1]);
  if (window >= 0) close(window);
  return started;
}

/* ---- Ending the process ---- */

/* Ends the process, after a moment in which the system may come to know of its end; returns the signal that
 * had ended it before, 0: none. */
static int end_process(proxy *p, int moments) {
  const struct timespec moment = {.tv_nsec = 10000000};
  int status = 0;
  if (p->socket >= 0) close(p->socket);
  p->socket = -1;
  if (!p->child) return 0;
  pid_t over = waitpid(p->child, &status, WNOHANG);
  for (; !over && moments > 0; moments--) {
    nanosleep(&moment, NULL);
    over = waitpid(p->child, &status, WNOHANG);
  }
  if (!over) {
    kill(p->child, SIGKILL);
    while (waitpid(p->child, NULL, 0) < 0 && errno == EINTR) {}
  }
  p->child = 0;
  return over > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The process is gone or does not answer: the reason, as the end of a sentence. */
static const char *lost(proxy *p) {
  int signal = end_process(p, 200);
  p->base.lost = p->remedy;
  if (signal == SIGKILL)
    snprintf(p->remedy, sizeof p->remedy, "the process that read it was killed, perhaps for lack of memory");
  else if (signal)
    snprintf(p->remedy, sizeof p->remedy,
             "the library that reads this format crashed on it (%s) in a separate process; the file is "
             "damaged or malicious: make or copy it again",
             strsignal(signal));
  else
    snprintf(p->remedy, sizeof p->remedy,
             "the process that reads it ended or did not answer for %d seconds; the file is damaged, so make "
             "or copy it again",
             ANSWER_SECONDS);
  return p->remedy;
}

static void proxy_close(dv_archive *a) {
  proxy *p = (proxy *)a;
  end_process(p, 0);
  if (p->file >= 0) close(p->file);
  if (p->window) munmap((void *)(uintptr_t)p->window, DV_WINDOW);
  pthread_mutex_destroy(&p->lock);
}

/* ---- Requests ---- */

/* Requests and answers, under the lock. */
static bool ask(proxy *p, const dv_reader_request *r) {
  return !p->base.lost && dv_send(p->socket, r, sizeof *r);
}

static const char *hear(proxy *p, bool asked, dv_found *found) {
  dv_reader_answer to;
  if (p->base.lost) return p->base.lost;
  if (!asked || !dv_receive(p->socket, &to, sizeof to, ANSWER_SECONDS)) return lost(p);
  *found = to.found == DV_FOUND || to.found == DV_FOUND_NONE ? (dv_found)to.found : DV_FOUND_UNREADABLE;
  if (to.done) return NULL;
  to.remedy[sizeof to.remedy - 1] = 0;
  dv_text_plain(to.remedy);
  memcpy(p->remedy, to.remedy, sizeof p->remedy);
  if (to.lost) p->base.lost = p->remedy;
  return p->remedy;
}

/* Plain values are read from the file itself: wherever the process says they are, no more than bytes of the
 * file are read. The process reads the next piece of others into one half of the window while this one copies
 * the other. */
static const char *proxy_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n,
                              dv_out out) {
  proxy *p = (proxy *)a;
  const dv_npy values = {.type = array->bytes ? DV_UINT8 : DV_FLOAT32, .header = array->plain};
  if (array->plain) return dv_npy_read(&values, dv_npy_file_bytes, &p->file, first, n, out);
  size_t size = out.width, piece = DV_HALF / size;
  dv_reader_request r = {.array = array->place, .first = first, .count = n < piece ? n : piece, .size = size};
  dv_found found;
  pthread_mutex_lock(&p->lock);
  bool asked = n && ask(p, &r);
  const char *remedy = NULL;
  for (size_t k = 0; k < n && !remedy;) {
    size_t count = r.count;
    const unsigned char *from = p->window + (r.second ? DV_HALF : 0);
    remedy = hear(p, asked, &found);
    if (remedy) break;
    r.first += count;
    r.count = n - k - count < piece ? n - k - count : piece;
    r.second = !r.second;
    if (r.count) asked = ask(p, &r);
    memcpy((char *)out.at + k * size, from, count * size);
    k += count;
  }
  pthread_mutex_unlock(&p->lock);
  return remedy;
}

static dv_found proxy_strings(dv_archive *a, const dv_named_array *array, dv_strings which, size_t count,
                              size_t size, char *out) {
  proxy *p = (proxy *)a;
  dv_reader_request r = {
      .strings = true, .which = which, .array = array->place, .count = count, .size = size};
  dv_found found = DV_FOUND_UNREADABLE;
  char text[64];
  if (size > sizeof text || count > DV_HALF / size) return found;
  pthread_mutex_lock(&p->lock);
  const char *remedy = hear(p, ask(p, &r), &found);
  for (size_t i = 0; i < count && !remedy && found == DV_FOUND; i++) {
    memcpy(text, p->window + i * size, size);
    dv_name_copy((dv_cursor){text, text + strnlen(text, size)}, out + i * size, size);
  }
  pthread_mutex_unlock(&p->lock);
  return p->base.lost ? DV_FOUND_UNREADABLE : found;
}

/* ---- Opening ---- */

static dvbf_status add_array(proxy *p, dv_reader_array *from, dvbf_error *error) {
  from->name[sizeof from->name - 1] = from->trouble[sizeof from->trouble - 1] = 0;
  if (from->rank < 0 || from->rank > DV_RANK)
    return dv_fail_file(error, p->base.path, "has an array of %d dimensions; make or copy the file again",
                        from->rank);
  dv_text_plain(from->trouble);
  dv_named_array to = {.name = from->name,
                       .rank = from->rank,
                       .real = from->real != 0,
                       .bytes = from->bytes != 0,
                       .text = from->text != 0,
                       .seekable = from->seekable != 0,
                       .unpacked = from->unpacked,
                       .plain = from->plain,
                       .trouble = *from->trouble ? from->trouble : NULL,
                       .place = p->base.count};
  memcpy(to.dims, from->dims, sizeof to.dims);
  return dv_archive_add(&p->base, &to, error);
}

static dvbf_status add_arrays(proxy *p, size_t count, dvbf_error *error) {
  enum { MOST_SENT = 1 << 20 };
  dv_reader_array from;
  if (count > MOST_SENT)
    return dv_fail_file(error, p->base.path, "holds more than %d arrays; split it over several files",
                        MOST_SENT);
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < count && !status; i++)
    status = dv_receive(p->socket, &from, sizeof from, ANSWER_SECONDS)
                 ? add_array(p, &from, error)
                 : dv_fail_file(error, p->base.path, "cannot be read; %s", lost(p));
  return status;
}

/* Address space for libraries, for arrays that are unpacked or reordered, and for a file that is read
 * whole. */
static size_t space_for(int descriptor, const dv_data_settings *how) {
  struct stat about;
  const size_t base = (size_t)2 << 30, most = (size_t)1 << 46;
  size_t bytes = fstat(descriptor, &about) ? 0 : (size_t)about.st_size;
  return base + 8 * ((size_t)how->memory << 20) + 4 * (bytes < most ? bytes : most);
}

static dvbf_status greet(proxy *p, size_t format, int descriptor, const dv_data_settings *how, bool *started,
                         dvbf_error *error) {
  dv_reader_order order = {.format = format, .bytes = space_for(descriptor, how)};
  dv_reader_greeting back;
  char up;
  memcpy(order.path, p->base.path, sizeof order.path);
  /* Until it answers it has seen nothing of the file, so that its end is not the file's doing. */
  if (!dv_send(p->socket, &order, sizeof order) || !dv_receive(p->socket, &up, 1, ANSWER_SECONDS)) {
    end_process(p, 0);
    return dv_fail(error, DVBF_IO, "the sandbox process exits immediately");
  }
  *started = true;
  if (!dv_receive(p->socket, &back, sizeof back, ANSWER_SECONDS))
    return dv_fail_file(error, p->base.path, "cannot be read; %s", lost(p));
  back.message[sizeof back.message - 1] = 0;
  *started = back.locked;
  if (!back.locked) return dv_fail(error, DVBF_IO, "the system does not allow what a sandbox needs");
  if (back.status)
    return dv_fail(
        error, back.status == DVBF_MEMORY || back.status == DVBF_IO ? (dvbf_status)back.status : DVBF_FORMAT,
        "%s", back.message);
  return add_arrays(p, back.count, error);
}

static const dv_format proxy_format = {
    .archive = sizeof(proxy), .read = proxy_read, .strings = proxy_strings, .close = proxy_close};

dvbf_status dv_sandbox_open(dv_archive **out, size_t format, const char *path, int descriptor,
                            const dv_data_settings *how, bool *started, dvbf_error *error) {
  proxy *p = (proxy *)dv_archive_new(&proxy_format, path);
  *started = false;
  if (!p) return dv_fail_memory(error, "reading data");
  pthread_mutex_init(&p->lock, NULL);
  p->socket = p->file = -1;
  *out = &p->base;
  if (!start(p, descriptor)) return dv_fail(error, DVBF_IO, "the sandbox process cannot be started");
  return greet(p, format, descriptor, how, started, error);
}
