/* The density categorical: x has one or several groups of columns, each with a single 1. The network gives
 * scores s; the output is ln p of each value being the 1 of its group,
 *
 *   l_i = s_i - ln sum_{j in group} exp s_j        ln p(x) = sum_i x_i l_i
 *
 * A group whose 1 is missing does not count. */
#include "model/density.h"

#include "base/memory.h"
#include "math/portable.h"
#include "math/random.h"
#include "ops/emit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Groups ---- */

/* Iterates over the groups of columns in the setting `categories`. */
typedef struct group {
  const char *rest;
  int first, size, n_x;
} group;

static group groups_of(const dvbf_model *m) {
  return (group){.rest = m->settings->categories, .n_x = m->n_x};
}

/* Steps to the next group, or to the first; false behind the last. */
static bool next(group *g) {
  g->first += g->size;
  int left = g->n_x - g->first;
  char *end;
  long size = *g->rest ? strtol(g->rest, &end, 10) : g->first ? 0 : left;
  if (*g->rest) g->rest = *end == ',' ? end + 1 : "";
  g->size = size > left ? left : (int)size;
  return g->size > 0;
}

/* Whether the setting is empty or whole numbers from 2 on that add up to the columns. */
static bool fits(const dvbf_model *m) {
  const char *text = m->settings->categories;
  long sum = 0;
  char *end;
  for (const char *at = text; *at; at = *end ? end + 1 : end) {
    long size = strtol(at, &end, 10);
    if (end == at || size < 2 || size > m->n_x || (*end && (*end != ',' || !end[1]))) return false;
    sum += size;
  }
  return *text ? sum == m->n_x : m->n_x > 1;
}

static void first_columns(const dvbf_model *m, int *first) {
  for (group g = groups_of(m); next(&g);)
    for (int i = 0; i < g.size; i++) first[g.first + i] = g.first;
}

/* ---- ln of the probabilities of each group ---- */

/* in: scores; out: l. */
static void softmax_forward(const dvbf_op *op, dvbf_run *run) {
  const group *groups = op->data;
  const dvbf_real *s = dv_at(run, op->in[0]);
  dvbf_real *l = dv_at(run, op->out[0]);
  int n = op->in[0].cols, rows = op->in[0].steps * op->in[0].rows;
  for (int r = 0; r < rows; r++, s += n, l += n)
    for (const group *g = groups; g->size; g++) {
      double most = -INFINITY, sum = 0;
      for (int i = g->first; i < g->first + g->size; i++) most = fmax(most, (double)s[i]);
      for (int i = g->first; i < g->first + g->size; i++) sum += dv_exp((double)s[i] - most);
      for (int i = g->first; i < g->first + g->size; i++)
        l[i] = (dvbf_real)((double)s[i] - most - dv_log(sum));
    }
}

/* d s_i += d l_i - exp(l_i) sum_j d l_j */
static void softmax_backward(const dvbf_op *op, dvbf_run *run) {
  const group *groups = op->data;
  const dvbf_real *l = dv_at(run, op->out[0]), *d_l = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d = dvbf_gradient_at(run, op->in[0]);
  int n = op->in[0].cols, rows = op->in[0].steps * op->in[0].rows;
  for (int r = 0; r < rows; r++, l += n, d_l += n, d += n)
    for (const group *g = groups; g->size; g++) {
      double sum = 0;
      for (int i = g->first; i < g->first + g->size; i++) sum += (double)d_l[i];
      for (int i = g->first; i < g->first + g->size; i++)
        d[i] += (dvbf_real)((double)d_l[i] - dv_exp((double)l[i]) * sum);
    }
}

static void softmax_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_value s = op->in[0], l = op->out[0], most = dv_emit_room(code, s.steps, 1),
             sum = dv_emit_room(code, s.steps, 1);
  for (const group *g = op->data; g->size; g++) {
    dvbf_value from = s, to = l;
    from.offset += (size_t)g->first, to.offset += (size_t)g->first;
    from.cols = to.cols = g->size;
    dvbf_expr apart = dv_minus(code, dv_read(code, from), dv_read_column(code, most));
    dvbf_code_most(code, dvbf_place_of(most), s.steps, g->size, dv_read(code, from));
    dvbf_code_sum(code, dvbf_place_of(sum), s.steps, g->size, dvbf_code_unary(code, DVBF_EXP_OF, apart));
    dv_emit(code, to, dv_minus(code, apart, dvbf_code_unary(code, DVBF_LOG_OF, dv_read_column(code, sum))));
  }
}

static const dvbf_op_class softmax_class = {"log softmax of groups", softmax_forward, softmax_backward,
                                            softmax_emit};

static double ln_p(double x, double l) {
  return x * l;
}

static double slope(double x, double l) {
  return x;
}

enum { MOST_GROUPS = DV_TEXT / 2 + 2 };

