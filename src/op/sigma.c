/* ln sigma of every value, for frames that the filter has seen and frames that it has not:
 *
 *   out_i = free_i where use < 0, and in the first frames, else own_i
 *   d free_i, d own_i += d out_i, whichever it was */
#include "op/op.h"

typedef struct free_sigma_data {
  int first; /* frames at the beginning that are free */
} free_sigma_data;

/* in: own, free, use. Entry (r, i), rows counted over all steps, comes from a number for all, one for each
 * column, or one for each value. */
static size_t place_of(dvbf_value from, int n, int r, int i) {
  if (from.steps * from.rows > 1) return (size_t)r * (size_t)n + (size_t)i;
  return from.cols > 1 ? (size_t)i : 0;
}

/* Row r is of the frame after the step to which its `use` belongs. The first frames may have none. */
static bool is_free(const dvbf_run *run, const dvbf_op *op, int r) {
  const free_sigma_data *d = op->data;
  int rows = op->out[0].rows, none = rows * (op->out[0].steps - op->in[2].steps);
  return r < d->first * rows || (r >= none && dv_at(run, op->in[2])[r - none] < 0);
}

static void free_sigma_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  dvbf_real *to = dv_at(run, out);
  for (int r = 0; r < out.steps * out.rows; r++, to += out.cols) {
    dvbf_value source = op->in[is_free(run, op, r) ? 1 : 0];
    const dvbf_real *from = dv_at(run, source);
    for (int i = 0; i < out.cols; i++) to[i] = from[place_of(source, out.cols, r, i)];
  }
}

static void free_sigma_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value out = op->out[0];
  const dvbf_real *g = dvbf_gradient_at(run, out);
  for (int r = 0; r < out.steps * out.rows; r++, g += out.cols) {
    dvbf_value source = op->in[is_free(run, op, r) ? 1 : 0];
    dvbf_real *to = dvbf_gradient_at(run, source);
    for (int i = 0; i < out.cols; i++) to[place_of(source, out.cols, r, i)] += g[i];
  }
}

/* Programs of single steps, which are those that are exported, have no such frames. */
static const dvbf_op_class free_sigma_class = {"free-sigma", free_sigma_forward, free_sigma_backward, NULL};

void dv_record_free_sigma(dvbf_graph *g, const dv_free_sigma *s) {
  free_sigma_data data = {s->first};
  dvbf_value in[] = {s->own, s->free, s->use};
  dvbf_record(g, &free_sigma_class, 3, in, 1, &s->out, &data, sizeof data);
}
