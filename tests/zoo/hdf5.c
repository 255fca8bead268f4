/* Writes files of HDF5 as users have them into the current folder: D4RL, Minari, robomimic, MATLAB 7.3 and
 * pandas. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 240 };

/* values [dims]; intermediate groups are made. */
static hid_t put(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                 const double *values) {
  hid_t space = H5Screate_simple(rank, dims, NULL), links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  hid_t id = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  if (H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) exit(1);
  H5Pclose(links);
  H5Sclose(space);
  return id;
}

static void add(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                const double *values) {
  H5Dclose(put(file, name, type, rank, dims, values));
}

static hid_t new_file(const char *name) {
  return H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

static double x[ROWS * 3], u[ROWS];

static void simulate(void) {
  double z[3] = {0};
  for (int i = 0; i < ROWS; i++) {
    u[i] = sin(0.7 * i) + (i % 11 > 5);
    for (int k = 0; k < 3; k++) x[3 * i + k] = z[k];
    z[0] = 0.9 * z[0] + u[i];
    z[1] = 0.8 * z[1] + z[0];
    z[2] = 0.7 * z[2] + sin(0.1 * i);
  }
}

/* Rows one behind the other; flags end an episode. */
static void d4rl(void) {
  hid_t file = new_file("d4rl.hdf5");
  double terminals[ROWS] = {0}, timeouts[ROWS] = {0}, rewards[ROWS] = {0};
  terminals[49] = terminals[119] = timeouts[179] = timeouts[ROWS - 1] = 1;
  add(file, "observations", H5T_IEEE_F32LE, 2, (hsize_t[]){ROWS, 3}, x);
  add(file, "actions", H5T_IEEE_F32LE, 2, (hsize_t[]){ROWS, 1}, u);
  add(file, "next_observations", H5T_IEEE_F32LE, 2, (hsize_t[]){ROWS, 3}, x);
  add(file, "rewards", H5T_IEEE_F32LE, 1, (hsize_t[]){ROWS}, rewards);
  add(file, "terminals", H5T_STD_U8LE, 1, (hsize_t[]){ROWS}, terminals);
  add(file, "timeouts", H5T_STD_U8LE, 1, (hsize_t[]){ROWS}, timeouts);
  H5Fclose(file);
}

/* Episodes with one observation more than actions. */
static void minari(void) {
  hid_t file = new_file("minari.hdf5");
  for (int k = 0; k < 6; k++) {
    static const char *const names[] = {"observations", "actions", "rewards", "terminations", "truncations"};
    const double *const values[] = {x, u, u, u, u};
    for (int i = 0; i < 5; i++) {
      char name[64];
      hsize_t dims[] = {30 + 5 * (hsize_t)k + (i == 0), i == 0 ? 3 : 1};
      snprintf(name, sizeof name, "episode_%d/%s", k, names[i]);
      add(file, name, i > 2 ? H5T_STD_U8LE : H5T_IEEE_F64LE, i < 2 ? 2 : 1, dims, values[i]);
    }
  }
  H5Fclose(file);
}

static void robomimic(void) {
  hid_t file = new_file("robomimic.hdf5");
  for (int k = 0; k < 12; k++) {
    static const char *const names[] = {"obs/joint", "obs/pose", "actions", "rewards", "states"};
    const hsize_t columns[] = {2, 3, 1, 1, 3};
    for (int i = 0; i < 5; i++) {
      char name[64];
      snprintf(name, sizeof name, "data/demo_%d/%s", k, names[i]);
      add(file, name, H5T_IEEE_F64LE, i == 3 ? 1 : 2, (hsize_t[]){40, columns[i]}, i == 2 || i == 3 ? u : x);
    }
  }
  H5Fclose(file);
}

static void label(hid_t id, const char *class) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, strlen(class));
  hid_t attribute = H5Acreate2(id, "MATLAB_class", type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, class);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(id);
}

/* x is ROWS by 3 and u ROWS by 1 in MATLAB, whose first index runs fastest. */
static void matlab(void) {
  hid_t file = new_file("v73.mat");
  double columns[3 * ROWS], dt = 0.1;
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < 3; k++) columns[k * ROWS + i] = x[3 * i + k];
  label(put(file, "x", H5T_IEEE_F64LE, 2, (hsize_t[]){3, ROWS}, columns), "double");
  label(put(file, "u", H5T_IEEE_F64LE, 2, (hsize_t[]){1, ROWS}, u), "double");
  label(put(file, "dt", H5T_IEEE_F64LE, 2, (hsize_t[]){1, 1}, &dt), "double");
  H5Fclose(file);
}

/* What pandas.to_hdf makes: blocks of columns. */
static void pandas(void) {
  hid_t file = new_file("pandas.h5");
  add(file, "df/axis0", H5T_STD_I64LE, 1, (hsize_t[]){3}, x);
  add(file, "df/axis1", H5T_STD_I64LE, 1, (hsize_t[]){ROWS}, x);
  add(file, "df/block0_items", H5T_STD_I64LE, 1, (hsize_t[]){3}, x);
  add(file, "df/block0_values", H5T_IEEE_F64LE, 2, (hsize_t[]){ROWS, 3}, x);
  H5Fclose(file);
}

int main(void) {
  simulate();
  d4rl();
  minari();
  robomimic();
  matlab();
  pandas();
  return 0;
}
