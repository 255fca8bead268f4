/* Settings chosen for the data (dvbf_settings_choose): rules look at a few facts about the training data
 * (columns, steps, range, gaps, a linear model) and set what the user has left open; every choice is reported
 * with its reason. The rules are rough, found on simulated systems and recordings (docs/results.md). Their
 * order matters: later ones read what earlier ones have set. */
#include "train/choose_settings.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/checks.h"
#include "identify/linear_fit.h"
#include "math/algebra.h"
#include "math/portable.h"
#include "model/density.h"
#include "train/start.h"
#include "train/trainer.h"

#include <dvbf/dvbf.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The facts about data that conditions and numbers below use. */
struct dv_profile {
  const dvbf_sequences *train;
  dv_statistics x;
  size_t sequences, steps; /* training sequences before windows are cut; steps of the longest */
  size_t common; /* steps that nine of ten training sequences have, and the longest of valid and test */
  size_t n_x, n_u;
  size_t directions;    /* of x that hold nearly all of its variance */
  size_t height, width; /* of images; 0: x is none */
  bool large;           /* too much to be read through, or to be held in memory as components (dv_large) */
  bool gaps;            /* more than a few values of a column are missing */
  bool constant;        /* a column does not vary */
  bool picture;         /* many values between 0 and 1 */
  bool video;           /* sequences of large images */
  bool notes;   /* columns of 0 and 1 that nothing is known to drive, and no image: as notes of music */
  bool sensors; /* neither that nor bits or counts */
  bool far;     /* sensors that can be predicted far ahead: inputs drive them, or they go on as they began */
  dv_linear_facts linear; /* order 0: unknown */
};

typedef struct chooser {
  dvbf_settings *settings;
  const dv_profile *facts;
  int order; /* of the moments that tell images apart; 0: none do */
  dvbf_choice_fn *each;
  void *user_data;
  dvbf_status status;
  dvbf_error *error;
} chooser;

static const dv_train_settings *now(const chooser *c) {
  return dv_settings_train(c->settings, NULL);
}

/* Sets a value that the user has not set, without marking it as set by the user. */
static void choose(chooser *c, const char *name, const char *value, const char *why) {
  char was[DV_TEXT];
  if (c->status || dv_settings_given(c->settings, name)) return;
  c->status = dvbf_settings_get(c->settings, name, was, sizeof was, c->error);
  if (c->status || !strcmp(was, value)) return;
  c->status = dv_settings_set_chosen(c->settings, name, value, c->error);
  if (!c->status && c->each) c->each(name, value, was, why, c->user_data);
}

static void choose_number(chooser *c, const char *name, double value, const char *why) {
  char text[32];
  dv_print(text, sizeof text, value == floor(value) ? "%.0f" : "%.2g", value);
  choose(c, name, text, why);
}

/* ---- Conditions ---- */

/* clang-format off */
typedef enum condition {
  ALWAYS, COLUMNS_HAVE_SCALES, THERE_ARE_INPUTS, COLUMN_IS_CONSTANT, STEPS_ARE_MISSING, VALUES_ARE_MISSING,
  FRAMES_RECUR, STATES_GROW, NEEDS_SHAPE, NOISE_DRIVES_BITS, NOISE_WITHOUT_PATTERNS, VIDEO,
  VIDEO_IN_WINDOWS, VIDEO_IN_MEMORY, COMPONENTS, MOMENTS_TELL, BY_MOMENTS, BY_MIXTURE,
  MIXTURE_OF_COMPONENTS, PICTURE, FEW_DIRECTIONS, MANY_DIRECTIONS, LITTLE_DATA, FAR_AHEAD, FEEDTHROUGH,
  LONG_SEQUENCES, WINDOWS_CUT, WINDOWS_LET_GROW, LONG_WINDOWS, LONG_WINDOWS_WITHOUT_MODES, TOO_FEW_STEPS,
  LINEAR_START, HIGHER_ORDER, SMALLER_ERRORS, GAIN_APART, MANY_SEQUENCES, TRAINED,
  SENSORS, PATTERNS, FEW_PATTERNS, PATTERNS_IN_WINDOWS
} condition;
/* clang-format on */

enum { WINDOW = 100, WINDOW_OF_VIDEO = 15, WINDOW_OF_PATTERNS = 20, FRAMES_OF_PATTERNS = 10000, LATENT = 16 };

/* Steps that are trained at once. */
static size_t steps_of(const chooser *c) {
  size_t window = (size_t)now(c)->window, steps = c->facts->steps;
  return window && window < steps ? window : steps;
}

static double growth(const chooser *c) {
  return (double)steps_of(c) * sqrt((double)now(c)->latent);
}

