/* Where files are made and read: links that somebody has prepared are not followed, folders that were
 * replaced are left alone, pipes are not waited for. */
#include "files.h"

#include "base/file.h"
#include "runs.h"

#include <dvbf/report.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* ---- Syncs, which the linker sends here ---- */

static struct stat synced[64];
static int syncs;

int __wrap_fsync(int descriptor);

int __wrap_fsync(int descriptor) {
  if (syncs < 64 && !fstat(descriptor, &synced[syncs])) syncs++;
  return 0;
}

static bool was_synced(const char *path) {
  struct stat about;
  if (stat(path, &about)) return false;
  for (int i = 0; i < syncs; i++)
    if (synced[i].st_ino == about.st_ino && synced[i].st_dev == about.st_dev) return true;
  return false;
}

/* ---- Links ---- */

static const char treasure[] = "nobody may write here";

static void write_treasure(void) {
  write_bytes(in_folder("treasure"), treasure, sizeof treasure);
}

static void assert_treasure(void) {
  size_t size;
  unsigned char *bytes = read_bytes(in_folder("treasure"), &size);
  assert_int_equal(size, sizeof treasure);
  assert_memory_equal(bytes, treasure, sizeof treasure);
  free(bytes);
}

/* Somebody who can write in the folder has guessed the name, and made it a link to a file of ours. */
static void guessed_names_are_not_followed(void **unused) {
  (void)unused;
  dvbf_settings *settings = settings_of("train", BRIEF);
  char name[64];
  write_treasure();
  snprintf(name, sizeof name, "settings.txt.tmp-%ld", (long)getpid());
  assert_int_equal(symlink(in_folder("treasure"), in_folder(name)), 0);
  assert_int_equal(dvbf_settings_write(settings, in_folder("settings.txt"), NULL), DVBF_OK);
  assert_treasure();
  snprintf(name, sizeof name, ".dvbf-probe-%ld", (long)getpid());
  assert_int_equal(symlink(in_folder("new"), in_folder(name)), 0);
  assert_int_equal(dvbf_folder_make(folder, NULL), DVBF_OK);
  assert_int_not_equal(access(in_folder("new"), F_OK), 0);
  unlink(in_folder(name));
  dvbf_settings_free(settings);
  clear_folder();
}

static void temporary_names_differ(void **unused) {
  (void)unused;
  char one[4200], two[4200];
  assert_int_equal(dv_temporary_name(one, sizeof one, in_folder("a.npz"), NULL), DVBF_OK);
  assert_int_equal(dv_temporary_name(two, sizeof two, in_folder("a.npz"), NULL), DVBF_OK);
  assert_string_not_equal(one, two);
  assert_int_equal(strncmp(one, in_folder("a.npz.tmp-"), strlen(in_folder("a.npz.tmp-"))), 0);
}

static void new_files_are_new(void **unused) {
  (void)unused;
  int here = open(folder, O_RDONLY | O_DIRECTORY);
  write_treasure();
  assert_int_equal(symlink(in_folder("treasure"), in_folder("link")), 0);
  assert_int_equal(symlink(in_folder("nowhere"), in_folder("dangling")), 0);
  const char *const names[] = {"treasure", "link", "dangling"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(dv_create_at(here, names[i]), -1);
    assert_int_equal(errno, EEXIST);
  }
  assert_treasure();
  close(here);
  clear_folder();
}

/* A result whose name is a link replaces the link, not what it points to. */
static void results_replace_links(void **unused) {
  (void)unused;
  struct stat about;
  dvbf_settings *settings = settings_of("train", BRIEF);
  write_treasure();
  assert_int_equal(symlink(in_folder("treasure"), in_folder("settings.txt")), 0);
  assert_int_equal(dvbf_settings_write(settings, in_folder("settings.txt"), NULL), DVBF_OK);
  assert_int_equal(lstat(in_folder("settings.txt"), &about), 0);
  assert_true(S_ISREG(about.st_mode));
  assert_treasure();
  dvbf_settings_free(settings);
  clear_folder();
}

/* ---- New folders ---- */

static void new_folders_are_on_the_disk(void **unused) {
  (void)unused;
  char a[64], b[64], c[64];
  snprintf(a, sizeof a, "%s/a", folder);
  snprintf(b, sizeof b, "%s/a/b", folder);
  snprintf(c, sizeof c, "%s/a/b/c/", folder);
  syncs = 0;
  assert_int_equal(dv_make_folder(c, NULL), DVBF_OK);
  assert_true(was_synced(folder));
  assert_true(was_synced(a));
  assert_true(was_synced(b));
  rmdir(c), rmdir(b), rmdir(a);
}

/* ---- A run and its folder ---- */

typedef struct thief {
  char run[128], other[128];
  int calls;
  bool replaces; /* the folder, not only its lock */
} thief;

