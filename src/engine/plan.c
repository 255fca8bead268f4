/* Planning: each value and gradient gets a place in the arena for as long as it lives. */
#include "engine/graph.h"

#include "base/memory.h"
#include "base/status.h"

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

/* Lowest offset at which spans[i] meets none of the placed spans 0 .. i-1 that are alive with it. */
static size_t first_fit(const span *spans, int i) {
  size_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int j = 0; j < i; j++) {
      size_t other = *spans[j].offset;
      bool meet = at < other + spans[j].size && other < at + spans[i].size;
      if (meet && alive_together(&spans[i], &spans[j])) {
        at = other + spans[j].size;
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

/* Memory for ops that were not recorded; of a long sequence there are many. */
static void give_back(dvbf_graph *g) {
  dvbf_op *ops = g->n_ops ? dv_realloc(g->ops, (size_t)g->n_ops, sizeof *ops) : NULL;
  if (!ops) return;
  g->ops = ops;
  g->room_ops = g->n_ops;
}

dvbf_status dv_graph_plan(dvbf_graph *g, dvbf_error *error) {
  if (g->refused) return dv_fail(error, g->refused, "%s", g->sentence);
  dvbf_status status = dv_kernels_check(error);
  if (status) return status;
  span *spans = dv_calloc(2 * (size_t)g->n_buffers, sizeof *spans);
  if (!spans) return dv_fail_memory(error, "planning the model's memory");
  int count = list_spans(g, spans);
  qsort(spans, (size_t)count, sizeof *spans, by_size);
  for (int i = 0; i < count; i++) {
    size_t at = first_fit(spans, i);
    *spans[i].offset = at;
    if (at + spans[i].size > g->arena) g->arena = at + spans[i].size;
  }
  dv_free(spans);
  give_back(g);
  return DVBF_OK;
}

size_t dv_graph_arena_size(const dvbf_graph *g) {
  return g->arena;
}

size_t dv_graph_buffers(const dvbf_graph *g) {
  return (size_t)g->n_buffers;
}

/* ---- Packing: graph, ops, buffers and the ops' data behind each other ---- */

static size_t round_up(size_t size) {
  return (size + 63) / 64 * 64;
}

/* An op's data is the content of a remembered block. */
static size_t data_size(const dvbf_op *op) {
  if (!op->data) return 0;
  const unsigned char *content = op->data;
  return ((const remembered *)(content - offsetof(remembered, content)))->size;
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
