/* Numbers of a model as constant arrays of C (dv_constants_take, dv_constants_write): equal arrays are
 * written once; weights may be bfloat16 or int8 with a factor per column. Also a model with rounded weights
 * and the error that rounding makes (dv_rounded_new, dv_rounding_error). */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/c_file.h"
#include "infer/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void dv_constants_clear(dv_constants *c) {
  dv_free(c->list);
  *c = (dv_constants){0};
}

/* ---- Formats ---- */

/* The upper half of a float, rounded to the nearest, ties to even. */
static uint16_t bfloat16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float float_of(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Value of 1 of an int8 in a column. */
static float factor_of(const dvbf_real *values, size_t rows, size_t cols, size_t column) {
  double most = 0;
  for (size_t r = 0; r < rows; r++) most = fmax(most, fabs((double)values[r * cols + column]));
  return most > 0 ? (float)(most / 127) : 1.0f;
}

static int int8_of(dvbf_real x, float factor) {
  double n = rint((double)x / (double)factor);
  return (int)fmin(fmax(n, -127), 127);
}

static void round_weights(dvbf_real *values, size_t rows, size_t cols, int format) {
  for (size_t c = 0; c < cols; c++) {
    float factor = format == DV_WEIGHTS_INT8 ? factor_of(values, rows, cols, c) : 1;
    for (size_t r = 0; r < rows; r++) {
      dvbf_real *x = &values[r * cols + c];
      if (format == DV_WEIGHTS_INT8) *x = (dvbf_real)((float)int8_of(*x, factor) * factor);
      if (format == DV_WEIGHTS_BFLOAT16) *x = (dvbf_real)float_of(bfloat16_of((float)*x));
    }
  }
}

/* A matrix of few numbers saves nothing. */
static bool is_small(size_t rows, size_t cols) {
  return rows > 1 && rows * cols >= 32;
}

static bool is_narrow(size_t rows, size_t cols) {
  return cols < 16 && rows >= 16;
}

/* ---- List of arrays ---- */

/* An unrounded weight is an array like others. */
static bool is_plain(const dv_constant *k) {
  return !k->transposed && k->format == DV_WEIGHTS_FLOAT;
}

static bool same(const dv_constant *a, const dv_constant *b) {
  size_t n = a->rows * a->cols;
  bool alike = (is_plain(a) && is_plain(b)) || (a->weight && b->weight && a->cols == b->cols);
  return n == b->rows * b->cols && alike &&
         (a->values == b->values || !memcmp(a->values, b->values, n * sizeof *a->values));
}

static dv_constant make(const dv_constants *c, const dvbf_real *values, size_t rows, size_t cols,
                        bool weight) {
  return (dv_constant){.values = values,
                       .rows = rows,
                       .cols = cols,
                       .weight = weight,
                       .transposed = weight && is_narrow(rows, cols),
                       .format = weight && is_small(rows, cols) ? c->format : DV_WEIGHTS_FLOAT};
}

static bool named(const dv_constants *c, const char *name) {
  for (int i = 0; i < c->count; i++)
    if (!strcmp(c->list[i].name, name)) return true;
  return false;
}

static void choose_name(const dv_constants *c, const char *name, char out[64]) {
  char base[48];
  dv_identifier(base, sizeof base, name ? name : "constant");
  snprintf(out, 64, "%s", base);
  for (int i = 2; named(c, out); i++) snprintf(out, 64, "%s_%d", base, i);
}

const dv_constant *dv_constants_take(dv_constants *c, const dvbf_real *values, size_t rows, size_t cols,
                                     bool weight, const char *name) {
  dv_constant new = make(c, values, rows, cols, weight);
  for (int i = 0; i < c->count; i++)
    if (same(&c->list[i], &new)) return &c->list[i];
  return dv_constants_add(c, values, rows, cols, weight, name);
}

const dv_constant *dv_constants_add(dv_constants *c, const dvbf_real *values, size_t rows, size_t cols,
                                    bool weight, const char *name) {
  dv_constant new = make(c, values, rows, cols, weight);
  dv_constant *list = dv_realloc(c->list, (size_t)c->count + 1, sizeof *list);
  if (!list) {
    c->failed = true;
    return NULL;
  }
  c->list = list;
  choose_name(c, name, new.name);
  c->list[c->count] = new;
  return &c->list[c->count++];
}

/* ---- Writing ---- */

/* The shortest text that reads back as the same float. */
static void put_float(dv_text *t, double x) {
  char text[40];
  for (int digits = 6; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    float back = 0;
    if (sscanf(text, "%f", &back) == 1 && back == (float)x) break;
  }
  bool whole = !strpbrk(text, ".e");
  dv_text_append(t, text, strlen(text));
  dv_text_append(t, whole ? ".0f" : "f", whole ? 3 : 1);
}

/* There are ten numbers in a line. */
static void put_separator(dv_text *t, size_t i) {
  const char *text = i % 10 ? ", " : i ? ",\n    " : "\n    ";
  dv_text_append(t, text, strlen(text));
}

static void put_value(dv_text *t, const dv_constant *k, size_t row, size_t col, float factor) {
  dvbf_real x = k->values[row * k->cols + col];
  if (k->format == DV_WEIGHTS_FLOAT)
    put_float(t, (double)x);
  else
    dv_text_put(t, "%d", k->format == DV_WEIGHTS_INT8 ? int8_of(x, factor) : (int)bfloat16_of((float)x));
}

static void put_array(dv_text *t, const dv_constant *k, const char *prefix) {
  static const char *const types[] = {"float", "uint16_t", "int8_t"};
  size_t n = k->rows * k->cols;
  dv_text_put(t, "\nstatic const %s %s_%s[%zu] = {", types[k->format], prefix, k->name, n);
  for (size_t i = 0; i < n; i++) {
    size_t row = k->transposed ? i % k->rows : i / k->cols, col = k->transposed ? i / k->rows : i % k->cols;
    float factor = k->format == DV_WEIGHTS_INT8 ? factor_of(k->values, k->rows, k->cols, col) : 1;
    put_separator(t, i);
    put_value(t, k, row, col, factor);
  }
  dv_text_put(t, "};\n");
  if (k->format != DV_WEIGHTS_INT8) return;
  dv_text_put(t, "static const float %s_%s_factor[%zu] = {", prefix, k->name, k->cols);
  for (size_t i = 0; i < k->cols; i++) {
    put_separator(t, i);
    put_float(t, (double)factor_of(k->values, k->rows, k->cols, i));
  }
  dv_text_put(t, "};\n");
}

dvbf_status dv_constants_check(const dv_constants *c, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < c->count; i++) {
    const dv_constant *k = &c->list[i];
    for (size_t j = 0; j < k->rows * k->cols && !status; j++) {
      double x = (double)k->values[j];
      status = dv_check_finite(&x, 1, error);
    }
  }
  return status;
}

