/* A graph of ONNX in memory. */
#pragma once

#include "export/export.h"
#include "export/part.h"

/* ---- Graph ---- */

/* Every tensor is a vector of floats, except weights. */

enum { DV_ONNX_NAME = 64 };
typedef struct dv_onnx_name {
  char text[DV_ONNX_NAME];
} dv_onnx_name;

typedef struct dv_onnx {
  dv_text nodes, constants, inputs, outputs; /* fields of a GraphProto */
  int count;                                 /* names made so far */
  struct dv_onnx_number {
    double value;
    bool whole;
    dv_onnx_name name;
  } * numbers; /* constants of one number, each written once */
  int n_numbers;
} dv_onnx;

void dv_onnx_clear(dv_onnx *g);

/* A node with up to three inputs, "" behind the last; returns the name of its output. */
dv_onnx_name dv_onnx_node(dv_onnx *g, const char *op, dv_onnx_name a, dv_onnx_name b, dv_onnx_name c);
/* out = the vectors a [count] behind each other. */
dv_onnx_name dv_onnx_concat(dv_onnx *g, const dv_onnx_name *a, int count);
/* Sum or largest number of a vector, as a vector of one number. */
dv_onnx_name dv_onnx_reduce(dv_onnx *g, const char *op, dv_onnx_name a);
/* Numbers offset, offset + by, ... of a vector, n of them. */
dv_onnx_name dv_onnx_slice(dv_onnx *g, dv_onnx_name from, size_t offset, size_t n, size_t by);
/* A float without dimensions, or a vector of one whole number. */
dv_onnx_name dv_onnx_number(dv_onnx *g, double value, bool whole);
/* A vector, or a matrix [rows][cols]. */
dv_onnx_name dv_onnx_constant(dv_onnx *g, const dvbf_real *values, size_t rows, size_t cols,
                              const char *name);
/* An input and an output of the graph, vectors of n numbers; rows > 0: [rows][n]. */
dv_onnx_name dv_onnx_input(dv_onnx *g, const char *name, size_t rows, size_t n);
void dv_onnx_output(dv_onnx *g, dv_onnx_name from, const char *name, size_t n);
/* The tensor as a vector. */
dv_onnx_name dv_onnx_flat(dv_onnx *g, dv_onnx_name from);

/* Adds a part whose inputs are these vectors, "" if it has none; returns its result. */
dvbf_status dv_onnx_part(dv_onnx *g, const dv_code_part *part, const dv_onnx_name in[DV_INPUTS],
                         dv_onnx_name *out, dvbf_error *error);
/* The whole file. */
void dv_onnx_file(dv_text *out, dv_onnx *g, const char *name, const char *about);
