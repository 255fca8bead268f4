/* One description of all commands (cli_describe) and three writers of it: help for a terminal, manual pages
 * (roff, man(7)), and completion for bash; and docs/settings.md, from the table of `train`. No page has a
 * date, so the same program makes the same pages. */
#include "help.h"

#include "options.h"
#include "progress.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* ---- Help for a terminal ---- */

enum { OPTION_COLUMN = 34, WORD_COLUMN = 22, WIDTH = 100 }; /* columns where explanations begin */

/* A heading or paragraphs. */
static void print_paragraph(FILE *out, const char *text) {
  fprintf(out, "\n%s\n", text);
}

/* Prints words in lines of WIDTH columns, indented to `column`, where the cursor is. */
static void print_words(FILE *out, const char *words, int column) {
  for (int at = column; *words;) {
    int length = (int)strcspn(words, " ");
    if (at > column && at + 1 + length > WIDTH) {
      fprintf(out, "\n%*s", column, "");
      at = column;
    }
    at += fprintf(out, "%s%.*s", at > column ? " " : "", length, words);
    words += length + (words[length] == ' ');
  }
  fprintf(out, "\n");
}

/* After a long name, the explanation begins on the next line. */
static void print_item(FILE *out, const cli_item *item) {
  char left[256], letter[8] = "";
  if (item->option && !item->range) strcpy(letter, "    ");
  if (item->letter) snprintf(letter, sizeof letter, "-%c, ", item->letter);
  snprintf(left, sizeof left, "%s%s%s%s%s", letter, item->option ? "--" : "", item->name,
           item->value ? " " : "", item->value ? item->value : "");
  int column = item->option ? OPTION_COLUMN : WORD_COLUMN;
  bool narrow = strlen(left) < (size_t)column - 2;
  fprintf(out, "  %-*s%s", narrow ? column - 2 : 0, left, narrow ? "" : "\n");
  fprintf(out, "%*s", narrow ? 0 : column, "");
  print_words(out, item->help, column);
  bool has_default = item->range && *item->initial;
  if (has_default) fprintf(out, "%*s%s; default %s", column, "", item->range, item->initial);
  if (item->users)
    fprintf(out, "%*s%sfor %s", has_default ? 0 : column, "", has_default ? "; " : "", item->users);
  if (has_default || item->users) fputs("\n", out);
}

const cli_writer cli_help_writer = {print_paragraph, print_item, print_paragraph};

void cli_help(const cli_command *command, bool all) {
  printf("usage: dvbf %s %s\n\n%s\n", command->name, command->synopsis, command->help);
  cli_describe(command, all, &cli_help_writer, stdout);
}

/* ---- Description ---- */

typedef struct walk {
  const cli_writer *writer;
  FILE *out;
} walk;

static void heading(const walk *w, const char *title) {
  if (w->writer->heading) w->writer->heading(w->out, title);
}

/* {read} and {written} become the lists of formats. */
static const char *with_formats(const char *words, char *out, size_t size) {
  const char *brace = strchr(words, '{');
  bool read = brace && !strncmp(brace, "{read}", 6), written = brace && !strncmp(brace, "{written}", 9);
  char list[DVBF_FORMATS];
  if (!read && !written) return words;
  snprintf(out, size, "%.*s%s%s", (int)(brace - words), words, dvbf_formats(written, list),
           strchr(brace, '}') + 1);
  return out;
}

static void text(const walk *w, const char *words) {
  char room[4096];
  if (w->writer->text && words)
    w->writer->text(w->out, with_formats(words + strspn(words, "\n"), room, sizeof room));
}

static void item(const walk *w, cli_item one) {
  char room[512];
  one.help = with_formats(one.help, room, sizeof room);
  if (w->writer->item) w->writer->item(w->out, &one);
}

static void flags(const walk *w, const cli_flag *list) {
  heading(w, "Options");
  for (; list->name; list++)
    item(w, (cli_item){true, list->letter, list->name, list->value, list->help, NULL, NULL, NULL});
  item(w, (cli_item){true, 'h', "help", NULL, "print the most common options and exit", NULL, NULL, NULL});
  item(w, (cli_item){true, 0, "help-all", NULL, "print all options and exit", NULL, NULL, NULL});
}

/* Short help lists the common settings of a table; all, if none is marked as common. */
static bool has_common(const char *name) {
  dvbf_setting_info info;
  for (size_t i = 0; dvbf_settings_table(name, i, &info); i++)
    if (info.common) return true;
  return false;
}

