/* The prediction-error method for linear systems (dv_prediction_error_refine): least squares over free runs
 * of up to LONG_RUN steps from about RUNS origins by Levenberg-Marquardt, with a weak ridge that makes the
 * basis of the state unique and no steps to an unstable A; then the gain, by forecasts one step ahead. The
 * order is chosen anew on unseen blocks. */
#include "base/error.h"
#include "base/memory.h"
#include "identify/identify.h"
#include "math/algebra.h"
#include "math/least_squares.h"
#include "math/portable.h"

#include <math.h>
#include <string.h>

/* SEEN frames determine the first state of a run; a run has SHORT_RUN to LONG_RUN frames, and all data have
 * about RUNS origins. */
enum { SEEN = 10, SHORT_RUN = 40, LONG_RUN = 400, RUNS = 25, MOST_VALUES = 40000, MOST_PARAMETERS = 120 };
enum { EVERYTHING = -1 }; /* no fold */

static const int orders[] = {1, 2, 3, 4, 6};
enum { ORDERS = sizeof orders / sizeof *orders };

typedef struct run {
  size_t first, steps;
} run;

/* A system under refinement, with its data. */
typedef struct far {
  const dv_recordings *r;
  run *runs;
  size_t count, rows; /* rows: residuals of all runs */
  dv_state_space system;
  bool feedthrough;
  double *gain;                    /* [n_z][n_x] */
  double *z, *next, *x, *f, *open; /* [n_z] twice, [n_x], [SEEN][n_x] and [SEEN][n_x][n_z] */
  double *square, *scratch;        /* [n_z][n_z] and three times as much */
} far;

/* ---- Origins ---- */

/* Adds the runs of frames first .. first + steps, or only counts them. */
static size_t add_runs(run *to, size_t count, size_t first, size_t steps, size_t stride) {
  for (size_t o = 0; o + SHORT_RUN <= steps; o += stride, count++)
    if (to) to[count] = (run){first + o, steps - o < LONG_RUN ? steps - o : LONG_RUN};
  return count;
}

/* Runs in the blocks of a fold, or in those of all others. Blocks that follow each other are one piece. */
static size_t all_runs(run *to, const dv_recordings *r, int fold, bool inside, size_t stride) {
  size_t count = 0, first = 0, steps = 0;
  for (size_t b = 0; b < r->blocks; b++) {
    const dv_piece *p = &r->block[b];
    bool take = fold == EVERYTHING || (p->fold == fold) == inside, joins = steps && p->before && take;
    if (!joins) count = add_runs(to, count, first, steps, stride);
    if (!joins) first = p->first, steps = 0;
    if (take) steps += p->steps;
  }
  return add_runs(to, count, first, steps, stride);
}

/* Spreads the origins until the runs are few enough. */
static dvbf_status take_runs(far *a, int fold, bool inside, dvbf_error *error) {
  size_t stride = a->r->frames / RUNS + 1, n_x = (size_t)a->r->n_x, most = 0;
  size_t count = all_runs(NULL, a->r, fold, inside, stride);
  run *runs = dv_calloc(count, sizeof *runs);
  if (!runs) return dv_fail_memory(error, "fitting free runs");
  all_runs(runs, a->r, fold, inside, stride);
  for (size_t i = 0; i < count; i++) most = runs[i].steps > most ? runs[i].steps : most;
  size_t room = most ? MOST_VALUES / (most * n_x) : 0, kept = count < room ? count : room;
  a->rows = 0;
  for (size_t i = 0; i < kept; i++) {
    runs[i] = runs[i * count / kept];
    a->rows += (runs[i].steps - SEEN) * n_x;
  }
  dv_free(a->runs);
  a->runs = runs;
  a->count = kept;
  return DVBF_OK;
}

static dvbf_status far_new(far *a, const dv_recordings *r, int order, bool feedthrough, dvbf_error *error) {
  size_t n_z = (size_t)order, n_x = (size_t)r->n_x;
  *a = (far){.r = r, .feedthrough = feedthrough};
  dvbf_status status = dv_system_new(&a->system, order, r->n_u, r->n_x, error);
  if (status) return status;
  a->gain = dv_calloc(n_z * n_x + 2 * n_z + n_x + SEEN * n_x * (1 + n_z) + 4 * n_z * n_z, sizeof *a->gain);
  if (!a->gain) return dv_fail_memory(error, "fitting free runs");
  a->z = a->gain + n_z * n_x;
  a->next = a->z + n_z;
  a->x = a->next + n_z;
  a->f = a->x + n_x;
  a->open = a->f + SEEN * n_x;
  a->square = a->open + SEEN * n_x * n_z;
  a->scratch = a->square + n_z * n_z;
  return DVBF_OK;
}

