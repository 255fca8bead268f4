/* Models that begin with where things are: the moments of images, what is taken from a model of them, and
 * that a run comes to the same model after a stop. */
#include "pictures.h"

#include "train/pca_training.h"
#include "train/start.h"

enum { HEIGHT = 8, WIDTH = 12 };

static dvbf_data make_images(void) {
  dvbf_data data = make_picture_data(1e-4f);
  data.image_height = HEIGHT;
  data.image_width = WIDTH;
  return data;
}

/* All that a model of places is made from. */
typedef struct scene {
  dvbf_settings *settings;
  dv_projection projection;
  dv_image_moments places;
} scene;

static void open_scene(scene *s, const dvbf_data *data, const char *settings, int order) {
  dvbf_model *whole = NULL;
  s->settings = picture_settings(settings);
  assert_int_equal(dv_model_new(&whole, s->settings, NULL, &data->train, 5, NULL), DVBF_OK);
  assert_int_equal(dv_projection_init(&s->projection, whole, data, NULL), DVBF_OK);
  assert_int_equal(dv_image_moments_init(&s->places, &s->projection, data, order, NULL), DVBF_OK);
}

static void close_scene(scene *s) {
  dv_image_moments_clear(&s->places);
  dv_projection_clear(&s->projection);
  dvbf_settings_free(s->settings);
}

/* One dot that goes everywhere; that and its mirror image beyond the centre; one that is brighter on the
 * right.
 */
typedef enum sight { ALONE, MIRRORED, BRIGHTER, SIGHTS } sight;

static void draw(dvbf_sequences *s, sight what) {
  for (size_t f = 0; f < s->count * s->steps; f++)
    for (int i = 0; i < PICTURE_N_X; i++) {
      int line = i / WIDTH;
      double row = line - 3.5, col = i % WIDTH - 5.5;
      double y = 1.5 * sin(1.3 * (double)f), x = 3 * sin(0.7 * (double)f + 1);
      double light = what == BRIGHTER ? 1 + 0.1 * x : 1;
      s->x[f * PICTURE_N_X + (size_t)i] = (float)(light * exp(-0.3 * (pow(row - y, 2) + pow(col - x, 2))));
      if (what == MIRRORED)
        s->x[f * PICTURE_N_X + (size_t)i] += (float)exp(-0.3 * (pow(row + y, 2) + pow(col + x, 2)));
    }
}

/* A dot is told by first moments; a pair around the centre, whose first moments stay, by more. So is a dot
 * whose light changes, for then they are not its place. */
static void orders(void **state) {
  (void)state;
  for (sight what = ALONE; what < SIGHTS; what++) {
    dvbf_data data = make_images();
    scene s;
    draw(&data.train, what);
    draw(&data.valid, what);
    open_scene(&s, &data, "projection 1e-3", 0);
    assert_int_equal(s.places.order, what == ALONE ? 1 : DV_PLACES_HIGHEST);
    assert_int_equal(s.places.ramps.count, s.places.order * (s.places.order + 3) / 2);
    close_scene(&s);
    free_data(&data);
  }
}

