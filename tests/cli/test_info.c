/* `dvbf info`: what it says of data, of models, and of neither. */
#include "command.h"

#include <math.h>

static json_t *json_of(const char *arguments) {
  assert_int_equal(dvbf("%s --json", arguments), 0);
  json_t *all = json_loads(out, 0, NULL);
  if (!all) fail_msg("dvbf %s --json: not JSON:\n%s", arguments, out);
  return all;
}

static void info_tells_of_data(void **state) {
  (void)state;
  assert_int_equal(dvbf("info data.h5"), 0);
  assert_has(out, "data.h5: data, images of 16 x 16\n");
  assert_has(out, "\ntrain: 40 sequences of 15 steps, 600 in all\n");
  assert_has(out, "\ntest: 20 sequences of 15 steps, 300 in all\n");
  assert_has(out, "  x, 256 columns ");
  assert_has(out, "  u, 1 column ");
  assert_has(out, "    velocity ");
  assert_null(strstr(out, "piece by piece"));
  assert_null(strstr(out, "constant"));
  assert_string_equal(err, "");
  assert_has(out, "  u-scaling = standardise (controls have different scales; default none)\n");
}

/* Lengths 2 to 8 in turn, and nothing behind an end counts. */
static void info_tells_of_columns(void **state) {
  (void)state;
  assert_int_equal(dvbf("info plain.h5 --split-by none"), 0);
  assert_has(out, "plain.h5: data\n");
  assert_has(out, "\ntrain: 20 sequences of 2 to 8 steps, median 5, 97 in all\n");
  assert_has(out, "constant in u: u0\n");
  assert_has(out, "\nvalid: empty\n");
  json_t *all = json_of("info plain.h5 --split-by none");
  assert_string_equal(json_string_value(json_object_get(all, "kind")), "data");
  assert_true(json_is_null(json_object_get(all, "image")));
  const json_t *splits = json_object_get(all, "splits"), *train = json_object_get(splits, "train");
  assert_int_equal(number(json_object_get(splits, "test"), "sequences"), 0);
  assert_int_equal(number(train, "sequences"), 20);
  assert_int_equal(number(json_object_get(train, "steps"), "all"), 97);
  assert_true(json_is_false(json_object_get(train, "piece_by_piece")));
  const json_t *arrays = json_object_get(train, "arrays"), *x = json_object_get(arrays, "x");
  assert_null(json_object_get(arrays, "state"));
  assert_int_equal(number(x, "width"), 3);
  assert_true(number(x, "most") == 5 && number(x, "least") >= -1 && number(x, "missing") == 0);
  double sum = 0, most[3] = {0};
  for (size_t i = 0; i < 3; i++) {
    const json_t *column = json_array_get(json_object_get(x, "columns"), i);
    sum += number(column, "mean");
    most[i] = number(column, "most");
    assert_true(json_is_false(json_object_get(column, "constant")));
  }
  assert_true(fabs(sum / 3 - number(x, "mean")) < 1e-9);
  assert_true(most[1] == 5 && most[0] <= 1 && most[2] <= 1);
  const json_t *u = json_array_get(json_object_get(json_object_get(arrays, "u"), "columns"), 0);
  assert_true(json_is_true(json_object_get(u, "constant")) && number(u, "deviation") == 0);
  const json_t *chosen = json_object_get(json_object_get(all, "chosen"), "x-scaling");
  assert_string_equal(json_string_value(json_object_get(chosen, "value")), "standardise");
  assert_string_equal(json_string_value(json_object_get(chosen, "default")), "centre");
  json_decref(all);
}

static void info_tells_of_a_model(void **state) {
  (void)state;
  assert_int_equal(dvbf("info run"), 0);
  assert_has(out, "run: model dvbf after ");
  assert_has(out, "\nValidations: 4; ");
  assert_has(out, "start 1, bound of the validations from ");
  assert_has(out, "\n  emission.log_sigma ");
  const char *changed_part = strstr(out, "\nSettings that differ from their default\n");
  assert_non_null(changed_part);
  assert_has(changed_part, "\n  hidden = 8  (128)\n");
  assert_has(changed_part, "\n\nModel settings\n  model = dvbf\n");
  assert_has(changed_part, "\n  latent = 2\n");
  assert_has(out, "x' = (x - shift) * scale   shift ");
  json_t *all = json_of("info run");
  assert_string_equal(json_string_value(json_object_get(all, "kind")), "model");
  assert_true(number(all, "n_x") == 256 && number(all, "n_u") == 1 && number(all, "n_z") == 2 &&
              number(all, "n_w") == 2 && number(all, "seed") == 3);
  double sum = 0;
  size_t i;
  json_t *tensor;
  json_array_foreach(json_object_get(all, "tensors"), i, tensor) {
    const json_t *shape = json_object_get(tensor, "shape");
    double rows = json_number_value(json_array_get(shape, 0)),
           columns = json_number_value(json_array_get(shape, 1));
    assert_true(number(tensor, "count") == rows * columns);
    if (json_is_true(json_object_get(tensor, "trained"))) sum += rows * columns;
  }
  assert_true(sum == number(all, "parameters") && sum > 1000);
  const json_t *settings = json_object_get(all, "settings"), *changed = json_object_get(all, "changed");
  assert_true(number(settings, "latent") == 2 && number(settings, "hidden") == 8);
  assert_true(json_is_true(json_object_get(settings, "residual")));
  assert_true(number(changed, "hidden") == 8 && !json_object_get(changed, "layers"));
  const json_t *scaling = json_object_get(json_object_get(all, "scaling"), "x");
  assert_int_equal(json_array_size(json_object_get(scaling, "shift")), 256);
  const json_t *history = json_object_get(all, "history"), *best = json_object_get(history, "best");
  assert_int_equal(number(history, "validations"), 4);
  assert_int_equal(number(json_object_get(history, "first"), "update"), 5);
  assert_int_equal(number(json_object_get(history, "last"), "update"), 20);
  assert_int_equal(number(best, "update"), number(all, "updates"));
  assert_true(number(best, "valid_bound") >= number(json_object_get(history, "first"), "valid_bound"));
  json_decref(all);
  /* The best is what training kept, here by prediction, not by the bound. */
  assert_int_equal(dvbf("train data.h5 -o kept --keep-by prediction --updates 2" TINY " --latent 2"), 0);
  FILE *file = fopen("kept/metrics.csv", "w");
  fprintf(file, "update,start,bound,valid_bound,valid_kl_w,valid_kl_v,valid_prediction\n"
                "1,1,1,9,1,1,0.5\n2,1,1,7,1,1,0.2\n3,1,1,8,1,1,0.3\n");
  fclose(file);
  all = json_of("info kept");
  best = json_object_get(json_object_get(all, "history"), "best");
  assert_int_equal(number(best, "update"), 2);
  json_decref(all);
  /* The file alone knows nothing of its run. */
  all = json_of("info run/model.safetensors");
  assert_true(json_is_null(json_object_get(all, "history")));
  json_decref(all);
}

