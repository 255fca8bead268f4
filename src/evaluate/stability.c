/* Certificates of stability (dvbf_stability_of): a norm in which no mixture of a model's linear systems
 * stretches anything, the Euclidean one or the best quadratic one found (dv_common_norm), or else the bound
 * that state-limit gives. The result is computed anew from the norm, so a bad search may miss a certificate
 * but never invents one. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "evaluate/evaluate.h"
#include "math/algebra.h"
#include "math/portable.h"
#include "model/model.h"

#include <dvbf/dvbf.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

void dvbf_stability_free(dvbf_stability *s) {
  if (!s) return;
  for (size_t i = 0; s->members && i < s->n_members; i++) dv_free(s->members[i].reach);
  dv_free(s->members);
  dv_free(s);
}

/* ---- Norms of the systems ---- */

/* Memory for measuring a member. */
typedef struct ruler {
  const dvbf_model *model;
  dv_systems systems;
  bool radius;         /* a single system that is the same at every step: its spectral radius decides */
  size_t n_v;          /* reals of v */
  dvbf_real *v;        /* [n_v] */
  double *matrices;    /* [count][n][n] */
  double *t, *inverse; /* [n][n] the norm */
  double *scratch;     /* [dv_contract_room] and at least [5][n][n] */
} ruler;

static size_t square_of(const ruler *r) {
  return (size_t)r->systems.n * (size_t)r->systems.n;
}

static dvbf_status make_ruler(ruler *r, dvbf_error *error) {
  const dvbf_model *m = r->model;
  const dvbf_transition *f = m->transition;
  size_t square = square_of(r);
  r->radius = r->systems.count == 1 && !dv_universal_each_step(m);
  /* A model without universal parameters has its systems in v and nothing else. */
  r->n_v = f && f->universal ? f->universal(f, m->settings_object, m->n_z, m->n_u, m->n_w)
                             : square * (size_t)r->systems.count;
  r->v = dv_calloc(r->n_v, sizeof *r->v);
  r->matrices = dv_calloc((size_t)r->systems.count, square * sizeof *r->matrices);
  r->t = dv_calloc(2 * square, sizeof *r->t);
  r->inverse = r->t + square;
  r->scratch = dv_calloc(dv_contract_room(r->systems.n) + square, sizeof *r->scratch);
  return r->v && r->matrices && r->t && r->scratch ? DVBF_OK
                                                   : dv_fail_memory(error, "measuring linear systems");
}

/* The systems of r->v, as the model uses them, become the matrices. */
static void read_systems(ruler *r) {
  const dv_systems *s = &r->systems;
  for (int i = 0; i < s->count; i++) {
    if (s->most > 0 && r->model->transition) dv_contract_system(s, i, r->v, r->v, r->scratch);
    dv_systems_read(s, i, r->v, r->matrices + (size_t)i * square_of(r));
  }
}

/* The largest singular value of T^-1 S T; scratch is [5 n n]. */
static double length_in(const double *s, const double *t, const double *inverse, int n, double *scratch) {
  size_t square = (size_t)n * (size_t)n;
  double *product = scratch, *matrix = scratch + square, *u = matrix + square, *v = u + square;
  dv_product(product, inverse, s, n, n, n);
  dv_product(matrix, product, t, n, n, n);
  dv_singular_values(matrix, n, u, v + square, v);
  return isnan(v[square]) ? INFINITY : v[square];
}

/* The longest of the matrices [count][n][n]. */
static double longest_of(const double *matrices, int count, int n, const double *t, const double *inverse,
                         double *scratch) {
  double most = 0;
  for (size_t i = 0; i < (size_t)count; i++)
    most = fmax(most, length_in(matrices + i * (size_t)n * (size_t)n, t, inverse, n, scratch));
  return most;
}

/* That of the systems in the norm that was found. */
static double longest(const ruler *r) {
  if (r->radius) return dv_spectral_radius(r->matrices, r->systems.n, r->scratch);
  return longest_of(r->matrices, r->systems.count, r->systems.n, r->t, r->inverse, r->scratch);
}

/* The Euclidean norm is tried first; where it exceeds 1, a better one is searched. */
static dvbf_status measure_mean(dvbf_member_stability *out, ruler *r, dvbf_error *error) {
  const dv_systems *s = &r->systems;
  const dvbf_real *mean = dv_model_systems_at(r->model);
  if (mean) memcpy(r->v, mean, r->n_v * sizeof *mean);
  read_systems(r);
  out->measure = r->radius ? "spectral radius" : "euclidean";
  out->length = r->radius ? longest(r) : 0;
  if (r->radius) return DVBF_OK;
  dvbf_status status =
      dv_common_norm(&out->length, r->t, r->inverse, r->matrices, s->count, s->n, false, error);
  if (status || out->length <= 1) return status;
  out->measure = "quadratic";
  return dv_common_norm(&out->length, r->t, r->inverse, r->matrices, s->count, s->n, true, error);
}

