/* A model as a functional mock-up unit (dvbf_export_fmu, FMI 2.0): a zip of modelDescription.xml, C sources
 * and a binary of this machine, or none without a compiler. Variables are named by columns of the data. Times
 * in the zip are fixed, so the same model gives the same bytes. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/c_file.h"
#include "export/export.h"
#include "model/model.h"
#include "settings_tables.h"

#include <dvbf/export.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* Names and description of an FMU. */

enum { DV_VARIABLE_NAME = 80 };

typedef enum dv_variable_kind { DV_INPUT, DV_OUTPUT, DV_PARAMETER } dv_variable_kind;

/* A Real variable, whose value reference is its number. */
typedef struct dv_variable {
  char name[DV_VARIABLE_NAME], description[DV_VARIABLE_NAME + 64];
  dv_variable_kind kind;
  double start; /* of an input or a parameter */
} dv_variable;

typedef struct dv_fmu {
  const dvbf_model *model;
  const dv_export_settings *settings;
  char prefix[64], guid[40];
  double sample_time;
  dv_variable *variables; /* inputs first, parameters last */
  int count, inputs, parameters;
  bool plant, moves, direct;
} dv_fmu;

/* Names the variables by the columns of the data, or by those of the settings of the model, or x1, x2, ...
 * `start` [n_z] is the state that a plant begins with. Free with dv_fmu_clear, also after a failure. */
dvbf_status dv_fmu_variables(dv_fmu *fmu, const dvbf_export_options *options, const double *start,
                             dvbf_error *error);
void dv_fmu_clear(dv_fmu *fmu);
/* modelDescription.xml. */
void dv_fmu_describe(dv_text *text, const dv_fmu *fmu, const char *const *sources);

/* ---- Fmu ---- */

/* Contents of the zip. */
typedef struct content {
  dv_text code, header, wrapper, description;
  unsigned char *binary;
  size_t binary_size;
} content;

/* ---- Sources ---- */

static void put_starts(dv_text *t, const dv_fmu *f) {
  for (int i = 0; i < f->count; i++) dv_text_put(t, "%s%.17g", i ? ", " : "", f->variables[i].start);
}

static void put_wrapper(dv_text *t, const dv_fmu *f) {
  const dvbf_model *m = f->model;
  char n_x[16], n_u[16], n_u_room[16], n_z[16], inputs[16], reals[16], missing[16], ready[16], parameters[16],
      time[40];
  dv_text starts = {0}, step = {0};
  dv_words words = {.prefix = "@"};
  put_starts(&starts, f);
  dv_text_put(&step, "%.17g", f->sample_time);
  snprintf(time, sizeof time, "%s", step.at ? step.at : "1");
  const struct {
    const char *name;
    char *text;
    int number;
  } numbers[] = {{"n_x", n_x, m->n_x},
                 {"n_u", n_u, m->n_u},
                 {"n_u_room", n_u_room, m->n_u ? m->n_u : 1},
                 {"n_z", n_z, m->n_z},
                 {"inputs", inputs, f->inputs},
                 {"reals", reals, f->count},
                 {"missing", missing, f->count},
                 {"ready", ready, f->count + 1},
                 {"parameters", parameters, f->parameters}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    snprintf(numbers[i].text, 16, "%d", numbers[i].number);
    dv_words_set(&words, numbers[i].name, numbers[i].text);
  }
  dv_words_set(&words, "prefix", f->prefix);
  dv_words_set(&words, "header", f->prefix);
  dv_words_set(&words, "guid", f->guid);
  dv_words_set(&words, "sample_time", time);
  dv_words_set(&words, "starts", starts.at ? starts.at : "0");
  dv_words_set(&words, "and_parameters", f->plant ? ", then parameters" : "");
  dv_words_set(&words, f->plant ? "plant" : "filter", "");
  if (m->n_u) dv_words_set(&words, "controls", "");
  if (f->moves) dv_words_set(&words, "moves", "");
  if (f->direct) dv_words_set(&words, "direct", "");
  if (dv_model_same_row(m)) dv_words_set(&words, "feedthrough", "");
  dv_put(t, fmu_c_in, &words);
  t->failed |= starts.failed || step.failed;
  dv_text_free(&starts);
  dv_text_free(&step);
}

