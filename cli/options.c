/* The command line of one command: its flags, settings as flags, and arguments (cli_options_parse); settings
 * made from defaults, preset, config file and flags, in that order (cli_options_settings); and the library's
 * messages with settings written as flags (cli_flags). */
#include "options.h"

#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Systems ---- */

static bool takes(const cli_command *command, const dvbf_system_info *system) {
  return command->systems == CLI_SYSTEMS || (command->systems == CLI_GOAL_SYSTEMS && system->has_goal);
}

const char *cli_choice(const cli_command *command, size_t index) {
  dvbf_system_info info;
  if (command->choices) return command->choices[index];
  for (size_t i = 0; dvbf_system(i, &info); i++)
    if (takes(command, &info) && !index--) return info.name;
  return NULL;
}

/* Appends the names of the systems of the command with these settings; returns the first. */
static const char *list_owners(const cli_command *command, const char *settings, char owners[128]) {
  const char *first = NULL;
  dvbf_system_info info;
  *owners = 0;
  for (size_t i = 0; dvbf_system(i, &info); i++) {
    if (!takes(command, &info) || strcmp(info.settings, settings) != 0) continue;
    snprintf(owners + strlen(owners), 128 - strlen(owners), "%s%s", first ? ", " : "", info.name);
    if (!first) first = info.name;
  }
  return first;
}

const char *cli_flag_table(const cli_command *command, size_t index, char owners[128]) {
  char names[128] = "";
  dvbf_system_info info;
  for (const char *const *table = command->tables; *table; table++)
    if (!index--) {
      if (owners) snprintf(owners, 128, "%s", *table);
      return *table;
    }
  for (size_t i = 0; command->systems && dvbf_system(i, &info); i++)
    if (list_owners(command, info.settings, owners ? owners : names) == info.name && !index--)
      return info.name;
  return NULL;
}

dvbf_status cli_check_system(const cli_options *options, dvbf_error *error) {
  const char *name = options->arguments[0], *known;
  char list[256] = "";
  for (size_t i = 0; (known = cli_choice(options->command, i)); i++) {
    if (!strcmp(known, name)) return DVBF_OK;
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", known);
  }
  return dv_fail(error, DVBF_ARGUMENT, "%.60s: no such system; choose one of: %s", name, list);
}

bool cli_is_close(const char *given, const char *known) {
  return dvbf_name_distance(given, known) <= strlen(given) / 3 + 1;
}

/* ---- Parsing ---- */

typedef struct parser {
  cli_options *options;
  const cli_command *command;
  char **argv;
  int argc, at;
  size_t n_arguments;
  dvbf_error *error;
} parser;

static const cli_flag *find_flag(const cli_command *command, const char *name) {
  for (const cli_flag *flag = command->flags; flag->name; flag++)
    if (!strcmp(flag->name, name)) return flag;
  return NULL;
}

static const cli_flag *find_letter(const cli_command *command, char letter) {
  for (const cli_flag *flag = command->flags; flag->name; flag++)
    if (flag->letter == letter) return flag;
  return NULL;
}

static bool in_table(const char *table, const char *name, dvbf_setting_info *info) {
  for (size_t i = 0; dvbf_settings_table(table, i, info); i++)
    if (!strcmp(info->name, name)) return true;
  return false;
}

static bool find_setting(const cli_command *command, const char *name, dvbf_setting_info *info) {
  const char *table;
  for (size_t k = 0; (table = cli_flag_table(command, k, NULL)); k++)
    if (in_table(table, name, info)) return true;
  return false;
}

/* Whether the table had a setting of that name, which the library still takes or refuses with its reason. */
static bool was_in_table(const char *table, const char *name) {
  dvbf_settings *settings = NULL;
  dvbf_error error = {0};
  bool was = !dvbf_settings_new(&settings, table, &error) &&
             (!dvbf_settings_set(settings, name, "", &error) || !strstr(error.message, ": no such setting;"));
  dvbf_settings_free(settings);
  return was;
}

static bool is_former(const cli_command *command, const char *name) {
  dvbf_setting_info info;
  if (find_flag(command, name) || find_setting(command, name, &info)) return false;
  for (const char *const *table = command->tables; *table; table++)
    if (was_in_table(*table, name)) return true;
  return false;
}

