/* The order of sequences in training (dv_order_draw), from the seed alone: every sequence drawn from all
 * others or, for data in a file, runs of neighbours read in long pieces and shuffled in groups (updater.h).
 * Frames of a group stay in memory while it is used (dv_order_sequences). */
#include "train/updater.h"

#include "base/error.h"
#include "base/memory.h"
#include "math/random.h"

#include <stdlib.h>
#include <string.h>

/* Numbers in a run of chosen length. At least GROUP runs are shuffled together, enough for BATCHES times the
 * rows of a shard. */
enum { RUN_NUMBERS = 1 << 18, GROUP = 8, BATCHES = 4 };

/* Neighbouring frames in memory. */
typedef struct stretch {
  uint64_t first;
  size_t frames, at; /* at: its place in the buffer, in frames */
} stretch;

/* Reads held frames from memory, others from the file. */
typedef struct held {
  dvbf_source base;
  dvbf_source *file;
  size_t width;
  float *values;
  stretch *list, *rest; /* [group] sorted; [rows] of the group before, each one sequence */
  size_t count, n_rest;
} held;

/* A shard's part of sequences in runs. */
typedef struct lane {
  size_t first, count; /* of the sorted sequences */
  size_t runs, size;   /* how many runs, and sequences of a group */
  uint64_t epoch;      /* of its order, plus 1; 0: none */
  uint32_t *group;     /* [most] places in `sorted` of the group that the last row is in */
  size_t n_group, most;
  uint64_t wanted, there; /* numbers of the groups that are needed and held, plus 1; 0: none */
  held held;
  dvbf_sequences sequences;
} lane;

struct dv_order {
  const dvbf_sequences *train;
  int batch, rows, shards, first_shard, last_shard;
  bool in_runs;
  uint32_t *index;  /* [shards][rows] sequences of the minibatch */
  uint32_t *order;  /* [count] permutation of the epoch; in runs of `sorted`, lane by lane */
  uint64_t epoch;   /* of the permutation, plus 1; 0: none */
  uint64_t seed;    /* of what was drawn last */
  uint32_t *sorted; /* [count] by where they begin */
  uint32_t *mixed;  /* [runs] room for the permutation of the runs of a lane */
  lane *lanes;      /* [shards] */
};

/* ---- Memory ---- */

/* Frames of sequences that may overlap, in the order in which windows are cut. */
static double covered(const dvbf_sequences *s) {
  double frames = 0;
  for (size_t i = 0; i < s->count; i++) {
    size_t start = dvbf_sequence_start(s, i), length = dvbf_sequence_length(s, i);
    size_t next = i + 1 < s->count ? dvbf_sequence_start(s, i + 1) : 0;
    frames += next > start && next - start < length ? (double)(next - start) : (double)length;
  }
  return frames;
}

/* Sequences of a run. It depends on the data alone, not on their storage or the size of memory. */
static size_t run_of(const dvbf_sequences *s, const dv_train_settings *settings) {
  size_t numbers = s->steps * s->n_x;
  if (!numbers || s->count < 2 * (size_t)settings->batch_size) return 1;
  if (settings->read_run) return (size_t)settings->read_run;
  if (covered(s) * (double)s->n_x <= (double)dv_large || numbers >= RUN_NUMBERS) return 1;
  return RUN_NUMBERS / numbers;
}

typedef struct sequence_place {
  uint64_t start;
  uint32_t sequence;
} sequence_place;

static int compare(const void *a, const void *b) {
  const sequence_place *p = a, *q = b;
  if (p->start != q->start) return p->start < q->start ? -1 : 1;
  return (p->sequence > q->sequence) - (p->sequence < q->sequence);
}

