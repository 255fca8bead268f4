/* The paper's experiments as tables (dv_experiments): pendulum and balls, their models and settings, and the
 * paper's numbers for each quantity. */
#include "experiments/paper.h"

/* ---- Quantities ---- */

#define REGRESSION "linear regression of the true state on z"
#define BOUND "bound = reconstruction - KL, nats per frame"
#define PREDICTION                                                                                           \
  "Noise-free prediction from the first frames (5): squared error over pixel variance (mean image: 1)"
#define WHOLE                                                                                                \
  "Share of the last frames generated, of 45, that show whole balls: regions above half brightness"
#define NETWORK                                                                                              \
  "R^2 of the true state by a network of 32 units on z, learned from half of the test set, of the other "    \
  "half"

static const dv_quantities bound = {"Bound: " BOUND,
                                    {{"bound", "elbo", 2, .kind = DV_OF_BOUND},
                                     {"reconstr.", "reconstruction", 2, .kind = DV_OF_RECONSTRUCTION},
                                     {"KL", "kl", 2, .kind = DV_OF_KL}}};
static const dv_quantities likelihood = {
    "Bound = reconstruction - KL, nats per frame; closer: the better of 64 weighted paths and 64 particles",
    {{"bound", "elbo", 2, .kind = DV_OF_BOUND},
     {"reconstr.", "reconstruction", 2, .kind = DV_OF_RECONSTRUCTION},
     {"KL", "kl", 2, .kind = DV_OF_KL},
     {"closer", "particles", 2, .kind = DV_OF_PARTICLES}}};
static const dv_quantities centres = {
    "Steps ahead, of 40, until the error is half of the variance, and until the object is a pixel away; "
    "distance of its centre in pixels, frames 6-15 and 6-45; noise-free",
    {{"valid", "valid_steps", 1, .kind = DV_OF_VALID},
     {"close", "close_steps", 1, .kind = DV_OF_CLOSE},
     {"6-15", "distance_6_15", 2, .kind = DV_OF_DISTANCE},
     {"6-45", "distance_6_45", 2, .kind = DV_OF_DISTANCE_FAR}}};
static const dv_quantities training = {
    "Training",
    {{"seconds", "seconds", 1, .kind = DV_OF_SECONDS}, {"starts", "starts", 0, .kind = DV_OF_STARTS}}};

/* The pendulum, with the numbers of the paper for DVBF-LL and DKF; it has none for the balls. */
static const dv_quantities pendulum_table_1 = {
    "Table 1: " REGRESSION,
    {{"sin loglik", "sin_log_likelihood", 1, DV_OF_LIKELIHOOD, "sin", .paper = {3990.8, 1737.6}},
     {"sin R^2", "sin_r2", 3, DV_OF_R2, "sin", .paper = {0.961, 0.929}},
     {"cos loglik", "cos_log_likelihood", 1, DV_OF_LIKELIHOOD, "cos", .paper = {7231.1, 6614.2}},
     {"cos R^2", "cos_r2", 3, DV_OF_R2, "cos", .paper = {0.982, 0.979}},
     {"velo. loglik", "velocity_log_likelihood", 1, DV_OF_LIKELIHOOD, "velocity", .paper = {-11139, -20289}},
     {"velo. R^2", "velocity_r2", 3, DV_OF_R2, "velocity", .paper = {0.916, 0.035}}}};
static const dv_quantities pendulum_table_2 = {
    "Table 2: " BOUND,
    {{"bound", "elbo", 2, .kind = DV_OF_BOUND, .paper = {798.56, 784.70}},
     {"reconstr.", "reconstruction", 2, .kind = DV_OF_RECONSTRUCTION, .paper = {802.06, 788.58}},
     {"KL", "kl", 2, .kind = DV_OF_KL, .paper = {3.50, 3.88}}}};
static const dv_quantities pendulum_r2 = {
    "R^2 of the " REGRESSION,
    {{"sin", "sin_r2", 3, DV_OF_R2, "sin", .paper = {0.961, 0.929}},
     {"cos", "cos_r2", 3, DV_OF_R2, "cos", .paper = {0.982, 0.979}},
     {"velocity", "velocity_r2", 3, DV_OF_R2, "velocity", .paper = {0.916, 0.035}}}};
static const dv_quantities pendulum_network = {
    NETWORK,
    {{"sin", "sin_r2_network", 3, DV_OF_R2_NETWORK, .state = "sin"},
     {"cos", "cos_r2_network", 3, DV_OF_R2_NETWORK, .state = "cos"},
     {"velocity", "velocity_r2_network", 3, DV_OF_R2_NETWORK, .state = "velocity"}}};
