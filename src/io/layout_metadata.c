/* Metadata of data: origins of sequences, sample time, ends of sequences (dv_layout_origins, dv_layout_time,
 * dv_layout_ends), and notes on what each array was taken for, with the question which columns are inputs
 * (dv_layout_report_usage). */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/checks.h"
#include "io/csv.h"
#include "io/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void dv_layout_mark_used(const dv_layout *l, const dv_named_array *array, const char *as) {
  if (l->taken) l->taken[array - l->archive->arrays] = as;
}

/* ---- Origins ---- */

/* An array with a value for each of `count` rows; NULL: there is none. */
static double *read_vector(const dv_layout *l, const dv_named_array *array, size_t count, const char *as) {
  if (!array || array->trouble || array->elements != count || array->dims[0] != count) return NULL;
  double *values = dv_calloc(count, sizeof *values);
  if (values && !dv_archive_read(l->archive, array, 0, count, DV_DOUBLES(values), NULL)) {
    dv_layout_mark_used(l, array, as);
    return values;
  }
  dv_free(values);
  return NULL;
}

/* An array next to x. */
static const dv_named_array *find_next_to(const dv_layout *l, const dv_named_array *x, const char *key) {
  char name[DV_ARRAY_NAME + 32];
  const char *slash = strrchr(x->name, '/');
  snprintf(name, sizeof name, "%.*s%s", slash ? (int)(slash + 1 - x->name) : 0, x->name, key);
  return dv_archive_find(l->archive, name);
}

static void read_sequence_names(const dv_layout *l, const dv_named_array *x, dvbf_sequences *s) {
  const dv_named_array *array = find_next_to(l, x, "sequence_name");
  if (!array || !array->text || array->rank != 1 || array->elements != s->count) return;
  char(*names)[32] = dv_calloc(s->count, sizeof *names);
  if (names &&
      dv_array_strings(l->archive, array, DV_STRINGS_VALUES, s->count, sizeof *names, *names) == DV_FOUND)
    for (size_t i = 0; i < s->count; i++) memcpy(s->origin[i].name, names[i], sizeof names[i]);
  dv_layout_mark_used(l, array, "names of sequences");
  dv_free(names);
}

/* Of several files, each file or each row of x may be a sequence, which gets the file's name. */
static bool name_by_files(const dv_archive *a, const dv_named_array *x, dvbf_sequences *s) {
  const char *path;
  size_t files = 0, n = 0;
  if (!a->format->piece) return false;
  while (a->format->piece(a, x, files, &path)) files++;
  bool by_rows = s->count == x->dims[0];
  if (!files || (!by_rows && s->count != files)) return false;
  for (size_t k = 0; k < files; k++) {
    size_t rows = a->format->piece(a, x, k, &path);
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < (by_rows ? rows : 1); i++)
      snprintf(s->origin[n++].name, sizeof s->origin->name, "%.31s", slash ? slash + 1 : path);
  }
  return true;
}

dvbf_status dv_layout_origins(const dv_layout *l, dvbf_sequences *s, const dv_named_array *x) {
  static const char as[] = "where sequences come from";
  double *time = read_vector(l, find_next_to(l, x, "sequence_time"), s->count, as);
  double *step = read_vector(l, find_next_to(l, x, "sequence_step"), s->count, as);
  double *number = read_vector(l, find_next_to(l, x, "sequence_number"), s->count, as);
  bool any = l->archive->format->piece || time || step || number;
  if (any) s->origin = dv_calloc(s->count, sizeof *s->origin);
  for (size_t i = 0; s->origin && i < s->count; i++) {
    s->origin[i].sequence = i;
    if (time && isfinite(time[i])) s->origin[i].time = time[i];
    if (step && step[i] >= 0 && step[i] < (double)DV_MAX_ELEMENTS) s->origin[i].step = (uint64_t)step[i];
    if (number && number[i] >= 0 && number[i] < (double)DV_MAX_ELEMENTS)
      s->origin[i].sequence = (uint64_t)number[i];
  }
  if (s->origin && !name_by_files(l->archive, x, s)) read_sequence_names(l, x, s);
  DV_FREE(time, step, number);
  return any && !s->origin ? dv_fail_memory(l->error, "reading data") : DVBF_OK;
}

/* ---- Time ---- */

