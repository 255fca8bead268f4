/* The cross-entropy method for plans of controls: draws plans around a mean, keeps the elite, refits mean and
 * spread (dv_cross_entropy_plan). Each plan but the first goes over to the linear controller at a random
 * step, because fixed controls lead away from an unstable goal. With a risk the cost is taken over noisy
 * futures, the same for all plans. */
#include "control/optimal_control.h"

#include "math/random.h"

#include <string.h>

dv_cross_entropy *dv_cross_entropy_lay_out(dv_workspace *room, const dv_problem *problem, int count) {
  dv_cross_entropy *planner = dv_workspace_take(room, 1, sizeof *planner);
  dv_cross_entropy parts = {.problem = *problem, .count = count, .elites = count / 8 > 2 ? count / 8 : 2};
  size_t n_z = (size_t)problem->n_z, n_u = (size_t)problem->n_u, plan = (size_t)problem->steps * n_u;
  size_t rows = (size_t)problem->rows;
  size_t plans = (size_t)count;
  const struct {
    double **at;
    size_t size;
  } all[] = {{&parts.u, plan},
             {&parts.mean, plan},
             {&parts.deviation, plan},
             {&parts.drawn, plans * plan},
             {&parts.cost, plans},
             {&parts.z, rows * n_z},
             {&parts.next, rows * n_z},
             {&parts.row_u, rows * n_u},
             {&parts.noise, rows * (size_t)problem->n_w},
             {&parts.sum, plans},
             {&parts.squares, plans}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    *all[i].at = dv_workspace_take(room, all[i].size, sizeof(double));
  parts.order = dv_workspace_take(room, plans, sizeof(int));
  parts.until = dv_workspace_take(room, plans, sizeof(int));
  if (planner) *planner = parts;
  return planner;
}

static void begin(dv_cross_entropy *p, double spread) {
  const dv_problem *o = &p->problem;
  for (int t = 0; t < o->steps; t++)
    for (int i = 0; i < o->n_u; i++) {
      double half = 0.5 * (o->high[i] - o->low[i]);
      p->mean[t * o->n_u + i] = p->u[t * o->n_u + i];
      p->deviation[t * o->n_u + i] = spread * (isfinite(half) ? half : 1);
    }
}

/* Plan number 0 is the mean; the others have noise that changes slowly. */
static void draw(dv_cross_entropy *p, const dv_drawing *d, int round) {
  const dv_problem *o = &p->problem;
  int size = o->steps * o->n_u;
  double fresh = sqrt(1 - d->correlation * d->correlation);
  dv_random random = dv_random_at(d->seed, DV_STREAM_PLANS, (uint32_t)d->number, (uint32_t)round);
  memcpy(p->drawn, p->mean, (size_t)size * sizeof *p->drawn);
  p->until[0] = o->steps;
  for (int r = 1; r < p->count; r++) {
    double *u = p->drawn + (size_t)r * (size_t)size;
    p->until[r] = r == 1 ? 0 : (int)(dv_random_uniform(&random) * (o->steps + 1));
    for (int i = 0; i < o->n_u; i++) {
      double noise = dv_random_normal(&random);
      for (int t = 0; t < o->steps; t++) {
        int at = t * o->n_u + i;
        u[at] = p->mean[at] + p->deviation[at] * noise;
        noise = d->correlation * noise + fresh * dv_random_normal(&random);
      }
    }
  }
  for (int k = 0; k < p->count * o->steps; k++)
    dv_into_limits(p->drawn + (size_t)k * (size_t)o->n_u, o->low, o->high, o->n_u);
}

/* The noise of step t in one future, the same for all rows. */
static void set_noise(dv_cross_entropy *p, const dv_drawing *d, int future, int t, int rows) {
  int n = p->problem.n_w;
  dv_random random = dv_random_at(d->seed, DV_STREAM_FUTURES, (uint32_t)future, (uint32_t)t);
  for (int i = 0; i < n; i++) p->noise[i] = dv_random_normal(&random);
  for (int i = n; i < rows * n; i++) p->noise[i] = p->noise[i - n];
}

/* Moves rows, with the noise of a future or, if it is negative, without. */
static void go_on(dv_cross_entropy *p, const dv_drawing *d, int future, int t, int rows) {
  const dv_problem *o = &p->problem;
  if (future >= 0) set_noise(p, d, future, t, rows);
  o->move(o->user, rows, p->z, p->row_u, future >= 0 ? p->noise : NULL, p->next);
  memcpy(p->z, p->next, (size_t)rows * (size_t)o->n_z * sizeof *p->z);
}

/* Costs of plans first .. first + rows - 1 in one future. In a run without noise, the simple controller's
 * controls become part of the plan. */
static void follow(dv_cross_entropy *p, const double *from, const dv_drawing *d, int future, int first,
                   int rows) {
  const dv_problem *o = &p->problem;
  size_t n_z = (size_t)o->n_z, n_u = (size_t)o->n_u, size = (size_t)o->steps * n_u;
  for (int r = 0; r < rows; r++) {
    memcpy(p->z + (size_t)r * n_z, from, n_z * sizeof *from);
    p->cost[first + r] = 0;
  }
  for (int t = 0; t < o->steps; t++) {
    for (int r = 0; r < rows; r++) {
      double *u = p->row_u + (size_t)r * n_u,
             *drawn = p->drawn + (size_t)(first + r) * size + (size_t)t * n_u;
      memcpy(u, drawn, n_u * sizeof *u);
      if (o->steer && t >= p->until[first + r]) {
        o->steer(o->user, p->z + (size_t)r * n_z, u);
        dv_into_limits(u, o->low, o->high, o->n_u);
        if (future < 0) memcpy(drawn, u, n_u * sizeof *u);
      }
      p->cost[first + r] += o->cost(o->user, t, p->z + (size_t)r * n_z, u);
    }
    go_on(p, d, future, t, rows);
  }
  for (int r = 0; r < rows; r++)
    p->cost[first + r] += o->cost(o->user, o->steps, p->z + (size_t)r * n_z, NULL);
}

static double cost_of_futures(double sum, double squares, const dv_drawing *d) {
  double mean = sum / d->futures, variance = squares / d->futures - mean * mean;
  return mean + d->risk * (variance > 0 ? sqrt(variance) : variance < 0 ? 0 : variance);
}

static void judge(dv_cross_entropy *p, const double *from, const dv_drawing *d, int first, int rows) {
  for (int f = 0; f < d->futures; f++) {
    follow(p, from, d, f, first, rows);
    for (int r = first; r < first + rows; r++) {
      p->sum[r] = (f ? p->sum[r] : 0) + p->cost[r];
      p->squares[r] = (f ? p->squares[r] : 0) + p->cost[r] * p->cost[r];
    }
  }
  follow(p, from, d, -1, first, rows);
  for (int r = first; r < first + rows && d->futures; r++)
    p->cost[r] = cost_of_futures(p->sum[r], p->squares[r], d);
}

/* Puts the elites first in `order`, the best in front; costs that are not finite count as worst. */
static void sort(dv_cross_entropy *p) {
  for (int r = 0; r < p->count; r++) p->order[r] = r;
  for (int r = 0; r < p->count; r++)
    if (!isfinite(p->cost[r])) p->cost[r] = INFINITY;
  for (int i = 0; i < p->elites && i < p->count; i++)
    for (int j = i + 1; j < p->count; j++)
      if (p->cost[p->order[j]] < p->cost[p->order[i]]) {
        int swap = p->order[i];
        p->order[i] = p->order[j];
        p->order[j] = swap;
      }
}

static void refit(dv_cross_entropy *p) {
  int size = p->problem.steps * p->problem.n_u, count = 0;
  while (count < p->elites && isfinite(p->cost[p->order[count]])) count++;
  if (count < 2) return;
  for (int k = 0; k < size; k++) {
    double sum = 0, squares = 0;
    for (int e = 0; e < count; e++) sum += p->drawn[(size_t)p->order[e] * (size_t)size + (size_t)k];
    double mean = sum / count;
    for (int e = 0; e < count; e++) {
      double off = p->drawn[(size_t)p->order[e] * (size_t)size + (size_t)k] - mean;
      squares += off * off;
    }
    p->mean[k] = mean;
    p->deviation[k] = sqrt(squares / count);
  }
}

dv_plan dv_cross_entropy_plan(dv_cross_entropy *p, const double *z, const dv_drawing *drawing,
                              const dv_effort *effort) {
  const dv_problem *o = &p->problem;
  size_t size = (size_t)o->steps * (size_t)o->n_u;
  dv_plan plan = {.cost = INFINITY, .end = DV_PLAN_FAILED};
  begin(p, drawing->spread);
  for (int round = 0; round < drawing->rounds; round++) {
    draw(p, drawing, round);
    for (int first = 0; first < p->count; first += o->rows)
      judge(p, z, drawing, first, p->count - first < o->rows ? p->count - first : o->rows);
    sort(p);
    plan.iterations++;
    if (p->cost[p->order[0]] < plan.cost) {
      plan.cost = p->cost[p->order[0]];
      plan.end = DV_PLAN_CAPPED;
      memcpy(p->u, p->drawn + (size_t)p->order[0] * size, size * sizeof *p->u);
    }
    refit(p);
    if (effort->late && effort->late(effort->user)) break;
  }
  return plan;
}

double dv_cross_entropy_score(dv_cross_entropy *p, const double *z, const dv_drawing *d,
                              dv_control_fn *control, void *user) {
  const dv_problem *o = &p->problem;
  double sum = 0, squares = 0;
  for (int f = 0; f < d->futures; f++) {
    double cost = 0;
    memcpy(p->z, z, (size_t)o->n_z * sizeof *z);
    for (int t = 0; t < o->steps; t++) {
      control(user, t, p->z, p->row_u);
      cost += o->cost(o->user, t, p->z, p->row_u);
      go_on(p, d, f, t, 1);
    }
    cost += o->cost(o->user, o->steps, p->z, NULL);
    sum += cost, squares += cost * cost;
  }
  return cost_of_futures(sum, squares, d);
}
