/* Manual pages, as roff with the macros of man(7). No page tells when it was made, so that the same program
 * makes the same pages. */
#include "describe.h"
#include "files.h"
#include "training.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* ---- Text as roff ---- */

static const char *escape(char letter) {
  switch (letter) {
  case '\\': return "\\e";
  case '-': return "\\-"; /* a minus can be copied, a hyphen cannot */
  case '\'': return "\\(aq";
  case '"': return "\\(dq";
  case '^': return "\\(ha";
  case '~': return "\\(ti";
  default: return NULL;
  }
}

/* What stands between backquotes becomes bold; `bold` tells whether text begins and then ends inside. */
static void put(FILE *out, const char *text, size_t length, bool *bold) {
  if (length && *text == '.') fputs("\\&", out); /* a point would begin a macro */
  for (size_t i = 0; i < length; i++) {
    const char *escaped = escape(text[i]);
    if (text[i] == '`')
      fputs((*bold = !*bold) ? "\\fB" : "\\fR", out);
    else if (escaped)
      fputs(escaped, out);
    else
      putc(text[i], out);
  }
}

static void put_line(FILE *out, const char *text) {
  bool bold = false;
  put(out, text, strlen(text), &bold);
  fputs(bold ? "\\fR\n" : "\n", out);
}

/* ---- The parts of a page ---- */

static void write_heading(FILE *out, const char *title) {
  fputs(".SH ", out);
  for (; *title; title++) putc(toupper((unsigned char)*title), out);
  putc('\n', out);
}

static void write_item(FILE *out, const cli_item *item) {
  bool bold = false;
  fputs(".TP\n", out);
  if (item->letter) fprintf(out, "\\fB\\-%c\\fR, ", item->letter);
  fputs(item->option ? "\\fB\\-\\-" : "\\fB", out);
  put(out, item->name, strlen(item->name), &bold);
  fprintf(out, "\\fR%s%s%s\n", item->value ? " \\fI" : "", item->value ? item->value : "",
          item->value ? "\\fR" : "");
  put_line(out, item->help);
  if (!item->range) return;
  fputs(".br\n", out);
  put(out, item->range, strlen(item->range), &bold);
  if (*item->initial) fputs("; default ", out);
  put(out, item->initial, strlen(item->initial), &bold);
  if (item->users) fputs(*item->range || *item->initial ? "; for " : "for ", out);
  put_line(out, item->users ? item->users : "");
}

static void write_text(FILE *out, const char *text) {
  bool bold = false, plain = false;
  fputs(".PP\n", out);
  for (size_t length; *text; text += length + (text[length] == '\n')) {
    length = strcspn(text, "\n");
    if ((*text == ' ') != plain) fputs(plain ? ".fi\n" : ".nf\n", out);
    plain = *text == ' ';
    if (!length) {
      fputs(".PP\n", out);
      continue;
    }
    put(out, text, length, &bold);
    putc('\n', out);
  }
  if (plain) fputs(".fi\n", out);
  if (bold) fputs("\\fR\n", out);
}

static const cli_writer writer = {write_heading, write_item, write_text};

/* ---- Pages ---- */

/* `name` is "" on the page of the program itself. */
static void begin(FILE *out, const char *name, const char *help, const char *synopsis) {
  char title[64], line[256];
  snprintf(title, sizeof title, "dvbf%s%s", *name ? "-" : "", name);
  fprintf(out, ".TH \"");
  for (const char *c = title; *c; c++) putc(toupper((unsigned char)*c), out);
  fprintf(out, "\" \"1\" \"\" \"dvbf %s\" \"User Commands\"\n.SH NAME\n", DVBF_VERSION);
  snprintf(line, sizeof line, "%s - %s", title, help);
  put_line(out, line);
  fprintf(out, ".SH SYNOPSIS\n\\fBdvbf%s%s\\fR ", *name ? " " : "", name);
  put_line(out, synopsis);
  fputs(".SH DESCRIPTION\n", out);
}