/* A single number; NaN: there is none of that name. */
static double scalar(const dv_layout *l, const char *name) {
  const dv_named_array *array = dv_archive_find(l->archive, name);
  double value = NAN, other;
  size_t files = l->archive->files ? l->archive->files : 1; /* each has one */
  if (!array || array->trouble || array->elements != files || array->rank > 2) return NAN;
  if (dv_archive_read(l->archive, array, 0, 1, DV_DOUBLES(&value), NULL)) return NAN;
  for (size_t i = 1; i < files; i++)
    if (dv_archive_read(l->archive, array, i, 1, DV_DOUBLES(&other), NULL) || other != value) {
      dv_archive_note(l->archive, "%.32s differs between files and is not used", array->name);
      return NAN;
    }
  dv_layout_mark_used(l, array, "sample time");
  return value;
}

/* An array of times [steps]: its mean step, if all steps are alike. */
static dvbf_status find_times(const dv_layout *l) {
  static const char *const names[] = {"time", "t", "times", "timestamps", "timestamp", NULL};
  const dv_named_array *array = NULL;
  for (int i = 0; names[i] && !array; i++) array = dv_archive_find(l->archive, names[i]);
  bool vector = array && !array->trouble && array->elements > 2 &&
                (array->rank == 1 || (array->rank == 2 && array->dims[1] == 1));
  if (!vector || l->data->sample_time > 0) return DVBF_OK;
  double *times = dv_calloc(array->elements, sizeof *times);
  if (!times) return dv_fail_memory(l->error, "reading data");
  dvbf_status status = dv_archive_read(l->archive, array, 0, array->elements, DV_DOUBLES(times), l->error);
  const char *path;
  size_t n = l->archive->format->piece ? l->archive->format->piece(l->archive, array, 0, &path)
                                       : array->elements,
         odd = 0;
  if (n < 3) {
    dv_free(times);
    return status;
  }
  double step = (times[n - 1] - times[0]) / (double)(n - 1);
  for (size_t i = 1; i < n && !status; i++) odd += !(fabs(times[i] - times[i - 1] - step) <= 0.5 * step);
  if (!status && step > 0 && !odd) l->data->sample_time = step;
  if (!status && odd)
    dv_archive_note(l->archive,
                    "%.32s: %zu of its steps differ from the others; all steps are assumed to be equally "
                    "long (a CSV file with that column would be put on a grid)",
                    array->name, odd);
  dv_layout_mark_used(l, array, odd ? "time, which is irregular" : "time");
  dv_free(times);
  return status;
}

dvbf_status dv_layout_time(const dv_layout *l) {
  static const char *const names[] = {"sample_time", "dt", "Ts", "Delta_t", "fs", "Fs", "fps", "sample_rate"};
  dvbf_data *data = l->data;
  if (l->how->sample_time > 0) data->sample_time = l->how->sample_time;
  for (int i = 0; i < 8 && !(data->sample_time > 0); i++) {
    double value = scalar(l, names[i]);
    bool rate = i >= 4;
    if (rate ? value > 1e-9 && value < 1e12 : value > 0 && value < 1e9)
      data->sample_time = rate ? 1 / value : value;
  }
  data->dates = scalar(l, "dates") == 1;
  return find_times(l);
}

/* ---- Ends ---- */

/* Marks the last row of each sequence by flags, or by numbers that change behind it. */
static bool mark_ends(const dv_layout *l, size_t rows, bool *ends) {
  static const char *const flags[] = {"terminals",   "timeouts",   "dones",     "done", "terminations",
                                      "truncations", "terminated", "truncated", NULL};
  static const char *const numbers[] = {"episode_id", "episode_ids", "episode",  "episode_index",
                                        "traj_id",    "traj_index",  "sequence", NULL};
  bool any = false;
  for (int kind = 0; kind < 2; kind++)
    for (const char *const *name = kind ? numbers : flags; *name && !(kind && any); name++) {
      double *values = read_vector(l, dv_archive_find(l->archive, *name), rows, "ends of sequences");
      for (size_t i = 0; values && i < rows; i++)
        ends[i] |= kind ? i + 1 < rows && values[i + 1] != values[i] : values[i] != 0;
      any |= values != NULL;
      dv_free(values);
    }
  return any;
}

