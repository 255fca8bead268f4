/* Differential dynamic programming with box limits (Tassa, Mansard and Todorov 2014) and dynamics to first
 * order, known as iLQR; equations in optimal_control.h. The forward pass tries all step lengths at once.
 * dv_ilqr_resume moves a plan on by its gains rather than its controls, which alone would lead an unstable
 * system away. No allocation. */
#include "control/optimal_control.h"

#include "math/algebra.h"

#include <math.h>
#include <string.h>

static const double least_mu = 1e-8, most_mu = 1e10, factor_of_mu = 1.6;

/* ---- Memory ---- */

static void place_expansion(dv_workspace *room, dv_expansion *e, size_t n_z, size_t n_u) {
  e->z = dv_workspace_take(room, n_z, sizeof *e->z);
  e->u = dv_workspace_take(room, n_u, sizeof *e->u);
  e->zz = dv_workspace_take(room, n_z * n_z, sizeof *e->zz);
  e->uz = dv_workspace_take(room, n_u * n_z, sizeof *e->uz);
  e->uu = dv_workspace_take(room, n_u * n_u, sizeof *e->uu);
}

dv_ilqr *dv_ilqr_lay_out(dv_workspace *room, const dv_problem *problem) {
  size_t n_z = (size_t)problem->n_z, n_u = (size_t)problem->n_u, steps = (size_t)problem->steps;
  dv_ilqr *planner = dv_workspace_take(room, 1, sizeof *planner), parts = {.problem = *problem};
  parts.z = dv_workspace_take(room, (steps + 1) * n_z, sizeof(double));
  parts.u = dv_workspace_take(room, steps * n_u, sizeof(double));
  parts.a = dv_workspace_take(room, steps * n_z * n_z, sizeof(double));
  parts.b = dv_workspace_take(room, steps * n_z * n_u, sizeof(double));
  parts.k = dv_workspace_take(room, steps * n_u, sizeof(double));
  parts.gain = dv_workspace_take(room, steps * n_u * n_z, sizeof(double));
  parts.trial_z = dv_workspace_take(room, (steps + 1) * DV_LENGTHS * n_z, sizeof(double));
  parts.trial_u = dv_workspace_take(room, steps * DV_LENGTHS * n_u, sizeof(double));
  place_expansion(room, &parts.l, n_z, n_u);
  place_expansion(room, &parts.q, n_z, n_u);
  parts.v_z = dv_workspace_take(room, n_z, sizeof(double));
  parts.v_zz = dv_workspace_take(room, n_z * n_z, sizeof(double));
  parts.va = dv_workspace_take(room, n_z * n_z, sizeof(double));
  parts.vb = dv_workspace_take(room, n_z * n_u, sizeof(double));
  parts.factor = dv_workspace_take(room, n_u * n_u, sizeof(double));
  parts.packed = dv_workspace_take(room, n_u * n_z, sizeof(double));
  parts.low = dv_workspace_take(room, n_u, sizeof(double));
  parts.high = dv_workspace_take(room, n_u, sizeof(double));
  parts.scratch = dv_workspace_take(room, dv_box_scratch(problem->n_u), sizeof(double));
  parts.held = dv_workspace_take(room, n_u, sizeof(bool));
  if (planner) *planner = parts;
  return planner;
}

/* ---- Backward ---- */

/* out [n][m] += a' b, a [k][n], b [k][m] */
static void add_product(double *out, const double *a, const double *b, int n, int k, int m) {
  for (int i = 0; i < k; i++)
    for (int r = 0; r < n; r++) {
      double factor = a[i * n + r];
      for (int c = 0; c < m; c++) out[r * m + c] += factor * b[i * m + c];
    }
}

