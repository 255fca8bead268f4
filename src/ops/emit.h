/* Short names for writing the statements of `emit` (include/dvbf/graph.h, "Export"). */
#pragma once

#include <dvbf/graph.h>

static inline dvbf_expr dv_read(dvbf_code *c, dvbf_value v) {
  return dvbf_code_read(c, dvbf_place_of(v));
}
/* The first row for all rows, and the first number for all. */
static inline dvbf_expr dv_read_row(dvbf_code *c, dvbf_value v) {
  return dvbf_code_read(c, (dvbf_place){v.buffer, v.offset, 0, 1});
}
static inline dvbf_expr dv_read_one(dvbf_code *c, dvbf_value v) {
  return dvbf_code_read(c, (dvbf_place){v.buffer, v.offset, 0, 0});
}
/* One number for each row. */
static inline dvbf_expr dv_read_column(dvbf_code *c, dvbf_value v) {
  return dvbf_code_read(c, (dvbf_place){v.buffer, v.offset, v.stride, 0});
}
static inline dvbf_expr dv_number(dvbf_code *c, double number) {
  return dvbf_code_number(c, number);
}
static inline dvbf_expr dv_plus(dvbf_code *c, dvbf_expr a, dvbf_expr b) {
  return dvbf_code_binary(c, DVBF_ADD, a, b);
}
static inline dvbf_expr dv_minus(dvbf_code *c, dvbf_expr a, dvbf_expr b) {
  return dvbf_code_binary(c, DVBF_SUBTRACT, a, b);
}
static inline dvbf_expr dv_times(dvbf_code *c, dvbf_expr a, dvbf_expr b) {
  return dvbf_code_binary(c, DVBF_MULTIPLY, a, b);
}
static inline dvbf_expr dv_over(dvbf_code *c, dvbf_expr a, dvbf_expr b) {
  return dvbf_code_binary(c, DVBF_DIVIDE, a, b);
}
static inline dvbf_expr dv_within(dvbf_code *c, dvbf_expr a, double low, double high) {
  return dvbf_code_binary(c, DVBF_SMALLER, dvbf_code_binary(c, DVBF_LARGER, a, dv_number(c, low)),
                          dv_number(c, high));
}
/* out = e, of the whole value. */
static inline void dv_emit(dvbf_code *c, dvbf_value out, dvbf_expr e) {
  dvbf_code_each(c, dvbf_place_of(out), out.steps, out.cols, e);
}
/* A value of one row that is not the program's; steps are rows. */
static inline dvbf_value dv_emit_room(dvbf_code *c, int steps, int cols) {
  dvbf_place p = dvbf_code_room(c, steps, cols);
  return (dvbf_value){p.buffer, steps, 1, cols, 0, (size_t)cols};
}
