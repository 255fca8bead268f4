#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void board_clock_start(void);
/* Ticks of 40 instructions since then, 24 bits. */
uint32_t board_clock(void);
void board_exit(int status);
void reset(void);
int _write(int file, const char *text, int size);

#endif