static void expand_step(dv_ilqr *p, int t) {
  const dv_problem *o = &p->problem;
  int n = o->n_z, m = o->n_u;
  const double *a = p->a + (size_t)t * (size_t)(n * n), *b = p->b + (size_t)t * (size_t)(n * m);
  o->expand(o->user, t, p->z + (size_t)t * (size_t)n, p->u + (size_t)t * (size_t)m, &p->q);
  dv_product(p->va, p->v_zz, a, n, n, n);
  dv_product(p->vb, p->v_zz, b, n, n, m);
  add_product(p->q.z, a, p->v_z, n, n, 1);
  add_product(p->q.u, b, p->v_z, m, n, 1);
  add_product(p->q.zz, a, p->va, n, n, n);
  add_product(p->q.uz, b, p->va, m, n, n);
  add_product(p->q.uu, b, p->vb, m, n, m);
}

/* K = -Q_uu^-1 Q_uz in the rows of controls that are free, 0 in the others. */
static void solve_gain(dv_ilqr *p, double *gain, int count) {
  int n = p->problem.n_z, m = p->problem.n_u, row = 0;
  size_t width = (size_t)n * sizeof *gain;
  for (int i = 0; i < m; i++)
    if (!p->held[i]) memcpy(p->packed + (size_t)row++ * (size_t)n, p->q.uz + (size_t)i * (size_t)n, width);
  dv_solve_lower(p->factor, count, p->packed, n);
  dv_solve_upper(p->factor, count, p->packed, n);
  row = 0;
  for (int i = 0; i < m; i++) {
    const double *from = p->packed + (size_t)row * (size_t)n;
    for (int j = 0; j < n; j++) gain[i * n + j] = p->held[i] ? 0 : -from[j];
    row += !p->held[i];
  }
}

/* k and K of step t; false if Q_uu is not positive definite. */
static bool solve_step(dv_ilqr *p, int t) {
  const dv_problem *o = &p->problem;
  int m = o->n_u;
  double *k = p->k + (size_t)t * (size_t)m;
  const double *u = p->u + (size_t)t * (size_t)m;
  for (int i = 0; i < m; i++) {
    p->low[i] = o->low[i] - u[i];
    p->high[i] = o->high[i] - u[i];
    p->q.uu[i * m + i] += p->regularisation;
  }
  int count = dv_box_solve(k, p->held, p->factor, p->q.uu, p->q.u, p->low, p->high, m, p->scratch);
  for (int i = 0; i < m; i++) p->q.uu[i * m + i] -= p->regularisation;
  if (count < 0) return false;
  solve_gain(p, p->gain + (size_t)t * (size_t)(m * o->n_z), count);
  return true;
}

