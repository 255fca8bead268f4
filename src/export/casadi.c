/* The model without noise as CasADi functions in one Python file (target .py): z' = f(z, u) and x =
 * g(z). Statements of a part become expressions over whole vectors. */
#include "base/error.h"
#include "base/memory.h"
#include "export/c_file.h"

#include <stdio.h>
#include <string.h>

typedef struct casadi_writer {
  dv_text *text, *numbers; /* the function, and the constants before it */
  dv_constants constants;
  dv_code_part part;
  const dvbf_code *code;
  bool *made; /* [buffers] the table has its variable */
} casadi_writer;

/* ---- Names ---- */

/* The variable of a table: one for each buffer, but for those of slots. */
static void put_table_name(casadi_writer *w, int buffer, size_t *offset) {
  static const char *const slots[DV_SLOTS] = {"z",    "noise", "u",   "u",        "x",
                                              "mask", "seen",  "out", "variance", "slopes"};
  int slot = dv_code_part_slot_at(&w->part, buffer, *offset);
  if (slot >= 0) {
    dv_text_put(w->text, "%s", slots[slot]);
    *offset -= w->part.slot[slot].offset;
    return;
  }
  dv_text_put(w->text, "t%d", buffer);
}

/* A constant of its own, for all its numbers from the place on; a weight is written transposed. */
static const char *constant_name(casadi_writer *w, dvbf_place p, size_t rows, size_t cols, bool weight) {
  const dv_code_buffer *b = &w->code->buffers[p.buffer];
  int before = w->constants.count;
  const dv_constant *k =
      dv_constants_take(&w->constants, b->constant + p.offset, rows, cols, weight, b->name);
  if (!k) return "";
  if (w->constants.count == before) return k->name;
  dv_text_put(w->numbers, "%s = ", k->name);
  if (weight) dv_text_put(w->numbers, "ca.reshape(");
  dv_text_put(w->numbers, "ca.DM([");
  for (size_t i = 0; i < rows * cols; i++)
    dv_text_put(w->numbers, "%s%.9g", i % 8 ? ", " : i ? ",\n    " : "", (double)k->values[i]);
  dv_text_put(w->numbers, "])");
  if (weight) dv_text_put(w->numbers, ", %zu, %zu)  # transposed", cols, rows);
  dv_text_put(w->numbers, "\n");
  return k->name;
}

/* ---- Places ---- */

/* start, start + by, ... of n numbers; `r` is added if rows are counted. */
static void put_slice(casadi_writer *w, size_t offset, size_t by_row, size_t by_col, int rows, int n) {
  char row[48] = "";
  if (rows > 1 && by_row) snprintf(row, sizeof row, " + %zu * r", by_row);
  if (!by_col || n == 1)
    dv_text_put(w->text, "[%zu%s]", offset, row);
  else if (by_col == 1)
    dv_text_put(w->text, "[%zu%s:%zu%s]", offset, row, offset + (size_t)n, row);
  else
    dv_text_put(w->text, "[%zu%s:%zu%s:%zu]", offset, row, offset + ((size_t)n - 1) * by_col + 1, row,
                by_col);
}

static size_t table_size(const casadi_writer *w, int buffer, size_t offset) {
  int slot = dv_code_part_slot_at(&w->part, buffer, offset);
  return slot >= 0 ? w->part.slot[slot].size : w->code->buffers[buffer].size;
}

static void put_operand(casadi_writer *w, const dv_statement *s, dvbf_place p, int n) {
  size_t offset = p.offset, size;
  if (w->code->buffers[p.buffer].constant) {
    size = (size_t)(s->rows - 1) * p.by_row + (size_t)(n - 1) * p.by_col + 1;
    dv_text_put(w->text, "%s", constant_name(w, p, 1, size, false));
    offset = 0;
  } else {
    size = table_size(w, p.buffer, offset);
    put_table_name(w, p.buffer, &offset);
  }
  if (offset || p.by_col != 1 || size != (size_t)n || s->rows > 1)
    put_slice(w, offset, p.by_row, p.by_col, s->rows, n);
}

/* ---- Expressions ---- */

