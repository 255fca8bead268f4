/* Data sets in HDF5 files. A file may hold anything: whatever HDF5 reports is checked before it is used. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/hdf5_file.h"

#include <errno.h>
#include <hdf5.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ELEMENTS ((size_t)1 << 40) /* far beyond any memory, far below an overflow */

static const char *const split_names[] = {"train", "valid", "test"};

/* ---- Reading ---- */

typedef struct source {
  hid_t file;
  const char *path;
  dvbf_error *error;
} source;

/* An open dataset of numbers. */
typedef struct dataset {
  hid_t id;
  char name[32]; /* path inside the file */
  H5T_class_t class;
  bool ordinary; /* 8, 16, 32 or 64 bits */
  bool bytes;    /* unsigned integers of 8 bits */
  int rank;
  hsize_t dims[H5S_MAX_RANK]; /* [rank] */
  size_t elements;
} dataset;

static const char *class_name(H5T_class_t class) {
  switch (class) {
  case H5T_INTEGER: return "integers";
  case H5T_FLOAT: return "floating-point numbers";
  case H5T_STRING: return "text";
  case H5T_COMPOUND: return "compounds";
  case H5T_REFERENCE: return "references";
  case H5T_ENUM: return "enumerated or boolean values";
  case H5T_VLEN: return "values of variable length";
  case H5T_ARRAY: return "arrays";
  default: return "values of an unknown type";
  }
}

/* The shape as text: [500, 15, 256] */
static const char *shape_text(const dataset *d, char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "[");
  for (int i = 0; i < d->rank && used + 24 < size; i++)
    used +=
        (size_t)snprintf(out + used, size - used, "%s%llu", i ? ", " : "", (unsigned long long)d->dims[i]);
  snprintf(out + used, size - used, "]");
  return out;
}

/* `needed` completes the sentence "... has the shape [2]; it must be ...". */
static dvbf_status wrong_shape(const source *s, const dataset *d, const char *needed) {
  char shape[128];
  return dv_fail(s->error, DVBF_FORMAT, "%.200s: %s has the shape %s; it must be %s", s->path, d->name,
                 shape_text(d, shape, sizeof shape), needed);
}

static dvbf_status damaged(const source *s, const char *name) {
  return dv_fail(s->error, DVBF_FORMAT,
                 "%.200s: %s cannot be read; the file is damaged, so make or copy it again", s->path, name);
}

/* *found = whether `prefix``name` leads to an object; what holds it must exist. */
static dvbf_status look_up(const source *s, const char *prefix, const char *name, bool *found) {
  char path[32];
  snprintf(path, sizeof path, "%s%s", prefix, name);
  htri_t answer = H5Lexists(s->file, path, H5P_DEFAULT);
  if (answer > 0) answer = H5Oexists_by_name(s->file, path, H5P_DEFAULT);
  *found = answer > 0;
  return answer < 0 ? damaged(s, path) : DVBF_OK;
}

/* Reads type and shape of an open dataset; false when HDF5 cannot tell. */
static bool describe(dataset *d) {
  hid_t type = H5Dget_type(d->id), space = H5Dget_space(d->id);
  d->class = H5Tget_class(type);
  size_t size = H5Tget_size(type);
  /* HDF5 overruns its buffers on some of the other widths, which a damaged file can have. */
  d->ordinary = size <= 8 && H5Tget_offset(type) == 0 && H5Tget_precision(type) == 8 * size;
  d->bytes = d->class == H5T_INTEGER && size == 1 && H5Tget_sign(type) == H5T_SGN_NONE;
  d->rank = H5Sget_simple_extent_ndims(space);
  bool known = d->class != H5T_NO_CLASS && d->rank >= 0 && d->rank <= H5S_MAX_RANK &&
               H5Sget_simple_extent_dims(space, d->dims, NULL) >= 0;
  H5Sclose(space);
  H5Tclose(type);
  return known;
}

