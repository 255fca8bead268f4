/* First values of an image model from moments (dv_start_moments; the idea is in start.h). A network learns
 * the motion of the moments by free runs; initial network, gain and emission follow by ridge regression. The
 * emission is fitted to positions of free runs as well, since otherwise it fails at positions slightly off.
 * Moments are taken along their principal axes, so that those of higher powers are not all alike. Recognition
 * by the innovation failed: while the emission is not learned yet, e is noise and the filter explodes. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "math/algebra.h"
#include "math/least_squares.h"
#include "math/portable.h"
#include "train/start.h"
#include "train/trainer.h"

#include <math.h>
#include <string.h>

/* ---- Weights of pixels ---- */

/* Coordinates go from -1 to 1 along the longer side. All channels count the same. */
static void fill_ramps(dvbf_real *axes, int order, int height, int width, int channels) {
  double longer = height > width ? height : width;
  size_t at = 0, n_x = (size_t)height * (size_t)width * (size_t)channels;
  for (int row = 0; row < height; row++)
    for (int col = 0; col < width; col++)
      for (int channel = 0; channel < channels; channel++, at++) {
        double y = (2 * row - height + 1) / longer, x = (2 * col - width + 1) / longer;
        dvbf_real *to = axes + at;
        for (int power = 1; power <= order; power++)
          for (int k = 0; k <= power; k++, to += n_x) {
            double value = 1;
            for (int i = 0; i < power; i++) value *= i < k ? y : x;
            *to = (dvbf_real)value;
          }
      }
}

static dvbf_status make_ramps(dv_components *out, int order, size_t n_x, size_t height, size_t width,
                              dvbf_error *error) {
  size_t pixels = height * width;
  if (!height || !width || n_x % pixels)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "start = places: x must be images, with their height and width in the data; or set start = random");
  *out = (dv_components){.n_x = (int)n_x, .count = dv_image_moments_moments(order)};
  out->axes = dv_calloc_aligned((size_t)out->count * n_x, sizeof *out->axes);
  if (!out->axes) return dv_fail_memory(error, "looking at places");
  fill_ramps(out->axes, order, (int)height, (int)width, (int)(n_x / pixels));
  return DVBF_OK;
}

dvbf_status dv_image_moments_ramps(dv_components *out, const dvbf_model *whole, const dvbf_data *data,
                                   dvbf_error *error) {
  int order = (int)whole->settings->moments;
  return make_ramps(out, order ? order : DV_PLACES_HIGHEST, (size_t)whole->n_x, data->image_height,
                    data->image_width, error);
}

/* ---- Number of moments ---- */

/* Some frames, evenly spread, for comparisons. */
typedef struct look {
  double y[DV_PLACES_MOMENTS]; /* all moments, in units of their deviation */
  double light;                /* the sum of the frame */
  size_t sequence, at;         /* where it stands */
} look;

typedef struct looks {
  size_t count, n_x;
  float *x;        /* [count][n_x] */
  look *list;      /* [count] */
  double variance; /* of a frame */
  double moving;   /* how far frames are from their mean, summed over pixels */
} looks;

static double apart(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double d = (double)a[i] - (double)b[i];
    sum += d * d;
  }
  return sum;
}

