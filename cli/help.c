#include "command.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 34 }; /* where the explanations begin */

static void print_flags(const cli_flag *flags) {
  printf("\nOptions\n");
  for (; flags->name; flags++) {
    char left[64], letter[8] = "    ";
    if (flags->letter) snprintf(letter, sizeof letter, "-%c, ", flags->letter);
    snprintf(left, sizeof left, "%s--%s %s", letter, flags->name, flags->value ? flags->value : "");
    printf("  %-*s%s\n", COLUMN - 2, left, flags->help);
  }
}

static void print_setting(const dvbf_setting_info *info) {
  char left[64];
  snprintf(left, sizeof left, "--%s %s", info->name, info->kind);
  printf("  %-*s%s\n", COLUMN - 2, left, info->help);
  printf("%*s%s; default %s\n", COLUMN, "", info->range, info->initial);
}

/* `title` says whose settings they are, where a command has several tables. */
static void print_table(const char *table, const char *title) {
  dvbf_setting_info info;
  char group[64] = "";
  bool switches = false;
  for (size_t i = 0; dvbf_settings_table(table, i, &info); i++) {
    if (strcmp(group, info.group) != 0) printf("\n%s%s%s settings\n", title, *title ? ": " : "", info.group);
    snprintf(group, sizeof group, "%s", info.group);
    print_setting(&info);
    switches |= !strcmp(info.kind, "switch");
  }
  if (switches) printf("\nA switch alone (--NAME) means on, --no-NAME off.\n");
}

static void print_presets(void) {
  const char *help;
  printf("\nPresets (--preset NAME)\n");
  for (size_t i = 0; dvbf_preset_name(i, &help); i++)
    printf("  %-*s%s\n", COLUMN - 2, dvbf_preset_name(i, NULL), help);
  printf("\nA flag wins over the config file, which wins over the preset, which wins over the defaults.\n");
}

void cli_help(const cli_command *command) {
  printf("usage: dvbf %s %s\n\n%s\n", command->name, command->synopsis, command->help);
  if (command->details) printf("%s\n", command->details);
  print_flags(command->flags);
  for (const char *const *table = command->tables; *table; table++)
    print_table(*table, command->tables[1] ? *table : "");
  if (command->presets) print_presets();
}
