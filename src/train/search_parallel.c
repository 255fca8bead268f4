/* Training of a search's candidates, one on each core of each rank (dv_search_train_all), and what ranks
 * exchange: how far they are, finished models, and the first rank's decisions (dv_search_ranks_*). Every
 * candidate trains on one thread, so results depend neither on the number of threads nor of ranks. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/text.h"
#include "math/portable.h"
#include "train/search.h"
#include "train/trainer.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- Division among ranks ---- */

/* Progress of a candidate. */
typedef struct report {
  uint64_t candidate, updates, done;
  dv_score score;
  uint64_t bytes; /* of its model, at the end; 0: it has none */
} report;

/* Work of a round, and who does it. */
typedef struct division {
  dv_ranks *team;  /* NULL: one rank alone */
  size_t *first;   /* [ranks + 1] of each rank in `reports` */
  report *reports; /* [count] */
  size_t count;
} division;

/* Deals out the candidates that are not at their target. Clear also after a failure. */
static dvbf_status deal(division *s, dv_ranks *team, const dv_candidates *all, dvbf_error *error) {
  size_t ranks = (size_t)dv_ranks_size(team), n = 0;
  *s = (division){.team = team};
  if (!team) return DVBF_OK;
  s->first = dv_calloc(ranks + 1, sizeof *s->first);
  s->reports = dv_calloc(all->count + 1, sizeof *s->reports);
  if (!s->first || !s->reports) return dv_fail_memory(error, "sharing out candidates");
  for (size_t r = 0; r < ranks; r++) {
    s->first[r] = n;
    for (size_t i = 0, open = 0; i < all->count; i++)
      if (all->list[i].updates < all->list[i].target && open++ % ranks == r) s->reports[n++].candidate = i;
  }
  s->first[ranks] = s->count = n;
  return DVBF_OK;
}

static size_t owned_from(const division *s) {
  return s->first[dv_ranks_rank(s->team)];
}

static size_t owned_until(const division *s) {
  return s->first[dv_ranks_rank(s->team) + 1];
}

static bool is_mine(const division *s, size_t i) {
  if (!s->team) return true;
  for (size_t k = owned_from(s); k < owned_until(s); k++)
    if (s->reports[k].candidate == i) return true;
  return false;
}

/* Own progress goes to the reports. */
static void note(const division *s, const dv_candidates *all) {
  for (size_t k = owned_from(s); k < owned_until(s); k++) {
    const dv_candidate *c = &all->list[s->reports[k].candidate];
    s->reports[k].updates = c->updates;
    s->reports[k].done = c->done;
    s->reports[k].score = c->score;
  }
}

/* That of others comes from them. Returns the number of a candidate that was judged meanwhile, or their
 * count. */
static size_t take(const division *s, dv_candidates *all) {
  size_t judged = all->count;
  for (size_t k = 0; k < s->count; k++) {
    const report *r = &s->reports[k];
    if (k >= owned_from(s) && k < owned_until(s)) continue;
    dv_candidate *c = &all->list[r->candidate];
    if (r->updates > c->updates) judged = r->candidate;
    c->updates = r->updates;
    c->done = r->done;
    c->score = r->score;
  }
  return judged;
}

/* The models of other ranks arrive in `from` [count], in the order of the reports. */
static dvbf_status receive(const division *s, dv_candidates *all, void **from, dv_parcel *in,
                           dvbf_error *error) {
  size_t n = 0;
  dvbf_status status = DVBF_OK;
  for (int r = 1; r < dv_ranks_size(s->team); r++)
    for (size_t k = s->first[r]; k < s->first[r + 1]; k++) {
      if (!s->reports[k].bytes) continue;
      from[k] = dv_calloc(1, s->reports[k].bytes);
      if (!from[k]) return dv_fail_memory(error, "gathering models");
      in[n++] = (dv_parcel){.rank = r, .data = from[k], .bytes = s->reports[k].bytes};
    }
  dv_ranks_exchange(s->team, NULL, 0, in, n);
  for (size_t k = s->first[1]; k < s->count && !status; k++) {
    dv_candidate *c = &all->list[s->reports[k].candidate];
    if (!from[k]) continue;
    dvbf_model_free(c->model);
    c->model = NULL;
    status = dvbf_model_from_bytes(&c->model, from[k], s->reports[k].bytes, error);
  }
  return status;
}