/* The most frames that leave some to predict in the sequences that train, validate or test. */
static double most_initial(const dv_profile *f) {
  return fmax(1, fmax(floor((double)f->common / 3), (double)f->common - 5));
}

/* Whether a model of components is one of x (train/pca_training.c), and all frames can be read. */
static bool has_components(const chooser *c) {
  const dv_train_settings *s = now(c);
  const dv_profile *f = c->facts;
  bool normal = dv_density_of(s)->normal && s->mean == DV_MEAN_IDENTITY &&
                (s->sigma == DV_SIGMA_FIXED || s->sigma == DV_SIGMA_GLOBAL);
  return f->video && !f->large && normal && s->network != DV_NETWORK_CONV && !(f->gaps && !f->x.whole);
}

static bool reads_patterns(const chooser *c) {
  return c->facts->notes && dv_density_of(now(c))->notes && dv_model_class_of(now(c))->reads_frame;
}

/* Whether the model is one that reads recurring frames back, and nothing that the user has set is against it.
 */
static bool may_read(const chooser *c) {
  if (!c->facts->notes || !dv_density_of(now(c))->notes) return false;
  if (dv_settings_given(c->settings, "model") || dv_settings_given(c->settings, "importance-samples"))
    return false;
  return !dv_settings_fit_model(c->settings, dv_model_reading(), false, NULL);
}

/* The number of starts is the user's choice where any of these is given. */
static bool starts_given(const chooser *c) {
  return dv_settings_given(c->settings, "starts") || dv_settings_given(c->settings, "restart-above");
}

static bool holds(const chooser *c, condition which) {
  const dv_profile *f = c->facts;
  const dv_train_settings *s = now(c);
  const dv_density *density = dv_density_of(s);
  const dvbf_model_class *type = dv_model_class_of(s);
  bool video = f->video && type->takes_transition, places = s->start == DV_START_MOMENTS;
  bool long_windows = steps_of(c) >= 60 && !f->notes;
  switch (which) {
  case ALWAYS: return true;
  case COLUMNS_HAVE_SCALES: return !f->picture && !f->x.binary && density->scales(s);
  case THERE_ARE_INPUTS: return f->n_u;
  case COLUMN_IS_CONSTANT: return f->constant && !f->picture && density->sigma;
  case STEPS_ARE_MISSING: return f->gaps && f->x.whole;
  case VALUES_ARE_MISSING: return f->gaps && !f->x.whole;
  case FRAMES_RECUR: return may_read(c);
  case STATES_GROW: return !f->picture && f->steps > 1;
  case NEEDS_SHAPE: return s->network == DV_NETWORK_CONV && f->height;
  case NOISE_DRIVES_BITS: return f->notes;
  case NOISE_WITHOUT_PATTERNS: return f->notes && !reads_patterns(c);
  case VIDEO: return video;
  case VIDEO_IN_WINDOWS: return f->steps > WINDOW_OF_VIDEO;
  case VIDEO_IN_MEMORY: return f->steps > WINDOW_OF_VIDEO && !f->large;
  case COMPONENTS: return video && has_components(c);
  case MOMENTS_TELL: return video && c->order;
  case BY_MOMENTS: return video && places;
  case BY_MIXTURE: return video && !places;
  case MIXTURE_OF_COMPONENTS: return video && !places && has_components(c);
  case PICTURE: return f->picture && !video;
  case FEW_DIRECTIONS: return !f->picture && !video && f->directions < f->n_x;
  case MANY_DIRECTIONS: return !f->picture && !video && f->directions >= f->n_x;
  case LITTLE_DATA: return f->x.frames < 500 && !f->far;
  case FAR_AHEAD: return f->far && (type->takes_transition || type->exact);
  case FEEDTHROUGH: return f->linear.feedthrough && f->n_u;
  case LONG_SEQUENCES: return f->steps > 2 * WINDOW;
  case WINDOWS_CUT: return s->window && f->steps > (size_t)s->window && !f->video;
  case WINDOWS_LET_GROW: return growth(c) > 20;
  case LONG_WINDOWS: return long_windows;
  case LONG_WINDOWS_WITHOUT_MODES: return long_windows && s->start != DV_START_MODES;
  case TOO_FEW_STEPS: return (double)s->initial_frames > most_initial(f);
  case LINEAR_START: return s->start == DV_START_LINEAR;
  case HIGHER_ORDER: return f->linear.order > s->latent;
  case SMALLER_ERRORS: return f->linear.order && s->sigma_floor > 0.3 * f->linear.sigma;
  case GAIN_APART: return s->gain_updates && type->takes_transition;
  case MANY_SEQUENCES: return f->sequences > 2000 && f->steps <= 200;
  case TRAINED: return s->updates > 0;
  case SENSORS:
    return f->sensors && f->steps > 1 && density->scales(s) && type->takes_transition && !starts_given(c);
  case PATTERNS: return reads_patterns(c);
  case FEW_PATTERNS: return f->x.frames < 2 * FRAMES_OF_PATTERNS;
  case PATTERNS_IN_WINDOWS: return f->steps > WINDOW_OF_PATTERNS;
  }
  return false;
}