dvbf_status dv_layout_ends(const dv_layout *l, const dv_named_array *x, size_t **out, size_t *count) {
  size_t rows = x->dims[0];
  if (rows < 2) return DVBF_OK;
  bool *ends = dv_calloc(rows, sizeof *ends);
  if (!ends) return dv_fail_memory(l->error, "reading data");
  const dv_format *format = l->archive->format;
  const char *path;
  bool told = mark_ends(l, rows, ends), any = told || format->piece;
  for (size_t k = 0, at = 0, own; format->piece && (own = format->piece(l->archive, x, k, &path)); k++)
    ends[(at += own) - 1] = true; /* the last row of a file */
  size_t sequences = 0, n = 0;
  ends[rows - 1] = true;
  for (size_t i = 0; i < rows; i++) sequences += ends[i];
  if (!any || sequences == 1 || sequences == rows) {
    dv_free(ends);
    return DVBF_OK;
  }
  *out = dv_calloc(sequences, sizeof **out);
  for (size_t i = 0, begin = 0; *out && i < rows; i++)
    if (ends[i]) {
      (*out)[n++] = i + 1 - begin;
      begin = i + 1;
    }
  dv_free(ends);
  if (!*out) return dv_fail_memory(l->error, "reading data");
  *count = n;
  if (told) dv_archive_note(l->archive, "%zu sequences, whose ends are given by arrays in the file", n);
  return DVBF_OK;
}

/* ---- Use of arrays and columns ---- */

static void tell_arrays(const dv_layout *l) {
  enum { TOLD_ARRAYS = 64 };
  dv_archive *a = l->archive;
  for (size_t i = 0; i < a->count && i < TOLD_ARRAYS; i++) {
    char as[128], shape[96];
    const dv_named_array *array = &a->arrays[i];
    const char *taken = l->taken[i];
    dv_array_shape(array, shape, sizeof shape);
    if (taken)
      snprintf(as, sizeof as, "%.40s, %.80s", taken, shape);
    else
      snprintf(as, sizeof as, "not used: %.70s, %.40s",
               array->trouble ? array->trouble : "its name is none of those known", shape);
    dv_archive_use(a, array->name, as);
  }
  if (a->count > TOLD_ARRAYS) dv_archive_use(a, "...", "and further arrays");
}

/* Columns come in pairs, as uEst and yEst: that of u is an input. */
static void mark_pairs(const dvbf_data *data, bool *inputs) {
  size_t n = data->x_names ? data->train.n_x : 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) {
      const char *u = data->x_names[i], *y = data->x_names[k];
      if (*u == 'u' && *y == 'y' && u[1] && !strcmp(u + 1, y + 1)) inputs[i] = true;
    }
}

/* Asks which columns are inputs, if some of a table look like inputs and no setting names them. */
static dvbf_status ask_for_inputs(const dv_layout *l) {
  dvbf_data *data = l->data;
  size_t n = data->train.n_x, count = 0, used = 0;
  bool *inputs = dv_calloc(n, sizeof *inputs);
  char list[120] = "";
  dvbf_status status =
      inputs ? dv_exogenous(inputs, &data->train, l->error) : dv_fail_memory(l->error, "reading data");
  if (!status && n <= 64) mark_pairs(data, inputs);
  for (size_t k = 0; k < n && !status; k++) {
    if (!inputs[k] || used + 34 > sizeof list) continue;
    char name[32];
    if (data->x_names)
      memcpy(name, data->x_names[k], sizeof name);
    else
      snprintf(name, sizeof name, "%zu", k + 1);
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", count++ ? "," : "", name);
  }
  if (count)
    snprintf(data->question, sizeof data->question,
             "some columns look like inputs, as they drive the others and are not driven by them; give "
             "--inputs %.119s, or --inputs none",
             list);
  dv_free(inputs);
  return status;
}

dvbf_status dv_layout_report_usage(const dv_layout *l) {
  dv_archive *a = l->archive;
  dvbf_data *data = l->data;
  bool asks = a->table && a->table->columns.rest && data->train.n_x > 1;
  dvbf_status status = asks ? ask_for_inputs(l) : DVBF_OK;
  if (status) return status;
  tell_arrays(l);
  if (a->forgot) return dv_fail_memory(l->error, "describing the data");
  for (size_t i = 0; i < a->n_notes && !status; i++) status = dv_data_note(data, a->notes[i], l->error);
  if (status) return status;
  data->uses = a->uses;
  data->n_uses = a->n_uses;
  if (data->uses)
    dv_names_tell_apart(data->uses->name, data->n_uses, sizeof *data->uses, sizeof data->uses->name);
  a->uses = NULL;
  a->n_uses = 0;
  return DVBF_OK;
}
