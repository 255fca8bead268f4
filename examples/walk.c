/* A guided walk through the Deep Variational Bayes Filter with locally linear transitions (DVBF-LL) of Karl,
 * Soelch, Bayer and van der Smagt, "Deep Variational Bayes Filters", ICLR 2017. Read it from top to bottom.
 *
 *   walk            simulates the paper's pendulum, trains the model, filters and predicts; about ten seconds
 *   walk UPDATES    the same with another number of gradient updates
 *
 * The data are videos of a pendulum, 16 x 16 pixels in each frame x_t, and the torque u_t that drives it from
 * frame to frame. The model is given neither the angle nor the velocity, which no single frame shows. It
 * learns a state z_t of three numbers:
 *
 *   z_1     = g(w_1)                                       initial transition            (section 3)
 *   z_{t+1} = A_t z_t + B_t u_t + C_t w_t                  locally linear transition     (section 4)
 *   w_t     ~ q(w_t | z_t, x_{t+1}, u_t)                   recognition, the filter       (section 5)
 *   x_t     ~ p(x_t | z_t)                                 emission                      (section 6)
 *
 * The point of the paper: q does not draw z itself, but w, a correction of what the transition predicts. So
 * the gradient of every frame flows through the transition, and z must obey it.
 *
 * This file records the equations op by op with <dvbf/graph.h>, as you would for a model of your own. The
 * library has the same model as `--model dvbf`, in src/model/dvbf.c. */
#include <dvbf/dvbf.h>
#include <dvbf/graph.h>
#include <math.h>
#include <stdio.h>

enum {
  N_X = 256,                              /* pixels of a frame */
  N_U = 1,                                /* the torque */
  N_Z = 3,                                /* dimensions of the state, as in the paper */
  N_W = N_Z,                              /* dimensions of the innovation w */
  SYSTEMS = 16,                           /* M linear systems, which the transition mixes */
  HIDDEN = 128,                           /* hidden units of each network */
  FRAMES = 5,                             /* K frames that the initial network sees */
  N_V = (N_Z + N_U + N_W) * N_Z * SYSTEMS /* entries of all A_i, B_i and C_i */
};

/* ---- 1. Values and layers ---- */

/* Nothing is computed in this file before training begins. The functions below *record* ops into a graph, and
 * running the graph is a loop over them, forwards and backwards. A value, such as
 *
 *   dvbf_value h = dvbf_slab(g, T, HIDDEN);       [T steps][sequences][HIDDEN]
 *
 * is memory for all steps of a minibatch, and dvbf_steps(h, t, n) is n steps of it from step t on. The
 * library chooses the number of sequences. A slab has a gradient; a constant slab has none. */

/* An input of a layer. Its weights start as normal numbers of standard deviation `scale`. Sequential:
 * computed by earlier steps of the graph, so that it cannot be multiplied for all steps at once. */
typedef struct input {
  const char *name;
  dvbf_value x;
  double scale;
  bool sequential;
} input;

/*   out = f(b + x_1 W_1 + .. + x_n W_n)
 *
 * Parameters are found by name: the graphs for training, filtering and prediction share their values. */
static dvbf_layer layer(dvbf_graph *g, const char *name, dvbf_value out, dvbf_activation f, double bias_scale,
                        int n, const input *in) {
  char text[64];
  snprintf(text, sizeof text, "%s.bias", name);
  dvbf_layer l = {.out = out, .activation = f, .n_in = n};
  l.bias = dvbf_parameter(g, text, 1, out.cols, (dvbf_first){.scale = bias_scale});
  for (int i = 0; i < n; i++) {
    snprintf(text, sizeof text, "%s.%s", name, in[i].name);
    l.in[i].x = in[i].x;
    l.in[i].w = dvbf_parameter(g, text, in[i].x.cols, out.cols, (dvbf_first){.scale = in[i].scale});
    l.in[i].sequential = in[i].sequential;
  }
  return l;
}

/* The same for all steps at once. */
static void whole_layer(dvbf_graph *g, const char *name, dvbf_value out, dvbf_activation f, double bias_scale,
                        input in) {
  dvbf_layer l = layer(g, name, out, f, bias_scale, 1, &in);
  dvbf_layer_whole(g, &l);
}

/* ---- 2. Universal parameters ---- */

