/* A part of a model as a function of C (dv_c_part_write, dv_c_part_call): statements become loops, and tables
 * between them share one array, each at the lowest place that is free while it is in use. */
#include "export/c_file.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const slot_names[DV_SLOTS] = {"z",    "noise", "u",   "now",      "x",
                                                 "mask", "seen",  "out", "variance", "slopes"};

typedef struct function_writer {
  dv_text *text;
  dv_c_file *file;
  const dv_code_part *part;
  const dvbf_code *code;
  char (*names)[64]; /* [buffers] of tables in between */
  size_t *room;      /* [buffers] where they stand */
  bool flat;         /* rows and columns of the statement are one loop */
} function_writer;

static bool uses_slot(const dv_code_part *p, int slot) {
  return p->slot[slot].size && (slot >= DV_SLOT_OUT || dv_code_part_reads(p, (dv_slot_name)slot));
}

static void put_number(dv_text *t, const dv_c_file *f, double x) {
  char text[40];
  dv_print(text, sizeof text, f->wide ? "%.17g" : "%.9g", x);
  dv_text_put(t, "%s%s%s", text, strpbrk(text, ".en") ? "" : ".0", f->wide ? "" : "f");
}

/* ---- Tables: names, and places in one array ---- */

typedef struct table_span {
  int buffer, first, last;
  size_t size;
} table_span;

typedef struct uses {
  table_span *spans; /* [buffers]; first -1: not used */
  int now;
} uses;

static void use(void *user, dvbf_place p, size_t by_direction, int rows, int cols) {
  uses *u = user;
  if (u->spans[p.buffer].first < 0) u->spans[p.buffer].first = u->now;
  u->spans[p.buffer].last = u->now;
}

static int by_size(const void *a, const void *b) {
  const table_span *x = a, *y = b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  return x->buffer < y->buffer ? -1 : 1;
}

/* Whether a buffer needs memory: constants and slots do not. */
static bool in_between(const function_writer *w, int buffer) {
  return !w->code->buffers[buffer].constant && !dv_code_part_has_slot(w->part, buffer);
}

/* Lowest place that is free while the table is in use. */
static size_t place(const function_writer *w, const table_span *placed, int count, const table_span *new) {
  size_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < count; i++) {
      size_t other = w->room[placed[i].buffer];
      bool together = placed[i].first <= new->last &&new->first <= placed[i].last;
      if (!together || at >= other + placed[i].size || other >= at + new->size) continue;
      at = other + placed[i].size;
      moved = true;
    }
  }
  return at;
}

/* Returns the reals that all tables take together; spans [buffers] is scratch. */
static size_t plan(function_writer *w, table_span *spans) {
  const dvbf_code *c = w->code;
  uses u = {.spans = spans};
  size_t all = 0;
  int count = 0;
  for (int i = 0; i < c->n_buffers; i++)
    spans[i] = (table_span){.buffer = i, .first = -1, .size = c->buffers[i].size};
  for (u.now = 0; u.now < c->n_statements; u.now++) {
    use(&u, c->statements[u.now].out, 0, 1, 1);
    dv_statement_reads(c, &c->statements[u.now], use, &u);
  }
  for (int i = 0; i < c->n_buffers; i++)
    if (spans[i].first >= 0 && in_between(w, i)) spans[count++] = spans[i];
  qsort(spans, (size_t)count, sizeof *spans, by_size);
  for (int i = 0; i < count; i++) {
    size_t at = place(w, spans, i, &spans[i]);
    w->room[spans[i].buffer] = at;
    if (at + spans[i].size > all) all = at + spans[i].size;
  }
  return all;
}

/* A table made by weights has their name, without its last part. */
static void name_tables(function_writer *w) {
  const dvbf_code *c = w->code;
  for (int i = 0; i < c->n_statements; i++) {
    const dv_statement *s = &c->statements[i];
    const char *weight = s->kind == DV_PRODUCT ? c->buffers[s->w.buffer].name : NULL;
    if (!weight || s->directions > 1 || *w->names[s->out.buffer]) continue;
    char base[40];
    const char *dot = strrchr(weight, '.');
    dv_identifier(base, sizeof base, weight);
    if (dot && (size_t)(dot - weight) < sizeof base) base[dot - weight] = 0;
    snprintf(w->names[s->out.buffer], sizeof *w->names, "%s_%d", base, s->out.buffer);
  }
  for (int i = 0; i < c->n_buffers; i++)
    if (!*w->names[i]) snprintf(w->names[i], sizeof *w->names, "t%d", i);
}

/* ---- Places and expressions ---- */

