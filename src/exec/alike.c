#include "exec/alike.h"

#include "base/settings.h"
#include "data/dataset.h"
#include "exec/machine.h"
#include "model/model.h"

static const uint64_t basis = 0xcbf29ce484222325;

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const char *text) {
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
  return (hash ^ 255) * 0x100000001b3;
}

static dvbf_status mix_setting(const char *name, const char *value, void *user) {
  uint64_t *hash = user;
  *hash = mix(mix(*hash, name), value);
  return DVBF_OK;
}

dvbf_status dv_ranks_alike(dv_team *team, const dvbf_settings *settings, uint64_t data, dvbf_error *error) {
  uint64_t given = basis;
  if (!team) return DVBF_OK;
  dvbf_status status = dv_settings_each(settings, mix_setting, &given);
  if (!status) status = dv_team_agrees(team, given, "settings", error);
  if (!status) status = dv_team_agrees(team, data, "the data", error);
  if (!status)
    status = dv_team_agrees(team, mix(mix(basis, dv_machine_instructions()), dv_machine_compiler()),
                            "instructions or compiler, on which bytes depend (DVBF_ISA, portable)", error);
  return status;
}

/* Of the parameters of all members. */
static uint64_t checksum(const dvbf_model *model) {
  uint64_t hash = basis;
  for (int i = 0; i < dv_model_members(model); i++) {
    const dvbf_model *m = dv_model_member(model, i);
    const unsigned char *bytes = (const unsigned char *)m->parameters.values;
    for (size_t k = 0; k < m->parameters.size * sizeof *m->parameters.values; k++)
      hash = (hash ^ bytes[k]) * 0x100000001b3;
  }
  return hash;
}

dvbf_status dv_ranks_use_alike(dv_team *team, const dvbf_settings *settings, const dvbf_model *model,
                               const dvbf_sequences *sequences, dvbf_error *error) {
  uint64_t data = 0;
  if (!team) return DVBF_OK;
  dvbf_status status = sequences ? dv_sequences_fingerprint(&data, sequences, error) : DVBF_OK;
  if (!status) status = dv_team_agrees(team, checksum(model), "the model", error);
  return status ? status : dv_ranks_alike(team, settings, data, error);
}
