/* A program as the engine records and plans it; only files of the engine include this. */
#ifndef DV_ENGINE_GRAPH_INTERNAL_H
#define DV_ENGINE_GRAPH_INTERNAL_H

#include "engine/engine.h"

typedef struct remembered {
  struct remembered *next;
  size_t size;
  _Alignas(16) unsigned char content[];
} remembered;

typedef struct dv_segment {
  int first, last; /* ops; the last is before the first of the next */
} dv_segment;

struct dvbf_graph {
  dv_parameters *parameters;
  int rows;
  bool training, fixed; /* fixed: parameters have no gradient */
  int noise_numbers, noise_step;
  int n_scalars, n_terms;
  struct {
    char name[DV_GRAPH_NAME];
    double otherwise;
  } scalars[DV_MOST_SCALARS];
  struct {
    char name[DV_GRAPH_NAME];
    double factor;
  } terms[DV_MOST_TERMS];
  double flops;
  dv_buffer *buffers;
  int n_buffers, room_buffers;
  dvbf_op *ops;
  int n_ops, room_ops;
  dv_segment *segments;
  int n_segments, room_segments;
  bool in_segment; /* ops that are recorded now belong to the last of them */
  remembered *memory;
  size_t arena;
  dvbf_status refused;
  char sentence[400];
};

#endif
