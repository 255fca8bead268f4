/* Transformations of a part's statements: derivatives (dv_code_part_derive), folding of constants, pruning of
 * what nobody reads, counting multiplications, and running in double, which test vectors are made by
 * (dv_code_part_run). Differentiation goes forward, in directions: a model has few inputs (z and u) and many
 * outputs (x). */
#include "base/error.h"
#include "base/memory.h"
#include "export/part.h"
#include "ops/emit.h"

#include <math.h>
#include <string.h>

/* ---- Derivatives ---- */

/* Each number of an input is a direction, and every table that depends on an input gets a table of
 * derivatives in the directions of that input, f(a, b)' = f_a a' + f_b b'. */

typedef struct derivation {
  const dvbf_code *from;
  dvbf_code *to;
  const dv_slot *inputs;     /* [DV_INPUTS] */
  bool *zero;                /* [buffers of from] all of it is 0 */
  int (*slope)[DV_INPUTS];   /* [buffers of from] tables of derivatives by each input, -1: there is none */
  int directions[DV_INPUTS]; /* numbers of the input; 0: it is not differentiated by */
  int by;                    /* the input of the moment */
  bool rows;                 /* of weights may be read */
  dv_statement now;          /* that is being derived */
  bool active;               /* it depends on an input */
  dvbf_expr *copies;         /* [nodes of from] in the new code, -1: not yet */
} derivation;

/* ---- Copies of expressions ---- */

/* Whether the expression depends on the input of the moment. */
static bool reads_slope(const derivation *d, dvbf_expr e) {
  const dv_node *n = &d->from->nodes[e];
  if (n->kind == DV_NODE_READ) return d->slope[n->place.buffer][d->by] >= 0;
  if (n->kind == DV_NODE_NUMBER) return false;
  bool any = reads_slope(d, n->a);
  if (n->kind <= DVBF_SMALLER || n->kind == DV_NODE_CHOOSE) any |= reads_slope(d, n->b);
  return any || (n->kind == DV_NODE_CHOOSE && reads_slope(d, n->c));
}

/* A separate table for a result that derivatives read as well. */
static dvbf_expr keep(derivation *d, dvbf_expr e) {
  dvbf_place room = dvbf_code_room(d->to, d->now.rows, d->now.cols);
  if (d->to->refused) return e;
  dvbf_code_each(d->to, room, d->now.rows, d->now.cols, e);
  return dvbf_code_read(d->to, room);
}

/* The expression in the new code. Derivatives need results of functions again, perhaps for each direction. */
static dvbf_expr value_of(derivation *d, dvbf_expr e) {
  const dv_node n = d->from->nodes[e];
  dvbf_expr value = d->copies[e];
  if (value >= 0) return value;
  if (n.kind == DV_NODE_NUMBER)
    value = dvbf_code_number(d->to, n.number);
  else if (n.kind == DV_NODE_READ)
    value = d->zero[n.place.buffer] ? dvbf_code_number(d->to, 0) : dvbf_code_read(d->to, n.place);
  else if (n.kind == DV_NODE_CHOOSE)
    value = dvbf_code_choose(d->to, value_of(d, n.a), value_of(d, n.b), value_of(d, n.c));
  else if (n.kind <= DVBF_SMALLER)
    value = dvbf_code_binary(d->to, (dvbf_function)n.kind, value_of(d, n.a), value_of(d, n.b));
  else
    value = dvbf_code_unary(d->to, (dvbf_function)n.kind, value_of(d, n.a));
  if (d->active && n.kind > DVBF_SMALLER && n.kind < DV_NODE_READ) value = keep(d, value);
  return d->copies[e] = value;
}

/* ---- Derivatives of expressions ---- */

static dvbf_expr slope_of(derivation *d, dvbf_expr e);

static dvbf_expr read_slope(derivation *d, dvbf_place place) {
  int table = d->slope[place.buffer][d->by];
  size_t size = d->from->buffers[place.buffer].size;
  place.buffer = table;
  dvbf_expr e = dvbf_code_read(d->to, place);
  if (!d->to->refused) d->to->nodes[e].by_direction = size;
  return e;
}

