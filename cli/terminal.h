/* What is printed. Names and messages may come from files of strangers, and control characters in them could
 * move the cursor, colour the screen or change its title. So nothing but text reaches standard output and
 * standard error, whoever prints it. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

/* From now on control characters other than the end of a line and the tabulator are printed as '?', in stdout
 * and stderr. Where memory is short nothing changes. */
void cli_terminal_protect(void);

/* Standard error for our own control characters: the line of progress. Nothing from files goes there. */
FILE *cli_terminal_own(void);

#endif