static bool sort(dv_order *o) {
  sequence_place *list = dv_calloc(o->train->count, sizeof *list);
  o->sorted = dv_calloc(o->train->count, sizeof *o->sorted);
  if (list && o->sorted) {
    for (size_t i = 0; i < o->train->count; i++)
      list[i] = (sequence_place){dvbf_sequence_start(o->train, i), (uint32_t)i};
    qsort(list, o->train->count, sizeof *list, compare);
    for (size_t i = 0; i < o->train->count; i++) o->sorted[i] = list[i].sequence;
  }
  dv_free(list);
  return list && o->sorted;
}

static size_t first_run(const lane *l, size_t run) {
  return l->count * run / l->runs;
}

static bool read_held(dvbf_source *source, uint64_t first, size_t frames, float *out);

/* Memory for the frames of a group and for those of one minibatch of the group before. */
static bool hold(lane *l, const dvbf_sequences *train, size_t rows) {
  size_t room, most = l->most;
  held *h = &l->held;
  h->base = (dvbf_source){.read = read_held, .limits = train->source->limits};
  memcpy(h->base.path, train->source->path, sizeof h->base.path);
  h->file = train->source;
  h->width = train->n_x;
  if (!dv_multiply(most + rows, train->steps, &room) || !dv_multiply(room, train->n_x, &room)) return false;
  h->values = dv_calloc(room, sizeof *h->values);
  h->list = dv_calloc(most, sizeof *h->list);
  h->rest = dv_calloc(rows, sizeof *h->rest);
  l->sequences.source = &h->base;
  return h->values && h->list && h->rest;
}

/* A lane has as large a part of the sequences as its shard has of the minibatch. */
static bool make_lanes(dv_order *o, size_t run) {
  size_t count = o->train->count, rows = (size_t)o->rows, largest = 0;
  o->lanes = dv_calloc((size_t)o->shards, sizeof *o->lanes);
  if (!o->lanes) return false;
  for (int i = 0; i < o->shards; i++) {
    lane *l = &o->lanes[i];
    size_t from = (size_t)i * rows, until = from + rows < (size_t)o->batch ? from + rows : (size_t)o->batch;
    l->first = count * from / (size_t)o->batch;
    l->count = count * until / (size_t)o->batch - l->first;
    l->runs = l->count > run ? l->count / run : 1;
    l->size = GROUP * run > BATCHES * rows ? GROUP * run : BATCHES * rows;
    l->sequences = *o->train;
    if (i < o->first_shard || i >= o->last_shard) continue;
    l->most = l->size < l->count ? l->size : l->count;
    l->group = dv_calloc(l->most, sizeof *l->group);
    if (!l->group) return false;
    if (o->train->source && !o->train->x && !hold(l, o->train, rows)) return false;
    largest = l->runs > largest ? l->runs : largest;
  }
  o->mixed = dv_calloc(largest + 1, sizeof *o->mixed);
  return o->mixed;
}

dvbf_status dv_order_new(dv_order **out, const dvbf_sequences *train, const dv_train_settings *settings,
                         int rows, int first_shard, int last_shard, dvbf_error *error) {
  dv_order *o = dv_calloc(1, sizeof *o);
  if (!o) return dv_fail_memory(error, "preparing training");
  o->train = train;
  o->batch = (int)settings->batch_size;
  o->rows = rows;
  o->shards = (o->batch + rows - 1) / rows;
  o->first_shard = first_shard;
  o->last_shard = last_shard;
  o->index = dv_calloc((size_t)o->shards, (size_t)rows * sizeof *o->index);
  o->order = dv_calloc(train->count, sizeof *o->order);
  size_t run = run_of(train, settings);
  o->in_runs = run > 1;
  if (!o->index || !o->order || (o->in_runs && !(sort(o) && make_lanes(o, run)))) {
    dv_order_free(o);
    return dv_fail_memory(error, "preparing training");
  }
  *out = o;
  return DVBF_OK;
}

void dv_order_free(dv_order *o) {
  if (!o) return;
  for (int i = 0; o->lanes && i < o->shards; i++)
    DV_FREE(o->lanes[i].group, o->lanes[i].held.values, o->lanes[i].held.list, o->lanes[i].held.rest);
  DV_FREE(o->index, o->order, o->sorted, o->mixed, o->lanes, o);
}

