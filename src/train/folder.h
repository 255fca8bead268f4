/* The folder of a run: settings.txt, metrics.csv, model.safetensors, checkpoint.safetensors, and a lock that
 * keeps a second process out. */
#ifndef DV_FOLDER_H
#define DV_FOLDER_H

#include "base/file.h"

#include <dvbf/dvbf.h>

typedef struct dv_folder {
  dv_path path, settings, metrics, model, checkpoint;
  int at, lock; /* descriptors of the folder and of its lock, -1: none */
  FILE *rows;
} dv_folder;

/* Makes the folder if it is missing, and locks it. Refuses an existing run unless it is resumed with the same
 * settings or replaced. Does not change existing files. Call close also after a failure. */
dvbf_status dv_folder_open(dv_folder *folder, const dvbf_train_options *options,
                           const dvbf_settings *settings, dvbf_error *error);
void dv_folder_close(dv_folder *folder);
/* Refuses to go on where the path has come to mean another folder than the locked one. Call it before each
 * file that is written. */
dvbf_status dv_folder_ours(const dv_folder *folder, dvbf_error *error);
/* Removes temporary files that a killed process left. */
void dv_folder_tidy(const dv_folder *folder);

/* Removes the files of an earlier run, its checkpoint first, and writes the settings and the head of the
 * metrics. */
dvbf_status dv_folder_begin(dv_folder *folder, const dvbf_settings *settings, dvbf_error *error);
/* The same in two parts, for what must be there before the settings say that a run has begun. The first
 * removes the files of a former run with its settings. */
dvbf_status dv_folder_clear(dv_folder *folder, dvbf_error *error);
dvbf_status dv_folder_start(dv_folder *folder, const dvbf_settings *settings, dvbf_error *error);
/* Continues after `rows` rows of the metrics; cuts later rows, which a killed run may have left. */
dvbf_status dv_folder_go_on(dv_folder *folder, uint64_t rows, dvbf_error *error);
/* Appends a row to the metrics. */
dvbf_status dv_folder_add(dv_folder *folder, const dvbf_progress *progress, dvbf_error *error);
/* Syncs the rows to the disk, in a folder that is still ours. This must come before a checkpoint that counts
 * them. */
dvbf_status dv_folder_sync(dv_folder *folder, dvbf_error *error);

#endif
