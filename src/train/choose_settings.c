/* Settings chosen for the data (dvbf_settings_choose): rules look at a few facts about the training data
 * (columns, steps, range, gaps, a linear model) and set what the user has left open; every choice is reported
 * with its reason. The rules are rough, found on simulated systems and recordings (docs/results.md). The
 * order of the rules matters: later ones read what earlier ones have set. Also the number of directions of x
 * (dv_directions). */
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

/* Facts that the rules use. */
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
typedef dv_profile facts;

typedef struct chooser {
  dvbf_settings *settings;
  dvbf_choice_fn *each;
  void *user_data;
  dvbf_status status;
  dvbf_error *error;
} chooser;

/* Sets a value without marking it as chosen by the user. Values of the user are never changed. */
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

static const dv_train_settings *now(const chooser *c) {
  return dv_settings_train(c->settings, NULL);
}

/* ---- Rules ---- */

/* Recommends a density that nobody asked for. */
static void advise(chooser *c, const char *name, const char *why) {
  char was[DV_TEXT], text[160];
  if (c->status || !c->each || dv_settings_given(c->settings, "likelihood")) return;
  snprintf(text, sizeof text, "%s; likelihood = %s may suit it better", why, name);
  c->status = dvbf_settings_get(c->settings, "likelihood", was, sizeof was, c->error);
  if (!c->status) c->each("likelihood", was, was, text, c->user_data);
}

