/* The search over candidates, and the public training functions (dvbf_train, dvbf_train_with,
 * dvbf_train_own). Successive halving: all candidates train for a part of their updates, each without one
 * fold; the best third goes to the end; the best few train once more on all data and form a committee.
 * Decisions come only when all of a round are judged, so the result does not depend on threads or ranks.
 * Every step is recorded in the run folder, so a stopped search can resume. */
#include "train/search.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "identify/linear_fit.h"
#include "math/portable.h"
#include "model/batches.h"
#include "train/run_folder.h"
#include "train/trainer.h"
#include "train/updater.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first judgement comes after this share of the updates. */
static const double FIRST = 0.25;
/* Excess error of a committee's member over the best one, as a difference of logarithms. */
static const double MARGIN = 0.7;

/* If learned filters are clearly better than the linear one, those within this of the best forecast. */
static const double NEAR = 1.1;
/* Least advantage over the linear model in free runs, as a difference of logarithms. */
static const double BETTER = 0.1;

typedef struct candidate_search {
  dv_search base;
  const dv_train_settings *s;
  dvbf_model *linear;   /* the best linear model; NULL: there is none */
  bool first;           /* the rank that decides and writes; others train */
  dv_run_folder folder; /* of the run, where options->folder is not NULL, of the first rank */
} candidate_search;

/* ---- Number of candidates ---- */

/* The work of one update; 1 is that of a recording with one column of x and one of u, about 10 ms on a core.
 */
static double work_of(const dv_train_settings *s, const dvbf_data *data) {
  double n_x = (double)data->train.n_x, n_u = (double)data->train.n_u, n_z = (double)s->latent;
  double steps = (double)data->train.steps;
  if (s->window && (double)s->window < steps) steps = (double)s->window;
  double step = (double)s->hidden * (2 * n_x + 3 * n_z + n_u) + (double)s->systems * n_z * (2 * n_z + n_u);
  return fmax(0.2, (double)s->batch_size * steps * step / (50. * 100. * 2500.));
}

/* As many as fit into a few minutes on two cores. */
static size_t count_candidates(const dv_train_settings *s, const dvbf_data *data) {
  enum { FEWEST_TRIED = 8, MOST_TRIED = 24 };
  if (s->candidates) return (size_t)s->candidates;
  double frames = (double)dv_sequences_frames(&data->train), more = fmax(1, fmin(5, sqrt(frames / 1000)));
  double trainings = 25000 * more / (work_of(s, data) * fmax(1, (double)s->updates));
  size_t n = FEWEST_TRIED;
  while (n < MOST_TRIED &&
         (double)(n + 1) * FIRST + fmax((double)s->members, (double)(n + 1) / 3) * (1 - FIRST) <= trainings)
    n++;
  return n;
}

/* ---- Rounds ---- */

/* Finds the updates after which a candidate is judged. At the first one it is validated anyway, so that the
 * pause changes nothing. */
static dvbf_status find_rounds(dv_candidate *c, const dvbf_settings *of_run, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  c->first = c->last = 1; /* that a fit counts for */
  if (dv_candidate_fitted(c)) return DVBF_OK;
  dvbf_status status = dv_candidate_settings(&settings, c, of_run, error);
  if (status) return status;
  const dv_train_settings *s = dv_settings_train(settings, error);
  uint64_t every = (uint64_t)s->validate_every, part = (uint64_t)(FIRST * (double)s->updates) / every * every;
  c->last = dv_all_updates(s);
  c->first = part && part < c->last ? part : c->last;
  dvbf_settings_free(settings);
  return DVBF_OK;
}

/* Those with a judgement in front, the best first; the others in their order. */
static int by_score(const void *a, const void *b) {
  const dv_candidate *x = *(dv_candidate *const *)a, *y = *(dv_candidate *const *)b;
  if (!x->updates != !y->updates) return x->updates ? -1 : 1;
  double one = x->updates ? x->score.total : 0, other = y->updates ? y->score.total : 0;
  return one != other ? (one > other) - (one < other) : (x > y) - (x < y);
}

/* The caller frees; NULL: out of memory. */
static dv_candidate **sorted(const candidate_search *h) {
  const dv_candidates *all = &h->base.candidates;
  dv_candidate **list = dv_calloc(all->count, sizeof *list);
  for (size_t i = 0; list && i < all->count; i++) list[i] = &all->list[i];
  if (list) qsort(list, all->count, sizeof *list, by_score);
  return list;
}

