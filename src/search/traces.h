/* What a search leaves in the run folder while it runs. */
#ifndef DV_TRACES_H
#define DV_TRACES_H

#include <dvbf/core.h>

/* Removes a folder of folders of files, if it is there. */
dvbf_status dv_traces_remove(const char *folder, dvbf_error *error);
/* Copies a file of one folder into another, where it replaces one of that name. */
dvbf_status dv_traces_copy(const char *from, const char *to, const char *name, dvbf_error *error);

#endif
