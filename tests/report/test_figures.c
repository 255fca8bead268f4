/* The paper's figures: drawn from data whose structure is known, read back as pixels and as XML. */
#include "evaluate/evaluate.h"
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
#include <dvbf/report.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POINTS = 900, N_Z = 4, STEPS = 100, FRAMES = 45, SIDE = 16 };

static char folder[] = "/tmp/dvbf-figures-XXXXXX";

static const char *path_of(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* ---- Reading back ---- */

typedef struct drawing {
  cairo_surface_t *png;
  char *svg;
  size_t svg_length;
} drawing;

static char *read_text(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *text = test_calloc(*length + 1, 1);
  assert_int_equal(fread(text, 1, *length, file), *length);
  fclose(file);
  return text;
}

/* Well-formed enough: tags open and close in turn, and no stray < or &. */
static void assert_xml(const char *text) {
  char open[32][32];
  size_t depth = 0;
  for (const char *at = text; *at;) {
    if (*at == '&') {
      assert_true(!strncmp(at, "&lt;", 4) || !strncmp(at, "&gt;", 4) || !strncmp(at, "&amp;", 5));
      at++;
      continue;
    }
    if (*at != '<') {
      at++;
      continue;
    }
    const char *end = strchr(at, '>');
    assert_non_null(end);
    bool closing = at[1] == '/', alone = end[-1] == '/' || at[1] == '?';
    char name[32] = "";
    sscanf(at + 1 + closing, "%31[A-Za-z?]", name);
    assert_true(*name != 0);
    if (closing) {
      assert_true(depth > 0);
      assert_string_equal(name, open[--depth]);
    } else if (!alone) {
      assert_true(depth < 32);
      strcpy(open[depth++], name);
    }
    at = end + 1;
  }
  assert_int_equal(depth, 0);
}

static drawing load(const char *name) {
  drawing d;
  char file[64];
  snprintf(file, sizeof file, "%s.png", name);
  d.png = cairo_image_surface_create_from_png(path_of(file));
  assert_int_equal(cairo_surface_status(d.png), CAIRO_STATUS_SUCCESS);
  snprintf(file, sizeof file, "%s.svg", name);
  d.svg = read_text(path_of(file), &d.svg_length);
  assert_xml(d.svg);
  assert_null(strstr(d.svg, " id=\"clip"));
  assert_null(strstr(d.svg, "\"#surface"));
  return d;
}

static void release(drawing *d) {
  cairo_surface_destroy(d->png);
  test_free(d->svg);
}

static void must(dvbf_status status, const dvbf_error *error) {
  if (status) fail_msg("%s", error->message);
}

static double page_width(const drawing *d) {
  return cairo_image_surface_get_width(d->png) / (double)DV_CANVAS_SCALE;
}

static double page_height(const drawing *d) {
  return cairo_image_surface_get_height(d->png) / (double)DV_CANVAS_SCALE;
}

static uint32_t pixel_at(const drawing *d, double x, double y) {
  int column = (int)(x * DV_CANVAS_SCALE), row = (int)(y * DV_CANVAS_SCALE);
  assert_in_range(column, 0, cairo_image_surface_get_width(d->png) - 1);
  assert_in_range(row, 0, cairo_image_surface_get_height(d->png) - 1);
  const unsigned char *bytes = cairo_image_surface_get_data(d->png);
  uint32_t pixel;
  memcpy(&pixel, bytes + row * cairo_image_surface_get_stride(d->png) + 4 * column, sizeof pixel);
  return pixel & 0xffffff;
}

typedef bool pixel_test(int r, int g, int b);

static bool coloured(int r, int g, int b) {
  return abs(r - g) > 40 || abs(g - b) > 40;
}
static bool red(int r, int g, int b) {
  return r > 180 && g < 80 && b < 80;
}
static bool blue(int r, int g, int b) {
  return b > r + 60 && r < 120 && b > g;
}
static bool orange(int r, int g, int b) {
  return r > 200 && g > 90 && b < 120;
}
static bool dark(int r, int g, int b) {
  return r + g + b < 300;
}

/* Pixels of the page that pass, within a rectangle. */
static size_t count(const drawing *d, double x, double y, double width, double height, pixel_test *test) {
  size_t found = 0;
  int left = (int)(x * DV_CANVAS_SCALE), right = (int)((x + width) * DV_CANVAS_SCALE);
  int top = (int)(y * DV_CANVAS_SCALE), bottom = (int)((y + height) * DV_CANVAS_SCALE);
  assert_true(left >= 0 && right <= cairo_image_surface_get_width(d->png));
  assert_true(top >= 0 && bottom <= cairo_image_surface_get_height(d->png));
  int stride = cairo_image_surface_get_stride(d->png);
  const unsigned char *bytes = cairo_image_surface_get_data(d->png);
  for (int row = top; row < bottom; row++)
    for (int column = left; column < right; column++) {
      uint32_t p;
      memcpy(&p, bytes + row * stride + 4 * column, sizeof p);
      found += test((int)(p >> 16 & 255), (int)(p >> 8 & 255), (int)(p & 255));
    }
  return found;
}

static void assert_labels(const drawing *d, const char *const labels[]) {
  for (size_t i = 0; labels[i]; i++)
    if (!strstr(d->svg, labels[i])) fail_msg("the SVG has no \"%s\"", labels[i]);
}

static void assert_refused(dvbf_status status, const dvbf_error *error, dvbf_status wanted,
                           const char *part) {
  assert_int_equal(status, wanted);
  assert_int_equal(error->status, wanted);
  if (!strstr(error->message, part)) fail_msg("\"%s\" does not say \"%s\"", error->message, part);
}

/* ---- A pendulum that never was ---- */

typedef struct cloud {
  float z[POINTS * N_Z], angle[POINTS], velocity[POINTS];
} cloud;

/* A ring for the angle, small, in a space whose other dimensions vary more: velocity, and nothing. */
static cloud *make_cloud(size_t n_z) {
  cloud *c = test_calloc(1, sizeof *c);
  for (size_t i = 0; i < POINTS; i++) {
    double angle = 2 * M_PI * fmod((double)i * 0.618034, 1) - M_PI;
    double velocity = 16 * fmod((double)i * 0.414214, 1) - 8, nothing = 9 * fmod((double)i * 0.732051, 1);
    double place[N_Z] = {sin(angle), velocity, cos(angle), nothing};
    c->angle[i] = (float)angle;
    c->velocity[i] = (float)velocity;
    for (size_t j = 0; j < n_z; j++) c->z[i * n_z + j] = (float)place[j];
  }
  return c;
}

static dvbf_latent_model model_of(const cloud *c, const char *title, size_t n_z) {
  return (dvbf_latent_model){title, POINTS, n_z, c->z, c->angle, c->velocity};
}

/* ---- Regression and planes ---- */

static void regression_hands_out_coefficients(void **state) {
  (void)state;
  float z[40 * 2], y[40];
  for (size_t i = 0; i < 40; i++) {
    z[2 * i] = (float)sin((double)i);
    z[2 * i + 1] = (float)cos(2.3 * (double)i);
    y[i] = 2 * z[2 * i] - 3 * z[2 * i + 1] + 5;
  }
  double r2, log_likelihood, beta[3];
  assert_int_equal(dv_regress(z, 40, 2, y, 1, &r2, &log_likelihood, beta, NULL), DVBF_OK);
  assert_true(fabs(beta[0] - 2) < 1e-5 && fabs(beta[1] + 3) < 1e-5 && fabs(beta[2] - 5) < 1e-5);
  assert_true(r2 > 1 - 1e-9);
}

/* The ring that the principal axes would miss. */
static void plane_shows_the_ring(void **state) {
  (void)state;
  cloud *c = make_cloud(N_Z);
  dv_reading readings[DV_READINGS];
  const dv_reading *sine = &readings[DV_SINE], *cosine = &readings[DV_COSINE];
  assert_int_equal(dv_pendulum_read(readings, c->z, POINTS, N_Z, c->angle, NULL, NULL), DVBF_OK);
  assert_true(sine->fitted && sine->r2 > 0.999 && cosine->r2 > 0.999);
  assert_null(readings[DV_VELOCITY].truth);
  dv_view view;
  assert_int_equal(dv_view_make(&view, c->z, POINTS, N_Z, sine, cosine, NULL), DVBF_OK);
  assert_string_equal(view.across_label, "z along sin φ");
  for (size_t i = 0; i < POINTS; i++) {
    assert_true(fabs(hypot(view.across[i], view.up[i]) - 1) < 1e-3);
    assert_true(fabs(view.across[i] - sin(c->angle[i])) < 1e-3);
  }
  dv_view_clear(&view);
  dv_readings_clear(readings, DV_READINGS);
  test_free(c);
}

static void planes_are_orthonormal(void **state) {
  (void)state;
  double a[] = {1, 2, 3, 0}, same[] = {2, 4, 6, 9}, none[] = {0, 0, 0, 1}, other[] = {0, -1, 5, 2};
  dv_reading readings[] = {
      {.direction = a}, {.direction = same}, {.direction = none}, {.direction = other}, {0}};
  for (size_t i = 0; i <= 4; i++)
    for (size_t j = 0; j <= 4; j++) {
      double plane[2][3], first = 0, second = 0, both = 0;
      dv_view_plane(plane[0], 3, &readings[i], &readings[j]);
      for (size_t k = 0; k < 3; k++) {
        first += plane[0][k] * plane[0][k];
        second += plane[1][k] * plane[1][k];
        both += plane[0][k] * plane[1][k];
      }
      assert_true(fabs(first - 1) < 1e-9 && fabs(second - 1) < 1e-9 && fabs(both) < 1e-9);
    }
}

/* ---- latent ---- */

static void latent_shows_ring_and_regressions(void **state) {
  (void)state;
  cloud *c = make_cloud(N_Z), *poor = make_cloud(1);
  dvbf_error error;
  dvbf_figure_latent f = {.models = 2, .model = {model_of(c, "DVBF-LL", N_Z), model_of(poor, "DKF", 1)}};
  must(dvbf_draw_latent(&f, path_of("latent"), &error), &error);
  drawing d = load("latent");
  assert_int_equal((int)page_width(&d), DV_FIGURE_WIDTH);
  assert_labels(&d, (const char *const[]){"DVBF-LL", "DKF", "z along sin φ", "z along cos φ",
                                          "z along velocity", "angle φ (rad)", "velocity (rad/s)",
                                          "predicted", "true", "R²", "1.000", "id=\"f-latent-", NULL});
  assert_true(d.svg_length < 1000000);
  /* The first view: coloured along the ring, empty inside it. */
  double block = (DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - 22) / 2.0, side = block / 2 - DV_VIEW_LEFT - 14;
  double x = DV_FIGURE_MARGIN + DV_VIEW_LEFT, y = DV_FIGURE_MARGIN + 34;
  assert_true(count(&d, x, y, side, side, coloured) > 2000);
  assert_int_equal(count(&d, x + 0.25 * side, y + 0.25 * side, side / 2, side / 2, coloured), 0);
  assert_true(count(&d, x + block / 2, y, side, side, coloured) > 2000);                    /* velocity */
  assert_true(count(&d, x + block + 22, y, side, side, coloured) > 1000);                   /* second model */
  assert_true(count(&d, DV_FIGURE_MARGIN, page_height(&d) - 200, block, 140, blue) > 1000); /* regressions */
  assert_int_equal(pixel_at(&d, 2, 2), 0xffffff);
  release(&d);
  test_free(c);
  test_free(poor);
}

/* The ring runs through the colours in the order of the angle: opposite places differ, and the top of the
 * ring, cos = 1, has the colour of angle 0. */
static void latent_colours_are_those_of_the_angle(void **state) {
  (void)state;
  cloud *c = make_cloud(N_Z);
  dvbf_error error;
  dvbf_figure_latent f = {.models = 1, .model = {model_of(c, NULL, N_Z)}};
  f.model[0].velocity = NULL;
  must(dvbf_draw_latent(&f, path_of("angle"), &error), &error);
  drawing d = load("angle");
  assert_null(strstr(d.svg, "velocity"));
  double side = 680 / 2.0 - DV_VIEW_LEFT - 14, x = DV_FIGURE_MARGIN + DV_VIEW_LEFT, y = DV_FIGURE_MARGIN;
  dv_colour zero = dv_colour_cyclic(0.5);
  size_t near = 0;
  for (double v = y; v < y + 0.1 * side; v += 0.5) {
    uint32_t p = pixel_at(&d, x + side / 2, v);
    double far = fabs((p >> 16) / 255.0 - zero.red) + fabs((p >> 8 & 255) / 255.0 - zero.green) +
                 fabs((p & 255) / 255.0 - zero.blue);
    near += far < 0.25;
  }
  assert_true(near > 0);
  release(&d);
  test_free(c);
}

static void latent_survives_odd_data(void **state) {
  (void)state;
  dvbf_error error;
  for (unsigned mask = 0; mask < 64; mask++) {
    if (__builtin_popcount(mask) > 2) continue; /* all mixes would take long */
    size_t n_z = mask & 1 ? 1 : mask & 32 ? 2 : N_Z;
    cloud *c = make_cloud(n_z);
    dvbf_figure_latent f = {.models = 1, .model = {model_of(c, "odd", n_z)}};
    if (mask & 2) f.model[0].angle = NULL;
    if (mask & 4) f.model[0].velocity = NULL;
    if (mask & 8) f.model[0].points = 1;
    if (mask & 16)
      for (size_t i = 0; i < POINTS; i++) {
        c->angle[i] = 1, c->velocity[i] = 0;
        for (size_t j = 0; j < n_z; j++) c->z[i * n_z + j] = 7;
      }
    must(dvbf_draw_latent(&f, path_of("odd"), &error), &error);
    drawing d = load("odd");
    assert_true(count(&d, 0, 0, page_width(&d), page_height(&d), dark) > 500);
    release(&d);
    test_free(c);
  }
}

static void latent_refuses_what_it_cannot_draw(void **state) {
  (void)state;
  cloud *c = make_cloud(N_Z);
  dvbf_error error = {0};
  dvbf_figure_latent f = {.models = 0};
  assert_refused(dvbf_draw_latent(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "1 or 2 models");
  f.models = 3;
  assert_refused(dvbf_draw_latent(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "not 3");
  f.models = 1;
  assert_refused(dvbf_draw_latent(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "needs samples");
  float *const places[] = {&c->z[17], &c->angle[3], &c->velocity[5]};
  const char *const names[] = {"latent samples", "angles", "velocities"};
  for (size_t i = 0; i < 3; i++) {
    float kept = *places[i];
    *places[i] = i ? NAN : INFINITY;
    f.model[0] = model_of(c, NULL, N_Z);
    assert_refused(dvbf_draw_latent(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, names[i]);
    assert_int_equal(dvbf_draw_latent(&f, path_of("no"), NULL), DVBF_ARGUMENT);
    *places[i] = kept;
  }
  assert_int_not_equal(access(path_of("no.png"), F_OK), 0);
  test_free(c);
}

/* ---- walks ---- */

typedef struct walks {
  cloud *cloud;
  float walk[2][STEPS * N_Z], attractor[N_Z];
  dvbf_figure_walks figure;
} walks;

/* Two spirals that end 0.5 apart in the first coordinate, and at the attractor or not. */
static walks *make_walks(size_t n_z) {
  walks *w = test_calloc(1, sizeof *w);
  w->cloud = make_cloud(n_z);
  for (size_t k = 0; k < 2; k++)
    for (size_t t = 0; t < STEPS; t++) {
      double r = exp(-0.05 * (double)t),
             place[N_Z] = {r * sin(0.3 * (double)t), r, r * cos(0.3 * (double)t), 0};
      for (size_t j = 0; j < n_z; j++)
        w->walk[k][t * n_z + j] = t + 1 < STEPS ? (float)place[j] : k && !j ? 0.5f : 0;
    }
  w->figure =
      (dvbf_figure_walks){.n_z = n_z,
                          .walks = 2,
                          .walk = {{"generative", STEPS, w->walk[0]}, {"filtering", STEPS, w->walk[1]}},
                          .attractor = w->attractor,
                          .points = POINTS,
                          .z = w->cloud->z,
                          .angle = w->cloud->angle,
                          .velocity = w->cloud->velocity};
  return w;
}

static void free_walks(walks *w) {
  test_free(w->cloud);
  test_free(w);
}

static void walks_print_the_distance(void **state) {
  (void)state;
  walks *w = make_walks(N_Z);
  dvbf_error error;
  must(dvbf_draw_walks(&w->figure, path_of("walks"), &error), &error);
  drawing d = load("walks");
  assert_int_equal((int)page_width(&d), DV_FIGURE_WIDTH);
  assert_labels(&d, (const char *const[]){"generative", "filtering", "distance between the ends: 0.5 (",
                                          "z along velocity", "z along sin φ", "start", "end", ">step<",
                                          "attractor of the truth", "end to attractor: 0.5", NULL});
  double half = page_width(&d) / 2, height = page_height(&d);
  for (size_t quarter = 0; quarter < 4; quarter++) { /* colours of steps, and a red cross, in every panel */
    double x = quarter % 2 ? half : 0, y = quarter / 2 ? height / 2 + 20 : 70;
    assert_true(count(&d, x, y, half - 110, height / 2 - 100, coloured) > 500);
    assert_true(count(&d, x, y, half - 110, height / 2 - 100, red) > 50);
  }
  release(&d);
  w->figure.attractor = NULL;
  must(dvbf_draw_walks(&w->figure, path_of("walks"), &error), &error);
  d = load("walks");
  assert_int_equal(count(&d, 0, 0, page_width(&d), height, red), 0);
  release(&d);
  free_walks(w);
}

static void walks_survive_odd_data(void **state) {
  (void)state;
  dvbf_error error;
  for (unsigned mask = 0; mask < 64; mask++) {
    if (__builtin_popcount(mask) > 2) continue; /* all mixes would take long */
    size_t n_z = mask & 1 ? 1 + (mask >> 1 & 1) : 3 + (mask >> 1 & 1);
    walks *w = make_walks(n_z);
    if (mask & 4) w->figure.z = NULL;
    if (mask & 8) w->figure.angle = NULL;
    if (mask & 16) w->figure.velocity = NULL, w->figure.walks = 1, w->figure.attractor = NULL;
    if (mask & 32) w->figure.walk[0].steps = w->figure.points = 1, w->figure.walk[0].name = NULL;
    must(dvbf_draw_walks(&w->figure, path_of("odd"), &error), &error);
    drawing d = load("odd");
    assert_true(count(&d, 0, 0, page_width(&d), page_height(&d), dark) > 500);
    release(&d);
    free_walks(w);
  }
  walks *w = make_walks(N_Z);
  w->figure.walk[1].steps = 0;
  assert_refused(dvbf_draw_walks(&w->figure, path_of("no"), &error), &error, DVBF_ARGUMENT, "walk 2");
  w->figure.walk[1].steps = STEPS;
  w->walk[1][7] = NAN;
  assert_refused(dvbf_draw_walks(&w->figure, path_of("no"), &error), &error, DVBF_ARGUMENT, "finite");
  w->figure.walks = 4;
  assert_refused(dvbf_draw_walks(&w->figure, path_of("no"), &error), &error, DVBF_ARGUMENT, "not 4");
  free_walks(w);
}

/* ---- strips ---- */

static void strips_show_images_and_marks(void **state) {
  (void)state;
  dvbf_error error;
  float *images = test_calloc(FRAMES * SIDE * SIDE, sizeof *images);
  for (size_t i = 0; i < SIDE * SIDE; i++) images[2 * SIDE * SIDE + i] = 1; /* frame 3 is white */
  dvbf_strip_row rows[] = {{"ground truth", images, 0}, {"skipped", NULL, 0}, {"generation", images, 5}};
  dvbf_figure_strips f = {
      .frames = FRAMES, .height = SIDE, .width = SIDE, .rows = 3, .row = rows, .training_steps = 15};
  must(dvbf_draw_strips(&f, path_of("strips"), &error), &error);
  drawing d = load("strips");
  assert_labels(&d, (const char *const[]){"ground truth", "generation", "end of the training length",
                                          "observed", "frame", "45", "href=\"#f-strips-", NULL});
  assert_null(strstr(d.svg, "skipped"));
  assert_true(d.svg_length < 500000);
  dv_strips s = dv_strips_of(&f);
  assert_int_equal(s.lines, 3);
  assert_true(s.image_width > 40); /* large enough to see */
  for (size_t k = 1; k < 4; k++) {
    double x, y;
    dv_strips_corner(&s, 1, k, &x, &y);
    assert_int_equal(pixel_at(&d, x + s.image_width / 2, y + s.image_height / 2),
                     k == 2 ? 0xffffff : 0x000000);
  }
  assert_true(count(&d, s.left, s.top, DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - s.left, s.line_pitch, red) >
              500);
  assert_int_equal(count(&d, s.left, s.top + s.line_pitch, DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN - s.left,
                         s.line_pitch, red),
                   0);
  assert_true(count(&d, s.left, s.top, 400, s.line_pitch, blue) > 500);
  release(&d);
  test_free(images);
}

static void strips_show_colours(void **state) {
  (void)state;
  dvbf_error error;
  float *images = test_calloc(FRAMES * SIDE * SIDE * 3, sizeof *images);
  for (size_t i = 0; i < SIDE * SIDE; i++) images[(SIDE * SIDE + i) * 3 + 1] = 1; /* frame 2 is green */
  dvbf_strip_row row = {"ground truth", images, 0};
  dvbf_figure_strips f = {
      .frames = FRAMES, .height = SIDE, .width = SIDE, .rows = 1, .row = &row, .channels = 3};
  must(dvbf_draw_strips(&f, path_of("colours"), &error), &error);
  drawing d = load("colours");
  dv_strips s = dv_strips_of(&f);
  for (size_t k = 0; k < 3; k++) {
    double x, y;
    dv_strips_corner(&s, 0, k, &x, &y);
    assert_int_equal(pixel_at(&d, x + s.image_width / 2, y + s.image_height / 2),
                     k == 1 ? 0x00ff00 : 0x000000);
  }
  release(&d);
  test_free(images);
}

static void strips_of_any_size(void **state) {
  (void)state;
  dvbf_error error = {0};
  enum { MANY = 400 };
  float *images = test_calloc(MANY * SIDE * SIDE, sizeof *images);
  images[5] = NAN, images[6] = -INFINITY, images[7] = 9;
  dvbf_strip_row rows[9] = {{NULL, images, 500}};
  for (size_t i = 1; i < 9; i++) rows[i] = rows[0];
  const size_t frames[] = {1, 15, 16, 61, MANY};
  for (size_t i = 0; i < 5; i++) {
    dvbf_figure_strips f = {.frames = frames[i],
                            .height = i % 2 ? 1 : SIDE,
                            .width = SIDE,
                            .rows = i == 2 ? 8 : 1,
                            .row = rows,
                            .title = "any",
                            .training_steps = i};
    must(dvbf_draw_strips(&f, path_of("any"), &error), &error);
    drawing d = load("any");
    assert_int_equal(strstr(d.svg, "one frame in") != NULL, frames[i] > 60);
    release(&d);
  }
  dvbf_figure_strips f = {.frames = 1, .height = SIDE, .width = SIDE, .rows = 9, .row = rows};
  assert_refused(dvbf_draw_strips(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "9 rows");
  f.rows = 1, f.frames = 0;
  assert_refused(dvbf_draw_strips(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "0 frames");
  f.frames = 1, rows[0].images = NULL;
  assert_refused(dvbf_draw_strips(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "no row has images");
  test_free(images);
}

/* ---- ball ---- */

typedef struct ball {
  float z[POINTS * 4], position[POINTS * 2], velocity[POINTS * 2];
  dvbf_figure_ball figure;
} ball;

/* A latent space that is the state, with coordinates in another order. */
static ball *make_ball(void) {
  ball *b = test_calloc(1, sizeof *b);
  for (size_t i = 0; i < POINTS; i++) {
    float x = (float)fmod((double)i * 0.754878, 1), y = (float)fmod((double)i * 0.569840, 1);
    float vx = (float)fmod((double)i * 0.819173, 1) - 0.5f, vy = (float)fmod((double)i * 0.671044, 1) - 0.5f;
    const float z[4] = {vy, x, vx, y};
    memcpy(b->z + 4 * i, z, sizeof z);
    b->position[2 * i] = x, b->position[2 * i + 1] = y;
    b->velocity[2 * i] = vx, b->velocity[2 * i + 1] = vy;
  }
  b->figure = (dvbf_figure_ball){
      .points = POINTS, .n_z = 4, .z = b->z, .position = b->position, .velocity = b->velocity};
  return b;
}

static void ball_shows_the_checkerboard(void **state) {
  (void)state;
  ball *b = make_ball();
  dvbf_error error;
  must(dvbf_draw_ball(&b->figure, path_of("ball"), &error), &error);
  drawing d = load("ball");
  assert_int_equal((int)page_width(&d), DV_FIGURE_WIDTH);
  assert_labels(&d, (const char *const[]){"z along x position", "z along y velocity", "velocity in x",
                                          "velocity in y", "cell of the true position", NULL});
  double pitch = (DV_FIGURE_WIDTH - 2 * DV_FIGURE_MARGIN + 14) / 3.0, side = pitch - DV_VIEW_LEFT - 14;
  double x = DV_FIGURE_MARGIN + DV_VIEW_LEFT, y = DV_FIGURE_MARGIN, cell = side / 1.06 / 3;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) { /* the middle half of every cell has one colour */
      double left = x + 0.03 / 1.06 * side + (i + 0.25) * cell,
             top = y + 0.03 / 1.06 * side + (j + 0.25) * cell;
      size_t blues = count(&d, left, top, cell / 2, cell / 2, blue);
      size_t oranges = count(&d, left, top, cell / 2, cell / 2, orange);
      assert_true((i + j) % 2 ? oranges > 100 && blues == 0 : blues > 100 && oranges == 0);
    }
  /* Velocity in x changes across, velocity in y upwards: dark blue on one side, yellow on the other. */
  double strip = 0.15 * side;
  x += pitch;
  assert_true(count(&d, x, y, strip, side, blue) > 10 * count(&d, x + side - strip, y, strip, side, blue));
  x += pitch;
  assert_true(count(&d, x, y + side - strip, side, strip, blue) > 10 * count(&d, x, y, side, strip, blue));
  release(&d);
  test_free(b);
}

static void ball_survives_odd_data(void **state) {
  (void)state;
  dvbf_error error = {0};
  for (unsigned mask = 0; mask < 16; mask++) {
    ball *b = make_ball();
    if (mask & 1) b->figure.n_z = 1;
    if (mask & 2) b->figure.points = 1;
    if (mask & 4) b->figure.velocity = NULL, b->figure.box_low = -2, b->figure.box_high = 0.3;
    if (mask == 8 || mask == 9) b->figure.position = NULL;
    if (mask & 8)
      for (size_t i = 0; i < POINTS * 4; i++) b->z[i] = 3, b->position[i / 2] = 0;
    must(dvbf_draw_ball(&b->figure, path_of("odd"), &error), &error);
    drawing d = load("odd");
    assert_true(count(&d, 0, 0, page_width(&d), page_height(&d), dark) > 500);
    release(&d);
    test_free(b);
  }
  ball *b = make_ball();
  b->figure.box_low = 2, b->figure.box_high = 1;
  assert_refused(dvbf_draw_ball(&b->figure, path_of("no"), &error), &error, DVBF_ARGUMENT, "from 2 to 1");
  b->figure.box_low = b->figure.box_high = 0;
  b->position[3] = NAN;
  assert_refused(dvbf_draw_ball(&b->figure, path_of("no"), &error), &error, DVBF_ARGUMENT, "positions");
  b->figure.cells = 1000;
  assert_refused(dvbf_draw_ball(&b->figure, path_of("no"), &error), &error, DVBF_ARGUMENT, "1 to 20");
  b->figure = (dvbf_figure_ball){.points = POINTS, .n_z = 4, .z = b->z};
  assert_refused(dvbf_draw_ball(&b->figure, path_of("no"), &error), &error, DVBF_ARGUMENT, "positions or");
  test_free(b);
}

/* ---- signals ---- */

static void signals_have_a_panel_for_each_column(void **state) {
  (void)state;
  enum { LENGTH = 200, WIDTH = 6 };
  static float truth[LENGTH][WIDTH], prediction[LENGTH][WIDTH];
  static char names[WIDTH][32] = {"level", "flow & heat", "c", "d", "unseen", "unseen"};
  for (size_t t = 0; t < LENGTH; t++)
    for (size_t k = 0; k < WIDTH; k++) {
      truth[t][k] = (float)sin((double)(t * (k + 1)) / 20);
      prediction[t][k] = t < 150 ? truth[t][k] + 0.1F : 1e9F; /* which does not flatten the rest */
    }
  for (size_t t = 30; t < 60; t++) truth[t][0] = NAN;
  dvbf_figure_signals f = {.steps = LENGTH,
                           .columns = WIDTH,
                           .truth = truth[0],
                           .prediction = prediction[0],
                           .names = names,
                           .observed = 20,
                           .title = "Signals"};
  dvbf_error error = {0};
  must(dvbf_draw_signals(&f, path_of("signals"), &error), &error);
  drawing d = load("signals");
  assert_labels(&d, (const char *const[]){"Signals", "measured", "predicted", "end of observation", "level",
                                          "flow &amp; heat", "c", "d", "step", NULL});
  assert_null(strstr(d.svg, "unseen"));
  assert_null(strstr(d.svg, "000000<"));
  double quarter = (page_height(&d) - 90) / 4;
  for (size_t k = 0; k < 4; k++)
    assert_true(count(&d, 100, 90 + (double)k * quarter, page_width(&d) - 120, quarter - 40, orange) > 300);
  release(&d);
  f.names = NULL;
  f.columns = 1;
  f.observed = 0;
  must(dvbf_draw_signals(&f, path_of("signals"), &error), &error);
  d = load("signals");
  assert_labels(&d, (const char *const[]){"x0", NULL});
  assert_null(strstr(d.svg, "end of observation"));
  release(&d);
  f.steps = 1;
  assert_refused(dvbf_draw_signals(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "no signal");
}

/* ---- curves ---- */

static void curves_have_a_panel_for_each_quantity(void **state) {
  (void)state;
  enum { COUNT = 50 };
  double update[COUNT], train[COUNT], valid[COUNT], prediction[COUNT], kl[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    update[i] = 100 * (double)(i + 1);
    train[i] = i < 3 ? -1e7 : 800 - 500 / (double)i;
    valid[i] = train[i] - 20;
    prediction[i] = 1 / (double)(i + 1);
    kl[i] = 5 + sin((double)i);
  }
  dvbf_learning_run runs[] = {{"first < second", COUNT, update, train, valid, prediction, kl},
                              {"third & fourth", COUNT, update, NULL, train, NULL, NULL}};
  dvbf_figure_curves f = {.runs = 2, .run = runs, .title = "Learning"};
  dvbf_error error = {0};
  must(dvbf_draw_curves(&f, path_of("curves"), &error), &error);
  drawing d = load("curves");
  assert_labels(&d, (const char *const[]){"Learning", "first &lt; second", "third &amp; fourth", "training",
                                          "validation", "updates", "bound (nats per frame)",
                                          "prediction error / pixel variance", "KL (nats per frame)", "4000",
                                          NULL});
  assert_null(strstr(d.svg, "000000<")); /* the first bounds do not flatten the rest */
  double third = page_width(&d) / 3;
  for (size_t k = 0; k < 3; k++) assert_true(count(&d, (double)k * third, 110, third, 200, blue) > 300);
  assert_true(count(&d, 0, 110, third, 200, orange) > 300);
  assert_int_equal(count(&d, third, 110, 2 * third, 200, orange), 0);
  release(&d);
  /* Values that are not finite, one value, nothing finite at all. */
  train[20] = valid[30] = prediction[7] = NAN, kl[9] = INFINITY, prediction[8] = 0;
  must(dvbf_draw_curves(&f, path_of("curves"), &error), &error);
  runs[0].count = runs[1].count = 1;
  must(dvbf_draw_curves(&f, path_of("curves"), &error), &error);
  update[0] = train[0] = valid[0] = prediction[0] = kl[0] = NAN;
  must(dvbf_draw_curves(&f, path_of("curves"), &error), &error);
  d = load("curves");
  release(&d);
  runs[0].count = runs[1].count = 0;
  assert_refused(dvbf_draw_curves(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "no learning curve");
}

static void curves_of_many_runs(void **state) {
  (void)state;
  enum { RUNS = 30 };
  const double update[] = {1, 2}, bound[] = {3, 4};
  dvbf_learning_run runs[RUNS];
  for (size_t i = 0; i < RUNS; i++)
    runs[i] = (dvbf_learning_run){"a run with a rather long name", 2, update, bound, bound, NULL, NULL};
  dvbf_error error;
  must(dvbf_draw_curves(&(dvbf_figure_curves){.runs = RUNS, .run = runs}, path_of("many"), &error), &error);
  drawing d = load("many");
  assert_true(page_height(&d) > 400); /* room for all rows of names */
  release(&d);
}

/* ---- errors ---- */

static void errors_choose_their_axis(void **state) {
  (void)state;
  enum { HORIZON = 40 };
  double good[HORIZON], mean_path[HORIZON], poor[HORIZON], repeat[HORIZON];
  for (size_t i = 0; i < HORIZON; i++) {
    good[i] = 0.004 * exp(0.1 * (double)i);
    mean_path[i] = good[i] / 2;
    poor[i] = 0.4 + 0.01 * (double)i;
    repeat[i] = 1.8 - exp(-(double)i);
  }
  dvbf_error_curve models[] = {{"DVBF-LL", HORIZON, good, mean_path}, {"DKF", HORIZON / 2, poor, NULL}};
  dvbf_figure_errors f = {.models = 2,
                          .model = models,
                          .repeat_horizon = HORIZON,
                          .repeat = repeat,
                          .observed = 5,
                          .training_steps = 15};
  dvbf_error error = {0};
  must(dvbf_draw_errors(&f, path_of("errors"), &error), &error);
  drawing d = load("errors");
  assert_labels(&d,
                (const char *const[]){"DVBF-LL", "DKF", "without noise", "persistence", "mean image",
                                      "end of the training length", "squared error / pixel variance",
                                      "predicted frames after 5 observed frames", ">0.01<", ">0.1<", NULL});
  assert_true(count(&d, 100, 80, 680, 320, blue) > 500 && count(&d, 100, 80, 680, 320, orange) > 500);
  assert_true(count(&d, 100, 80, 680, 320, red) > 500);
  release(&d);
  models[0] = models[1], f.models = 1, f.training_steps = 0;
  must(dvbf_draw_errors(&f, path_of("errors"), &error), &error);
  d = load("errors");
  assert_labels(&d, (const char *const[]){">0.0<", ">0.5<", ">1.0<", NULL}); /* linear, from 0 */
  assert_null(strstr(d.svg, ">0.01<"));
  assert_null(strstr(d.svg, "without noise"));
  assert_int_equal(count(&d, 100, 80, 680, 320, red), 0);
  release(&d);
  poor[3] = NAN, poor[4] = INFINITY, poor[5] = -1, poor[6] = 0, repeat[0] = NAN;
  must(dvbf_draw_errors(&f, path_of("errors"), &error), &error);
  for (size_t i = 0; i < HORIZON; i++) poor[i] = repeat[i] = i ? NAN : 1;
  must(dvbf_draw_errors(&f, path_of("errors"), &error), &error);
  models[0].horizon = 1, f.repeat = NULL;
  must(dvbf_draw_errors(&f, path_of("errors"), &error), &error);
  models[0].horizon = 0;
  assert_refused(dvbf_draw_errors(&f, path_of("no"), &error), &error, DVBF_ARGUMENT, "no prediction error");
}

/* ---- Files ---- */

static void unwritable_paths_are_refused(void **state) {
  (void)state;
  const double one[] = {1};
  const float images[] = {0};
  cloud *c = make_cloud(N_Z);
  walks *w = make_walks(N_Z);
  ball *b = make_ball();
  dvbf_figure_latent latent = {.models = 1, .model = {model_of(c, NULL, N_Z)}};
  dvbf_strip_row row = {"row", images, 0};
  dvbf_figure_strips strips = {.frames = 1, .height = 1, .width = 1, .rows = 1, .row = &row};
  dvbf_learning_run run = {.count = 1, .update = one, .kl = one};
  dvbf_figure_curves curves = {.runs = 1, .run = &run};
  dvbf_figure_errors errors = {.repeat_horizon = 1, .repeat = one};
  const char *name = "no/such/folder/figure";
  dvbf_error e = {0};
  assert_refused(dvbf_draw_latent(&latent, path_of(name), &e), &e, DVBF_IO, "figure.png");
  assert_refused(dvbf_draw_walks(&w->figure, path_of(name), &e), &e, DVBF_IO, "figure.png");
  assert_refused(dvbf_draw_strips(&strips, path_of(name), &e), &e, DVBF_IO, "figure.png");
  assert_refused(dvbf_draw_ball(&b->figure, path_of(name), &e), &e, DVBF_IO, "figure.png");
  assert_refused(dvbf_draw_curves(&curves, path_of(name), &e), &e, DVBF_IO, "figure.png");
  assert_refused(dvbf_draw_errors(&errors, path_of(name), &e), &e, DVBF_IO, "figure.png");
  char endless[5000];
  memset(endless, 'a', sizeof endless - 1);
  endless[sizeof endless - 1] = 0;
  assert_refused(dvbf_draw_errors(&errors, endless, &e), &e, DVBF_ARGUMENT, "longer than");
  curves.title = "not UTF-8: \xff\xfe";
  assert_int_equal(dvbf_draw_curves(&curves, path_of("text"), &e), DVBF_ARGUMENT);
  assert_int_not_equal(access(path_of("text.png"), F_OK), 0);
  test_free(c);
  free_walks(w);
  test_free(b);
}

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
    if (e->d_name[0] != '.') unlink(path_of(e->d_name));
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
      cmocka_unit_test(regression_hands_out_coefficients),
      cmocka_unit_test(plane_shows_the_ring),
      cmocka_unit_test(planes_are_orthonormal),
      cmocka_unit_test(latent_shows_ring_and_regressions),
      cmocka_unit_test(latent_colours_are_those_of_the_angle),
      cmocka_unit_test(latent_survives_odd_data),
      cmocka_unit_test(latent_refuses_what_it_cannot_draw),
      cmocka_unit_test(walks_print_the_distance),
      cmocka_unit_test(walks_survive_odd_data),
      cmocka_unit_test(strips_show_images_and_marks),
      cmocka_unit_test(strips_show_colours),
      cmocka_unit_test(strips_of_any_size),
      cmocka_unit_test(ball_shows_the_checkerboard),
      cmocka_unit_test(ball_survives_odd_data),
      cmocka_unit_test(signals_have_a_panel_for_each_column),
      cmocka_unit_test(curves_have_a_panel_for_each_quantity),
      cmocka_unit_test(curves_of_many_runs),
      cmocka_unit_test(errors_choose_their_axis),
      cmocka_unit_test(unwritable_paths_are_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
