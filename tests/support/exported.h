/* Models of all kinds to export, and the compilers that try what comes out. Include it before cmocka.h. */
#ifndef EXPORTED_H
#define EXPORTED_H

#include "data/dataset.h"
#include "files.h"
#include "given.h"
#include "math/random.h"
#include "model/model.h"
#include "variants.h"

#include <dvbf/export.h>
#include <math.h>
#include <stdlib.h>

#define SMALL "hidden=12 latent=3 systems=4 x-scaling=standardise u-scaling=standardise initial-frames=4"

static inline const variant *variant_named(const char *name) {
  for (const variant *v = NULL; (v = next_variant(v, EXPORT));)
    if (!strcmp(v->name, name)) return v;
  fail_msg("there is no model called %s", name);
  return NULL;
}

static inline dvbf_sequences random_data(int n_x, int n_u) {
  dvbf_sequences s = {.count = 6, .steps = 20, .n_x = (size_t)n_x, .n_u = (size_t)n_u};
  assert_int_equal(dv_sequences_allocate(&s, false, NULL), DVBF_OK);
  dv_random r = dv_random_at(5, DV_STREAM_SIMULATION, 0, 0);
  for (size_t i = 0; i < s.count * s.steps * s.n_x; i++) s.x[i] = (float)(0.5 + 0.2 * dv_random_normal(&r));
  for (size_t i = 0; i < s.count * s.steps * s.n_u; i++) s.u[i] = (float)(1 + dv_random_normal(&r));
  return s;
}

/* Makes a mixture of systems z' = z + ... stable. */
static inline void damp(dvbf_model *m, dvbf_real *v) {
  int systems = m->settings->transition == DV_LINEAR ? 1 : (int)m->settings->systems;
  for (int i = 0; i < m->n_z; i++)
    for (int k = 0; k < systems; k++) v[(i * m->n_z + i) * systems + k] -= (dvbf_real)0.4;
}

/* Weights that start at 0 get values; a linear system gets one that is stable. */
static inline void stir(dvbf_model *m) {
  dv_random r = dv_random_at(8, DV_STREAM_SIMULATION, 1, 0);
  for (size_t k = 0; k < m->parameters.count; k++) {
    const dv_parameter *p = &m->parameters.list[k];
    dvbf_real *values = m->parameters.values + p->offset;
    for (int i = 0; i < p->rows * p->cols && !p->frozen; i++) {
      values[i] += (dvbf_real)(0.1 * dv_random_normal(&r));
      bool square = m->type->exact_system && p->rows == p->cols && p->rows > 0;
      if (square && i / p->cols == i % p->cols) values[i] += (dvbf_real)0.6;
      if (square && strstr(p->name, "factor") && i % p->cols > i / p->cols) values[i] = 0;
      if (m->type->exact_system && !m->settings->feedthrough && !strcmp(p->name, "emission.u")) values[i] = 0;
    }
  }
  for (size_t k = 0; k < m->parameters.count; k++) {
    const dv_parameter *p = &m->parameters.list[k];
    dvbf_real *v = m->parameters.values + p->offset;
    if (strcmp(p->name, "universal.mean") != 0) continue;
    if (m->settings->transition != DV_MLP_TRANSITION) damp(m, v);
    for (int i = 0; i < p->cols && m->settings->transition == DV_MLP_TRANSITION; i++) v[i] *= (dvbf_real)0.4;
  }
  dvbf_real *range = dv_model_range(m);
  for (int i = 0; range && i < m->n_z; i++) range[i] = 0, range[m->n_z + i] = 1;
}

static inline dvbf_model *make_variant(const variant *v) {
  dvbf_settings *settings = NULL;
  dvbf_model *model = NULL;
  dvbf_error error;
  dvbf_sequences data = random_data(v->n_x, v->n_u);
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  set_all(settings, SMALL);
  set_all(settings, v->settings);
  if (dv_model_new(&model, settings, NULL, &data, 3, &error)) fail_msg("%s: %s", v->name, error.message);
  stir(model);
  dvbf_settings_free(settings);
  dvbf_sequences_free(&data);
  return model;
}

static inline dvbf_settings *export_settings(const char *text) {
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "export", NULL), DVBF_OK);
  set_all(settings, text);
  return settings;
}

static inline void run_or_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void run_or_fail(const char *format, ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (system(line)) fail_msg("%s", line);
}

static inline bool have(const char *program) {
  char line[128];
  snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", program);
  return !system(line);
}

#define STRICT "-std=c99 -pedantic -Wall -Wextra -Wshadow -Wconversion -Werror"

#endif
