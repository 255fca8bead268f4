/* Order selection for linear systems (dv_identify_order) with the subspace method. The simpler candidate is
 * kept unless another is better by a hundredth. Filled gaps are filled twice more by the smoother of the
 * chosen system. The best system is kept with the data (dv_identify_data). */
#include "identify/identify.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"
#include "data/dataset.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

static const int windows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
static const int orders[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40};
static const double ridges[] = {1e-6, 1e-3};
enum {
  WINDOWS = sizeof windows / sizeof *windows,
  ORDERS = sizeof orders / sizeof *orders,
  RIDGES = sizeof ridges / sizeof *ridges
};

/* Memory of the search over one window. */
typedef struct order_search {
  const dv_recordings *r;
  int order, feedthrough; /* as asked for */
  dv_moments_past all, fold[DV_FOLDS], rest;
  dv_linear_choice best; /* order 0: none yet */
  const volatile int *interrupt;
} order_search;

/* ---- Scores ---- */

/* Errors of a system on a piece: one step ahead, and in a free run that sees no x after its beginning. */
typedef struct fit_score {
  int n_x;
  double *one_step, *free_run;  /* [n_x] sums of squared errors */
  double *one_mean, *free_mean; /* [n_x] the same of the mean */
} fit_score;

static dvbf_status score_new(fit_score *out, int n_x, dvbf_error *error) {
  size_t n = (size_t)n_x;
  double *all = dv_calloc(4 * n, sizeof *all);
  if (!all) return dv_fail_memory(error, "judging linear models");
  *out = (fit_score){n_x, all, all + n, all + 2 * n, all + 3 * n};
  return DVBF_OK;
}

static void score_clear(fit_score *s) {
  dv_free(s->one_step);
  *s = (fit_score){0};
}

static size_t score_memory(const dv_state_space *s) {
  return dv_kalman_size(s->n_z, s->n_x) + 2 * (size_t)s->n_z + 2 * (size_t)s->n_x;
}

/* Adds squared errors of a guess [n_x], and of 0, the mean. */
static void add(double *errors, double *of_mean, const double *x, const double *guess, int n_x) {
  for (int i = 0; i < n_x; i++) {
    if (isnan(x[i])) continue;
    double apart = x[i] - guess[i], square = apart * apart;
    errors[i] += isfinite(square) ? square : 1e30;
    of_mean[i] += x[i] * x[i];
  }
}

/* First frames of filter and free run, and the frames that count. */
typedef struct scored_span {
  size_t start, free_from, first, last;
} scored_span;

static scored_span span_of(const dv_recordings *r, const dv_piece *piece) {
  enum { WARM = 20 };
  /* With gaps the covariances never become constant, and a step takes many times as long. */
  size_t most = r->filled ? 400 : 2000, back = piece->before < most / 2 ? piece->before : most / 2;
  size_t steps = piece->steps < most ? piece->steps : most, quarter = (back + steps + 3) / 4;
  scored_span p = {.start = piece->first - back, .last = piece->first + steps};
  p.free_from = p.start + (quarter < WARM ? quarter : WARM);
  p.first = p.free_from > piece->first ? p.free_from : piece->first;
  return p;
}

/* Steps of the piece, and before it, that are filtered. */
static size_t score_steps(const dv_recordings *r, const dv_piece *piece) {
  scored_span p = span_of(r, piece);
  return p.last - p.start;
}

static bool without_gaps(const dv_recordings *r, const scored_span *p) {
  size_t n_x = (size_t)r->n_x;
  for (size_t i = p->start * n_x; i < p->last * n_x; i++)
    if (isnan(r->x[i])) return false;
  return true;
}

/* Adds the piece, or the beginning of a long one. The free run begins at the beginning of the sequence, or
 * some frames before the piece, so that it does not profit from a state that was just seen. The first frames,
 * in which the filter finds the state, do not count. The gains are those of the system, for as many steps as
 * score_steps says of the pieces. memory is [score_memory]. */