/* V before step t from Q, k and K. vb is scratch for Q_uu K. */
static void update_value(dv_ilqr *p, int t) {
  int n = p->problem.n_z, m = p->problem.n_u;
  const double *k = p->k + (size_t)t * (size_t)m, *gain = p->gain + (size_t)t * (size_t)(m * n);
  double *quu_k = p->scratch, *quu_gain = p->vb;
  memset(quu_k, 0, (size_t)m * sizeof *quu_k);
  dv_apply(quu_k, p->q.uu, k, m, m);
  p->expected[0] += dv_dot(k, p->q.u, (size_t)m);
  p->expected[1] += dv_dot(k, quu_k, (size_t)m);
  dv_product(quu_gain, p->q.uu, gain, m, m, n);
  for (int i = 0; i < m; i++) quu_k[i] += p->q.u[i];
  memcpy(p->v_z, p->q.z, (size_t)n * sizeof *p->v_z);
  add_product(p->v_z, gain, quu_k, n, m, 1);
  add_product(p->v_z, p->q.uz, k, n, m, 1);
  for (int i = 0; i < m * n; i++) quu_gain[i] += p->q.uz[i];
  memcpy(p->v_zz, p->q.zz, (size_t)(n * n) * sizeof *p->v_zz);
  add_product(p->v_zz, gain, quu_gain, n, m, n);
  add_product(p->v_zz, p->q.uz, gain, n, m, n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      p->v_zz[i * n + j] = p->v_zz[j * n + i] = 0.5 * (p->v_zz[i * n + j] + p->v_zz[j * n + i]);
}

static bool pass_back(dv_ilqr *p) {
  const dv_problem *o = &p->problem;
  size_t n = (size_t)o->n_z;
  p->expected[0] = p->expected[1] = 0;
  o->expand(o->user, o->steps, p->z + (size_t)o->steps * n, NULL, &p->l);
  memcpy(p->v_z, p->l.z, n * sizeof *p->v_z);
  memcpy(p->v_zz, p->l.zz, n * n * sizeof *p->v_zz);
  for (int t = o->steps - 1; t >= 0; t--) {
    expand_step(p, t);
    if (!solve_step(p, t)) return false;
    update_value(p, t);
  }
  return true;
}

/* ---- Forward ---- */

static void choose_control(const dv_ilqr *p, int t, double length, const double *z, double *u) {
  const dv_problem *o = &p->problem;
  int n = o->n_z, m = o->n_u;
  const double *z_of_path = p->z + (size_t)t * (size_t)n, *u_of_path = p->u + (size_t)t * (size_t)m;
  const double *gain = p->gain + (size_t)t * (size_t)(m * n), *k = p->k + (size_t)t * (size_t)m;
  for (int i = 0; i < m; i++) {
    double sum = u_of_path[i] + length * k[i];
    for (int j = 0; j < n; j++) sum += gain[i * n + j] * (z[j] - z_of_path[j]);
    u[i] = sum;
  }
  dv_into_limits(u, o->low, o->high, m);
}

void dv_ilqr_control(const dv_ilqr *p, int t, const double *z, double *u) {
  choose_control(p, t, 0, z, u);
}

/* Follows the new controls with steps of all lengths at once; cost [DV_LENGTHS]. */
static void try_lengths(dv_ilqr *p, double *cost) {
  const dv_problem *o = &p->problem;
  size_t n = (size_t)o->n_z, m = (size_t)o->n_u;
  for (size_t r = 0; r < DV_LENGTHS; r++) memcpy(p->trial_z + r * n, p->z, n * sizeof *p->z), cost[r] = 0;
  for (int t = 0; t < o->steps; t++) {
    double *z = p->trial_z + (size_t)t * DV_LENGTHS * n, *u = p->trial_u + (size_t)t * DV_LENGTHS * m;
    double length = 1;
    for (size_t r = 0; r < DV_LENGTHS; r++, length *= 0.5) {
      choose_control(p, t, length, z + r * n, u + r * m);
      cost[r] += o->cost(o->user, t, z + r * n, u + r * m);
    }
    o->move(o->user, DV_LENGTHS, z, u, NULL, z + DV_LENGTHS * n);
  }
  const double *last = p->trial_z + (size_t)o->steps * DV_LENGTHS * n;
  for (size_t r = 0; r < DV_LENGTHS; r++) cost[r] += o->cost(o->user, o->steps, last + r * n, NULL);
}

/* The best of the trials; -1 if none improves on `before` by a share of the expected decrease. */
static int best_length(const dv_ilqr *p, const double *cost, double before) {
  int best = -1;
  double length = 1;
  for (int r = 0; r < DV_LENGTHS; r++, length *= 0.5) {
    double expected = length * (p->expected[0] + 0.5 * length * p->expected[1]);
    if (!isfinite(cost[r]) || !(cost[r] - before <= 1e-4 * expected) || !(cost[r] < before)) continue;
    if (best < 0 || cost[r] < cost[best]) best = r;
  }
  return best;
}

static void accept(dv_ilqr *p, size_t row) {
  const dv_problem *o = &p->problem;
  size_t n = (size_t)o->n_z, m = (size_t)o->n_u, steps = (size_t)o->steps;
  for (size_t t = 0; t <= steps; t++)
    memcpy(p->z + t * n, p->trial_z + (t * DV_LENGTHS + row) * n, n * sizeof *p->z);
  for (size_t t = 0; t < steps; t++)
    memcpy(p->u + t * m, p->trial_u + (t * DV_LENGTHS + row) * m, m * sizeof *p->u);
}

/* ---- Iterations ---- */

static double roll_out(dv_ilqr *p, const double *first) {
  const dv_problem *o = &p->problem;
  size_t n = (size_t)o->n_z, m = (size_t)o->n_u;
  double cost = 0;
  memcpy(p->z, first, n * sizeof *p->z);
  for (int t = 0; t < o->steps; t++) {
    double *z = p->z + (size_t)t * n, *u = p->u + (size_t)t * m;
    dv_into_limits(u, o->low, o->high, o->n_u);
    cost += o->cost(o->user, t, z, u);
    o->move(o->user, 1, z, u, NULL, z + n);
  }
  return cost + o->cost(o->user, o->steps, p->z + (size_t)o->steps * n, NULL);
}

void dv_ilqr_resume(dv_ilqr *p, const double *first) {
  const dv_problem *o = &p->problem;
  size_t n = (size_t)o->n_z, m = (size_t)o->n_u, rest = (size_t)o->steps - 1;
  memmove(p->z, p->z + n, (rest + 1) * n * sizeof *p->z);
  memmove(p->u, p->u + m, rest * m * sizeof *p->u);
  memmove(p->gain, p->gain + n * m, rest * n * m * sizeof *p->gain);
  memcpy(p->trial_z, first, n * sizeof *first);
  for (int t = 0; t < o->steps; t++) {
    choose_control(p, t, 0, p->trial_z, p->trial_u + (size_t)t * m);
    o->move(o->user, 1, p->trial_z, p->trial_u + (size_t)t * m, NULL, p->trial_z + n);
    memcpy(p->trial_z, p->trial_z + n, n * sizeof *first);
  }
  memcpy(p->u, p->trial_u, (rest + 1) * m * sizeof *p->u);
}

static bool regularise_more(dv_ilqr *p) {
  p->growth = fmax(p->growth * factor_of_mu, factor_of_mu);
  p->regularisation = fmax(p->regularisation * p->growth, least_mu);
  return p->regularisation <= most_mu;
}

static double largest(const double *v, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, fabs(v[i]));
  return most;
}