static dvbf_status collect(const division *s, dv_candidates *all, void **bytes, dv_parcel *parcels,
                           dvbf_error *error) {
  bool first = dv_ranks_rank(s->team) == 0;
  dvbf_status status = DVBF_OK;
  for (size_t k = owned_from(s); k < owned_until(s) && !status && !first; k++) {
    const dvbf_model *m = all->list[s->reports[k].candidate].model;
    size_t size = 0;
    if (m) status = dvbf_model_to_bytes(&bytes[k], &size, m, error);
    s->reports[k].bytes = size;
  }
  if (status) return status;
  dv_ranks_gather_parts(s->team, s->reports, sizeof *s->reports, s->first);
  if (first) return receive(s, all, bytes, parcels, error);
  size_t n = 0;
  for (size_t k = owned_from(s); k < owned_until(s); k++)
    if (bytes[k]) parcels[n++] = (dv_parcel){.rank = 0, .data = bytes[k], .bytes = s->reports[k].bytes};
  dv_ranks_exchange(s->team, parcels, n, NULL, 0);
  return DVBF_OK;
}

/* After a round: the first rank gets the models of all. */
static dvbf_status collect_models(const division *s, dv_candidates *all, dvbf_error *error) {
  if (!s->team) return DVBF_OK;
  void **bytes = dv_calloc(s->count + 1, sizeof *bytes);
  dv_parcel *parcels = dv_calloc(s->count + 1, sizeof *parcels);
  dvbf_status status =
      bytes && parcels ? collect(s, all, bytes, parcels, error) : dv_fail_memory(error, "gathering models");
  for (size_t k = 0; bytes && k < s->count; k++) dvbf_bytes_free(bytes[k]);
  dv_free((void *)bytes);
  dv_free(parcels);
  return status;
}

/* ---- Training on threads ---- */

/* Shared by the threads; `lock` guards all of it, and the candidates. */
typedef struct crew {
  dv_search *search;
  division shares; /* of the ranks; only the thread that began the search exchanges them */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  size_t next;      /* candidate to begin */
  unsigned running; /* threads */
  bool portable;    /* arithmetic of who asked for the search */
  bool stop;
  char event[200]; /* the last that was not told yet; empty: none */
  dvbf_status status;
  dvbf_error error;
} crew;

/* Candidates of one line of the table, as far apart as the table has lines, take different folds; finals take
 * the fold that leaves out nothing. */
size_t dv_candidate_fold(const dv_search *s, size_t i) {
  size_t count = s->referee.folds.count;
  return s->candidates.list[i].final ? count : (i + i / dv_candidates_lines()) % count;
}

void dv_candidate_folder(char *out, size_t size, const char *folder, size_t i) {
  snprintf(out, size, "%.4060s/%03zu", folder, i + 1); /* a run folder has a shorter path */
}

/* ---- Reporting ---- */

void dv_search_report(dv_search *s, const char *event) {
  const dvbf_train_options *o = s->options;
  uint64_t done = 0;
  for (size_t i = 0; i < s->candidates.count; i++) done += s->candidates.list[i].done;
  double seconds = dv_clock() - s->began, left = (double)s->planned - (double)done;
  dvbf_progress p = {.update = done,
                     .updates = s->planned,
                     .start = 1,
                     .starts = 1,
                     .begun = 1,
                     .seconds = seconds,
                     .seconds_left = done ? fmax(0, left) * seconds / (double)done : 0,
                     .bound = NAN,
                     .valid_bound = NAN,
                     .valid_prediction = NAN,
                     .event = event};
  if (o->progress && !o->progress(&p, o->user_data)) s->stopped = true;
  if (dv_interrupted(dv_settings_interrupt(s->settings))) s->stopped = true;
}

/* ---- One candidate, on any thread ---- */

typedef struct candidate_job {
  crew *crew;
  dv_candidate *candidate;
  bool cut; /* the training was asked to stop */
} candidate_job;

static bool follow(const dvbf_progress *p, void *user) {
  candidate_job *j = user;
  pthread_mutex_lock(&j->crew->lock);
  if (p->update > j->candidate->done) j->candidate->done = p->update;
  j->cut = j->crew->stop;
  pthread_mutex_unlock(&j->crew->lock);
  return !j->cut;
}

/* Trains to the target; the result is in the candidate's folder. A training that diverges, or is stopped
 * before it begins, leaves no model and does not fail the search. */
