/* Diagrams of a report: signals, and tracks of what moves in pictures. */
#include "small_model.h"

#include "evaluate/tracking.h"
#include "report/page.h"

#include <math.h>

/* ---- Signals ---- */

static dv_signals signals_of(const fixture *f, const dvbf_data *data, size_t observed) {
  dv_signals s;
  dvbf_settings *settings = NULL;
  dvbf_error error;
  assert_int_equal(dvbf_settings_new(&settings, "evaluate", NULL), DVBF_OK);
  if (dv_signals_of(&s, f->model, data, &f->sequences, observed, settings, &error))
    fail_msg("%s", error.message);
  dvbf_settings_free(settings);
  return s;
}

/* Scores are those of the values that are shown, and intervals hold about what they say. */
static void signals_are_scored_as_here(void **unused) {
  (void)unused;
  fixture f;
  begin(&f, "x-scaling=none");
  f.sequences.gaps = true;
  f.sequences.x[6 * N_X + 1] = NAN;
  dvbf_data data = {.train = f.sequences};
  dv_signals s = signals_of(&f, &data, 5);
  assert_int_equal(s.shown.count, 8);
  assert_false(s.cut);
  assert_int_equal(s.n_uses, 2);
  assert_int_equal(s.use[0].first, 5);
  assert_int_equal(s.use[1].first, 3);
  double inside = 0, all = 0;
  for (size_t use = 0; use < 2; use++)
    for (size_t i = 0; i < 8; i++)
      for (size_t k = 0; k < N_X; k++) {
        const dv_signal_use *u = &s.use[use];
        double square = 0, count = 0;
        assert_int_equal(dv_signal_steps(&s, u, i), f.sequences.length[i] - u->first);
        for (size_t t = 0; t < dv_signal_steps(&s, u, i); t++) {
          size_t at = (i * u->steps + t) * N_X + k;
          double x = (double)f.sequences.x[(i * STEPS + u->first + t) * N_X + k];
          assert_true(u->low[at] < u->high[at]);
          if (isnan(x)) continue;
          square += pow(x - (double)u->mean[at], 2);
          count += 1;
          inside += x > (double)u->low[at] && x < (double)u->high[at];
          all += 1;
        }
        assert_float_equal(u->rmse[i * N_X + k], sqrt(square / count), 1e-5);
      }
  assert_in_range((int)(100 * inside / all), 70, 100);
  dv_signals_clear(&s);
  end(&f);
}

static void names_have_units_and_origins(void **unused) {
  (void)unused;
  static char names[2][32] = {"level", ""}, units[2][16] = {"V", "m/s"};
  dvbf_origin origin[2] = {{.sequence = 7, .step = 120, .time = 12}, {.name = "morning"}};
  dvbf_data data = {.x_names = names, .x_units = units, .sample_time = 0.1};
  dvbf_sequences s = {.count = 2, .origin = origin};
  char label[64], name[96];
  dv_signal_label(label, &data, false, 0);
  assert_string_equal(label, "level (V)");
  dv_signal_label(label, &data, false, 1);
  assert_string_equal(label, "x1 (m/s)");
  dv_signal_label(label, &data, true, 3);
  assert_string_equal(label, "u3");
  dv_signal_sequence(name, &s, 0);
  assert_string_equal(name, "number 7, from step 120");
  dv_signal_sequence(name, &s, 1);
  assert_string_equal(name, "morning");
  assert_float_equal(dv_signal_start(&data, &s, 0), 12, 0);
  data.sample_time = 0;
  assert_float_equal(dv_signal_start(&data, &s, 0), 120, 0);
}

/* A page of signals: times, units and names are in it, and nothing can end its script. */
static void signals_are_written(void **unused) {
  (void)unused;
  static char names[N_X][32] = {"</script>", "b", "c", "d", "e", "f"}, units[N_X][16] = {"<V>"};
  static char text[1 << 20];
  fixture f;
  begin(&f, "");
  dvbf_origin origin[COUNT] = {{.time = 1.7e9, .name = "<b>"}};
  f.sequences.origin = origin;
  dvbf_data data = {
      .train = f.sequences, .x_names = names, .x_units = units, .sample_time = 0.25, .dates = true};
  dv_signals s = signals_of(&f, &data, 5);
  dvbf_page *page = NULL;
  assert_int_equal(dvbf_page_new(&page, "signals", NULL), DVBF_OK);
  assert_int_equal(dv_page_signals(page, &s, &data, "caption <i>", NULL), DVBF_OK);
  assert_in_range(page->body.length, 1000, sizeof text - 1);
  memcpy(text, page->body.text, page->body.length);
  static const char *const parts[] = {"\"sample_time\":0.25,\"dates\":true",
                                      "\"name\":\"\\u003c/script\\u003e\",\"unit\":\"\\u003cV\\u003e\"",
                                      "\"name\":\"\\u003cb\\u003e\",\"start\":1700000000,\"steps\":8",
                                      "\"uses\":[\"free run\",\"one step ahead\"]", "caption &lt;i&gt;"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(text, parts[i])) fail_msg("%s is missing", parts[i]);
  assert_non_null(strstr(text, "</script>"));
  assert_null(strstr(strstr(text, "</script>") + 1, "</script>"));
  dvbf_page_free(page);
  dv_signals_clear(&s);
  f.sequences.origin = NULL;
  end(&f);
}

/* ---- Tracks ---- */

/* A blob around (across, down) on a background that is not even, bright on dark or the other way round. */
static void blob(float *image, double across, double down, bool dark) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 20; j++) {
      double light = exp(-(pow(j - across, 2) + pow(i - down, 2)) / 4) + 0.002 * j;
      image[i * 20 + j] = (float)(dark ? 1 - light : light);
    }
}

static void centres_are_found(void **unused) {
  (void)unused;
  float image[320], room[320];
  double across, down;
  for (int dark = 0; dark < 2; dark++) {
    blob(image, 12.25, 5.5, dark);
    assert_int_equal(dv_track_dark(image, 320, room), dark);
    dv_track_centre(image, 16, 20, dark, room, &across, &down);
    assert_float_equal(across, 12.25, 0.1);
    assert_float_equal(down, 5.5, 0.1);
  }
  for (int i = 0; i < 320; i++) image[i] = 0.5f;
  dv_track_centre(image, 16, 20, false, room, &across, &down);
  assert_true(isnan(across) && isnan(down));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signals_are_scored_as_here),
      cmocka_unit_test(names_have_units_and_origins),
      cmocka_unit_test(signals_are_written),
      cmocka_unit_test(centres_are_found),
  };
  return cmocka_run_group_tests_name("diagrams", tests, NULL, NULL);
}
