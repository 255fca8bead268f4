/* Warnings about data in sentences: constant or duplicate columns, odd units, marks of missing values, too
 * few steps (dvbf_data_warnings); and removal of outliers with a note for each column
 * (dv_data_without_outliers). Nothing is refused: each sentence names the consequence and the remedy. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 8 /* that a sentence lists */, SENTENCE = 512 };

static void column_name(char out[32], const dvbf_data *data, bool of_u, size_t k) {
  char(*names)[32] = of_u ? data->u_names : data->x_names;
  if (names)
    memcpy(out, names[k], 32);
  else
    snprintf(out, 32, "%s%zu", of_u ? "u" : "x", k);
}

/* ---- Lists of columns ---- */

typedef struct list {
  char text[SENTENCE];
  size_t count;
} list;

__attribute__((format(printf, 2, 3))) static void add(list *l, const char *format, ...) {
  size_t used = strlen(l->text);
  va_list arguments;
  if (l->count++ >= NAMES) return;
  va_start(arguments, format);
  DV_PLAIN_NUMBERS;
  if (used) used += (size_t)snprintf(l->text + used, sizeof l->text - used, ", ");
  vsnprintf(l->text + used, sizeof l->text - used, format, arguments);
  va_end(arguments);
}

typedef struct telling {
  const dvbf_data *data;
  dvbf_message_fn *each;
  void *user;
  dv_measured measured;
} telling;

/* "y1, y2 `one` or, for several, `many`"; nothing if the list is empty. */
static void tell(const telling *t, const list *l, const char *one, const char *many) {
  char sentence[2 * SENTENCE], more[48] = "";
  if (!l->count) return;
  if (l->count > NAMES) snprintf(more, sizeof more, " and %zu more", l->count - NAMES);
  snprintf(sentence, sizeof sentence, "%s%s %s", l->text, more, l->count > 1 ? many : one);
  t->each(sentence, t->user);
}

/* ---- Columns ---- */

static void tell_constant(const telling *t, const dv_statistics *s, size_t width, bool of_u) {
  list constant = {0}, rounding = {0};
  for (size_t k = 0; k < width; k++) {
    char name[32];
    column_name(name, t->data, of_u, k);
    if (!s->seen[k] || dv_statistics_vary(s, k)) continue;
    add(s->least[k] < s->most[k] ? &rounding : &constant, "%s (%.6g)", name, s->mean[k]);
  }
  tell(t, &constant,
       of_u ? "is constant, so its effect cannot be learned" : "is constant, so no score counts it",
       of_u ? "are constant, so their effect cannot be learned" : "are constant, so no score counts them");
  tell(t, &rounding,
       "varies by no more than the rounding of 32-bit numbers and is treated as constant; subtract its mean "
       "in the file",
       "vary by no more than the rounding of 32-bit numbers and are treated as constant; subtract their "
       "means in the file");
}

static void tell_unit(const telling *t, const dv_statistics *s, size_t width, bool of_u) {
  const double usual = 1e6, rounding = 6e-8, steps = 64;
  list units = {0}, coarse = {0};
  for (size_t k = 0; k < width; k++) {
    char name[32];
    double deviation = sqrt(s->variance[k]);
    column_name(name, t->data, of_u, k);
    if (!dv_statistics_vary(s, k)) continue;
    if (deviation > usual || deviation < 1 / usual) add(&units, "%s (deviation %.3g)", name, deviation);
    if (deviation < steps * rounding * fabs(s->mean[k]))
      add(&coarse, "%s (deviation %.3g around %.6g)", name, deviation, s->mean[k]);
  }
  tell(t, &units, "is in an unusual unit, which does not matter where columns are standardised",
       "are in unusual units, which does not matter where columns are standardised");
  tell(t, &coarse, "loses digits in 32-bit numbers; subtract its mean in the file",
       "lose digits in 32-bit numbers; subtract their means in the file");
}

/* ---- Columns with the same values ---- */

typedef struct twin {
  uint64_t checksum, seen;
  size_t column;
  bool of_u;
} twin;

static int compare(const void *a, const void *b) {
  const twin *x = a, *y = b;
  if (x->checksum != y->checksum) return x->checksum < y->checksum ? -1 : 1;
  if (x->seen != y->seen) return x->seen < y->seen ? -1 : 1;
  if (x->of_u != y->of_u) return x->of_u ? 1 : -1;
  return (x->column > y->column) - (x->column < y->column);
}

static void collect(twin *to, size_t *count, const dv_statistics *s, size_t width, bool of_u) {
  for (size_t k = 0; k < width; k++)
    if (dv_statistics_vary(s, k)) to[(*count)++] = (twin){s->checksum[k], s->seen[k], k, of_u};
}

