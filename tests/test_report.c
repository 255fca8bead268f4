/* Pictures: colour maps, scales, projection, and the page that dvbf_draw writes, read back through cairo. */
#include "report/canvas.h"
#include "report/cloud.h"
#include "report/colour.h"
#include "report/overview.h"
#include "report/scale.h"

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

enum { FRAMES = 45, SIDE = 16, POINTS = 600, HORIZON = 40, OBSERVED = 5, TRAINING = 15 };

typedef struct fake {
  dvbf_picture picture;
  float truth[FRAMES * SIDE * SIDE], reconstruction[FRAMES * SIDE * SIDE], prediction[FRAMES * SIDE * SIDE];
  float z[POINTS * 4], angle[POINTS], velocity[POINTS];
  double mse[HORIZON], mean_path[HORIZON], repeat[HORIZON];
} fake;

static char folder[] = "/tmp/dvbf-report-XXXXXX";

static const char *path_of(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* ---- A pendulum that never was ---- */

static void draw_bob(float *image, double angle) {
  double row = 7.5 - 5 * cos(angle), column = 7.5 + 5 * sin(angle);
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++)
      image[i * SIDE + j] = (float)exp(-((i - row) * (i - row) + (j - column) * (j - column)) / 4.5);
}

/* Points on a barrel: angle around it, velocity along it, in the first n_z coordinates. */
static void fill_latent(fake *f, size_t n_z) {
  for (size_t i = 0; i < POINTS; i++) {
    double angle = 2 * M_PI * fmod((double)i * 0.618, 1) - M_PI,
           velocity = 16 * fmod((double)i * 0.414, 1) - 8;
    double place[4] = {2 * cos(angle), sin(angle), 0.05 * velocity, 0};
    f->angle[i] = (float)angle;
    f->velocity[i] = (float)velocity;
    for (size_t j = 0; j < n_z; j++) f->z[i * n_z + j] = (float)place[j];
  }
  f->picture.n_z = n_z;
}

static fake *make_fake(size_t n_z) {
  fake *f = test_calloc(1, sizeof *f);
  for (int t = 0; t < FRAMES; t++) {
    draw_bob(f->truth + t * SIDE * SIDE, 0.3 * t);
    draw_bob(f->reconstruction + t * SIDE * SIDE, 0.3 * t);
    draw_bob(f->prediction + t * SIDE * SIDE, 0.31 * t);
  }
  for (int h = 0; h < HORIZON; h++) {
    f->mse[h] = 0.01 * exp(0.1 * h);
    f->mean_path[h] = 0.005 * exp(0.1 * h);
    f->repeat[h] = 1.8 * (1 - exp(-0.5 * (h + 1)));
  }
  f->picture = (dvbf_picture){.title = "A pendulum",
                              .frames = FRAMES,
                              .height = SIDE,
                              .width = SIDE,
                              .truth = f->truth,
                              .reconstruction = f->reconstruction,
                              .prediction = f->prediction,
                              .observed = OBSERVED,
                              .training_steps = TRAINING,
                              .points = POINTS,
                              .z = f->z,
                              .angle = f->angle,
                              .velocity = f->velocity,
                              .angle_label = "angle φ (rad)",
                              .velocity_label = "velocity (rad/s)",
                              .horizon = HORIZON,
                              .mse = f->mse,
                              .mse_mean_path = f->mean_path,
                              .mse_repeat = f->repeat};
  fill_latent(f, n_z);
  return f;
}

/* ---- Reading back ---- */