/* All pages but the one that is called `but`. */
static void see_also(FILE *out, const cli_command *const *commands, const char *but) {
  fputs(".SH SEE ALSO\n", out);
  if (*but) fprintf(out, "\\fBdvbf\\fR(1)");
  for (bool first = !*but; *commands; commands++) {
    if (!strcmp((*commands)->name, but)) continue;
    fprintf(out, "%s\\fBdvbf\\-%s\\fR(1)", first ? "" : ",\n", (*commands)->name);
    first = false;
  }
  putc('\n', out);
}

static void write_files(FILE *out) {
  static const cli_item files[] = {
      {.name = "FOLDER/" CLI_MODEL, .help = "the best model: its parameters, scaling and settings"},
      {.name = "FOLDER/" CLI_METRICS,
       .help =
           "a line for each validation: update, start, seconds, bounds and their parts in nats per frame, "
           "prediction error over the variance of x, rates"},
      {.name = "FOLDER/" CLI_SETTINGS, .help = "every setting of the run; --config takes it"},
      {.name = "FOLDER/data.json",
       .help =
           "names and units of columns, shape of images and sample time of the data, where they are known"},
      {.name = "FOLDER/" DVBF_RUN_CHECKPOINT, .help = "all that `dvbf train --resume` needs to go on"},
      {.name = "FOLDER/" DVBF_RUN_SEARCH,
       .help = "what a search has tried: settings that differ, errors over those of the linear model, rank"},
  };
  write_heading(out, "Files");
  write_text(out, "The folder of a run, written by `dvbf train -o FOLDER`, holds");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) write_item(out, &files[i]);
}

static void write_environment(FILE *out) {
  const cli_item isa = {.name = "DVBF_ISA",
                        .help =
                            "base, v3 or v4: the instruction set to use, which the processor must have; by "
                            "default the best that it has"};
  write_heading(out, "Environment");
  write_item(out, &isa);
}

static void write_program(FILE *out, const cli_command *const *commands) {
  begin(out, "", "learn latent state-space models from sequences, filter and predict with them",
        "COMMAND [ARGUMENTS] [--OPTION VALUE ...]");
  cli_describe_all(commands, &writer, out);
  write_files(out);
  write_environment(out);
  write_heading(out, "Examples");
  for (const cli_command *const *c = commands; *c; c++) {
    const cli_example *first = (*c)->examples;
    if (first->line) write_item(out, &(cli_item){.name = first->line, .help = first->help});
  }
  see_also(out, commands, "");
}

static void write_command(FILE *out, const cli_command *command, const cli_command *const *commands) {
  begin(out, command->name, command->help, command->synopsis);
  if (!command->details) write_text(out, command->help);
  cli_describe(command, true, &writer, out);
  see_also(out, commands, command->name);
}

/* ---- Files ---- */

static FILE *open_in(const char *folder, const char *name, cli_path path, dvbf_error *error) {
  cli_join(path, folder, name);
  FILE *file = fopen(path, "w");
  if (!file) cli_fail(error, DVBF_IO, "%.300s: cannot be written: %s", path, strerror(errno));
  return file;
}

static dvbf_status close_file(FILE *file, const char *path, dvbf_error *error) {
  bool failed = ferror(file);
  if (fclose(file)) failed = true;
  return failed ? cli_fail(error, DVBF_IO, "%.300s: cannot be written", path) : DVBF_OK;
}

/* The page of a command; NULL: of the program. */
static dvbf_status page(const cli_command *command, const cli_command *const *commands, const char *folder,
                        dvbf_error *error) {
  char name[64];
  cli_path path;
  snprintf(name, sizeof name, "dvbf%s%s.1", command ? "-" : "", command ? command->name : "");
  FILE *file = open_in(folder, name, path, error);
  if (!file) return error->status;
  if (command)
    write_command(file, command, commands);
  else
    write_program(file, commands);
  return close_file(file, path, error);
}

dvbf_status cli_manual(const cli_command *const *commands, const char *folder, dvbf_error *error) {
  cli_path path;
  dvbf_status status = dvbf_folder_make(folder, error);
  if (!status) status = page(NULL, commands, folder, error);
  for (const cli_command *const *c = commands; !status && *c; c++) status = page(*c, commands, folder, error);
  if (status) return status;
  FILE *file = open_in(folder, "dvbf.bash", path, error);
  if (!file) return error->status;
  cli_completion(commands, file);
  return close_file(file, path, error);
}
