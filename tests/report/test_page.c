/* The page builder: what is written is read back as text, and its data are decoded again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"

#include <dirent.h>
#include <dvbf/report.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/dvbf-page-XXXXXX";
static char *written; /* the last page that was read back */

static const char *path_of(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void put_file(const char *name, const void *bytes, size_t size) {
  FILE *file = fopen(path_of(name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static size_t get_file(const char *name, char **out) {
  FILE *file = fopen(path_of(name), "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  *out = realloc(*out, size + 1);
  assert_int_equal(fread(*out, 1, size, file), size);
  (*out)[size] = 0;
  fclose(file);
  return size;
}

static size_t files_in_folder(void) {
  DIR *d = opendir(folder);
  size_t count = 0;
  for (struct dirent *entry; (entry = readdir(d));) count += entry->d_name[0] != '.';
  closedir(d);
  return count;
}

static dvbf_page *new_page(const char *title) {
  dvbf_page *page = NULL;
  dvbf_error error = {0};
  assert_int_equal(dvbf_page_new(&page, title, &error), DVBF_OK);
  return page;
}

/* Writes the page, reads it into `written` and frees it. */
static size_t finish(dvbf_page *page) {
  dvbf_error error = {0};
  if (dvbf_page_write(page, path_of("page.html"), &error)) fail_msg("%s", error.message);
  dvbf_page_free(page);
  return get_file("page.html", &written);
}

static void assert_has(const char *part) {
  if (!strstr(written, part)) fail_msg("\"%s\" is missing in the page", part);
}

static void assert_without(const char *part) {
  if (strstr(written, part)) fail_msg("\"%s\" is in the page", part);
}

/* ---- Decoding ---- */

/* The JSON of the first figure of that class. */
static json_t *data_of(const char *class_name) {
  char begin[96];
  json_error_t error;
  snprintf(begin, sizeof begin, "<figure class=\"%s\"><script type=\"application/json\">", class_name);
  char *from = strstr(written, begin), *to = from ? strstr(from, "</script>") : NULL;
  assert_non_null(to);
  from += strlen(begin);
  json_t *json = json_loadb(from, (size_t)(to - from), 0, &error);
  if (!json) fail_msg("%s", error.text);
  return json;
}

static int digit(char c) {
  return c >= 'A' && c <= 'Z'   ? c - 'A'
         : c >= 'a' && c <= 'z' ? c - 'a' + 26
         : c >= '0' && c <= '9' ? c - '0' + 52
         : c == '+'             ? 62
         : c == '/'             ? 63
                                : -1;
}

/* Bytes of base64; `out` must have room. */
static size_t decode(const char *text, unsigned char *out) {
  size_t n = 0;
  uint32_t bits = 0, count = 0;
  for (; digit(*text) >= 0; text++) {
    bits = bits << 6 | (uint32_t)digit(*text);
    if ((count += 6) >= 8) out[n++] = (unsigned char)(bits >> (count -= 8));
  }
  return n;
}

/* Values of an axis or a column; NAN where there is none. */
static size_t values_of(const json_t *series, double *out) {
  static unsigned char bytes[1 << 20];
  size_t n = decode(json_string_value(json_object_get(series, "values")), bytes) / 2;
  double low = json_number_value(json_object_get(series, "low"));
  double high = json_number_value(json_object_get(series, "high"));
  for (size_t i = 0; i < n; i++) {
    int code = bytes[2 * i] | bytes[2 * i + 1] << 8;
    out[i] = code == 65535 ? NAN : low + (high - low) * code / 65534;
  }
  return n;
}

static const json_t *named(const json_t *list, const char *name) {
  size_t i;
  json_t *entry;
  json_array_foreach(
      list, i, entry) if (!strcmp(json_string_value(json_object_get(entry, "name")), name)) return entry;
  fail_msg("nothing is called %s", name);
  return NULL;
}

/* ---- Words and tables ---- */

static void text_is_escaped(void **state) {
  (void)state;
  dvbf_page *page = new_page("a < b & \"c\" 'd'");
  const char *cells[] = {"<h>", NULL, "paper", "<td>&amp;", "ours", "5 > 3"};
  dvbf_table table = {"cap \"t\" <i>", 3, 2, cells, "paper"};
  assert_int_equal(dvbf_page_heading(page, 1, "<script>alert(1)</script>", NULL), DVBF_OK);
  assert_int_equal(dvbf_page_heading(page, 1, "Second & last", NULL), DVBF_OK);
  assert_int_equal(dvbf_page_text(page, "one <p>\n\n\ntwo", NULL), DVBF_OK);
  assert_int_equal(dvbf_page_note(page, "left out: \"x\" & 'y'", NULL), DVBF_OK);
  assert_int_equal(dvbf_page_table(page, &table, NULL), DVBF_OK);
  finish(page);
  assert_has("<title>a &lt; b &amp; &quot;c&quot; &#39;d&#39;</title>");
  assert_has("<h2 id=\"chapter-1\">&lt;script&gt;alert(1)&lt;/script&gt;</h2>");
  assert_has("<a href=\"#chapter-2\">Second &amp; last</a>");
  assert_has("<p>one &lt;p&gt;</p>\n<p>two</p>");
  assert_has("left out: &quot;x&quot; &amp; &#39;y&#39;</p>");
  assert_has("aria-label=\"cap &quot;t&quot; &lt;i&gt;\"");
  assert_has("<tr class=\"apart\"><th scope=\"row\">paper</th><td>&lt;td&gt;&amp;amp;</td></tr>");
  assert_has("<tr><th scope=\"row\">ours</th><td>5 &gt; 3</td></tr>");
  assert_without("<script>alert");
}

static void page_forbids_requests(void **state) {
  (void)state;
  finish(new_page("empty"));
  assert_has("default-src 'none'");
  assert_without("http:");
  assert_without("https:");
  assert_has("</html>\n");
}

static void settings_show_what_is_not_default(void **state) {
  (void)state;
  dvbf_settings *settings = NULL;
  dvbf_page *page = new_page("settings");
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  assert_int_equal(dvbf_settings_set(settings, "latent", "7", NULL), DVBF_OK);
  assert_int_equal(dvbf_page_settings(page, "All <settings>", settings, NULL), DVBF_OK);
  finish(page);
  assert_has("<summary>All &lt;settings&gt;</summary>");
  assert_has(
      "<tr class=\"apart\"><th scope=\"row\">latent</th><td class=\"words\">7 <small>default 3</small>");
  size_t apart = 0;
  for (const char *at = written; (at = strstr(at, "<tr class=\"apart\">")); at++) apart++;
  assert_int_equal(apart, 1);
  dvbf_setting_info info;
  for (size_t i = 0; dvbf_settings_table("train", i, &info); i++) {
    char cell[96];
    snprintf(cell, sizeof cell, "<th scope=\"row\">%s</th>", info.name);
    assert_has(cell);
  }
  dvbf_settings_free(settings);
}

/* ---- Pictures ---- */

static void pictures_are_embedded(void **state) {
  (void)state;
  static const char svg[] = "<svg xmlns='x'/>";
  static const unsigned char png[] = {0x89, 'P', 'N', 'G', 0, 255, 62, 63};
  dvbf_page *page = new_page("pictures");
  dvbf_error error = {0};
  put_file("a.svg", svg, sizeof svg - 1);
  put_file("b.png", png, sizeof png);
  put_file("empty.png", "", 0);
  assert_int_equal(dvbf_page_picture(page, path_of("a.svg"), "cap <a>", "alt \"a\"", &error), DVBF_OK);
  assert_int_equal(dvbf_page_picture(page, path_of("b.png"), NULL, "b", &error), DVBF_OK);
  assert_int_equal(dvbf_page_picture(page, path_of("none.png"), NULL, "", &error), DVBF_IO);
  assert_non_null(strstr(error.message, "none.png"));
  assert_int_equal(dvbf_page_picture(page, path_of("a.gif"), NULL, "", &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_page_picture(page, path_of("empty.png"), NULL, "", &error), DVBF_FORMAT);
  finish(page);
  assert_has("<img alt=\"alt &quot;a&quot;\" src=\"data:image/svg+xml;base64,PHN2ZyB4bWxucz0neCcvPg==\">");
  assert_has("<figcaption>cap &lt;a&gt;</figcaption>");
  char *at = strstr(written, "data:image/png;base64,");
  unsigned char back[64];
  assert_non_null(at);
  assert_int_equal(decode(at + strlen("data:image/png;base64,"), back), sizeof png);
  assert_memory_equal(back, png, sizeof png);
}

/* ---- Latent space ---- */

enum { POINTS = 9001, N_Z = 4 };

typedef struct cloud {
  float z[POINTS][N_Z], linear[POINTS], angle[POINTS][2];
  dvbf_space_column columns[2];
  dvbf_space space;
} cloud;

/* linear = 2 z_1 - z_4 + 3; the angle grows through many turns. */
static cloud *make_cloud(void) {
  cloud *c = test_calloc(1, sizeof *c);
  for (size_t i = 0; i < POINTS; i++) {
    for (size_t j = 0; j < N_Z; j++) c->z[i][j] = (float)((double)(N_Z - j) * sin((double)((j + 1) * i)));
    c->linear[i] = 2 * c->z[i][0] - c->z[i][3] + 3;
    c->angle[i][0] = 0.01f * (float)i;
  }
  c->columns[0] = (dvbf_space_column){"linear </script>", c->linear, 0, false, NULL};
  c->columns[1] = (dvbf_space_column){"angle", c->angle[0], 2, true, "angles"};
  c->space = (dvbf_space){"cloud", POINTS, N_Z, c->z[0], 2, c->columns};
  return c;
}

static void space_keeps_its_points(void **state) {
  (void)state;
  static double at[POINTS], other[POINTS];
  cloud *c = make_cloud();
  dvbf_page *page = new_page("space");
  dvbf_error error = {0};
  if (dvbf_page_space(page, &c->space, &error)) fail_msg("%s", error.message);
  size_t size = finish(page);
  assert_in_range(size, 1000, 300000);
  assert_has("Shown are 4000 of 9001 points, evenly chosen.");
  assert_without("linear </script>");
  json_t *data = data_of("space");
  const json_t *axes = json_object_get(data, "axes"), *columns = json_object_get(data, "columns");
  assert_int_equal(json_array_size(axes), N_Z + 3 + 1);
  assert_int_equal(values_of(named(axes, "z2"), at), DVBF_SPACE_POINTS);
  for (size_t k = 0; k < DVBF_SPACE_POINTS; k++) {
    size_t i = k * POINTS / DVBF_SPACE_POINTS;
    if (fabs(at[k] - c->z[i][1]) > 1e-3) fail_msg("point %zu is %g, not %g", k, at[k], c->z[i][1]);
  }
  /* What is linear in z is read off it exactly. */
  values_of(named(columns, "linear </script>"), at);
  values_of(named(axes, "linear </script> read off z"), other);
  for (size_t k = 0; k < DVBF_SPACE_POINTS; k++) assert_true(fabs(at[k] - other[k]) < 1e-3);
  values_of(named(columns, "angle"), at);
  for (size_t k = 0; k < DVBF_SPACE_POINTS; k++) {
    double truth = c->angle[k * POINTS / DVBF_SPACE_POINTS][0];
    assert_true(fabs(at[k]) <= M_PI + 1e-6 && fabs(remainder(at[k] - truth, 2 * M_PI)) < 1e-3);
  }
  json_decref(data);
  test_free(c);
}

static void space_leaves_out_what_is_not_finite(void **state) {
  (void)state;
  static double at[POINTS];
  cloud *c = make_cloud();
  dvbf_error error = {0};
  dvbf_page *page = new_page("space");
  c->space.points = 10;
  c->z[3][2] = NAN;
  c->z[5][0] = INFINITY;
  c->linear[4] = NAN;
  c->columns[1].name = "b\xff\"\\"; /* not UTF-8 */
  if (dvbf_page_space(page, &c->space, &error)) fail_msg("%s", error.message);
  for (size_t i = 0; i < 10; i++) c->z[i][0] = NAN;
  assert_int_equal(dvbf_page_space(page, &c->space, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "none of them is finite"));
  c->space.points = 0;
  assert_int_equal(dvbf_page_space(page, &c->space, &error), DVBF_ARGUMENT);
  finish(page);
  assert_has("2 points that are not finite are left out.");
  assert_null(strstr(strstr(written, "<figure class=\"space\">") + 1, "<figure class=\"space\">"));
  json_t *data = data_of("space");
  assert_int_equal(values_of(named(json_object_get(data, "columns"), "linear </script>"), at), 8);
  named(json_object_get(data, "columns"), "b?\"\\");
  assert_true(isnan(at[3])); /* point 4, after point 3 was left out */
  for (size_t k = 0; k < 8; k++)
    if (k != 3) assert_true(isfinite(at[k]));
  json_decref(data);
  test_free(c);
}

/* Whichever allocation fails, the page has all axes, or none is written. */
static void space_is_whole_without_memory(void **state) {
  (void)state;
  cloud *c = make_cloud();
  dvbf_error error = {0};
  dvbf_status status = DVBF_MEMORY;
  c->space.points = 50;
  for (unsigned long n = 1; status; n++) {
    dvbf_page *page = new_page("space");
    fault.memory = n;
    status = dvbf_page_space(page, &c->space, &error);
    fault.memory = 0;
    if (status && status != DVBF_MEMORY) fail_msg("allocation %lu: %s", n, error.message);
    if (status) dvbf_page_free(page);
    if (!status) finish(page);
  }
  json_t *data = data_of("space");
  assert_int_equal(json_array_size(json_object_get(data, "axes")), N_Z + 3 + 1);
  json_decref(data);
  test_free(c);
}

/* ---- Film ---- */

static void film_keeps_its_pixels(void **state) {
  (void)state;
  enum { SEQUENCES = 2, FRAMES = 3, HEIGHT = 2, WIDTH = 5, PIXELS = SEQUENCES * FRAMES * HEIGHT * WIDTH };
  float truth[PIXELS], guess[PIXELS];
  unsigned char back[PIXELS];
  uint32_t length[] = {3, 2};
  for (int i = 0; i < PIXELS; i++) truth[i] = -1 + 2 * (float)i / (PIXELS - 1), guess[i] = 3 * truth[i];
  dvbf_film_row rows[] = {{"truth", truth, 0}, {"guess <b>", guess, 1}};
  const char *names[] = {"first", "</script>"};
  dvbf_film film = {"A film", SEQUENCES, FRAMES, HEIGHT, WIDTH, 2, rows, length, 2, 0, 0, names, 1};
  dvbf_page *page = new_page("film");
  dvbf_error error = {0};
  if (dvbf_page_film(page, &film, &error)) fail_msg("%s", error.message);
  guess[7] = NAN;
  assert_int_equal(dvbf_page_film(page, &film, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "guess"));
  film.frames = 0;
  assert_int_equal(dvbf_page_film(page, &film, &error), DVBF_ARGUMENT);
  finish(page);
  json_t *data = data_of("film"), *list = json_object_get(data, "rows");
  assert_int_equal(json_integer_value(json_object_get(data, "training")), 2);
  assert_int_equal(json_integer_value(json_array_get(json_object_get(data, "length"), 1)), 2);
  assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "observed")), 1);
  assert_int_equal(decode(json_string_value(json_object_get(json_array_get(list, 0), "pixels")), back),
                   PIXELS);
  for (int i = 0; i < PIXELS; i++) assert_int_equal(back[i], lround(255.0 * i / (PIXELS - 1)));
  decode(json_string_value(json_object_get(json_array_get(list, 1), "pixels")), back);
  assert_int_equal(back[0], 0); /* beyond black and white of the first row */
  assert_int_equal(back[PIXELS - 1], 255);
  json_decref(data);
}

/* ---- The file ---- */

static void file_appears_whole_or_not_at_all(void **state) {
  (void)state;
  dvbf_page *page = new_page("file");
  dvbf_error error = {0};
  put_file("kept.html", "before", 6);
  size_t files = files_in_folder();
  assert_int_equal(dvbf_page_write(page, path_of("none/page.html"), &error), DVBF_IO);
  assert_non_null(strstr(error.message, "none/page.html"));
  mkdir(path_of("taken.html"), 0777);
  assert_int_equal(dvbf_page_write(page, path_of("taken.html"), &error), DVBF_IO);
  assert_int_equal(files_in_folder(), files + 1);
  assert_int_equal(dvbf_page_write(page, path_of("kept.html"), &error), DVBF_OK);
  assert_int_equal(files_in_folder(), files + 1);
  get_file("kept.html", &written);
  assert_has("<title>file</title>");
  dvbf_page_free(page);
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  dvbf_page *page = new_page("wrong");
  dvbf_error error = {0};
  dvbf_table table = {0};
  assert_int_equal(dvbf_page_heading(page, 4, "x", &error), DVBF_ARGUMENT);
  assert_int_equal(dvbf_page_table(page, &table, &error), DVBF_ARGUMENT);
  assert_non_null(strstr(error.message, "0 rows"));
  dvbf_page_free(page);
  dvbf_page_free(NULL);
}

static int set_up(void **state) {
  (void)state;
  return !mkdtemp(folder);
}

static int tear_down(void **state) {
  (void)state;
  char line[64];
  free(written);
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_is_escaped),
      cmocka_unit_test(page_forbids_requests),
      cmocka_unit_test(settings_show_what_is_not_default),
      cmocka_unit_test(pictures_are_embedded),
      cmocka_unit_test(space_keeps_its_points),
      cmocka_unit_test(space_leaves_out_what_is_not_finite),
      cmocka_unit_test(space_is_whole_without_memory),
      cmocka_unit_test(film_keeps_its_pixels),
      cmocka_unit_test(file_appears_whole_or_not_at_all),
      cmocka_unit_test(wrong_arguments_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
