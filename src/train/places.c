#include "train/places.h"

#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Seeds of settings are below this. */
#define SEEDS UINT64_C(9007199254740992)

enum { HIGHEST = 3, MOMENTS = 9 }; /* moments of all orders from 1 to the highest */

static int moments_of(int order) {
  return order * (order + 3) / 2;
}

/* ---- What each pixel counts ---- */

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

static dvbf_status make_ramps(dv_places *p, const dv_pictures *from, dvbf_error *error) {
  size_t height = from->data->image_height, width = from->data->image_width;
  size_t n_x = (size_t)from->whole->n_x, pixels = height * width;
  if (!height || !width || n_x % pixels)
    return dv_fail(error, DVBF_ARGUMENT,
                   "start = places: x has to be images, with their height and width in the data; or set "
                   "start = random");
  p->ramps = (dv_components){.n_x = (int)n_x, .count = moments_of(p->order)};
  p->ramps.axes = dv_calloc_aligned((size_t)p->ramps.count * n_x, sizeof *p->ramps.axes);
  if (!p->ramps.axes) return dv_fail_memory(error, "looking at places");
  fill_ramps(p->ramps.axes, p->order, (int)height, (int)width, (int)(n_x / pixels));
  return DVBF_OK;
}

static dvbf_status make_inside(dv_places *p, const dv_components *c, dvbf_error *error) {
  p->components = c->count;
  p->inside = dv_calloc_aligned((size_t)p->ramps.count * (size_t)c->count, sizeof *p->inside);
  if (!p->inside) return dv_fail_memory(error, "looking at places");
  dv_kernels_best()->product->nt(p->inside, false, p->ramps.axes, c->axes, p->ramps.count, c->n_x, c->count);
  return DVBF_OK;
}

/* ---- How many moments ---- */

/* Frames that are compared: some of them with more of them. */
typedef struct looks {
  const dvbf_sequences *x; /* coordinates in the components */
  const dvbf_sequences *y; /* all moments, of the same frames */
  size_t every, more;      /* frames from one that is compared to the next */
  double scale[MOMENTS];   /* one over the deviation */
} looks;

static void scale_moments(looks *l) {
  size_t n = l->y->n_x, frames = dv_sequences_frames(l->y);
  for (size_t k = 0; k < n; k++) {
    double sum = 0, squares = 0, seen = 0;
    for (size_t f = 0; f < frames; f++) {
      double v = (double)l->y->x[f * n + k];
      if (!isnan(v)) sum += v, squares += v * v, seen += 1;
    }
    double variance = seen > 0 ? squares / seen - sum / seen * sum / seen : 0;
    l->scale[k] = variance > 0 ? 1 / sqrt(variance) : 0;
  }
}

static double apart(const float *a, const float *b, size_t n, const double *scale) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double d = ((double)a[i] - (double)b[i]) * (scale ? scale[i] : 1);
    sum += d * d;
  }
  return sum;
}

/* Squared distance in x from frame f to the one that is nearest by its first `moments` moments; 0 moments: by
 * x itself. Frames of the same sequence that are near in time do not count. Negative: there is none. */
static double nearest(const looks *l, size_t f, size_t begin, size_t end, size_t moments) {
  size_t n = l->x->n_x, n_y = l->y->n_x, frames = dv_sequences_frames(l->x), found = frames;
  double least = INFINITY;
  for (size_t g = 0; g < frames; g += l->more) {
    double d = g >= begin && g < end ? INFINITY
               : moments             ? apart(l->y->x + f * n_y, l->y->x + g * n_y, moments, l->scale)
                                     : apart(l->x->x + f * n, l->x->x + g * n, n, NULL);
    if (d < least) least = d, found = g;
  }
  return found < frames ? apart(l->x->x + f * n, l->x->x + found * n, n, NULL) : -1;
}

/* Mean of that over frames. */
static double unlike(const looks *l, size_t moments) {
  enum { NEAR = 50 };
  double sum = 0, count = 0;
  size_t next = 0;
  for (size_t i = 0; i < l->x->count; i++) {
    size_t first = dvbf_sequence_start(l->x, i), end = first + dvbf_sequence_length(l->x, i);
    for (; next < end; next += l->every) {
      size_t low = next > first + NEAR ? next - NEAR : first, high = next + NEAR < end ? next + NEAR : end;
      double d = nearest(l, next, low, high, moments);
      if (d >= 0) sum += d, count += 1;
    }
  }
  return count > 0 ? sum / count : 0;
}

