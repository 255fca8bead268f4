/* Cost of control: distance of a state from the nearest of several goals, effort and changes of the controls,
 * and a terminal cost from Riccati's equation at each goal; and the problem that planners solve
 * (dv_cost_problem). The state is (z, u of the step before), so that changes of u can cost something. */
#include "control/cost.h"

#include "math/algebra.h"
#include "math/riccati.h"
#include "settings_tables.h"

#include <math.h>
#include <string.h>

/* ---- Cost ---- */

dv_cost *dv_cost_lay_out(dv_workspace *room, const dv_cost *like) {
  dv_cost *task = dv_workspace_take(room, 1, sizeof *task), parts = *like;
  size_t n = (size_t)like->n_z, m = (size_t)like->n_u, s = (size_t)like->n_s, g = (size_t)like->goals;
  struct {
    double **at;
    size_t size;
  } all[] = {{&parts.later, (size_t)like->steps + 1},
             {&parts.map, s * (n + 1)},
             {&parts.weight, s},
             {&parts.target, g * s},
             {&parts.centre, g * n},
             {&parts.p, g * n * n},
             {&parts.q, n * n},
             {&parts.s, s},
             {&parts.h, s * n},
             {&parts.control, m},
             {&parts.change, m},
             {&parts.rest, m},
             {&parts.low, m},
             {&parts.high, m},
             {&parts.a, n * n},
             {&parts.b, n * m},
             {&parts.gain, g * m * n},
             {&parts.r, m * m},
             {&parts.scratch, dv_riccati_scratch(like->n_z, like->n_u)}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    *all[i].at = dv_workspace_take(room, all[i].size, sizeof(double));
    if (room->at) memset(*all[i].at, 0, all[i].size * sizeof(double));
  }
  if (task) *task = parts;
  return task;
}

/* ---- Distance from a goal ---- */

static void look(const dv_cost *t, const double *z) {
  int n = t->n_z;
  if (t->looks) dv_emission_jacobian_at(t->looks, z, t->s);
  for (int s = 0; s < t->n_s && !t->looks; s++) {
    const double *row = t->map + (size_t)s * (size_t)(n + 1);
    t->s[s] = dv_dot(row, z, (size_t)n) + row[n];
  }
}

static void look_closely(const dv_cost *t, const double *z) {
  int n = t->n_z;
  if (t->looks) {
    dv_emission_jacobian_derive(t->looks, z, t->s, t->h);
    return;
  }
  look(t, z);
  for (int s = 0; s < t->n_s; s++)
    memcpy(t->h + (size_t)s * (size_t)n, t->map + (size_t)s * (size_t)(n + 1), (size_t)n * sizeof *t->h);
}

/* The goal nearest to s, and the cost of its distance. */
static double nearest(const dv_cost *t, int *goal) {
  double best = INFINITY;
  *goal = 0;
  for (int g = 0; g < t->goals; g++) {
    double sum = 0;
    for (int s = 0; s < t->n_s; s++) {
      double e = t->s[s] - t->target[g * t->n_s + s];
      sum += t->weight[s] * e * e;
    }
    if (!(sum >= best)) best = sum, *goal = g; /* NaN too */
  }
  return 0.5 * t->goal_weight * best;
}

/* q = goal_weight h'diag(weight) h, the second derivative without that of h. */
static void weigh(const dv_cost *t) {
  int n = t->n_z;
  memset(t->q, 0, (size_t)n * (size_t)n * sizeof *t->q);
  for (int s = 0; s < t->n_s; s++) {
    const double *row = t->h + (size_t)s * (size_t)n;
    double weight = t->goal_weight * t->weight[s];
    for (int i = 0; i < n && weight > 0; i++)
      for (int j = 0; j < n; j++) t->q[i * n + j] += weight * row[i] * row[j];
  }
}

static void scale(double *v, size_t n, double factor) {
  for (size_t i = 0; i < n; i++) v[i] *= factor;
}

/* p and gain of one goal; without a solution false, and p is that of a step. A model may have a direction at
 * the goal that neither decays nor answers to controls; the discount keeps p small along it. */
static bool solve_goal(dv_cost *t, int goal) {
  int n = t->n_z, m = t->n_u;
  size_t size = (size_t)n * (size_t)n, width = (size_t)n * (size_t)m;
  double *p = t->p + (size_t)goal * size, *gain = t->gain + (size_t)goal * width;
  const double *centre = t->centre + (size_t)goal * (size_t)n;
  t->motion.derive(t->motion.user, 1, centre, t->rest, t->a, t->b, n);
  scale(t->a, size, sqrt(t->discount));
  scale(t->b, width, sqrt(t->discount));
  look_closely(t, centre);
  weigh(t);
  bool found = dv_riccati(p, gain, &(dv_regulator){n, m, t->a, t->b, t->q, t->r}, t->scratch);
  if (!found) memcpy(p, t->q, size * sizeof *p);
  return found;
}

void dv_cost_terminal(dv_cost *t, int64_t kind) {
  int m = t->n_u;
  size_t size = (size_t)t->n_z * (size_t)t->n_z;
  t->steers = true;
  for (int i = 0; i <= t->steps; i++) t->later[i] = i ? t->later[i - 1] * t->discount : 1;
  memset(t->r, 0, (size_t)m * (size_t)m * sizeof *t->r);
  for (int i = 0; i < m; i++) t->r[i * m + i] = fmax(t->control[i] + t->change[i], 1e-12);
  for (int g = 0; g < t->goals; g++) {
    double *p = t->p + (size_t)g * size;
    t->steers = solve_goal(t, g) && t->steers;
    if (kind == DV_TERMINAL_WEIGHT) memcpy(p, t->q, size * sizeof *p);
    if (kind == DV_TERMINAL_NONE) memset(p, 0, size * sizeof *p);
  }
}