/* ---- Numbers ---- */

/* clang-format off */
typedef enum number {
  NONE, LATENT_OF_X, LATENT_OF_MOMENTS, LATENT_OF_LINEAR, IMAGE_HEIGHT, IMAGE_WIDTH, MOMENTS, MOMENTS_SEEN,
  HIDDEN_FAR, SYSTEMS_FAR, UPDATES_FAR, UPDATES_OF_GAIN, UPDATES_OF_SEQUENCES, UPDATES_OF_PATTERNS,
  UPDATES_ALL, UPDATES_A_FIFTH,
  UPDATES_A_SIXTEENTH, STRIDE_A_TENTH, SCALE_BY_GROWTH, FRAMES_TO_BEGIN, FRAMES_AT_MOST,
  FLOOR_BELOW_LINEAR
} number;
/* clang-format on */

/* Frames for the initial network: at most 20, with at most VALUES values in all. From many columns it would
 * memorise the beginnings of the sequences, and a few frames of them determine the state. */
static double frames_to_begin(const dv_profile *f) {
  enum { VALUES = 240 };
  double few = f->x.frames < 600 ? 10 : fmin(20, fmax(5, floor(VALUES / (double)f->n_x)));
  return fmin(few, most_initial(f));
}

static double value_of(const chooser *c, number which) {
  const dv_profile *f = c->facts;
  const dv_train_settings *s = now(c);
  double frames = (double)f->x.frames, updates = (double)s->updates;
  bool many = f->x.frames >= 5000;
  switch (which) {
  case NONE: break;
  case LATENT_OF_X: return fmin(LATENT, 2 + 2 * (double)f->directions);
  case LATENT_OF_MOMENTS: return dv_image_moments_state(c->order);
  case LATENT_OF_LINEAR: return f->linear.order;
  case IMAGE_HEIGHT: return (double)f->height;
  case IMAGE_WIDTH: return (double)f->width;
  case MOMENTS: return c->order;
  case MOMENTS_SEEN: return dv_image_moments_moments(c->order);
  case HIDDEN_FAR: return many ? 128 : 64;
  case SYSTEMS_FAR: return many ? 16 : 12;
  case UPDATES_FAR: return 3000 * floor(fmin(4, fmax(1, sqrt(frames / 1000))));
  case UPDATES_OF_GAIN: return fmin(600, ceil(updates / 5));
  case UPDATES_OF_SEQUENCES: return fmin(16000, round(4000 * sqrt((double)f->sequences / 500) / 1000) * 1000);
  case UPDATES_OF_PATTERNS: return round(8 * fmin(5, fmax(1, frames / FRAMES_OF_PATTERNS))) * 100;
  case UPDATES_ALL: return updates;
  case UPDATES_A_FIFTH: return fmax(1, fmin(200, round(updates / 5)));
  case UPDATES_A_SIXTEENTH: return round(updates / 16);
  case STRIDE_A_TENTH: return fmax(1, floor((double)steps_of(c) / 10));
  case SCALE_BY_GROWTH: return 2 / growth(c);
  case FRAMES_TO_BEGIN: return frames_to_begin(f);
  case FRAMES_AT_MOST: return most_initial(f);
  case FLOOR_BELOW_LINEAR: return fmax(1e-6, 0.3 * f->linear.sigma);
  }
  return 0;
}

/* ---- Choices that need more than a line ---- */

/* Recommends a density that nobody asked for. */
static void advise(chooser *c, const char *name, const char *why) {
  char was[DV_TEXT], text[160];
  if (c->status || !c->each || dv_settings_given(c->settings, "likelihood")) return;
  snprintf(text, sizeof text, "%s; likelihood = %s may suit it better", why, name);
  c->status = dvbf_settings_get(c->settings, "likelihood", was, sizeof was, c->error);
  if (!c->status) c->each("likelihood", was, was, text, c->user_data);
}

/* The first that suits the data; otherwise the default stays. */
static void density(chooser *c) {
  const dv_profile *f = c->facts;
  const char *name, *why = NULL;
  const dv_density *d;
  for (size_t i = 0; !why && (d = dv_density_at(i, &name)); i++)
    if (f->notes || !d->notes) why = d->suits(f->train, &f->x);
  if (why && d->on_request) advise(c, name, why);
  if (why && !d->on_request) choose(c, "likelihood", name, why);
  d = dv_density_of(now(c));
  char value[DV_TEXT];
  if (!d->setting) return;
  d->choose(f->train, &f->x, value, sizeof value);
  choose(c, d->setting, value, "as the data are");
}

