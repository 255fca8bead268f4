#include "engine/engine.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct remembered {
  struct remembered *next;
  size_t size;
  _Alignas(16) unsigned char content[];
} remembered;

struct dvbf_graph {
  dv_parameters *parameters;
  int rows;
  bool training;
  int noise_numbers;
  double flops;
  dv_buffer *buffers;
  int n_buffers, room_buffers;
  dvbf_op *ops;
  int n_ops, room_ops;
  remembered *memory;
  size_t arena;
  dvbf_status refused;
  char sentence[400];
};

/* ---- Parameters ---- */

void dv_parameters_free(dv_parameters *p) {
  dv_free(p->list);
  dv_free(p->values);
  *p = (dv_parameters){0};
}

static dv_parameter *find_parameter(dv_parameters *p, const char *name) {
  for (size_t i = 0; i < p->count; i++)
    if (!strcmp(p->list[i].name, name)) return &p->list[i];
  return NULL;
}

/* Every parameter starts at a multiple of 16 reals, so that vectors never straddle a cache line. */
static bool grow_parameters(dv_parameters *p, size_t size) {
  if (p->count == p->capacity) {
    size_t capacity = p->capacity ? 2 * p->capacity : 32;
    dv_parameter *list = dv_realloc(p->list, capacity, sizeof *list);
    if (!list) return false;
    p->list = list;
    p->capacity = capacity;
  }
  size_t need = p->size + (size + 15) / 16 * 16;
  if (need > p->room) {
    size_t room = need > 2 * p->room ? need : 2 * p->room;
    dvbf_real *values = dv_calloc_aligned(room, sizeof *values);
    if (!values) return false;
    if (p->size) memcpy(values, p->values, p->size * sizeof *values);
    dv_free(p->values);
    p->values = values;
    p->room = room;
  }
  p->size = need;
  return true;
}

static dv_parameter *add_parameter(dv_parameters *p, const char *name, int rows, int cols, dvbf_first first) {
  size_t size = (size_t)rows * (size_t)cols, offset = p->size;
  if (!grow_parameters(p, size)) return NULL;
  dv_random random = dv_random_at(p->seed, DV_STREAM_INITIALISE, (uint32_t)p->count, 0);
  for (size_t i = 0; i < size; i++) {
    double mean = first.values ? first.values[i] : first.mean;
    p->values[offset + i] =
        (dvbf_real)(mean + (first.scale > 0 ? first.scale * dv_random_normal(&random) : 0));
  }
  dv_parameter *new = &p->list[p->count++];
  *new = (dv_parameter){.rows = rows, .cols = cols, .offset = offset, .frozen = first.frozen};
  snprintf(new->name, sizeof new->name, "%s", name);
  return new;
}

/* ---- Recording ---- */

dvbf_graph *dv_graph_new(dv_parameters *parameters, int rows, bool training) {
  dvbf_graph *g = dv_calloc(1, sizeof *g);
  if (!g) return NULL;
  g->parameters = parameters;
  g->rows = rows;
  g->training = training;
  return g;
}

void dv_graph_free(dvbf_graph *g) {
  if (!g) return;
  for (remembered *m = g->memory; m;) {
    remembered *next = m->next;
    dv_free(m);
    m = next;
  }
  dv_free(g->buffers);
  dv_free(g->ops);
  dv_free(g);
}

int dv_graph_rows(const dvbf_graph *g) {
  return g->rows;
}

int dv_graph_noise_number(dvbf_graph *g) {
  return g->noise_numbers++;
}

bool dv_graph_training(const dvbf_graph *g) {
  return g->training;
}

bool dv_graph_has_gradient(const dvbf_graph *g, dvbf_value value) {
  dv_buffer_kind kind = g->buffers[value.buffer].kind;
  return g->training && (kind == DV_BUFFER_VALUE || kind == DV_BUFFER_PARAMETER);
}

double dv_graph_flops(const dvbf_graph *g) {
  return g->flops;
}

void dv_graph_count_flops(dvbf_graph *g, double flops) {
  g->flops += flops;
}