static cairo_surface_t *draw_and_load(const dvbf_picture *picture, const char *name) {
  dvbf_error error = {0};
  if (dvbf_draw(picture, path_of(name), &error)) fail_msg("%s", error.message);
  cairo_surface_t *surface = cairo_image_surface_create_from_png(path_of(name));
  assert_int_equal(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
  dv_overview plan = dv_overview_plan(picture);
  assert_int_equal(cairo_image_surface_get_width(surface), (int)plan.width * DV_CANVAS_SCALE);
  assert_int_equal(cairo_image_surface_get_height(surface), (int)plan.height * DV_CANVAS_SCALE);
  return surface;
}

/* 0xrrggbb at a place of the page. */
static uint32_t pixel_at(cairo_surface_t *surface, double x, double y) {
  int column = (int)floor(x * DV_CANVAS_SCALE), row = (int)floor(y * DV_CANVAS_SCALE);
  assert_in_range(column, 0, cairo_image_surface_get_width(surface) - 1);
  assert_in_range(row, 0, cairo_image_surface_get_height(surface) - 1);
  const unsigned char *bytes = cairo_image_surface_get_data(surface);
  uint32_t pixel;
  memcpy(&pixel, bytes + row * cairo_image_surface_get_stride(surface) + 4 * column, sizeof pixel);
  return pixel & 0xffffff;
}

static bool is_red(uint32_t p) {
  return (p >> 16) > 180 && ((p >> 8) & 255) < 80 && (p & 255) < 80;
}

static bool is_blue(uint32_t p) {
  return (p & 255) > 150 && (p >> 16) < 120 && (p & 255) > (p >> 16) + 60;
}

/* Pixels in a panel that are clearly not grey. */
static size_t count_coloured(cairo_surface_t *surface, const dv_panel *panel) {
  size_t count = 0;
  for (double y = panel->y; y < panel->y + panel->height; y += 0.5)
    for (double x = panel->x; x < panel->x + panel->width; x += 0.5) {
      uint32_t p = pixel_at(surface, x, y);
      int r = (int)(p >> 16), g = (int)(p >> 8 & 255), b = (int)(p & 255);
      count += abs(r - g) > 40 || abs(g - b) > 40;
    }
  return count;
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

/* ---- Pages ---- */

static void page_shows_strips_where_planned(void **state) {
  (void)state;
  fake *f = make_fake(3);
  for (int i = 0; i < SIDE * SIDE; i++) f->truth[2 * SIDE * SIDE + i] = 1, f->truth[3 * SIDE * SIDE + i] = 0;
  cairo_surface_t *page = draw_and_load(&f->picture, "page.png");
  dv_overview plan = dv_overview_plan(&f->picture);
  const dv_strip_layout *layout = &plan.strip_layout;
  assert_int_equal(layout->shown, FRAMES);
  assert_int_equal(layout->pixel_width % SIDE, 0);
  double x, y;
  for (double s = 0.05; s < 1; s += 0.3) {
    dv_strips_corner(&plan.strips, layout, 0, 2, &x, &y);
    assert_int_equal(pixel_at(page, x + s * layout->image_width, y + s * layout->image_height), 0xffffff);
    dv_strips_corner(&plan.strips, layout, 0, 3, &x, &y);
    assert_int_equal(pixel_at(page, x + s * layout->image_width, y + s * layout->image_height), 0x000000);
  }
  /* Nearest neighbour: the whole cell of one pixel has its grey, in the last row and line too. */
  size_t k = FRAMES - 1, row = 9, column = 4;
  dv_strips_corner(&plan.strips, layout, 2, k, &x, &y);
  uint32_t grey = (uint32_t)lrint(255 * f->prediction[(k * SIDE + row) * SIDE + column]) * 0x10101;
  double cell = layout->image_width / SIDE;
  for (double s = 0.1; s < 1; s += 0.4)
    assert_int_equal(pixel_at(page, x + ((double)column + s) * cell, y + ((double)row + s) * cell), grey);
  cairo_surface_destroy(page);
  test_free(f);
}

static void page_marks_training_length_and_observation(void **state) {
  (void)state;
  fake *f = make_fake(3);
  cairo_surface_t *page = draw_and_load(&f->picture, "marks.png");
  dv_overview plan = dv_overview_plan(&f->picture);
  double x, left, y, bar;
  size_t line;
  assert_true(dv_strips_gap(&plan.strips, &plan.strip_layout, TRAINING, &line, &bar));
  for (size_t row = 0; row < 3; row++) {
    dv_strips_corner(&plan.strips, &plan.strip_layout, row, TRAINING, &x, &y);
    assert_true(bar < x);
    assert_true(is_red(pixel_at(page, bar, y + plan.strip_layout.image_height / 2)));
    dv_strips_corner(&plan.strips, &plan.strip_layout, row, TRAINING - 1, &left, &y);
    assert_true(bar > left + plan.strip_layout.image_width);
    assert_false(is_red(pixel_at(page, bar - plan.strip_layout.pitch_x, y + 10)));
  }
  double seen;
  assert_true(dv_strips_gap(&plan.strips, &plan.strip_layout, OBSERVED, &line, &seen));
  dv_strips_corner(&plan.strips, &plan.strip_layout, 2, 0, &x, &y);
  assert_true(is_blue(pixel_at(page, seen, y + plan.strip_layout.image_height / 2)));
  dv_strips_corner(&plan.strips, &plan.strip_layout, 1, 0, &x, &y);
  assert_int_equal(pixel_at(page, seen, y + plan.strip_layout.image_height / 2), 0xffffff);
  assert_false(dv_strips_gap(&plan.strips, &plan.strip_layout, FRAMES + 1, &line, &seen));
  cairo_surface_destroy(page);
  test_free(f);
}

static void page_has_coloured_plots(void **state) {
  (void)state;
  for (size_t n_z = 1; n_z <= 4; n_z++) {
    fake *f = make_fake(n_z);
    cairo_surface_t *page = draw_and_load(&f->picture, "plots.png");
    dv_overview plan = dv_overview_plan(&f->picture);
    assert_true(count_coloured(page, &plan.latent) > 5000);
    assert_true(count_coloured(page, &plan.errors) > 3000);
    assert_int_equal(pixel_at(page, 2, 2), 0xffffff);
    assert_int_equal(pixel_at(page, plan.width - 2, plan.height - 2), 0xffffff);
    cairo_surface_destroy(page);
    test_free(f);
  }
}

static void absent_panels_are_left_out(void **state) {
  (void)state;
  fake *f = make_fake(3);
  double whole = dv_overview_plan(&f->picture).height;
  for (unsigned mask = 1; mask < 64; mask++) {
    dvbf_picture p = f->picture;
    if (mask & 1) p.frames = 0;
    if (mask & 2) p.z = NULL;
    if (mask & 4) p.horizon = 0;
    if (mask & 8) p.angle = NULL, p.title = NULL, p.truth = NULL;
    if (mask & 16) p.velocity = NULL, p.prediction = NULL, p.mse = NULL;
    if (mask & 32) p.n_z = 1, p.reconstruction = NULL, p.mse_repeat = NULL;
    dv_overview plan = dv_overview_plan(&p);
    assert_true(plan.height <= whole);
    assert_int_equal(plan.latent.width > 0, !(mask & 2));
    assert_int_equal(plan.errors.width > 0, !(mask & 4));
    if (mask == 7 || (mask > 7 && mask & (mask - 1))) continue; /* drawing each mix would take long */
    cairo_surface_destroy(draw_and_load(&p, "absent.png"));
  }
  test_free(f);
}

static void nothing_to_draw_is_refused(void **state) {
  (void)state;
  dvbf_error error = {0};
  dvbf_picture picture = {.title = "nothing"};
  assert_int_equal(dvbf_draw(&picture, path_of("nothing.png"), &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "nothing to draw"));
  assert_int_not_equal(access(path_of("nothing.png"), F_OK), 0);
}

static void values_that_are_not_finite_are_survived(void **state) {
  (void)state;
  fake *f = make_fake(3);
  const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
  for (size_t i = 0; i < 5; i++) {
    f->truth[i] = f->reconstruction[7 * i] = f->prediction[11 * i] = bad[i];
    f->z[13 * i] = f->angle[17 * i] = f->velocity[19 * i] = bad[i];
    f->mse[i] = f->mean_path[2 * i] = f->repeat[3 * i] = bad[i];
  }
  f->mse[20] = 0, f->mse[21] = -1, f->repeat[20] = 1e300, f->repeat[22] = 1e-300;
  cairo_surface_destroy(draw_and_load(&f->picture, "bad.png"));
  for (size_t i = 0; i < POINTS * 3; i++) f->z[i] = NAN;
  for (size_t i = 0; i < POINTS; i++) f->angle[i] = f->velocity[i] = NAN;
  for (size_t i = 0; i < FRAMES * SIDE * SIDE; i++) f->truth[i] = NAN;
  for (size_t i = 0; i < HORIZON; i++) f->mse[i] = f->mean_path[i] = f->repeat[i] = NAN;
  for (size_t n_z = 1; n_z <= 3; n_z++) {
    f->picture.n_z = n_z;
    cairo_surface_destroy(draw_and_load(&f->picture, "bad.png"));
  }
  test_free(f);
}

static void odd_sizes_are_drawn(void **state) {
  (void)state;
  fake *f = make_fake(2);
  dvbf_picture p = f->picture;
  p.frames = 1, p.points = 1, p.horizon = 1, p.observed = 1, p.training_steps = 1;
  cairo_surface_destroy(draw_and_load(&p, "odd.png"));
  p.frames = FRAMES * SIDE, p.height = 1, p.training_steps = 300, p.observed = 200; /* many, flat */
  cairo_surface_destroy(draw_and_load(&p, "odd.png"));
  p.frames = FRAMES, p.height = SIDE * SIDE, p.width = 1; /* tall: larger than its cell */
  p.title = "A title that is far too long for the page, so that it has to be written in smaller letters than "
            "usual, "
            "which is better than losing its end";
  cairo_surface_destroy(draw_and_load(&p, "odd.png"));
  test_free(f);
}

static void svg_is_written_too(void **state) {
  (void)state;
  fake *f = make_fake(3);
  dvbf_error error;
  assert_int_equal(dvbf_draw(&f->picture, path_of("page.svg"), &error), DVBF_OK);
  FILE *file = fopen(path_of("page.svg"), "r");
  assert_non_null(file);
  char start[256] = "";
  assert_true(fread(start, 1, sizeof start - 1, file) > 0);
  fclose(file);
  assert_non_null(strstr(start, "<svg"));
  test_free(f);
}

static void unwritable_path_is_refused(void **state) {
  (void)state;
  fake *f = make_fake(3);
  const char *const names[] = {"no/such/folder.png", "no/such/folder.svg", "."};
  for (size_t i = 0; i < 3; i++) {
    dvbf_error error = {0};
    assert_int_equal(dvbf_draw(&f->picture, path_of(names[i]), &error), DVBF_IO);
    assert_int_equal(error.status, DVBF_IO);
    assert_non_null(strstr(error.message, names[i]));
    assert_int_equal(dvbf_draw(&f->picture, path_of(names[i]), NULL), DVBF_IO);
  }
  dvbf_error error = {0};
  f->picture.title = "not UTF-8: \xff\xfe";
  assert_int_equal(dvbf_draw(&f->picture, path_of("text.png"), &error), DVBF_ARGUMENT);
  assert_true(strlen(error.message) > 10);
  test_free(f);
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
      cmocka_unit_test(page_shows_strips_where_planned),
      cmocka_unit_test(page_marks_training_length_and_observation),
      cmocka_unit_test(page_has_coloured_plots),
      cmocka_unit_test(absent_panels_are_left_out),
      cmocka_unit_test(nothing_to_draw_is_refused),
      cmocka_unit_test(values_that_are_not_finite_are_survived),
      cmocka_unit_test(odd_sizes_are_drawn),
      cmocka_unit_test(svg_is_written_too),
      cmocka_unit_test(unwritable_path_is_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