static void reading_model(chooser *c) {
  choose(c, "model", dv_model_reading()->name, "frames that come again and again tell the state");
}

/* For network = auto. A dense layer learns sooner than convolutions, on components and on pixels
 * (bench/SPEED.md), but needs gigabytes for large images. */
static void network(chooser *c) {
  enum { VALUES = 32768 };
  const dv_profile *f = c->facts;
  if (now(c)->network != DV_NETWORK_AUTO || c->status) return;
  bool components = has_components(c), conv = !components && f->height && f->n_x >= VALUES;
  const char *why = conv         ? "images are large, and there are no components"
                    : components ? "images are learned on components"
                                 : "x is no large image";
  c->status = dv_settings_set_chosen(c->settings, "network", conv ? "conv" : "dense", c->error);
  if (!c->status && c->each) c->each("network", conv ? "conv" : "dense", "auto", why, c->user_data);
}

static void find_order(chooser *c) {
  const dv_profile *f = c->facts;
  if (!c->status) c->status = dv_image_moments_order(&c->order, f->train, f->height, f->width, c->error);
}

/* Whether the position of their light tells images apart. Settings of the user that would be ignored rule it
 * out. */
static void try_moments(chooser *c) {
  static const char *const said[] = {"coarse", "transition", "systems", "latent"};
  const dv_train_settings *s = now(c);
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (dv_settings_given(c->settings, said[i])) return;
  if (c->facts->common > 3 && s->recognition == DV_FILTERING && s->initial == DV_INITIAL_MLP) find_order(c);
}

/* The order that is set, that of the data or, if moments do not tell these apart, the highest. */
static void order_of_moments(chooser *c) {
  c->order = (int)now(c)->moments;
  if (!c->order) find_order(c);
  if (!c->order) c->order = DV_PLACES_HIGHEST;
}

/* ---- The rules ---- */

/* Under a condition (when it is reached), a setting gets a value, as text or as a number. */
typedef struct rule {
  condition when;
  bool heading; /* for the rules that follow, up to the next heading */
  const char *setting, *value;
  number number;
  const char *why;
  void (*make)(chooser *c); /* instead of a setting */
} rule;

#define IF(condition) {.when = condition, .heading = true},
#define SET(name, text, because) {.setting = name, .value = text, .why = because},
#define SET_IF(condition, name, text, because)                                                               \
  {.when = condition, .setting = name, .value = text, .why = because},
#define COUNT(name, which, because) {.setting = name, .number = which, .why = because},
#define COUNT_IF(condition, name, which, because)                                                            \
  {.when = condition, .setting = name, .number = which, .why = because},
#define FIND(function) {.make = function},
#define FIND_IF(condition, function) {.when = condition, .make = function},

static const char BITS[] = "noise drives columns of 0 and 1", A_VIDEO[] = "x is a video",
                  POWERS[] = "so many powers of the coordinates tell the images apart",
                  PLACES[] = "the dynamics are learned from places",
                  REGRESSION[] = "the emission begins as a regression",
                  PREDICTABLE[] = "x can be predicted far ahead",
                  FREE_RUNS[] = "the dynamics are learned by free runs", FRAMES[] = "as there are frames",
                  LITTLE[] = "there are few frames", BEGIN_ANYWHERE[] = "training begins anywhere in a video",
                  FROM_LINEAR[] = "training starts from a linear model", LONG[] = "windows are long",
                  LINEAR_GAIN[] = "the gain of the filter is to be linear",
                  RECUR[] = "a few frames come again and again";

/* clang-format off */

/* For every model. */
static const rule of_data[] = {
FIND(density)
SET_IF(COLUMNS_HAVE_SCALES, "x-scaling",  "standardise", "columns of x have scales of their own")
SET_IF(THERE_ARE_INPUTS,    "u-scaling",  "standardise", "controls have scales of their own")
/* It is predicted without error and would make a sigma shared by all columns too small. */
SET_IF(COLUMN_IS_CONSTANT,  "sigma",      "dimension",   "a column of x is constant")
SET_IF(STEPS_ARE_MISSING,   "mask-input", "step",        "steps of x are missing")
SET_IF(VALUES_ARE_MISSING,  "mask-input", "dimension",   "values of x are missing")
/* Recurring frames determine the state: a model that reads them back need not encode them in noise, which would
 * cost likelihood. */
FIND_IF(FRAMES_RECUR, reading_model)
/* A mixture of linear systems extrapolates in a straight line. */
SET_IF(STATES_GROW,         "state-limit", "2",          "predictions must stay near what was seen")
};