/* Fewer draws for large systems: about a second in all. */
static void measure_draws(dvbf_member_stability *out, ruler *r) {
  double work = 60. * r->systems.count * dv_pow(r->systems.n, 3);
  if (!dv_universal_drawn(r->model)) return;
  out->draws = (size_t)fmax(4, fmin(64, 1e9 / work));
  out->drawn = 0;
  for (uint32_t k = 0; k < out->draws; k++) {
    dv_universal_draw(r->model, 1, k, r->v, r->n_v);
    read_systems(r);
    out->drawn = fmax(out->drawn, longest(r));
  }
}

/* ---- Sentences ---- */

static double worst_of(const dvbf_member_stability *s) {
  return s->draws ? fmax(s->length, s->drawn) : s->length;
}

/* contraction = 1 leaves a margin below 1 for rounding, which does not count as shrinking. */
static bool shrinks(double length) {
  return length < 1 - 1e-6;
}

static double largest_reach(const dvbf_member_stability *s) {
  double most = 0;
  for (size_t k = 0; k < s->n_z; k++) most = fmax(most, s->reach[k]);
  return most;
}

static void describe_lengths(const dvbf_member_stability *s, char *out, size_t size) {
  char drawn[96] = "", which[64] = "its linear system", length[DV_RESULT], most[DV_RESULT];
  dv_result_text(length, "%.5g", s->length);
  dv_result_text(most, "%.5g", s->drawn);
  if (s->draws) snprintf(drawn, sizeof drawn, ", %s over %zu draws of v", most, s->draws);
  if (s->systems > 1) snprintf(which, sizeof which, "every mixture of its %zu systems", s->systems);
  const char *norm = !strcmp(s->measure, "euclidean") ? "longest in the Euclidean norm"
                     : *s->measure == 'q'             ? "longest in the best quadratic norm found"
                                                      : s->measure;
  if (s->contracts && shrinks(worst_of(s)))
    dv_print(out, size, "contracts: %s shrinks differences of states by at least %.2g %% per step (%s: %s%s)",
             which, 100 * (1 - worst_of(s)), norm, length, drawn);
  else if (s->contracts)
    dv_print(out, size, "does not expand: %s keeps or shrinks differences of states (%s: %s%s)", which, norm,
             length, drawn);
  else if (s->length <= 1)
    dv_print(out, size, "contracts only with v at its mean (%s: %s%s)", norm, length, drawn);
  else
    dv_print(out, size, "no certificate of contraction (%s: %s%s)", norm, length, drawn);
}

static void describe(dvbf_member_stability *s, const dvbf_model *m) {
  char first[256], *to = s->sentence;
  const size_t size = sizeof s->sentence;
  if (m->type->timeless) {
    snprintf(to, size, "nothing can grow: successive states are independent");
    return;
  }
  if (s->systems)
    describe_lengths(s, first, sizeof first);
  else
    snprintf(first, sizeof first,
             "no certificate of contraction, as the model is not made of linear systems");
  if (s->reach)
    dv_print(to, size, "%s; bounded by state-limit: %seach |z_k| <= %.3g", first,
             m->n_w ? "" : "the mean of ", largest_reach(s));
  else
    snprintf(to, size, "%s%s", first, s->bounded ? "" : "; its states are unbounded: state-limit is 0");
}

/* ---- Members and committee ---- */

static dvbf_status find_reach(dvbf_member_stability *out, const dvbf_model *m, dvbf_error *error) {
  const dvbf_real *range = dv_model_range(m);
  out->n_z = (size_t)m->n_z;
  if (!range) return DVBF_OK;
  out->reach = dv_calloc(out->n_z, sizeof *out->reach);
  if (!out->reach) return dv_fail_memory(error, "measuring the limits of states");
  for (size_t k = 0; k < out->n_z; k++)
    out->reach[k] = fabs((double)range[k]) + 2 * (double)range[out->n_z + k];
  return DVBF_OK;
}