/* The same model and settings have the same identity. */
static void set_guid(dv_fmu *f, const content *c) {
  uint64_t hash = dv_hash(dv_hash_start, c->code.at, c->code.used) ^ f->plant;
  uint64_t model = dv_model_fingerprint(f->model);
  snprintf(f->guid, sizeof f->guid, "{%08x-%04x-%04x-%04x-%012" PRIx64 "}", (unsigned)(hash >> 32),
           (unsigned)(hash >> 16 & 0xffff), (unsigned)(hash & 0xffff), (unsigned)(model >> 48),
           model & 0xffffffffffff);
}

static dvbf_status write_sources(content *c, dv_fmu *f, const dvbf_export_options *o,
                                 const char *const *sources, dvbf_error *error) {
  dv_c_facts facts = {0};
  double *start = dv_calloc((size_t)f->model->n_z, sizeof *start);
  dvbf_status status = start ? DVBF_OK : dv_fail_memory(error, "exporting a model");
  if (!status)
    status =
        f->plant
            ? dv_c_plant_write(&c->code, &c->header, &facts, f->model, f->prefix, f->settings, start, error)
            : dv_c_write(&c->code, &c->header, &facts, f->model, f->prefix, f->prefix, f->settings, error);
  f->direct = facts.direct;
  if (!status) status = dv_fmu_variables(f, o, start, error);
  if (!status) {
    set_guid(f, c);
    put_wrapper(&c->wrapper, f);
    dv_fmu_describe(&c->description, f, sources);
    if (c->code.failed || c->header.failed || c->wrapper.failed || c->description.failed)
      status = dv_fail_memory(error, "exporting a model");
  }
  dv_free(start);
  return status;
}

/* ---- Binary ---- */

static dvbf_status read_binary(content *c, const char *path, dvbf_error *error) {
  FILE *file = fopen(path, "rb");
  long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
  c->binary = size > 0 ? dv_calloc((size_t)size, 1) : NULL;
  bool done =
      c->binary && !fseek(file, 0, SEEK_SET) && fread(c->binary, 1, (size_t)size, file) == (size_t)size;
  if (file) fclose(file);
  c->binary_size = done ? (size_t)size : 0;
  return done ? DVBF_OK : dv_fail(error, DVBF_IO, "what the compiler has made cannot be read");
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
  status = dv_text_write(&c->code, code, error);
  if (!status) status = dv_text_write(&c->wrapper, wrapper, error);
  if (!status) status = dv_text_write(&c->header, header, error);
  const char *const words[] = {"-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
                               "-s",       "-o",  binary,  code,      wrapper,
                               "-lm",      NULL};
  if (!status) status = dv_run_compiler(words, &scratch, error);
  if (!status) status = read_binary(c, binary, error);
  dv_scratch_remove(&scratch);
  return status;
}

/* ---- Zip ---- */

/* A member that copies nothing: its bytes must stay until the zip is closed. Times are fixed, so that the
 * same model gives the same bytes. */
static bool put_member(zip_t *zip, const char *name, const void *bytes, size_t size) {
  zip_source_t *source = zip_source_buffer(zip, bytes, size, 0);
  if (!source) return false;
  zip_int64_t at = zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8);
  if (at < 0) {
    zip_source_free(source);
    return false;
  }
  return !zip_file_set_mtime(zip, (zip_uint64_t)at, 315576000, 0) && /* 1980-01-01 in most places */
         !zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_DEFLATE, 9);
}

static bool put_text(zip_t *zip, const char *folder, const char *name, const char *ending,
                     const dv_text *text) {
  char whole[160];
  snprintf(whole, sizeof whole, "%s%s%s", folder, name, ending);
  return put_member(zip, whole, text->at, text->used);
}

static dvbf_status write_zip(const char *path, const content *c, const dv_fmu *f, dvbf_error *error) {
  char temporary[4200], binary[160];
  int reason = 0;
  dvbf_status status = dv_temporary_name(temporary, sizeof temporary, path, error);
  if (status) return status;
  zip_t *zip = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &reason);
  if (!zip) return dv_fail(error, DVBF_IO, "%.200s: cannot be created", path);
  snprintf(binary, sizeof binary, "binaries/linux64/%s.so", f->prefix);
  bool done = put_text(zip, "", "modelDescription", ".xml", &c->description) &&
              put_text(zip, "sources/", f->prefix, ".c", &c->code) &&
              put_text(zip, "sources/", f->prefix, ".h", &c->header) &&
              put_text(zip, "sources/", f->prefix, "_fmu.c", &c->wrapper) &&
              (!c->binary || put_member(zip, binary, c->binary, c->binary_size));
  if (!done || zip_close(zip)) {
    status = dv_fail(error, DVBF_IO, "%.200s: cannot be written: %.100s", path, zip_strerror(zip));
    zip_discard(zip);
    remove(temporary);
    return status;
  }
  return dv_publish(temporary, path, error);
}

