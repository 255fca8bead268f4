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

/* The same behind a line of text: for the fuzzer of keys, or of a run's files. */
static void copy_behind(const char *format, const char *text, const char *name) {
  size_t size, length = strlen(text);
  unsigned char *all = read_bytes(in_folder(name), &size), *whole = malloc(length + size);
  memcpy(whole, text, length);
  memcpy(whole + length, all, size);
  write_bytes(in_folder("behind"), whole, length + size);
  copy(format, "behind");
  free(whole);
  free(all);
}

static void keep_text(const char *format, const char *text) {
  write_bytes(in_folder("text"), (const unsigned char *)text, strlen(text));
  copy(format, "text");
}

static void keep(const malformed *file) {
  const char *ending = strrchr(file->name, '.') + 1;
  copy(!strcmp(ending, "h5") ? "hdf5" : ending, file->name);
  if (strcmp(ending, "h5") != 0 && strcmp(ending, "mat") != 0)
    copy_behind("keys", "x-key=x\nu-key=u,a\noutputs=1\n\n", file->name);
}

#define METRICS                                                                                              \
  "update,start,seconds,bound,valid_bound,valid_reconstruction,valid_kl_w,valid_kl_v,valid_prediction,"      \
  "learning_rate,temperature,sigma_floor,valid_one_step,phase\n"                                             \
  "2,1,0.001,-1.5,-1.25,-1,0.25,0.125,0.5,0.001,1,0.1,0.5,1\n"
#define SEARCH                                                                                               \
  "candidate,name,data,target,updates,free_run,one_step,score,rank,settings\n"                               \
  "1,small,part,4,4,0.5,0.25,-0.7,1,hidden=4 seed=3\n2,linear,all,0,0,1,1,0,0,\n"

/* What `dvbf train` writes beside its models. */
static void keep_run_files(void) {
  keep_text("run", "0" METRICS);
  keep_text("run", "1" SEARCH);
  keep_text("report", "0" METRICS "4,1,0.002,-1.4,-1.2,-1,0.25,0.125,0.4,0.001,1,0.1,0.5,1\n"
                      "2,2,0.003,-1.5,nan,-1,0.25,0.125,0.5,0.001,1,0.1,0.5,1\n");
  keep_text("report", "1" SEARCH);
  keep_text("run", "2{\"n_x\": 4, \"n_u\": 1, \"image\": [2, 2], \"sample_time\": 0.1, \"dates\": true, "
                   "\"x_names\": [\"a\", \"b\", \"c\", \"d\"], \"x_units\": [\"m\", \"\", \"s\", \"\"], "
                   "\"u_names\": [\"v\"]}");
  keep_text("keys", "outputs=x\ninputs=u\nstates=z\ntime-column=t\nsequence-column=n\n\nn,t,u,x,z\n1,0.1,1,2,"
                    "3\n1,0.2,1,3,4\n2,0.1,1,2,3\n");
}

/* Names and values of settings, as words for the fuzzers. */
static void write_dictionary(void) {
  static const char *const tables[] = {"train", "data", "evaluate", "pendulum"};
  char path[1024];
  dvbf_setting_info info;
  snprintf(path, sizeof path, "%s/settings.dict", target);
  FILE *file = fopen(path, "w");
  for (int i = 0; file && i < 4; i++)
    for (size_t k = 0; dvbf_settings_table(tables[i], k, &info); k++) fprintf(file, "\"%s = \"\n", info.name);
  if (file) fclose(file);
}

/* Small models: a fuzzer changes little of large ones. */
static void keep_model(const char *type) {
  const char *const values[][2] = {{"model", type},         {"updates", "0"}, {"latent", "1"},
                                   {"initial-frames", "2"}, {"hidden", "2"},  {"batch-size", "2"},
                                   {"systems", "2"},        {"units", "2"}};
  const char *const learned = "dvbf dkf vae vrnn storn e2c", *const uses[] = {"",     learned,     "",
                                                                              "dvbf", learned,     learned,
                                                                              "dvbf", "vrnn storn"};
  float x[30];
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  dvbf_error error = {.message = ""};
  bool failed = dvbf_settings_new(&settings, "train", &error);
  for (int i = 0; i < 8 && !failed; i++)
    if (!*uses[i] || strstr(uses[i], type)) dvbf_settings_set(settings, values[i][0], values[i][1], NULL);
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
  copy("settings", "a.settings");
  dvbf_model *member = NULL, *linear = NULL;
  failed = dvbf_model_load(&member, in_folder("a.model"), &error) ||
           dvbf_model_load(&linear, in_folder("a.model"), &error) ||
           dv_model_add_member(model, member, &error) || dv_model_set_linear(model, linear, &error) ||
           dvbf_model_save(model, in_folder("a.model"), &error);
  if (!failed) copy("model", "a.model"); /* not all can be members */
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
  const char *const models[] = {"dvbf", "linear", "vae", "dkf", "vrnn", "storn", "e2c"};
  for (int i = 0; i < 7; i++) keep_model(models[i]);
  keep_run_files();
  write_dictionary();
  return remove_folder(NULL);
}
