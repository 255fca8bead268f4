/* Model files: safetensors. 8 bytes of little-endian header length, a JSON header, raw little-endian float32.
 * Settings and counters are strings in __metadata__; nothing that differs between equal runs is written. */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "model/model.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 1 << 24 };

/* A tensor of the file and where it lives in the model. Parameters are dvbf_real, scalings float. */
typedef struct tensor {
  char name[56];
  int rows, cols;
  dvbf_real *real;
  float *single;
  size_t begin; /* in the file, when loading */
} tensor;

static int list_tensors(const dvbf_model *m, tensor *out) {
  int n = 0;
  for (size_t i = 0; i < m->parameters.count; i++, n++) {
    const dv_parameter *p = &m->parameters.list[i];
    out[n] = (tensor){.rows = p->rows, .cols = p->cols, .real = m->parameters.values + p->offset};
    snprintf(out[n].name, sizeof out[n].name, "%s", p->name);
  }
  const struct {
    const char *name;
    float *at;
    int n;
  } scalings[] = {{"scaling.x.shift", m->x.shift, m->n_x},
                  {"scaling.x.scale", m->x.scale, m->n_x},
                  {"scaling.u.shift", m->u.shift, m->n_u},
                  {"scaling.u.scale", m->u.scale, m->n_u}};
  for (int i = 0; i < (m->n_u ? 4 : 2); i++, n++) {
    out[n] = (tensor){.rows = 1, .cols = scalings[i].n, .single = scalings[i].at};
    snprintf(out[n].name, sizeof out[n].name, "%s", scalings[i].name);
  }
  return n;
}

static size_t count_of(const tensor *t) {
  return (size_t)t->rows * (size_t)t->cols;
}

static float value_at(const tensor *t, size_t i) {
  return t->real ? (float)t->real[i] : t->single[i];
}

/* ---- Saving ---- */

static dvbf_status add_setting(const char *name, const char *value, void *user) {
  char key[80];
  snprintf(key, sizeof key, "setting.%s", name);
  return json_object_set_new(user, key, json_string(value)) ? DVBF_MEMORY : DVBF_OK;
}

static json_t *metadata_of(const dvbf_model *m) {
  char floor[40];
  snprintf(floor, sizeof floor, "%.17g", m->log_sigma_floor);
  json_t *meta = json_object();
  json_object_set_new(meta, "format", json_string("dvbf 1"));
  if (m->transition) json_object_set_new(meta, "transition", json_string(m->transition->name));
  json_object_set_new(meta, "n_x", json_sprintf("%d", m->n_x));
  json_object_set_new(meta, "n_u", json_sprintf("%d", m->n_u));
  json_object_set_new(meta, "updates", json_sprintf("%" PRIu64, m->updates));
  json_object_set_new(meta, "sequences", json_sprintf("%.0f", m->sequences));
  json_object_set_new(meta, "log_sigma_floor", json_string(floor));
  dv_settings_each(m->settings_object, add_setting, meta);
  return meta;
}

/* The header as text, padded with spaces so that the tensors begin at a multiple of 8. */
static char *header_text(const dvbf_model *m, const tensor *tensors, int n) {
  json_t *header = json_object();
  size_t at = 0;
  json_object_set_new(header, "__metadata__", metadata_of(m));
  for (int i = 0; i < n; i++) {
    size_t end = at + count_of(&tensors[i]) * sizeof(float);
    json_object_set_new(header, tensors[i].name,
                        json_pack("{s:s, s:[i,i], s:[I,I]}", "dtype", "F32", "shape", tensors[i].rows,
                                  tensors[i].cols, "data_offsets", (json_int_t)at, (json_int_t)end));
    at = end;
  }
  char *text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
  json_decref(header);
  if (!text) return NULL;
  size_t length = strlen(text), padded = (length + 7) / 8 * 8;
  char *out = dv_calloc(padded + 1, 1);
  if (out) memcpy(memset(out, ' ', padded), text, length);
  free(text);
  return out;
}

