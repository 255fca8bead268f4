#include "train/alike.h"

#include "base/settings.h"
#include "data/dataset.h"
#include "train/machine.h"

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

dvbf_status dv_ranks_alike(dv_team *team, const dvbf_settings *settings, const dvbf_data *data,
                           dvbf_error *error) {
  const uint64_t basis = 0xcbf29ce484222325;
  uint64_t given = basis, found = 0;
  if (!team) return DVBF_OK;
  dvbf_status status = dv_settings_each(settings, mix_setting, &given);
  if (!status) status = dv_data_fingerprint(&found, data, error);
  if (!status) status = dv_team_agrees(team, given, "settings", error);
  if (!status) status = dv_team_agrees(team, found, "the data", error);
  if (!status)
    status = dv_team_agrees(team, mix(mix(basis, dv_machine_instructions()), dv_machine_compiler()),
                            "instructions or compiler, on which bytes depend (DVBF_ISA, portable)", error);
  return status;
}
