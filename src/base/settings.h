/* The tables of settings. A setting is declared once, in settings_*.def; the struct field, default, range
 * check, command-line flag, help, config file, model metadata and manual all come from there. */
#ifndef DV_SETTINGS_H
#define DV_SETTINGS_H

#include <dvbf/core.h>

/* Choices that several tables share. */
#define DV_SPLITS                                                                                            \
  OF(DV_SPLIT_TRAIN, "train") OF(DV_SPLIT_VALID, "valid") OF(DV_SPLIT_TEST, "test") OF(DV_SPLIT_ALL, "all")
#define DV_CONTROLS                                                                                          \
  OF(DV_CONTROLS_REFUSE, "refuse")                                                                           \
  OF(DV_CONTROLS_ZERO, "zero") OF(DV_CONTROLS_HOLD, "hold") OF(DV_CONTROLS_RANDOM, "random")

/* Names for all choices, in their order. */
#define OF(number, name) number,
#define INT(...)
#define REAL(...)
#define SWITCH(...)
#define TEXT(...)
#define LISTED(...)
#define CHOICE(field, name, initial, choices, ...) enum { choices };
enum { DV_SPLITS };
enum { DV_CONTROLS };
#include "base/settings_data.def"
#include "base/settings_train.def"
#undef OF
#undef INT
#undef REAL
#undef SWITCH
#undef TEXT
#undef LISTED
#undef CHOICE

enum { DV_TEXT = 512 }; /* bytes of a text setting */

#define INT(field, ...) int64_t field;
#define REAL(field, ...) double field;
#define CHOICE(field, ...) int64_t field;
#define LISTED(field, ...) int64_t field;
#define SWITCH(field, ...) int64_t field;
#define TEXT(field, ...) char field[DV_TEXT];
typedef struct dv_data_settings {
#include "base/settings_data.def"
} dv_data_settings;
typedef struct dv_train_settings {
#include "base/settings_train.def"
  dv_data_settings data;
} dv_train_settings;
typedef struct dv_evaluate_settings {
#include "base/settings_evaluate.def"
} dv_evaluate_settings;
typedef struct dv_filter_settings {
#include "base/settings_filter.def"
} dv_filter_settings;
typedef struct dv_smooth_settings {
#include "base/settings_smooth.def"
} dv_smooth_settings;
typedef struct dv_predict_settings {
#include "base/settings_predict.def"
} dv_predict_settings;
typedef struct dv_sample_settings {
#include "base/settings_sample.def"
} dv_sample_settings;
typedef struct dv_pendulum_settings {
#include "base/settings_pendulum.def"
} dv_pendulum_settings;
typedef struct dv_ball_settings {
#include "base/settings_ball.def"
} dv_ball_settings;
typedef struct dv_two_balls_settings {
#include "base/settings_two_balls.def"
} dv_two_balls_settings;
#undef INT
#undef REAL
#undef CHOICE
#undef LISTED
#undef SWITCH
#undef TEXT

/* The values, or NULL and a message if `settings` belongs to another table. */
const dv_train_settings *dv_settings_train(const dvbf_settings *settings, dvbf_error *error);
/* The values of the table "data", or of the same part of "train". */
const dv_data_settings *dv_settings_data(const dvbf_settings *settings, dvbf_error *error);
const dv_evaluate_settings *dv_settings_evaluate(const dvbf_settings *settings, dvbf_error *error);
const dv_filter_settings *dv_settings_filter(const dvbf_settings *settings, dvbf_error *error);
const dv_smooth_settings *dv_settings_smooth(const dvbf_settings *settings, dvbf_error *error);
const dv_predict_settings *dv_settings_predict(const dvbf_settings *settings, dvbf_error *error);
const dv_sample_settings *dv_settings_sample(const dvbf_settings *settings, dvbf_error *error);
const dv_pendulum_settings *dv_settings_pendulum(const dvbf_settings *settings, dvbf_error *error);
const dv_ball_settings *dv_settings_ball(const dvbf_settings *settings, dvbf_error *error);
const dv_two_balls_settings *dv_settings_two_balls(const dvbf_settings *settings, dvbf_error *error);

/* Whether the user has chosen a value: by name, by a preset (all values) or by a file. */
bool dv_settings_given(const dvbf_settings *settings, const char *name);
bool dv_settings_all_given(const dvbf_settings *settings);
/* Sets a value without marking it as chosen by the user. */
dvbf_status dv_settings_choose(dvbf_settings *settings, const char *name, const char *value,
                               dvbf_error *error);

/* Copies the values that the user has chosen in `over`, which must belong to the same table. */
dvbf_status dv_settings_lay(dvbf_settings *settings, const dvbf_settings *over, dvbf_error *error);

/* Name of the table. */
const char *dv_settings_table_name(const dvbf_settings *settings);

/* Calls `each` with name and text of every setting that belongs into a model file (all but group "Running").
 */
dvbf_status dv_settings_each(const dvbf_settings *settings,
                             dvbf_status (*each)(const char *name, const char *value, void *user),
                             void *user);

/* Finds the first such setting that differs between two of the same table; false if there is none. */
typedef struct dv_setting_change {
  const char *name;
  char one[DV_TEXT], other[DV_TEXT]; /* the values as text */
} dv_setting_change;
bool dv_settings_differ(const dvbf_settings *one, const dvbf_settings *other, dv_setting_change *out);

#endif
