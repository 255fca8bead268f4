/* HTML pages (dvbf_page_new, dvbf_page_write): text, tables, settings, pictures and videos in one file that
 * needs no network. Script, style, images and data are inside, and its content security policy makes the
 * browser refuse every request. The figures are data URLs of <img>, where an SVG cannot run scripts. An
 * addition that fails is removed as a whole. */
#include "report/page.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/text.h"
#include "report/drawing.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Additions ---- */

dv_page_mark dv_page_begin(const dvbf_page *page) {
  return (dv_page_mark){page->body.length, page->contents.length, page->chapters};
}

dvbf_status dv_page_end(dvbf_page *page, dv_page_mark mark, dvbf_status status, dvbf_error *error) {
  if (!status && (page->body.failed || page->contents.failed))
    status = dv_fail_memory(error, "making the report");
  if (!status) return DVBF_OK;
  page->body.length = mark.body;
  page->contents.length = mark.contents;
  page->chapters = mark.chapters;
  page->body.failed = page->contents.failed = false;
  return status;
}

dvbf_status dvbf_page_new(dvbf_page **out, const char *title, dvbf_error *error) {
  dvbf_page *page = dv_calloc(1, sizeof *page);
  if (page) page->title = dv_strdup(title);
  if (!page || !page->title) {
    dvbf_page_free(page);
    return dv_fail_memory(error, "making the report");
  }
  *out = page;
  return DVBF_OK;
}

void dvbf_page_free(dvbf_page *page) {
  if (!page) return;
  dv_markup_free(&page->body);
  dv_markup_free(&page->contents);
  DV_FREE(page->title, page);
}

/* ---- Text ---- */

dvbf_status dvbf_page_heading(dvbf_page *page, unsigned level, const char *text, dvbf_error *error) {
  if (level < 1 || level > 3)
    return dv_fail(error, DVBF_ARGUMENT, "a heading of level %u: it must be 1, 2 or 3", level);
  dv_page_mark mark = dv_page_begin(page);
  dv_markup *m = &page->body;
  if (level == 1) {
    page->chapters++;
    dv_markup_format(&page->contents, "<li><a href=\"#chapter-%zu\">", page->chapters);
    dv_markup_text(&page->contents, text);
    dv_markup_raw(&page->contents, "</a></li>\n");
    dv_markup_format(m, "<h2 id=\"chapter-%zu\">", page->chapters);
  } else {
    dv_markup_format(m, "<h%u>", level + 1); /* h1 is the title */
  }
  dv_markup_text(m, text);
  dv_markup_format(m, "</h%u>\n", level + 1);
  return dv_page_end(page, mark, DVBF_OK, error);
}

dvbf_status dvbf_page_text(dvbf_page *page, const char *text, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  char *copy = dv_strdup(text);
  dvbf_status status = copy ? DVBF_OK : dv_fail_memory(error, "making the report");
  for (char *at = copy; at && *at;) {
    char *gap = strstr(at, "\n\n"), *next = gap ? gap + strspn(gap, "\n") : at + strlen(at);
    if (gap) *gap = 0;
    if (*at) dv_markup_element(&page->body, "p", at);
    at = next;
  }
  dv_free(copy);
  return dv_page_end(page, mark, status, error);
}

dvbf_status dv_page_paragraph(dvbf_page *page, const char *class, const char *text, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup_format(&page->body, "<p class=\"%s\">", class);
  dv_markup_text(&page->body, text);
  dv_markup_raw(&page->body, "</p>\n");
  return dv_page_end(page, mark, DVBF_OK, error);
}

dvbf_status dvbf_page_note(dvbf_page *page, const char *text, dvbf_error *error) {
  return dv_page_paragraph(page, "note", text, error);
}

dvbf_status dv_page_fold(dvbf_page *page, const char *summary, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup_raw(&page->body, "<details>\n");
  dv_markup_element(&page->body, "summary", summary);
  return dv_page_end(page, mark, DVBF_OK, error);
}

dvbf_status dv_page_unfold(dvbf_page *page, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup_raw(&page->body, "</details>\n");
  return dv_page_end(page, mark, DVBF_OK, error);
}

/* ---- Tables ---- */

enum { CELL = 40 };