static void record_categorical(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask) {
  group groups[MOST_GROUPS] = {{0}}, g = groups_of(m);
  size_t count = 0;
  if (!fits(m))
    dvbf_refuse(p->graph,
                "categories = %.100s: must be the number of columns of each group, whole numbers from 2 "
                "separated by commas, which add up to the %d columns of x; empty: one group",
                m->settings->categories, m->n_x);
  for (; next(&g); count++) groups[count] = (group){.first = g.first, .size = g.size};
  dv_record_output(p, m, hidden);
  dvbf_value scores = p->output;
  p->output = dvbf_slab(p->graph, p->steps, m->n_x);
  dvbf_record(p->graph, &softmax_class, 1, &scores, 1, &p->output, groups, (count + 1) * sizeof *groups);
  dv_record_values(p->graph, p->ln_p, p->x, p->output, mask, (dv_value_density){ln_p, slope});
}

static double ln_value(double x, double mean) {
  return x * dv_log(mean);
}

/* ---- x ---- */

/* A category that never comes starts as a rare one. */
static double first_output(const dv_train_settings *s, double mean) {
  return dv_log(fmax(mean, 0.001));
}

static dvbf_expr emit_mean(dvbf_code *code, dvbf_expr output) {
  return dvbf_code_unary(code, DVBF_EXP_OF, output);
}

static void draw_category(const dv_density_frame *f, float *x) {
  uint32_t words[DV_DENSITY_CHUNK];
  int chunk = -1;
  for (group g = groups_of(f->model); next(&g);) {
    if (g.first / DV_DENSITY_CHUNK != chunk) {
      chunk = g.first / DV_DENSITY_CHUNK;
      dv_density_words(f, (size_t)chunk * DV_DENSITY_CHUNK, words);
    }
    double u = dv_uniform_of(words[g.first % DV_DENSITY_CHUNK]);
    int i = g.first, last = g.first + g.size - 1;
    memset(x + g.first, 0, (size_t)g.size * sizeof *x);
    while (i < last && (u -= (double)f->mean[i]) > 0) i++;
    x[i] = 1;
  }
}

/* ---- Data ---- */

static int refuses(const dvbf_model *m, const float *x) {
  for (group g = groups_of(m); next(&g);) {
    int ones = 0, missing = 0;
    for (int i = g.first; i < g.first + g.size; i++) {
      if (x[i] != 0 && x[i] != 1 && !isnan(x[i])) return i;
      ones += x[i] == 1;
      missing += isnan(x[i]);
    }
    if (ones > 1 || (!ones && !missing)) return g.first;
  }
  return -1;
}

/* Possible ends of groups: columns up to which all frames have the same sum. */
typedef struct ends {
  size_t n;
  int *sum; /* [n] of the columns up to this one; negative: it is not the same in all frames */
  bool begun;
} ends;

/* Fails if the sum of all columns differs: then there are no groups. */
static dvbf_status look_at(void *user, size_t sequence, size_t step, const float *x, dvbf_error *error) {
  ends *e = user;
  int sum = 0;
  for (size_t i = 0; i < e->n; i++)
    if (isnan(x[i])) return DVBF_OK;
  for (size_t i = 0; i < e->n; i++) {
    sum += (int)x[i];
    if (!e->begun)
      e->sum[i] = sum;
    else if (e->sum[i] != sum)
      e->sum[i] = -1;
  }
  e->begun = true;
  return e->sum[e->n - 1] < 0 ? DVBF_FORMAT : DVBF_OK;
}

/* Sizes of the groups as text; 0: there are none. A column that is always 0 belongs to the group before it.
 */
static size_t write_groups(const ends *e, char *text, size_t size) {
  size_t count = 0, first = 0, used = 0;
  int before = 0;
  for (size_t i = 0; i < e->n && e->begun; i++) {
    if (e->sum[i] != before + 1 || (i + 1 < e->n && e->sum[i + 1] == e->sum[i])) continue;
    if (i == first || used + 16 > size) return 0;
    used += (size_t)snprintf(text + used, size - used, "%s%zu", count++ ? "," : "", i + 1 - first);
    first = i + 1;
    before = e->sum[i];
  }
  return first == e->n ? count : 0;
}

/* Only binary data are examined. */
static size_t find_groups(const dvbf_sequences *train, char *text, size_t size) {
  ends e = {.n = train->n_x, .sum = dv_calloc(train->n_x, sizeof *e.sum)};
  size_t count = 0;
  if (e.sum && !dv_visit_rows(train, NULL, e.n, look_at, &e, NULL)) count = write_groups(&e, text, size);
  dv_free(e.sum);
  return count;
}

static const char *suits(const dvbf_sequences *train, const dv_statistics *x) {
  char text[DV_TEXT];
  return x->binary && find_groups(train, text, sizeof text) ? "in every frame one value of each group is 1"
                                                            : NULL;
}

static void choose(const dvbf_sequences *train, const dv_statistics *x, char *value, size_t size) {
  if (!x->binary || find_groups(train, value, size) < 2) *value = 0;
}

const dv_density dv_categorical = {.record = record_categorical,
                                   .mean = exp,
                                   .joint = true,
                                   .first_output = first_output,
                                   .emit_mean = emit_mean,
                                   .emit_variance = dv_density_emit_bits,
                                   .add_variance = dv_density_bits_variance,
                                   .draw = draw_category,
                                   .scales = dv_density_unscaled,
                                   .suits = suits,
                                   .setting = "categories",
                                   .choose = choose,
                                   .refuses = refuses,
                                   .ln_value = ln_value,
                                   .groups = first_columns,
                                   .needs = "one 1 in each group of columns, and 0 elsewhere"};
