/* Simple statements that compute what a program computes (include/dvbf/graph.h, "Export"); writers of C and
 * other languages read them. */
#pragma once

#include "engine/engine.h"

/* Kinds of nodes besides those of dvbf_function. */
enum { DV_NODE_READ = 64, DV_NODE_NUMBER, DV_NODE_CHOOSE };

/* A part of an expression; a, b and c are other nodes. */
typedef struct dv_node {
  int kind;
  int a, b, c;
  double number;
  dvbf_place place;
  size_t by_direction; /* of a read, in a statement that is repeated for several directions */
} dv_node;

typedef enum dv_statement_kind { DV_EACH, DV_SUM, DV_MOST, DV_PRODUCT } dv_statement_kind;

/* A statement over a table of rows and columns; a product is [rows][inner] times [inner][cols]. It is
 * repeated for each direction d, whose tables stand d * by_direction further on. */
typedef struct dv_statement {
  dv_statement_kind kind;
  int directions, rows, cols, inner;
  dvbf_place out, x, w;
  size_t out_by_direction, x_by_direction, w_by_direction;
  dvbf_expr expr; /* of all but a product */
} dv_statement;

/* Memory of numbers. A constant has its values, in reals of the model or, if computed from such, its own. */
typedef struct dv_code_buffer {
  size_t size;
  const dvbf_real *constant; /* NULL: it is written by statements or is an input */
  bool own;                  /* the constant is freed with the code */
  bool computed;             /* it is no parameter of the model, but made from such */
  const char *name;          /* of a parameter, else NULL */
} dv_code_buffer;

/* Standard normal numbers that are an input. */
typedef struct dv_code_noise {
  dvbf_value value;
  int number;
  bool shared;
} dv_code_noise;

enum { DV_MOST_NOISE = 8 };

struct dvbf_code {
  dv_node *nodes;
  int n_nodes;
  dv_statement *statements;
  int n_statements;
  dv_code_buffer *buffers;
  int n_buffers;
  dv_code_noise noise[DV_MOST_NOISE];
  int n_noise;
  dvbf_status refused;
  char sentence[400];
};

dvbf_code *dv_code_new(void);
void dv_code_free(dvbf_code *code);
/* A new buffer; -1 when memory is short. */
int dv_code_buffer_add(dvbf_code *code, size_t size);
/* A table of one row that holds a copy of values [n]. */
dvbf_place dv_code_constant(dvbf_code *code, const float *values, int n, const char *name);
/* Makes the buffer of a whole value a constant; returns its numbers, to fill in, or NULL with a refusal. */
dvbf_real *dv_code_make_constant(dvbf_code *code, dvbf_value value, const char *name);
/* Adds a statement, whose places must lie within their buffers. */
void dv_code_add(dvbf_code *code, dv_statement statement);
/* The first refusal, if any. */
dvbf_status dv_code_status(const dvbf_code *code, dvbf_error *error);

/* Adds what a planned program of one row computes for the values `wanted` [count]; buffers keep their
 * numbers. Ops not needed are left out; a needed one without `emit` is refused by name. */
dvbf_status dv_graph_emit(const dvbf_graph *g, dvbf_code *code, const dvbf_value *wanted, int count,
                          dvbf_error *error);

/* Calls `each` for every place that a statement reads, with the rows and columns it reads there. */
typedef void dv_read_fn(void *user, dvbf_place place, size_t by_direction, int rows, int cols);
void dv_statement_reads(const dvbf_code *code, const dv_statement *s, dv_read_fn *each, void *user);