static double apart_by(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/* Squared distance in x from frame f to its nearest neighbour by the first `moments` moments; 0 moments: by x
 * itself. Close frames of the same sequence do not count. Negative: there is none. */
static double nearest(const looks *l, size_t f, size_t moments) {
  enum { NEAR = 50 };
  size_t found = l->count;
  double least = INFINITY;
  for (size_t g = 0; g < l->count; g++) {
    const look *a = &l->list[f], *b = &l->list[g];
    size_t between = a->at > b->at ? a->at - b->at : b->at - a->at;
    if (a->sequence == b->sequence && between < NEAR) continue;
    double d = moments ? apart_by(a->y, b->y, moments) : apart(l->x + f * l->n_x, l->x + g * l->n_x, l->n_x);
    if (d < least) least = d, found = g;
  }
  return found < l->count ? apart(l->x + f * l->n_x, l->x + found * l->n_x, l->n_x) : -1;
}

/* Mean of that over some of the frames. */
static double unlike(const looks *l, size_t moments) {
  enum { COMPARED_FRAMES = 200 };
  double sum = 0, count = 0;
  for (size_t f = 0; f < l->count; f += 1 + l->count / COMPARED_FRAMES) {
    double d = nearest(l, f, moments);
    if (d >= 0) sum += d, count += 1;
  }
  return count > 0 ? sum / count : 0;
}

static void standardise(look *list, size_t count, size_t k) {
  double sum = 0, squares = 0;
  for (size_t f = 0; f < count; f++) sum += list[f].y[k], squares += list[f].y[k] * list[f].y[k];
  double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
  for (size_t f = 0; f < count; f++) list[f].y[k] = variance > 0 ? (list[f].y[k] - mean) / sqrt(variance) : 0;
}

/* Takes the frames. Missing values count as black. */
static dvbf_status gather_looks(looks *l, const dvbf_sequences *s, const dv_components *ramps,
                                dvbf_error *error) {
  size_t all = dv_sequences_frames(s), every = 1 + all / l->count, next = 0, before = 0, f = 0;
  double squares = 0, *mean = dv_calloc(l->n_x, sizeof *mean);
  dvbf_status status = mean ? DVBF_OK : dv_fail_memory(error, "looking at places");
  for (size_t i = 0; i < s->count && !status; before += dvbf_sequence_length(s, i), i++)
    for (; next < before + dvbf_sequence_length(s, i) && f < l->count; next += every, f++) {
      look *to = &l->list[f];
      float *x = l->x + f * l->n_x;
      const float *from = dv_sequence_x(s, i, next - before, 1, x);
      to->sequence = i, to->at = next - before;
      for (size_t k = 0; k < l->n_x; k++) x[k] = isnan(from[k]) ? 0 : from[k];
      for (size_t k = 0; k < l->n_x; k++) {
        mean[k] += (double)x[k], squares += (double)x[k] * (double)x[k];
        to->light += (double)x[k];
      }
      for (size_t m = 0; m < DV_PLACES_MOMENTS; m++) {
        const dvbf_real *ramp = ramps->axes + m * l->n_x;
        for (size_t k = 0; k < l->n_x; k++) to->y[m] += (double)ramp[k] * (double)x[k];
      }
    }
  l->count = f;
  l->variance = squares / (double)f;
  for (size_t k = 0; k < l->n_x && !status; k++) {
    mean[k] /= (double)f;
    l->variance -= mean[k] * mean[k];
    for (size_t i = 0; i < f; i++) l->moving += fabs((double)l->x[i * l->n_x + k] - mean[k]) / (double)f;
  }
  for (size_t m = 0; m < DV_PLACES_MOMENTS; m++) standardise(l->list, f, m);
  dv_free(mean);
  return status ? status : dv_sequences_intact(s, error);
}

/* Whether the first moments circle a centre, as those of a thing that turns about a point: all are about as
 * far from it. */
static bool goes_round(const looks *l) {
  double sum = 0, squares = 0, n = (double)l->count;
  for (size_t f = 0; f < l->count; f++) {
    double square = apart_by(l->list[f].y, (double[2]){0}, 2);
    sum += sqrt(square), squares += square;
  }
  double mean = sum / n;
  return squares / n - mean * mean < 0.04 * mean * mean;
}

/* Whether all frames have the same light, so that first moments are positions: before a texture, or with
 * obstacles, they depend on what is covered too. */
static bool is_steady(const looks *l) {
  double sum = 0, squares = 0, n = (double)l->count;
  for (size_t f = 0; f < l->count; f++)
    sum += l->list[f].light, squares += l->list[f].light * l->list[f].light;
  return sqrt(fmax(0, squares / n - sum / n * sum / n)) < 0.015 * l->moving;
}

static int choose_order(const looks *l) {
  double best = unlike(l, 0), one = unlike(l, (size_t)dv_image_moments_moments(1)),
         all = unlike(l, (size_t)dv_image_moments_moments(DV_PLACES_HIGHEST));
  bool told = one <= 2 * best + 0.05 * l->variance;
  if (told && goes_round(l)) return 0;
  if (told && is_steady(l)) return 1;
  return all <= 4 * best + 0.1 * l->variance ? DV_PLACES_HIGHEST : 0;
}

dvbf_status dv_image_moments_order(int *out, const dvbf_sequences *s, size_t height, size_t width,
                                   dvbf_error *error) {
  enum { MOST_LOOKS = 2000, LOOK_NUMBERS = 1 << 25 };
  dv_components ramps = {0};
  size_t most = LOOK_NUMBERS / s->n_x < MOST_LOOKS ? LOOK_NUMBERS / s->n_x : MOST_LOOKS;
  looks l = {.count = most > 2 ? most : 2, .n_x = s->n_x};
  dvbf_status status = make_ramps(&ramps, DV_PLACES_HIGHEST, s->n_x, height, width, error);
  l.x = dv_calloc(l.count, l.n_x * sizeof *l.x);
  l.list = dv_calloc(l.count, sizeof *l.list);
  if (!status && (!l.x || !l.list)) status = dv_fail_memory(error, "looking at places");
  if (!status) status = gather_looks(&l, s, &ramps, error);
  if (!status) *out = choose_order(&l);
  dv_components_free(&ramps);
  DV_FREE(l.x, l.list);
  return status;
}

/* ---- Moments ---- */

/* Moments of missing frames, on a line between those that are seen. */
static void fill_gaps(dvbf_sequences *y) {
  size_t n = y->n_x;
  for (size_t i = 0; i < y->count && y->gaps; i++)
    for (size_t k = 0; k < n; k++) {
      float *at = y->x + dvbf_sequence_start(y, i) * n + k;
      size_t steps = dvbf_sequence_length(y, i), seen = steps;
      for (size_t t = 0; t <= steps; t++) {
        if (t < steps && isnan(at[t * n])) continue;
        for (size_t g = seen < steps ? seen + 1 : 0; g < t; g++) {
          double after = t < steps ? (double)at[t * n] : NAN,
                 before = seen < steps ? (double)at[seen * n] : after;
          if (isnan(after)) after = before;
          double share = seen < steps ? (double)(g - seen) / (double)(t - seen) : 0;
          at[g * n] = isnan(before) ? 0 : (float)(before + share * (after - before));
        }
        seen = t;
      }
    }
  y->gaps = false;
}

/* Rotates moments to their principal axes: powers of one coordinate are correlated, and what tells images
 * apart would be small compared with the rest. `work` is [n]. */
static void rotate(float *y, size_t rows, const double *vectors, double *work, size_t n) {
  for (; rows--; y += n) {
    for (size_t k = 0; k < n; k++) {
      work[k] = 0;
      for (size_t j = 0; j < n; j++) work[k] += vectors[k * n + j] * (double)y[j];
    }
    for (size_t k = 0; k < n; k++) y[k] = (float)work[k];
  }
}

/* Their products, about the means, summed over all frames. */
static void add_up(double *products, double *mean, const dvbf_sequences *y) {
  size_t n = y->n_x;
  double rows = (double)dv_sequences_frames(y);
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < y->count; i++) {
      const float *at = y->x + dvbf_sequence_start(y, i) * n;
      for (size_t t = 0; t < dvbf_sequence_length(y, i); t++, at += n)
        for (size_t k = 0; k < n; k++) {
          if (!round) mean[k] += (double)at[k] / rows;
          for (size_t j = 0; round && j < n; j++)
            products[k * n + j] += ((double)at[k] - mean[k]) * ((double)at[j] - mean[j]);
        }
    }
}