static void score_piece(fit_score *score, const dv_kalman_gains *gains, const dv_recordings *r,
                        const dv_piece *piece, double *memory) {
  const dv_state_space *s = gains->system;
  size_t n_x = (size_t)s->n_x, n_u = (size_t)s->n_u;
  scored_span p = span_of(r, piece);
  bool quick = dv_kalman_gains_reach(gains, p.last - p.start) && without_gaps(r, &p);
  dv_kalman k = dv_kalman_begin(s, memory);
  double *z = memory + dv_kalman_size(s->n_z, s->n_x), *next = z + s->n_z, *guess = next + s->n_z,
         *free_guess = guess + s->n_x;
  for (size_t frame = p.start; frame < p.last; frame++) {
    const double *x = r->x + frame * n_x, *u = r->u + frame * n_u;
    if (frame == p.free_from) memcpy(z, k.mean, (size_t)s->n_z * sizeof *z);
    dv_system_emit(s, k.mean, u, guess);
    if (frame >= p.first) {
      add(score->one_step, score->one_mean, x, guess, s->n_x);
      dv_system_emit(s, z, u, free_guess);
      add(score->free_run, score->free_mean, x, free_guess, s->n_x);
    }
    if (frame >= p.free_from) {
      dv_system_move(s, z, u, next);
      memcpy(z, next, (size_t)s->n_z * sizeof *z);
    }
    if (quick) {
      for (size_t i = 0; i < n_x; i++) guess[i] = x[i] - guess[i];
      dv_kalman_gains_move(gains, frame - p.start, k.mean, guess, u, next);
    } else {
      if (!dv_kalman_observe(&k, x, u)) dv_kalman_observe(&k, NULL, u); /* without noise there is no filter */
      dv_kalman_move(&k, u);
    }
  }
}

static dv_fit_errors score_errors(const fit_score *s, const dv_recordings *r) {
  dv_fit_errors out = {0};
  double count = 0;
  for (int i = 0; i < s->n_x; i++) {
    if (!r->varies[i] || !(s->one_mean[i] > 0)) continue;
    out.one_step += fmin(1e6, sqrt(s->one_step[i] / s->one_mean[i]));
    out.free_run += fmin(1e6, sqrt(s->free_run[i] / s->free_mean[i]));
    count++;
  }
  if (!(count > 0)) return (dv_fit_errors){1, 1};
  return (dv_fit_errors){out.one_step / count, out.free_run / count};
}

/* One number for comparisons: a tenth less of either error counts the same. Errors below a thousandth count
 * as equal. */
static double judge_errors(dv_fit_errors e) {
  const double enough = 1e-3;
  return (dv_log(e.one_step + enough) + dv_log(e.free_run + enough)) / 2;
}

/* ---- Windows ---- */

/* Windows that the data allow within a second or two. The first is always tried. */
static bool worth(const dv_recordings *r, int past) {
  double size = 1 + (past + 1) * (r->n_x + r->n_u);
  double rows = dv_complete_rows(r, r->block, r->blocks, (size_t)past);
  if (past == windows[0]) return true;
  return size < 2000 && 0.75 * rows > 1.5 * size && rows * size * size < 4e9 && size * size * size < 1e9;
}

static void clear(order_search *s) {
  dv_moments_past_clear(&s->all);
  dv_moments_past_clear(&s->rest);
  for (int f = 0; f < DV_FOLDS; f++) dv_moments_past_clear(&s->fold[f]);
}

static dvbf_status look(order_search *s, int past, dvbf_error *error) {
  dvbf_status status = dv_moments_past_new(&s->all, s->r, past, error);
  if (!status) status = dv_moments_past_new(&s->rest, s->r, past, error);
  for (int f = 0; f < DV_FOLDS && !status; f++) status = dv_moments_past_new(&s->fold[f], s->r, past, error);
  for (size_t i = 0; i < s->r->blocks && !status; i++)
    dv_moments_past_add(&s->fold[s->r->block[i].fold], s->r, &s->r->block[i]);
  for (int f = 0; f < DV_FOLDS && !status; f++) dv_moments_past_combine(&s->all, &s->all, 1, &s->fold[f]);
  return status;
}

