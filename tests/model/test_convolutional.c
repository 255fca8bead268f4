/* Networks of convolutions, from images in to images out. */
#include "given.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 10, PIXELS = SIDE * SIDE };

static dvbf_data *pendulum(void) {
  dvbf_settings *s = settings_of("pendulum", "size=10 train=12 valid=4 test=4 steps=8");
  dvbf_data *data = NULL;
  dvbf_error error;
  if (dvbf_simulate(&data, s, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(s);
  return data;
}

static const char SMALL[] = "network=conv channels=2 hidden=6 updates=6 batch-size=4 starts=1 search=off "
                            "validate-every=3 ";

static dvbf_model *trained(const dvbf_data *data, const char *more) {
  dvbf_settings *s = settings_of("train", SMALL);
  dvbf_model *m = NULL;
  dvbf_error error;
  set_all(s, more);
  if (dvbf_settings_choose(s, data, NULL, NULL, &error) || dvbf_train(&m, s, data, NULL, &error))
    fail_msg("%s", error.message);
  dvbf_settings_free(s);
  return m;
}

static bool has_parameter(const dvbf_model *m, const char *name) {
  dvbf_parameter_info info;
  bool has = false;
  for (size_t i = 0; dvbf_model_parameter(m, i, &info); i++) has |= !strcmp(info.name, name);
  return has;
}

/* The same bytes for any number of threads, and again after they were read. */
static void bytes(void **state) {
  (void)state;
  static const char *const variants[] = {"systems=2 initial-frames=3", "model=dkf", "model=vae",
                                         "initial=birnn likelihood=bernoulli"};
  dvbf_data *data = pendulum();
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    void *bytes[3];
    size_t size[3];
    char threads[128];
    for (int k = 0; k < 2; k++) {
      snprintf(threads, sizeof threads, "%s threads=%d", variants[i], k + 1);
      dvbf_model *m = trained(data, threads);
      assert_true(has_parameter(m, "sight.convolution-1") && has_parameter(m, "emission.convolution-1"));
      assert_int_equal(dvbf_model_to_bytes(&bytes[k], &size[k], m, NULL), DVBF_OK);
      dvbf_model_free(m);
    }
    dvbf_model *again = NULL;
    dvbf_error error;
    if (dvbf_model_from_bytes(&again, bytes[0], size[0], &error)) fail_msg("%s", error.message);
    assert_int_equal(dvbf_model_to_bytes(&bytes[2], &size[2], again, NULL), DVBF_OK);
    dvbf_model_free(again);
    for (int k = 1; k < 3; k++) {
      assert_int_equal(size[k], size[0]);
      assert_memory_equal(bytes[k], bytes[0], size[0]);
    }
    for (int k = 0; k < 3; k++) dvbf_bytes_free(bytes[k]);
  }
  dvbf_data_free(data);
}

static dvbf_estimates *estimated(const dvbf_model *m, const dvbf_sequences *s, const char *table,
                                 const char *text) {
  dvbf_settings *how = settings_of(table, text);
  dvbf_estimates *e = NULL;
  dvbf_error error;
  if (dvbf_estimate(&e, m, s, how, &error)) fail_msg("%s", error.message);
  dvbf_settings_free(how);
  return e;
}

/* Every kind of inference takes such a model; predictions depend on the pictures that are seen. */
static void inference(void **state) {
  (void)state;
  dvbf_data *data = pendulum();
  dvbf_model *m = trained(data, "updates=60");
  static const char *const tables[][2] = {
      {"filter", "samples=4"}, {"smooth", "particles=20"}, {"predict", "samples=4"}};
  for (int i = 0; i < 3; i++) {
    dvbf_estimates *e = estimated(m, &data->test, tables[i][0], tables[i][1]);
    assert_int_equal(e->n_x, PIXELS);
    for (size_t k = 0; k < e->count * e->steps * e->n_x; k++) assert_true(isfinite(e->x[k]));
    assert_memory_not_equal(e->x, e->x + e->steps * e->n_x, e->n_x * sizeof *e->x);
    dvbf_estimates_free(e);
  }
  dvbf_estimates *drawn = estimated(m, NULL, "sample", "count=2 steps=5 controls=zero");
  assert_int_equal(drawn->n_x, PIXELS);
  dvbf_estimates_free(drawn);
  dvbf_model_free(m);
  dvbf_data_free(data);
}

/* The online filter and that of whole sequences agree, up to the noise of their samples. */
static void online(void **state) {
  (void)state;
  dvbf_data *data = pendulum();
  dvbf_model *m = trained(data, "updates=60 universal=point");
  dvbf_filter *filter = NULL;
  dvbf_belief belief = {0};
  size_t size = 0;
  assert_int_equal(dvbf_filter_memsize(&size, m, 2000, NULL), DVBF_OK);
  void *memory = aligned_alloc(64, size);
  assert_non_null(memory);
  assert_int_equal(dvbf_filter_init(&filter, memory, size, m, 2000, 1, NULL), DVBF_OK);
  dvbf_estimates *e = estimated(m, &data->test, "filter", "samples=2000");
  for (size_t t = 0; t < data->test.steps; t++) {
    dvbf_filter_step(filter, data->test.x + t * PIXELS, t ? data->test.u + (t - 1) * data->test.n_u : NULL,
                     &belief);
    for (size_t k = 0; k < e->n_z && belief.ready; k++)
      assert_true(fabsf(belief.mean[k] - e->z_mean[t * e->n_z + k]) < 0.2F * e->z_std[t * e->n_z + k]);
  }
  assert_true(belief.ready);
  dvbf_estimates_free(e);
  free(memory);
  dvbf_model_free(m);
  dvbf_data_free(data);
}

static void refused(const dvbf_data *data, const char *settings, bool suited, const char *sentence) {
  dvbf_settings *s = settings_of("train", SMALL);
  dvbf_model *m = NULL;
  dvbf_error error = {0};
  set_all(s, settings);
  if (suited) assert_int_equal(dvbf_settings_choose(s, data, NULL, NULL, &error), DVBF_OK);
  assert_int_not_equal(dvbf_train(&m, s, data, NULL, &error), DVBF_OK);
  if (!strstr(error.message, sentence)) fail_msg("%s", error.message);
  dvbf_settings_free(s);
}

static void refusals(void **state) {
  (void)state;
  dvbf_data *data = pendulum();
  refused(data, "", false, "image-height x image-width = 0 x 0");
  refused(data, "image-height=9 image-width=10", true, "x has 100 columns");
  refused(data, "model=vrnn", false, "model = vrnn does not use this setting");
  refused(data, "linear-paths=on", true, "has no linear paths");
  refused(data, "recognition-input=innovation", true, "needs network = dense");
  refused(data, "projection=1e-4", true, "projection = 0.0001 needs network = dense");
  dvbf_data_free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes),
      cmocka_unit_test(inference),
      cmocka_unit_test(online),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
