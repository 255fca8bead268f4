/* A transition of one's own, outside the library: dynamics that know they turn.
 *
 *   own_transition [pendulum.h5 [updates]]        (without a file, the pendulum is simulated)
 *
 * The latent state is a point and its speed, z = (p_1, p_2, s). A small network of z and the control u pushes
 * the speed, the new speed turns the point about the origin, and the innovation w corrects both:
 *
 *   h  = tanh(z Z + u U + b)      push = h o                         a network, from shipped ops
 *   s' = s + push                 p' = R(RATE s') p                  an op of our own, with its backward
 *   z' = (p', s') + w C                                              shipped ops again
 *
 * v = (Z, U, o, C) are the universal parameters: the library learns a distribution over them. Nothing says
 * which angle or speed a picture shows; that comes out of training, and the regression at the end measures
 * how well. */
#include <dvbf/graph.h>
#include <math.h>
#include <stdio.h>

enum { N_Z = 3, N_HIDDEN = 32 };
static const double RATE = 0.4; /* radians between frames at speed 1 */

/* ---- An op of our own: swing(z, push) = (R(angle) p, s'), s' = s + push, angle = RATE s' ------------------
 */

/* Rows are sequences. dvbf_at gives the memory of a value while the program runs, [rows][cols] for one step.
 */
static void swing_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *z = dvbf_at(run, op->in[0]), *push = dvbf_at(run, op->in[1]);
  const double *rate = op->data;
  dvbf_real *out = dvbf_at(run, op->out[0]);
  for (int r = 0; r < op->out[0].rows; r++, z += N_Z, out += N_Z) {
    dvbf_real s = z[2] + push[r], c = (dvbf_real)cos(*rate * s), d = (dvbf_real)sin(*rate * s);
    out[0] = c * z[0] - d * z[1];
    out[1] = d * z[0] + c * z[1];
    out[2] = s;
  }
}

/* The gradient of p goes back through the turn reversed, and d p'/d angle = (-p'_2, p'_1). Gradients are
 * added to: others may have added to them before. Every value recorded below with dvbf_slab has one. */
static void swing_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *out = dvbf_at(run, op->out[0]), *d_out = dvbf_gradient_at(run, op->out[0]);
  const double *rate = op->data;
  dvbf_real *d_z = dvbf_gradient_at(run, op->in[0]), *d_push = dvbf_gradient_at(run, op->in[1]);
  for (int r = 0; r < op->out[0].rows; r++, out += N_Z, d_out += N_Z, d_z += N_Z) {
    dvbf_real c = (dvbf_real)cos(*rate * out[2]), d = (dvbf_real)sin(*rate * out[2]);
    dvbf_real d_s = d_out[2] + (dvbf_real)*rate * (out[0] * d_out[1] - out[1] * d_out[0]);
    d_z[0] += c * d_out[0] + d * d_out[1];
    d_z[1] += c * d_out[1] - d * d_out[0];
    d_z[2] += d_s;
    d_push[r] += d_s;
  }
}

static const dvbf_op_class swing_class = {"swing", swing_forward, swing_backward};

/* Lists what the op reads and writes; the constant is copied, so it may live on the stack. */
static void swing(dvbf_graph *g, dvbf_value out, dvbf_value z, dvbf_value push, double rate) {
  dvbf_value in[] = {z, push};
  dvbf_record(g, &swing_class, 2, in, 1, &out, &rate, sizeof rate);
}

/* ---- The transition --------------------------------------------------------------------------------------
 */

static size_t universal(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                        int n_w) {
  (void)self, (void)settings;
  return (size_t)((n_z + n_u) * N_HIDDEN + N_HIDDEN + n_w * n_z);
}

/* First means: a network at random that pushes little, and innovations that correct one dimension each. */
static void first(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u, int n_w,
                  double *mean, double (*normal)(size_t k, void *random), void *random) {
  (void)self, (void)settings;
  size_t k = 0, inner = (size_t)((n_z + n_u) * N_HIDDEN), outer = inner + N_HIDDEN;
  for (; k < inner; k++) mean[k] = 0.5 * normal(k, random);
  for (; k < outer; k++) mean[k] = 0.1 / sqrt(N_HIDDEN) * normal(k, random);
  for (int i = 0; i < n_w; i++)
    for (int j = 0; j < n_z; j++, k++) mean[k] = i == j ? 0.3 : 0;
}

typedef struct memory {
  dvbf_layer hidden, push, correction;
  dvbf_value turned; /* [steps][rows][3] (p', s') before the correction */
} memory;

/* Makes the slabs and layers of all steps. An input that earlier steps produce is sequential; u, known from
 * the start, is multiplied for all steps at once. */
