/* Successive halving. All candidates are trained for a part of their updates, and the best third or so to the
 * end. Until then each has left out a part of the data; the best few are trained once more on all of it, and
 * become a committee. Every step is recorded in the run folder, so that a search that was stopped can go on.
 */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "exec/alike.h"
#include "identify/fit.h"
#include "search/crew.h"
#include "search/traces.h"
#include "train/about.h"
#include "train/check.h"
#include "train/folder.h"
#include "train/schedule.h"
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first judgement comes after this share of the updates. */
static const double FIRST = 0.25;
/* A member of a committee may have this much more error than the best one, as a difference of logarithms. */
static const double MARGIN = 0.7;

/* Where learned filters are clearly better than the linear one, those within this of the best forecast. */
static const double NEAR = 1.1;
/* A free run must be better than that of the linear model by so much, as a difference of logarithms, to
 * count. */
static const double BETTER = 0.1;

typedef struct search {
  dv_search base;
  const dv_train_settings *s;
  dvbf_model *linear; /* the best linear model; NULL: there is none */
  bool first;         /* the rank that decides and writes; others train */
  dv_folder folder;   /* of the run, where options->folder is not NULL, of the first rank */
  dv_path file, candidates;
} search;

/* ---- How many candidates ---- */

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
  enum { LEAST = 8, MOST = 24 };
  if (s->candidates) return (size_t)s->candidates;
  double frames = (double)dv_sequences_frames(&data->train), more = fmax(1, fmin(5, sqrt(frames / 1000)));
  double trainings = 25000 * more / (work_of(s, data) * fmax(1, (double)s->updates));
  size_t n = LEAST;
  while (n < MOST &&
         (double)(n + 1) * FIRST + fmax((double)s->members, (double)(n + 1) / 3) * (1 - FIRST) <= trainings)
    n++;
  return n;
}

/* ---- Rounds ---- */

/* The update after which a candidate is judged, for the first time or at the end. At the first one it is
 * validated anyway, so that the pause changes nothing. */
static dvbf_status round_of(const search *h, const dv_candidate *c, bool first, uint64_t *out,
                            dvbf_error *error) {
  dvbf_settings *settings = NULL;
  *out = 1; /* that a fit counts for */
  if (dv_candidate_fitted(c)) return DVBF_OK;
  dvbf_status status = dv_candidate_settings(&settings, c, h->base.settings, error);
  if (status) return status;
  const dv_train_settings *s = dv_settings_train(settings, error);
  uint64_t all = dv_all_updates(s), every = (uint64_t)s->validate_every;
  uint64_t part = (uint64_t)(FIRST * (double)s->updates) / every * every;
  *out = first && part && part < all ? part : all;
  dvbf_settings_free(settings);
  return DVBF_OK;
}

static int by_score(const void *a, const void *b) {
  const dv_candidate *x = *(dv_candidate *const *)a, *y = *(dv_candidate *const *)b;
  double one = x->score.total, other = y->score.total;
  return one != other ? (one > other) - (one < other) : (x > y) - (x < y);
}

/* The candidates, those with a judgement in front, the best first. The caller frees; NULL: out of memory. */
static dv_candidate **sorted(const search *h) {
  const dv_candidates *all = &h->base.candidates;
  dv_candidate **list = dv_calloc(all->count, sizeof *list);
  size_t n = 0;
  for (int judged = 1; list && judged >= 0; judged--) {
    size_t from = n;
    for (size_t i = 0; i < all->count; i++)
      if ((all->list[i].updates > 0) == judged) list[n++] = &all->list[i];
    if (judged) qsort(list + from, n - from, sizeof *list, by_score);
  }
  return list;
}

static size_t survivors(const search *h) {
  size_t count = h->base.candidates.count, members = (size_t)h->s->members;
  for (size_t i = 0; i < h->base.candidates.count; i++)
    count -= dv_candidate_fitted(&h->base.candidates.list[i]);
  size_t third = (count + 1) / 3; /* without the linear model */
  return third > members ? third : members;
}

