/* dvbf filter --follow: beliefs and forecasts as observations come in. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include "options.h"

dvbf_status cli_follow(const cli_options *options, dvbf_error *error);

#endif
