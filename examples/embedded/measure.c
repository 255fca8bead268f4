/* Instructions of a step of the filter NAME: of the estimate alone, and with forecast and standard
 * deviations. */
#include "board.h"

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#include TEXT(HEADER)

#include <stdio.h>

enum { STEPS = 20 };

static JOIN(NAME, state) state;
static JOIN(NAME, estimate) estimate;
static JOIN(NAME, real) x[JOIN(NAME, N_X)], u[JOIN(NAME, N_U) + 1];

static unsigned long measure(JOIN(NAME, estimate) * out) {
  uint32_t before;
  int i;
  JOIN(NAME, reset)(&state);
  while (!JOIN(NAME, step)(&state, x, u, 0, 0)) {}
  before = board_clock();
  for (i = 0; i < STEPS; i++) JOIN(NAME, step)(&state, x, u, 0, out);
  return (unsigned long)((board_clock() - before) & 0xffffff) * 40 / STEPS;
}

int main(void) {
  board_clock_start();
  printf("%lu instructions for a step, %lu with forecast; state %u bytes\n", measure(0), measure(&estimate),
         (unsigned)sizeof state);
  return 0;
}