/* A, B and C stand for operands. */
static void put_expression(casadi_writer *w, const dv_statement *s, dvbf_expr e) {
  static const char *const patterns[] = {
      "(A + B)",   "(A - B)",    "(A * B)",    "(A / B)",    "ca.fmax(A, B)", "ca.fmin(A, B)", "ca.exp(A)",
      "ca.log(A)", "ca.sqrt(A)", "ca.tanh(A)", "sigmoid(A)", "ca.sin(A)",     "ca.cos(A)",     "ca.fabs(A)"};
  const dv_node *n = &w->code->nodes[e];
  if (n->kind == DV_NODE_NUMBER) {
    dv_text_put(w->text, n->number < 0 ? "(%.17g)" : "%.17g", n->number);
    return;
  }
  if (n->kind == DV_NODE_READ) {
    put_operand(w, s, n->place, s->cols);
    return;
  }
  const char *at = n->kind == DV_NODE_CHOOSE ? "ca.if_else(A > 0, B, C)" : patterns[n->kind];
  for (; *at; at++)
    if (*at >= 'A' && *at <= 'C')
      put_expression(w, s, *at == 'A' ? n->a : *at == 'B' ? n->b : n->c);
    else
      dv_text_append(w->text, at, 1);
}

/* ---- Statements ---- */

/* Whether a statement writes a whole table in order, so that its result is the table. */
static bool is_whole(const casadi_writer *w, const dv_statement *s) {
  size_t offset = s->out.offset, size = table_size(w, s->out.buffer, offset);
  int slot = dv_code_part_slot_at(&w->part, s->out.buffer, offset);
  if (slot >= 0) offset -= w->part.slot[slot].offset;
  return !offset && s->rows == 1 && s->out.by_col == 1 && (size_t)s->cols == size;
}

/* The left side of an assignment; a table written in parts is allocated before. */
static void put_left(casadi_writer *w, const dv_statement *s, int n, bool whole) {
  size_t offset = s->out.offset, at = offset;
  if (!whole && !w->made[s->out.buffer]) {
    dv_text_put(w->text, "    ");
    put_table_name(w, s->out.buffer, &at);
    dv_text_put(w->text, " = ca.MX.zeros(%zu)\n", table_size(w, s->out.buffer, offset));
  }
  w->made[s->out.buffer] = true;
  if (s->rows > 1) dv_text_put(w->text, "    for r in range(%d):\n    ", s->rows);
  dv_text_put(w->text, "    ");
  at = offset;
  put_table_name(w, s->out.buffer, &at);
  if (!whole) put_slice(w, at, s->out.by_row, s->out.by_col, s->rows, n);
}

static void put_entries(casadi_writer *w, const dv_statement *s) {
  bool each = s->kind == DV_EACH, whole = each && is_whole(w, s);
  put_left(w, s, dv_statement_width(s), whole);
  dv_text_put(w->text, each ? " = " : s->kind == DV_SUM ? " = ca.sum1(" : " = ca.mmax(");
  if (whole || !each) dv_text_put(w->text, "ca.MX.zeros(%d) + ", s->cols);
  put_expression(w, s, s->expr);
  dv_text_put(w->text, each ? "\n" : ")\n");
}

static void put_matrix_product(casadi_writer *w, const dv_statement *s) {
  bool whole = is_whole(w, s);
  put_left(w, s, s->cols, whole);
  dv_text_put(w->text, " += ");
  if (w->code->buffers[s->w.buffer].constant) {
    dv_text_put(w->text, "%s @ ", constant_name(w, s->w, (size_t)s->inner, (size_t)s->cols, true));
  } else {
    size_t offset = s->w.offset;
    dv_text_put(w->text, "ca.reshape(");
    put_table_name(w, s->w.buffer, &offset);
    dv_text_put(w->text, "[%zu:%zu], %d, %d) @ ", offset, offset + (size_t)s->inner * (size_t)s->cols,
                s->cols, s->inner);
  }
  put_operand(w, s, s->x, s->inner);
  dv_text_put(w->text, "\n");
}

/* ---- Functions ---- */