static dvbf_status refuse_not_finite(const tensor *tensors, int n, const char *path, dvbf_error *error) {
  for (int i = 0; i < n; i++)
    for (size_t k = 0; k < count_of(&tensors[i]); k++)
      if (!isfinite(value_at(&tensors[i], k)))
        return dv_fail(error, DVBF_NUMERIC, "%s: tensor %s holds a value that is not finite at %zu", path,
                       tensors[i].name, k);
  return DVBF_OK;
}

/* Little-endian words, whatever the machine. */
static void put_word(FILE *to, uint64_t word, int bytes) {
  for (int i = 0; i < bytes; i++) putc((int)(word >> (8 * i) & 255), to);
}

static void put_tensor(FILE *to, const tensor *t) {
  unsigned char bytes[4096];
  size_t used = 0;
  for (size_t i = 0; i < count_of(t); i++) {
    float value = value_at(t, i);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int k = 0; k < 4; k++) bytes[used++] = (unsigned char)(bits >> (8 * k));
    if (used == sizeof bytes || i + 1 == count_of(t)) {
      fwrite(bytes, 1, used, to);
      used = 0;
    }
  }
}

dvbf_status dvbf_model_save(const dvbf_model *m, const char *path, dvbf_error *error) {
  tensor *tensors = dv_calloc(m->parameters.count + 4, sizeof *tensors);
  if (!tensors) return dv_fail_memory(error, "saving a model");
  int n = list_tensors(m, tensors);
  dvbf_status status = refuse_not_finite(tensors, n, path, error);
  char *header = status ? NULL : header_text(m, tensors, n);
  if (!status && !header) status = dv_fail_memory(error, "saving a model");
  dv_atomic_file file = {0};
  if (!status) status = dv_atomic_open(&file, path, error);
  if (!status) {
    put_word(file.stream, strlen(header), 8);
    fputs(header, file.stream);
    for (int i = 0; i < n; i++) put_tensor(file.stream, &tensors[i]);
    status = dv_atomic_commit(&file, error);
  }
  dv_free(header);
  dv_free(tensors);
  return status;
}

/* ---- Loading: nothing in the file is believed before it is checked ---- */

typedef struct content {
  const char *path;
  unsigned char *bytes; /* the whole file */
  size_t size, data;    /* where tensors begin */
  json_t *header, *meta;
} content;

static dvbf_status read_whole(content *c, dvbf_error *error) {
  FILE *file = fopen(c->path, "rb");
  if (!file) return dv_fail(error, DVBF_IO, "%s: cannot be read: %s", c->path, strerror(errno));
  dvbf_status status = DVBF_OK;
  long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  if (size < 0 || fseek(file, 0, SEEK_SET) || size > (long)1 << 36)
    status = dv_fail(error, DVBF_IO, "%s: is not a file that can be read as a model", c->path);
  else if (!(c->bytes = dv_calloc((size_t)size, 1)))
    status = dv_fail_memory(error, "loading a model");
  else if (fread(c->bytes, 1, (size_t)size, file) != (size_t)size)
    status = dv_fail(error, DVBF_IO, "%s: cannot be read: %s", c->path, strerror(errno));
  c->size = (size_t)size;
  fclose(file);
  return status;
}

static uint64_t get_word(const unsigned char *from, int bytes) {
  uint64_t word = 0;
  for (int i = 0; i < bytes; i++) word |= (uint64_t)from[i] << (8 * i);
  return word;
}

