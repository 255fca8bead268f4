/* A model as a functional mock-up unit (target .fmu, FMI 2.0): a zip of modelDescription.xml, C sources
 * and a binary of this machine, or none without a compiler. Variables are named by columns of the data. Times
 * in the zip are fixed, so the same model gives the same bytes. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/c_file.h"
#include "settings_tables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zip.h>

enum { DV_VARIABLE_NAME = 80 };

typedef enum dv_variable_kind { DV_INPUT, DV_OUTPUT, DV_PARAMETER } dv_variable_kind;

/* A Real variable, whose value reference is its number. */
typedef struct dv_variable {
  char name[DV_VARIABLE_NAME], description[DV_VARIABLE_NAME + 64];
  dv_variable_kind kind;
  double start; /* of an input or a parameter */
} dv_variable;

typedef struct dv_fmu {
  const dv_export *of;
  const dvbf_model *model;
  dv_export_settings settings; /* as an FMU has them */
  const char *prefix;
  char guid[40];
  dv_variable *variables; /* inputs first, parameters last */
  int count, inputs, parameters;
  bool plant, moves, direct;
} dv_fmu;

/* ---- Names ---- */

/* Printable ASCII; other bytes, and blanks at the ends, are no part of a name. */
static void clean(char out[DV_VARIABLE_NAME], const char *from) {
  size_t n = 0;
  for (; *from && n + 1 < 48; from++) {
    unsigned char c = (unsigned char)*from;
    out[n++] = c >= 32 && c < 127 ? *from : '_';
  }
  while (n && out[n - 1] == ' ') n--;
  out[n] = 0;
  size_t blanks = strspn(out, " ");
  memmove(out, out + blanks, n - blanks + 1);
}

/* Word k of a list with commas, if the list has n words and none of them is a number or a range. */
static bool word_of(char out[DV_VARIABLE_NAME], const char *list, int n, int k) {
  int count = 0;
  bool found = false;
  for (const char *at = list; *at && count <= n; count++) {
    size_t length = strcspn(at, ",");
    char word[DV_VARIABLE_NAME];
    snprintf(word, sizeof word, "%.*s", (int)(length < 47 ? length : 47), at);
    if (!*word || strspn(word, "0123456789- ") == strlen(word)) return false;
    if (count == k) clean(out, word), found = *out != 0;
    at += length + (at[length] == ',');
  }
  return found && count == n;
}

static const char *column_name(char out[DV_VARIABLE_NAME], const dv_fmu *f, bool of_x, int k) {
  const dv_data_settings *d = &f->model->settings->data;
  const dvbf_data *data = f->of->options->data;
  int n = of_x ? f->model->n_x : f->model->n_u;
  char(*names)[32] = !data ? NULL : of_x ? data->x_names : data->u_names;
  *out = 0;
  if (names) clean(out, names[k]);
  if (!*out && !word_of(out, of_x ? d->outputs : d->inputs, n, k)) *out = 0;
  if (!*out) snprintf(out, DV_VARIABLE_NAME, "%c%d", of_x ? 'x' : 'u', k + 1);
  return out;
}

static bool is_taken(const dv_fmu *f, const char *name) {
  for (int i = 0; i < f->count; i++)
    if (!strcmp(f->variables[i].name, name)) return true;
  return !strcmp(name, "missing") || !strcmp(name, "ready") || !strcmp(name, "time");
}

/* Adds a variable; a name that is taken gets a number. */
__attribute__((format(printf, 6, 7))) static void add(dv_fmu *f, dv_variable_kind kind, double start,
                                                      const char *name, const char *ending,
                                                      const char *description, ...) {
  dv_variable *v = &f->variables[f->count];
  va_list list;
  *v = (dv_variable){.kind = kind, .start = start};
  snprintf(v->name, sizeof v->name, "%.60s%s", name, ending);
  for (int i = 2; is_taken(f, v->name); i++) snprintf(v->name, sizeof v->name, "%.60s%s_%d", name, ending, i);
  va_start(list, description);
  vsnprintf(v->description, sizeof v->description, description, list);
  va_end(list);
  f->count++;
}