/* ---- Candidates of one window ---- */

static int most_order(const order_search *s, int past) {
  int most = s->order, room = dv_subspace_most(s->r->n_x, past);
  if (!most) {
    double rows = dv_complete_rows(s->r, s->r->block, s->r->blocks, (size_t)past);
    int data = (int)fmax(1, 0.75 * rows / 8);
    most = 12 + 2 * s->r->n_x;
    if (most > orders[ORDERS - 1]) most = orders[ORDERS - 1];
    if (most > data) most = data;
  }
  return most < room ? most : room;
}

/* Adds the errors of the system on fold f, in which no piece has more than `steps` steps to filter. */
static dvbf_status score_system(const order_search *s, const dv_state_space *system, int f, size_t steps,
                                fit_score *score, dvbf_error *error) {
  dv_kalman_gains gains = {0};
  double *memory = dv_calloc(score_memory(system), sizeof *memory);
  dvbf_status status = memory ? DVBF_OK : dv_fail_memory(error, "judging linear models");
  if (!status) status = dv_kalman_gains_new(&gains, system, steps, error);
  for (size_t b = 0; b < s->r->blocks && !status; b++)
    if (s->r->block[b].fold == f) score_piece(score, &gains, s->r, &s->r->block[b], memory);
  dv_kalman_gains_clear(&gains);
  dv_free(memory);
  return status;
}

/* Adds the errors on fold f of the systems of all orders to scores [ORDERS]. An order without a system counts
 * as the mean. */
static dvbf_status score_fold(const order_search *s, const dv_subspace *space, int f, const int *list,
                              int count, fit_score *scores, dvbf_error *error) {
  double *scratch = dv_calloc(dv_subspace_scratch(space), sizeof *scratch);
  dvbf_status status = scratch ? DVBF_OK : dv_fail_memory(error, "judging linear models");
  size_t longest = 0; /* where gaps are many, hardly any piece has none */
  for (size_t b = 0; b < s->r->blocks && !s->r->filled; b++) {
    size_t steps = s->r->block[b].fold == f ? score_steps(s->r, &s->r->block[b]) : 0;
    if (steps > longest) longest = steps;
  }
  for (int i = 0; i < count && !status; i++) {
    dv_state_space system = {0};
    status = dv_interrupted(s->interrupt) ? dv_fail_stopped(error)
                                          : dv_system_new(&system, list[i], s->r->n_u, s->r->n_x, error);
    if (status) break;
    if (!dv_subspace_system(space, &system, scratch))
      memset(system.a, 0, dv_system_size(list[i], s->r->n_u, s->r->n_x) * sizeof *system.a);
    status = score_system(s, &system, f, longest, &scores[i], error);
    dv_system_clear(&system);
  }
  dv_free(scratch);
  return status;
}

/* The simpler one is kept unless the other is better by a hundredth. A requested order comes first. */
static void compare(order_search *s, dv_linear_choice c) {
  const double margin = 0.01;
  c.judgement = judge_errors(c.errors);
  bool nearer = s->order && c.order > s->best.order, farther = s->order && c.order < s->best.order;
  if (s->best.order && (farther || (!nearer && !(c.judgement < s->best.judgement - margin)))) return;
  s->best = c;
}

