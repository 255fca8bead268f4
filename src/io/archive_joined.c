/* The files that a user names as one archive (dv_archive_open_all): arrays of the same name follow each other
 * by their first dimension, in which alone they may differ; numbered sequences (data/demo_7/obs, arr_7) are
 * counted on from file to file. Only a few files are open at a time. The end of a file is the end of a
 * recording. */
#include "base/error.h"
#include "base/memory.h"
#include "io/archive.h"
#include "io/csv.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPEN = 64 /* files at a time */, MOST_NOTES = 16 };

typedef struct member {
  char *path;
  dv_archive *open; /* NULL: not now */
  size_t arrays;    /* in it */
  uint64_t used;    /* when it was used last, in turns */
} member;

/* An array of one file. */
typedef struct array_piece {
  char *name; /* in the joined archive */
  size_t file, array, rows;
  dv_named_array about; /* its name is not used */
} array_piece;

typedef struct joined {
  dv_archive base;
  dv_data_settings how;
  member *files; /* [count] */
  size_t count, open;
  uint64_t turn;
  pthread_mutex_t lock; /* of what is open */
  array_piece *pieces;  /* by name, then by file */
  size_t n_pieces;
  size_t *first; /* [arrays + 1] of each array in `pieces`; dv_named_array.place is the number of one */
} joined;

/* ---- Files ---- */

static void close_oldest(joined *j, size_t but) {
  member *oldest = NULL;
  for (size_t i = 0; i < j->count; i++) {
    member *m = &j->files[i];
    if (i != but && m->open && (!oldest || m->used < oldest->used)) oldest = m;
  }
  if (!oldest) return;
  dv_archive_release(oldest->open);
  oldest->open = NULL;
  j->open--;
}

/* The archive of a file, to be released. */
static dvbf_status borrow(dv_archive **out, joined *j, size_t file, dvbf_error *error) {
  member *m = &j->files[file];
  dvbf_status status = DVBF_OK;
  pthread_mutex_lock(&j->lock);
  if (!m->open && !(status = dv_archive_open(&m->open, m->path, &j->how, error))) {
    if (j->how.transpose == DV_TRANSPOSE_ON) dv_archive_transpose(m->open);
    j->open++;
  }
  if (!status && m->arrays && m->arrays != m->open->count)
    status = dv_fail(error, DVBF_IO, "%.200s: was changed while in use", m->path);
  m->used = ++j->turn;
  if (j->open > OPEN) close_oldest(j, file);
  if (!status) *out = dv_archive_keep(m->open);
  pthread_mutex_unlock(&j->lock);
  return status;
}

/* ---- Reading ---- */

static const char *read_piece(joined *j, const array_piece *p, size_t first, size_t n, dv_out out) {
  dv_archive *a = NULL;
  if (borrow(&a, j, p->file, NULL)) return "one of its files was changed or removed while in use";
  const char *remedy = dv_array_read(a, &a->arrays[p->array], first, n, out);
  dv_archive_release(a);
  return remedy;
}

static const char *joined_read(dv_archive *a, const dv_named_array *array, size_t first, size_t n,
                               dv_out out) {
  joined *j = (joined *)a;
  size_t row = array->dims[0] ? array->elements / array->dims[0] : 0, at = 0;
  for (size_t k = j->first[array->place]; n && k < j->first[array->place + 1]; k++) {
    const array_piece *p = &j->pieces[k];
    size_t size = p->rows * row;
    if (first < at + size) {
      size_t from = first - at, part = size - from < n ? size - from : n;
      const char *remedy = read_piece(j, p, from, part, out);
      if (remedy) return remedy;
      out.at = (char *)out.at + part * out.width;
      first += part;
      n -= part;
    }
    at += size;
  }
  return n ? "it has fewer numbers than needed" : NULL;
}