/* ---- The whole FMU ---- */

static void choose_settings(dv_export_settings *to, const dv_export_settings *from) {
  *to = *from;
  to->real = DV_REAL_DOUBLE; /* as the values of an FMU are */
  to->samples = 0;
  to->deviation = 1;
  to->libm = 1;
}

static dvbf_status make(const char *path, dv_fmu *f, const dvbf_export_options *o, dvbf_export_result *result,
                        dvbf_error *error) {
  char code[96], wrapper[96];
  content c = {0};
  snprintf(code, sizeof code, "%s.c", f->prefix);
  snprintf(wrapper, sizeof wrapper, "%s_fmu.c", f->prefix);
  const char *const sources[] = {code, wrapper, NULL};
  dvbf_status status = write_sources(&c, f, o, sources, error);
  bool compiler = false;
  if (!status) status = dv_compiler_exists(&compiler, error);
  if (compiler) status = compile(&c, f, sources, error);
  if (!status) status = write_zip(path, &c, f, error);
  result->sample_time = f->sample_time;
  result->binary = c.binary;
  dv_text *texts[] = {&c.code, &c.header, &c.wrapper, &c.description};
  for (int i = 0; i < 4; i++) dv_text_free(texts[i]);
  dv_free(c.binary);
  dv_fmu_clear(f);
  return status;
}

dvbf_status dvbf_export_fmu(const char *path, const dvbf_model *m, const dvbf_settings *settings,
                            const dvbf_export_options *o, dvbf_export_result *result, dvbf_error *error) {
  const dv_export_settings *s = dv_settings_export(settings, error);
  dv_export_settings how;
  dvbf_export_result facts = {0};
  dv_path folder;
  char name[64];
  dv_subject of = {0};
  if (!s) return DVBF_ARGUMENT;
  choose_settings(&how, s);
  dvbf_status status = dv_split_path(path, ".fmu", folder, name, error);
  if (!status) status = dv_refuse_settings(settings, ".fmu", error);
  if (!status) status = dv_choose_prefix(facts.prefix, s, name, error);
  if (!status) status = dv_refuse_existing(path, o && o->force, error);
  if (!status) status = dv_subject_choose(&of, m, s, error);
  if (status) return status;
  double of_data = o && o->data ? o->data->sample_time : 0;
  dv_fmu f = {.model = of.model,
              .settings = &how,
              .sample_time = s->sample_time > 0 ? s->sample_time
                             : of_data > 0      ? of_data
                                                : 1,
              .plant = s->as == DV_AS_PLANT,
              .moves = true};
  for (int k = 0; k < dv_model_members(of.model); k++)
    f.moves &= dv_model_member(of.model, k)->type->move != NULL;
  snprintf(f.prefix, sizeof f.prefix, "%s", facts.prefix);
  status = make(path, &f, o, &facts, error);
  dv_subject_clear(&of);
  if (!status && result) *result = facts;
  return status;
}

/* ---- Variables ---- */

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

/* The name of column k of x or u. */
static void column_name(char out[DV_VARIABLE_NAME], const dv_fmu *f, const dvbf_export_options *o, bool of_x,
                        int k) {
  const dv_data_settings *d = &f->model->settings->data;
  int n = of_x ? f->model->n_x : f->model->n_u;
  char(*names)[32] = !o || !o->data ? NULL : of_x ? o->data->x_names : o->data->u_names;
  *out = 0;
  if (names) clean(out, names[k]);
  if (!*out && !word_of(out, of_x ? d->outputs : d->inputs, n, k)) *out = 0;
  if (!*out) snprintf(out, DV_VARIABLE_NAME, "%c%d", of_x ? 'x' : 'u', k + 1);
}

static bool is_taken(const dv_fmu *f, const char *name) {
  for (int i = 0; i < f->count; i++)
    if (!strcmp(f->variables[i].name, name)) return true;
  return !strcmp(name, "missing") || !strcmp(name, "ready") || !strcmp(name, "time");
}