static dvbf_status measure(dvbf_member_stability *out, const dvbf_model *m, dvbf_error *error) {
  ruler r = {.model = m};
  *out = (dvbf_member_stability){.measure = "", .length = NAN, .drawn = NAN};
  dvbf_status status = find_reach(out, m, error);
  if (!status && dv_model_systems(m, &r.systems)) {
    status = make_ruler(&r, error);
    out->systems = (size_t)r.systems.count;
    if (!status) status = measure_mean(out, &r, error);
    if (!status) measure_draws(out, &r);
    DV_FREE(r.v, r.matrices, r.t, r.scratch);
  }
  if (status) return status;
  out->contracts = worst_of(out) <= 1;
  out->bounded = out->reach || shrinks(worst_of(out)) || m->type->timeless;
  describe(out, m);
  return DVBF_OK;
}

static void describe_all(dvbf_stability *s) {
  size_t contracting = 0, bounded = 0, n = s->n_members;
  for (size_t i = 0; i < n; i++) {
    contracting += s->members[i].contracts;
    bounded += s->members[i].bounded;
  }
  if (n == 1) {
    snprintf(s->sentence, sizeof s->sentence, "%s", s->members[0].sentence);
  } else if (s->contracts && shrinks(s->length)) {
    dv_print(s->sentence, sizeof s->sentence,
             "contracts: each of its %zu members does, by at least %.2g %% per step", n,
             100 * (1 - s->length));
  } else if (s->contracts) {
    snprintf(s->sentence, sizeof s->sentence, "does not expand: none of its %zu members does", n);
  } else {
    snprintf(
        s->sentence, sizeof s->sentence,
        "no certificate of contraction for %zu of its %zu members; %zu of them bounded, by state-limit or "
        "contraction",
        n - contracting, n, bounded);
  }
}

dvbf_status dvbf_stability_of(dvbf_stability **out, const dvbf_model *m, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(m));
  dvbf_stability *s = dv_calloc(1, sizeof *s);
  size_t n = (size_t)dv_model_members(m);
  if (s)
    *s = (dvbf_stability){.contracts = true, .bounded = true, .members = dv_calloc(n, sizeof *s->members)};
  dvbf_status status = s && s->members ? DVBF_OK : dv_fail_memory(error, "looking for a certificate");
  for (size_t i = 0; i < n && !status; i++) {
    s->n_members = i + 1;
    status = measure(&s->members[i], dv_model_member(m, (int)i), error);
    double length = worst_of(&s->members[i]);
    s->length = isnan(length) || isnan(s->length) ? NAN : fmax(s->length, length);
    s->contracts = s->contracts && s->members[i].contracts;
    s->bounded = s->bounded && s->members[i].bounded;
  }
  if (status) {
    dvbf_stability_free(s);
    return status;
  }
  describe_all(s);
  *out = s;
  return DVBF_OK;
}

/* ---- Search of a norm ---- */

/* A descent. In the coordinates of the present T, with singular values s and vectors u, v of all matrices,
 *
 *   f_p = ln (sum s^2p) / 2p      which approaches the largest ln s for large p,
 *
 * falls fastest along T exp(t G), G = sum w (u u' - v v'), w = s^2p / sum s^2p, and is convex in t along
 * every such path, so steps along G lead to the best norm; p grows on the way. */

/* Matrices in the coordinates of some T. */
typedef struct place {
  double *t;        /* [n][n] */
  double *matrices; /* [count][n][n] T^-1 S_i T */
  double *slope;    /* [n][n] G */
  double f, length; /* f_p, and the largest singular value */
} place;

typedef struct descent {
  int n, count;
  place now, next;
  double *scratch; /* [5][n][n] */
  double *best;    /* [n][n] the T with the smallest length so far */
  double least;    /* that length */
} descent;

static size_t size_of_square(const descent *d) {
  return (size_t)d->n * (size_t)d->n;
}

/* Fills f, length and slope. `unit` is a length near the largest singular value, against overflow. */
static void measure_norm(const descent *d, place *at, double p, double unit) {
  size_t n = (size_t)d->n, square = size_of_square(d);
  double *u = d->scratch, *v = u + square, *s = v + square, sum = 0;
  memset(at->slope, 0, square * sizeof *at->slope);
  at->length = 0;
  for (int i = 0; i < d->count; i++) {
    dv_singular_values(at->matrices + (size_t)i * square, d->n, u, s, v);
    at->length = fmax(at->length, s[0]);
    for (size_t k = 0; k < n; k++) {
      double w = dv_pow(s[k] / unit, 2 * p);
      sum += w;
      for (size_t a = 0; a < n && w > 1e-12; a++)
        for (size_t b = 0; b < n; b++)
          at->slope[a * n + b] += w * (u[k * n + a] * u[k * n + b] - v[k * n + a] * v[k * n + b]);
    }
  }
  at->f = sum > 0 ? dv_log(unit) + dv_log(sum) / (2 * p) : -INFINITY;
  for (size_t k = 0; k < square && sum > 0; k++) at->slope[k] /= sum;
}

