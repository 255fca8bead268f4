/* The sandbox. Files of unknown origin are parsed by foreign libraries in a process that can read the file,
 * compute and answer, and nothing else: it cannot open files, reach the network or start programs, and its
 * memory and time are limited. If it crashes, the user gets a sentence. sandbox.c is the program's side;
 * sandbox_seccomp.c opens the file, answers, and has the limits and the list of allowed system calls.
 *
 * If the program has one thread, the process is a copy of it (fork, 3 ms). With more threads a copy could
 * hang on a lock; then the running program is started once more (15 ms): the library's constructor sees in
 * the environment that it is to read, and main is never reached. A shared library is preloaded, so that this
 * also works in Python.
 *
 * Values stored in the file as in memory are not sent: the process reports their place, and the program reads
 * them there. */
#pragma once

#include "io/archive.h"

/* Whether this build has a sandbox: on Linux, without sanitizers. */
bool dv_sandbox_possible(void);

/* Opens a file in a process of its own. *started tells whether there is one: if not, nothing is known of the
 * file. */
dvbf_status dv_sandbox_open(dv_archive **out, size_t format, const char *path, int descriptor,
                            const dv_data_settings *how, bool *started, dvbf_error *error);

/* Formats call this when the file is open and nothing was parsed yet. In a sandboxed process it drops all
 * other rights; in others it does nothing. False if it could not. */
bool dv_sandbox_enter(void);

/* Makes a copy of the program, which has one thread, the process that reads; does not return. The descriptors
 * are above those that it gets. */
_Noreturn void dv_reader_become(int socket, int window, int file);
/* Closes all descriptors from `first` on; not 0: the system cannot. */
int dv_close_from(int first);

/* Tests define this to see what can be done inside; nothing else does. */
extern void dv_reader_probe(void) __attribute__((weak));

/* ---- Messages ---- */

/* Descriptors of the process that reads. */
enum { DV_READER_SOCKET = 3, DV_READER_WINDOW = 4, DV_READER_FILE = 5 };
enum { DV_WINDOW = 2 << 20, DV_HALF = DV_WINDOW / 2 }; /* bytes of memory that both see; of an answer */
#define DV_READER "DVBF_READER"                        /* in its environment */

/* The first message. */
typedef struct dv_reader_order {
  size_t format; /* its number in the table */
  size_t bytes;  /* of address space, beyond what it has at first */
  char path[512];
} dv_reader_order;

/* The answer: if the file is open, `count` descriptions follow. */
typedef struct dv_reader_greeting {
  uint8_t locked; /* the process is locked down */
  int32_t status;
  char message[512];
  size_t count;
} dv_reader_greeting;

typedef struct dv_reader_array {
  char name[DV_ARRAY_NAME], trouble[512];
  int rank;
  size_t dims[DV_RANK], unpacked;
  uint64_t plain;
  uint8_t real, bytes, text, seekable;
} dv_reader_array;

typedef struct dv_reader_request {
  size_t array, first, count, size; /* values of 4 or 8 bytes, or strings */
  bool strings;
  dv_strings which;
  bool second; /* the answer goes to the second half of the window */
} dv_reader_request;

/* The requested values are in the window. */
typedef struct dv_reader_answer {
  uint8_t done, found, lost; /* lost: as dv_archive.lost, which is in `remedy` */
  char remedy[512];
} dv_reader_answer;

/* All of a message; false when the other side is gone, or after `seconds`, 0: never. */
bool dv_send(int to, const void *message, size_t size);
bool dv_receive(int from, void *message, size_t size, int seconds);
