/* The zoo: every simulated system as video, learned with the settings that suit its data. */
#ifndef DV_ZOO_H
#define DV_ZOO_H

#include <dvbf/report.h>

/* dvbf_reproduce of "zoo": a folder with data.h5 and run/ for each system and seed, results.json,
 * report.html. */
dvbf_status dv_zoo_run(dvbf_reproduction **out, const char *folder, const dvbf_reproduce_options *options,
                       dvbf_error *error);

#endif