/* For models that are trained by gradients; a fit finds these itself. */
static const rule of_training[] = {
FIND(network)
IF(NEEDS_SHAPE)
COUNT("image-height", IMAGE_HEIGHT, "as the images are")
COUNT("image-width",  IMAGE_WIDTH,  "as the images are")

/* Data driven by noise may go anywhere at each step: w decides, judged by the likelihood one step ahead. So
 * nothing is dropped, the state is large, and many systems follow from it. */
IF(NOISE_WITHOUT_PATTERNS)
SET("systems",            "32",    BITS)
SET("mixing-hidden",      "64",    BITS)
SET("universal",          "point", BITS)
SET("filter-dropout",     "0",     BITS)
SET("filter-dropout-end", "0",     BITS)
SET("initial-frames",     "3",     BITS)
SET("updates",            "6000",  BITS)
IF(NOISE_DRIVES_BITS)
SET("keep-by",            "bound", BITS)
SET("batch-size",         "16",    BITS)
SET("clip-norm",          "1",     BITS)
SET("starts",             "1",     BITS) /* predictions far ahead, by which starts are judged, tell nothing */

/* Large images of something that moves. Training on components makes them as fast as small ones, and the motion
 * of small things is found from moments first, or from coarse images. Windows with every origin show many
 * beginnings. */
IF(VIDEO)
SET("scale-emission",     "2",          "images change fast with the state")
SET("keep-by",            "prediction", A_VIDEO)
SET("restart-above",      "2",          "early predictions of a video tell little")
SET_IF(VIDEO_IN_WINDOWS, "window", "15", BEGIN_ANYWHERE)
SET_IF(VIDEO_IN_MEMORY,  "stride", "1",  BEGIN_ANYWHERE)
IF(COMPONENTS)
SET("projection",         "1e-4",       A_VIDEO)
SET("components",         "160",        A_VIDEO)
FIND(try_moments)
IF(MOMENTS_TELL)
COUNT("moments", MOMENTS, POWERS)
SET("start",              "moments",     "images are told apart by where their light is")

/* Only the emission is learned from images: otherwise w would learn to make every frame, and the transition
 * nothing. It sees states that the filter knows well, so nothing is dropped. Windows overlap, so small batches
 * suffice. */
IF(BY_MOMENTS)
FIND(order_of_moments)
COUNT("moments",        MOMENTS,           POWERS)
COUNT("latent",        LATENT_OF_MOMENTS, "three for each moment of the images")
COUNT("emission-sees", MOMENTS_SEEN,      "an image shows where things are")
SET("hidden",              "512",        "images change fast with the state")
SET("transition",          "mlp",        PLACES)
SET("transition-hidden",   "512",        PLACES)
SET("universal",           "point",      PLACES)
SET("linear-paths",        "all",        PLACES)
SET("recognition-input",   "prediction", PLACES)
SET("filter-dropout",      "0",          PLACES)
SET("filter-dropout-end",  "0",          PLACES)
SET("state-limit",         "2",          "predictions must stay near what was seen")
SET("updates",             "500",        PLACES)
SET("batch-size",          "16",         PLACES)
SET("learning-rate",       "0.0005",     REGRESSION)
SET("sigma-floor-until", "0",          REGRESSION)
COUNT("emission-updates", UPDATES_ALL,   PLACES)

/* A mixture that does not read the controls cannot memorise those of few sequences. */
IF(BY_MIXTURE)
SET("latent",             "8",    A_VIDEO)
SET("affine",             "on",   A_VIDEO)
SET("mixing-hidden",      "64",   A_VIDEO)
SET("mixing-control",     "off",  A_VIDEO)
SET("filter-dropout",     "0.5",  A_VIDEO)
SET("filter-dropout-end", "0.4",  A_VIDEO)
SET("updates",            "5000", A_VIDEO)
IF(MIXTURE_OF_COMPONENTS)
SET("coarse",             "on",   "what moves may be small")

/* The size of the model. Larger networks would memorise little data. */
IF(ALWAYS)
SET_IF(PICTURE,           "latent", "4",         "x is a picture")
COUNT_IF(FEW_DIRECTIONS,  "latent", LATENT_OF_X, "2 and twice the directions that hold 99 % of x, at most 16")
COUNT_IF(MANY_DIRECTIONS, "latent", LATENT_OF_X, "2 and twice the columns of x, at most 16")
SET_IF(THERE_ARE_INPUTS,  "initial-control", "on", "there are controls")
SET_IF(LITTLE_DATA,       "hidden",  "32", LITTLE)
SET_IF(LITTLE_DATA,       "systems", "8",  LITTLE)

/* Sensors that can be predicted far ahead: the dynamics are learned from long unobserved stretches, in small
 * batches of overlapping windows; then the gain of the filter. The systems start as oscillating modes, because
 * nonlinear effects of u, such as an amplitude, are not found from systems near the identity. Models without a
 * separate gain learn the filter with the dynamics. */
IF(FAR_AHEAD)
SET("start",              "modes",      PREDICTABLE)
SET("affine",             "on",         PREDICTABLE)
SET("filter-dropout",     "0.9",        FREE_RUNS)
SET("filter-dropout-end", "0.9",        FREE_RUNS)
SET("filter-dropout-run", "30",         FREE_RUNS)
SET("dropped",            "zero",       FREE_RUNS)
SET("keep-by",            "prediction", FREE_RUNS)
COUNT("hidden",  HIDDEN_FAR,  FRAMES)
COUNT("systems", SYSTEMS_FAR, FRAMES)
SET("batch-size",         "16",         "windows overlap much")
SET("learning-rate",      "0.008",      "batches are small")
SET("clip-norm",          "1",          "free runs may explode")
COUNT("updates",        UPDATES_FAR,     FRAMES)
COUNT("gain-updates", UPDATES_OF_GAIN, "the filter is learned when the dynamics are known")
IF(FEEDTHROUGH)
SET("feedthrough",        "on",         "the best linear model sees x answer to u at once")

/* A model that starts as a Kalman filter, with steps small enough to keep it. */
IF(LINEAR_START)
SET("recognition-input",   "innovation", FROM_LINEAR)
SET("linear-paths",        "on",         FROM_LINEAR)
SET("affine",              "on",         FROM_LINEAR)
SET("learning-rate",       "0.0005",     FROM_LINEAR)
SET("sigma-floor-until", "0",          FROM_LINEAR)
COUNT_IF(HIGHER_ORDER,   "latent",      LATENT_OF_LINEAR,   "the order of the linear model")
COUNT_IF(SMALLER_ERRORS, "sigma-floor", FLOOR_BELOW_LINEAR, "below the errors of the linear model")

/* Long recordings need windows, and a transition that neither diverges nor forgets over that many steps: the
 * initial growth of z over a window, about exp(steps * scale * sqrt(latent)), stays below e^2. */
IF(ALWAYS)
SET_IF(LONG_SEQUENCES,     "window",           "100",           "sequences are long")
COUNT_IF(WINDOWS_CUT,      "stride",           STRIDE_A_TENTH,  "a tenth of the window")
COUNT_IF(WINDOWS_LET_GROW, "scale-transition", SCALE_BY_GROWTH, LONG)
COUNT_IF(LONG_WINDOWS,     "initial-frames",   FRAMES_TO_BEGIN, LONG)
IF(LONG_WINDOWS_WITHOUT_MODES)
SET("filter-dropout",      "0.7", LONG)
SET("filter-dropout-end",  "0.7", LONG)
SET("filter-dropout-run",  "10",  LONG)
IF(ALWAYS)
SET_IF(LONG_WINDOWS,       "keep-by",        "prediction",   LONG)
COUNT_IF(TOO_FEW_STEPS,    "initial-frames", FRAMES_AT_MOST, "sequences that train, validate or test are short")

/* What the gain of the last phase is made of, and what separates it from free runs. */
IF(GAIN_APART)
SET("recognition-input", "innovation", LINEAR_GAIN)
SET("linear-paths",      "on",         LINEAR_GAIN)

/* The number of updates, and of validations. */
IF(ALWAYS)
COUNT_IF(MANY_SEQUENCES, "updates",             UPDATES_OF_SEQUENCES, "there are many sequences")
IF(TRAINED)
COUNT("validate-every",         UPDATES_A_FIFTH, "at least five in all")

/* Training on sensor data takes seconds, and the seed matters much: several are tried. */
IF(ALWAYS)
SET_IF(SENSORS, "search", "on", "trainings are short, and none is reliable alone")

/* Models that read recurring frames back learn fast and soon overfit: small networks, short windows, few
 * updates, and frequent validation. */
IF(PATTERNS)
COUNT("updates",        UPDATES_OF_PATTERNS, FRAMES)
COUNT("validate-every", UPDATES_A_SIXTEENTH, RECUR)
SET_IF(FEW_PATTERNS,        "units",  "32", LITTLE)
SET_IF(FEW_PATTERNS,        "hidden", "64", LITTLE)
SET_IF(PATTERNS_IN_WINDOWS, "window", "20", RECUR)
SET_IF(PATTERNS_IN_WINDOWS, "stride", "5",  RECUR)
};
/* clang-format on */

