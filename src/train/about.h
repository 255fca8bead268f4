/* What a run folder remembers of its data, in data.json: the shape of images, names and units of columns, the
 * sample time. The model needs none of it; those who show what it makes do. */
#ifndef DV_ABOUT_H
#define DV_ABOUT_H

#include <dvbf/dvbf.h>

#define DV_RUN_DATA "data.json"

dvbf_status dv_about_write(const dvbf_data *data, const char *folder, dvbf_error *error);

#endif
