/* How a command of `dvbf` is declared, and helpers of all commands. */
#pragma once

#include "base/error.h"
#include "base/file.h"

#include <dvbf/dvbf.h>

typedef struct cli_options cli_options;

/* A flag that is not a setting. */
typedef struct cli_flag {
  char letter;       /* as in -o; 0: none */
  const char *name;  /* as in --output */
  const char *value; /* name of its value in help; NULL: it takes none */
  const char *help;
} cli_flag;

/* An example command line and what it does. */
typedef struct cli_example {
  const char *line, *help;
} cli_example;

/* Lists end with NULL, or with an entry without a name. */
typedef struct cli_command {
  const char *name, *synopsis, *help;
  const char *details;    /* further lines of help, or NULL */
  const char *list_title; /* of a list that help shows below: names and what they are, or NULL */
  const char *(*list)(size_t index, const char **help);
  cli_example examples[8];    /* the manual page of the program shows the first one */
  const char *arguments[4];   /* names of the positional arguments */
  bool many;                  /* the last argument is data, possibly several files */
  const char *instead;        /* a flag that replaces the last argument; NULL: none */
  const char *const *choices; /* allowed values of the first argument; NULL: it is a file, */
  enum {
    CLI_NO_SYSTEM,
    CLI_SYSTEMS,
    CLI_GOAL_SYSTEMS
  } systems; /* or a simulated system, all or with a goal */
  cli_flag flags[12];
  const char *tables[8]; /* tables whose settings are flags too; those of systems are added */
  bool presets;          /* takes --preset and --config, which `flags` must list */
  bool shared;           /* ranks share the work; otherwise the first one does all of it */
  dvbf_status (*run)(const cli_options *options, dvbf_error *error);
} cli_command;

extern const cli_command cli_simulate, cli_train, cli_evaluate, cli_filter, cli_smooth, cli_predict,
    cli_sample, cli_report, cli_reproduce, cli_info, cli_export, cli_control, cli_learn_control;

/* Arguments of several commands; their details begin with it. */
#define CLI_HELP_RUN_DATA                                                                                    \
  "\nRUN is a run folder or a model file. DATA is one or several files of sequences ({read}),\n"             \
  "a folder of files, or a pattern in quotes.\n\n"

/* Flags of several commands, so that their help is the same everywhere. */
#define CLI_FLAG_PRESET                                                                                      \
  { 0, "preset", "NAME", "preset whose values replace the defaults" }
#define CLI_FLAG_CONFIG                                                                                      \
  { 0, "config", "FILE", "file of `name = value` lines; overrides the preset, is overridden by flags" }
#define CLI_FLAG_JSON                                                                                        \
  { 0, "json", NULL, "print the results as JSON" }
#define CLI_FLAG_FORCE                                                                                       \
  { 0, "force", NULL, "replace existing results" }
#define CLI_FLAG_ARRAYS                                                                                      \
  { 'o', "output", "FILE", "file to write, whose name ends in {written}; .csv has one row per step" }
#define CLI_FLAG_RANKS                                                                                       \
  { 0, "ranks", "N", "share the work between N processes, started by mpirun" }
#define CLI_FLAG_QUIET                                                                                       \
  { 0, "quiet", NULL, "print no progress" }

/* Allowed value `index` of the first argument; NULL past the last. */
const char *cli_choice(const cli_command *command, size_t index);
/* Table `index` whose settings are flags; NULL past the last. Of systems with the same settings only the
 * first counts; `owners`, if not NULL, becomes the names of all. */
const char *cli_flag_table(const cli_command *command, size_t index, char owners[128]);
/* Refuses a first argument that is not allowed; the message lists the allowed ones. */
dvbf_status cli_check_system(const cli_options *options, dvbf_error *error);

/* Whether a known name may have been meant: few letters differ. */
bool cli_is_close(const char *given, const char *known);

/* Prints the help of one command to standard output; `all`: with every setting. */
void cli_help(const cli_command *command, bool all);
