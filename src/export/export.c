#include "export/about.h"
#include "export/c_file.h"
#include "export/files.h"
#include "export/rounding.h"
#include "export/vectors.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <dvbf/export.h>
#include <math.h>
#include <string.h>

/* ---- Files ---- */

typedef struct files {
  dv_path code, header, test;
} files;

static dvbf_status name_files(files *f, const char *path, const char *folder, const char *name, bool force,
                              dvbf_error *error) {
  snprintf(f->code, sizeof f->code, "%s", path);
  snprintf(f->header, sizeof f->header, "%.4000s%s.h", folder, name);
  snprintf(f->test, sizeof f->test, "%.4000s%s_test.c", folder, name);
  const char *const all[] = {f->code, f->header, f->test};
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < 3 && !status; i++) status = dv_refuse_existing(all[i], force, error);
  return status;
}

/* Writes the text behind what is said about the model. */
static dvbf_status write_file(const char *path, const dv_text *about, const dv_text *text,
                              dvbf_error *error) {
  dv_text whole = {0};
  if (about->used) dv_text_append(&whole, about->at, about->used);
  if (text->used) dv_text_append(&whole, text->at, text->used);
  whole.failed |= about->failed || text->failed;
  dvbf_status status = dv_text_write(&whole, path, error);
  dv_text_free(&whole);
  return status;
}

static void put_facts(dv_text *t, const dv_c_facts *f, const dv_export_settings *s) {
  static const char *const weights[] = {"float", "bfloat16", "int8"};
  dv_text_put(
      t, " * Constants %zu bytes (weights in %s), state %zu bytes, intermediate results at most %zu bytes",
      f->constants, weights[s->weights], f->state, f->stack);
  if (f->multiplications > 0) dv_text_put(t, ",\n * %.0f multiplications for a step", f->multiplications);
  dv_text_put(t, ". C99, %s, no allocation, no global state. */\n",
              s->libm ? "<stdint.h> and <math.h>" : "<stdint.h> alone");
}

/* ---- C ---- */

static dvbf_status measure(dvbf_export_result *result, const dvbf_model *m, const dv_subject *exported,
                           const dvbf_export_options *o, dvbf_error *error) {
  result->rmse = result->rmse_rounded = (double)NAN;
  if (!exported->rounded || !o || !o->sequences) return DVBF_OK;
  dvbf_status status = dv_rounding_error(&result->rmse, m, o->sequences, error);
  if (!status) status = dv_rounding_error(&result->rmse_rounded, exported->model, o->sequences, error);
  return status;
}

static dvbf_status write_all(const files *f, const dv_subject *of, const char *prefix, const char *name,
                             const dv_export_settings *s, const dvbf_export_options *o,
                             dvbf_export_result *result, dvbf_error *error) {
  dv_text about = {0}, code = {0}, header = {0}, test = {0};
  dv_c_facts facts = {0};
  dv_vectors vectors = {0};
  dvbf_status status = dv_c_write(&code, &header, &facts, of->model, prefix, name, s, error);
  if (!status) status = dv_vectors_init(&vectors, of->model, s, o ? o->sequences : NULL, error);
  dv_text_put(&about, "/* %s: a learned filter.\n *\n", prefix);
  if (!status) status = dv_about(&about, of->model, o, " *", error);
  if (!status) {
    put_facts(&about, &facts, s);
    dv_vectors_write(&test, &vectors, prefix, name, facts.direct, dv_model_members(of->model) == 1);
    status = write_file(f->code, &about, &code, error);
  }
  if (!status) status = write_file(f->header, &about, &header, error);
  if (!status) status = dv_text_write(&test, f->test, error);
  result->constant_bytes = facts.constants;
  result->state_bytes = facts.state;
  result->stack_bytes = facts.stack;
  result->multiplications = facts.multiplications;
  result->vectors = (size_t)vectors.steps;
  result->tolerance = vectors.tolerance;
  dv_vectors_clear(&vectors);
  dv_text *all[] = {&about, &code, &header, &test};
  for (int i = 0; i < 4; i++) dv_text_free(all[i]);
  return status;
}

dvbf_status dvbf_export_c(const char *path, const dvbf_model *m, const dvbf_settings *settings,
                          const dvbf_export_options *o, dvbf_export_result *result, dvbf_error *error) {
  const dv_export_settings *s = dv_settings_export(settings, error);
  dv_path folder;
  char name[64];
  files *f = dv_calloc(1, sizeof *f);
  dvbf_export_result facts = {0};
  dv_subject of = {0};
  if (!s || !f) {
    dv_free(f);
    return s ? dv_fail_memory(error, "exporting a model") : DVBF_ARGUMENT;
  }
  dvbf_status status = dv_split_path(path, ".c", folder, name, error);
  if (!status) status = dv_refuse_settings(settings, ".c", error);
  if (!status) status = dv_choose_prefix(facts.prefix, s, name, error);
  if (!status) status = name_files(f, path, folder, name, o && o->force, error);
  if (!status) status = dv_subject_choose(&of, m, s, error);
  if (!status) status = measure(&facts, m, &of, o, error);
  if (!status) status = write_all(f, &of, facts.prefix, name, s, o, &facts, error);
  dv_subject_clear(&of);
  dv_free(f);
  if (!status && result) *result = facts;
  return status;
}