static dvbf_expr slope_of_two(derivation *d, const dv_node *n) {
  dvbf_code *c = d->to;
  dvbf_expr a = value_of(d, n->a), b = value_of(d, n->b);
  dvbf_expr da = slope_of(d, n->a), db = slope_of(d, n->b);
  if (n->kind == DVBF_ADD) return dv_plus(c, da, db);
  if (n->kind == DVBF_SUBTRACT) return dv_minus(c, da, db);
  if (n->kind == DVBF_MULTIPLY) return dv_plus(c, dv_times(c, da, b), dv_times(c, a, db));
  if (n->kind == DVBF_LARGER) return dvbf_code_choose(c, dv_minus(c, a, b), da, db);
  if (n->kind == DVBF_SMALLER) return dvbf_code_choose(c, dv_minus(c, b, a), da, db);
  if (!reads_slope(d, n->b)) return dv_over(c, da, b);
  dvbf_expr by = keep(d, dv_over(c, dvbf_code_number(c, 1), b));
  return dv_times(c, by, dv_minus(c, da, dv_times(c, dv_times(c, a, by), db)));
}

static dvbf_expr slope_of_one(derivation *d, dvbf_expr e, const dv_node *n) {
  dvbf_code *c = d->to;
  dvbf_expr da = slope_of(d, n->a), a = value_of(d, n->a), y = value_of(d, e);
  dvbf_expr one = dvbf_code_number(c, 1), none = dvbf_code_number(c, 0);
  switch (n->kind) {
  case DVBF_EXP_OF: return dv_times(c, y, da);
  case DVBF_LOG_OF: return dv_over(c, da, a);
  case DVBF_SQRT_OF: return dv_over(c, da, dv_times(c, dvbf_code_number(c, 2), y));
  case DVBF_TANH_OF: return dv_times(c, dv_minus(c, one, dv_times(c, y, y)), da);
  case DVBF_SIGMOID_OF: return dv_times(c, dv_times(c, y, dv_minus(c, one, y)), da);
  case DVBF_SIN_OF: return dv_times(c, keep(d, dvbf_code_unary(c, DVBF_COS_OF, a)), da);
  case DVBF_COS_OF: return dv_minus(c, none, dv_times(c, keep(d, dvbf_code_unary(c, DVBF_SIN_OF, a)), da));
  default: return dvbf_code_choose(c, a, da, dv_minus(c, none, da)); /* |a| */
  }
}

static dvbf_expr slope_of(derivation *d, dvbf_expr e) {
  const dv_node n = d->from->nodes[e];
  if (!reads_slope(d, e)) return dvbf_code_number(d->to, 0);
  if (n.kind == DV_NODE_READ) return read_slope(d, n.place);
  if (n.kind == DV_NODE_CHOOSE)
    return dvbf_code_choose(d->to, value_of(d, n.a), slope_of(d, n.b), slope_of(d, n.c));
  if (n.kind <= DVBF_SMALLER) return slope_of_two(d, &n);
  return slope_of_one(d, e, &n);
}

/* ---- Statements ---- */

/* Clears a table of derivatives, or the part that a statement writes. */
static void clear_slopes(derivation *d, dvbf_place at, size_t by_direction, int rows, int cols) {
  dv_code_add(d->to, (dv_statement){.kind = DV_EACH,
                                    .directions = d->directions[d->by],
                                    .rows = rows,
                                    .cols = cols,
                                    .out = at,
                                    .out_by_direction = by_direction,
                                    .expr = dvbf_code_number(d->to, 0)});
}

/* The table of derivatives of a buffer, which is made, as zeros, if there is none. */
static int slopes_for(derivation *d, int buffer) {
  int *table = &d->slope[buffer][d->by], directions = d->directions[d->by];
  if (*table >= 0) return *table;
  size_t size = d->from->buffers[buffer].size, all;
  if (!dv_multiply(size, (size_t)directions, &all) || all > INT32_MAX) {
    dvbf_code_refuse(d->to, "derivatives of %zu numbers in %d directions are too many to export", size,
                     directions);
    return -1;
  }
  int new = dv_code_buffer_add(d->to, all);
  if (new < 0) return -1;
  clear_slopes(d, (dvbf_place){new, 0, size, 1}, size, 1, (int)size);
  return *table = new;
}

static void add_slopes(derivation *d, dv_statement s) {
  int table = slopes_for(d, s.out.buffer);
  if (table < 0) return;
  s.directions = d->directions[d->by];
  s.out_by_direction = d->from->buffers[s.out.buffer].size;
  s.out.buffer = table;
  dv_code_add(d->to, s);
}

/* If x is the input itself, its derivatives are the identity, and those of the product are the rows of w. */
static bool is_input(const derivation *d, const dv_statement *s) {
  const dv_slot *in = &d->inputs[d->by];
  return d->rows && s->rows == 1 && s->x.buffer == in->buffer && s->x.offset == in->offset &&
         s->x.by_col == 1 && (size_t)s->inner == in->size;
}