static dvbf_status read_header(content *c, dvbf_error *error) {
  json_error_t trouble;
  dvbf_status status = read_whole(c, error);
  if (status) return status;
  uint64_t length = c->size >= 8 ? get_word(c->bytes, 8) : 0;
  if (c->size < 8 || length > MAX_HEADER || length > c->size - 8)
    return dv_fail(error, DVBF_FORMAT, "%s: is not a safetensors file, or is cut short", c->path);
  c->data = 8 + (size_t)length;
  c->header = json_loadb((const char *)c->bytes + 8, (size_t)length, JSON_REJECT_DUPLICATES, &trouble);
  c->meta = json_object_get(c->header, "__metadata__");
  if (!json_is_object(c->header) || !json_is_object(c->meta))
    return dv_fail(error, DVBF_FORMAT, "%s: its safetensors header cannot be read: %.100s", c->path,
                   c->header ? "no __metadata__" : trouble.text);
  const char *format = json_string_value(json_object_get(c->meta, "format"));
  if (!format || strcmp(format, "dvbf 1"))
    return dv_fail(error, DVBF_FORMAT, "%s: is a safetensors file but not a model of dvbf (format \"%.40s\")",
                   c->path, format ? format : "none");
  return DVBF_OK;
}

static dvbf_status read_number(const content *c, const char *key, double low, double high, double *out,
                               dvbf_error *error) {
  const char *text = json_string_value(json_object_get(c->meta, key));
  char *end = NULL;
  double value = text ? strtod(text, &end) : 0;
  if (!text || end == text || *end || !(value >= low && value <= high))
    return dv_fail(error, DVBF_FORMAT, "%s: metadata %s = \"%.40s\" must be a number in [%g, %g]", c->path,
                   key, text ? text : "", low, high);
  *out = value;
  return DVBF_OK;
}

static dvbf_status read_settings(const content *c, dvbf_settings *settings, dvbf_error *error) {
  const char *key;
  json_t *value;
  json_object_foreach(c->meta, key, value) {
    dvbf_error inner;
    if (strncmp(key, "setting.", 8)) continue;
    const char *text = json_string_value(value);
    if (dvbf_settings_set(settings, key + 8, text ? text : "", &inner))
      return dv_fail(error, DVBF_FORMAT, "%s: %.400s", c->path, inner.message);
  }
  return DVBF_OK;
}

static dvbf_status read_tensor(const content *c, tensor *t, dvbf_error *error) {
  json_t *entry = json_object_get(c->header, t->name), *shape = json_object_get(entry, "shape");
  json_t *offsets = json_object_get(entry, "data_offsets");
  const char *type = json_string_value(json_object_get(entry, "dtype"));
  if (!type || strcmp(type, "F32") || json_array_size(shape) != 2 ||
      json_integer_value(json_array_get(shape, 0)) != t->rows ||
      json_integer_value(json_array_get(shape, 1)) != t->cols)
    return dv_fail(error, DVBF_FORMAT, "%s: tensor %s of F32 [%d, %d] is missing or has another shape",
                   c->path, t->name, t->rows, t->cols);
  json_int_t begin = json_integer_value(json_array_get(offsets, 0)),
             end = json_integer_value(json_array_get(offsets, 1));
  size_t bytes = count_of(t) * sizeof(float), room = c->size - c->data;
  if (json_array_size(offsets) != 2 || begin < 0 || end < begin || (uint64_t)end > room ||
      (uint64_t)(end - begin) != bytes)
    return dv_fail(error, DVBF_FORMAT, "%s: tensor %s lies outside the file; it is cut short or damaged",
                   c->path, t->name);
  t->begin = (size_t)begin;
  const unsigned char *from = c->bytes + c->data + begin;
  for (size_t i = 0; i < count_of(t); i++, from += 4) {
    uint32_t bits = (uint32_t)get_word(from, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
      return dv_fail(error, DVBF_FORMAT, "%s: tensor %s holds a value that is not finite at %zu", c->path,
                     t->name, i);
    if (t->real)
      t->real[i] = (dvbf_real)value;
    else
      t->single[i] = value;
  }
  return DVBF_OK;
}

/* No byte belongs to two tensors. */
static dvbf_status refuse_overlap(const content *c, const tensor *tensors, int n, dvbf_error *error) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      if (tensors[i].begin < tensors[j].begin + count_of(&tensors[j]) * sizeof(float) &&
          tensors[j].begin < tensors[i].begin + count_of(&tensors[i]) * sizeof(float))
        return dv_fail(error, DVBF_FORMAT, "%s: tensors %s and %s overlap; it is damaged", c->path,
                       tensors[j].name, tensors[i].name);
  return DVBF_OK;
}

