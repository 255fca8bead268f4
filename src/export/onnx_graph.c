/* An ONNX graph in memory (dv_onnx_node, dv_onnx_part, dv_onnx_file): nodes, constants, shapes, and the
 * conversion of a part's statements, and the few protocol buffers messages that a file needs, written by
 * hand. */
#include "export/onnx_graph.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* Field numbers of onnx.proto. */
enum { TYPE_FLOAT = 1, TYPE_INT64 = 7, OPSET = 13, IR_VERSION = 7 };
static const dv_onnx_name none = {""};

/* ---- Protocol buffers ---- */

/* Written by hand: an ONNX file needs a dozen kinds of fields. */

static void pb_varint(dv_text *t, uint64_t n) {
  for (; n > 127; n >>= 7) {
    char byte = (char)((n & 127) | 128);
    dv_text_append(t, &byte, 1);
  }
  char last = (char)n;
  dv_text_append(t, &last, 1);
}

/* Field `number` that holds a whole number. */
static void pb_int(dv_text *t, int number, int64_t value) {
  pb_varint(t, (uint64_t)number << 3);
  pb_varint(t, (uint64_t)value);
}

/* Field `number` that holds bytes: a text, a message, or packed numbers. */
static void pb_bytes(dv_text *t, int number, const void *bytes, size_t size) {
  pb_varint(t, (uint64_t)number << 3 | 2);
  pb_varint(t, size);
  if (size) dv_text_append(t, bytes, size);
}

static void pb_text(dv_text *t, int number, const char *text) {
  pb_bytes(t, number, text, strlen(text));
}

/* Adds a message as a field, and frees it. */
static void pb_message(dv_text *t, int number, dv_text *message) {
  pb_bytes(t, number, message->at, message->used);
  t->failed |= message->failed;
  dv_text_free(message);
}

/* ---- Graph ---- */

void dv_onnx_clear(dv_onnx *g) {
  DV_TEXT_FREE(&g->nodes, &g->constants, &g->inputs, &g->outputs);
  dv_free(g->numbers);
  *g = (dv_onnx){0};
}

static dv_onnx_name new_name(dv_onnx *g, const char *kind) {
  dv_onnx_name name;
  snprintf(name.text, sizeof name.text, "%.40s_%d", kind, g->count++);
  return name;
}

/* ---- Nodes ---- */

static void add_node(dv_onnx *g, const char *op, const dv_onnx_name *in, int count, const char *out,
                     const char *attribute, int64_t value) {
  dv_text node = {0}, a = {0};
  for (int i = 0; i < count; i++) pb_text(&node, 1, in[i].text);
  pb_text(&node, 2, out);
  pb_text(&node, 4, op);
  if (attribute) {
    pb_text(&a, 1, attribute);
    pb_int(&a, 3, value);
    pb_int(&a, 20, 2); /* INT */
    pb_message(&node, 5, &a);
  }
  pb_message(&g->nodes, 1, &node);
}

dv_onnx_name dv_onnx_node(dv_onnx *g, const char *op, dv_onnx_name a, dv_onnx_name b, dv_onnx_name c) {
  dv_onnx_name in[] = {a, b, c}, out = new_name(g, op);
  int count = 0;
  while (count < 3 && *in[count].text) count++;
  add_node(g, op, in, count, out.text, NULL, 0);
  return out;
}

dv_onnx_name dv_onnx_concat(dv_onnx *g, const dv_onnx_name *a, int count) {
  if (count == 1) return a[0];
  dv_onnx_name out = new_name(g, "Concat");
  add_node(g, "Concat", a, count, out.text, "axis", 0);
  return out;
}

/* ---- Constants ---- */

static void add_tensor(dv_onnx *g, const char *name, int type, const size_t *dims, int rank,
                       const void *bytes, size_t size) {
  dv_text tensor = {0};
  for (int i = 0; i < rank; i++) pb_int(&tensor, 1, (int64_t)dims[i]);
  pb_int(&tensor, 2, type);
  pb_text(&tensor, 8, name);
  pb_bytes(&tensor, 9, bytes, size);
  pb_message(&g->constants, 5, &tensor);
}

/* Raw data of a file are little-endian whatever the machine is. */
static void put_word(unsigned char *to, uint64_t word, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(word >> (8 * i));
}

static void put_single(unsigned char *to, double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  put_word(to, bits, 4);
}

