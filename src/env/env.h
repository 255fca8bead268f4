/* Simulated systems with known states. A new one is a file with a dv_simulate_fn, a settings_*.def of its own
 * and one line in simulate.c. */
#ifndef DV_ENV_H
#define DV_ENV_H

#include <dvbf/dvbf.h>

/* Fills *data, which is zeroed and which the caller frees whatever is returned. */
typedef dvbf_status dv_simulate_fn(dvbf_data *data, const dvbf_settings *settings, dvbf_error *error);

dv_simulate_fn dv_simulate_pendulum;

#endif
