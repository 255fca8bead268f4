/* Text from files: what strangers have written becomes text that can be printed, and keys that differ. */
#ifndef DV_TEXT_H
#define DV_TEXT_H

#include <stddef.h>

/* Bytes of the character of UTF-8 at the beginning of `left` bytes; 0: it is none. */
size_t dv_character(const char *at, size_t left);

/* Makes a text plain UTF-8 of one line: control characters and what is no UTF-8 become '?', ends of lines and
 * tabulators become blanks, and a character that is cut at the end is left out. */
void dv_text_plain(char *text);

/* Makes `count` names of at most `size` bytes plain and different from each other: the second "a" becomes "a
 * (2)". The names are `apart` bytes from each other. Beyond 2000 equal names stay. */
void dv_names_tell_apart(char *names, size_t count, size_t apart, size_t size);

#endif