/* Against plain sums over pixels: along other axes, of which each moment has its own, but as long. */
static void moments(void **state) {
  (void)state;
  dvbf_data data = make_images();
  scene s;
  open_scene(&s, &data, "", 2);
  const float *frame = data.train.x + 5 * PICTURE_N_X, *shift = s.projection.whole->x.shift,
              *scale = s.projection.whole->x.scale;
  double sums[5] = {0};
  for (int i = 0; i < PICTURE_N_X; i++) {
    int line = i / WIDTH;
    double x = (2 * (i % WIDTH) - 11) / 12., y = (2 * line - 7) / 12.;
    double value = ((double)frame[i] - (double)shift[i]) * (double)scale[i];
    const double counts[5] = {x, y, x * x, x * y, y * y};
    for (int k = 0; k < 5; k++) sums[k] += value * counts[k];
  }
  assert_int_equal(s.places.data.train.n_x, 5);
  assert_int_equal(s.places.data.valid.count, data.valid.count);
  double length = 0, products = 0, squares[2] = {0};
  for (int k = 0; k < 5; k++) length += pow((double)s.places.data.train.x[5 * 5 + k], 2) - sums[k] * sums[k];
  assert_true(fabs(length) < 1e-3);
  for (size_t f = 0; f < data.train.count * PICTURE_STEPS; f++) {
    const float *y = s.places.data.train.x + f * 5;
    double a = (double)y[0] - s.places.mean[0], b = (double)y[3] - s.places.mean[3];
    products += a * b, squares[0] += a * a, squares[1] += b * b;
  }
  assert_true(fabs(products) < 1e-4 * sqrt(squares[0] * squares[1]));
  close_scene(&s);
  free_data(&data);
}

/* The model needs these for first values of places. */
#define PLACES                                                                                               \
  "latent 6 transition mlp transition-hidden 8 linear-paths all universal point "                            \
  "recognition-input prediction initial-control on "

static double state_of(const dv_image_moments *p, const float *y, int k) {
  int n = p->ramps.count;
  const float *before = y - (k >= 2 * n ? n : 0) + k % n;
  return k < n ? ((double)y[k] - p->mean[k]) / p->deviation[k]
               : ((double)before[0] - (double)before[-n]) / p->pace[k % n];
}

/* What a ramp has outside of the components, over its length. */
static double outside(const dv_image_moments *p, int moment) {
  double all = 0, inside = 0;
  for (int i = 0; i < PICTURE_N_X; i++) all += pow((double)p->ramps.axes[moment * PICTURE_N_X + i], 2);
  for (int i = 0; i < p->components; i++) inside += pow((double)p->inside[moment * p->components + i], 2);
  return 1 - inside / all;
}

/* Before any update the filter makes z the state of each frame, that is, its moments and how they changed.
 * The emission stays. Moments are exact, whatever the components leave out of the images. */
static void taken(void **state) {
  (void)state;
  dvbf_data data = make_images();
  scene s;
  dvbf_model *m = NULL;
  dvbf_error error = {0};
  draw(&data.train, ALONE);
  draw(&data.valid, ALONE);
  open_scene(&s, &data, PLACES "start moments moments 1 projection 1e-3 components 16 updates 5", 1);
  for (int k = 0; k < 2; k++) assert_true(fabs(outside(&s.places, k)) < 1e-4);
  assert_int_equal(dv_projection_model(&m, &s.projection, PICTURE_STEPS, 5, NULL), DVBF_OK);
  dvbf_real emission = *dv_model_values(m, "emission.hidden.z");
  if (dv_start_moments(m, &s.places, &s.projection.data.train, 7, NULL, NULL, &error))
    fail_msg("%s", error.message);
  assert_true(*dv_model_values(m, "emission.hidden.z") == emission);
  dvbf_settings *how = NULL;
  dvbf_estimates *e = NULL;
  assert_int_equal(dvbf_settings_new(&how, "filter", NULL), DVBF_OK);
  if (dvbf_estimate(&e, m, &s.projection.data.train, how, &error)) fail_msg("%s", error.message);
  for (size_t i = 0; i < 3; i++)
    for (size_t t = 4; t < PICTURE_STEPS; t++)
      for (int k = 0; k < 6; k++) {
        const float *y = s.places.data.train.x + (i * PICTURE_STEPS + t) * 2;
        assert_true(fabs((double)e->z_mean[(i * PICTURE_STEPS + t) * 6 + (size_t)k] -
                         state_of(&s.places, y, k)) < 0.05);
      }
  dvbf_estimates_free(e);
  dvbf_settings_free(how);
  dvbf_model_free(m);
  close_scene(&s);
  free_data(&data);
}