/* The first that suits the data; otherwise the default stays. */
static void density(chooser *c, const facts *f) {
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

static void emission(chooser *c, const facts *f) {
  density(c, f);
  if (!f->picture && !f->x.binary && dv_density_of(now(c))->scales(now(c)))
    choose(c, "x-scaling", "standardise", "columns of x have scales of their own");
  if (f->n_u) choose(c, "u-scaling", "standardise", "controls have scales of their own");
  /* It is predicted without error and would make a sigma shared by all columns too small. */
  if (f->constant && !f->picture && dv_density_of(now(c))->sigma)
    choose(c, "sigma", "dimension", "a column of x is constant");
  if (f->gaps && f->x.whole) choose(c, "mask-input", "step", "steps of x are missing");
  if (f->gaps && !f->x.whole) choose(c, "mask-input", "dimension", "values of x are missing");
}

/* Sensors that can be predicted far ahead: the dynamics are learned from long unobserved stretches, in small
 * batches of overlapping windows; then the gain of the filter. The systems start as oscillating modes,
 * because nonlinear effects of u, such as an amplitude, are not found from systems near the identity. */
static void far(chooser *c, const facts *f) {
  double more = fmin(4, fmax(1, sqrt((double)f->x.frames / 1000)));
  bool many = f->x.frames >= 5000;
  const dvbf_model_class *type = dv_model_class_of(now(c));
  /* Other models have no separate gain: they learn the filter with the dynamics. */
  if (!f->far || !(type->takes_transition || type->exact)) return;
  choose(c, "modes", "on", "x can be predicted far ahead");
  choose(c, "affine", "on", "x can be predicted far ahead");
  choose(c, "filter-dropout", "0.9", "the dynamics are learned by free runs");
  choose(c, "filter-dropout-end", "0.9", "the dynamics are learned by free runs");
  choose(c, "filter-dropout-run", "30", "the dynamics are learned by free runs");
  choose(c, "dropped", "zero", "the dynamics are learned by free runs");
  choose(c, "keep-by", "prediction", "the dynamics are learned by free runs");
  choose(c, "hidden", many ? "128" : "64", "as there are frames");
  choose(c, "systems", many ? "16" : "12", "as there are frames");
  choose(c, "batch-size", "16", "windows overlap much");
  choose(c, "learning-rate", "0.008", "batches are small");
  choose(c, "clip-norm", "1", "free runs may explode");
  choose_number(c, "updates", 3000 * floor(more), "as there are frames");
  choose_number(c, "filter-updates", fmin(600, ceil((double)now(c)->updates / 5)),
                "the filter is learned when the dynamics are known");
}

/* Recurring frames determine the state: a model that reads them back need not encode them in noise, which
 * would cost likelihood. Settings of the user that it would ignore keep the model. */
static void reading(chooser *c, const facts *f) {
  const dvbf_model_class *type = dv_model_reading();
  if (c->status || !f->notes || !dv_density_of(now(c))->notes) return;
  if (dv_settings_given(c->settings, "model") || dv_settings_given(c->settings, "importance-samples")) return;
  if (dv_settings_fit_model(c->settings, type, false, NULL)) return;
  choose(c, "model", type->name, "frames that come again and again tell the state");
}

static bool reads_patterns(const chooser *c, const facts *f) {
  return f->notes && dv_density_of(now(c))->notes && dv_model_class_of(now(c))->reads_frame;
}

/* Such models learn fast and soon overfit: small networks, short windows, few updates, and frequent
 * validation. */
static void patterns(chooser *c, const facts *f) {
  static const char why[] = "a few frames come again and again";
  enum { WINDOW = 20, STRIDE = WINDOW / 4, FRAMES = 10000 };
  if (!reads_patterns(c, f)) return;
  double more = fmin(5, fmax(1, (double)f->x.frames / FRAMES));
  choose_number(c, "updates", round(8 * more) * 100, "as there are frames");
  choose_number(c, "validate-every", round((double)now(c)->updates / 16), why);
  if (f->x.frames < 2 * FRAMES) {
    choose(c, "units", "32", "there are few frames");
    choose(c, "hidden", "64", "there are few frames");
  }
  if (f->steps <= WINDOW) return;
  choose_number(c, "window", WINDOW, why);
  choose_number(c, "stride", STRIDE, why);
}

/* Data driven by noise may go anywhere at each step: w decides, judged by the likelihood one step ahead. So
 * nothing is dropped, the state is large, and many systems follow from it. */
static void notes(chooser *c, const facts *f) {
  static const char why[] = "noise drives columns of 0 and 1";
  if (!f->notes) return;
  if (!reads_patterns(c, f)) {
    choose(c, "systems", "32", why);
    choose(c, "mixing-hidden", "64", why);
    choose(c, "universal", "point", why);
    choose(c, "filter-dropout", "0", why);
    choose(c, "filter-dropout-end", "0", why);
    choose(c, "initial-frames", "3", why);
    choose(c, "updates", "6000", why);
  }
  choose(c, "keep-by", "bound", why);
  choose(c, "batch-size", "16", why);
  choose(c, "clip-norm", "1", why);
  choose(c, "starts", "1", why); /* predictions far ahead, by which starts are judged, tell nothing */
}

/* Whether a model of components is one of x (train/pca_training.c), and all frames can be read. */
static bool has_components(const chooser *c, const facts *f) {
  const dv_train_settings *s = now(c);
  bool normal = dv_density_of(s)->normal && s->mean == DV_MEAN_IDENTITY &&
                (s->sigma == DV_SIGMA_FIXED || s->sigma == DV_SIGMA_GLOBAL);
  return f->video && !f->large && normal && s->network != DV_NETWORK_CONV && !s->shift &&
         !(f->gaps && !f->x.whole);
}

/* For network = auto. A dense layer learns sooner than convolutions, on components and on pixels
 * (bench/SPEED.md), but needs gigabytes for large images. */
static void network(chooser *c, const facts *f) {
  enum { VALUES = 32768 };
  if (now(c)->network != DV_NETWORK_AUTO || c->status) return;
  bool components = has_components(c, f), conv = !components && f->height && f->n_x >= VALUES;
  const char *why = conv         ? "images are large, and there are no components"
                    : components ? "images are learned on components"
                                 : "x is no large image";
  c->status = dv_settings_set_chosen(c->settings, "network", conv ? "conv" : "dense", c->error);
  if (!c->status && c->each) c->each("network", conv ? "conv" : "dense", "auto", why, c->user_data);
}

/* Convolutions and shifts need the shape of the image. */
static void picture(chooser *c, const facts *f) {
  network(c, f);
  if ((now(c)->network != DV_NETWORK_CONV && !now(c)->shift) || !f->height) return;
  choose_number(c, "image-height", (double)f->height, "as the images are");
  choose_number(c, "image-width", (double)f->width, "as the images are");
}

enum { WINDOW_OF_VIDEO = 15 };
static const char PLACES_WHY[] = "so many powers of the coordinates tell the images apart";

/* Only the emission is learned from images: otherwise w would learn to make every frame, and the transition
 * nothing. It sees states that the filter knows well, so nothing is dropped. Windows overlap, so small
 * batches suffice. */
static void places(chooser *c, const facts *f) {
  static const char why[] = "the dynamics are learned from places";
  int order = (int)now(c)->places;
  if (!order && !c->status)
    c->status = dv_image_moments_order(&order, f->train, f->height, f->width, c->error);
  if (!order) order = DV_PLACES_HIGHEST;
  choose_number(c, "places", order, PLACES_WHY);
  choose_number(c, "latent", dv_image_moments_state(order), "three for each moment of the images");
  choose_number(c, "emission-sees", dv_image_moments_moments(order), "an image shows where things are");
  choose(c, "hidden", "512", "images change fast with the state");
  choose(c, "transition", "mlp", why);
  choose(c, "transition-hidden", "512", why);
  choose(c, "transition-paths", "on", why);
  choose(c, "universal", "point", why);
  choose(c, "linear-paths", "on", why);
  choose(c, "recognition-sees", "prediction", why);
  choose(c, "filter-dropout", "0", why);
  choose(c, "filter-dropout-end", "0", why);
  choose(c, "state-limit", "2", "predictions must stay near what was seen");
  choose(c, "updates", "500", why);
  choose(c, "batch-size", "16", why);
  choose(c, "learning-rate", "0.0005", "the emission begins as a regression");
  choose(c, "sigma-floor-updates", "0", "the emission begins as a regression");
  choose_number(c, "emission-updates", (double)now(c)->updates, why);
}

static void coarse(chooser *c) {
  double updates = (double)now(c)->updates;
  choose(c, "coarse", "5", "what moves may be small");
  choose_number(c, "coarse-hold", round(0.4 * updates), "0.4 of the updates");
  choose_number(c, "coarse-updates", round(0.7 * updates), "0.7 of the updates");
}

/* A mixture that does not read the controls cannot memorise those of few sequences. */
static void mixture(chooser *c, bool components) {
  static const char why[] = "x is a video";
  choose(c, "latent", "8", why);
  choose(c, "affine", "on", why);
  choose(c, "mixing-hidden", "64", why);
  choose(c, "mixing-control", "off", why);
  choose(c, "filter-dropout", "0.5", why);
  choose(c, "filter-dropout-end", "0.4", why);
  choose(c, "updates", "5000", why);
  if (components) coarse(c);
}

/* Whether the position of their light tells images apart. Settings of the user that would be ignored rule it
 * out. */
static bool suits_places(chooser *c, const facts *f) {
  static const char *const said[] = {"coarse", "transition", "systems", "latent"};
  const dv_train_settings *s = now(c);
  int order = 0;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (dv_settings_given(c->settings, said[i])) return false;
  if (f->common <= 3 || s->recognition != DV_FILTERING || s->initial != DV_INITIAL_MLP || c->status)
    return false;
  c->status = dv_image_moments_order(&order, f->train, f->height, f->width, c->error);
  if (c->status || !order) return false;
  choose_number(c, "places", order, PLACES_WHY); /* so that the facts are not found again */
  return true;
}

/* Large images of something that moves. Training on components makes them as fast as small ones, and the
 * motion of small things is found from moments first, or from coarse images. Windows with every origin show
 * many beginnings. */
static void video(chooser *c, const facts *f) {
  static const char why[] = "x is a video";
  const dv_train_settings *s = now(c);
  choose(c, "scale-emission", "2", "images change fast with the state");
  choose(c, "keep-by", "prediction", why);
  choose(c, "restart-above", "2", "early predictions of a video tell little");
  if (f->steps > WINDOW_OF_VIDEO) {
    choose_number(c, "window", WINDOW_OF_VIDEO, "training begins anywhere in a video");
    if (!f->large) choose(c, "stride", "1", "training begins anywhere in a video");
  }
  bool components = has_components(c, f);
  if (components) {
    choose(c, "projection", "1e-4", why);
    choose(c, "components", "160", why);
    if (suits_places(c, f)) choose(c, "start", "places", "images are told apart by where their light is");
  }
  if (s->start == DV_START_PLACES)
    places(c, f);
  else
    mixture(c, components);
}

/* A mixture of linear systems extrapolates in a straight line. */
static void stability(chooser *c, const facts *f) {
  if (!f->picture && f->steps > 1) choose(c, "state-limit", "2", "predictions must stay near what was seen");
}

/* Largest state for sensors. Columns that follow from others add nothing to it. */
enum { LATENT = 16 };

static void sizes(chooser *c, const facts *f) {
  notes(c, f);
  if (f->video && dv_model_class_of(now(c))->takes_transition) {
    video(c, f);
  } else if (f->picture) {
    choose(c, "latent", "4", "x is a picture");
  } else {
    double latent = fmin(LATENT, 2 + 2 * (double)f->directions);
    choose_number(c, "latent", latent,
                  f->directions < f->n_x ? "2 and twice the directions that hold 99 % of x, at most 16"
                                         : "2 and twice the columns of x, at most 16");
  }
  if (f->n_u) choose(c, "initial-control", "on", "there are controls");
  /* Larger networks would memorise so little data. */
  if (f->x.frames < 500 && !f->far) {
    choose(c, "hidden", "32", "there are few frames");
    choose(c, "systems", "8", "there are few frames");
  }
  far(c, f);
  if (f->linear.feedthrough && f->n_u)
    choose(c, "feedthrough", "on", "the best linear model sees x answer to u at once");
}

/* The most frames that leave some to predict in sequences of that length. */
static double most_initial(size_t steps) {
  return fmax(1, fmax(floor((double)steps / 3), (double)steps - 5));
}

/* Frames for the initial network: at most 20, with at most VALUES values in all. From many columns it would
 * memorise the beginnings of the sequences, and a few frames of them determine the state. */
static double few_values(const facts *f) {
  enum { VALUES = 240 };
  return fmin(20, fmax(5, floor(VALUES / (double)f->n_x)));
}

/* Long recordings need windows, and a transition that neither diverges nor forgets over that many steps. */
static void time(chooser *c, const facts *f) {
  enum { WINDOW = 100 };
  if (f->steps > 2 * WINDOW) choose_number(c, "window", WINDOW, "sequences are long");
  const dv_train_settings *s = now(c);
  size_t steps = s->window && (size_t)s->window < f->steps ? (size_t)s->window : f->steps;
  if (s->window && f->steps > (size_t)s->window && !f->video)
    choose_number(c, "stride", fmax(1, floor((double)steps / 10)), "a tenth of the window");
  /* Keeps the initial growth of z over a window, about exp(steps * scale * sqrt(latent)), below e^2. */
  double growth = (double)steps * sqrt((double)now(c)->latent);
  if (growth > 20) choose_number(c, "scale-transition", 2 / growth, "windows are long");
  double most = most_initial(f->common);
  if (steps >= 60 && !f->notes) {
    choose_number(c, "initial-frames", fmin(f->x.frames < 600 ? 10 : few_values(f), most),
                  "windows are long");
    if (!now(c)->modes) {
      choose(c, "filter-dropout", "0.7", "windows are long");
      choose(c, "filter-dropout-end", "0.7", "windows are long");
      choose(c, "filter-dropout-run", "10", "windows are long");
    }
    choose(c, "keep-by", "prediction", "windows are long");
  }
  if ((double)now(c)->initial_frames > most)
    choose_number(c, "initial-frames", most, "sequences that train, validate or test are short");
  double frames = (double)now(c)->initial_frames;
  if (frames > 0) choose_number(c, "predict-from", frames, "as initial-frames");
}

/* What a model that starts as a Kalman filter needs, with steps small enough to keep it. */
static void linear_start(chooser *c, const facts *f) {
  static const char why[] = "training starts from a linear model";
  if (now(c)->start != DV_START_LINEAR) return;
  choose(c, "recognition-sees", "innovation", why);
  choose(c, "linear-paths", "on", why);
  choose(c, "affine", "on", why);
  choose(c, "modes", "off", why);
  choose(c, "learning-rate", "0.0005", why);
  choose(c, "sigma-floor-updates", "0", why);
  if (!f->linear.order) return;
  if (f->linear.order > now(c)->latent)
    choose_number(c, "latent", f->linear.order, "the order of the linear model");
  if (now(c)->sigma_floor > 0.3 * f->linear.sigma)
    choose_number(c, "sigma-floor", fmax(1e-6, 0.3 * f->linear.sigma),
                  "below the errors of the linear model");
}

/* What the gain of the last phase is made of, and what separates it from free runs. */
static void phases(chooser *c) {
  if (!now(c)->filter_updates || !dv_model_class_of(now(c))->takes_transition) return;
  choose(c, "recognition-sees", "innovation", "the gain of the filter is to be linear");
  choose(c, "linear-paths", "on", "the gain of the filter is to be linear");
  choose(c, "recognition-waits", "on", "the filter is trained apart");
}

/* Schedules are shares of the number of updates. */
static void schedules(chooser *c, const facts *f) {
  if (f->sequences > 2000 && f->steps <= 200)
    choose_number(c, "updates", fmin(16000, round(4000 * sqrt((double)f->sequences / 500) / 1000) * 1000),
                  "there are many sequences");
  double updates = (double)now(c)->updates;
  if (updates < 1) return;
  if (now(c)->start != DV_START_LINEAR && now(c)->start != DV_START_PLACES)
    choose_number(c, "sigma-floor-updates", round(0.45 * updates), "0.45 of the updates");
  choose_number(c, "filter-dropout-updates", round(0.5 * updates), "half of the updates");
  choose_number(c, "warm-up", round(fmin(100, 0.1 * updates)), "at most a tenth of the updates");
  choose_number(c, "validate-every", fmax(1, fmin(200, round(updates / 5))), "at least five in all");
}

/* Training on sensor data takes seconds, and the seed matters much: several are tried, unless the user has
 * set the number of starts. */
static void search(chooser *c, const facts *f) {
  static const char *const starts[] = {"starts", "restart-at", "restart-above"};
  for (int i = 0; i < 3; i++)
    if (dv_settings_given(c->settings, starts[i])) return;
  const dv_train_settings *s = now(c);
  if (f->sensors && f->steps > 1 && dv_density_of(s)->scales(s) && dv_model_class_of(s)->takes_transition)
    choose(c, "search", "on", "trainings are short, and none is reliable alone");
}

/* ---- Applying the rules ---- */

/* Facts from a linear model, if the data allow one. */
static dvbf_status look_further(facts *f, const dvbf_data *data, const volatile int *interrupt,
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

static dvbf_status look_at_lengths(facts *f, const dvbf_data *data, dvbf_error *error) {
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
static dvbf_status look(facts *f, const dvbf_data *data, bool further, const volatile int *interrupt,
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
  if (f->sensors && 2 + 2 * f->n_x > LATENT)
    status = dv_directions(&f->directions, train, &f->x, 0.99, error);
  if (status) return status;
  return further && f->sensors && f->steps >= SHORT ? look_further(f, data, interrupt, error) : DVBF_OK;
}

static dvbf_status make_facts(dv_profile **out, const dvbf_data *data, bool further,
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
  return make_facts(out, data, true, interrupt, error);
}

void dv_profile_free(dv_profile *f) {
  if (f) dv_statistics_free(&f->x);
  dv_free(f);
}

size_t dv_profile_steps(const dv_profile *f) {
  return f->steps;
}

dvbf_status dv_choose_settings(dvbf_settings *settings, const dv_profile *f, dvbf_choice_fn *each,
                               void *user_data, dvbf_error *error) {
  chooser c = {settings, each, user_data, DVBF_OK, error};
  emission(&c, f);
  reading(&c, f);
  stability(&c, f);
  if (!dv_fit_of(dv_model_class_of(now(&c)))) { /* otherwise the fit itself finds what there is to choose */
    picture(&c, f);
    sizes(&c, f);
    linear_start(&c, f);
    time(&c, f);
    phases(&c);
    schedules(&c, f);
    search(&c, f);
    patterns(&c, f);
  }
  return c.status;
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
  dvbf_status status = make_facts(&f, data, further, dv_settings_interrupt(settings), error);
  if (!status) status = dv_choose_settings(settings, f, each, user_data, error);
  dv_profile_free(f);
  return status;
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

dvbf_status dv_directions(size_t *out, const dvbf_sequences *s, const dv_statistics *x, double share,
                          dvbf_error *error) {
  size_t n = s->n_x;
  *out = n;
  if (n > DV_DIRECTIONS_MOST) return DVBF_OK;
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
