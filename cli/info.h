/* `dvbf info` describes two kinds of files, as text or as JSON. */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "options.h"

enum { CLI_INFO_FEW = 12 }; /* up to this many columns are listed one by one */

dvbf_status cli_info_data(const char *path, const cli_options *options, dvbf_error *error);
/* A run folder or a model file. */
dvbf_status cli_info_model(const char *path, const cli_options *options, dvbf_error *error);

#endif
