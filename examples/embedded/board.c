/* What a program needs to run on a bare Cortex-M4F under QEMU: vectors, memory, the floating-point unit, and
 * a way to print (semihosting). Nothing of it belongs to the filter. */
#include "board.h"

#include <stdint.h>

extern uint32_t data_begin[], data_end[], data_source[], __bss_start__[], __bss_end__[], stack_top[];
int main(void);

static int semihost(int operation, const void *argument) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

/* For printf of the C library. */
int _write(int file, const char *text, int size) {
  int i;
  (void)file;
  for (i = 0; i < size; i++) semihost(3, &text[i]); /* SYS_WRITEC */
  return size;
}

void board_exit(int status) {
  uint32_t block[2] = {0x20026, (uint32_t)status}; /* ADP_Stopped_ApplicationExit */
  semihost(0x20, block);                           /* SYS_EXIT_EXTENDED */
  for (;;) {}
}

/* SysTick counts down 24 bits at 25 MHz. Under `-icount shift=0` an instruction takes a nanosecond. */
#define SYSTICK ((volatile uint32_t *)0xe000e010)

void board_clock_start(void) {
  SYSTICK[1] = 0xffffff;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5;
}

uint32_t board_clock(void) {
  return 0xffffff - SYSTICK[2];
}

void reset(void) {
  uint32_t *to = data_begin, *from = data_source;
  while (to < data_end) *to++ = *from++;
  for (to = __bss_start__; to < __bss_end__;) *to++ = 0;
  *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* CPACR: the floating-point unit is on */
  __asm__ volatile("dsb\n isb");
  board_exit(main());
}

static void fault(void) {
  board_exit(99);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault};