dvbf_status dv_table_init(dvbf_table *table, const char *caption, size_t rows, size_t columns,
                          dvbf_error *error) {
  size_t count = rows * columns;
  const char **cells = dv_calloc(count, sizeof *cells + CELL); /* the text stands behind the pointers */
  for (size_t i = 0; cells && i < count; i++) cells[i] = (char *)(cells + count) + i * CELL;
  *table = (dvbf_table){.caption = caption, .rows = rows, .columns = columns, .cells = cells};
  return cells ? DVBF_OK : dv_fail(error, DVBF_MEMORY, "out of memory for a table");
}

void dv_table_clear(dvbf_table *table) {
  dv_free((void *)table->cells);
  *table = (dvbf_table){0};
}

dvbf_table dv_table_of(const char *caption, size_t rows, const char *const *headings) {
  dvbf_table table;
  size_t columns = 0;
  while (headings[columns]) columns++;
  dv_table_init(&table, caption, rows + 1, columns, NULL);
  for (size_t k = 0; k < columns; k++) dv_table_put(&table, 0, k, "%s", headings[k]);
  return table;
}

dvbf_status dv_table_end(dvbf_page *page, dvbf_table *table, dvbf_error *error) {
  dvbf_status status = table->cells ? dvbf_page_table(page, table, error)
                                    : dv_fail(error, DVBF_MEMORY, "out of memory for a table");
  dv_table_clear(table);
  return status;
}

void dv_table_put(dvbf_table *t, size_t row, size_t column, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  va_list arguments;
  if (!t->cells) return;
  va_start(arguments, format);
  vsnprintf((char *)t->cells[row * t->columns + column], CELL, format, arguments);
  va_end(arguments);
}

void dv_table_number(dvbf_table *t, size_t row, size_t column, const char *format, double value) {
  char text[DV_RESULT];
  dv_table_put(t, row, column, "%s", isnan(value) ? "–" : dv_result_text(text, format, value));
}

/* A wide table scrolls inside its own frame, which the keyboard reaches too; the caption stays put. */
static void begin_table(dvbf_page *page, const char *caption) {
  dv_markup *m = &page->body;
  if (caption) dv_markup_raw(m, "<p class=\"caption\" aria-hidden=\"true\">");
  dv_markup_text(m, caption);
  if (caption) dv_markup_raw(m, "</p>\n");
  dv_markup_raw(m, "<div class=\"table\" role=\"group\" tabindex=\"0\" aria-label=\"");
  dv_markup_text(m, caption ? caption : "Table");
  dv_markup_raw(m, "\"><table>\n");
}

static void add_cell(dv_markup *m, const dvbf_table *t, size_t row, size_t column) {
  const char *tag = row && column ? "td" : "th", *text = t->cells[row * t->columns + column];
  const char *scope = !row ? " scope=\"col\"" : !column ? " scope=\"row\"" : "";
  dv_markup_format(m, "<%s%s>", tag, scope);
  dv_markup_text(m, text);
  dv_markup_format(m, "</%s>", tag);
}

dvbf_status dvbf_page_table(dvbf_page *page, const dvbf_table *table, dvbf_error *error) {
  if (!table->rows || !table->columns || !table->cells)
    return dv_fail(error, DVBF_ARGUMENT, "a table of %zu rows and %zu columns: both must be at least 1",
                   table->rows, table->columns);
  dv_page_mark mark = dv_page_begin(page);
  dv_markup *m = &page->body;
  begin_table(page, table->caption);
  for (size_t i = 0; i < table->rows; i++) {
    const char *first = table->cells[i * table->columns], *apart = table->emphasis;
    bool emphasis = i && apart && first && !strncmp(first, apart, strlen(apart));
    dv_markup_raw(m, !i ? "<thead><tr>" : emphasis ? "<tr class=\"apart\">" : "<tr>");
    for (size_t j = 0; j < table->columns; j++) add_cell(m, table, i, j);
    dv_markup_raw(m, i ? "</tr>\n" : "</tr></thead>\n<tbody>\n");
  }
  dv_markup_raw(m, "</tbody></table></div>\n");
  return dv_page_end(page, mark, DVBF_OK, error);
}