/* The settings that are no recipes, by group, or the common ones; returns the number of those left out.
 * `title` names the owner of the settings, for a command with several tables. */
static size_t table(const walk *w, const char *name, const char *title, bool all) {
  dvbf_setting_info info;
  char group[64] = "", line[160];
  bool switches = false;
  size_t left_out = 0;
  for (size_t i = 0; dvbf_settings_table(name, i, &info); i++) {
    if (info.recipe) continue;
    if (!all && !info.common) {
      left_out++;
      continue;
    }
    const char *found = all ? info.group : "common";
    snprintf(line, sizeof line, "%s%s%s settings", title, *title ? ": " : "", found);
    if (!all) *line = (char)toupper((unsigned char)*line);
    if (strcmp(group, found) != 0) heading(w, line);
    snprintf(group, sizeof group, "%s", found);
    item(w, (cli_item){true, 0, info.name, info.kind, info.help, info.range, info.initial, info.users});
    switches |= all && !strcmp(info.kind, "switch");
  }
  if (switches) text(w, "A switch: --NAME means on, --no-NAME off.");
  return left_out;
}

static void list(const walk *w, const char *title, const char *(*of)(size_t index, const char **help)) {
  const char *name, *help;
  heading(w, title);
  for (size_t i = 0; (name = of(i, &help)); i++) item(w, (cli_item){.name = name, .help = help});
}

static void presets(const walk *w) {
  list(w, "Presets", dvbf_preset_name);
  text(w, "Use one with --preset. Flags override the config file, which overrides the preset.");
}

static void examples(const walk *w, const cli_example *list) {
  if (!list->line) return;
  heading(w, "Examples");
  for (; list->line; list++) item(w, (cli_item){.name = list->line, .help = list->help});
}

void cli_describe(const cli_command *command, bool all, const cli_writer *writer, FILE *out) {
  walk w = {writer, out};
  char line[160];
  size_t left_out = 0;
  text(&w, command->details);
  if (command->list) list(&w, command->list_title, command->list);
  flags(&w, command->flags);
  const char *name;
  char owners[128];
  bool several = cli_flag_table(command, 1, NULL);
  for (size_t i = 0; (name = cli_flag_table(command, i, owners)); i++)
    left_out += table(&w, name, several ? owners : "", all || !has_common(name));
  if (command->presets && all) presets(&w);
  examples(&w, command->examples);
  snprintf(line, sizeof line, "`dvbf help %s --all` lists %zu more settings by group%s.", command->name,
           left_out, command->presets ? ", and the presets" : "");
  if (left_out) text(&w, line);
}

void cli_describe_all(const cli_command *const *commands, const cli_writer *writer, FILE *out) {
  static const cli_item statuses[] = {
      {.name = "0", .help = "done"},
      {.name = "1", .help = "failure; a sentence on standard error gives the reason"},
      {.name = "2", .help = "wrong usage; a sentence on standard error gives the remedy"},
      {.name = "3", .help = "trained, but the model is no better than the mean of the data"},
      {.name = "128 + N", .help = "stopped by signal N; the state of training is saved"},
  };
  walk w = {writer, out};
  text(&w, "Learns a latent state-space model from sequences and uses it to filter, forecast and control.");
  heading(&w, "Commands");
  for (; *commands; commands++) item(&w, (cli_item){.name = (*commands)->name, .help = (*commands)->help});
  text(&w, "`dvbf help COMMAND` describes a command, `dvbf help COMMAND --all` all of its settings;\n"
           "`dvbf version` prints the version.");
  heading(&w, "Exit status");
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) item(&w, statuses[i]);
}

/* ---- Manual pages: text as roff ---- */

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

/* Text between backquotes becomes bold; *bold is the state before and after. */
static void put(FILE *out, const char *text, size_t length, bool *bold) {
  if (length && *text == '.') fputs("\\&", out); /* a period would begin a macro */
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

/* ---- Parts of a page ---- */

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

/* `name` is "" for the page of the program itself. */
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

/* All pages except `but`. */
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
      {.name = "FOLDER/" DVBF_RUN_MODEL, .help = "the best model: its parameters, scaling and settings"},
      {.name = "FOLDER/" DVBF_RUN_METRICS,
       .help = "one line per validation: update, start, seconds, bounds and their terms in nats per frame, "
               "prediction error over the variance of x, schedules"},
      {.name = "FOLDER/" DVBF_RUN_SETTINGS, .help = "all settings of the run, in the format of --config"},
      {.name = "FOLDER/data.json",
       .help = "names and units of the columns, image size and sample time, if known"},
      {.name = "FOLDER/" DVBF_RUN_CHECKPOINT, .help = "everything that `dvbf train --resume` needs"},
      {.name = "FOLDER/" DVBF_RUN_SEARCH,
       .help = "candidates of a search: changed settings, errors relative to the linear model, rank"},
  };
  write_heading(out, "Files");
  write_text(out, "A run folder, written by `dvbf train -o FOLDER`, contains");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) write_item(out, &files[i]);
}