static dvbf_status tell_same(const telling *t, size_t n_x, size_t n_u, dvbf_error *error) {
  twin *all = dv_calloc(n_x + n_u + 1, sizeof *all);
  size_t count = 0;
  list same = {0};
  if (!all) return dv_fail_memory(error, "describing the data");
  collect(all, &count, &t->measured.x, n_x, false);
  collect(all, &count, &t->measured.u, n_u, true);
  qsort(all, count, sizeof *all, compare);
  for (size_t i = 1, first = 0; i < count; i++) {
    char name[32], other[32];
    if (all[i].checksum != all[first].checksum || all[i].seen != all[first].seen) {
      first = i;
      continue;
    }
    column_name(name, t->data, all[i].of_u, all[i].column);
    column_name(other, t->data, all[first].of_u, all[first].column);
    add(&same, "%s and %s", other, name);
  }
  dv_free(all);
  tell(t, &same, "have the same values: one of them can be left out",
       "have the same values: one of each can be left out");
  return DVBF_OK;
}

/* ---- Marks of missing values ---- */

static bool is_mark(double value) {
  static const double usual[] = {-999, -9999, -99999, -999.25, -99, 999, 9999, 99999, 65535, -32768, -1e30};
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (value == (double)(float)usual[i]) return true;
  return false;
}

typedef struct counting {
  size_t column, hits, others;
  float mark;
  double sum, square; /* of the others */
  double low, high;
} counting;

static dvbf_status count_mark(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  counting *c = user;
  float value = row[c->column];
  if (value == c->mark) {
    c->hits++;
  } else if (!isnan(value)) {
    c->others++;
    c->sum += (double)value;
    c->square += (double)value * (double)value;
    c->low = fmin(c->low, (double)value);
    c->high = fmax(c->high, (double)value);
  }
  return DVBF_OK;
}

/* A number like -999 at the end of the range, twice or more, and far from all others. */
static dvbf_status tell_marks(const telling *t, size_t n_x, dvbf_error *error) {
  const dvbf_sequences *s = &t->data->train;
  dvbf_status status = DVBF_OK;
  for (size_t k = 0; k < n_x && !status; k++)
    for (int end = 0; end < 2 && !status; end++) {
      double mark = t->measured.x.seen[k] ? (end ? t->measured.x.most[k] : t->measured.x.least[k]) : 0;
      counting c = {.column = k, .mark = (float)mark, .low = INFINITY, .high = -INFINITY};
      if (!is_mark(mark)) continue;
      status = dv_visit_rows(s, NULL, s->n_x, count_mark, &c, error);
      double n = (double)c.others, mean = n > 0 ? c.sum / n : 0;
      double deviation = n > 0 ? sqrt(fmax(0, c.square / n - mean * mean)) : 0;
      double apart = end ? mark - c.high : c.low - mark;
      char name[32], sentence[SENTENCE];
      column_name(name, t->data, false, k);
      if (status || c.hits < 2 || c.others < 2 || !(apart > 3 * deviation) || !(apart > c.high - c.low))
        continue;
      dv_print(
          sentence, sizeof sentence,
          "%s is %g at %zu steps, far from all other values; if that marks missing values, give --missing %g",
          name, mark, c.hits, mark);
      t->each(sentence, t->user);
    }
  return status;
}

/* ---- Steps ---- */

static void tell_few(const telling *t) {
  enum { FEW_TO_TRAIN = 40 };
  const dvbf_data *d = t->data;
  size_t train = dv_sequences_frames(&d->train), rest = dv_sequences_frames(&d->valid);
  char sentence[SENTENCE];
  rest += dv_sequences_frames(&d->test);
  if (train >= FEW_TO_TRAIN || !train || d->train.steps < 2) return;
  snprintf(sentence, sizeof sentence,
           "training sees only %zu steps%s: too few to learn from; 100 are enough for simple data", train,
           rest ? ", as the others are for validation and tests (--split-by none trains on all)" : "");
  t->each(sentence, t->user);
}

/* ---- All warnings ---- */

static dvbf_status tell_columns(telling *t, dvbf_error *error) {
  const dvbf_sequences *s = &t->data->train;
  bool picture = t->data->image_height || (s->n_x >= 16 && t->measured.x.low >= 0 && t->measured.x.high <= 1);
  size_t n_x = picture ? 0 : s->n_x; /* images have black corners, and pixels like their neighbours */
  tell_constant(t, &t->measured.x, n_x, false);
  tell_constant(t, &t->measured.u, s->n_u, true);
  dvbf_status status = tell_same(t, n_x, s->n_u, error);
  if (!status) status = tell_marks(t, n_x, error);
  tell_unit(t, &t->measured.x, n_x, false);
  tell_unit(t, &t->measured.u, s->n_u, true);
  return status;
}