/* As numbers if both are: 1e-3 is 0.001. */
static bool same_value(const char *a, const char *b) {
  DV_PLAIN_NUMBERS;
  char *end_a, *end_b;
  double x = strtod(a, &end_a), y = strtod(b, &end_b);
  bool numbers = end_a != a && !*end_a && end_b != b && !*end_b;
  return numbers ? x == y : !strcmp(a, b);
}

static void add_setting(dv_markup *m, const dvbf_setting_info *info, const char *value) {
  bool usual = same_value(value, info->initial);
  dv_markup_raw(m, usual ? "<tr>" : "<tr class=\"apart\">");
  dv_markup_raw(m, "<th scope=\"row\">");
  dv_markup_text(m, info->name);
  dv_markup_raw(m, "</th><td class=\"words\">");
  dv_markup_text(m, value);
  if (!usual) {
    dv_markup_raw(m, " <small>default ");
    dv_markup_text(m, info->initial);
    dv_markup_raw(m, "</small>");
  }
  dv_markup_raw(m, "</td><td class=\"words\">");
  dv_markup_text(m, info->help);
  dv_markup_raw(m, "</td></tr>\n");
}

dvbf_status dvbf_page_settings(dvbf_page *page, const char *caption, const dvbf_settings *settings,
                               dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup *m = &page->body;
  const char *table = dv_settings_table_name(settings), *group = "";
  dvbf_setting_info info;
  dv_markup_raw(m, "<details>\n");
  dv_markup_element(m, "summary", caption ? caption : "Settings");
  begin_table(page, NULL);
  dv_markup_raw(m, "<thead><tr><th scope=\"col\">setting</th><th scope=\"col\" class=\"words\">value</th>"
                   "<th scope=\"col\" class=\"words\">meaning</th></tr></thead>\n");
  for (size_t i = 0; dvbf_settings_table(table, i, &info); i++) {
    char value[128] = "";
    dvbf_settings_get(settings, info.name, value, sizeof value, NULL);
    if (strcmp(group, info.group) != 0) {
      dv_markup_raw(m, "<tbody><tr><th colspan=\"3\" scope=\"rowgroup\" class=\"group\">");
      dv_markup_text(m, group = info.group);
      dv_markup_raw(m, "</th></tr>\n");
    }
    add_setting(m, &info, value);
  }
  dv_markup_raw(m, "</table></div></details>\n");
  return dv_page_end(page, mark, DVBF_OK, error);
}

/* ---- The page's file ---- */

/* One colour map as hexadecimal digits rrggbb, `steps` of them. */
static void add_map(dv_markup *m, const char *name, dv_colour_map *map, size_t steps) {
  dv_markup_format(m, "\"%s\":\"", name);
  for (size_t i = 0; i < steps; i++) {
    dv_colour c = map((double)i / (double)(steps - 1));
    dv_markup_format(m, "%02x%02x%02x", (unsigned)lround(255 * c.red), (unsigned)lround(255 * c.green),
                     (unsigned)lround(255 * c.blue));
  }
  dv_markup_raw(m, "\"");
}

static void add_head(dv_markup *m, const dvbf_page *page) {
  /* The policy makes the browser refuse every request, whatever the page may hold. */
  dv_markup_raw(m,
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
                "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<meta name=\"generator\" content=\"dvbf " DVBF_VERSION "\">\n"
                "<link rel=\"icon\" href=\"data:,\">\n");
  dv_markup_element(m, "title", page->title);
  dv_markup_raw(m, "<style>\n");
  dv_markup_bytes(m, dv_page_css, dv_page_css_size);
  dv_markup_raw(m, "</style>\n</head>\n<body>\n<header>\n");
  dv_markup_element(m, "h1", page->title);
  if (page->chapters > 1) {
    dv_markup_raw(m, "<nav aria-label=\"Contents\"><ul>\n");
    dv_markup_bytes(m, page->contents.text, page->contents.length);
    dv_markup_raw(m, "</ul></nav>\n");
  }
  dv_markup_raw(m,
                "<noscript><p class=\"note\">The diagrams need JavaScript, which is switched off. The folder "
                "figures beside this page has pictures of them.</p></noscript>\n</header>\n<main>\n");
}