/* next = now with T exp(by G) in the place of T. */
static void step_transform(descent *d, double by) {
  size_t n = (size_t)d->n, square = size_of_square(d);
  double *values = d->scratch, *vectors = values + square, *there = vectors + square, *back = there + square,
         *product = back + square;
  memcpy(values, d->now.slope, square * sizeof *values);
  dv_diagonalise(values, vectors, d->n);
  memset(there, 0, 2 * square * sizeof *there);
  for (size_t k = 0; k < n; k++)
    for (size_t a = 0; a < n; a++)
      for (size_t b = 0; b < n; b++) {
        double outer = vectors[k * n + a] * vectors[k * n + b];
        there[a * n + b] += dv_exp(by * values[k * (n + 1)]) * outer;
        back[a * n + b] += dv_exp(-by * values[k * (n + 1)]) * outer;
      }
  dv_product(d->next.t, d->now.t, there, d->n, d->n, d->n);
  for (size_t i = 0; i < (size_t)d->count; i++) {
    dv_product(product, back, d->now.matrices + i * square, d->n, d->n, d->n);
    dv_product(d->next.matrices + i * square, product, there, d->n, d->n, d->n);
  }
}

/* Takes the next place if f is smaller there; false if not. */
static bool go(descent *d, double p, double by) {
  step_transform(d, by);
  measure_norm(d, &d->next, p, d->now.length);
  if (!(d->next.f < d->now.f)) return false;
  place swap = d->now;
  d->now = d->next;
  d->next = swap;
  if (d->now.length < d->least) {
    d->least = d->now.length;
    memcpy(d->best, d->now.t, size_of_square(d) * sizeof *d->best);
  }
  return true;
}

/* At most this many steps with one p. */
static void descend(descent *d, double p, int steps) {
  double by = 1 / p;
  measure_norm(d, &d->now, p, d->now.length);
  for (int k = 0; k < steps && by > 1e-4 / p && d->now.length > 0; k++) {
    double before = d->now.f;
    bool better = go(d, p, by);
    by *= better ? 1.5 : 0.3;
    if (better && before - d->now.f < 1e-7) break;
  }
}

/* The largest of the lengths in the norm of t, computed from the systems themselves. */
static double longest_under(const descent *d, const double *systems, const double *t, double *inverse,
                            int *order) {
  memcpy(inverse, t, size_of_square(d) * sizeof *t);
  if (!isfinite(dv_invert(inverse, d->n, 1e-150, order))) return INFINITY;
  return longest_of(systems, d->count, d->n, t, inverse, d->scratch);
}

/* Large systems get fewer steps: about a second in all. */
static void search(descent *d, const double *systems) {
  static const double powers[] = {1, 4, 16, 64};
  double work = 60. * d->count * dv_pow(d->n, 3), steps = fmin(100, 4e8 / work);
  size_t square = size_of_square(d);
  memcpy(d->now.matrices, systems, (size_t)d->count * square * sizeof *systems);
  memcpy(d->now.t, d->best, square * sizeof *d->best);
  d->now.length = d->least;
  for (int i = 0; i < 4 && d->least > 0 && isfinite(d->least); i++) descend(d, powers[i], (int)steps);
}

dvbf_status dv_common_norm(double *length, double *t, double *inverse, const double *systems, int count,
                           int n, bool wanted, dvbf_error *error) {
  descent d = {.n = n, .count = count, .best = t};
  size_t square = size_of_square(&d), all = (size_t)count * square;
  double *memory = dv_calloc(2 * all + 9 * square, sizeof *memory);
  int *order = dv_calloc((size_t)n, sizeof *order);
  if (memory && order) {
    d.now = (place){memory, memory + square, memory + square + all, 0, 0};
    d.next =
        (place){memory + 2 * square + all, memory + 3 * square + all, memory + 3 * square + 2 * all, 0, 0};
    d.scratch = memory + 4 * square + 2 * all;
    for (size_t k = 0; k < square; k++) t[k] = k % ((size_t)n + 1) == 0;
    d.least = longest_under(&d, systems, t, inverse, order);
    if (wanted) search(&d, systems);
    *length = longest_under(&d, systems, t, inverse, order);
  }
  dvbf_status status = memory && order ? DVBF_OK : dv_fail_memory(error, "measuring linear systems");
  DV_FREE(memory, order);
  return status;
}