void dv_constants_write(dv_text *t, const dv_constants *c, const char *prefix) {
  DV_PLAIN_NUMBERS;
  t->failed |= c->failed;
  for (int i = 0; i < c->count; i++) put_array(t, &c->list[i], prefix);
}

size_t dv_constants_bytes(const dv_constants *c) {
  static const size_t size[] = {sizeof(float), sizeof(uint16_t), sizeof(int8_t)};
  size_t bytes = 0;
  for (int i = 0; i < c->count; i++) {
    const dv_constant *k = &c->list[i];
    bytes += k->rows * k->cols * size[k->format];
    if (k->format == DV_WEIGHTS_INT8) bytes += k->cols * sizeof(float);
  }
  return bytes;
}

/* ---- Rounding ---- */

/* Rounds the weights of all products of a part, each once. */
static void round_part(const dv_code_part *part, const dvbf_model *m, dvbf_real *values, bool *done,
                       int format) {
  const dvbf_code *c = part->code;
  for (int i = 0; c && i < c->n_statements; i++) {
    const dv_statement *s = &c->statements[i];
    const dvbf_real *w = s->kind == DV_PRODUCT ? c->buffers[s->w.buffer].constant : NULL;
    if (!w || w < m->parameters.values || w >= m->parameters.values + m->parameters.size) continue;
    size_t at = (size_t)(w - m->parameters.values) + s->w.offset, rows = (size_t)s->inner,
           cols = (size_t)s->cols;
    if (done[at] || !is_small(rows, cols)) continue;
    round_weights(values + at, rows, cols, format);
    memset(done + at, true, rows * cols);
  }
}

