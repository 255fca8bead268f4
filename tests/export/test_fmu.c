/* FMUs as a simulator loads them: unpacked, opened, and called through the functions of FMI 2.0. */
#include "exported.h"

#include "base/memory.h"

#include <dlfcn.h>
#include <zip.h>

#include <cmocka.h>

/* ---- FMI 2.0 ---- */

typedef void *component;
typedef unsigned reference;
typedef struct callbacks {
  void (*logger)(void *, const char *, int, const char *, const char *, ...);
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*finished)(void *, int);
  void *environment;
} callbacks;

typedef struct fmu {
  void *library;
  component at;
  const char *(*version)(void);
  component (*instantiate)(const char *, int, const char *, const char *, const callbacks *, int, int);
  void (*release)(component);
  int (*setup)(component, int, double, double, int, double);
  int (*enter)(component);
  int (*leave)(component);
  int (*reset)(component);
  int (*get)(component, const reference *, size_t, double *);
  int (*set)(component, const reference *, size_t, const double *);
  int (*get_integer)(component, const reference *, size_t, int *);
  int (*set_boolean)(component, const reference *, size_t, const int *);
  int (*step)(component, double, double, int);
  int (*get_state)(component, void **);
  int (*set_state)(component, void *);
  int (*free_state)(component, void **);
  int (*state_size)(component, void *, size_t *);
  int (*serialize)(component, void *, char *, size_t);
  int (*deserialize)(component, const char *, size_t, void **);
  int (*derivative)(component, const reference *, size_t, const reference *, size_t, const double *,
                    double *);
  char *xml;
} fmu;

static char *member(const char *path, const char *name, size_t *size) {
  zip_stat_t info;
  zip_t *zip = zip_open(path, ZIP_RDONLY, NULL);
  assert_non_null(zip);
  if (zip_stat(zip, name, 0, &info)) fail_msg("%s has no %s", path, name);
  char *bytes = malloc(info.size + 1);
  zip_file_t *file = zip_fopen(zip, name, 0);
  assert_int_equal(zip_fread(file, bytes, info.size), info.size);
  bytes[info.size] = 0;
  *size = info.size;
  zip_fclose(file);
  zip_discard(zip);
  return bytes;
}

static void *function(const fmu *f, const char *name) {
  char text[64];
  snprintf(text, sizeof text, "fmi2%s", name);
  void *found = dlsym(f->library, text);
  if (!found) fail_msg("the FMU lacks %s", text);
  return found;
}

static void find_functions(fmu *f) {
  struct {
    void *to;
    const char *name;
  } all[] = {{&f->version, "GetVersion"},
             {&f->instantiate, "Instantiate"},
             {&f->release, "FreeInstance"},
             {&f->setup, "SetupExperiment"},
             {&f->enter, "EnterInitializationMode"},
             {&f->leave, "ExitInitializationMode"},
             {&f->reset, "Reset"},
             {&f->get, "GetReal"},
             {&f->set, "SetReal"},
             {&f->get_integer, "GetInteger"},
             {&f->set_boolean, "SetBoolean"},
             {&f->step, "DoStep"},
             {&f->get_state, "GetFMUstate"},
             {&f->set_state, "SetFMUstate"},
             {&f->free_state, "FreeFMUstate"},
             {&f->state_size, "SerializedFMUstateSize"},
             {&f->serialize, "SerializeFMUstate"},
             {&f->deserialize, "DeSerializeFMUstate"},
             {&f->derivative, "GetDirectionalDerivative"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    void *found = function(f, all[i].name);
    memcpy(all[i].to, &found, sizeof found);
  }
  static const char *const others[] = {"GetTypesPlatform",
                                       "SetDebugLogging",
                                       "Terminate",
                                       "SetInteger",
                                       "GetBoolean",
                                       "GetString",
                                       "SetString",
                                       "CancelStep",
                                       "SetRealInputDerivatives",
                                       "GetRealOutputDerivatives",
                                       "GetStatus",
                                       "GetRealStatus",
                                       "GetIntegerStatus",
                                       "GetBooleanStatus",
                                       "GetStringStatus"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) function(f, others[i]);
}

/* Opens the file and makes an instance that is ready to step. */
static fmu open_fmu(const char *name) {
  static const callbacks calls = {.allocate = calloc, .release = free};
  fmu f = {0};
  size_t size;
  char path[512], inside[128], guid[64] = "";
  snprintf(path, sizeof path, "%s/%s.fmu", folder, name);
  f.xml = member(path, "modelDescription.xml", &size);
  snprintf(inside, sizeof inside, "binaries/linux64/%s.so", name);
  char *binary = member(path, inside, &size);
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  write_bytes(path, binary, size);
  free(binary);
  f.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!f.library) fail_msg("%s", dlerror());
  find_functions(&f);
  assert_string_equal(f.version(), "2.0");
  assert_int_equal(sscanf(strstr(f.xml, "guid=\""), "guid=\"%60[^\"]", guid), 1);
  assert_null(f.instantiate("a", 1, "{another}", "", &calls, 0, 0));
  assert_null(f.instantiate("a", 0, guid, "", &calls, 0, 0)); /* no model exchange */
  f.at = f.instantiate("a", 1, guid, "", &calls, 0, 0);
  assert_non_null(f.at);
  assert_int_equal(f.setup(f.at, 0, 0, 0, 0, 0) || f.enter(f.at) || f.leave(f.at), 0);
  return f;
}

