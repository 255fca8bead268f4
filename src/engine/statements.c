/* Statements, the form in which a trained program is exported: an expression for each entry of a table, a row
 * sum or maximum, or a product. Besides forward and backward an op has `emit`, so that no op is written a
 * second time for C. dv_graph_emit walks over the ops that the wanted values need. */
#include "engine/statements.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Code and buffers ---- */

dvbf_code *dv_code_new(void) {
  return dv_calloc(1, sizeof(dvbf_code));
}

void dv_code_free(dvbf_code *code) {
  if (!code) return;
  for (int i = 0; i < code->n_buffers; i++)
    if (code->buffers[i].own) dv_free((void *)code->buffers[i].constant);
  DV_FREE(code->nodes, code->statements, code->buffers, code);
}

void dvbf_code_refuse(dvbf_code *code, const char *format, ...) {
  if (code->refused) return;
  code->refused = DVBF_ARGUMENT;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(code->sentence, sizeof code->sentence, format, arguments);
  va_end(arguments);
}

static void refuse_memory(dvbf_code *code) {
  dvbf_code_refuse(code, "out of memory while writing a model as code");
  code->refused = DVBF_MEMORY;
}

dvbf_status dv_code_status(const dvbf_code *code, dvbf_error *error) {
  return code->refused ? dv_fail(error, code->refused, "%s", code->sentence) : DVBF_OK;
}

/* The list with room for one more entry; NULL, refusing the code, if memory is short. */
static void *room_for(dvbf_code *code, void *list, int count, size_t size) {
  void *longer = count < 1 << 24 ? dv_grow(list, (size_t)count, size) : NULL;
  if (!longer) refuse_memory(code);
  return longer;
}

int dv_code_buffer_add(dvbf_code *code, size_t size) {
  dv_code_buffer *buffers = room_for(code, code->buffers, code->n_buffers, sizeof *buffers);
  if (!buffers) return -1;
  code->buffers = buffers;
  code->buffers[code->n_buffers] = (dv_code_buffer){.size = size};
  return code->n_buffers++;
}

dvbf_place dvbf_code_room(dvbf_code *code, int rows, int cols) {
  size_t size = 0;
  if (rows < 1 || cols < 1 || !dv_multiply((size_t)rows, (size_t)cols, &size))
    dvbf_code_refuse(code, "a table of %d rows and %d columns cannot be made", rows, cols);
  return (dvbf_place){dv_code_buffer_add(code, size), 0, (size_t)(cols > 0 ? cols : 0), 1};
}

/* The numbers of a buffer that becomes a constant; NULL, refusing the code, if memory is short. */
static dvbf_real *make_constant(dvbf_code *code, int buffer, const char *name) {
  size_t size = code->buffers[buffer].size;
  dvbf_real *numbers = dv_calloc(size, sizeof *numbers);
  if (!numbers)
    refuse_memory(code);
  else
    code->buffers[buffer] =
        (dv_code_buffer){.size = size, .constant = numbers, .own = true, .computed = true, .name = name};
  return numbers;
}

dvbf_place dv_code_constant(dvbf_code *code, const float *values, int n, const char *name) {
  dvbf_place place = dvbf_code_room(code, 1, n);
  dvbf_real *copy = code->refused ? NULL : make_constant(code, place.buffer, name);
  for (int i = 0; i < n && copy; i++) copy[i] = (dvbf_real)values[i];
  return place;
}

dvbf_real *dv_code_make_constant(dvbf_code *code, dvbf_value value, const char *name) {
  const dv_code_buffer *b = &code->buffers[value.buffer];
  size_t size = (size_t)value.steps * (size_t)value.rows * (size_t)value.cols;
  if (!b->constant && !value.offset && b->size == size) return make_constant(code, value.buffer, name);
  dvbf_code_refuse(code, "a value of %d columns is only a part of its buffer and cannot be made a constant",
                   value.cols);
  return NULL;
}

/* ---- Expressions ---- */

static dvbf_expr add_node(dvbf_code *code, dv_node node) {
  dv_node *nodes = room_for(code, code->nodes, code->n_nodes, sizeof *nodes);
  if (!nodes) return code->n_nodes ? 0 : -1;
  code->nodes = nodes;
  code->nodes[code->n_nodes] = node;
  return code->n_nodes++;
}

dvbf_expr dvbf_code_read(dvbf_code *code, dvbf_place place) {
  return add_node(code, (dv_node){.kind = DV_NODE_READ, .place = place});
}

dvbf_expr dvbf_code_number(dvbf_code *code, double number) {
  return add_node(code, (dv_node){.kind = DV_NODE_NUMBER, .number = number});
}

/* Whether the expression is this number. */
static bool is(const dvbf_code *code, dvbf_expr e, double number) {
  return code->nodes[e].kind == DV_NODE_NUMBER && code->nodes[e].number == number;
}

static bool known(const dvbf_code *code, dvbf_expr e) {
  return e >= 0 && e < code->n_nodes;
}