/* Moments and pixel weights along the principal axes. */
static dvbf_status straighten(dv_image_moments *p, dvbf_error *error) {
  size_t n = (size_t)p->ramps.count, n_x = (size_t)p->ramps.n_x;
  double *products = dv_calloc(n, n * sizeof *products), *vectors = dv_calloc(n, n * sizeof *vectors),
         *work = dv_calloc(n, sizeof *work);
  float *column = dv_calloc(n_x, n * sizeof *column);
  if (!products || !vectors || !work || !column) {
    DV_FREE(products, vectors, work, column);
    return dv_fail_memory(error, "looking at places");
  }
  add_up(products, work, &p->data.train);
  dv_diagonalise(products, vectors, (int)n);
  rotate(p->data.train.x, dv_sequences_frames(&p->data.train), vectors, work, n);
  rotate(p->data.valid.x, dv_sequences_frames(&p->data.valid), vectors, work, n);
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < n_x; i++) column[i * n + k] = (float)p->ramps.axes[k * n_x + i];
  rotate(column, n_x, vectors, work, n);
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < n_x; i++) p->ramps.axes[k * n_x + i] = (dvbf_real)column[i * n + k];
  DV_FREE(products, vectors, work, column);
  return DVBF_OK;
}

/* Mean and deviation of moment k, and the deviation of its changes. */
static void measure_moment(dv_image_moments *p, size_t k) {
  const dvbf_sequences *y = &p->data.train;
  double sum = 0, squares = 0, frames = 0, change = 0, changes = 0;
  for (size_t i = 0; i < y->count; i++) {
    const float *at = y->x + dvbf_sequence_start(y, i) * y->n_x + k;
    for (size_t t = 0; t < dvbf_sequence_length(y, i); t++) {
      double v = (double)at[t * y->n_x], d = t ? v - (double)at[(t - 1) * y->n_x] : 0;
      sum += v, squares += v * v, frames += 1;
      change += d * d, changes += t ? 1 : 0;
    }
  }
  double variance = squares / frames - sum / frames * sum / frames;
  p->mean[k] = sum / frames;
  p->deviation[k] = variance > 0 ? sqrt(variance) : 0;
  p->pace[k] = change > 0 ? sqrt(change / changes) : 0;
}

/* Dimensions that hardly vary are noise and are not amplified. */
static void limit(dv_image_moments *p, size_t n) {
  const double least = 0.01;
  double most = 0;
  for (size_t k = 0; k < n; k++) most = fmax(most, p->deviation[k]);
  for (size_t k = 0; k < n; k++) {
    p->deviation[k] = fmax(p->deviation[k], most > 0 ? least * most : 1);
    p->pace[k] = fmax(p->pace[k], least * p->deviation[k]);
  }
}