static void add_foot(dv_markup *m) {
  enum { STEPS = 128 };
  dv_markup_raw(m, "</main>\n<footer>Made by dvbf " DVBF_VERSION ".</footer>\n"
                   "<script type=\"application/json\" id=\"colours\">{");
  add_map(m, "sequential", dv_colour_sequential, STEPS);
  dv_markup_raw(m, ",");
  add_map(m, "cyclic", dv_colour_cyclic, STEPS);
  dv_markup_raw(m, "}</script>\n<script>\n");
  dv_markup_bytes(m, dv_page_js, dv_page_js_size); /* first: what the others share */
  dv_markup_bytes(m, dv_page_plot_js, dv_page_plot_js_size);
  dv_markup_bytes(m, dv_page_signals_js, dv_page_signals_js_size);
  dv_markup_bytes(m, dv_page_space_js, dv_page_space_js_size);
  dv_markup_bytes(m, dv_page_video_js, dv_page_video_js_size);
  dv_markup_raw(m, "</script>\n</body>\n</html>\n");
}

dvbf_status dvbf_page_write(const dvbf_page *page, const char *path, dvbf_error *error) {
  dv_markup all = {0};
  dv_atomic_file file = {0};
  add_head(&all, page);
  dv_markup_bytes(&all, page->body.text, page->body.length);
  add_foot(&all);
  dvbf_status status =
      all.failed ? dv_fail_memory(error, "writing the report") : dv_atomic_open(&file, path, error);
  if (!status) {
    fwrite(all.text, 1, all.length, file.stream);
    status = dv_atomic_commit(&file, error);
  }
  dv_markup_free(&all);
  return status;
}

/* ---- Pictures ---- */

/* Pictures are data URLs of <img>: there an SVG cannot run scripts, and its ids cannot clash with those of
 * another. */

enum { MOST_BYTES = 16 << 20 };

static const char *type_of(const char *path) {
  const char *dot = strrchr(path, '.');
  if (dot && !strcmp(dot, ".svg")) return "image/svg+xml";
  if (dot && !strcmp(dot, ".png")) return "image/png";
  return NULL;
}

/* Adds a picture as a data URL. */
static dvbf_status add_url(dv_markup *m, const char *path, dvbf_error *error) {
  const char *type = type_of(path);
  if (!type)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the name of a picture must end in .svg or .png", path);
  FILE *file = dv_open_file(path, error);
  if (!file) return DVBF_IO;
  unsigned char *bytes = dv_calloc(MOST_BYTES + 1, 1);
  size_t count = bytes ? fread(bytes, 1, MOST_BYTES + 1, file) : 0;
  bool failed = ferror(file);
  fclose(file);
  dvbf_status status = DVBF_OK;
  if (!bytes)
    status = dv_fail(error, DVBF_MEMORY, "out of memory while reading %.200s", path);
  else if (failed)
    status = dv_fail(error, DVBF_IO, "%.200s: cannot be read", path);
  else if (!count || count > MOST_BYTES)
    status = dv_fail(error, DVBF_FORMAT, "%.200s: a picture of 1 to %d bytes is needed", path, MOST_BYTES);
  else
    dv_markup_format(m, "data:%s;base64,", type);
  if (!status) dv_markup_base64(m, bytes, count);
  dv_free(bytes);
  return status;
}

dvbf_status dv_page_picture(dvbf_page *page, const char *path, const char *narrow, const char *caption,
                            const char *alternative, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup *m = &page->body;
  dvbf_status status = DVBF_OK;
  dv_markup_raw(m, narrow
                       ? "<figure class=\"picture\"><picture><source media=\"(max-width: 34rem)\" srcset=\""
                       : "<figure class=\"picture\">");
  if (narrow) {
    status = add_url(m, narrow, error);
    dv_markup_raw(m, "\">");
  }
  dv_markup_raw(m, "<img alt=\"");
  dv_markup_text(m, alternative);
  dv_markup_raw(m, "\" src=\"");
  if (!status) status = add_url(m, path, error);
  dv_markup_raw(m, narrow ? "\"></picture>\n" : "\">\n");
  dv_markup_element(m, "figcaption", caption);
  dv_markup_raw(m, "</figure>\n");
  return dv_page_end(page, mark, status, error);
}

