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
  size_t steps;  /* of the longest training sequence, before windows are cut */
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

/* Sets each "name=value" of the text. */
static void choose_all(chooser *c, const char *changes, const char *why) {
  char text[256], *rest = text, *name, *value;
  snprintf(text, sizeof text, "%s", changes);
  while (dv_next_change(&rest, &name, &value)) choose(c, name, value, why);
}

/* ---- What conditions and numbers are made of ---- */

enum { WINDOW = 100, WINDOW_OF_VIDEO = 15, WINDOW_OF_PATTERNS = 20, FRAMES_OF_PATTERNS = 10000, LATENT = 16 };

static const char FRAMES[] = "by the number of frames", LITTLE[] = "there are few frames",
                  LONG[] = "windows are long", PLACES[] = "the dynamics are learned from places",
                  POWERS[] = "these powers of the coordinates distinguish the images";

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

/* Frames for the initial network: at most 20, with at most INITIAL_VALUES values in all. From many columns it
 * would memorise the beginnings of the sequences, and a few frames of them determine the state. */
static double frames_to_begin(const dv_profile *f) {
  enum { INITIAL_VALUES = 240 };
  double few = f->x.frames < 600 ? 10 : fmin(20, fmax(5, floor(INITIAL_VALUES / (double)f->n_x)));
  return fmin(few, most_initial(f));
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

/* Whether short trainings may be searched over. The number of starts is the user's choice where it is given.
 */
static bool may_search(const chooser *c) {
  const dv_profile *f = c->facts;
  bool sensors = f->sensors && f->steps > 1 && dv_density_of(now(c))->scales(now(c));
  return sensors && dv_model_class_of(now(c))->takes_transition &&
         !dv_settings_given(c->settings, "starts") && !dv_settings_given(c->settings, "restart-above");
}

/* The order of the moments that tell images apart; 0: none do. */
static int find_order(chooser *c) {
  const dv_profile *f = c->facts;
  int order = 0;
  if (!c->status) c->status = dv_image_moments_order(&order, f->train, f->height, f->width, c->error);
  return order;
}

/* The same, if nothing is against a start from moments: settings of the user that would be ignored rule it
 * out. */
static int try_moments(chooser *c) {
  static const char *const said[] = {"coarse", "transition", "systems", "latent"};
  const dv_train_settings *s = now(c);
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (dv_settings_given(c->settings, said[i])) return 0;
  bool known = c->facts->common > 3 && s->recognition == DV_FILTERING && s->initial == DV_INITIAL_MLP;
  return known ? find_order(c) : 0;
}

/* ---- For every model ---- */

/* Recommends a density that nobody asked for. */
static void advise(chooser *c, const char *name, const char *why) {
  char was[DV_TEXT], text[160];
  if (c->status || !c->each || dv_settings_given(c->settings, "likelihood")) return;
  snprintf(text, sizeof text, "%s; likelihood = %s may suit it better", why, name);
  c->status = dvbf_settings_get(c->settings, "likelihood", was, sizeof was, c->error);
  if (!c->status) c->each("likelihood", was, was, text, c->user_data);
}

/* The first that suits the data; otherwise the default stays. */
static void choose_density(chooser *c) {
  const dv_profile *f = c->facts;
  const char *name, *why = NULL;
  const dv_density *d;
  for (size_t i = 0; !why && (d = dv_density_at(i, &name)); i++)
    if (d->suits && (f->notes || !d->notes)) why = d->suits(f->train, &f->x);
  if (why && d->on_request) advise(c, name, why);
  if (why && !d->on_request) choose(c, "likelihood", name, why);
  d = dv_density_of(now(c));
  char value[DV_TEXT];
  if (!d->setting) return;
  d->choose(f->train, &f->x, value, sizeof value);
  choose(c, d->setting, value, "as in the data");
}

static void choose_for_data(chooser *c) {
  const dv_profile *f = c->facts;
  choose_density(c);
  const dv_density *density = dv_density_of(now(c));
  if (!f->picture && !f->x.binary && density->scales(now(c)))
    choose(c, "x-scaling", "standardise", "columns of x have different scales");
  if (f->n_u) choose(c, "u-scaling", "standardise", "controls have different scales");
  /* It is predicted without error and would make a sigma shared by all columns too small. */
  if (f->constant && !f->picture && density->sigma)
    choose(c, "sigma", "dimension", "a column of x is constant");
  if (f->gaps && f->x.whole) choose(c, "mask-input", "step", "steps of x are missing");
  if (f->gaps && !f->x.whole) choose(c, "mask-input", "dimension", "values of x are missing");
  /* Recurring frames determine the state: a model that reads them back need not encode them in noise, which
   * would cost likelihood. */
  if (may_read(c)) choose(c, "model", dv_model_reading()->name, "recurring frames reveal the state");
  /* A mixture of linear systems extrapolates in a straight line. */
  if (!f->picture && f->steps > 1) choose(c, "state-limit", "2", "predictions must stay near the data");
}

/* ---- For models that are trained by gradients; a fit finds these itself ---- */

/* For network = auto. A dense layer learns sooner than convolutions, on components and on pixels
 * (bench/SPEED.md), but needs gigabytes for large images. */
static void choose_network(chooser *c) {
  enum { LARGE_IMAGE = 32768 };
  const dv_profile *f = c->facts;
  if (now(c)->network != DV_NETWORK_AUTO || c->status) return;
  bool components = has_components(c), conv = !components && f->height && f->n_x >= LARGE_IMAGE;
  const char *why = conv         ? "images are large, and there are no components"
                    : components ? "images are learned on components"
                                 : "x is not a large image";
  c->status = dv_settings_set_chosen(c->settings, "network", conv ? "conv" : "dense", c->error);
  if (!c->status && c->each) c->each("network", conv ? "conv" : "dense", "auto", why, c->user_data);
}

/* Data driven by noise may go anywhere at each step: w decides, judged by the likelihood one step ahead. So
 * nothing is dropped, the state is large, and many systems follow from it. Predictions far ahead, by which
 * starts are judged, tell nothing. */
static void choose_for_notes(chooser *c) {
  static const char bits[] = "noise drives columns of 0 and 1";
  if (!reads_patterns(c))
    choose_all(c,
               "systems=32 mixing-hidden=64 universal=point filter-dropout=0 filter-dropout-end=0 "
               "initial-frames=3 updates=6000",
               bits);
  choose_all(c, "keep-by=bound batch-size=16 clip-norm=1 starts=1", bits);
}

/* Only the emission is learned from images: otherwise w would learn to make every frame, and the transition
 * nothing. It sees states that the filter knows well, so nothing is dropped. Windows overlap, so small
 * batches suffice. If moments do not tell the images apart, they are of the highest order. */
static void choose_by_moments(chooser *c) {
  int order = (int)now(c)->moments;
  if (!order) order = find_order(c);
  if (!order) order = DV_PLACES_HIGHEST;
  choose_number(c, "moments", order, POWERS);
  choose_number(c, "latent", dv_image_moments_state(order), "three for each moment of the images");
  choose_number(c, "emission-sees", dv_image_moments_moments(order), "an image shows where things are");
  choose(c, "hidden", "512", "images change fast with the state");
  choose_all(c,
             "transition=mlp transition-hidden=512 universal=point linear-paths=all "
             "recognition-input=prediction filter-dropout=0 filter-dropout-end=0",
             PLACES);
  choose(c, "state-limit", "2", "predictions must stay near the data");
  choose_all(c, "updates=500 batch-size=16", PLACES);
  choose_all(c, "learning-rate=0.0005 sigma-floor-until=0", "the emission begins as a regression");
  choose_number(c, "emission-updates", (double)now(c)->updates, PLACES);
}

/* Large images of something that moves. Training on components makes them as fast as small ones, and the
 * motion of small things is found from moments first, or from coarse images. Windows with every origin show
 * many beginnings. A mixture that does not read the controls cannot memorise those of few sequences. */
static void choose_for_video(chooser *c) {
  static const char video[] = "x is a video", anywhere[] = "training begins anywhere in a video";
  const dv_profile *f = c->facts;
  bool components = has_components(c), windows = f->steps > WINDOW_OF_VIDEO;
  choose(c, "scale-emission", "2", "images change fast with the state");
  choose(c, "keep-by", "prediction", video);
  choose(c, "restart-above", "2", "early predictions of a video say little");
  if (windows) choose(c, "window", "15", anywhere);
  if (windows && !f->large) choose(c, "stride", "1", anywhere);
  if (components) choose_all(c, "projection=1e-4 components=160", video);
  int order = components ? try_moments(c) : 0;
  if (order) {
    choose_number(c, "moments", order, POWERS);
    choose(c, "start", "moments", "images differ in where their light is");
  }
  if (now(c)->start == DV_START_MOMENTS) {
    choose_by_moments(c);
    return;
  }
  choose_all(c,
             "latent=8 affine=on mixing-hidden=64 mixing-control=off filter-dropout=0.5 "
             "filter-dropout-end=0.4 updates=5000",
             video);
  if (components) choose(c, "coarse", "on", "what moves may be small");
}

/* The size of the model. Larger networks would memorise little data. */
static void choose_size(chooser *c, bool video) {
  const dv_profile *f = c->facts;
  double latent = fmin(LATENT, 2 + 2 * (double)f->directions);
  if (f->picture && !video) choose(c, "latent", "4", "x is a picture");
  if (!f->picture)
    choose_number(c, "latent", latent,
                  f->directions < f->n_x ? "2 plus twice the directions that hold 99 % of x, at most 16"
                                         : "2 plus twice the columns of x, at most 16");
  if (f->n_u) choose(c, "initial-control", "on", "there are controls");
  if (f->x.frames < 500 && !f->far) choose_all(c, "hidden=32 systems=8", LITTLE);
}

/* Sensors that can be predicted far ahead: the dynamics are learned from long unobserved stretches, in small
 * batches of overlapping windows; then the gain of the filter. The systems start as oscillating modes,
 * because nonlinear effects of u, such as an amplitude, are not found from systems near the identity. Models
 * without a separate gain learn the filter with the dynamics. */
static void choose_far_ahead(chooser *c) {
  double frames = (double)c->facts->x.frames;
  choose_all(c, "start=modes affine=on", "x can be predicted far ahead");
  choose_all(c,
             "filter-dropout=0.9 filter-dropout-end=0.9 filter-dropout-run=30 dropped=zero "
             "keep-by=prediction",
             "the dynamics are learned by free runs");
  choose_all(c, frames >= 5000 ? "hidden=128 systems=16" : "hidden=64 systems=12", FRAMES);
  choose(c, "batch-size", "16", "windows overlap strongly");
  choose(c, "learning-rate", "0.008", "batches are small");
  choose(c, "clip-norm", "1", "free runs may explode");
  choose_number(c, "updates", 3000 * floor(fmin(4, fmax(1, sqrt(frames / 1000)))), FRAMES);
  choose_number(c, "gain-updates", fmin(600, ceil((double)now(c)->updates / 5)),
                "the filter is learned once the dynamics are known");
}

/* A model that starts as a Kalman filter, with steps small enough to keep it. */
static void choose_linear_start(chooser *c) {
  const dv_linear_facts *linear = &c->facts->linear;
  choose_all(c,
             "recognition-input=innovation linear-paths=on affine=on learning-rate=0.0005 "
             "sigma-floor-until=0",
             "training starts from a linear model");
  if (linear->order > now(c)->latent)
    choose_number(c, "latent", linear->order, "the order of the linear model");
  if (linear->order && now(c)->sigma_floor > 0.3 * linear->sigma)
    choose_number(c, "sigma-floor", fmax(1e-6, 0.3 * linear->sigma), "below the errors of the linear model");
}

/* Long recordings need windows, and a transition that neither diverges nor forgets over that many steps: the
 * initial growth of z over a window, about exp(steps * scale * sqrt(latent)), stays below e^2. */
static void choose_windows(chooser *c) {
  const dv_profile *f = c->facts;
  const dv_train_settings *s = now(c);
  if (f->steps > 2 * WINDOW) choose(c, "window", "100", "sequences are long");
  if (s->window && f->steps > (size_t)s->window && !f->video)
    choose_number(c, "stride", fmax(1, floor((double)steps_of(c) / 10)), "a tenth of the window");
  if (growth(c) > 20) choose_number(c, "scale-transition", 2 / growth(c), LONG);
  if (steps_of(c) >= 60 && !f->notes) {
    choose_number(c, "initial-frames", frames_to_begin(f), LONG);
    if (s->start != DV_START_MODES)
      choose_all(c, "filter-dropout=0.7 filter-dropout-end=0.7 filter-dropout-run=10", LONG);
    choose(c, "keep-by", "prediction", LONG);
  }
  if ((double)s->initial_frames > most_initial(f))
    choose_number(c, "initial-frames", most_initial(f),
                  "sequences for training, validation or tests are short");
}

/* Models that read recurring frames back learn fast and soon overfit: small networks, short windows, few
 * updates, and frequent validation. */
static void choose_for_patterns(chooser *c) {
  static const char recur[] = "a few frames recur";
  double frames = (double)c->facts->x.frames;
  choose_number(c, "updates", round(8 * fmin(5, fmax(1, frames / FRAMES_OF_PATTERNS))) * 100, FRAMES);
  choose_number(c, "validate-every", round((double)now(c)->updates / 16), recur);
  if (frames < 2 * FRAMES_OF_PATTERNS) choose_all(c, "units=32 hidden=64", LITTLE);
  if (c->facts->steps > WINDOW_OF_PATTERNS) choose_all(c, "window=20 stride=5", recur);
}

static void choose_for_training(chooser *c) {
  const dv_profile *f = c->facts;
  const dv_train_settings *s = now(c);
  const dvbf_model_class *type = dv_model_class_of(s);
  bool video = f->video && type->takes_transition;
  choose_network(c);
  if (s->network == DV_NETWORK_CONV && f->height) {
    choose_number(c, "image-height", (double)f->height, "the size of the images");
    choose_number(c, "image-width", (double)f->width, "the size of the images");
  }
  if (f->notes) choose_for_notes(c);
  if (video) choose_for_video(c);
  choose_size(c, video);
  if (f->far && (type->takes_transition || type->exact)) choose_far_ahead(c);
  if (f->linear.feedthrough && f->n_u)
    choose(c, "feedthrough", "on", "in the best linear model u acts on x at once");
  if (s->start == DV_START_LINEAR) choose_linear_start(c);
  choose_windows(c);
  /* What the gain of the last phase is made of, and what separates it from free runs. */
  if (s->gain_updates && type->takes_transition)
    choose_all(c, "recognition-input=innovation linear-paths=on", "the gain of the filter must be linear");
  if (f->train->count > 2000 && f->steps <= 200)
    choose_number(c, "updates", fmin(16000, round(4000 * sqrt((double)f->train->count / 500) / 1000) * 1000),
                  "there are many sequences");
  if (s->updates > 0)
    choose_number(c, "validate-every", fmax(1, fmin(200, round((double)s->updates / 5))),
                  "at least five validations");
  /* Training on sensor data takes seconds, and the seed matters much: several are tried. */
  if (may_search(c)) choose(c, "search", "on", "trainings are short, and none is reliable alone");
  if (reads_patterns(c)) choose_for_patterns(c);
}

dvbf_status dv_choose_settings(dvbf_settings *settings, const dv_profile *facts, dvbf_choice_fn *each,
                               void *user_data, dvbf_error *error) {
  chooser c = {settings, facts, each, user_data, DVBF_OK, error};
  choose_for_data(&c);
  if (!dv_fit_of(dv_model_class_of(now(&c)))) choose_for_training(&c);
  return c.status;
}

/* ---- Directions of x ---- */

typedef struct pair_sums {
  const dv_statistics *x;
  size_t n_x;
  double *products; /* [n_x][n_x] of the standardised values of each pair of columns, its upper half */
  double *row;      /* [n_x] */
} pair_sums;

static void add_row(const pair_sums *s, const float *row) {
  for (size_t k = 0; k < s->n_x; k++) {
    bool seen = dv_statistics_vary(s->x, k) && !isnan(row[k]);
    s->row[k] = seen ? ((double)row[k] - s->x->mean[k]) / sqrt(s->x->variance[k]) : 0;
  }
  for (size_t i = 0; i < s->n_x; i++)
    for (size_t k = i; k < s->n_x; k++) s->products[i * s->n_x + k] += s->row[i] * s->row[k];
}

/* Pieces of the sequences, evenly spread, so that a large file is not read once more. */
static dvbf_status add_pieces(const pair_sums *to, const dvbf_sequences *s, dvbf_error *error) {
  enum { PIECE_FRAMES = 512, MOST_PIECES = 6 };
  size_t frames = dv_sequences_frames(s), pieces = frames / PIECE_FRAMES + 1, sequence = 0, before = 0;
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, s, PIECE_FRAMES, error);
  if (status) return status;
  if (pieces > MOST_PIECES) pieces = MOST_PIECES;
  for (size_t p = 0; p < pieces; p++) {
    size_t at = frames * p / pieces, length;
    while (length = dvbf_sequence_length(s, sequence), at >= before + length) before += length, sequence++;
    size_t end = frames * (p + 1) / pieces, first = at - before,
           steps = end - at < PIECE_FRAMES ? end - at : PIECE_FRAMES;
    if (steps > length - first) steps = length - first;
    const float *rows = dv_sequence_x(s, sequence, first, steps, buffer);
    for (size_t t = 0; t < steps; t++) add_row(to, rows + t * s->n_x);
  }
  dv_free(buffer);
  return dv_sequences_intact(s, error);
}