dvbf_status dv_image_moments_init(dv_image_moments *p, const dv_projection *of, const dvbf_data *data,
                                  int order, dvbf_error *error) {
  const dv_components *c = &of->components;
  size_t height = data->image_height, width = data->image_width;
  *p = (dv_image_moments){.order = order, .components = c->count, .left_out = c->left_out};
  dvbf_status status =
      order ? DVBF_OK : dv_image_moments_order(&p->order, &data->train, height, width, error);
  if (!p->order) p->order = DV_PLACES_HIGHEST;
  if (!status) status = make_ramps(&p->ramps, p->order, (size_t)of->whole->n_x, height, width, error);
  if (!status) status = dv_components_project(&p->data, &p->ramps, data, of->whole, error);
  if (status) return status;
  fill_gaps(&p->data.train);
  fill_gaps(&p->data.valid);
  status = straighten(p, error);
  if (status) return status;
  size_t n = (size_t)p->ramps.count;
  p->mean = dv_calloc(3, n * sizeof *p->mean);
  p->inside = dv_calloc_aligned(n, (size_t)c->count * sizeof *p->inside);
  if (!p->mean || !p->inside) return dv_fail_memory(error, "looking at places");
  dv_kernels_best()->product->nt(p->inside, false, p->ramps.axes, c->axes, p->ramps.count, c->n_x, c->count);
  p->deviation = p->mean + n;
  p->pace = p->deviation + n;
  for (size_t k = 0; k < n; k++) measure_moment(p, k);
  limit(p, n);
  return DVBF_OK;
}

void dv_image_moments_clear(dv_image_moments *p) {
  dv_components_free(&p->ramps);
  dvbf_sequences_free(&p->data.train);
  dvbf_sequences_free(&p->data.valid);
  DV_FREE(p->inside, p->mean);
  *p = (dv_image_moments){0};
}

/* Seeds of settings are below this. */
#define SEEDS UINT64_C(9007199254740992)

enum { BEFORE = DV_PLACES_BLOCKS - 1 }; /* frames that a state needs before its own */

/* ---- Motion of moments ---- */

/* The state of frame t [DV_PLACES_BLOCKS n], in units of deviations, from y = its moments [n], which those of
 * two frames stand before. */
static void put_state(float *to, const dv_image_moments *p, const float *y) {
  size_t n = (size_t)p->ramps.count;
  for (size_t k = 0; k < n; k++) {
    const float *now = y + k, *before = now - n, *long_before = before - n;
    to[k] = (float)(((double)*now - p->mean[k]) / p->deviation[k]);
    to[n + k] = (float)(((double)*now - (double)*before) / p->pace[k]);
    to[2 * n + k] = (float)(((double)*before - (double)*long_before) / p->pace[k]);
  }
}

/* Two steps of each sequence are lost. u is in units of the model. */
static dvbf_status make_states(dvbf_sequences *out, const dv_image_moments *p, const dvbf_sequences *y,
                               const dvbf_model *m, dvbf_error *error) {
  size_t n = y->n_x;
  *out = (dvbf_sequences){.steps = y->steps - BEFORE, .n_x = DV_PLACES_BLOCKS * n, .n_u = y->n_u};
  for (size_t i = 0; i < y->count; i++) out->count += dvbf_sequence_length(y, i) > BEFORE + 1;
  if (!out->count)
    return dv_fail(error, DVBF_ARGUMENT,
                   "start = places: no sequence has 4 frames or more; or set start = random");
  dvbf_status status = dv_sequences_allocate(out, true, error);
  for (size_t i = 0, to = 0; i < y->count && !status; i++) {
    size_t steps = dvbf_sequence_length(y, i), from = dvbf_sequence_start(y, i);
    if (steps <= BEFORE + 1) continue;
    out->length[to] = (uint32_t)(steps - BEFORE);
    for (size_t t = BEFORE; t < steps; t++) {
      size_t row = to * out->steps + t - BEFORE;
      const float *u = y->u + (from + t) * y->n_u;
      put_state(out->x + row * out->n_x, p, y->x + (from + t) * n);
      for (size_t k = 0; k < y->n_u; k++) out->u[row * y->n_u + k] = (u[k] - m->u.shift[k]) * m->u.scale[k];
    }
    to++;
  }
  return status;
}

/* Free runs of stretches of the sequences, from states that are known. These updates are cheap: batches are
 * large, and so are steps. */
static const char MOTION[] =
    "start=state projection=0 components=0 coarse=off x-scaling=none u-scaling=none sigma=fixed "
    "sigma-floor=1 "
    "emission-sees=0 state-limit=0 mask-input=off recognition-input=frame initial-frames=1 "
    "initial-control=off "
    "keep-by=prediction scale-transition=0 filter-dropout=1 filter-dropout-end=1 dropped=zero "
    "emission-updates=0 gain-updates=0 search=off batch-size=64 learning-rate=0.005 clip-norm=1 starts=1";

