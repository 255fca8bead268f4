/* Why not PyTorch or JAX? One report: time and memory of training and of the online filter, how they grow,
 * and the time until a model is good, beside twins of the same model in PyTorch and JAX (bench/peers).
 * Everything that is compared is measured in turn in the same rounds, because the machine may be shared. */
#include "section.h"

#include "engine/kernels.h"
#include "sgemm.h"

#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

typedef struct section {
  const char *name, *title;
  json_t *(*run)(bench *b);
} section;

static const section sections[] = {
    {"updates", "Time of an update: DVBF-LL, 256 pixels, 15 frames", section_updates},
    {"memory", "Memory of a process that trains: batch 500, 2 threads", section_memory},
    {"growth", "How the time of an update grows: 2 threads", section_growth},
    {"until", "Time until the paper's R^2 on held-out sequences of the pendulum", section_until},
    {"filter", "One step of the online filter, one sequence", section_filter},
    {"startup", "Start-up of a process", section_startup},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static const char help[] =
    "usage: bench [OPTION]...\n"
    "Measures dvbf and, where they can run, its twins in PyTorch and JAX; prints a report and writes a\n"
    "JSON file. bench/run starts it with the twins that it finds.\n\n"
    "  --rounds N        each contender in turn, so often (default 11)\n"
    "  --seeds N         of the section until: seeds 1 to N (default 10)\n"
    "  --only A,B        these sections: updates, memory, growth, until, filter, startup\n"
    "  --quick           few rounds and shapes: to see that all of it runs\n"
    "  --json FILE       for all figures (default bench.json in the build folder)\n"
    "  --peers FOLDER    of the twins' scripts\n"
    "  --torch PYTHON    an interpreter that has PyTorch\n"
    "  --jax PYTHON      one that has JAX\n"
    "  --help            this text\n";

/* ---- What the sections share ---- */

json_t *json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_of(const sample *s) {
  if (!s->n) return json_null();
  return json_pack("{s:o, s:o, s:o, s:i}", "median", json_number(median(s)), "p10",
                   json_number(quantile(s, 0.1)), "p90", json_number(quantile(s, 0.9)), "rounds", (int)s->n);
}

bool can_multiply(const char *products) {
  const dv_products *found;
  dvbf_error error;
  int64_t choice = !strcmp(products, "float")      ? DV_FLOAT
                   : !strcmp(products, "bfloat16") ? DV_BFLOAT16
                                                   : DV_BFLOAT16X3;
  return dv_products_choose(&found, choice, &error) == DVBF_OK;
}

/* ---- The machine ---- */

static void cpu_name(char *out, size_t size) {
  char line[512];
  FILE *f = fopen("/proc/cpuinfo", "r");
  snprintf(out, size, "unknown processor");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
      line[strcspn(line, "\n")] = 0;
      snprintf(out, size, "%s", strchr(line, ':') + 2);
      break;
    }
  if (f) fclose(f);
}

static json_t *describe_machine(void) {
  char name[256];
  cpu_name(name, sizeof name);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  printf("dvbf %s on %s, %ld cores; products in %s%s\n", DVBF_VERSION, name, cores, "float",
         can_multiply("bfloat16") ? ", tile units (AMX) are there" : "");
  return json_pack("{s:s, s:i, s:b, s:s}", "cpu", name, "cores", (int)cores, "tile_units",
                   can_multiply("bfloat16"), "dvbf", DVBF_VERSION);
}

/* ---- Options ---- */

typedef struct options {
  const char *only, *json, *peers, *torch_python, *jax_python;
} options;

static bool chosen(const char *only, const char *name) {
  size_t length = strlen(name);
  for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (!strncmp(at, name, length) && (at[length] == ',' || !at[length])) return true;
  return !only;
}

static void check_only(const char *only) {
  for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    char name[32];
    bool known = false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
    for (int i = 0; i < SECTIONS; i++) known |= !strcmp(name, sections[i].name);
    if (known) continue;
    fprintf(stderr, "bench: there is no section \"%s\"; see --help\n", name);
    exit(2);
  }
}

static int number(const char *name, const char *text) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*text && !*end && value >= 1 && value <= 1000) return (int)value;
  fprintf(stderr, "bench: --%s %s: must be a whole number from 1 to 1000\n", name, text);
  exit(2);
}