static dvbf_status unknown(const parser *p, const char *name) {
  const char *usual = cli_name_of_the_field(name);
  if (usual) return dv_fail(p->error, DVBF_ARGUMENT, "--%.60s: no such option or setting; %s", name, usual);
  char best[64] = "help";
  size_t distance = dvbf_name_distance(name, best);
  for (const cli_flag *flag = p->command->flags; flag->name; flag++) {
    size_t d = dvbf_name_distance(name, flag->name);
    if (d < distance) distance = d, snprintf(best, sizeof best, "%s", flag->name);
  }
  dvbf_setting_info info;
  const char *table;
  for (size_t k = 0; (table = cli_flag_table(p->command, k, NULL)); k++)
    for (size_t i = 0; dvbf_settings_table(table, i, &info); i++) {
      size_t d = dvbf_name_distance(name, info.name);
      if (d < distance) distance = d, snprintf(best, sizeof best, "%s", info.name);
    }
  if (!cli_is_close(name, best))
    return dv_fail(p->error, DVBF_ARGUMENT,
                   "--%.60s: no such option or setting; `dvbf help %s --all` lists them", name,
                   p->command->name);
  return dv_fail(p->error, DVBF_ARGUMENT, "--%.60s: no such option or setting; did you mean --%s?", name,
                 best);
}

static void add_pair(parser *p, const char *name, const char *value) {
  cli_pair *pair = &p->options->pairs[p->options->n_pairs++];
  snprintf(pair->name, sizeof pair->name, "%s", name);
  pair->value = value;
}

/* Adds `name` with the value after '=', or else the next argument. */
static dvbf_status add_with_value(parser *p, const char *name, const char *value, const char *wanted) {
  /* One dash may begin a negative number; two always begin the next flag. */
  if (!value && p->at < p->argc && strncmp(p->argv[p->at], "--", 2) != 0) value = p->argv[p->at++];
  if (!value) return dv_fail(p->error, DVBF_ARGUMENT, "--%s: needs a value (%s)", name, wanted);
  add_pair(p, name, value);
  return DVBF_OK;
}

static dvbf_status add_flag(parser *p, const cli_flag *flag, const char *value) {
  for (size_t i = 0; flag->value && i < p->options->n_pairs; i++)
    if (!strcmp(p->options->pairs[i].name, flag->name))
      return dv_fail(p->error, DVBF_ARGUMENT,
                     "--%s: given twice; `dvbf help %s` lists options with similar names", flag->name,
                     p->command->name);
  if (flag->value) return add_with_value(p, flag->name, value, flag->value);
  if (value) return dv_fail(p->error, DVBF_ARGUMENT, "--%s: takes no value", flag->name);
  add_pair(p, flag->name, "");
  return DVBF_OK;
}

static dvbf_status add_setting(parser *p, const dvbf_setting_info *info, const char *value) {
  if (!strcmp(info->kind, "switch") && !value) {
    const char *next = p->at < p->argc ? p->argv[p->at] : "";
    bool given = !strcmp(next, "on") || !strcmp(next, "off");
    add_pair(p, info->name, given ? next : "on");
    p->at += given;
    return DVBF_OK;
  }
  return add_with_value(p, info->name, value, info->range);
}

/* --name, --name=value or --no-name; `text` follows the dashes. */
static dvbf_status parse_long(parser *p, const char *text) {
  char name[64];
  size_t length = strcspn(text, "=");
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
  const char *value = text[length] ? text + length + 1 : NULL;
  const cli_flag *flag = find_flag(p->command, name);
  dvbf_setting_info info;
  if (flag) return add_flag(p, flag, value);
  if (find_setting(p->command, name, &info)) return add_setting(p, &info, value);
  if (!strncmp(name, "no-", 3) && find_setting(p->command, name + 3, &info) && !strcmp(info.kind, "switch")) {
    if (value) return dv_fail(p->error, DVBF_ARGUMENT, "--%s: takes no value", name);
    add_pair(p, info.name, "off");
    return DVBF_OK;
  }
  bool alone = !value && (p->at == p->argc || p->argv[p->at][0] == '-');
  if (is_former(p->command, name)) return add_with_value(p, name, alone ? "on" : value, "a value");
  if (!strncmp(name, "no-", 3) && is_former(p->command, name + 3)) {
    add_pair(p, name + 3, "off");
    return DVBF_OK;
  }
  return unknown(p, name);
}

static dvbf_status parse_short(parser *p, const char *text) {
  const cli_flag *flag = text[2] ? NULL : find_letter(p->command, text[1]);
  if (flag) return add_flag(p, flag, NULL);
  return dv_fail(p->error, DVBF_ARGUMENT, "%.60s: no such option; `dvbf help %s` lists them", text,
                 p->command->name);
}