/* ---- Variables ---- */

static void add_inputs(dv_fmu *f) {
  const dvbf_model *m = f->model;
  char name[DV_VARIABLE_NAME];
  for (int i = 0; i < m->n_x && !f->plant; i++)
    add(f, DV_INPUT, (double)m->x.shift[i], column_name(name, f, true, i), "",
        "observation %d; NaN where it is missing", i + 1);
  for (int i = 0; i < m->n_u; i++)
    add(f, DV_INPUT, (double)m->u.shift[i], column_name(name, f, false, i), "", "control %d", i + 1);
  f->inputs = f->count;
}

static const char *state_name(char out[DV_VARIABLE_NAME], int i) {
  snprintf(out, DV_VARIABLE_NAME, "z%d", i + 1);
  return out;
}

static void add_filter_outputs(dv_fmu *f) {
  char name[DV_VARIABLE_NAME];
  for (int i = 0; i < f->model->n_z; i++) {
    add(f, DV_OUTPUT, 0, state_name(name, i), "", "mean of state %d", i + 1);
    add(f, DV_OUTPUT, 0, name, "_std", "standard deviation of state %d", i + 1);
  }
  for (int i = 0; i < f->model->n_x && f->moves; i++) {
    add(f, DV_OUTPUT, 0, column_name(name, f, true, i), "_forecast",
        "observation %d as predicted from the samples before", i + 1);
    add(f, DV_OUTPUT, 0, name, "_forecast_std", "standard deviation of observation %d around it", i + 1);
  }
}

static void add_plant_outputs(dv_fmu *f, const double *start) {
  char name[DV_VARIABLE_NAME];
  for (int i = 0; i < f->model->n_x; i++)
    add(f, DV_OUTPUT, 0, column_name(name, f, true, i), "", "observation %d", i + 1);
  for (int i = 0; i < f->model->n_z; i++) add(f, DV_OUTPUT, 0, state_name(name, i), "", "state %d", i + 1);
  for (int i = 0; i < f->model->n_z; i++)
    add(f, DV_PARAMETER, start[i], state_name(name, i), "_start", "state %d at the beginning", i + 1);
  f->parameters = f->model->n_z;
}

/* Names the variables by the columns of the data, or by those of the settings of the model, or x1, x2, ...
 * `start` [n_z] is the state that a plant begins with. */
static dvbf_status name_variables(dv_fmu *f, const double *start, dvbf_error *error) {
  const dvbf_model *m = f->model;
  f->variables = dv_calloc(4 * ((size_t)m->n_x + (size_t)m->n_u + (size_t)m->n_z), sizeof *f->variables);
  if (!f->variables) return dv_fail_memory(error, "exporting a model");
  add_inputs(f);
  if (f->plant)
    add_plant_outputs(f, start);
  else
    add_filter_outputs(f);
  return DVBF_OK;
}

/* ---- Description ---- */

static void put_attribute_text(dv_text *t, const char *text) {
  for (; *text; text++) {
    switch (*text) {
    case '&': dv_text_append(t, "&amp;", 5); break;
    case '<': dv_text_append(t, "&lt;", 4); break;
    case '>': dv_text_append(t, "&gt;", 4); break;
    case '"': dv_text_append(t, "&quot;", 6); break;
    default: dv_text_append(t, text, 1);
    }
  }
}

static void put_variable(dv_text *t, const dv_variable *v, int number) {
  static const char *const causality[] = {"input", "output", "parameter"};
  dv_text_put(t, "    <ScalarVariable name=\"");
  put_attribute_text(t, v->name);
  dv_text_put(t, "\" valueReference=\"%d\" description=\"%s\" causality=\"%s\" variability=\"%s\"", number,
              v->description, causality[v->kind], v->kind == DV_PARAMETER ? "fixed" : "discrete");
  if (v->kind == DV_PARAMETER) dv_text_put(t, " initial=\"exact\"");
  if (v->kind == DV_OUTPUT) dv_text_put(t, " initial=\"calculated\"");
  if (v->kind == DV_OUTPUT)
    dv_text_put(t, ">\n      <Real/>\n    </ScalarVariable>\n");
  else
    dv_text_put(t, ">\n      <Real start=\"%.17g\"/>\n    </ScalarVariable>\n", v->start);
}