/*   v = {A_i, B_i, C_i | i = 1 .. M}      v ~ q(v) = N(mu_v, sigma_v^2), entry by entry
 *
 * The matrices of the M linear systems are the same for all sequences, and uncertain: each update draws them
 * anew, and KL(q(v) || p(v)) / N enters the bound for each of the N sequences. The prior p(v) = N(m, s^2) is
 * learned too ("empirical Bayes" in the paper): its parameters are m and ln s.
 *
 * dvbf_mixture expects v as [N_Z + N_U + N_W][N_Z][M]: the contributions of z, u and w to the next z.
 * A and B start small and random, each C_i near 0.3 times the identity, so that w can correct all of z. */
static dvbf_value universal_parameters(dvbf_program *p) {
  dvbf_graph *g = p->graph;
  double first[N_V] = {0}, first_prior[2] = {0, log(0.3)};
  for (int j = 0; j < N_Z; j++)
    for (int i = 0; i < SYSTEMS; i++) first[((N_Z + N_U + j) * N_Z + j) * SYSTEMS + i] = 0.3;
  dvbf_value mean = dvbf_parameter(g, "v.mean", 1, N_V, (dvbf_first){.values = first, .scale = 0.1});
  if (p->given_v) return p->v = dvbf_slab_shared_constant(g, 1, N_V); /* the library draws v itself */
  if (p->mean_v) return mean;                                         /* the online filter needs no noise */
  dvbf_universal v = {.v = dvbf_slab_shared(g, 1, N_V), .mean = mean, .weight = p->weight};
  v.noise = p->noise_v = dvbf_slab_shared_constant(g, 1, N_V);
  v.log_sigma = dvbf_parameter(g, "v.log_sigma", 1, N_V, (dvbf_first){.mean = -4});
  v.prior = dvbf_parameter(g, "v.prior", 1, 2, (dvbf_first){.values = first_prior});
  dvbf_noise(g, v.noise, true);
  dvbf_universal_sample(g, &v); /* v = mu_v + sigma_v eps, and its KL */
  return v.v;
}

/* ---- 3. The first state ---- */

/*   w = mu + sigma eps      kl = KL(N(mu, sigma^2) || N(0, I))
 *
 * Every w is drawn like this, by the reparametrisation trick, so that gradients pass through it. The head of
 * a network holds its two outputs (mu, ln sigma); ln sigma stays between -8 and 2.5, since the first updates
 * may overflow without limits. The library keeps what was drawn, to weight samples in a particle filter. */
static dvbf_innovation innovation(const dvbf_drawn *drawn, dvbf_value kl) {
  return (dvbf_innovation){drawn->value, kl, drawn->head, drawn->noise, drawn->use, -8, 2.5};
}

/*   w_1 ~ q(w_1 | x_1 .. x_K) = N(mu_1, sigma_1^2)         p(w_1) = N(0, I)
 *   z_1 = g(w_1)
 *
 * The paper's initial network is recurrent; one hidden layer on K concatenated frames learns equally well. It
 * needs several frames, since one shows no velocity. The scale of its weights gives the hidden units an
 * initial variance of about 1: all pixels of a frame together have a variance of 5.8. */
static void initial(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self, (void)m;
  dvbf_graph *g = p->graph;
  dvbf_value head = DVBF_NONE, h = dvbf_slab(g, 1, HIDDEN);
  if (p->observe) { /* otherwise w_1 comes from its prior */
    dvbf_value x = dvbf_slab_constant(g, 1, FRAMES * N_X), seen = dvbf_slab(g, 1, HIDDEN);
    if (p->observe < FRAMES) dvbf_refuse(g, "the first state needs %d frames", FRAMES);
    dvbf_side_by_side(g, x, dvbf_steps(p->x, 0, FRAMES));
    head = dvbf_slab(g, 1, 2 * N_W);
    whole_layer(g, "initial.hidden", seen, DVBF_RELU, 0, (input){"x", x, 1 / sqrt(FRAMES * 5.8), false});
    whole_layer(g, "initial.head", head, DVBF_LINEAR, 0, (input){"h", seen, 1 / sqrt(HIDDEN), false});
  }
  dvbf_value w = dvbf_slab(g, 1, N_W), noise = dvbf_slab_constant(g, 1, N_W);
  p->first = (dvbf_drawn){.value = w, .head = head, .noise = noise, .use = DVBF_NONE, .prior = DVBF_NONE};
  dvbf_noise(g, noise, false);
  dvbf_innovation draw = innovation(&p->first, dvbf_steps(p->kl, 0, 1));
  dvbf_innovation_step(g, &draw, -1); /* all steps, here one */
  whole_layer(g, "g.hidden", h, DVBF_RELU, 0.5, (input){"w", w, 1, false});
  whole_layer(g, "g.z", dvbf_steps(p->z, 0, 1), DVBF_LINEAR, 0, (input){"h", h, 1 / sqrt(HIDDEN), false});
}

