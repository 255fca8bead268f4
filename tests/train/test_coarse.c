/* Coarse to fine: what training sees at each level, and that a run comes to the same model after a stop. */
#include "pictures.h"

#include "train/pca_training.h"

/* Variance of what the projected frames have, and (sum v)^2 / sum v^2 of the variances v along the principal
 * axes, which is the trace and the sum of squares of the matrix of second moments. */
static void measure(const dvbf_sequences *s, double *all, double *directions) {
  size_t n = s->n_x, frames = dv_sequences_frames(s);
  double squares = 0;
  *all = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      double moment = 0;
      for (size_t f = 0; f < frames; f++) moment += (double)s->x[f * n + i] * (double)s->x[f * n + j];
      moment /= (double)frames;
      squares += moment * moment;
      if (i == j) *all += moment;
    }
  *directions = *all * *all / squares;
}

static void levels(void **state) {
  (void)state;
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_settings *s = picture_settings("hidden 4");
  dvbf_model *whole = NULL;
  dv_projection p;
  dv_coarse c;
  double all, directions, coarse_all, coarse_directions, before = 0;
  assert_int_equal(dv_model_new(&whole, s, NULL, &data.train, 5, NULL), DVBF_OK);
  assert_int_equal(dv_projection_init(&p, whole, &data, NULL), DVBF_OK);
  measure(&p.data.train, &all, &directions);
  assert_true(directions > 1.5);
  dvbf_sequences fine;
  assert_int_equal(dvbf_sequences_copy(&fine, &p.data.train, 0, p.data.train.count, NULL), DVBF_OK);
  /* As many directions as there are: nothing to do. */
  assert_int_equal(dv_coarse_init(&c, &p, directions + 0.5, NULL), DVBF_OK);
  assert_true(c.power == 0);
  dv_coarse_clear(&c);
  assert_int_equal(dv_coarse_init(&c, &p, 1.2, NULL), DVBF_OK);
  for (unsigned level = DV_COARSE_LEVELS; level > 0; level--) {
    assert_int_equal(dv_coarse_set(&c, level, NULL), DVBF_OK);
    measure(&p.data.train, &coarse_all, &coarse_directions);
    assert_true(fabs(coarse_all - all) < 0.01 * all);
    if (level == DV_COARSE_LEVELS) assert_true(fabs(coarse_directions - 1.2) < 0.02);
    assert_true(coarse_directions > before);
    before = coarse_directions;
  }
  assert_int_equal(dv_coarse_set(&c, 0, NULL), DVBF_OK);
  for (size_t i = 0; i < fine.count; i++)
    assert_memory_equal(p.data.train.x + p.data.train.start[i] * fine.n_x, fine.x + i * fine.steps * fine.n_x,
                        dvbf_sequence_length(&fine, i) * fine.n_x * sizeof(float));
  dvbf_sequences_free(&fine);
  dv_coarse_clear(&c);
  dv_projection_clear(&p);
  dvbf_settings_free(s);
  free_data(&data);
}

/* The numbers of a model's program: what the networks that read x make of a frame, by their weights alone. */
static void read_frame(double *out, const dvbf_model *m, const char *name, const float *x, int n) {
  const dv_parameter *p = dv_parameters_find(&m->parameters, name);
  assert_non_null(p);
  for (int j = 0; j < p->cols; j++) {
    out[j] = 0;
    for (int i = 0; i < n; i++)
      out[j] += (double)x[i] * (double)m->parameters.values[p->offset + (size_t)(i * p->cols + j)];
  }
}

/* What is read of a picture stays the same from level to level, and an emission that had learned all of it
 * makes it of the other level. */
