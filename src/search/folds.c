#include "search/folds.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

/* ENOUGH validation sequences stay as they are. A part of a sequence has at least LEAST steps. */
enum { FOLDS = 5, ENOUGH = 8, LEAST = 12 };

/* ---- Lists of pieces ---- */

static dvbf_status list_new(dvbf_sequences *out, const dvbf_sequences *like, size_t room, dvbf_error *error) {
  *out = *like;
  out->count = out->steps = 0;
  out->origin = NULL;
  out->start = dv_calloc(room, sizeof *out->start);
  out->length = dv_calloc(room, sizeof *out->length);
  return out->start && out->length ? DVBF_OK : dv_fail_memory(error, "leaving out parts of the data");
}

static void add(dvbf_sequences *to, const dvbf_sequences *from, size_t i, size_t first, size_t end) {
  if (end < first + 2) return; /* a step alone has nothing to predict */
  to->start[to->count] = dvbf_sequence_start(from, i) + first;
  to->length[to->count++] = (uint32_t)(end - first);
  if (end - first > to->steps) to->steps = end - first;
}

static void add_all(dvbf_sequences *to, const dvbf_sequences *from) {
  for (size_t i = 0; i < from->count; i++) add(to, from, i, 0, dvbf_sequence_length(from, i));
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

/* Training and validation sequences together. */
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

/* Fold f of `count`: sequences in turn where there are enough of them, otherwise a block of each. */
static dvbf_status cut(dv_fold *out, const dvbf_data *data, const dvbf_sequences *all, size_t f, size_t count,
                       dvbf_error *error) {
  dvbf_sequences rest = {0}, every = {0};
  out->data = *data;
  out->data.train = out->data.valid = (dvbf_sequences){0};
  dvbf_status status = list_new(&out->part, all, all->count, error);
  if (!status) status = list_new(&rest, all, 2 * all->count, error);
  out->data.train = rest;
  if (!status) status = list_new(&every, all, 4 * all->count, error);
  out->data.valid = every;
  if (status) return status;
  for (size_t i = 0; i < all->count; i++) {
    size_t length = dvbf_sequence_length(all, i);
    bool whole = all->count >= count;
    size_t from = whole ? 0 : length * f / count, to = whole ? length : length * (f + 1) / count;
    if (whole && i % count != f) from = to = 0;
    add(&rest, all, i, 0, from);
    add(&rest, all, i, to, length);
    add(&out->part, all, i, from, to);
  }
  add_all(&every, &rest);
  add_all(&every, &out->part);
  add_all(&every, &out->part);
  out->data.train = rest;
  out->data.valid = every;
  return DVBF_OK;
}

/* The fold that leaves out nothing: it trains and validates on all of the data. */
static dvbf_status whole(dv_fold *out, const dvbf_data *data, const dvbf_sequences *all, dvbf_error *error) {
  out->data = *data;
  out->data.valid = (dvbf_sequences){0};
  out->part = (dvbf_sequences){.n_x = all->n_x, .n_u = all->n_u};
  dvbf_status status = list_new(&out->data.train, all, all->count, error);
  if (!status) status = list_new(&out->data.valid, all, all->count, error);
  if (status) return status;
  add_all(&out->data.train, all);
  add_all(&out->data.valid, all);
  return DVBF_OK;
}

/* The number of folds: fewer where the parts would be too short to be predicted. */
static size_t count_folds(const dvbf_sequences *all) {
  size_t count = FOLDS;
  while (count > 2 && all->count < count && all->steps / count < LEAST) count--;
  return count;
}

dvbf_status dv_folds_make(dv_folds *out, const dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *train = &data->train, *valid = &data->valid;
  bool shared =
      !valid->count || (train->x == valid->x && train->u == valid->u && train->source == valid->source);
  dvbf_sequences all = {0};
  *out = (dv_folds){.cut = shared && valid->count < ENOUGH};
  dvbf_status status = DVBF_OK;
  size_t count = 1;
  if (out->cut) status = join(&all, data, error);
  if (!status && out->cut) count = count_folds(&all);
  if (!status) out->list = dv_calloc(count + 1, sizeof *out->list);
  if (!status && !out->list) status = dv_fail_memory(error, "leaving out parts of the data");
  if (!status) out->count = count;
  for (size_t f = 0; f <= count && !status; f++) {
    if (!out->cut)
      out->list[f] = (dv_fold){*data, *valid};
    else if (f < count)
      status = cut(&out->list[f], data, &all, f, count, error);
    else
      status = whole(&out->list[f], data, &all, error);
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
