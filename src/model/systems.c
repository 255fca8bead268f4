/* The linear systems that a model's states move by. */
#include "model/model.h"

#include <string.h>

bool dv_model_systems(const dvbf_model *m, dv_systems *out) {
  const dvbf_transition *f = m->transition;
  int count = f && f->systems ? f->systems(f, m->settings_object) : m->type->system ? 1 : 0;
  *out = (dv_systems){m->n_z, count, f && m->settings->residual, m->settings->contraction};
  return count > 0;
}

dvbf_real *dv_model_systems_at(const dvbf_model *m) {
  const char *name = m->type->system ? m->type->system : "universal.mean";
  for (size_t i = 0; i < m->parameters.count; i++)
    if (!strcmp(m->parameters.list[i].name, name)) return m->parameters.values + m->parameters.list[i].offset;
  return NULL;
}