/* Strings of an array of text follow each other; names and units of columns are those of the first file. */
static dv_found joined_strings(dv_archive *a, const dv_named_array *array, dv_strings which, size_t count,
                               size_t size, char *out) {
  joined *j = (joined *)a;
  dv_found found = DV_FOUND;
  size_t at = 0;
  for (size_t k = j->first[array->place]; at < count && k < j->first[array->place + 1]; k++) {
    const array_piece *p = &j->pieces[k];
    dv_archive *from = NULL;
    size_t n = which == DV_STRINGS_VALUES ? p->about.elements : count;
    if (n > count - at || borrow(&from, j, p->file, NULL)) return DV_FOUND_UNREADABLE;
    found = dv_array_strings(from, &from->arrays[p->array], which, n, size, out + at * size);
    dv_archive_release(from);
    if (found != DV_FOUND) return found;
    at += n;
  }
  return at == count ? DV_FOUND : DV_FOUND_UNREADABLE;
}

static size_t joined_piece(const dv_archive *a, const dv_named_array *array, size_t number,
                           const char **path) {
  const joined *j = (const joined *)a;
  size_t k = j->first[array->place] + number;
  if (k >= j->first[array->place + 1]) return 0;
  *path = j->files[j->pieces[k].file].path;
  return j->pieces[k].rows;
}

/* ---- Names ---- */

/* Place of an episode's number in a path such as data/demo_7/obs or arr_7; 0 digits: there is none. */
static size_t number_in(const char *path, bool list, size_t *digits) {
  size_t end = list ? strlen(path) : dv_episode_length(path), at = dv_family_length(path, end);
  *digits = end - at;
  return at;
}

static bool is_list(const dv_archive *a) {
  for (size_t i = 0; i < a->count; i++)
    if (strncmp(a->arrays[i].name, "arr_", 4)) return false;
  return a->count > 1;
}

/* The name in the joined archive: episodes are counted on, *episodes of them so far. The arrays of a file are
 * in the order of their names, so that those of an episode stand together. */
static char *rename_array(const dv_archive *a, size_t i, bool list, size_t *episodes) {
  char name[DV_ARRAY_NAME + 32];
  const char *own = a->arrays[i].name, *before = i ? a->arrays[i - 1].name : "";
  size_t digits, at = number_in(own, list, &digits);
  if (!digits) return dv_strdup(own);
  if (strncmp(own, before, at + digits + !list)) ++*episodes;
  snprintf(name, sizeof name, "%.*s%zu%s", (int)at, own, *episodes - 1, own + at + digits);
  return dv_strdup(name);
}

/* ---- Joining ---- */

/* Takes over the name of the piece. */
static dvbf_status add_piece(joined *j, array_piece *p, dvbf_error *error) {
  const char *trouble = p->about.trouble;
  array_piece *larger = p->name ? dv_grow(j->pieces, j->n_pieces, sizeof *larger) : NULL;
  if (larger) {
    j->pieces = larger;
    p->about.trouble = trouble ? dv_strdup(trouble) : NULL;
    j->pieces[j->n_pieces++] = *p;
    if (p->about.trouble || !trouble) return DVBF_OK;
  } else {
    dv_free(p->name);
  }
  return dv_fail_memory(error, "reading data");
}

static int by_name(const void *a, const void *b) {
  const array_piece *p = a, *q = b;
  int order = dv_compare_names(p->name, q->name);
  return order ? order : (p->file > q->file) - (p->file < q->file);
}

/* ---- Agreement of files ---- */

/* A sentence that follows the name of an array. */
enum { TROUBLE = 500 };

static const char *path_of(const joined *j, const array_piece *p) {
  return j->files[p->file].path;
}

/* Names of the columns of a piece; false: it has none. */
static bool names_of(joined *j, const array_piece *p, size_t count, char (*out)[32]) {
  dv_archive *a = NULL;
  if (borrow(&a, j, p->file, NULL)) return false;
  dv_found found = dv_array_strings(a, &a->arrays[p->array], DV_STRINGS_NAMES, count, sizeof *out, *out);
  dv_archive_release(a);
  return found == DV_FOUND;
}