static void put_variables(dv_text *t, const dv_fmu *f) {
  dv_text_put(t, "  <ModelVariables>\n");
  for (int i = 0; i < f->count; i++) put_variable(t, &f->variables[i], i);
  if (!f->plant)
    dv_text_put(
        t,
        "    <ScalarVariable name=\"missing\" valueReference=\"%d\" description=\"there is no observation in "
        "this sample\" causality=\"input\" variability=\"discrete\">\n      <Boolean start=\"false\"/>\n    "
        "</ScalarVariable>\n"
        "    <ScalarVariable name=\"ready\" valueReference=\"%d\" description=\"0: no estimate yet, 1: of "
        "the "
        "state, 2: of all\" causality=\"output\" variability=\"discrete\" initial=\"calculated\">\n      "
        "<Integer/>\n    </ScalarVariable>\n",
        f->count, f->count + 1);
  dv_text_put(t, "  </ModelVariables>\n");
}

/* Outputs by their place in the list, from 1 on. */
static void put_unknowns(dv_text *t, const dv_fmu *f, const char *name) {
  dv_text_put(t, "    <%s>\n", name);
  for (int i = 0; i < f->count; i++)
    if (f->variables[i].kind == DV_OUTPUT) dv_text_put(t, "      <Unknown index=\"%d\"/>\n", i + 1);
  if (!f->plant) dv_text_put(t, "      <Unknown index=\"%d\"/>\n", f->count + 2);
  dv_text_put(t, "    </%s>\n", name);
}

static void describe(dv_text *t, const dv_fmu *f, const char *const *sources) {
  DV_PLAIN_NUMBERS;
  dv_text_put(t,
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<fmiModelDescription fmiVersion=\"2.0\" modelName=\"%s\" guid=\"%s\" description=\"%s\" "
              "generationTool=\"dvbf %s\" variableNamingConvention=\"flat\">\n",
              f->prefix, f->guid,
              f->plant ? "a learned system: controls in, observations out"
                       : "a learned filter: observations and controls in, states and forecasts out",
              DVBF_VERSION);
  dv_text_put(
      t,
      "  <CoSimulation modelIdentifier=\"%s\" canHandleVariableCommunicationStepSize=\"true\" "
      "canGetAndSetFMUstate=\"true\" canSerializeFMUstate=\"true\" providesDirectionalDerivative=\"true\">\n"
      "    <SourceFiles>\n",
      f->prefix);
  for (; *sources; sources++) dv_text_put(t, "      <File name=\"%s\"/>\n", *sources);
  dv_text_put(
      t, "    </SourceFiles>\n  </CoSimulation>\n  <DefaultExperiment startTime=\"0\" stepSize=\"%.17g\"/>\n",
      f->of->result->sample_time);
  put_variables(t, f);
  dv_text_put(t, "  <ModelStructure>\n");
  put_unknowns(t, f, "Outputs");
  put_unknowns(t, f, "InitialUnknowns");
  dv_text_put(t, "  </ModelStructure>\n</fmiModelDescription>\n");
}

typedef struct content {
  dv_c_source model;
  dv_text wrapper, description, binary;
} content;

/* ---- Sources ---- */

