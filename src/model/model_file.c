/* Model files: safetensors with settings and counters as metadata (dvbf_model_save, dvbf_model_load, also
 * from bytes). Equal runs write equal bytes. A committee and the best linear model are further parts of the
 * same file, under prefixed names. Nothing in a file is trusted before it is checked. */
#include "base/error.h"
#include "base/memory.h"
#include "model/model.h"
#include "model/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char FORMAT[] = "dvbf 1";

/* ---- Parts of a file ---- */

/* The prefix of names and keys of part k: nothing for the model itself, part 0; the best linear model comes
 * after the members. */
static void prefix_of(char out[24], int k, int members) {
  *out = 0;
  if (k && k < members) snprintf(out, 24, "member-%d/", k + 1);
  if (k >= members) snprintf(out, 24, "linear/");
}

static int count_parts(const dvbf_model *m) {
  return dv_model_members(m) + (m->linear != NULL);
}

static const dvbf_model *part_of(const dvbf_model *m, int k) {
  return k > m->n_others ? m->linear : dv_model_member(m, k);
}

static int list_part(const dvbf_model *m, const char *prefix, dv_tensor *out) {
  int n = 0;
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    out[n++] = dv_tensor_real(p->name, (size_t)p->rows, (size_t)p->cols, m->parameters.values + p->offset);
  }
  out[n++] = dv_tensor_single("scaling.x.shift", (size_t)m->n_x, m->x.shift);
  out[n++] = dv_tensor_single("scaling.x.scale", (size_t)m->n_x, m->x.scale);
  if (m->n_u) {
    out[n++] = dv_tensor_single("scaling.u.shift", (size_t)m->n_u, m->u.shift);
    out[n++] = dv_tensor_single("scaling.u.scale", (size_t)m->n_u, m->u.scale);
  }
  for (int i = 0; *prefix && i < n; i++) {
    char name[sizeof out->name];
    snprintf(name, sizeof name, "%s%.*s", prefix, (int)(sizeof name - 25), out[i].name);
    memcpy(out[i].name, name, sizeof name);
  }
  return n;
}

/* The tensors of all parts, *n of them; NULL when memory is short. The caller frees. */
static dv_tensor *list_tensors(const dvbf_model *m, int *n) {
  size_t most = 0;
  for (int k = 0; k < count_parts(m); k++) most += part_of(m, k)->parameters.count + 4; /* of scaling */
  dv_tensor *out = dv_calloc(most, sizeof *out);
  char prefix[24];
  *n = 0;
  for (int k = 0; out && k < count_parts(m); k++) {
    prefix_of(prefix, k, dv_model_members(m));
    *n += list_part(part_of(m, k), prefix, out + *n);
  }
  return out;
}

/* ---- Saving ---- */

static dvbf_status add_setting(const char *name, const char *value, void *user) {
  char key[80];
  snprintf(key, sizeof key, "setting.%s", name);
  return dv_meta_set(user, key, "%s", value) ? DVBF_OK : DVBF_MEMORY;
}

bool dv_meta_set_kind(json_t *meta, const dvbf_model *m, const char *format) {
  const dvbf_model_class *own = dv_model_own(m).type;
  return dv_meta_set(meta, "format", "%s", format) && (!own || dv_meta_set(meta, "model", "%s", own->name)) &&
         (!m->transition || dv_meta_set(meta, "transition", "%s", m->transition->name)) &&
         dv_meta_set(meta, "n_x", "%d", m->n_x) && dv_meta_set(meta, "n_u", "%d", m->n_u);
}

bool dv_meta_set_settings(json_t *meta, const dvbf_settings *settings) {
  return !dv_settings_each(settings, add_setting, meta);
}

/* Written only for members that do not serve every request. */
static const char TAKES_PART[] = "takes-part";
static const char *const parts_taken[] = {"predictions", "forecasts"};

