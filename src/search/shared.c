#include "search/shared.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

/* How far a candidate is. */
typedef struct report {
  uint64_t candidate, updates, done;
  dv_score score;
  uint64_t bytes; /* of its model, at the end; 0: it has none */
} report;

/* ---- Dealing ---- */

static bool is_open(const dv_candidate *c) {
  return c->updates < c->target;
}

dvbf_status dv_shares_deal(dv_shares *s, dv_team *team, const dv_candidates *all, dvbf_error *error) {
  size_t ranks = (size_t)dv_team_size(team), n = 0;
  *s = (dv_shares){.team = team};
  if (!team) return DVBF_OK;
  s->first = dv_calloc(ranks + 1, sizeof *s->first);
  s->reports = dv_calloc(all->count + 1, sizeof *s->reports);
  if (!s->first || !s->reports) return dv_fail_memory(error, "sharing out candidates");
  for (size_t r = 0; r < ranks; r++) {
    s->first[r] = n;
    for (size_t i = 0, open = 0; i < all->count; i++)
      if (is_open(&all->list[i]) && open++ % ranks == r) s->reports[n++].candidate = i;
  }
  s->first[ranks] = s->count = n;
  return DVBF_OK;
}

void dv_shares_clear(dv_shares *s) {
  DV_FREE(s->first, s->reports);
  *s = (dv_shares){0};
}

static size_t owned_from(const dv_shares *s) {
  return s->first[dv_team_rank(s->team)];
}

static size_t owned_until(const dv_shares *s) {
  return s->first[dv_team_rank(s->team) + 1];
}

bool dv_shares_mine(const dv_shares *s, size_t i) {
  if (!s->team) return true;
  for (size_t k = owned_from(s); k < owned_until(s); k++)
    if (s->reports[k].candidate == i) return true;
  return false;
}

/* ---- During a round ---- */

void dv_shares_note(dv_shares *s, const dv_candidates *all) {
  if (!s->team) return;
  for (size_t k = owned_from(s); k < owned_until(s); k++) {
    const dv_candidate *c = &all->list[s->reports[k].candidate];
    s->reports[k].updates = c->updates;
    s->reports[k].done = c->done;
    s->reports[k].score = c->score;
  }
}

void dv_shares_tell(dv_shares *s, dv_turn *turn) {
  if (!s->team) return;
  dv_team_gather_parts(s->team, s->reports, sizeof *s->reports, s->first);
  int all = dv_team_largest(s->team, turn->busy), stop = dv_team_largest(s->team, turn->stop);
  turn->busy = all;
  turn->stop = stop;
}

void dv_shares_take(const dv_shares *s, dv_candidates *all, dv_turn *turn) {
  turn->judged = all->count;
  for (size_t k = 0; k < s->count; k++) {
    const report *r = &s->reports[k];
    if (k >= owned_from(s) && k < owned_until(s)) continue;
    dv_candidate *c = &all->list[r->candidate];
    if (r->updates > c->updates) turn->judged = r->candidate;
    c->updates = r->updates;
    c->done = r->done;
    c->score = r->score;
  }
}

/* ---- Models ---- */

/* The models of other ranks arrive in `from` [count], in the order of the reports. */
static dvbf_status receive(const dv_shares *s, dv_candidates *all, void **from, dv_parcel *in,
                           dvbf_error *error) {
  size_t n = 0;
  dvbf_status status = DVBF_OK;
  for (int r = 1; r < dv_team_size(s->team); r++)
    for (size_t k = s->first[r]; k < s->first[r + 1]; k++) {
      if (!s->reports[k].bytes) continue;
      from[k] = dv_calloc(1, s->reports[k].bytes);
      if (!from[k]) return dv_fail_memory(error, "gathering models");
      in[n++] = (dv_parcel){.rank = r, .data = from[k], .bytes = s->reports[k].bytes};
    }
  dv_team_exchange(s->team, NULL, 0, in, n);
  for (size_t k = s->first[1]; k < s->count && !status; k++) {
    dv_candidate *c = &all->list[s->reports[k].candidate];
    if (!from[k]) continue;
    dvbf_model_free(c->model);
    c->model = NULL;
    status = dvbf_model_from_bytes(&c->model, from[k], s->reports[k].bytes, error);
  }
  return status;
}

static void send(const dv_shares *s, void **bytes, dv_parcel *out) {
  size_t n = 0;
  for (size_t k = owned_from(s); k < owned_until(s); k++)
    if (bytes[k]) out[n++] = (dv_parcel){.rank = 0, .data = bytes[k], .bytes = s->reports[k].bytes};
  dv_team_exchange(s->team, out, n, NULL, 0);
}

static dvbf_status collect(const dv_shares *s, dv_candidates *all, void **bytes, dv_parcel *parcels,
                           dvbf_error *error) {
  bool first = dv_team_rank(s->team) == 0;
  dvbf_status status = DVBF_OK;
  for (size_t k = owned_from(s); k < owned_until(s) && !status && !first; k++) {
    const dvbf_model *m = all->list[s->reports[k].candidate].model;
    size_t size = 0;
    if (m) status = dvbf_model_to_bytes(&bytes[k], &size, m, error);
    s->reports[k].bytes = size;
  }
  if (status) return status;
  dv_team_gather_parts(s->team, s->reports, sizeof *s->reports, s->first);
  if (first) return receive(s, all, bytes, parcels, error);
  send(s, bytes, parcels);
  return DVBF_OK;
}

dvbf_status dv_shares_collect(const dv_shares *s, dv_candidates *all, dvbf_error *error) {
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

/* ---- What the first rank decides ---- */

dvbf_status dv_share_list(dv_team *team, dv_candidates *all, bool *more, bool *stopped, dvbf_error *error) {
  struct {
    uint64_t count, more, stopped;
  } head = {all->count, *more, *stopped};
  if (!team) return DVBF_OK;
  bool first = dv_team_rank(team) == 0;
  dv_team_broadcast(team, &head, sizeof head);
  for (size_t i = 0; i < all->count && !first; i++) dvbf_model_free(all->list[i].model);
  if (!all->list) all->list = dv_calloc(DV_MOST_CANDIDATES + 1, sizeof *all->list);
  if (!all->list) return dv_fail_memory(error, "listing candidates");
  dv_team_broadcast(team, all->list, head.count * sizeof *all->list);
  for (size_t i = 0; i < head.count && !first; i++) all->list[i].model = NULL; /* an address of the other */
  all->count = head.count;
  *more = head.more;
  *stopped = head.stopped;
  return DVBF_OK;
}

dvbf_status dv_share_model(dv_team *team, dvbf_model **model, dvbf_error *error) {
  void *bytes = NULL;
  size_t size = 0;
  if (!team) return DVBF_OK;
  bool first = dv_team_rank(team) == 0;
  dvbf_status status = first ? dvbf_model_to_bytes(&bytes, &size, *model, error) : DVBF_OK;
  if (status) return status;
  dv_team_broadcast(team, &size, sizeof size);
  if (!first && !(bytes = dv_calloc(1, size))) return dv_fail_memory(error, "sharing the model");
  dv_team_broadcast(team, bytes, size);
  if (!first) status = dvbf_model_from_bytes(model, bytes, size, error);
  dvbf_bytes_free(bytes);
  return status;
}