static void models_change_with_their_data(void **state) {
  (void)state;
  enum { HIDDEN = 4 };
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_settings *s = picture_settings("hidden 4");
  dvbf_model *whole = NULL, *m = NULL;
  dv_projection p;
  dv_coarse c;
  double coarse[HIDDEN], fine[HIDDEN];
  assert_int_equal(dv_model_new(&whole, s, NULL, &data.train, 5, NULL), DVBF_OK);
  assert_int_equal(dv_projection_init(&p, whole, &data, NULL), DVBF_OK);
  assert_int_equal(dv_projection_model(&m, &p, PICTURE_STEPS, 5, NULL), DVBF_OK);
  assert_int_equal(dv_coarse_init(&c, &p, 1.5, NULL), DVBF_OK);
  int n = p.components.count;
  const dv_parameter *bias = dv_parameters_find(&m->parameters, "emission.mean.bias");
  const dv_parameter *log_sigma = dv_parameters_find(&m->parameters, "emission.log_sigma");
  assert_true(bias && log_sigma && bias->cols == n);
  dvbf_real *mean = m->parameters.values + bias->offset;
  assert_int_equal(dv_coarse_set(&c, 4, NULL), DVBF_OK);
  read_frame(coarse, m, "recognition.hidden.x", p.data.train.x, n);
  for (int i = 0; i < n; i++) mean[i] = (dvbf_real)p.data.train.x[i];
  m->parameters.values[log_sigma->offset] = (dvbf_real)log(1e-5);
  assert_int_equal(dv_coarse_refocus(&c, m, 4, 0, NULL), DVBF_OK);
  assert_int_equal(dv_coarse_set(&c, 0, NULL), DVBF_OK);
  read_frame(fine, m, "recognition.hidden.x", p.data.train.x, n);
  double most = 0, missed = 0, all = 0;
  for (int j = 0; j < HIDDEN; j++) {
    most = fmax(most, fabs(fine[j]));
    assert_true(fabs(fine[j] - coarse[j]) < 1e-4);
  }
  assert_true(most > 1e-2);
  for (int i = 0; i < n; i++) {
    missed += pow((double)mean[i] - (double)p.data.train.x[i], 2);
    all += pow((double)p.data.train.x[i], 2);
  }
  assert_true(missed < 0.01 * all);
  assert_true((double)m->parameters.values[log_sigma->offset] > log(1e-5));
  dv_coarse_clear(&c);
  dvbf_model_free(m);
  dv_projection_clear(&p);
  dvbf_settings_free(s);
  free_data(&data);
}

/* From all levels to none, never up, and only where validation is due. */
static void schedule(void **state) {
  (void)state;
  dv_train_settings s = {.coarse = 1, .updates = 1400, .validate_every = 50};
  unsigned before = DV_COARSE_LEVELS;
  for (uint64_t i = 0; i < 1400; i++) {
    unsigned level = dv_coarse_level(&s, i);
    assert_true(level <= before && (level == before || i % 50 == 0));
    if (i <= 550) assert_int_equal(level, DV_COARSE_LEVELS);
    assert_true(i >= 1000 ? level == 0 : level > 0);
    before = level;
  }
  s.coarse = 0;
  assert_int_equal(dv_coarse_level(&s, 0), 0);
}

static bool stop_early(const dvbf_progress *p, void *user) {
  return !user || p->update < *(uint64_t *)user;
}

static void train(const char *where, const char *threads, uint64_t *stop, bool resume) {
  dvbf_data data = make_picture_data(1e-4f);
  dvbf_settings *s =
      picture_settings("updates 60 validate-every 10 batch-size 12 shard-size 4 starts 2 restart-above 0 "
                       "projection 1e-5 coarse on checkpoint-every 0");
  dvbf_model *m = NULL;
  dvbf_error error;
  dvbf_settings_set(s, "threads", threads, &error);
  dvbf_train_options o = {.folder = where, .resume = resume, .progress = stop_early, .user_data = stop};
  if (dvbf_train(&m, s, &data, &o, &error)) fail_msg("%s", error.message);
  /* What is kept has seen x as it is. */
  if (!stop) assert_true(dvbf_model_describe(m).updates > 45);
  dvbf_model_free(m);
  dvbf_settings_free(s);
  free_data(&data);
}

static void runs_go_on(void **state) {
  (void)state;
  uint64_t at = 33;
  train(in_folder("one"), "1", NULL, false);
  train(in_folder("stopped"), "2", &at, false);
  train(in_folder("stopped"), "2", NULL, true);
  assert_true(same_bytes(in_run("one", DVBF_RUN_MODEL), in_run("stopped", DVBF_RUN_MODEL)));
  static const char *const names[] = {"one", "stopped"};
  for (int i = 0; i < 2; i++) discard_run(names[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(levels),
      cmocka_unit_test(models_change_with_their_data),
      cmocka_unit_test(schedule),
      cmocka_unit_test(runs_go_on),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