/* NULL when memory is short. */
static json_t *metadata_of_part(const dvbf_model *m) {
  json_t *meta = json_object();
  bool limited = m->no_forecasts || m->no_predictions;
  if ((!limited || dv_meta_set(meta, TAKES_PART, "%s", parts_taken[m->no_predictions])) &&
      dv_meta_set_kind(meta, m, FORMAT) && dv_meta_set(meta, "updates", "%" PRIu64, m->updates) &&
      dv_meta_set(meta, "sequences", "%.0f", m->sequences) &&
      dv_meta_set(meta, "log_sigma_floor", "%.17g", m->log_sigma_floor) &&
      dv_meta_set_settings(meta, m->settings_object))
    return meta;
  json_decref(meta);
  return NULL;
}

/* Adds the metadata of a part; false if memory is short. */
static bool add_part(json_t *meta, const dvbf_model *part, const char *prefix) {
  json_t *more = metadata_of_part(part), *value;
  const char *key;
  bool done = more;
  json_object_foreach(more, key, value) {
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", prefix, key);
    done = done && !json_object_set(meta, whole, value);
  }
  json_decref(more);
  return done;
}

/* A model without further parts writes nothing about them, so its file has the same bytes as ever. */
static json_t *metadata_of(const dvbf_model *m) {
  json_t *meta = metadata_of_part(m);
  bool done = meta && (!m->n_others || dv_meta_set(meta, "members", "%d", dv_model_members(m))) &&
              (!m->linear || dv_meta_set(meta, "linear", "1"));
  char prefix[24];
  for (int k = 1; done && k < count_parts(m); k++) {
    prefix_of(prefix, k, dv_model_members(m));
    done = add_part(meta, part_of(m, k), prefix);
  }
  if (done) return meta;
  json_decref(meta);
  return NULL;
}

/* To bytes, or to a file if these are NULL. */
static dvbf_status write_whole_model(const dvbf_model *m, const char *path, void **bytes, size_t *size,
                                     dvbf_error *error) {
  int n = 0;
  dv_tensor *tensors = list_tensors(m, &n);
  if (!tensors) return dv_fail_memory(error, "saving a model");
  dvbf_status status = bytes ? dv_tensors_write_bytes(bytes, size, metadata_of(m), tensors, n, error)
                             : dv_tensors_write(path, metadata_of(m), tensors, n, error);
  dv_free(tensors);
  return status;
}

dvbf_status dvbf_model_save(const dvbf_model *m, const char *path, dvbf_error *error) {
  return write_whole_model(m, path, NULL, NULL, error);
}

dvbf_status dvbf_model_to_bytes(void **bytes, size_t *size, const dvbf_model *m, dvbf_error *error) {
  return write_whole_model(m, NULL, bytes, size, error);
}

/* ---- Loading ---- */

dvbf_status dv_meta_read_settings(const dv_tensor_file *f, dvbf_settings *settings, dvbf_error *error) {
  const char *key;
  json_t *value;
  size_t length = strlen(f->prefix);
  json_object_foreach(f->meta, key, value) {
    dvbf_error inner;
    if (strncmp(key, f->prefix, length) || strncmp(key + length, "setting.", 8)) continue;
    const char *text = json_string_value(value);
    if (dv_settings_give(settings, key + length + 8, text ? text : "", &inner))
      return dv_fail(error, DVBF_FORMAT, "%s: %.400s", f->path, inner.message);
  }
  return DVBF_OK;
}

/* Recording the smallest program makes the parameters, whose values then come from the file. */
static dvbf_status make_parameters(dvbf_model *m, dvbf_error *error) {
  int frames = dv_model_start_frames(m), least = dv_model_least_steps(m);
  return dv_model_first_values(m, (size_t)(frames > least ? frames : least), 0, error);
}

static dvbf_status read_part_taken(dvbf_model *m, const dv_tensor_file *f, dvbf_error *error) {
  const char *text = dv_meta_get(f, TAKES_PART);
  if (!text) return DVBF_OK;
  m->no_forecasts = !strcmp(text, parts_taken[0]);
  m->no_predictions = !strcmp(text, parts_taken[1]);
  if (m->no_forecasts || m->no_predictions) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT, "%s: metadata %s%s must be %s or %s; the file is damaged", f->path,
                 f->prefix, TAKES_PART, parts_taken[0], parts_taken[1]);
}