/* Counts the elements of a described dataset and refuses what cannot be read as numbers. */
static dvbf_status check(const source *s, dataset *d) {
  if (d->class != H5T_INTEGER && d->class != H5T_FLOAT)
    return dv_fail(s->error, DVBF_FORMAT, "%.200s: %s holds %s; store numbers, best of type float32 or uint8",
                   s->path, d->name, class_name(d->class));
  if (!d->ordinary)
    return dv_fail(s->error, DVBF_FORMAT,
                   "%.200s: %s holds numbers of an unusual width; store float32 or uint8", s->path, d->name);
  d->elements = 1;
  for (int i = 0; i < d->rank; i++) {
    if (d->dims[i] == 0) return wrong_shape(s, d, "1 or more in each dimension");
    if (d->dims[i] > MAX_ELEMENTS || !dv_multiply(d->elements, d->dims[i], &d->elements) ||
        d->elements > MAX_ELEMENTS)
      return wrong_shape(s, d, "below 2^40 numbers; split it over several files");
  }
  if (H5Dget_storage_size(d->id) == 0)
    return dv_fail(s->error, DVBF_FORMAT, "%.200s: %s was declared but never written; write its values",
                   s->path, d->name);
  return DVBF_OK;
}

/* Opens the dataset `prefix``name`; on success the caller closes d->id. */
static dvbf_status open_dataset(const source *s, const char *prefix, const char *name, dataset *d) {
  *d = (dataset){.id = H5I_INVALID_HID};
  snprintf(d->name, sizeof d->name, "%s%s", prefix, name);
  d->id = H5Dopen2(s->file, d->name, H5P_DEFAULT);
  if (d->id < 0)
    return dv_fail(s->error, DVBF_FORMAT,
                   "%.200s: %s is not a dataset or is damaged; it must be one of numbers", s->path, d->name);
  dvbf_status status = describe(d) ? check(s, d) : damaged(s, d->name);
  if (status) H5Dclose(d->id);
  return status;
}

