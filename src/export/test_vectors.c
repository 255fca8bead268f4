/* Test vectors for exported code (dv_vectors_init, dv_vectors_write): inputs from data or made up like
 * training, with gaps, and the answers of the library's own filters, pooled over a committee, as a C program
 * that compares. Filters are reset when rounding in float has carried a state too far. */
#include "export/test_vectors.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "export/c_file.h"
#include "math/random.h"
#include "model/density.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Distance, as a share of 1 + size, at which rounding in float causes a reset. */
static const double CARRIED = 1e-6;

enum { STEPS_AHEAD = 6, LEAST_VECTORS = 20, MOST_VECTORS = 200, VECTOR_NUMBERS = 20000 };

/* ---- Memory ---- */

double *dv_calloc_reals(const dv_reals *arrays, size_t n) {
  size_t all = 0, used = 0;
  for (size_t i = 0; i < n; i++) all += arrays[i].count;
  double *block = dv_calloc(all + 1, sizeof *block);
  for (size_t i = 0; i < n && block; used += arrays[i++].count) *arrays[i].at = block + used;
  return block;
}

static int steps_for(const dvbf_model *m, const dv_export_settings *s) {
  int numbers = VECTOR_NUMBERS / (m->n_x + m->n_u), steps = numbers < LEAST_VECTORS  ? LEAST_VECTORS
                                                            : numbers > MOST_VECTORS ? MOST_VECTORS
                                                                                     : numbers;
  int frames = dv_model_forecasts_from(m) + LEAST_VECTORS / 2;
  if (s->vectors) steps = (int)s->vectors;
  if (!s->vectors && steps < frames) steps = frames;
  return steps;
}

static bool allocate(dv_vectors *v) {
  size_t steps = (size_t)v->steps, all = steps + STEPS_AHEAD, n_x = (size_t)v->n_x, n_u = (size_t)v->n_u,
         n_z = (size_t)v->n_z;
  const dv_reals reals[] = {
      {&v->z[0], steps * n_z},     {&v->z[1], steps * n_z},  {&v->z_std[0], steps * n_z},
      {&v->z_std[1], steps * n_z}, {&v->mean[0], all * n_x}, {&v->mean[1], all * n_x},
      {&v->std[0], all * n_x},     {&v->std[1], all * n_x},  {&v->next, n_z},
      {&v->a, n_z * n_z},          {&v->b, n_z * n_u},       {&v->at, n_x},
      {&v->h, n_x * n_z},          {&v->d, n_x * n_u}};
  v->reals = dv_calloc_reals(reals, sizeof reals / sizeof *reals);
  v->x = dv_calloc(steps, n_x * sizeof *v->x);
  v->u = dv_calloc(all, (n_u + 1) * sizeof *v->u);
  v->missing = dv_calloc(steps, n_x);
  v->restart = dv_calloc(steps, 1);
  v->ready = dv_calloc(steps, sizeof *v->ready);
  return v->reals && v->x && v->u && v->missing && v->restart && v->ready;
}

void dv_vectors_clear(dv_vectors *v) {
  DV_FREE(v->reals, v->x, v->u, v->missing, v->restart, v->ready);
  *v = (dv_vectors){0};
}

/* ---- Inputs ---- */

/* A sequence that is long enough, or the longest. */
static size_t choose(const dvbf_sequences *s, size_t steps) {
  size_t best = 0;
  for (size_t i = 0; i < s->count; i++) {
    if (dvbf_sequence_length(s, i) >= steps) return i;
    if (dvbf_sequence_length(s, i) > dvbf_sequence_length(s, best)) best = i;
  }
  return best;
}

/* Replaces made-up values by a sequence. `rows`: its steps; the rest stays made up, for a model that needs
 * more frames. */
