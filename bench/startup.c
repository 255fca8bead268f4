/* Wall time of a process that does next to nothing: what every start of ours, or of a program that uses
 * PyTorch or JAX, costs before any work is done. */
#include "section.h"

#include <unistd.h>

typedef struct start {
  const char *name, *key;
  char *command[5];
  sample seconds;
} start;

static void save_model(const char *path) {
  dvbf_error error;
  dvbf_sequences data = bench_data(100, 15, 256);
  dvbf_model *model = bench_model(&data, "mlp", 50, NULL);
  must(dvbf_model_save(model, path, &error), &error);
  dvbf_model_free(model);
  dvbf_sequences_free(&data);
}

static const char *python_of(const bench *b, const char *import) {
  for (int i = 0; i < TWINS; i++)
    if (!strcmp(b->twins[i].import, import)) return b->twins[i].python;
  return NULL;
}

/* A command that fails is not tried again. */
static void measure(start *starts, int n, int rounds) {
  for (int r = 0; r < rounds; r++) {
    progress("startup: round %d of %d", r + 1, rounds);
    for (int i = 0; i < n; i++) {
      if (!starts[i].command[0]) continue;
      command_result result = command_run(starts[i].command, 120);
      if (!result.status) put(&starts[i].seconds, result.seconds);
      if (result.status) starts[i].command[0] = NULL;
    }
  }
  progress_end();
}

json_t *section_startup(bench *b) {
  char model[64];
  snprintf(model, sizeof model, "bench-%d.safetensors", (int)getpid());
  start starts[] = {
      {"dvbf --version", "dvbf", {"./dvbf", "--version"}, {0}},
      {"dvbf info MODEL", "dvbf_info", {"./dvbf", "info", model}, {0}},
      {"import torch", "torch", {(char *)python_of(b, "torch"), "-c", "import torch"}, {0}},
      {"import jax", "jax", {(char *)python_of(b, "jax"), "-c", "import jax"}, {0}},
  };
  enum { N = sizeof starts / sizeof *starts };
  json_t *rows = json_array();
  save_model(model);
  measure(starts, N, b->rounds < 7 ? b->rounds : 7);
  printf("%-22s %27s %16s\n", "", "ms", "of dvbf info");
  for (int i = 0; i < N; i++) {
    const sample *s = &starts[i].seconds;
    if (!s->n) continue;
    sample ratio = ratios(s, &starts[1].seconds);
    printf("%-22s %9.1f (%6.1f ..%7.1f) %15.1fx\n", starts[i].name, 1e3 * median(s), 1e3 * quantile(s, 0.1),
           1e3 * quantile(s, 0.9), median(&ratio));
    json_array_append_new(rows, json_pack("{s:s, s:o, s:o}", "who", starts[i].key, "seconds", json_of(s),
                                          "of_dvbf_info", json_of(&ratio)));
    sample_free(&ratio);
  }
  for (int i = 0; i < N; i++) sample_free(&starts[i].seconds);
  remove(model);
  return rows;
}
