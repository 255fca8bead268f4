/* Settings chosen for the data (dvbf_settings_choose): the rules of rules.def look at a few facts about the
 * training data (columns, steps, range, gaps, a linear model) and set what the user has left open; every
 * choice is reported with its reason. The rules are rough, found on simulated systems and recordings
 * (docs/results.md). Here are the facts, and what needs more than a line. */
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

/* Sets each "name=value" of the text. */
static void choose_all(chooser *c, const char *changes, const char *why) {
  char text[256], *rest = text, *name, *value;
  snprintf(text, sizeof text, "%s", changes);
  while (dv_next_change(&rest, &name, &value)) choose(c, name, value, why);
}

/* ---- Facts and numbers of the rules ---- */

enum { SENSOR_LATENT = 16 }; /* the largest z that is chosen for them */

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

static bool is_video(const chooser *c) {
  return c->facts->video && dv_model_class_of(now(c))->takes_transition;
}

static bool by_moments(const chooser *c) {
  return is_video(c) && now(c)->start == DV_START_MOMENTS;
}

static bool far_ahead(const chooser *c) {
  const dvbf_model_class *type = dv_model_class_of(now(c));
  return c->facts->far && (type->takes_transition || type->exact);
}

static bool long_windows(const chooser *c) {
  return steps_of(c) >= 60 && !c->facts->notes;
}

/* ---- Choices that need more than a line ---- */

static void find_order(chooser *c) {
  const dv_profile *f = c->facts;
  if (!c->status) c->status = dv_image_moments_order(&c->order, f->train, f->height, f->width, c->error);
}

/* Whether the position of their light tells images apart. Settings of the user that would be ignored rule a
 * start from moments out. */
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

static void choose_reading_model(chooser *c) {
  choose(c, "model", dv_model_reading()->name, "recurring frames reveal the state");
}

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

/* ---- The rules ---- */

static void apply_rules(chooser *c) {
  const dv_profile *f = c->facts;
  const dv_train_settings *s = now(c); /* rules change them */
  double frames = (double)f->x.frames;
#define type dv_model_class_of(s)
#define density dv_density_of(s)
#define RULE(fact, changes, why)                                                                             \
  if (fact) choose_all(c, changes, why);
#define NUMBER(fact, name, value, why)                                                                       \
  if (fact) choose_number(c, name, (double)(value), why);
#define CALL(fact, function)                                                                                 \
  if (fact) function(c);
#define LAST(fact)                                                                                           \
  if (fact) return;
#include "train/rules.def"
#undef type
#undef density
}

dvbf_status dv_choose_settings(dvbf_settings *settings, const dv_profile *facts, dvbf_choice_fn *each,
                               void *user_data, dvbf_error *error) {
  chooser c = {settings, facts, 0, each, user_data, DVBF_OK, error};
  apply_rules(&c);
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
  if (f->sensors && 2 + 2 * f->n_x > SENSOR_LATENT)
    status = directions(&f->directions, train, &f->x, 0.99, error);
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
