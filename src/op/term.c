/* Terms of the objective: sum of factor * term, which training minimises.
 *
 *   term += sum over steps and rows of weight * value      d value += factor * scale [* scalar] * weight */
#include "op/op.h"

typedef struct term_data {
  int term, scalar; /* scalar -1: none */
} term_data;

static void term_forward(const dvbf_op *op, dvbf_run *run) {
  const term_data *d = op->data;
  dvbf_value v = op->in[0];
  const dvbf_real *value = dv_at(run, v), *weight = dv_at(run, op->in[1]);
  for (int r = 0; r < v.steps * v.rows; r++)
    run->terms[d->term] += (double)value[r] * (double)weight[r % v.rows];
}

static void term_backward(const dvbf_op *op, dvbf_run *run) {
  const term_data *d = op->data;
  dvbf_value v = op->in[0];
  double coefficient = dvbf_term_factor(run, d->term);
  if (d->scalar >= 0) coefficient *= run->scalars[d->scalar];
  const dvbf_real *weight = dv_at(run, op->in[1]);
  dvbf_real *gradient = dvbf_gradient_at(run, v);
  for (int r = 0; r < v.steps * v.rows; r++) gradient[r] += (dvbf_real)coefficient * weight[r % v.rows];
}

static const dvbf_op_class term_class = {"term", term_forward, term_backward, NULL};

void dvbf_sum(dvbf_graph *g, int term, dvbf_value value, dvbf_value weight, int scalar) {
  term_data data = {term, scalar};
  dvbf_value in[] = {value, weight};
  if (value.cols != 1 || weight.rows != value.rows || weight.cols != 1)
    dvbf_refuse(g, "a term takes [steps][rows][1] and weights [1][rows][1], not [%d][%d][%d] and [%d][%d]",
                value.steps, value.rows, value.cols, weight.rows, weight.cols);
  dvbf_record(g, &term_class, 2, in, 0, NULL, &data, sizeof data);
}
