/* The process that parses files of strangers: what it reads is what is read without it, nothing can be done
 * inside but that, a crash is a sentence, and its lies are not believed. This program is that process too:
 * the library copies it or starts it once more, and dv_reader_probe below then acts as what a hostile file
 * has made of the parser. */
#include "arrays.h"
#include "files.h"

#include "given.h"
#include "hdf5_files.h"
#include "io/sandbox.h"
#include "malformed.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- Inside ---- */

/* What was denied goes on; what was not ends the process, so that nothing is read. */
static void assert_denied(long result) {
  if (result >= 0 || errno != EPERM) __builtin_trap();
}

static void try_everything(void) {
  char *const words[] = {(char *)(uintptr_t) "/bin/true", NULL};
  assert_denied(open("/etc/passwd", O_RDONLY));
  assert_denied(open("/tmp/dvbf-escaped", O_WRONLY | O_CREAT, 0600));
  assert_denied(socket(AF_INET, SOCK_STREAM, 0));
  assert_denied(socket(AF_UNIX, SOCK_STREAM, 0));
  assert_denied(execve(words[0], words, NULL));
  assert_denied(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  assert_denied(kill(getppid(), 0));
  assert_denied(unlinkat(AT_FDCWD, "/tmp/dvbf-escaped", 0));
  assert_denied(ftruncate(DV_READER_WINDOW, 0));
  assert_denied(write(DV_READER_WINDOW, "x", 1));
  assert_denied(access("/etc/passwd", R_OK));
  void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_denied(code == MAP_FAILED ? -1 : 0);
}

/* Address space without end is not to be had. */
static void take_memory(void) {
  for (int i = 0; i < 64; i++)
    if (mmap(NULL, (size_t)1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return;
  __builtin_trap();
}

static void lie(const char *how) {
  dv_reader_greeting greeting = {.locked = 1, .count = 1};
  dv_reader_array array = {.rank = 3, .dims = {2, 3, 4}, .real = 7, .seekable = 1};
  memset(greeting.message, 'm', sizeof greeting.message);
  memset(array.name, 'n', sizeof array.name);
  memset(array.trouble, 't', sizeof array.trouble);
  if (!strcmp(how, "lie-count")) greeting.count = (size_t)1 << 60;
  if (!strcmp(how, "lie-rank")) array.rank = 1000;
  if (!strcmp(how, "lie-dims")) array.dims[0] = array.dims[1] = (size_t)1 << 40;
  if (!strcmp(how, "lie-status")) greeting.status = 4711;
  if (!strncmp(how, "lie-place", 9)) {
    snprintf(array.name, sizeof array.name, "x");
    *array.trouble = 0;
    array.plain = !strcmp(how, "lie-place-far") ? UINT64_MAX - 4 : 1 << 20;
  }
  dv_send(DV_READER_SOCKET, &greeting, sizeof greeting);
  dv_send(DV_READER_SOCKET, &array, sizeof array);
  dv_reader_request request;
  dv_reader_answer no = {0};
  while (!strncmp(how, "lie-place", 9) && dv_receive(DV_READER_SOCKET, &request, sizeof request, 0))
    dv_send(DV_READER_SOCKET, &no, sizeof no);
  _exit(0);
}

static int *volatile nowhere;

void dv_reader_probe(void) {
  const char *what = getenv("DVBF_PROBE");
  if (!what) return;
  if (!strcmp(what, "escape")) try_everything();
  if (!strcmp(what, "memory")) take_memory();
  if (!strcmp(what, "crash")) *nowhere = 1;
  if (!strcmp(what, "end")) _exit(3);
  if (!strncmp(what, "lie", 3)) lie(what);
}

/* ---- Outside ---- */

static dvbf_status read_as(dvbf_data **out, const char *name, const char *sandbox, dvbf_error *error) {
  char text[64];
  snprintf(text, sizeof text, "split-by=none sandbox=%s", sandbox);
  dvbf_settings *settings = settings_of("data", text);
  dvbf_status status = dvbf_data_read(out, in_folder(name), settings, error);
  dvbf_settings_free(settings);
  return status;
}

static int descriptors(void) {
  int count = 0;
  DIR *all = opendir("/proc/self/fd");
  while (all && readdir(all)) count++;
  if (all) closedir(all);
  return count;
}

static void write_files(void) {
  static double values[60];
  unsigned char mat[512];
  for (int i = 0; i < 60; i++) values[i] = i * i % 7;
  hid_t file = hdf5_named("a.h5");
  put(file, "x", H5T_IEEE_F32LE, SHAPE(5, 3, 2), values);
  put(file, "u", H5T_STD_I16BE, SHAPE(5, 3, 1), values);
  H5Fclose(file);
  file = hdf5_named("b.h5"); /* not as in memory */
  put(file, "x", H5T_IEEE_F32BE, SHAPE(5, 3, 2), values);
  H5Fclose(file);
  file = hdf5_named("c.h5");
  put(file, "x", H5T_STD_U8LE, SHAPE(5, 3, 2), values);
  H5Fclose(file);
  float x[30];
  for (int i = 0; i < 30; i++) x[i] = (float)(i * i % 11);
  write_zip("a.npz", false, 1, (member[]){{"x.npy", npy("<f4", false, "(5, 3, 2)", x, sizeof x)}});
  write_zip("b.npz", true, 1, (member[]){{"x.npy", npy("<f4", true, "(5, 3, 2)", x, sizeof x)}});
  size_t size = make_mat(mat);
  write_bytes(in_folder("a.mat"), mat, size);
}

static const char *const names[] = {"a.h5", "a.npz", "b.npz", "a.mat", "b.h5", "c.h5"};
enum { FILES = sizeof names / sizeof *names };

static void the_same_is_read(void **unused) {
  (void)unused;
  int before = descriptors();
  for (int i = 0; i < FILES; i++) {
    dvbf_data *inside = NULL, *outside = NULL;
    dvbf_error error = {.message = ""};
    if (read_as(&inside, names[i], "on", &error)) fail_msg("%s", error.message);
    assert_int_equal(read_as(&outside, names[i], "off", &error), DVBF_OK);
    size_t count = outside->train.count * outside->train.steps * outside->train.n_x;
    assert_int_equal(inside->train.count * inside->train.steps * inside->train.n_x, count);
    assert_memory_equal(inside->train.x, outside->train.x, count * sizeof(float));
    dvbf_data_free(inside);
    dvbf_data_free(outside);
  }
  assert_int_equal(descriptors(), before);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
  assert_int_equal(errno, ECHILD);
}

static void nothing_else_can_be_done(void **unused) {
  (void)unused;
  const char *const tries[] = {"escape", "memory"};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < FILES; i++) {
      dvbf_data *data = NULL;
      dvbf_error error = {.message = ""};
      setenv("DVBF_PROBE", tries[k], 1);
      dvbf_status status = read_as(&data, names[i], "on", &error);
      unsetenv("DVBF_PROBE");
      if (status) fail_msg("%s: %s", tries[k], error.message);
      dvbf_data_free(data);
    }
  assert_int_not_equal(access("/tmp/dvbf-escaped", F_OK), 0);
}

static void crashes_and_lies_are_sentences(void **unused) {
  (void)unused;
  static const struct {
    const char *probe, *part;
  } cases[] = {{"crash", "crashed on it (Segmentation fault)"},
               {"end", "ended or did not answer"},
               {"lie-count", "holds more than 1048576 arrays"},
               {"lie-rank", "has an array of 1000 dimensions"},
               {"lie-dims", "x is missing"},
               {"lie", "x is missing"},
               {"lie-place", "cannot be read; the file was truncated"},
               {"lie-place-far", "cannot be read; the file was truncated"},
               {"lie-status", "mmmmmm"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    dvbf_data *data = NULL;
    dvbf_error error = {.message = ""};
    setenv("DVBF_PROBE", cases[i].probe, 1);
    dvbf_status status = read_as(&data, "a.h5", "auto", &error);
    unsetenv("DVBF_PROBE");
    assert_int_equal(status, DVBF_FORMAT);
    if (!strstr(error.message, cases[i].part)) fail_msg("%s: %s", cases[i].probe, error.message);
    assert_null(strchr(error.message, '\n'));
  }
}

/* The size of a string in the heap of HDF5 becomes so large that libhdf5 1.10 reads beyond its memory. */
static void write_crashing(const char *name, const char *attribute) {
  static const char *const texts[] = {"position", "velocity"};
  unsigned char content[1 << 14];
  const double values[12] = {0};
  hid_t file = hdf5_named(name);
  put(file, "x", H5T_IEEE_F32LE, SHAPE(6, 2), values);
  hid_t x = H5Dopen2(file, "x", H5P_DEFAULT), type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  hid_t space = H5Screate_simple(SHAPE(2), NULL);
  hid_t id = H5Acreate2(x, attribute, type, space, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(id, type, texts) >= 0);
  H5Aclose(id);
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(x);
  H5Fclose(file);
  FILE *again = fopen(in_folder(name), "rb");
  size_t size = fread(content, 1, sizeof content, again);
  fclose(again);
  unsigned char *heap = memmem(content, size, "GCOL", 4);
  assert_non_null(heap);
  heap[16 + 15] = 0xff; /* the first string's size, its highest byte */
  write_bytes(in_folder(name), content, size);
}

/* The signal that ends a process which reads the file itself, 0: none. */
static int signal_without_sandbox(const char *name) {
  int status = 0;
  pid_t child = fork();
  if (!child) {
    dvbf_data *data = NULL;
    (void)!freopen("/dev/null", "w", stderr);
    signal(SIGSEGV, SIG_DFL);
    read_as(&data, name, "off", NULL);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void what_crashes_libhdf5_is_a_sentence(void **unused) {
  (void)unused;
  static const char *const attributes[] = {"names", "units"};
  for (int i = 0; i < 2; i++) {
    dvbf_data *data = NULL;
    dvbf_error error = {.message = ""};
    write_crashing("crash.h5", attributes[i]);
    int signal = signal_without_sandbox("crash.h5");
    dvbf_status status = read_as(&data, "crash.h5", "on", &error);
    if (H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 10) assert_int_equal(signal, SIGSEGV);
    if (!signal) { /* a libhdf5 that is mended */
      if (!status) dvbf_data_free(data);
      continue;
    }
    assert_int_equal(status, DVBF_FORMAT);
    if (!strstr(error.message, "crashed on it (")) fail_msg("%s", error.message);
    assert_null(strchr(error.message, '\n'));
  }
}

static void *read_often(void *user) {
  for (int i = 0; i < 6; i++) {
    dvbf_data *data = NULL;
    if (read_as(&data, names[i % 3], "on", NULL)) return user;
    dvbf_data_free(data);
  }
  return NULL;
}

/* Threads that allocate and read all the time, while others start processes. */
static void threads_do_not_matter(void **unused) {
  (void)unused;
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  int marks[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, read_often, &marks[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
}

/* With another thread the process is a new one, and not a copy of this one. */
static pthread_t other;
static pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_end(void *unused) {
  pthread_mutex_lock(&until);
  pthread_mutex_unlock(&until);
  return unused;
}

static int begin_thread(void **unused) {
  (void)unused;
  pthread_mutex_lock(&until);
  return pthread_create(&other, NULL, wait_for_end, NULL);
}

static int end_thread(void **unused) {
  (void)unused;
  pthread_mutex_unlock(&until);
  return pthread_join(other, NULL);
}

#define BOTH(test) cmocka_unit_test(test), cmocka_unit_test_setup_teardown(test, begin_thread, end_thread)

/* Where there is no sandbox, a file that must have one is refused. */
static void what_cannot_be_guarded_is_refused(void **unused) {
  (void)unused;
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  assert_int_equal(read_as(&data, "a.h5", "on", &error), DVBF_IO);
  assert_non_null(strstr(error.message, "there is no sandbox"));
  assert_int_equal(read_as(&data, "a.h5", "auto", &error), DVBF_OK);
  dvbf_data_free(data);
}

static int set_up(void **unused) {
  if (make_folder(unused)) return -1;
  write_files();
  return 0;
}

/* A process that has no room to begin has seen nothing of the file: that is read without it, where this is
 * allowed. */
static void what_does_not_begin_is_no_fault_of_the_file(void **state) {
  (void)state;
  struct rlimit before, now;
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  char text[64] = "";
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  now = before;
  now.rlim_cur = strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + DV_WINDOW + DV_HALF;
  assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
  dvbf_status refused = read_as(&data, "a.npz", "on", &error), status = DVBF_OK;
  if (refused) status = read_as(&data, "a.npz", "auto", NULL);
  assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
  assert_int_equal(refused, DVBF_IO);
  if (!strstr(error.message, "exits immediately")) fail_msg("%s", error.message);
  assert_int_equal(status, DVBF_OK);
  dvbf_data_free(data);
}

int main(void) {
  const struct CMUnitTest possible[] = {
      BOTH(the_same_is_read),
      BOTH(nothing_else_can_be_done),
      BOTH(crashes_and_lies_are_sentences),
      BOTH(what_crashes_libhdf5_is_a_sentence),
      cmocka_unit_test(what_does_not_begin_is_no_fault_of_the_file),
      cmocka_unit_test(threads_do_not_matter),
  };
  const struct CMUnitTest impossible[] = {cmocka_unit_test(what_cannot_be_guarded_is_refused)};
  return dv_sandbox_possible() ? cmocka_run_group_tests(possible, set_up, remove_folder)
                               : cmocka_run_group_tests(impossible, set_up, remove_folder);
}
