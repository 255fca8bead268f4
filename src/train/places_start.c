/* What a model of pictures takes from moments: the transition, which is learned, and all else by regressions.
 */
#include "base/arithmetic.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/places.h"
#include "train/ridge.h"
#include "train/state.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

/* Seeds of settings are below this. */
#define SEEDS UINT64_C(9007199254740992)

enum { BEFORE = DV_PLACES_BLOCKS - 1 }; /* frames that a state needs before its own */

/* ---- How moments move ---- */

/* The state of frame t [DV_PLACES_BLOCKS n], in units of deviations, from y = its moments [n], which those of
 * two frames stand before. */
static void put_state(float *to, const dv_places *p, const float *y) {
  size_t n = (size_t)p->ramps.count;
  for (size_t k = 0; k < n; k++) {
    const float *now = y + k, *before = now - n, *long_before = before - n;
    to[k] = (float)(((double)*now - p->mean[k]) / p->deviation[k]);
    to[n + k] = (float)(((double)*now - (double)*before) / p->pace[k]);
    to[2 * n + k] = (float)(((double)*before - (double)*long_before) / p->pace[k]);
  }
}

/* Two steps of each sequence are lost. u is in units of the model. */
static dvbf_status make_states(dvbf_sequences *out, const dv_places *p, const dvbf_sequences *y,
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
static dvbf_status settings_of(dvbf_settings **out, const dvbf_model *m, uint64_t seed, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  enum { UPDATES = 4000 };
  int64_t updates = s->updates < 100 ? 2 * s->updates : UPDATES; /* few are a trial of all of it */
  char text[4][32];
  dv_print(text[0], sizeof text[0], "%llu", (unsigned long long)seed);
  dv_print(text[1], sizeof text[1], "%lld", (long long)updates);
  dv_print(text[2], sizeof text[2], "%lld", (long long)(updates / 10 < 100 ? updates / 10 : 100));
  dv_print(text[3], sizeof text[3], "%.4f", 1 / sqrt((double)(m->n_z + m->n_u)));
  const char *const set[][2] = {{"start", "state"},
                                {"projection", "0"},
                                {"components", "0"},
                                {"coarse", "0"},
                                {"x-scaling", "none"},
                                {"u-scaling", "none"},
                                {"sigma", "fixed"},
                                {"emission-sees", "0"},
                                {"state-limit", "0"},
                                {"mask-input", "off"},
                                {"recognition-sees", "frame"},
                                {"initial-frames", "1"},
                                {"initial-control", "off"},
                                {"predict-from", "1"},
                                {"keep-by", "prediction"},
                                {"scale-transition", "0"},
                                {"scale-mixing", text[3]},
                                {"filter-dropout", "1"},
                                {"filter-dropout-end", "1"},
                                {"dropped", "zero"},
                                {"emission-updates", "0"},
                                {"filter-updates", "0"},
                                {"search", "off"},
                                {"seed", text[0]},
                                {"updates", text[1]},
                                {"warm-up", text[2]},
                                {"validate-every", text[1]},
                                {"batch-size", "64"},
                                {"learning-rate", "0.005"},
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

static dvbf_status train_once(dvbf_model **out, const dvbf_data *states, const dvbf_model *m, uint64_t seed,
                              const volatile int *interrupt, follower *user, dvbf_error *error) {
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

/* Another seed for each start, whose number is in the highest bits, and for each training. */
static uint64_t seed_of(uint64_t seed, int time) {
  return (seed + (seed >> 53) * 3000017 + (uint64_t)time * 1000003) % SEEDS;
}

static dvbf_status check(const dv_places *p, const dvbf_model *m, dvbf_error *error) {
  const dv_train_settings *s = m->settings;
  int least = DV_PLACES_BLOCKS * p->ramps.count;
  if (!p->order)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "start = places: it needs training on components, such as projection = 1e-4; or set start = "
        "random");
  if (s->recognition_sees != DV_SEES_PREDICTION || !s->linear_paths || s->initial != DV_INITIAL_MLP)
    return dv_fail(error, DVBF_ARGUMENT,
                   "start = places: it needs recognition-sees = prediction, linear-paths = on and initial = "
                   "mlp; or set start = random");
  if (m->n_w < least || m->n_z < least)
    return dv_fail(
        error, DVBF_ARGUMENT,
        "latent = %d, innovation = %d: start = places has three dimensions for each of %d moments, so "
        "it needs %d; or set places = 1, which has 2 moments",
        m->n_z, m->n_w, p->ramps.count, least);
  return DVBF_OK;
}

/* The seed decides some, and one training takes seconds: the best of some is taken. */
static dvbf_status train_best(dvbf_model **out, const dvbf_data *states, const dvbf_model *m, uint64_t seed,
                              const volatile int *interrupt, const dvbf_train_options *options,
                              dvbf_error *error) {
  enum { TIMES = 3 };
  double best = INFINITY;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < TIMES && !status; i++) {
    follower user = {options, false, INFINITY};
    dvbf_model *model = NULL, *worse;
    status = train_once(&model, states, m, seed_of(seed, i), interrupt, &user, error);
    bool better = !status && (!*out || user.prediction < best);
    worse = better ? *out : model;
    if (better) *out = model, best = user.prediction;
    dvbf_model_free(worse);
  }
  if (status) dvbf_model_free(*out), *out = NULL;
  return status;
}

/* ---- What a model of pictures takes from it ---- */

/* The networks read moments in units of their deviation, (x G - mean) / deviation. */
static double read_by(const dv_places *p, int moment, int component) {
  return (double)p->inside[moment * p->components + component] / p->deviation[moment];
}

/* What the initial network reads: moments and u of so many frames. */
typedef struct beginning {
  size_t frames, n, n_u; /* moments and, where it sees them, controls of each frame */
  dv_ridge ridge;        /* of the state of the first of them */
} beginning;

static void add_rows(beginning *b, const dvbf_sequences *states) {
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
static void put_initial(const beginning *b, const dvbf_model *m, const dv_places *p, size_t i, size_t k) {
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

/* Ridge regression of the state of a frame on the moments of the frames from it on and, where the initial
 * network sees them, on u. */
static dvbf_status set_initial(dvbf_model *m, const dv_places *p, const dvbf_sequences *states,
                               dvbf_error *error) {
  const double sure = 0.05;
  beginning b = {.frames = (size_t)m->settings->initial_frames, .n = (size_t)p->ramps.count};
  b.n_u = dv_model_values(m, "initial.output.u") ? states->n_u : 0;
  dvbf_status status = dv_ridge_init(&b.ridge, 1 + b.frames * (b.n + b.n_u), states->n_x, error);
  if (!status) add_rows(&b, states);
  if (!status) dv_ridge_solve(&b.ridge, 1e-6);
  dv_state_plain_start(m, sure);
  for (size_t i = 0; i < b.ridge.inputs && !status; i++)
    for (size_t k = 0; k < states->n_x; k++) put_initial(&b, m, p, i, k);
  dv_ridge_clear(&b.ridge);
  return status;
}

/* Deviations of what one step of the transition misses of each column of the states, by mean distances: few
 * large ones, as at walls, do not count too much. */
static dvbf_status one_step(double *out, const dvbf_model *motion, const dvbf_sequences *states,
                            dvbf_error *error) {
  enum { ROWS = 2000 };
  dvbf_linear *linear = NULL;
  dvbf_jacobians at;
  size_t n = states->n_x, every = 1 + dv_sequences_frames(states) / ROWS, next = 0, rows = 0;
  float *z = dv_calloc((size_t)motion->n_z, sizeof *z);
  dvbf_status status =
      z ? dvbf_linear_new(&linear, motion, error) : dv_fail_memory(error, "looking at places");
  memset(out, 0, n * sizeof *out);
  for (size_t i = 0; i < states->count && !status; i++)
    for (size_t t = 0; t + 1 < dvbf_sequence_length(states, i); t++, next++) {
      size_t row = i * states->steps + t;
      if (next % every) continue;
      memcpy(z, states->x + row * n, n * sizeof *z);
      dvbf_linear_at(linear, z, states->n_u ? states->u + row * states->n_u : NULL, &at);
      for (size_t k = 0; k < n; k++)
        out[k] += fabs((double)states->x[(row + 1) * n + k] - (double)at.next[k]);
      rows++;
    }
  for (size_t k = 0; k < n; k++) out[k] = fmax(1e-3, 1.2533 * out[k] / (double)(rows ? rows : 1));
  dvbf_linear_free(linear);
  dv_free(z);
  return status;
}

/* w is how far the state of a frame, its moments and how they changed since those in z, is from the state
 * that was predicted, over the deviation of that, `e`. The filter makes it the state of the frame. */
static void set_gain(dvbf_model *m, const dv_places *p, const double *e) {
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

/* Hidden units of a place z [n]. */
static void put_units(double *to, const dvbf_real *w, const dvbf_real *bias, const double *z, size_t n,
                      size_t units) {
  for (size_t j = 0; j < units; j++) {
    double sum = (double)bias[j];
    for (size_t k = 0; k < n; k++) sum += z[k] * (double)w[k * units + j];
    to[j] = fmax(0, sum);
  }
}

/* A regression of pictures on places and, once it is solved, the sum of squares of what it leaves of some. */
typedef struct gallery {
  dv_ridge ridge;
  const dvbf_model *model;
  const dvbf_sequences *pictures;
  bool solved;
  double left, rows;
} gallery;

/* The picture of step t of sequence i, at place z [n], in units of deviations. */
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

/* Pictures at the places where they are, and where a free run of AHEAD steps would have them: an emission
 * that has seen none of these makes nonsense of places that are a little off. */
static dvbf_status walk(gallery *g, const dv_places *p, const dvbf_model *motion,
                        const dvbf_sequences *states, dvbf_error *error) {
  enum { AHEAD = 15, MOST = 8000, SOME = 500 };
  const dvbf_sequences *y = &p->data.train;
  size_t n = y->n_x, most = g->solved ? SOME : MOST,
         every = 1 + dv_sequences_frames(states) / AHEAD * AHEAD / most, next = 0;
  dvbf_linear *linear = NULL;
  dvbf_jacobians at;
  float *z = dv_calloc((size_t)motion->n_z, sizeof *z);
  dvbf_status status =
      z ? dvbf_linear_new(&linear, motion, error) : dv_fail_memory(error, "looking at places");
  for (size_t i = 0, row = 0; i < y->count && !status; i++) {
    if (dvbf_sequence_length(y, i) <= BEFORE + 1) continue; /* has no states */
    const float *state = states->x + row * states->steps * states->n_x,
                *u = states->n_u ? states->u + row * states->steps * states->n_u : NULL;
    size_t length = dvbf_sequence_length(states, row++);
    for (size_t t = 0; t < length; t++) {
      if (t % AHEAD == 0) next++;
      if (next % every) continue;
      if (t % AHEAD) {
        dvbf_linear_at(linear, z, u ? u + (t - 1) * states->n_u : NULL, &at);
        memcpy(z, at.next, states->n_x * sizeof *z);
        show(g, z, n, i, t + BEFORE);
      } else {
        memcpy(z, state + t * states->n_x, states->n_x * sizeof *z);
      }
      show(g, state + t * states->n_x, n, i, t + BEFORE);
    }
  }
  dvbf_linear_free(linear);
  dv_free(z);
  return status;
}

/* Of a pixel, from the mean square of what is left of it. */
static void set_sigma(const dvbf_model *m, double square) {
  const dv_parameter *sigma = dv_model_find(m, "emission.log_sigma");
  for (int i = 0; sigma && !sigma->frozen && i < sigma->cols; i++)
    m->parameters.values[sigma->offset + (size_t)i] = (dvbf_real)(0.5 * dv_log(fmax(square, 1e-12)));
}

/* Ridge regression of pictures on hidden units, which are as they were drawn but for biases: these bend all
 * over the plane, since units that bend near its centre alone cannot make a small thing elsewhere. */
static dvbf_status set_emission(dvbf_model *m, const dv_places *p, const dvbf_sequences *x,
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
  if (!status) set_sigma(m, (g.left / fmax(1, g.rows) + p->left_out) / (double)p->ramps.n_x);
  dv_ridge_clear(&g.ridge);
  return status;
}

static bool moves(const dv_parameter *p) {
  return !strncmp(p->name, "universal.", 10) || !strncmp(p->name, "transition.", 11);
}

static dvbf_status take(dvbf_model *m, const dvbf_model *motion, const dv_places *p,
                        const dvbf_sequences *states, dvbf_error *error) {
  double e[DV_PLACES_BLOCKS * DV_PLACES_MOMENTS];
  for (size_t i = 0; i < m->parameters.count; i++) {
    const dv_parameter *to = &m->parameters.list[i],
                       *from = dv_parameters_find(&motion->parameters, to->name);
    if (from && moves(to))
      memcpy(m->parameters.values + to->offset, motion->parameters.values + from->offset,
             (size_t)to->rows * (size_t)to->cols * sizeof *m->parameters.values);
  }
  dvbf_status status = one_step(e, motion, states, error);
  if (!status) set_gain(m, p, e);
  return status ? status : set_initial(m, p, states, error);
}

dvbf_status dv_start_places(dvbf_model *m, const dv_places *p, const dvbf_sequences *train, uint64_t seed,
                            const volatile int *interrupt, const dvbf_train_options *options,
                            dvbf_error *error) {
  dvbf_model *motion = NULL;
  dvbf_data states = {0};
  dvbf_status status = check(p, m, error);
  if (!status) status = make_states(&states.train, p, &p->data.train, m, error);
  if (!status && p->data.valid.count) status = make_states(&states.valid, p, &p->data.valid, m, error);
  if (!status) status = train_best(&motion, &states, m, seed, interrupt, options, error);
  if (!status) status = take(m, motion, p, &states.train, error);
  if (!status) status = set_emission(m, p, train, motion, &states.train, error);
  dvbf_model_free(motion);
  dvbf_sequences_free(&states.train);
  dvbf_sequences_free(&states.valid);
  return status;
}