static void add_rows(derivation *d) {
  dv_statement s = d->now;
  int table = slopes_for(d, s.out.buffer);
  if (table < 0) return;
  dvbf_place to = {table, s.out.offset, d->from->buffers[s.out.buffer].size, s.out.by_col};
  dvbf_code_each(d->to, to, s.inner, s.cols,
                 dv_plus(d->to, dvbf_code_read(d->to, to), dvbf_code_read(d->to, s.w)));
}

static void derive_product_by(derivation *d) {
  dv_statement by_x = d->now, by_w = d->now;
  by_x.x.buffer = d->slope[d->now.x.buffer][d->by];
  by_w.w.buffer = d->slope[d->now.w.buffer][d->by];
  by_x.x_by_direction = d->from->buffers[d->now.x.buffer].size;
  by_w.w_by_direction = d->from->buffers[d->now.w.buffer].size;
  if (by_x.x.buffer >= 0 && !d->zero[d->now.w.buffer] && is_input(d, &d->now))
    add_rows(d);
  else if (by_x.x.buffer >= 0 && !d->zero[d->now.w.buffer])
    add_slopes(d, by_x);
  if (by_w.w.buffer >= 0 && !d->zero[d->now.x.buffer]) add_slopes(d, by_w);
}

static void derive_product(derivation *d) {
  for (d->by = 0; d->by < DV_INPUTS; d->by++)
    if (d->directions[d->by]) derive_product_by(d);
  if (!d->zero[d->now.x.buffer] && !d->zero[d->now.w.buffer]) dv_code_add(d->to, d->now);
}

/* The derivatives of a table by the present input. Those of a maximum are those of the largest number;
 * `value` is the expression in the new code. */
static void derive_table_by(derivation *d, dvbf_expr value) {
  dv_statement s = d->now;
  int table = d->slope[s.out.buffer][d->by];
  if (!reads_slope(d, s.expr)) {
    if (table >= 0)
      clear_slopes(d, (dvbf_place){table, s.out.offset, s.out.by_row, s.out.by_col},
                   d->from->buffers[s.out.buffer].size, s.rows, dv_statement_width(&s));
    return;
  }
  s.expr = slope_of(d, s.expr);
  if (s.kind == DV_MOST) {
    dvbf_expr most = dvbf_code_read(d->to, (dvbf_place){s.out.buffer, s.out.offset, s.out.by_row, 0});
    s.kind = DV_SUM;
    s.expr = dvbf_code_choose(d->to, dv_minus(d->to, most, value), dvbf_code_number(d->to, 0), s.expr);
  }
  add_slopes(d, s);
}

/* Derivatives come before the value, which may overwrite what they read; but those of a maximum need the
 * value. */
static void derive_table(derivation *d) {
  dv_statement s = d->now;
  d->active = false;
  for (d->by = 0; d->by < DV_INPUTS; d->by++) d->active |= d->directions[d->by] && reads_slope(d, s.expr);
  s.expr = value_of(d, s.expr);
  if (s.kind == DV_MOST) dv_code_add(d->to, s);
  for (d->by = 0; d->by < DV_INPUTS; d->by++)
    if (d->directions[d->by]) derive_table_by(d, s.expr);
  if (s.kind != DV_MOST) dv_code_add(d->to, s);
}

static void derive_all(derivation *d) {
  for (int i = 0; i < d->from->n_statements && !d->to->refused; i++) {
    d->now = d->from->statements[i];
    for (int k = 0; k < d->from->n_nodes; k++) d->copies[k] = -1;
    if (d->zero[d->now.out.buffer]) continue;
    if (d->now.kind == DV_PRODUCT)
      derive_product(d);
    else
      derive_table(d);
  }
}

/* ---- Derivative of a part ---- */

static void copy_buffers(derivation *d) {
  for (int i = 0; i < d->from->n_buffers; i++) {
    int at = dv_code_buffer_add(d->to, d->from->buffers[i].size);
    if (at < 0) return;
    d->to->buffers[at] = d->from->buffers[i];
    d->to->buffers[at].own = false;
  }
}

bool dv_code_part_has_slot(const dv_code_part *p, int buffer) {
  for (int i = 0; i < DV_SLOTS; i++)
    if (p->slot[i].size && p->slot[i].buffer == buffer) return true;
  return false;
}