dv_onnx_name dv_onnx_number(dv_onnx *g, double value, bool whole) {
  for (int i = 0; i < g->n_numbers; i++)
    if (g->numbers[i].value == value && g->numbers[i].whole == whole) return g->numbers[i].name;
  unsigned char bytes[8];
  dv_onnx_name name = new_name(g, whole ? "whole" : "number");
  if (whole)
    put_word(bytes, (uint64_t)(int64_t)value, 8);
  else
    put_single(bytes, value);
  add_tensor(g, name.text, whole ? TYPE_INT64 : TYPE_FLOAT, (size_t[]){1}, whole ? 1 : 0, bytes,
             whole ? 8 : 4);
  struct dv_onnx_number *longer = dv_realloc(g->numbers, (size_t)g->n_numbers + 1, sizeof *longer);
  if (!longer) {
    g->constants.failed = true;
    return name;
  }
  g->numbers = longer;
  g->numbers[g->n_numbers++] = (struct dv_onnx_number){value, whole, name};
  return name;
}

dv_onnx_name dv_onnx_constant(dv_onnx *g, const dvbf_real *values, size_t rows, size_t cols,
                              const char *what) {
  dv_onnx_name name = new_name(g, what ? what : "constant");
  size_t n = (rows ? rows : 1) * cols, dims[] = {rows, cols};
  unsigned char *bytes = dv_calloc(n, 4);
  for (size_t i = 0; bytes && i < n; i++) put_single(bytes + 4 * i, (double)values[i]);
  if (bytes)
    add_tensor(g, name.text, TYPE_FLOAT, rows ? dims : dims + 1, rows ? 2 : 1, bytes, 4 * n);
  else
    g->constants.failed = true;
  dv_free(bytes);
  return name;
}

/* ---- Shapes ---- */

dv_onnx_name dv_onnx_slice(dv_onnx *g, dv_onnx_name from, size_t offset, size_t n, size_t by) {
  dv_onnx_name in[] = {from, dv_onnx_number(g, (double)offset, true),
                       dv_onnx_number(g, (double)(offset + (n - 1) * by + 1), true),
                       dv_onnx_number(g, 0, true), dv_onnx_number(g, (double)by, true)};
  dv_onnx_name out = new_name(g, "Slice");
  add_node(g, "Slice", in, 5, out.text, NULL, 0);
  return out;
}

dv_onnx_name dv_onnx_reduce(dv_onnx *g, const char *op, dv_onnx_name a) {
  dv_onnx_name out = new_name(g, op);
  add_node(g, op, &a, 1, out.text, "keepdims", 1);
  return out;
}

dv_onnx_name dv_onnx_flat(dv_onnx *g, dv_onnx_name from) {
  return dv_onnx_node(g, "Reshape", from, dv_onnx_number(g, -1, true), none);
}

static void add_value(dv_text *to, int field, const char *name, size_t rows, size_t n) {
  dv_text shape = {0}, tensor = {0}, type = {0}, value = {0};
  size_t dims[] = {rows, n};
  for (int i = rows ? 0 : 1; i < 2; i++) {
    dv_text dim = {0};
    pb_int(&dim, 1, (int64_t)dims[i]);
    pb_message(&shape, 1, &dim);
  }
  pb_int(&tensor, 1, TYPE_FLOAT);
  pb_message(&tensor, 2, &shape);
  pb_message(&type, 1, &tensor);
  pb_text(&value, 1, name);
  pb_message(&value, 2, &type);
  pb_message(to, field, &value);
}

dv_onnx_name dv_onnx_input(dv_onnx *g, const char *name, size_t rows, size_t n) {
  dv_onnx_name out;
  snprintf(out.text, sizeof out.text, "%s", name);
  add_value(&g->inputs, 11, name, rows, n);
  return out;
}

void dv_onnx_output(dv_onnx *g, dv_onnx_name from, const char *name, size_t n) {
  add_node(g, "Identity", &from, 1, name, NULL, 0);
  add_value(&g->outputs, 12, name, 0, n);
}

/* ---- Parts (tables become pieces, as a tensor cannot be written to) ---- */

typedef struct piece {
  size_t offset, size;
  dv_onnx_name name;
} piece;

typedef struct piece_list {
  piece *pieces; /* in their order */
  int count;
} piece_list;

typedef struct lowering {
  dv_onnx *g;
  const dv_code_part *part;
  const dvbf_code *code;
  piece_list *tables; /* [buffers] */
  bool failed, hole;
} lowering;

