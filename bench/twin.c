#include "twin.h"

#include "bench.h"

#include <stdarg.h>

/* A compiled twin may take a minute for one shape, on a busy machine several. */
static const double patience = 600;

void twins_prepare(twin *twins, const char *peers, const char *what, const char *torch_python,
                   const char *jax_python) {
  const twin all[TWINS] = {
      {.name = "PyTorch eager", .key = "torch_eager", .filter_name = "PyTorch script", .import = "torch"},
      {.name = "PyTorch compiled",
       .key = "torch_compiled",
       .filter_name = "PyTorch AOTInductor",
       .import = "torch",
       .variant = "compile"},
      {.name = "JAX", .key = "jax", .filter_name = "JAX jit", .import = "jax"},
  };
  for (int i = 0; i < TWINS; i++) {
    twin *t = &twins[i];
    *t = all[i];
    bool torch = !strcmp(t->import, "torch");
    t->python = torch ? torch_python : jax_python;
    snprintf(t->script, sizeof t->script, "%s/%s_%s.py", peers, t->import, what);
  }
}

void twin_command(const twin *t, char *words[TWIN_WORDS], char *const *more) {
  int n = 0;
  words[n++] = (char *)t->python;
  words[n++] = (char *)t->script;
  if (t->variant) {
    words[n++] = "--variant";
    words[n++] = (char *)t->variant;
  }
  while (*more && n < TWIN_WORDS - 1) words[n++] = *more++;
  words[n] = NULL;
}

void twin_end(twin *t) {
  if (t->process.pid) process_end(&t->process, 10);
}

void twins_end(twin *twins) {
  for (int i = 0; i < TWINS; i++) twin_end(&twins[i]);
}

static char *lose(twin *t, const char *how) {
  progress_end();
  fprintf(stderr, "bench: %s %s; it is left out from here on\n", t->name, how);
  if (t->process.pid) process_end(&t->process, 0);
  t->lost = true;
  return NULL;
}

/* It begins with a line that tells its version. */
static bool start(twin *t) {
  char *words[TWIN_WORDS];
  twin_command(t, words, (char *[]){"--serve", NULL});
  progress("starting %s", t->name);
  if (!process_start(&t->process, words)) return lose(t, "could not be started");
  char *line = process_read(&t->process, patience);
  progress_end();
  if (!line) return lose(t, "did not start");
  snprintf(t->version, sizeof t->version, "%s", line);
  return true;
}

char *twin_ask(twin *t, const char *format, ...) {
  char question[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(question, sizeof question, format, arguments);
  va_end(arguments);
  if (!twin_there(t) || (!t->process.pid && !start(t))) return NULL;
  char *answer = process_tell(&t->process, question) ? process_read(&t->process, patience) : NULL;
  if (answer) return answer;
  question[strcspn(question, "\n")] = 0;
  char how[192];
  snprintf(how, sizeof how, "gave no answer to \"%s\"", question);
  return lose(t, how);
}

double twin_update(twin *t, const char *initial, int batch, int threads, int updates) {
  char *answer = twin_ask(t, "update %s %d %d %d\n", initial, batch, threads, updates);
  double seconds = answer ? atof(answer) : 0;
  return seconds > 0 ? seconds / updates : (double)NAN;
}

int twin_best_threads(twin *t, const char *initial, int batch) {
  enum { ROUNDS = 5, UPDATES = 10 };
  sample seconds[TWIN_THREADS] = {{0}};
  for (int r = 0; r < ROUNDS; r++)
    for (int n = 0; n < TWIN_THREADS; n++) put(&seconds[n], twin_update(t, initial, batch, n + 1, UPDATES));
  int best = 0;
  for (int n = 0; n < TWIN_THREADS; n++)
    if (median(&seconds[n]) < median(&seconds[best])) best = n;
  for (int n = 0; n < TWIN_THREADS; n++) sample_free(&seconds[n]);
  return best + 1;
}