static bool same_columns(joined *j, const array_piece *first, const array_piece *p, char sentence[TROUBLE]) {
  enum { COMPARED_COLUMNS = 256 };
  char one[COMPARED_COLUMNS][32], other[COMPARED_COLUMNS][32];
  size_t n = first->about.rank > 1 ? first->about.dims[first->about.rank - 1] : 0;
  if (!n || n > COMPARED_COLUMNS || first->about.text) return true;
  if (!names_of(j, first, n, one) || !names_of(j, p, n, other)) return true;
  for (size_t i = 0; i < n; i++) {
    if (!strcmp(one[i], other[i])) continue;
    snprintf(
        sentence, TROUBLE,
        "has the column %s in %.120s where %.120s has %s; give all files the same columns in the same order",
        other[i], path_of(j, p), path_of(j, first), one[i]);
    return false;
  }
  return true;
}

static const char *kind_of(const dv_named_array *array) {
  return array->bytes ? "bytes" : array->text ? "text" : "numbers";
}

static bool same_shapes(joined *j, const array_piece *first, const array_piece *p, char sentence[TROUBLE]) {
  char one[96], other[96];
  const dv_named_array *a = &first->about, *b = &p->about;
  bool same = a->rank == b->rank && a->bytes == b->bytes && a->text == b->text;
  for (int i = 1; same && i < a->rank; i++) same = a->dims[i] == b->dims[i];
  if (same) return same_columns(j, first, p, sentence);
  snprintf(sentence, TROUBLE,
           "is %s of %s in %.120s and %s of %s in %.120s; files of one data set may differ only in the first "
           "dimension",
           dv_array_shape(b, other, sizeof other), kind_of(b), path_of(j, p),
           dv_array_shape(a, one, sizeof one), kind_of(a), path_of(j, first));
  return false;
}

/* Whether a file has any array in the folder of this name, as train/ of train/x. */
static bool has_folder(const joined *j, size_t file, const char *name) {
  const char *slash = strrchr(name, '/');
  size_t n = slash ? (size_t)(slash + 1 - name) : 0;
  for (size_t k = 0; k < j->n_pieces; k++)
    if (j->pieces[k].file == file && !strncmp(j->pieces[k].name, name, n)) return true;
  return false;
}

/* The first file without an array whose folder it has; a file may lack a whole split. */
static bool is_missing(const joined *j, size_t from, size_t until, char sentence[TROUBLE]) {
  const char *name = j->pieces[from].name;
  size_t digits;
  number_in(name, !strncmp(name, "arr_", 4), &digits);
  for (size_t file = 0, k = from; file < j->count && !digits; file++) {
    if (k < until && j->pieces[k].file == file) {
      k++;
      continue;
    }
    if (!has_folder(j, file, name)) continue;
    snprintf(sentence, TROUBLE,
             "is missing in %.150s, though %.150s has it; all files of a data set must hold the same arrays",
             j->files[file].path, path_of(j, &j->pieces[from]));
    return true;
  }
  return false;
}

/* One array of the pieces from .. until - 1. */
static dvbf_status join_array(joined *j, size_t from, size_t until, dvbf_error *error) {
  const array_piece *first = &j->pieces[from];
  char sentence[TROUBLE];
  dv_named_array array = first->about;
  array.fortran = array.swapped = false; /* as read from the files */
  array.name = first->name;
  array.place = j->base.count;
  array.rank = array.rank ? array.rank : 1; /* numbers become a list of them */
  array.dims[0] = 0;
  array.trouble = is_missing(j, from, until, sentence) ? sentence : NULL;
  for (size_t k = from; k < until; k++) {
    const dv_named_array *part = &j->pieces[k].about;
    array.dims[0] += j->pieces[k].rows;
    array.seekable = array.seekable && part->seekable;
    if (part->unpacked > array.unpacked) array.unpacked = part->unpacked;
    if (!array.trouble) array.trouble = part->trouble;
    if (!array.trouble && k > from && !same_shapes(j, first, &j->pieces[k], sentence))
      array.trouble = sentence;
  }
  j->first[j->base.count] = from;
  j->first[j->base.count + 1] = until;
  return dv_archive_add(&j->base, &array, error);
}