static dvbf_status settings_of(dvbf_settings **out, const dvbf_model *m, uint64_t seed, dvbf_error *error) {
  enum { MOTION_UPDATES = 4000 };
  int64_t given = m->settings->updates,
          updates = given < 100 ? 2 * given : MOTION_UPDATES; /* few: a trial of all */
  char text[sizeof MOTION + 100], *rest = text, *name, *value;
  dv_print(text, sizeof text, "%s seed=%llu updates=%lld validate-every=%lld", MOTION,
           (unsigned long long)seed, (long long)updates, (long long)updates);
  dvbf_status status = dvbf_settings_copy(out, m->settings_object, error);
  while (!status && dv_next_change(&rest, &name, &value))
    status = dv_settings_set_chosen(*out, name, value, error);
  return status;
}

/* Reports this training to the user's callback; it validates moments, so there are no rows of metrics. */
typedef struct motion_follower {
  const dvbf_train_options *options;
  bool stopped;
  double prediction; /* the best that was validated */
} motion_follower;

static bool follow(const dvbf_progress *p, void *user) {
  motion_follower *f = user;
  dvbf_progress shown = *p;
  if (p->validated && p->valid_prediction < f->prediction) f->prediction = p->valid_prediction;
  shown.validated = false;
  shown.event = NULL;
  if (f->options && f->options->progress && !f->options->progress(&shown, f->options->user_data))
    f->stopped = true;
  return !f->stopped;
}

static dvbf_status train_once(dvbf_model **out, const dvbf_data *states, const dvbf_model *m, uint64_t seed,
                              const volatile int *interrupt, motion_follower *user, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_train_options how = {.progress = follow, .user_data = user};
  dvbf_status status = settings_of(&settings, m, seed, error);
  if (!status) dvbf_settings_interrupt(settings, interrupt);
  if (!status) status = dv_train(out, NULL, settings, states, &how, 0, error);
  if (!status && (user->stopped || dv_interrupted(interrupt)))
    status = dv_fail(error, DVBF_STOPPED, "stopped while learning how places move");
  dvbf_settings_free(settings);
  return status;
}

static dvbf_status check_moments_start(const dv_image_moments *p, const dvbf_model *m, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  int least = DV_PLACES_BLOCKS * p->ramps.count;
  if (!p->order)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "start = places: it needs training on components, such as projection = 1e-4; or set start = "
        "random");
  if (s->recognition_input != DV_INPUT_PREDICTION || !s->linear_paths || s->initial != DV_INITIAL_MLP)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "start = moments: it needs recognition-input = prediction, linear-paths = on and initial = "
        "mlp; or set start = random");
  if (m->n_w < least || m->n_z < least)
    return dv_fail(error, DVBF_ARGUMENT,
                   "latent = %d, innovation = %d: start = places has three dimensions for each of %d "
                   "moments, so it needs %d; or set moments = 1, which gives 2 moments",
                   m->n_z, m->n_w, p->ramps.count, least);
  return DVBF_OK;
}

/* The seed matters and one training takes seconds: the best of several is taken. */
static dvbf_status train_best(dvbf_model **out, const dvbf_data *states, const dvbf_model *m, uint64_t seed,
                              const volatile int *interrupt, const dvbf_train_options *options,
                              dvbf_error *error) {
  enum { TIMES = 3 };
  double best = INFINITY;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < TIMES && !status; i++) {
    motion_follower user = {options, false, INFINITY};
    dvbf_model *model = NULL, *worse;
    /* another one for each start, whose number is in the highest bits, and for each training */
    uint64_t own = (seed + (seed >> 53) * 3000017 + (uint64_t)i * 1000003) % SEEDS;
    status = train_once(&model, states, m, own, interrupt, &user, error);
    bool better = !status && (!*out || user.prediction < best);
    worse = better ? *out : model;
    if (better) *out = model, best = user.prediction;
    dvbf_model_free(worse);
  }
  if (status) dvbf_model_free(*out), *out = NULL;
  return status;
}

/* ---- Initial network and gain ---- */

/* The networks read moments in units of their deviation, (x G - mean) / deviation. */
static double read_by(const dv_image_moments *p, int moment, int component) {
  return (double)p->inside[moment * p->components + component] / p->deviation[moment];
}

/* Inputs of the initial network: moments and u of its frames. */
typedef struct beginning {
  size_t frames, n, n_u; /* moments and, where it sees them, controls of each frame */
  dv_ridge ridge;        /* of the state of the first of them */
} beginning;

