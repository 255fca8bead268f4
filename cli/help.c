#include "describe.h"

#include <string.h>

enum { OPTION_COLUMN = 34, WORD_COLUMN = 22, WIDTH = 100 }; /* where the explanations begin */

static void print_heading(FILE *out, const char *title) {
  fprintf(out, "\n%s\n", title);
}

/* Words in lines that end before the column WIDTH; the first begins where the cursor is, in `column`. */
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
  fprintf(out, "%*s", narrow ? 0 : column, "");
  print_words(out, item->help, column);
  bool has_default = item->range && *item->initial;
  if (has_default) fprintf(out, "%*s%s; default %s", column, "", item->range, item->initial);
  if (item->users)
    fprintf(out, "%*s%sfor %s", has_default ? 0 : column, "", has_default ? "; " : "", item->users);
  if (has_default || item->users) fputs("\n", out);
}

static void print_text(FILE *out, const char *text) {
  fprintf(out, "\n%s\n", text);
}

const cli_writer cli_help_writer = {print_heading, print_item, print_text};

void cli_help(const cli_command *command, bool all) {
  printf("usage: dvbf %s %s\n\n%s\n", command->name, command->synopsis, command->help);
  cli_describe(command, all, &cli_help_writer, stdout);
}