/* Buffers that nothing but zeros is written to. */
static void find_zeros(derivation *d, const dv_code_part *from, bool quiet) {
  const dvbf_code *c = d->from;
  for (int i = 0; i < c->n_buffers; i++) d->zero[i] = false;
  for (int i = 0; i < c->n_statements; i++) d->zero[c->statements[i].out.buffer] = true;
  for (int i = 0; i < c->n_statements; i++) {
    const dv_statement *s = &c->statements[i];
    bool zero =
        s->kind == DV_EACH && c->nodes[s->expr].kind == DV_NODE_NUMBER && c->nodes[s->expr].number == 0;
    if (!zero) d->zero[s->out.buffer] = false;
  }
  for (int i = 0; i < c->n_buffers; i++)
    if (dv_code_part_has_slot(from, i)) d->zero[i] = false;
  if (quiet && from->slot[DV_SLOT_NOISE].size) d->zero[from->slot[DV_SLOT_NOISE].buffer] = true;
}

/* Direction k of an input is that of its k-th number. */
static void begin_slopes(derivation *d, const dv_code_part *from) {
  for (d->by = 0; d->by < DV_INPUTS; d->by++) {
    dv_slot s = from->slot[d->by];
    if (!d->directions[d->by]) continue;
    int table = slopes_for(d, s.buffer);
    if (table < 0) return;
    size_t size = d->from->buffers[s.buffer].size;
    dvbf_place diagonal = {table, s.offset, size + 1, 1};
    dvbf_code_each(d->to, diagonal, (int)s.size, 1, dvbf_code_number(d->to, 1));
  }
}

/* Those of the result, of all inputs below each other. */
static void end_slopes(derivation *d, dv_code_part *out) {
  dv_slot s = out->slot[DV_SLOT_OUT];
  int n = (int)s.size, first = 0;
  for (int i = 0; i < DV_INPUTS; i++) out->directions += d->directions[i];
  if (!out->directions) return;
  dvbf_place room = dvbf_code_room(d->to, out->directions, n);
  for (d->by = 0; d->by < DV_INPUTS && !d->to->refused; d->by++) {
    int count = d->directions[d->by], table = count ? slopes_for(d, s.buffer) : -1;
    if (table < 0) continue;
    dvbf_place from = {table, s.offset, d->from->buffers[s.buffer].size, 1}, to = room;
    to.offset = (size_t)first * s.size;
    dvbf_code_each(d->to, to, count, n, dvbf_code_read(d->to, from));
    first += count;
  }
  out->slot[DV_SLOT_SLOPES] = (dv_slot){room.buffer, 0, (size_t)out->directions * s.size};
}

static dvbf_status derive(derivation *d, dv_code_part *out, const dv_code_part *from,
                          const dv_derivation *how, dvbf_error *error) {
  for (int i = 0; i < d->from->n_buffers; i++)
    for (int k = 0; k < DV_INPUTS; k++) d->slope[i][k] = -1;
  copy_buffers(d);
  find_zeros(d, from, how->quiet);
  for (int i = 0; i < DV_INPUTS; i++) d->directions[i] = how->by[i] ? (int)from->slot[i].size : 0;
  begin_slopes(d, from);
  derive_all(d);
  end_slopes(d, out);
  dvbf_status status = dv_code_status(d->to, error);
  if (!status) status = dv_code_part_prune(out, error);
  return status;
}

dvbf_status dv_code_part_derive(dv_code_part *out, const dv_code_part *from, const dv_derivation *how,
                                dvbf_error *error) {
  *out = *from;
  if (!from->code) return DVBF_OK;
  if (how->mean_only) out->slot[DV_SLOT_VARIANCE] = (dv_slot){0};
  out->code = dv_code_new();
  size_t buffers = (size_t)from->code->n_buffers + 1;
  derivation d = {.from = from->code,
                  .inputs = from->slot,
                  .rows = how->rows,
                  .to = out->code,
                  .zero = dv_calloc(buffers, sizeof *d.zero),
                  .slope = dv_calloc(buffers, sizeof *d.slope),
                  .copies = dv_calloc((size_t)from->code->n_nodes + 1, sizeof *d.copies)};
  dvbf_status status = d.to && d.zero && d.slope && d.copies
                           ? derive(&d, out, from, how, error)
                           : dv_fail_memory(error, "writing a model as code");
  DV_FREE(d.zero, d.slope, d.copies);
  return status;
}