static void apply(chooser *c, const rule *rules, size_t count) {
  bool under = true;
  for (const rule *r = rules; r < rules + count && !c->status; r++) {
    bool when = holds(c, r->when);
    if (r->heading) under = when;
    if (r->heading || !under || !when) continue;
    if (r->make)
      r->make(c);
    else if (r->value)
      choose(c, r->setting, r->value, r->why);
    else
      choose_number(c, r->setting, value_of(c, r->number), r->why);
  }
}

dvbf_status dv_choose_settings(dvbf_settings *settings, const dv_profile *facts, dvbf_choice_fn *each,
                               void *user_data, dvbf_error *error) {
  chooser c = {settings, facts, 0, each, user_data, DVBF_OK, error};
  apply(&c, of_data, sizeof of_data / sizeof *of_data);
  if (!dv_fit_of(dv_model_class_of(now(&c))))
    apply(&c, of_training, sizeof of_training / sizeof *of_training);
  return c.status;
}

/* ---- Directions of x ---- */

typedef struct sums {
  const dv_statistics *x;
  size_t n_x;
  double *products; /* [n_x][n_x] of the standardised values of each pair of columns, its upper half */
  double *row;      /* [n_x] */
} sums;

static void add_row(const sums *s, const float *row) {
  for (size_t k = 0; k < s->n_x; k++) {
    bool seen = dv_statistics_vary(s->x, k) && !isnan(row[k]);
    s->row[k] = seen ? ((double)row[k] - s->x->mean[k]) / sqrt(s->x->variance[k]) : 0;
  }
  for (size_t i = 0; i < s->n_x; i++)
    for (size_t k = i; k < s->n_x; k++) s->products[i * s->n_x + k] += s->row[i] * s->row[k];
}

