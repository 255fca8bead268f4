/* The command line of one command, and settings made from it. */
#pragma once

#include "command.h"

#include <dvbf/dvbf.h>

/* ---- Options ---- */

enum { CLI_ARGUMENTS = 4 };

typedef struct cli_pair {
  char name[64];
  const char *value; /* "" for a flag that takes none */
} cli_pair;

struct cli_options {
  const cli_command *command;
  const char *arguments[CLI_ARGUMENTS]; /* those that the command declares */
  const char **more;                    /* [n_more] further data files */
  size_t n_more;
  size_t n_pairs;
  cli_pair *pairs; /* [n_pairs] in the order given */
};

/* Reads argv[0..argc), which follow the command's name. Free with cli_options_free, also after a failure. */
dvbf_status cli_options_parse(cli_options *out, const cli_command *command, int argc, char **argv,
                              dvbf_error *error);
void cli_options_free(cli_options *options);

/* The last value given for a flag or setting; NULL: not given. */
const char *cli_option(const cli_options *options, const char *name);
/* The same; fails if it was not given. */
dvbf_status cli_option_needed(const char **out, const cli_options *options, const char *name,
                              dvbf_error *error);

/* The settings of one table: default < preset < config file < flags. The caller frees them. */
dvbf_status cli_options_settings(dvbf_settings **out, const cli_options *options, const char *table,
                                 dvbf_error *error);
/* The same upon other settings, such as those of a model, where names agree, and then upon those of a file,
 * with the caller's preset instead of --preset; the three may be NULL. */
dvbf_status cli_options_settings_over(dvbf_settings **out, const cli_options *options, const char *table,
                                      const dvbf_settings *first, const char *file, const char *preset,
                                      dvbf_error *error);

bool cli_is_folder(const char *path);

/* ---- Settings in sentences ---- */

/* The library writes settings as `name = value`, or as a name with a hyphen. Copies the sentence to out[size]
 * with flags instead: --name value. */
void cli_flags(char *out, size_t size, const char *sentence);

/* For an option of other programs, a sentence that names ours; NULL: unknown. */
const char *cli_name_of_the_field(const char *name);
