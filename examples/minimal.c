/* The program at the top of <dvbf/dvbf.h>: learns a model from pendulum.h5 and saves it. Make the data with
 *
 *   dvbf simulate pendulum -o pendulum.h5
 */
#include <dvbf/dvbf.h>
#include <stdio.h>

int main(void) {
  dvbf_error error;
  dvbf_settings *settings = NULL;
  dvbf_data *data = NULL;
  dvbf_model *model = NULL;
  int failed =
      dvbf_settings_new(&settings, "train", &error) || dvbf_settings_preset(settings, "pendulum", &error) ||
      dvbf_data_read(&data, "pendulum.h5", settings, &error) ||
      dvbf_train(&model, settings, data, NULL, &error) || dvbf_model_save(model, "model.safetensors", &error);
  if (failed) fprintf(stderr, "%s\n", error.message);
  dvbf_model_free(model);
  dvbf_data_free(data);
  dvbf_settings_free(settings);
  return failed;
}