static dvbf_status write_file(const search *h, dvbf_error *error) {
  return h->base.file ? dv_candidates_write(&h->base.candidates, h->base.file, error) : DVBF_OK;
}

/* Sends the best on to the end; *more is false where that was done before. */
static dvbf_status promote(search *h, bool *more, dvbf_error *error) {
  dv_candidate **best = sorted(h);
  dvbf_status status = best ? DVBF_OK : dv_fail_memory(error, "comparing candidates");
  size_t n = h->base.candidates.count, going = 0;
  *more = true;
  for (size_t i = 0; i < n && !status; i++) {
    uint64_t last = 0;
    status = round_of(h, best[i], false, &last, error);
    if (!dv_candidate_fitted(best[i]) && best[i]->target && best[i]->target == last) *more = false;
  }
  for (size_t i = 0; i < n && *more && going < survivors(h) && !status; i++)
    if (best[i]->updates && isfinite(best[i]->score.total) && !dv_candidate_fitted(best[i])) {
      status = round_of(h, best[i], false, &best[i]->target, error);
      going++;
    }
  if (!going) *more = false;
  dv_free(best);
  return status || !*more ? status : write_file(h, error);
}

/* What is still to be done, for the time left. */
static dvbf_status plan(search *h, dvbf_error *error) {
  dv_candidates *all = &h->base.candidates;
  uint64_t first = 0, last = 0, longest = 0;
  bool finals = false;
  dvbf_status status = DVBF_OK;
  h->base.planned = 0;
  for (size_t i = 0; i < all->count && !status; i++) {
    dv_candidate *c = &all->list[i];
    c->done = c->updates;
    status = round_of(h, c, true, &first, error);
    if (!status) status = round_of(h, c, false, &last, error);
    h->base.planned += c->target;
    if (c->target && i < survivors(h)) h->base.planned += c->target == first ? last - first : 0;
    finals = finals || c->final;
    longest = last > longest ? last : longest;
  }
  if (!finals && h->base.referee.folds.cut) h->base.planned += (uint64_t)h->s->members * longest;
  return status;
}

/* ---- Who is kept ---- */

static dvbf_status load(search *h, dv_candidate *c, dvbf_error *error) {
  if (c->model || !h->base.folder) return DVBF_OK;
  dv_path folder, path;
  dv_candidate_folder(folder, sizeof folder, h->base.folder, (size_t)(c - h->base.candidates.list));
  dv_join(path, folder, DVBF_RUN_MODEL);
  return dv_exists(path) ? dvbf_model_load(&c->model, path, error) : DVBF_OK;
}

/* What candidates must be to become part of the result. */
typedef struct demands {
  bool to_the_end; /* trained; not where the search was ended before any was */
  bool fitted;     /* not trained by gradients */
} demands;

static bool judged(const dv_candidate *c, demands d, uint64_t last) {
  return c->model && !c->final && c->updates && isfinite(c->score.total) &&
         (!d.to_the_end || c->updates == last);
}

/* Whether a candidate may be part of the result, which it may if it is better than the linear model. */
static bool eligible(const search *h, const dv_candidate *c, demands d, uint64_t last) {
  if (d.fitted && !dv_candidate_fitted(c)) return false;
  return judged(c, d, last) && (!h->linear || c->score.total < -BETTER);
}

/* *out: whether any candidate was trained to the end and judged. */
static dvbf_status any_finished(const search *h, bool *out, dvbf_error *error) {
  const dv_candidates *all = &h->base.candidates;
  uint64_t last = 0;
  dvbf_status status = DVBF_OK;
  *out = false;
  for (size_t i = 0; i < all->count && !status; i++) {
    status = round_of(h, &all->list[i], false, &last, error);
    if (!dv_candidate_fitted(&all->list[i]) && all->list[i].updates == last) *out = true;
  }
  return status;
}