/* An exact model keeps its few numbers. */
static dvbf_status round_model(dvbf_model *copy, const dvbf_model *m, int format, dvbf_error *error) {
  dv_parts parts = {0};
  size_t size = m->parameters.size;
  *copy = *m;
  copy->others = NULL;
  copy->n_others = 0;
  copy->linear = NULL;
  copy->parameters.values = dv_calloc_aligned(size, sizeof *copy->parameters.values);
  bool *done = dv_calloc(size + 1, sizeof *done);
  dvbf_status status = copy->parameters.values && done ? DVBF_OK : dv_fail_memory(error, "rounding weights");
  if (!status) memcpy(copy->parameters.values, m->parameters.values, size * sizeof *m->parameters.values);
  if (!status && !m->type->exact_system) status = dv_parts_init(&parts, m, false, error);
  for (int i = 0; i < DV_PARTS && !status; i++)
    round_part(&parts.all[i], m, copy->parameters.values, done, format);
  dv_parts_clear(&parts);
  dv_free(done);
  return status;
}

dvbf_status dv_rounded_new(dvbf_model **out, const dvbf_model *m, int format, dvbf_error *error) {
  int n = dv_model_members(m);
  dvbf_model *copies = dv_calloc((size_t)n, sizeof *copies); /* all members in one block */
  dvbf_model **others = dv_calloc((size_t)n, sizeof *others);
  dvbf_status status = copies && others ? DVBF_OK : dv_fail_memory(error, "rounding weights");
  for (int k = 0; k < n && !status; k++) {
    status = round_model(&copies[k], dv_model_member(m, k), format, error);
    if (k) others[k - 1] = &copies[k];
  }
  if (copies) {
    copies->others = others;
    copies->n_others = n - 1;
  }
  if (status)
    dv_rounded_free(copies);
  else
    *out = copies;
  return status;
}

void dv_rounded_free(dvbf_model *m) {
  if (!m) return;
  int n = dv_model_members(m);
  dv_free(m->others);
  for (int k = 0; k < n; k++) dv_free(m[k].parameters.values);
  dv_free(m);
}

static double in_deviations(const double *by_column, const dvbf_columns *x) {
  double sum = 0, n = 0;
  for (size_t i = 0; i < x->width; i++) {
    double deviation = x->column[i].deviation;
    if (!(deviation > 0) || !isfinite(by_column[i])) continue;
    sum += by_column[i] * by_column[i] / (deviation * deviation);
    n++;
  }
  return n > 0 ? sqrt(sum / n) : (double)NAN;
}

dvbf_status dv_rounding_error(double *out, const dvbf_model *m, const dvbf_sequences *s, dvbf_error *error) {
  const dv_estimate_request how = {.kind = DV_FILTER, .forecast = true, .samples = 32, .seed = 1};
  dvbf_estimates *estimates = NULL;
  dvbf_sequences_info *info = NULL;
  double all, *by_column = dv_calloc(s->n_x, sizeof *by_column), *by_step = NULL;
  dvbf_status status = by_column ? DVBF_OK : dv_fail_memory(error, "measuring errors");
  if (!status) status = dv_estimate(&estimates, m, s, &how, error);
  if (!status) status = dvbf_sequences_describe(&info, s, error);
  if (!status && !(by_step = dv_calloc(estimates->steps, sizeof *by_step)))
    status = dv_fail_memory(error, "measuring errors");
  if (!status) status = dvbf_estimates_rmse(&all, by_column, by_step, estimates, s, error);
  if (!status) *out = in_deviations(by_column, &info->x);
  DV_FREE(by_step, by_column);
  dvbf_sequences_info_free(info);
  dvbf_estimates_free(estimates);
  return status;
}