static const dv_quantities pendulum_errors = {
    PREDICTION,
    {{"frames 6-15", "error_6_15", 4, .kind = DV_OF_ERROR, .first = 6, .last = 15},
     {"frames 6-45", "error_6_45", 4, .kind = DV_OF_ERROR, .first = 6, .last = 45}}};
static const dv_quantities pendulum_walk = {
    "Walk of 100 steps without torque: distance between the ends of generation and filtering, over the "
    "spread of z",
    {{"distance", "walk_distance", 4, .kind = DV_OF_WALK}}};

/* The balls. */
static const dv_quantities ball_r2 = {"R^2 of the " REGRESSION,
                                      {{"x", "x_r2", 4, DV_OF_R2, .state = "x"},
                                       {"y", "y_r2", 4, DV_OF_R2, .state = "y"},
                                       {"velocity x", "velocity_x_r2", 4, DV_OF_R2, .state = "velocity x"},
                                       {"velocity y", "velocity_y_r2", 4, DV_OF_R2, .state = "velocity y"}}};
static const dv_quantities ball_r2_away = {
    "R^2 of the " REGRESSION,
    {{"x", "x_r2", 4, DV_OF_R2, .state = "x"},
     {"y", "y_r2", 4, DV_OF_R2, .state = "y"},
     {"velocity x", "velocity_x_r2", 4, DV_OF_R2, .state = "velocity x"},
     {"velocity y", "velocity_y_r2", 4, DV_OF_R2, .state = "velocity y"},
     {"vel. x away", "velocity_x_r2_away", 4, DV_OF_R2_AWAY, .state = "velocity x"},
     {"vel. y away", "velocity_y_r2_away", 4, DV_OF_R2_AWAY, .state = "velocity y"}}};
static const dv_quantities ball_network = {
    NETWORK,
    {{"x", "x_r2_network", 3, DV_OF_R2_NETWORK, .state = "x"},
     {"y", "y_r2_network", 3, DV_OF_R2_NETWORK, .state = "y"},
     {"velocity x", "velocity_x_r2_network", 3, DV_OF_R2_NETWORK, .state = "velocity x"},
     {"velocity y", "velocity_y_r2_network", 3, DV_OF_R2_NETWORK, .state = "velocity y"}}};
static const dv_quantities ball_errors = {
    PREDICTION,
    {{"frames 6-15", "error_6_15", 4, .kind = DV_OF_ERROR, .first = 6, .last = 15},
     {"frame 27", "error_27", 4, .kind = DV_OF_ERROR, .first = 27, .last = 27},
     {"steps < 1", "steps_ahead", 0, .kind = DV_OF_STEPS_AHEAD}}};
static const dv_quantities ball_whole = {
    WHOLE, {{"one ball at 45", "one_ball_45", 3, .kind = DV_OF_WHOLE, .first = 1}}};
static const dv_quantities two_balls_r2 = {
    "R^2 of the " REGRESSION,
    {{"mean x", "mean_x_r2", 4, DV_OF_R2, .state = "mean x"},
     {"mean y", "mean_y_r2", 4, DV_OF_R2, .state = "mean y"},
     {"mean vel. x", "mean_velocity_x_r2", 4, DV_OF_R2, .state = "mean velocity x"},
     {"mean vel. y", "mean_velocity_y_r2", 4, DV_OF_R2, .state = "mean velocity y"},
     {"distance", "distance_r2", 4, DV_OF_R2, .state = "distance"}}};
static const dv_quantities two_balls_errors = {
    PREDICTION,
    {{"frames 6-15", "error_6_15", 4, .kind = DV_OF_ERROR, .first = 6, .last = 15},
     {"frames 6-20", "error_6_20", 4, .kind = DV_OF_ERROR, .first = 6, .last = 20},
     {"steps < 1", "steps_ahead", 0, .kind = DV_OF_STEPS_AHEAD}}};
static const dv_quantities two_balls_whole = {
    WHOLE,
    {{"two at 45", "two_balls_45", 3, .kind = DV_OF_WHOLE, .first = 2},
     {"in truth", "two_balls_45_truth", 3, .kind = DV_OF_WHOLE_TRUTH, .first = 2}}};

/* ---- Experiments ---- */

/* Settings of models that have no preset of their own. The budget is that of the preset. */
#define BALL_RIVAL(model_)                                                                                   \
  "model = " model_ "\nprojection = 1e-4\nstarts = 1\nupdates = 10000\nsigma-floor-updates = 5000\n"

