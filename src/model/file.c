/* Model files: tensors, with settings and counters as metadata; nothing that differs between equal runs is
 * written. */
#include "base/memory.h"
#include "base/status.h"
#include "model/model.h"
#include "model/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char FORMAT[] = "dvbf 1";

static int list_tensors(const dvbf_model *m, dv_tensor *out) {
  int n = 0;
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    out[n++] = dv_tensor_real(p->name, (size_t)p->rows, (size_t)p->cols, m->parameters.values + p->offset);
  }
  out[n++] = dv_tensor_single("scaling.x.shift", (size_t)m->n_x, m->x.shift);
  out[n++] = dv_tensor_single("scaling.x.scale", (size_t)m->n_x, m->x.scale);
  if (!m->n_u) return n;
  out[n++] = dv_tensor_single("scaling.u.shift", (size_t)m->n_u, m->u.shift);
  out[n++] = dv_tensor_single("scaling.u.scale", (size_t)m->n_u, m->u.scale);
  return n;
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

bool dv_meta_set_settings(json_t *meta, const dvbf_model *m) {
  return !dv_settings_each(m->settings_object, add_setting, meta);
}

/* NULL when memory is short. */
static json_t *metadata_of(const dvbf_model *m) {
  json_t *meta = json_object();
  if (dv_meta_set_kind(meta, m, FORMAT) && dv_meta_set(meta, "updates", "%" PRIu64, m->updates) &&
      dv_meta_set(meta, "sequences", "%.0f", m->sequences) &&
      dv_meta_set(meta, "log_sigma_floor", "%.17g", m->log_sigma_floor) && dv_meta_set_settings(meta, m))
    return meta;
  json_decref(meta);
  return NULL;
}

dvbf_status dvbf_model_save(const dvbf_model *m, const char *path, dvbf_error *error) {
  dv_tensor *tensors = dv_calloc(m->parameters.count + 4, sizeof *tensors);
  if (!tensors) return dv_fail_memory(error, "saving a model");
  int n = list_tensors(m, tensors);
  dvbf_status status = dv_tensors_write(path, metadata_of(m), tensors, n, error);
  dv_free(tensors);
  return status;
}

/* ---- Loading: nothing in the file is believed before it is checked ---- */

dvbf_status dv_meta_read_settings(const dv_tensor_file *f, dvbf_settings *settings, dvbf_error *error) {
  const char *key;
  json_t *value;
  json_object_foreach(f->meta, key, value) {
    dvbf_error inner;
    if (strncmp(key, "setting.", 8)) continue;
    const char *text = json_string_value(value);
    if (dvbf_settings_set(settings, key + 8, text ? text : "", &inner))
      return dv_fail(error, DVBF_FORMAT, "%s: %.400s", f->path, inner.message);
  }
  return DVBF_OK;
}

/* Recording the smallest program makes the parameters, whose values then come from the file. */
static dvbf_status make_parameters(dvbf_model *m, dvbf_error *error) {
  dvbf_program program = {0};
  int frames = dv_model_start_frames(m), least = dv_model_least_steps(m),
      steps = frames > least ? frames : least;
  dvbf_status status = dv_program_record(&program, m, steps, 1, steps, 0, error);
  dv_program_clear(&program);
  m->parameters.complete = true;
  return status;
}

static dvbf_status fill(dvbf_model *m, const dv_tensor_file *f, dvbf_error *error) {
  double updates = 0;
  dvbf_status status = dv_meta_number(f, "updates", 0, 9e15, &updates, error);
  if (!status) status = dv_meta_number(f, "sequences", 1, 9e15, &m->sequences, error);
  if (!status) status = dv_meta_number(f, "log_sigma_floor", -1e6, 1e6, &m->log_sigma_floor, error);
  m->parameters.most = (f->size - f->data) / sizeof(float); /* whatever the settings ask for */
  if (!status) status = make_parameters(m, error);
  if (status) return status;
  m->updates = (uint64_t)updates;
  dv_tensor *tensors = dv_calloc(m->parameters.count + 4, sizeof *tensors);
  if (!tensors) return dv_fail_memory(error, "loading a model");
  int n = list_tensors(m, tensors);
  status = dv_tensors_read(f, tensors, n, error);
  for (int i = 0; i < m->n_x && !status; i++)
    if (!(m->x.scale[i] > 0))
      status = dv_fail(error, DVBF_FORMAT, "%s: scaling.x.scale must be positive", f->path);
  dv_free(tensors);
  return status;
}

/* A model with parts that are not shipped must be loaded with the same parts. */
static dvbf_status check_part(const dv_tensor_file *f, const char *what, const char *wanted,
                              dvbf_error *error) {
  const char *name = dv_meta_get(f, what);
  if (!strcmp(name ? name : "", wanted ? wanted : "")) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT,
                 "%s: was trained with the %s \"%.40s\", not \"%.40s\"; load it with its own", f->path, what,
                 name ? name : "of the settings", wanted ? wanted : "of the settings");
}

static dvbf_status check_parts(const dv_tensor_file *f, const dvbf_model *m, dvbf_error *error) {
  const dvbf_model_class *own = dv_model_own(m).type;
  dvbf_status status = check_part(f, "model", own ? own->name : NULL, error);
  if (status || !m->transition) return status;
  return check_part(f, "transition", m->transition->name, error);
}

dvbf_status dv_model_load(dvbf_model **out, const dv_own *own, const char *path, dvbf_error *error) {
  dv_tensor_file file = {0};
  dvbf_settings *settings = NULL;
  dvbf_model *m = NULL;
  double n_x = 0, n_u = 0;
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  if (!status) status = dv_tensors_open(&file, path, FORMAT, "a model", error);
  if (!status) status = dv_meta_read_settings(&file, settings, error);
  if (!status) status = dv_meta_number(&file, "n_x", 1, 1 << 24, &n_x, error);
  if (!status) status = dv_meta_number(&file, "n_u", 0, 1 << 24, &n_u, error);
  if (!status && (n_x != floor(n_x) || n_u != floor(n_u)))
    status = dv_fail(error, DVBF_FORMAT, "%s: metadata n_x and n_u must be whole numbers", path);
  if (!status) status = dv_model_empty(&m, settings, own, (int)n_x, (int)n_u, error);
  if (!status) status = check_parts(&file, m, error);
  if (!status) status = fill(m, &file, error);
  dv_tensors_close(&file);
  dvbf_settings_free(settings);
  if (status) {
    dvbf_model_free(m);
    return status;
  }
  *out = m;
  return DVBF_OK;
}

dvbf_status dvbf_model_load_with(dvbf_model **out, const dvbf_transition *transition, const char *path,
                                 dvbf_error *error) {
  return dv_model_load(out, &(dv_own){.transition = transition}, path, error);
}

dvbf_status dvbf_model_load_own(dvbf_model **out, const dvbf_model_class *own, const char *path,
                                dvbf_error *error) {
  return dv_model_load(out, &(dv_own){.type = own}, path, error);
}

dvbf_status dvbf_model_load(dvbf_model **out, const char *path, dvbf_error *error) {
  return dv_model_load(out, NULL, path, error);
}
