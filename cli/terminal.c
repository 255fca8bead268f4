#include "terminal.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

enum { PIECE = 4096 };

/* A stream of text to a descriptor. */
typedef struct channel {
  int descriptor;
  bool after_c2; /* the last byte was 0xc2, with which control characters of two bytes begin */
} channel;

static channel channels[2] = {{STDOUT_FILENO, false}, {STDERR_FILENO, false}};
static FILE *own;

/* 0xc2 0x80 to 0xc2 0x9f are control characters too; 0xc2 0xbf is an inverted question mark. */
static char plain(channel *c, unsigned char byte) {
  bool second = c->after_c2 && byte < 0xa0 && byte >= 0x80;
  c->after_c2 = byte == 0xc2;
  if (second) return (char)0xbf;
  return (byte < ' ' && byte != '\n' && byte != '\t') || byte == 127 ? '?' : (char)byte;
}

static bool write_all(int descriptor, const char *bytes, size_t size) {
  while (size) {
    ssize_t done = write(descriptor, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    size -= (size_t)done;
  }
  return true;
}

static ssize_t write_plain(void *cookie, const char *bytes, size_t size) {
  channel *c = cookie;
  char piece[PIECE];
  for (size_t at = 0; at < size;) {
    size_t n = 0;
    for (; n < PIECE && at + n < size; n++) piece[n] = plain(c, (unsigned char)bytes[at + n]);
    if (!write_all(c->descriptor, piece, n)) return 0;
    at += n;
  }
  return (ssize_t)size;
}

static FILE *stream_to(channel *c, int buffering) {
  FILE *stream = fopencookie(c, "w", (cookie_io_functions_t){.write = write_plain});
  if (stream) setvbuf(stream, NULL, buffering, BUFSIZ);
  return stream;
}

void cli_terminal_protect(void) {
  FILE *out = stream_to(&channels[0], isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
  FILE *messages = stream_to(&channels[1], _IOLBF);
  own = stderr;
  if (out) stdout = out;
  if (messages) stderr = messages;
}

FILE *cli_terminal_own(void) {
  return own ? own : stderr;
}