static size_t survivors(const candidate_search *h) {
  size_t count = h->base.candidates.count, members = (size_t)h->s->members;
  for (size_t i = 0; i < h->base.candidates.count; i++)
    count -= dv_candidate_fitted(&h->base.candidates.list[i]);
  size_t third = (count + 1) / 3; /* without the linear model */
  return third > members ? third : members;
}

static dvbf_status write_file(const candidate_search *h, dvbf_error *error) {
  return *h->base.file ? dv_candidates_write(&h->base.candidates, h->base.file, error) : DVBF_OK;
}

/* Continues the best to the end; *more is false if that was done before. */
static dvbf_status promote(candidate_search *h, bool *more, dvbf_error *error) {
  dv_candidate **best = sorted(h);
  size_t n = h->base.candidates.count, most = survivors(h), going = 0;
  if (!best) return dv_fail_memory(error, "comparing candidates");
  *more = true;
  for (size_t i = 0; i < n; i++)
    if (!dv_candidate_fitted(best[i]) && best[i]->target && best[i]->target == best[i]->last) *more = false;
  for (size_t i = 0; i < n && *more && going < most; i++)
    if (best[i]->updates && isfinite(best[i]->score.total) && !dv_candidate_fitted(best[i])) {
      best[i]->target = best[i]->last;
      going++;
    }
  *more = going;
  dv_free(best);
  return *more ? write_file(h, error) : DVBF_OK;
}

/* Remaining updates, for the time left. */
static void plan(candidate_search *h) {
  dv_candidates *all = &h->base.candidates;
  uint64_t longest = 0;
  bool finals = false;
  h->base.planned = 0;
  for (size_t i = 0; i < all->count; i++) {
    dv_candidate *c = &all->list[i];
    c->done = c->updates;
    h->base.planned += c->target;
    if (i < survivors(h) && c->target == c->first) h->base.planned += c->last - c->first;
    finals = finals || c->final;
    longest = c->last > longest ? c->last : longest;
  }
  if (!finals && h->base.referee.folds.cut) h->base.planned += (uint64_t)h->s->members * longest;
}

/* ---- Choice of members ---- */

static dvbf_status load(candidate_search *h, dv_candidate *c, dvbf_error *error) {
  if (c->model || !*h->base.folder) return DVBF_OK;
  dv_path folder, path;
  dv_candidate_folder(folder, sizeof folder, h->base.folder, (size_t)(c - h->base.candidates.list));
  dv_join(path, folder, DVBF_RUN_MODEL);
  return dv_exists(path) ? dvbf_model_load(&c->model, path, error) : DVBF_OK;
}

/* Requirements for candidates to become part of the result. */
typedef struct demands {
  bool to_the_end; /* trained; not where the search was ended before any was */
  bool fitted;     /* not trained by gradients */
} demands;

static bool judged(const dv_candidate *c, demands d) {
  return c->model && !c->final && c->updates && isfinite(c->score.total) &&
         (!d.to_the_end || c->updates == c->last);
}

/* Whether a candidate may be part of the result, which it may if it is better than the linear model. */
static bool eligible(const candidate_search *h, const dv_candidate *c, demands d) {
  if (d.fitted && !dv_candidate_fitted(c)) return false;
  return judged(c, d) && (!h->linear || c->score.total < -BETTER);
}

/* Whether any candidate was trained to the end and judged. */
static bool any_finished(const dv_candidates *all) {
  for (size_t i = 0; i < all->count; i++)
    if (!dv_candidate_fitted(&all->list[i]) && all->list[i].updates == all->list[i].last) return true;
  return false;
}

/* Whether learned models are, on average, better than the linear one on their unseen parts. A single part is
 * too short to tell, and the best of many may be lucky. Fitted candidates have too few parameters to
 * overfit. */
static dvbf_status learned_hold(const candidate_search *h, dv_candidate **best, demands d, bool *out,
                                dvbf_error *error) {
  const dv_scorer *r = &h->base.referee;
  double squares = 0, of_linear = 0;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < h->base.candidates.count && !status; i++) {
    if (dv_candidate_fitted(best[i]) || !judged(best[i], d)) continue;
    size_t fold = dv_candidate_fold(&h->base, (size_t)(best[i] - h->base.candidates.list));
    double unseen = 0;
    status = dv_scorer_unseen(&unseen, r, fold, best[i]->model, error);
    squares += unseen * unseen;
    of_linear += r->linear[fold].unseen * r->linear[fold].unseen;
  }
  *out = !(squares > of_linear * dv_exp(-2 * BETTER));
  return status;
}

