#include "progress.h"

#include "bench.h"

#include <stdarg.h>
#include <unistd.h>

/* Where it is no terminal, a line now and then. */
void progress(const char *format, ...) {
  static double last;
  bool terminal = isatty(2);
  if (!terminal && now() < last + 15) return;
  last = now();
  va_list arguments;
  va_start(arguments, format);
  if (terminal) fputs("\r", stderr);
  vfprintf(stderr, format, arguments);
  fputs(terminal ? "\033[K" : "\n", stderr);
  va_end(arguments);
}

void progress_end(void) {
  if (isatty(2)) fputs("\r\033[K", stderr);
}
