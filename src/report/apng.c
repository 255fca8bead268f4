/* Animated PNG files (dv_apng_write). Cairo writes each frame as a PNG; its compressed pixels become a frame
 * of the animation, between the chunks acTL, fcTL and fdAT of the APNG specification. */
#include "report/drawing.h"
#include "report/markup.h"

#include "base/error.h"
#include "base/file.h"

#include <cairo.h>
#include <math.h>
#include <string.h>

enum { LEAST_SIZE = 96, COLUMN_GAP = 4 };

/* ---- Chunks ---- */

/* One chunk while it is written: its bytes are counted into the check sum. */
typedef struct png_chunk {
  FILE *stream;
  uint32_t sum;
} png_chunk;

static void put(png_chunk *c, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < count; i++) {
    c->sum ^= at[i];
    for (int bit = 0; bit < 8; bit++) c->sum = c->sum & 1 ? 0xEDB88320U ^ (c->sum >> 1) : c->sum >> 1;
  }
  fwrite(bytes, 1, count, c->stream);
}

static void put_number(png_chunk *c, uint32_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--) put(c, &(unsigned char){(unsigned char)(value >> (8 * i) & 255)}, 1);
}

static png_chunk open_chunk(FILE *stream, const char *name, size_t size) {
  png_chunk c = {stream, 0};
  put_number(&c, (uint32_t)size, 4);
  c.sum = 0xFFFFFFFFU;
  put(&c, name, 4);
  return c;
}

static void close_chunk(png_chunk *c) {
  put_number(c, c->sum ^ 0xFFFFFFFFU, 4);
}

/* ---- Frames ---- */

static size_t factor_of(const dv_video *v) {
  return v->size < LEAST_SIZE ? (LEAST_SIZE + v->size - 1) / v->size : 1;
}

static uint32_t colour_of(const dv_video *v, size_t column, size_t frame, size_t row, size_t place) {
  uint32_t colour = 0;
  for (size_t i = 0; i < 3; i++) {
    size_t pixel = ((frame * v->size + row) * v->size + place) * v->channels + (v->channels == 3 ? i : 0);
    colour = colour << 8 | (uint32_t)lround(255 * fmax(0, fmin(1, (double)v->images[column][pixel])));
  }
  return colour;
}

static void fill_surface(cairo_surface_t *surface, const dv_video *v, size_t frame) {
  size_t factor = factor_of(v), side = factor * v->size;
  cairo_surface_flush(surface);
  unsigned char *data = cairo_image_surface_get_data(surface);
  size_t stride = (size_t)cairo_image_surface_get_stride(surface);
  memset(data, 255, stride * side);
  for (size_t r = 0; r < side; r++)
    for (size_t k = 0; k < v->columns; k++)
      for (size_t c = 0; c < side; c++) {
        uint32_t colour = colour_of(v, k, frame, r / factor, c / factor);
        memcpy(data + r * stride + 4 * (k * (side + COLUMN_GAP) + c), &colour, sizeof colour);
      }
  cairo_surface_mark_dirty(surface);
}

static uint32_t number_at(const unsigned char *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_control(FILE *stream, const dv_video *v, uint32_t width, uint32_t height, uint32_t *number) {
  png_chunk c = open_chunk(stream, "fcTL", 26);
  const uint32_t place[] = {(*number)++, width, height, 0, 0};
  for (size_t i = 0; i < sizeof place / sizeof *place; i++) put_number(&c, place[i], 4);
  put_number(&c, (uint32_t)lround(1000 * fmax(0.02, fmin(60, v->seconds))), 2);
  put_number(&c, 1000, 2);
  put_number(&c, 0, 2); /* it stays, and replaces what was there */
  close_chunk(&c);
}

static void put_count(FILE *stream, const dv_video *v) {
  png_chunk c = open_chunk(stream, "acTL", 8);
  put_number(&c, (uint32_t)v->frames, 4);
  put_number(&c, 0, 4); /* for ever */
  close_chunk(&c);
}

/* Copies a PNG's head, of the first frame, and its pixels. */
static void put_frame(FILE *stream, const dv_video *v, const dv_markup *png, size_t frame, uint32_t *number) {
  const unsigned char *bytes = (const unsigned char *)png->text;
  uint32_t width = number_at(bytes + 16), height = number_at(bytes + 20);
  if (!frame) fwrite(bytes, 1, 8 + 25, stream); /* the signature and IHDR */
  if (!frame) put_count(stream, v);
  put_control(stream, v, width, height, number);
  for (size_t at = 8, size; at + 12 <= png->length; at += 12 + size) {
    size = number_at(bytes + at);
    if (memcmp(bytes + at + 4, "IDAT", 4) != 0) continue;
    png_chunk c = open_chunk(stream, frame ? "fdAT" : "IDAT", size + (frame ? 4 : 0));
    if (frame) put_number(&c, (*number)++, 4);
    put(&c, bytes + at + 8, size);
    close_chunk(&c);
  }
}

static dvbf_status put_all(FILE *stream, const dv_video *v, cairo_surface_t *surface, dvbf_error *error) {
  dv_markup png = {0};
  uint32_t number = 0;
  bool done = true;
  for (size_t t = 0; t < v->frames && done; t++) {
    fill_surface(surface, v, t);
    png.length = 0;
    done = !cairo_surface_write_to_png_stream(surface, dv_cairo_receive, &png);
    if (done) put_frame(stream, v, &png, t, &number);
  }
  png_chunk end = open_chunk(stream, "IEND", 0);
  close_chunk(&end);
  dv_markup_free(&png);
  return done ? DVBF_OK : dv_fail_memory(error, "writing a video");
}

dvbf_status dv_apng_write(const char *path, const dv_video *v, dvbf_error *error) {
  size_t side = factor_of(v) * v->size, width = v->columns * (side + COLUMN_GAP) - COLUMN_GAP;
  dv_atomic_file file = {0};
  cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)side);
  dvbf_status status = cairo_surface_status(surface) ? dv_fail_memory(error, "writing a video") : DVBF_OK;
  if (!status) status = dv_atomic_open(&file, path, error);
  if (!status) {
    status = put_all(file.stream, v, surface, error);
    if (status)
      dv_atomic_abandon(&file);
    else
      status = dv_atomic_commit(&file, error);
  }
  cairo_surface_destroy(surface);
  return status;
}