static dvbf_status try(order_search *s, int past, bool feedthrough, double ridge, dvbf_error *error) {
  fit_score scores[ORDERS] = {{0}};
  int list[ORDERS], count = 0, most = most_order(s, past);
  if (s->order) list[count++] = s->order < most ? s->order : most;
  for (int i = 0; i < ORDERS && !s->order; i++)
    if (orders[i] <= most) list[count++] = orders[i];
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < count && !status; i++) status = score_new(&scores[i], s->r->n_x, error);
  for (int f = 0; f < DV_FOLDS && !status; f++) {
    dv_subspace space = {0};
    dv_moments_past_combine(&s->rest, &s->all, -1, &s->fold[f]);
    status = dv_subspace_new(&space, &s->rest, feedthrough, ridge, list[count - 1], error);
    if (!status) status = score_fold(s, &space, f, list, count, scores, error);
    dv_subspace_clear(&space);
  }
  for (int i = 0; i < count && !status; i++)
    compare(s, (dv_linear_choice){.order = list[i],
                                  .past = past,
                                  .feedthrough = feedthrough,
                                  .ridge = ridge,
                                  .errors = score_errors(&scores[i], s->r)});
  for (int i = 0; i < count; i++) score_clear(&scores[i]);
  return status;
}

static dvbf_status try_window(order_search *s, int past, dvbf_error *error) {
  dvbf_status status = look(s, past, error);
  for (int d = 0; d < 2 && !status; d++) {
    if ((d && !s->r->n_u) || (s->feedthrough >= 0 && d != s->feedthrough && s->r->n_u)) continue;
    for (int i = 0; i < RIDGES && !status; i++) status = try(s, past, d, ridges[i], error);
  }
  clear(s);
  return status;
}

/* ---- The chosen system, from all data ---- */

static dvbf_status fit_chosen(dv_state_space *out, const dv_recordings *r, const dv_linear_choice *c,
                              dvbf_error *error) {
  dv_moments_past all = {0};
  dv_subspace space = {0};
  double *scratch = NULL;
  dvbf_status status = dv_system_new(out, c->order, r->n_u, r->n_x, error);
  if (!status) status = dv_moments_past_new(&all, r, c->past, error);
  for (size_t i = 0; i < r->count && !status; i++) dv_moments_past_add(&all, r, &r->whole[i]);
  if (!status) status = dv_subspace_new(&space, &all, c->feedthrough, c->ridge, c->order, error);
  if (!status) scratch = dv_calloc(dv_subspace_scratch(&space), sizeof *scratch);
  if (!status && !scratch) status = dv_fail_memory(error, "looking for a linear model");
  if (!status && !dv_subspace_system(&space, out, scratch)) /* the mean, with the noise of the data */
    for (int i = 0; i < r->n_x; i++) out->r[i * (r->n_x + 1)] = r->varies[i] ? 1 : DV_NOISE_FLOOR;
  dv_free(scratch);
  dv_subspace_clear(&space);
  dv_moments_past_clear(&all);
  return status;
}

/* Filled values have no noise, so the system's noise is too small. It is scaled until the filter's errors at
 * observed values are as large as the system claims. */
static dvbf_status scale_noise(dv_state_space *s, const dv_recordings *r, dvbf_error *error) {
  double squares = 0, count = 0, *memory = dv_calloc(dv_kalman_size(s->n_z, s->n_x), sizeof *memory);
  if (!memory) return dv_fail_memory(error, "looking for a linear model");
  for (size_t i = 0; i < r->count; i++) {
    dv_kalman k = dv_kalman_begin(s, memory);
    for (size_t t = 0; t < r->whole[i].steps; t++) {
      size_t frame = r->whole[i].first + t;
      const double *u = r->u + frame * (size_t)r->n_u;
      if (!dv_kalman_observe(&k, r->x + frame * (size_t)r->n_x, u)) break;
      for (int e = 0; e < k.seen; e++) squares += k.innovation[e] * k.innovation[e], count++;
      dv_kalman_move(&k, u);
    }
  }
  dv_free(memory);
  double by = squares / count;
  if (!(count > 0) || !(by > 1) || !isfinite(by)) return DVBF_OK;
  for (int i = 0; i < s->n_z * s->n_z; i++) s->q[i] *= by;
  for (int i = 0; i < s->n_z * s->n_x; i++) s->s[i] *= by;
  for (int i = 0; i < s->n_x * s->n_x; i++) s->r[i] *= by;
  return DVBF_OK;
}

