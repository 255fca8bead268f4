/* Ranks, the processes that share one piece of work: joining the MPI plug-in, leaving together, and dividing
 * items (ranks.h). Messages are only copied, never summed, so results do not depend on how many ranks there
 * are. A failing rank gives the others TAIL seconds to fail too; a NULL dvbf_ranks is one rank alone. */
#include "base/ranks.h"

#include "base/error.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DV_PLUGINS
#define DV_PLUGINS "../lib/dvbf"
#endif

struct dvbf_ranks {
  const dv_ranks_transport *carrier;
  void *state, *library;
  int rank, size;
  size_t *first; /* [size + 1] of dv_ranks_gather */
  int *exits;    /* [size] room for what ranks say */
  uint64_t *values;
  bool met; /* all have come to the end */
};

enum { TAIL = 2 }; /* seconds that a rank that fails gives the others to fail too */

dvbf_status dv_ranks_new(dv_ranks **out, const dv_ranks_transport *carrier, dvbf_error *error) {
  dv_ranks *t = dv_calloc(1, sizeof *t);
  if (!t) return dv_fail_memory(error, "joining the other ranks");
  dvbf_status status = carrier->open(&t->state, &t->rank, &t->size, error);
  if (status) {
    dv_free(t);
    return status;
  }
  t->carrier = carrier;
  t->first = dv_calloc((size_t)t->size + 1, sizeof *t->first);
  t->exits = dv_calloc((size_t)t->size, sizeof *t->exits);
  t->values = dv_calloc((size_t)t->size, sizeof *t->values);
  if (!t->first || !t->exits || !t->values) {
    dvbf_ranks_free(t, 1);
    return dv_fail_memory(error, "joining the other ranks");
  }
  *out = t;
  return DVBF_OK;
}

/* ---- Finding the MPI plug-in ---- */

/* The launcher's environment variables for the rank and for their number. */
static const char *const launchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                                           {"PMIX_RANK", "SLURM_NTASKS"}};

static int told(const char *name) {
  const char *text = getenv(name);
  char *end;
  long value = text && *text ? strtol(text, &end, 10) : -1;
  return value < 0 || value > INT_MAX || *end ? -1 : (int)value;
}

void dvbf_ranks_from_launcher(int *rank, int *count) {
  *rank = 0;
  *count = 1;
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    int r = told(launchers[i][0]), n = told(launchers[i][1]);
    if (r < 0 || n < 1 || r >= n) continue;
    *rank = r;
    *count = n;
    return;
  }
}

