/* Code without what need not be computed: constants are folded, and what nobody reads is removed. */
#include "base/memory.h"
#include "base/status.h"
#include "export/part.h"

#include <string.h>

/* ---- What a statement reads ---- */

typedef struct question {
  const dvbf_code *code;
  dv_slot slot;
  bool all_constant, reads;
} question;

static void ask(void *user, dvbf_place p, size_t by_direction, int rows, int cols) {
  (void)by_direction, (void)rows, (void)cols;
  question *q = user;
  q->all_constant &= q->code->buffers[p.buffer].constant != NULL;
  /* A read lies within one slot, so that its first number tells. */
  q->reads |= q->slot.size && p.buffer == q->slot.buffer && p.offset >= q->slot.offset &&
              p.offset < q->slot.offset + q->slot.size;
}

bool dv_code_part_reads(const dv_code_part *part, dv_slot_name slot) {
  question q = {.code = part->code, .slot = part->slot[slot]};
  for (int i = 0; part->code && i < part->code->n_statements; i++)
    dv_statement_reads(part->code, &part->code->statements[i], ask, &q);
  return q.reads;
}

int dv_code_part_slot_at(const dv_code_part *part, int buffer, size_t offset) {
  for (int i = 0; i < DV_SLOTS; i++) {
    const dv_slot *s = &part->slot[i];
    if (s->size && s->buffer == buffer && offset >= s->offset && offset < s->offset + s->size) return i;
  }
  return -1;
}

/* ---- Folding ---- */

/* Whether the statement is the only one that writes its buffer, which is no slot, and writes all of it, from
 * constants. */
static bool is_constant(const dv_code_part *part, const dv_statement *s) {
  const dvbf_code *c = part->code;
  question q = {.code = c, .all_constant = true};
  size_t cols = (size_t)s->cols, size = c->buffers[s->out.buffer].size;
  if (s->kind != DV_EACH || s->directions > 1 || s->out.offset || s->out.by_col != 1 ||
      (s->rows > 1 && s->out.by_row != cols) || (size_t)s->rows * cols != size)
    return false;
  for (int i = 0; i < DV_SLOTS; i++)
    if (part->slot[i].size && part->slot[i].buffer == s->out.buffer) return false;
  for (int i = 0; i < c->n_statements; i++)
    if (&c->statements[i] != s && c->statements[i].out.buffer == s->out.buffer) return false;
  dv_statement_reads(c, s, ask, &q);
  return q.all_constant;
}

/* A buffer that is always 0 is left to dv_code_part_derive, which needs no table for it. */
dvbf_status dv_code_part_fold(dv_code_part *part, dvbf_error *error) {
  dvbf_code *c = part->code;
  int kept = 0;
  for (int i = 0; i < c->n_statements; i++) {
    dv_statement *s = &c->statements[i];
    bool number = s->kind != DV_PRODUCT && c->nodes[s->expr].kind == DV_NODE_NUMBER;
    if (number || !is_constant(part, s)) continue;
    dv_code_buffer *b = &c->buffers[s->out.buffer];
    dvbf_real *values = dv_calloc(b->size, sizeof *values);
    if (!values) return dv_fail_memory(error, "writing a model as code");
    for (size_t r = 0; r < (size_t)s->rows; r++)
      for (size_t k = 0; k < (size_t)s->cols; k++)
        values[r * (size_t)s->cols + k] = (dvbf_real)dv_code_evaluate(c, NULL, s->expr, 0, r, k);
    b->constant = values;
    b->own = b->computed = true;
  }
  for (int i = 0; i < c->n_statements; i++)
    if (!c->buffers[c->statements[i].out.buffer].constant) c->statements[kept++] = c->statements[i];
  c->n_statements = kept;
  return DVBF_OK;
}

/* ---- Pruning ---- */

typedef struct live {
  const dvbf_code *code;
  bool **of; /* [buffers][size] numbers that are read later on; NULL: none */
  int directions;
  bool failed;
} live;

static bool *of_buffer(live *l, int buffer) {
  bool **of = &l->of[buffer];
  if (!*of) *of = dv_calloc(l->code->buffers[buffer].size, sizeof **of);
  if (!*of) l->failed = true;
  return *of;
}

