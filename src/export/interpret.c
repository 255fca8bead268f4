/* Running code without writing it: what constants give, and what test vectors expect. */
#include "base/memory.h"
#include "base/status.h"
#include "export/part.h"

#include <math.h>
#include <string.h>

static size_t index_of(dvbf_place p, size_t by_direction, size_t d, size_t r, size_t c) {
  return p.offset + d * by_direction + r * p.by_row + c * p.by_col;
}

static double read(const dvbf_code *code, double *const *tables, dvbf_place p, size_t at) {
  const dv_code_buffer *b = &code->buffers[p.buffer];
  return b->constant ? (double)b->constant[at] : tables[p.buffer][at];
}

static double apply(int function, double a, double b) {
  switch (function) {
  case DVBF_ADD: return a + b;
  case DVBF_SUBTRACT: return a - b;
  case DVBF_MULTIPLY: return a * b;
  case DVBF_DIVIDE: return a / b;
  case DVBF_LARGER: return a < b ? b : a;
  case DVBF_SMALLER: return a > b ? b : a;
  case DVBF_EXP_OF: return exp(a);
  case DVBF_LOG_OF: return log(a);
  case DVBF_SQRT_OF: return sqrt(a);
  case DVBF_TANH_OF: return tanh(a);
  case DVBF_SIGMOID_OF: return 1 / (1 + exp(-a));
  case DVBF_SIN_OF: return sin(a);
  case DVBF_COS_OF: return cos(a);
  default: return fabs(a);
  }
}

double dv_code_evaluate(const dvbf_code *code, double *const *tables, dvbf_expr e, size_t d, size_t r,
                        size_t c) {
  const dv_node *n = &code->nodes[e];
  if (n->kind == DV_NODE_NUMBER) return n->number;
  if (n->kind == DV_NODE_READ)
    return read(code, tables, n->place, index_of(n->place, n->by_direction, d, r, c));
  double a = dv_code_evaluate(code, tables, n->a, d, r, c);
  if (n->kind == DV_NODE_CHOOSE) return dv_code_evaluate(code, tables, a > 0 ? n->b : n->c, d, r, c);
  return apply(n->kind, a, n->kind <= DVBF_SMALLER ? dv_code_evaluate(code, tables, n->b, d, r, c) : 0);
}

/* One entry of a product, or of a sum or the like. */
static double result_of(const dvbf_code *code, double *const *tables, const dv_statement *s, size_t d,
                        size_t r, size_t c) {
  if (s->kind == DV_EACH) return dv_code_evaluate(code, tables, s->expr, d, r, c);
  double result = s->kind == DV_MOST ? -INFINITY : 0;
  if (s->kind == DV_PRODUCT) {
    result = tables[s->out.buffer][index_of(s->out, s->out_by_direction, d, r, c)];
    for (size_t k = 0; k < (size_t)s->inner; k++)
      result += read(code, tables, s->x, index_of(s->x, s->x_by_direction, d, r, k)) *
                read(code, tables, s->w, index_of(s->w, s->w_by_direction, d, k, c));
    return result;
  }
  for (size_t k = 0; k < (size_t)s->cols; k++) {
    double value = dv_code_evaluate(code, tables, s->expr, d, r, k);
    result = s->kind == DV_SUM ? result + value : value > result ? value : result;
  }
  return result;
}

static void run(const dvbf_code *code, double *const *tables) {
  for (int i = 0; i < code->n_statements; i++) {
    const dv_statement *s = &code->statements[i];
    size_t cols = s->kind == DV_EACH || s->kind == DV_PRODUCT ? (size_t)s->cols : 1;
    for (size_t d = 0; d < (size_t)s->directions; d++)
      for (size_t r = 0; r < (size_t)s->rows; r++)
        for (size_t c = 0; c < cols; c++)
          tables[s->out.buffer][index_of(s->out, s->out_by_direction, d, r, c)] =
              result_of(code, tables, s, d, r, c);
  }
}

static void copy_out(double *to, dv_slot slot, double *const *tables) {
  if (to && slot.size) memcpy(to, tables[slot.buffer] + slot.offset, slot.size * sizeof *to);
}

dvbf_status dv_code_part_run(const dv_code_part *part, const double *const in[DV_INPUTS], double *out,
                             double *variance, double *slopes, dvbf_error *error) {
  const dvbf_code *code = part->code;
  double **tables = dv_calloc((size_t)code->n_buffers, sizeof *tables);
  bool done = tables;
  for (int i = 0; i < code->n_buffers && done; i++)
    if (!code->buffers[i].constant)
      done = (tables[i] = dv_calloc(code->buffers[i].size, sizeof **tables)) != NULL;
  for (int i = 0; i < DV_INPUTS && done; i++) {
    dv_slot s = part->slot[i];
    if (s.size && in[i]) memcpy(tables[s.buffer] + s.offset, in[i], s.size * sizeof **tables);
  }
  if (done) {
    run(code, tables);
    copy_out(out, part->slot[DV_SLOT_OUT], tables);
    copy_out(variance, part->slot[DV_SLOT_VARIANCE], tables);
    copy_out(slopes, part->slot[DV_SLOT_SLOPES], tables);
  }
  for (int i = 0; tables && i < code->n_buffers; i++) dv_free(tables[i]);
  dv_free(tables);
  return done ? DVBF_OK : dv_fail_memory(error, "exporting a model");
}
