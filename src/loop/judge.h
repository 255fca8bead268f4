/* How closed loops went. */
#ifndef DV_JUDGE_H
#define DV_JUDGE_H

#include "loop/episode.h"

/* Fills what closed loops tell; share_of and value_of are the caller's to free. */
dvbf_status dv_loop_judge(dvbf_loop_outcome *out, const dv_episodes *episodes, dvbf_error *error);

#endif
