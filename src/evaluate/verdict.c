/* The verdict on a model (dvbf_verdict_new): errors one step ahead and in free runs compared with the mean,
 * the last value and the best linear model, and one sentence (dv_verdict_decide). A difference counts if it
 * is above 5 % and two standard errors over parts of the predictions. Binary, categorical and count data
 * driven by noise are judged by likelihood. */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "evaluate/rolling.h"
#include "math/portable.h"
#include "model/batches.h"
#include "settings_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct judge {
  const dvbf_model *model;
  const dvbf_data *data;
  const dvbf_sequences *sequences;
  dv_estimate_request ask;
  dv_baseline yardstick;
  dv_evidence evidence;
  dvbf_verdict *out;
} judge;

/* ---- Measuring ---- */

static dvbf_status choose_split(judge *j, dvbf_error *error) {
  static const char *const splits[] = {"test", "valid", "train"};
  const dvbf_sequences *all[] = {&j->data->test, &j->data->valid, &j->data->train};
  for (int i = 0; i < 3 && !*j->out->split; i++)
    if (all[i]->count && (!j->sequences || j->sequences == all[i])) {
      j->sequences = all[i];
      snprintf(j->out->split, sizeof j->out->split, "%s", splits[i]);
    }
  return j->sequences && j->sequences->count
             ? dv_model_takes(j->model, j->sequences, error)
             : dv_fail(error, DVBF_FORMAT, "there are no sequences to judge the model by");
}

static dvbf_status name_columns(judge *j, dvbf_error *error) {
  dvbf_verdict *v = j->out;
  v->n_x = (size_t)j->model->n_x;
  v->names = dv_calloc(v->n_x, sizeof *v->names);
  if (!v->names) return dv_fail_memory(error, "judging the model");
  for (size_t k = 0; k < v->n_x; k++)
    if (j->data->x_names)
      memcpy(v->names[k], j->data->x_names[k], sizeof *v->names);
    else
      snprintf(v->names[k], sizeof *v->names, "x%zu", k);
  dv_names_tell_apart((char *)v->names, v->n_x, sizeof *v->names, sizeof *v->names);
  return DVBF_OK;
}

/* Both uses, one after the other, as their samples take memory. */
static dvbf_status roll(judge *j, dv_blocks *blocks, dvbf_rolling *out, bool free_run, dvbf_error *error) {
  dv_rolling r;
  dvbf_status status = dv_rolling_run(&r, j->model, j->sequences, free_run, &j->yardstick, &j->ask, error);
  if (!status && !dv_rolling_scores(out, &r, &j->yardstick))
    status = dv_fail_memory(error, "judging the model");
  if (!status && !free_run) status = dv_whiteness_of(&j->out->whiteness, &r, error);
  *blocks = r.blocks;
  dv_rolling_clear(&r);
  return status;
}

static void free_scores(dvbf_rolling *r) {
  for (int way = 0; way < DVBF_WAYS; way++)
    DV_FREE(r->score[way].rmse_by_column, r->score[way].fit_by_column);
  dv_free(r->ranks);
}

void dvbf_verdict_free(dvbf_verdict *v) {
  if (!v) return;
  free_scores(&v->one_step);
  free_scores(&v->free_run);
  DV_FREE(v->whiteness.autocorrelation, v->whiteness.p, v->whiteness.histogram, v->names, v);
}

