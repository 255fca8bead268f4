/* Figures of a trained model, fit for a paper: each function takes plain arrays and writes PATH.png and
 * PATH.svg.
 *
 * `path` has no extension. Each file appears whole or not at all. Labels are UTF-8 and may be NULL, which
 * gives the usual one or none; a part whose array is NULL or whose count is 0 is left out, and a figure
 * without any part is refused. Arrays are read during the call only. Text is legible when a figure is as wide
 * as a page of 5.5 inches; SVGs hold their labels as text, and their ids start with the name of the file, so
 * that many can stand in one HTML page.
 */
#ifndef DVBF_FIGURES_H
#define DVBF_FIGURES_H

#include <dvbf/dvbf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- latent: what the latent space of a pendulum holds ---------------------------------------------------
 *
 * For each model, above: samples on the plane of the directions along which ordinary least squares predicts
 * sin and cos of the angle, coloured by angle; and on the plane of cos and velocity, coloured by velocity.
 * Below: predicted against true sin, cos and velocity with R^2. With n_z = 1 the coordinate is set against
 * the truth itself. Samples or truths that are not finite are refused. */

typedef struct dvbf_latent_model {
  const char *title; /* "DVBF-LL" */
  size_t points, n_z;
  const float *z;        /* [points][n_z] samples */
  const float *angle;    /* [points] in radians, NULL: none */
  const float *velocity; /* [points], NULL: none */
} dvbf_latent_model;

typedef struct dvbf_figure_latent {
  const char *title;
  size_t models;              /* 1 or 2, side by side */
  dvbf_latent_model model[2]; /* colours and axes of the regressions are shared */
  const char *angle_label;    /* NULL: "angle φ (rad)" */
  const char *velocity_label; /* NULL: "velocity (rad/s)" */
  bool narrow;                /* all below each other, for a narrow column */
} dvbf_figure_latent;

DVBF_API dvbf_status dvbf_draw_latent(const dvbf_figure_latent *figure, const char *path, dvbf_error *error);

/* ---- walks: where unactuated walks from one latent state end ---------------------------------------------
 *
 * Each walk in two projections with the same axes: those of `latent` when samples with angle and velocity are
 * given, else the principal axes of all walks. The distance between the ends of the first two walks is
 * printed, in units of the latent space and relative to the spread of the samples (or walks). Values that are
 * not finite are refused. */

typedef struct dvbf_walk {
  const char *name; /* "generative", "filtering" */
  size_t steps;
  const float *z; /* [steps][n_z] */
} dvbf_walk;

typedef struct dvbf_figure_walks {
  const char *title;
  size_t n_z, walks; /* 1 to 3 walks */
  dvbf_walk walk[3];
  const float *attractor; /* [n_z] where the truth comes to rest, NULL: unknown */
  /* Samples shown faintly behind the walks, which also give the projections. */
  size_t points;
  const float *z;        /* [points][n_z], NULL: none */
  const float *angle;    /* [points] in radians, NULL: none */
  const float *velocity; /* [points], NULL: none */
} dvbf_figure_walks;

DVBF_API dvbf_status dvbf_draw_walks(const dvbf_figure_walks *figure, const char *path, dvbf_error *error);

/* ---- strips: sequences of images under each other --------------------------------------------------------
 *
 * Frames are wrapped into lines of at most 15; beyond 60 frames every second, third, ... one is shown and the
 * figure says so. Grey runs from 0 to 1, or over the range of the first row where that is wider. */

typedef struct dvbf_strip_row {
  const char *label;   /* "ground truth", "reconstruction", "prediction" */
  const float *images; /* [frames][height][width][channels] */
  size_t observed;     /* frames that this row has seen: underlined, with a mark at their end; 0: no mark */
} dvbf_strip_row;

typedef struct dvbf_figure_strips {
  const char *title;
  size_t frames, height, width;
  size_t rows; /* 1 to 8 */
  const dvbf_strip_row *row;
  size_t training_steps; /* a red bar marks the length of the training sequences; 0: none */
  size_t channels;       /* 3: colour; 0 or 1: grey */
} dvbf_figure_strips;

DVBF_API dvbf_status dvbf_draw_strips(const dvbf_figure_strips *figure, const char *path, dvbf_error *error);

/* ---- ball: position and velocity of a ball in the latent space -------------------------------------------
 *
 * Left: samples on the plane of the directions that predict the x and the y position, coloured by a
 * checkerboard over the true box. Right, twice: the same samples on the plane of the directions that predict
 * the velocities, coloured by the velocity in x and in y. Values that are not finite are refused. */

