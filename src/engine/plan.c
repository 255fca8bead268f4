/* Planning: each value and gradient gets a place in one arena for as long as it lives, largest first at the
 * lowest free offset, so that a forward program reuses nearly all memory (dv_graph_plan). Packing copies a
 * planned program into one block of memory for runs that must not allocate (dv_graph_pack). */
#include "engine/engine.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct span {
  size_t size;      /* reals, rounded up to a cache line */
  int birth, death; /* moments, inclusive */
  int again, until; /* moments of a second life at the same place, or those of the first */
  size_t *offset;   /* where the answer goes */
} span;

/* A value lives from the first op that mentions it to the backward run of that op (any op may read its values
 * backward); without backward, to the last op. One of a segment alone lives while the segment runs forward,
 * and again from when it is run once more, before its last op runs backward. A gradient lives from the
 * backward run of the last op on. */
static span life_of_value(const dvbf_graph *g, dv_buffer *b, size_t size) {
  int end = 2 * g->n_ops, back = end - 1 - b->first;
  if (b->keep || b->first < 0) return (span){size, 0, end, 0, end, &b->offset};
  if (!g->training) return (span){size, b->first, b->last, b->first, b->last, &b->offset};
  if (b->segment < 0) return (span){size, b->first, back, b->first, back, &b->offset};
  return (span){size, b->first, b->last, end - g->segments[b->segment].last, back, &b->offset};
}

static int list_spans(dvbf_graph *g, span *spans) {
  int count = 0, end = 2 * g->n_ops;
  for (int i = 0; i < g->n_buffers; i++) {
    dv_buffer *b = &g->buffers[i];
    if (b->kind == DV_BUFFER_PARAMETER || b->kind == DV_BUFFER_FROZEN || (b->first < 0 && !b->keep)) continue;
    size_t size = (b->size + 15) / 16 * 16;
    spans[count++] = life_of_value(g, b, size);
    if (!g->training || b->kind != DV_BUFFER_VALUE || b->first < 0) continue;
    bool kept = b->keep_gradient;
    int birth = kept ? g->n_ops : end - 1 - b->last, death = kept ? end : end - 1 - b->first;
    spans[count++] = (span){size, birth, death, birth, death, &b->gradient};
  }
  return count;
}

static bool overlap(int birth, int death, int other_birth, int other_death) {
  return birth <= other_death && other_birth <= death;
}

static bool alive_together(const span *a, const span *b) {
  return overlap(a->birth, a->death, b->birth, b->death) || overlap(a->birth, a->death, b->again, b->until) ||
         overlap(a->again, a->until, b->birth, b->death) || overlap(a->again, a->until, b->again, b->until);
}

/* In a forward program most values live for a few ops, and a long sequence has hundreds of thousands of them:
 * each is compared only with those of the same moments and with the long-lived ones. */
enum { MOMENTS = 64 }; /* of a stretch; spans that live in more than two neighbouring ones live long */

typedef struct placed {
  const span *spans;
  int *head; /* [stretches] link of the span that was placed last in each, or -1 */
  int *next; /* [2 * spans] link 2 i is that of span i in its first stretch, 2 i + 1 in its last */
  int *near; /* [5 * spans] candidates: the long ones, and whom list_near puts behind them */
  int longs;
} placed;

static bool lives_short(const span *s) {
  return s->birth == s->again && s->death == s->until && s->death - s->birth < MOMENTS;
}

static void put(placed *p, int i) {
  const span *s = &p->spans[i];
  if (!lives_short(s)) {
    p->near[p->longs++] = i;
    return;
  }
  for (int k = 0; k < 2; k++) {
    int *head = &p->head[(k ? s->death : s->birth) / MOMENTS];
    p->next[2 * i + k] = *head;
    *head = 2 * i + k;
  }
}

static int list_between(const placed *p, int birth, int death, int count) {
  for (int at = birth / MOMENTS; at <= death / MOMENTS; at++)
    for (int link = p->head[at]; link >= 0; link = p->next[link]) p->near[count++] = link / 2;
  return count;
}

/* Lists values that may be alive together with the span; some may be listed once for each of its lives. */
static int list_near(const placed *p, const span *s) {
  int count = list_between(p, s->birth, s->death, p->longs);
  return s->again == s->birth ? count : list_between(p, s->again, s->until, count);
}

