/* The variables of an FMU and their names. */
#include "base/memory.h"
#include "base/status.h"
#include "export/fmu.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Word k of a list with commas, where the list has n words and none of them is a number or a range. */
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