const dv_experiment dv_experiments[DV_EXPERIMENTS] = {
    {.system = "pendulum",
     .title = "Dynamic pendulum",
     .remark =
         "500 + 500 + 500 sequences of 15 images, as in the paper. Bounds depend on the images, which are "
         "not the paper's, and on how far the standard deviation of the emission may fall.",
     .contender = {{"DVBF-LL", "dvbf", "pendulum", .run = "run"},
                   {"DKF", "dkf", "dkf-pendulum", .run = "run-dkf"}},
     .table = {&pendulum_table_1, &pendulum_table_2, &pendulum_errors, &pendulum_walk, &training}},
    {.system = "ball",
     .title = "Bouncing ball",
     .remark =
         "The paper trains on 500 sequences and shows pictures only. Our preset simulates 10,000, paper-ball "
         "500. A frame is away from bounces if the ball meets no wall in the step before or after it.",
     .contender = {{"DVBF-LL", "dvbf", "ball", .run = "run"}},
     .table = {&ball_r2_away, &bound, &ball_errors, &ball_whole, &training}},
    {.system = "two-balls",
     .title = "Two bouncing balls",
     .remark =
         "The paper trains on 2000 sequences and shows pictures only. Our preset simulates 20,000, "
         "paper-two-balls 2000. The balls are interchangeable, so the regressions are on quantities that do "
         "not depend on which ball is which.",
     .contender = {{"DVBF-LL", "dvbf", "two-balls", .run = "run"}},
     .table = {&two_balls_r2, &bound, &two_balls_errors, &two_balls_whole, &training}},
    {.system = "pendulum",
     .title = "Dynamic pendulum, all models",
     .remark = "The models that the paper names, on its data. R^2 is of the whole state that a model "
               "carries: of the recurrent units of a VRNN and a STORN too, and of the moments of an SVAE. "
               "The bound of an E2C is that of an autoencoder, as its own objective is not a bound; the "
               "bound of the linear model is its likelihood.",
     .all_models = true,
     .contender = {{"DVBF-LL", "dvbf", "pendulum", .run = "run"},
                   {"DKF", "dkf", "dkf-pendulum", .run = "run-dkf"},
                   {"VRNN", "vrnn", "vrnn-pendulum", .run = "run-vrnn"},
                   {"STORN", "storn", "storn-pendulum", .run = "run-storn"},
                   {"SVAE", "svae", "svae-pendulum", .run = "run-svae"},
                   {"E2C", "e2c", "e2c-pendulum", "run-e2c", .no_particles = true},
                   {"VAE", "vae", "pendulum", "run-vae", .settings = "model = vae\nstarts = 1\n"},
                   {"linear", "linear", "pendulum", "run-linear", "model = linear\nlatent = 8\n", true}},
     .table = {&pendulum_r2, &pendulum_network, &likelihood, &pendulum_errors, &centres, &pendulum_walk,
               &training}},
    {.system = "ball",
     .title = "Bouncing ball, all models",
     .remark = "The models that the paper names, on its second system. Rivals of the DVBF have no presets "
               "for it: they use their defaults, with 10,000 updates.",
     .all_models = true,
     .contender = {{"DVBF-LL", "dvbf", "ball", .run = "run"},
                   {"DKF", "dkf", "ball", "run-dkf",
                    .settings =
                        BALL_RIVAL("dkf") "initial = birnn\nfilter-dropout = 0\nfilter-dropout-end = 0\n"},
                   {"VRNN", "vrnn", "ball", "run-vrnn", .settings = BALL_RIVAL("vrnn")},
                   {"STORN", "storn", "ball", "run-storn", .settings = BALL_RIVAL("storn")},
                   {"SVAE", "svae", "ball", "run-svae", .settings = BALL_RIVAL("svae")},
                   {"E2C", "e2c", "ball", "run-e2c", BALL_RIVAL("e2c") "keep-by = prediction\n", true},
                   {"VAE", "vae", "ball", "run-vae", .settings = BALL_RIVAL("vae")},
                   {"linear", "linear", "ball", "run-linear", "model = linear\nlatent = 8\n", true}},
     .table = {&ball_r2, &ball_network, &likelihood, &ball_errors, &centres, &training}},
};

bool dv_measures(const dv_experiment *e, dv_quantity_kind kind) {
  for (size_t k = 0; e->table[k]; k++)
    for (const dv_quantity *q = e->table[k]->quantity; q->heading; q++)
      if (q->kind == kind) return true;
  return false;
}