dvbf_expr dvbf_code_unary(dvbf_code *code, dvbf_function function, dvbf_expr a) {
  if (!known(code, a)) return 0;
  return add_node(code, (dv_node){.kind = (int)function, .a = a});
}

/* Simplifies operations with 0 and 1, which derivatives are full of. */
dvbf_expr dvbf_code_binary(dvbf_code *code, dvbf_function f, dvbf_expr a, dvbf_expr b) {
  if (!known(code, a) || !known(code, b)) return 0;
  if (f == DVBF_ADD && is(code, a, 0)) return b;
  if ((f == DVBF_ADD || f == DVBF_SUBTRACT) && is(code, b, 0)) return a;
  if (f == DVBF_MULTIPLY && (is(code, a, 1) || is(code, b, 0))) return b;
  if (f == DVBF_MULTIPLY && (is(code, b, 1) || is(code, a, 0))) return a;
  if (f == DVBF_DIVIDE && (is(code, b, 1) || is(code, a, 0))) return a;
  return add_node(code, (dv_node){.kind = (int)f, .a = a, .b = b});
}

dvbf_expr dvbf_code_choose(dvbf_code *code, dvbf_expr test, dvbf_expr yes, dvbf_expr no) {
  if (!known(code, test) || !known(code, yes) || !known(code, no)) return 0;
  if (is(code, yes, 0) && is(code, no, 0)) return yes;
  return add_node(code, (dv_node){.kind = DV_NODE_CHOOSE, .a = test, .b = yes, .c = no});
}

/* ---- Statements ---- */

static bool inside_buffer(const dvbf_code *code, dvbf_place p, size_t by_direction, int directions, int rows,
                          int cols) {
  if (p.buffer < 0 || p.buffer >= code->n_buffers || rows < 1 || cols < 1) return false;
  size_t last = p.offset + (size_t)(directions - 1) * by_direction + (size_t)(rows - 1) * p.by_row +
                (size_t)(cols - 1) * p.by_col;
  return last < code->buffers[p.buffer].size;
}

typedef struct checker {
  const dvbf_code *code;
  int directions;
  bool fits;
} checker;

static void check_read(void *user, dvbf_place place, size_t by_direction, int rows, int cols) {
  checker *c = user;
  c->fits = c->fits && inside_buffer(c->code, place, by_direction, c->directions, rows, cols);
}

static void read_nodes(const dvbf_code *code, const dv_statement *s, dvbf_expr e, dv_read_fn *each,
                       void *user) {
  const dv_node *n = &code->nodes[e];
  if (n->kind == DV_NODE_READ) each(user, n->place, n->by_direction, s->rows, s->cols);
  if (n->kind == DV_NODE_READ || n->kind == DV_NODE_NUMBER) return;
  read_nodes(code, s, n->a, each, user);
  if (n->kind <= DVBF_SMALLER || n->kind == DV_NODE_CHOOSE) read_nodes(code, s, n->b, each, user);
  if (n->kind == DV_NODE_CHOOSE) read_nodes(code, s, n->c, each, user);
}

void dv_statement_reads(const dvbf_code *code, const dv_statement *s, dv_read_fn *each, void *user) {
  if (s->kind != DV_PRODUCT) {
    read_nodes(code, s, s->expr, each, user);
    return;
  }
  each(user, s->x, s->x_by_direction, s->rows, s->inner);
  each(user, s->w, s->w_by_direction, s->inner, s->cols);
  each(user, s->out, s->out_by_direction, s->rows, s->cols);
}

void dv_code_add(dvbf_code *code, dv_statement s) {
  if (code->refused) return;
  checker c = {code, s.directions, true};
  check_read(&c, s.out, s.out_by_direction, s.rows, s.kind == DV_EACH || s.kind == DV_PRODUCT ? s.cols : 1);
  if (s.kind != DV_PRODUCT && !known(code, s.expr)) c.fits = false;
  if (c.fits) dv_statement_reads(code, &s, check_read, &c);
  if (!c.fits || code->buffers[s.out.buffer].constant) {
    dvbf_code_refuse(code, "a statement of %d rows and %d columns does not fit its tables", s.rows, s.cols);
    return;
  }
  dv_statement *statements = room_for(code, code->statements, code->n_statements, sizeof *statements);
  if (!statements) return;
  code->statements = statements;
  code->statements[code->n_statements++] = s;
}

static void add_simple(dvbf_code *code, dv_statement_kind kind, dvbf_place out, int rows, int cols,
                       dvbf_expr e) {
  dv_code_add(
      code, (dv_statement){.kind = kind, .directions = 1, .rows = rows, .cols = cols, .out = out, .expr = e});
}

void dvbf_code_each(dvbf_code *code, dvbf_place out, int rows, int cols, dvbf_expr e) {
  add_simple(code, DV_EACH, out, rows, cols, e);
}

void dvbf_code_sum(dvbf_code *code, dvbf_place out, int rows, int cols, dvbf_expr e) {
  add_simple(code, DV_SUM, out, rows, cols, e);
}

