/* What to think of a model: better or worse than what one would do otherwise, and what to try. */
#include "evaluate/verdict.h"

#include "base/arithmetic.h"
#include "base/locale.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Ratios of errors within this factor of 1 count as equal. */
static const double same = 1.05;

/* ---- Comparing ---- */

typedef struct comparison {
  dvbf_way with;
  double ratio; /* error of the other over that of the learned model: above 1 where it is better */
  int sign;     /* 1: better, -1: worse, 0: as good */
} comparison;

/* Whether the logarithm of the ratio differs from 0 by more than two standard errors over the blocks. */
static bool differs(const dv_blocks *blocks, dvbf_way with) {
  double n = 0, sum = 0, squares = 0;
  for (int b = 0; b < DV_ROLLING_BLOCKS; b++) {
    double ours = blocks->square[DVBF_BY_LEARNED][b], other = blocks->square[with][b];
    if (!(ours > 0) || !(other > 0) || !isfinite(ours) || !isfinite(other)) continue;
    double apart = 0.5 * dv_log(other / ours);
    n += 1, sum += apart, squares += apart * apart;
  }
  if (n < 4) return true; /* too few to tell: the ratio itself decides */
  double mean = sum / n, variance = fmax(0, squares / n - mean * mean) / (n - 1);
  return mean * mean > 4 * variance;
}

static comparison compare(const dvbf_rolling *scores, const dv_blocks *blocks, dvbf_way with) {
  double ours = scores->score[DVBF_BY_LEARNED].rmse, other = scores->score[with].rmse;
  comparison c = {with, isfinite(ours) ? (ours > 0 ? other / ours : INFINITY) : 0, 0};
  if (isfinite(ours) && !(ours > 0) && !(other > 0)) c.ratio = 1;
  if (c.ratio > 1 / same && c.ratio < same) return c;
  if (c.ratio == 0 || differs(blocks, with)) c.sign = c.ratio > 1 ? 1 : -1;
  return c;
}

static bool known(const dvbf_rolling *scores) {
  return scores->origins && isfinite(scores->score[DVBF_BY_MEAN].rmse) &&
         !isnan(scores->score[DVBF_BY_LEARNED].rmse);
}

/* The best of those that one could do instead. */
static dvbf_way rival(const dvbf_rolling *scores) {
  dvbf_way best = DVBF_BY_MEAN;
  for (int way = DVBF_BY_LAST; way < DVBF_BY_LEARNED; way++)
    if (scores->score[way].rmse < scores->score[best].rmse) best = way;
  return best;
}

/* ---- Likelihoods ---- */

/* Data of 0 and 1, categories and counts that noise drives, without controls, are judged by their likelihood.
 */
static bool by_likelihood(const dvbf_verdict *v, const dv_evidence *e) {
  return v->nats.frames && !e->n_u && !isnan(v->nats.learned);
}

/* 1: the model needs fewer nats than another way, -1: more, 0: neither by 1 % and two standard errors over
 * the blocks. */
static int fewer_nats(const dv_nats *nats, const double *blocks, double of_other) {
  double n = 0, sum = 0, squares = 0, ours = nats->per_frame.learned;
  if (isnan(of_other) || fabs(of_other - ours) <= 0.01 * of_other) return 0;
  for (int b = 0; b < DV_ROLLING_BLOCKS; b++) {
    double apart = nats->learned[b] - blocks[b];
    if (apart == 0 || !isfinite(apart)) continue; /* no sequence is in it */
    n += 1, sum += apart, squares += apart * apart;
  }
  double mean = sum / fmax(1, n), variance = fmax(0, squares / fmax(1, n) - mean * mean) / fmax(1, n - 1);
  if (n >= 4 && mean * mean <= 4 * variance) return 0;
  return ours < of_other ? 1 : -1;
}

/* ---- Usefulness ---- */

/* A free run is judged by the mean. Where it is as good as that, since noise drives the data, the model must
 * be better one step ahead than both the mean and the last value. */
static bool is_useful(const dvbf_verdict *v, const dv_evidence *e) {
  if (by_likelihood(v, e)) return fewer_nats(&e->nats, e->nats.mean, v->nats.mean) > 0;
  const dvbf_rolling *far = &v->free_run, *near = &v->one_step;
  if (known(far)) {
    int sign = compare(far, &e->free_run, DVBF_BY_MEAN).sign;
    if (sign) return sign > 0;
  }
  if (!known(near)) return !known(far);
  return compare(near, &e->one_step, DVBF_BY_MEAN).sign > 0 &&
         compare(near, &e->one_step, DVBF_BY_LAST).sign > 0;
}

