#include "describe.h"

#include <ctype.h>
#include <string.h>

typedef struct walk {
  const cli_writer *writer;
  FILE *out;
} walk;

static void heading(const walk *w, const char *title) {
  if (w->writer->heading) w->writer->heading(w->out, title);
}

static void text(const walk *w, const char *words) {
  if (w->writer->text && words) w->writer->text(w->out, words + strspn(words, "\n"));
}

static void item(const walk *w, cli_item one) {
  if (w->writer->item) w->writer->item(w->out, &one);
}

static void flags(const walk *w, const cli_flag *list) {
  heading(w, "Options");
  for (; list->name; list++)
    item(w, (cli_item){true, list->letter, list->name, list->value, list->help, NULL, NULL, NULL});
  item(w, (cli_item){true, 'h', "help", NULL, "print what is used most, and do nothing", NULL, NULL, NULL});
  item(w, (cli_item){true, 0, "help-all", NULL, "print all settings, and do nothing", NULL, NULL, NULL});
}

/* Short help lists the settings of a table that are marked as common; all, where none is. */
static bool has_common(const char *name) {
  dvbf_setting_info info;
  for (size_t i = 0; dvbf_settings_table(name, i, &info); i++)
    if (info.common) return true;
  return false;
}

/* Returns how many are left out. */
static size_t common_of_table(const walk *w, const char *name, const char *title) {
  dvbf_setting_info info;
  char line[160];
  size_t left_out = 0;
  snprintf(line, sizeof line, "%s%ssettings that most people need", title, *title ? ": " : "");
  *line = (char)toupper((unsigned char)*line);
  heading(w, line);
  for (size_t i = 0; dvbf_settings_table(name, i, &info); i++) {
    left_out += !info.common;
    if (info.common)
      item(w, (cli_item){true, 0, info.name, info.kind, info.help, info.range, info.initial, info.users});
  }
  return left_out;
}

/* `title` says whose settings they are, where a command has several tables. */
static void table(const walk *w, const char *name, const char *title) {
  dvbf_setting_info info;
  char group[64] = "", line[160];
  bool switches = false;
  for (size_t i = 0; dvbf_settings_table(name, i, &info); i++) {
    snprintf(line, sizeof line, "%s%s%s settings", title, *title ? ": " : "", info.group);
    if (strcmp(group, info.group) != 0) heading(w, line);
    snprintf(group, sizeof group, "%s", info.group);
    item(w, (cli_item){true, 0, info.name, info.kind, info.help, info.range, info.initial, info.users});
    switches |= !strcmp(info.kind, "switch");
  }
  if (switches) text(w, "A switch alone (--NAME) means on, --no-NAME off.");
}

static void presets(const walk *w) {
  const char *help;
  heading(w, "Presets");
  for (size_t i = 0; dvbf_preset_name(i, &help); i++)
    item(w, (cli_item){.name = dvbf_preset_name(i, NULL), .help = help});
  text(w, "--preset takes one of these. A flag wins over the config file, which wins over the preset, which\n"
          "wins over the defaults.");
}

static void examples(const walk *w, const cli_example *list) {
  if (!list->line) return;
  heading(w, "Examples");
  for (; list->line; list++) item(w, (cli_item){.name = list->line, .help = list->help});
}

void cli_describe(const cli_command *command, bool all, const cli_writer *writer, FILE *out) {
  walk w = {writer, out};
  char line[160];
  size_t left_out = 0;
  text(&w, command->details);
  flags(&w, command->flags);
  for (const char *const *name = command->tables; *name; name++) {
    const char *title = command->tables[1] ? *name : "";
    if (all || !has_common(*name))
      table(&w, *name, title);
    else
      left_out += common_of_table(&w, *name, title);
  }
  if (command->presets && all) presets(&w);
  examples(&w, command->examples);
  snprintf(line, sizeof line, "`dvbf help %s --all` lists %zu more settings by group%s.", command->name,
           left_out, command->presets ? ", and the presets" : "");
  if (left_out) text(&w, line);
}

void cli_describe_all(const cli_command *const *commands, const cli_writer *writer, FILE *out) {
  static const cli_item statuses[] = {
      {.name = "0", .help = "done"},
      {.name = "1", .help = "the work failed; a sentence on standard error says why"},
      {.name = "2", .help = "wrong usage; a sentence on standard error says what would be right"},
      {.name = "3", .help = "trained, but the model is not better than the mean of the data"},
      {.name = "128 + N", .help = "stopped by signal N; what was reached is saved"},
  };
  walk w = {writer, out};
  text(&w, "Learns a latent state-space model from raw sequences, then filters and predicts with it.");
  heading(&w, "Commands");
  for (; *commands; commands++) item(&w, (cli_item){.name = (*commands)->name, .help = (*commands)->help});
  text(&w, "`dvbf help COMMAND` says what it takes, `dvbf help COMMAND --all` lists every setting with its "
           "default,\n"
           "`dvbf version` names the version.");
  heading(&w, "Exit status");
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) item(&w, statuses[i]);
}