/* ---- 4. The transition ---- */

/*   alpha_t = softmax(net(z_t, u_t))                       weights of the M systems, shared by A, B and C
 *   A_t = sum_i alpha_t,i A_i      B_t and C_t likewise
 *   z_{t+1} = z_t + A_t z_t + B_t u_t + C_t w_t
 *
 * Near any state the system is linear, with matrices that change smoothly with the state. With A = 0
 * the state stays (`residual`), as in the authors' own code. */
typedef struct transition {
  dvbf_layer alpha;
  dvbf_mixture mixture;
} transition;

static transition open_transition(dvbf_program *p, dvbf_value w) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1;
  dvbf_value z = dvbf_steps(p->z, 0, steps), u = dvbf_steps(p->u, 0, steps);
  dvbf_value alpha = dvbf_slab(g, steps, SYSTEMS), parts = dvbf_slab_constant(g, steps, N_Z * SYSTEMS);
  transition f = {.alpha = layer(g, "alpha", alpha, DVBF_SOFTMAX, 0, 2,
                                 (input[]){{"z", z, 0.5, true}, {"u", u, 0.5, false}}),
                  .mixture = {.z = z,
                              .u = u,
                              .w = w,
                              .alpha = alpha,
                              .v = universal_parameters(p),
                              .next = dvbf_steps(p->z, 1, steps),
                              .parts = parts, /* memory for alpha_i (A_i z + ..) of each system */
                              .systems = SYSTEMS,
                              .residual = true}};
  dvbf_layer_open(g, &f.alpha);
  dvbf_mixture_open(g, &f.mixture);
  return f;
}

static void step_transition(dvbf_graph *g, const transition *f, int t) {
  dvbf_layer_step(g, &f->alpha, t);
  dvbf_mixture_step(g, &f->mixture, t);
}

/* From z_t, u_t and a w_t from the prior: how the library predicts and takes derivatives. */
static void predict(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self, (void)m;
  dvbf_value w = p->later.noise = dvbf_slab_constant(p->graph, p->steps - 1, N_W);
  transition f = open_transition(p, w);
  for (int t = 0; t < p->steps - 1; t++) step_transition(p->graph, &f, t);
}

/* ---- 5. Recognition ---- */

/*   w_t ~ q(w_t | z_t, x_{t+1}, u_t) = N(mu_t, sigma_t^2)  p(w_t) = N(0, I)
 *
 * q receives the state, the control and the next frame, and returns the correction of the step: a learned,
 * nonlinear Kalman filter. z_t depends on w_{t-1}, so the steps are recorded one by one; only products with x
 * and u, known in advance, are computed for all steps when the layer opens.
 *
 * `use` marks the steps whose w_t comes from q: those with an observed x_{t+1}, unless filter dropout drops
 * them in training. In other steps w_t comes from its prior, with kl = 0. Without this dropout q learns to
 * encode each frame in z directly, the transition is ignored, and the velocity is never found. The same ops
 * serve training sequences and single steps of a filter: both have p->steps - 1 steps. */
static void filter(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self, (void)m;
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1;
  dvbf_value z = dvbf_steps(p->z, 0, steps), u = dvbf_steps(p->u, 0, steps), x = dvbf_steps(p->x, 1, steps);
  dvbf_value h = dvbf_slab(g, steps, HIDDEN), head = dvbf_slab(g, steps, 2 * N_W);
  dvbf_value w = dvbf_slab(g, steps, N_W), noise = dvbf_slab_constant(g, steps, N_W);
  dvbf_value use = dvbf_slab_constant(g, steps, 1);
  p->later = (dvbf_drawn){.value = w, .head = head, .noise = noise, .use = use, .prior = DVBF_NONE};
  dvbf_noise(g, noise, false);
  dvbf_filter_use(g, use, dvbf_steps(p->mask, 1, steps));

  dvbf_layer hidden =
      layer(g, "q.hidden", h, DVBF_RELU, 0, 3,
            (input[]){{"x", x, 1 / sqrt(5.8), false}, {"z", z, 0.5, true}, {"u", u, 0.5, false}});
  dvbf_layer output = layer(g, "q.head", head, DVBF_LINEAR, 0, 1, &(input){"h", h, 0.1 / sqrt(HIDDEN), true});
  dvbf_innovation draw = innovation(&p->later, dvbf_steps(p->kl, 1, steps));
  dvbf_layer_open(g, &hidden);
  dvbf_layer_open(g, &output);
  transition f = open_transition(p, w);
  for (int t = 0; t < steps; t++) {
    dvbf_layer_step(g, &hidden, t);
    dvbf_layer_step(g, &output, t);    /* (mu_t, ln sigma_t) */
    dvbf_innovation_step(g, &draw, t); /* w_t and its kl */
    step_transition(g, &f, t);         /* z_{t+1} */
  }
}

