/* Pages drawn with cairo and written as PNG or SVG (dv_canvas_draw). In SVG labels stay
 * text, and ids begin with the file's name, so that several files fit into one HTML page. Also text, and the
 * two colour maps of all figures. */
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/drawing.h"
#include "report/markup.h"

#include <cairo-svg.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- SVG ---- */

typedef struct svg {
  dv_markup drawing; /* what cairo wrote */
  dv_markup words;   /* <text> elements, which go on top of it */
} svg;

static const cairo_user_data_key_t
    key; /* of the svg that gets the text of a cairo_t; none: it draws pixels */

cairo_status_t dv_cairo_receive(void *markup, const unsigned char *data, unsigned length) {
  dv_markup *out = markup;
  dv_markup_bytes(out, data, length);
  return out->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

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

static dvbf_status svg_write(const svg *out, const char *path, dvbf_error *error) {
  static const char end[] = "</svg>\n";
  const dv_markup *drawing = &out->drawing, *words = &out->words;
  size_t tail = sizeof end - 1;
  if (drawing->failed || words->failed) return dv_fail_memory(error, "drawing a picture");
  if (drawing->length < tail || memcmp(drawing->text + drawing->length - tail, end, tail))
    return dv_fail(error, DVBF_NUMERIC, "%.200s: cairo wrote an incomplete SVG; the PNG is not affected",
                   path);
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

/* ---- Canvas ---- */

/* The outlines of letters are left as they are: rounding them to pixels would tear words at small sizes. */
static void set_fonts(cairo_t *cr) {
  cairo_font_options_t *options = cairo_font_options_create();
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_set_font_options(cr, options);
  cairo_font_options_destroy(options);
}

/* cairo says only that writing failed; errno, when it is set, says why. */
static dvbf_status refuse(const char *path, cairo_status_t status, int reason, dvbf_error *error) {
  if (status == CAIRO_STATUS_NO_MEMORY) return dv_fail_memory(error, "drawing a picture");
  bool writing = status == CAIRO_STATUS_WRITE_ERROR,
       asked = status == CAIRO_STATUS_INVALID_SIZE || status == CAIRO_STATUS_INVALID_STRING;
  return dv_fail(error, asked ? DVBF_ARGUMENT : DVBF_IO, "%s: the picture cannot be %s: %s", path,
                 writing ? "written" : "drawn",
                 writing && reason ? strerror(reason) : cairo_status_to_string(status));
}

static cairo_status_t write_piece(void *stream, const unsigned char *bytes, unsigned length) {
  return fwrite(bytes, 1, length, stream) == length ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static dvbf_status write_png(cairo_surface_t *surface, const char *path, dvbf_error *error) {
  dv_atomic_file file;
  dvbf_status failed = dv_atomic_open(&file, path, error);
  if (failed) return failed;
  errno = 0;
  cairo_status_t status = cairo_surface_write_to_png_stream(surface, write_piece, file.stream);
  if (!status) return dv_atomic_commit(&file, error);
  failed = refuse(path, status, errno, error);
  dv_atomic_abandon(&file);
  return failed;
}

dvbf_status dv_canvas_draw(const char *path, double width, double height, dv_figure_fn *draw,
                           const void *figure, dvbf_error *error) {
  bool vector = dv_text_ends_in(path, ".svg");
  svg parts = {0};
  dvbf_status failed = DVBF_OK;
  errno = 0;
  cairo_surface_t *surface =
      vector ? cairo_svg_surface_create_for_stream(dv_cairo_receive, &parts.drawing, width, height)
             : cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * DV_CANVAS_SCALE),
                                          (int)(height * DV_CANVAS_SCALE));
  int reason = errno;
  cairo_t *cr = cairo_create(surface);
  cairo_status_t status = cairo_status(cr);
  if (!status) {
    if (vector)
      cairo_set_user_data(cr, &key, &parts, NULL); /* a failure makes cr fail */
    else
      cairo_scale(cr, DV_CANVAS_SCALE, DV_CANVAS_SCALE);
    set_fonts(cr);
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    draw(cr, figure);
    status = cairo_status(cr);
    reason = 0;
  }
  if (!status && !vector) failed = write_png(surface, path, error);
  cairo_surface_finish(surface);
  if (!status && vector) status = cairo_surface_status(surface);
  if (status)
    failed = refuse(path, status, reason, error);
  else if (vector)
    failed = svg_write(&parts, path, error);
  cairo_destroy(cr);
  cairo_surface_destroy(surface);
  dv_markup_free(&parts.drawing);
  dv_markup_free(&parts.words);
  return failed;
}

/* ---- Text ---- */

static void select_font(cairo_t *cr, dv_text_style style) {
  cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cr, style.size);
}

double dv_text_length(cairo_t *cr, dv_text_style style, const char *text) {
  cairo_text_extents_t extents;
  select_font(cr, style);
  cairo_text_extents(cr, text, &extents);
  return extents.x_advance;
}

