#include "export/files.h"

#include "base/status.h"
#include "export/rounding.h"
#include "export/text.h"

#include <ctype.h>
#include <string.h>

dvbf_status dv_split_path(const char *path, const char *ending, dv_path folder, char name[64],
                          dvbf_error *error) {
  size_t length = strlen(path), end = strlen(ending);
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  if (length <= end || strcmp(path + length - end, ending) != 0 || base + end == path + length)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name of the file must end in %s", path, ending);
  if (length + 32 > sizeof(dv_path))
    return dv_fail(error, DVBF_ARGUMENT, "%.64s...: the path is too long", path);
  size_t before = (size_t)(base - path), n = length - before - end;
  snprintf(folder, sizeof(dv_path), "%.*s", (int)before, path);
  if (n > 47) return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name has more than 47 characters", path);
  snprintf(name, 64, "%.*s", (int)n, base);
  for (const char *at = name; *at; at++)
    if (!strchr("-_.", *at) && !isalnum((unsigned char)*at))
      return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name must be of letters, digits, -, _ and .", path);
  return DVBF_OK;
}

dvbf_status dv_choose_prefix(char out[64], const dv_export_settings *s, const char *name, dvbf_error *error) {
  dv_identifier(out, 48, *s->prefix ? s->prefix : name);
  if (*s->prefix && (strcmp(out, s->prefix) != 0 || strlen(s->prefix) > 47))
    return dv_fail(
        error, DVBF_ARGUMENT,
        "prefix = %.60s: must be a name of C of at most 47 letters, digits and _; \"%s\" would be one",
        s->prefix, out);
  return DVBF_OK;
}

static bool is_for(const char *endings, const void *ending) {
  return !endings || strstr(endings, ending);
}

dvbf_status dv_refuse_settings(const dvbf_settings *settings, const char *ending, dvbf_error *error) {
  const dv_setting *unused = dv_settings_unused(settings, is_for, ending);
  if (!unused) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "%s is set, but means nothing for a file that ends in %s: leave it out", unused->name,
                 ending);
}

dvbf_status dv_subject_choose(dv_subject *out, const dvbf_model *m, const dv_export_settings *s,
                              dvbf_error *error) {
  *out = (dv_subject){.model = m};
  if (s->member > dv_model_members(m))
    return dv_fail(error, DVBF_ARGUMENT, "member = %d: the model has %d", (int)s->member,
                   dv_model_members(m));
  if (s->member) {
    out->alone = *dv_model_member(m, (int)s->member - 1);
    out->alone.n_others = 0;
    out->alone.no_forecasts = out->alone.no_predictions = false;
    out->model = &out->alone;
  }
  if (s->weights == DV_WEIGHTS_FLOAT) return DVBF_OK;
  dvbf_status status = dv_rounded_new(&out->rounded, out->model, (int)s->weights, error);
  if (!status) out->model = out->rounded;
  return status;
}

void dv_subject_clear(dv_subject *s) {
  dv_rounded_free(s->rounded);
}
