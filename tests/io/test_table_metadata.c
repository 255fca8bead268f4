/* What a table says beside its values: time, sequences, units, inputs; and that data keep it when written. */
#include "files.h"

#include <dvbf/dvbf.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Reads table.csv of that text with settings given as name, value, ..., NULL, not split unless they say so.
 */
static dvbf_data *read_text(const char *text, ...) {
  dvbf_settings *how = NULL;
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  va_list settings;
  write_bytes(in_folder("table.csv"), text, strlen(text));
  assert_int_equal(dvbf_settings_new(&how, "data", &error), DVBF_OK);
  assert_int_equal(dvbf_settings_set(how, "split-by", "none", &error), DVBF_OK);
  va_start(settings, text);
  for (const char *name; (name = va_arg(settings, const char *));)
    assert_int_equal(dvbf_settings_set(how, name, va_arg(settings, const char *), &error), DVBF_OK);
  va_end(settings);
  if (dvbf_data_read(&data, in_folder("table.csv"), how, &error)) fail_msg("%s", error.message);
  assert_non_null(data->train.facts); /* what is found in them is kept, so that it is found once */
  dvbf_settings_free(how);
  return data;
}

static void assert_near(double found, double wanted) {
  if (!(fabs(found - wanted) <= 1e-9 + 1e-9 * fabs(wanted))) fail_msg("%.12g is not %.12g", found, wanted);
}

static void sequences_have_names_and_times(void **unused) {
  (void)unused;
  dvbf_data *data = read_text(
      "run;time [ms];level [mm];u (V)\nA;100;1;0\nA;120;2;0\nA;140;3;1\nB;500;4;0\nB;520;5;0\n", NULL);
  const dvbf_sequences *s = &data->train;
  assert_int_equal(s->count, 2);
  assert_string_equal(s->origin[0].name, "A");
  assert_string_equal(s->origin[1].name, "B");
  assert_near(s->origin[0].time, 0.1);
  assert_near(s->origin[1].time, 0.5);
  assert_near(data->sample_time, 0.02);
  assert_string_equal(data->x_names[0], "level");
  assert_string_equal(data->x_units[0], "mm");
  assert_string_equal(data->u_units[0], "V");
  assert_false(data->dates || s->gaps);
  dvbf_data_free(data);
}

static void dates_count_from_1970(void **unused) {
  (void)unused;
  static const char *const texts[] = {
      "time,y\n2024-01-31T12:00:00Z,1\n2024-01-31T12:00:10Z,2\n2024-01-31T12:00:20Z,3\n",
      "time,y\n2024-01-31 13:00:00+01:00,1\n2024-01-31 13:00:10+01:00,2\n2024-01-31 13:00:20+01:00,3\n",
      "Date;Time;y\n31.01.2024;12:00;1\n31.01.2024;12:00:10;2\n31.01.2024;12:00:20.0;3\n",
      "timestamp,y\n1706702400000,1\n1706702410000,2\n1706702420000,3\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    dvbf_data *data = read_text(texts[i], NULL);
    assert_true(data->dates);
    assert_near(data->train.origin[0].time, 1706702400);
    assert_near(data->sample_time, 10);
    dvbf_data_free(data);
  }
}

/* Means of rows in the same step, NaN where there are none, inputs that keep their value. */
static void rows_are_put_on_a_grid(void **unused) {
  (void)unused;
  dvbf_data *data = read_text("t,u,y\n0,1,1\n0.1,2,2\n0.2,3,3\n0.5,4,6\n0.6,5,7\n", NULL);
  static const float y[] = {1, 2, 3, NAN, NAN, 6, 7}, u[] = {1, 2, 3, 3, 3, 4, 5};
  assert_int_equal(data->train.steps, 7);
  assert_true(data->train.gaps);
  for (int i = 0; i < 7; i++)
    assert_true((isnan(y[i]) ? isnan(data->train.x[i]) : data->train.x[i] == y[i]) &&
                data->train.u[i] == u[i]);
  assert_non_null(strstr(data->notes[0], "some rows are missing: rows are put on a grid of 0.1 s"));
  dvbf_data_free(data);
  data = read_text("t,u,y\n0,1,1\n0.1,2,2\n0.2,3,3\n0.3,4,6\n0.4,5,7\n", "sample-time", "0.2", NULL);
  assert_int_equal(data->train.steps, 3);
  assert_near(data->sample_time, 0.2);
  dvbf_data_free(data);
  /* A night without rows separates two sequences. */
  data = read_text("t,y\n0,1\n1,2\n2,3\n30000,4\n30001,5\n", NULL);
  assert_int_equal(data->train.count, 2);
  assert_near(data->train.origin[1].time, 30000);
  dvbf_data_free(data);
  data = read_text("t,y\n0,1\n1,2\n2,3\n30000,4\n30001,5\n", "time-column", "none", NULL);
  assert_int_equal(data->train.count, 1);
  assert_near(data->sample_time, 0);
  dvbf_data_free(data);
}

