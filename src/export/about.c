#include "export/about.h"

#include "base/file.h"
#include "base/status.h"
#include "data/dataset.h"
#include "model/safetensors.h"

#include <inttypes.h>
#include <string.h>

/* As the checkpoint of the run has it; "" where it has not, or is none of ours. */
static dvbf_status ask_checkpoint(char out[17], const char *run, dvbf_error *error) {
  dv_path path;
  dv_tensor_file file = {0};
  dv_join(path, run, DVBF_RUN_CHECKPOINT);
  if (!dv_exists(path)) return DVBF_OK;
  dvbf_status status = dv_tensors_open(&file, path, NULL, NULL, "a checkpoint", error);
  const char *text = status ? NULL : dv_meta_get(&file, "data");
  if (text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16) snprintf(out, 17, "%s", text);
  dv_tensors_close(&file);
  return status == DVBF_IO || status == DVBF_MEMORY ? status : DVBF_OK;
}

/* That of the training data: as the run knows it, or else of the data that are given; "" where there are
 * none.
 */
static dvbf_status find_data(char out[17], const dvbf_export_options *o, dvbf_error *error) {
  uint64_t hash;
  *out = 0;
  dvbf_status status = o && o->run ? ask_checkpoint(out, o->run, error) : DVBF_OK;
  if (status || *out || !o || !o->data) return status;
  status = dv_data_fingerprint(&hash, o->data, error);
  if (!status) snprintf(out, 17, "%016" PRIx64, hash);
  return status;
}

/* Settings in lines of a hundred characters. */
typedef struct list {
  dv_text *text;
  const char *begin;
  size_t width;
} list;

static dvbf_status put_setting(const char *name, const char *value, void *user) {
  list *l = user;
  size_t length = strlen(name) + strlen(value) + 3;
  if (!*value) return DVBF_OK;
  if (!l->width || l->width + length > 100) {
    dv_text_put(l->text, "%s%s", l->width ? "\n" : "", l->begin);
    l->width = 0;
  }
  dv_text_put(l->text, "  ");
  dv_text_comment(l->text, name);
  dv_text_put(l->text, "=");
  dv_text_comment(l->text, value);
  l->width += length;
  return DVBF_OK;
}

static void put_names(dv_text *t, const char *begin, const char *what, char (*names)[32], size_t n) {
  if (!names || !n || n > 64) return;
  dv_text_put(t, "%s %s:", begin, what);
  for (size_t i = 0; i < n; i++) {
    dv_text_put(t, "%s ", i ? "," : "");
    dv_text_comment(t, names[i]);
  }
  dv_text_put(t, "\n");
}

static void put_model(dv_text *t, const dvbf_model *m, const char *begin) {
  dv_text_put(t, "%s Model: ", begin);
  dv_text_comment(t, m->type->name);
  if (m->transition) {
    dv_text_put(t, " with the transition ");
    dv_text_comment(t, m->transition->name);
  }
  dv_text_put(t, "; x of %d columns, u of %d, z of %d dimensions; %" PRIu64 " updates\n", m->n_x, m->n_u,
              m->n_z, m->updates);
  list l = {.text = t, .begin = begin};
  dv_settings_each(m->settings_object, put_setting, &l);
  dv_text_put(t, "\n");
}

dvbf_status dv_about(dv_text *t, const dvbf_model *m, const dvbf_export_options *o, const char *begin,
                     dvbf_error *error) {
  char data[17];
  dvbf_status status = find_data(data, o, error);
  if (status) return status;
  dv_text_put(t, "%s Written by dvbf %s from a trained model.\n", begin, DVBF_VERSION);
  dv_text_put(t, "%s Fingerprint of the model %016" PRIx64 ", of the training data %s\n", begin,
              dv_model_fingerprint(m), *data ? data : "unknown");
  if (o && o->data) {
    put_names(t, begin, "x", o->data->x_names, (size_t)m->n_x);
    put_names(t, begin, "u", o->data->u_names, (size_t)m->n_u);
  }
  for (int k = 0; k < dv_model_members(m); k++) {
    if (dv_model_members(m) > 1) dv_text_put(t, "%s Member %d of a committee\n", begin, k + 1);
    put_model(t, dv_model_member(m, k), begin);
  }
  return t->failed ? dv_fail_memory(error, "exporting a model") : DVBF_OK;
}