/* Pieces of the sequences, evenly spread, so that a large file is not read once more. */
static dvbf_status add_pieces(const sums *to, const dvbf_sequences *s, dvbf_error *error) {
  enum { PIECE = 512, PIECES = 6 };
  size_t frames = dv_sequences_frames(s), pieces = frames / PIECE + 1, sequence = 0, before = 0;
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, s, PIECE, error);
  if (status) return status;
  if (pieces > PIECES) pieces = PIECES;
  for (size_t p = 0; p < pieces; p++) {
    size_t at = frames * p / pieces, length;
    while (length = dvbf_sequence_length(s, sequence), at >= before + length) before += length, sequence++;
    size_t end = frames * (p + 1) / pieces, first = at - before, steps = end - at < PIECE ? end - at : PIECE;
    if (steps > length - first) steps = length - first;
    const float *rows = dv_sequence_x(s, sequence, first, steps, buffer);
    for (size_t t = 0; t < steps; t++) add_row(to, rows + t * s->n_x);
  }
  dv_free(buffer);
  return dv_sequences_intact(s, error);
}

/* Entries of the diagonal [n][n], the largest first, until they make up the share of all. */
static size_t count_largest(const double *matrix, size_t n, double *left, double share) {
  double all = 0, sum = 0;
  size_t count = 0;
  for (size_t k = 0; k < n; k++) all += left[k] = matrix[k * n + k];
  while (count < n && sum < share * all) {
    size_t largest = 0;
    for (size_t k = 1; k < n; k++)
      if (left[k] > left[largest]) largest = k;
    sum += left[largest];
    left[largest] = -1;
    count++;
  }
  return count;
}

/* *out = number of principal components that together hold `share` of the variance of the standardised
 * columns; a missing value counts as the mean of its column. Of large data a few thousand frames are used. Of
 * more than MOST columns, all count. */
static dvbf_status directions(size_t *out, const dvbf_sequences *s, const dv_statistics *x, double share,
                              dvbf_error *error) {
  enum { MOST = 256 };
  size_t n = s->n_x;
  *out = n;
  if (n > MOST) return DVBF_OK;
  double *products = dv_calloc(n * n, sizeof *products), *vectors = dv_calloc(n * n, sizeof *vectors);
  sums to = {x, n, products, vectors};
  dvbf_status status =
      products && vectors ? add_pieces(&to, s, error) : dv_fail_memory(error, "looking at the data");
  if (!status) {
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < i; k++) products[i * n + k] = products[k * n + i];
    dv_diagonalise(products, vectors, (int)n);
    *out = count_largest(products, n, vectors, share);
  }
  DV_FREE(products, vectors);
  return status;
}

/* ---- Facts ---- */