/* Reads all numbers; the caller frees *out. */
static dvbf_status read_floats(const source *s, const dataset *d, float **out) {
  float *values = dv_calloc(d->elements, sizeof *values);
  if (!values) return dv_fail_memory(s->error, "reading data");
  if (H5Dread(d->id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
    dv_free(values);
    return damaged(s, d->name);
  }
  *out = values;
  return DVBF_OK;
}

/* x [N,T,n_x] or [N,T,height,width]. Bytes are pixels from 0 to 255 and become 0 to 1. */
static dvbf_status read_x(const source *s, const char *prefix, dvbf_sequences *q, size_t image[2]) {
  dataset d;
  dvbf_status status = open_dataset(s, prefix, "x", &d);
  if (status) return status;
  if (d.rank == 3 || d.rank == 4) {
    status = read_floats(s, &d, &q->x);
  } else {
    status =
        wrong_shape(s, &d, "[sequences, steps, columns] or [sequences, steps, height, width]; reshape it");
  }
  H5Dclose(d.id);
  if (status) return status;
  for (size_t i = 0; d.bytes && i < d.elements; i++) q->x[i] /= 255;
  q->count = d.dims[0];
  q->steps = d.dims[1];
  q->n_x = d.elements / (q->count * q->steps);
  for (int i = 0; i < 2; i++) image[i] = d.rank == 4 ? d.dims[2 + i] : 0;
  return DVBF_OK;
}

/* Column names of an attribute of text, either type of text; what is not printable ASCII becomes '?'. */
static bool copy_names(hid_t attribute, hid_t type, size_t count, char (*out)[32] /* [count] */) {
  bool variable = H5Tis_variable_str(type) > 0;
  size_t width = variable ? sizeof(char *) : 32;
  hid_t memory_type = H5Tcopy(H5T_C_S1), space = H5Aget_space(attribute);
  char *raw = dv_calloc(count, width);
  bool read = raw && H5Tset_size(memory_type, variable ? H5T_VARIABLE : width) >= 0 &&
              H5Tset_cset(memory_type, H5Tget_cset(type)) >= 0 && H5Aread(attribute, memory_type, raw) >= 0;
  for (size_t i = 0; read && i < count; i++) {
    const char *name = variable ? ((char **)(void *)raw)[i] : raw + i * width;
    snprintf(out[i], sizeof out[i], "%s", name ? name : "");
    for (char *c = out[i]; *c; c++)
      if (*c < ' ' || *c > '~') *c = '?';
  }
  if (read && variable) H5Dvlen_reclaim(memory_type, space, H5P_DEFAULT, raw);
  dv_free(raw);
  H5Sclose(space);
  H5Tclose(memory_type);
  return read;
}

/* The attribute `names` of state, or state0, state1, ... */
static dvbf_status read_names(const source *s, const dataset *d, size_t count, char (**out)[32]) {
  char(*names)[32] = dv_calloc(count, sizeof *names);
  if (!names) return dv_fail_memory(s->error, "reading data");
  dvbf_status status = DVBF_OK;
  if (H5Aexists(d->id, "names") > 0) {
    hid_t attribute = H5Aopen(d->id, "names", H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != (hssize_t)count ||
        !copy_names(attribute, type, count, names))
      status = dv_fail(s->error, DVBF_FORMAT,
                       "%.200s: the attribute names of %s must be %zu strings, one for each column", s->path,
                       d->name, count);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
  } else {
    for (size_t i = 0; i < count; i++) snprintf(names[i], sizeof names[i], "state%zu", i);
  }
  if (status)
    dv_free(names);
  else
    *out = names;
  return status;
}

/* u or state: [N,T,width], or [N,T] for one column. Names are read when wanted and not yet known. */
static dvbf_status read_beside_x(const source *s, const char *prefix, const char *name,
                                 const dvbf_sequences *q, size_t *width, float **values, char (**names)[32]) {
  dataset d;
  dvbf_status status = open_dataset(s, prefix, name, &d);
  if (status) return status;
  if ((d.rank != 2 && d.rank != 3) || d.dims[0] != q->count || d.dims[1] != q->steps) {
    char needed[128];
    snprintf(needed, sizeof needed, "[%zu, %zu, columns] to match %sx; reshape or pad it", q->count, q->steps,
             prefix);
    status = wrong_shape(s, &d, needed);
  }
  size_t columns = d.rank == 3 ? d.dims[2] : 1;
  if (!status) status = read_floats(s, &d, values);
  if (!status && names && !*names) status = read_names(s, &d, columns, names);
  H5Dclose(d.id);
  if (!status) *width = columns;
  return status;
}

static dvbf_status copy_lengths(const source *s, const dataset *d, const int64_t *raw /* [count] */,
                                dvbf_sequences *q) {
  bool shorter = false;
  for (size_t i = 0; i < q->count; i++) {
    if (raw[i] < 1 || (uint64_t)raw[i] > q->steps)
      return dv_fail(
          s->error, DVBF_FORMAT,
          "%.200s: %s is %lld for sequence %zu (counted from 0); it must be in [1, %zu], the steps of x",
          s->path, d->name, (long long)raw[i], i, q->steps);
    shorter |= (uint64_t)raw[i] < q->steps;
  }
  if (!shorter) return DVBF_OK;
  q->length = dv_calloc(q->count, sizeof *q->length);
  if (!q->length) return dv_fail_memory(s->error, "reading data");
  for (size_t i = 0; i < q->count; i++) q->length[i] = (uint32_t)raw[i];
  return DVBF_OK;
}

static dvbf_status read_length(const source *s, const char *prefix, dvbf_sequences *q) {
  dataset d;
  dvbf_status status = open_dataset(s, prefix, "length", &d);
  if (status) return status;
  int64_t *raw = NULL;
  if (d.rank != 1 || d.dims[0] != q->count || d.class != H5T_INTEGER)
    status = dv_fail(s->error, DVBF_FORMAT, "%.200s: %s must be %zu integers, one for each sequence of %sx",
                     s->path, d.name, q->count, prefix);
  else if (!(raw = dv_calloc(q->count, sizeof *raw)))
    status = dv_fail_memory(s->error, "reading data");
  else if (H5Dread(d.id, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw) < 0)
    status = damaged(s, d.name);
  else
    status = copy_lengths(s, &d, raw, q);
  dv_free(raw);
  H5Dclose(d.id);
  return status;
}

/* What may stand beside x. */
static dvbf_status read_companions(const source *s, const char *prefix, dvbf_sequences *q,
                                   char (**names)[32]) {
  bool has_u = false, has_state = false, has_length = false;
  dvbf_status status = look_up(s, prefix, "u", &has_u);
  if (!status) status = look_up(s, prefix, "state", &has_state);
  if (!status) status = look_up(s, prefix, "length", &has_length);
  if (!status && has_u) status = read_beside_x(s, prefix, "u", q, &q->n_u, &q->u, NULL);
  if (!status && has_state) status = read_beside_x(s, prefix, "state", q, &q->n_s, &q->state, names);
  if (!status && has_length) status = read_length(s, prefix, q);
  return status;
}

/* One set of sequences, checked. What was read stays in *q on failure too, for the caller to free. */
static dvbf_status read_sequences(const source *s, const char *prefix, dvbf_sequences *q, size_t image[2],
                                  char (**names)[32]) {
  bool found = false;
  dvbf_status status = look_up(s, prefix, "x", &found);
  if (!status && !found)
    status = dv_fail(s->error, DVBF_FORMAT, "%.200s: %sx is missing; the observations must be stored there",
                     s->path, prefix);
  if (!status) status = read_x(s, prefix, q, image);
  if (!status) status = read_companions(s, prefix, q, names);
  if (status) return status;
  dv_sequences_clear_padding(q);
  return dv_sequences_validate(q, s->path, prefix, s->error);
}

static dvbf_status check_group(const source *s, const char *name) {
  bool found = false;
  dvbf_status status = look_up(s, "", name, &found);
  if (status) return status;
  if (!found)
    return dv_fail(s->error, DVBF_FORMAT,
                   "%.200s: the group %s is missing; store train, valid and test, or one set at the root",
                   s->path, name);
  if (H5Gclose(H5Gopen2(s->file, name, H5P_DEFAULT)) < 0)
    return dv_fail(s->error, DVBF_FORMAT,
                   "%.200s: %s is not a group or is damaged; it must be a group that holds x", s->path, name);
  return DVBF_OK;
}

static dvbf_status read_groups(const source *s, dvbf_data *data) {
  dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
  for (size_t i = 0; i < 3; i++) {
    size_t image[2];
    char prefix[8];
    snprintf(prefix, sizeof prefix, "%s/", split_names[i]);
    dvbf_status status = check_group(s, split_names[i]);
    if (!status) status = read_sequences(s, prefix, splits[i], image, &data->state_names);
    if (status) return status;
    if (i == 0) data->image_height = image[0], data->image_width = image[1];
    if (image[0] != data->image_height || image[1] != data->image_width)
      return dv_fail(s->error, DVBF_FORMAT,
                     "%.200s: the images of %sx and train/x differ in shape; reshape one", s->path, prefix);
  }
  return dv_data_validate(data, s->path, s->error);
}

static dvbf_status read_root(const source *s, dvbf_data *data, const dv_data_settings *how) {
  dvbf_sequences all = {0};
  size_t image[2];
  dvbf_status status = read_sequences(s, "", &all, image, &data->state_names);
  if (!status) {
    data->image_height = image[0];
    data->image_width = image[1];
    status = dv_data_split(data, &all, how, s->path, s->error);
  }
  if (status)
    dvbf_sequences_free(&all);
  else
    dv_free(all.length);
  return status;
}

static dvbf_status read_any(const source *s, dvbf_data *data, const dv_data_settings *how) {
  bool found = false;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && !found && i < 3; i++) status = look_up(s, "", split_names[i], &found);
  if (!status && found) return read_groups(s, data);
  if (!status) status = look_up(s, "", "x", &found);
  if (!status && found) return read_root(s, data, how);
  if (status) return status;
  return dv_fail(s->error, DVBF_FORMAT,
                 "%.200s: x is missing; it must be in the groups train, valid and test, or at the root",
                 s->path);
}

