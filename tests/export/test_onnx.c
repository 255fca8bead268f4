/* ONNX and CasADi files of every kind of model: well formed, whole, and the same for the same model. What
 * they compute is compared by tests/peers/check, which needs packages from PyPI. */
#include "exported.h"

#include <cmocka.h>

/* ---- Protocol buffers, as far as ONNX files use them ---- */

typedef struct bytes {
  const unsigned char *at, *end;
} bytes;

typedef struct field {
  unsigned number;
  uint64_t value; /* of a number */
  bytes content;  /* of all else */
} field;

static uint64_t read_varint(bytes *b) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    assert_true(b->at < b->end);
    value |= (uint64_t)(*b->at & 127) << shift;
    if (!(*b->at++ & 128)) return value;
  }
  fail_msg("a number has more than ten bytes");
  return 0;
}

/* The next field; false at the end. */
static bool next_field(bytes *b, field *f) {
  if (b->at == b->end) return false;
  uint64_t key = read_varint(b), size = 0;
  *f = (field){.number = (unsigned)(key >> 3)};
  switch (key & 7) {
  case 0: f->value = read_varint(b); return true;
  case 2: size = read_varint(b); break;
  case 5: size = 4; break;
  default: fail_msg("a field of kind %d", (int)(key & 7));
  }
  assert_true(size <= (uint64_t)(b->end - b->at));
  f->content = (bytes){b->at, b->at + size};
  b->at += size;
  return true;
}

/* ---- A graph ---- */

enum { MOST_NAMES = 20000 };

/* Names of values that exist so far. */
typedef struct names {
  char (*list)[64];
  int count;
} names;

static bool is_known(const names *n, const char *name) {
  for (int i = n->count - 1; i >= 0; i--)
    if (!strcmp(n->list[i], name)) return true;
  return false;
}

static void text_of(char out[64], bytes b) {
  assert_true(b.end - b.at < 64);
  snprintf(out, 64, "%.*s", (int)(b.end - b.at), (const char *)b.at);
}

static void add_name(names *n, bytes b) {
  char name[64];
  text_of(name, b);
  if (is_known(n, name)) fail_msg("%s is made twice", name);
  assert_true(n->count < MOST_NAMES && *name);
  memcpy(n->list[n->count++], name, sizeof name);
}

/* The content of the first field of that number. */
static bytes find(bytes b, unsigned number) {
  field f;
  while (next_field(&b, &f))
    if (f.number == number) return f.content;
  fail_msg("field %u is missing", number);
  return (bytes){0};
}

/* A node reads what is there, and makes what is not. */
static void check_node(names *n, bytes node) {
  field f;
  char name[64];
  int outputs = 0;
  bytes rest = node;
  while (next_field(&rest, &f)) {
    if (f.number != 1) continue;
    text_of(name, f.content);
    if (*name && !is_known(n, name)) fail_msg("%s is read before it is made", name);
  }
  while (next_field(&node, &f))
    if (f.number == 2) add_name(n, f.content), outputs++;
  assert_int_equal(outputs, 1);
}

/* A constant of floats has as many bytes as its shape says. */
static void check_constant(bytes tensor) {
  field f;
  uint64_t numbers = 1, type = 0, size = 0;
  while (next_field(&tensor, &f)) {
    if (f.number == 1) numbers *= f.value;
    if (f.number == 2) type = f.value;
    if (f.number == 9) size = (uint64_t)(f.content.end - f.content.at);
  }
  assert_true(type == 1 || type == 7);
  assert_int_equal(size, numbers * (type == 1 ? 4 : 8));
}

static void check_graph(bytes graph) {
  field f;
  char name[64];
  int nodes = 0, outputs = 0;
  names n = {.list = calloc(MOST_NAMES, sizeof *n.list)};
  bytes constants = graph, steps = graph;
  while (next_field(&constants, &f)) {
    if (f.number == 5) add_name(&n, find(f.content, 8)), check_constant(f.content);
    if (f.number == 11) add_name(&n, find(f.content, 1));
  }
  while (next_field(&steps, &f))
    if (f.number == 1) check_node(&n, f.content), nodes++;
  while (next_field(&graph, &f)) {
    if (f.number != 12) continue;
    text_of(name, find(f.content, 1));
    if (!is_known(&n, name)) fail_msg("the output %s is not made", name);
    outputs++;
  }
  assert_true(nodes > 0 && outputs > 0);
  free(n.list);
}

