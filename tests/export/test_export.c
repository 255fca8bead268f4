/* Exported C against the library's own filters: every kind of model, by two compilers, under sanitizers. */
#include "exported.h"
#include "part.h"

#include "base/memory.h"

#include <dlfcn.h>

#include <cmocka.h>

enum { RUNS = 50, STEPS = 200 }; /* 10,000 steps */

/* ---- What the test of an export says itself ---- */

/* Exports to NAME.c in the folder. */
static void export_as(const dvbf_model *model, const char *name, const char *settings) {
  dvbf_error error;
  char file[64];
  dvbf_settings *how = export_settings(settings);
  snprintf(file, sizeof file, "%s.c", name);
  dvbf_export_options options = {.force = true};
  if (dvbf_export(in_folder(file), model, how, &options, NULL, &error))
    fail_msg("%s: %s", name, error.message);
  dvbf_settings_free(how);
}

/* Compiles and runs its test, whose tolerance must be small: strictly by gcc with sanitizers and by clang,
 * where there is one, in turns, or by both if DVBF_EVERY_COMPILER is set. */
static void try_export(const char *name) {
  static const char *const compilers[] = {"gcc -O0 -fsanitize=address,undefined -fno-sanitize-recover=all",
                                          "clang -O1"};
  static int turn;
  int both = getenv("DVBF_EVERY_COMPILER") && have("clang"), first = both ? 0 : turn++ % 2 && have("clang");
  run_or_fail("grep -q 'define TOLERANCE [1-9].[0-9]e-05' %s/%s_test.c", folder, name);
  for (int i = first; i <= first + both; i++)
    run_or_fail("cd %s && %s " STRICT " %s.c %s_test.c -o %s -lm && ./%s > log || { head -5 log; false; }",
                folder, compilers[i], name, name, name, name);
}

/* ---- Ten thousand steps beside the library ---- */

typedef void reset_fn(void *state);
typedef void sampled_reset_fn(void *state, uint64_t seed);
typedef int step_fn(void *state, const float *x, const float *u, const unsigned char *missing, float *out);

typedef int predict_fn(const void *state, const float *u, int n, float *x, float *x_std);

typedef struct loaded {
  void *library;
  predict_fn *predict;   /* NULL: the model has none */
  void *state, *sampled; /* as large as any */
  reset_fn *reset;
  sampled_reset_fn *sampled_reset;
  step_fn *step, *sampled_step;
} loaded;

static void *symbol(const loaded *l, const char *name, const char *what) {
  char text[128];
  snprintf(text, sizeof text, "%s_%s", name, what);
  return dlsym(l->library, text);
}

static loaded load(const char *name) {
  loaded l = {.state = calloc(1, 1 << 20), .sampled = calloc(1, 1 << 20)};
  run_or_fail("cd %s && gcc -std=c99 -O0 -fPIC -shared %s.c -o %s.so -lm", folder, name, name);
  char file[64];
  snprintf(file, sizeof file, "%s.so", name);
  l.library = dlopen(in_folder(file), RTLD_NOW);
  if (!l.library) fail_msg("%s", dlerror());
  l.reset = (reset_fn *)symbol(&l, name, "reset");
  l.step = (step_fn *)symbol(&l, name, "step");
  l.sampled_reset = (sampled_reset_fn *)symbol(&l, name, "sampled_reset");
  l.sampled_step = (step_fn *)symbol(&l, name, "sampled_step");
  l.predict = (predict_fn *)symbol(&l, name, "predict");
  assert_non_null(l.reset);
  assert_non_null(l.step);
  return l;
}

static void unload(loaded *l) {
  dlclose(l->library);
  free(l->state);
  free(l->sampled);
}

static dvbf_filter *new_filter(const dvbf_model *model, size_t samples, void **memory) {
  size_t size;
  dvbf_filter *filter = NULL;
  assert_int_equal(dvbf_filter_memsize(&size, model, samples, NULL), DVBF_OK);
  *memory = dv_calloc_aligned(size, 1);
  assert_int_equal(dvbf_filter_init(&filter, *memory, size, model, samples, 7, NULL), DVBF_OK);
  return filter;
}