static void mark(void *user, dvbf_place p, size_t by_direction, int rows, int cols) {
  live *l = user;
  if (l->code->buffers[p.buffer].constant) return;
  bool *of = of_buffer(l, p.buffer);
  for (int d = 0; of && d < (by_direction ? l->directions : 1); d++)
    for (int r = 0; r < (p.by_row ? rows : 1); r++)
      for (int c = 0; c < (p.by_col ? cols : 1); c++)
        of[p.offset + (size_t)d * by_direction + (size_t)r * p.by_row + (size_t)c * p.by_col] = true;
}

/* Whether anything that the statement writes is read; it is not read before, unless it is added to. */
static bool take_written(live *l, const dv_statement *s) {
  bool *of = l->of[s->out.buffer], any = false;
  int cols = s->kind == DV_EACH || s->kind == DV_PRODUCT ? s->cols : 1;
  for (int d = 0; of && d < s->directions; d++)
    for (int r = 0; r < s->rows; r++)
      for (int c = 0; c < cols; c++) {
        size_t at = s->out.offset + (size_t)d * s->out_by_direction + (size_t)r * s->out.by_row +
                    (size_t)c * s->out.by_col;
        any |= of[at];
        of[at] = of[at] && s->kind == DV_PRODUCT;
      }
  return any;
}

/* Products are added to what stands there; weights that are all 0, as those of hidden units that a model does
 * without, add nothing. */
static bool adds_nothing(const dvbf_code *c, const dv_statement *s) {
  const dvbf_real *w = s->kind == DV_PRODUCT ? c->buffers[s->w.buffer].constant : NULL;
  if (!w || s->w_by_direction) return false;
  for (size_t k = 0; k < (size_t)s->inner; k++)
    for (size_t j = 0; j < (size_t)s->cols; j++)
      if (w[s->w.offset + k * s->w.by_row + j * s->w.by_col] != 0) return false;
  return true;
}

dvbf_status dv_code_part_prune(dv_code_part *part, dvbf_error *error) {
  dvbf_code *c = part->code;
  live l = {.code = c, .of = dv_calloc((size_t)c->n_buffers, sizeof *l.of)};
  bool *wanted = dv_calloc((size_t)c->n_statements + 1, sizeof *wanted);
  l.failed = !l.of || !wanted;
  for (int i = DV_SLOT_OUT; i < DV_SLOTS && !l.failed; i++) {
    const dv_slot *s = &part->slot[i];
    if (s->size) mark(&l, (dvbf_place){s->buffer, s->offset, 0, 1}, 0, 1, (int)s->size);
  }
  for (int i = c->n_statements - 1; i >= 0 && !l.failed; i--) {
    wanted[i] = !adds_nothing(c, &c->statements[i]) && take_written(&l, &c->statements[i]);
    l.directions = c->statements[i].directions;
    if (wanted[i]) dv_statement_reads(c, &c->statements[i], mark, &l);
  }
  int kept = 0;
  for (int i = 0; i < c->n_statements && !l.failed; i++)
    if (wanted[i]) c->statements[kept++] = c->statements[i];
  if (!l.failed) c->n_statements = kept;
  for (int i = 0; l.of && i < c->n_buffers; i++) dv_free(l.of[i]);
  dv_free(l.of);
  dv_free(wanted);
  return l.failed ? dv_fail_memory(error, "writing a model as code") : DVBF_OK;
}

/* ---- Counting ---- */

static double multiplications(const dvbf_code *c, dvbf_expr e) {
  const dv_node *n = &c->nodes[e];
  if (n->kind == DV_NODE_READ || n->kind == DV_NODE_NUMBER) return 0;
  double sum = multiplications(c, n->a) + (n->kind == DVBF_MULTIPLY || n->kind == DVBF_DIVIDE);
  if (n->kind <= DVBF_SMALLER || n->kind == DV_NODE_CHOOSE) sum += multiplications(c, n->b);
  if (n->kind == DV_NODE_CHOOSE) sum += multiplications(c, n->c);
  return sum;
}

double dv_code_part_multiplications(const dv_code_part *part) {
  double sum = 0;
  for (int i = 0; part->code && i < part->code->n_statements; i++) {
    const dv_statement *s = &part->code->statements[i];
    double each = s->kind == DV_PRODUCT ? s->inner : multiplications(part->code, s->expr);
    sum += each * s->directions * s->rows * s->cols;
  }
  return sum;
}
