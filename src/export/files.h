/* What all exports share: names, and the model as it is exported. */
#ifndef DV_EXPORT_FILES_H
#define DV_EXPORT_FILES_H

#include "base/file.h"
#include "base/settings.h"
#include "model/model.h"

/* The folder of a path, with its slash, and its name without `ending`, in which it must end. */
dvbf_status dv_split_path(const char *path, const char *ending, dv_path folder, char name[64],
                          dvbf_error *error);
/* Symbols begin with the setting, or with the name of the file. */
dvbf_status dv_choose_prefix(char out[64], const dv_export_settings *s, const char *name, dvbf_error *error);

/* Refuses what was set and means nothing for files with this ending. */
dvbf_status dv_refuse_settings(const dvbf_settings *settings, const char *ending, dvbf_error *error);

/* The model as it is exported: one member, or weights that are rounded. Neither must outlive the model, and
 * it must stay where it is. */
typedef struct dv_subject {
  const dvbf_model *model;
  dvbf_model *rounded, alone;
} dv_subject;
dvbf_status dv_subject_choose(dv_subject *out, const dvbf_model *m, const dv_export_settings *s,
                              dvbf_error *error);
void dv_subject_clear(dv_subject *s);

#endif
