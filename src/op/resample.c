/* Rows drawn anew by their weights, as a particle filter does it. Rows come in groups of K, which are samples
 * of one sequence. With weights s of a group and its number u in (0, 1), of which the first row's counts,
 *
 *   out_k = z_j,    j the first with s_1 + .. + s_j >= (k + u) / K (s_1 + .. + s_K),    k = 0 .. K - 1
 *
 *   d z_j += d out_k
 *
 * What the choice of j has to do with s has no gradient here. Rows of equal weights stay as they are, and so
 * does a group without weight. */
#include "op/op.h"

#include <string.h>

typedef struct resample_data {
  int samples;
} resample_data;

/* in: z, s, u; out: z of the chosen rows, and which they were, counted from the first of their group. */
static void choose(const dvbf_real *s, double u, int n, dvbf_real *chosen) {
  double total = 0, sum = (double)s[0];
  int at = 0;
  for (int k = 0; k < n; k++) total += (double)s[k];
  for (int k = 0; k < n; k++) {
    double place = ((double)k + u) / n * total;
    while (place > sum && at + 1 < n) sum += (double)s[++at];
    chosen[k] = (dvbf_real)(total > 0 ? at : k);
  }
}

static void resample_forward(const dvbf_op *op, dvbf_run *run) {
  const resample_data *d = op->data;
  int rows = op->out[0].rows;
  size_t n = (size_t)op->out[0].cols;
  const dvbf_real *z = dv_at(run, op->in[0]), *s = dv_at(run, op->in[1]), *u = dv_at(run, op->in[2]);
  dvbf_real *out = dv_at(run, op->out[0]), *chosen = dv_at(run, op->out[1]);
  for (int first = 0; first < rows; first += d->samples) {
    choose(s + first, (double)u[first], d->samples, chosen + first);
    for (int r = first; r < first + d->samples; r++)
      memcpy(out + (size_t)r * n, z + (size_t)(first + (int)chosen[r]) * n, n * sizeof *out);
  }
}

static void resample_backward(const dvbf_op *op, dvbf_run *run) {
  const resample_data *d = op->data;
  size_t n = (size_t)op->out[0].cols;
  const dvbf_real *d_out = dvbf_gradient_at(run, op->out[0]), *chosen = dv_at(run, op->out[1]);
  dvbf_real *d_z = dvbf_gradient_at(run, op->in[0]);
  for (int r = 0; r < op->out[0].rows; r++) {
    size_t from = (size_t)(r / d->samples * d->samples + (int)chosen[r]) * n, to = (size_t)r * n;
    for (size_t i = 0; i < n; i++) d_z[from + i] += d_out[to + i];
  }
}

static const dvbf_op_class resample_class = {"resample", resample_forward, resample_backward, NULL};

void dv_record_resample(dvbf_graph *g, dvbf_value out, dvbf_value z, dvbf_value s, int samples) {
  resample_data data = {samples};
  dvbf_value u = dvbf_slab_constant(g, 1, 1), chosen = dvbf_slab_constant(g, 1, 1);
  dvbf_value in[] = {z, s, u}, to[] = {out, chosen};
  if (z.rows % samples) dvbf_refuse(g, "%d rows are not groups of %d samples", z.rows, samples);
  dv_record_uniform(g, u);
  dvbf_record(g, &resample_class, 3, in, 2, to, &data, sizeof data);
}
