/* Other programs: started with pipes, read line by line with a limit to one's patience, ended. */
#ifndef DV_BENCH_PROCESS_H
#define DV_BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct process {
  pid_t pid; /* 0: not running; it leads a group of its own */
  int to, from;
  char *text; /* what was read and not yet handed out */
  size_t used, room, taken;
} process;

/* Whether it could be started. Its standard error is ours. */
bool process_start(process *p, char *const *command);
bool process_tell(process *p, const char *line);
/* The next line without its end, valid until the next call; NULL at the end of the output, or when it takes
 * more than `patience` seconds. */
char *process_read(process *p, double patience);
/* Closes the pipes and waits; who has not gone after `patience` seconds is killed. Returns the exit status,
 * or 128 and more for a signal. */
int process_end(process *p, double patience);

/* Runs a command to its end. */
typedef struct command_result {
  double seconds;  /* from the start to the exit */
  int status;      /* 0: success; -1: it could not be started */
  char last[1024]; /* last line of its output */
} command_result;
command_result command_run(char *const *command, double patience);

#endif
