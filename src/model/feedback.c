/* Frames that a model reads again to go on from them. Where a value was not seen, it is one that the model
 * makes itself: drawn from p(x_t | z_t), as the model would generate it, or its mean in programs with
 * gradients and in runs without noise.
 *
 *   out = x where seen, else mean(output) or a draw      d output += mean'(output) d out where not seen */
#include "model/feedback.h"

#include "base/random.h"
#include "engine/engine.h"

#include <string.h>

typedef struct feedback_data {
  const dvbf_model *model;
  int t;      /* step of the program, which keys the draw */
  bool draws; /* as far as the run has noise */
} feedback_data;

/* in: output, shape[0], shape[1], x, seen; out: the frame, work. Without x nothing is seen. */
enum { OUTPUT, SHAPE, X = 3, SEEN };

static bool is_seen(const dvbf_run *run, const dvbf_op *op, int r, int i) {
  dvbf_value seen = op->in[SEEN];
  const dvbf_real *mask = dv_at(run, seen);
  return mask && mask[(size_t)r * (size_t)seen.cols + (size_t)(seen.cols > 1 ? i : 0)] > 0;
}

static bool all_seen(const dvbf_run *run, const dvbf_op *op, int r) {
  int i = 0;
  while (i < op->out[0].cols && is_seen(run, op, r, i)) i++;
  return i == op->out[0].cols;
}

/* x as the density draws it, as the model sees it: work = (mean, x), floats in units of the data. */
static void draw(const dvbf_op *op, dvbf_run *run, int r, const dvbf_real *output, dvbf_real *to) {
  const feedback_data *d = op->data;
  const dvbf_model *m = d->model;
  void *work = dv_at(run, op->out[1]);
  float *mean = work, *x = mean + m->n_x;
  dvbf_program program = {.output = op->in[OUTPUT], .shape = {op->in[SHAPE], op->in[SHAPE + 1]}};
  const dv_conditions *c = run->conditions;
  dv_density_frame frame = {.model = m,
                            .program = &program,
                            .run = run,
                            .row = r,
                            .mean = mean,
                            .seed = c->seed ^ ((uint64_t)DV_STREAM_EMISSION << 32),
                            .sequence = run->sequence[r],
                            .sample = c->update,
                            .t = (uint32_t)d->t};
  dv_model_unscale(m, output, mean);
  m->density->draw(&frame, x);
  for (int i = 0; i < m->n_x; i++)
    if (!is_seen(run, op, r, i)) to[i] = (dvbf_real)((x[i] - m->x.shift[i]) * m->x.scale[i]);
}

static void feedback_forward(const dvbf_op *op, dvbf_run *run) {
  const feedback_data *d = op->data;
  const dvbf_model *m = d->model;
  dvbf_value out = op->out[0];
  const dvbf_real *output = dv_at(run, op->in[OUTPUT]), *x = dv_at(run, op->in[X]);
  dvbf_real *to = dv_at(run, out);
  for (int r = 0; r < out.rows; r++, to += out.cols, output += out.cols) {
    const dvbf_real *row = x ? x + (op->in[X].rows > 1 ? (size_t)r * (size_t)out.cols : 0) : NULL;
    for (int i = 0; i < out.cols; i++)
      to[i] =
          row && is_seen(run, op, r, i) ? row[i] : (dvbf_real)dv_density_mean(m->density, (double)output[i]);
    if (d->draws && !run->conditions->noise_free && !all_seen(run, op, r)) draw(op, run, r, output, to);
  }
}

/* Every mean is smooth, and differences are exact to 1e-9. */
static dvbf_real slope_of(const dv_density *density, double output) {
  const double step = 1e-4;
  if (!density->mean) return 1;
  return (dvbf_real)((density->mean(output + step) - density->mean(output - step)) / (2 * step));
}

static void feedback_backward(const dvbf_op *op, dvbf_run *run) {
  const feedback_data *d = op->data;
  dvbf_value out = op->out[0];
  const dvbf_real *output = dv_at(run, op->in[OUTPUT]), *g = dvbf_gradient_at(run, out);
  dvbf_real *back = dvbf_gradient_at(run, op->in[OUTPUT]);
  for (int r = 0; r < out.rows; r++, output += out.cols, g += out.cols, back += out.cols)
    for (int i = 0; i < out.cols; i++)
      if (!is_seen(run, op, r, i)) back[i] += slope_of(d->model->density, (double)output[i]) * g[i];
}

static const dvbf_op_class feedback_class = {"feedback", feedback_forward, feedback_backward, NULL};

void dv_record_feedback(dvbf_program *p, const dvbf_model *m, dvbf_value out, int t, bool unseen) {
  dvbf_graph *g = p->graph;
  dvbf_program any = *p;
  if (p->one_x) { /* ln p, which nobody reads here, is of one frame for each row */
    any.x = dvbf_slab_constant(g, p->steps, m->n_x);
    dvbf_zero(g, any.x);
  }
  dvbf_program one = dv_record_emission_of(&any, m, t, 1, dvbf_steps(p->z, t, 1));
  feedback_data data = {m, t, !dv_graph_training(g)};
  dvbf_value none = DVBF_NONE, seen = dvbf_steps(p->gaps ? p->seen : p->mask, t, 1);
  dvbf_value in[] = {one.output, one.shape[0], one.shape[1], unseen ? none : dvbf_steps(p->x, t, 1),
                     unseen ? none : seen};
  dvbf_value to[] = {out, dvbf_slab_shared_constant(g, 1, 2 * m->n_x)};
  dvbf_record(g, &feedback_class, 5, in, 2, to, &data, sizeof data);
}

bool dv_feedback_of_step(const dvbf_program *p) {
  return !dv_graph_training(p->graph) || dv_feedback_needed(p);
}

bool dv_feedback_needed(const dvbf_program *p) {
  return p->gaps || p->observe < p->steps;
}
