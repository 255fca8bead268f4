/* Settings as the command line spells them. */
#ifndef CLI_FLAGS_H
#define CLI_FLAGS_H

#include <stddef.h>

/* The library writes settings as `name = value`, or by a name with a hyphen, as C and Python use them. Writes
 * the sentence with flags instead, --name value, into out[size]. */
void cli_flags(char *out, size_t size, const char *sentence);

/* For a name that other programs use, a sentence with our flags; NULL: unknown. */
const char *cli_name_of_the_field(const char *name);

#endif
