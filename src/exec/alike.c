#include "exec/alike.h"

#include "base/hash.h"
#include "base/settings.h"
#include "data/dataset.h"
#include "exec/machine.h"
#include "model/model.h"

#include <string.h>

/* With an end, so that two texts are not taken for two others. */
static uint64_t mix(uint64_t hash, const char *text) {
  return dv_hash_byte(dv_hash(hash, text, strlen(text)), 255);
}

static dvbf_status mix_setting(const char *name, const char *value, void *user) {
  uint64_t *hash = user;
  *hash = mix(mix(*hash, name), value);
  return DVBF_OK;
}

dvbf_status dv_ranks_alike(dv_team *team, const dvbf_settings *settings, uint64_t data, dvbf_error *error) {
  uint64_t given = dv_hash_start;
  if (!team) return DVBF_OK;
  dvbf_status status = dv_settings_each(settings, mix_setting, &given);
  if (!status) status = dv_team_agrees(team, given, "settings", error);
  if (!status) status = dv_team_agrees(team, data, "the data", error);
  if (!status)
    status = dv_team_agrees(team, mix(mix(dv_hash_start, dv_machine_instructions()), dv_machine_compiler()),
                            "instructions or compiler, on which bytes depend (DVBF_ISA, portable)", error);
  return status;
}

dvbf_status dv_ranks_use_alike(dv_team *team, const dvbf_settings *settings, const dvbf_model *model,
                               const dvbf_sequences *sequences, dvbf_error *error) {
  uint64_t data = 0;
  if (!team) return DVBF_OK;
  dvbf_status status = sequences ? dv_sequences_fingerprint(&data, sequences, error) : DVBF_OK;
  if (!status) status = dv_team_agrees(team, dv_model_fingerprint(model), "the model", error);
  return status ? status : dv_ranks_alike(team, settings, data, error);
}