static void add_beginnings(beginning *b, const dvbf_sequences *states) {
  size_t n = b->n, n_u = b->n_u, all = states->n_x;
  for (size_t i = 0; i < states->count; i++)
    for (size_t t = 0; t + b->frames <= dvbf_sequence_length(states, i); t++) {
      size_t at = i * states->steps + t;
      double *x = b->ridge.row + 1, *u = x + b->frames * n;
      for (size_t f = 0; f < b->frames; f++) {
        for (size_t k = 0; k < n; k++) x[f * n + k] = (double)states->x[(at + f) * all + k];
        for (size_t k = 0; k < n_u; k++) u[f * n_u + k] = (double)states->u[(at + f) * n_u + k];
      }
      for (size_t k = 0; k < all; k++) b->ridge.target[k] = (double)states->x[at * all + k];
      dv_ridge_add(&b->ridge);
    }
}

/* Coefficient i of dimension k of the state, from moments of x and from u. */
static void put_coefficient(const beginning *b, const dvbf_model *m, const dv_image_moments *p, size_t i,
                            size_t k) {
  const dv_parameter *x = dv_model_find(m, "initial.output.x");
  size_t in_x = b->frames * b->n, cols = (size_t)x->cols, components = (size_t)p->components;
  double value = b->ridge.coefficients[i * b->ridge.targets + k];
  dvbf_real *bias = dv_model_values(m, "initial.output.bias") + k;
  if (i > in_x) {
    dv_model_values(m, "initial.output.u")[(i - 1 - in_x) * cols + k] = (dvbf_real)value;
    return;
  }
  if (!i) {
    *bias += (dvbf_real)value;
    return;
  }
  size_t frame = (i - 1) / b->n, moment = (i - 1) % b->n;
  dvbf_real *to = m->parameters.values + x->offset + frame * components * cols + k;
  *bias -= (dvbf_real)(value * p->mean[moment] / p->deviation[moment]);
  for (size_t j = 0; j < components; j++)
    to[j * cols] += (dvbf_real)(value * read_by(p, (int)moment, (int)j));
}

/* Ridge regression of a frame's state on the moments of the frames from it on and, if the initial network
 * sees it, on u. */
static dvbf_status fit_beginning(dvbf_model *m, const dv_image_moments *p, const dvbf_sequences *states,
                                 dvbf_error *error) {
  const double sure = 0.05;
  beginning b = {.frames = (size_t)m->settings->initial_frames, .n = (size_t)p->ramps.count};
  b.n_u = dv_model_values(m, "initial.output.u") ? states->n_u : 0;
  dvbf_status status = dv_ridge_init(&b.ridge, 1 + b.frames * (b.n + b.n_u), states->n_x, error);
  if (!status) add_beginnings(&b, states);
  if (!status) dv_ridge_solve(&b.ridge, 1e-6);
  dv_state_plain_start(m, sure);
  for (size_t i = 0; i < b.ridge.inputs && !status; i++)
    for (size_t k = 0; k < states->n_x; k++) put_coefficient(&b, m, p, i, k);
  dv_ridge_clear(&b.ridge);
  return status;
}

/* Deviations of one-step errors of each column of the states, by mean distances, so that few large ones, as
 * at walls, do not dominate. */
static dvbf_status one_step(double *out, const dvbf_model *motion, const dvbf_sequences *states,
                            dvbf_error *error) {
  enum { MEASURED_ROWS = 2000 };
  dvbf_jacobian *linear = NULL;
  dvbf_jacobians at;
  size_t n = states->n_x, every = 1 + dv_sequences_frames(states) / MEASURED_ROWS, next = 0, rows = 0;
  float *z = dv_calloc((size_t)motion->n_z, sizeof *z);
  dvbf_status status =
      z ? dvbf_jacobian_new(&linear, motion, error) : dv_fail_memory(error, "looking at places");
  memset(out, 0, n * sizeof *out);
  for (size_t i = 0; i < states->count && !status; i++)
    for (size_t t = 0; t + 1 < dvbf_sequence_length(states, i); t++, next++) {
      size_t row = i * states->steps + t;
      if (next % every) continue;
      memcpy(z, states->x + row * n, n * sizeof *z);
      dvbf_jacobian_at(linear, z, states->n_u ? states->u + row * states->n_u : NULL, &at);
      for (size_t k = 0; k < n; k++)
        out[k] += fabs((double)states->x[(row + 1) * n + k] - (double)at.next[k]);
      rows++;
    }
  for (size_t k = 0; k < n; k++) out[k] = fmax(1e-3, 1.2533 * out[k] / (double)(rows ? rows : 1));
  dvbf_jacobian_free(linear);
  dv_free(z);
  return status;
}

/* w is the distance of a frame's state (its moments and their changes since those in z) from the predicted
 * one, over its deviation `e`. The filter makes it the state of the frame. */