/* ---- Single sequences ---- */

/* Sequence at position p of the endless stream of shuffled epochs. */
static uint32_t sequence_at(dv_order *o, uint64_t p) {
  uint64_t epoch = p / o->train->count;
  if (o->epoch != epoch + 1) {
    dv_random r = dv_random_at(o->seed, DV_STREAM_ORDER, (uint32_t)epoch, 0);
    dv_random_permutation(&r, o->order, o->train->count);
    o->epoch = epoch + 1;
  }
  return o->order[p % o->train->count];
}

/* ---- Runs ---- */

/* The order of a lane in one epoch: its runs shuffled, and then the sequences of each group of runs. */
static void shuffle_lane(dv_order *o, lane *l, uint32_t number, uint64_t epoch) {
  dv_random r = dv_random_at(o->seed, DV_STREAM_ORDER, (uint32_t)epoch, 1 + number);
  uint32_t *order = o->order + l->first;
  size_t n = 0;
  dv_random_permutation(&r, o->mixed, l->runs);
  for (size_t i = 0; i < l->runs; i++)
    for (size_t k = first_run(l, o->mixed[i]); k < first_run(l, o->mixed[i] + 1); k++)
      order[n++] = (uint32_t)(l->first + k);
  /* Groups begin at fixed places, so that a place tells its group; a run may be in two of them. */
  for (size_t from = 0; from < l->count; from += l->size) {
    size_t left = l->count - from;
    dv_random_shuffle(&r, order + from, left < l->size ? left : l->size);
  }
  l->epoch = epoch + 1;
}

/* Keeps the group of place p, for reading. */
static void want_group(const dv_order *o, lane *l, uint64_t p) {
  size_t size = l->size, groups = (l->count + size - 1) / size;
  size_t group = (size_t)(p % l->count) / size, from = group * size, left = l->count - from;
  uint64_t number = p / l->count * groups + group + 1;
  if (l->wanted == number) return;
  l->wanted = number;
  l->n_group = left < size ? left : size;
  memcpy(l->group, o->order + l->first + from, l->n_group * sizeof *l->group);
}

static void draw_lane(dv_order *o, int shard, uint64_t update) {
  lane *l = &o->lanes[shard];
  uint32_t *index = o->index + (size_t)shard * (size_t)o->rows;
  int left = o->batch - shard * o->rows, count = left < o->rows ? left : o->rows;
  uint64_t first = update * (uint64_t)count;
  for (int i = 0; i < count; i++) {
    uint64_t p = first + (uint64_t)i;
    if (l->epoch != p / l->count + 1) shuffle_lane(o, l, (uint32_t)shard, p / l->count);
    index[i] = o->sorted[o->order[l->first + p % l->count]];
  }
  for (int i = count; i < o->rows; i++) index[i] = index[0];
  want_group(o, l, first + (uint64_t)count - 1);
}

void dv_order_draw(dv_order *o, uint64_t seed, uint64_t update) {
  if (o->seed != seed) {
    o->epoch = 0;
    for (int i = 0; o->in_runs && i < o->shards; i++)
      o->lanes[i].epoch = o->lanes[i].wanted = o->lanes[i].there = 0;
  }
  o->seed = seed;
  for (int i = o->first_shard; o->in_runs && i < o->last_shard; i++) draw_lane(o, i, update);
  for (int i = 0; !o->in_runs && i < o->shards * o->rows; i++)
    o->index[i] = i < o->batch ? sequence_at(o, update * (uint64_t)o->batch + (uint64_t)i) : o->index[0];
}

const uint32_t *dv_order_shard(const dv_order *o, int shard) {
  return o->index + (size_t)shard * (size_t)o->rows;
}

/* ---- Frames in memory ---- */

