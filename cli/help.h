/* Describes all commands. Help, manual and completion are different writers of the same description. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include "command.h"

#include <stdio.h>

/* Something with a name and an explanation: an option, a command, a preset or an example. */
typedef struct cli_item {
  bool option; /* its name begins with -- */
  char letter; /* as in -o; 0: none */
  const char *name;
  const char *value; /* name of its value, for a setting its kind; NULL: none */
  const char *help;
  const char *range, *initial; /* of a setting, else NULL */
  const char *users;           /* models that a setting is for; NULL: all */
} cli_item;

/* Writes the parts of a description. Parts whose function is NULL are skipped. */
typedef struct cli_writer {
  void (*heading)(FILE *out, const char *title);
  void (*item)(FILE *out, const cli_item *item);
  /* Paragraphs are separated by empty lines. Lines that begin with a space are written as they are. */
  void (*text)(FILE *out, const char *text);
} cli_writer;

/* Describes a command, without its synopsis and its line of help; `all`: every setting, and not only those
 * that most people need. A setting that is in several tables is described for each. */
void cli_describe(const cli_command *command, bool all, const cli_writer *writer, FILE *out);
/* Describes the program: its commands and exit statuses. */
void cli_describe_all(const cli_command *const *commands, const cli_writer *writer, FILE *out);

/* Writes help for a terminal. */
extern const cli_writer cli_help_writer;

/* Makes the folder and writes manual pages for the program (dvbf.1) and its commands (dvbf-NAME.1), and the
 * completion for bash (dvbf.bash). */
dvbf_status cli_manual(const cli_command *const *commands, const char *folder, dvbf_error *error);
/* Writes only the completion. */
void cli_completion(const cli_command *const *commands, FILE *out);

#endif