static dvbf_status take_data(dv_vectors *v, const dvbf_sequences *s, int *rows, dvbf_error *error) {
  size_t steps = (size_t)v->steps, i = choose(s, steps + STEPS_AHEAD), length = dvbf_sequence_length(s, i);
  size_t seen = length < steps ? length : steps,
         driven = length < steps + STEPS_AHEAD ? length : steps + STEPS_AHEAD;
  float *buffer = NULL;
  dvbf_status status = dv_sequence_buffer(&buffer, s, length, error);
  if (status) return status;
  memcpy(v->x, dv_sequence_x(s, i, 0, seen, buffer), seen * (size_t)v->n_x * sizeof *v->x);
  for (size_t k = 0; k < seen * (size_t)v->n_x; k++)
    if (isnan(v->x[k])) v->x[k] = 0, v->missing[k] = 1;
  if (v->n_u) memcpy(v->u, s->u + dvbf_sequence_start(s, i) * s->n_u, driven * (size_t)v->n_u * sizeof *v->u);
  *rows = (int)seen;
  dv_free(buffer);
  return dv_sequences_intact(s, error);
}

/* The next value of a signal whose mean and deviation are those of training. */
static double wander(double before, double shift, double scale, dv_random *random) {
  const double kept = 0.9;
  return shift + kept * (before - shift) + sqrt(1 - kept * kept) * dv_random_normal(random) / scale;
}

/* Controls like those of training, and gaps: whole frames and single values. */
static void make_inputs(dv_vectors *v, const dvbf_model *m, dv_random *random) {
  for (int i = 0; i < (v->steps + STEPS_AHEAD) * v->n_u; i++) {
    int k = i % v->n_u;
    float before = i < v->n_u ? m->u.shift[k] : v->u[i - v->n_u];
    v->u[i] = (float)wander((double)before, (double)m->u.shift[k], (double)m->u.scale[k], random);
  }
  for (int t = 0; t < v->steps; t++) {
    bool none = dv_random_uniform(random) < 0.1;
    for (int i = 0; i < v->n_x; i++)
      if (none || dv_random_uniform(random) < 0.05) v->missing[t * v->n_x + i] = 1;
  }
}

/* x of step t: a signal that wanders in the range of training or, for counts and the like, the expectation of
 * the step before. */
static void make_x(dv_vectors *v, const dvbf_model *m, int t, dv_random *random) {
  bool known = t && v->ready[t - 1] == 2 && v->moves;
  for (int i = 0; i < v->n_x; i++) {
    int at = t * v->n_x + i;
    double mean = known ? v->mean[0][at - v->n_x] : dv_random_uniform(random), x = isfinite(mean) ? mean : 0;
    float before = t ? v->x[at - v->n_x] : m->x.shift[i];
    if (m->density->sigma) x = wander((double)before, (double)m->x.shift[i], (double)m->x.scale[i], random);
    v->x[at] = (float)x;
  }
}

/* ---- Answers ---- */

/* The filters of the members and their results, one step or all steps ahead, without samples and with. */
typedef struct committee {
  const dvbf_model *model;
  int count;
  bool same_row; /* a member has feedthrough: u comes with its own frame */
  dv_reference **members;
  dv_answer *answer[2]; /* [count] */
  float *x;             /* [n_x] with NaN if missing */
} committee;

/* Mean and deviation of column i over the members that take part in a forecast, or in predictions. */
static void pool(const committee *c, int which, bool forecast, int i, double *mean, double *std) {
  double n = 0, variance = 0;
  *mean = 0;
  for (int k = 0; k < c->count; k++) n += dv_model_takes_part(dv_model_member(c->model, k), forecast);
  for (int k = 0; k < c->count; k++)
    if (dv_model_takes_part(dv_model_member(c->model, k), forecast)) *mean += c->answer[which][k].x[i] / n;
  for (int k = 0; k < c->count; k++) {
    if (!dv_model_takes_part(dv_model_member(c->model, k), forecast)) continue;
    double apart = c->answer[which][k].x[i] - *mean, own = c->answer[which][k].x_std[i];
    variance += (apart * apart + own * own) / n;
  }
  *std = sqrt(variance);
}

