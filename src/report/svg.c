#include "report/svg.h"

#include "base/file.h"
#include "base/status.h"

#include <cairo-svg.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cairo_user_data_key_t key;

/* ---- Text ---- */

/* With two decimals and a point, whatever the locale says. */
static void put_number(dv_markup *out, double value) {
  long hundredths = lround(100 * value);
  char digits[48];
  snprintf(digits, sizeof digits, "%s%ld.%02ld", hundredths < 0 ? "-" : "", labs(hundredths) / 100,
           labs(hundredths) % 100);
  dv_markup_raw(out, digits);
}

/* Text as XML wants it; control characters are not allowed there. */
static void put_escaped(dv_markup *out, const char *text) {
  for (; *text; text++) {
    if (*text == '&')
      dv_markup_raw(out, "&amp;");
    else if (*text == '<')
      dv_markup_raw(out, "&lt;");
    else if (*text == '>')
      dv_markup_raw(out, "&gt;");
    else if ((unsigned char)*text >= 32)
      dv_markup_bytes(out, text, 1);
  }
}

/* ---- Surface ---- */

static cairo_status_t receive(void *closure, const unsigned char *data, unsigned int length) {
  dv_markup *out = closure;
  dv_markup_bytes(out, data, length);
  return out->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

cairo_surface_t *dv_svg_surface(dv_svg *svg, double width, double height) {
  memset(svg, 0, sizeof *svg);
  return cairo_svg_surface_create_for_stream(receive, &svg->drawing, width, height);
}

void dv_svg_free(dv_svg *svg) {
  dv_markup_free(&svg->drawing);
  dv_markup_free(&svg->words);
}

void dv_svg_attach(dv_svg *svg, cairo_t *cr) {
  cairo_set_user_data(cr, &key, svg, NULL); /* a failure makes cr fail */
}

dv_svg *dv_svg_of(cairo_t *cr) {
  return cairo_get_user_data(cr, &key);
}

void dv_svg_text(dv_svg *svg, double x, double y, double size, bool bold, bool upwards, const char *anchor,
                 const char *text) {
  dv_markup *out = &svg->words;
  dv_markup_raw(out, "<text x=\"");
  put_number(out, x);
  dv_markup_raw(out, "\" y=\"");
  put_number(out, y);
  dv_markup_raw(out, "\" font-size=\"");
  put_number(out, size);
  dv_markup_raw(out, "\" text-anchor=\"");
  dv_markup_raw(out, anchor);
  if (bold) dv_markup_raw(out, "\" font-weight=\"bold");
  if (upwards) {
    dv_markup_raw(out, "\" transform=\"rotate(-90 ");
    put_number(out, x);
    dv_markup_raw(out, " ");
    put_number(out, y);
    dv_markup_raw(out, ")");
  }
  dv_markup_raw(out, "\">");
  put_escaped(out, text);
  dv_markup_raw(out, "</text>\n");
}

/* ---- File ---- */

/* The name of the file as the start of an id: letters, digits and hyphens, a letter first. */
static void name_of(char *out, size_t size, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t n = 0;
  out[n++] = 'f';
  out[n++] = '-';
  for (; *name && *name != '.' && n + 2 < size; name++)
    out[n++] = isalnum((unsigned char)*name) ? *name : '-';
  out[n++] = '-';
  out[n] = 0;
}

/* Copies cairo's output with `name` before every id and every reference to one. */
static void write_drawing(FILE *file, const char *data, size_t length, const char *name) {
  static const char *const marks[] = {" id=\"", "\"#", "url(#"};
  size_t start = 0, i = 0;
  while (i < length) {
    size_t mark = 0;
    for (size_t k = 0; k < 3 && !mark; k++) {
      size_t n = strlen(marks[k]);
      if (length - i >= n && !memcmp(data + i, marks[k], n)) mark = n;
    }
    i += mark ? mark : 1;
    if (!mark) continue;
    fwrite(data + start, 1, i - start, file);
    fputs(name, file);
    start = i;
  }
  fwrite(data + start, 1, length - start, file);
}

dvbf_status dv_svg_write(const dv_svg *svg, const char *path, dvbf_error *error) {
  static const char end[] = "</svg>\n";
  const dv_markup *drawing = &svg->drawing, *words = &svg->words;
  size_t tail = sizeof end - 1;
  if (drawing->failed || words->failed) return dv_fail_memory(error, "drawing a picture");
  if (drawing->length < tail || memcmp(drawing->text + drawing->length - tail, end, tail))
    return dv_fail(error, DVBF_NUMERIC,
                   "%.200s: cairo wrote an SVG that does not end; the PNG is not affected", path);
  char name[64];
  name_of(name, sizeof name, path);
  dv_atomic_file file;
  dvbf_status status = dv_atomic_open(&file, path, error);
  if (status) return status;
  write_drawing(file.stream, drawing->text, drawing->length - tail, name);
  fputs("<g font-family=\"sans-serif\" fill=\"#212126\">\n", file.stream); /* dv_colour_ink */
  fwrite(words->text ? words->text : "", 1, words->length, file.stream);
  fprintf(file.stream, "</g>\n%s", end);
  return dv_atomic_commit(&file, error);
}