/* The constant that a read goes to, from its first number on. */
static const dv_constant *constant_at(function_writer *w, dvbf_place p, int rows, int cols) {
  const dv_code_buffer *b = &w->code->buffers[p.buffer];
  size_t extent = (size_t)(rows - 1) * p.by_row + (size_t)(cols - 1) * p.by_col + 1;
  return dv_constants_take(&w->file->constants, b->constant + p.offset, 1, extent, false, b->name);
}

/* The name of an array and how far into it a place begins. */
static size_t put_base(function_writer *w, dvbf_place p, int rows, int cols) {
  if (w->code->buffers[p.buffer].constant) {
    const dv_constant *k = constant_at(w, p, rows, cols);
    dv_text_put(w->text, "%s_%s", w->file->prefix, k ? k->name : "");
    return 0;
  }
  int slot = dv_code_part_slot_at(w->part, p.buffer, p.offset);
  if (slot >= 0) {
    dv_text_put(w->text, "%s", slot_names[slot]);
    return p.offset - w->part->slot[slot].offset;
  }
  dv_text_put(w->text, "%s", w->names[p.buffer]);
  return p.offset;
}

static void put_term(function_writer *w, bool *begun, const char *index, size_t by) {
  if (!by) return;
  dv_text_put(w->text, *begun ? " + " : "");
  if (by == 1)
    dv_text_put(w->text, "%s", index);
  else
    dv_text_put(w->text, "%s * %zu", index, by);
  *begun = true;
}

static void put_read(function_writer *w, const dv_statement *s, dvbf_place p, size_t by_direction, int cols) {
  size_t offset = put_base(w, p, s->rows, cols);
  bool begun = false;
  dv_text_put(w->text, "[");
  if (s->directions > 1) put_term(w, &begun, "d", by_direction);
  if (s->rows > 1 && !w->flat) put_term(w, &begun, "r", p.by_row);
  if (cols > 1 || w->flat) put_term(w, &begun, "i", p.by_col);
  if (offset || !begun) dv_text_put(w->text, begun ? " + %zu" : "%zu", offset);
  dv_text_put(w->text, "]");
}

static void put_expr(function_writer *w, const dv_statement *s, dvbf_expr e, int above);

/* A function of one operand or, the first ones, of two. */
static void put_call(function_writer *w, const dv_statement *s, const dv_node *n) {
  static const char *const names[] = {"larger", "smaller", "exp", "log", "sqrt",
                                      "tanh",   "sigmoid", "sin", "cos", "fabs"};
  const char *name = names[n->kind - DVBF_LARGER];
  bool two = n->kind <= DVBF_SMALLER;
  w->file->functions[n->kind] = true;
  if (w->file->plain || two || n->kind == DVBF_SIGMOID_OF)
    dv_text_put(w->text, "%s_%s(", w->file->prefix, name);
  else
    dv_text_put(w->text, "%s%s(", name, w->file->wide ? "" : "f");
  put_expr(w, s, n->a, 0);
  if (two) dv_text_put(w->text, ", ");
  if (two) put_expr(w, s, n->b, 0);
  dv_text_put(w->text, ")");
}

/* a + b, ... in parentheses if the operator above binds as tightly. */
static void put_operator(function_writer *w, const dv_statement *s, const dv_node *n, int above) {
  static const char *const signs[] = {" + ", " - ", " * ", " / "};
  int level = n->kind >= DVBF_MULTIPLY ? 2 : 1;
  bool inside = level < above;
  dv_text_put(w->text, inside ? "(" : "");
  put_expr(w, s, n->a, level);
  dv_text_put(w->text, "%s", signs[n->kind]);
  put_expr(w, s, n->b, level + 1);
  dv_text_put(w->text, inside ? ")" : "");
}

static void put_choice(function_writer *w, const dv_statement *s, const dv_node *n, int above) {
  dv_text_put(w->text, above ? "(" : "");
  put_expr(w, s, n->a, 1);
  dv_text_put(w->text, " > 0 ? ");
  put_expr(w, s, n->b, 1);
  dv_text_put(w->text, " : ");
  put_expr(w, s, n->c, 1);
  dv_text_put(w->text, above ? ")" : "");
}

/* `above`: how tightly the operator above binds; 0 is no operator. */
static void put_expr(function_writer *w, const dv_statement *s, dvbf_expr e, int above) {
  const dv_node *n = &w->code->nodes[e];
  if (n->kind == DV_NODE_NUMBER) {
    dv_text_put(w->text, n->number < 0 && above ? "(" : "");
    put_number(w->text, w->file, n->number);
    dv_text_put(w->text, n->number < 0 && above ? ")" : "");
  } else if (n->kind == DV_NODE_READ) {
    put_read(w, s, n->place, n->by_direction, s->cols);
  } else if (n->kind == DV_NODE_CHOOSE) {
    put_choice(w, s, n, above);
  } else if (n->kind <= DVBF_DIVIDE) {
    put_operator(w, s, n, above);
  } else {
    put_call(w, s, n);
  }
}

