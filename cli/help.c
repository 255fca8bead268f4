#include "describe.h"

#include <string.h>

enum { OPTION_COLUMN = 34, WORD_COLUMN = 22 }; /* where the explanations begin */

static void print_heading(FILE *out, const char *title) {
  fprintf(out, "\n%s\n", title);
}

/* An explanation that has no room beside the name begins on the next line. */
static void print_item(FILE *out, const cli_item *item) {
  char left[256], letter[8] = "";
  if (item->option && !item->range) strcpy(letter, "    ");
  if (item->letter) snprintf(letter, sizeof letter, "-%c, ", item->letter);
  snprintf(left, sizeof left, "%s%s%s%s%s", letter, item->option ? "--" : "", item->name,
           item->value ? " " : "", item->value ? item->value : "");
  int column = item->option ? OPTION_COLUMN : WORD_COLUMN;
  bool narrow = strlen(left) < (size_t)column - 2;
  fprintf(out, "  %-*s%s", narrow ? column - 2 : 0, left, narrow ? "" : "\n");
  fprintf(out, "%*s%s\n", narrow ? 0 : column, "", item->help);
  if (!item->range) return;
  fprintf(out, "%*s%s%s%s\n", column, "", item->range, *item->initial ? "; default " : "", item->initial);
}

static void print_text(FILE *out, const char *text) {
  fprintf(out, "\n%s\n", text);
}

const cli_writer cli_help_writer = {print_heading, print_item, print_text};

void cli_help(const cli_command *command) {
  printf("usage: dvbf %s %s\n\n%s\n", command->name, command->synopsis, command->help);
  cli_describe(command, &cli_help_writer, stdout);
}
