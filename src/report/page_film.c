/* A video: image sequences with 8 bits per pixel. */
#include "base/memory.h"
#include "base/status.h"
#include "report/page.h"

#include <math.h>

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
  for (size_t r = 0; r < f->rows; r++)
    for (size_t i = 0; i < pixels; i++)
      if (!isfinite(f->row[r].images[i]))
        return dv_fail(error, DVBF_ARGUMENT, "a video: the row \"%.60s\" holds a pixel that is not finite",
                       f->row[r].label);
  return DVBF_OK;
}

static void extremes(const float *values, size_t count, float *low, float *high) {
  *low = *high = values[0];
  for (size_t i = 1; i < count; i++) {
    if (values[i] < *low) *low = values[i];
    if (values[i] > *high) *high = values[i];
  }
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
  if (black == 0 && white == 0) extremes(f->row[0].images, pixels, &black, &white);
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
  for (size_t i = 0; f->names && i < f->sequences; i++) {
    dv_markup_raw(m, i ? "," : "");
    dv_markup_json(m, dv_markup_json_text(f->names[i]));
  }
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
  if (!bytes) return dv_fail(error, DVBF_MEMORY, "out of memory while making the video");
  dv_page_mark mark = dv_page_begin(page);
  add_film(&page->body, film, bytes, pixels);
  dv_free(bytes);
  return dv_page_end(page, mark, DVBF_OK, error);
}