/* A model with good free runs may be bad one step ahead, so forecasts are pooled over members good at them.
 * The linear model, hard to beat there, is ranked for this; it is removed again if it serves neither
 * forecasts nor predictions. */
static void share_forecasts(candidate_search *h) {
  const dv_candidates *all = &h->base.candidates;
  dv_candidate *linear = &all->list[all->count - 1];
  double best = INFINITY, clearly = dv_scorer_clearly(dv_sequences_frames(&h->base.data->train));
  for (size_t i = 0; i < all->count; i++)
    if (all->list[i].rank) best = fmin(best, all->list[i].score.one_step);
  for (size_t i = 0; i < all->count; i++) {
    dv_candidate *c = &all->list[i];
    if (c->rank) c->model->no_forecasts = best > clearly ? c != linear : c->score.one_step > NEAR * best;
  }
  if (!linear->model->no_forecasts || !linear->model->no_predictions) return;
  linear->rank = 0;
  dvbf_model_free(linear->model);
  linear->model = NULL;
}

/* Ranks the best, up to `members`, in the order of `best`; pooled predictions are better than their members'
 * on average. *limit: the largest error of a member. */
static dvbf_status rank(candidate_search *h, dv_candidate **best, double *limit, dvbf_error *error) {
  demands d = {.to_the_end = any_finished(&h->base.candidates)};
  bool hold = true;
  int rank = 0;
  *limit = INFINITY;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < h->base.candidates.count && !status; i++) status = load(h, best[i], error);
  if (!status && h->linear) status = learned_hold(h, best, d, &hold, error);
  d.fitted = !hold;
  for (size_t i = 0; i < h->base.candidates.count && !status; i++) {
    dv_candidate *c = best[i];
    c->rank = 0;
    if (rank == (int)h->s->members || !eligible(h, c, d) || c->score.total > *limit) continue;
    c->rank = ++rank;
    if (rank == 1) *limit = c->score.total + MARGIN;
  }
  return status;
}

static dvbf_status copy_model(dvbf_model **out, const dvbf_model *from, dvbf_error *error) {
  void *bytes = NULL;
  size_t size = 0;
  dvbf_status status = dvbf_model_to_bytes(&bytes, &size, from, error);
  if (!status) status = dvbf_model_from_bytes(out, bytes, size, error);
  dvbf_bytes_free(bytes);
  return status;
}

/* Ranks the linear model too: for forecasts and, unless it is much worse, for predictions. */
static dvbf_status rank_linear(candidate_search *h, double limit, dvbf_error *error) {
  int ranked = 0;
  dv_candidates *all = &h->base.candidates;
  for (size_t i = 0; i < all->count; i++) ranked += all->list[i].rank > 0;
  if (!ranked || !h->linear || h->s->members == 1) return DVBF_OK;
  dv_candidate *linear = &all->list[all->count - 1];
  dvbf_status status = copy_model(&linear->model, h->linear, error);
  if (status) return status;
  linear->rank = ranked + 1;
  linear->model->no_predictions = ranked == (int)h->s->members || linear->score.total > limit;
  share_forecasts(h);
  return DVBF_OK;
}

/* Adds candidate i once more, to be trained on all data to its target. */
static void add_final(dv_candidates *c, size_t i) {
  if (c->count > DV_MOST_CANDIDATES) return;
  dv_candidate *linear = &c->list[c->count - 1], *final = linear;
  c->list[c->count++] = *linear; /* it stays the last */
  const dv_candidate *of = &c->list[i];
  *final = (dv_candidate){.first = of->first, .last = of->last, .target = of->target, .final = true};
  memcpy(final->name, of->name, sizeof final->name);
  memcpy(final->changes, of->changes, sizeof final->changes);
}

/* The one that a final was made from, or NULL. */
static dv_candidate *origin_of(const dv_candidates *c, const dv_candidate *final) {
  for (size_t i = 0; i < c->count && final->final; i++)
    if (!c->list[i].final && c->list[i].target && !strcmp(c->list[i].changes, final->changes))
      return &c->list[i];
  return NULL;
}

/* A final replaces the candidate it was made from, unless its training went wrong: it has seen all data, so
 * its error must not be larger than that of the other, which has not. */