static void whole_sequence(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  initial(self, p, m);
  filter(self, p, m);
}

/* ---- 6. The emission ---- */

/*   p(x_t | z_t) = N(mean(z_t), sigma^2)                   one sigma for all pixels, learned
 *
 * The weights of the mean start small, so that the first image is close to the mean frame: x is centred.
 * sigma starts at 1 and decreases slowly (the settings in section 8). */
static void emission(const dvbf_model_class *self, dvbf_program *p, const dvbf_model *m) {
  (void)self, (void)m;
  dvbf_graph *g = p->graph;
  dvbf_value h = dvbf_slab(g, p->steps, HIDDEN), mean = dvbf_slab(g, p->steps, N_X);
  dvbf_value log_sigma = dvbf_parameter(g, "emission.log_sigma", 1, 1, (dvbf_first){0});
  whole_layer(g, "emission.hidden", h, DVBF_RELU, 0.5, (input){"z", p->z, 1, false});
  whole_layer(g, "emission.mean", mean, DVBF_LINEAR, 0, (input){"h", h, 0.02 / sqrt(HIDDEN), false});
  p->output = mean, p->shape[0] = log_sigma, p->ln_p = dvbf_slab(g, p->steps, 1);
  dvbf_gaussian(g, p->ln_p, p->x, mean, log_sigma, p->mask);
}

/* ---- 7. The model and its bound ---- */

/*   ln p(x_1 .. x_T | u) >= E_q[ sum_t ln p(x_t | z_t) ] - sum_t KL(q(w_t) || p(w_t)) - KL(q(v) || p(v)) / N
 *
 * All of its terms are now recorded: p->ln_p, p->kl, and the term added by dvbf_universal_sample. The library
 * sums the first two over steps and sequences, with these calls,
 *
 *   dvbf_sum(g, dvbf_term(g, DVBF_RECONSTRUCTION, -1), p->ln_p, p->weight, temperature);
 *   dvbf_sum(g, dvbf_term(g, DVBF_KL_W, 1), p->kl, p->weight, -1);
 *
 * and descends the gradient; `temperature` is the paper's c, which stays 1 here. */
static int innovations(const dvbf_model_class *self, const dvbf_settings *settings) {
  (void)self, (void)settings;
  return N_W;
}

static int frames(const dvbf_model_class *self, const dvbf_settings *settings) {
  (void)self, (void)settings;
  return FRAMES;
}

static bool rows_share(const dvbf_model_class *self, const dvbf_settings *settings) {
  (void)self, (void)settings;
  return true; /* v */
}

static const dvbf_model_class walk = {.name = "walk",
                                      .innovations = innovations,
                                      .start_frames = frames,
                                      .frames_needed = frames,
                                      .rows_share = rows_share,
                                      .whole = whole_sequence,
                                      .start = initial,
                                      .step = filter,
                                      .move = predict,
                                      .emission = emission};

/* ---- 8. Training ---- */

/* The recipe. There is a bad optimum with nearly the same bound, in which w replaces z at every frame. Two
 * things avoid it: a large initial sigma, so that frames have little weight, and filter dropout, which makes
 * the transition carry z over steps that q does not see. */
static const char *const recipe[][2] = {
    {"latent", "3"},                  /* N_Z */
    {"updates", "2500"},              /* of 50 sequences each, by Adam */
    {"learning-rate", "0.004"},       /* after a warm-up of 100 updates; then decays as a cosine */
    {"sigma-floor", "0.016"},         /* sigma falls from 1 to this, evenly in ln sigma, */
    {"sigma-floor-until", "1800"},    /* over 1800 updates */
    {"filter-dropout", "0.4"},        /* fraction of the steps whose w comes from the prior, */
    {"filter-dropout-end", "0"},      /* which falls to this */
    {"filter-dropout-until", "1500"}, /* over 1500 updates */
    {"starts", "1"},                  /* no second try */
};

static bool show(const dvbf_progress *p, void *user_data) {
  (void)user_data;
  if (p->validated)
    printf("update %5llu  bound %7.2f nats per frame  KL of w %4.2f  prediction error %.3f of the variance\n",
           (unsigned long long)p->update, p->valid_bound, p->valid_kl_w, p->valid_prediction);
  return true;
}