dvbf_status dvbf_data_warnings(const dvbf_data *data, dvbf_message_fn *each, void *user_data,
                               dvbf_error *error) {
  telling t = {.data = data, .each = each, .user = user_data};
  dvbf_status status = dv_sequences_filled(&data->train, "data", "train/", error);
  if (status || !data->train.count || !data->train.n_x) return status;
  for (size_t i = 0; i < data->n_notes; i++) each(data->notes[i], user_data);
  status = dv_measured_of(&t.measured, &data->train, error);
  if (!status) status = tell_columns(&t, error);
  if (!status) tell_few(&t);
  dv_measured_free(&t.measured);
  return status;
}

/* ---- Notes ---- */

dvbf_status dv_data_note(dvbf_data *data, const char *sentence, dvbf_error *error) {
  char(*notes)[256] = dv_realloc(data->notes, data->n_notes + 1, sizeof *notes);
  if (!notes) return dv_fail_memory(error, "describing the data");
  data->notes = notes;
  snprintf(notes[data->n_notes++], sizeof *notes, "%.255s", sentence);
  return DVBF_OK;
}

/* One note for each column, up to NAMES of them. */
static dvbf_status note_outliers(dvbf_data *data, const dv_outliers *found, const char *prefix, bool of_u,
                                 const char *remedy, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < found->count && i < NAMES && !status; i++) {
    const dv_outlier *o = &found->list[i];
    char name[32], more[48] = "", sentence[SENTENCE];
    column_name(name, data, of_u, o->column);
    if (o->count > 1) snprintf(more, sizeof more, " (and %zu more values)", o->count - 1);
    if (i + 1 == NAMES && found->count > NAMES)
      snprintf(more, sizeof more, " (other columns have outliers too)");
    dv_print(sentence, sizeof sentence,
             "%s%s is %.6g at sequence %zu, step %zu (counted from 0)%s, %.2g deviations from all others: %s",
             prefix, name, o->value, o->sequence, o->step, more, o->times, remedy);
    status = dv_data_note(data, sentence, error);
  }
  return status;
}

static dvbf_status measure_parts(dv_statistics *out, dvbf_sequences *const *parts, size_t n_parts, bool of_u,
                                 dvbf_error *error) {
  dv_measure_fn *measure_one = of_u ? dv_statistics_of_u : dv_statistics_of_x;
  dvbf_status status = measure_one(out, parts[0], error);
  for (size_t i = 1; i < n_parts && !status; i++) {
    dv_statistics part;
    status = measure_one(&part, parts[i], error);
    if (!status) dv_statistics_join(out, &part, of_u ? parts[i]->n_u : parts[i]->n_x);
    dv_statistics_free(status ? out : &part);
  }
  return status;
}

/* Outliers of one array. */
static dvbf_status without(dvbf_data *data, dvbf_sequences *s, const dv_statistics *all, const char *prefix,
                           bool of_u, double times, dvbf_error *error) {
  const double worth_telling = 1000;
  const char *remedy = of_u ? "the value before it is used instead (--outliers 0 keeps it)"
                            : "it is treated as missing (--outliers 0 keeps it)";
  dv_outliers found = {0};
  dvbf_status status = times > 0 ? dv_outliers_find(&found, s, of_u, times, all, error) : DVBF_OK;
  bool any = found.count;
  if (!status && !any && !(times > 0 && times <= worth_telling)) {
    dv_free(found.list);
    remedy = "it is kept; --outliers 1000 leaves it out";
    status = dv_outliers_find(&found, s, of_u, worth_telling, all, error);
  }
  if (!status) status = note_outliers(data, &found, prefix, of_u, remedy, error);
  if (!status && any) status = dv_outliers_remove(&found, s, of_u, error);
  dv_free(found.list);
  return status;
}

dvbf_status dv_data_without_outliers(dvbf_data *data, dvbf_sequences *s, dvbf_sequences *const *parts,
                                     size_t n_parts, const char *prefix, double times, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (int of_u = 0; of_u < (s->n_u ? 2 : 1) && !status; of_u++) {
    dv_statistics all;
    status = measure_parts(&all, parts, n_parts, of_u, error);
    if (status) break;
    status = without(data, s, &all, prefix, of_u, times, error);
    dv_statistics_free(&all);
  }
  for (size_t i = 0; i < n_parts; i++) parts[i]->gaps = s->gaps;
  return status;
}