/* Whether learned models are, on average, better than the linear one on the parts that they have not seen.
 * Each alone has too short a part to tell, and the best of many may be lucky. Candidates that are fitted have
 * too few parameters to know the rest by heart. */
static dvbf_status learned_hold(const search *h, dv_candidate **best, demands d, bool *out,
                                dvbf_error *error) {
  const dv_referee *r = &h->base.referee;
  double squares = 0, of_linear = 0;
  uint64_t last = 0;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; i < h->base.candidates.count && !status; i++) {
    size_t fold = dv_candidate_fold(&h->base, (size_t)(best[i] - h->base.candidates.list));
    double unseen = 0;
    status = round_of(h, best[i], false, &last, error);
    if (status || dv_candidate_fitted(best[i]) || !judged(best[i], d, last)) continue;
    status = dv_referee_unseen(&unseen, r, fold, best[i]->model, error);
    squares += unseen * unseen;
    of_linear += r->linear[fold].unseen * r->linear[fold].unseen;
  }
  *out = !(squares > of_linear * dv_exp(-2 * BETTER));
  return status;
}

/* A model that is good in free runs need not be good one step ahead. So forecasts are pooled over those
 * members that are good at them. The linear model, which is hard to beat there, is ranked for this; it is
 * taken out again where it serves neither forecasts nor predictions. */
