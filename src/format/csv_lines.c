#include "format/csv_lines.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BLANKS " \t"

/* ---- Bytes ---- */

void dv_lines_rewind(dv_lines *in) {
  *in = (dv_lines){.path = in->path,
                   .descriptor = in->descriptor,
                   .buffer = in->buffer,
                   .room = in->room,
                   .code = in->code};
}

/* Excel writes "Unicode text" as UTF-16, with a mark in front; some loggers leave the mark out. */
static void recognise_code(dv_lines *in) {
  unsigned char first[4] = {0};
  if (in->offset || pread(in->descriptor, first, sizeof first, 0) < (ssize_t)sizeof first) return;
  bool little = (first[0] == 0xff && first[1] == 0xfe) || (first[0] && !first[1] && first[2] && !first[3]);
  bool big = (first[0] == 0xfe && first[1] == 0xff) || (!first[0] && first[1] && !first[2] && first[3]);
  in->code = little ? DV_UTF16_LITTLE : big ? DV_UTF16_BIG : DV_BYTES;
}

/* One unit of UTF-16 as UTF-8; returns the bytes written, at most 3. Halves of pairs become '?'. */
static size_t put_unit(unsigned unit, char *out) {
  if (unit == 0xfeff) return 0;
  if (unit >= 0xd800 && unit < 0xe000) unit = '?';
  if (unit < 0x80) {
    out[0] = (char)unit;
    return 1;
  }
  size_t n = unit < 0x800 ? 2 : 3;
  out[0] = (char)(n == 2 ? 0xc0 | unit >> 6 : 0xe0 | unit >> 12);
  if (n == 3) out[1] = (char)(0x80 | (unit >> 6 & 63));
  out[n - 1] = (char)(0x80 | (unit & 63));
  return n;
}

/* Reads UTF-16 into `room` bytes of UTF-8; returns what was read of the file, and *made. */
static ssize_t read_units(dv_lines *in, char *out, size_t room, size_t *made) {
  unsigned char raw[1 << 14];
  size_t most = room / 3 * 2 < sizeof raw ? room / 3 * 2 : sizeof raw;
  ssize_t got = pread(in->descriptor, raw, most, in->offset);
  *made = 0;
  for (ssize_t i = 0; i + 1 < got; i += 2) {
    unsigned low = raw[in->code == DV_UTF16_LITTLE ? i : i + 1],
             high = raw[in->code == DV_UTF16_LITTLE ? i + 1 : i];
    *made += put_unit(low | high << 8, out + *made);
  }
  return got > 1 ? got & ~(ssize_t)1 : got < 0 ? got : 0;
}

dvbf_status dv_lines_fill(dv_lines *in, dvbf_error *error) {
  enum { FIRST = 1 << 18, LONGEST = 1 << 26, LEAST = 64 };
  recognise_code(in);
  if (in->begin) memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
  in->end -= in->begin;
  in->begin = 0;
  if (in->room - in->end < LEAST) {
    size_t room = in->room ? 2 * in->room : FIRST;
    char *larger = room > LONGEST ? NULL : dv_realloc(in->buffer, room, 1);
    if (!larger)
      return dv_fail(error, DVBF_FORMAT, "%.200s, line %zu: is longer than %d bytes, so this is not a table",
                     in->path, in->number + 1, LONGEST);
    in->buffer = larger;
    in->room = room;
  }
  size_t left = in->room - in->end, made = 0;
  char *to = in->buffer + in->end;
  ssize_t got = in->code ? read_units(in, to, left, &made) : pread(in->descriptor, to, left, in->offset);
  if (got < 0) return dv_fail(error, DVBF_IO, "%.200s: cannot be read: %s", in->path, strerror(errno));
  in->ended = got == 0;
  in->end += in->code ? made : (size_t)got;
  in->offset += got;
  return DVBF_OK;
}

/* ---- Lines ---- */