/* ---- Words ---- */

typedef struct text {
  char *to;
  size_t size;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  DV_PLAIN_NUMBERS;
  int n = vsnprintf(t->to, t->size, format, arguments);
  va_end(arguments);
  size_t used = n < 0 ? 0 : (size_t)n < t->size ? (size_t)n : t->size - 1;
  t->to += used;
  t->size -= used;
}

static const char *const names[] = {"the mean", "repeating the last value", "the best linear model"};

/* "free run 2.1 times better than the best linear model"; `named`: the text has named the other already. */
static void put_comparison(text *t, const char *use, comparison c, bool named) {
  double times = c.ratio > 1 ? c.ratio : 1 / c.ratio;
  put(t, "%s ", use);
  if (!c.sign)
    put(t, named ? "as good" : "as good as ");
  else if (times > 1000)
    put(t, "more than 1000 times %s%s", c.sign > 0 ? "better" : "worse", named ? "" : " than ");
  else
    put(t, times < 10 ? "%.1f times %s%s" : "%.0f times %s%s", times, c.sign > 0 ? "better" : "worse",
        named ? "" : " than ");
  if (!named) put(t, "%s", names[c.with]);
}

/* What may help, as far as the data tell. */
static void put_advice(const dvbf_verdict *v, const dv_evidence *e, text *t) {
  double slow = v->one_step.score[DVBF_BY_LAST].rmse, mean = v->free_run.score[DVBF_BY_MEAN].rmse;
  if (v->free_run.score[DVBF_BY_LINEAR].rmse * same < mean) put(t, "--model linear, which is better, ");
  if (!e->n_u) put(t, "declare what drives the system with --inputs, ");
  if (slow < 0.02 && !by_likelihood(v, e))
    put(t, "a longer sample time, as a step changes x by only %.2g of its deviation, ", slow);
  if (e->frames < 1000) put(t, "more data than these %zu steps, ", e->frames);
  if (e->updates < 1000) put(t, "more updates than %zu, ", e->updates);
  put(t, "another --seed or a larger --latent");
}

/* "3.9 nats per frame, where a Markov chain for each column has 8.1 and independent columns have 19.3" */
static void put_nats(text *t, const dvbf_verdict *v, const dv_evidence *e) {
  const dvbf_nats *n = &v->nats;
  if (!v->useful) {
    put(t,
        "NOT better than independent columns (%.3g nats per frame, and theirs are %.3g): do not use this "
        "model; "
        "what to try: ",
        n->learned, n->mean);
    put_advice(v, e, t);
    return;
  }
  put(t, "%.3g nats per frame, where ", n->learned);
  if (!isnan(n->last)) put(t, "a Markov chain for each column has %.3g and ", n->last);
  put(t, "independent columns have %.3g", n->mean);
  if (fewer_nats(&e->nats, e->nats.last, n->last) < 0) put(t, ": the chains are better");
}

static void put_sentence(dvbf_verdict *v, const dv_evidence *e) {
  text t = {v->sentence, sizeof v->sentence};
  const dvbf_rolling *far = &v->free_run, *near = &v->one_step;
  if (by_likelihood(v, e)) {
    put_nats(&t, v, e);
    return;
  }
  if (!known(far) && !known(near)) {
    put(&t,
        e->timeless
            ? "nothing to judge: a %s does not predict"
            : "nothing to judge: the sequences are too short for a %s to predict, or no column varies",
        e->model);
    return;
  }
  if (!v->useful) {
    put(&t, "NOT better than the mean: do not use this model; what to try: ");
    put_advice(v, e, &t);
    return;
  }
  comparison of_far = {0}, of_near = {0};
  if (known(far)) of_far = compare(far, &e->free_run, rival(far));
  if (known(near)) of_near = compare(near, &e->one_step, rival(near));
  if (known(far)) put_comparison(&t, "free run", of_far, false);
  if (known(far) && known(near)) put(&t, ", ");
  if (known(near)) put_comparison(&t, "one step", of_near, known(far) && of_far.with == of_near.with);
  if (known(far) && known(near) && compare(far, &e->free_run, DVBF_BY_MEAN).sign <= 0)
    put(&t, ": use it to filter, not to simulate");
}

void dv_verdict_decide(dvbf_verdict *v, const dv_evidence *e) {
  v->useful = is_useful(v, e);
  put_sentence(v, e);
}