/* Writes text whose base line is `drop` below the given point, seen in the direction of writing. */
static void write_words(dv_markup *out, cairo_t *cr, double x, double y, dv_text_style style, double drop,
                        const char *text) {
  cairo_user_to_device(cr, &x, &y);
  *(style.upwards ? &x : &y) += drop;
  dv_markup_format(out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.2f\" text-anchor=\"%s\"%s", x, y,
                   style.size,
                   style.across < 0.25   ? "start"
                   : style.across > 0.75 ? "end"
                                         : "middle",
                   style.bold ? " font-weight=\"bold\"" : "");
  if (style.upwards) dv_markup_format(out, " transform=\"rotate(-90 %.2f %.2f)\"", x, y);
  dv_markup_raw(out, ">");
  dv_markup_text(out, text);
  dv_markup_raw(out, "</text>\n");
}

void dv_text(cairo_t *cr, double x, double y, dv_text_style style, const char *text) {
  double length = dv_text_length(cr, style, text);
  if (style.longest > 0 && length > style.longest) {
    style.size *= style.longest / length;
    length = dv_text_length(cr, style, text);
  }
  /* Digits and capitals are about 0.73 of the size high: this centres them, whatever letters the text has. */
  double drop = 0.365 * style.size;
  svg *vector = cairo_get_user_data(cr, &key);
  if (vector) {
    write_words(&vector->words, cr, x, y, style, drop, text);
    return;
  }
  cairo_save(cr);
  cairo_translate(cr, x, y);
  if (style.upwards) cairo_rotate(cr, -1.5707963267948966);
  cairo_move_to(cr, -style.across * length, drop);
  dv_colour_set(cr, dv_colour_ink);
  cairo_show_text(cr, text);
  cairo_restore(cr);
  cairo_new_path(cr);
}

/* ---- Colours ---- */

const dv_colour dv_colour_ink = {0.13, 0.13, 0.15};
const dv_colour dv_colour_faint = {0.87, 0.87, 0.88};
const dv_colour dv_colour_missing = {0.72, 0.72, 0.72};
const dv_colour dv_colour_bar = {0.84, 0.10, 0.12};
const dv_colour dv_colour_observe = {0.10, 0.42, 0.85};

/* Different in lightness and in hue, also to the colour-blind: blue, orange, green, purple, sky blue, brown.
 */
const dv_colour dv_colour_lines[DV_COLOUR_LINES] = {{0.05, 0.30, 0.66}, {0.93, 0.55, 0.05},
                                                    {0.20, 0.62, 0.42}, {0.55, 0.15, 0.50},
                                                    {0.40, 0.72, 0.92}, {0.42, 0.26, 0.10}};

/* Both maps are curves in CIE L*a*b*, where distance is nearly the difference that is seen. The idea is that
 * of Smith and van der Walt's viridis (2015) and Kovesi's "Good Colour Maps" (2015); the curves are our own.
 */

static double cube_or_line(double f) {
  const double knee = 6.0 / 29;
  return f > knee ? f * f * f : 3 * knee * knee * (f - 4.0 / 29);
}

/* Linear light to sRGB. */
static double encode(double light) {
  if (light <= 0.0031308) return light <= 0 ? 0 : 12.92 * light;
  return light >= 1 ? 1 : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

/* L*a*b* under D65, as IEC 61966-2-1 and CIE 15 define the way to sRGB. */
static dv_colour from_lab(double lightness, double a, double b) {
  double y = (lightness + 16) / 116;
  double X = 0.95047 * cube_or_line(y + a / 500);
  double Y = cube_or_line(y);
  double Z = 1.08883 * cube_or_line(y - b / 200);
  return (dv_colour){.red = encode(3.2404542 * X - 1.5371385 * Y - 0.4985314 * Z),
                     .green = encode(-0.9692660 * X + 1.8760108 * Y + 0.0415560 * Z),
                     .blue = encode(0.0556434 * X - 0.2040259 * Y + 1.0572252 * Z)};
}

static double bezier(double t, double p0, double p1, double p2, double p3) {
  double s = 1 - t;
  return s * s * s * p0 + 3 * s * s * t * p1 + 3 * s * t * t * p2 + t * t * t * p3;
}

dv_colour dv_colour_sequential(double t) {
  if (!isfinite(t)) return dv_colour_missing;
  t = fmin(fmax(t, 0), 1);
  /* It ends below white, so that the last points still show on paper. */
  return from_lab(16 + 73 * t, bezier(t, 30, 5, -75, -12), bezier(t, -38, -45, 5, 80));
}

dv_colour dv_colour_cyclic(double t) {
  if (!isfinite(t)) return dv_colour_missing;
  /* A circle, moved off the grey axis because sRGB has little room in cyan, and tilted in lightness: lightest
   * in the middle (t = 1/2), darkest where the ends meet. */
  const double crest = 95 * M_PI / 180;
  double turn = 2 * M_PI * (t - 0.5);
  return from_lab(62 + 14 * cos(turn), 9 + 42 * cos(crest + turn), 9 + 42 * sin(crest + turn));
}

void dv_colour_set(cairo_t *cr, dv_colour colour) {
  cairo_set_source_rgb(cr, colour.red, colour.green, colour.blue);
}
