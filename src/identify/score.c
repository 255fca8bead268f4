#include "identify/score.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

dvbf_status dv_fit_score_new(dv_fit_score *out, int n_x, dvbf_error *error) {
  size_t n = (size_t)n_x;
  double *all = dv_calloc(4 * n, sizeof *all);
  if (!all) return dv_fail_memory(error, "judging linear models");
  *out = (dv_fit_score){n_x, all, all + n, all + 2 * n, all + 3 * n};
  return DVBF_OK;
}

void dv_fit_score_clear(dv_fit_score *s) {
  dv_free(s->one_step);
  *s = (dv_fit_score){0};
}

size_t dv_fit_score_memory(const dv_system *s) {
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

/* Where filter and free run begin, and what counts. */
typedef struct span {
  size_t start, free_from, first, last;
} span;

static span span_of(const dv_recordings *r, const dv_piece *piece) {
  enum { WARM = 20 };
  /* With gaps the covariances never become constant, and a step takes many times as long. */
  size_t most = r->filled ? 400 : 2000, back = piece->before < most / 2 ? piece->before : most / 2;
  size_t steps = piece->steps < most ? piece->steps : most, quarter = (back + steps + 3) / 4;
  span p = {.start = piece->first - back, .last = piece->first + steps};
  p.free_from = p.start + (quarter < WARM ? quarter : WARM);
  p.first = p.free_from > piece->first ? p.free_from : piece->first;
  return p;
}

size_t dv_fit_score_steps(const dv_recordings *r, const dv_piece *piece) {
  span p = span_of(r, piece);
  return p.last - p.start;
}

static bool complete(const dv_recordings *r, const span *p) {
  size_t n_x = (size_t)r->n_x;
  for (size_t i = p->start * n_x; i < p->last * n_x; i++)
    if (isnan(r->x[i])) return false;
  return true;
}

void dv_fit_score_add(dv_fit_score *score, const dv_gains *gains, const dv_recordings *r,
                      const dv_piece *piece, double *memory) {
  const dv_system *s = gains->system;
  size_t n_x = (size_t)s->n_x, n_u = (size_t)s->n_u;
  span p = span_of(r, piece);
  bool quick = dv_gains_reach(gains, p.last - p.start) && complete(r, &p);
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
      dv_gains_move(gains, frame - p.start, k.mean, guess, u, next);
    } else {
      if (!dv_kalman_observe(&k, x, u)) dv_kalman_observe(&k, NULL, u); /* without noise there is no filter */
      dv_kalman_move(&k, u);
    }
  }
}

dv_fit_errors dv_fit_score_errors(const dv_fit_score *s, const dv_recordings *r) {
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

double dv_fit_judge(dv_fit_errors e) {
  const double enough = 1e-3;
  return (dv_log(e.one_step + enough) + dv_log(e.free_run + enough)) / 2;
}