static void put(double *to, const double *from, int n) {
  memcpy(to, from, (size_t)n * sizeof *to);
}

/* Those that member k takes from step t on. If another has feedthrough and it has not, they are those of the
 * frame before, and nobody looks at one before the first. */
static const float *controls(const dv_vectors *v, const committee *c, int k, int t) {
  bool late = t && c->same_row && !dv_model_feeds_through(dv_model_member(c->model, k));
  return v->u + (t - late) * v->n_u;
}

static dvbf_status answer_step(dv_vectors *v, committee *c, int t, dvbf_error *error) {
  int n_x = v->n_x, n_z = v->n_z;
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < n_x; i++) c->x[i] = v->missing[t * n_x + i] ? NAN : v->x[t * n_x + i];
  v->ready[t] = 2;
  double rounding = 0;
  for (int k = 0; k < c->count && !status; k++) {
    status = dv_reference_step(c->members[k], c->x, controls(v, c, k, t), &c->answer[0][k], &c->answer[1][k],
                               error);
    if (c->answer[0][k].ready < v->ready[t]) v->ready[t] = c->answer[0][k].ready;
    rounding = fmax(rounding, fmax(c->answer[0][k].rounding, c->answer[1][k].rounding));
  }
  if (v->ready[t] < 1 && c->answer[0][0].ready) v->ready[t] = 1; /* the best has its z */
  v->tolerance = fmax(v->tolerance, 10 * rounding);
  if (t + 2 + dv_model_forecasts_from(c->model) < v->steps) v->restart[t + 1] = rounding > CARRIED;
  for (int w = 0; w < 2; w++) {
    for (int i = 0; i < n_x; i++) pool(c, w, true, i, v->mean[w] + t * n_x + i, v->std[w] + t * n_x + i);
    put(v->z[w] + t * n_z, c->answer[w]->z, n_z);
    put(v->z_std[w] + t * n_z, c->answer[w]->z_std, n_z);
  }
  return status;
}

static dvbf_status answer_ahead(dv_vectors *v, committee *c, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (int k = 0; k < c->count && !status; k++)
    status = dv_reference_predict(c->members[k], controls(v, c, k, v->steps), STEPS_AHEAD, &c->answer[0][k],
                                  &c->answer[1][k], error);
  for (int i = 0; i < 2 * STEPS_AHEAD * v->n_x && !status; i++) {
    int w = i % 2, at = i / 2, to = v->steps * v->n_x + at;
    pool(c, w, at < v->n_x, at, v->mean[w] + to, v->std[w] + to);
  }
  return status;
}

static void widen(double *to, const float *from, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] = (double)from[i];
}

static dvbf_status answer_derivatives(dv_vectors *v, const dvbf_model *m, dvbf_error *error) {
  dvbf_jacobian *linear = NULL;
  dvbf_jacobians j;
  size_t n_z = (size_t)v->n_z, n_x = (size_t)v->n_x, n_u = (size_t)v->n_u;
  const double *from = v->z[0] + (size_t)(v->steps - 1) * n_z;
  float *z = dv_calloc(n_z, sizeof *z);
  dvbf_status status = z ? dvbf_jacobian_new(&linear, m, error) : dv_fail_memory(error, "exporting a model");
  if (!status) {
    for (size_t i = 0; i < n_z; i++) z[i] = (float)from[i];
    dvbf_jacobian_at(linear, z, v->u + (size_t)(v->steps - 1) * n_u, &j);
    widen(v->next, j.next, n_z);
    widen(v->a, j.a, n_z * n_z);
    widen(v->at, j.x, n_x);
    widen(v->h, j.h, n_x * n_z);
    if (n_u) widen(v->b, j.b, n_z * n_u);
    if (n_u) widen(v->d, j.d, n_x * n_u);
  }
  dvbf_jacobian_free(linear);
  dv_free(z);
  return status;
}