static void close_fmu(fmu *f) {
  f->release(f->at);
  dlclose(f->library);
  free(f->xml);
}

/* The value reference of a variable. */
static reference find(const fmu *f, const char *name) {
  char text[128];
  unsigned found;
  snprintf(text, sizeof text, "<ScalarVariable name=\"%s\" valueReference=\"", name);
  const char *at = strstr(f->xml, text);
  if (!at) fail_msg("no variable %s", name);
  assert_int_equal(sscanf(at + strlen(text), "%u", &found), 1);
  return found;
}

static double get(const fmu *f, const char *format, int i) {
  char name[64];
  double value;
  snprintf(name, sizeof name, format, i);
  reference r = find(f, name);
  assert_int_equal(f->get(f->at, &r, 1, &value), 0);
  return value;
}

static void set(const fmu *f, const char *format, int i, double value) {
  char name[64];
  snprintf(name, sizeof name, format, i);
  reference r = find(f, name);
  assert_int_equal(f->set(f->at, &r, 1, &value), 0);
}

static void export_fmu(const dvbf_model *model, const char *name, const char *settings,
                       const dvbf_export_options *options) {
  dvbf_error error;
  char file[64];
  dvbf_settings *how = export_settings(settings);
  dvbf_export_result result;
  snprintf(file, sizeof file, "%s.fmu", name);
  if (dvbf_export(in_folder(file), model, how, options, &result, &error)) fail_msg("%s", error.message);
  assert_true(result.binary);
  dvbf_settings_free(how);
}

/* ---- The filter ---- */

static bool close_to(double a, double b, double tolerance) {
  return fabs(a - b) <= tolerance * (1 + fabs(b));
}

typedef struct inputs {
  float x[8], u[4];
  bool missing;
} inputs;

static inputs random_inputs(const dvbf_model *m, dv_random *r) {
  inputs in = {.missing = dv_random_uniform(r) < 0.1};
  for (int i = 0; i < m->n_x; i++) {
    in.x[i] = (float)(0.5 + 0.3 * dv_random_normal(r));
    if (in.missing || dv_random_uniform(r) < 0.1) in.x[i] = NAN;
  }
  for (int i = 0; i < m->n_u; i++) in.u[i] = (float)(1 + dv_random_normal(r));
  return in;
}

static void set_inputs(const fmu *f, const dvbf_model *m, const inputs *in) {
  int missing = in->missing;
  reference r = find(f, "missing");
  assert_int_equal(f->set_boolean(f->at, &r, 1, &missing), 0);
  for (int i = 0; i < m->n_x; i++) set(f, "x%d", i + 1, in->missing ? 99 : (double)in->x[i]);
  for (int i = 0; i < m->n_u; i++) set(f, "u%d", i + 1, (double)in->u[i]);
}