static void insert(lowering *l, piece_list *t, int at, piece p) {
  piece *longer = dv_realloc(t->pieces, (size_t)t->count + 1, sizeof *longer);
  if (!longer) {
    l->failed = true;
    return;
  }
  t->pieces = longer;
  memmove(t->pieces + at + 1, t->pieces + at, (size_t)(t->count - at) * sizeof p);
  t->pieces[at] = p;
  t->count++;
}

/* Numbers offset .. offset + size - 1 are `name` from now on; pieces that they cover are cut. */
static void store(lowering *l, int buffer, size_t offset, size_t size, dv_onnx_name name) {
  piece_list *t = &l->tables[buffer];
  size_t end = offset + size;
  for (int i = 0; i < t->count && !l->failed; i++) {
    piece p = t->pieces[i];
    size_t last = p.offset + p.size;
    if (last <= offset || p.offset >= end) continue;
    memmove(t->pieces + i, t->pieces + i + 1, (size_t)(t->count - i - 1) * sizeof p);
    t->count--;
    if (p.offset < offset)
      insert(l, t, i++,
             (piece){p.offset, offset - p.offset, dv_onnx_slice(l->g, p.name, 0, offset - p.offset, 1)});
    if (last > end)
      insert(l, t, i++, (piece){end, last - end, dv_onnx_slice(l->g, p.name, end - p.offset, last - end, 1)});
    i--;
  }
  int at = 0;
  while (at < t->count && t->pieces[at].offset < offset) at++;
  insert(l, t, at, (piece){offset, size, name});
}

/* The numbers offset .. offset + size - 1 as one vector. */
static dv_onnx_name fetch(lowering *l, int buffer, size_t offset, size_t size) {
  enum { MOST_PARTS = 256 };
  const piece_list *t = &l->tables[buffer];
  dv_onnx_name parts[MOST_PARTS];
  size_t at = offset;
  int count = 0;
  for (int i = 0; i < t->count && at < offset + size && count < MOST_PARTS; i++) {
    piece p = t->pieces[i];
    if (p.offset + p.size <= at) continue;
    if (p.offset > at) break;
    size_t n = p.offset + p.size - at;
    if (n > offset + size - at) n = offset + size - at;
    parts[count++] = n == p.size ? p.name : dv_onnx_slice(l->g, p.name, at - p.offset, n, 1);
    at += n;
  }
  if (at < offset + size) {
    l->hole = true;
    return dv_onnx_number(l->g, 0, false);
  }
  return dv_onnx_concat(l->g, parts, count);
}

/* Inputs of a row of a statement: n numbers, or one for all. */
static dv_onnx_name read_row(lowering *l, dvbf_place p, size_t row, size_t n) {
  const dv_code_buffer *b = &l->code->buffers[p.buffer];
  size_t offset = p.offset + row * p.by_row, extent = p.by_col ? (n - 1) * p.by_col + 1 : 1;
  dv_onnx_name all = b->constant ? dv_onnx_constant(l->g, b->constant + offset, 0, extent, b->name)
                                 : fetch(l, p.buffer, offset, extent);
  return p.by_col > 1 && n > 1 ? dv_onnx_slice(l->g, all, 0, n, p.by_col) : all;
}

static dv_onnx_name lower(lowering *l, dvbf_expr e, size_t row, size_t n) {
  static const char *const ops[] = {"Add", "Sub",  "Mul",  "Div",     "Max", "Min", "Exp",
                                    "Log", "Sqrt", "Tanh", "Sigmoid", "Sin", "Cos", "Abs"};
  const dv_node *node = &l->code->nodes[e];
  if (node->kind == DV_NODE_NUMBER) return dv_onnx_number(l->g, node->number, false);
  if (node->kind == DV_NODE_READ) return read_row(l, node->place, row, n);
  dv_onnx_name a = lower(l, node->a, row, n);
  if (node->kind == DV_NODE_CHOOSE) {
    dv_onnx_name yes = lower(l, node->b, row, n), no = lower(l, node->c, row, n);
    dv_onnx_name test = dv_onnx_node(l->g, "Greater", a, dv_onnx_number(l->g, 0, false), none);
    return dv_onnx_node(l->g, "Where", test, yes, no);
  }
  dv_onnx_name b = node->kind <= DVBF_SMALLER ? lower(l, node->b, row, n) : none;
  return dv_onnx_node(l->g, ops[node->kind], a, b, none);
}