static dvbf_status train_one(dvbf_model **out, candidate_job *j, size_t number, size_t fold, bool kept,
                             dvbf_error *error) {
  const dv_search *s = j->crew->search;
  const volatile int *interrupt = dv_settings_interrupt(s->settings);
  dvbf_settings *settings = NULL;
  char path[4096];
  bool anew = dv_candidate_fitted(j->candidate); /* fits take seconds, and do not go on */
  dvbf_train_options how = {
      .progress = follow, .user_data = j, .resume = *s->folder && !anew, .force = *s->folder && anew};
  if (*s->folder) dv_candidate_folder(path, sizeof path, s->folder, number);
  if (*s->folder && kept) how.folder = path;
  dvbf_status status = dv_candidate_settings(&settings, j->candidate, s->settings, error);
  if (!status) dvbf_settings_interrupt(settings, interrupt);
  dvbf_data known = s->referee.folds.list[fold].data;
  if (anew) known.valid = (dvbf_sequences){0}; /* a fit would learn from it */
  if (!status) status = dv_train(out, NULL, settings, &known, &how, j->candidate->target, error);
  dvbf_settings_free(settings);
  j->cut = j->cut || dv_interrupted(interrupt);
  if (anew && !dv_failed_outside(status)) return DVBF_OK; /* data without one */
  return status == DVBF_NUMERIC || status == DVBF_STOPPED ? DVBF_OK : status;
}

/* Judges a fitted candidate by all folds: fits take little time, and one fold says little. */
static dvbf_status judge_fitted(dv_score *out, candidate_job *j, size_t number, dvbf_error *error) {
  const dv_scorer *r = &j->crew->search->referee;
  double far = 0, near = 0, linear_far = 0, linear_near = 0;
  dvbf_status status = DVBF_OK;
  for (size_t f = 0; f < r->folds.count && !status && !j->cut; f++) {
    dvbf_model *model = NULL;
    dv_score score = {INFINITY, INFINITY, INFINITY};
    status = train_one(&model, j, number, f, false, error);
    if (!status && model) status = dv_scorer_score(&score, r, f, model, error);
    dvbf_model_free(model);
    double a = r->linear[f].free_run, b = r->linear[f].one_step;
    far += score.free_run * score.free_run * a * a, linear_far += a * a;
    near += score.one_step * score.one_step * b * b, linear_near += b * b;
  }
  out->free_run = sqrt(far / linear_far);
  out->one_step = sqrt(near / linear_near);
  out->total = dv_scorer_total(out->free_run, out->one_step);
  return status;
}

static dvbf_status judge(dv_score *out, candidate_job *j, size_t number, const dvbf_model *model,
                         dvbf_error *error) {
  const dv_search *s = j->crew->search;
  const dv_candidate *c = j->candidate;
  *out = (dv_score){INFINITY, INFINITY, INFINITY};
  if (!model || j->cut) return DVBF_OK;
  if (!dv_candidate_fitted(c) || c->final)
    return dv_scorer_score(out, &s->referee, dv_candidate_fold(s, number), model, error);
  return judge_fitted(out, j, number, error);
}

static dvbf_status record_progress(crew *w, size_t number, dvbf_error *error) {
  const dv_search *s = w->search;
  dv_candidate_sentence(w->event, sizeof w->event, &s->candidates, number, dv_scorer_has_linear(&s->referee));
  return *s->file ? dv_candidates_write(&s->candidates, s->file, error) : DVBF_OK;
}

static dvbf_status try_one(candidate_job *j, size_t number, dvbf_error *error) {
  dvbf_model *model = NULL;
  dv_score score;
  dvbf_status status = train_one(&model, j, number, dv_candidate_fold(j->crew->search, number), true, error);
  if (!status) status = judge(&score, j, number, model, error);
  if (status == DVBF_STOPPED) {
    j->cut = true;
    status = DVBF_OK;
  }
  if (status) {
    dvbf_model_free(model);
    return status;
  }
  pthread_mutex_lock(&j->crew->lock);
  dv_candidate *c = j->candidate;
  if (!c->model || !j->cut) {
    dvbf_model_free(c->model);
    c->model = model;
    model = NULL;
  }
  if (!j->cut) {
    c->score = score;
    c->updates = c->done = c->target;
    status = record_progress(j->crew, number, error);
  }
  pthread_mutex_unlock(&j->crew->lock);
  dvbf_model_free(model);
  return status;
}