static dvbf_status put_function(casadi_writer *w, const dv_code_part *from, const dvbf_model *m,
                                const char *name, dvbf_error *error) {
  w->part = (dv_code_part){0};
  dv_derivation how = {.quiet = true, .mean_only = true};
  dvbf_status status = dv_code_part_derive(&w->part, from, &how, error);
  w->code = w->part.code;
  w->made = status ? NULL : dv_calloc((size_t)w->code->n_buffers + 1, sizeof *w->made);
  if (!status && !w->made) status = dv_fail_memory(error, "exporting a model");
  if (!status) {
    bool u = m->n_u && (dv_code_part_reads(&w->part, DV_SLOT_U) ||
                        dv_code_part_reads(&w->part, DV_SLOT_NOW) || !strcmp(name, "transition"));
    dv_text_put(w->text, "\n\ndef make_%s():\n    z = ca.MX.sym('z', %d)\n", name, m->n_z);
    if (u)
      dv_text_put(w->text, "    control = ca.MX.sym('u', %d)\n    u = (control - u_shift) * u_scale\n",
                  m->n_u);
    for (int i = 0; i < w->code->n_statements; i++) {
      const dv_statement *s = &w->code->statements[i];
      if (s->kind == DV_PRODUCT)
        put_matrix_product(w, s);
      else
        put_entries(w, s);
    }
    dv_text_put(w->text, "    return ca.Function('%s', [z%s], [out], ['z'%s], ['%s'])\n", name,
                u ? ", control" : "", u ? ", 'u'" : "", !strcmp(name, "transition") ? "z_next" : "x");
  }
  dv_free(w->made);
  dv_code_part_clear(&w->part);
  return status;
}

static void put_numbers(dv_text *t, const char *name, dv_array from, int n) {
  dv_text_put(t, "%s = ca.DM([", name);
  for (int i = 0; i < n; i++)
    dv_text_put(t, "%s%.9g", i ? ", " : "", from.reals ? from.reals[i] : (double)from.floats[i]);
  dv_text_put(t, "])\n");
}

static dvbf_status put_start(dv_text *t, const dv_parts *parts, dvbf_error *error) {
  const dvbf_model *m = parts->model;
  double *start = dv_calloc((size_t)m->n_z, sizeof *start);
  dvbf_status status =
      start ? dv_parts_start(parts, start, error) : dv_fail_memory(error, "exporting a model");
  if (!status) put_numbers(t, "z_start", (dv_array){.reals = start}, m->n_z);
  if (m->n_u) put_numbers(t, "u_shift", (dv_array){.floats = m->u.shift}, m->n_u);
  if (m->n_u) put_numbers(t, "u_scale", (dv_array){.floats = m->u.scale}, m->n_u);
  dv_free(start);
  return status;
}

static dvbf_status write(dv_text *t, const dv_export *e, dvbf_error *error) {
  const dvbf_model *m = e->model;
  dv_parts parts = {0};
  dv_text functions = {0}, numbers = {0}, start = {0};
  casadi_writer w = {.text = &functions, .numbers = &numbers};
  dvbf_status status = dv_parts_init(&parts, m, true, error);
  if (!status) status = dv_file_header(t, e, "#", error);
  if (!status) status = put_start(&start, &parts, error);
  if (!status) status = put_function(&w, &parts.move, m, "transition", error);
  if (!status) status = put_function(&w, &parts.emission, m, "observe", error);
  if (!status) status = dv_constants_check(&w.constants, error);
  if (!status) {
    dv_text_put(t,
                "#\n# transition(z, u) is the next state without noise, observe(z) the mean of x; u and x "
                "are in units\n"
                "# of the data. z_start is the state to begin with, where no filter gives one.\n"
                "import casadi as ca\n\nN_X, N_U, N_Z = %d, %d, %d\n",
                m->n_x, m->n_u, m->n_z);
    dv_text_join(t, &start);
    dv_text_join(t, &numbers);
    dv_text_put(t, "\n\ndef sigmoid(x):\n    return 1 / (1 + ca.exp(-x))\n");
    dv_text_join(t, &functions);
    dv_text_put(t, "\n\ntransition = make_transition()\nobserve = make_observe()\n");
    t->failed |= w.constants.failed;
  }
  dv_constants_clear(&w.constants);
  DV_TEXT_FREE(&functions, &numbers, &start);
  dv_parts_clear(&parts);
  return status;
}

DV_TARGET(casadi) {
  dv_text text = {0};
  dvbf_status status = dv_refuse_existing(e->path, e->options->force, error);
  if (!status) status = write(&text, e, error);
  if (!status) status = dv_text_write(&text, e->path, error);
  dv_text_free(&text);
  return status;
}
