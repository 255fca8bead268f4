/* The rate of a well-known matrix product, as a yardstick. */
#ifndef DV_BENCH_SGEMM_H
#define DV_BENCH_SGEMM_H

/* OpenBLAS of Debian 12 takes processors it does not know for a Prescott, and would be measured five times
 * too slow. The choice is made when it is loaded, so the program starts itself again. */
void insist_on_fast_blas(char **arguments);

/* GFLOP/s of single-threaded products of the emission's shape, one on each of 1 or 2 threads at once. */
double sgemm_rate(int threads);
/* What is multiplied by what, for the report. */
const char *sgemm_name(void);

#endif