/* Takes candidates until none is left, in their order. */
static void *work(void *user) {
  crew *w = user;
  dv_portable = w->portable;
  dv_candidates *all = &w->search->candidates;
  pthread_mutex_lock(&w->lock);
  while (!w->stop && !w->status && w->next < all->count) {
    size_t number = w->next++;
    candidate_job j = {.crew = w, .candidate = &all->list[number]};
    dvbf_error error;
    if (j.candidate->updates >= j.candidate->target || !is_mine(&w->shares, number)) continue;
    pthread_mutex_unlock(&w->lock);
    dvbf_status status = try_one(&j, number, &error);
    pthread_mutex_lock(&w->lock);
    if (status && !w->status) {
      w->status = status;
      w->error = error;
      w->stop = true;
    }
    pthread_cond_signal(&w->changed);
  }
  w->running--;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* ---- All candidates ---- */

/* Ranks exchange their progress; false: none is at work any more. A rank that has failed falls silent and
 * ends the others when it ends. */
static bool take_turn(crew *w) {
  const division *s = &w->shares;
  bool busy = w->running, stop = w->stop;
  if (!s->team || w->status) return busy;
  note(s, &w->search->candidates);
  pthread_mutex_unlock(&w->lock);
  dv_ranks_gather_parts(s->team, s->reports, sizeof *s->reports, s->first);
  busy = dvbf_ranks_largest(s->team, busy);
  stop = dvbf_ranks_largest(s->team, stop);
  pthread_mutex_lock(&w->lock);
  size_t judged = take(s, &w->search->candidates);
  w->stop = w->stop || stop;
  w->search->stopped = w->search->stopped || stop;
  if (judged < w->search->candidates.count) w->status = record_progress(w, judged, &w->error);
  w->stop = w->stop || w->status;
  return busy;
}

/* Reports a few times a second, on the user's thread. */
static void wait_and_tell(crew *w) {
  while (take_turn(w)) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 200000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!*w->event) pthread_cond_timedwait(&w->changed, &w->lock, &until);
    char event[sizeof w->event];
    memcpy(event, w->event, sizeof event);
    w->event[0] = 0;
    dv_search_report(w->search, *event ? event : NULL);
    w->stop = w->stop || w->search->stopped;
  }
}

dvbf_status dv_search_train_all(dv_search *s, dvbf_error *error) {
  crew w = {.search = s,
            .lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER,
            .portable = dv_portable};
  unsigned threads = dvbf_settings_threads(s->settings), started = 0;
  if (threads > s->candidates.count) threads = (unsigned)s->candidates.count;
  dvbf_status status = deal(&w.shares, s->team, &s->candidates, error);
  pthread_t *list = status ? NULL : dv_calloc(threads, sizeof *list);
  if (!list) {
    DV_FREE(w.shares.first, w.shares.reports);
    return status ? status : dv_fail_memory(error, "starting to search");
  }
  pthread_mutex_lock(&w.lock);
  while (started < threads && !pthread_create(&list[started], NULL, work, &w)) started++, w.running++;
  wait_and_tell(&w);
  pthread_mutex_unlock(&w.lock);
  for (unsigned i = 0; i < started; i++) pthread_join(list[i], NULL);
  dv_free(list);
  if (w.status && error) *error = w.error;
  status = w.status;
  if (!status && !started && threads)
    status = dv_fail(error, DVBF_MEMORY, "no thread could be started for the search");
  if (!status) status = collect_models(&w.shares, &s->candidates, error);
  DV_FREE(w.shares.first, w.shares.reports);
  return status;
}

/* ---- Decisions of the first rank ---- */

dvbf_status dv_search_ranks_list(dv_ranks *team, dv_candidates *all, bool *more, bool *stopped,
                                 dvbf_error *error) {
  struct {
    uint64_t count, more, stopped;
  } head = {all->count, *more, *stopped};
  if (!team) return DVBF_OK;
  bool first = dv_ranks_rank(team) == 0;
  dv_ranks_broadcast(team, &head, sizeof head);
  for (size_t i = 0; i < all->count && !first; i++) dvbf_model_free(all->list[i].model);
  if (!all->list) all->list = dv_calloc(DV_MOST_CANDIDATES + 1, sizeof *all->list);
  if (!all->list) return dv_fail_memory(error, "listing candidates");
  dv_ranks_broadcast(team, all->list, head.count * sizeof *all->list);
  for (size_t i = 0; i < head.count && !first; i++) all->list[i].model = NULL; /* an address of the other */
  all->count = head.count;
  *more = head.more;
  *stopped = head.stopped;
  return DVBF_OK;
}

dvbf_status dv_search_ranks_model(dv_ranks *team, dvbf_model **model, dvbf_error *error) {
  void *bytes = NULL;
  size_t size = 0;
  if (!team) return DVBF_OK;
  bool first = dv_ranks_rank(team) == 0;
  dvbf_status status = first ? dvbf_model_to_bytes(&bytes, &size, *model, error) : DVBF_OK;
  if (status) return status;
  dv_ranks_broadcast(team, &size, sizeof size);
  if (!first && !(bytes = dv_calloc(1, size))) return dv_fail_memory(error, "sharing the model");
  dv_ranks_broadcast(team, bytes, size);
  if (!first) status = dvbf_model_from_bytes(model, bytes, size, error);
  dvbf_bytes_free(bytes);
  return status;
}