static void place_finals(candidate_search *h) {
  const dv_candidates *all = &h->base.candidates;
  for (size_t i = 0; i < all->count; i++) {
    dv_candidate *final = &all->list[i], *origin = origin_of(all, final);
    if (!origin || !origin->rank || !final->model || final->updates < final->target) continue;
    if (!(final->score.free_run <= origin->score.free_run)) continue;
    final->rank = origin->rank;
    final->model->no_forecasts = origin->model->no_forecasts;
    final->model->no_predictions = origin->model->no_predictions;
    origin->rank = 0;
  }
}

/* ---- All rounds ---- */

/* Adds a final for each that would be kept now; *more is false if that was done before. */
static dvbf_status add_finals(candidate_search *h, bool *more, dvbf_error *error) {
  dv_candidates *all = &h->base.candidates;
  double limit = 0;
  *more = h->base.referee.folds.cut;
  for (size_t i = 0; i < all->count; i++)
    if (all->list[i].final) *more = false;
  if (!*more) return DVBF_OK;
  dv_candidate **best = sorted(h);
  dvbf_status status = best ? rank(h, best, &limit, error) : dv_fail_memory(error, "comparing candidates");
  *more = false;
  for (size_t i = 0, n = all->count; i < n && !status; i++) {
    dv_candidate *c = &all->list[i];
    if (c->rank) add_final(all, i);
    *more = *more || c->rank;
    c->rank = 0; /* ranks in the file say that the search has ended */
  }
  dv_free(best);
  return status || !*more ? status : write_file(h, error);
}

/* The next action, decided by the first rank. */
static dvbf_status decide(candidate_search *h, bool *more, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  if (h->first && !h->base.stopped) status = promote(h, more, error);
  if (h->first && !status && !h->base.stopped && !*more) status = add_finals(h, more, error);
  if (!status)
    status = dv_search_ranks_list(h->base.team, &h->base.candidates, more, &h->base.stopped, error);
  if (!status && *more) plan(h);
  return status;
}

static dvbf_status run_rounds(candidate_search *h, dvbf_error *error) {
  bool more = true;
  dvbf_status status = DVBF_OK;
  plan(h);
  while (!status && more && !h->base.stopped) {
    status = dv_search_train_all(&h->base, error);
    if (!status) status = decide(h, &more, error);
  }
  return status;
}

/* ---- Result ---- */

static dv_candidate *of_rank(const dv_candidates *all, int rank) {
  for (size_t i = 0; i < all->count; i++)
    if (all->list[i].rank == rank) return &all->list[i];
  return NULL;
}

/* The committee of those with a rank; the models are taken. */
static dvbf_status assemble(dvbf_model **out, const dv_candidates *all, dvbf_error *error) {
  dvbf_model *m = NULL;
  dvbf_status status = DVBF_OK;
  dv_candidate *c;
  for (int rank = 1; !status && (c = of_rank(all, rank)); rank++) {
    if (m)
      status = dv_model_add_member(m, c->model, error);
    else
      m = c->model;
    c->model = NULL;
  }
  return dv_model_give(out, m, status);
}

/* The linear model or, without one, any candidate that has begun: the search was ended early, or every
 * training diverged. */
static dvbf_status take_other(dvbf_model **out, candidate_search *h, dvbf_error *error) {
  dv_candidates *all = &h->base.candidates;
  *out = h->linear;
  if (h->linear) all->list[all->count - 1].rank = 1;
  h->linear = NULL;
  for (size_t i = 0; i < all->count && !*out; i++) {
    *out = all->list[i].model;
    all->list[i].model = NULL;
  }
  if (*out) return DVBF_OK;
  return dv_fail(error, DVBF_NUMERIC,
                 "none of %zu candidates could be trained; try a smaller learning-rate or clip-norm = 1",
                 all->count);
}

static dvbf_status take_best(dvbf_model **out, candidate_search *h, dvbf_error *error) {
  dv_candidate **best = sorted(h);
  dvbf_model *m = NULL;
  double limit = 0;
  dvbf_status status = best ? rank(h, best, &limit, error) : dv_fail_memory(error, "comparing candidates");
  if (!status) status = rank_linear(h, limit, error);
  if (!status) place_finals(h);
  if (!status) status = assemble(&m, &h->base.candidates, error);
  if (!status && !m) status = take_other(&m, h, error);
  if (!status && h->linear) {
    status = dv_model_set_linear(m, h->linear, error);
    h->linear = NULL;
  }
  dv_free(best);
  return dv_model_give(out, m, status);
}