typedef struct dvbf_figure_ball {
  const char *title;
  size_t points, n_z;
  const float *z;                                  /* [points][n_z] */
  const float *position;                           /* [points][2], NULL: none */
  const float *velocity;                           /* [points][2], NULL: none */
  double box_low, box_high;                        /* the box in both directions; both 0: the unit box */
  size_t cells;                                    /* of the checkerboard in each direction; 0: 3 */
  const char *velocity_x_label, *velocity_y_label; /* NULL: "velocity in x", "velocity in y" */
  bool narrow;                                     /* all below each other, for a narrow column */
} dvbf_figure_ball;

DVBF_API dvbf_status dvbf_draw_ball(const dvbf_figure_ball *figure, const char *path, dvbf_error *error);

/* ---- curves: learning curves -----------------------------------------------------------------------------
 *
 * Panels against updates: bound (train and validation), prediction error over pixel variance, KL. Values that
 * are not finite leave a gap. The scale of the bound is that of the last nine tenths of each run, because the
 * first updates are far below. */

typedef struct dvbf_learning_run {
  const char *name;
  size_t count;
  const double *update;      /* [count] rising */
  const double *train_bound; /* [count] nats per frame, NULL: none; so the next three */
  const double *valid_bound; /* [count] nats per frame */
  const double *prediction;  /* [count] prediction error over pixel variance */
  const double *kl;          /* [count] nats per frame */
} dvbf_learning_run;

typedef struct dvbf_figure_curves {
  const char *title;
  size_t runs;
  const dvbf_learning_run *run; /* [runs] */
  double kept;                  /* a bar marks the update whose model was kept; 0: none */
  bool signals;                 /* words for sensors, "step", not for pictures, "frame" */
} dvbf_figure_curves;

DVBF_API dvbf_status dvbf_draw_curves(const dvbf_figure_curves *figure, const char *path, dvbf_error *error);

/* ---- signals: what was measured and what was predicted ----------------------------------------------------
 *
 * The columns of one sequence over time, four of them at most, one panel each. A bar marks where observation
 * ends and prediction begins. Values that are missing leave a gap. */

typedef struct dvbf_figure_signals {
  const char *title;
  size_t steps, columns;
  const float *truth;      /* [steps][columns] */
  const float *prediction; /* [steps][columns] */
  char (*names)[32];       /* [columns], NULL: x0, x1, ... */
  size_t observed;         /* steps that the prediction has seen; 0: no bar */
  const float *low, *high; /* [steps][columns] bounds of an interval around the prediction, NULL: none */
  char (*units)[16];       /* [columns] of the columns, NULL: none */
  double start;            /* of the axis: seconds or, where sample_time is 0, the number of the first step */
  double sample_time;      /* seconds from step to step; 0: the axis counts steps */
} dvbf_figure_signals;

DVBF_API dvbf_status dvbf_draw_signals(const dvbf_figure_signals *figure, const char *path,
                                       dvbf_error *error);

/* ---- errors: prediction error by horizon -----------------------------------------------------------------
 *
 * Curves of all models against two baselines: persistence (repeating the last observed frame), and the mean
 * image, whose error is the pixel variance, 1. The axis is logarithmic when values spread over more than a
 * factor of ten. Values that are not finite leave a gap. */

typedef struct dvbf_error_curve {
  const char *name;
  size_t horizon;
  const double *mse;           /* [horizon] squared error over pixel variance, of sampled predictions */
  const double *mse_mean_path; /* [horizon] of predictions without noise, dashed; NULL: none */
} dvbf_error_curve;

typedef struct dvbf_figure_errors {
  const char *title;
  size_t models;
  const dvbf_error_curve *model; /* [models] */
  size_t repeat_horizon;
  const double *repeat;  /* [repeat_horizon] of persistence, NULL: none */
  size_t observed;       /* frames seen before the first predicted one; 0: not said */
  size_t training_steps; /* a red bar marks the length of the training sequences; 0: none */
  bool signals;          /* words for sensors, "mean", not for pictures, "mean image" */
} dvbf_figure_errors;

DVBF_API dvbf_status dvbf_draw_errors(const dvbf_figure_errors *figure, const char *path, dvbf_error *error);

#ifdef __cplusplus
}
#endif
#endif