/* Tries all windows, or those near one. */
static dvbf_status choose(dv_state_space *out, dv_linear_choice *choice, const dv_recordings *r, int order,
                          int feedthrough, int near, const volatile int *interrupt, dvbf_error *error) {
  order_search s = {.r = r, .order = order, .feedthrough = feedthrough, .interrupt = interrupt};
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < WINDOWS && !status; i++) {
    bool close =
        windows[i] == near || (i && windows[i - 1] == near) || (i + 1 < WINDOWS && windows[i + 1] == near);
    if ((!near || close) && worth(r, windows[i])) status = try_window(&s, windows[i], error);
  }
  *choice = s.best;
  return status ? status : fit_chosen(out, r, choice, error);
}

dvbf_status dv_identify_order(dv_state_space *out, dv_linear_choice *choice, dv_recordings *r, int order,
                              int feedthrough, const volatile int *interrupt, dvbf_error *error) {
  enum { REFILLS = 2 };
  dvbf_status status = choose(out, choice, r, order, feedthrough, 0, interrupt, error);
  for (int i = 0; i < REFILLS && r->filled && !status; i++) {
    status = dv_recordings_refill(r, out, error);
    dv_system_clear(out);
    if (!status) status = choose(out, choice, r, order, feedthrough, choice->past, interrupt, error);
  }
  return !status && r->filled ? scale_noise(out, r, error) : status;
}

/* ---- The best system of data, found once ---- */

typedef struct best {
  dv_state_space system;
  dv_linear_choice choice;
  double *filled; /* of the recordings; NULL: no gaps were filled */
} best;

static const char KINDS[][24] = {"best linear system", "without feedthrough"}; /* of facts */

static void free_best(void *fact) {
  best *b = fact;
  dv_system_clear(&b->system);
  dv_free(b->filled);
  dv_free(b);
}

static double *copy_filled(const double *filled, const dv_recordings *r) {
  size_t values = r->frames * (size_t)r->n_x;
  double *to = filled ? dv_calloc(values, sizeof *to) : NULL;
  if (to) memcpy(to, filled, values * sizeof *to);
  return to;
}

/* If memory is short, the system is found again the next time. */
static void keep(const dvbf_data *data, const char *kind, uint64_t key, const dv_state_space *s,
                 const dv_linear_choice *choice, const dv_recordings *r) {
  best *b = dv_calloc(1, sizeof *b);
  if (!b) return;
  b->choice = *choice;
  b->filled = copy_filled(r->filled, r);
  if (dv_system_copy(&b->system, s, NULL) || (r->filled && !b->filled))
    free_best(b);
  else
    dv_facts_keep(&data->train, kind, key, b, free_best);
}

static dvbf_status recall(dv_state_space *out, dv_linear_choice *choice, dv_recordings *r, const best *b,
                          dvbf_error *error) {
  *choice = b->choice;
  if (b->filled) {
    dv_free(r->filled);
    r->filled = copy_filled(b->filled, r);
    if (!r->filled) return dv_fail_memory(error, "looking for a linear model");
  }
  return dv_system_copy(out, &b->system, error);
}

dvbf_status dv_identify_data(dv_state_space *out, dv_linear_choice *choice, dv_recordings *r,
                             const dvbf_data *data, int order, int feedthrough, const volatile int *interrupt,
                             dvbf_error *error) {
  const char *kind = KINDS[!feedthrough && data->train.n_u];
  uint64_t key = 0, of_valid = 0;
  bool kept = !order && dv_facts_key(&key, &data->train);
  if (kept && data->valid.count) kept = dv_facts_key(&of_valid, &data->valid);
  key ^= of_valid * 3; /* different from that of other data */
  const best *known = kept && feedthrough < 1 ? dv_facts_find(&data->train, kind, key) : NULL;
  dvbf_status status = dv_recordings_new(r, data, error);
  if (!status && known) return recall(out, choice, r, known, error);
  if (!status) status = dv_identify_order(out, choice, r, order, feedthrough, interrupt, error);
  if (!status && kept && feedthrough < 1) keep(data, kind, key, out, choice, r);
  return status;
}