void dvbf_refuse(dvbf_graph *g, const char *format, ...) {
  if (g->refused) return;
  g->refused = DVBF_ARGUMENT;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(g->sentence, sizeof g->sentence, format, arguments);
  va_end(arguments);
}

void dv_graph_refuse_memory(dvbf_graph *g) {
  dvbf_refuse(g, "out of memory while recording the model; fewer steps or a smaller batch-size need less");
  g->refused = DVBF_MEMORY;
}

void *dvbf_remember(dvbf_graph *g, const void *content, size_t size) {
  remembered *m = dv_calloc(1, sizeof *m + size);
  if (!m) {
    dv_graph_refuse_memory(g);
    return NULL;
  }
  if (content) memcpy(m->content, content, size);
  m->size = size;
  m->next = g->memory;
  g->memory = m;
  return m->content;
}

static dvbf_value new_buffer(dvbf_graph *g, dv_buffer_kind kind, int steps, int rows, int cols) {
  if (g->n_buffers == g->room_buffers) {
    int room = g->room_buffers ? 2 * g->room_buffers : 64;
    dv_buffer *buffers = dv_realloc(g->buffers, (size_t)room, sizeof *buffers);
    if (!buffers) {
      dv_graph_refuse_memory(g);
      return DVBF_NONE;
    }
    g->buffers = buffers;
    g->room_buffers = room;
  }
  size_t size, all;
  if (steps < 1 || rows < 1 || cols < 1 || !dv_multiply((size_t)steps, (size_t)rows, &size) ||
      !dv_multiply(size, (size_t)cols, &all) || all > ((size_t)1 << 40)) {
    dvbf_refuse(g, "a value of shape [%d][%d][%d] cannot be recorded", steps, rows, cols);
    return DVBF_NONE;
  }
  g->buffers[g->n_buffers] =
      (dv_buffer){.kind = kind, .size = all, .first = -1, .last = -1, .shares = g->n_buffers};
  return (dvbf_value){g->n_buffers++, steps, rows, cols, 0, (size_t)rows * (size_t)cols};
}

dvbf_value dvbf_slab(dvbf_graph *g, int steps, int cols) {
  return new_buffer(g, DV_BUFFER_VALUE, steps, g->rows, cols);
}

dvbf_value dvbf_slab_constant(dvbf_graph *g, int steps, int cols) {
  return new_buffer(g, DV_BUFFER_CONSTANT, steps, g->rows, cols);
}

dvbf_value dvbf_slab_shared(dvbf_graph *g, int steps, int count) {
  return new_buffer(g, DV_BUFFER_VALUE, steps, 1, count);
}

dvbf_value dvbf_slab_shared_constant(dvbf_graph *g, int steps, int count) {
  return new_buffer(g, DV_BUFFER_CONSTANT, steps, 1, count);
}

void dvbf_keep(dvbf_graph *g, dvbf_value value) {
  if (value.buffer >= 0) g->buffers[value.buffer].keep = true;
}

dvbf_value dvbf_parameter(dvbf_graph *g, const char *name, int rows, int cols, dvbf_first first) {
  if (strlen(name) >= sizeof g->parameters->list->name) {
    dvbf_refuse(g, "the parameter name %.60s is longer than %zu characters", name,
                sizeof g->parameters->list->name - 1);
    return DVBF_NONE;
  }
  dv_parameter *p = find_parameter(g->parameters, name);
  if (!p && g->parameters->complete) {
    dvbf_refuse(g, "the model has no parameter named %s", name);
    return DVBF_NONE;
  }
  if (p && (p->rows != rows || p->cols != cols)) {
    dvbf_refuse(g, "parameter %s is [%d][%d] where [%d][%d] is needed", name, p->rows, p->cols, rows, cols);
    return DVBF_NONE;
  }
  dvbf_value value = new_buffer(g, first.frozen ? DV_BUFFER_FROZEN : DV_BUFFER_PARAMETER, 1, rows, cols);
  if (value.buffer < 0) return value;
  /* Each parameter takes up to 15 reals more than it has. */
  dv_parameters *all = g->parameters;
  if (!p && all->most && all->size + (size_t)rows * (size_t)cols > all->most + 15 * all->count) {
    dvbf_refuse(g, "parameter %s [%d][%d] is more than the file holds", name, rows, cols);
    return DVBF_NONE;
  }
  if (!p) p = add_parameter(g->parameters, name, rows, cols, first);
  if (!p) {
    dv_graph_refuse_memory(g);
    return DVBF_NONE;
  }
  dv_buffer *b = &g->buffers[value.buffer];
  b->offset = b->gradient = p->offset;
  for (int i = value.buffer - 1; i >= 0; i--)
    if (g->buffers[i].kind == b->kind && b->kind == DV_BUFFER_PARAMETER && g->buffers[i].offset == p->offset)
      b->shares = i;
  return value;
}

