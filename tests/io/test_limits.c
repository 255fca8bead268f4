/* The limits of docs/robustness.md: a value at the limit is accepted, the next larger one is refused. */
#include "arrays.h"
#include "files.h"

#include "base/settings.h"
#include "given.h"
#include "hdf5_files.h"
#include "malformed.h"
#include "runs.h"

static dvbf_status read_with(const char *name, const char *settings_text, char *message) {
  dvbf_settings *settings = settings_of("data", settings_text);
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  dvbf_status status = dvbf_data_read(&data, in_folder(name), settings, &error);
  if (!status) dvbf_data_free(data);
  memcpy(message, error.message, sizeof error.message);
  dvbf_settings_free(settings);
  return status;
}

static void assert_read(const char *name, const char *settings_text) {
  char message[sizeof((dvbf_error *)NULL)->message];
  if (read_with(name, settings_text, message)) fail_msg("%s: %s", name, message);
}

static void assert_refused(const char *name, const char *settings_text, const char *part) {
  char message[sizeof((dvbf_error *)NULL)->message];
  assert_int_not_equal(read_with(name, settings_text, message), DVBF_OK);
  if (!strstr(message, part)) fail_msg("%s: %s", name, message);
}

/* ---- Arrays ---- */

/* 30 values that vary. */
static const float *thirty_waves(void) {
  static float values[30];
  for (int i = 0; i < 30; i++) values[i] = (float)(i * i % 13);
  return values;
}

/* NPY of version 2, whose header may be as long as 32 bits say. */
static void header_of_npy(void **unused) {
  (void)unused;
  static char header[(1 << 16) + 16];
  for (size_t length = 1 << 16; length <= (1 << 16) + 1; length++) {
    memset(header, ' ', length);
    header[length] = 0;
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 2), }";
    memcpy(header, text, sizeof text - 1);
    unsigned char start[12] = "\x93NUMPY\2";
    for (int i = 0; i < 4; i++) start[8 + i] = (unsigned char)(length >> (8 * i));
    FILE *file = fopen(in_folder("a.npy"), "wb");
    fwrite(start, 1, 12, file);
    fwrite(header, 1, length, file);
    fwrite(thirty_waves(), sizeof(float), 30, file);
    fclose(file);
    if (length == 1 << 16)
      assert_read("a.npy", "");
    else
      assert_refused("a.npy", "", "damaged NPY header");
  }
  clear_folder();
}

static void dimensions(void **unused) {
  (void)unused;
  write_npy("a.npy", npy("<f4", false, "(5, 3, 2, 1, 1, 1, 1, 1)", thirty_waves(), 120));
  assert_refused("a.npy", "", "x has the shape [5, 3, 2, 1, 1, 1, 1, 1]"); /* known, but no sequences */
  write_npy("a.npy", npy("<f4", false, "(5, 3, 2, 1, 1, 1, 1, 1, 1)", thirty_waves(), 120));
  assert_refused("a.npy", "", "8 dimensions");
  clear_folder();
}

/* The names of arrays in an archive, without their ending. */
static void names_of_arrays(void **unused) {
  (void)unused;
  char name[600], key[700];
  for (size_t length = 500; length <= 513;
       length += 13) { /* settings have 511 bytes, with the name 500 fits */
    memset(name, 'n', length);
    strcpy(name + length, ".npy");
    write_zip("a.npz", false, 1, (member[]){{name, npy("<f4", false, "(5, 3, 2)", thirty_waves(), 120)}});
    snprintf(key, sizeof key, "%.*s", (int)(length < 511 ? length : 511), name);
    dvbf_settings *settings = settings_of("data", "");
    dvbf_data *data = NULL;
    assert_int_equal(dvbf_settings_set(settings, "outputs", key, NULL), DVBF_OK);
    dvbf_status status = dvbf_data_read(&data, in_folder("a.npz"), settings, NULL);
    assert_int_equal(status, length == 500 ? DVBF_OK : DVBF_FORMAT);
    if (!status) dvbf_data_free(data);
    dvbf_settings_free(settings);
  }
  clear_folder();
}

