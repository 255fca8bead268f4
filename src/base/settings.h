/* The tables of settings. A setting is declared once, in settings_*.def; the struct field, default, range
 * check, command-line flag, help, config file, model metadata and manual all come from there. */
#ifndef DV_SETTINGS_H
#define DV_SETTINGS_H

#include <dvbf/core.h>

/* Choices, in the order of the .def file. */
enum { DV_LOCALLY_LINEAR, DV_LINEAR, DV_MLP_TRANSITION };
enum { DV_BAYESIAN, DV_POINT };
enum { DV_PER_UPDATE, DV_PER_STEP };
enum { DV_INITIAL_MLP, DV_INITIAL_BIRNN, DV_INITIAL_FAST_DROPOUT };
enum { DV_VARIANCE_PROPAGATED, DV_VARIANCE_HEAD };
enum { DV_MEAN_IDENTITY, DV_MEAN_SIGMOID };
enum { DV_SIGMA_FIXED, DV_SIGMA_GLOBAL, DV_SIGMA_DIMENSION, DV_SIGMA_STATE };
enum { DV_SCALING_NONE, DV_SCALING_CENTRE, DV_SCALING_STANDARDISE };
enum { DV_U_NONE, DV_U_STANDARDISE };
enum { DV_ADAM, DV_ADADELTA };
enum { DV_FLOAT, DV_BFLOAT16X3, DV_BFLOAT16 };
enum { DV_KEEP_BOUND, DV_KEEP_PREDICTION };
enum { DV_DECAY_NONE, DV_DECAY_COSINE };
enum { DV_MASK_OFF, DV_MASK_STEP, DV_MASK_DIMENSION };
enum { DV_MISSING_REFUSE, DV_MISSING_NAN };
enum { DV_CONTROLS_REFUSE, DV_CONTROLS_ZERO, DV_CONTROLS_HOLD, DV_CONTROLS_RANDOM };
enum { DV_SPLIT_TRAIN, DV_SPLIT_VALID, DV_SPLIT_TEST, DV_SPLIT_ALL };
enum { DV_SPLIT_AUTO, DV_SPLIT_SEED, DV_SPLIT_SEQUENCE, DV_SPLIT_TIME, DV_SPLIT_NONE };

enum { DV_TEXT = 512 }; /* bytes of a text setting */

#define INT(field, ...) int64_t field;
#define REAL(field, ...) double field;
#define CHOICE(field, ...) int64_t field;
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
