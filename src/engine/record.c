/* Recording: parameters, scalars, terms, values and ops of a program (dvbf_slab, dvbf_parameter, dvbf_record;
 * public in dvbf/graph.h). A program is recorded once per shape from a few coarse ops over slabs
 * [steps][rows][cols]; the first failure is kept and reported when recording ends. Parameters live in one
 * vector, each aligned to a cache line. */
#include "engine/engine.h"

#include "base/memory.h"
#include "math/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Parameters ---- */

void dv_parameters_free(dv_parameters *p) {
  DV_FREE(p->list, p->values);
  *p = (dv_parameters){0};
}

dv_parameter *dv_parameters_find(const dv_parameters *p, const char *name) {
  for (size_t i = 0; i < p->count; i++)
    if (!strcmp(p->list[i].name, name)) return &p->list[i];
  return NULL;
}

/* Every parameter starts at a multiple of 16 reals, so that vectors never straddle a cache line. */
static bool grow_parameters(dv_parameters *p, size_t size) {
  dv_parameter *list = dv_grow(p->list, p->count, sizeof *list);
  if (!list) return false;
  p->list = list;
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
  if (g) *g = (dvbf_graph){.parameters = parameters, .rows = rows, .training = training};
  return g;
}

void dv_graph_free(dvbf_graph *g) {
  if (!g) return;
  for (dv_remembered *m = g->memory; m;) {
    dv_remembered *next = m->next;
    dv_free(m);
    m = next;
  }
  DV_FREE(g->buffers, g->ops, g->segments, g);
}

/* The list with room for one more entry; NULL, refusing the program, if memory is short. */
static void *with_room(dvbf_graph *g, void *list, int count, size_t size) {
  void *longer = dv_grow(list, (size_t)count, size);
  if (!longer) dv_graph_refuse_memory(g);
  return longer;
}

void dv_graph_segment_begin(dvbf_graph *g) {
  dv_segment *segments = with_room(g, g->segments, g->n_segments, sizeof *segments);
  if (!segments) return;
  g->segments = segments;
  g->segments[g->n_segments++] = (dv_segment){g->n_ops, g->n_ops};
  g->in_segment = true;
}

void dv_graph_segment_end(dvbf_graph *g) {
  if (g->in_segment) g->segments[g->n_segments - 1].last = g->n_ops;
  g->in_segment = false;
}

bool dv_graph_has_gradient(const dvbf_graph *g, dvbf_value value) {
  if (value.buffer < 0) return false;
  dv_buffer_kind kind = g->buffers[value.buffer].kind;
  return g->training && (kind == DV_BUFFER_VALUE || kind == DV_BUFFER_PARAMETER);
}

/* The place of a name in a list, where it is added unless it is there; 0 with a refusal. */
static int intern(dvbf_graph *g, const char *what, const char *name, double number, dv_named *list,
                  int *count, int most) {
  int i = 0;
  while (i < *count && strcmp(list[i].name, name) != 0) i++;
  if (i == most || strlen(name) >= DV_GRAPH_NAME) {
    dvbf_refuse(g, "the %s %.40s: a program has at most %d, with names of fewer than %d characters", what,
                name, most, DV_GRAPH_NAME);
    return 0;
  }
  if (i == *count) strcpy(list[(*count)++].name, name);
  list[i].number = number;
  return i;
}

int dvbf_scalar(dvbf_graph *g, const char *name, double otherwise) {
  return intern(g, "scalar", name, otherwise, g->scalars, &g->n_scalars, DV_MOST_SCALARS);
}

int dvbf_term(dvbf_graph *g, const char *name, double factor) {
  return intern(g, "term", name, factor, g->terms, &g->n_terms, DV_MOST_TERMS);
}

int dv_graph_term(const dvbf_graph *g, const char *name) {
  for (int i = 0; i < g->n_terms; i++)
    if (!strcmp(g->terms[i].name, name)) return i;
  return -1;
}

double dv_graph_bound(const dvbf_graph *g, const double terms[DV_MOST_TERMS]) {
  double bound = 0;
  for (int i = 0; i < g->n_terms; i++) bound -= g->terms[i].number * terms[i];
  return bound;
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
  dvbf_refuse(g, "out of memory while recording the model; use fewer steps or a smaller batch-size");
  g->refused = DVBF_MEMORY;
}

void *dvbf_remember(dvbf_graph *g, const void *content, size_t size) {
  dv_remembered *m = dv_calloc(1, sizeof *m + size);
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
  dv_buffer *buffers = with_room(g, g->buffers, g->n_buffers, sizeof *buffers);
  if (!buffers) return DVBF_NONE;
  g->buffers = buffers;
  /* Ops count rows of all steps, and numbers of a row or two, as int. */
  const int64_t most = 1 << 30;
  size_t all = (size_t)steps * (size_t)rows * (size_t)cols;
  if (steps < 1 || rows < 1 || cols < 1 || (int64_t)steps * rows > most || (int64_t)rows * cols > most ||
      all > ((size_t)1 << 40)) {
    dvbf_refuse(g,
                "a value of shape [%d][%d][%d] cannot be recorded: steps times rows, and rows times columns, "
                "must be at most 2^30, and all together 2^40",
                steps, rows, cols);
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

void dvbf_keep_gradient(dvbf_graph *g, dvbf_value value) {
  if (value.buffer >= 0) g->buffers[value.buffer].keep_gradient = true;
}

/* The first buffer of that parameter, soon found: a long sequence has mentioned all in its first step. */
static int first_of(const dvbf_graph *g, int buffer) {
  int i = 0;
  while (g->buffers[i].kind != DV_BUFFER_PARAMETER || g->buffers[i].offset != g->buffers[buffer].offset) i++;
  return i;
}

dvbf_value dvbf_parameter(dvbf_graph *g, const char *name, int rows, int cols, dvbf_first first) {
  if (strlen(name) >= sizeof g->parameters->list->name) {
    dvbf_refuse(g, "the parameter name %.60s is longer than %zu characters", name,
                sizeof g->parameters->list->name - 1);
    return DVBF_NONE;
  }
  dv_parameter *p = dv_parameters_find(g->parameters, name);
  if (!p && g->parameters->complete) {
    dvbf_refuse(g, "the model has no parameter named %s", name);
    return DVBF_NONE;
  }
  if (p && (p->rows != rows || p->cols != cols)) {
    dvbf_refuse(g, "parameter %s is [%d][%d] where [%d][%d] is needed", name, p->rows, p->cols, rows, cols);
    return DVBF_NONE;
  }
  dvbf_value value =
      new_buffer(g, first.frozen || g->fixed ? DV_BUFFER_FROZEN : DV_BUFFER_PARAMETER, 1, rows, cols);
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
  if (b->kind == DV_BUFFER_PARAMETER) b->shares = first_of(g, value.buffer);
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
  int segment = g->in_segment ? g->n_segments - 1 : -1;
  b->segment = b->first < 0 || b->segment == segment ? segment : -1;
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
  dvbf_op *ops = with_room(g, g->ops, g->n_ops, sizeof *ops);
  if (!ops) return;
  g->ops = ops;
  dvbf_op op = {.type = type, .n_in = n_in, .n_out = n_out, .number = g->n_ops};
  for (int i = 0; i < n_in; i++) mention(g, op.in[i] = in[i]);
  for (int i = 0; i < n_out; i++) mention(g, op.out[i] = out[i]);
  if (data && !(op.data = dvbf_remember(g, data, data_size))) return;
  g->ops[g->n_ops++] = op;
}