static void depth_of_groups(void **unused) {
  (void)unused;
  double values[30];
  for (int i = 0; i < 30; i++) values[i] = (double)thirty_waves()[i];
  const char *const names[] = {"1/2/3/4/5/6/7/8/x", "1/2/3/4/5/6/7/8/9/x"};
  for (int i = 0; i < 2; i++) {
    char text[64];
    hid_t file = hdf5_named("a.h5");
    put(file, names[i], H5T_IEEE_F32LE, SHAPE(5, 3, 2), values);
    H5Fclose(file);
    snprintf(text, sizeof text, "outputs=%s", names[i]);
    if (!i)
      assert_read("a.h5", text);
    else
      assert_refused("a.h5", text, "x");
  }
  clear_folder();
}

/* 64 MB of zeros and a few waves are some 64 kB when they are compressed. */
static void unpacked_arrays(void **unused) {
  (void)unused;
  for (size_t steps = 1 << 15; steps <= (1 << 15) + 1; steps++) {
    char shape[32];
    size_t count = 512 * steps;
    float *x = calloc(count, sizeof *x);
    for (size_t i = 0; i < count; i += 5) x[i] = (float)(i % 3);
    snprintf(shape, sizeof shape, "(1, %zu, 512)", steps);
    write_zip("a.npz", true, 1, (member[]){{"x.npy", npy("<f4", false, shape, x, count * sizeof *x)}});
    free(x);
    if (steps == 1 << 15) {
      assert_read("a.npz", "memory=1");
    } else {
      assert_refused("a.npz", "memory=64", "x is compressed and larger than memory allows when unpacked");
      assert_read("a.npz", "memory=65");
    }
  }
  clear_folder();
}

