/* The command line of one command, settings made from it, and paths. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "command.h"

#include <dvbf/dvbf.h>

#include <limits.h>

/* ---- Options ---- */

enum { CLI_ARGUMENTS = 4 };

typedef struct cli_pair {
  char name[64];
  const char *value; /* "" for a flag that takes none */
} cli_pair;

struct cli_options {
  const cli_command *command;
  const char *arguments[CLI_ARGUMENTS]; /* as many as the command names */
  const char **more; /* [n_more] further files after the last argument, where the command takes many */
  size_t n_more;
  size_t n_pairs;
  cli_pair *pairs; /* [n_pairs] in the order given */
};

/* Reads argv[0..argc), which follow the command's name. Free with cli_options_free, also after a failure. */
dvbf_status cli_options_parse(cli_options *out, const cli_command *command, int argc, char **argv,
                              dvbf_error *error);
void cli_options_free(cli_options *options);

/* The last value given for a flag or setting, NULL when it was not given. */
const char *cli_option(const cli_options *options, const char *name);
/* The same; refuses if it was not given, and names the flag. */
dvbf_status cli_option_needed(const char **out, const cli_options *options, const char *name,
                              dvbf_error *error);

/* The settings of one table: default < preset < config file < flags. The caller frees them. */
dvbf_status cli_options_settings(dvbf_settings **out, const cli_options *options, const char *table,
                                 dvbf_error *error);
/* The same with the preset of the caller instead of --preset; NULL: none. */
dvbf_status cli_options_settings_from(dvbf_settings **out, const cli_options *options, const char *table,
                                      const char *preset, dvbf_error *error);
/* The same, with defaults from other settings, such as those of a model, where names agree. */
dvbf_status cli_options_settings_upon(dvbf_settings **out, const cli_options *options, const char *table,
                                      const dvbf_settings *first, dvbf_error *error);

/* The same with the values of a file instead of the defaults. */
dvbf_status cli_options_settings_over(dvbf_settings **out, const cli_options *options, const char *table,
                                      const char *file, dvbf_error *error);

/* ---- Paths ---- */

typedef char cli_path[PATH_MAX];

/* Writes folder/name. A path that is too long is cut, and then refused when it is used. */
void cli_join(cli_path out, const char *folder, const char *name);

bool cli_exists(const char *path);
bool cli_is_folder(const char *path);

/* Refuses a path that exists, unless `force`. */
dvbf_status cli_refuse_existing(const char *path, bool force, dvbf_error *error);

#endif