static void far_clear(far *a) {
  dv_system_clear(&a->system);
  dv_free(a->gain);
  dv_free(a->runs);
  *a = (far){0};
}

/* ---- Free runs ---- */

static void move(far *a, const double *u) {
  dv_system_move(&a->system, a->z, u, a->next);
  memcpy(a->z, a->next, (size_t)a->system.n_z * sizeof *a->z);
}

/* open: the observability matrix H A^t of the first frames. */
static void look_back(far *a) {
  const dv_state_space *s = &a->system;
  size_t part = (size_t)s->n_x * (size_t)s->n_z;
  memcpy(a->open, s->h, part * sizeof *s->h);
  for (int t = 1; t < SEEN; t++)
    dv_product(a->open + (size_t)t * part, a->open + (size_t)(t - 1) * part, s->a, s->n_x, s->n_z, s->n_z);
}

/* z: the first state, by least squares over the frames that are seen. */
static void begin(far *a, const run *w) {
  const double ridge = 1e-2;
  const dv_state_space *s = &a->system;
  size_t n_z = (size_t)s->n_z, n_x = (size_t)s->n_x, n_u = (size_t)s->n_u;
  memset(a->z, 0, n_z * sizeof *a->z);
  memset(a->square, 0, n_z * n_z * sizeof *a->square);
  for (size_t t = 0; t < SEEN; t++) {
    const double *u = a->r->u + (w->first + t) * n_u;
    dv_system_emit(s, a->z, u, a->f + t * n_x);
    move(a, u);
  }
  memset(a->z, 0, n_z * sizeof *a->z);
  for (size_t k = 0; k < SEEN * n_x; k++) {
    double apart = a->r->x[w->first * n_x + k] - a->f[k];
    const double *row = a->open + k * n_z;
    if (isnan(apart)) continue;
    for (size_t i = 0; i < n_z; i++) {
      a->z[i] += row[i] * apart;
      for (size_t j = i; j < n_z; j++) a->square[i * n_z + j] += row[i] * row[j];
    }
  }
  for (size_t i = 0; i < n_z; i++) a->square[i * (n_z + 1)] += ridge;
  dv_solve_definite(a->square, s->n_z, a->z, 1);
}

/* Errors of the runs [rows], over the root of their number; those of missing values are 0. With a gain they
 * are one step ahead, without one free. */
static void run_on(double *out, far *a, const double *gain) {
  size_t n_x = (size_t)a->system.n_x, n_u = (size_t)a->system.n_u;
  double by = 1 / sqrt((double)a->rows);
  look_back(a);
  for (size_t i = 0; i < a->count; i++) {
    const run *w = &a->runs[i];
    begin(a, w);
    for (size_t t = 0; t < w->steps; t++) {
      const double *u = a->r->u + (w->first + t) * n_u, *x = a->r->x + (w->first + t) * n_x;
      dv_system_emit(&a->system, a->z, u, a->x);
      move(a, u);
      for (size_t k = 0; k < n_x; k++) a->x[k] = isnan(x[k]) ? 0 : x[k] - a->x[k];
      if (gain) dv_apply(a->z, gain, a->x, a->system.n_z, a->system.n_x);
      for (size_t k = 0; k < n_x && t >= SEEN; k++) *out++ = by * a->x[k];
    }
  }
}

/* Parameters are the numbers of the system up to the noise, less D if there is no feedthrough. */
static size_t skipped(const far *a) {
  return a->feedthrough ? 0 : (size_t)a->system.n_x * (size_t)a->system.n_u;
}

static int parameters(const far *a) {
  return (int)((size_t)(a->system.q - a->system.a) - skipped(a));
}

static void get_parameters(const far *a, double *theta) {
  size_t before = (size_t)(a->system.d - a->system.a), after = (size_t)parameters(a) - before;
  memcpy(theta, a->system.a, before * sizeof *theta);
  memcpy(theta + before, a->system.d + skipped(a), after * sizeof *theta);
}

static void set_parameters(far *a, const double *theta) {
  size_t before = (size_t)(a->system.d - a->system.a), after = (size_t)parameters(a) - before;
  memcpy(a->system.a, theta, before * sizeof *theta);
  memcpy(a->system.d + skipped(a), theta + before, after * sizeof *theta);
}

static void free_residuals(double *out, const double *theta, void *user) {
  far *a = user;
  set_parameters(a, theta);
  run_on(out, a, NULL);
}