/* At the third report the folder is moved away, and another run begins at its path. */
static bool steal(const dvbf_progress *p, void *user) {
  thief *t = user;
  char path[256];
  (void)p;
  if (++t->calls != 3) return true;
  snprintf(path, sizeof path, "%s/.lock", t->run);
  if (t->replaces)
    assert_int_equal(rename(t->run, t->other), 0);
  else
    assert_int_equal(unlink(path), 0);
  mkdir(t->run, 0777);
  snprintf(path, sizeof path, "%s/" DVBF_RUN_CHECKPOINT, t->run);
  write_bytes(path, treasure, sizeof treasure);
  return true;
}

static void remove_tree(const char *path) {
  char line[256];
  snprintf(line, sizeof line, "rm -rf '%s'", path);
  assert_int_equal(system(line), 0);
}

static void replaced_folders_are_left_alone(void **unused) {
  (void)unused;
  for (int i = 0; i < 2; i++) {
    dvbf_data data = make_data();
    dvbf_settings *settings = settings_of("train", BRIEF);
    dvbf_model *model = NULL;
    dvbf_error error = {0};
    thief t = {.replaces = i};
    char path[256];
    size_t size;
    snprintf(t.run, sizeof t.run, "%s/run", folder);
    snprintf(t.other, sizeof t.other, "%s/moved", folder);
    dvbf_train_options options = {.folder = t.run, .progress = steal, .user_data = &t};
    assert_int_equal(dvbf_train(&model, settings, &data, &options, &error), DVBF_IO);
    assert_non_null(strstr(error.message, "removed, moved or replaced"));
    snprintf(path, sizeof path, "%s/" DVBF_RUN_CHECKPOINT, t.run);
    unsigned char *bytes = read_bytes(path, &size);
    assert_int_equal(size, sizeof treasure);
    free(bytes);
    snprintf(path, sizeof path, "%s/" DVBF_RUN_MODEL, t.run);
    if (i) assert_int_not_equal(access(path, F_OK), 0);
    remove_tree(t.run);
    remove_tree(t.other);
    dvbf_settings_free(settings);
    free_data(&data);
  }
}

/* The lock and the metrics of a run are files in its folder, not links. */
static void links_in_a_run_are_refused(void **unused) {
  (void)unused;
  dvbf_data data = make_data();
  dvbf_settings *settings = settings_of("train", BRIEF);
  dvbf_model *model = NULL;
  dvbf_error error = {0};
  char run[128], path[256];
  snprintf(run, sizeof run, "%s/run", folder);
  dvbf_train_options options = {.folder = run};
  mkdir(run, 0777);
  snprintf(path, sizeof path, "%s/.lock", run);
  assert_int_equal(symlink(in_folder("new"), path), 0);
  assert_int_equal(dvbf_train(&model, settings, &data, &options, &error), DVBF_IO);
  assert_int_not_equal(access(in_folder("new"), F_OK), 0);
  unlink(path);
  assert_int_equal(dvbf_train(&model, settings, &data, &options, &error), DVBF_OK);
  dvbf_model_free(model);
  write_treasure();
  snprintf(path, sizeof path, "%s/" DVBF_RUN_METRICS, run);
  unlink(path);
  assert_int_equal(symlink(in_folder("treasure"), path), 0);
  options.force = true;
  assert_int_equal(dvbf_train(&model, settings, &data, &options, &error), DVBF_OK);
  dvbf_model_free(model);
  assert_treasure();
  remove_tree(run);
  dvbf_settings_free(settings);
  free_data(&data);
  clear_folder();
}

/* ---- Pipes ---- */

static void pipes_are_refused(void **unused) {
  (void)unused;
  dvbf_settings *settings = settings_of("train", BRIEF);
  dvbf_model *model = NULL;
  dvbf_data *data = NULL;
  dvbf_metrics *metrics = NULL;
  dvbf_error error = {0};
  char pipe_path[128];
  snprintf(pipe_path, sizeof pipe_path, "%s", in_folder("data.json"));
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  alarm(60); /* what waits for a writer ends here */
  assert_int_equal(dvbf_settings_read(settings, pipe_path, &error), DVBF_IO);
  assert_non_null(strstr(error.message, "a pipe"));
  assert_int_equal(dvbf_model_load(&model, pipe_path, &error), DVBF_IO);
  assert_non_null(strstr(error.message, "a pipe"));
  assert_int_equal(dvbf_metrics_read(&metrics, pipe_path, &error), DVBF_IO);
  assert_int_equal(dvbf_run_data(&data, folder, &error), DVBF_IO);
  assert_int_equal(dvbf_data_read(&data, pipe_path, NULL, &error), DVBF_IO);
  assert_non_null(strstr(error.message, "is not a file"));
  alarm(0);
  dvbf_settings_free(settings);
  clear_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(guessed_names_are_not_followed),
      cmocka_unit_test(temporary_names_differ),
      cmocka_unit_test(new_files_are_new),
      cmocka_unit_test(results_replace_links),
      cmocka_unit_test(new_folders_are_on_the_disk),
      cmocka_unit_test(replaced_folders_are_left_alone),
      cmocka_unit_test(links_in_a_run_are_refused),
      cmocka_unit_test(pipes_are_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