/* x, u and which values are missing, of one step. */
typedef struct inputs {
  float x[8], u[4], gaps[8];
  unsigned char missing[8];
  bool none;
} inputs;

static inputs random_inputs(const dvbf_model *m, dv_random *r) {
  inputs in = {.none = dv_random_uniform(r) < 0.15};
  bool all = true;
  for (int i = 0; i < m->n_x; i++) {
    in.x[i] = (float)(0.5 + 0.3 * dv_random_normal(r));
    in.missing[i] = in.none || dv_random_uniform(r) < 0.1;
    in.gaps[i] = in.missing[i] ? NAN : in.x[i];
    all &= in.missing[i];
  }
  in.none = all;
  for (int i = 0; i < m->n_u; i++) in.u[i] = (float)(1 + dv_random_normal(r));
  return in;
}

static double apart(const float *a, const float *b, int n) {
  double most = 0;
  for (int i = 0; i < n; i++) most = fmax(most, fabs((double)(a[i] - b[i])) / (1 + fabs((double)b[i])));
  return most;
}

/* NaN in the place of flags, a null pointer in the place of a frame: all ways to say what is missing. */
static int call(step_fn *step, void *state, const inputs *in, int t, float *out) {
  if (in->none && t % 2) return step(state, NULL, in->u, NULL, out);
  return t % 3 ? step(state, in->x, in->u, in->missing, out) : step(state, in->gaps, in->u, NULL, out);
}

/* Whether deviations of x are exact too, and not by linearisation. */
static bool is_exact(const dvbf_model *m) {
  bool exact = true;
  for (int k = 0; k < dv_model_members(m); k++) exact &= dv_model_member(m, k)->type->exact_system != NULL;
  return exact;
}

/* What the filter without samples predicts now, beside the library; returns how far they are apart. */
static double compare_predictions(const loaded *l, const dvbf_model *m, dvbf_filter *quiet, dv_random *r) {
  enum { AHEAD = 5 };
  dvbf_error error;
  float u[AHEAD * 4], x[AHEAD * 8], std[AHEAD * 8], is[AHEAD * 8], is_std[AHEAD * 8];
  for (int i = 0; i < AHEAD * m->n_u; i++) u[i] = (float)(1 + dv_random_normal(r));
  dvbf_forecast_request ask = {.steps = AHEAD, .u = m->n_u ? u : NULL, .x = x, .x_std = std};
  if (dvbf_filter_predict(quiet, &ask, &error)) fail_msg("%s", error.message);
  assert_int_equal(l->predict(l->state, m->n_u ? u : NULL, AHEAD, is, is_std), 1);
  double worst = apart(is, x, AHEAD * m->n_x);
  return is_exact(m) ? fmax(worst, apart(is_std, std, AHEAD * m->n_x)) : worst;
}