/* Adds a variable; a name that is taken gets a number. */
static dv_variable *add(dv_fmu *f, dv_variable_kind kind, const char *name, const char *ending) {
  dv_variable *v = &f->variables[f->count];
  *v = (dv_variable){.kind = kind};
  snprintf(v->name, sizeof v->name, "%.60s%s", name, ending);
  for (int i = 2; is_taken(f, v->name); i++) snprintf(v->name, sizeof v->name, "%.60s%s_%d", name, ending, i);
  f->count++;
  return v;
}

/* ---- Variables ---- */

static void add_inputs(dv_fmu *f, const dvbf_export_options *o) {
  const dvbf_model *m = f->model;
  char name[DV_VARIABLE_NAME];
  for (int i = 0; i < m->n_x && !f->plant; i++) {
    column_name(name, f, o, true, i);
    dv_variable *v = add(f, DV_INPUT, name, "");
    v->start = (double)m->x.shift[i];
    snprintf(v->description, sizeof v->description, "observation %d; NaN where it is missing", i + 1);
  }
  for (int i = 0; i < m->n_u; i++) {
    column_name(name, f, o, false, i);
    dv_variable *v = add(f, DV_INPUT, name, "");
    v->start = (double)m->u.shift[i];
    snprintf(v->description, sizeof v->description, "control %d", i + 1);
  }
  f->inputs = f->count;
}

static void add_filter_outputs(dv_fmu *f, const dvbf_export_options *o) {
  char name[DV_VARIABLE_NAME];
  for (int i = 0; i < f->model->n_z; i++) {
    snprintf(name, sizeof name, "z%d", i + 1);
    snprintf(add(f, DV_OUTPUT, name, "")->description, DV_VARIABLE_NAME, "mean of state %d", i + 1);
    snprintf(add(f, DV_OUTPUT, name, "_std")->description, DV_VARIABLE_NAME, "standard deviation of state %d",
             i + 1);
  }
  for (int i = 0; i < f->model->n_x && f->moves; i++) {
    column_name(name, f, o, true, i);
    snprintf(add(f, DV_OUTPUT, name, "_forecast")->description, DV_VARIABLE_NAME,
             "observation %d as the samples before let expect", i + 1);
    snprintf(add(f, DV_OUTPUT, name, "_forecast_std")->description, DV_VARIABLE_NAME,
             "standard deviation of observation %d around it", i + 1);
  }
}

static void add_plant_outputs(dv_fmu *f, const dvbf_export_options *o, const double *start) {
  char name[DV_VARIABLE_NAME];
  for (int i = 0; i < f->model->n_x; i++) {
    column_name(name, f, o, true, i);
    snprintf(add(f, DV_OUTPUT, name, "")->description, DV_VARIABLE_NAME, "observation %d", i + 1);
  }
  for (int i = 0; i < f->model->n_z; i++) {
    snprintf(name, sizeof name, "z%d", i + 1);
    snprintf(add(f, DV_OUTPUT, name, "")->description, DV_VARIABLE_NAME, "state %d", i + 1);
  }
  for (int i = 0; i < f->model->n_z; i++) {
    snprintf(name, sizeof name, "z%d_start", i + 1);
    dv_variable *v = add(f, DV_PARAMETER, name, "");
    v->start = start[i];
    snprintf(v->description, sizeof v->description, "state %d at the beginning", i + 1);
  }
  f->parameters = f->model->n_z;
}

dvbf_status dv_fmu_variables(dv_fmu *f, const dvbf_export_options *o, const double *start,
                             dvbf_error *error) {
  const dvbf_model *m = f->model;
  f->variables = dv_calloc(4 * ((size_t)m->n_x + (size_t)m->n_u + (size_t)m->n_z), sizeof *f->variables);
  if (!f->variables) return dv_fail_memory(error, "exporting a model");
  add_inputs(f, o);
  if (f->plant)
    add_plant_outputs(f, o, start);
  else
    add_filter_outputs(f, o);
  return DVBF_OK;
}

void dv_fmu_clear(dv_fmu *f) {
  dv_free(f->variables);
  f->variables = NULL;
}

/* ---- Description ---- */

/* Text as an attribute. */
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

void dv_fmu_describe(dv_text *t, const dv_fmu *f, const char *const *sources) {
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
      f->sample_time);
  put_variables(t, f);
  dv_text_put(t, "  <ModelStructure>\n");
  put_unknowns(t, f, "Outputs");
  put_unknowns(t, f, "InitialUnknowns");
  dv_text_put(t, "  </ModelStructure>\n</fmiModelDescription>\n");
}