void dvbf_code_most(dvbf_code *code, dvbf_place out, int rows, int cols, dvbf_expr e) {
  add_simple(code, DV_MOST, out, rows, cols, e);
}

void dvbf_code_product(dvbf_code *code, dvbf_place out, dvbf_place x, dvbf_place w, int rows, int m, int n) {
  w.by_row = (size_t)(n > 0 ? n : 0);
  w.by_col = 1;
  dv_code_add(code, (dv_statement){.kind = DV_PRODUCT,
                                   .directions = 1,
                                   .rows = rows,
                                   .cols = n,
                                   .inner = m,
                                   .out = out,
                                   .x = x,
                                   .w = w});
}

void dvbf_code_noise(dvbf_code *code, dvbf_value out, int number, bool shared) {
  if (code->n_noise == DV_MOST_NOISE)
    dvbf_code_refuse(code, "a program of more than %d streams of noise cannot be exported", DV_MOST_NOISE);
  else
    code->noise[code->n_noise++] = (dv_code_noise){out, number, shared};
}

/* ---- From a program ---- */

/* The numbers of each buffer that are still needed, from the results back to the inputs. */
typedef struct needs {
  const dvbf_graph *g;
  bool **of; /* [buffers][size]; NULL: none */
} needs;

static bool mark(needs *n, dvbf_value v) {
  if (v.buffer < 0) return true;
  bool **of = &n->of[v.buffer];
  if (!*of) *of = dv_calloc(n->g->buffers[v.buffer].size, sizeof **of);
  if (!*of) return false;
  size_t each = (size_t)v.rows * (size_t)v.cols;
  for (int t = 0; t < v.steps; t++) memset(*of + v.offset + (size_t)t * v.stride, 1, each);
  return true;
}

static bool is_needed(const needs *n, dvbf_value v) {
  if (v.buffer < 0 || !n->of[v.buffer]) return false;
  for (int t = 0; t < v.steps; t++)
    if (memchr(n->of[v.buffer] + v.offset + (size_t)t * v.stride, 1, (size_t)v.rows * (size_t)v.cols))
      return true;
  return false;
}

/* An op without outputs works on its inputs in place. */
static bool op_is_needed(const needs *n, const dvbf_op *op) {
  bool needed = false;
  for (int i = 0; i < op->n_out; i++) needed |= is_needed(n, op->out[i]);
  for (int i = 0; i < op->n_in && !op->n_out; i++) needed |= is_needed(n, op->in[i]);
  return needed && op->type->forward;
}

/* needed[i] of every op; false if memory is short. Ops may write parts of a value, so all writers count. */
static bool find_needed(const dvbf_graph *g, const dvbf_value *wanted, int count, bool *needed) {
  needs n = {g, dv_calloc((size_t)g->n_buffers, sizeof *n.of)};
  bool done = n.of;
  for (int i = 0; i < count && done; i++) done = mark(&n, wanted[i]);
  for (int i = g->n_ops - 1; i >= 0 && done; i--) {
    needed[i] = op_is_needed(&n, &g->ops[i]);
    for (int k = 0; k < g->ops[i].n_in && needed[i] && done; k++) done = mark(&n, g->ops[i].in[k]);
  }
  for (int i = 0; n.of && i < g->n_buffers; i++) dv_free(n.of[i]);
  dv_free(n.of);
  return done;
}

static const char *parameter_name(const dvbf_graph *g, size_t offset) {
  const dv_parameters *p = g->parameters;
  for (size_t i = 0; i < p->count; i++)
    if (p->list[i].offset == offset) return p->list[i].name;
  return NULL;
}

static void add_buffers(const dvbf_graph *g, dvbf_code *code) {
  for (int i = 0; i < g->n_buffers && !code->refused; i++) {
    const dv_buffer *b = &g->buffers[i];
    int at = dv_code_buffer_add(code, b->size);
    if (at < 0 || b->kind == DV_BUFFER_VALUE || b->kind == DV_BUFFER_CONSTANT) continue;
    code->buffers[at].constant = g->parameters->values + b->offset;
    code->buffers[at].name = parameter_name(g, b->offset);
  }
}

dvbf_status dv_graph_emit(const dvbf_graph *g, dvbf_code *code, const dvbf_value *wanted, int count,
                          dvbf_error *error) {
  bool *needed = dv_calloc((size_t)g->n_ops + 1, sizeof *needed);
  if (!needed || !find_needed(g, wanted, count, needed)) {
    dv_free(needed);
    return dv_fail_memory(error, "writing a model as code");
  }
  add_buffers(g, code);
  for (int i = 0; i < g->n_ops && !code->refused; i++) {
    const dvbf_op *op = &g->ops[i];
    if (!needed[i]) continue;
    if (op->type->emit)
      op->type->emit(op, code);
    else
      dvbf_code_refuse(code, "the op \"%.80s\" cannot be exported: its class has no function `emit`",
                       op->type->name);
  }
  dv_free(needed);
  return dv_code_status(code, error);
}