static void compare_steps(const dvbf_model *model, const char *name) {
  loaded l = load(name);
  void *memory[2];
  int n_z = model->n_z;
  bool alone = dv_model_members(model) == 1; /* in a committee z may be there before all members are ready */
  double worst = 0, worst_sampled = 0, worst_std = 0, worst_ahead = 0;
  dvbf_filter *quiet = new_filter(model, 1, &memory[0]), *sampled = new_filter(model, 4, &memory[1]);
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 9, 0);
  dvbf_filter_quiet(quiet, true);
  for (int run = 0; run < RUNS; run++) {
    l.reset(l.state);
    if (l.sampled_reset) l.sampled_reset(l.sampled, 7);
    dvbf_filter_reset(quiet);
    dvbf_filter_reset(sampled);
    for (int t = 0; t < STEPS; t++) {
      float out[64];
      dvbf_belief belief;
      inputs in = random_inputs(model, &random);
      dvbf_filter_step(quiet, in.none ? NULL : in.gaps, in.u, &belief);
      int ready = call(l.step, l.state, &in, t, out);
      assert_true((ready > 0) == belief.ready || (!alone && ready));
      if (belief.ready && t % 13 == 0 && l.predict)
        worst_ahead = fmax(worst_ahead, compare_predictions(&l, model, quiet, &random));
      if (ready) worst = fmax(worst, apart(out, belief.mean, n_z));
      if (ready && model->type->exact_system)
        worst_std = fmax(worst_std, apart(out + n_z, belief.deviation, n_z));
      if (!l.sampled_step) continue;
      dvbf_filter_step(sampled, in.none ? NULL : in.gaps, in.u, &belief);
      ready = call(l.sampled_step, l.sampled, &in, t, out);
      assert_true((ready > 0) == belief.ready || (!alone && ready));
      if (ready) worst_sampled = fmax(worst_sampled, apart(out, belief.mean, n_z));
      if (ready) worst_std = fmax(worst_std, apart(out + n_z, belief.deviation, n_z));
    }
  }
  print_message("%-20s %.1e %.1e %.1e %.1e\n", name, worst, worst_sampled, worst_std, worst_ahead);
  assert_true(worst_ahead < 1e-5);
  assert_true(worst < 1e-5);
  assert_true(worst_sampled < 1e-5);
  assert_true(worst_std < 1e-5);
  dv_free(memory[0]);
  dv_free(memory[1]);
  unload(&l);
}

static void every_model_agrees(void **state) {
  (void)state;
  int number = 0;
  for (const variant *v = NULL; (v = next_variant(v, EXPORT));) {
    if (number++ % PART) continue;
    dvbf_model *model = make_variant(v);
    export_as(model, v->name, "samples=4");
    try_export(v->name);
    compare_steps(model, v->name);
    dvbf_model_free(model);
    clear_folder();
  }
}

/* ---- Options ---- */

static void options_agree(void **state) {
  (void)state;
  static const struct {
    const char *variant, *settings;
  } some[] = {{"locally_linear", "samples=0 deviation=off"},
              {"locally_linear", "libm=off"},
              {"locally_linear", "weights=int8 samples=3"},
              {"network", "real=double samples=3"},
              {"network", "weights=bfloat16 deviation=off"},
              {"fast_dropout", "libm=off real=double samples=2"},
              {"fast_dropout_tanh", "weights=int8 libm=off"},
              {"innovation", "samples=3 deviation=off"},
              {"innovation", "samples=0"},
              {"contracted", "weights=int8 samples=3"},
              {"autoencoder", "samples=0 deviation=off"},
              {"kalman", "deviation=off"},
              {"kalman", "real=double weights=int8"},
              {"kalman_limits", "libm=off"}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i += PART) {
    dvbf_model *model = make_variant(variant_named(some[i].variant));
    export_as(model, "option", some[i].settings);
    try_export("option");
    dvbf_model_free(model);
    clear_folder();
  }
}

/* Members of three classes. In the other committee one has feedthrough, one takes part in predictions alone
 * and one in forecasts alone. */
static dvbf_model *make_committee(bool other) {
  static const variant members[2][3] = {
      {{"a", "initial-frames=3", .n_u = 2, .n_x = 3},
       {"b", "latent=2 transition=mlp initial-frames=2 state-limit=1", .n_u = 2, .n_x = 3},
       {"c", "model=linear latent=4 feedthrough=on", .n_u = 2, .n_x = 3}},
      {{"a", "initial-frames=2", .n_u = 2, .n_x = 3},
       {"b", "latent=2 feedthrough=on recognition-input=innovation linear-paths=on initial-frames=3", 2,
        .n_x = 3},
       {"c", "model=linear latent=4 state-limit=0.5", .n_u = 2, .n_x = 3}}};
  dvbf_model *model = make_variant(&members[other][0]);
  for (int k = 1; k < 3; k++)
    assert_int_equal(dv_model_add_member(model, make_variant(&members[other][k]), NULL), DVBF_OK);
  if (other) model->others[0]->no_forecasts = model->others[1]->no_predictions = true;
  return model;
}

