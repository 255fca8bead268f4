/* Writing C: constants, functions, the file of a model, and models with rounded weights. */
#pragma once

#include "export/export.h"
#include "export/part.h"
#include "model/model.h"
#include "settings_tables.h"

#include <dvbf/dvbf.h>
#include <dvbf/graph.h>

/* ---- Constants ---- */

/* An array. A weight is a matrix [rows][cols], written transposed if the result is narrow; in int8 it has a
 * factor for each column. */
typedef struct dv_constant {
  char name[64];
  const dvbf_real *values;
  size_t rows, cols;
  bool weight, transposed;
  int format; /* DV_WEIGHTS_FLOAT, ... */
} dv_constant;

typedef struct dv_constants {
  dv_constant *list;
  int count;
  bool failed; /* memory was short */
  int format;  /* of weights that are matrices */
} dv_constants;

void dv_constants_clear(dv_constants *c);
/* The array with these numbers, added if there is none; NULL if memory is short. `name` is that of a
 * parameter, or NULL. */
const dv_constant *dv_constants_take(dv_constants *c, const dvbf_real *values, size_t rows, size_t cols,
                                     bool weight, const char *name);
/* Adds an array even if another is equal. */
const dv_constant *dv_constants_add(dv_constants *c, const dvbf_real *values, size_t rows, size_t cols,
                                    bool weight, const char *name);
/* As dv_check_finite. */
dvbf_status dv_constants_check(const dv_constants *c, dvbf_error *error);
/* Writes all arrays, with names behind `prefix_`. */
void dv_constants_write(dv_text *text, const dv_constants *c, const char *prefix);
/* Bytes of all arrays. */
size_t dv_constants_bytes(const dv_constants *c);

/* ---- Functions ---- */

/* A part as a function of C. */

/* State shared by the functions of a file. */
typedef struct dv_c_file {
  const char *prefix;
  bool wide;  /* numbers are double */
  bool plain; /* without <math.h> */
  dv_constants constants;
  bool products[3][2];              /* [format][transposed] that are used */
  bool functions[DVBF_SIZE_OF + 1]; /* of dvbf_function that are used */
  size_t most_room;                 /* bytes of the largest table of results in between */
} dv_c_file;

/* Writes `static void PREFIX_NAME(arguments)`. The arguments are the slots that the part uses, in their
 * order. */
void dv_c_part_write(dv_text *text, dv_c_file *file, const dv_code_part *part, const char *name);
/* Writes the call, with the same arguments by the names of the slots: x, u, now, mask, seen, z, noise, out,
 * variance, slopes. */
void dv_c_part_call(dv_text *text, const dv_c_file *file, const dv_code_part *part, const char *name);

/* ---- File ---- */

/* A model as one C file and its header. */

/* The text of a file and of its header, and facts about it. */
typedef struct dv_c_source {
  dv_text code, header;
  double multiplications; /* of a step without forecast and without samples */
  size_t constants;       /* bytes */
  size_t state;           /* bytes, but for padding */
  size_t stack;           /* bytes of the largest table of results in between */
  int frames;             /* until there is an estimate */
  bool direct;            /* x depends on the control of its own step */
} dv_c_source;

/* Writes the whole file, whose header is NAME.h. With `start`, of a model to be simulated: its transition and
 * observations; start [n_z] becomes its first state. */
dvbf_status dv_c_write(dv_c_source *out, const dvbf_model *model, const char *prefix, const char *name,
                       const dv_export_settings *settings, double *start, dvbf_error *error);

/* Writes NAME.c, NAME.h and NAME_test.c of the filter, or these and the controller. */
dvbf_status dv_c_files_write(const dv_export *e, dvbf_error *error);
dvbf_status dv_controller_files_write(const dv_export *e, dvbf_error *error);

/* Templates (templates/NAME.in), embedded when the library is built. */
#define DV_TEMPLATE(name)                                                                                    \
  extern const unsigned char dv_##name[];                                                                    \
  extern const size_t dv_##name##_size;
DV_TEMPLATE(header_h_in)
DV_TEMPLATE(header_end_h_in)
DV_TEMPLATE(filter_c_in)
DV_TEMPLATE(samples_c_in)
DV_TEMPLATE(derivatives_c_in)
DV_TEMPLATE(product_c_in)
DV_TEMPLATE(narrow_c_in)
DV_TEMPLATE(vectors_c_in)
DV_TEMPLATE(kalman_c_in)
DV_TEMPLATE(functions_c_in)
DV_TEMPLATE(committee_h_in)
DV_TEMPLATE(committee_c_in)
DV_TEMPLATE(member_c_in)
DV_TEMPLATE(test_c_in)
DV_TEMPLATE(plant_c_in)
DV_TEMPLATE(fmu_c_in)
DV_TEMPLATE(control_h_in)
DV_TEMPLATE(control_c_in)
DV_TEMPLATE(control_test_c_in)
/* Fills in a template: dv_put(text, filter_c_in, words). */
#define dv_put(text, name, words) dv_text_template(text, dv_##name, dv_##name##_size, words)

/* ---- Rounding ---- */

/* Weights of fewer bits: a model with the weights that the exported file can hold. */

/* A copy of the model and its members with rounded weights; it shares all else with the model and must not
 * outlive it. Free with dv_rounded_free. */
dvbf_status dv_rounded_new(dvbf_model **out, const dvbf_model *model, int format, dvbf_error *error);
void dv_rounded_free(dvbf_model *rounded);

/* Root mean square error of forecasts one step ahead, in units of the standard deviation of each column. */
dvbf_status dv_rounding_error(double *out, const dvbf_model *model, const dvbf_sequences *sequences,
                              dvbf_error *error);