void dv_code_part_clear(dv_code_part *part) {
  dv_code_free(part->code);
  *part = (dv_code_part){0};
}

/* ---- Reads of a statement ---- */

typedef struct question {
  const dvbf_code *code;
  dv_slot slot;
  bool all_constant, reads;
} question;

static void ask(void *user, dvbf_place p, size_t by_direction, int rows, int cols) {
  question *q = user;
  q->all_constant &= q->code->buffers[p.buffer].constant != NULL;
  /* A read lies within one slot, so its first number identifies it. */
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

/* ---- Values ---- */

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

/* The value of an expression in direction d at (r, c). tables [buffers] hold what statements have written;
 * NULL: the expression reads constants alone. */
static double evaluate(const dvbf_code *code, double *const *tables, dvbf_expr e, size_t d, size_t r,
                       size_t c) {
  const dv_node *n = &code->nodes[e];
  if (n->kind == DV_NODE_NUMBER) return n->number;
  if (n->kind == DV_NODE_READ)
    return read(code, tables, n->place, index_of(n->place, n->by_direction, d, r, c));
  double a = evaluate(code, tables, n->a, d, r, c);
  if (n->kind == DV_NODE_CHOOSE) return evaluate(code, tables, a > 0 ? n->b : n->c, d, r, c);
  return apply(n->kind, a, n->kind <= DVBF_SMALLER ? evaluate(code, tables, n->b, d, r, c) : 0);
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
  if (dv_code_part_has_slot(part, s->out.buffer)) return false;
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
        values[r * (size_t)s->cols + k] = (dvbf_real)evaluate(c, NULL, s->expr, 0, r, k);
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

static void mark(void *user, dvbf_place p, size_t by_direction, int rows, int cols) {
  live *l = user;
  if (l->code->buffers[p.buffer].constant) return;
  bool *of = l->of[p.buffer];
  if (!of) of = l->of[p.buffer] = dv_calloc(l->code->buffers[p.buffer].size, sizeof *of);
  l->failed |= !of;
  for (int d = 0; of && d < (by_direction ? l->directions : 1); d++)
    for (int r = 0; r < (p.by_row ? rows : 1); r++)
      for (int c = 0; c < (p.by_col ? cols : 1); c++)
        of[index_of(p, by_direction, (size_t)d, (size_t)r, (size_t)c)] = true;
}

/* Whether anything that the statement writes is read; it is not read before, unless it is added to. */
static bool take_written(live *l, const dv_statement *s) {
  bool *of = l->of[s->out.buffer], any = false;
  for (int d = 0; of && d < s->directions; d++)
    for (int r = 0; r < s->rows; r++)
      for (int c = 0; c < dv_statement_width(s); c++) {
        size_t at = index_of(s->out, s->out_by_direction, (size_t)d, (size_t)r, (size_t)c);
        any |= of[at];
        of[at] = of[at] && s->kind == DV_PRODUCT;
      }
  return any;
}

/* Products are added to their output; weights that are all 0, as of unused hidden units, add nothing. */
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
  DV_FREE(l.of, wanted);
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

/* ---- Running ---- */

/* One entry of a product, or of a sum or the like. */
static double result_of(const dvbf_code *code, double *const *tables, const dv_statement *s, size_t d,
                        size_t r, size_t c) {
  if (s->kind == DV_EACH) return evaluate(code, tables, s->expr, d, r, c);
  double result = s->kind == DV_MOST ? -INFINITY : 0;
  if (s->kind == DV_PRODUCT) {
    result = tables[s->out.buffer][index_of(s->out, s->out_by_direction, d, r, c)];
    for (size_t k = 0; k < (size_t)s->inner; k++)
      result += read(code, tables, s->x, index_of(s->x, s->x_by_direction, d, r, k)) *
                read(code, tables, s->w, index_of(s->w, s->w_by_direction, d, k, c));
    return result;
  }
  for (size_t k = 0; k < (size_t)s->cols; k++) {
    double value = evaluate(code, tables, s->expr, d, r, k);
    result = s->kind == DV_SUM ? result + value : value > result ? value : result;
  }
  return result;
}

static void run(const dvbf_code *code, double *const *tables) {
  for (int i = 0; i < code->n_statements; i++) {
    const dv_statement *s = &code->statements[i];
    for (size_t d = 0; d < (size_t)s->directions; d++)
      for (size_t r = 0; r < (size_t)s->rows; r++)
        for (size_t c = 0; c < (size_t)dv_statement_width(s); c++)
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