/* The folder of the file that this code was loaded from, with its last '/'. */
static void own_folder(char *out, size_t size) {
  Dl_info info;
  *out = 0;
  if (!dladdr((void *)launchers, &info) || !info.dli_fname || strlen(info.dli_fname) >= size) return;
  char real[PATH_MAX];
  if (!realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", real)) return;
  if (strlen(real) < size) strcpy(out, real);
  char *slash = strrchr(out, '/');
  if (slash) slash[1] = 0;
}

/* In the folder of the program or library in a build, else where it is installed, also if all of it was
 * moved; DVBF_MPI names another. */
static void *open_plugin(void) {
  static const char *const places[] = {"libdvbf-mpi.so", "dvbf/libdvbf-mpi.so", DV_PLUGINS "/libdvbf-mpi.so"};
  const char *named = getenv("DVBF_MPI");
  char folder[PATH_MAX], path[PATH_MAX + 64];
  if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  own_folder(folder, sizeof folder);
  for (size_t i = 0; *folder && i < sizeof places / sizeof *places; i++) {
    snprintf(path, sizeof path, "%s%s", folder, places[i]);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
  }
  return NULL;
}

static const dv_ranks_transport *carrier_of(void *library) {
  union {
    void *object;
    dv_ranks_transport_fn *function;
  } symbol = {dlsym(library, DV_RANKS_TRANSPORT_SYMBOL)};
  return symbol.object ? symbol.function() : NULL;
}

dvbf_status dvbf_ranks_join(dvbf_ranks **out, dvbf_error *error) {
  int rank, count;
  *out = NULL;
  dvbf_ranks_from_launcher(&rank, &count);
  if (count < 2) return DVBF_OK;
  void *library = open_plugin();
  const char *why = library ? NULL : dlerror();
  if (!library)
    return dv_fail(error, DVBF_IO,
                   "ranks = %d: the plug-in for MPI cannot be loaded (%.200s); build dvbf where MPI is "
                   "installed (libopenmpi-dev or libmpich-dev), or name the plug-in in DVBF_MPI",
                   count, why ? why : "no reason given");
  const dv_ranks_transport *carrier = carrier_of(library);
  if (!carrier || strcmp(carrier->version, DVBF_VERSION) != 0)
    return dv_fail(error, DVBF_IO,
                   "ranks = %d: the plug-in for MPI has version %.40s and dvbf version %s; install the same "
                   "version of both",
                   count, carrier ? carrier->version : "unknown", DVBF_VERSION);
  dvbf_status status = dv_ranks_new(out, carrier, error);
  if (!status && (*out)->size != count)
    status = dv_fail(error, DVBF_IO,
                     "ranks = %d: the plug-in finds %d of them, as it was built with a different MPI from "
                     "that of mpirun; use the mpirun of that MPI, or name another plug-in in DVBF_MPI",
                     count, (*out)->size);
  /* MPI does not survive being unloaded, so the library stays loaded. */
  if (status && *out) {
    dvbf_ranks_free(*out, 1);
    *out = NULL;
  }
  return status;
}

void dvbf_ranks_set_interrupt(dvbf_ranks *t, const volatile int *flag) {
  if (t) t->carrier->hurry(t->state, flag);
}

/* ---- Leaving ---- */

bool dvbf_ranks_finish(dvbf_ranks *t, int exit_status) {
  if (!t) return true;
  t->met = t->carrier->meet(t->state, exit_status, t->exits, exit_status ? TAIL : 0);
  for (int r = 0; t->met && r < t->rank; r++)
    if (t->exits[r]) return false;
  return true;
}

void dvbf_ranks_free(dvbf_ranks *t, int exit_status) {
  if (!t) return;
  if (exit_status && !t->met) t->carrier->abort(t->state, exit_status);
  t->carrier->close(t->state);
  DV_FREE(t->first, t->exits, t->values, t);
}

unsigned dvbf_ranks_number(const dvbf_ranks *ranks) {
  return (unsigned)dv_ranks_rank(ranks);
}

unsigned dvbf_ranks_count(const dvbf_ranks *ranks) {
  return (unsigned)dv_ranks_size(ranks);
}

/* ---- Sharing work ---- */

int dv_ranks_rank(const dv_ranks *t) {
  return t ? t->rank : 0;
}

int dv_ranks_size(const dv_ranks *t) {
  return t ? t->size : 1;
}

size_t dv_ranks_first(const dv_ranks *t, size_t count, int rank) {
  return count * (size_t)rank / (size_t)dv_ranks_size(t);
}

void dv_ranks_gather_parts(dv_ranks *t, void *data, size_t unit, const size_t *first) {
  if (t) t->carrier->gather(t->state, data, unit, first);
}

void dv_ranks_gather_blocks(dv_ranks *t, void *data, size_t unit, size_t count, size_t block) {
  if (!t || !data) return;
  for (int r = 0; r <= t->size; r++) {
    size_t first = dv_ranks_first(t, (count + block - 1) / block, r) * block;
    t->first[r] = first < count ? first : count;
  }
  dv_ranks_gather_parts(t, data, unit, t->first);
}

void dv_ranks_gather(dv_ranks *t, void *data, size_t unit, size_t count) {
  dv_ranks_gather_blocks(t, data, unit, count, 1);
}

void dv_ranks_broadcast(dv_ranks *t, void *data, size_t bytes) {
  if (t) t->carrier->broadcast(t->state, data, bytes);
}

void dv_ranks_exchange(dv_ranks *t, const dv_parcel *out, size_t n_out, const dv_parcel *in, size_t n_in) {
  if (t) t->carrier->exchange(t->state, out, n_out, in, n_in);
}

int dvbf_ranks_largest(dvbf_ranks *t, int value) {
  if (!t) return value;
  t->values[t->rank] = (uint64_t)(int64_t)value;
  dv_ranks_gather(t, t->values, sizeof *t->values, (size_t)t->size);
  for (int r = 0; r < t->size; r++)
    if ((int)(int64_t)t->values[r] > value) value = (int)(int64_t)t->values[r];
  return value;
}

dvbf_status dv_ranks_agree(dv_ranks *t, uint64_t value, const char *what, dvbf_error *error) {
  if (!t) return DVBF_OK;
  t->values[t->rank] = value;
  dv_ranks_gather(t, t->values, sizeof *t->values, (size_t)t->size);
  for (int r = 1; r < t->size; r++)
    if (t->values[r] != t->values[0])
      return dv_fail(error, DVBF_ARGUMENT, "ranks 0 and %d differ in %s; start all ranks in the same way", r,
                     what);
  return DVBF_OK;
}