/* ---- The problem ---- */

static void move(void *user, int rows, const double *z, const double *u, const double *noise, double *next) {
  const dv_cost *t = user;
  int n = t->n_z, m = t->n_u;
  t->motion.move(t->motion.user, rows, z, u, noise, next, n + m);
  for (int r = 0; r < rows; r++)
    memcpy(next + (size_t)r * (size_t)(n + m) + n, u + (size_t)r * (size_t)m, (size_t)m * sizeof *u);
}

static void derive(void *user, const double *z, const double *u, double *a, double *b) {
  const dv_cost *t = user;
  int n = t->n_z, m = t->n_u, all = n + m;
  memset(a, 0, (size_t)t->steps * (size_t)all * (size_t)all * sizeof *a);
  memset(b, 0, (size_t)t->steps * (size_t)all * (size_t)m * sizeof *b);
  t->motion.derive(t->motion.user, t->steps, z, u, a, b, all);
  for (int s = 0; s < t->steps; s++)
    for (int i = 0; i < m; i++) b[((size_t)s * (size_t)all + (size_t)(n + i)) * (size_t)m + (size_t)i] = 1;
}

static double terminal(const dv_cost *t, int goal, const double *z) {
  int n = t->n_z;
  const double *p = t->p + (size_t)goal * (size_t)(n * n), *centre = t->centre + (size_t)goal * (size_t)n;
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) sum += (z[i] - centre[i]) * p[i * n + j] * (z[j] - centre[j]);
  return 0.5 * t->terminal_weight * sum;
}

static double cost(void *user, int step, const double *z, const double *u) {
  const dv_cost *t = user;
  int goal;
  look(t, z);
  double sum = nearest(t, &goal);
  if (!u) return t->later[step] * (sum + terminal(t, goal, z));
  for (int i = 0; i < t->n_u; i++) {
    double off = u[i] - t->rest[i], change = u[i] - z[t->n_z + i];
    sum += 0.5 * (t->control[i] * off * off + t->change[i] * change * change);
  }
  return t->later[step] * sum;
}

static void expand_terminal(const dv_cost *t, int goal, const double *z, dv_expansion *out) {
  int n = t->n_z, all = n + t->n_u;
  const double *p = t->p + (size_t)goal * (size_t)(n * n), *centre = t->centre + (size_t)goal * (size_t)n;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      out->zz[i * all + j] += t->terminal_weight * p[i * n + j];
      out->z[i] += t->terminal_weight * p[i * n + j] * (z[j] - centre[j]);
    }
}

static void expand_controls(const dv_cost *t, const double *z, const double *u, dv_expansion *out) {
  int n = t->n_z, m = t->n_u, all = n + m;
  memset(out->uz, 0, (size_t)m * (size_t)all * sizeof *out->uz);
  memset(out->uu, 0, (size_t)m * (size_t)m * sizeof *out->uu);
  for (int i = 0; i < m; i++) {
    double change = t->change[i] * (u[i] - z[n + i]);
    out->u[i] = t->control[i] * (u[i] - t->rest[i]) + change;
    out->uu[i * m + i] = t->control[i] + t->change[i];
    out->uz[i * all + n + i] = -t->change[i];
    out->z[n + i] = -change;
    out->zz[(n + i) * all + n + i] = t->change[i];
  }
}

static void expand(void *user, int step, const double *z, const double *u, dv_expansion *out) {
  const dv_cost *t = user;
  int n = t->n_z, all = n + t->n_u, goal;
  look_closely(t, z);
  weigh(t);
  nearest(t, &goal);
  memset(out->z, 0, (size_t)all * sizeof *out->z);
  memset(out->zz, 0, (size_t)all * (size_t)all * sizeof *out->zz);
  for (int s = 0; s < t->n_s; s++) {
    double e = t->goal_weight * t->weight[s] * (t->s[s] - t->target[goal * t->n_s + s]);
    for (int i = 0; i < n; i++) out->z[i] += e * t->h[s * n + i];
  }
  for (int i = 0; i < n; i++)
    memcpy(out->zz + (size_t)i * (size_t)all, t->q + (size_t)i * (size_t)n, (size_t)n * sizeof *t->q);
  if (u)
    expand_controls(t, z, u, out);
  else
    expand_terminal(t, goal, z, out);
  size_t n_u = (size_t)t->n_u, wide = (size_t)all;
  scale(out->z, wide, t->later[step]);
  scale(out->zz, wide * wide, t->later[step]);
  scale(out->u, u ? n_u : 0, t->later[step]);
  scale(out->uu, u ? n_u * n_u : 0, t->later[step]);
  scale(out->uz, u ? n_u * wide : 0, t->later[step]);
}

static void steer(void *user, const double *z, double *u) {
  const dv_cost *t = user;
  int n = t->n_z, m = t->n_u, goal = 0;
  memcpy(u, t->rest, (size_t)m * sizeof *u);
  if (!t->steers) return;
  if (t->goals > 1) look(t, z), nearest(t, &goal);
  const double *gain = t->gain + (size_t)goal * (size_t)(m * n),
               *centre = t->centre + (size_t)goal * (size_t)n;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) u[i] -= gain[i * n + j] * (z[j] - centre[j]);
}

dv_problem dv_cost_problem(dv_cost *t, int rows) {
  return (dv_problem){.n_z = t->n_z + t->n_u,
                      .n_u = t->n_u,
                      .steps = t->steps,
                      .rows = rows,
                      .low = t->low,
                      .high = t->high,
                      .user = t,
                      .move = move,
                      .derive = derive,
                      .cost = cost,
                      .expand = expand,
                      .steer = steer,
                      .n_w = t->n_w};
}