static dvbf_status train(dvbf_model **out, const char *more, const dvbf_train_options *o, dvbf_error *error) {
  char text[500];
  dvbf_data data = make_images();
  snprintf(text, sizeof text,
           PLACES "moments 1 start moments updates 12 validate-every 4 batch-size 12 shard-size 4 starts 1 "
                  "projection 1e-5 "
                  "checkpoint-every 0 %s",
           more);
  dvbf_settings *s = picture_settings(text);
  dvbf_status status = dvbf_train(out, s, &data, o, error);
  dvbf_settings_free(s);
  free_data(&data);
  return status;
}

/* While the emission is trained alone, the rate of training changes nothing else; later all is trained. */
static void emission_alone(void **state) {
  (void)state;
  dvbf_model *m[3] = {NULL};
  dvbf_error error = {0};
  static const char *const more[] = {"emission-updates 12", "emission-updates 12 learning-rate 0.001",
                                     "emission-updates 6 validate-every 12"};
  for (int i = 0; i < 3; i++)
    if (train(&m[i], more[i], NULL, &error)) fail_msg("%s", error.message);
  for (size_t i = 0; i < m[0]->parameters.count; i++) {
    const dv_parameter *p = &m[0]->parameters.list[i];
    size_t bytes = (size_t)p->rows * (size_t)p->cols * sizeof(dvbf_real);
    bool emits = !strncmp(p->name, "emission.", 9), same[3];
    for (int k = 1; k < 3; k++)
      same[k] = !memcmp(m[0]->parameters.values + p->offset, m[k]->parameters.values + p->offset, bytes);
    assert_true(same[1] == !emits);
    if (!strcmp(p->name, "universal.mean")) assert_false(same[2]);
  }
  for (int i = 0; i < 3; i++) dvbf_model_free(m[i]);
}

static void refusals(void **state) {
  (void)state;
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_model *m = NULL;
  dvbf_error error = {0};
  dvbf_settings *s = picture_settings("start moments updates 4");
  assert_int_equal(dvbf_train(&m, s, &data, NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "x must be images"));
  dvbf_settings_free(s);
  free_data(&data);
  assert_int_equal(train(&m, "projection 0", NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "needs training on components"));
  assert_int_equal(train(&m, "recognition-input frame", NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "needs recognition-input = prediction"));
  assert_int_equal(train(&m, "latent 5", NULL, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "so it needs 6"));
}

/* The model of places has twice the updates. */
static bool stop_later(const dvbf_progress *p, void *user) {
  return p->updates != 12 || p->update < *(uint64_t *)user;
}
static bool stop_at_once(const dvbf_progress *p, void *user) {
  (void)p, (void)user;
  return false;
}

static void runs_go_on(void **state) {
  (void)state;
  uint64_t at = 7;
  dvbf_error error = {0};
  static const char settings[] = "emission-updates 9 starts 2 restart-above 0";
  static const char *const names[] = {"one", "stopped"};
  for (int i = 0; i < 3; i++) {
    dvbf_model *m = NULL;
    char where[300];
    snprintf(where, sizeof where, "%s", in_folder(names[i > 0]));
    dvbf_train_options o = {.folder = where, .resume = i == 2, .user_data = &at};
    if (i == 1) o.progress = stop_later;
    if (train(&m, settings, &o, &error)) fail_msg("%s", error.message);
    dvbf_model_free(m);
  }
  assert_true(same_bytes(in_run("one", DVBF_RUN_MODEL), in_run("stopped", DVBF_RUN_MODEL)));
  dvbf_model *m = NULL;
  dvbf_train_options o = {.progress = stop_at_once};
  assert_int_equal(train(&m, settings, &o, &error), DVBF_STOPPED);
  for (int i = 0; i < 2; i++) discard_run(names[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orders),         cmocka_unit_test(moments),  cmocka_unit_test(taken),
      cmocka_unit_test(emission_alone), cmocka_unit_test(refusals), cmocka_unit_test(runs_go_on),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
