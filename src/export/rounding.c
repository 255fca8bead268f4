#include "export/rounding.h"

#include "base/memory.h"
#include "base/status.h"
#include "export/constants.h"
#include "export/part.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <string.h>

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
    if (done[at] || !dv_weights_small(rows, cols)) continue;
    dv_weights_round(values + at, rows, cols, format);
    memset(done + at, true, rows * cols);
  }
}

/* An exact model keeps its numbers, of which there are few. */
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
  const dv_code_part *all[] = {&parts.first, &parts.advance, &parts.move, &parts.emission};
  for (int i = 0; i < 4 && !status; i++) round_part(all[i], m, copy->parameters.values, done, format);
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
  dvbf_settings *how = NULL;
  dvbf_estimates *estimates = NULL;
  dvbf_sequences_info *info = NULL;
  double all, *by_column = dv_calloc(s->n_x, sizeof *by_column), *by_step = NULL;
  dvbf_status status = by_column ? DVBF_OK : dv_fail_memory(error, "measuring errors");
  if (!status) status = dvbf_settings_new(&how, "filter", error);
  if (!status) status = dvbf_settings_set(how, "forecast", "on", error);
  if (!status) status = dvbf_settings_set(how, "samples", "32", error);
  if (!status) status = dvbf_estimate(&estimates, m, s, how, error);
  if (!status) status = dvbf_sequences_describe(&info, s, error);
  if (!status && !(by_step = dv_calloc(estimates->steps, sizeof *by_step)))
    status = dv_fail_memory(error, "measuring errors");
  if (!status) status = dvbf_estimates_rmse(&all, by_column, by_step, estimates, s, error);
  if (!status) *out = in_deviations(by_column, &info->x);
  dv_free(by_step);
  dv_free(by_column);
  dvbf_sequences_info_free(info);
  dvbf_estimates_free(estimates);
  dvbf_settings_free(how);
  return status;
}
