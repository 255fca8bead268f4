/* An archive whose arrays have their last two dimensions swapped: columns stored before steps. */
#include "base/memory.h"
#include "base/status.h"
#include "format/archive.h"

typedef struct transposed {
  dv_archive base;
  dv_archive *inner;
  float **values; /* [arrays], NULL where not yet read */
} transposed;

/* Reads an array whole and swaps its last two dimensions; `array` has the new ones. */
static const char *load(transposed *t, const dv_array *array) {
  size_t n = array->elements, rows = array->dims[array->rank - 2], columns = array->dims[array->rank - 1];
  float *stored = dv_calloc(n, sizeof *stored), *to = dv_calloc(n, sizeof *to);
  const dv_array *from = &t->inner->arrays[array->place];
  const char *remedy = stored && to ? dv_array_read(t->inner, from, 0, n, stored, NULL) : "memory is short";
  for (size_t at = 0; at < n && !remedy; at += rows * columns)
    for (size_t i = 0; i < rows; i++)
      for (size_t k = 0; k < columns; k++) to[at + i * columns + k] = stored[at + k * rows + i];
  dv_free(stored);
  if (remedy)
    dv_free(to);
  else
    t->values[array->place] = to;
  return remedy;
}

static const char *read(dv_archive *a, const dv_array *array, size_t first, size_t n, float *floats,
                        double *doubles) {
  transposed *t = (transposed *)a;
  const dv_array *from = &t->inner->arrays[array->place];
  if (array->seekable) return dv_array_read(t->inner, from, first, n, floats, doubles);
  const char *remedy = t->values[array->place] ? NULL : load(t, array);
  for (size_t k = 0; k < n && !remedy; k++) {
    if (floats)
      floats[k] = t->values[array->place][first + k];
    else
      doubles[k] = (double)t->values[array->place][first + k];
  }
  return remedy;
}

/* Texts are those of the archive inside. */
static bool text(dv_archive *a, const dv_array *array, size_t count, char (*out)[32]) {
  dv_archive *inner = ((transposed *)a)->inner;
  return inner->text && inner->text(inner, &inner->arrays[array->place], count, out);
}

static bool named(dv_archive *a, const dv_array *array) {
  dv_archive *inner = ((transposed *)a)->inner;
  return inner->named && inner->named(inner, &inner->arrays[array->place]);
}

static bool units(dv_archive *a, const dv_array *array, size_t count, char (*out)[16]) {
  dv_archive *inner = ((transposed *)a)->inner;
  return inner->units && inner->units(inner, &inner->arrays[array->place], count, out);
}

static void close(dv_archive *a) {
  transposed *t = (transposed *)a;
  for (size_t i = 0; t->values && i < t->inner->count; i++) dv_free(t->values[i]);
  dv_free(t->values);
  dv_archive_release(t->inner);
}

/* Arrays of the highest rank are swapped: what has fewer dimensions has no columns. */
dvbf_status dv_archive_transpose(dv_archive **archive, dvbf_error *error) {
  dv_archive *inner = *archive;
  transposed *t = (transposed *)dv_archive_new(sizeof *t, inner->path);
  int highest = 0;
  if (!t) return dv_fail_memory(error, "reading data");
  t->base.read = read;
  t->base.close = close;
  t->base.text = text;
  t->base.named = named;
  t->base.units = units;
  t->inner = inner;
  *archive = &t->base;
  t->values = dv_calloc(inner->count, sizeof *t->values);
  dvbf_status status = t->values ? DVBF_OK : dv_fail_memory(error, "reading data");
  for (size_t i = 0; i < inner->count; i++)
    if (!inner->arrays[i].trouble && inner->arrays[i].rank > highest) highest = inner->arrays[i].rank;
  for (size_t i = 0; i < inner->count && !status; i++) {
    dv_array array = inner->arrays[i];
    array.place = i;
    array.seekable = array.rank != highest || highest < 2;
    if (!array.seekable) {
      array.dims[array.rank - 1] = inner->arrays[i].dims[array.rank - 2];
      array.dims[array.rank - 2] = inner->arrays[i].dims[array.rank - 1];
    }
    status = dv_archive_add(&t->base, &array, error);
  }
  return status ? status : dv_archive_sort(&t->base, error);
}
