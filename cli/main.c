/* The command `dvbf`: finds and runs a command, prints help, and turns failures into a sentence and an exit
 * status. Results go to standard output, progress and messages to standard error. */
#include "help.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "ranks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {
    &cli_simulate, &cli_train,   &cli_evaluate,      &cli_filter, &cli_smooth, &cli_predict,   &cli_sample,
    &cli_report,   &cli_control, &cli_learn_control, &cli_export, &cli_info,   &cli_reproduce, NULL};

enum { EXIT_WORK = 1, EXIT_USAGE = 2, EXIT_USELESS = 3, EXIT_SIGNAL = 128 };

static void print_overview(FILE *out) {
  fprintf(out, "usage: dvbf COMMAND [ARGUMENTS] [--OPTION VALUE ...]\n");
  cli_describe_all(commands, &cli_help_writer, out);
}

static int exit_status(const dvbf_error *error) {
  if (error->status == DVBF_STOPPED && cli_stop_signal()) return EXIT_SIGNAL + cli_stop_signal();
  return error->status == DVBF_ARGUMENT ? EXIT_USAGE : EXIT_WORK;
}

static int report(const dvbf_error *error) {
  fflush(stdout);
  if (error->status == DVBF_STOPPED && cli_stop_signal()) {
    fprintf(stderr, "dvbf: stopped by %s before there was a result\n",
            cli_stop_signal() == SIGINT ? "SIGINT" : "SIGTERM");
    return exit_status(error);
  }
  char message[2 * sizeof error->message], host[64] = "", who[96] = "";
  cli_flags(message, sizeof message, error->message);
  if (cli_rank() && !gethostname(host, sizeof host - 1))
    snprintf(who, sizeof who, "rank %d on %s: ", cli_rank(), host);
  fprintf(stderr, "dvbf: %s%s\n", who, message);
  return exit_status(error);
}

static const cli_command *find_command(const char *name, dvbf_error *error) {
  const cli_command *best = &cli_train;
  char known[256] = "";
  for (size_t i = 0; commands[i]; i++) {
    if (!strcmp(commands[i]->name, name)) return commands[i];
    if (dvbf_name_distance(name, commands[i]->name) < dvbf_name_distance(name, best->name))
      best = commands[i];
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", commands[i]->name);
  }
  if (cli_is_close(name, best->name))
    dv_report(error, DVBF_ARGUMENT, "%.60s: no such command; did you mean %s? Commands: %s", name, best->name,
              known);
  else
    dv_report(error, DVBF_ARGUMENT, "%.60s: no such command; choose one of: %s", name, known);
  return NULL;
}

static bool has(int argc, char **argv, const char *flag) {
  for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (!strcmp(argv[i], flag)) return true;
  return false;
}

static bool asks_for_help(int argc, char **argv) {
  return has(argc, argv, "--help") || has(argc, argv, "-h") || has(argc, argv, "--help-all");
}

static int run_command(const cli_command *command, int argc, char **argv) {
  dvbf_error error = {0};
  cli_options options;
  dvbf_status status = cli_options_parse(&options, command, argc, argv, &error);
  if (!status) status = cli_ranks_start(&options, argc, argv, &error);
  if (!status) status = cli_ranks_join(command->shared, &error);
  if (!status && (cli_ranks() || !cli_rank())) status = command->run(&options, &error);
  cli_options_free(&options);
  /* The first rank reports a failure of all. It may not learn that another is out of memory. */
  int code = status ? exit_status(&error) : 0;
  bool reports = cli_ranks() ? dvbf_ranks_finish(cli_ranks(), code) : !cli_rank() || status == DVBF_MEMORY;
  if (status && reports) report(&error);
  fflush(stdout);
  dvbf_ranks_free(cli_ranks(), code);
  if (status) return code;
  if (cli_stop_signal()) return EXIT_SIGNAL + cli_stop_signal();
  return cli_is_useless() ? EXIT_USELESS : 0;
}

/* The name of a command is optional; --all may come before or after it. */
static int help(int argc, char **argv) {
  dvbf_error error = {0};
  bool all = has(argc, argv, "--all") || has(argc, argv, "--help-all");
  while (argc && (!strcmp(argv[0], "--all") || !strcmp(argv[0], "--help-all"))) argc--, argv++;
  const cli_command *command = argc ? find_command(argv[0], &error) : NULL;
  if (argc && !command) return report(&error);
  if (command)
    cli_help(command, all);
  else
    print_overview(stdout);
  return 0;
}

/* For the build: `dvbf manual FOLDER` writes manual pages and completion. */
static int manual(int argc, char **argv) {
  dvbf_error error = {0};
  if (argc != 1) dv_report(&error, DVBF_ARGUMENT, "usage: dvbf manual FOLDER");
  if (argc != 1 || cli_manual(commands, argv[0], &error)) return report(&error);
  return 0;
}

static int dispatch(int argc, char **argv) {
  if (!argc) {
    print_overview(stderr);
    return EXIT_USAGE;
  }
  if (!strcmp(argv[0], "--version") || !strcmp(argv[0], "version")) {
    printf("dvbf %s\n", DVBF_VERSION);
    return 0;
  }
  if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h") || !strcmp(argv[0], "help") ||
      !strcmp(argv[0], "--help-all"))
    return help(argc - 1, argv + 1);
  if (asks_for_help(argc - 1, argv + 1)) return help(has(argc - 1, argv + 1, "--help-all") ? argc : 1, argv);
  if (!strcmp(argv[0], "manual")) return manual(argc - 1, argv + 1);
  dvbf_error error = {0};
  const cli_command *command = find_command(argv[0], &error);
  return command ? run_command(command, argc - 1, argv + 1) : report(&error);
}

int main(int argc, char **argv) {
  cli_terminal_protect();
  cli_json_watch();
  int status = dispatch(argc ? argc - 1 : 0, argv + 1);
  if (cli_json_short() && !status) {
    fprintf(stderr, "dvbf: out of memory while writing JSON; the output is incomplete\n");
    status = EXIT_WORK;
  }
  /* Only this detects output to a full disk. */
  if ((fflush(stdout) || ferror(stdout)) && !status) {
    perror("dvbf: standard output cannot be written");
    status = EXIT_WORK;
  }
  return status;
}