static void committees_are_pooled(void **state) {
  (void)state;
  static const struct {
    bool other, compare;
    const char *options;
  } some[] = {{false, true, "samples=4"},
              {true, true, "samples=4"},
              {true, false, "samples=0 deviation=off libm=off"},
              {true, false, "samples=4 member=3"},
              {true, false, "samples=4 member=2 libm=off"}};
  for (size_t k = 0; k < sizeof some / sizeof *some; k += PART) {
    dvbf_model *model = make_committee(some[k].other);
    export_as(model, "committee", some[k].options);
    try_export("committee");
    if (some[k].compare) compare_steps(model, "committee");
    dvbf_model_free(model);
    clear_folder();
  }
}

/* A machine with the other order of bytes, where its compiler and QEMU are installed. */
static void byte_order_does_not_matter(void **state) {
  (void)state;
  static const char *const settings[] = {"samples=4", "weights=int8 samples=2",
                                         "weights=bfloat16 libm=off samples=2", "real=double libm=off"};
  if (!have("s390x-linux-gnu-gcc") || !have("qemu-s390x")) {
    print_message("not tested: there is no s390x-linux-gnu-gcc or qemu-s390x\n");
    skip();
  }
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    dvbf_model *model = make_variant(variant_named(i % 2 ? "innovation" : "locally_linear"));
    export_as(model, "other", settings[i]);
    run_or_fail(
        "cd %s && s390x-linux-gnu-gcc " STRICT
        " -static other.c other_test.c -o other -lm && qemu-s390x ./other > log || { head -5 log; false; }",
        folder);
    dvbf_model_free(model);
    clear_folder();
  }
}

static void same_run_same_bytes(void **state) {
  (void)state;
  dvbf_model *model = make_variant(variant_named("locally_linear"));
  export_as(model, "once", "prefix=one");
  export_as(model, "again", "prefix=one");
  size_t size;
  char *text = (char *)read_bytes(in_folder("once.c"), &size);
  text[size - 1] = 0;
  assert_null(strstr(text, folder));
  free(text);
  run_or_fail("cd %s && sed -i s/again.h/once.h/ again.c && cmp once.c again.c && cmp once.h again.h",
              folder);
  dvbf_model_free(model);
  clear_folder();
}

/* With optimisation, a compiler looks at the sizes of arrays too: one column is where it is easily misled. */
static void one_column_compiles(void **state) {
  (void)state;
  dvbf_error error;
  dvbf_model *model = make_variant(variant_named("kalman_alone"));
  export_as(model, "alone", "");
  if (dvbf_export_check(in_folder("alone.c"), &error)) fail_msg("%s", error.message);
  dvbf_model_free(model);
  clear_folder();
}

/* Hidden units whose weights are all 0 further on are not written, and nothing else changes. */
static void idle_units_are_left_out(void **state) {
  (void)state;
  dvbf_model *model = make_variant(variant_named("locally_linear"));
  const dv_parameter *p = dv_model_find(model, "recognition.output.h");
  assert_non_null(p);
  size_t size[2];
  for (int idle = 0; idle < 2; idle++) {
    export_as(model, "units", "");
    free(read_bytes(in_folder("units.c"), &size[idle]));
    memset(model->parameters.values + p->offset, 0,
           (size_t)p->rows * (size_t)p->cols * sizeof *model->parameters.values);
  }
  assert_true(size[1] < size[0]);
  run_or_fail("! grep -q recognition_hidden %s/units.c", folder);
  try_export("units");
  dvbf_model_free(model);
  clear_folder();
}

/* Two models live in one program. */
static void prefixes_keep_models_apart(void **state) {
  (void)state;
  dvbf_model *one = make_variant(variant_named("locally_linear")),
             *other = make_variant(variant_named("kalman"));
  export_as(one, "one", "samples=2");
  export_as(other, "other", "");
  const char *program = "#include \"one.h\"\n#include \"other.h\"\nint main(void) {\n"
                        "  static one_state a; static other_state b;\n"
                        "  one_reset(&a); other_reset(&b);\n"
                        "  return one_step(&a, 0, 0, 0, 0) != 0 || other_step(&b, 0, 0, 0, 0) != 2;\n}\n";
  write_bytes(in_folder("main.c"), program, strlen(program));
  run_or_fail("cd %s && gcc " STRICT " main.c one.c other.c -o main -lm && ./main", folder);
  dvbf_model_free(one);
  dvbf_model_free(other);
  clear_folder();
}