/* ---- The whole search ---- */

/* Writes the candidates before the settings. Given settings decide what candidates change, which the file
 * does not record: a search with settings but no candidates would continue with others. */
static dvbf_status write_first(candidate_search *h, dvbf_error *error) {
  if (!*h->base.file) return DVBF_OK;
  dvbf_status status = dv_search_folder_remove(h->base.folder, error);
  if (!status) status = dv_run_folder_clear(&h->folder, error);
  if (!status) status = write_file(h, error);
  return status ? status : dv_run_folder_start(&h->folder, h->base.settings, error);
}

/* Begins, or resumes with the candidates of the file. */
static dvbf_status begin(candidate_search *h, dvbf_error *error) {
  const dvbf_train_options *o = h->base.options;
  dv_candidates *all = &h->base.candidates;
  bool there = o->folder && o->resume && dv_exists(h->base.file) && dv_exists(h->folder.settings);
  dv_profile *facts = NULL;
  dvbf_status status = DVBF_OK;
  if (there) {
    dv_run_folder_tidy(&h->folder);
    status = dv_candidates_read(all, h->base.file, error);
  } else {
    status = dv_profile_new(&facts, h->base.data, true, dv_settings_interrupt(h->base.settings), error);
    if (!status)
      status = dv_candidates_make(all, h->base.settings, facts, count_candidates(h->s, h->base.data), error);
    dv_profile_free(facts);
  }
  for (size_t i = 0; i < all->count && !status; i++)
    status = find_rounds(&all->list[i], h->base.settings, error);
  for (size_t i = 0; i + 1 < all->count && !there; i++) all->list[i].target = all->list[i].first;
  return status || there ? status : write_first(h, error);
}

static bool is_finished(const candidate_search *h) {
  for (size_t i = 0; i < h->base.candidates.count; i++)
    if (h->base.candidates.list[i].rank) return true;
  return false;
}

/* Writes the model and the list, then removes the candidates' folders. In this order a search can resume
 * wherever the process ends. */
static dvbf_status keep(candidate_search *h, const dvbf_model *m, dvbf_error *error) {
  if (!*h->base.file) return DVBF_OK;
  dvbf_status status = dv_run_folder_ours(&h->folder, error);
  if (!status) status = dvbf_model_save(m, h->folder.model, error);
  if (status || h->base.stopped) return status;
  const dv_candidates *all = &h->base.candidates;
  for (size_t i = 0; i < all->count && !status; i++) {
    dv_path folder;
    dv_candidate_folder(folder, sizeof folder, h->base.folder, i);
    if (all->list[i].rank == 1 && all->list[i].target)
      status = dv_search_folder_copy(folder, h->folder.path, DVBF_RUN_METRICS, error);
  }
  if (!status) status = write_file(h, error);
  return status ? status : dv_search_folder_remove(h->base.folder, error);
}

static dvbf_status load_finished(dvbf_model **out, candidate_search *h, dvbf_error *error) {
  dv_search_report(&h->base, "this run is finished: nothing is left to do");
  dvbf_status status = h->first ? dv_search_folder_remove(h->base.folder, error) : DVBF_OK;
  if (!status && h->first) status = dvbf_model_load(out, h->folder.model, error);
  return status;
}

static dvbf_status run(dvbf_model **out, candidate_search *h, dvbf_error *error) {
  bool more = true;
  dvbf_status status = h->first ? begin(h, error) : DVBF_OK;
  if (!status)
    status = dv_search_ranks_list(h->base.team, &h->base.candidates, &more, &h->base.stopped, error);
  if (status) return status;
  if (is_finished(h)) return load_finished(out, h, error);
  status = dv_identify_model(&h->linear, h->base.settings, h->base.data,
                             dv_settings_interrupt(h->base.settings), error);
  if (!status) status = dv_scorer_init(&h->base.referee, h->base.settings, h->base.data, error);
  if (!status) status = run_rounds(h, error);
  if (status == DVBF_STOPPED && h->linear) { /* there is a model all the same */
    h->base.stopped = true;
    status = DVBF_OK;
  }
  if (!status && h->first) status = take_best(out, h, error);
  if (!status && h->first) status = keep(h, *out, error);
  return status;
}

