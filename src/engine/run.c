/* Running a planned program: dv_run_forward loops over the ops, dv_run_backward over the same ops in reverse.
 * A gradient is zeroed on its first use unless that op overwrites it. A segment runs forward again just
 * before it runs backward. With DV_CHECK_OPS an op that touches an unlisted value ends the process. */
#include "engine/engine.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/settings.h"

#ifdef DV_CHECK_OPS
#include <stdio.h>
#include <stdlib.h>
#endif
#include <string.h>

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
  DV_FREE(run->arena, run->begun);
  *run = (dvbf_run){0};
}

dvbf_real *dvbf_at(const dvbf_run *run, dvbf_value value) {
  return dv_at(run, value);
}

/* The whole gradient of a buffer, NULL if it has none. */
static dvbf_real *whole_gradient(const dvbf_run *run, const dv_buffer *b) {
  if (!run->graph->training) return NULL;
  return b->kind == DV_BUFFER_VALUE       ? run->arena + b->gradient
         : b->kind == DV_BUFFER_PARAMETER ? run->gradient + b->gradient
                                          : NULL;
}

/* A gradient is zeroed on its first use in the backward pass, while it is about to be used, ... */
dvbf_real *dvbf_gradient_at(const dvbf_run *run, dvbf_value value) {
  if (value.buffer < 0) return NULL;
  dv_check_listed(run, value);
  const dv_buffer *b = &run->graph->buffers[value.buffer];
  dvbf_real *whole = whole_gradient(run, b);
  if (!whole) return NULL;
  if (!run->begun[b->shares]) memset(whole, 0, b->size * sizeof *whole);
  run->begun[b->shares] = true;
  return whole + value.offset;
}

/* ... or not at all, if its first user writes the whole of it. */
dvbf_real *dv_gradient_into(const dvbf_run *run, dvbf_value value, bool *add) {
  *add = true;
  if (value.buffer < 0) return NULL;
  const dv_buffer *b = &run->graph->buffers[value.buffer];
  bool whole = (size_t)value.steps * (size_t)value.rows * (size_t)value.cols == b->size;
  if (whole && whole_gradient(run, b) && !run->begun[b->shares]) *add = false, run->begun[b->shares] = true;
  return dvbf_gradient_at(run, value);
}

/* ---- Scalars and terms ---- */

void dv_conditions_set(dv_conditions *c, const char *name, double value) {
  int i = 0;
  while (i < c->n_scalars && strcmp(c->scalars[i].name, name) != 0) i++;
  if (i == DV_MOST_SCALARS) return;
  if (i == c->n_scalars) c->n_scalars++;
  c->scalars[i].name = name;
  c->scalars[i].value = value;
}

static double scalar_of(const dv_conditions *c, const char *name, double otherwise) {
  for (int i = 0; i < c->n_scalars; i++)
    if (!strcmp(c->scalars[i].name, name)) return c->scalars[i].value;
  return otherwise;
}

double dv_conditions_get(const dv_conditions *c, const char *name) {
  return scalar_of(c, name, 0);
}

double dvbf_scalar_at(const dvbf_run *run, int scalar) {
  return run->scalars[scalar];
}

void dvbf_term_add(dvbf_run *run, int term, double value) {
  run->terms[term] += value;
}

double dvbf_term_factor(const dvbf_run *run, int term) {
  return run->graph->terms[term].number * run->conditions->scale;
}

/* ---- Forward and backward ---- */

static void run_op(dvbf_run *run, const dvbf_op *op, void (*way)(const dvbf_op *op, dvbf_run *run)) {
  run->op = op;
  if (way) way(op, run);
  run->op = NULL;
}

void dv_run_forward(dvbf_run *run) {
  const dvbf_graph *g = run->graph;
  memset(run->terms, 0, sizeof run->terms);
  for (int i = 0; i < g->n_scalars; i++)
    run->scalars[i] = scalar_of(run->conditions, g->scalars[i].name, g->scalars[i].number);
  for (int i = 0; i < g->n_ops && !dv_interrupted(run->interrupt); i++)
    run_op(run, &g->ops[i], g->ops[i].type->forward);
}

/* Recomputes its values; its terms count already. */
static void run_again(dvbf_run *run, const dv_segment *segment) {
  double terms[DV_MOST_TERMS];
  memcpy(terms, run->terms, sizeof terms);
  for (int i = segment->first; i < segment->last; i++)
    run_op(run, &run->graph->ops[i], run->graph->ops[i].type->forward);
  memcpy(run->terms, terms, sizeof terms);
}

void dv_run_backward_from(dvbf_run *run, const dv_seed *seeds, int count) {
  const dvbf_graph *g = run->graph;
  memset(run->begun, 0, (size_t)g->n_buffers * sizeof *run->begun);
  for (int i = 0; i < count; i++) {
    dvbf_value v = seeds[i].value;
    run->k->add(dvbf_gradient_at(run, v), seeds[i].gradient, (size_t)v.steps * v.stride);
  }
  for (int i = g->n_ops - 1, s = g->n_segments - 1; i >= 0; i--) {
    for (; s >= 0 && g->segments[s].last > i; s--) run_again(run, &g->segments[s]);
    run_op(run, &g->ops[i], g->ops[i].type->backward);
  }
  for (int i = 0; i < g->n_buffers; i++)
    if (g->buffers[i].kind == DV_BUFFER_PARAMETER) dvbf_gradient_at(run, (dvbf_value){.buffer = i});
}

void dv_run_backward(dvbf_run *run) {
  dv_run_backward_from(run, NULL, 0);
}

#ifdef DV_CHECK_OPS
void dv_check_listed(const dvbf_run *run, dvbf_value value) {
  const dvbf_op *op = run->op;
  if (!op) return;
  for (int i = 0; i < op->n_in; i++)
    if (op->in[i].buffer == value.buffer) return;
  for (int i = 0; i < op->n_out; i++)
    if (op->out[i].buffer == value.buffer) return;
  fprintf(stderr, "the op %s (number %d) touches a value that it did not list\n", op->type->name, op->number);
  abort();
}
#endif