/* A is the first of the parameters. */
static bool is_stable(const double *theta, void *user) {
  far *a = user;
  return dv_spectral_radius(theta, a->system.n_z, a->scratch) <= 1;
}

/* Least squares of the errors of the runs. `how` has parameters, ridge, residuals and what is allowed. */
static dvbf_status least_squares(far *a, double *theta, dv_levenberg how, const volatile int *interrupt,
                                 dvbf_error *error) {
  how.rows = a->rows;
  how.interrupt = interrupt;
  how.user = a;
  return dv_levenberg_run(theta, &how, error);
}

static dvbf_status refine(far *a, const volatile int *interrupt, dvbf_error *error) {
  dv_levenberg how = {.n = parameters(a), .ridge = 1e-3, .residuals = free_residuals, .allowed = is_stable};
  double *theta = dv_calloc((size_t)how.n, sizeof *theta);
  if (!theta) return dv_fail_memory(error, "fitting free runs");
  get_parameters(a, theta);
  dvbf_status status = least_squares(a, theta, how, interrupt, error);
  set_parameters(a, theta);
  dv_free(theta);
  return status;
}

/* ---- Gain ---- */

static void gain_residuals(double *out, const double *gain, void *user) {
  run_on(out, user, gain);
}

/* Whether the filter forgets its first state: A - K H. */
static bool forgets(const double *gain, void *user) {
  far *a = user;
  int n = a->system.n_z;
  dv_product(a->square, gain, a->system.h, n, a->system.n_x, n);
  for (int i = 0; i < n * n; i++) a->square[i] = a->system.a[i] - a->square[i];
  return dv_spectral_radius(a->square, n, a->scratch) < 1;
}

/* R of the errors one step ahead, and the other noises with the gain. */
static dvbf_status set_noise(far *a, dvbf_error *error) {
  size_t n_x = (size_t)a->system.n_x;
  double *errors = dv_calloc(a->rows, sizeof *errors), *r = a->system.r;
  if (!errors) return dv_fail_memory(error, "fitting free runs");
  gain_residuals(errors, a->gain, a);
  memset(r, 0, n_x * n_x * sizeof *r);
  for (size_t k = 0; k < a->rows; k += n_x)
    for (size_t i = 0; i < n_x; i++)
      for (size_t j = 0; j < n_x; j++) r[i * n_x + j] += errors[k + i] * errors[k + j] * (double)n_x;
  for (size_t i = 0; i < n_x; i++) r[i * (n_x + 1)] += DV_NOISE_FLOOR;
  dv_system_set_gain(&a->system, a->gain);
  dv_free(errors);
  return DVBF_OK;
}

/* K = S R^-1 of the system in innovation form; 0 if it has none or A was moved too far for it. */
static dvbf_status first_gain(far *a, dvbf_error *error) {
  const dv_state_space *s = &a->system;
  size_t n_z = (size_t)s->n_z, n_x = (size_t)s->n_x;
  double *r = dv_calloc(n_x * (n_x + n_z), sizeof *r);
  if (!r) return dv_fail_memory(error, "fitting free runs");
  double *to = r + n_x * n_x;
  memset(a->gain, 0, n_z * n_x * sizeof *a->gain);
  memcpy(r, s->r, n_x * n_x * sizeof *r);
  dv_transpose(to, s->s, s->n_z, s->n_x);
  if (dv_solve_definite(r, s->n_x, to, s->n_z)) dv_transpose(a->gain, to, s->n_x, s->n_z);
  if (!forgets(a->gain, a)) memset(a->gain, 0, n_z * n_x * sizeof *a->gain);
  dv_free(r);
  return DVBF_OK;
}

static dvbf_status find_gain(far *a, const volatile int *interrupt, dvbf_error *error) {
  int n = a->system.n_z * a->system.n_x;
  dv_levenberg how = {.n = n, .ridge = 1e-9, .residuals = gain_residuals, .allowed = forgets};
  dvbf_status status = first_gain(a, error);
  if (!status) status = least_squares(a, a->gain, how, interrupt, error);
  return status ? status : set_noise(a, error);
}

/* ---- Order ---- */

/* The window of the subspace model to refine: longer than the best one for forecasts, if data allow it. */
static int past_of(const dv_recordings *r, const dv_linear_choice *c) {
  enum { PAST = 12, EACH = 10 };
  size_t size = 1 + (PAST + 1) * (size_t)(r->n_x + r->n_u);
  return c->past < PAST && r->frames >= EACH * size ? PAST : c->past;
}

