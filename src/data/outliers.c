/* Outliers: single values so far from their column that standardising would flatten the rest
 * (dv_outliers_find), and their removal (dv_outliers_remove). Passes over the data leave out the outermost
 * values until the deviation of the remaining ones decides. Chunks are joined in order, so ranks find the
 * same. */
#include "data/checks.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>

/* A column under test. Values are left out from the outside until they are outliers of the rest. */
typedef struct trial {
  dv_outlier out;                      /* the column, and how many are left out of which the first is this */
  double centre, cut;                  /* values further than `cut` from `centre` are left out */
  double shift, sum, squares;          /* of the others, about a value of them */
  double least, most;                  /* of the others */
  double nearest_below, nearest_above; /* of those left out */
  uint64_t inside;
} trial;

typedef struct search {
  trial *list, *part; /* of all rows; of those of one chunk */
  size_t count;       /* of columns not yet decided */
} search;

/* ---- One pass ---- */

static void leave_out(trial *t, size_t sequence, size_t step, double value) {
  if (!t->out.count++) {
    t->out.sequence = sequence;
    t->out.step = step;
    t->out.value = value;
  }
  if (value < t->centre)
    t->nearest_below = fmax(t->nearest_below, value);
  else
    t->nearest_above = fmin(t->nearest_above, value);
}

static void take_in(trial *t, double value) {
  if (!t->inside++) t->shift = value;
  double e = value - t->shift;
  t->sum += e;
  t->squares += e * e;
  t->least = fmin(t->least, value);
  t->most = fmax(t->most, value);
}

static dvbf_status tally(void *user, size_t sequence, size_t step, const float *row, dvbf_error *error) {
  search *all = user;
  for (size_t i = 0; i < all->count; i++) {
    trial *t = &all->part[i];
    double value = (double)row[t->out.column];
    if (isnan(value)) continue;
    if (fabs(value - t->centre) > t->cut)
      leave_out(t, sequence, step, value);
    else
      take_in(t, value);
  }
  return DVBF_OK;
}

static void begin_chunk(void *user) {
  search *all = user;
  for (size_t i = 0; i < all->count; i++) {
    const trial *asked = &all->list[i]; /* the same in every chunk */
    all->part[i] = (trial){.out = {.column = asked->out.column},
                           .centre = asked->centre,
                           .cut = asked->cut,
                           .least = INFINITY,
                           .most = -INFINITY,
                           .nearest_below = -INFINITY,
                           .nearest_above = INFINITY};
  }
}

/* Sums about the shift of `to`: sum of (e + d) and of (e + d)^2, where the shifts are d apart. */
static void join(trial *to, const trial *from) {
  double n = (double)from->inside, apart = from->shift - to->shift;
  if (from->inside && !to->inside) {
    to->shift = from->shift;
    apart = 0;
  }
  if (from->inside) {
    to->squares += from->squares + 2 * apart * from->sum + n * apart * apart;
    to->sum += from->sum + n * apart;
  }
  size_t outside = to->out.count + from->out.count;
  if (!to->out.count) to->out = from->out;
  to->out.count = outside;
  to->least = fmin(to->least, from->least);
  to->most = fmax(to->most, from->most);
  to->nearest_below = fmax(to->nearest_below, from->nearest_below);
  to->nearest_above = fmin(to->nearest_above, from->nearest_above);
  to->inside += from->inside;
}

static void join_chunk(void *user, const void *part, bool first) {
  search *all = user;
  const trial *from = part;
  for (size_t i = 0; i < all->count; i++) {
    if (first)
      all->list[i] = from[i];
    else
      join(&all->list[i], &from[i]);
  }
}

/* ---- Choosing values ---- */

/* Values beyond half of the largest distance are left out next, if these few may be most of the variance. */
static bool narrow(trial *t, double n, double mean, double variance, double least, double most) {
  double far = fmax(most - mean, mean - least), rare = (double)dv_rare((uint64_t)n);
  t->centre = mean;
  t->cut = far / 2;
  return far * far * 4 * rare > n * variance;
}

/* After a pass: accepts what was left out if it is an outlier, and narrows; false: it is decided. */
static bool conclude(trial *t, double times, dv_outliers *found) {
  double n = (double)t->inside, mean = t->shift + t->sum / n;
  double variance = fmax(0, t->squares / n - t->sum / n * (t->sum / n)), deviation = sqrt(variance);
  if (t->out.count > dv_rare(t->inside + t->out.count) || t->inside < 2 || !dv_varies(mean, variance))
    return false;
  double away = fmin(t->nearest_above - mean, mean - t->nearest_below) / deviation;
  if (t->out.count && away >= times) {
    size_t i = 0;
    while (i < found->count && found->list[i].column != t->out.column) i++;
    t->out.times = away;
    t->out.low = mean - times * deviation;
    t->out.high = mean + times * deviation;
    found->list[i] = t->out;
    if (i == found->count) found->count++;
  }
  return narrow(t, n, mean, variance, t->least, t->most);
}