/* Recording the smallest program makes the parameters, whose values then come from the file. */
static dvbf_status make_parameters(dvbf_model *m, dvbf_error *error) {
  dv_program program = {0};
  int64_t frames = m->settings->initial_frames;
  int steps = frames > 2 ? (int)frames : 2;
  dvbf_status status = dv_program_record(&program, m, steps, 1, steps, 0, error);
  dv_program_clear(&program);
  m->parameters.complete = true;
  return status;
}

static dvbf_status fill(dvbf_model *m, const content *c, dvbf_error *error) {
  double updates = 0;
  dvbf_status status = read_number(c, "updates", 0, 9e15, &updates, error);
  if (!status) status = read_number(c, "sequences", 1, 9e15, &m->sequences, error);
  if (!status) status = read_number(c, "log_sigma_floor", -1e6, 1e6, &m->log_sigma_floor, error);
  m->parameters.most = (c->size - c->data) / sizeof(float); /* whatever the settings ask for */
  if (!status) status = make_parameters(m, error);
  if (status) return status;
  m->updates = (uint64_t)updates;
  tensor *tensors = dv_calloc(m->parameters.count + 4, sizeof *tensors);
  if (!tensors) return dv_fail_memory(error, "loading a model");
  int n = list_tensors(m, tensors);
  for (int i = 0; i < n && !status; i++) status = read_tensor(c, &tensors[i], error);
  if (!status) status = refuse_overlap(c, tensors, n, error);
  for (int i = 0; i < m->n_x && !status; i++)
    if (!(m->x.scale[i] > 0))
      status = dv_fail(error, DVBF_FORMAT, "%s: scaling.x.scale must be positive", c->path);
  dv_free(tensors);
  return status;
}

static dvbf_status check_transition(const content *c, const dvbf_transition *wanted,
                                    const dvbf_settings *settings, dvbf_error *error) {
  const char *name = json_string_value(json_object_get(c->meta, "transition"));
  const dvbf_transition *shipped = dv_transition_of(dv_settings_train(settings, NULL));
  const dvbf_transition *t = wanted ? wanted : shipped;
  /* A model that takes no transition refuses the wanted one itself. */
  if (!shipped || (name && !strcmp(name, t->name))) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT,
                 "%s: was trained with the transition \"%.40s\", not \"%s\"; load it with its own", c->path,
                 name ? name : "", t->name);
}

dvbf_status dvbf_model_load_with(dvbf_model **out, const dvbf_transition *transition, const char *path,
                                 dvbf_error *error) {
  content c = {.path = path};
  dvbf_settings *settings = NULL;
  dvbf_model *m = NULL;
  double n_x = 0, n_u = 0;
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  if (!status) status = read_header(&c, error);
  if (!status) status = read_settings(&c, settings, error);
  if (!status) status = check_transition(&c, transition, settings, error);
  if (!status) status = read_number(&c, "n_x", 1, 1 << 24, &n_x, error);
  if (!status) status = read_number(&c, "n_u", 0, 1 << 24, &n_u, error);
  if (!status && (n_x != floor(n_x) || n_u != floor(n_u)))
    status = dv_fail(error, DVBF_FORMAT, "%s: metadata n_x and n_u must be whole numbers", path);
  if (!status) status = dv_model_empty(&m, settings, transition, (int)n_x, (int)n_u, error);
  if (!status) status = fill(m, &c, error);
  json_decref(c.header);
  dv_free(c.bytes);
  dvbf_settings_free(settings);
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  *out = m;
  return DVBF_OK;
}

dvbf_status dvbf_model_load(dvbf_model **out, const char *path, dvbf_error *error) {
  return dvbf_model_load_with(out, NULL, path, error);
}
