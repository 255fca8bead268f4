/* Arrays of the caller, read where they lie. */
#include "base/memory.h"
#include "base/status.h"
#include "format/archive.h"
#include "format/numbers.h"

#include <dvbf/dvbf.h>
#include <string.h>

typedef struct memory_archive {
  dv_archive base;
  dvbf_array *given; /* [count], in the order of the caller; dv_array.place is the number of one */
} memory_archive;

/* Types in the order of dvbf_type. */
static const dv_number types[] = {[DVBF_FLOAT32] = DV_FLOAT32,
                                  [DVBF_FLOAT64] = DV_FLOAT64,
                                  [DVBF_UINT32] = DV_UINT32,
                                  [DVBF_INT64] = DV_INT64,
                                  [DVBF_UINT8] = DV_UINT8};

static const dvbf_array *given_of(const dv_archive *a, const dv_array *array) {
  return &((const memory_archive *)a)->given[array->place];
}

static const char *read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                        double *doubles) {
  const dvbf_array *given = given_of(a, array);
  const unsigned char *from = given->values;
  size_t size = dv_number_size(types[given->type]);
  if (floats && given->type == DVBF_FLOAT32)
    memcpy(floats, from + first * size, n * size);
  else
    dv_numbers_convert(from + first * size, types[given->type], false, n, floats, doubles);
  return NULL;
}

static const float *floats(dv_archive *a, const dv_array *array) {
  const dvbf_array *given = given_of(a, array);
  return given->type == DVBF_FLOAT32 ? given->values : NULL;
}

static void close(dv_archive *a) {
  dv_free(((memory_archive *)a)->given);
}

static dvbf_status add(dv_archive *a, const dvbf_array *given, size_t number, dvbf_error *error) {
  char name[DV_NAME];
  if (!given->name || !*given->name || strlen(given->name) >= sizeof name)
    return dv_fail(error, DVBF_ARGUMENT, "data: array %zu needs a name of 1 to %zu bytes, as x or u", number,
                   sizeof name - 1);
  if ((size_t)given->type >= sizeof types / sizeof *types || given->rank < 0 || given->rank > DVBF_MAX_RANK ||
      !given->values)
    return dv_fail(error, DVBF_ARGUMENT,
                   "data: %.64s cannot be read; it needs a known type, values, and a rank in [0, %d]",
                   given->name, DVBF_MAX_RANK);
  strcpy(name, given->name);
  dv_array array = {.name = name,
                    .rank = given->rank,
                    .real = given->type == DVBF_FLOAT32 || given->type == DVBF_FLOAT64,
                    .bytes = given->type == DVBF_UINT8,
                    .seekable = true,
                    .place = number};
  for (int i = 0; i < given->rank; i++) array.dims[i] = given->dims[i];
  return dv_archive_add(a, &array, error);
}

dvbf_status dv_archive_of(dv_archive **out, const dvbf_array *arrays, size_t count, dvbf_error *error) {
  memory_archive *m = (memory_archive *)dv_archive_new(sizeof *m, "data");
  if (!m) return dv_fail_memory(error, "reading data");
  m->base.read = read;
  m->base.floats = floats;
  m->base.close = close;
  m->given = dv_calloc(count, sizeof *m->given);
  dvbf_status status = m->given ? DVBF_OK : dv_fail_memory(error, "reading data");
  if (!status && count) memcpy(m->given, arrays, count * sizeof *arrays);
  for (size_t i = 0; i < count && !status; i++) status = add(&m->base, &arrays[i], i, error);
  if (!status) status = dv_archive_sort(&m->base, error);
  if (status)
    dv_archive_release(&m->base);
  else
    *out = &m->base;
  return status;
}
