/* A custom transition, outside the library: linear systems mixed by waves.
 *
 *   own_transition [pendulum.h5 [updates]]        (without a file, the pendulum is simulated)
 *
 * The motion of swinging and turning bodies has matrices whose entries are sines and cosines of the state: a
 * bob with speed s moves from p to R(s) p. So waves weight the linear systems, instead of the softmax of the
 * built-in transition:
 *
 *   theta = z K + u L + bias                                phases: a layer, built in
 *   alpha = (1, cos theta_1, sin theta_1, cos theta_2, ...) a custom op, with its backward
 *   z'    = z + sum_i alpha_i (A_i z + B_i u + C_i w)       a mixture, built in
 *
 * v = (A, B, C) are the universal parameters: the library learns a distribution over them. Angle
 * and speed are not given; the regression at the end measures how well they were learned. */
#include <dvbf/dvbf.h>
#include <dvbf/graph.h>
#include <math.h>
#include <stdio.h>

enum { WAVES = 4, SYSTEMS = 1 + 2 * WAVES };

/* ---- A custom op: alpha = (1, cos theta_1, sin theta_1, ...) ------------------------------------ */

/* A row is a sequence. While the program runs, dvbf_at gives a value's memory: [rows][cols] of this step. */
static void waves_forward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *theta = dvbf_at(run, op->in[0]);
  dvbf_real *alpha = dvbf_at(run, op->out[0]);
  for (int r = 0; r < op->out[0].rows; r++) {
    *alpha++ = 1;
    for (int k = 0; k < WAVES; k++, theta++) {
      *alpha++ = (dvbf_real)cos((double)*theta);
      *alpha++ = (dvbf_real)sin((double)*theta);
    }
  }
}

/* d cos = -sin d theta, d sin = cos d theta; both stand in alpha. Gradients are *added to*, as other ops that
 * read the same value add theirs. Values from dvbf_slab have a gradient; for others dvbf_gradient_at may be
 * NULL. */
static void waves_backward(const dvbf_op *op, dvbf_run *run) {
  const dvbf_real *alpha = dvbf_at(run, op->out[0]), *d_alpha = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d_theta = dvbf_gradient_at(run, op->in[0]);
  for (int r = 0; r < op->out[0].rows; r++, alpha += SYSTEMS, d_alpha += SYSTEMS)
    for (int i = 1; i < SYSTEMS; i += 2) *d_theta++ += alpha[i] * d_alpha[i + 1] - alpha[i + 1] * d_alpha[i];
}

/* The same in statements, so that a trained model can be written as C (dvbf_export). Every second number of
 * alpha is a cosine, the others are sines. */
static void waves_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_place alpha = dvbf_place_of(op->out[0]), cosines = alpha, sines = alpha;
  dvbf_expr theta = dvbf_code_read(code, dvbf_place_of(op->in[0]));
  cosines.offset += 1, sines.offset += 2;
  cosines.by_col = sines.by_col = 2;
  dvbf_code_each(code, alpha, op->out[0].steps, 1, dvbf_code_number(code, 1));
  dvbf_code_each(code, cosines, op->out[0].steps, WAVES, dvbf_code_unary(code, DVBF_COS_OF, theta));
  dvbf_code_each(code, sines, op->out[0].steps, WAVES, dvbf_code_unary(code, DVBF_SIN_OF, theta));
}

static const dvbf_op_class waves_class = {"waves", waves_forward, waves_backward, waves_emit};

/* ---- The transition ---------------------------------------------------------------------------------- */

/* v is what dvbf_mixture wants: rows for z, u and w, then n_z columns, then the systems. */
static size_t universal(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u,
                        int n_w) {
  (void)self, (void)settings;
  return (size_t)(n_z + n_u + n_w) * (size_t)n_z * SYSTEMS;
}

/* First means: A and B random and small, as waves do not sum to 1 and z must not grow from step to step; each
 * w corrects one dimension, by system 0, whose weight is always 1. */
static void first(const dvbf_transition *self, const dvbf_settings *settings, int n_z, int n_u, int n_w,
                  double *mean, double (*normal)(size_t k, void *random), void *random) {
  (void)self, (void)settings;
  size_t k = 0;
  for (int row = 0; row < n_z + n_u + n_w; row++)
    for (int j = 0; j < n_z; j++)
      for (int i = 0; i < SYSTEMS; i++, k++) {
        bool of_w = row >= n_z + n_u;
        mean[k] = !of_w ? 0.02 * normal(k, random) : i == 0 && row - n_z - n_u == j ? 0.3 : 0;
      }
}

