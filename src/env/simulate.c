#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "env/env.h"

#include <string.h>

static const struct {
  const char *name; /* of the system and of its table of settings */
  dv_simulate_fn *simulate;
} systems[] = {
    {"pendulum", dv_simulate_pendulum},
};

static dv_simulate_fn *find_system(const char *name) {
  for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
    if (!strcmp(systems[i].name, name)) return systems[i].simulate;
  return NULL;
}

dvbf_status dvbf_simulate(dvbf_data **out, const dvbf_settings *settings, dvbf_error *error) {
  const char *name = dv_settings_table_name(settings);
  dv_simulate_fn *simulate = find_system(name);
  if (!simulate)
    return dv_fail(error, DVBF_ARGUMENT, "there is no system named %.60s to simulate; try %s", name,
                   systems[0].name);
  dvbf_data *data = dv_calloc(1, sizeof *data);
  if (!data) return dv_fail_memory(error, "simulating");
  dvbf_status status = simulate(data, settings, error);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}