static void check_file(const char *name) {
  size_t size;
  field f;
  int graphs = 0, sets = 0;
  unsigned char *content = read_bytes(in_folder(name), &size);
  bytes b = {content, content + size}, opset;
  while (next_field(&b, &f)) {
    if (f.number == 7) check_graph(f.content), graphs++;
    if (f.number != 8) continue;
    opset = f.content;
    while (next_field(&opset, &f))
      if (f.number == 2) assert_int_equal(f.value, 13), sets++;
  }
  assert_int_equal(graphs, 1);
  assert_int_equal(sets, 1);
  free(content);
}

/* ---- Tests ---- */

static void graphs_are_whole(void **state) {
  (void)state;
  dvbf_settings *how = export_settings("");
  dvbf_error error;
  for (const variant *v = NULL; (v = next_variant(v, EXPORT));) {
    dvbf_model *model = make_variant(v);
    if (dvbf_export(in_folder("a.onnx"), model, how, NULL, NULL, &error)) fail_msg("%s", error.message);
    check_file("a.onnx");
    if (!model->type->exact_system) check_file("a_start.onnx");
    assert_int_equal(dvbf_export(in_folder("b.onnx"), model, how, NULL, NULL, NULL), DVBF_OK);
    run_or_fail("cd %s && sed s/b/a/g b.onnx >c && sed s/b/a/g a.onnx | cmp c -", folder);
    dvbf_model_free(model);
    clear_folder();
  }
  dvbf_settings_free(how);
}

static void python_reads_functions(void **state) {
  (void)state;
  dvbf_settings *how = export_settings("");
  dvbf_error error;
  for (const variant *v = NULL; (v = next_variant(v, EXPORT));) {
    char file[64];
    dvbf_model *model = make_variant(v);
    snprintf(file, sizeof file, "%s.py", v->name);
    dvbf_status status = dvbf_export(in_folder(file), model, how, NULL, NULL, &error);
    if (status && (model->type->move || !strstr(error.message, "cannot be simulated")))
      fail_msg("%s: %s", v->name, error.message);
    dvbf_model_free(model);
  }
  if (have("python3"))
    run_or_fail("cd %s && python3 -B -c 'import ast, glob\n"
                "for name in glob.glob(\"*.py\"): ast.parse(open(name).read())'",
                folder);
  clear_folder();
  dvbf_settings_free(how);
}

/* The table of targets: each writes a file and says so, once; other endings are refused with the known ones.
 */
static void every_target_writes_a_file(void **state) {
  (void)state;
  dvbf_settings *how = export_settings("");
  dvbf_model *model = make_variant(variant_named("locally_linear"));
  dvbf_error error;
  const char *ending, *help;
  size_t count = 0;
  assert_int_not_equal(dvbf_export(in_folder("a.txt"), model, how, NULL, NULL, &error), DVBF_OK);
  for (; (ending = dvbf_export_target(count, &help)); count++) {
    dvbf_export_result result;
    dvbf_error twice;
    char file[64];
    assert_non_null(strstr(error.message, ending));
    assert_true(*help);
    snprintf(file, sizeof file, "every%s", ending);
    if (dvbf_export(in_folder(file), model, how, NULL, &result, &twice)) fail_msg("%s", twice.message);
    assert_true(*result.summary);
    assert_int_not_equal(dvbf_export(in_folder(file), model, how, NULL, NULL, &twice), DVBF_OK);
    assert_non_null(strstr(twice.message, "already exists"));
  }
  assert_true(count >= 4);
  dvbf_model_free(model);
  dvbf_settings_free(how);
  clear_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(graphs_are_whole),
                                     cmocka_unit_test(python_reads_functions),
                                     cmocka_unit_test(every_target_writes_a_file)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
