/* The folder of a run: settings.txt, metrics.csv, a lock, and data.json with names, units and image shape
 * (dv_run_folder_*, dvbf_run_data). The folder and its lock stay open, and before each file the path must
 * still name them, so that a removed and re-created folder is not written to. */
#include "train/run_folder.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/dataset.h"
#include "train/trainer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char HEAD[] =
    "update,start,seconds,bound,valid_bound,valid_reconstruction,valid_kl_w,valid_kl_v,"
    "valid_prediction,learning_rate,temperature,sigma_floor,valid_one_step,phase\n";

#define LOCK ".lock"

/* ---- Opening ---- */

static dvbf_status fail_writing(const char *path, dvbf_error *error) {
  return dv_fail(error, DVBF_IO, "%.300s: cannot be written: %s", path, strerror(errno));
}

static dvbf_status set_paths(dv_run_folder *f, const char *path, dvbf_error *error) {
  if (!*path || strlen(path) + 64 > sizeof f->path)
    return dv_fail(error, DVBF_ARGUMENT, "the path \"%.64s\" of the run folder must have 1 to %zu characters",
                   path, sizeof f->path - 64);
  strcpy(f->path, path);
  dv_join(f->settings, path, DVBF_RUN_SETTINGS);
  dv_join(f->metrics, path, DVBF_RUN_METRICS);
  dv_join(f->model, path, DVBF_RUN_MODEL);
  dv_join(f->checkpoint, path, DVBF_RUN_CHECKPOINT);
  return DVBF_OK;
}

/* The kernel releases the lock when the process ends, however that happens. The file stays: if it were
 * removed, a third process could lock a new file of the same name. */