/* The lowest order by whose moments frames are told apart nearly as well as by all their pixels. */
static int choose_order(looks *l, double variance) {
  enum { SOME = 300, MORE = 4000 };
  size_t frames = dv_sequences_frames(l->x);
  l->every = 1 + frames / SOME;
  l->more = 1 + frames / MORE;
  scale_moments(l);
  double best = unlike(l, 0);
  for (int order = 1; order < HIGHEST; order++)
    if (unlike(l, (size_t)moments_of(order)) <= 2 * best + 0.05 * variance) return order;
  return HIGHEST;
}

/* ---- All of it ---- */

static dvbf_status find_moments(dv_places *p, const dv_pictures *from, dvbf_error *error) {
  const dvbf_data *data = from->data;
  dvbf_status status = make_ramps(p, from, error);
  if (!status) status = dv_components_project(&p->data.train, &p->ramps, &data->train, from->whole, error);
  if (!status && data->valid.count)
    status = dv_components_project(&p->data.valid, &p->ramps, &data->valid, from->whole, error);
  return status;
}

dvbf_status dv_places_init(dv_places *p, const dv_pictures *from, int order, dvbf_error *error) {
  *p = (dv_places){.order = order ? order : HIGHEST};
  dvbf_status status = find_moments(p, from, error);
  if (!status && !order) {
    looks l = {.x = from->projected, .y = &p->data.train};
    int enough = choose_order(&l, from->whole->x_spread);
    if (enough < HIGHEST) {
      dv_places_clear(p);
      p->order = enough;
      status = find_moments(p, from, error);
    }
  }
  return status ? status : make_inside(p, from->components, error);
}

void dv_places_clear(dv_places *p) {
  dv_components_free(&p->ramps);
  dvbf_sequences_free(&p->data.train);
  dvbf_sequences_free(&p->data.valid);
  dv_free(p->inside);
  *p = (dv_places){0};
}

/* ---- The model of the moments ---- */

/* Its updates are cheap: twice as many of them, of small batches with large steps. */
static dvbf_status settings_of(dvbf_settings **out, const dvbf_model *m, uint64_t seed, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  char text[4][32];
  const uint64_t numbers[] = {seed, 2 * (uint64_t)s->updates, 2 * (uint64_t)s->sigma_floor_updates,
                              2 * (uint64_t)s->filter_dropout_updates};
  for (int i = 0; i < 4; i++) dv_print(text[i], sizeof text[i], "%llu", (unsigned long long)numbers[i]);
  const char *const set[][2] = {{"start", "random"},
                                {"projection", "0"},
                                {"components", "0"},
                                {"coarse", "0"},
                                {"x-scaling", "standardise"},
                                {"emission-updates", "0"},
                                {"search", "off"},
                                {"seed", text[0]},
                                {"updates", text[1]},
                                {"sigma-floor-updates", text[2]},
                                {"filter-dropout-updates", text[3]},
                                {"batch-size", "16"},
                                {"learning-rate", "0.008"},
                                {"clip-norm", "1"},
                                {"starts", "1"}};
  dvbf_status status = dvbf_settings_copy(out, m->settings_object, error);
  for (size_t i = 0; i < sizeof set / sizeof *set && !status; i++)
    status = dv_settings_choose(*out, set[i][0], set[i][1], error);
  return status;
}

/* Lets the user of the training follow this one; what it validates are moments, and no rows of its metrics.
 */
typedef struct follower {
  const dvbf_train_options *options;
  bool stopped;
  double prediction; /* the best that was validated */
} follower;

static bool follow(const dvbf_progress *p, void *user) {
  follower *f = user;
  dvbf_progress shown = *p;
  if (p->validated && p->valid_prediction < f->prediction) f->prediction = p->valid_prediction;
  shown.validated = false;
  shown.event = NULL;
  if (f->options && f->options->progress && !f->options->progress(&shown, f->options->user_data))
    f->stopped = true;
  return !f->stopped;
}

/* The layer of a parameter has the bias of this name. */
static dvbf_real *bias_of(const dvbf_model *m, const char *name) {
  char bias[96];
  const char *dot = strrchr(name, '.');
  if (!dot) return NULL;
  snprintf(bias, sizeof bias, "%.*s.bias", (int)(dot - name), name);
  return dv_model_values(m, bias);
}

/* Weights of y' = (y - shift) scale = (x G - shift) scale, for each frame that they read: those of x are
 * G scale W, and the bias gets -shift scale W. An innovation e is a difference and has no shift. */