static dvbf_status train(dvbf_model **out, const dvbf_data *data, const char *updates, dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  for (size_t i = 0; !status && i < sizeof recipe / sizeof *recipe; i++)
    status = dvbf_settings_set(settings, recipe[i][0], recipe[i][1], error);
  if (!status && updates) status = dvbf_settings_set(settings, "updates", updates, error);
  if (!status)
    status = dvbf_train_own(out, &walk, settings, data, &(dvbf_train_options){.progress = show}, error);
  dvbf_settings_free(settings);
  return status;
}

/* ---- 9. Filtering, prediction and the bound, on test sequences ---- */

/* Does z contain the state? As in the paper's Table 1, a linear regression from a sample of z_t, given the
 * frames up to t, to the true sine, cosine and velocity, which were not used in training. *reached is whether
 * all are as good as in the paper. */
static dvbf_status show_filter(bool *reached, const dvbf_model *model, const dvbf_data *data,
                               dvbf_error *error) {
  static const double paper[] = {0.961, 0.982, 0.916};
  const dvbf_sequences *test = &data->test;
  dvbf_settings *settings = NULL;
  dvbf_estimates *e = NULL;
  dvbf_status status = dvbf_settings_new(&settings, "filter", error);
  if (!status) status = dvbf_settings_set(settings, "samples", "1", error);
  if (!status) status = dvbf_estimate(&e, model, test, settings, error);
  *reached = true;
  for (size_t i = 0; !status && i < test->n_s; i++) {
    dvbf_regression r;
    status = dvbf_regress(&r, e->z, test->count * test->steps, e->n_z, test->state + i, test->n_s, error);
    if (status) break;
    printf("R2 of %-9s %.3f   (paper: %.3f)\n", data->state_names[i], r.r2, paper[i]);
    if (!(r.r2 >= paper[i])) *reached = false;
  }
  dvbf_estimates_free(e);
  dvbf_settings_free(settings);
  return status;
}

/* Five frames are observed and ten predicted from the torques alone; the bound is for whole sequences. */
static dvbf_status show_prediction(const dvbf_model *model, const dvbf_data *data, dvbf_error *error) {
  dvbf_settings *predicting = NULL, *evaluating = NULL;
  dvbf_estimates *e = NULL;
  dvbf_evaluation *bound = NULL;
  double rmse, by_pixel[N_X], by_step[64];
  dvbf_status status = dvbf_settings_new(&predicting, "predict", error);
  if (!status) status = dvbf_settings_new(&evaluating, "evaluate", error);
  if (!status) status = dvbf_settings_set(predicting, "observe", "5", error);
  if (!status) status = dvbf_estimate(&e, model, &data->test, predicting, error);
  if (!status) status = dvbf_estimates_rmse(&rmse, by_pixel, by_step, e, &data->test, error);
  if (!status) status = dvbf_settings_set(evaluating, "verdict", "off", error);
  if (!status) status = dvbf_evaluate(&bound, model, data, &data->test, evaluating, error);
  if (!status)
    printf("bound %.2f nats per frame = reconstruction %.2f - KL of w %.2f - KL of v %.3f\n"
           "squared error of %zu predicted frames: %.3f (mean frame: 1)\n",
           bound->elbo, bound->reconstruction, bound->kl_w, bound->kl_v, e->steps,
           rmse * rmse / bound->pixel_variance);
  dvbf_evaluation_free(bound);
  dvbf_estimates_free(e);
  dvbf_settings_free(evaluating);
  dvbf_settings_free(predicting);
  return status;
}

/* The paper's pendulum: 500 sequences of 15 frames each for training, validation and test. A model file
 * contains settings and parameters; dvbf_model_load_own adds the equations. */
int main(int argc, char **argv) {
  const char *file = "walk.safetensors", *updates = argc > 1 ? argv[1] : NULL;
  dvbf_error error;
  dvbf_settings *pendulum = NULL;
  dvbf_data *data = NULL;
  dvbf_model *trained = NULL, *model = NULL;
  bool reached = false;
  int failed = dvbf_settings_new(&pendulum, "pendulum", &error) || dvbf_simulate(&data, pendulum, &error) ||
               train(&trained, data, updates, &error) || dvbf_model_save(trained, file, &error) ||
               dvbf_model_load_own(&model, &walk, file, &error) ||
               show_filter(&reached, model, data, &error) || show_prediction(model, data, &error);
  if (failed) fprintf(stderr, "%s\n", error.message);
  dvbf_model_free(model);
  dvbf_model_free(trained);
  dvbf_data_free(data);
  dvbf_settings_free(pendulum);
  return failed || !(updates || reached); /* also a failure if the full training misses the paper's R2 */
}