static dvbf_status join_arrays(joined *j, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  if (j->n_pieces) qsort(j->pieces, j->n_pieces, sizeof *j->pieces, by_name);
  j->first = dv_calloc(j->n_pieces + 1, sizeof *j->first);
  if (!j->first) return dv_fail_memory(error, "reading data");
  for (size_t k = 0, until; k < j->n_pieces && !status; k = until) {
    for (until = k + 1; until < j->n_pieces && !strcmp(j->pieces[k].name, j->pieces[until].name);) until++;
    status = join_array(j, k, until, error);
  }
  return status;
}

static bool is_told(const joined *j, const char *note) {
  for (size_t i = 0; i < j->base.n_notes; i++)
    if (!strcmp(j->base.notes[i], note)) return true;
  return false;
}

static dvbf_status take_told(joined *j, dv_archive *a, size_t file, dvbf_error *error) {
  const char *first = j->files[0].path;
  dvbf_status status = DVBF_OK;
  bool table = a->table, like_first = !file || table == (j->base.table != NULL);
  for (size_t i = 0; !file && i < a->n_uses; i++) dv_archive_use(&j->base, a->uses[i].name, a->uses[i].role);
  for (size_t i = 0; i < a->n_notes && j->base.n_notes < MOST_NOTES; i++)
    if (!is_told(j, a->notes[i])) dv_archive_note(&j->base, "%s", a->notes[i]);
  if (!like_first)
    status = dv_fail_file(error, a->path,
                          "is %s, but %.200s is %s; files of one data set must be of the same kind",
                          table ? "a table" : "no table", first, table ? "none" : "one");
  else if (!file && table && !(j->base.table = dv_calloc(1, sizeof *j->base.table)))
    status = dv_fail_memory(error, "reading data");
  return !status && table ? dv_csv_table_append(j->base.table, first, a, error) : status;
}

static dvbf_status add_file(joined *j, size_t file, size_t *episodes, dvbf_error *error) {
  dv_archive *a = NULL;
  dvbf_status status = borrow(&a, j, file, error);
  if (status) return status;
  status = take_told(j, a, file, error);
  bool list = is_list(a);
  for (size_t i = 0; i < a->count && !status; i++) {
    const dv_named_array *array = &a->arrays[i];
    if (array->text && !strncmp(array->name, "mask/", 5)) continue; /* names of episodes, which change */
    array_piece p = {.name = rename_array(a, i, list, episodes), .file = file, .array = i, .about = *array};
    p.about.name = NULL;
    p.rows = array->rank ? array->dims[0] : 1;
    status = add_piece(j, &p, error);
  }
  j->files[file].arrays = a->count;
  dv_archive_release(a);
  return status;
}

/* ---- Joining files ---- */

static void joined_close(dv_archive *a) {
  joined *j = (joined *)a;
  for (size_t i = 0; j->files && i < j->count; i++) {
    dv_archive_release(j->files[i].open);
    dv_free(j->files[i].path);
  }
  for (size_t i = 0; i < j->n_pieces; i++)
    DV_FREE(j->pieces[i].name, (void *)(uintptr_t)j->pieces[i].about.trouble);
  DV_FREE(j->files, j->pieces, j->first);
  pthread_mutex_destroy(&j->lock);
}

static const dv_format joined_format = {.archive = sizeof(joined),
                                        .read = joined_read,
                                        .strings = joined_strings,
                                        .piece = joined_piece,
                                        .close = joined_close};

static dvbf_status join_files(dv_archive **out, char *const *paths, size_t count, const dv_data_settings *how,
                              dvbf_error *error) {
  char name[sizeof((dv_archive *)0)->path];
  snprintf(name, sizeof name, "%.400s and %zu further file%s", paths[0], count - 1, count == 2 ? "" : "s");
  joined *j = (joined *)dv_archive_new(&joined_format, name);
  if (!j) return dv_fail_memory(error, "reading data");
  size_t episodes = 0;
  *out = &j->base;
  j->how = *how;
  j->base.files = count;
  pthread_mutex_init(&j->lock, NULL);
  j->count = count;
  j->files = dv_calloc(count, sizeof *j->files);
  dvbf_status status = j->files ? DVBF_OK : dv_fail_memory(error, "reading data");
  for (size_t i = 0; i < count && !status; i++) {
    j->files[i].path = dv_strdup(paths[i]);
    status = j->files[i].path ? add_file(j, i, &episodes, error) : dv_fail_memory(error, "reading data");
  }
  if (!status) status = join_arrays(j, error);
  return status ? status : dv_archive_sort(&j->base, error);
}