/* ---- Statements ---- */

static void indent(function_writer *w, int depth) {
  dv_text_put(w->text, "%*s", 2 * depth, "");
}

/* The head of a loop, unless nothing is repeated; returns the depth of its body. */
static int put_loop(function_writer *w, const char *index, int count, int depth) {
  if (count <= 1) return depth;
  indent(w, depth);
  dv_text_put(w->text, "for (%s = 0; %s < %d; %s++)\n", index, index, count, index);
  return depth + 1;
}

static int put_loops(function_writer *w, const dv_statement *s) {
  return put_loop(w, "r", s->rows, put_loop(w, "d", s->directions, 1));
}

typedef struct flatness {
  int cols;
  bool flat;
} flatness;

static void check_flat(void *user, dvbf_place p, size_t by_direction, int rows, int cols) {
  flatness *f = user;
  f->flat &= p.by_row == (size_t)f->cols * p.by_col;
}

/* Whether all tables continue from row to row as from column to column. */
static bool is_flat(const function_writer *w, const dv_statement *s) {
  flatness f = {s->cols, s->kind == DV_EACH && s->rows > 1 && s->cols > 1};
  if (!f.flat) return false;
  check_flat(&f, s->out, 0, 0, 0);
  dv_statement_reads(w->code, s, check_flat, &f);
  return f.flat;
}

static void put_each(function_writer *w, const dv_statement *s) {
  w->flat = is_flat(w, s);
  int depth = w->flat ? put_loop(w, "d", s->directions, 1) : put_loops(w, s);
  indent(w, put_loop(w, "i", w->flat ? s->rows * s->cols : s->cols, depth));
  put_read(w, s, s->out, s->out_by_direction, s->cols);
  dv_text_put(w->text, " = ");
  put_expr(w, s, s->expr, 0);
  dv_text_put(w->text, ";\n");
  w->flat = false;
}

static void put_reduction(function_writer *w, const dv_statement *s) {
  bool most = s->kind == DV_MOST;
  int depth = put_loops(w, s) + 1;
  dv_statement first = *s;
  first.cols = 1;
  indent(w, depth - 1);
  dv_text_put(w->text, "{\n");
  indent(w, depth);
  dv_text_put(w->text, "%s_real sum = ", w->file->prefix);
  if (most)
    put_expr(w, &first, s->expr, 0);
  else
    put_number(w->text, w->file, 0);
  dv_text_put(w->text, ";\n");
  indent(w, put_loop(w, "i", s->cols, depth));
  dv_text_put(w->text, most ? "sum = " : "sum += ");
  if (most) dv_text_put(w->text, "%s_larger(sum, ", w->file->prefix);
  w->file->functions[DVBF_LARGER] |= most;
  put_expr(w, s, s->expr, 0);
  dv_text_put(w->text, most ? ");\n" : ";\n");
  indent(w, depth);
  put_read(w, s, s->out, s->out_by_direction, 1);
  dv_text_put(w->text, " = sum;\n");
  indent(w, depth - 1);
  dv_text_put(w->text, "}\n");
}

/* base + d * by_direction + r * by_row + offset */
static void put_pointer(function_writer *w, const dv_statement *s, dvbf_place p, size_t by_direction,
                        int rows) {
  size_t offset = put_base(w, p, 1, 1);
  bool begun = true;
  if (s->directions > 1) put_term(w, &begun, "d", by_direction);
  if (rows > 1) put_term(w, &begun, "r", p.by_row);
  if (offset) dv_text_put(w->text, " + %zu", offset);
}

/* Parameters of the model may be rounded; what was computed from them is not rounded once more. */
static const dv_constant *take_weight(function_writer *w, const dv_statement *s, const dv_code_buffer *b) {
  dv_constants *all = &w->file->constants;
  int format = all->format;
  if (b->computed) all->format = DV_WEIGHTS_FLOAT;
  const dv_constant *k =
      dv_constants_take(all, b->constant + s->w.offset, (size_t)s->inner, (size_t)s->cols, true, b->name);
  all->format = format;
  return k;
}