/* Entries of the diagonal [n][n], the largest first, until they make up the share of all. */
static size_t count_largest(double *matrix, size_t n, double share) {
  double all = 0, sum = 0, largest;
  size_t count = 0;
  for (size_t k = 0; k < n; k++) all += matrix[k * n + k];
  for (; count < n && sum < share * all; count++, sum += largest) dv_take_largest(matrix, (int)n, &largest);
  return count;
}

/* *out = number of principal components that together hold `share` of the variance of the standardised
 * columns; a missing value counts as the mean of its column. Of large data a few thousand frames are used. Of
 * more than MOST_CORRELATED columns, all count. */
static dvbf_status directions(size_t *out, const dvbf_sequences *s, const dv_statistics *x, double share,
                              dvbf_error *error) {
  enum { MOST_CORRELATED = 256 };
  size_t n = s->n_x;
  *out = n;
  if (n > MOST_CORRELATED) return DVBF_OK;
  double *products = dv_calloc(n * n, sizeof *products), *vectors = dv_calloc(n * n, sizeof *vectors);
  pair_sums to = {x, n, products, vectors};
  dvbf_status status =
      products && vectors ? add_pieces(&to, s, error) : dv_fail_memory(error, "looking at the data");
  if (!status) {
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < i; k++) products[i * n + k] = products[k * n + i];
    dv_diagonalise(products, vectors, (int)n);
    *out = count_largest(products, n, share);
  }
  DV_FREE(products, vectors);
  return status;
}