dvbf_value dvbf_matrix(dvbf_value shared, size_t offset, int rows, int cols) {
  shared.offset += offset;
  shared.rows = rows;
  shared.cols = cols;
  return shared;
}

static void mention(dvbf_graph *g, dvbf_value value) {
  if (value.buffer < 0) return;
  dv_buffer *b = &g->buffers[value.buffer];
  if (b->first < 0) b->first = g->n_ops;
  b->last = g->n_ops;
}

void dvbf_record(dvbf_graph *g, const dvbf_op_class *type, int n_in, const dvbf_value *in, int n_out,
                 const dvbf_value *out, const void *data, size_t data_size) {
  if (g->refused) return;
  if (n_in > DVBF_MAX_IN || n_out > DVBF_MAX_OUT) {
    dvbf_refuse(g, "op %s has more than %d inputs or %d outputs", type->name, DVBF_MAX_IN, DVBF_MAX_OUT);
    return;
  }
  if (g->n_ops == g->room_ops) {
    int room = g->room_ops ? 2 * g->room_ops : 256;
    dvbf_op *ops = dv_realloc(g->ops, (size_t)room, sizeof *ops);
    if (!ops) {
      dv_graph_refuse_memory(g);
      return;
    }
    g->ops = ops;
    g->room_ops = room;
  }
  dvbf_op op = {.type = type, .n_in = n_in, .n_out = n_out, .number = g->n_ops};
  for (int i = 0; i < n_in; i++) mention(g, op.in[i] = in[i]);
  for (int i = 0; i < n_out; i++) mention(g, op.out[i] = out[i]);
  if (data && !(op.data = dvbf_remember(g, data, data_size))) return;
  g->ops[g->n_ops++] = op;
}

/* ---- Planning: each value and gradient gets a place in the arena for as long as it lives ---- */

typedef struct span {
  size_t size;      /* reals, rounded up to a cache line */
  int birth, death; /* moments, inclusive */
  size_t *offset;   /* where the answer goes */
} span;

/* A value lives from the first op that mentions it to the backward run of that op (any op may read its values
 * backward); without backward, to the last op. A gradient lives from the backward run of the last op on. */
static int list_spans(dvbf_graph *g, span *spans) {
  int count = 0, end = 2 * g->n_ops;
  for (int i = 0; i < g->n_buffers; i++) {
    dv_buffer *b = &g->buffers[i];
    if (b->kind == DV_BUFFER_PARAMETER || b->kind == DV_BUFFER_FROZEN || (b->first < 0 && !b->keep)) continue;
    size_t size = (b->size + 15) / 16 * 16;
    bool always = b->keep || b->first < 0;
    int death = always ? end : g->training ? 2 * g->n_ops - 1 - b->first : b->last;
    spans[count++] = (span){size, always ? 0 : b->first, death, &b->offset};
    if (g->training && b->kind == DV_BUFFER_VALUE && b->first >= 0)
      spans[count++] = (span){size, 2 * g->n_ops - 1 - b->last, 2 * g->n_ops - 1 - b->first, &b->gradient};
  }
  return count;
}

