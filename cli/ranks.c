/* Processes that share the work of one command: with --ranks mpirun replaces this process and starts it again
 * as several (cli_ranks_start), which then join (cli_ranks_join). */
#include "ranks.h"

#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 65536 };

static dvbf_ranks *joined;

dvbf_ranks *cli_ranks(void) {
  return joined;
}

int cli_rank(void) {
  int rank, count;
  dvbf_ranks_from_launcher(&rank, &count);
  return rank;
}

dvbf_status cli_ranks_join(bool shared, dvbf_error *error) {
  return shared ? dvbf_ranks_join(&joined, error) : DVBF_OK;
}

/* Without these settings Open MPI refuses or complains on a single machine: the user wants exactly this many
 * processes, even as root in a container, and time for a checkpoint after a signal. */
static void prepare_launcher(void) {
  static const char *const values[][2] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                          {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                          {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                          {"OMPI_MCA_odls_base_sigkill_timeout", "5"},
                                          {"OMPI_MCA_orte_execute_quiet", "1"}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) setenv(values[i][0], values[i][1], 0);
}

/* argv without --ranks and its value. */
static int leave_out_ranks(int argc, char **argv, char **out) {
  int n = 0;
  bool end = false;
  for (int i = 0; i < argc; i++) {
    end = end || !strcmp(argv[i], "--");
    if (!end && !strcmp(argv[i], "--ranks"))
      i++;
    else if (end || strncmp(argv[i], "--ranks=", 8) != 0)
      out[n++] = argv[i];
  }
  return n;
}

static dvbf_status start(const char *count, const char *command, int argc, char **argv, dvbf_error *error) {
  static char self[PATH_MAX];
  const char *launcher = getenv("DVBF_MPIRUN");
  char **list = calloc((size_t)argc + 8, sizeof *list);
  if (!list) return dv_fail(error, DVBF_MEMORY, "out of memory while starting ranks");
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) strcpy(self, "dvbf");
  if (!launcher || !*launcher) launcher = "mpirun";
  char *const head[] = {(char *)launcher, "-n", (char *)count, self, (char *)command};
  memcpy(list, head, sizeof head);
  leave_out_ranks(argc, argv, list + sizeof head / sizeof *head);
  prepare_launcher();
  execvp(launcher, list);
  int why = errno;
  free(list);
  return dv_fail(error, DVBF_IO,
                 "--ranks %s: %.100s cannot be run (%s); install an MPI (openmpi-bin or mpich), or leave out "
                 "--ranks to use the cores of this machine",
                 count, launcher, strerror(why));
}

dvbf_status cli_ranks_start(const cli_options *options, int argc, char **argv, dvbf_error *error) {
  const char *count = cli_option(options, "ranks");
  int rank, there;
  char *end;
  if (!count) return DVBF_OK;
  long n = strtol(count, &end, 10);
  if (*end || end == count || n < 1 || n > MOST)
    return dv_fail(error, DVBF_ARGUMENT, "--ranks %.40s: must be a whole number from 1 to %d", count, MOST);
  dvbf_ranks_from_launcher(&rank, &there);
  if (there > 1)
    return dv_fail(error, DVBF_ARGUMENT,
                   "--ranks %s: mpirun has already started %d processes; leave out --ranks", count, there);
  return n > 1 ? start(count, options->command->name, argc, argv, error) : DVBF_OK;
}