/* Weights that are results of the model itself are multiplied as they are. */
static void put_product(function_writer *w, const dv_statement *s) {
  static const char *const names[] = {"", "_bfloat16", "_int8"};
  const char *prefix = w->file->prefix;
  const dv_code_buffer *b = &w->code->buffers[s->w.buffer];
  const dv_constant *k = b->constant ? take_weight(w, s, b) : NULL;
  if (b->constant && !k) return;
  int format = k ? k->format : DV_WEIGHTS_FLOAT;
  bool narrow = k && k->transposed;
  w->file->products[format][narrow] = true;
  indent(w, put_loops(w, s));
  dv_text_put(w->text, "%s_%sproduct%s(", prefix, narrow ? "narrow_" : "", names[format]);
  put_pointer(w, s, s->out, s->out_by_direction, s->rows);
  dv_text_put(w->text, ", ");
  put_pointer(w, s, s->x, s->x_by_direction, s->rows);
  dv_text_put(w->text, ", ");
  if (k)
    dv_text_put(w->text, "%s_%s", prefix, k->name);
  else
    put_pointer(w, s, s->w, s->w_by_direction, 1);
  if (format == DV_WEIGHTS_INT8) dv_text_put(w->text, ", %s_%s_factor", prefix, k->name);
  dv_text_put(w->text, ", %d, %d);\n", s->inner, s->cols);
}

/* ---- Functions ---- */

static void put_arguments(dv_text *t, const dv_c_file *f, const dv_code_part *p, bool types) {
  bool begun = false;
  for (int i = 0; i < DV_SLOTS; i++) {
    if (!uses_slot(p, i)) continue;
    if (begun) dv_text_put(t, ", ");
    if (types) dv_text_put(t, "%s%s_real *", i < DV_INPUTS ? "const " : "", f->prefix);
    dv_text_put(t, "%s", slot_names[i]);
    begun = true;
  }
}

void dv_c_part_call(dv_text *t, const dv_c_file *f, const dv_code_part *p, const char *name) {
  dv_text_put(t, "%s_%s(", f->prefix, name);
  put_arguments(t, f, p, false);
  dv_text_put(t, ")");
}

static void put_indices(function_writer *w) {
  const dvbf_code *c = w->code;
  bool d = false, r = false, i = false;
  for (int k = 0; k < c->n_statements; k++) {
    const dv_statement *s = &c->statements[k];
    bool flat = is_flat(w, s);
    d |= s->directions > 1;
    r |= s->rows > 1 && !flat;
    i |= s->kind != DV_PRODUCT && (s->cols > 1 || flat);
  }
  if (!d && !r && !i) return;
  dv_text_put(w->text, "  int %s%s%s;\n", d ? "d" : "", r ? (d ? ", r" : "r") : "",
              i ? (d || r ? ", i" : "i") : "");
}

static void declare_tables(function_writer *w, size_t room) {
  const char *prefix = w->file->prefix;
  size_t bytes = room * (w->file->wide ? sizeof(double) : sizeof(float));
  if (bytes > w->file->most_room) w->file->most_room = bytes;
  if (room) dv_text_put(w->text, "  %s_real room[%zu];\n", prefix, room);
  for (int i = 0; i < w->code->n_buffers; i++)
    if (w->room[i] != SIZE_MAX)
      dv_text_put(w->text, "  %s_real *const %s = room + %zu;\n", prefix, w->names[i], w->room[i]);
}

static void put_body(function_writer *w, table_span *spans) {
  name_tables(w);
  for (int i = 0; i < w->code->n_buffers; i++) w->room[i] = SIZE_MAX;
  declare_tables(w, plan(w, spans));
  put_indices(w);
  for (int i = 0; i < w->code->n_statements; i++) {
    const dv_statement *s = &w->code->statements[i];
    if (s->kind == DV_PRODUCT)
      put_product(w, s);
    else if (s->kind == DV_EACH)
      put_each(w, s);
    else
      put_reduction(w, s);
  }
}

void dv_c_part_write(dv_text *t, dv_c_file *f, const dv_code_part *p, const char *name) {
  size_t n = (size_t)p->code->n_buffers + 1;
  function_writer w = {.text = t, .file = f, .part = p, .code = p->code};
  w.names = dv_calloc(n, sizeof *w.names);
  w.room = dv_calloc(n, sizeof *w.room);
  table_span *spans = dv_calloc(n, sizeof *spans);
  if (w.names && w.room && spans) {
    dv_text_put(t, "static void %s_%s(", f->prefix, name);
    put_arguments(t, f, p, true);
    dv_text_put(t, ") {\n");
    put_body(&w, spans);
    dv_text_put(t, "}\n\n");
  } else {
    t->failed = true;
  }
  DV_FREE(w.names, w.room, spans);
}
