/* The numbers of a model as constant arrays of C. */
#ifndef DV_CONSTANTS_H
#define DV_CONSTANTS_H

#include "base/settings.h"
#include "export/text.h"

#include <dvbf/graph.h>

/* An array. A weight of a product is a matrix [rows][cols], which is written transposed where the result is
 * narrow, and in int8 has a factor for each column. */
typedef struct dv_constant {
  char name[64];
  const dvbf_real *values;
  size_t rows, cols;
  bool weight, transposed;
  int format; /* DV_WEIGHTS_FLOAT, ... */
} dv_constant;

typedef struct dv_constants {
  dv_constant *list;
  int count, room;
  bool failed; /* memory was short */
  int format;  /* of weights that are matrices */
} dv_constants;

void dv_constants_clear(dv_constants *c);
/* The array that holds these numbers, which is added where there is none; NULL when memory is short. `name`
 * is that of a parameter, or NULL. */
const dv_constant *dv_constants_take(dv_constants *c, const dvbf_real *values, size_t rows, size_t cols,
                                     bool weight, const char *name);
/* Adds an array whatever others hold. */
const dv_constant *dv_constants_add(dv_constants *c, const dvbf_real *values, size_t rows, size_t cols,
                                    bool weight, const char *name);
/* Refuses numbers that are not finite, which C and Python have no text for; those of arrays may come from
 * others by division. */
dvbf_status dv_check_finite(const double *values, size_t n, dvbf_error *error);
dvbf_status dv_constants_check(const dv_constants *c, dvbf_error *error);
/* Writes all arrays, with names behind `prefix_`. */
void dv_constants_write(dv_text *text, const dv_constants *c, const char *prefix);
/* Bytes of all arrays. */
size_t dv_constants_bytes(const dv_constants *c);

/* Rounds a matrix to what its format can hold, in place. */
void dv_weights_round(dvbf_real *values, size_t rows, size_t cols, int format);
/* Whether a weight of this shape is written transposed, and whether in the format of weights. */
bool dv_weights_narrow(size_t rows, size_t cols);
bool dv_weights_small(size_t rows, size_t cols);

#endif