/* A vector of n numbers, also if the expression is one number for all. */
static dv_onnx_name lower_row(lowering *l, const dv_statement *s, size_t row) {
  dv_onnx_name e = lower(l, s->expr, row, (size_t)s->cols);
  return dv_onnx_node(l->g, "Expand", e, dv_onnx_number(l->g, s->cols, true), none);
}

static void lower_statement(lowering *l, const dv_statement *s) {
  for (size_t r = 0; r < (size_t)s->rows && !l->failed; r++) {
    size_t offset = s->out.offset + r * s->out.by_row;
    if (s->kind == DV_PRODUCT) {
      const dv_code_buffer *b = &l->code->buffers[s->w.buffer];
      dv_onnx_name x = read_row(l, s->x, r, (size_t)s->inner), w;
      if (b->constant) {
        w = dv_onnx_constant(l->g, b->constant + s->w.offset, (size_t)s->inner, (size_t)s->cols, b->name);
      } else {
        dv_onnx_name sizes[] = {dv_onnx_number(l->g, s->inner, true), dv_onnx_number(l->g, s->cols, true)};
        w = fetch(l, s->w.buffer, s->w.offset, (size_t)s->inner * (size_t)s->cols);
        w = dv_onnx_node(l->g, "Reshape", w, dv_onnx_concat(l->g, sizes, 2), none);
      }
      dv_onnx_name sum = dv_onnx_node(l->g, "Add", fetch(l, s->out.buffer, offset, (size_t)s->cols),
                                      dv_onnx_node(l->g, "MatMul", x, w, none), none);
      store(l, s->out.buffer, offset, (size_t)s->cols, sum);
    } else if (s->kind == DV_EACH) {
      dv_onnx_name row = lower_row(l, s, r);
      for (size_t c = 0; c < (s->out.by_col > 1 ? (size_t)s->cols : 1); c++)
        store(l, s->out.buffer, offset + c * s->out.by_col, s->out.by_col > 1 ? 1 : (size_t)s->cols,
              s->out.by_col > 1 ? dv_onnx_slice(l->g, row, c, 1, 1) : row);
    } else {
      const char *op = s->kind == DV_SUM ? "ReduceSum" : "ReduceMax";
      store(l, s->out.buffer, offset, 1, dv_onnx_reduce(l->g, op, lower_row(l, s, r)));
    }
  }
}

dvbf_status dv_onnx_part(dv_onnx *g, const dv_code_part *part, const dv_onnx_name in[DV_INPUTS],
                         dv_onnx_name *out, dvbf_error *error) {
  lowering l = {.g = g, .part = part, .code = part->code};
  l.tables = dv_calloc((size_t)part->code->n_buffers, sizeof *l.tables);
  if (!l.tables) return dv_fail_memory(error, "exporting a model");
  for (int i = 0; i < DV_INPUTS; i++)
    if (part->slot[i].size && *in[i].text)
      store(&l, part->slot[i].buffer, part->slot[i].offset, part->slot[i].size, in[i]);
  for (int i = 0; i < part->code->n_statements && !l.failed; i++)
    lower_statement(&l, &part->code->statements[i]);
  dv_slot to = part->slot[DV_SLOT_OUT];
  *out = fetch(&l, to.buffer, to.offset, to.size);
  for (int i = 0; i < part->code->n_buffers; i++) dv_free(l.tables[i].pieces);
  dv_free(l.tables);
  if (l.failed) return dv_fail_memory(error, "exporting a model");
  if (l.hole)
    return dv_fail(error, DVBF_ARGUMENT,
                   "the model's %s reads a value that was never written, so it cannot be exported",
                   part->name);
  return DVBF_OK;
}

void dv_onnx_file(dv_text *out, dv_onnx *g, const char *name, const char *about) {
  dv_text graph = {0}, opset = {0};
  dv_text_join(&graph, &g->nodes);
  pb_text(&graph, 2, name);
  dv_text_join(&graph, &g->constants);
  dv_text_join(&graph, &g->inputs);
  dv_text_join(&graph, &g->outputs);
  pb_int(out, 1, IR_VERSION);
  pb_text(out, 2, "dvbf");
  pb_text(out, 3, DVBF_VERSION);
  pb_text(out, 6, about);
  pb_message(out, 7, &graph);
  pb_text(&opset, 1, "");
  pb_int(&opset, 2, OPSET);
  pb_message(out, 8, &opset);
}