/* ---- Refusals and names ---- */

static void refuse(const dvbf_model *model, const char *file, const char *settings, const char *why) {
  dvbf_error error = {.message = ""};
  dvbf_settings *how = export_settings(settings);
  assert_int_not_equal(dvbf_export(in_folder(file), model, how, NULL, NULL, &error), DVBF_OK);
  if (!strstr(error.message, why)) fail_msg("%s", error.message);
  dvbf_settings_free(how);
  assert_int_equal(clear_folder(), 0);
}

static void refusals_say_why(void **state) {
  (void)state;
  static const variant dkf = {"dkf", "model=dkf initial=birnn", .n_u = 2, .n_x = 3};
  dvbf_model *model = make_variant(&dkf);
  refuse(model, "a.c", "", "needs the frames after t");
  dvbf_model_free(model);
  static const variant vrnn = {"vrnn", "model=vrnn units=4", .n_u = 2, .n_x = 3};
  model = make_variant(&vrnn);
  refuse(model, "a.c", "", "the model vrnn reads each frame twice");
  dvbf_model_free(model);
  model = make_variant(variant_named("locally_linear"));
  refuse(model, "a.cpp", "", "must end in .c");
  refuse(model, "a b.c", "", "letters, digits");
  refuse(model, "a.c", "prefix=1a", "must be a C identifier");
  refuse(model, "a.c", "member=2", "the model has 1");
  refuse(model, "a.c", "as=plant", "as does not apply");
  refuse(model, "a.c", "sample-time=2", "sample-time does not apply");
  dvbf_model_free(model);
  /* Inputs of the test would be infinite in float. */
  model = make_variant(variant_named("kalman"));
  model->x.scale[0] = 4.5e-41F;
  refuse(model, "a.c", "", "not finite");
  dvbf_model_free(model);
  /* So would be the scale of what is filtered. */
  model = make_variant(variant_named("locally_linear"));
  model->x.scale[0] = 1e-44F;
  refuse(model, "a.c", "", "value that is not finite");
  dvbf_model_free(model);
}

/* Names of columns stand in comments, and must not end them. */
static void names_do_no_harm(void **state) {
  (void)state;
  char x[3][32] = {"*/ system(\"x\"); /*", "a\nb\\", "// ?./"}, u[1][32] = {"\xc3\xa4 */"};
  x[2][4] = '?'; /* a trigraph, which this compiler would complain about */
  dvbf_error error;
  variant v = {"names", "", .n_u = 1, .n_x = 3};
  dvbf_model *model = make_variant(&v);
  dvbf_data data = {.train = random_data(3, 1), .x_names = x, .u_names = u};
  dvbf_settings *how = export_settings("samples=0");
  dvbf_export_options options = {.data = &data, .sequences = &data.train};
  if (dvbf_export(in_folder("names.c"), model, how, &options, NULL, &error)) fail_msg("%s", error.message);
  try_export("names");
  if (dvbf_export_check(in_folder("names.c"), &error)) fail_msg("%s", error.message);
  dvbf_settings_free(how);
  dvbf_sequences_free(&data.train);
  dvbf_model_free(model);
  clear_folder();
}

/* The test of an export has data of sequences too short for the initial network; it goes on with others. */
static void short_sequences_suffice(void **state) {
  (void)state;
  dvbf_error error;
  variant v = {"short", "", .n_u = 1, .n_x = 3};
  dvbf_model *model = make_variant(&v);
  dvbf_sequences data = random_data(3, 1);
  dvbf_settings *how = export_settings("samples=3");
  data.steps = (size_t)dv_model_forecasts_from(model) - 1;
  assert_true(data.steps > 0);
  dvbf_export_options options = {.sequences = &data};
  if (dvbf_export(in_folder("short.c"), model, how, &options, NULL, &error)) fail_msg("%s", error.message);
  try_export("short");
  dvbf_settings_free(how);
  dvbf_sequences_free(&data);
  dvbf_model_free(model);
  clear_folder();
}

