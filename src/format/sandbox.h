/* Files of unknown origin are parsed by libraries of others. They run in a process of their own that can read
 * the file, compute and answer, and do nothing else: it cannot open files, reach the network or start
 * programs, and its memory and its time are limited. If it crashes, that is a sentence here.
 *
 *   sandbox.c   this side: starts the process, and gives its arrays out as an archive
 *   reader.c    the other side: opens the file and answers
 *   lockdown.c  limits, and the list of system calls that are left
 *
 * Where the program has one thread, the process is a copy of it. A program with more threads may not go on in
 * a copy of itself; there the process is a new one: the program that runs, started once more. The library's
 * constructor (reader.c) sees in the environment that it is to read, and main is never reached. Where the
 * library is a shared one, it is preloaded, so that this holds in Python too.
 *
 * Values that lie in the file as they are in memory are not sent: the process tells where, and the program
 * reads them there. */
#ifndef DV_SANDBOX_H
#define DV_SANDBOX_H

#include "format/archive.h"

/* Whether this build can have a sandbox: on Linux, without sanitizers. */
bool dv_sandbox_possible(void);

/* Opens a file in a process of its own. *started tells whether there is one: if not, nothing is known of the
 * file. */
dvbf_status dv_sandbox_open(dv_archive **out, dv_format format, const char *path, int descriptor,
                            const dv_data_settings *how, bool *started, dvbf_error *error);

/* Formats call this when the file is open and nothing of it was parsed. In a process that reads for others it
 * takes away all that is not needed any more; in all others it does nothing. False: it could not. */
bool dv_sandbox_enter(void);

/* Makes a copy of the program, which has one thread, the process that reads; does not return. The descriptors
 * are above those that it gets. */
_Noreturn void dv_reader_become(int socket, int window, int file);
/* Closes all descriptors from `first` on; not 0: the system cannot. */
int dv_close_from(int first);

/* The limits of a process that reads. `bytes` is the address space. */
bool dv_lock_down(size_t bytes);

/* Tests define this to see what can be done inside; nothing else does. */
extern void dv_reader_probe(void) __attribute__((weak));

/* ---- What the two say to each other ---- */

enum {
  DV_READER_SOCKET = 3,
  DV_READER_WINDOW = 4,
  DV_READER_FILE = 5
};                                                     /* descriptors of the process that reads */
enum { DV_WINDOW = 2 << 20, DV_HALF = DV_WINDOW / 2 }; /* bytes of memory that both see; of an answer */
#define DV_READER "DVBF_READER"                        /* in its environment */

typedef enum dv_wish { DV_WISH_VALUES, DV_WISH_TEXT, DV_WISH_NAMED, DV_WISH_UNITS } dv_wish;

/* The first message. */
typedef struct dv_reader_order {
  dv_format format;
  size_t bytes; /* of address space, beyond what it has at first */
  char path[512];
} dv_reader_order;

/* The answer: where the file is open, `count` descriptions follow. */
typedef struct dv_reader_greeting {
  uint8_t locked; /* the process is locked down */
  int32_t status;
  char message[512];
  size_t count;
} dv_reader_greeting;

typedef struct dv_reader_array {
  char name[DV_NAME], trouble[512];
  int rank;
  size_t dims[DV_RANK], unpacked;
  uint64_t plain;
  uint8_t real, bytes, text, seekable;
} dv_reader_array;

typedef struct dv_reader_request {
  dv_wish wish;
  size_t array, first, count; /* values, or columns */
  bool doubles;
  bool second; /* the answer goes to the second half of the window */
} dv_reader_request;

/* What was asked for lies in the window. */
typedef struct dv_reader_answer {
  uint8_t done, lost; /* lost: as dv_archive.lost, which is in `remedy` */
  char remedy[512];
} dv_reader_answer;

/* All of a message; false when the other side is gone, or after `seconds`, 0: never. */
bool dv_send(int to, const void *message, size_t size);
bool dv_receive(int from, void *message, size_t size, int seconds);

#endif