dvbf_status dvbf_page_picture(dvbf_page *page, const char *path, const char *caption, const char *alternative,
                              dvbf_error *error) {
  return dv_page_picture(page, path, NULL, caption, alternative, error);
}

/* ---- Videos ---- */

static size_t channels_of(const dvbf_film *f) {
  return f->channels == 3 ? 3 : 1;
}

/* Values of one row; 0 if there is nothing to show. */
static size_t pixels_of(const dvbf_film *f) {
  size_t pixels, image, sequence, all;
  bool fits = dv_multiply(f->height, f->width, &pixels) && dv_multiply(pixels, channels_of(f), &image) &&
              dv_multiply(image, f->frames, &sequence) && dv_multiply(sequence, f->sequences, &all);
  return fits && f->rows && f->row ? all : 0;
}

static dvbf_status check_finite(const dvbf_film *f, size_t pixels, dvbf_error *error) {
  for (size_t i = 0; i < f->rows * pixels; i++)
    if (!isfinite(f->row[i / pixels].images[i % pixels]))
      return dv_fail(error, DVBF_ARGUMENT, "a video: the row \"%.60s\" holds a pixel that is not finite",
                     f->row[i / pixels].label);
  return DVBF_OK;
}

static void add_row(dv_markup *m, const dvbf_film_row *row, unsigned char *bytes, size_t pixels, double black,
                    double white) {
  for (size_t i = 0; i < pixels; i++) {
    double light = (row->images[i] - black) / (white - black);
    bytes[i] = (unsigned char)lround(255 * fmin(fmax(light, 0), 1));
  }
  dv_markup_json(m, json_pack("{s:o, s:I, s:o}", "label", dv_markup_json_text(row->label), "observed",
                              (json_int_t)row->observed, "pixels", dv_markup_json_bytes(bytes, pixels)));
}

static void add_film(dv_markup *m, const dvbf_film *f, unsigned char *bytes, size_t pixels) {
  float black = f->black, white = f->white;
  if (black == 0 && white == 0) {
    black = white = f->row[0].images[0];
    for (size_t i = 1; i < pixels; i++) {
      black = fminf(black, f->row[0].images[i]);
      white = fmaxf(white, f->row[0].images[i]);
    }
  }
  if (white == black) white = black + 1;
  dv_markup_format(m,
                   "<figure class=\"film\"><script type=\"application/json\">{\"sequences\":%zu,"
                   "\"frames\":%zu,\"height\":%zu,\"width\":%zu,\"channels\":%zu,\"training\":%zu,"
                   "\"length\":[",
                   f->sequences, f->frames, f->height, f->width, channels_of(f), f->training_steps);
  for (size_t i = 0; i < f->sequences; i++) {
    size_t length = f->length && f->length[i] < f->frames ? f->length[i] : f->frames;
    dv_markup_format(m, "%s%zu", i ? "," : "", length ? length : 1);
  }
  dv_markup_raw(m, "],\"names\":[");
  for (size_t i = 0; f->names && i < f->sequences; i++) dv_markup_string(m, i ? "," : "", f->names[i]);
  dv_markup_raw(m, "],\"rows\":[");
  for (size_t r = 0; r < f->rows; r++) {
    dv_markup_raw(m, r ? ",\n" : "");
    add_row(m, &f->row[r], bytes, pixels, black, white);
  }
  dv_markup_raw(m, "]}</script>\n");
  dv_markup_element(m, "figcaption", f->caption);
  dv_markup_raw(m, "</figure>\n");
}

dvbf_status dvbf_page_film(dvbf_page *page, const dvbf_film *film, dvbf_error *error) {
  size_t pixels = pixels_of(film);
  if (!pixels)
    return dv_fail(error, DVBF_ARGUMENT,
                   "a video of %zu rows, %zu sequences, %zu frames of %zu x %zu: none of these may be 0",
                   film->rows, film->sequences, film->frames, film->height, film->width);
  dvbf_status status = check_finite(film, pixels, error);
  if (status) return status;
  unsigned char *bytes = dv_calloc(pixels, 1);
  if (!bytes) return dv_fail_memory(error, "making the video");
  dv_page_mark mark = dv_page_begin(page);
  add_film(&page->body, film, bytes, pixels);
  dv_free(bytes);
  return dv_page_end(page, mark, DVBF_OK, error);
}