static void read_pictures(dvbf_model *m, const dv_parameter *to, const dvbf_model *small,
                          const dv_parameter *from, const dv_places *p) {
  int n = p->ramps.count, cols = to->cols, frames = from->rows / n;
  bool shifted = strcmp(strrchr(to->name, '.'), ".e") != 0;
  dvbf_real *w = m->parameters.values + to->offset, *bias = shifted ? bias_of(m, to->name) : NULL;
  const dvbf_real *v = small->parameters.values + from->offset;
  memset(w, 0, (size_t)to->rows * (size_t)cols * sizeof *w);
  for (int f = 0; f < frames; f++)
    for (int i = 0; i < n; i++, v += cols) {
      dvbf_real scale = (dvbf_real)small->x.scale[i], shift = (dvbf_real)small->x.shift[i] * scale;
      for (int j = 0; j < p->components; j++) {
        dvbf_real g = p->inside[i * p->components + j] * scale;
        dvbf_real *row = w + ((size_t)f * (size_t)p->components + (size_t)j) * (size_t)cols;
        for (int k = 0; k < cols; k++) row[k] += g * v[k];
      }
      for (int k = 0; k < cols && bias; k++) bias[k] -= shift * v[k];
    }
}

static bool emits(const dv_parameter *p) {
  return !strncmp(p->name, "emission.", 9);
}

/* What has the same shape is taken as it is, biases too, before weights from x change these. */
dvbf_status dv_places_take(dvbf_model *m, const dvbf_model *small, const dv_places *p, dvbf_error *error) {
  for (int reading = 0; reading < 2; reading++)
    for (size_t i = 0; i < m->parameters.count; i++) {
      const dv_parameter *to = &m->parameters.list[i],
                         *from = dv_parameters_find(&small->parameters, to->name);
      if (emits(to)) continue;
      bool same = from && from->rows == to->rows && from->cols == to->cols;
      bool reads = from && !same && from->cols == to->cols && from->rows % p->ramps.count == 0 &&
                   to->rows == from->rows / p->ramps.count * p->components && bias_of(m, to->name);
      if (!same && !reads)
        return dv_fail(error, DVBF_ARGUMENT,
                       "start = places: %.60s of this model cannot be taken from one of places; set start = "
                       "random, or initial = mlp and recognition-sees = frame",
                       to->name);
      if (reads && reading) read_pictures(m, to, small, from, p);
      if (same && !reading)
        memcpy(m->parameters.values + to->offset, small->parameters.values + from->offset,
               (size_t)to->rows * (size_t)to->cols * sizeof *m->parameters.values);
    }
  return DVBF_OK;
}

static dvbf_status train_once(dvbf_model **out, const dv_places *places, const dvbf_model *m, uint64_t seed,
                              const volatile int *interrupt, follower *user, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_train_options how = {.progress = follow, .user_data = user};
  dvbf_status status = settings_of(&settings, m, seed, error);
  if (!status) dvbf_settings_interrupt(settings, interrupt);
  if (!status) status = dv_train(out, NULL, settings, &places->data, &how, 0, error);
  if (!status && (user->stopped || dv_interrupted(interrupt)))
    status = dv_fail(error, DVBF_STOPPED, "stopped while learning how places move");
  dvbf_settings_free(settings);
  return status;
}

/* Another seed for each start, whose number is in the highest bits, and for each training. */
static uint64_t seed_of(uint64_t seed, int time) {
  return (seed + (seed >> 53) * 3000017 + (uint64_t)time * 1000003) % SEEDS;
}

/* The seed decides much, and one training takes seconds: the best of some is taken. */
dvbf_status dv_places_train(dvbf_model **out, const dv_places *places, const dvbf_model *m, uint64_t seed,
                            const volatile int *interrupt, const dvbf_train_options *options,
                            dvbf_error *error) {
  enum { TIMES = 3 };
  double best = INFINITY;
  dvbf_status status = DVBF_OK;
  if (!places->order)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "start = places: it needs training on components, such as projection = 1e-4; or set start = "
        "random");
  for (int i = 0; i < TIMES && !status; i++) {
    follower user = {options, false, INFINITY};
    dvbf_model *model = NULL, *worse;
    status = train_once(&model, places, m, seed_of(seed, i), interrupt, &user, error);
    bool better = !status && (!*out || user.prediction < best);
    worse = better ? *out : model;
    if (better) *out = model, best = user.prediction;
    dvbf_model_free(worse);
  }
  if (status) dvbf_model_free(*out), *out = NULL;
  return status;
}

dvbf_status dv_emission_part(dv_part *out, const dvbf_model *m, dvbf_error *error) {
  *out = (dv_part){.spans = dv_calloc(m->parameters.count, sizeof *out->spans)};
  if (!out->spans) return dv_fail_memory(error, "preparing training");
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *p = &m->parameters.list[i];
    if (emits(p) && !p->frozen)
      out->spans[out->count++] = (dv_span){p->offset, (size_t)p->rows * (size_t)p->cols};
  }
  return DVBF_OK;
}
