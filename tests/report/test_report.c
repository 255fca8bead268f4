/* What figures share: colour maps, scales, projection, and several figures on one picture. */
#include "report/drawing.h"
#include "report/figure.h"
#include "report/plots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cairo.h>
#include <dirent.h>
#include <dvbf/dvbf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/dvbf-report-XXXXXX";

static const char *path_of(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* ---- Colours ---- */

static double linear_light(double c) {
  return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double lightness(dv_colour c) {
  double y = 0.2126 * linear_light(c.red) + 0.7152 * linear_light(c.green) + 0.0722 * linear_light(c.blue);
  return y > 216.0 / 24389 ? 116 * cbrt(y) - 16 : y * 24389 / 27;
}

static double distance(dv_colour a, dv_colour b) {
  return fabs(a.red - b.red) + fabs(a.green - b.green) + fabs(a.blue - b.blue);
}

static void assert_displayable(dv_colour c) {
  assert_true(c.red >= 0 && c.red <= 1 && c.green >= 0 && c.green <= 1 && c.blue >= 0 && c.blue <= 1);
}

static void sequential_lightness_rises_evenly(void **state) {
  (void)state;
  enum { STEPS = 100 };
  double first = lightness(dv_colour_sequential(0)), last = lightness(dv_colour_sequential(1));
  assert_true(last - first > 60);
  for (int i = 0; i <= STEPS; i++) {
    dv_colour c = dv_colour_sequential((double)i / STEPS);
    assert_displayable(c);
    assert_true(fabs(lightness(c) - (first + (last - first) * i / STEPS)) < 0.5);
  }
  assert_true(distance(dv_colour_sequential(-3), dv_colour_sequential(0)) == 0);
  assert_true(distance(dv_colour_sequential(3), dv_colour_sequential(1)) == 0);
}

static void cyclic_ends_meet(void **state) {
  (void)state;
  enum { STEPS = 100 };
  assert_true(distance(dv_colour_cyclic(0), dv_colour_cyclic(1)) < 1e-9);
  for (int i = 0; i < STEPS; i++) {
    dv_colour here = dv_colour_cyclic((double)i / STEPS), next = dv_colour_cyclic((double)(i + 1) / STEPS);
    assert_displayable(here);
    assert_true(distance(here, next) < 0.1);
    assert_true(lightness(here) > 45 && lightness(here) < 80); /* visible on white everywhere */
    assert_true(distance(here, dv_colour_cyclic((double)i / STEPS + 0.5)) > 0.3);
  }
}

static void colour_of_nan_is_grey(void **state) {
  (void)state;
  assert_true(distance(dv_colour_sequential(NAN), dv_colour_missing) == 0);
  assert_true(distance(dv_colour_cyclic(INFINITY), dv_colour_missing) == 0);
}

/* ---- Scales ---- */

static void ticks_are_round(void **state) {
  (void)state;
  dv_scale scale = {.low = -1.3, .high = 1.3};
  dv_ticks ticks = dv_scale_ticks(&scale, 6);
  assert_int_equal(ticks.count, 5);
  assert_string_equal(ticks.at[0].label, "−1.0");
  assert_string_equal(ticks.at[2].label, "0.0");
  assert_true(ticks.at[4].value == 1);
  scale = (dv_scale){.low = 1, .high = 3, .whole = true};
  ticks = dv_scale_ticks(&scale, 10);
  assert_int_equal(ticks.count, 3);
  assert_string_equal(ticks.at[1].label, "2");
}

static void logarithmic_ticks_are_decades(void **state) {
  (void)state;
  dv_scale scale = {.low = 0.0009, .high = 12, .logarithmic = true};
  dv_ticks ticks = dv_scale_ticks(&scale, 8);
  size_t labels = 0;
  for (size_t i = 0; i < ticks.count; i++) labels += ticks.at[i].label[0] != 0;
  assert_int_equal(labels, 5);
  assert_true(fabs(dv_scale_place(&scale, sqrt(0.0009 * 12)) - 0.5) < 1e-12);
  assert_true(isnan(dv_scale_place(&scale, 0)));
}

static void scale_of_nothing_is_usable(void **state) {
  (void)state;
  const double values[] = {NAN, INFINITY, -INFINITY};
  for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
    dv_scale scale = dv_scale_empty(logarithmic);
    for (size_t i = 0; i < 3; i++) dv_scale_include(&scale, values[i]);
    dv_scale_finish(&scale, 0.05);
    assert_true(scale.low < scale.high);
    dv_scale flat = dv_scale_empty(logarithmic);
    dv_scale_include(&flat, 7);
    dv_scale_finish(&flat, 0.05);
    assert_true(flat.low < 7 && flat.high > 7);
    dv_scale huge = dv_scale_empty(logarithmic);
    dv_scale_include(&huge, 1e308);
    dv_scale_include(&huge, logarithmic ? 1e-308 : -1e308);
    dv_scale_finish(&huge, 0.05);
    assert_true(isfinite(huge.low) && isfinite(huge.high));
    assert_true(isfinite(dv_scale_place(&huge, 1)));
    assert_true(dv_scale_ticks(&huge, 6).count > 0);
  }
}

/* ---- Projection ---- */

static void projection_finds_the_long_axis(void **state) {
  (void)state;
  enum { N = 200 };
  float z[N * 3];
  for (int i = 0; i < N; i++) { /* long along (1, 1, 0), shorter along (1, -1, 0), shortest along the third */
    double a = 3 * sin(i), b = 1.5 * sin(2.7 * i + 1), c = 0.5 * sin(5.1 * i + 2);
    z[3 * i] = (float)((a + b) / sqrt(2));
    z[3 * i + 1] = (float)((a - b) / sqrt(2));
    z[3 * i + 2] = (float)c + 10;
  }
  z[3 * 17] = NAN;
  dv_cloud p;
  assert_int_equal(dv_cloud_make(&p, z, N, 3, NULL), DVBF_OK);
  assert_true(p.share[0] > p.share[1] && p.share[1] > p.share[2]);
  assert_true(fabs(p.share[0] + p.share[1] + p.share[2] - 1) < 1e-9);
  assert_true(isnan(p.at[0][17]));
  double sum = 0, square = 0, third = 0;
  for (int i = 0; i < N; i++) {
    if (i == 17) continue;
    sum += p.at[0][i];
    square += p.at[0][i] * 3 * sin(i);
    third += fabs(fabs(p.at[2][i]) - fabs(z[3 * i + 2] - 10));
  }
  assert_true(fabs(sum / N) < 1e-6);
  assert_true(fabs(square / N) > 4.3); /* 9/2 when the axis is exact */
  assert_true(third / N < 0.1);
  dv_cloud_clear(&p);
}

/* ---- Several figures on one picture ---- */

static void write_picture(const char *name, int width, int height, double grey) {
  cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
  cairo_t *cr = cairo_create(surface);
  cairo_set_source_rgb(cr, grey, grey, grey);
  cairo_paint(cr);
  assert_int_equal(cairo_surface_write_to_png(surface, path_of(name)), CAIRO_STATUS_SUCCESS);
  cairo_destroy(cr);
  cairo_surface_destroy(surface);
}

static unsigned grey_at(cairo_surface_t *surface, int x, int y) {
  return cairo_image_surface_get_data(surface)[y * cairo_image_surface_get_stride(surface) + 4 * x];
}

static void figures_are_collected(void **state) {
  (void)state;
  static const char *const names[] = {"a.png", "b.png", "missing.png", "c.png"};
  dv_path paths[4];
  dvbf_error error;
  write_picture("a.png", 60, 20, 0.2);
  write_picture("b.png", 40, 30, 0.4);
  write_picture("c.png", 40, 10, 0.6);
  for (size_t i = 0; i < 4; i++) snprintf(paths[i], sizeof paths[i], "%s", path_of(names[i]));
  assert_int_equal(dv_figure_collect(path_of("all.png"), 4, paths, &error), DVBF_OK);
  cairo_surface_t *all = cairo_image_surface_create_from_png(path_of("all.png"));
  assert_int_equal(cairo_image_surface_get_width(all), 80);
  assert_int_equal(cairo_image_surface_get_height(all), 50);
  const int at[][3] = {{12, 5, 51}, {67, 18, 51}, {5, 5, 255}, {20, 40, 102}, {60, 25, 153}, {60, 40, 255}};
  for (size_t i = 0; i < 6; i++) assert_int_equal(grey_at(all, at[i][0], at[i][1]), at[i][2]);
  cairo_surface_destroy(all);
  assert_int_equal(dv_figure_collect(path_of("no/all.png"), 4, paths, &error), DVBF_IO);
  assert_int_not_equal(dv_figure_collect(path_of("none.png"), 1, &paths[2], NULL), DVBF_OK);
  FILE *cut = fopen(paths[2], "wb"); /* there, but cut short */
  assert_non_null(cut);
  fputs("\x89PNG\r\n", cut);
  fclose(cut);
  assert_int_equal(dv_figure_collect(path_of("all.png"), 4, paths, &error), DVBF_IO);
  unlink(paths[2]);
  assert_int_equal(access(path_of("none.png"), F_OK), -1);
}

/* ---- Folder ---- */

static int make_folder(void **state) {
  (void)state;
  return !mkdtemp(folder);
}

/* Removes the folder, and fails when a drawing has left a temporary file in it. */
static int remove_folder(void **state) {
  (void)state;
  int left_over = 0;
  DIR *entries = opendir(folder);
  if (!entries) return -1;
  for (struct dirent *e; (e = readdir(entries));) {
    left_over |= strstr(e->d_name, ".tmp-") != NULL;
    if (e->d_name[0] != '.' || strstr(e->d_name, ".tmp-")) unlink(path_of(e->d_name));
  }
  closedir(entries);
  return rmdir(folder) || left_over;
}

/* fontconfig keeps the fonts it has found until the process ends: no leak of ours. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libfontconfig";
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequential_lightness_rises_evenly),
      cmocka_unit_test(cyclic_ends_meet),
      cmocka_unit_test(colour_of_nan_is_grey),
      cmocka_unit_test(ticks_are_round),
      cmocka_unit_test(logarithmic_ticks_are_decades),
      cmocka_unit_test(scale_of_nothing_is_usable),
      cmocka_unit_test(projection_finds_the_long_axis),
      cmocka_unit_test(figures_are_collected),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