dvbf_status dv_outliers_find(dv_outliers *out, const dvbf_sequences *s, bool of_u, double times,
                             const dv_statistics *x, dvbf_error *error) {
  enum { MOST_PASSES = 16 };
  size_t width = of_u ? s->n_u : s->n_x;
  *out = (dv_outliers){0};
  if (!width || (x->low >= 0 && x->high <= 1)) return DVBF_OK;
  search all = {.list = dv_calloc(width, sizeof *all.list), .part = dv_calloc(width, sizeof *all.part)};
  out->list = dv_calloc(width, sizeof *out->list);
  bool made = all.list && all.part && out->list;
  dvbf_status status = made ? DVBF_OK : dv_fail_memory(error, "looking for outliers");
  for (size_t k = 0; k < width && !status; k++) {
    trial t = {.out = {.column = k}};
    if (x->seen[k] > 2 && dv_statistics_vary(x, k) &&
        narrow(&t, (double)x->seen[k], x->mean[k], x->variance[k], x->least[k], x->most[k]))
      all.list[all.count++] = t;
  }
  dv_survey survey = {.user = &all, .begin = begin_chunk, .row = tally, .join = join_chunk, .part = all.part};
  for (int pass = 0; pass < MOST_PASSES && !status && all.count; pass++) {
    size_t left = 0;
    survey.bytes = all.count * sizeof *all.part;
    status = dv_survey_rows(s, of_u ? s->u : NULL, width, &survey, error);
    for (size_t i = 0; i < all.count && !status; i++)
      if (conclude(&all.list[i], times, out)) all.list[left++] = all.list[i];
    all.count = left;
  }
  DV_FREE(all.list, all.part);
  if (!status && !of_u) status = dv_sequences_intact(s, error);
  if (status) dv_free(out->list), *out = (dv_outliers){0};
  return status;
}

/* ---- Removing ---- */

static bool is_outlier(const dv_outlier *o, float value) {
  return !((double)value >= o->low && (double)value <= o->high);
}

/* The value before or, at the start of a sequence, the first good one after it. */
static void bridge(const dvbf_sequences *s, size_t sequence, const dv_outlier *o) {
  size_t steps = dvbf_sequence_length(s, sequence), n = s->n_u, first = 0;
  float *u = s->u + dvbf_sequence_start(s, sequence) * n + o->column;
  while (first < steps && is_outlier(o, u[first * n])) first++;
  float last = first < steps ? u[first * n] : (float)((o->low + o->high) / 2);
  for (size_t t = 0; t < steps; t++) {
    if (is_outlier(o, u[t * n])) u[t * n] = last;
    last = u[t * n];
  }
}

static void clear(const dvbf_sequences *s, size_t sequence, const dv_outlier *o) {
  float *x = s->x + dvbf_sequence_start(s, sequence) * s->n_x + o->column;
  for (size_t t = 0; t < dvbf_sequence_length(s, sequence); t++)
    if (is_outlier(o, x[t * s->n_x])) x[t * s->n_x] = NAN;
}

/* A source then reads them as missing. */
static dvbf_status limit(dvbf_source *source, size_t width, const dv_outliers *outliers, dvbf_error *error) {
  float *limits = dv_calloc(2 * width, sizeof *limits);
  if (!limits) return dv_fail_memory(error, "leaving out outliers");
  for (size_t k = 0; k < width; k++) limits[k] = -INFINITY, limits[width + k] = INFINITY;
  for (size_t i = 0; i < outliers->count; i++) {
    const dv_outlier *o = &outliers->list[i];
    limits[o->column] = (float)o->low;
    limits[width + o->column] = (float)o->high;
  }
  dv_free(source->limits);
  source->limits = limits;
  return DVBF_OK;
}

dvbf_status dv_outliers_remove(const dv_outliers *outliers, dvbf_sequences *s, bool of_u, dvbf_error *error) {
  if (!outliers->count) return DVBF_OK;
  if (!of_u) s->gaps = true;
  dv_facts_forget(s->facts);
  if (!of_u && s->source) return limit(s->source, s->n_x, outliers, error);
  for (size_t i = 0; i < outliers->count; i++)
    for (size_t k = 0; k < s->count; k++)
      of_u ? bridge(s, k, &outliers->list[i]) : clear(s, k, &outliers->list[i]);
  return DVBF_OK;
}