static void *open(const dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                  const dvbf_transition_values *x) {
  (void)self, (void)settings;
  if (x->n_z != N_Z || !x->n_u) {
    dvbf_refuse(g, "swing needs latent = %d and controls, not latent = %d and n_u = %d", N_Z, x->n_z, x->n_u);
    return NULL;
  }
  size_t u_at = N_Z * N_HIDDEN, o_at = u_at + (size_t)x->n_u * N_HIDDEN, c_at = o_at + N_HIDDEN;
  memory m = {.turned = dvbf_slab(g, x->steps, N_Z)};
  m.hidden = (dvbf_layer){
      .out = dvbf_slab(g, x->steps, N_HIDDEN),
      .activation = DVBF_TANH,
      .bias = dvbf_parameter(g, "swing.bias", 1, N_HIDDEN, (dvbf_first){.scale = 0.5}),
      .n_in = 2,
      .in = {
          {.x = dvbf_steps(x->z, 0, x->steps), .w = dvbf_matrix(x->v, 0, N_Z, N_HIDDEN), .sequential = true},
          {.x = dvbf_steps(x->u, 0, x->steps), .w = dvbf_matrix(x->v, u_at, x->n_u, N_HIDDEN)}}};
  m.push = (dvbf_layer){
      .out = dvbf_slab(g, x->steps, 1),
      .bias = DVBF_NONE,
      .n_in = 1,
      .in = {{.x = m.hidden.out, .w = dvbf_matrix(x->v, o_at, N_HIDDEN, 1), .sequential = true}}};
  m.correction =
      (dvbf_layer){.out = dvbf_slab(g, x->steps, N_Z),
                   .bias = DVBF_NONE,
                   .n_in = 1,
                   .in = {{.x = x->w, .w = dvbf_matrix(x->v, c_at, x->n_w, N_Z), .sequential = true}}};
  dvbf_layer_open(g, &m.hidden);
  dvbf_layer_open(g, &m.push);
  dvbf_layer_open(g, &m.correction);
  return dvbf_remember(g, &m, sizeof m);
}

/* Reads like the equations at the top; writes z[t + 1]. */
static void step(const dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *x, void *opened,
                 int t) {
  (void)self;
  const memory *m = opened;
  if (!m) return; /* refused above: the sentence is already on its way */
  dvbf_value turned = dvbf_steps(m->turned, t, 1);
  dvbf_layer_step(g, &m->hidden, t);
  dvbf_layer_step(g, &m->push, t);
  swing(g, turned, dvbf_steps(x->z, t, 1), dvbf_steps(m->push.out, t, 1), RATE);
  dvbf_layer_step(g, &m->correction, t);
  dvbf_add(g, dvbf_steps(x->z, t + 1, 1), turned, dvbf_steps(m->correction.out, t, 1));
}

static const dvbf_transition swinging = {
    .name = "swing", .universal = universal, .first = first, .open = open, .step = step};

/* ---- Training and evaluation with it ---------------------------------------------------------------------
 */

static dvbf_status get_data(dvbf_data **out, const char *path, dvbf_error *error) {
  if (path) return dvbf_data_read(out, path, 1, error);
  dvbf_settings *pendulum = NULL;
  dvbf_status status = dvbf_settings_new(&pendulum, "pendulum", error);
  if (!status) status = dvbf_simulate(out, pendulum, error);
  dvbf_settings_free(pendulum);
  return status;
}

static bool show(const dvbf_progress *p, void *user_data) {
  (void)user_data;
  if (p->validated)
    printf("update %5llu  bound %7.2f nats per frame  prediction error %.3f of the variance\n",
           (unsigned long long)p->update, p->valid_bound, p->valid_prediction);
  return true;
}

static void print_evaluation(const dvbf_evaluation *e) {
  double error = 0;
  for (size_t i = 0; i < e->n_regressions; i++)
    printf("R2 of %-9s %.3f\n", e->regressions[i].name, e->regressions[i].r2);
  for (size_t h = 0; h < e->horizon; h++) error += e->mse[h] / (double)e->horizon;
  printf("frames %zu to %zu predicted from the first %zu: error %.4f of the pixel variance\n",
         e->observed + 1, e->observed + e->horizon, e->observed, error / e->pixel_variance);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : NULL, *updates = argc > 2 ? argv[2] : "1300",
             *file = "swing.safetensors";
  dvbf_error error;
  dvbf_settings *train = NULL, *evaluate = NULL;
  dvbf_data *data = NULL;
  dvbf_model *trained = NULL, *model = NULL;
  dvbf_evaluation *evaluation = NULL;
  int failed =
      dvbf_settings_new(&train, "train", &error) || dvbf_settings_new(&evaluate, "evaluate", &error) ||
      dvbf_settings_set(train, "updates", updates, &error) || get_data(&data, path, &error) ||
      dvbf_train_with(&trained, &swinging, train, data, show, NULL, &error) ||
      dvbf_model_save(trained, file, &error) || dvbf_model_load_with(&model, &swinging, file, &error) ||
      dvbf_evaluate(&evaluation, model, data, &data->test, evaluate, &error);
  if (failed)
    fprintf(stderr, "%s\n", error.message);
  else
    print_evaluation(evaluation);
  dvbf_evaluation_free(evaluation);
  dvbf_model_free(model);
  dvbf_model_free(trained);
  dvbf_data_free(data);
  dvbf_settings_free(evaluate);
  dvbf_settings_free(train);
  return failed;
}