/* One iteration; false when planning has ended. `fresh`: the path is new, so its derivatives are not
 * known. */
static bool improve(dv_ilqr *p, dv_plan *plan, double tolerance, bool *fresh) {
  const dv_problem *o = &p->problem;
  double cost[DV_LENGTHS];
  if (*fresh) o->derive(o->user, p->z, p->u, p->a, p->b);
  *fresh = false;
  plan->end = DV_PLAN_STUCK;
  if (!pass_back(p)) return regularise_more(p);
  double scale = tolerance * (fabs(plan->cost) + 1e-300);
  plan->end = DV_PLAN_CONVERGED;
  if (-(p->expected[0] + 0.5 * p->expected[1]) <= scale && p->regularisation < 1e-3) return false;
  if (largest(p->k, (size_t)o->steps * (size_t)o->n_u) == 0) return false;
  try_lengths(p, cost);
  int best = best_length(p, cost, plan->cost);
  plan->end = DV_PLAN_STUCK;
  if (best < 0) return regularise_more(p);
  accept(p, (size_t)best);
  plan->cost = cost[best];
  *fresh = true;
  p->growth = fmin(p->growth / factor_of_mu, 1 / factor_of_mu);
  p->regularisation *= p->growth;
  if (p->regularisation < least_mu) p->regularisation = 0;
  return true;
}

dv_plan dv_ilqr_plan(dv_ilqr *p, const double *z, const dv_effort *effort) {
  dv_plan plan = {.cost = roll_out(p, z), .end = DV_PLAN_FAILED};
  bool fresh = true, more = isfinite(plan.cost);
  size_t controls = (size_t)p->problem.steps * (size_t)p->problem.n_u;
  memset(p->k, 0, controls * sizeof *p->k);
  memset(p->gain, 0, controls * (size_t)p->problem.n_z * sizeof *p->gain);
  p->regularisation = 0;
  p->growth = 1;
  while (more) {
    plan.end = DV_PLAN_CAPPED;
    if (plan.iterations == effort->iterations || (effort->late && effort->late(effort->user))) break;
    plan.iterations++;
    more = improve(p, &plan, effort->tolerance, &fresh);
  }
  return plan;
}