/* The same of a chunk of HDF5, which is unpacked as a whole. */
static void unpacked_chunks(void **unused) {
  (void)unused;
  for (hsize_t width = 1 << 12; width <= (1 << 12) + 1; width++) {
    hsize_t dims[] = {1, 1 << 12, width};
    hid_t file = hdf5_named("a.h5"), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(3, dims, NULL);
    float *x = calloc(dims[1] * dims[2], sizeof *x);
    for (size_t i = 0; i < dims[1] * dims[2]; i += 5) x[i] = (float)(i % 3);
    H5Pset_chunk(creation, 3, dims);
    H5Pset_deflate(creation, 1);
    hid_t id = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(H5Dwrite(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Dclose(id), H5Sclose(space), H5Pclose(creation), H5Fclose(file);
    free(x);
    if (width == 1 << 12)
      assert_read("a.h5", "memory=1");
    else
      assert_refused("a.h5", "memory=1", "is compressed and larger than memory allows");
  }
  clear_folder();
}

/* ---- Tables ---- */

static void lines_of_tables(void **unused) {
  (void)unused;
  const size_t longest = 1 << 26, over = longest + 1;
  char *line = malloc(over + 1);
  memset(line, ' ', over);
  memcpy(line, "x,u\n1,2\n3,5\n4,4\n7,", 18);
  line[over] = 0;
  FILE *file = fopen(in_folder("a.csv"), "wb");
  fwrite(line, 1, over, file);
  fprintf(file, "%*s1\n", 64, "");
  fclose(file);
  free(line);
  assert_refused("a.csv", "", "is longer than 67108864 bytes");
  file = fopen(in_folder("a.csv"), "wb");
  fprintf(file, "x,u\n1,2\n3,5\n4,4\n7,%*s1\n5,1\n2,2\n", 1 << 20, "");
  fclose(file);
  assert_read("a.csv", "");
  clear_folder();
}

static void names_of_columns(void **unused) {
  (void)unused;
  dvbf_data data = make_data();
  char name[] = "1234567890123456789012345678901";
  assert_int_equal(strlen(name), 31);
  assert_int_equal(dvbf_data_name(&data, "x", 0, name, NULL), DVBF_OK);
  assert_int_equal(dvbf_data_name(&data, "x", 0, "12345678901234567890123456789012", NULL), DVBF_ARGUMENT);
  free(data.x_names);
  free_data(&data);
}

/* ---- Settings ---- */

static dvbf_status read_settings(const char *text, size_t length) {
  dvbf_settings *settings = settings_of("train", "");
  write_bytes(in_folder("settings.txt"), text, length);
  dvbf_status status = dvbf_settings_read(settings, in_folder("settings.txt"), NULL);
  dvbf_settings_free(settings);
  return status;
}

static void lines_of_settings(void **unused) {
  (void)unused;
  static char text[1 << 20];
  memset(text, ' ', sizeof text);
  memcpy(text, "hidden = 3", 10);
  assert_int_equal(read_settings(text, 1023), DVBF_OK);
  assert_int_equal(read_settings(text, 1024), DVBF_FORMAT);
  memset(text, '#', sizeof text); /* a comment is as long as it likes, and none of it is a setting */
  memcpy(text + 1500, "\rhidden = no", 12);
  assert_int_equal(read_settings(text, sizeof text), DVBF_OK);
  clear_folder();
}

static void texts_of_settings(void **unused) {
  (void)unused;
  dvbf_settings *settings = settings_of("train", "");
  char text[DV_TEXT + 1];
  memset(text, 'k', sizeof text);
  text[DV_TEXT - 1] = 0;
  assert_int_equal(dvbf_settings_set(settings, "outputs", text, NULL), DVBF_OK);
  text[DV_TEXT - 1] = 'k', text[DV_TEXT] = 0;
  assert_int_equal(dvbf_settings_set(settings, "outputs", text, NULL), DVBF_ARGUMENT);
  dvbf_settings_free(settings);
}

/* ---- Models ---- */

static void header_of_models(void **unused) {
  (void)unused;
  dvbf_data data = make_data();
  dvbf_settings *settings = settings_of("train", BRIEF);
  dvbf_model *model = NULL;
  void *whole = NULL;
  size_t size;
  dvbf_error error = {.message = ""};
  assert_int_equal(dvbf_train(&model, settings, &data, NULL, &error), DVBF_OK);
  assert_int_equal(dvbf_model_to_bytes(&whole, &size, model, &error), DVBF_OK);
  dvbf_model_free(model);
  size_t header = 0;
  for (int i = 0; i < 8; i++) header |= (size_t)((unsigned char *)whole)[i] << (8 * i);
  for (size_t length = 1 << 24; length <= (1 << 24) + 1; length++) { /* blanks fill it up */
    size_t all = 8 + length + (size - 8 - header);
    unsigned char *longer = malloc(all);
    memset(longer, ' ', all);
    for (int i = 0; i < 8; i++) longer[i] = (unsigned char)(length >> (8 * i));
    memcpy(longer + 8, (unsigned char *)whole + 8, header);
    memcpy(longer + 8 + length, (unsigned char *)whole + 8 + header, size - 8 - header);
    dvbf_status status = dvbf_model_from_bytes(&model, longer, all, &error);
    assert_int_equal(status, length == 1 << 24 ? DVBF_OK : DVBF_FORMAT);
    if (!status) dvbf_model_free(model);
    free(longer);
  }
  dvbf_bytes_free(whole);
  dvbf_settings_free(settings);
  free_data(&data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(header_of_npy),     cmocka_unit_test(dimensions),
      cmocka_unit_test(names_of_arrays),   cmocka_unit_test(depth_of_groups),
      cmocka_unit_test(unpacked_arrays),   cmocka_unit_test(unpacked_chunks),
      cmocka_unit_test(lines_of_tables),   cmocka_unit_test(names_of_columns),
      cmocka_unit_test(lines_of_settings), cmocka_unit_test(texts_of_settings),
      cmocka_unit_test(header_of_models),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
