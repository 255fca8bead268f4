/* A command of `dvbf` as its own file declares it, and what all of them share. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <dvbf/dvbf.h>

typedef struct cli_options cli_options;

/* A flag that is no setting. A list of them ends with a name of NULL. */
typedef struct cli_flag {
  char letter;       /* as in -o; 0: none */
  const char *name;  /* as in --output */
  const char *value; /* what help calls its value; NULL: it takes none */
  const char *help;
} cli_flag;

/* A command line to copy, and what it does. A list of them ends with a line of NULL. */
typedef struct cli_example {
  const char *line, *help;
} cli_example;

typedef struct cli_command {
  const char *name, *synopsis, *help;
  const char *details;          /* further lines of help, or NULL */
  const cli_example *examples;  /* NULL: none; the first also stands in the program's manual */
  const char *const *arguments; /* what the positional arguments are called, ends with NULL */
  const char *const *choices;   /* what the first of them may be, ends with NULL; NULL: a file */
  const cli_flag *flags;
  const char *const *tables; /* tables whose settings are flags as well, ends with NULL */
  bool presets;              /* takes --preset and --config, which must stand in `flags` */
  dvbf_status (*run)(const cli_options *options, dvbf_error *error);
} cli_command;

extern const cli_command cli_simulate, cli_train, cli_evaluate, cli_filter, cli_smooth, cli_predict,
    cli_sample, cli_report, cli_reproduce, cli_info;

/* What the arguments of several commands are; begins their details. */
#define CLI_HELP_RUN_DATA "\nRUN is a run folder or a model file, DATA a file of sequences.\n"

/* The flags that several commands have, so that they read alike everywhere. */
#define CLI_FLAG_PRESET                                                                                      \
  { 0, "preset", "NAME", "start from these values instead of the defaults" }
#define CLI_FLAG_CONFIG                                                                                      \
  { 0, "config", "FILE", "lines `name = value`, on top of the preset; flags win over it" }
#define CLI_FLAG_JSON                                                                                        \
  { 0, "json", NULL, "print the results as JSON" }
#define CLI_FLAG_FORCE                                                                                       \
  { 0, "force", NULL, "replace results that are already there" }
#define CLI_FLAG_ARRAYS                                                                                      \
  { 'o', "output", "FILE", "arrays to write, as HDF5 (.h5, .hdf5) or for NumPy (.npz)" }
#define CLI_FLAG_QUIET                                                                                       \
  { 0, "quiet", NULL, "print no progress" }

/* Fills *error and returns `status`. */
dvbf_status cli_fail(dvbf_error *error, dvbf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Refuses a system that is not in `known`, which ends with NULL, and names those that are. */
dvbf_status cli_check_system(const char *name, const char *const *known, dvbf_error *error);

/* Prints the help of one command to standard output. */
void cli_help(const cli_command *command);

#endif
