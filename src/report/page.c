#include "report/page.h"

#include "base/file.h"
#include "base/locale.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/status.h"
#include "report/colour.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Adding ---- */

dv_page_mark dv_page_begin(const dvbf_page *page) {
  return (dv_page_mark){page->body.length, page->contents.length, page->chapters};
}

dvbf_status dv_page_end(dvbf_page *page, dv_page_mark mark, dvbf_status status, dvbf_error *error) {
  if (!status && (page->body.failed || page->contents.failed))
    status = dv_fail(error, DVBF_MEMORY, "out of memory while making the report");
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
    return dv_fail(error, DVBF_MEMORY, "out of memory while making the report");
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

/* ---- Words ---- */

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
  dvbf_status status = copy ? DVBF_OK : dv_fail(error, DVBF_MEMORY, "out of memory while making the report");
  for (char *at = copy; at && *at;) {
    char *gap = strstr(at, "\n\n"), *next = gap ? gap + strspn(gap, "\n") : at + strlen(at);
    if (gap) *gap = 0;
    if (*at) dv_markup_element(&page->body, "p", at);
    at = next;
  }
  dv_free(copy);
  return dv_page_end(page, mark, status, error);
}

dvbf_status dvbf_page_note(dvbf_page *page, const char *text, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup_raw(&page->body, "<p class=\"note\">");
  dv_markup_text(&page->body, text);
  dv_markup_raw(&page->body, "</p>\n");
  return dv_page_end(page, mark, DVBF_OK, error);
}

dvbf_status dv_page_verdict(dvbf_page *page, const char *kind, const char *text, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup_format(&page->body, "<p class=\"verdict %s\">", kind);
  dv_markup_text(&page->body, text);
  dv_markup_raw(&page->body, "</p>\n");
  return dv_page_end(page, mark, DVBF_OK, error);
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

void dv_table_put(dvbf_table *t, size_t row, size_t column, const char *format, ...) {
  DV_PLAIN_NUMBERS;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf((char *)t->cells[row * t->columns + column], CELL, format, arguments);
  va_end(arguments);
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

/* As numbers where both are: 1e-3 is 0.001. */
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

/* ---- The file ---- */

/* One map as hexadecimal digits rrggbb, `steps` of them, so that the page has the colours of the figures. */
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
  dv_markup head = {0}, foot = {0};
  dv_atomic_file file = {0};
  add_head(&head, page);
  add_foot(&foot);
  dvbf_status status = head.failed || foot.failed
                           ? dv_fail(error, DVBF_MEMORY, "out of memory while writing the report")
                           : dv_atomic_open(&file, path, error);
  if (!status) {
    fwrite(head.text, 1, head.length, file.stream);
    if (page->body.length) fwrite(page->body.text, 1, page->body.length, file.stream);
    fwrite(foot.text, 1, foot.length, file.stream);
    status = dv_atomic_commit(&file, error);
  }
  dv_markup_free(&head);
  dv_markup_free(&foot);
  return status;
}