dvbf_status dvbf_verdict_new(dvbf_verdict **out, const dvbf_model *model, const dvbf_data *data,
                             const dvbf_sequences *sequences, const dvbf_settings *settings,
                             dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  const dv_evaluate_settings *o = dv_settings_evaluate(settings, error);
  if (!o) return DVBF_ARGUMENT;
  judge j = {.model = model,
             .data = data,
             .sequences = sequences,
             .ask = {.observe = (size_t)o->observe,
                     .seed = (uint64_t)o->seed,
                     .threads = (unsigned)o->threads,
                     .interrupt = dv_settings_interrupt(settings),
                     .ranks = dv_settings_ranks(settings)},
             .evidence = {.n_u = (size_t)model->n_u,
                          .frames = dv_sequences_frames(&data->train),
                          .updates = (size_t)model->updates,
                          .model = model->type->name,
                          .timeless = model->type->timeless},
             .out = dv_calloc(1, sizeof *j.out)};
  if (!j.out) return dv_fail_memory(error, "judging the model");
  dvbf_status status = choose_split(&j, error);
  if (!status) status = dv_ranks_use_alike(j.ask.ranks, settings, model, j.sequences, error);
  if (!status) status = name_columns(&j, error);
  if (!status) status = dv_baseline_of(&j.yardstick, model, data, j.sequences, error);
  if (!status) status = roll(&j, &j.evidence.one_step, &j.out->one_step, false, error);
  if (!status) status = roll(&j, &j.evidence.free_run, &j.out->free_run, true, error);
  if (!status)
    status = dv_discrete_likelihood_of(
        &j.evidence.nats, model, data->train.count ? &data->train : j.sequences, j.sequences, &j.ask, error);
  if (!status) {
    j.out->nats = j.evidence.nats.per_frame;
    dv_verdict_decide(j.out, &j.evidence);
  }
  dv_baseline_clear(&j.yardstick);
  if (status)
    dvbf_verdict_free(j.out);
  else
    *out = j.out;
  return status;
}

/* ---- Comparing ---- */

/* Ratios of errors within this factor of 1 count as equal. */
static const double same = 1.05;