/* ---- A transition of a user's own ---- */

static void own_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *z = dvbf_at(run, op->in[0]), *w = dvbf_at(run, op->in[1]);
  dvbf_real *next = dvbf_at(run, op->out[0]);
  for (int i = 0; i < op->out[0].rows * op->out[0].cols; i++)
    next[i] = (dvbf_real)(0.9 * sin((double)z[i]) + 0.1 * (double)w[i]);
}

static void own_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_expr z = dvbf_code_read(code, dvbf_place_of(op->in[0])),
            w = dvbf_code_read(code, dvbf_place_of(op->in[1]));
  dvbf_expr wave = dvbf_code_binary(code, DVBF_MULTIPLY, dvbf_code_number(code, 0.9),
                                    dvbf_code_unary(code, DVBF_SIN_OF, z));
  dvbf_expr noise = dvbf_code_binary(code, DVBF_MULTIPLY, dvbf_code_number(code, 0.1), w);
  dvbf_code_each(code, dvbf_place_of(op->out[0]), op->out[0].steps, op->out[0].cols,
                 dvbf_code_binary(code, DVBF_ADD, wave, noise));
}

static void own_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *z = dvbf_at(run, op->in[0]), *d = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *dz = dvbf_gradient_at(run, op->in[0]), *dw = dvbf_gradient_at(run, op->in[1]);
  for (int i = 0; i < op->out[0].rows * op->out[0].cols; i++) {
    if (dz) dz[i] += (dvbf_real)(0.9 * cos((double)z[i])) * d[i];
    if (dw) dw[i] += (dvbf_real)0.1 * d[i];
  }
}

static const dvbf_op_class with_emit = {"wave", own_forward, own_backward, own_emit};
static const dvbf_op_class without_emit = {"silent wave", own_forward, own_backward, NULL};

static void *own_open(const dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                      const dvbf_transition_values *values) {
  (void)self, (void)g, (void)settings, (void)values;
  return NULL;
}

static void own_step(const dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *x,
                     void *memory, int t) {
  (void)memory;
  dvbf_value in[] = {dvbf_steps(x->z, t, 1), dvbf_steps(x->w, t, 1)}, out = dvbf_steps(x->next, t, 1);
  dvbf_record(g, self->user_data, 2, in, 1, &out, NULL, 0);
}

static dvbf_model *make_own(const dvbf_transition *own) {
  dvbf_settings *settings = NULL;
  dvbf_model *model = NULL;
  dvbf_sequences data = random_data(2, 1);
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  set_all(settings, SMALL);
  assert_int_equal(dv_model_new(&model, settings, &(dv_own){.transition = own}, &data, 3, NULL), DVBF_OK);
  dvbf_settings_free(settings);
  dvbf_sequences_free(&data);
  return model;
}

static void own_transitions(void **state) {
  (void)state;
  dvbf_transition own = {.name = "own", .user_data = (void *)&with_emit, .open = own_open, .step = own_step};
  dvbf_model *model = make_own(&own);
  export_as(model, "own", "samples=4");
  try_export("own");
  compare_steps(model, "own");
  dvbf_model_free(model);
  clear_folder();
  own.user_data = (void *)&without_emit;
  model = make_own(&own);
  refuse(model, "own.c", "", "the op \"silent wave\" cannot be exported");
  dvbf_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_model_agrees),         cmocka_unit_test(options_agree),
      cmocka_unit_test(one_column_compiles),        cmocka_unit_test(committees_are_pooled),
      cmocka_unit_test(same_run_same_bytes),        cmocka_unit_test(prefixes_keep_models_apart),
      cmocka_unit_test(refusals_say_why),           cmocka_unit_test(names_do_no_harm),
      cmocka_unit_test(short_sequences_suffice),    cmocka_unit_test(own_transitions),
      cmocka_unit_test(byte_order_does_not_matter), cmocka_unit_test(idle_units_are_left_out),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