static dvbf_status add_argument(parser *p, const char *text) {
  cli_options *o = p->options;
  if (p->command->many && !p->command->arguments[p->n_arguments]) {
    o->more[o->n_more++] = text;
    return DVBF_OK;
  }
  if (!p->command->arguments[p->n_arguments])
    return dv_fail(p->error, DVBF_ARGUMENT, "%.200s: too many arguments; usage: dvbf %s %s", text,
                   p->command->name, p->command->synopsis);
  p->options->arguments[p->n_arguments++] = text;
  return DVBF_OK;
}

dvbf_status cli_options_parse(cli_options *out, const cli_command *command, int argc, char **argv,
                              dvbf_error *error) {
  *out = (cli_options){.command = command,
                       .pairs = calloc((size_t)argc + 1, sizeof *out->pairs),
                       .more = calloc((size_t)argc + 1, sizeof *out->more)};
  if (!out->pairs || !out->more)
    return dv_fail(error, DVBF_MEMORY, "out of memory while reading the command line");
  parser p = {.options = out, .command = command, .argv = argv, .argc = argc, .error = error};
  bool flags = true;
  while (p.at < argc) {
    const char *text = argv[p.at++];
    dvbf_status status = DVBF_OK;
    if (flags && !strcmp(text, "--"))
      flags = false;
    else if (flags && !strncmp(text, "--", 2))
      status = parse_long(&p, text + 2);
    else if (flags && text[0] == '-' && text[1])
      status = parse_short(&p, text);
    else
      status = add_argument(&p, text);
    if (status) return status;
  }
  const char *missing = command->arguments[p.n_arguments];
  bool instead = command->instead && cli_option(out, command->instead);
  if (instead && !missing)
    return dv_fail(error, DVBF_ARGUMENT, "--%s replaces %s; leave out one of them", command->instead,
                   command->arguments[p.n_arguments - 1]);
  if (instead) missing = command->arguments[p.n_arguments + 1];
  if (missing)
    return dv_fail(error, DVBF_ARGUMENT, "%s is missing; usage: dvbf %s %s", missing, command->name,
                   command->synopsis);
  return DVBF_OK;
}

void cli_options_free(cli_options *options) {
  free(options->pairs);
  free((void *)options->more);
}

const char *cli_option(const cli_options *options, const char *name) {
  for (size_t i = options->n_pairs; i-- > 0;)
    if (!strcmp(options->pairs[i].name, name)) return options->pairs[i].value;
  return NULL;
}

dvbf_status cli_option_needed(const char **out, const cli_options *options, const char *name,
                              dvbf_error *error) {
  const char *value = cli_option(options, name);
  const cli_command *command = options->command;
  if (!value || !*value)
    return dv_fail(error, DVBF_ARGUMENT, "--%s is missing; usage: dvbf %s %s", name, command->name,
                   command->synopsis);
  *out = value;
  return DVBF_OK;
}

/* Applies preset, config file and flags to `settings`, whatever their order on the command line. */
static dvbf_status apply(dvbf_settings *settings, const cli_options *options, const char *table,
                         const char *preset, dvbf_error *error) {
  const char *config = options->command->presets ? cli_option(options, "config") : NULL;
  dvbf_status status = DVBF_OK;
  if (preset) status = dvbf_settings_preset(settings, preset, error);
  if (!status && config) status = dvbf_settings_read(settings, config, error);
  for (size_t i = 0; !status && i < options->n_pairs; i++) {
    const char *name = options->pairs[i].name;
    dvbf_setting_info info;
    if (in_table(table, name, &info) || (is_former(options->command, name) && was_in_table(table, name)))
      status = dvbf_settings_set(settings, name, options->pairs[i].value, error);
  }
  return status;
}

dvbf_status cli_options_settings_over(dvbf_settings **out, const cli_options *options, const char *table,
                                      const dvbf_settings *first, const char *file, const char *preset,
                                      dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_status status = dvbf_settings_new(&settings, table, error);
  if (!status && first) status = dvbf_settings_inherit(settings, first, error);
  if (!status && file) status = dvbf_settings_read(settings, file, error);
  if (!status) status = apply(settings, options, table, preset, error);
  if (status)
    dvbf_settings_free(settings);
  else
    *out = settings;
  return status;
}

dvbf_status cli_options_settings(dvbf_settings **out, const cli_options *options, const char *table,
                                 dvbf_error *error) {
  const char *preset = options->command->presets ? cli_option(options, "preset") : NULL;
  return cli_options_settings_over(out, options, table, NULL, NULL, preset, error);
}