/* Place of frames first .. first + frames - 1 in the buffer, if they are there. */
static bool find(const held *h, uint64_t first, size_t frames, size_t *at) {
  size_t low = 0, high = h->count;
  for (size_t i = 0; i < h->n_rest; i++)
    if (h->rest[i].first == first && frames <= h->rest[i].frames) {
      *at = h->rest[i].at;
      return true;
    }
  while (low < high) { /* the first that begins behind `first` */
    size_t middle = low + (high - low) / 2;
    if (h->list[middle].first <= first)
      low = middle + 1;
    else
      high = middle;
  }
  const stretch *s = low ? &h->list[low - 1] : NULL;
  if (!s || first + frames > s->first + s->frames) return false;
  *at = s->at + (size_t)(first - s->first);
  return true;
}

static bool read_held(dvbf_source *source, uint64_t first, size_t frames, float *out) {
  const held *h = (const held *)source;
  size_t at;
  if (find(h, first, frames, &at)) {
    memcpy(out, h->values + at * h->width, frames * h->width * sizeof *out);
    return true;
  }
  bool good = h->file->read(h->file, first, frames, out);
  if (!good) __atomic_store_n(&h->file->failed, true, __ATOMIC_RELAXED);
  return good;
}

/* Rows of this minibatch that are of the group before move behind the room of groups. */
static void keep_rest(held *h, const dvbf_sequences *s, const uint32_t *index, int rows, size_t room) {
  size_t n = 0, at;
  for (int i = 0; i < rows; i++) {
    uint64_t first = dvbf_sequence_start(s, index[i]);
    size_t frames = dvbf_sequence_length(s, index[i]), to = room + n * s->steps;
    h->n_rest = 0; /* what was kept before is overwritten */
    if (!find(h, first, frames, &at)) continue;
    memcpy(h->values + to * h->width, h->values + at * h->width, frames * h->width * sizeof *h->values);
    h->rest[n++] = (stretch){first, frames, to};
  }
  h->n_rest = n;
}

/* Neighbours and windows that overlap are one stretch. */
static void list_stretches(held *h, const dv_order *o, const lane *l) {
  size_t at = 0;
  h->count = 0;
  for (size_t i = 0; i < l->n_group; i++) {
    uint32_t sequence = o->sorted[l->group[i]];
    uint64_t first = dvbf_sequence_start(o->train, sequence);
    uint64_t end = first + dvbf_sequence_length(o->train, sequence);
    stretch *last = h->count ? &h->list[h->count - 1] : NULL;
    if (last && first <= last->first + last->frames) {
      if (end <= last->first + last->frames) continue;
      at += (size_t)(end - last->first) - last->frames;
      last->frames = (size_t)(end - last->first);
    } else {
      h->list[h->count++] = (stretch){first, (size_t)(end - first), at};
      at += (size_t)(end - first);
    }
  }
}

static int by_rank(const void *a, const void *b) {
  uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;
  return (p > q) - (p < q);
}

/* Reads the wanted group, stretch by stretch. Unreadable frames are missing and reported later. */
static void read_group(const dv_order *o, lane *l) {
  held *h = &l->held;
  qsort(l->group, l->n_group, sizeof *l->group, by_rank);
  list_stretches(h, o, l);
  for (size_t i = 0; i < h->count; i++) {
    const stretch *s = &h->list[i];
    if (h->file->read(h->file, s->first, s->frames, h->values + s->at * h->width)) continue;
    __atomic_store_n(&h->file->failed, true, __ATOMIC_RELAXED);
    h->count = i; /* the others are read again, one by one */
  }
}

const dvbf_sequences *dv_order_sequences(dv_order *o, int shard) {
  lane *l = o->in_runs ? &o->lanes[shard] : NULL;
  if (!l || !l->held.values) return o->train;
  if (l->there != l->wanted) {
    keep_rest(&l->held, o->train, dv_order_shard(o, shard), o->rows, l->most * o->train->steps);
    read_group(o, l);
    l->there = l->wanted;
  }
  return &l->sequences;
}