static void put_wrapper(dv_text *t, const dv_fmu *f) {
  const dvbf_model *m = f->model;
  dv_words words = {.prefix = "@"};
  const struct {
    const char *name;
    int number;
  } numbers[] = {{"n_x", m->n_x},       {"n_u", m->n_u},         {"n_u_room", m->n_u ? m->n_u : 1},
                 {"n_z", m->n_z},       {"inputs", f->inputs},   {"reals", f->count},
                 {"missing", f->count}, {"ready", f->count + 1}, {"parameters", f->parameters}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    dv_words_set(&words, numbers[i].name, "%d", numbers[i].number);
  dv_text *starts = dv_words_text(&words, "starts");
  for (int i = 0; i < f->count; i++) dv_text_put(starts, "%s%.17g", i ? ", " : "", f->variables[i].start);
  dv_words_set(&words, "prefix", "%s", f->prefix);
  dv_words_set(&words, "guid", "%s", f->guid);
  dv_words_set(&words, "sample_time", "%.17g", f->of->result->sample_time);
  dv_words_turn(&words, "plant", f->plant);
  dv_words_turn(&words, "controls", m->n_u);
  dv_words_turn(&words, "moves", f->moves);
  dv_words_turn(&words, "direct", f->direct);
  dv_words_turn(&words, "feedthrough", dv_model_same_row(m));
  dv_put(t, fmu_c_in, &words);
  dv_words_clear(&words);
}

/* The same model and settings have the same identity. */
static void set_guid(dv_fmu *f, const content *c) {
  uint64_t hash = dv_hash(dv_hash_start, c->model.code.at, c->model.code.used) ^ f->plant;
  uint64_t model = dv_model_fingerprint(f->model);
  snprintf(f->guid, sizeof f->guid, "{%08x-%04x-%04x-%04x-%012" PRIx64 "}", (unsigned)(hash >> 32),
           (unsigned)(hash >> 16 & 0xffff), (unsigned)(hash & 0xffff), (unsigned)(model >> 48),
           model & 0xffffffffffff);
}

static dvbf_status write_sources(content *c, dv_fmu *f, const char *const *sources, dvbf_error *error) {
  double *start = dv_calloc((size_t)f->model->n_z, sizeof *start);
  dvbf_status status = start ? DVBF_OK : dv_fail_memory(error, "exporting a model");
  if (!status)
    status =
        dv_c_write(&c->model, f->model, f->prefix, f->prefix, &f->settings, f->plant ? start : NULL, error);
  f->direct = c->model.direct;
  if (!status) status = name_variables(f, start, error);
  if (!status) {
    set_guid(f, c);
    put_wrapper(&c->wrapper, f);
    describe(&c->description, f, sources);
    if (c->wrapper.failed || c->description.failed) status = dv_fail_memory(error, "exporting a model");
  }
  dv_free(start);
  return status;
}

/* ---- Binary ---- */

static dvbf_status read_binary(dv_text *to, const char *path, dvbf_error *error) {
  char piece[4096];
  FILE *file = fopen(path, "rb");
  for (size_t n; file && (n = fread(piece, 1, sizeof piece, file));) dv_text_append(to, piece, n);
  bool done = file && !ferror(file) && to->used && !to->failed;
  if (file) fclose(file);
  return done ? DVBF_OK : dv_fail(error, DVBF_IO, "the compiled binary cannot be read");
}

/* Compiles the sources in a temporary folder. Without a compiler the FMU has no binary. */
static dvbf_status compile(content *c, const dv_fmu *f, const char *const *sources, dvbf_error *error) {
  dv_scratch scratch = {{0}};
  dvbf_status status = dv_scratch_make(&scratch, error);
  if (status) return status;
  char code[1200], wrapper[1200], header[1200], binary[1200];
  snprintf(code, sizeof code, "%s/%s", scratch.path, sources[0]);
  snprintf(wrapper, sizeof wrapper, "%s/%s", scratch.path, sources[1]);
  snprintf(header, sizeof header, "%s/%s.h", scratch.path, f->prefix);
  snprintf(binary, sizeof binary, "%s/fmu.so", scratch.path);
  status = dv_text_write(&c->model.code, code, error);
  if (!status) status = dv_text_write(&c->wrapper, wrapper, error);
  if (!status) status = dv_text_write(&c->model.header, header, error);
  const char *const words[] = {"-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
                               "-s",       "-o",  binary,  code,      wrapper,
                               "-lm",      NULL};
  if (!status) status = dv_run_compiler(words, &scratch, error);
  if (!status) status = read_binary(&c->binary, binary, error);
  dv_scratch_remove(&scratch);
  return status;
}

/* ---- Zip ---- */

/* A member that copies nothing: its bytes must stay until the zip is closed. Times are fixed, so that the
 * same model gives the same bytes. */
static bool put_zip_member(zip_t *zip, const char *folder, const char *name, const char *ending,
                           const dv_text *text) {
  char whole[160];
  snprintf(whole, sizeof whole, "%s%s%s", folder, name, ending);
  zip_source_t *source = zip_source_buffer(zip, text->at, text->used, 0);
  if (!source) return false;
  zip_int64_t at = zip_file_add(zip, whole, source, ZIP_FL_ENC_UTF_8);
  if (at < 0) {
    zip_source_free(source);
    return false;
  }
  return !zip_file_set_mtime(zip, (zip_uint64_t)at, 315576000, 0) && /* 1980-01-01 in most places */
         !zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_DEFLATE, 9);
}