/* Some member must serve every request. */
static dvbf_status check_parts_taken(const dvbf_model *m, const char *path, dvbf_error *error) {
  bool forecasts = false, predictions = false;
  for (int i = 0; i < dv_model_members(m); i++) {
    forecasts |= dv_model_takes_part(dv_model_member(m, i), true);
    predictions |= dv_model_takes_part(dv_model_member(m, i), false);
  }
  if (forecasts && predictions) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT, "%s: no member takes part in %s; the file is damaged", path,
                 parts_taken[!forecasts]);
}

/* All but the tensors. */
static dvbf_status fill_settings(dvbf_model *m, const dv_tensor_file *f, size_t room, dvbf_error *error) {
  double updates = 0;
  dvbf_status status = dv_meta_number(f, "updates", 0, 9e15, &updates, error);
  if (!status) status = dv_meta_number(f, "sequences", 1, 9e15, &m->sequences, error);
  if (!status) status = dv_meta_number(f, "log_sigma_floor", -1e6, 1e6, &m->log_sigma_floor, error);
  if (!status) status = read_part_taken(m, f, error);
  m->parameters.most = room ? room : 1; /* whatever the settings ask for */
  if (!status) status = make_parameters(m, error);
  m->updates = (uint64_t)updates;
  return status;
}

/* Checks values that the model divides by. */
static dvbf_status check_values(const dvbf_model *m, const char *path, dvbf_error *error) {
  const dvbf_real *range = dv_model_range(m);
  for (int i = 0; i < m->n_x; i++)
    if (!(m->x.scale[i] > 0))
      return dv_fail(error, DVBF_FORMAT, "%s: scaling.x.scale must be positive", path);
  for (int k = 0; range && k < m->n_z; k++)
    if (!(range[m->n_z + k] > 0))
      return dv_fail(error, DVBF_FORMAT, "%s: limits of state.range must be positive", path);
  return DVBF_OK;
}

static dvbf_status fill_tensors(dvbf_model *m, const dv_tensor_file *f, dvbf_error *error) {
  int n = 0;
  dv_tensor *tensors = list_tensors(m, &n);
  if (!tensors) return dv_fail_memory(error, "loading a model");
  dvbf_status status = dv_tensors_read(f, tensors, n, error);
  for (int k = 0; k < count_parts(m) && !status; k++) status = check_values(part_of(m, k), f->path, error);
  dv_free(tensors);
  return status;
}

/* A model with parts that are not shipped must be loaded with the same parts. */
static dvbf_status check_own_part(const dv_tensor_file *f, const char *what, const char *wanted,
                                  dvbf_error *error) {
  const char *name = dv_meta_get(f, what);
  if (!strcmp(name ? name : "", wanted ? wanted : "")) return DVBF_OK;
  return dv_fail(
      error, DVBF_FORMAT,
      "%s: was trained with the %s \"%.40s\", not \"%.40s\"; load it with the one it was trained with",
      f->path, what, name ? name : "of the settings", wanted ? wanted : "of the settings");
}

static dvbf_status check_parts(const dv_tensor_file *f, const dvbf_model *m, dvbf_error *error) {
  const dvbf_model_class *own = dv_model_own(m).type;
  dvbf_status status = check_own_part(f, "model", own ? own->name : NULL, error);
  if (status || !m->transition) return status;
  return check_own_part(f, "transition", m->transition->name, error);
}

/* A whole number of the metadata. */
static dvbf_status read_count(const dv_tensor_file *f, const char *key, double low, double high, int *out,
                              dvbf_error *error) {
  double value = 0;
  dvbf_status status = dv_meta_number(f, key, low, high, &value, error);
  if (!status && value != floor(value))
    status = dv_fail(error, DVBF_FORMAT, "%s: metadata %s%s must be a whole number", f->path, f->prefix, key);
  *out = (int)value;
  return status;
}