static void set_state_gain(dvbf_model *m, const dv_image_moments *p, const double *e) {
  const dv_parameter *v = dv_model_find(m, "universal.mean");
  size_t n_z = (size_t)m->n_z, n_w = (size_t)m->n_w, n = (size_t)p->ramps.count, cols = 2 * n_w;
  dvbf_real *x = dv_state_clear(m, "recognition.output.x"), *z = dv_state_clear(m, "recognition.output.z"),
            *predicted = dv_state_clear(m, "recognition.output.predicted"),
            *bias = dv_state_clear(m, "recognition.output.bias");
  dvbf_real *c = m->parameters.values + v->offset + (size_t)v->cols - n_w * n_z;
  const double sure = 0.1;
  dv_state_clear(m, "recognition.output.h");
  memset(c, 0, n_w * n_z * sizeof *c);
  for (size_t w = 0; w < DV_PLACES_BLOCKS * n; w++) {
    size_t k = w % n, block = w / n;
    double scale = (block ? p->deviation[k] / p->pace[k] : 1) / e[w];
    bias[n_w + w] = (dvbf_real)dv_log(sure);
    c[w * n_z + w] = (dvbf_real)e[w];
    predicted[w * cols + w] = (dvbf_real)(-1 / e[w]);
    if (block == 1) z[k * cols + w] = (dvbf_real)-scale;
    if (block == 2) z[(n + k) * cols + w] = (dvbf_real)(1 / e[w]);
    if (block == 2) continue; /* the frame says nothing of it */
    bias[w] = (dvbf_real)(-p->mean[k] / p->deviation[k] * scale);
    for (int j = 0; j < p->components; j++)
      x[(size_t)j * cols + w] = (dvbf_real)(read_by(p, (int)k, j) * scale);
  }
}

/* ---- The emission ---- */

/* Hidden units of a state z [n]. */
static void put_units(double *to, const dvbf_real *w, const dvbf_real *bias, const double *z, size_t n,
                      size_t units) {
  for (size_t j = 0; j < units; j++) {
    double sum = (double)bias[j];
    for (size_t k = 0; k < n; k++) sum += z[k] * (double)w[k * units + j];
    to[j] = fmax(0, sum);
  }
}

/* A regression of images on states and, once solved, the sum of squared residuals of some. */
typedef struct gallery {
  dv_ridge ridge;
  const dvbf_model *model;
  const dvbf_sequences *pictures;
  bool solved;
  double left, rows;
} gallery;

/* The image of step t of sequence i, at state z [n], in units of deviations. */
static void show(gallery *g, const float *z, size_t n, size_t i, size_t t) {
  const dvbf_model *m = g->model;
  const dvbf_sequences *x = g->pictures;
  const float *picture = x->x + (dvbf_sequence_start(x, i) + t) * x->n_x;
  dv_ridge *r = &g->ridge;
  size_t units = r->inputs - 1 - n;
  double *place = r->row + 1 + units;
  if (isnan(picture[0])) return;
  for (size_t k = 0; k < n; k++) place[k] = (double)z[k];
  put_units(r->row + 1, dv_model_values(m, "emission.hidden.z"), dv_model_values(m, "emission.hidden.bias"),
            place, n, units);
  for (size_t j = 0; j < x->n_x; j++)
    r->target[j] = ((double)picture[j] - (double)m->x.shift[j]) * (double)m->x.scale[j];
  if (!g->solved) dv_ridge_add(r);
  for (size_t j = 0; j < x->n_x && g->solved; j++) {
    double e = r->target[j] - dv_ridge_guess(r, j);
    g->left += e * e;
  }
  g->rows += 1;
}

/* Images at their true states and where a free run of WALK_STEPS steps would put them: otherwise the emission
 * fails at states slightly off. */
static dvbf_status walk(gallery *g, const dv_image_moments *p, const dvbf_model *motion,
                        const dvbf_sequences *states, dvbf_error *error) {
  enum { WALK_STEPS = 15, SOLVED_FRAMES = 8000, JUDGED_FRAMES = 500 };
  const dvbf_sequences *y = &p->data.train;
  size_t n = y->n_x, most = g->solved ? JUDGED_FRAMES : SOLVED_FRAMES,
         every = 1 + dv_sequences_frames(states) / WALK_STEPS * WALK_STEPS / most, next = 0;
  dvbf_jacobian *linear = NULL;
  dvbf_jacobians at;
  float *z = dv_calloc((size_t)motion->n_z, sizeof *z);
  dvbf_status status =
      z ? dvbf_jacobian_new(&linear, motion, error) : dv_fail_memory(error, "looking at places");
  for (size_t i = 0, row = 0; i < y->count && !status; i++) {
    if (dvbf_sequence_length(y, i) <= BEFORE + 1) continue; /* has no states */
    const float *state = states->x + row * states->steps * states->n_x,
                *u = states->n_u ? states->u + row * states->steps * states->n_u : NULL;
    size_t length = dvbf_sequence_length(states, row++);
    for (size_t t = 0; t < length; t++) {
      if (t % WALK_STEPS == 0) next++;
      if (next % every) continue;
      if (t % WALK_STEPS) {
        dvbf_jacobian_at(linear, z, u ? u + (t - 1) * states->n_u : NULL, &at);
        memcpy(z, at.next, states->n_x * sizeof *z);
        show(g, z, n, i, t + BEFORE);
      } else {
        memcpy(z, state + t * states->n_x, states->n_x * sizeof *z);
      }
      show(g, state + t * states->n_x, n, i, t + BEFORE);
    }
  }
  dvbf_jacobian_free(linear);
  dv_free(z);
  return status;
}

