/* What stands at the head of an exported file. */
#ifndef DV_ABOUT_H
#define DV_ABOUT_H

#include "base/settings.h"
#include "export/text.h"
#include "model/model.h"

#include <dvbf/export.h>

/* Lines about a model: its class, sizes, fingerprints and settings, without dates and paths. Each begins with
 * `begin`, which is that of a comment. */
dvbf_status dv_about(dv_text *text, const dvbf_model *model, const dvbf_export_options *options,
                     const char *begin, dvbf_error *error);

#endif
