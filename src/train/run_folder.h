/* What a run leaves on the disk: its folder, the description of its data, and checkpoints. */
#pragma once

#include "base/file.h"
#include "train/trainer.h"
#include "train/updater.h"

#include <dvbf/dvbf.h>

/* ---- Run folder ---- */

/* The folder has settings.txt, metrics.csv, model.safetensors, checkpoint.safetensors, and a lock that keeps
 * a second process out. */

#define DV_NO_RUN_FOLDER                                                                                     \
  { .at = -1, .lock = -1 }
typedef struct dv_run_folder {
  dv_path path, settings, metrics, model, checkpoint;
  int at, lock; /* descriptors of the folder and of its lock, -1: none */
  FILE *rows;
} dv_run_folder;

/* Makes the folder if it is missing, and locks it. Refuses an existing run unless it is resumed with the same
 * settings or replaced. Does not change existing files. Call close also after a failure. */
dvbf_status dv_run_folder_open(dv_run_folder *folder, const dvbf_train_options *options,
                               const dvbf_settings *settings, dvbf_error *error);
void dv_run_folder_close(dv_run_folder *folder);
/* Fails if the path no longer names the locked folder. Call it before each file that is written. */
dvbf_status dv_run_folder_ours(const dv_run_folder *folder, dvbf_error *error);
/* Removes temporary files that a killed process left. */
void dv_run_folder_tidy(const dv_run_folder *folder);

/* Removes the files of an earlier run, its checkpoint first, and writes the settings and the head of the
 * metrics. */
dvbf_status dv_run_folder_begin(dv_run_folder *folder, const dvbf_settings *settings, dvbf_error *error);
/* The same in two parts, for files that must exist before the settings mark the beginning of a run. */
dvbf_status dv_run_folder_clear(dv_run_folder *folder, dvbf_error *error);
dvbf_status dv_run_folder_start(dv_run_folder *folder, const dvbf_settings *settings, dvbf_error *error);
/* Continues after `rows` rows of the metrics; cuts later rows, which a killed run may have left. */
dvbf_status dv_run_folder_go_on(dv_run_folder *folder, uint64_t rows, dvbf_error *error);
/* Appends a row to the metrics. */
dvbf_status dv_run_folder_add(dv_run_folder *folder, const dvbf_progress *progress, dvbf_error *error);
/* Syncs the rows to the disk, in a folder that is still ours. This must come before a checkpoint that counts
 * them. */
dvbf_status dv_run_folder_sync(dv_run_folder *folder, dvbf_error *error);

/* ---- Description of the data ---- */

/* data.json: the shape of images, names and units of columns, the sample time. The model needs none of it;
 * displays do. */

#define DV_RUN_DATA "data.json"

dvbf_status dv_run_description_write(const dvbf_data *data, const char *folder, dvbf_error *error);

/* ---- Checkpoint ---- */

/* Phase of training: a start before its judgement, a start that is trained to the end, finished; after a
 * start was trained to the end, the gain of its filter and then the spread. The numbers are those of the
 * file. */
enum { DV_JUDGING, DV_TRAINING, DV_FINISHED, DV_GAIN, DV_SPREAD };

/* Everything that the rest of training depends on. Initial values, order and noise follow from the seed and
 * the number of the start; scaling follows from the data. */
typedef struct dv_training {
  uint64_t phase;
  uint64_t start, begun; /* the current start, counted from 0; how many were begun */
  uint64_t retries_left;
  uint64_t validations; /* reported so far; each is a row of the metrics */
  uint64_t best_update; /* 0: there is no best model yet */
  double best_score, best_floor;
  uint64_t judged_start, judged_retries; /* of the best start so far, at its judgement */
  double judged_prediction;              /* may be NaN */
  /* Changes made by recovery (recovery.c): the windows, and how many starts have diverged to the end; the
   * same of the judged start; 1: starts were begun, but none was judged. All are 0, and not written, if
   * nothing diverged. */
  uint64_t window, eased, judged_window, judged_eased, unjudged;
  double bound;                  /* of the last minibatches, may be NaN */
  dv_scores scores;              /* of the last validation, NaN before it */
  double seconds, start_seconds; /* time of training so far; its value when this start began */
  bool moved;                    /* the checkpoint is of other instructions or another compiler */
  bool extendable;               /* `judged` holds the end of the first phase, where more updates go on */
  uint64_t planned;              /* updates that the settings of a checkpoint have asked for */
  /* From here on memory of each rank. */
  dvbf_real *best;           /* [parameters] */
  void *now, *good, *judged; /* snapshots: now, at the last validation, at the judgement; later at the
                                end of the first phase */
} dv_training;

/* Allocates the arrays; `snapshot` is the size of a snapshot in bytes. Call clear also after a failure. */
dvbf_status dv_training_init(dv_training *state, size_t parameters, size_t snapshot, dvbf_error *error);
void dv_training_clear(dv_training *state);
/* Gives all ranks the state of the first; sizes as above. */
void dv_training_share(dv_training *state, dv_ranks *team, size_t parameters, size_t snapshot);

/* False if a parameter is not finite. Such a state is not saved: training is about to go back to an earlier
 * one. */
bool dv_training_sound(const dv_training *state, const dvbf_model *model);

/* Seed of start k < 1024, different for each; start 0 has the seed itself. A seed is at most 2^53. The low 8
 * bits of k go to bits 56 to 63, the next two to bits 54 and 55. */
static inline uint64_t dv_seed_of_start(const dv_train_settings *s, uint64_t k) {
  return (uint64_t)s->seed + (k << 56) + (k >> 8 << 54);
}

/* Writes the state atomically. `settings` are those of the run, which the model may have departed from;
 * `data` is the fingerprint of the data. */
dvbf_status dv_checkpoint_write(const dv_training *state, const dvbf_model *model,
                                const dvbf_settings *settings, uint64_t data, const char *path,
                                dvbf_error *error);
/* Reads a state. Refuses a file of another model, other settings or other data; a finished run may be given
 * more updates. */
dvbf_status dv_checkpoint_read(dv_training *state, const dvbf_model *model, uint64_t data, const char *path,
                               dvbf_error *error);

/* Whether all that differs is that `given` has more updates, and a run of such settings can be extended. */
bool dv_extends(const dvbf_settings *given, const dvbf_settings *of_run);
/* Refuses settings that differ from those of the run in `where`, and names the first that differs. */
dvbf_status dv_refuse_change(const dvbf_settings *given, const dvbf_settings *of_run, const char *where,
                             dvbf_error *error);