/* A name in the column Ts is the sample time, as in recordings of benchmarks. */
static void a_column_can_be_the_sample_time(void **unused) {
  (void)unused;
  dvbf_data *data = read_text("uEst,yEst,Ts\n1,2,4\n2,3,\n3,4,\n", "inputs", "uEst", "outputs", "yEst", NULL);
  assert_near(data->sample_time, 4);
  assert_int_equal(data->n_uses, 3);
  assert_string_equal(data->uses[2].name, "Ts");
  assert_string_equal(data->uses[2].role, "sample time");
  dvbf_data_free(data);
  data = read_text("uEst,yEst,Ts\n1,2,4\n2,3,\n3,4,\n", NULL);
  assert_non_null(strstr(data->question, "--inputs uEst, or --inputs none"));
  dvbf_data_free(data);
}

/* ---- Inputs ---- */

/* A driver and what it drives, or two masses that drive each other. */
static dvbf_data *read_pair(bool driven) {
  enum { ROWS = 600 };
  static char text[ROWS * 48];
  size_t used = (size_t)sprintf(text, "a,b\n");
  double a = 1, b = 0;
  uint64_t state = 3;
  for (int i = 0; i < ROWS; i++) {
    used += (size_t)sprintf(text + used, "%.6f,%.6f\n", a, b);
    state = state * 6364136223846793005U + 1442695040888963407U;
    double noise = (double)(state >> 40) / 16777216 - 0.5, before = a;
    a = driven ? 0.3 * a + noise : 0.99 * (cos(0.3) * a - sin(0.3) * b) + 0.01 * noise;
    b = driven ? 0.8 * b + before : 0.99 * (sin(0.3) * before + cos(0.3) * b);
  }
  return read_text(text, NULL);
}

static void inputs_are_asked_for(void **unused) {
  (void)unused;
  dvbf_data *data = read_pair(true);
  assert_non_null(strstr(data->question, "some columns look like inputs"));
  assert_non_null(strstr(data->question, "--inputs a, or --inputs none"));
  dvbf_settings *settings = NULL;
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  assert_int_equal(dvbf_settings_new(&settings, "train", &error), DVBF_OK);
  assert_int_equal(dvbf_train(&model, settings, data, NULL, &error), DVBF_FORMAT);
  assert_non_null(strstr(error.message, "--inputs none"));
  dvbf_settings_free(settings);
  dvbf_data_free(data);
  data = read_pair(false);
  assert_string_equal(data->question, "");
  dvbf_data_free(data);
}

/* ---- Writing ---- */

static void written_data_keep_it(void **unused) {
  (void)unused;
  char text[8192];
  size_t used = (size_t)sprintf(text, "episode,time,u [V],level [mm]\n");
  dvbf_error error = {.message = ""};
  dvbf_data *again = NULL;
  for (int i = 0; i < 120; i++)
    used += (size_t)sprintf(text + used, "e%d,%g,%d,%d\n", i / 10, 0.5 * i, i % 3, i * i % 11);
  dvbf_data *data = read_text(text, "split-by", "seed", NULL);
  assert_int_equal(dvbf_data_write(data, in_folder("again.h5"), &error), DVBF_OK);
  if (dvbf_data_read(&again, in_folder("again.h5"), NULL, &error)) fail_msg("%s", error.message);
  assert_near(again->sample_time, 0.5);
  assert_string_equal(again->x_names[0], "level");
  assert_string_equal(again->x_units[0], "mm");
  assert_string_equal(again->u_units[0], "V");
  for (size_t i = 0; i < data->train.count; i++) {
    const dvbf_origin *a = &data->train.origin[i], *b = &again->train.origin[i];
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->step, b->step);
    assert_near(a->time, b->time);
    assert_string_equal(a->name, b->name);
  }
  dvbf_data_free(data);
  dvbf_data_free(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequences_have_names_and_times), cmocka_unit_test(dates_count_from_1970),
      cmocka_unit_test(rows_are_put_on_a_grid),         cmocka_unit_test(a_column_can_be_the_sample_time),
      cmocka_unit_test(inputs_are_asked_for),           cmocka_unit_test(written_data_keep_it),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