static dvbf_status write_zip(const char *path, const content *c, const dv_fmu *f, dvbf_error *error) {
  char temporary[4200];
  int reason = 0;
  dvbf_status status = dv_temporary_name(temporary, sizeof temporary, path, error);
  if (status) return status;
  zip_t *zip = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &reason);
  if (!zip) return dv_fail(error, DVBF_IO, "%.200s: cannot be created", path);
  bool done = put_zip_member(zip, "", "modelDescription", ".xml", &c->description) &&
              put_zip_member(zip, "sources/", f->prefix, ".c", &c->model.code) &&
              put_zip_member(zip, "sources/", f->prefix, ".h", &c->model.header) &&
              put_zip_member(zip, "sources/", f->prefix, "_fmu.c", &c->wrapper) &&
              (!c->binary.used || put_zip_member(zip, "binaries/linux64/", f->prefix, ".so", &c->binary));
  if (!done || zip_close(zip)) {
    status = dv_fail(error, DVBF_IO, "%.200s: cannot be written: %.100s", path, zip_strerror(zip));
    zip_discard(zip);
    remove(temporary);
    return status;
  }
  return dv_publish(temporary, path, error);
}

/* ---- The whole FMU ---- */

DV_TARGET(fmu) {
  const dv_export_settings *s = e->settings;
  double of_data = e->options->data ? e->options->data->sample_time : 0;
  char code[96], wrapper[96];
  content c = {0};
  dv_fmu f = {.of = e,
              .model = e->model,
              .settings = *s,
              .prefix = e->result->prefix,
              .plant = s->as == DV_AS_PLANT,
              .moves = true};
  f.settings.real = DV_REAL_DOUBLE; /* as the values of an FMU are */
  f.settings.samples = 0;
  f.settings.deviation = f.settings.libm = 1;
  for (int k = 0; k < dv_model_members(f.model); k++)
    f.moves &= dv_model_member(f.model, k)->type->move != NULL;
  e->result->sample_time = s->sample_time > 0 ? s->sample_time : of_data > 0 ? of_data : 1;
  snprintf(code, sizeof code, "%s.c", f.prefix);
  snprintf(wrapper, sizeof wrapper, "%s_fmu.c", f.prefix);
  const char *const sources[] = {code, wrapper, NULL};
  dvbf_status status = dv_refuse_existing(e->path, e->options->force, error);
  if (!status) status = write_sources(&c, &f, sources, error);
  bool compiler = false;
  if (!status) status = dv_compiler_exists(&compiler, error);
  if (compiler) status = compile(&c, &f, sources, error);
  if (!status) status = write_zip(e->path, &c, &f, error);
  e->result->binary = c.binary.used;
  dv_print(e->result->summary, sizeof e->result->summary, "FMI 2.0, Co-Simulation, a sample every %g s, %s",
           e->result->sample_time,
           c.binary.used ? "sources and a binary for this machine"
                         : "only sources, as no C compiler was found (CC, or cc)");
  DV_TEXT_FREE(&c.model.code, &c.model.header, &c.wrapper, &c.description, &c.binary);
  dv_free(f.variables);
  return status;
}