typedef struct comparison {
  dvbf_way with;
  double ratio; /* error of the other over that of the learned model: above 1 if it is better */
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

static comparison compare_errors(const dvbf_rolling *scores, const dv_blocks *blocks, dvbf_way with) {
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

/* The best baseline. */
static dvbf_way rival(const dvbf_rolling *scores) {
  dvbf_way best = DVBF_BY_MEAN;
  for (int way = DVBF_BY_LAST; way < DVBF_BY_LEARNED; way++)
    if (scores->score[way].rmse < scores->score[best].rmse) best = way;
  return best;
}

/* ---- Likelihoods ---- */

/* Binary, categorical and count data that noise drives, without controls, are judged by their likelihood. */
static bool by_likelihood(const dvbf_verdict *v, const dv_evidence *e) {
  return v->nats.frames && !e->n_u && !isnan(v->nats.learned);
}

/* 1: the model needs fewer nats than the other, -1: more, 0: no difference of 1 % and two standard errors
 * over the blocks. */
static int fewer_nats(const dv_discrete_likelihood *nats, const double *blocks, double of_other) {
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

/* A free run is compared with the mean. If it is only as good, since noise drives the data, the model must be
 * better one step ahead than both the mean and the last value. */
static bool is_useful(const dvbf_verdict *v, const dv_evidence *e) {
  if (by_likelihood(v, e)) return fewer_nats(&e->nats, e->nats.mean, v->nats.mean) > 0;
  const dvbf_rolling *far = &v->free_run, *near = &v->one_step;
  if (known(far)) {
    int sign = compare_errors(far, &e->free_run, DVBF_BY_MEAN).sign;
    if (sign) return sign > 0;
  }
  if (!known(near)) return !known(far);
  return compare_errors(near, &e->one_step, DVBF_BY_MEAN).sign > 0 &&
         compare_errors(near, &e->one_step, DVBF_BY_LAST).sign > 0;
}

/* ---- Sentence ---- */

#define put(v, ...) dv_append((v)->sentence, sizeof(v)->sentence, __VA_ARGS__)

static const char *const names[] = {"the mean", "repeating the last value", "the best linear model"};

/* "free run 2.1 times better than the best linear model"; `named`: the text has named the other already. */
static void put_comparison(dvbf_verdict *v, const char *use, comparison c, bool named) {
  double times = c.ratio > 1 ? c.ratio : 1 / c.ratio;
  put(v, "%s ", use);
  if (!c.sign)
    put(v, named ? "as good" : "as good as ");
  else if (times > 1000)
    put(v, "more than 1000 times %s%s", c.sign > 0 ? "better" : "worse", named ? "" : " than ");
  else
    put(v, times < 10 ? "%.1f times %s%s" : "%.0f times %s%s", times, c.sign > 0 ? "better" : "worse",
        named ? "" : " than ");
  if (!named) put(v, "%s", names[c.with]);
}

/* Advice that the data support. */
static void put_advice(dvbf_verdict *v, const dv_evidence *e) {
  double slow = v->one_step.score[DVBF_BY_LAST].rmse, mean = v->free_run.score[DVBF_BY_MEAN].rmse;
  if (v->free_run.score[DVBF_BY_LINEAR].rmse * same < mean) put(v, "--model linear, which is better, ");
  if (!e->n_u) put(v, "declare what drives the system with --inputs, ");
  if (slow < 0.02 && !by_likelihood(v, e))
    put(v, "a longer sample time, as a step changes x by only %.2g of its deviation, ", slow);
  if (e->frames < 1000) put(v, "more data than these %zu steps, ", e->frames);
  if (e->updates < 1000) put(v, "more updates than %zu, ", e->updates);
  put(v, "another --seed or a larger --latent");
}

/* "3.9 nats per frame, where a Markov chain for each column has 8.1 and independent columns have 19.3" */
static void put_nats(dvbf_verdict *v, const dv_evidence *e) {
  const dvbf_discrete_likelihood *n = &v->nats;
  char learned[DV_RESULT], mean[DV_RESULT], last[DV_RESULT];
  dv_result_text(learned, "%.3g", n->learned);
  dv_result_text(mean, "%.3g", n->mean);
  if (!v->useful) {
    put(v,
        "NOT better than independent columns (%s nats per frame; independent columns have %s): do not use "
        "this model; what to try: ",
        learned, mean);
    put_advice(v, e);
    return;
  }
  put(v, "%s nats per frame, where ", learned);
  if (!isnan(n->last))
    put(v, "a Markov chain for each column has %s and ", dv_result_text(last, "%.3g", n->last));
  put(v, "independent columns have %s", mean);
  if (fewer_nats(&e->nats, e->nats.last, n->last) < 0) put(v, ": the chains are better");
}

static void put_sentence(dvbf_verdict *v, const dv_evidence *e) {
  const dvbf_rolling *far = &v->free_run, *near = &v->one_step;
  if (by_likelihood(v, e)) {
    put_nats(v, e);
    return;
  }
  if (!known(far) && !known(near)) {
    put(v,
        e->timeless ? "nothing to judge: the model %s does not predict"
                    : "nothing to judge: the sequences are too short for the model %s to predict, or no "
                      "column varies",
        e->model);
    return;
  }
  if (!v->useful) {
    put(v, "NOT better than the mean: do not use this model; what to try: ");
    put_advice(v, e);
    return;
  }
  comparison of_far = {0}, of_near = {0};
  if (known(far)) of_far = compare_errors(far, &e->free_run, rival(far));
  if (known(near)) of_near = compare_errors(near, &e->one_step, rival(near));
  if (known(far)) put_comparison(v, "free run", of_far, false);
  if (known(far) && known(near)) put(v, ", ");
  if (known(near)) put_comparison(v, "one step", of_near, known(far) && of_far.with == of_near.with);
  if (known(far) && known(near) && compare_errors(far, &e->free_run, DVBF_BY_MEAN).sign <= 0)
    put(v, ": use it to filter, not to simulate");
}

void dv_verdict_decide(dvbf_verdict *v, const dv_evidence *e) {
  v->useful = is_useful(v, e);
  v->sentence[0] = 0;
  put_sentence(v, e);
}
