/* A model of one's own: a variational autoencoder of single frames, which knows no time.
 *
 *   q(z_t | x_t) = N(mu, sigma^2)     p(z_t) = N(0, I)     bound = ln p(x_t | z_t) - KL(q(z_t | x_t) ||
 * p(z_t))
 *
 * A model is a function that records z and its KL from the inputs. Emission, bound, training, files and
 * evaluation are the library's. Usage: own_model DATA [UPDATES] */
#include <dvbf/dvbf.h>
#include <dvbf/graph.h>
#include <math.h>
#include <stdio.h>

enum { HIDDEN = 64 };

/* A layer on one input, with weights of standard deviation `scale`. */
static void layer(dvbf_graph *g, const char *w, const char *b, dvbf_value x, dvbf_value y,
                  dvbf_activation activation, double scale) {
  dvbf_layer l = {.out = y, .activation = activation, .n_in = 1, .in = {{.x = x}}};
  l.bias = dvbf_parameter(g, b, 1, y.cols, (dvbf_first){0});
  l.in[0].w = dvbf_parameter(g, w, x.cols, y.cols, (dvbf_first){.scale = scale});
  dvbf_layer_whole(g, &l);
}

static void record(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self, (void)m;
  dvbf_graph *g = p->graph;
  dvbf_value h = dvbf_slab(g, p->steps, HIDDEN), head = DVBF_NONE;
  dvbf_value noise = dvbf_slab_constant(g, p->steps, p->z.cols);
  dvbf_noise(g, noise, false);
  if (p->observe) { /* else nothing is seen, and z comes from the prior */
    head = dvbf_slab(g, p->steps, 2 * p->z.cols);
    layer(g, "encoder.hidden.w", "encoder.hidden.b", p->x, h, DVBF_RELU, 1 / sqrt(p->x.cols));
    layer(g, "encoder.output.w", "encoder.output.b", h, head, DVBF_LINEAR, 1 / sqrt(HIDDEN));
  }
  dvbf_innovation z = {
      .w = p->z, .kl = p->kl, .head = head, .noise = noise, .use = p->mask, .low = -8, .high = 2.5};
  dvbf_innovation_step(g, &z, -1);
}

static const dvbf_model_class autoencoder = {.name = "autoencoder", .timeless = true, .whole = record};

int main(int argc, char **argv) {
  dvbf_error error = {.message = "Usage: own_model DATA [UPDATES]"};
  dvbf_settings *train = NULL, *evaluate = NULL;
  dvbf_data *data = NULL;
  dvbf_model *trained = NULL, *model = NULL;
  dvbf_evaluation *e = NULL;
  int failed = argc < 2 || dvbf_settings_new(&train, "train", &error) ||
               dvbf_settings_new(&evaluate, "evaluate", &error) ||
               dvbf_settings_set(train, "updates", argc > 2 ? argv[2] : "2000", &error) ||
               dvbf_data_read(&data, argv[1], train, &error) ||
               dvbf_train_own(&trained, &autoencoder, train, data, NULL, &error) ||
               dvbf_model_save(trained, "autoencoder.safetensors", &error) ||
               dvbf_model_load_own(&model, &autoencoder, "autoencoder.safetensors", &error) ||
               dvbf_evaluate(&e, model, data, &data->test, evaluate, &error);
  if (failed) fprintf(stderr, "%s\n", error.message);
  if (!failed) printf("bound %.2f nats per frame, KL of z %.2f\n", e->elbo, e->kl_w);
  for (size_t i = 0; e && i < e->n_regressions; i++)
    printf("R2 of %-9s %.3f\n", e->regressions[i].name, e->regressions[i].r2);
  dvbf_evaluation_free(e);
  dvbf_model_free(model);
  dvbf_model_free(trained);
  dvbf_data_free(data);
  dvbf_settings_free(evaluate);
  dvbf_settings_free(train);
  return failed;
}