/* x of the first `rows` steps is known, the others are made up. */
static dvbf_status answer(dv_vectors *v, committee *c, const dvbf_model *m, int rows, dv_random *random,
                          dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (int t = 0; t < v->steps && !status; t++) {
    if (t >= rows) make_x(v, m, t, random);
    for (int k = 0; k < c->count && v->restart[t]; k++) dv_reference_reset(c->members[k]);
    status = answer_step(v, c, t, error);
  }
  if (!status && v->moves) status = answer_ahead(v, c, error);
  if (!status && v->moves) status = answer_derivatives(v, m, error);
  return status;
}

static dvbf_status begin(committee *c, const dvbf_model *m, const dv_export_settings *s, dvbf_error *error) {
  int count = dv_model_members(m);
  *c = (committee){.model = m, .count = count, .same_row = dv_model_same_row(m)};
  c->members = dv_calloc((size_t)count, sizeof(dv_reference *));
  c->answer[0] = dv_calloc((size_t)count, sizeof **c->answer);
  c->answer[1] = dv_calloc((size_t)count, sizeof **c->answer);
  c->x = dv_calloc((size_t)m->n_x, sizeof *c->x);
  bool room = c->members && c->answer[0] && c->answer[1] && c->x;
  for (int i = 0; i < 2 * count && room; i++)
    room = dv_answer_init(&c->answer[i % 2][i / 2], dv_model_member(m, i / 2)->n_z, STEPS_AHEAD * m->n_x);
  dvbf_status status = room ? DVBF_OK : dv_fail_memory(error, "exporting a model");
  for (int k = 0; k < count && !status; k++) {
    status = dv_reference_new(&c->members[k], dv_model_member(m, k), (size_t)s->samples,
                              (uint64_t)s->seed + (uint64_t)k, error);
  }
  return status;
}

static void clear_committee(committee *c) {
  for (int k = 0; c->members && k < c->count; k++) dv_reference_free(c->members[k]);
  for (int i = 0; i < 2 * c->count; i++)
    if (c->answer[i % 2]) dv_free(c->answer[i % 2][i / 2].reals);
  DV_FREE(c->members, c->answer[0], c->answer[1], c->x);
}

/* C cannot write numbers that are not finite, and comparing with them shows nothing. What is not written is
 * 0. */
static dvbf_status check_vectors(const dv_vectors *v, dvbf_error *error) {
  int frames = v->steps + STEPS_AHEAD,
      derivatives = v->n_z * (1 + v->n_z + v->n_u) + v->n_x * (1 + v->n_z + v->n_u);
  int reals = 4 * v->steps * v->n_z + 4 * frames * v->n_x + derivatives;
  bool finite = isfinite(v->tolerance);
  for (int i = 0; i < v->steps * v->n_x; i++) finite &= isfinite((double)v->x[i]);
  for (int i = 0; i < frames * v->n_u; i++) finite &= isfinite((double)v->u[i]);
  for (int i = 0; i < reals; i++) finite &= isfinite(v->reals[i]);
  if (finite) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT,
                 "the model's estimates from the inputs of its test are not finite; train it again");
}

dvbf_status dv_vectors_init(dv_vectors *v, const dvbf_model *m, const dv_export_settings *s,
                            const dvbf_sequences *given, dvbf_error *error) {
  bool all_exact = true, all_move = true;
  for (int k = 0; k < dv_model_members(m); k++) {
    all_exact &= dv_model_member(m, k)->type->exact_system != NULL;
    all_move &= dv_model_member(m, k)->type->move != NULL;
  }
  *v = (dv_vectors){.tolerance = 1e-5,
                    .n_x = m->n_x,
                    .n_u = m->n_u,
                    .n_z = m->n_z,
                    .samples = all_exact ? 0 : (int)s->samples,
                    .seed = (uint64_t)s->seed,
                    .moves = all_move,
                    .deviation = s->deviation || all_exact};
  committee c = {0};
  dv_random random = dv_random_at((uint64_t)s->seed, DV_STREAM_SIMULATION, 0, 0);
  int rows = 0;
  v->steps = steps_for(m, s);
  dvbf_status status = allocate(v) ? DVBF_OK : dv_fail_memory(error, "exporting a model");
  if (!status) make_inputs(v, m, &random);
  if (!status && given) status = take_data(v, given, &rows, error);
  if (!status) status = begin(&c, m, s, error);
  if (!status) status = answer(v, &c, m, rows, &random, error);
  if (!status) status = check_vectors(v, error);
  clear_committee(&c);
  return status;
}