/* ---- Facts ---- */

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

static dvbf_status look(dv_profile *f, const dvbf_data *data, bool further, const volatile int *interrupt,
                        dvbf_error *error) {
  const dvbf_sequences *train = &data->train;
  enum { SHORTEST_SEQUENCE = 20, VIDEO_PIXELS = 512, MOVES = 5 };
  if (!train->count || !train->n_x)
    return dv_fail(error, DVBF_FORMAT,
                   "data: train/x is empty; at least one sequence with one column is needed");
  dvbf_status status = dv_sequences_filled(train, "data", "train/", error);
  if (!status) status = dv_statistics_of_x(&f->x, train, error);
  if (status) return status;
  f->train = train;
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
  f->video = f->picture && f->height && f->n_x >= VIDEO_PIXELS && f->steps >= 2 * MOVES;
  status = dv_check_varies(&f->x, f->n_x, error);
  if (!status) status = look_at_lengths(f, data, error);
  if (status) return status;
  f->sensors = !f->picture && !f->x.binary && !f->x.counts;
  f->directions = f->n_x;
  if (f->sensors && 2 + 2 * f->n_x > LATENT) status = directions(&f->directions, train, &f->x, 0.99, error);
  if (status) return status;
  return further && f->sensors && f->steps >= SHORTEST_SEQUENCE ? look_further(f, data, interrupt, error)
                                                                : DVBF_OK;
}

dvbf_status dv_profile_new(dv_profile **out, const dvbf_data *data, bool further,
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
  dvbf_status status = dv_profile_new(&f, data, further, dv_settings_interrupt(settings), error);
  if (!status) status = dv_choose_settings(settings, f, each, user_data, error);
  dv_profile_free(f);
  return status;
}
