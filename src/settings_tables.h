/* The values of every table of settings, each declared in the settings_*.def of its owner. Those of "train"
 * are in model/train_settings.h. */
#pragma once

#include "base/settings.h"

/* Choices that several tables share. */
#define DV_SPLITS                                                                                            \
  OF(DV_SPLIT_TRAIN, "train") OF(DV_SPLIT_VALID, "valid") OF(DV_SPLIT_TEST, "test") OF(DV_SPLIT_ALL, "all")
#define DV_CONTROLS                                                                                          \
  OF(DV_CONTROLS_REFUSE, "refuse")                                                                           \
  OF(DV_CONTROLS_ZERO, "zero") OF(DV_CONTROLS_HOLD, "hold") OF(DV_CONTROLS_RANDOM, "random")
#define DV_PRODUCTS OF(DV_FLOAT, "float") OF(DV_BFLOAT16X3, "bfloat16x3") OF(DV_BFLOAT16, "bfloat16")
#define DV_FROM OF(DV_FROM_START, "start") OF(DV_FROM_END, "end")

#define DV_LINES 1 /* choices */
#include "base/settings_lines.h"
enum { DV_SPLITS };
enum { DV_CONTROLS };
enum { DV_FROM };
enum { DV_PRODUCTS };
#include "control/settings_control.def"
#include "data/settings_data.def"
#include "experiments/settings_systems.def"
#include "export/settings_export.def"

#define DV_LINES 2 /* fields */
#include "base/settings_lines.h"
typedef struct dv_data_settings {
#include "data/settings_data.def"
} dv_data_settings;
#include "control/settings_control.def"
#include "evaluate/settings_evaluate.def"
#include "experiments/settings_loop.def"
#include "experiments/settings_systems.def"
#include "export/settings_export.def"
#include "infer/settings_estimate.def"

#include "base/settings_lines.h" /* the end of these lines */

DV_ACCESS(data, "data") /* or the same part of "train" */