bool cli_is_folder(const char *path) {
  struct stat info;
  return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* ---- Settings in sentences ---- */

static bool is_setting(const char *at, size_t length) {
  static const char *const tables[] = {"train",  "predict",  "filter", "smooth",
                                       "sample", "evaluate", "export"};
  char name[64];
  dvbf_setting_info info;
  snprintf(name, sizeof name, "%.*s", (int)length, at);
  for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
    if (length < sizeof name && in_table(tables[k], name, &info)) return true;
  return false;
}

static bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c && strchr("-_./", c));
}

/* Length of a word that names a setting, or 0; *passed includes a following " = ". */
static size_t setting_at(const char *at, size_t *passed) {
  size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
  bool value = !strncmp(at + length, " = ", 3);
  *passed = length + (value ? 2 : 0); /* the blank before the value stays */
  if (!length || *at == '-' || (!value && in_word(at[length]) && at[length] != '.')) return 0;
  if (!value && !memchr(at, '-', length)) return 0; /* a word like any other */
  return is_setting(at, length) ? length : 0;
}

void cli_flags(char *out, size_t size, const char *sentence) {
  size_t used = 0;
  for (const char *at = sentence; *at && used + 1 < size;) {
    size_t passed = 1, length = at == sentence || !in_word(at[-1]) ? setting_at(at, &passed) : 0;
    if (!length) {
      out[used++] = *at++;
      continue;
    }
    int written = snprintf(out + used, size - used, "--%.*s", (int)length, at);
    used += written > 0 ? (size_t)written : 0;
    if (used >= size) used = size - 1;
    at += passed;
  }
  out[used] = 0;
}

/* ---- Names of other programs ---- */

/* Names with blanks between, and what to say. */
static const struct {
  const char *names, *sentence;
} field_names[] = {
    {"epochs epoch max-epochs", "the length of training is given in updates, one per minibatch: --updates"},
    {"iterations iters max-iter max-steps", "did you mean --updates?"},
    {"num-steps", "did you mean --updates, or --steps of predict?"},
    {"lr rate step-size", "did you mean --learning-rate?"},
    {"batch bs minibatch", "did you mean --batch-size?"},
    {"hidden-size hidden-dim hidden-units units width", "did you mean --hidden?"},
    {"depth num-layers", "did you mean --layers?"},
    {"latent-dim latent-size z-dim state-dim order", "did you mean --latent?"},
    {"input control exogenous", "select the input columns with --inputs"},
    {"target targets", "select the columns to predict with --outputs; -o names the folder or file to write"},
    {"columns", "select columns with --outputs and --inputs"},
    {"horizon", "`dvbf predict` has --steps for the steps to predict; training needs none"},
    {"ahead forecast-steps", "`dvbf predict` has --steps for the steps to predict"},
    {"context", "`dvbf predict` has --observe for the observed steps"},
    {"sequence-length seq-len", "did you mean --window?"},
    {"device gpu cuda", "dvbf runs on the CPU only, on all cores: --threads"},
    {"workers jobs n-jobs", "did you mean --threads?"},
    {"verbose debug", "progress is shown unless --quiet is given; --json prints results for scripts"},
    {"silent", "did you mean --quiet?"},
    {"overwrite", "did you mean --force?"},
    {"continue", "did you mean --resume?"},
    {"random-state random-seed", "did you mean --seed?"},
    {"validation-split val-split", "did you mean --valid-share?"},
    {"test-size test-split", "did you mean --test-share?"},
    {"ensemble", "did you mean --search, which keeps the best --members?"},
    {"early-stopping patience", "the best model in validation is kept anyway; --updates limits the time"},
    {"normalize standardize", "did you mean --x-scaling?"},
    {"beta kl-weight",
     "the weight of the KL divergence is annealed by --temperature-start and --temperature-until"},
    {"loss emission", "choose the emission with --likelihood"},
    {"out outdir save", "did you mean --output?"},
};

static bool lists(const char *names, const char *name) {
  for (size_t length; *names; names += length + (names[length] == ' ')) {
    length = strcspn(names, " ");
    if (length == strlen(name) && !strncmp(names, name, length)) return true;
  }
  return false;
}

const char *cli_name_of_the_field(const char *name) {
  char plain[64];
  snprintf(plain, sizeof plain, "%s", name);
  for (char *c = plain; *c; c++)
    if (*c == '_') *c = '-';
  for (size_t i = 0; i < sizeof field_names / sizeof *field_names; i++)
    if (lists(field_names[i].names, plain)) return field_names[i].sentence;
  return NULL;
}
