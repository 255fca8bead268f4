#include "search/crew.h"

#include "base/arithmetic.h"
#include "base/file.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "train/train.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What the threads share; `lock` guards all of it, and the candidates. */
typedef struct crew {
  dv_search *search;
  dv_shares shares; /* of the ranks; only the thread that began the search exchanges them */
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

double dv_search_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The candidates of one line of the table, which stand as far apart as the
 * table has lines, take different folds; finals have the one that leaves out nothing. */
size_t dv_candidate_fold(const dv_search *s, size_t i) {
  size_t count = s->referee.folds.count;
  return s->candidates.list[i].final ? count : (i + i / dv_candidates_lines()) % count;
}

void dv_candidate_folder(char *out, size_t size, const char *folder, size_t i) {
  snprintf(out, size, "%s/%03zu", folder, i + 1);
}

/* ---- Telling ---- */

void dv_search_tell(dv_search *s, const char *event) {
  const dvbf_train_options *o = s->options;
  uint64_t done = 0;
  for (size_t i = 0; i < s->candidates.count; i++) done += s->candidates.list[i].done;
  double seconds = dv_search_clock() - s->began, left = (double)s->planned - (double)done;
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

typedef struct job {
  crew *crew;
  dv_candidate *candidate;
  bool cut; /* the training was asked to stop */
} job;

static bool follow(const dvbf_progress *p, void *user) {
  job *j = user;
  pthread_mutex_lock(&j->crew->lock);
  if (p->update > j->candidate->done) j->candidate->done = p->update;
  j->cut = j->crew->stop;
  pthread_mutex_unlock(&j->crew->lock);
  return !j->cut;
}

/* Trains to the target; what is kept is in the candidate's folder. A training that diverges, or is stopped
 * before it begins, leaves no model and is no failure of the search. */
static dvbf_status train_one(dvbf_model **out, job *j, size_t number, size_t fold, bool kept,
                             dvbf_error *error) {
  const dv_search *s = j->crew->search;
  const volatile int *interrupt = dv_settings_interrupt(s->settings);
  dvbf_settings *settings = NULL;
  char path[4096];
  bool anew = dv_candidate_fitted(j->candidate); /* fits take seconds, and do not go on */
  dvbf_train_options how = {
      .progress = follow, .user_data = j, .resume = s->folder && !anew, .force = s->folder && anew};
  if (s->folder) dv_candidate_folder(path, sizeof path, s->folder, number);
  if (s->folder && kept) how.folder = path;
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

/* Judges one that is fitted by all folds: fits take little time, and one fold alone says little. */
static dvbf_status judge_fitted(dv_score *out, job *j, size_t number, dvbf_error *error) {
  const dv_referee *r = &j->crew->search->referee;
  double far = 0, near = 0, linear_far = 0, linear_near = 0;
  dvbf_status status = DVBF_OK;
  for (size_t f = 0; f < r->folds.count && !status && !j->cut; f++) {
    dvbf_model *model = NULL;
    dv_score score = {INFINITY, INFINITY, INFINITY};
    status = train_one(&model, j, number, f, false, error);
    if (!status && model) status = dv_referee_score(&score, r, f, model, error);
    dvbf_model_free(model);
    double a = r->linear[f].free_run, b = r->linear[f].one_step;
    far += score.free_run * score.free_run * a * a, linear_far += a * a;
    near += score.one_step * score.one_step * b * b, linear_near += b * b;
  }
  out->free_run = sqrt(far / linear_far);
  out->one_step = sqrt(near / linear_near);
  out->total = dv_referee_total(out->free_run, out->one_step);
  return status;
}

static dvbf_status judge(dv_score *out, job *j, size_t number, const dvbf_model *model, dvbf_error *error) {
  const dv_search *s = j->crew->search;
  const dv_candidate *c = j->candidate;
  *out = (dv_score){INFINITY, INFINITY, INFINITY};
  if (!model || j->cut) return DVBF_OK;
  if (!dv_candidate_fitted(c) || c->final)
    return dv_referee_score(out, &s->referee, dv_candidate_fold(s, number), model, error);
  return judge_fitted(out, j, number, error);
}

/* Says that a candidate was judged, and writes it down. */
static dvbf_status record(crew *w, size_t number, dvbf_error *error) {
  const dv_search *s = w->search;
  const dv_candidate *c = &s->candidates.list[number];
  dv_print(w->event, sizeof w->event,
           "candidate %zu of %zu, %s, %llu updates: error of the free run %.3g, one step %.3g of the linear "
           "model's",
           number + 1, s->candidates.count, c->name, (unsigned long long)c->updates, c->score.free_run,
           c->score.one_step);
  return s->file ? dv_candidates_write(&s->candidates, s->file, error) : DVBF_OK;
}

static dvbf_status try_one(job *j, size_t number, dvbf_error *error) {
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
    status = record(j->crew, number, error);
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
    job j = {.crew = w, .candidate = &all->list[number]};
    dvbf_error error;
    if (j.candidate->updates >= j.candidate->target || !dv_shares_mine(&w->shares, number)) continue;
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

/* ---- All of them ---- */

/* Ranks tell each other how far they are; false: none is at work any more. A rank that has failed says no
 * more, and ends the others when it ends. */
static bool take_turn(crew *w) {
  dv_turn turn = {.busy = w->running, .stop = w->stop};
  if (!w->shares.team || w->status) return w->running;
  dv_shares_note(&w->shares, &w->search->candidates);
  pthread_mutex_unlock(&w->lock);
  dv_shares_tell(&w->shares, &turn);
  pthread_mutex_lock(&w->lock);
  dv_shares_take(&w->shares, &w->search->candidates, &turn);
  w->stop = w->stop || turn.stop;
  w->search->stopped = w->search->stopped || turn.stop;
  if (turn.judged < w->search->candidates.count) w->status = record(w, turn.judged, &w->error);
  w->stop = w->stop || w->status;
  return turn.busy;
}

/* Tells a few times a second, on the thread that the user has called from. */
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
    dv_search_tell(w->search, *event ? event : NULL);
    w->stop = w->stop || w->search->stopped;
  }
}

dvbf_status dv_crew_run(dv_search *s, dvbf_error *error) {
  crew w = {.search = s,
            .lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER,
            .portable = dv_portable};
  unsigned threads = dvbf_settings_threads(s->settings), started = 0;
  if (threads > s->candidates.count) threads = (unsigned)s->candidates.count;
  dvbf_status status = dv_shares_deal(&w.shares, s->team, &s->candidates, error);
  pthread_t *list = status ? NULL : dv_calloc(threads, sizeof *list);
  if (!list) {
    dv_shares_clear(&w.shares);
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
  if (!status) status = dv_shares_collect(&w.shares, &s->candidates, error);
  dv_shares_clear(&w.shares);
  return status;
}
