/* The completion for bash: shell patterns with the options of each command, and a function that chooses among
 * them. */
#include "describe.h"

#include <string.h>

/* ---- What stands in the tables ---- */

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

/* The values that may follow an option, or <FILE> and the like; nothing for a number or a text. */
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
  if (command->choices) {
    fputs("    first='", out);
    for (size_t i = 0; command->choices[i]; i++) fprintf(out, "%s%s", i ? " " : "", command->choices[i]);
    fputs("'\n", out);
  }
  fputs("    case $before in\n", out);
  cli_describe(command, true, &values, out);
  fputs("    -- | --no-*) ;;\n    -*) values='<>' ;;\n    esac ;;\n", out);
}

/* ---- What does not depend on them ---- */

static const char beginning[] =
    "# Completion of dvbf for bash, made by `dvbf manual` from the program's own tables.\n"
    "\n"
    "# What the command line takes next. `values` follow an option that needs one of them, `words` one that "
    "may\n"
    "# stand alone; `first` is what a command's first argument may be.\n"
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

void cli_completion(const cli_command *const *commands, FILE *out) {
  fputs(beginning, out);
  fputs("    mapfile -t COMPREPLY < <(compgen -W '", out);
  for (const cli_command *const *c = commands; *c; c++) fprintf(out, "%s ", (*c)->name);
  fputs("help version --help --version' -- \"$word\")\n", out);
  fputs(middle, out);
  for (const cli_command *const *c = commands; *c; c++) put_command(out, *c);
  fputs(ending, out);
}
