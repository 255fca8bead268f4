/* The paper's experiments as tables: pendulum and ball, their models and settings, and the paper's numbers
 * for each quantity (dv_quantities). */
#include "experiments/paper.h"

/* Rows of the tables below; the arguments after the named ones are the paper's numbers, for DVBF-LL and
 * DKF. */
#define REGRESSION(kind_, heading_, key_, decimals_, state_, ...)                                            \
  {                                                                                                          \
    .heading = heading_, .key = key_, .decimals = decimals_, .kind = kind_, .state = state_, .paper = {      \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }
#define BOUND(kind_, heading_, key_, ...)                                                                    \
  {                                                                                                          \
    .heading = heading_, .key = key_, .decimals = 2, .kind = kind_, .paper = { __VA_ARGS__ }                 \
  }
#define ERROR(heading_, key_, first_, last_)                                                                 \
  { .heading = heading_, .key = key_, .decimals = 4, .kind = DV_OF_ERROR, .first = first_, .last = last_ }
#define COUNT(kind_, heading_, key_, decimals_)                                                              \
  { .heading = heading_, .key = key_, .decimals = decimals_, .kind = kind_ }
#define WHOLE(kind_, heading_, key_, balls_)                                                                 \
  { .heading = heading_, .key = key_, .decimals = 3, .kind = kind_, .first = balls_ }
#define NETWORK(heading_, key_, state_)                                                                      \
  { .heading = heading_, .key = key_, .decimals = 3, .kind = DV_OF_R2_NETWORK, .state = state_ }
#define TABLE(title)                                                                                         \
  { .table = title }

#define ABOUT_REGRESSION "linear regression of the true state on z"
#define ABOUT_BOUND "bound = reconstruction - KL, nats per frame"
#define ABOUT_PREDICTION                                                                                     \
  "Noise-free prediction from the first frames (5): squared error over pixel variance (mean image: 1)"
#define ABOUT_WHOLE                                                                                          \
  "Share of the last frames generated, of 45, that show whole balls: regions above half brightness"
#define BOUND_ROWS                                                                                           \
  TABLE("Bound: " ABOUT_BOUND), BOUND(DV_OF_BOUND, "bound", "elbo", 0),                                      \
      BOUND(DV_OF_RECONSTRUCTION, "reconstr.", "reconstruction", 0), BOUND(DV_OF_KL, "KL", "kl", 0)
#define TRAINING_ROWS                                                                                        \
  TABLE("Training"), COUNT(DV_OF_SECONDS, "seconds", "seconds", 1), COUNT(DV_OF_STARTS, "starts", "starts", 0)

#define ABOUT_NETWORK                                                                                        \
  "R^2 of the true state by a network of 32 units on z, learned from half of the test set, of the other "    \
  "half"
#define ABOUT_LIKELIHOOD                                                                                     \
  "Bound = reconstruction - KL, nats per frame; closer: the better of 64 weighted paths and 64 particles"
#define CENTRE_ROWS                                                                                          \
  TABLE(                                                                                                     \
      "Steps ahead, of 40, until the error is half of the variance, and until the object is a pixel away; "  \
      "distance of its centre in pixels, frames 6-15 and 6-45; noise-free"),                                 \
      COUNT(DV_OF_VALID, "valid", "valid_steps", 1), COUNT(DV_OF_CLOSE, "close", "close_steps", 1),          \
      COUNT(DV_OF_DISTANCE, "6-15", "distance_6_15", 2),                                                     \
      COUNT(DV_OF_DISTANCE_FAR, "6-45", "distance_6_45", 2)
#define LIKELIHOOD_ROWS                                                                                      \
  TABLE(ABOUT_LIKELIHOOD), BOUND(DV_OF_BOUND, "bound", "elbo", 0),                                           \
      BOUND(DV_OF_RECONSTRUCTION, "reconstr.", "reconstruction", 0), BOUND(DV_OF_KL, "KL", "kl", 0),         \
      BOUND(DV_OF_PARTICLES, "closer", "particles", 0)

/* The pendulum. */
#define FAR_ROWS                                                                                             \
  TABLE(ABOUT_PREDICTION), ERROR("frames 6-15", "error_6_15", 6, 15),                                        \
      ERROR("frames 6-45", "error_6_45", 6, 45)
#define WALK_ROWS                                                                                            \
  TABLE("Walk of 100 steps without torque: distance between the ends of generation and filtering, over the " \
        "spread of z"),                                                                                      \
      COUNT(DV_OF_WALK, "distance", "walk_distance", 4)
/* The ball. */
#define BALL_ROWS                                                                                            \
  TABLE("R^2 of the " ABOUT_REGRESSION), REGRESSION(DV_OF_R2, "x", "x_r2", 4, "x", 0),                       \
      REGRESSION(DV_OF_R2, "y", "y_r2", 4, "y", 0),                                                          \
      REGRESSION(DV_OF_R2, "velocity x", "velocity_x_r2", 4, "velocity x", 0),                               \
      REGRESSION(DV_OF_R2, "velocity y", "velocity_y_r2", 4, "velocity y", 0)
#define BOUNCE_ROWS                                                                                          \
  TABLE(ABOUT_PREDICTION), ERROR("frames 6-15", "error_6_15", 6, 15), ERROR("frame 27", "error_27", 27, 27), \
      COUNT(DV_OF_STEPS_AHEAD, "steps < 1", "steps_ahead", 0)

/* Settings of models that have no preset of their own. The budget is that of the preset. */
#define BALL_RIVAL(model_)                                                                                   \
  "model = " model_ "\nprojection = 1e-4\nstarts = 1\nupdates = 10000\nsigma-floor-updates = 5000\n"

/* Numbers of Tables 1 and 2 of the paper; it has none for the balls. */
const dv_experiment dv_experiments[DV_EXPERIMENTS] = {
    {.system = "pendulum",
     .title = "Dynamic pendulum",
     .remark =
         "500 + 500 + 500 sequences of 15 images, as in the paper. Bounds depend on the images, which are "
         "not the paper's, and on how far the standard deviation of the emission may fall.",
     .contender = {{.name = "DVBF-LL", .model = "dvbf", .preset = "pendulum", .run = "run"},
                   {.name = "DKF", .model = "dkf", .preset = "dkf-pendulum", .run = "run-dkf"}},
     .quantity =
         {
             TABLE("Table 1: " ABOUT_REGRESSION),
             REGRESSION(DV_OF_LIKELIHOOD, "sin loglik", "sin_log_likelihood", 1, "sin", 3990.8, 1737.6),
             REGRESSION(DV_OF_R2, "sin R^2", "sin_r2", 3, "sin", 0.961, 0.929),
             REGRESSION(DV_OF_LIKELIHOOD, "cos loglik", "cos_log_likelihood", 1, "cos", 7231.1, 6614.2),
             REGRESSION(DV_OF_R2, "cos R^2", "cos_r2", 3, "cos", 0.982, 0.979),
             REGRESSION(DV_OF_LIKELIHOOD, "velo. loglik", "velocity_log_likelihood", 1, "velocity", -11139,
                        -20289),
             REGRESSION(DV_OF_R2, "velo. R^2", "velocity_r2", 3, "velocity", 0.916, 0.035),
             TABLE("Table 2: " ABOUT_BOUND),
             BOUND(DV_OF_BOUND, "bound", "elbo", 798.56, 784.70),
             BOUND(DV_OF_RECONSTRUCTION, "reconstr.", "reconstruction", 802.06, 788.58),
             BOUND(DV_OF_KL, "KL", "kl", 3.50, 3.88),
             FAR_ROWS,
             WALK_ROWS,
             TRAINING_ROWS,
         }},
    {.system = "ball",
     .title = "Bouncing ball",
     .remark =
         "The paper trains on 500 sequences and shows pictures only. Our preset simulates 10,000, paper-ball "
         "500. A frame is away from bounces when no wall is met in the step before or after it.",
     .contender = {{.name = "DVBF-LL", .model = "dvbf", .preset = "ball", .run = "run"}},
     .quantity =
         {
             BALL_ROWS,
             REGRESSION(DV_OF_R2_AWAY, "vel. x away", "velocity_x_r2_away", 4, "velocity x", 0),
             REGRESSION(DV_OF_R2_AWAY, "vel. y away", "velocity_y_r2_away", 4, "velocity y", 0),
             BOUND_ROWS,
             BOUNCE_ROWS,
             TABLE(ABOUT_WHOLE),
             WHOLE(DV_OF_WHOLE, "one ball at 45", "one_ball_45", 1),
             TRAINING_ROWS,
         }},
    {.system = "two-balls",
     .title = "Two bouncing balls",
     .remark =
         "The paper trains on 2000 sequences and shows pictures only. Our preset simulates 20,000, "
         "paper-two-balls 2000. The balls are interchangeable, so the regressions are on quantities that do "
         "not depend on which ball is which.",
     .contender = {{.name = "DVBF-LL", .model = "dvbf", .preset = "two-balls", .run = "run"}},
     .quantity =
         {
             TABLE("R^2 of the " ABOUT_REGRESSION),
             REGRESSION(DV_OF_R2, "mean x", "mean_x_r2", 4, "mean x", 0),
             REGRESSION(DV_OF_R2, "mean y", "mean_y_r2", 4, "mean y", 0),
             REGRESSION(DV_OF_R2, "mean vel. x", "mean_velocity_x_r2", 4, "mean velocity x", 0),
             REGRESSION(DV_OF_R2, "mean vel. y", "mean_velocity_y_r2", 4, "mean velocity y", 0),
             REGRESSION(DV_OF_R2, "distance", "distance_r2", 4, "distance", 0),
             BOUND_ROWS,
             TABLE(ABOUT_PREDICTION),
             ERROR("frames 6-15", "error_6_15", 6, 15),
             ERROR("frames 6-20", "error_6_20", 6, 20),
             COUNT(DV_OF_STEPS_AHEAD, "steps < 1", "steps_ahead", 0),
             TABLE(ABOUT_WHOLE),
             WHOLE(DV_OF_WHOLE, "two at 45", "two_balls_45", 2),
             WHOLE(DV_OF_WHOLE_TRUTH, "in truth", "two_balls_45_truth", 2),
             TRAINING_ROWS,
         }},
    {.system = "pendulum",
     .title = "Dynamic pendulum, all models",
     .remark = "The models that the paper names, on its data. R^2 is of the whole state that a model "
               "carries: of the "
               "recurrent units of a VRNN and a STORN too, and of the moments of an SVAE. What an E2C has as "
               "bound is "
               "that of an autoencoder, as its own objective is none; the bound of the linear model is its "
               "likelihood.",
     .all_models = true,
     .contender = {{"DVBF-LL", "dvbf", "pendulum", "run", NULL, false},
                   {"DKF", "dkf", "dkf-pendulum", "run-dkf", NULL, false},
                   {"VRNN", "vrnn", "vrnn-pendulum", "run-vrnn", NULL, false},
                   {"STORN", "storn", "storn-pendulum", "run-storn", NULL, false},
                   {"SVAE", "svae", "svae-pendulum", "run-svae", NULL, false},
                   {"E2C", "e2c", "e2c-pendulum", "run-e2c", NULL, true},
                   {"VAE", "vae", "pendulum", "run-vae", "model = vae\nstarts = 1\n", false},
                   {"linear", "linear", "pendulum", "run-linear", "model = linear\nlatent = 8\n", true}},
     .quantity =
         {
             TABLE("R^2 of the " ABOUT_REGRESSION),
             REGRESSION(DV_OF_R2, "sin", "sin_r2", 3, "sin", 0.961, 0.929),
             REGRESSION(DV_OF_R2, "cos", "cos_r2", 3, "cos", 0.982, 0.979),
             REGRESSION(DV_OF_R2, "velocity", "velocity_r2", 3, "velocity", 0.916, 0.035),
             TABLE(ABOUT_NETWORK),
             NETWORK("sin", "sin_r2_network", "sin"),
             NETWORK("cos", "cos_r2_network", "cos"),
             NETWORK("velocity", "velocity_r2_network", "velocity"),
             LIKELIHOOD_ROWS,
             FAR_ROWS,
             CENTRE_ROWS,
             WALK_ROWS,
             TRAINING_ROWS,
         }},
    {.system = "ball",
     .title = "Bouncing ball, all models",
     .remark = "The models that the paper names, on its second system. Rivals of the DVBF have no presets "
               "for it: they "
               "have their defaults, with 10,000 updates.",
     .all_models = true,
     .contender = {{"DVBF-LL", "dvbf", "ball", "run", NULL, false},
                   {"DKF", "dkf", "ball", "run-dkf",
                    "model = dkf\ninitial = birnn\nfilter-dropout = 0\nfilter-dropout-end = 0\nprojection = "
                    "1e-4\nstarts = 1\nupdates = 10000\n"
                    "sigma-floor-updates = 5000\n",
                    false},
                   {"VRNN", "vrnn", "ball", "run-vrnn", BALL_RIVAL("vrnn"), false},
                   {"STORN", "storn", "ball", "run-storn", BALL_RIVAL("storn"), false},
                   {"SVAE", "svae", "ball", "run-svae", BALL_RIVAL("svae"), false},
                   {"E2C", "e2c", "ball", "run-e2c", BALL_RIVAL("e2c") "keep-by = prediction\n", true},
                   {"VAE", "vae", "ball", "run-vae", BALL_RIVAL("vae"), false},
                   {"linear", "linear", "ball", "run-linear", "model = linear\nlatent = 8\n", true}},
     .quantity =
         {
             BALL_ROWS,
             TABLE(ABOUT_NETWORK),
             NETWORK("x", "x_r2_network", "x"),
             NETWORK("y", "y_r2_network", "y"),
             NETWORK("velocity x", "velocity_x_r2_network", "velocity x"),
             NETWORK("velocity y", "velocity_y_r2_network", "velocity y"),
             LIKELIHOOD_ROWS,
             BOUNCE_ROWS,
             CENTRE_ROWS,
             TRAINING_ROWS,
         }},
};

size_t dv_quantities(const dv_experiment *e) {
  size_t count = 0;
  while (count < DV_QUANTITIES && (e->quantity[count].table || e->quantity[count].heading)) count++;
  return count;
}

size_t dv_quantity_of(const dv_experiment *e, dv_quantity_kind kind) {
  size_t i = 0;
  while (i < DV_QUANTITIES && e->quantity[i].kind != kind) i++;
  return i;
}