static options parse(bench *b, int count, char **arguments) {
  options o = {0};
  enum { ROUNDS = 1, SEEDS, ONLY, JSON, QUICK, PEERS, TORCH, JAX, HELP };
  static const struct option known[] = {
      {"rounds", 1, NULL, ROUNDS}, {"seeds", 1, NULL, SEEDS},
      {"only", 1, NULL, ONLY},     {"json", 1, NULL, JSON},
      {"quick", 0, NULL, QUICK},   {"peers", 1, NULL, PEERS},
      {"torch", 1, NULL, TORCH},   {"jax", 1, NULL, JAX},
      {"help", 0, NULL, HELP},     {0},
  };
  for (int which; (which = getopt_long(count, arguments, "", known, NULL)) != -1;) {
    if (which == ROUNDS) b->rounds = number("rounds", optarg);
    if (which == SEEDS) b->seeds = number("seeds", optarg);
    if (which == ONLY) o.only = optarg;
    if (which == JSON) o.json = optarg;
    if (which == QUICK) b->quick = true;
    if (which == PEERS) o.peers = optarg;
    if (which == TORCH) o.torch_python = optarg;
    if (which == JAX) o.jax_python = optarg;
    if (which == HELP) exit(fputs(help, stdout) < 0);
    if (which == '?') exit(2);
  }
  if (optind < count) {
    fprintf(stderr, "bench: what is \"%s\"? see --help\n", arguments[optind]);
    exit(2);
  }
  check_only(o.only);
  if (!b->rounds) b->rounds = b->quick ? 2 : 11;
  if (!b->seeds) b->seeds = b->quick ? 1 : 10;
  b->slice = b->quick ? 0.05 : 0.15;
  return o;
}

/* Files and programs are named from the build folder, the one above ours. */
static void enter_build_folder(void) {
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  if (n <= 0 || chdir(dirname(dirname(path)))) {
    perror("bench: the build folder");
    exit(1);
  }
}

/* A path that means the same in every folder. */
static char *absolute(const char *path) {
  char folder[PATH_MAX] = "";
  char *out = dv_calloc(1, 2 * PATH_MAX);
  if (!out || (*path != '/' && !getcwd(folder, sizeof folder))) {
    perror("bench");
    exit(1);
  }
  snprintf(out, 2 * PATH_MAX, "%s%s%s", folder, *path == '/' ? "" : "/", path);
  return out;
}

static void write_json(json_t *all, const char *path) {
  if (json_dump_file(all, path, JSON_INDENT(2))) {
    fprintf(stderr, "bench: %s could not be written\n", path);
    exit(1);
  }
  printf("\nAll figures and more: %s\n", path);
}

int main(int count, char **arguments) {
  static bench b;
  insist_on_fast_blas(arguments);
  options o = parse(&b, count, arguments);
  char *peers = absolute(o.peers ? o.peers : "."), *json = o.json ? absolute(o.json) : NULL;
  signal(SIGPIPE, SIG_IGN); /* a twin that ended is noticed when it does not answer */
  enter_build_folder();
  if (!json) json = absolute("bench.json");
  setvbuf(stdout, NULL, _IOLBF, 0);
  twins_prepare(b.twins, peers, "twin", o.torch_python, o.jax_python);
  json_t *all =
      json_pack("{s:o, s:i, s:b}", "machine", describe_machine(), "rounds", b.rounds, "quick", b.quick);
  printf("Medians of %d interleaved rounds, in brackets what 10 %% and 90 %% of them are below.\n", b.rounds);
  for (int i = 0; i < SECTIONS; i++) {
    if (!chosen(o.only, sections[i].name)) continue;
    printf("\n== %s: %s\n\n", sections[i].name, sections[i].title);
    json_object_set_new(all, sections[i].name, sections[i].run(&b));
  }
  json_t *versions = json_object();
  for (int i = 0; i < TWINS; i++)
    if (*b.twins[i].version) json_object_set_new(versions, b.twins[i].key, json_string(b.twins[i].version));
  json_object_set_new(all, "twins", versions);
  twins_end(b.twins);
  write_json(all, json);
  json_decref(all);
  dv_free(peers);
  dv_free(json);
  return 0;
}
