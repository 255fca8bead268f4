/* Learning curves of a run from metrics.csv (dvbf_metrics_read), as one array for each quantity and start.
 * Columns are found by name. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <dvbf/report.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns that are read, as the file's first line names them. */
enum { UPDATE, RUN_START, TRAIN_BOUND, VALIDATION_BOUND, KL_W, KL_V, VALIDATION_PREDICTION, METRICS_COLUMNS };
static const char *const names[METRICS_COLUMNS] = {
    "update", "start", "bound", "valid_bound", "valid_kl_w", "valid_kl_v", "valid_prediction"};

typedef double metrics_row[METRICS_COLUMNS];

typedef struct rows {
  size_t count;
  metrics_row *list;
} rows;

/* The runs and the arrays that they point to. */
typedef struct record {
  dvbf_metrics metrics;
  double *values;
  char (*names)[24]; /* [n_runs] "start 1" */
} record;

void dvbf_metrics_free(dvbf_metrics *metrics) {
  record *r = (record *)metrics;
  if (!r) return;
  DV_FREE(r->metrics.runs, r->values, r->names, r);
}

/* at[k]: the place of column k in the line; false when one is missing. */
static bool find_columns(char *line, int at[METRICS_COLUMNS]) {
  int place = 0, found = 0;
  for (int k = 0; k < METRICS_COLUMNS; k++) at[k] = -1;
  for (char *rest = line, *field; (field = strsep(&rest, ",\r\n")) && *field; place++)
    for (int k = 0; k < METRICS_COLUMNS; k++)
      if (at[k] < 0 && !strcmp(field, names[k])) at[k] = place, found++;
  return found == METRICS_COLUMNS;
}

static bool read_row(char *line, const int at[METRICS_COLUMNS], metrics_row out) {
  DV_PLAIN_NUMBERS;
  int place = 0, found = 0;
  for (char *rest = line, *field; (field = strsep(&rest, ",\r\n")); place++)
    for (int k = 0; k < METRICS_COLUMNS; k++) {
      char *end;
      if (at[k] != place) continue;
      out[k] = strtod(field, &end);
      found += end != field && !*end;
    }
  return found == METRICS_COLUMNS;
}

static dvbf_status read_rows(rows *all, FILE *file, const char *path, dvbf_error *error) {
  char line[1024];
  int at[METRICS_COLUMNS];
  bool any = fgets(line, sizeof line, file);
  if (!any && ferror(file))
    return dv_fail(error, DVBF_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  if (!any || !find_columns(line, at))
    return dv_fail(error, DVBF_FORMAT, "%.300s: its first line does not name the columns of a run", path);
  for (size_t number = 2; fgets(line, sizeof line, file); number++) {
    metrics_row *list = dv_grow(all->list, all->count, sizeof *list);
    if (!list) return dv_fail(error, DVBF_MEMORY, "out of memory for %.300s", path);
    all->list = list;
    if (!read_row(line, at, list[all->count++]))
      return dv_fail(error, DVBF_FORMAT, "%.300s, line %zu: not a line of numbers", path, number);
  }
  if (ferror(file)) return dv_fail(error, DVBF_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  if (!all->count) return dv_fail(error, DVBF_FORMAT, "%.300s: holds no validation", path);
  return DVBF_OK;
}

/* Makes arrays from rows; consecutive rows of the same start are one run. */
static dvbf_status split(record *out, const rows *all, dvbf_error *error) {
  enum { CURVES = 5 };
  size_t n = all->count;
  double *v = out->values = dv_calloc(n, CURVES * sizeof *v);
  dvbf_learning_run *runs = out->metrics.runs = dv_calloc(n, sizeof *runs);
  out->names = dv_calloc(n, sizeof *out->names);
  if (!v || !runs || !out->names) return dv_fail(error, DVBF_MEMORY, "out of memory for the learning curves");
  for (size_t i = 0; i < n; i++) {
    const double *r = all->list[i];
    v[i] = r[UPDATE], v[n + i] = r[TRAIN_BOUND], v[2 * n + i] = r[VALIDATION_BOUND],
    v[3 * n + i] = r[VALIDATION_PREDICTION];
    v[4 * n + i] = r[KL_W] + r[KL_V];
    if (i && r[RUN_START] == all->list[i - 1][RUN_START]) {
      runs[out->metrics.n_runs - 1].count++;
      continue;
    }
    size_t k = out->metrics.n_runs++;
    snprintf(out->names[k], sizeof *out->names, "start %.0f", r[RUN_START]);
    runs[k] =
        (dvbf_learning_run){out->names[k], 1, v + i, v + n + i, v + 2 * n + i, v + 3 * n + i, v + 4 * n + i};
  }
  return DVBF_OK;
}

dvbf_status dvbf_metrics_read(dvbf_metrics **out, const char *path, dvbf_error *error) {
  FILE *file = dv_open_file(path, error);
  if (!file) return DVBF_IO;
  rows all = {0};
  record *r = dv_calloc(1, sizeof *r);
  dvbf_status status = r ? read_rows(&all, file, path, error)
                         : dv_fail(error, DVBF_MEMORY, "out of memory for the learning curves");
  fclose(file);
  if (!status) status = split(r, &all, error);
  dv_free(all.list);
  if (!status)
    *out = &r->metrics;
  else if (r)
    dvbf_metrics_free(&r->metrics);
  return status;
}
