/* Descriptions of all commands, with writers for help, manual pages and completion. */
#pragma once

#include "command.h"

#include <stdio.h>

/* A name and its explanation: an option, a command, a preset or an example. */
typedef struct cli_item {
  bool option; /* its name begins with -- */
  char letter; /* as in -o; 0: none */
  const char *name;
  const char *value; /* name of its value, for a setting its kind; NULL: none */
  const char *help;
  const char *range, *initial; /* of a setting, else NULL */
  const char *users;           /* models that use a setting; NULL: all */
} cli_item;

/* Writes the parts of a description. Parts whose function is NULL are skipped. */
typedef struct cli_writer {
  void (*heading)(FILE *out, const char *title);
  void (*item)(FILE *out, const cli_item *item);
  /* Paragraphs are separated by empty lines. Lines that begin with a space are written as they are. */
  void (*text)(FILE *out, const char *text);
} cli_writer;

/* Describes a command, without its synopsis and its line of help; `all`: all settings, not only the common
 * ones. A setting in several tables is described for each. */
void cli_describe(const cli_command *command, bool all, const cli_writer *writer, FILE *out);
/* Describes the program: commands and exit statuses. */
void cli_describe_all(const cli_command *const *commands, const cli_writer *writer, FILE *out);

/* Writes help for a terminal. */
extern const cli_writer cli_help_writer;

/* Writes manual pages of the program (dvbf.1) and its commands (dvbf-NAME.1), and the bash completion
 * (dvbf.bash), into a folder, which is created. */
dvbf_status cli_manual(const cli_command *const *commands, const char *folder, dvbf_error *error);
