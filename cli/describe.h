/* What there is to say about the commands, walked in one order for help, manual and completion. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include "command.h"

#include <stdio.h>

/* Something with a name and an explanation: an option, or a word as a command, a preset or an example. */
typedef struct cli_item {
  bool option; /* its name follows -- */
  char letter; /* as in -o; 0: none */
  const char *name;
  const char *value; /* what its value is called: of a setting the kind; NULL: none */
  const char *help;
  const char *range, *initial; /* of a setting, else NULL */
} cli_item;

/* How it is written down. What a writer leaves NULL is skipped. */
typedef struct cli_writer {
  void (*heading)(FILE *out, const char *title);
  void (*item)(FILE *out, const cli_item *item);
  /* Paragraphs with an empty line between them; lines that begin with a space stand as they are. */
  void (*text)(FILE *out, const char *text);
} cli_writer;

/* All of a command but its synopsis and its line of help. Of settings that several of its tables have each is
 * told. */
void cli_describe(const cli_command *command, const cli_writer *writer, FILE *out);
/* The program: its commands and exit statuses. */
void cli_describe_all(const cli_command *const *commands, const cli_writer *writer, FILE *out);

/* For people at a terminal. */
extern const cli_writer cli_help_writer;

/* Writes into the folder, which it makes, a manual page for the program and for each of its commands, dvbf.1
 * and dvbf-NAME.1, and a completion for bash, dvbf.bash. */
dvbf_status cli_manual(const cli_command *const *commands, const char *folder, dvbf_error *error);
/* The completion alone. */
void cli_completion(const cli_command *const *commands, FILE *out);

#endif