/* ---- Listing of files ---- */

enum { MOST_FILES = 1 << 16 }; /* files of a data set */

typedef struct listing {
  char **paths; /* [count] */
  size_t count;
} listing;

static dvbf_status add_path(listing *l, const char *path, dvbf_error *error) {
  if (l->count == MOST_FILES)
    return dv_fail_file(error, path, "is one file too many: data may have at most %d; join some", MOST_FILES);
  char **larger = dv_grow((void *)l->paths, l->count, sizeof *larger);
  if (!larger) return dv_fail_memory(error, "listing files");
  l->paths = larger;
  l->paths[l->count] = dv_strdup(path);
  if (!l->paths[l->count]) return dv_fail_memory(error, "listing files");
  l->count++;
  return DVBF_OK;
}

static int by_path(const void *a, const void *b) {
  return dv_compare_names(*(char *const *)a, *(char *const *)b);
}

/* A folder may hold other things too. */
static dvbf_status add_folder(listing *l, const char *folder, dvbf_error *error) {
  size_t from = l->count, length = strlen(folder);
  char endings[DVBF_FORMATS];
  DIR *all = opendir(folder);
  dvbf_status status = DVBF_OK;
  if (!all) return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", folder, strerror(errno));
  for (const struct dirent *entry; !status && (entry = readdir(all));) {
    char path[PATH_MAX];
    if (*entry->d_name == '.' || !dv_format_has_ending(entry->d_name)) continue;
    int n = snprintf(path, sizeof path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/",
                     entry->d_name);
    if (n > 0 && (size_t)n < sizeof path) status = add_path(l, path, error);
  }
  closedir(all);
  if (!status && l->count == from)
    status = dv_fail(error, DVBF_IO,
                     "%.200s: is a folder without data; name a file, or a folder with files that end in %s",
                     folder, dv_formats_listed(true, endings));
  return status;
}

static dvbf_status add_pattern(listing *l, const char *pattern, dvbf_error *error) {
  glob_t found = {0};
  dvbf_status status = DVBF_OK;
  if (glob(pattern, GLOB_NOSORT, NULL, &found))
    status = dv_fail(error, DVBF_IO, "%.200s: is not a file, and no file matches it", pattern);
  for (size_t i = 0; !status && i < found.gl_pathc; i++) status = add_path(l, found.gl_pathv[i], error);
  globfree(&found);
  return status;
}

static dvbf_status list_files(listing *l, const char *const *given, size_t count, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < count && !status; i++) {
    struct stat about;
    size_t from = l->count;
    bool there = !stat(given[i], &about);
    if (there && S_ISDIR(about.st_mode))
      status = add_folder(l, given[i], error);
    else if (!there && strpbrk(given[i], "*?["))
      status = add_pattern(l, given[i], error);
    else
      status = add_path(l, given[i], error);
    if (!status && l->count > from)
      qsort((void *)(l->paths + from), l->count - from, sizeof *l->paths, by_path);
  }
  return status;
}

dvbf_status dv_archive_open_all(dv_archive **out, const char *const *given, size_t count,
                                const dv_data_settings *how, dvbf_error *error) {
  listing l = {0};
  dvbf_status status = list_files(&l, given, count, error);
  if (!status && !l.paths) status = dv_fail(error, DVBF_ARGUMENT, "no data file is given");
  if (!status)
    status = l.count < 2 ? dv_archive_open(out, l.paths[0], how, error)
                         : join_files(out, l.paths, l.count, how, error);
  for (size_t i = 0; i < l.count; i++) dv_free(l.paths[i]);
  dv_free((void *)l.paths);
  return status;
}