static dvbf_status train_by_search(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                                   const dvbf_train_options *options, dvbf_error *error) {
  static const dvbf_train_options none;
  candidate_search h = {.base = {.settings = settings,
                                 .data = data,
                                 .options = options ? options : &none,
                                 .team = dv_settings_ranks(settings),
                                 .began = dv_clock()},
                        .s = dv_settings_train(settings, error),
                        .folder = DV_NO_RUN_FOLDER};
  dvbf_model *m = NULL;
  h.first = dv_ranks_rank(h.base.team) == 0;
  uint64_t print = 0;
  dvbf_status status = dv_data_validate(data, "data", error);
  size_t steps = data->train.steps;
  if (h.s->window && (size_t)h.s->window < steps) steps = (size_t)h.s->window;
  if (!status) status = dv_check_length(dv_model_class_of(h.s), settings, steps, "training", error);
  if (!status && h.base.team) status = dv_data_fingerprint(&print, data, error);
  if (!status) status = dv_ranks_alike(h.base.team, settings, print, error);
  if (status) return status;
  const char *folder = h.base.options->folder;
  if (folder && h.first) status = dv_run_folder_open(&h.folder, h.base.options, settings, error);
  if (folder) {
    if (h.first) dv_join(h.base.file, folder, DVBF_RUN_SEARCH);
    dv_join(h.base.folder, folder, "search");
  }
  if (!status) status = run(&m, &h, error);
  if (!status) status = dv_search_ranks_model(h.base.team, &m, error);
  if (!status) m->seconds = dv_clock() - h.base.began;
  if (folder && h.first) dv_run_folder_close(&h.folder);
  dvbf_model_free(h.linear);
  dv_scorer_clear(&h.base.referee);
  dv_candidates_free(&h.base.candidates);
  return dv_model_give(out, m, status);
}

/* ---- Public functions ---- */

dvbf_status dvbf_train(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                       const dvbf_train_options *options, dvbf_error *error) {
  DV_COMPUTE(dv_settings_portable(settings));
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (dv_settings_fit_model(settings, NULL, true, error)) return DVBF_ARGUMENT;
  if (*data->question) return dv_fail(error, DVBF_FORMAT, "data: %s", data->question);
  dvbf_status status = s->search ? train_by_search(out, settings, data, options, error)
                                 : dv_train(out, NULL, settings, data, options, 0, error);
  if (status || !options || !options->folder || dvbf_ranks_number(dv_settings_ranks(settings))) return status;
  status = dv_run_description_write(data, options->folder, error);
  if (!status) return DVBF_OK;
  dvbf_model_free(*out);
  *out = NULL;
  return status;
}

/* User-defined parts are trained without a search. */
dvbf_status dvbf_train_with(dvbf_model **out, const dvbf_transition *transition,
                            const dvbf_settings *settings, const dvbf_data *data,
                            const dvbf_train_options *options, dvbf_error *error) {
  DV_COMPUTE(dv_settings_portable(settings));
  if (dv_settings_fit_model(settings, NULL, true, error)) return DVBF_ARGUMENT;
  return dv_train(out, &(dv_own){.transition = transition}, settings, data, options, 0, error);
}

dvbf_status dvbf_train_own(dvbf_model **out, const dvbf_model_class *own, const dvbf_settings *settings,
                           const dvbf_data *data, const dvbf_train_options *options, dvbf_error *error) {
  DV_COMPUTE(dv_settings_portable(settings));
  if (dv_settings_fit_model(settings, own, true, error)) return DVBF_ARGUMENT;
  return dv_train(out, &(dv_own){.type = own}, settings, data, options, 0, error);
}

/* ---- Cross-validation ---- */

/* With ENOUGH_SEQUENCES validation sequences they stay as they are. A part of a sequence has at least
 * SHORTEST_PART steps. */
enum { FOLDS = 5, ENOUGH_SEQUENCES = 8, SHORTEST_PART = 12 };

static dvbf_status list_new(dvbf_sequences *out, const dvbf_sequences *like, size_t room, dvbf_error *error) {
  *out = *like;
  out->count = out->steps = 0;
  out->origin = NULL;
  out->start = dv_calloc(room, sizeof *out->start);
  out->length = dv_calloc(room, sizeof *out->length);
  return out->start && out->length ? DVBF_OK : dv_fail_memory(error, "leaving out parts of the data");
}