typedef struct memory {
  dvbf_layer theta;
  dvbf_value alpha; /* [steps][rows][SYSTEMS] */
  dvbf_mixture mixture;
} memory;

/* Makes the slabs, parameters and shapes that all steps share. An input that earlier steps produce is
 * sequential; u, known from the start, is multiplied for all steps at once. */
static void *open(const dvbf_transition *self, dvbf_graph *g, const dvbf_settings *settings,
                  const dvbf_transition_values *x) {
  (void)self, (void)settings;
  if (!x->n_u) dvbf_refuse(g, "the transition \"waves\" wants data with controls");
  dvbf_value z = dvbf_steps(x->z, 0, x->steps), u = dvbf_steps(x->u, 0, x->steps);
  dvbf_first normal = {.scale = 0.5};
  memory m = {.alpha = dvbf_slab(g, x->steps, SYSTEMS)};
  m.theta = (dvbf_layer){
      .out = dvbf_slab(g, x->steps, WAVES),
      .bias = dvbf_parameter(g, "waves.bias", 1, WAVES, normal),
      .activation = DVBF_LINEAR,
      .n_in = 2,
      .in = {{.x = z, .w = dvbf_parameter(g, "waves.z", x->n_z, WAVES, normal), .sequential = true},
             {.x = u, .w = dvbf_parameter(g, "waves.u", x->n_u, WAVES, normal)}}};
  m.mixture = (dvbf_mixture){.z = z,
                             .u = u,
                             .w = x->w,
                             .alpha = m.alpha,
                             .v = x->v,
                             .next = x->next,
                             .parts = dvbf_slab_constant(g, x->steps, x->n_z * SYSTEMS),
                             .systems = SYSTEMS,
                             .residual = true};
  dvbf_layer_open(g, &m.theta);
  dvbf_mixture_open(g, &m.mixture);
  return dvbf_remember(g, &m, sizeof m);
}

/* Reads like the equations at the top; the mixture writes z[t + 1]. */
static void step(const dvbf_transition *self, dvbf_graph *g, const dvbf_transition_values *x, void *opened,
                 int t) {
  (void)self, (void)x;
  const memory *m = opened;
  if (!m) return; /* out of memory: the recording has already failed */
  dvbf_value theta = dvbf_steps(m->theta.out, t, 1), alpha = dvbf_steps(m->alpha, t, 1);
  dvbf_layer_step(g, &m->theta, t);
  dvbf_record(g, &waves_class, 1, &theta, 1, &alpha, NULL, 0);
  dvbf_mixture_step(g, &m->mixture, t);
}

static const dvbf_transition waves = {
    .name = "waves", .universal = universal, .first = first, .open = open, .step = step, .affine_in_w = true};

/* ---- Training and evaluation with it ----------------------------------------------------------------- */

static dvbf_status get_data(dvbf_data **out, const char *path, dvbf_error *error) {
  if (path) return dvbf_data_read(out, path, NULL, error);
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

static double mean(const double *values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += values[i];
  return n ? sum / (double)n : 0;
}

static void print_evaluation(const dvbf_evaluation *e) {
  for (size_t i = 0; i < e->n_regressions; i++)
    printf("R2 of %-9s %.3f\n", e->regressions[i].name, e->regressions[i].r2);
  printf("Squared error of frames %zu to %zu, predicted from those before, over the pixel variance\n",
         e->observed + 1, e->observed + e->horizon);
  printf("  samples %.3f, noise-free %.3f, persistence %.3f\n", mean(e->mse, e->horizon) / e->pixel_variance,
         mean(e->mse_mean_path, e->horizon) / e->pixel_variance,
         mean(e->mse_repeat, e->horizon) / e->pixel_variance);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : NULL, *updates = argc > 2 ? argv[2] : NULL,
             *file = "waves.safetensors";
  dvbf_error error;
  dvbf_settings *train = NULL, *evaluate = NULL;
  dvbf_data *data = NULL;
  dvbf_model *trained = NULL, *model = NULL;
  dvbf_evaluation *evaluation = NULL;
  int failed =
      dvbf_settings_new(&train, "train", &error) || dvbf_settings_new(&evaluate, "evaluate", &error) ||
      (updates && dvbf_settings_set(train, "updates", updates, &error)) || get_data(&data, path, &error) ||
      dvbf_train_with(&trained, &waves, train, data, &(dvbf_train_options){.progress = show}, &error) ||
      dvbf_model_save(trained, file, &error) || dvbf_model_load_with(&model, &waves, file, &error) ||
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
