#include "metrics.h"

#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns that are read, as the file's first line names them. */
enum { UPDATE, START, BOUND, VALID_BOUND, KL_W, KL_V, PREDICTION, COLUMNS };
static const char *const names[COLUMNS] = {"update",     "start",      "bound",           "valid_bound",
                                           "valid_kl_w", "valid_kl_v", "valid_prediction"};

typedef double row[COLUMNS];

typedef struct rows {
  size_t count, room;
  row *list;
} rows;

void cli_metrics_free(cli_metrics *metrics) {
  free(metrics->runs);
  free(metrics->values);
  free(metrics->names);
  *metrics = (cli_metrics){0};
}

/* at[k]: the place of column k in the line; false when one is missing. */
static bool find_columns(char *line, int at[COLUMNS]) {
  int place = 0, found = 0;
  for (int k = 0; k < COLUMNS; k++) at[k] = -1;
  for (char *rest = line, *field; (field = strsep(&rest, ",\r\n")) && *field; place++)
    for (int k = 0; k < COLUMNS; k++)
      if (at[k] < 0 && !strcmp(field, names[k])) at[k] = place, found++;
  return found == COLUMNS;
}

static bool read_row(char *line, const int at[COLUMNS], row out) {
  int place = 0, found = 0;
  for (char *rest = line, *field; (field = strsep(&rest, ",\r\n")); place++)
    for (int k = 0; k < COLUMNS; k++) {
      char *end;
      if (at[k] != place) continue;
      out[k] = strtod(field, &end);
      found += end != field && !*end;
    }
  return found == COLUMNS;
}

static bool add_row(rows *all, const row one) {
  if (all->count == all->room) {
    size_t room = all->room ? 2 * all->room : 256;
    row *list = realloc(all->list, room * sizeof *list);
    if (!list) return false;
    all->list = list;
    all->room = room;
  }
  memcpy(all->list[all->count++], one, sizeof(row));
  return true;
}

static dvbf_status read_rows(rows *all, FILE *file, const char *path, dvbf_error *error) {
  char line[1024];
  int at[COLUMNS];
  row one;
  if (!fgets(line, sizeof line, file) || !find_columns(line, at))
    return cli_fail(error, DVBF_FORMAT, "%.300s: its first line does not name the columns of a run", path);
  for (size_t number = 2; fgets(line, sizeof line, file); number++) {
    if (!read_row(line, at, one))
      return cli_fail(error, DVBF_FORMAT, "%.300s, line %zu: not a line of numbers", path, number);
    if (!add_row(all, one)) return cli_fail(error, DVBF_MEMORY, "out of memory for %.300s", path);
  }
  if (!all->count) return cli_fail(error, DVBF_FORMAT, "%.300s: holds no validation", path);
  return DVBF_OK;
}

/* Turns rows into columns, a run for each stretch of the same start. */
static dvbf_status split(cli_metrics *out, const rows *all, dvbf_error *error) {
  enum { CURVES = 5 };
  size_t n = all->count;
  out->values = calloc(n + 1, CURVES * sizeof *out->values);
  out->runs = calloc(n + 1, sizeof *out->runs);
  out->names = calloc(n + 1, sizeof *out->names);
  if (!out->values || !out->runs || !out->names)
    return cli_fail(error, DVBF_MEMORY, "out of memory for the learning curves");
  double *v = out->values;
  for (size_t i = 0; i < n; i++) {
    const double *r = all->list[i];
    v[i] = r[UPDATE], v[n + i] = r[BOUND], v[2 * n + i] = r[VALID_BOUND], v[3 * n + i] = r[PREDICTION];
    v[4 * n + i] = r[KL_W] + r[KL_V];
    if (i && r[START] == all->list[i - 1][START]) {
      out->runs[out->n_runs - 1].count++;
      continue;
    }
    size_t k = out->n_runs++;
    snprintf(out->names[k], sizeof *out->names, "start %.0f", r[START]);
    out->runs[k] =
        (dvbf_learning_run){out->names[k], 1, v + i, v + n + i, v + 2 * n + i, v + 3 * n + i, v + 4 * n + i};
  }
  return DVBF_OK;
}

dvbf_status cli_metrics_read(cli_metrics *out, const char *path, dvbf_error *error) {
  *out = (cli_metrics){0};
  FILE *file = fopen(path, "r");
  rows all = {0};
  if (!file) return cli_fail(error, DVBF_IO, "%.300s: cannot be read: %s", path, strerror(errno));
  dvbf_status status = read_rows(&all, file, path, error);
  fclose(file);
  if (!status) status = split(out, &all, error);
  free(all.list);
  return status;
}