/* The subspace model of all blocks but those of a fold; *any is false if they have none. */
static dvbf_status start(far *a, bool *any, const dv_linear_choice *c, int fold, dvbf_error *error) {
  dv_moments_past moments = {0};
  dv_subspace space = {0};
  const dv_recordings *r = a->r;
  int order = a->system.n_z;
  *any = false;
  dvbf_status status = dv_moments_past_new(&moments, r, past_of(r, c), error);
  for (size_t b = 0; b < r->blocks && !status; b++)
    if (r->block[b].fold != fold) dv_moments_past_add(&moments, r, &r->block[b]);
  if (!status) status = dv_subspace_new(&space, &moments, c->feedthrough, c->ridge, order, error);
  double *scratch = status ? NULL : dv_calloc(dv_subspace_scratch(&space), sizeof *scratch);
  if (!status && !scratch) status = dv_fail_memory(error, "fitting free runs");
  if (!status) *any = dv_subspace_system(&space, &a->system, scratch);
  dv_free(scratch);
  dv_subspace_clear(&space);
  dv_moments_past_clear(&moments);
  return status;
}

/* Adds the squared errors of the system's free runs in a fold, and their number. */
static dvbf_status judge(far *a, int fold, double *squares, double *count, dvbf_error *error) {
  dvbf_status status = take_runs(a, fold, true, error);
  double *errors = status ? NULL : dv_calloc(a->rows, sizeof *errors);
  if (!status && !errors) status = dv_fail_memory(error, "fitting free runs");
  if (!status && a->rows) {
    run_on(errors, a, NULL);
    *squares += dv_dot(errors, errors, a->rows) * (double)a->rows;
    *count += (double)a->rows;
  }
  dv_free(errors);
  return status;
}

/* A refined system of the order, of all data but a fold; *any is false if there is none. */
static dvbf_status fit_order(far *a, bool *any, int order, const dv_recordings *r, const dv_linear_choice *c,
                             int fold, const volatile int *interrupt, dvbf_error *error) {
  dvbf_status status = far_new(a, r, order, c->feedthrough, error);
  if (!status) status = take_runs(a, fold, false, error);
  *any = !status && a->rows && parameters(a) <= MOST_PARAMETERS &&
         order <= dv_subspace_most(r->n_x, past_of(r, c));
  if (!status && *any) status = start(a, any, c, fold, error);
  return !status && *any ? refine(a, interrupt, error) : status;
}

/* *out: the root mean square error of refined systems in free runs that they have not seen. */
static dvbf_status try_order(double *out, int order, const dv_recordings *r, const dv_linear_choice *c,
                             const volatile int *interrupt, dvbf_error *error) {
  double squares = 0, count = 0;
  bool any = true;
  dvbf_status status = DVBF_OK;
  for (int f = 0; f < DV_FOLDS && any && !status; f++) {
    far a = {0};
    status = fit_order(&a, &any, order, r, c, f, interrupt, error);
    if (!status && any) status = judge(&a, f, &squares, &count, error);
    far_clear(&a);
  }
  *out = any && count > 0 ? sqrt(squares / count) : INFINITY;
  return status;
}

/* The order with the least error; unchanged if none can be refined. */
static dvbf_status choose_order(int *order, double *least, const dv_recordings *r, const dv_linear_choice *c,
                                const volatile int *interrupt, dvbf_error *error) {
  const double margin = 0.99; /* the lower order stays unless another is a hundredth better */
  dvbf_status status = DVBF_OK;
  *least = INFINITY;
  for (int i = 0; i < ORDERS && !status; i++) {
    double found = INFINITY;
    status = try_order(&found, orders[i], r, c, interrupt, error);
    if (status || !(found < margin * *least)) continue;
    *least = found;
    *order = orders[i];
  }
  return status;
}

dvbf_status dv_prediction_error_refine(dv_state_space *system, dv_linear_choice *choice,
                                       const dv_recordings *r, int order, const volatile int *interrupt,
                                       dvbf_error *error) {
  double least = INFINITY;
  bool any = false;
  far a = {0};
  dvbf_status status = order ? try_order(&least, order, r, choice, interrupt, error)
                             : choose_order(&order, &least, r, choice, interrupt, error);
  if (status || !isfinite(least)) return status;
  status = fit_order(&a, &any, order, r, choice, EVERYTHING, interrupt, error);
  if (!status && any) status = find_gain(&a, interrupt, error);
  if (!status && any) {
    dv_system_clear(system);
    *system = a.system;
    a.system = (dv_state_space){0};
    choice->order = order;
    choice->errors.free_run = least;
  }
  far_clear(&a);
  return status;
}
