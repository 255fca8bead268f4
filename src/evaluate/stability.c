/* Certificates: a norm in which no mixture of the linear systems of a model stretches anything, or else what
 * the setting state-limit promises. */
#include "base/algebra.h"
#include "base/arithmetic.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/status.h"
#include "evaluate/norm.h"
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

/* ---- Lengths ---- */

/* What a member is measured with. */
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

/* Size of v. A model without universal parameters has its systems there and nothing else. */
static size_t count_v(const dvbf_model *m, const dv_systems *systems) {
  const dvbf_transition *f = m->transition;
  if (f && f->universal) return f->universal(f, m->settings_object, m->n_z, m->n_u, m->n_w);
  return (size_t)systems->n * (size_t)systems->n * (size_t)systems->count;
}

static dvbf_status make_ruler(ruler *r, const dvbf_model *m, dvbf_error *error) {
  *r = (ruler){.model = m};
  dv_model_systems(m, &r->systems);
  size_t square = square_of(r);
  r->radius = r->systems.count == 1 && !dv_universal_each_step(m);
  r->n_v = count_v(m, &r->systems);
  r->v = dv_calloc(r->n_v, sizeof *r->v);
  r->matrices = dv_calloc((size_t)r->systems.count, square * sizeof *r->matrices);
  r->t = dv_calloc(2 * square, sizeof *r->t);
  r->inverse = r->t + square;
  r->scratch = dv_calloc(dv_contract_room(r->systems.n) + square, sizeof *r->scratch);
  return r->v && r->matrices && r->t && r->scratch ? DVBF_OK
                                                   : dv_fail_memory(error, "measuring linear systems");
}

static void clear_ruler(ruler *r) {
  dv_free(r->v);
  dv_free(r->matrices);
  dv_free(r->t);
  dv_free(r->scratch);
}

/* The systems of r->v, as the model uses them, become the matrices. */
static void read_systems(ruler *r) {
  const dv_systems *s = &r->systems;
  for (int i = 0; i < s->count; i++) {
    if (s->most > 0 && r->model->transition) dv_contract_system(s, i, r->v, r->v, r->scratch);
    dv_systems_read(s, i, r->v, r->matrices + (size_t)i * square_of(r));
  }
}

/* The longest of the matrices in the norm that was found. */
static double longest(const ruler *r) {
  int n = r->systems.n;
  double most = 0;
  if (r->radius) return dv_spectral_radius(r->matrices, n, r->scratch);
  for (int i = 0; i < r->systems.count; i++) {
    const double *matrix = r->matrices + (size_t)i * square_of(r);
    most = fmax(most, dv_length_in(matrix, r->t, r->inverse, n, r->scratch));
  }
  return most;
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

/* Fewer of large systems: about a second in all. */
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

/* ---- Words ---- */

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
  char drawn[96] = "", which[64] = "its linear system";
  if (s->draws) dv_print(drawn, sizeof drawn, ", %.5g over %zu draws of v", s->drawn, s->draws);
  if (s->systems > 1) snprintf(which, sizeof which, "every mixture of its %zu systems", s->systems);
  const char *norm = !strcmp(s->measure, "euclidean") ? "longest in the Euclidean norm"
                     : *s->measure == 'q'             ? "longest in the best quadratic norm found"
                                                      : s->measure;
  if (s->contracts && shrinks(worst_of(s)))
    dv_print(out, size,
             "contracts: %s shrinks differences of states by at least %.2g %% per step (%s: %.5g%s)", which,
             100 * (1 - worst_of(s)), norm, s->length, drawn);
  else if (s->contracts)
    dv_print(out, size,
             "does not expand: %s leaves differences of states as they are or shrinks them (%s: %.5g%s)",
             which, norm, s->length, drawn);
  else if (s->length <= 1)
    dv_print(out, size, "contracts only with v at its mean (%s: %.5g%s)", norm, s->length, drawn);
  else
    dv_print(out, size, "no certificate of contraction (%s: %.5g%s)", norm, s->length, drawn);
}

static void describe(dvbf_member_stability *s, const dvbf_model *m) {
  char first[256], *to = s->sentence;
  const size_t size = sizeof s->sentence;
  if (m->type->timeless) {
    snprintf(to, size, "nothing can grow: no time joins its states");
    return;
  }
  if (s->systems)
    describe_lengths(s, first, sizeof first);
  else
    snprintf(first, sizeof first, "no certificate of contraction, as it is not made of linear systems");
  if (s->reach)
    dv_print(to, size, "%s; bounded by state-limit: %seach |z_k| <= %.3g", first,
             m->n_w ? "" : "the mean of ", largest_reach(s));
  else
    snprintf(to, size, "%s%s", first, s->bounded ? "" : "; nothing bounds its states: state-limit is 0");
}

/* ---- Members and all ---- */

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
  dv_systems systems;
  *out = (dvbf_member_stability){.measure = "", .length = NAN, .drawn = NAN};
  dvbf_status status = find_reach(out, m, error);
  if (!status && dv_model_systems(m, &systems)) {
    ruler r;
    status = make_ruler(&r, m, error);
    out->systems = (size_t)systems.count;
    if (!status) status = measure_mean(out, &r, error);
    if (!status) measure_draws(out, &r);
    clear_ruler(&r);
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