/* ---- Writing ---- */

static void put_reals(dv_text *t, const char *name, const double *values, int n) {
  dv_text_array(t, "double", name, (dv_array){.reals = values}, (size_t)n, 9);
}

static void put_answers(dv_text *t, const dv_vectors *v, int which) {
  static const char *const names[2][4] = {{"z", "z_std", "expected", "expected_std"},
                                          {"sampled_z", "sampled_z_std", "sampled_expected", "sampled_std"}};
  int all = v->moves ? v->steps + STEPS_AHEAD : 0;
  put_reals(t, names[which][0], v->z[which], v->steps * v->n_z);
  if (which || v->deviation) put_reals(t, names[which][1], v->z_std[which], v->steps * v->n_z);
  if (all) put_reals(t, names[which][2], v->mean[which], all * v->n_x);
  if (all && (which || v->deviation)) put_reals(t, names[which][3], v->std[which], all * v->n_x);
}

static void put_arrays(dv_text *t, const dv_vectors *v, bool direct, bool derivatives) {
  size_t steps = (size_t)v->steps, all = steps + STEPS_AHEAD, n_x = (size_t)v->n_x;
  dv_text_array(t, "double", "x", (dv_array){.floats = v->x}, steps * n_x, 9);
  dv_text_array(t, "unsigned char", "missing", (dv_array){.bytes = v->missing}, steps * n_x, 0);
  dv_text_array(t, "unsigned char", "restart", (dv_array){.bytes = v->restart}, steps, 0);
  if (v->n_u) dv_text_array(t, "double", "u", (dv_array){.floats = v->u}, all * (size_t)v->n_u, 9);
  dv_text_array(t, "int", "ready", (dv_array){.ints = v->ready}, steps, 0);
  put_answers(t, v, 0);
  if (v->samples) put_answers(t, v, 1);
  if (!derivatives) return;
  put_reals(t, "z_next", v->next, v->n_z);
  put_reals(t, "a", v->a, v->n_z * v->n_z);
  if (v->n_u) put_reals(t, "b", v->b, v->n_z * v->n_u);
  put_reals(t, "x_at", v->at, v->n_x);
  put_reals(t, "h", v->h, v->n_x * v->n_z);
  if (direct) put_reals(t, "d", v->d, v->n_x * v->n_u);
}

void dv_vectors_write(dv_text *t, const dv_vectors *v, const char *prefix, const char *header, bool direct,
                      bool derivatives) {
  dv_words words = {.prefix = prefix};
  put_arrays(dv_words_text(&words, "arrays"), v, direct, v->moves && derivatives);
  dv_words_set(&words, "header", "%s", header);
  dv_words_set(&words, "seed", "%" PRIu64, v->seed);
  dv_words_set(&words, "tolerance", "%.1e", v->tolerance);
  dv_words_set(&words, "steps", "%d", v->steps);
  dv_words_set(&words, "ahead", "%d", STEPS_AHEAD);
  dv_words_turn(&words, "controls", v->n_u);
  dv_words_turn(&words, "moves", v->moves);
  dv_words_turn(&words, "derivatives", v->moves && derivatives);
  dv_words_turn(&words, "deviation", v->deviation);
  dv_words_turn(&words, "samples", v->samples);
  dv_words_turn(&words, "direct", direct);
  dv_put(t, test_c_in, &words);
  dv_words_clear(&words);
}