/* Facts from a linear model, if the data allow one. */
static dvbf_status look_further(dv_profile *f, const dvbf_data *data, const volatile int *interrupt,
                                dvbf_error *error) {
  const double predictable = 0.7;
  dvbf_error inner = {0};
  dvbf_status status = dv_identify_summary(&f->linear, data, interrupt, &inner);
  if (status) f->linear = (dv_linear_facts){0};
  if (status == DVBF_MEMORY || status == DVBF_IO || status == DVBF_STOPPED) {
    if (error) *error = inner;
    return status;
  }
  f->far = f->n_u || (f->linear.order && f->linear.free_run < predictable);
  return DVBF_OK;
}

static int compare(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static dvbf_status look_at_lengths(dv_profile *f, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *train = &data->train, *others[] = {&data->valid, &data->test};
  size_t *lengths = dv_calloc(train->count, sizeof *lengths);
  if (!lengths) return dv_fail_memory(error, "looking at the data");
  for (size_t i = 0; i < train->count; i++) lengths[i] = dvbf_sequence_length(train, i);
  qsort(lengths, train->count, sizeof *lengths, compare);
  f->common = lengths[train->count / 10];
  for (int i = 0; i < 2; i++)
    if (others[i]->count && others[i]->steps < f->common) f->common = others[i]->steps;
  dv_free(lengths);
  return DVBF_OK;
}

/* `further`: also facts from a linear model. */
static dvbf_status look(dv_profile *f, const dvbf_data *data, bool further, const volatile int *interrupt,
                        dvbf_error *error) {
  const dvbf_sequences *train = &data->train;
  enum { SHORT = 20, LARGE = 512, MOVES = 5 };
  if (!train->count || !train->n_x)
    return dv_fail(error, DVBF_FORMAT,
                   "data: train/x is empty; at least one sequence with one column is needed");
  dvbf_status status = dv_sequences_filled(train, "data", "train/", error);
  if (!status) status = dv_statistics_of_x(&f->x, train, error);
  if (status) return status;
  f->train = train;
  f->sequences = train->count;
  f->steps = train->steps;
  f->n_x = train->n_x;
  f->n_u = train->n_u;
  f->height = data->image_height;
  f->width = data->image_width;
  f->large = dv_sequences_thinned(train) > 1;
  uint64_t frames = dv_sequences_frames(train);
  for (size_t k = 0; k < f->n_x; k++) {
    f->gaps |= frames - f->x.seen[k] > dv_rare(frames);
    f->constant |= !dv_statistics_vary(&f->x, k);
  }
  f->notes = f->x.binary && !f->n_u && !data->image_height && f->steps > 1;
  f->picture = !f->notes && f->n_x >= 16 && f->x.low >= 0 && f->x.high <= 1;
  f->video = f->picture && f->height && f->n_x >= LARGE && f->steps >= 2 * MOVES;
  status = dv_check_varies(&f->x, f->n_x, error);
  if (!status) status = look_at_lengths(f, data, error);
  if (status) return status;
  f->sensors = !f->picture && !f->x.binary && !f->x.counts;
  f->directions = f->n_x;
  if (f->sensors && 2 + 2 * f->n_x > LATENT) status = directions(&f->directions, train, &f->x, 0.99, error);
  if (status) return status;
  return further && f->sensors && f->steps >= SHORT ? look_further(f, data, interrupt, error) : DVBF_OK;
}

static dvbf_status make_profile(dv_profile **out, const dvbf_data *data, bool further,
                                const volatile int *interrupt, dvbf_error *error) {
  dv_profile *f = dv_calloc(1, sizeof *f);
  dvbf_status status =
      f ? look(f, data, further, interrupt, error) : dv_fail_memory(error, "looking at the data");
  if (status)
    dv_profile_free(f);
  else
    *out = f;
  return status;
}

dvbf_status dv_profile_new(dv_profile **out, const dvbf_data *data, const volatile int *interrupt,
                           dvbf_error *error) {
  return make_profile(out, data, true, interrupt, error);
}

void dv_profile_free(dv_profile *f) {
  if (f) dv_statistics_free(&f->x);
  dv_free(f);
}

size_t dv_profile_steps(const dv_profile *f) {
  return f->steps;
}

dvbf_status dvbf_settings_choose(dvbf_settings *settings, const dvbf_data *data, dvbf_choice_fn *each,
                                 void *user_data, dvbf_error *error) {
  DV_COMPUTE(dv_settings_portable(settings));
  dv_profile *f = NULL;
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (!s) return DVBF_ARGUMENT;
  if (dv_settings_all_given(settings)) return DVBF_OK; /* by a preset, or by the run that is resumed */
  /* A fit chooses for itself. */
  bool further = !dv_fit_of(dv_model_class_of(s));
  dvbf_status status = make_profile(&f, data, further, dv_settings_interrupt(settings), error);
  if (!status) status = dv_choose_settings(settings, f, each, user_data, error);
  dv_profile_free(f);
  return status;
}
