#include "infer/filter.h"

#include "base/arithmetic.h"
#include "base/status.h"
#include "base/tiny.h"
#include "infer/draws.h"

#include <string.h>

/* ---- Making ---- */

/* The planes of the members. They are found once and looked at twice: when bytes are counted and placed. */
typedef struct planes {
  dv_plane of[DV_MOST_MEMBERS];
} planes;

static dvbf_status find_planes(planes *p, const dvbf_model *model, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  *p = (planes){0};
  for (int i = 0; i < dv_model_members(model) && !status; i++)
    status = dv_plane_find(&p->of[i], dv_model_member(model, i), error);
  return status;
}

static void free_planes(planes *p) {
  for (int i = 0; i < DV_MOST_MEMBERS; i++) dv_plane_free(&p->of[i]);
}

static dvbf_filter *place(dv_room *room, const dvbf_model *model, size_t samples) {
  dvbf_filter *f = dv_room_take(room, 1, sizeof *f);
  size_t members = (size_t)dv_model_members(model), n_x = (size_t)model->n_x, rows = members * samples;
  dvbf_filter parts = {.model = model, .members = (int)members, .samples = samples};
  parts.member = dv_room_take(room, members, sizeof(dv_online *));
  parts.last = dv_room_take(room, (size_t)model->n_u, sizeof *parts.last);
  parts.mean = dv_room_take(room, members * n_x, sizeof *parts.mean);
  parts.variance = dv_room_take(room, members * n_x, sizeof *parts.variance);
  parts.x = dv_room_take(room, rows * n_x, sizeof *parts.x);
  parts.rows = dv_room_take(room, rows, sizeof(float *));
  parts.columns = dv_room_take(room, rows * DV_SORTED, sizeof *parts.columns);
  if (!f) return NULL;
  *f = parts;
  return f;
}

/* Counts bytes or places all parts. */
static dvbf_status lay_out(dvbf_filter **out, dv_room *room, const dvbf_model *model, size_t samples,
                           uint64_t seed, const planes *p, dvbf_error *error) {
  if (samples < 1 || samples > 65536)
    return dv_fail(error, DVBF_ARGUMENT, "samples = %zu: must be in [1, 65536]; 16 works well", samples);
  dvbf_filter *f = place(room, model, samples);
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < dv_model_members(model) && !status; i++) {
    dv_online *member = NULL;
    status = dv_online_place(&member, room, dv_model_member(model, i), samples, seed + (uint64_t)i, &p->of[i],
                             error);
    if (status || !f) continue;
    f->member[i] = member;
    f->same_row = f->same_row || dv_online_feeds_through(member);
  }
  if (!status) *out = f;
  return status;
}

static dvbf_status count_bytes(size_t *out, const dvbf_model *model, size_t samples, const planes *p,
                               dvbf_error *error) {
  dv_room room = {0};
  dvbf_filter *none = NULL;
  dvbf_status status = lay_out(&none, &room, model, samples, 0, p, error);
  if (!status) *out = room.used;
  return status;
}

dvbf_status dvbf_filter_memsize(size_t *out, const dvbf_model *model, size_t samples, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  planes p;
  dvbf_status status = find_planes(&p, model, error);
  if (!status) status = count_bytes(out, model, samples, &p, error);
  free_planes(&p);
  return status;
}

static dvbf_status init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model, size_t samples,
                        uint64_t seed, const planes *p, dvbf_error *error) {
  size_t needed;
  dvbf_status status = count_bytes(&needed, model, samples, p, error);
  if (status) return status;
  if (!memory || (uintptr_t)memory % 64 || size < needed)
    return dv_fail(error, DVBF_ARGUMENT,
                   "a filter of %zu samples needs %zu bytes at a multiple of 64, not %zu at %p", samples,
                   needed, size, memory);
  dv_room room = {.at = memory};
  return lay_out(out, &room, model, samples, seed, p, error);
}

dvbf_status dvbf_filter_init(dvbf_filter **out, void *memory, size_t size, const dvbf_model *model,
                             size_t samples, uint64_t seed, dvbf_error *error) {
  DV_COMPUTE(dv_model_portable(model));
  planes p;
  dvbf_status status = find_planes(&p, model, error);
  if (!status) status = init(out, memory, size, model, samples, seed, &p, error);
  free_planes(&p);
  return status;
}

void dvbf_filter_reset(dvbf_filter *f) {
  DV_COMPUTE(dv_model_portable(f->model));
  for (int i = 0; i < f->members; i++) dv_online_reset(f->member[i]);
  f->controlled = false;
}

void dvbf_filter_quiet(dvbf_filter *f, bool quiet) {
  for (int i = 0; i < f->members; i++) f->member[i]->conditions.noise_free = quiet;
}

/* ---- Stepping ---- */

/* A member without feedthrough takes the control since the step before, which came with that step where
 * another member has feedthrough. */
static const float *control_for(const dvbf_filter *f, const dv_online *member, const float *u) {
  if (!f->same_row || dv_online_feeds_through(member)) return u;
  return f->controlled ? f->last : NULL;
}

void dvbf_filter_step(dvbf_filter *f, const float *x, const float *u, dvbf_belief *belief) {
  DV_COMPUTE(dv_model_portable(f->model));
  const dv_online *best = f->member[0];
  bool ready = true;
  unsigned before = dv_flush_tiny_numbers();
  for (int i = 0; i < f->members; i++) {
    dv_online_step(f->member[i], x, control_for(f, f->member[i], u));
    ready = ready && dv_online_ready(f->member[i]);
  }
  dv_restore_tiny_numbers(before);
  f->controlled = f->same_row && u;
  if (f->controlled) memcpy(f->last, u, (size_t)f->model->n_u * sizeof *u);
  *belief = (dvbf_belief){.ready = ready,
                          .samples = f->samples,
                          .n_z = (size_t)f->model->n_z,
                          .mean = best->mean,
                          .deviation = best->deviation,
                          .z = best->z};
}