/* What is in the buffer up to the next end of line, which is passed; false: no end is there. */
static bool take_line(dv_lines *in, size_t searched, dv_cursor *line) {
  const char *from = in->buffer + in->begin;
  size_t left = in->end - in->begin;
  const char *stop = left > searched ? memchr(from + searched, '\n', left - searched) : NULL;
  if (!stop && (!in->ended || !left)) return false;
  *line = (dv_cursor){from, stop ? stop : from + left};
  in->begin += dv_cursor_left(line) + (stop != NULL);
  in->number++;
  return true;
}

dvbf_status dv_lines_next(dv_lines *in, dv_cursor *line, dvbf_error *error) {
  in->remark = (dv_cursor){NULL, NULL};
  for (size_t searched = 0;;) {
    if (!take_line(in, searched, line)) {
      *line = in->remark = (dv_cursor){NULL, NULL};
      if (in->ended) return DVBF_OK;
      searched = in->end - in->begin;
      dvbf_status status = dv_lines_fill(in, error);
      if (status) return status;
      continue;
    }
    searched = 0;
    if (memchr(line->at, 0, dv_cursor_left(line)))
      return dv_fail(error, DVBF_FORMAT,
                     "%.200s, line %zu: holds a zero byte, so this is not a table in text", in->path,
                     in->number);
    if (in->number == 1) dv_cursor_take_text(line, "\xef\xbb\xbf"); /* a mark of UTF-8 */
    while (line->end > line->at && (line->end[-1] == '\r' || line->end[-1] == ' ')) line->end--;
    dv_cursor first = *line;
    dv_cursor_skip(&first, BLANKS);
    if (dv_cursor_left(&first) && dv_cursor_peek(&first) != '#') return DVBF_OK;
    dv_cursor_skip(&first, "# \t");
    if (dv_cursor_left(&first)) in->remark = first;
  }
}

/* ---- Fields ---- */

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

dv_fields dv_fields_of(dv_cursor line, char separator) {
  if (separator == ' ') dv_cursor_skip(&line, BLANKS);
  return (dv_fields){line, separator, true, false, false};
}

/* Passes the separator behind a field. */
static void pass_separator(dv_fields *f) {
  if (f->separator == ' ') dv_cursor_skip(&f->line, BLANKS);
  f->more = dv_cursor_left(&f->line);
  if (f->separator != ' ') dv_cursor_pass(&f->line, 1);
}

static dv_cursor quoted_field(dv_fields *f) {
  dv_cursor *line = &f->line, out = *line;
  do {
    out.end = dv_cursor_until(line, '"').end;
    f->open = !dv_cursor_take(line, '"');
  } while (dv_cursor_take(line, '"'));
  if (f->separator != ' ') dv_cursor_skip(line, " ");
  int next = dv_cursor_peek(line);
  if (next >= 0 && next != f->separator && !(f->separator == ' ' && is_blank((char)next))) f->open = true;
  return out;
}

bool dv_fields_next(dv_fields *f, dv_cursor *out) {
  if (!f->more) return false;
  const char separator = f->separator;
  while (separator != ' ' && f->line.at < f->line.end && is_blank(*f->line.at) && *f->line.at != separator)
    f->line.at++;
  f->quoted = dv_cursor_take(&f->line, '"');
  if (f->quoted) {
    *out = quoted_field(f);
  } else {
    *out = f->line;
    if (separator == ' ')
      while (f->line.at < f->line.end && !is_blank(*f->line.at)) f->line.at++;
    else
      while (f->line.at < f->line.end && *f->line.at != separator) f->line.at++;
    out->end = f->line.at;
    while (out->end > out->at && is_blank(out->end[-1])) out->end--;
  }
  pass_separator(f);
  return true;
}

size_t dv_fields_count(dv_cursor line, char separator) {
  dv_fields f = dv_fields_of(line, separator);
  dv_cursor field = {NULL, NULL};
  size_t count = 0;
  while (dv_fields_next(&f, &field)) count++;
  return count > 1 && !dv_cursor_left(&field) ? count - 1 : count;
}