/* x and u are of the same row: the library's filter takes u one step later where x does not depend on it. */
static void follow(const dvbf_model *m, const char *name) {
  void *memory;
  size_t size;
  dvbf_filter *filter;
  dvbf_belief belief;
  bool same_row = m->settings->feedthrough;
  float before[4] = {0};
  fmu f = open_fmu(name);
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 3, 0);
  assert_int_equal(dvbf_filter_memsize(&size, m, 1, NULL), DVBF_OK);
  memory = dv_calloc_aligned(size, 1);
  assert_int_equal(dvbf_filter_init(&filter, memory, size, m, 1, 1, NULL), DVBF_OK);
  dvbf_filter_quiet(filter, true);
  for (int t = 0; t < 60; t++) {
    inputs in = random_inputs(m, &random);
    int ready;
    reference r = find(&f, "ready");
    set_inputs(&f, m, &in);
    assert_int_equal(f.step(f.at, 0.5 * t, 0.5, 1), 0);
    dvbf_filter_step(filter, in.missing ? NULL : in.x, same_row ? in.u : before, &belief);
    memcpy(before, in.u, sizeof before);
    assert_int_equal(f.get_integer(f.at, &r, 1, &ready), 0);
    assert_int_equal(ready > 0, belief.ready);
    for (int i = 0; i < m->n_z && ready; i++) {
      assert_true(close_to(get(&f, "z%d", i + 1), (double)belief.mean[i], 1e-5));
      assert_true(get(&f, "z%d_std", i + 1) >= 0);
    }
    if (ready > 1) assert_true(get(&f, "x%d_forecast_std", 1) > 0 && isfinite(get(&f, "x%d_forecast", 1)));
  }
  dv_free(memory);
  close_fmu(&f);
}

static void filters_agree(void **state) {
  (void)state;
  static const char *const which[] = {"locally_linear", "innovation", "autoencoder", "kalman"};
  for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
    dvbf_model *model = make_variant(variant_named(which[i]));
    export_fmu(model, "filter", "sample-time=0.5", NULL);
    follow(model, "filter");
    dvbf_model_free(model);
    clear_folder();
  }
}

/* ---- The state, steps of other sizes, derivatives ---- */

static void states_are_restored(void **state) {
  (void)state;
  dvbf_model *m = make_variant(variant_named("locally_linear"));
  export_fmu(m, "filter", "", NULL);
  fmu f = open_fmu("filter");
  void *saved = NULL, *again = NULL;
  double first[3], bytes_z;
  size_t size;
  dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 3, 0);
  inputs in[12];
  for (int t = 0; t < 12; t++) in[t] = random_inputs(m, &random);
  for (int t = 0; t < 6; t++) set_inputs(&f, m, &in[t]), f.step(f.at, t, 1, 1);
  assert_int_equal(f.get_state(f.at, &saved), 0);
  for (int t = 6; t < 12; t++) set_inputs(&f, m, &in[t]), f.step(f.at, t, 1, 1);
  for (int i = 0; i < 3; i++) first[i] = get(&f, "z%d", i + 1);
  assert_int_equal(f.state_size(f.at, saved, &size), 0);
  char *bytes = malloc(size);
  assert_int_equal(f.serialize(f.at, saved, bytes, size), 0);
  assert_int_equal(f.deserialize(f.at, bytes, size, &again), 0);
  void *ways[] = {saved, again};
  for (int w = 0; w < 2; w++) {
    assert_int_equal(f.set_state(f.at, ways[w]), 0);
    for (int t = 6; t < 12; t++) set_inputs(&f, m, &in[t]), f.step(f.at, t, 1, 1);
    for (int i = 0; i < 3; i++) assert_true(get(&f, "z%d", i + 1) == first[i]);
  }
  /* Two halves of a sample are one. */
  f.reset(f.at);
  for (int t = 0; t < 12; t++) {
    set_inputs(&f, m, &in[t]);
    f.step(f.at, t, 0.5, 1);
    bytes_z = get(&f, "z%d", 1);
    f.step(f.at, t + 0.5, 0.5, 1);
    assert_true(get(&f, "z%d", 1) == bytes_z);
  }
  for (int i = 0; i < 3; i++) assert_true(get(&f, "z%d", i + 1) == first[i]);
  f.free_state(f.at, &saved);
  f.free_state(f.at, &again);
  free(bytes);
  close_fmu(&f);
  dvbf_model_free(m);
  clear_folder();
}