static void write_environment(FILE *out) {
  const cli_item isa = {.name = "DVBF_ISA",
                        .help = "instruction set to use: base, v3 or v4 (of x86-64); by default the best "
                                "that the processor supports"};
  write_heading(out, "Environment");
  write_item(out, &isa);
}

static void write_program(FILE *out, const cli_command *command, const cli_command *const *commands) {
  begin(out, "", "learn latent state-space models from sequences, filter and forecast with them",
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

/* ---- Settings as Markdown ---- */

/* A cell of a table, in which a bar would begin the next one. */
static void put_cell(FILE *out, const char *text) {
  fputs(" ", out);
  for (; *text; text++) fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text);
  fputs(" |", out);
}

static void put_row(FILE *out, const dvbf_setting_info *info) {
  fprintf(out, "| `%s` |", info->name);
  put_cell(out, info->initial);
  put_cell(out, info->range);
  put_cell(out, info->users ? info->users : "all");
  put_cell(out, info->help);
  fputc('\n', out);
}

/* The settings that help lists, by group, or the recipes. */
static void put_rows(FILE *out, bool recipes) {
  dvbf_setting_info info;
  char group[64] = "";
  for (size_t i = 0; dvbf_settings_table("train", i, &info); i++) {
    if (info.recipe != recipes) continue;
    if (!recipes && strcmp(group, info.group) != 0) fprintf(out, "\n## %s\n", info.group);
    if (recipes ? !*group : strcmp(group, info.group) != 0)
      fputs("\n| setting | default | values | models or density | meaning |\n|---|---|---|---|---|\n", out);
    snprintf(group, sizeof group, "%s", info.group);
    put_row(out, &info);
  }
}

static void write_settings(FILE *out, const cli_command *command, const cli_command *const *commands) {
  fputs("# Settings of `dvbf train`\n\n"
        "`dvbf manual FOLDER` writes this page. Flags, `--config` files, presets and Python use the same "
        "names. A\n"
        "setting that nobody gives is chosen for the data; `train` prints what it chose and why.\n",
        out);
  put_rows(out, false);
  fputs("\n## Recipes\n\n"
        "Presets, rules and the search set these; `help train` does not list them.\n",
        out);
  put_rows(out, true);
}

/* ---- Completion for bash ---- */

/* --name and, for a switch, --no-name. */
static void put_name(FILE *out, const cli_item *item) {
  if (!item->option) return;
  fprintf(out, " --%s", item->name);
  if (item->range && !strcmp(item->value, "switch")) fprintf(out, " --no-%s", item->name);
}

static void put_presets(FILE *out) {
  for (size_t i = 0; dvbf_preset_name(i, NULL); i++)
    fprintf(out, "%s%s", i ? " " : "", dvbf_preset_name(i, NULL));
}

/* "a | b | c" without the bars. */
static void put_choices(FILE *out, const char *range) {
  for (; *range; range++)
    if (*range != '|' && !(range[0] == ' ' && range[1] == '|')) putc(*range, out);
}

/* The values of an option, or a placeholder such as <FILE>; nothing for a number or a text. */
static void put_values(FILE *out, const cli_item *item) {
  bool choice = item->range && !strcmp(item->value, "choice");
  bool lone = item->range && !strcmp(item->value, "switch"); /* its value is optional */
  if (!item->option || (item->range && !choice && !lone)) return;
  fputs("    ", out);
  if (item->letter) fprintf(out, "-%c | ", item->letter);
  fprintf(out, "--%s) %s", item->name, !item->value ? "" : lone ? "words='" : "values='");
  if (item->range)
    put_choices(out, item->range);
  else if (!strcmp(item->name, "preset"))
    put_presets(out);
  else if (item->value)
    fprintf(out, "<%s>", item->value);
  fputs(item->value ? "' ;;\n" : ";;\n", out);
}

static const cli_writer names = {.item = put_name}, values = {.item = put_values};

static void put_command(FILE *out, const cli_command *command) {
  fprintf(out, "  %s)\n    options='", command->name);
  cli_describe(command, true, &names, out);
  fputs("'\n", out);
  if (cli_choice(command, 0)) {
    const char *choice;
    fputs("    first='", out);
    for (size_t i = 0; (choice = cli_choice(command, i)); i++) fprintf(out, "%s%s", i ? " " : "", choice);
    fputs("'\n", out);
  }
  fputs("    case $before in\n", out);
  cli_describe(command, true, &values, out);
  fputs("    -- | --no-*) ;;\n    -*) values='<>' ;;\n    esac ;;\n", out);
}

/* ---- Function ---- */

static const char beginning[] =
    "# Bash completion of dvbf, generated by `dvbf manual`.\n"
    "\n"
    "# `values`: those of the option before the cursor, which needs one; `words`: the same, optional;\n"
    "# `first`: choices of the first argument of a command.\n"
    "_dvbf() {\n"
    "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i\n"
    "  local options='' values='' words='' first=''\n"
    "  if [[ $word == '=' ]]; then\n"
    "    word=''\n"
    "  elif [[ $before == '=' && $COMP_CWORD -gt 2 ]]; then\n"
    "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "  fi\n"
    "  COMPREPLY=()\n"
    "  if ((COMP_CWORD == 1)) || [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == help ]]; then\n";

static const char middle[] = "    return\n"
                             "  fi\n"
                             "  case ${COMP_WORDS[1]} in\n";

static const char ending[] =
    "  *) return ;;\n"
    "  esac\n"
    "  case $values in\n"
    "  '')\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "      [[ \" $first \" == *\" ${COMP_WORDS[i]} \"* ]] && first=''\n"
    "    done\n"
    "    if [[ $word == -* ]]; then\n"
    "      mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
    "    elif [[ $first ]]; then\n"
    "      mapfile -t COMPREPLY < <(compgen -W \"$words $first\" -- \"$word\")\n"
    "    else\n"
    "      compopt -o filenames 2>/dev/null\n"
    "      mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; compgen -f -- \"$word\")\n"
    "    fi ;;\n"
    "  '<FILE>' | '<DATA>' | '<RUN>')\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
    "  '<FOLDER>')\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;\n"
    "  '<'*) ;;\n"
    "  *) mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\") ;;\n"
    "  esac\n"
    "}\n"
    "complete -F _dvbf dvbf\n";

static void write_completion(FILE *out, const cli_command *command, const cli_command *const *commands) {
  fputs(beginning, out);
  fputs("    mapfile -t COMPREPLY < <(compgen -W '", out);
  for (const cli_command *const *c = commands; *c; c++) fprintf(out, "%s ", (*c)->name);
  fputs("help version --help --version' -- \"$word\")\n", out);
  fputs(middle, out);
  for (const cli_command *const *c = commands; *c; c++) put_command(out, *c);
  fputs(ending, out);
}

/* ---- Files ---- */

/* `command` is NULL for files of the whole program. */
typedef void write_fn(FILE *out, const cli_command *command, const cli_command *const *commands);

static dvbf_status write_one(const char *folder, const char *name, write_fn *write,
                             const cli_command *command, const cli_command *const *commands,
                             dvbf_error *error) {
  dv_path path;
  dv_join(path, folder, name);
  FILE *file = fopen(path, "w");
  if (!file) return dv_fail(error, DVBF_IO, "%.300s: cannot be written: %s", path, strerror(errno));
  write(file, command, commands);
  bool failed = ferror(file);
  if (fclose(file)) failed = true;
  return failed ? dv_fail(error, DVBF_IO, "%.300s: cannot be written", path) : DVBF_OK;
}

dvbf_status cli_manual(const cli_command *const *commands, const char *folder, dvbf_error *error) {
  char name[64];
  dvbf_status status = dvbf_folder_make(folder, error);
  if (!status) status = write_one(folder, "dvbf.1", write_program, NULL, commands, error);
  for (const cli_command *const *c = commands; !status && *c; c++) {
    snprintf(name, sizeof name, "dvbf-%s.1", (*c)->name);
    status = write_one(folder, name, write_command, *c, commands, error);
  }
  if (!status) status = write_one(folder, "dvbf.bash", write_completion, NULL, commands, error);
  return status ? status : write_one(folder, "settings.md", write_settings, NULL, commands, error);
}