/* A file that HDF5 can open; objects left open in it close with it. */
static dvbf_status open_source(source *s) {
  struct stat about;
  if (stat(s->path, &about) || access(s->path, R_OK))
    return dv_fail(s->error, DVBF_IO, "%.200s: cannot be read: %s", s->path, strerror(errno));
  if (!S_ISREG(about.st_mode))
    return dv_fail(s->error, DVBF_IO, "%.200s: is not a file; name an HDF5 file", s->path);
  if (H5Fis_hdf5(s->path) <= 0)
    return dv_fail(s->error, DVBF_FORMAT,
                   "%.200s: is not an HDF5 file; dvbf simulate or h5py make such files", s->path);
  hid_t access_list = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG);
  s->file = H5Fopen(s->path, H5F_ACC_RDONLY, access_list);
  H5Pclose(access_list);
  if (s->file < 0)
    return dv_fail(s->error, DVBF_FORMAT,
                   "%.200s: is truncated, damaged or being written; make or copy the file again", s->path);
  return DVBF_OK;
}

static dvbf_status read_file(dvbf_data *data, const char *path, const dv_data_settings *how,
                             dvbf_error *error) {
  source s = {.path = path, .error = error};
  dvbf_status status = open_source(&s);
  if (status) return status;
  status = read_any(&s, data, how);
  H5Fclose(s.file);
  return status;
}