static void plants_agree(void **state) {
  (void)state;
  static const variant dkf = {"dkf", "model=dkf initial=birnn residual=off activation=tanh", .n_u = 2,
                              .n_x = 3};
  const variant *which[] = {variant_named("locally_linear"), variant_named("kalman"),
                            variant_named("bernoulli"), &dkf};
  for (size_t k = 0; k < sizeof which / sizeof *which; k++) {
    dvbf_model *m = make_variant(which[k]);
    dvbf_jacobian *linear = NULL;
    dvbf_jacobians j;
    float z[4], u[4] = {0};
    dv_random random = dv_random_at(4, DV_STREAM_SIMULATION, 3, 0);
    export_fmu(m, "plant", "as=plant sample-time=0.1", NULL);
    fmu f = open_fmu("plant");
    assert_int_equal(dvbf_jacobian_new(&linear, m, NULL), DVBF_OK);
    for (int i = 0; i < m->n_z; i++) z[i] = (float)get(&f, "z%d", i + 1);
    for (int t = 0; t < 40; t++) {
      double by_u[3], slope = 0;
      for (int i = 0; i < m->n_u; i++) u[i] = (float)(1 + dv_random_normal(&random));
      for (int i = 0; i < m->n_u; i++) set(&f, "u%d", i + 1, (double)u[i]);
      assert_int_equal(f.step(f.at, 0.1 * t, 0.1, 1), 0);
      dvbf_jacobian_at(linear, z, u, &j);
      for (int i = 0; i < m->n_z; i++) z[i] = j.next[i], by_u[i] = (double)j.b[i * m->n_u];
      dvbf_jacobian_at(linear, z, u, &j);
      for (int i = 0; i < m->n_x; i++) assert_true(close_to(get(&f, "x%d", i + 1), (double)j.x[i], 2e-5));
      for (int i = 0; i < m->n_z; i++) slope += (double)j.h[i] * by_u[i];
      slope += (double)j.d[0];
      reference unknown = find(&f, "x1"), known = find(&f, "u1");
      double one = 1, found;
      assert_int_equal(f.derivative(f.at, &unknown, 1, &known, 1, &one, &found), 0);
      if (!close_to(found, slope, 1e-4)) fail_msg("%s step %d: %g, not %g", which[k]->name, t, found, slope);
    }
    dvbf_jacobian_free(linear);
    close_fmu(&f);
    dvbf_model_free(m);
    clear_folder();
  }
}

/* ---- Names ---- */

static void any_column_name_will_do(void **state) {
  (void)state;
  dvbf_model *m = make_variant(variant_named("locally_linear"));
  char x_names[3][32] = {"*/ system(\"x\"); /*", "<a b=\"c\">&", "ready"}, u_names[2][32] = {"u\n1", "ready"};
  dvbf_data data = {.x_names = x_names, .u_names = u_names};
  dvbf_sequences s = random_data(3, 2);
  data.train = s;
  dvbf_export_options options = {.data = &data, .sequences = &data.train, .force = true};
  export_fmu(m, "named", "", &options);
  fmu f = open_fmu("named");
  assert_non_null(strstr(f.xml, "name=\"*/ system(&quot;x&quot;); /*\""));
  assert_non_null(strstr(f.xml, "name=\"&lt;a b=&quot;c&quot;&gt;&amp;\""));
  assert_non_null(strstr(f.xml, "name=\"ready_2\""));
  assert_non_null(strstr(f.xml, "name=\"ready_3\""));
  assert_non_null(strstr(f.xml, "name=\"u_1\""));
  dvbf_settings *how = export_settings("samples=2");
  assert_int_equal(dvbf_export(in_folder("named.c"), m, how, &options, NULL, NULL), DVBF_OK);
  run_or_fail("cd %s && gcc " STRICT " -O1 named.c named_test.c -o named -lm && ./named >log", folder);
  dvbf_settings_free(how);
  close_fmu(&f);
  dvbf_sequences_free(&s);
  dvbf_model_free(m);
  clear_folder();
}

static void same_run_same_bytes(void **state) {
  (void)state;
  dvbf_model *m = make_variant(variant_named("locally_linear"));
  export_fmu(m, "one", "prefix=a", NULL);
  export_fmu(m, "two", "prefix=a", NULL);
  assert_true(same_bytes(in_folder("one.fmu"), in_folder("two.fmu")));
  dvbf_model_free(m);
  clear_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(filters_agree),       cmocka_unit_test(states_are_restored),
      cmocka_unit_test(plants_agree),        cmocka_unit_test(any_column_name_will_do),
      cmocka_unit_test(same_run_same_bytes),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