/* Lowest offset at which spans[i] meets none of the placed spans that are alive with it. */
static size_t first_fit(const placed *p, int i) {
  const span *s = &p->spans[i];
  int count = list_near(p, s);
  size_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int j = 0; j < count; j++) {
      const span *other = &p->spans[p->near[j]];
      size_t from = *other->offset;
      bool meet = at < from + other->size && from < at + s->size;
      if (meet && alive_together(s, other)) {
        at = from + other->size;
        moved = true;
      }
    }
  }
  return at;
}

static int by_size(const void *a, const void *b) {
  size_t x = ((const span *)a)->size, y = ((const span *)b)->size;
  return x > y ? -1 : x < y;
}

static dvbf_status place_all(dvbf_graph *g, span *spans, int count) {
  size_t n = (size_t)count, stretches = 2 * (size_t)g->n_ops / MOMENTS + 1;
  placed p = {.spans = spans, .head = dv_calloc(stretches, sizeof *p.head)};
  p.next = dv_calloc(2 * n + 1, sizeof *p.next);
  p.near = dv_calloc(5 * n + 1, sizeof *p.near);
  bool there = p.head && p.next && p.near;
  for (size_t i = 0; i < stretches && there; i++) p.head[i] = -1;
  qsort(spans, n, sizeof *spans, by_size);
  for (int i = 0; i < count && there; i++) {
    size_t at = first_fit(&p, i);
    *spans[i].offset = at;
    if (at + spans[i].size > g->arena) g->arena = at + spans[i].size;
    put(&p, i);
  }
  DV_FREE(p.head, p.next, p.near);
  return there ? DVBF_OK : DVBF_MEMORY;
}

/* Memory for ops that were not recorded; of a long sequence there are many. */
static void give_back(dvbf_graph *g) {
  dvbf_op *ops = g->n_ops ? dv_realloc(g->ops, (size_t)g->n_ops, sizeof *ops) : NULL;
  if (ops) g->ops = ops;
}

dvbf_status dv_graph_plan(dvbf_graph *g, dvbf_error *error) {
  if (g->refused) return dv_fail(error, g->refused, "%s", g->sentence);
  dvbf_status status = dv_kernels_check(error);
  if (status) return status;
  span *spans = dv_calloc(2 * (size_t)g->n_buffers, sizeof *spans);
  status = spans ? place_all(g, spans, list_spans(g, spans)) : DVBF_MEMORY;
  dv_free(spans);
  if (status) return dv_fail_memory(error, "planning the model's memory");
  give_back(g);
  return DVBF_OK;
}

/* ---- Packing: graph, ops, buffers and the ops' data behind each other ---- */

static size_t round_up(size_t size) {
  return (size + 63) / 64 * 64;
}

/* An op's data is the content of a remembered block. */
static size_t data_size(const dvbf_op *op) {
  if (!op->data) return 0;
  const unsigned char *content = op->data;
  return ((const dv_remembered *)(content - offsetof(dv_remembered, content)))->size;
}

size_t dv_graph_packed_size(const dvbf_graph *g) {
  size_t size = round_up(sizeof *g) + round_up((size_t)g->n_ops * sizeof *g->ops) +
                round_up((size_t)g->n_buffers * sizeof *g->buffers);
  for (int i = 0; i < g->n_ops; i++) size += round_up(data_size(&g->ops[i]));
  return size;
}

static void *append(unsigned char **to, const void *from, size_t size) {
  void *at = *to;
  if (size) memcpy(at, from, size);
  *to += round_up(size);
  return at;
}

const dvbf_graph *dv_graph_pack(const dvbf_graph *g, void *memory) {
  unsigned char *to = memory;
  dvbf_graph *packed = append(&to, g, sizeof *g);
  packed->ops = append(&to, g->ops, (size_t)g->n_ops * sizeof *g->ops);
  packed->buffers = append(&to, g->buffers, (size_t)g->n_buffers * sizeof *g->buffers);
  packed->parameters = NULL;
  packed->memory = NULL;
  packed->segments = NULL;
  packed->n_segments = 0;
  for (int i = 0; i < g->n_ops; i++)
    if (g->ops[i].data) packed->ops[i].data = append(&to, g->ops[i].data, data_size(&g->ops[i]));
  return packed;
}