static void add_stretch(dvbf_sequences *to, const dvbf_sequences *from, size_t i, size_t first, size_t end) {
  if (end < first + 2) return; /* a step alone has nothing to predict */
  to->start[to->count] = dvbf_sequence_start(from, i) + first;
  to->length[to->count++] = (uint32_t)(end - first);
  if (end - first > to->steps) to->steps = end - first;
}

static void add_all(dvbf_sequences *to, const dvbf_sequences *from) {
  for (size_t i = 0; i < from->count; i++) add_stretch(to, from, i, 0, dvbf_sequence_length(from, i));
}

/* Whether each validation sequence is the end of the training sequence with the same number. */
static bool continues(const dvbf_data *data) {
  const dvbf_sequences *train = &data->train, *valid = &data->valid;
  bool does = train->count == valid->count;
  for (size_t i = 0; i < valid->count && does; i++) {
    size_t length = dvbf_sequence_length(train, i);
    does = dvbf_sequence_start(train, i) + length == dvbf_sequence_start(valid, i) &&
           dvbf_sequence_length(valid, i) < length;
  }
  return does;
}

static dvbf_status join(dvbf_sequences *out, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *train = &data->train, *valid = &data->valid;
  dvbf_status status = list_new(out, train, train->count + valid->count, error);
  if (status) return status;
  add_all(out, train);
  if (!continues(data)) add_all(out, valid);
  for (size_t i = 0; i < valid->count && continues(data); i++) {
    out->length[i] += (uint32_t)dvbf_sequence_length(valid, i);
    if (out->length[i] > out->steps) out->steps = out->length[i];
  }
  return DVBF_OK;
}

/* ---- Folds ---- */

/* Fold f of `count`: sequences in turn if there are enough, otherwise a block of each. The one after the last
 * leaves out nothing. */
static dvbf_status cut(dv_fold *out, const dvbf_data *data, const dvbf_sequences *all, size_t f, size_t count,
                       dvbf_error *error) {
  dvbf_sequences *rest = &out->data.train, *every = &out->data.valid;
  out->data = *data;
  *rest = *every = (dvbf_sequences){0};
  dvbf_status status = list_new(&out->part, all, all->count, error);
  if (!status) status = list_new(rest, all, 2 * all->count, error);
  if (!status) status = list_new(every, all, 4 * all->count, error);
  if (status) return status;
  for (size_t i = 0; i < all->count; i++) {
    size_t length = dvbf_sequence_length(all, i), from = 0, to = 0;
    if (f < count && all->count < count)
      from = length * f / count, to = length * (f + 1) / count;
    else if (i % count == f)
      to = length;
    add_stretch(rest, all, i, 0, from);
    add_stretch(rest, all, i, to, length);
    add_stretch(&out->part, all, i, from, to);
  }
  add_all(every, rest);
  add_all(every, &out->part);
  add_all(every, &out->part);
  return DVBF_OK;
}

dvbf_status dv_folds_make(dv_folds *out, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *train = &data->train, *valid = &data->valid;
  bool shared =
      !valid->count || (train->x == valid->x && train->u == valid->u && train->source == valid->source);
  dvbf_sequences all = {0};
  *out = (dv_folds){.cut = shared && valid->count < ENOUGH_SEQUENCES};
  dvbf_status status = DVBF_OK;
  size_t count = 1;
  if (out->cut) status = join(&all, data, error);
  if (!status && out->cut) /* fewer if the parts would be too short to be predicted */
    for (count = FOLDS; count > 2 && all.count < count && all.steps / count < SHORTEST_PART;) count--;
  if (!status) out->list = dv_calloc(count + 1, sizeof *out->list);
  if (!status && !out->list) status = dv_fail_memory(error, "leaving out parts of the data");
  if (!status) out->count = count;
  for (size_t f = 0; f <= count && !status; f++) {
    if (out->cut)
      status = cut(&out->list[f], data, &all, f, count, error);
    else
      out->list[f] = (dv_fold){*data, *valid};
  }
  if (out->cut) dv_windows_free(&all);
  return status;
}

void dv_folds_free(dv_folds *folds) {
  for (size_t f = 0; folds->list && f <= folds->count && folds->cut; f++) {
    dv_windows_free(&folds->list[f].data.train);
    dv_windows_free(&folds->list[f].data.valid);
    dv_windows_free(&folds->list[f].part);
  }
  dv_free(folds->list);
  *folds = (dv_folds){0};
}