static dvbf_status lock(dv_run_folder *f, dvbf_error *error) {
  dvbf_status status = dv_make_folder(f->path, error);
  if (status) return status;
  f->at = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->at >= 0) f->lock = openat(f->at, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (f->lock < 0) return fail_writing(f->path, error);
  /* On a file system without locks there is no protection. */
  if (flock(f->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
    return dv_fail(error, DVBF_IO, "%.300s: another process is training in this folder; wait until it ends",
                   f->path);
  return dv_run_folder_ours(f, error);
}

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

dvbf_status dv_run_folder_ours(const dv_run_folder *f, dvbf_error *error) {
  struct stat at, path, lock, there;
  if (!fstat(f->at, &at) && !stat(f->path, &path) && same_file(&at, &path) && !fstat(f->lock, &lock) &&
      !fstatat(f->at, LOCK, &there, AT_SYMLINK_NOFOLLOW) && same_file(&lock, &there))
    return DVBF_OK;
  return dv_fail(error, DVBF_IO,
                 "%.300s: the folder was removed, moved or replaced while this run was using it and may now "
                 "belong to another run; nothing more is written, and this run ends",
                 f->path);
}

static dvbf_status refuse_former(const dv_run_folder *f, dvbf_error *error) {
  const char *const paths[] = {f->model, f->checkpoint, f->metrics, f->settings};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    if (dv_exists(paths[i]))
      return dv_fail(error, DVBF_IO,
                     "%.300s: already exists and was not changed; choose another folder, or add --resume to "
                     "continue or --force to start again",
                     paths[i]);
  return DVBF_OK;
}

static dvbf_status refuse_changed_settings(const dv_run_folder *f, const dvbf_settings *given,
                                           dvbf_error *error) {
  dvbf_settings *of_run = NULL;
  if (!dv_exists(f->settings)) return DVBF_OK;
  dvbf_status status = dvbf_settings_new(&of_run, "train", error);
  if (!status) status = dvbf_settings_read(of_run, f->settings, error);
  if (!status && !dv_extends(given, of_run)) status = dv_refuse_change(given, of_run, f->path, error);
  dvbf_settings_free(of_run);
  return status;
}

dvbf_status dv_run_folder_open(dv_run_folder *f, const dvbf_train_options *options,
                               const dvbf_settings *settings, dvbf_error *error) {
  if (options->resume && options->force)
    return dv_fail(error, DVBF_ARGUMENT, "resume continues a run and force replaces it: choose one");
  dvbf_status status = set_paths(f, options->folder, error);
  if (!status) status = lock(f, error);
  if (!status && !options->resume && !options->force) status = refuse_former(f, error);
  if (!status && options->resume) status = refuse_changed_settings(f, settings, error);
  return status;
}

void dv_run_folder_close(dv_run_folder *f) {
  if (f->rows) fclose(f->rows); /* every row was flushed */
  if (f->lock >= 0) close(f->lock);
  if (f->at >= 0) close(f->at);
}

/* ---- Beginning and resuming ---- */

void dv_run_folder_tidy(const dv_run_folder *f) {
  static const char *const names[] = {DVBF_RUN_SETTINGS ".tmp-",
                                      DVBF_RUN_METRICS ".tmp-",
                                      DVBF_RUN_MODEL ".tmp-",
                                      DVBF_RUN_CHECKPOINT ".tmp-",
                                      DV_RUN_DATA ".tmp-",
                                      DVBF_RUN_SEARCH ".tmp-",
                                      ".dvbf-probe"};
  DIR *all = opendir(f->path);
  if (!all) return;
  for (const struct dirent *entry; (entry = readdir(all));)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
      if (!strncmp(entry->d_name, names[i], strlen(names[i]))) unlinkat(dirfd(all), entry->d_name, 0);
  closedir(all);
}

static dvbf_status flush_rows(dv_run_folder *f, dvbf_error *error) {
  return fflush(f->rows) || ferror(f->rows) ? fail_writing(f->metrics, error) : DVBF_OK;
}

dvbf_status dv_run_folder_clear(dv_run_folder *f, dvbf_error *error) {
  dv_path search, about;
  dv_join(search, f->path, DVBF_RUN_SEARCH);
  dv_join(about, f->path, DV_RUN_DATA);
  const char *const paths[] = {f->checkpoint, f->model, f->metrics, search, about, f->settings};
  dv_run_folder_tidy(f);
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    if (!unlink(paths[i])) {
      /* After a power cut the checkpoint must not reappear without the files that belong to it. */
      if (!i) dv_sync(f->path);
    } else if (errno != ENOENT) {
      return dv_fail(error, DVBF_IO, "%.300s: cannot be removed: %s", paths[i], strerror(errno));
    }
  }
  return DVBF_OK;
}

dvbf_status dv_run_folder_begin(dv_run_folder *f, const dvbf_settings *settings, dvbf_error *error) {
  dvbf_status status = dv_run_folder_clear(f, error);
  return status ? status : dv_run_folder_start(f, settings, error);
}

/* The settings come last: their folder is synced then, and a search reads no metrics when it resumes. */
dvbf_status dv_run_folder_start(dv_run_folder *f, const dvbf_settings *settings, dvbf_error *error) {
  int descriptor = dv_create_at(f->at, DVBF_RUN_METRICS);
  f->rows = descriptor < 0 ? NULL : fdopen(descriptor, "w");
  if (!f->rows && descriptor >= 0) close(descriptor);
  if (!f->rows) return fail_writing(f->metrics, error);
  fputs(HEAD, f->rows);
  dvbf_status status = flush_rows(f, error);
  if (!status) status = dv_run_folder_sync(f, error);
  return status ? status : dv_settings_write(settings, f->settings, dv_recovery_names, error);
}

/* Offset of the end of line `lines`; -1 if there are fewer or the first is not the head of the metrics. */
static long end_of_line(FILE *file, uint64_t lines) {
  char head[sizeof HEAD] = "";
  long at = 0;
  if (!fgets(head, sizeof head, file) || strcmp(head, HEAD) != 0) return -1;
  at = (long)strlen(head);
  for (uint64_t line = 1; line < lines; at++) {
    int c = getc(file);
    if (c == EOF) return -1;
    line += c == '\n';
  }
  return at;
}

static dvbf_status open_rows(dv_run_folder *f, long end, dvbf_error *error) {
  struct stat about;
  int descriptor = openat(f->at, DVBF_RUN_METRICS, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  bool good =
      descriptor >= 0 && !fstat(descriptor, &about) && S_ISREG(about.st_mode) && !ftruncate(descriptor, end);
  f->rows = good ? fdopen(descriptor, "a") : NULL;
  if (f->rows) return DVBF_OK;
  dvbf_status status = fail_writing(f->metrics, error);
  if (descriptor >= 0) close(descriptor);
  return status;
}

dvbf_status dv_run_folder_go_on(dv_run_folder *f, uint64_t rows, dvbf_error *error) {
  dv_run_folder_tidy(f);
  FILE *file = dv_open_file(f->metrics, error);
  if (!file) return DVBF_IO;
  long end = end_of_line(file, rows + 1);
  bool failed = ferror(file);
  fclose(file);
  if (failed) return dv_fail(error, DVBF_IO, "%.300s: cannot be read", f->metrics);
  if (end < 0)
    return dv_fail(
        error, DVBF_FORMAT,
        "%.300s: some of the %llu rows of the run are missing; restore the file, or start again with --force",
        f->metrics, (unsigned long long)rows);
  return open_rows(f, end, error);
}

/* ---- Rows ---- */

dvbf_status dv_run_folder_add(dv_run_folder *f, const dvbf_progress *p, dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  fprintf(f->rows, "%llu,%u,%.3f,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%u\n",
          (unsigned long long)p->update, p->start, p->seconds, p->bound, p->valid_bound,
          p->valid_reconstruction, p->valid_kl_w, p->valid_kl_v, p->valid_prediction, p->learning_rate,
          p->temperature, p->sigma_floor, p->valid_one_step, p->phase);
  return flush_rows(f, error);
}

dvbf_status dv_run_folder_sync(dv_run_folder *f, dvbf_error *error) {
  dvbf_status status = dv_run_folder_ours(f, error);
  if (status) return status;
  return dv_sync(f->metrics) ? fail_writing(f->metrics, error) : DVBF_OK;
}

/* ---- Description of the data ---- */

/* Adds a list of texts, `apart` bytes from each other; NULL: there are none. */
static void put_texts(json_t *to, const char *name, const char *texts, size_t count, size_t apart) {
  json_t *list = texts ? json_array() : NULL;
  for (size_t i = 0; list && i < count; i++) {
    json_t *text = json_stringn(texts + i * apart, strnlen(texts + i * apart, apart));
    json_array_append_new(list, text ? text : json_string("")); /* what is no UTF-8 has no name */
  }
  if (list) json_object_set_new(to, name, list);
}

dvbf_status dv_run_description_write(const dvbf_data *d, const char *folder, dvbf_error *error) {
  dv_path path;
  dv_atomic_file file;
  json_t *all = json_pack("{s:I, s:I}", "n_x", (json_int_t)d->train.n_x, "n_u", (json_int_t)d->train.n_u);
  if (!all) return dv_fail_memory(error, "describing the data of a run");
  if (d->image_height)
    json_object_set_new(all, "image",
                        json_pack("[I, I]", (json_int_t)d->image_height, (json_int_t)d->image_width));
  if (d->image_height && dv_image_channels(d) > 1)
    json_object_set_new(all, "channels", json_integer((json_int_t)d->image_channels));
  put_texts(all, "x_names", (const char *)d->x_names, d->train.n_x, sizeof *d->x_names);
  put_texts(all, "x_units", (const char *)d->x_units, d->train.n_x, sizeof *d->x_units);
  put_texts(all, "u_names", (const char *)d->u_names, d->train.n_u, sizeof *d->u_names);
  put_texts(all, "u_units", (const char *)d->u_units, d->train.n_u, sizeof *d->u_units);
  if (d->sample_time > 0) json_object_set_new(all, "sample_time", json_real(d->sample_time));
  if (d->dates) json_object_set_new(all, "dates", json_true());
  char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  json_decref(all);
  if (!text) return dv_fail_memory(error, "describing the data of a run");
  dv_join(path, folder, DV_RUN_DATA);
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (!status) fputs(text, file.stream);
  if (!status) putc('\n', file.stream);
  free(text);
  return status ? status : dv_atomic_commit(&file, error);
}

/* *out = [count] texts of `apart` bytes, NULL if the file has none; false: memory is short. */
static bool take_texts(void **out, const json_t *all, const char *name, size_t count, size_t apart) {
  const json_t *list = json_object_get(all, name);
  if (json_array_size(list) != count || !count) return true;
  char *texts = dv_calloc(count, apart);
  if (!texts) return false;
  for (size_t i = 0; i < count; i++) {
    const char *text = json_string_value(json_array_get(list, i));
    size_t length = text ? strnlen(text, apart - 1) : 0;
    if (length) memcpy(texts + i * apart, text, length);
  }
  *out = texts;
  return true;
}

static size_t described_size(const json_t *number) {
  json_int_t value = json_integer_value(number);
  return value > 0 && value < 1 << 30 ? (size_t)value : 0;
}

static bool take_all(dvbf_data *d, const json_t *all) {
  const json_t *image = json_object_get(all, "image");
  size_t n_x = d->train.n_x = described_size(json_object_get(all, "n_x"));
  size_t n_u = d->train.n_u = described_size(json_object_get(all, "n_u")), pixels, values;
  size_t channels = described_size(json_object_get(all, "channels"));
  size_t height = described_size(json_array_get(image, 0)), width = described_size(json_array_get(image, 1));
  if (!channels) channels = 1;
  if (dv_multiply(height, width, &pixels) && dv_multiply(pixels, channels, &values) && values &&
      values == n_x)
    d->image_height = height, d->image_width = width, d->image_channels = channels;
  d->sample_time = json_real_value(json_object_get(all, "sample_time"));
  d->dates = json_is_true(json_object_get(all, "dates"));
  return take_texts((void **)&d->x_names, all, "x_names", n_x, sizeof *d->x_names) &&
         take_texts((void **)&d->x_units, all, "x_units", n_x, sizeof *d->x_units) &&
         take_texts((void **)&d->u_names, all, "u_names", n_u, sizeof *d->u_names) &&
         take_texts((void **)&d->u_units, all, "u_units", n_u, sizeof *d->u_units);
}

/* NULL without a failure: not JSON. */
static json_t *read_file(const char *path, dvbf_status *status, dvbf_error *error) {
  json_error_t reason;
  FILE *file = dv_open_file(path, error);
  if (!file) {
    *status = DVBF_IO;
    return NULL;
  }
  json_t *all = json_loadf(file, 0, &reason);
  if (ferror(file)) *status = dv_fail(error, DVBF_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  fclose(file);
  return all;
}

dvbf_status dvbf_run_data(dvbf_data **out, const char *folder, dvbf_error *error) {
  dv_path path;
  dv_join(path, folder, DV_RUN_DATA);
  dvbf_data *data = dv_calloc(1, sizeof *data);
  if (!data) return dv_fail_memory(error, "reading what a run knows of its data");
  dvbf_status status = DVBF_OK;
  json_t *all = dv_exists(path) ? read_file(path, &status, error) : json_object();
  if (!status && !json_is_object(all))
    status = dv_fail(error, DVBF_FORMAT, "%.300s: was not written by training; remove it", path);
  if (!status && !take_all(data, all)) status = dv_fail_memory(error, "reading what a run knows of its data");
  json_decref(all);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}
