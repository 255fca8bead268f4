/* Files of named tensors with metadata: safetensors. 8 bytes of little-endian header length, a JSON header,
 * raw little-endian float32. Models and checkpoints are such files; `format` in the metadata tells them
 * apart. */
#pragma once

#include <dvbf/graph.h>
#include <jansson.h>

/* A tensor of the file and where it lives in memory. Parameters are dvbf_real, scalings float. */
typedef struct dv_tensor {
  char name[80];
  size_t rows, cols;
  dvbf_real *real;
  float *single;
  bool infinite; /* may hold infinite values; NaN is refused anywhere */
  size_t begin;  /* in the file, when loading */
} dv_tensor;

dv_tensor dv_tensor_real(const char *name, size_t rows, size_t cols, dvbf_real *at);
dv_tensor dv_tensor_single(const char *name, size_t cols, float *at);

/* Index of the first value that the tensor may not hold; its size if there is none. */
size_t dv_tensor_flaw(const dv_tensor *t);

/* Sets a text of the metadata; false when memory is short, also that for `meta` itself. */
bool dv_meta_set(json_t *meta, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes the file atomically and frees `meta`, which may be NULL: memory was short. A flaw is refused. */
dvbf_status dv_tensors_write(const char *path, json_t *meta, const dv_tensor *tensors, int n,
                             dvbf_error *error);

/* The same into memory; free *bytes with dvbf_bytes_free. */
dvbf_status dv_tensors_write_bytes(void **bytes, size_t *size, json_t *meta, const dv_tensor *tensors, int n,
                                   dvbf_error *error);

/* A file being read; nothing in it is trusted before it is checked. */
typedef struct dv_tensor_file {
  const char *path;
  unsigned char *bytes; /* the whole file */
  size_t size, data;    /* where tensors begin */
  json_t *header, *meta;
  const char *prefix; /* of the part that is being read, in front of every key of the metadata */
} dv_tensor_file;

/* Bytes of such a file in memory, which are copied; NULL: they are read from `path`, which messages name. */
typedef struct dv_tensor_bytes {
  const void *bytes;
  size_t size;
} dv_tensor_bytes;

/* Reads the file and its header. Close it also after a failure. `what` is "a model", as messages name it.
 * format = NULL: any. */
dvbf_status dv_tensors_open(dv_tensor_file *file, const char *path, const dv_tensor_bytes *bytes,
                            const char *format, const char *what, dvbf_error *error);
void dv_tensors_close(dv_tensor_file *file);

/* A text of the metadata, NULL when there is none. */
const char *dv_meta_get(const dv_tensor_file *file, const char *key);
/* A number of the metadata that must be in [low, high]. */
dvbf_status dv_meta_number(const dv_tensor_file *file, const char *key, double low, double high, double *out,
                           dvbf_error *error);

/* Fills the tensors; each must be there in its shape, finite, and each byte must belong to one of them. */
dvbf_status dv_tensors_read(const dv_tensor_file *file, dv_tensor *tensors, int n, dvbf_error *error);

/* ---- Metadata of models and checkpoints (model_file.c) ---- */

/* Format, transition, n_x and n_u of a model; its settings, but for those of the group "Running". */
bool dv_meta_set_kind(json_t *meta, const dvbf_model *model, const char *format);
bool dv_meta_set_settings(json_t *meta, const dvbf_settings *settings);
dvbf_status dv_meta_read_settings(const dv_tensor_file *file, dvbf_settings *settings, dvbf_error *error);