/* Lowest offset at which spans[i] meets none of the placed spans 0 .. i-1 that are alive with it. */
static size_t first_fit(const span *spans, int i) {
  size_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int j = 0; j < i; j++) {
      bool together = spans[j].birth <= spans[i].death && spans[i].birth <= spans[j].death;
      size_t other = *spans[j].offset;
      if (together && at < other + spans[j].size && other < at + spans[i].size) {
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

dvbf_status dv_graph_plan(dvbf_graph *g, dvbf_error *error) {
  if (g->refused) return dv_fail(error, g->refused, "%s", g->sentence);
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
  return DVBF_OK;
}

size_t dv_graph_arena_size(const dvbf_graph *g) {
  return g->arena;
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
  for (int i = 0; i < g->n_ops; i++)
    if (g->ops[i].data) packed->ops[i].data = append(&to, g->ops[i].data, data_size(&g->ops[i]));
  return packed;
}

/* ---- Running ---- */

dvbf_run dv_run_in(const dvbf_graph *g, dvbf_real *arena) {
  const dv_kernels *k = dv_kernels_best();
  return (dvbf_run){.graph = g, .buffers = g->buffers, .k = k, .product = k->product, .arena = arena};
}

dvbf_status dv_run_init(dvbf_run *run, const dvbf_graph *g, dvbf_error *error) {
  *run = dv_run_in(g, dv_calloc_aligned(g->arena, sizeof *run->arena));
  run->begun = dv_calloc((size_t)g->n_buffers + 1, sizeof *run->begun);
  if (!run->arena || !run->begun) return dv_fail_memory(error, "making room for a shard of the minibatch");
  return DVBF_OK;
}

void dv_run_clear(dvbf_run *run) {
  dv_free(run->arena);
  dv_free(run->begun);
  dv_free(run->buffer);
  *run = (dvbf_run){0};
}

dvbf_real *dvbf_at(const dvbf_run *run, dvbf_value value) {
  return dv_at(run, value);
}

/* The whole gradient of a buffer, NULL where it has none. */
static dvbf_real *whole_gradient(const dvbf_run *run, const dv_buffer *b) {
  if (!run->graph->training) return NULL;
  return b->kind == DV_BUFFER_VALUE       ? run->arena + b->gradient
         : b->kind == DV_BUFFER_PARAMETER ? run->gradient + b->gradient
                                          : NULL;
}

/* A gradient is zeroed when it is asked for first on the way back, while it is about to be used, ... */
dvbf_real *dvbf_gradient_at(const dvbf_run *run, dvbf_value value) {
  if (value.buffer < 0) return NULL;
  const dv_buffer *b = &run->graph->buffers[value.buffer];
  dvbf_real *whole = whole_gradient(run, b);
  if (!whole) return NULL;
  if (!run->begun[b->shares]) memset(whole, 0, b->size * sizeof *whole);
  run->begun[b->shares] = true;
  return whole + value.offset;
}

/* ... or not at all, if whoever asks first writes the whole of it. */
dvbf_real *dv_gradient_into(const dvbf_run *run, dvbf_value value, bool *add) {
  *add = true;
  if (value.buffer < 0) return NULL;
  const dv_buffer *b = &run->graph->buffers[value.buffer];
  bool whole = (size_t)value.steps * (size_t)value.rows * (size_t)value.cols == b->size;
  if (whole && whole_gradient(run, b) && !run->begun[b->shares]) *add = false, run->begun[b->shares] = true;
  return dvbf_gradient_at(run, value);
}

void dv_run_forward(dvbf_run *run) {
  const dvbf_graph *g = run->graph;
  memset(run->terms, 0, sizeof run->terms);
  for (int i = 0; i < g->n_ops; i++)
    if (g->ops[i].type->forward) g->ops[i].type->forward(&g->ops[i], run);
}

void dv_run_backward(dvbf_run *run) {
  const dvbf_graph *g = run->graph;
  memset(run->begun, 0, (size_t)g->n_buffers * sizeof *run->begun);
  for (int i = g->n_ops - 1; i >= 0; i--)
    if (g->ops[i].type->backward) g->ops[i].type->backward(&g->ops[i], run);
  for (int i = 0; i < g->n_buffers; i++)
    if (g->buffers[i].kind == DV_BUFFER_PARAMETER) dvbf_gradient_at(run, (dvbf_value){.buffer = i});
}