dvbf_status dvbf_data_read(dvbf_data **out, const char *path, const dvbf_settings *how, dvbf_error *error) {
  dvbf_settings *defaults = NULL;
  dvbf_data *data = dv_calloc(1, sizeof *data);
  dvbf_status status = data ? DVBF_OK : dv_fail_memory(error, "reading data");
  if (!status && !how) status = dvbf_settings_new(&defaults, "data", error);
  const dv_data_settings *values = status ? NULL : dv_settings_data(how ? how : defaults, error);
  if (!status && !values) status = DVBF_ARGUMENT;
  if (!status) {
    dv_hdf5_printing saved = dv_hdf5_silence();
    status = read_file(data, path, values, error);
    dv_hdf5_restore(saved);
  }
  dvbf_settings_free(defaults);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}

/* ---- Writing ---- */

static bool write_floats(hid_t group, const char *name, int rank, const hsize_t *dims, const float *values) {
  return dv_hdf5_write(group, name, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, rank, dims, values);
}

static bool write_names(hid_t group, hsize_t count, char (*names)[32] /* [count] */) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL);
  H5Tset_size(type, sizeof *names);
  hid_t attribute =
      H5Acreate_by_name(group, "state", "names", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  bool done = H5Awrite(attribute, type, names) >= 0;
  done &= H5Aclose(attribute) >= 0;
  H5Sclose(space);
  H5Tclose(type);
  return done;
}

/* s is laid out [count][steps]. */
static bool write_split(hid_t file, const char *name, const dvbf_sequences *s, const dvbf_data *data) {
  hid_t creation = dv_hdf5_timeless(H5P_GROUP_CREATE);
  hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, creation, H5P_DEFAULT);
  hsize_t columns[] = {s->count, s->steps, s->n_x};
  hsize_t pixels[] = {s->count, s->steps, data->image_height, data->image_width};
  bool image = data->image_height;
  bool done = write_floats(group, "x", image ? 4 : 3, image ? pixels : columns, s->x);
  columns[2] = s->n_u;
  if (s->n_u) done = done && write_floats(group, "u", 3, columns, s->u);
  columns[2] = s->n_s;
  if (s->n_s)
    done = done && write_floats(group, "state", 3, columns, s->state) &&
           write_names(group, s->n_s, data->state_names);
  if (s->length)
    done = done && dv_hdf5_write(group, "length", H5T_NATIVE_UINT32, H5T_STD_U32LE, 1, columns, s->length);
  done &= H5Gclose(group) >= 0;
  H5Pclose(creation);
  return done;
}

static bool write_any(hid_t file, const char *name, const dvbf_sequences *s, const dvbf_data *data) {
  dvbf_sequences copy = {0};
  bool scattered = s->start || s->source;
  if (scattered && dvbf_sequences_copy(&copy, s, 0, s->count, NULL)) return false;
  bool done = write_split(file, name, scattered ? &copy : s, data);
  dvbf_sequences_free(&copy);
  return done;
}

dvbf_status dvbf_data_write(const dvbf_data *data, const char *path, dvbf_error *error) {
  if (!data->valid.count || !data->test.count)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: cannot be written: %s has no sequences; each split needs one", path,
                   data->valid.count ? "test" : "valid");
  dvbf_status status = dv_data_validate(data, "data to be written", error);
  if (status) return status;
  dv_hdf5_printing saved = dv_hdf5_silence();
  const dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
  hid_t file = dv_hdf5_memory_file();
  bool done = file >= 0;
  for (size_t i = 0; done && i < 3; i++) done = write_any(file, split_names[i], splits[i], data);
  status = done ? dv_hdf5_store(file, path, error) : dv_fail_memory(error, "writing data");
  H5Fclose(file);
  dv_hdf5_restore(saved);
  return status;
}