/* A record of a run that holds what no run writes. */
static void info_survives_strange_metrics(void **state) {
  (void)state;
  static const char columns[] = "update,start,bound,valid_bound,valid_kl_w,valid_kl_v,valid_prediction\n";
  static const char *const cases[][2] = {{"hello\n", "its first line"}, {"1,1,1,x,1,1,1\n", "line 2"}};
  assert_int_equal(system("mkdir -p odd && cp run/model.safetensors odd"), 0);
  for (size_t i = 0; i < 2; i++) {
    FILE *file = fopen("odd/metrics.csv", "w");
    fprintf(file, "%s%s", i ? columns : "", cases[i][0]);
    fclose(file);
    assert_int_equal(dvbf("info odd"), 0);
    assert_has(err, cases[i][1]);
    assert_has(out, "Settings that differ");
  }
  FILE *file = fopen("odd/metrics.csv", "w");
  fprintf(file, "%s1e300,nan,1,nan,1,1,1\ninf,-1,1,7,1,1,1\n2,-1,1,7,1,1,inf\n", columns);
  fclose(file);
  json_t *all = json_of("info odd");
  const json_t *best = json_object_get(json_object_get(all, "history"), "best");
  assert_true(number(best, "valid_bound") == 7 && json_is_null(json_object_get(best, "update")));
  json_decref(all);
  assert_int_equal(dvbf("info odd"), 0);
  assert_has(out, "Validations: 3");
}

static void info_refuses_the_rest(void **state) {
  (void)state;
  assert_int_equal(dvbf("info run/settings.txt"), 1);
  assert_refused("run/settings.txt: is a text file");
  assert_has(err, "it is neither a model nor a run folder");
  assert_int_equal(dvbf("info none.h5"), 1);
  assert_refused("none.h5: cannot be read");
  assert_int_equal(system("mkdir -p void && head -c 3000 run/model.safetensors > cut.safetensors"), 0);
  assert_int_equal(dvbf("info void"), 1);
  assert_refused("void: is a folder without data");
  assert_has(err, "it is neither a model nor a run folder");
  assert_int_equal(dvbf("info cut.safetensors"), 1);
  assert_refused("cut.safetensors: ");
  assert_int_equal(dvbf("info"), 2);
  assert_refused("FILE is missing");
}

static void write_plain(void) {
  static float x[20][8][3], u[20][8][1];
  static uint32_t length[20];
  for (size_t i = 0; i < 20; i++) {
    length[i] = 2 + (uint32_t)i % 7;
    for (size_t t = 0; t < 8; t++)
      for (size_t k = 0; k < 3; k++) x[i][t][k] = t < length[i] ? sinf((float)((i * 8 + t) * 3 + k)) : 99;
  }
  x[6][4][1] = 5;
  const dvbf_array arrays[] = {{"x", DVBF_FLOAT32, 3, {20, 8, 3}, x},
                               {"u", DVBF_FLOAT32, 3, {20, 8, 1}, u},
                               {"length", DVBF_UINT32, 1, {20}, length}};
  assert_int_equal(dvbf_arrays_write("plain.h5", arrays, 3, NULL), DVBF_OK);
}

static int set_up(void **state) {
  (void)state;
  if (enter_folder()) return -1;
  write_plain();
  assert_int_equal(dvbf("simulate pendulum -o data.h5 --train 40 --valid 10 --test=20 --seed 2"), 0);
  assert_int_equal(dvbf("train data.h5 -o run --updates 20 --seed 3" TINY " --latent 2"), 0);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(info_tells_of_data),    cmocka_unit_test(info_tells_of_columns),
      cmocka_unit_test(info_tells_of_a_model), cmocka_unit_test(info_survives_strange_metrics),
      cmocka_unit_test(info_refuses_the_rest),
  };
  return cmocka_run_group_tests_name("info", tests, set_up, tear_down);
}
