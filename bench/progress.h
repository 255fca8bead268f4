/* What is going on, on standard error: one line that the next overwrites. */
#ifndef DV_BENCH_PROGRESS_H
#define DV_BENCH_PROGRESS_H

void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_end(void);

#endif