static void share_forecasts(search *h) {
  const dv_candidates *all = &h->base.candidates;
  dv_candidate *linear = &all->list[all->count - 1];
  double best = INFINITY, clearly = dv_referee_clearly(dv_sequences_frames(&h->base.data->train));
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

/* Ranks the best, up to `members`, in the order of `best`. No other test is needed, since pooled predictions
 * are better than those of the members on average. *limit: the largest error that a member may have. */
static dvbf_status rank(search *h, dv_candidate **best, double *limit, dvbf_error *error) {
  demands d = {0};
  bool hold = true;
  uint64_t last = 0;
  int rank = 0;
  *limit = INFINITY;
  dvbf_status status = any_finished(h, &d.to_the_end, error);
  for (size_t i = 0; i < h->base.candidates.count && !status; i++) status = load(h, best[i], error);
  if (!status && h->linear) status = learned_hold(h, best, d, &hold, error);
  d.fitted = !hold;
  for (size_t i = 0; i < h->base.candidates.count && !status; i++) {
    dv_candidate *c = best[i];
    c->rank = 0;
    status = round_of(h, c, false, &last, error);
    if (status || rank == (int)h->s->members || !eligible(h, c, d, last) || c->score.total > *limit) continue;
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
static dvbf_status rank_linear(search *h, double limit, dvbf_error *error) {
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

/* A final takes the place of the candidate it was made from, unless its training went wrong: it has seen all
 * of the data, so its error must not be larger than that of the other, which has not. */
static void place_finals(search *h) {
  const dv_candidates *all = &h->base.candidates;
  for (size_t i = 0; i < all->count; i++) {
    dv_candidate *final = &all->list[i], *origin = dv_candidate_origin(all, final);
    if (!origin || !origin->rank || !final->model || final->updates < final->target) continue;
    if (!(final->score.free_run <= origin->score.free_run)) continue;
    final->rank = origin->rank;
    final->model->no_forecasts = origin->model->no_forecasts;
    final->model->no_predictions = origin->model->no_predictions;
    origin->rank = 0;
  }
}

/* ---- Rounds, to the end ---- */

/* Adds a final for each that would be kept now; *more is false where that was done before. */
static dvbf_status add_finals(search *h, bool *more, dvbf_error *error) {
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
    if (c->rank) dv_candidates_add_final(all, i);
    *more = *more || c->rank;
    c->rank = 0; /* ranks in the file say that the search has ended */
  }
  dv_free(best);
  return status || !*more ? status : write_file(h, error);
}

/* What comes next; the first rank decides. */
static dvbf_status decide(search *h, bool *more, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  if (h->first && !h->base.stopped) status = promote(h, more, error);
  if (h->first && !status && !h->base.stopped && !*more) status = add_finals(h, more, error);
  if (!status) status = dv_share_list(h->base.team, &h->base.candidates, more, &h->base.stopped, error);
  return !status && *more ? plan(h, error) : status;
}

static dvbf_status run_rounds(search *h, dvbf_error *error) {
  bool more = true;
  dvbf_status status = plan(h, error);
  while (!status && more && !h->base.stopped) {
    status = dv_crew_run(&h->base, error);
    if (!status) status = decide(h, &more, error);
  }
  return status;
}

/* ---- The result ---- */

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
  if (status)
    dvbf_model_free(m);
  else
    *out = m;
  return status;
}

/* The linear model or, where there is none, any candidate that has begun: the search was ended early, or
 * every training diverged. */
static dvbf_status take_other(dvbf_model **out, search *h, dvbf_error *error) {
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

static dvbf_status take_best(dvbf_model **out, search *h, dvbf_error *error) {
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
  if (status)
    dvbf_model_free(m);
  else
    *out = m;
  return status;
}

/* ---- All of it ---- */

/* Writes the candidates before the settings. Which of these were given decides what the candidates change,
 * and the file of settings does not tell: a search that has settings but no candidates would go on with
 * others. */
static dvbf_status write_first(search *h, dvbf_error *error) {
  if (!h->base.file) return DVBF_OK;
  dvbf_status status = dv_traces_remove(h->candidates, error);
  if (!status) status = dv_folder_clear(&h->folder, error);
  if (!status) status = write_file(h, error);
  return status ? status : dv_folder_start(&h->folder, h->base.settings, error);
}

/* Begins, or goes on with the candidates of the file. */
static dvbf_status begin(search *h, dvbf_error *error) {
  const dvbf_train_options *o = h->base.options;
  dv_candidates *all = &h->base.candidates;
  if (o->folder && o->resume && dv_exists(h->file) && dv_exists(h->folder.settings)) {
    dv_folder_tidy(&h->folder);
    return dv_candidates_read(all, h->file, error);
  }
  dv_facts *facts = NULL;
  dvbf_status status = dv_facts_new(&facts, h->base.data, dv_settings_interrupt(h->base.settings), error);
  if (!status)
    status = dv_candidates_make(all, h->base.settings, facts, count_candidates(h->s, h->base.data), error);
  dv_facts_free(facts);
  for (size_t i = 0; i + 1 < all->count && !status; i++)
    status = round_of(h, &all->list[i], true, &all->list[i].target, error);
  return status ? status : write_first(h, error);
}

static bool is_finished(const search *h) {
  for (size_t i = 0; i < h->base.candidates.count; i++)
    if (h->base.candidates.list[i].rank) return true;
  return false;
}

/* Writes the model and the list, then removes the candidates' folders. In this order the search can go on
 * wherever the process ends. */
static dvbf_status keep(search *h, const dvbf_model *m, dvbf_error *error) {
  if (!h->base.file) return DVBF_OK;
  dvbf_status status = dv_folder_ours(&h->folder, error);
  if (!status) status = dvbf_model_save(m, h->folder.model, error);
  if (status || h->base.stopped) return status;
  const dv_candidates *all = &h->base.candidates;
  for (size_t i = 0; i < all->count && !status; i++) {
    dv_path folder;
    dv_candidate_folder(folder, sizeof folder, h->candidates, i);
    if (all->list[i].rank == 1 && all->list[i].target)
      status = dv_traces_copy(folder, h->folder.path, DVBF_RUN_METRICS, error);
  }
  if (!status) status = write_file(h, error);
  return status ? status : dv_traces_remove(h->candidates, error);
}

/* Where no linear model can be found, models are judged without one. */
static dvbf_status find_linear(search *h, dvbf_error *error) {
  dvbf_error inner = {0};
  dvbf_status status = dv_linear_best(&h->linear, h->base.settings, h->base.data, &inner);
  if (!dv_failed_outside(status)) return DVBF_OK;
  if (error) *error = inner;
  return status;
}

static dvbf_status load_finished(dvbf_model **out, search *h, dvbf_error *error) {
  dv_search_tell(&h->base, "this run is finished: nothing is left to do");
  dvbf_status status = h->first ? dv_traces_remove(h->candidates, error) : DVBF_OK;
  if (!status && h->first) status = dvbf_model_load(out, h->folder.model, error);
  return status;
}

static dvbf_status run(dvbf_model **out, search *h, dvbf_error *error) {
  bool more = true;
  dvbf_status status = h->first ? begin(h, error) : DVBF_OK;
  if (!status) status = dv_share_list(h->base.team, &h->base.candidates, &more, &h->base.stopped, error);
  if (status) return status;
  if (is_finished(h)) return load_finished(out, h, error);
  status = find_linear(h, error);
  if (!status) status = dv_referee_init(&h->base.referee, h->base.settings, h->base.data, error);
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
  search h = {.base = {.settings = settings,
                       .data = data,
                       .options = options ? options : &none,
                       .team = dv_settings_ranks(settings),
                       .began = dv_search_clock()},
              .s = dv_settings_train(settings, error)};
  dvbf_model *m = NULL;
  h.folder.lock = -1;
  h.first = dv_team_rank(h.base.team) == 0;
  uint64_t print = 0;
  dvbf_status status = dv_data_validate(data, "data", error);
  size_t steps = data->train.steps;
  if (h.s->window && (size_t)h.s->window < steps) steps = (size_t)h.s->window;
  if (!status) status = dv_check_length(dv_model_class_of(h.s), settings, steps, "training", error);
  if (!status && h.base.team) status = dv_data_fingerprint(&print, data, error);
  if (!status) status = dv_ranks_alike(h.base.team, settings, print, error);
  if (status) return status;
  const char *folder = h.base.options->folder;
  if (folder && h.first) status = dv_folder_open(&h.folder, h.base.options, settings, error);
  if (folder) {
    dv_join(h.file, folder, DVBF_RUN_SEARCH);
    dv_join(h.candidates, folder, "search");
    h.base.file = h.first ? h.file : NULL;
    h.base.folder = h.candidates;
  }
  if (!status) status = run(&m, &h, error);
  if (!status) status = dv_share_model(h.base.team, &m, error);
  if (!status) m->seconds = dv_search_clock() - h.base.began;
  if (folder && h.first) dv_folder_close(&h.folder);
  dvbf_model_free(h.linear);
  dv_referee_clear(&h.base.referee);
  dv_candidates_free(&h.base.candidates);
  if (status)
    dvbf_model_free(m);
  else
    *out = m;
  return status;
}

/* ---- The public functions ---- */

dvbf_status dvbf_train(dvbf_model **out, const dvbf_settings *settings, const dvbf_data *data,
                       const dvbf_train_options *options, dvbf_error *error) {
  DV_COMPUTE(dv_settings_portable(settings));
  const dv_train_settings *s = dv_settings_train(settings, error);
  if (dv_settings_fit_model(settings, NULL, true, error)) return DVBF_ARGUMENT;
  if (*data->question) return dv_fail(error, DVBF_FORMAT, "data: %s", data->question);
  dvbf_status status = s->search ? train_by_search(out, settings, data, options, error)
                                 : dv_train(out, NULL, settings, data, options, 0, error);
  if (status || !options || !options->folder || dvbf_ranks_number(dv_settings_ranks(settings))) return status;
  status = dv_about_write(data, options->folder, error);
  if (!status) return DVBF_OK;
  dvbf_model_free(*out);
  *out = NULL;
  return status;
}

/* Parts of one's own are trained as they are. */
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
