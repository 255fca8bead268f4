/* Writes the files that the fuzzers begin with, good and malformed, into FOLDER/npy, FOLDER/npz, ... */
#include "malformed.h"
#include "model/model.h"

#include <dvbf/dvbf.h>
#include <sys/stat.h>

static const char *target;

/* The file's copy in the folder of its format. */
static void copy(const char *format, const char *name) {
  static unsigned number;
  char path[1024];
  size_t size;
  unsigned char *all = read_bytes(in_folder(name), &size);
  snprintf(path, sizeof path, "%s/%s", target, format);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "%s/%s/%03u", target, format, number++);
  write_bytes(path, all, size);
  free(all);
}

static void keep(const malformed *file) {
  const char *ending = strrchr(file->name, '.') + 1;
  copy(!strcmp(ending, "h5") ? "hdf5" : ending, file->name);
}

/* The smallest model. */
static void keep_model(void) {
  static const char *const values[][2] = {
      {"updates", "0"}, {"latent", "2"}, {"initial-frames", "2"}, {"batch-size", "2"}};
  float x[30];
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  bool failed = dvbf_settings_new(&settings, "train", &error);
  for (int i = 0; i < 4 && !failed; i++) dvbf_settings_set(settings, values[i][0], values[i][1], NULL);
  for (int i = 0; i < 30; i++) x[i] = (float)(i * i % 7);
  write_npy("x.npy", npy("<f4", false, "(5, 3, 2)", x, sizeof x));
  failed = failed || dvbf_data_read(&data, in_folder("x.npy"), settings, &error) ||
           dvbf_train(&model, settings, data, NULL, &error) ||
           dvbf_model_save(model, in_folder("a.model"), &error) ||
           dvbf_settings_write(settings, in_folder("a.settings"), &error);
  if (failed) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  copy("model", "a.model");
  dvbf_model *member = NULL, *linear = NULL;
  failed = dvbf_model_load(&member, in_folder("a.model"), &error) ||
           dvbf_model_load(&linear, in_folder("a.model"), &error) ||
           dv_model_add_member(model, member, &error) || dv_model_set_linear(model, linear, &error) ||
           dvbf_model_save(model, in_folder("a.model"), &error);
  if (failed) exit(1);
  copy("model", "a.model");
  copy("settings", "a.settings");
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
}

int main(int count, char **arguments) {
  if (count != 2 || make_folder(NULL)) return 2;
  target = arguments[1];
  mkdir(target, 0777);
  each_npy(keep);
  each_npz(keep);
  each_csv(keep);
  each_mat(keep);
  each_hdf5(keep);
  keep_model();
  return remove_folder(NULL);
}