/* The part with f->prefix, without its tensors, which may have *room numbers; they are counted off. */
static dvbf_status load_part(dvbf_model **out, const dv_own *own, const dv_tensor_file *f, size_t *room,
                             dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_model *m = NULL;
  int n_x = 0, n_u = 0;
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  if (!status) status = dv_meta_read_settings(f, settings, error);
  if (!status) status = read_count(f, "n_x", 1, 1 << 24, &n_x, error);
  if (!status) status = read_count(f, "n_u", 0, 1 << 24, &n_u, error);
  if (!status) status = dv_model_empty(&m, settings, own, n_x, n_u, error);
  if (!status) status = check_parts(f, m, error);
  if (!status) status = fill_settings(m, f, *room, error);
  dvbf_settings_free(settings);
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  for (size_t i = 0; i < m->parameters.count; i++) {
    size_t size = (size_t)m->parameters.list[i].rows * (size_t)m->parameters.list[i].cols;
    *room -= size < *room ? size : *room;
  }
  *out = m;
  return DVBF_OK;
}

/* The other members and the best linear model, if the file has them. They have no user-defined parts. */
static dvbf_status load_others(dvbf_model *m, dv_tensor_file *f, size_t *room, dvbf_error *error) {
  char prefix[24];
  int members = 1, linear = 0;
  dvbf_status status = DVBF_OK;
  if (dv_meta_get(f, "members")) status = read_count(f, "members", 1, DV_MOST_MEMBERS, &members, error);
  if (!status && dv_meta_get(f, "linear")) status = read_count(f, "linear", 1, 1, &linear, error);
  f->prefix = prefix;
  for (int k = 1; k < members + linear && !status; k++) {
    dvbf_model *part = NULL;
    prefix_of(prefix, k, members);
    status = load_part(&part, NULL, f, room, error);
    if (!status && (part->n_x != m->n_x || part->n_u != m->n_u))
      status = dv_fail(error, DVBF_FORMAT, "%s: its part %s is a model of other data; the file is damaged",
                       f->path, prefix);
    if (!status)
      status = (k < members ? dv_model_add_member : dv_model_set_linear)(m, part, error);
    else
      dvbf_model_free(part);
  }
  f->prefix = "";
  return status;
}

static dvbf_status load_model(dvbf_model **out, const dv_own *own, const char *path,
                              const dv_tensor_bytes *bytes, dvbf_error *error) {
  dv_tensor_file file = {0};
  dvbf_model *m = NULL;
  dvbf_status status = dv_tensors_open(&file, path, bytes, FORMAT, "a model", error);
  size_t room = (file.size - file.data) / sizeof(float);
  if (!status) status = load_part(&m, own, &file, &room, error);
  if (!status) status = load_others(m, &file, &room, error);
  if (!status) status = check_parts_taken(m, path, error);
  if (!status) status = fill_tensors(m, &file, error);
  dv_tensors_close(&file);
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  *out = m;
  return DVBF_OK;
}

dvbf_status dvbf_model_from_bytes(dvbf_model **out, const void *bytes, size_t size, dvbf_error *error) {
  return load_model(out, NULL, "the model", &(dv_tensor_bytes){bytes, size}, error);
}

dvbf_status dvbf_model_load_with(dvbf_model **out, const dvbf_transition *transition, const char *path,
                                 dvbf_error *error) {
  return load_model(out, &(dv_own){.transition = transition}, path, NULL, error);
}

dvbf_status dvbf_model_load_own(dvbf_model **out, const dvbf_model_class *own, const char *path,
                                dvbf_error *error) {
  return load_model(out, &(dv_own){.type = own}, path, NULL, error);
}

dvbf_status dvbf_model_load(dvbf_model **out, const char *path, dvbf_error *error) {
  return load_model(out, NULL, path, NULL, error);
}