/* Ridge regression of images on hidden units with their random weights but new biases: these spread the bends
 * all over the plane, since units that bend near its centre cannot make a small thing elsewhere. */
static dvbf_status fit_emission(dvbf_model *m, const dv_image_moments *p, const dvbf_sequences *x,
                                const dvbf_model *motion, const dvbf_sequences *states, dvbf_error *error) {
  const dv_parameter *h = dv_model_find(m, "emission.mean.h"), *w = dv_model_find(m, "emission.hidden.z"),
                     *b = dv_model_find(m, "emission.hidden.bias");
  dvbf_real *path = dv_model_values(m, "emission.mean.z"), *bias = dv_model_values(m, "emission.mean.bias");
  size_t n = (size_t)p->ramps.count, n_x = (size_t)m->n_x;
  if (!h || !w || !b || !path || !bias || h->rows != w->cols || w->rows != p->ramps.count ||
      m->settings->activation != DV_HIDDEN_RELU)
    return DVBF_OK;
  size_t units = (size_t)w->cols;
  double apart = 8 * sqrt(2 / (double)n);
  gallery g = {.model = m, .pictures = x};
  for (size_t j = 0; j < units; j++) m->parameters.values[b->offset + j] *= (dvbf_real)apart;
  dvbf_status status = dv_ridge_init(&g.ridge, 1 + units + n, n_x, error);
  if (!status) status = walk(&g, p, motion, states, error);
  if (!status) dv_ridge_solve(&g.ridge, 1e-6);
  dvbf_real *const to[] = {bias, m->parameters.values + h->offset, path};
  const size_t rows[] = {1, units, n};
  for (size_t k = 0, at = 0; k < 3 && !status; at += rows[k++] * n_x)
    for (size_t i = 0; i < rows[k] * n_x; i++) to[k][i] = (dvbf_real)g.ridge.coefficients[at + i];
  g.solved = true, g.rows = 0;
  if (!status) status = walk(&g, p, motion, states, error);
  double square = (g.left / fmax(1, g.rows) + p->left_out) / (double)p->ramps.n_x; /* of a pixel */
  const dv_parameter *sigma = dv_model_find(m, "emission.log_sigma");
  for (int i = 0; !status && sigma && !sigma->frozen && i < sigma->cols; i++)
    m->parameters.values[sigma->offset + (size_t)i] = (dvbf_real)(0.5 * dv_log(fmax(square, 1e-12)));
  dv_ridge_clear(&g.ridge);
  return status;
}

static dvbf_status take_motion(dvbf_model *m, const dvbf_model *motion, const dv_image_moments *p,
                               const dvbf_sequences *states, dvbf_error *error) {
  double e[DV_PLACES_BLOCKS * DV_PLACES_MOMENTS];
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *to = &m->parameters.list[i],
                       *from = dv_parameters_find(&motion->parameters, to->name);
    bool moves = !strncmp(to->name, "universal.", 10) || !strncmp(to->name, "transition.", 11);
    if (from && moves)
      memcpy(m->parameters.values + to->offset, motion->parameters.values + from->offset,
             (size_t)to->rows * (size_t)to->cols * sizeof *m->parameters.values);
  }
  dvbf_status status = one_step(e, motion, states, error);
  if (!status) set_state_gain(m, p, e);
  return status ? status : fit_beginning(m, p, states, error);
}

dvbf_status dv_start_moments(dvbf_model *m, const dv_image_moments *p, const dvbf_sequences *train,
                             uint64_t seed, const volatile int *interrupt, const dvbf_train_options *options,
                             dvbf_error *error) {
  dvbf_model *motion = NULL;
  dvbf_data states = {0};
  dvbf_status status = check_moments_start(p, m, error);
  if (!status) status = make_states(&states.train, p, &p->data.train, m, error);
  if (!status && p->data.valid.count) status = make_states(&states.valid, p, &p->data.valid, m, error);
  if (!status) status = train_best(&motion, &states, m, seed, interrupt, options, error);
  if (!status) status = take_motion(m, motion, p, &states.train, error);
  if (!status) status = fit_emission(m, p, train, motion, &states.train, error);
  dvbf_model_free(motion);
  dvbf_sequences_free(&states.train);
  dvbf_sequences_free(&states.valid);
  return status;
}
