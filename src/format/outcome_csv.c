/* Estimates as a table: one row for each step, with names in the first line. Spreadsheets take a text that
 * begins with = for a formula, so that such names get an apostrophe. */
#include "base/file.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "format/outcome.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Fields ---- */

/* A text, in quotes where it needs them. */
static void put_text(FILE *out, const char *text) {
  bool formula = *text && strchr("=+-@", *text), quotes = strpbrk(text, ",\"") || *text == ' ';
  if (quotes) putc('"', out);
  if (formula) putc('\'', out);
  for (; *text; text++) {
    if (*text == '"') putc('"', out);
    putc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, out);
  }
  if (quotes) putc('"', out);
}

/* A value that is not known is an empty field. */
static void put_number(FILE *out, double value, int digits) {
  putc(',', out);
  if (!isnan(value)) fprintf(out, "%.*g", digits, value);
}

/* As few digits as tell the number from all others, so that 0.1 stays 0.1. */
static void put_float(FILE *out, float value) {
  char text[32] = "";
  for (int digits = 6; digits <= 9 && !isnan(value); digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) break;
  }
  fprintf(out, ",%s", text);
}

/* Digits of the fraction of a second that all times need. */
static int fraction_of(const dv_outcome *o) {
  int digits = 0;
  for (size_t i = 0; i < o->e->count && i < 1000; i++)
    for (size_t t = 0; t < 2; t++) {
      double time = dv_outcome_time(o, i, t);
      while (digits < 6 && fabs(time * pow(10, digits) - nearbyint(time * pow(10, digits))) > 1e-3)
        digits += 3;
    }
  return digits;
}

static void put_date(FILE *out, double time, int digits) {
  double unit = pow(10, digits), ticks = nearbyint(time * unit), whole = floor(ticks / unit);
  time_t seconds = (time_t)whole;
  struct tm date;
  char text[40];
  putc(',', out);
  if (!isfinite(time) || !gmtime_r(&seconds, &date) ||
      !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date))
    return;
  fputs(text, out);
  if (digits) fprintf(out, ".%0*.0f", digits, ticks - whole * unit);
}

/* ---- The first line ---- */

/* NAME, NAME_std and so on, with its unit in brackets. */
static void put_head(FILE *out, const char *name, const char *ending, const char *unit) {
  char text[128];
  bool known = *unit;
  snprintf(text, sizeof text, "%s%s%s%s%s", name, ending, known ? " [" : "", unit, known ? "]" : "");
  putc(',', out);
  put_text(out, text);
}

static void put_x_heads(FILE *out, const dv_outcome *o, size_t k) {
  const dvbf_estimates *e = o->e;
  const char *unit = dv_outcome_unit(o, 'x', k);
  char name[32], ending[40];
  dv_outcome_name(o, 'x', k, name);
  put_head(out, name, "", unit);
  if (o->samples) return;
  put_head(out, name, "_std", unit);
  for (size_t q = 0; q < e->n_quantiles; q++) {
    double percent = 100 * e->quantiles[q];
    bool whole = fabs(percent - nearbyint(percent)) < 1e-9;
    snprintf(ending, sizeof ending, whole ? "_q%02.0f" : "_q%g", percent);
    put_head(out, name, ending, unit);
  }
  if (o->sequences) put_head(out, name, "_true", unit);
}

static void put_heads(FILE *out, const dv_outcome *o) {
  char name[32];
  fputs("sequence,name,split,step,time", out);
  for (size_t k = 0; k < o->e->n_x; k++) put_x_heads(out, o, k);
  for (size_t k = 0; k < o->e->n_u; k++) {
    dv_outcome_name(o, 'u', k, name);
    put_head(out, name, "", dv_outcome_unit(o, 'u', k));
  }
  for (size_t k = 0; o->states && k < o->e->n_z; k++) {
    snprintf(name, sizeof name, "z%zu", k);
    put_head(out, name, "", "");
    if (!o->samples) put_head(out, name, "_std", "");
  }
  putc('\n', out);
}

/* ---- Rows ---- */

typedef struct table {
  const dv_outcome *o;
  FILE *out;
  float *truth; /* [steps][n_x] of the sequence */
  int fraction; /* digits */
} table;

static void put_row(const table *w, size_t i, size_t t) {
  const dvbf_estimates *e = w->o->e;
  size_t row = i * e->steps + t, apart = e->count * e->steps * e->n_x;
  for (size_t k = 0; k < e->n_x; k++) {
    size_t at = row * e->n_x + k;
    if (w->o->samples && e->x_samples) {
      put_float(w->out, e->x_samples[at]);
      continue;
    }
    put_float(w->out, e->x[at]);
    put_float(w->out, e->x_std[at]);
    for (size_t q = 0; q < e->n_quantiles; q++) put_float(w->out, e->x_quantiles[q * apart + at]);
    if (w->o->sequences) put_float(w->out, w->truth[t * e->n_x + k]);
  }
  for (size_t k = 0; k < e->n_u; k++) put_float(w->out, e->u[row * e->n_u + k]);
  for (size_t k = 0; w->o->states && k < e->n_z; k++) {
    size_t at = row * e->n_z + k;
    put_float(w->out, w->o->samples ? e->z[at] : e->z_mean[at]);
    if (!w->o->samples) put_float(w->out, e->z_std[at]);
  }
  putc('\n', w->out);
}

static void put_rows(const table *w, size_t i) {
  const dv_outcome *o = w->o;
  dvbf_origin origin = dv_outcome_origin(o, i);
  if (o->sequences && !o->samples) dv_outcome_truth(o, i, w->truth);
  for (size_t t = 0; t < dv_outcome_steps(o, i); t++) {
    double time = dv_outcome_time(o, i, t);
    fprintf(w->out, "%llu,", (unsigned long long)origin.sequence);
    put_text(w->out, origin.name);
    fprintf(w->out, ",%s,%llu", dv_outcome_split(o), (unsigned long long)origin.step + t);
    if (o->data && o->data->dates)
      put_date(w->out, time, w->fraction);
    else
      put_number(w->out, time, 14);
    put_row(w, i, t);
  }
}

dvbf_status dv_outcome_write_csv(const dv_outcome *o, const char *path, dvbf_error *error) {
  DV_PLAIN_NUMBERS;
  dv_atomic_file file;
  size_t size = o->e->steps * o->e->n_x;
  if (o->e->x_samples && !o->samples)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "%.200s: a table with a row for each step has no room for x-samples; leave them out, or write "
        ".h5, .npz or .mat",
        path);
  table w = {.o = o, .truth = dv_calloc(size ? size : 1, sizeof *w.truth), .fraction = fraction_of(o)};
  dvbf_status status =
      w.truth ? dv_atomic_open(&file, path, error) : dv_fail_memory(error, "writing estimates");
  if (status) {
    dv_free(w.truth);
    return status;
  }
  w.out = file.stream;
  put_heads(w.out, o);
  for (size_t i = 0; i < o->e->count && !ferror(w.out); i++) put_rows(&w, i);
  dv_free(w.truth);
  if (!ferror(w.out)) return dv_atomic_commit(&file, error);
  int reason = errno;
  dv_atomic_abandon(&file);
  return dv_fail(error, DVBF_IO, "%.200s: cannot be written: %s; what was there before is unchanged", path,
                 strerror(reason));
}
